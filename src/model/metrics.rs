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
pub(crate) const RETIRING_FROM_MICROCODE: Metric = metric(
    TD_NODE_MICROCODE,
    c"tma_retiring_from_microcode",
    "microcode",
    "retiring, microcode: % of slots go into operations of microcode",
);
pub(crate) const RETIRING_FROM_FASTPATH: Metric =
    metric(TD_NODE_FASTPATH, c"tma_retiring_from_fastpath", "fastpath", "");
pub(crate) const PIPELINE_RESTARTS: Metric = metric(
    TD_NODE_PIPELINE_RESTARTS,
    c"tma_pipeline_restarts",
    "restarts",
    "pipeline restarts: % of slots are wasted on restarts of the pipeline",
);

// Level 3 of E-cores. (The restriction is all of core bound.)
pub(crate) const ICACHE_MISSES: Metric = metric(
    20,
    c"tma_icache_misses",
    "icache",
    "icache misses: % of slots wait for code that was not in the instruction cache",
);
pub(crate) const ITLB_MISSES: Metric =
    metric(21, c"tma_itlb_misses", "itlb", "ITLB misses: % of slots wait for the address of code");
pub(crate) const BRANCH_DETECT: Metric = metric(
    22,
    c"tma_branch_detect",
    "detect",
    "branch detect: % of slots wait since a branch was not predicted to be one",
);
pub(crate) const BRANCH_RESTEER: Metric = metric(
    23,
    c"tma_branch_resteer",
    "resteer",
    "branch resteer: % of slots wait since the target of a branch was corrected",
);
pub(crate) const CISC: Metric = metric(24, c"tma_cisc", "cisc", "cisc: % of slots wait for microcode");
pub(crate) const DECODE: Metric =
    metric(25, c"tma_decode", "decode", "decode: % of slots wait for the decoders");
pub(crate) const PREDECODE: Metric = metric(
    26,
    c"tma_predecode",
    "predecode",
    "predecode: % of slots wait since instructions were predecoded wrongly",
);
pub(crate) const OTHER_FB: Metric = metric(
    27,
    c"tma_other_fb",
    "other",
    "other fetch bandwidth: % of slots get too few instructions for no common cause",
);
pub(crate) const NUKE: Metric =
    metric(28, c"tma_nuke", "nuke", "nuke: % of slots are wasted on slow machine clears");
pub(crate) const FAST_NUKE: Metric =
    metric(29, c"tma_fast_nuke", "fast nuke", "fast nuke: % of slots are wasted on fast machine clears");
pub(crate) const ALLOCATION_RESTRICTION: Metric = metric(30, c"tma_allocation_restriction", "allocation", "");
pub(crate) const MEM_SCHEDULER: Metric = metric(
    31,
    c"tma_mem_scheduler",
    "memory scheduler",
    "memory scheduler: % of slots wait for its entries, or for load or store buffers",
);
pub(crate) const NON_MEM_SCHEDULER: Metric = metric(
    32,
    c"tma_non_mem_scheduler",
    "scheduler",
    "scheduler: % of slots wait for entries of the integer, FP and SIMD schedulers",
);
pub(crate) const REGISTER: Metric =
    metric(33, c"tma_register", "register", "register: % of slots wait for a physical register");
pub(crate) const REORDER_BUFFER: Metric =
    metric(34, c"tma_reorder_buffer", "reorder buffer", "reorder buffer: % of slots wait as it is full");
pub(crate) const SERIALIZATION: Metric = metric(
    35,
    c"tma_serialization",
    "serialization",
    "serialization: % of slots wait for serializing operations",
);

// Level 3 of hip08, whose causes of stalls may overlap.
pub(crate) const IDLE_BY_ITLB_MISS: Metric = metric(
    36,
    c"tma_idle_by_itlb_miss",
    "itlb",
    "ITLB misses: an estimated % of slots wait for the address of code",
);
pub(crate) const IDLE_BY_ICACHE_MISS: Metric =
    metric(37, c"tma_idle_by_icache_miss", "icache", "icache misses: an estimated % of slots wait for code");
