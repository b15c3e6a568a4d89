//! E-cores of hybrid CPUs: general counters, one for what became of the slots each (kernel-facts A.2; widths and
//! formulas from perf's pmu-events).

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING};
use super::tree::Formula::{Rest, Slots};
use super::tree::{Input, Tree, root};
use super::{Counters, Counting, Events, Model};

/// What is counted besides cycles. Bad speculation is the rest: Gracemont's own event of it does not count all.
static COUNTERS: Counters = Counters {
    tree: &TREE,
    events: Events::Named(&["topdown-retiring", "topdown-fe-bound", "topdown-be-bound"]),
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

const fn row(core: &'static str, models: &'static [u32], width: u32) -> Model {
    // no vendor: these are the P-cores' models
    Model {
        core,
        vendor: "",
        family: 6,
        models,
        slots_per_cycle: width,
        counting: Counting::Counters(&COUNTERS),
    }
}

pub(super) const ROWS: &[Model] = &[
    row("Gracemont", &[0x97, 0x9a, 0xb7, 0xba, 0xbf], 5), // Alder and Raptor Lake
    row("Crestmont", &[0xaa, 0xac, 0xb5], 6),             // Meteor Lake, Arrow Lake U
    row("Skymont", &[0xbd, 0xc5, 0xc6], 8),               // Lunar Lake, Arrow Lake
    row("Darkmont", &[0xcc, 0xd5], 8),                    // Panther Lake, Wildcat Lake
];
