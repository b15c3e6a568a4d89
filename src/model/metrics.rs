//! Metrics: what the nodes of all trees are called and mean, as the build has them from `cpus/nodes.list`. Names are those of perf's metrics
//! (tools/perf/pmu-events).

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
/// tma_frontend_mem_bound
pub const TD_NODE_FRONTEND_MEM_BOUND: u32 = 59;
/// tma_frontend_core_bound
pub const TD_NODE_FRONTEND_CORE_BOUND: u32 = 60;
/// tma_backend_mem_bound
pub const TD_NODE_BACKEND_MEM_BOUND: u32 = 61;
/// tma_backend_core_bound
pub const TD_NODE_BACKEND_CORE_BOUND: u32 = 62;

/// A share of the pipeline slots.
pub const TD_UNIT_SLOTS: u32 = 1;
/// A share of the core's cycles.
pub const TD_UNIT_CLOCKS: u32 = 2;
/// A share of the operations that retired.
pub const TD_UNIT_OPERATIONS: u32 = 3;

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

include!(concat!(env!("OUT_DIR"), "/metrics.rs"));

/// The metric with this id, whichever tree has it.
pub(super) const fn of_id(id: u32) -> Option<&'static Metric> {
    let mut place = 0;
    while place < ALL.len() {
        if ALL[place].id == id {
            return Some(&ALL[place]);
        }
        place += 1;
    }
    None
}

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
