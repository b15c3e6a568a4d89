//! CPUs with the PERF_METRICS register (kernel-facts A.1, A.2; arch/x86/events/intel/core.c; widths from
//! pmu-tools' Pipeline_Width).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FETCH_BANDWIDTH, FETCH_LATENCY,
    FRONTEND_BOUND, HEAVY_OPERATIONS, LIGHT_OPERATIONS, MACHINE_CLEARS, MEMORY_BOUND, RETIRING,
    TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_FETCH_LATENCY, TD_NODE_FRONTEND_BOUND,
    TD_NODE_MACHINE_CLEARS, TD_NODE_RETIRING,
};
use super::tree::Formula::{Rest, Slots};
use super::tree::{Input, Row, Tree, Unsure, child, root};
use super::{Counting, Event, Model, TRUTH, p_counters};

/// The leader. Its control page shows `SLOTS_INDEX` while it counts.
pub(crate) const SLOTS: Event = Event::new("slots", 0x0400);

/// The metric events in the order of their fields: level 1, then level 2. Each has a page that shows
/// `METRICS_INDEX` while it counts; a general counter under the same name shows another.
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

/// Level 1, and below each of its nodes one that an input counts (in the order of the roots) and the rest.
pub(super) const fn both_levels(
    roots: [Row; 4],
    [heavy, mispredicts, latency, memory]: [usize; 4],
) -> [Row; 12] {
    let [retiring, bad_speculation, frontend_bound, backend_bound] = roots;
    [
        retiring,
        bad_speculation,
        frontend_bound,
        backend_bound,
        child(HEAVY_OPERATIONS, TD_NODE_RETIRING, Slots(heavy)),
        child(LIGHT_OPERATIONS, TD_NODE_RETIRING, Rest),
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, Slots(mispredicts)),
        child(MACHINE_CLEARS, TD_NODE_BAD_SPECULATION, Rest),
        child(FETCH_LATENCY, TD_NODE_FRONTEND_BOUND, Slots(latency)),
        child(FETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND, Rest),
        child(MEMORY_BOUND, TD_NODE_BACKEND_BOUND, Slots(memory)),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, Rest),
    ]
}

/// Slots of INT_MISC.UOP_DROPPING: the published metrics take them out of frontend bound and fetch latency, as PERF_METRICS and
/// IDQ_BUBBLES.CORE have them, and so they are bad speculation.
pub(super) const DROPPED: Unsure = Unsure {
    counted_in: &[TD_NODE_FRONTEND_BOUND, TD_NODE_FETCH_LATENCY],
    published_in: &[TD_NODE_BAD_SPECULATION, TD_NODE_MACHINE_CLEARS],
};
/// Five slots for each INT_MISC.CLEARS_COUNT: the published backend bound has them besides those of its source.
pub(super) const CLEARED: Unsure =
    Unsure { counted_in: &[TD_NODE_BAD_SPECULATION], published_in: &[TD_NODE_BACKEND_BOUND] };

const NODES: [Row; 12] = both_levels(
    [
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Slots(1)),
        root(FRONTEND_BOUND, Slots(2)),
        root(BACKEND_BOUND, Slots(3)),
    ],
    [4, 5, 6, 7],
);

/// As the register is: that is the published metric from Lion Cove on, and with what `Moved` tells.
pub(crate) static TREE: Tree = tree(&[]);
pub(crate) static GOLDEN_TREE: Tree = tree(&[DROPPED]);
pub(crate) static SUNNY_TREE: Tree = tree(&[DROPPED, CLEARED]);

const fn tree(unsure: &'static [Unsure]) -> Tree {
    Tree {
        inputs: &[
            Input::Category(0),
            Input::Category(1),
            Input::Category(2),
            Input::Category(3),
            Input::Category(4),
            Input::Category(5),
            Input::Category(6),
            Input::Category(7),
        ],
        clocks: None,
        unsure,
        nodes: &NODES,
        per_cycle: &[],
    }
}

pub(super) const INTEL: &str = "GenuineIntel";