pub(crate) const BP_MISP_FLUSH: Metric = metric(
    38,
    c"tma_bp_misp_flush",
    "mispredict flush",
    "flushes by mispredicted branches: an estimated % of slots wait for instructions",
);
pub(crate) const OOO_FLUSH: Metric = metric(
    39,
    c"tma_ooo_flush",
    "out-of-order flush",
    "flushes by machine clears: an estimated % of slots wait for instructions",
);
pub(crate) const SP_FLUSH: Metric = metric(
    40,
    c"tma_sp_flush",
    "static flush",
    "flushes by the static predictor: an estimated % of slots wait for instructions",
);
pub(crate) const INDIRECT_BRANCH: Metric = metric(
    41,
    c"tma_indirect_branch",
    "indirect",
    "indirect branches: % of slots are wasted on their mispredicts",
);
pub(crate) const PUSH_BRANCH: Metric =
    metric(42, c"tma_push_branch", "calls", "calls: % of slots are wasted on their mispredicts");
pub(crate) const POP_BRANCH: Metric =
    metric(43, c"tma_pop_branch", "returns", "returns: % of slots are wasted on their mispredicts");
pub(crate) const OTHER_BRANCH: Metric = metric(
    44,
    c"tma_other_branch",
    "other branches",
    "other branches: % of slots are wasted on their mispredicts",
);
pub(crate) const NUKE_FLUSH: Metric =
    metric(45, c"tma_nuke_flush", "nuke", "nuke flushes: % of slots are wasted on them");
pub(crate) const OTHER_FLUSH: Metric =
    metric(46, c"tma_other_flush", "other flushes", "other flushes: % of slots are wasted on them");
pub(crate) const SYNC_STALL: Metric = metric(
    47,
    c"tma_sync_stall",
    "sync",
    "sync stall: in % of cycles a synchronizing instruction is waited for",
);
pub(crate) const ROB_STALL: Metric =
    metric(48, c"tma_rob_stall", "reorder buffer", "reorder buffer: in % of cycles it is full");
pub(crate) const PTAG_STALL: Metric =
    metric(49, c"tma_ptag_stall", "physical tags", "physical tags: in % of cycles there is none");
pub(crate) const SAVEOPQ_STALL: Metric =
    metric(50, c"tma_saveopq_stall", "save queue", "save queue: in % of cycles it is full");
pub(crate) const PC_BUFFER_STALL: Metric =
    metric(51, c"tma_pc_buffer_stall", "PC buffer", "PC buffer: in % of cycles it is full");
pub(crate) const DIVIDER: Metric =
    metric(52, c"tma_divider", "divider", "divider: in % of cycles it is waited for");
pub(crate) const FSU_STALL: Metric =
    metric(53, c"tma_fsu_stall", "FP and SIMD", "FP and SIMD units: in % of cycles they are waited for");
pub(crate) const EXE_PORTS_UTIL: Metric =
    metric(54, c"tma_exe_ports_util", "ports", "execution ports: in % of cycles they are waited for");
pub(crate) const L1_BOUND: Metric = metric(
    55,
    c"tma_l1_bound",
    "L1",
    "L1 bound: in % of cycles a load is waited for that the first cache has",
);
pub(crate) const L2_BOUND: Metric = metric(
    56,
    c"tma_l2_bound",
    "L2",
    "L2 bound: in % of cycles a load is waited for that the second cache has",
);
pub(crate) const MEM_BOUND: Metric = metric(
    57,
    c"tma_mem_bound",
    "beyond L2",
    "memory bound beyond L2: in % of cycles a load is waited for that neither cache has",
);
pub(crate) const STORE_BOUND: Metric =
    metric(58, c"tma_store_bound", "stores", "store bound: in % of cycles stores are waited for");

// Neoverse: parts of cycles
pub(crate) const FRONTEND_MEM_BOUND: Metric = metric(
    TD_NODE_FRONTEND_MEM_BOUND,
    c"tma_frontend_mem_bound",
    "memory",
    "frontend bound by memory: in % of cycles it delivers nothing and waits for instructions from memory",
);
pub(crate) const FRONTEND_CORE_BOUND: Metric = metric(
    TD_NODE_FRONTEND_CORE_BOUND,
    c"tma_frontend_core_bound",
    "core",
    "frontend bound by the core: in % of cycles it delivers nothing and does not wait for memory",
);
pub(crate) const BACKEND_MEM_BOUND: Metric = metric(
    TD_NODE_BACKEND_MEM_BOUND,
    c"tma_backend_mem_bound",
    "memory",
    "backend bound by memory: in % of cycles it accepts nothing and waits for memory",
);
pub(crate) const BACKEND_CORE_BOUND: Metric = metric(
    TD_NODE_BACKEND_CORE_BOUND,
    c"tma_backend_core_bound",
    "core",
    "backend bound by the core: in % of cycles it accepts nothing and does not wait for memory",
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
