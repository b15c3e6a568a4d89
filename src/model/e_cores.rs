//! E-cores, of hybrid CPUs and of CPUs that have no other: general counters, one for what became of the slots each (kernel-facts
//! A.2; widths and formulas from perf's pmu-events).

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING};
use super::perf_metrics::INTEL;
use super::tree::Formula::{Rest, Slots};
use super::tree::{Input, Tree, root};
use super::{Counters, Event, FORMULA, INTEL_CYCLES, Model, TRUTH};

/// What is counted besides cycles. Bad speculation is the rest: Gracemont's own event of it does not count all.
pub(crate) static TREE: Tree = Tree {
    inputs: &[Input::Counter(0), Input::Counter(1), Input::Counter(2)],
    clocks: None,
    nodes: &[
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Rest),
        root(FRONTEND_BOUND, Slots(1)),
        root(BACKEND_BOUND, Slots(2)),
    ],
    per_cycle: &[2.0, 1.0, 1.5],
};

const fn counters(events: &'static [Event]) -> Counters {
    Counters { tree: &TREE, leaders: &[INTEL_CYCLES], events, no_deeper: "", alone: false, dropping: None }
}

const FRONTEND: Event = Event::new("topdown-fe-bound", 0x0071);
const BACKEND: Event = Event::new("topdown-be-bound", 0x0074);

static GRACEMONT: Counters = counters(&[Event::new("topdown-retiring", 0x00c2), FRONTEND, BACKEND]);
static SIERRA_FOREST: Counters = counters(&[Event::new("topdown-retiring", 0x0072), FRONTEND, BACKEND]);
static SKYMONT: Counters = counters(&[
    Event::new("topdown-retiring", 0x02c2),
    Event::new("topdown-fe-bound", 0x019c),
    Event::new("topdown-be-bound", 0x02a4),
]);

/// Beside P-cores.
pub(super) const HYBRID: &[Model] = &[
    Model::counted("Gracemont", &[0x97, 0x9a, 0xb7, 0xba, 0xbf], 5, &GRACEMONT).proved(TRUTH), // Alder and Raptor Lake
    Model::counted("Crestmont", &[0xaa, 0xac, 0xb5], 6, &GRACEMONT), // Meteor Lake, Arrow Lake U
    Model::counted("Skymont", &[0xbd, 0xc5, 0xc6], 8, &SKYMONT).proved(TRUTH), // Lunar Lake, Arrow Lake
    Model::counted("Darkmont", &[0xcc, 0xd5], 8, &SKYMONT),          // Panther Lake, Wildcat Lake
];

/// All cores of their CPUs.
pub(super) const SERVERS: &[Model] = &[
    Model::counted("Tremont", &[0x86, 0x96, 0x9c], 4, &GRACEMONT).of(INTEL, 6).proved(FORMULA),
    Model::counted("Gracemont (Alder Lake N)", &[0xbe], 5, &GRACEMONT).of(INTEL, 6),
    Model::counted("Crestmont (Sierra Forest, Grand Ridge)", &[0xaf, 0xb6], 6, &SIERRA_FOREST)
        .of(INTEL, 6)
        .proved(TRUTH),
    Model::counted("Darkmont (Clearwater Forest)", &[0xdd], 8, &SKYMONT).of(INTEL, 6).proved(TRUTH),
];
