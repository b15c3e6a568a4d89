//! P-cores by their general counters, which count the slots of each category whole: nothing is rounded, and nothing resets them
//! (numerators of the published metrics; Intel's event lists).

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING, TD_NODE_NONE};
use super::perf_metrics::{CLEARED, DROPPED, SLOTS};
use super::perf_metrics::{COUGAR_COVE, GOLDEN_COVE, LION_COVE, REDWOOD_COVE, SUNNY_COVE, both_levels};
use super::tree::Formula::{self, Rest, Slots};
use super::tree::Input::{Counter, Cycles};
use super::tree::{Corrected, Input, Row, Tree, Unsure, root};
use super::{Counters, Event, Leader, Model, TRUTH};

/// What leads the group where the kernel shows no SLOTS: in virtual machines, and if it is older than the CPU.
pub(crate) const SLOTS_P: Event = Event::new("TOPDOWN.SLOTS_P", 0x01a4);

/// Of all P-cores since Haswell.
pub(super) const RETURNS: Event = Event::new("BR_INST_RETIRED.NEAR_RETURN", 0x08c4);

const RETIRED: Event = Event::new("UOPS_RETIRED.SLOTS", 0x02c2);
const BACKEND: Event = Event::new("TOPDOWN.BACKEND_BOUND_SLOTS", 0x02a4);
const FRONTEND: Event = Event::new("IDQ_BUBBLES.CORE", 0x019c);
const HEAVY: Event = Event::new("UOPS_RETIRED.HEAVY", 0x01c2);
const MISPREDICTS: Event = Event::new("TOPDOWN.BR_MISPREDICT_SLOTS", 0x08a4).in_counter(0);
/// Cycles in which none of six slots got an operation.
const EMPTY_OF_6: Event = Event::new("IDQ_BUBBLES.CORE:c6", 0x0600_019c);
const LATENCY: Event = Event::new("IDQ_BUBBLES.FETCH_LATENCY", 0x049c);
const MEMORY: Event = Event::new("TOPDOWN.MEMORY_BOUND_SLOTS", 0x10a4);

const LEVEL_1: [Row; 4] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Rest),
    root(FRONTEND_BOUND, Slots(2)),
    root(BACKEND_BOUND, Slots(1)),
];
const NODES: [Row; 12] = both_levels(LEVEL_1, [3, 4, 5, 6]);

/// The input at a place, without what the one at 3 counts: that of INT_MISC.UOP_DROPPING.
const fn without_dropped(slots: usize) -> Formula {
    Formula::Corrected(Corrected { slots, less: &[3], more: &[] })
}

const SUNNY_LEVEL_1: [Row; 4] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Rest),
    root(FRONTEND_BOUND, without_dropped(2)),
    root(BACKEND_BOUND, Formula::Corrected(Corrected { slots: 1, less: &[], more: &[4] })),
];
const GOLDEN_NODES: [Row; 12] = {
    let mut rows = both_levels(LEVEL_1, [4, 5, 6, 7]);
    (rows[2].formula, rows[8].formula) = (without_dropped(2), without_dropped(6));
    rows
};

const fn tree_1(unsure: &'static [Unsure]) -> Tree {
    Tree {
        inputs: &[Counter(0), Counter(1), Counter(2)],
        clocks: None,
        unsure,
        nodes: &LEVEL_1,
        per_cycle: &[2.0, 1.5, 1.0],
    }
}

pub(crate) static SUNNY_TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3), Cycles(4, SLOTS_OF_A_CLEAR)],
    clocks: None,
    unsure: &[DROPPED, CLEARED],
    nodes: &SUNNY_LEVEL_1,
    per_cycle: &[2.0, 1.5, 1.0, 0.05, 0.002],
};
pub(crate) static SUNNY_FEWER: Tree = tree_1(&[DROPPED, CLEARED]);
pub(crate) static SUNNY_BARE: Tree = tree_1(&[]);

/// What a published backend bound has besides its source, for each INT_MISC.CLEARS_COUNT.
pub(super) const SLOTS_OF_A_CLEAR: u32 = 5;

/// What a simulated core of this width counts of each input in a cycle.
const fn per_cycle(width: f64) -> [f64; 7] {
    [0.4 * width, 0.3 * width, 0.2 * width, 0.1 * width, 0.075 * width, 0.1, 0.2 * width]
}

const fn tree_2(
    inputs: &'static [Input; 7],
    per_cycle: &'static [f64; 7],
    unsure: &'static [Unsure],
) -> Tree {
    Tree { inputs, clocks: None, unsure, nodes: &NODES, per_cycle }
}

const INPUTS_OF_6: [Input; 7] =
    [Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Cycles(5, 6), Counter(6)];

