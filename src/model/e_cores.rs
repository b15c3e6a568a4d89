//! E-cores, of hybrid CPUs and of CPUs that have no other: general counters, one for what became of the slots each (kernel-facts
//! A.2; widths and formulas from perf's pmu-events).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FRONTEND_BOUND, IFETCH_BANDWIDTH,
    IFETCH_LATENCY, MACHINE_CLEARS, RESOURCE_BOUND, RETIRING, TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION,
    TD_NODE_FRONTEND_BOUND, TD_NODE_NONE,
};
use super::perf_metrics::INTEL;
use super::tree::Formula::{self, NoCounter, Rest, Slots};
use super::tree::Input::Counter;
use super::tree::{Row, Tree, child, root};
use super::{Counters, Event, FORMULA, INTEL_CYCLES, Model, TRUTH};

/// Bad speculation is the rest: Gracemont's own event of it does not count all.
const LEVEL_1: [Row; 4] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Rest),
    root(FRONTEND_BOUND, Slots(1)),
    root(BACKEND_BOUND, Slots(2)),
];

/// Two nodes below each root but retiring. Those of bad speculation have an event each, and need not add up to it.
const fn both_levels(machine_clears: Formula) -> [Row; 10] {
    let [retiring, bad_speculation, frontend_bound, backend_bound] = LEVEL_1;
    [
        retiring,
        bad_speculation,
        frontend_bound,
        backend_bound,
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, Slots(5)),
        child(MACHINE_CLEARS, TD_NODE_BAD_SPECULATION, machine_clears),
        child(IFETCH_LATENCY, TD_NODE_FRONTEND_BOUND, Slots(3)),
        child(IFETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND, Rest),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, Slots(4)),
        child(RESOURCE_BOUND, TD_NODE_BACKEND_BOUND, Rest),
    ]
}

const PER_CYCLE: [f64; 7] = [2.0, 1.0, 1.5, 0.5, 0.5, 0.375, 0.125];

/// Of cores with four general counters.
pub(crate) static TREE_1: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2)],
    clocks: None,
    nodes: &LEVEL_1,
    per_cycle: &[1.6, 0.8, 1.2],
};
/// With six.
pub(crate) static TREE_6: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Counter(5)],
    clocks: None,
    nodes: &both_levels(NoCounter),
    per_cycle: PER_CYCLE.split_at(6).0,
};
/// With eight, one of which may have to count cycles.
pub(crate) static TREE_8: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Counter(5), Counter(6)],
    clocks: None,
    nodes: &both_levels(Slots(6)),
    per_cycle: &PER_CYCLE,
};

const fn counters(tree: &'static Tree, general: usize, events: &'static [Event]) -> Counters {
    let leaders = &[INTEL_CYCLES];
    Counters {
        tree,
        leaders,
        events,
        general,
        subtree: TD_NODE_NONE,
        no_deeper: if general == 6 { "machine clears would take a seventh general counter" } else { "" },
        alone: false,
        dropping: None,
    }
}

const RETIRED: Event = Event::new("topdown-retiring", 0x00c2);
const FRONTEND: Event = Event::new("topdown-fe-bound", 0x0071);
const BACKEND: Event = Event::new("topdown-be-bound", 0x0074);
const LATENCY: Event = Event::new("TOPDOWN_FE_BOUND.FRONTEND_LATENCY", 0x7271);
const ALLOCATION: Event = Event::new("TOPDOWN_BE_BOUND.ALLOC_RESTRICTIONS", 0x0174).may_be_silent();
const MISPREDICTS: Event = Event::new("TOPDOWN_BAD_SPECULATION.MISPREDICT", 0x0473);
const CLEARS: Event = Event::new("TOPDOWN_BAD_SPECULATION.MACHINE_CLEARS", 0x0373).may_be_silent();

static TREMONT: Counters = counters(&TREE_1, 4, &[RETIRED, FRONTEND, BACKEND]);
static GRACEMONT: Counters =
    counters(&TREE_6, 6, &[RETIRED, FRONTEND, BACKEND, LATENCY, ALLOCATION, MISPREDICTS]);
static CRESTMONT: Counters =
    counters(&TREE_8, 8, &[RETIRED, FRONTEND, BACKEND, LATENCY, ALLOCATION, MISPREDICTS, CLEARS]);
static SIERRA_FOREST: Counters = counters(
    &TREE_8,
    8,
    &[Event::new("topdown-retiring", 0x0072), FRONTEND, BACKEND, LATENCY, ALLOCATION, MISPREDICTS, CLEARS],
);
static SKYMONT: Counters = counters(
    &TREE_8,
    8,
    &[
        Event::new("topdown-retiring", 0x02c2),
        Event::new("topdown-fe-bound", 0x019c),
        Event::new("topdown-be-bound", 0x02a4),
        LATENCY,
        ALLOCATION,
        MISPREDICTS,
        CLEARS,
    ],
);

/// Beside P-cores.
pub(super) const HYBRID: &[Model] = &[
    Model::counted("Gracemont", &[0x97, 0x9a, 0xb7, 0xba, 0xbf], 5, &GRACEMONT).proved(TRUTH), // Alder and Raptor Lake
    Model::counted("Crestmont", &[0xaa, 0xac, 0xb5], 6, &CRESTMONT), // Meteor Lake, Arrow Lake U
    Model::counted("Skymont", &[0xbd, 0xc5, 0xc6], 8, &SKYMONT).proved(TRUTH), // Lunar Lake, Arrow Lake
    Model::counted("Darkmont", &[0xcc, 0xd5], 8, &SKYMONT),          // Panther Lake, Wildcat Lake
];

/// All cores of their CPUs.
pub(super) const SERVERS: &[Model] = &[
    Model::counted("Tremont", &[0x86, 0x96, 0x9c], 4, &TREMONT).of(INTEL, 6).proved(FORMULA),
    Model::counted("Gracemont (Alder Lake N)", &[0xbe], 5, &GRACEMONT).of(INTEL, 6),
    Model::counted("Crestmont (Sierra Forest, Grand Ridge)", &[0xaf, 0xb6], 6, &SIERRA_FOREST)
        .of(INTEL, 6)
        .proved(TRUTH),
    Model::counted("Darkmont (Clearwater Forest)", &[0xdd], 8, &SKYMONT).of(INTEL, 6).proved(TRUTH),
];
