//! Intel's P-cores before PERF_METRICS: general counters at both ends of the pipeline (kernel-facts G.1; formulas as the kernel's
//! and perf's).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FETCH_BANDWIDTH, FETCH_LATENCY,
    FRONTEND_BOUND, HEAVY_OPERATIONS, LIGHT_OPERATIONS, MACHINE_CLEARS, MEMORY_BOUND, RETIRING,
    TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_NONE, TD_NODE_RETIRING,
};
use super::perf_metrics::INTEL;
use super::tree::Formula::{Balance, NoCounter, Of, Rest, Slots};
use super::tree::Input::{Counter, Cycles};
use super::tree::{Expr, Tree, child, root};
use super::{Counters, Event, FORMULA, INTEL_CYCLES, Model};

const WIDTH: u32 = 4;

/// Operations that were issued and did not retire are bad speculation, and so are the cycles in which the core recovers from it. It
/// divides as mispredicts and machine clears do. Heavy operations and memory bound would take six counters more.
pub(crate) static TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Cycles(3, WIDTH), Cycles(4, WIDTH), Counter(5), Counter(6)],
    clocks: None,
    nodes: &[
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Balance(&[1, 3], &[0])),
        root(FRONTEND_BOUND, Slots(2)),
        root(BACKEND_BOUND, Rest),
        child(HEAVY_OPERATIONS, TD_NODE_RETIRING, NoCounter),
        child(LIGHT_OPERATIONS, TD_NODE_RETIRING, NoCounter),
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, Of(&MISPREDICTED)),
        child(MACHINE_CLEARS, TD_NODE_BAD_SPECULATION, Rest),
        child(FETCH_LATENCY, TD_NODE_FRONTEND_BOUND, Slots(4)),
        child(FETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND, Rest),
        child(MEMORY_BOUND, TD_NODE_BACKEND_BOUND, NoCounter),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, NoCounter),
    ],
    per_cycle: &[1.6, 1.8, 0.8, 0.05, 0.1, 0.006, 0.002],
};

const MISPREDICTED: Expr = Expr::Product(
    &Expr::Node(TD_NODE_BAD_SPECULATION),
    &Expr::Quotient(&Expr::Input(5), &Expr::Sum(&Expr::Input(5), &Expr::Input(6))),
);

static COUNTERS: Counters = Counters {
    tree: &TREE,
    subtree: TD_NODE_NONE,
    general: 8, // of a core that runs one thread
    dropping: None,
    leaders: &[INTEL_CYCLES],
    events: &[
        Event::new("topdown-slots-retired", 0x02c2),
        Event::new("topdown-slots-issued", 0x010e),
        Event::new("topdown-fetch-bubbles", 0x019c),
        Event::new("INT_MISC.RECOVERY_CYCLES", 0x0100_010d),
        Event::new("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x0400_019c),
        Event::new("BR_MISP_RETIRED.ALL_BRANCHES", 0x00c5),
        Event::new("MACHINE_CLEARS.COUNT", 0x0104_01c3),
    ],
    no_deeper: "not of retiring and backend bound: all of level 2 takes 13 general counters, and the core has 8",
    alone: true,
};

pub(super) const ROWS: &[Model] = &[Model::counted(
    "Skylake or Cascade Lake",
    &[0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6],
    WIDTH,
    &COUNTERS,
)
.of(INTEL, 6)
.proved(FORMULA)];