pub(crate) static GOLDEN_TREE: Tree = Tree {
    inputs: &[
        Counter(0),
        Counter(1),
        Counter(2),
        Counter(3),
        Counter(4),
        Counter(5),
        Cycles(6, 6),
        Counter(7),
    ],
    clocks: None,
    unsure: &[DROPPED],
    nodes: &GOLDEN_NODES,
    per_cycle: &[2.4, 1.8, 1.2, 0.06, 0.6, 0.45, 0.1, 1.2],
};
pub(crate) static GOLDEN_FEWER: Tree = tree_2(&INPUTS_OF_6, &per_cycle(6.0), &[DROPPED]);
pub(crate) static GOLDEN_BARE: Tree = tree_2(&INPUTS_OF_6, &per_cycle(6.0), &[]);
pub(crate) static TREE_8: Tree = tree_2(
    &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Cycles(5, 8), Counter(6)],
    &per_cycle(8.0),
    &[],
);

/// SLOTS, where the kernel shows it.
pub(super) const LEADERS: &[Leader] = &[
    Leader { event: SLOTS, by_cycle: false, general: false },
    Leader { event: SLOTS_P, by_cycle: false, general: true },
];

/// What E-cores count, too (`hybrid`).
pub(super) const SHARED: [Event; 4] = [RETIRED, BACKEND, FRONTEND, MISPREDICTS];

const fn counters(tree: &'static Tree, events: &'static [Event]) -> Counters {
    Counters {
        tree,
        leaders: LEADERS,
        events,
        subtree: TD_NODE_NONE,
        general: 0,
        returns: Some(RETURNS),
        clock: None,
        no_deeper: "",
        alone: false,
    }
}

/// Ice Lake's.
pub(super) const SUNNY_DROPPED: Event = Event::new("INT_MISC.UOP_DROPPING", 0x100d).may_be_silent();
pub(super) const CLEARS_COUNT: Event = Event::new("INT_MISC.CLEARS_COUNT", 0x0104_010d).may_be_silent();
/// From Golden to Redwood Cove.
pub(super) const UOP_DROPPING: Event = Event::new("INT_MISC.UOP_DROPPING", 0x10ad).may_be_silent();

const OF_SUNNY: &[Event] = &[RETIRED, BACKEND, FRONTEND];
const OF_GOLDEN: &[Event] = &[RETIRED, BACKEND, FRONTEND, HEAVY, MISPREDICTS, EMPTY_OF_6, MEMORY];

static SUNNY: Counters = counters(&SUNNY_TREE, &[RETIRED, BACKEND, FRONTEND, SUNNY_DROPPED, CLEARS_COUNT]);
static FEWER_OF_SUNNY: Counters = counters(&SUNNY_FEWER, OF_SUNNY);
static BARE_SUNNY: Counters = counters(&SUNNY_BARE, OF_SUNNY);
static GOLDEN: Counters = counters(
    &GOLDEN_TREE,
    &[RETIRED, BACKEND, FRONTEND, UOP_DROPPING, HEAVY, MISPREDICTS, EMPTY_OF_6, MEMORY],
);
static FEWER_OF_GOLDEN: Counters = counters(&GOLDEN_FEWER, OF_GOLDEN);
static BARE_GOLDEN: Counters = counters(&GOLDEN_BARE, OF_GOLDEN);
static LION: Counters =
    counters(&TREE_8, &[RETIRED, BACKEND, FRONTEND, HEAVY, MISPREDICTS, LATENCY, MEMORY.in_counter(3)]);

pub(super) const ROWS: &[Model] = &[
    Model::counted("Sunny, Willow or Cypress Cove, by counters", SUNNY_COVE, 5, &SUNNY).proved(TRUTH),
    Model::counted("Golden or Raptor Cove, by counters", GOLDEN_COVE, 6, &GOLDEN).proved(TRUTH),
    Model::counted("Redwood Cove, by counters", REDWOOD_COVE, 6, &GOLDEN).proved(TRUTH),
    Model::counted("Lion Cove, by counters", LION_COVE, 8, &LION).proved(TRUTH),
    Model::counted("Cougar Cove, by counters", COUGAR_COVE, 8, &LION),
];

/// The same without what corrects the others, where there is such: the intervals have those slots.
pub(super) const FEWER: &[Model] = &[
    Model::counted("Sunny, Willow or Cypress Cove, fewer counters", SUNNY_COVE, 5, &FEWER_OF_SUNNY)
        .proved(TRUTH),
    Model::counted("Golden or Raptor Cove, fewer counters", GOLDEN_COVE, 6, &FEWER_OF_GOLDEN).proved(TRUTH),
    Model::counted("Redwood Cove, fewer counters", REDWOOD_COVE, 6, &FEWER_OF_GOLDEN).proved(TRUTH),
];

/// The same as they are (TD_FLAG_BARE).
pub(super) const BARE: &[Model] = &[
    Model::counted("Sunny, Willow or Cypress Cove, bare counters", SUNNY_COVE, 5, &BARE_SUNNY).proved(TRUTH),
    Model::counted("Golden or Raptor Cove, bare counters", GOLDEN_COVE, 6, &BARE_GOLDEN).proved(TRUTH),
    Model::counted("Redwood Cove, bare counters", REDWOOD_COVE, 6, &BARE_GOLDEN).proved(TRUTH),
];
