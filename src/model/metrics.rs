//! Metrics: what the nodes of all trees are called and mean. Names are those of perf's metrics (tools/perf/pmu-events).

use std::ffi::CStr;

/// Of td_node.parent: the node is a root.
pub const TD_NODE_NONE: u32 = 0;
/// tma_retiring
pub const TD_NODE_RETIRING: u32 = 1;
/// tma_bad_speculation
pub const TD_NODE_BAD_SPECULATION: u32 = 2;
/// tma_frontend_bound
pub const TD_NODE_FRONTEND_BOUND: u32 = 3;
/// tma_backend_bound
pub const TD_NODE_BACKEND_BOUND: u32 = 4;
/// tma_heavy_operations
pub const TD_NODE_HEAVY_OPERATIONS: u32 = 5;
/// tma_light_operations
pub const TD_NODE_LIGHT_OPERATIONS: u32 = 6;
/// tma_branch_mispredicts
pub const TD_NODE_BRANCH_MISPREDICTS: u32 = 7;
/// tma_machine_clears
pub const TD_NODE_MACHINE_CLEARS: u32 = 8;
/// tma_fetch_latency
pub const TD_NODE_FETCH_LATENCY: u32 = 9;
/// tma_fetch_bandwidth
pub const TD_NODE_FETCH_BANDWIDTH: u32 = 10;
/// tma_memory_bound
pub const TD_NODE_MEMORY_BOUND: u32 = 11;
/// tma_core_bound
pub const TD_NODE_CORE_BOUND: u32 = 12;
/// tma_smt_contention
pub const TD_NODE_SMT_CONTENTION: u32 = 13;
/// tma_ifetch_latency
pub const TD_NODE_IFETCH_LATENCY: u32 = 14;
/// tma_ifetch_bandwidth
pub const TD_NODE_IFETCH_BANDWIDTH: u32 = 15;
/// tma_resource_bound
pub const TD_NODE_RESOURCE_BOUND: u32 = 16;
/// tma_retiring_from_microcode
pub const TD_NODE_MICROCODE: u32 = 17;
/// tma_retiring_from_fastpath
pub const TD_NODE_FASTPATH: u32 = 18;
/// tma_pipeline_restarts
pub const TD_NODE_PIPELINE_RESTARTS: u32 = 19;

/// A share of the pipeline slots.
pub const TD_UNIT_SLOTS: u32 = 1;
/// A share of the core's cycles.
pub const TD_UNIT_CLOCKS: u32 = 2;

/// What a node is, in whichever tree it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// TD_NODE_*.
    pub id: u32,
    /// perf's name, "tma_memory_bound".
    pub name: &'static CStr,
    /// A word or two for narrow columns, "memory".
    pub short: &'static str,
    /// The sentence that names it as the bottleneck, with `%` in the place of its share; empty if no node of its kind is a
    /// bottleneck by itself: then the parent's says it.
    pub verdict: &'static str,
}

impl Metric {
    /// The name without "tma_": "memory_bound".
    #[must_use]
    pub fn field(&self) -> &'static str {
        let name = self.name.to_str().unwrap_or_default();
        name.strip_prefix("tma_").unwrap_or(name)
    }

    /// As people write it: "memory bound".
    #[must_use]
    pub fn title(&self) -> String {
        self.field().replace('_', " ")
    }
}

const fn metric(id: u32, name: &'static CStr, short: &'static str, verdict: &'static str) -> Metric {
    Metric { id, name, short, verdict }
}

pub(crate) const RETIRING: Metric =
    metric(TD_NODE_RETIRING, c"tma_retiring", "retiring", "retiring: % of slots do useful work");
pub(crate) const BAD_SPECULATION: Metric = metric(
    TD_NODE_BAD_SPECULATION,
    c"tma_bad_speculation",
    "bad speculation",
    "bad speculation: % of slots are wasted on wrong paths",
);
pub(crate) const FRONTEND_BOUND: Metric = metric(
    TD_NODE_FRONTEND_BOUND,
    c"tma_frontend_bound",
    "frontend bound",
    "frontend bound: % of slots wait for instructions",
);
pub(crate) const BACKEND_BOUND: Metric = metric(
    TD_NODE_BACKEND_BOUND,
    c"tma_backend_bound",
    "backend bound",
    "backend bound: % of slots wait for data or execution units",
);
pub(crate) const HEAVY_OPERATIONS: Metric = metric(
    TD_NODE_HEAVY_OPERATIONS,
    c"tma_heavy_operations",
    "heavy",
    "retiring, heavy operations: % of slots go into instructions of several operations",
);
// (how it should be: retiring, all of it)
pub(crate) const LIGHT_OPERATIONS: Metric =
    metric(TD_NODE_LIGHT_OPERATIONS, c"tma_light_operations", "light", "");
