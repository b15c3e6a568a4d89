//! CPUs with the PERF_METRICS register (kernel-facts A.1, A.2; arch/x86/events/intel/core.c; widths from
//! pmu-tools' Pipeline_Width).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FETCH_BANDWIDTH, FETCH_LATENCY,
    FRONTEND_BOUND, HEAVY_OPERATIONS, LIGHT_OPERATIONS, MACHINE_CLEARS, MEMORY_BOUND, RETIRING,
    TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_RETIRING,
};
use super::tree::Formula::{Rest, Slots};
use super::tree::{Input, Row, Tree, child, root};
use super::{Counting, Event, Model, TRUTH};

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

pub(crate) static TREE: Tree = Tree {
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
    nodes: &both_levels(
        [
            root(RETIRING, Slots(0)),
            root(BAD_SPECULATION, Slots(1)),
            root(FRONTEND_BOUND, Slots(2)),
            root(BACKEND_BOUND, Slots(3)),
        ],
        [4, 5, 6, 7],
    ),
    per_cycle: &[],
};

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

pub(super) const ROWS: &[Model] = &[
    Model {
        core: "unknown core",
        vendor: "",
        family: 0,
        models: &[],
        slots_per_cycle: 0,
        counting: Counting::PerfMetrics { level: 2 },
        proved: "",
    },
    Model {
        core: "simulated core",
        vendor: "",
        family: 0,
        models: &[],
        slots_per_cycle: 6,
        counting: Counting::PerfMetrics { level: 2 },
        proved: "",
    },
    Model {
        core: "Sunny, Willow or Cypress Cove",
        vendor: INTEL,
        family: 6,
        models: SUNNY_COVE,
        slots_per_cycle: 5,
        counting: Counting::PerfMetrics { level: 1 },
        proved: TRUTH,
    },
    Model {
        core: "Golden or Raptor Cove",
        vendor: INTEL,
        family: 6,
        models: GOLDEN_COVE,
        slots_per_cycle: 6,
        counting: Counting::PerfMetrics { level: 2 },
        proved: TRUTH,
    },
    Model {
        core: "Redwood Cove",
        vendor: INTEL,
        family: 6,
        models: REDWOOD_COVE,
        slots_per_cycle: 6,
        counting: Counting::PerfMetrics { level: 2 },
        proved: TRUTH,
    },
    Model {
        core: "Lion Cove",
        vendor: INTEL,
        family: 6,
        models: LION_COVE,
        slots_per_cycle: 8,
        counting: Counting::PerfMetrics { level: 2 },
        proved: TRUTH,
    },
    Model {
        core: "Cougar Cove",
        vendor: INTEL,
        family: 6,
        models: COUGAR_COVE,
        slots_per_cycle: 8,
        counting: Counting::PerfMetrics { level: 2 },
        proved: "",
    },
    Model {
        core: "Panther Cove", // Diamond Rapids; no document at hand tells the width
        vendor: INTEL,
        family: 19,
        models: &[1],
        slots_per_cycle: 0,
        counting: Counting::PerfMetrics { level: 2 },
        proved: "",
    },
];
