//! The PERF_METRICS register: its events, its fields as a tree, and rows of cores that nothing but the register is known of (kernel-facts
//! A.1, A.2; arch/x86/events/intel/core.c).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FETCH_BANDWIDTH, FETCH_LATENCY,
    FRONTEND_BOUND, HEAVY_OPERATIONS, LIGHT_OPERATIONS, MACHINE_CLEARS, MEMORY_BOUND, RETIRING,
};
use super::tree::Formula::{Rest, Slots};
use super::tree::{Input, NodeRow, Tree, child, root};
use super::{ANY_STEPPING, Counting, Event, Model, Variant};

/// The leader. Its control page shows `SLOTS_INDEX` while it counts.
pub(crate) const SLOTS: Event = Event::new("slots", 0x0400);

/// What leads a group of general-purpose counters where the kernel shows no SLOTS: in virtual machines, and if it is older than the CPU.
pub(crate) const SLOTS_P: Event = Event::new("TOPDOWN.SLOTS_P", 0x01a4);

/// The metric events in the order of their fields: level 1, then level 2. Each has a page that shows
/// `METRICS_INDEX` while it counts; a general-purpose counter under the same name shows another.
pub(crate) const METRICS: [Event; 8] = [
    Event::new("topdown-retiring", 0x8000),
    Event::new("topdown-bad-spec", 0x8100),
    Event::new("topdown-fe-bound", 0x8200),
    Event::new("topdown-be-bound", 0x8300),
    Event::new("topdown-heavy-ops", 0x8400),
    Event::new("topdown-br-mispredict", 0x8500),
    Event::new("topdown-fetch-lat", 0x8600),
    Event::new("topdown-mem-bound", 0x8700),
];

/// Cycles that the thread runs: no more slots pass than the core's width in each.
pub(crate) const CYCLES: Event = Event::new("cycles", 0x003c);

/// No core is wider.
pub(crate) const MOST_SLOTS_PER_CYCLE: u64 = 16;

/// The metric events that a level needs.
pub(crate) fn metrics_of(level: u32) -> &'static [Event] {
    &METRICS[..METRICS.len().min(4 * level as usize)]
}

/// The fields, each with the nodes that it tells, as the register is: that is the published metric from Lion Cove on, and with what
/// `Correction` tells.
pub(super) const INPUTS: [Input; 8] = [
    Input::Category(0),
    Input::Category(1),
    Input::Category(2),
    Input::Category(3),
    Input::Category(4),
    Input::Category(5),
    Input::Category(6),
    Input::Category(7),
];
pub(super) const NODES: [NodeRow; 12] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Slots(1)),
    root(FRONTEND_BOUND, Slots(2)),
    root(BACKEND_BOUND, Slots(3)),
    child(HEAVY_OPERATIONS, 0, Slots(4)),
    child(LIGHT_OPERATIONS, 0, Rest),
    child(BRANCH_MISPREDICTS, 1, Slots(5)),
    child(MACHINE_CLEARS, 1, Rest),
    child(FETCH_LATENCY, 2, Slots(6)),
    child(FETCH_BANDWIDTH, 2, Rest),
    child(MEMORY_BOUND, 3, Slots(7)),
    child(CORE_BOUND, 3, Rest),
];
const BARE: Tree = Tree::new(&INPUTS, None, &[], &NODES, &[]);
pub(crate) static TREE: Tree = BARE.with_sums(const { &BARE.as_sums() });

/// Slots that the published metrics have in other categories than the registers, and that a general-purpose counter beside these counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correction {
    pub event: Event,
    /// Slots for each that it counts.
    pub each: u32,
    /// The fields of PERF_METRICS that have them, and those that have them by the published metrics.
    pub from: &'static [usize],
    pub to: &'static [usize],
}

/// No core has more.
pub(crate) const MOST_MOVED: usize = 2;

const fn row(core: &'static str, width: u32) -> Model {
    Model {
        core,
        base: core,
        variant: Variant::Own,
        vendor: "",
        family: 0,
        models: &[],
        before: ANY_STEPPING,
        slots_per_cycle: width,
        counting: Counting::PerfMetrics { level: 2, tree: &TREE, moved: &[] },
        untold: &[],
        proved: "",
    }
}

/// At the places `UNKNOWN` and `SIMULATED`.
pub(super) const ROWS: &[Model] = &[row("unknown core", 0), row("simulated core", 6)];