pub(crate) const BRANCH_MISPREDICTS: Metric = metric(
    TD_NODE_BRANCH_MISPREDICTS,
    c"tma_branch_mispredicts",
    "mispredicts",
    "branch mispredicts: % of slots are wasted on mispredicted branches",
);
pub(crate) const MACHINE_CLEARS: Metric = metric(
    TD_NODE_MACHINE_CLEARS,
    c"tma_machine_clears",
    "clears",
    "machine clears: % of slots are wasted on machine clears",
);
pub(crate) const FETCH_LATENCY: Metric = metric(
    TD_NODE_FETCH_LATENCY,
    c"tma_fetch_latency",
    "latency",
    "fetch latency: % of slots wait for instructions to come at all",
);
pub(crate) const FETCH_BANDWIDTH: Metric = metric(
    TD_NODE_FETCH_BANDWIDTH,
    c"tma_fetch_bandwidth",
    "bandwidth",
    "fetch bandwidth: % of slots get too few instructions",
);
pub(crate) const MEMORY_BOUND: Metric =
    metric(TD_NODE_MEMORY_BOUND, c"tma_memory_bound", "memory", "memory bound: % of slots wait for memory");
pub(crate) const CORE_BOUND: Metric =
    metric(TD_NODE_CORE_BOUND, c"tma_core_bound", "core", "core bound: % of slots wait for execution units");
/// A root on cores that tell which slots went to their other thread.
pub(crate) const SMT_CONTENTION: Metric = metric(
    TD_NODE_SMT_CONTENTION,
    c"tma_smt_contention",
    "smt contention",
    "SMT contention: % of slots go to the core's other thread",
);

// Of E-cores alone.
pub(crate) const IFETCH_LATENCY: Metric = metric(
    TD_NODE_IFETCH_LATENCY,
    c"tma_ifetch_latency",
    "fetch latency",
    "instruction fetch latency: % of slots wait for instructions to come at all",
);
pub(crate) const IFETCH_BANDWIDTH: Metric = metric(
    TD_NODE_IFETCH_BANDWIDTH,
    c"tma_ifetch_bandwidth",
    "fetch bandwidth",
    "instruction fetch bandwidth: % of slots get too few instructions",
);
pub(crate) const RESOURCE_BOUND: Metric = metric(
    TD_NODE_RESOURCE_BOUND,
    c"tma_resource_bound",
    "resource",
    "resource bound: % of slots wait for a buffer to have room, as it has when memory answers",
);
// Of AMD's alone.
pub(crate) const MICROCODE: Metric = metric(
    TD_NODE_MICROCODE,
    c"tma_retiring_from_microcode",
    "microcode",
    "retiring, microcode: % of slots go into operations of microcode",
);
pub(crate) const FASTPATH: Metric = metric(TD_NODE_FASTPATH, c"tma_retiring_from_fastpath", "fastpath", "");
pub(crate) const PIPELINE_RESTARTS: Metric = metric(
    TD_NODE_PIPELINE_RESTARTS,
    c"tma_pipeline_restarts",
    "restarts",
    "pipeline restarts: % of slots are wasted on restarts of the pipeline",
);

/// The fields of td_l1 that all cores have, in their order.
pub static LEVEL_1: [Metric; 4] = [RETIRING, BAD_SPECULATION, FRONTEND_BOUND, BACKEND_BOUND];
/// The fields of td_l2, in their order: two for each of td_l1.
pub static LEVEL_2: [Metric; 8] = [
    HEAVY_OPERATIONS,
    LIGHT_OPERATIONS,
    BRANCH_MISPREDICTS,
    MACHINE_CLEARS,
    FETCH_LATENCY,
    FETCH_BANDWIDTH,
    MEMORY_BOUND,
    CORE_BOUND,
];
