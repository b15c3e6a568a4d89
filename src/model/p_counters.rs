//! P-cores by their general counters, which count the slots of each category whole: nothing is rounded, and nothing resets them
//! (numerators of the metrics in perf's pmu-events; Intel's event lists).

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING, TD_NODE_NONE};
use super::perf_metrics::SLOTS;
use super::perf_metrics::{COUGAR_COVE, GOLDEN_COVE, LION_COVE, REDWOOD_COVE, SUNNY_COVE, both_levels};
use super::tree::Formula::{Rest, Slots};
use super::tree::Input::{Counter, Cycles};
use super::tree::{Input, Row, Tree, root};
use super::{Counters, Event, Leader, Model, Published, TRUTH};

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

/// What a simulated core of this width counts of each input in a cycle.
const fn per_cycle(width: f64) -> [f64; 7] {
    [0.4 * width, 0.3 * width, 0.2 * width, 0.1 * width, 0.075 * width, 0.1, 0.2 * width]
}

pub(crate) static TREE_1: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2)],
    clocks: None,
    nodes: &LEVEL_1,
    per_cycle: &[2.0, 1.5, 1.0],
};

const fn tree_2(inputs: &'static [Input; 7], per_cycle: &'static [f64; 7]) -> Tree {
    Tree { inputs, clocks: None, nodes: &NODES, per_cycle }
}

pub(crate) static TREE_6: Tree = tree_2(
    &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Cycles(5, 6), Counter(6)],
    &per_cycle(6.0),
);
pub(crate) static TREE_8: Tree = tree_2(
    &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Cycles(5, 8), Counter(6)],
    &per_cycle(8.0),
);

/// SLOTS, where the kernel shows it.
pub(super) const LEADERS: &[Leader] = &[
    Leader { event: SLOTS, by_cycle: false, general: false },
    Leader { event: SLOTS_P, by_cycle: false, general: true },
];

/// What E-cores count, too (`hybrid`).
pub(super) const SHARED: [Event; 4] = [RETIRED, BACKEND, FRONTEND, MISPREDICTS];

const fn counters(tree: &'static Tree, events: &'static [Event], published: Published) -> Counters {
    Counters {
        tree,
        leaders: LEADERS,
        events,
        subtree: TD_NODE_NONE,
        general: 0,
        published,
        returns: Some(RETURNS),
        clock: None,
        no_deeper: "",
        alone: false,
    }
}

/// (perfmon's TMA 5.2 takes it off both forms of frontend bound and of fetch latency; off Lion Cove's nothing)
const DROPPING: Published = Published::Less(Event::new("INT_MISC.UOP_DROPPING", 0x10ad).may_be_silent());
const CLEARS: &str = "Ice Lake's take INT_MISC.UOP_DROPPING and 5 slots for each INT_MISC.CLEARS_COUNT";

static SUNNY: Counters = counters(&TREE_1, &[RETIRED, BACKEND, FRONTEND], Published::NotCounted(CLEARS));
static GOLDEN: Counters =
    counters(&TREE_6, &[RETIRED, BACKEND, FRONTEND, HEAVY, MISPREDICTS, EMPTY_OF_6, MEMORY], DROPPING);
static LION: Counters = counters(
    &TREE_8,
    &[RETIRED, BACKEND, FRONTEND, HEAVY, MISPREDICTS, LATENCY, MEMORY.in_counter(3)],
    Published::AsCounted,
);

pub(super) const ROWS: &[Model] = &[
    Model::counted("Sunny, Willow or Cypress Cove, by counters", SUNNY_COVE, 5, &SUNNY).proved(TRUTH),
    Model::counted("Golden or Raptor Cove, by counters", GOLDEN_COVE, 6, &GOLDEN).proved(TRUTH),
    Model::counted("Redwood Cove, by counters", REDWOOD_COVE, 6, &GOLDEN).proved(TRUTH),
    Model::counted("Lion Cove, by counters", LION_COVE, 8, &LION).proved(TRUTH),
    Model::counted("Cougar Cove, by counters", COUGAR_COVE, 8, &LION),
];
