//! E-cores of hybrid CPUs: general counters, one for what became of the slots each (kernel-facts A.2; widths and
//! formulas from perf's pmu-events).

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING};
use super::tree::Formula::{Rest, Slots};
use super::tree::{Input, Tree, root};
use super::{Counters, Events, Model};

/// What is counted besides cycles. Bad speculation is the rest: Gracemont's own event of it does not count all.
static COUNTERS: Counters = Counters {
    tree: &TREE,
    events: Events::Named(&["topdown-retiring", "topdown-fe-bound", "topdown-be-bound"]),
    dropping: None,
};

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

pub(super) const ROWS: &[Model] = &[
    Model::counted("Gracemont", &[0x97, 0x9a, 0xb7, 0xba, 0xbf], 5, &COUNTERS), // Alder and Raptor Lake
    Model::counted("Crestmont", &[0xaa, 0xac, 0xb5], 6, &COUNTERS),             // Meteor Lake, Arrow Lake U
    Model::counted("Skymont", &[0xbd, 0xc5, 0xc6], 8, &COUNTERS),               // Lunar Lake, Arrow Lake
    Model::counted("Darkmont", &[0xcc, 0xd5], 8, &COUNTERS),                    // Panther Lake, Wildcat Lake
];