/// Ice Lake, Ice Lake server, Tiger Lake, Rocket Lake.
pub(super) const SUNNY_COVE: &[u32] = &[0x6a, 0x6c, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7];
/// Sapphire and Emerald Rapids; Alder and Raptor Lake P-cores.
pub(super) const GOLDEN_COVE: &[u32] = &[0x8f, 0xcf, 0x97, 0x9a, 0xb7, 0xba, 0xbf];
/// Granite Rapids; Meteor Lake and Arrow Lake U P-cores.
pub(super) const REDWOOD_COVE: &[u32] = &[0xad, 0xae, 0xaa, 0xac, 0xb5];
/// Lunar Lake and Arrow Lake P-cores.
pub(super) const LION_COVE: &[u32] = &[0xbd, 0xc5, 0xc6];
/// Panther Lake and Wildcat Lake P-cores.
pub(super) const COUGAR_COVE: &[u32] = &[0xcc, 0xd5];

/// Slots that the published metrics have in other categories than the registers, and that a general counter beside these counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub event: Event,
    /// Slots for each that it counts.
    pub each: u32,
    /// The fields of PERF_METRICS that have them, and those that have them by the published metrics.
    pub from: &'static [usize],
    pub to: &'static [usize],
}

/// No core has more.
pub(crate) const MOST_MOVED: usize = 2;

const fn dropped(event: Event) -> Moved {
    Moved { event, each: 1, from: &[2, 6], to: &[1] }
}

const OF_SUNNY: &[Moved] = &[
    dropped(p_counters::SUNNY_DROPPED),
    Moved { event: p_counters::CLEARS_COUNT, each: p_counters::SLOTS_OF_A_CLEAR, from: &[1], to: &[3] },
];
const OF_GOLDEN: &[Moved] = &[dropped(p_counters::UOP_DROPPING)];

/// A row of this table.
const fn row(core: &'static str, models: &'static [u32], width: u32, counting: Counting) -> Model {
    let vendor = if models.is_empty() { "" } else { INTEL };
    let family = if models.is_empty() { 0 } else { 6 };
    Model { core, vendor, family, models, slots_per_cycle: width, counting, proved: "" }
}

/// SLOTS and PERF_METRICS.
const fn registers(level: u32, tree: &'static Tree) -> Counting {
    Counting::PerfMetrics { level, tree, moved: &[] }
}

/// The same with counters beside them.
const fn corrected(level: u32, moved: &'static [Moved]) -> Counting {
    assert!(moved.len() <= MOST_MOVED);
    Counting::PerfMetrics { level, tree: &TREE, moved }
}

pub(super) const ROWS: &[Model] = &[
    row("unknown core", &[], 0, registers(2, &TREE)),
    row("simulated core", &[], 6, registers(2, &TREE)),
    row("Sunny, Willow or Cypress Cove", SUNNY_COVE, 5, corrected(1, OF_SUNNY)).proved(TRUTH),
    row("Golden or Raptor Cove", GOLDEN_COVE, 6, corrected(2, OF_GOLDEN)).proved(TRUTH),
    row("Redwood Cove", REDWOOD_COVE, 6, corrected(2, OF_GOLDEN)).proved(TRUTH),
    row("Lion Cove", LION_COVE, 8, registers(2, &TREE)).proved(TRUTH),
    row("Cougar Cove", COUGAR_COVE, 8, registers(2, &TREE)),
    // Diamond Rapids; no document at hand tells the width
    Model { family: 19, ..row("Panther Cove", &[1], 0, registers(2, &TREE)) },
];

/// The same without a counter beside them, where the published metrics take one: the intervals have those slots. Nobody looks a CPU
/// up here.
pub(super) const ALONE: &[Model] = &[
    row("Sunny, Willow or Cypress Cove, registers alone", SUNNY_COVE, 5, registers(1, &SUNNY_TREE))
        .nameless()
        .proved(TRUTH),
    row("Golden or Raptor Cove, registers alone", GOLDEN_COVE, 6, registers(2, &GOLDEN_TREE))
        .nameless()
        .proved(TRUTH),
    row("Redwood Cove, registers alone", REDWOOD_COVE, 6, registers(2, &GOLDEN_TREE))
        .nameless()
        .proved(TRUTH),
];

/// The registers as they are (TD_FLAG_BARE), where the published metrics are others.
pub(super) const BARE: &[Model] = &[
    row("Sunny, Willow or Cypress Cove, bare", SUNNY_COVE, 5, registers(1, &TREE)).nameless().proved(TRUTH),
    row("Golden or Raptor Cove, bare", GOLDEN_COVE, 6, registers(2, &TREE)).nameless().proved(TRUTH),
    row("Redwood Cove, bare", REDWOOD_COVE, 6, registers(2, &TREE)).nameless().proved(TRUTH),
];
