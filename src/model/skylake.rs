//! Intel's P-cores before PERF_METRICS: general counters at both ends of the pipeline (kernel-facts G.1; formulas as the kernel's
//! and perf's).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FETCH_BANDWIDTH, FETCH_LATENCY,
    FRONTEND_BOUND, HEAVY_OPERATIONS, LIGHT_OPERATIONS, MACHINE_CLEARS, MEMORY_BOUND, RETIRING,
    TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_NONE, TD_NODE_RETIRING,
};
use super::perf_metrics::INTEL;
use super::tree::Formula::{self, Balance, NoCounter, Of, Rest, Slots};
use super::tree::Input::{Counter, Cycles};
use super::tree::{Expr, Row, Tree, child, root};
use super::{Counters, Event, FORMULA, INTEL_CYCLES, Model, p_counters};

const WIDTH: u32 = 4;

/// Level 1, and level 2 by these formulas. Operations that were issued and did not retire are bad speculation, and so are the cycles
/// in which the core recovers from it. Memory bound would take five counters besides those of level 1: one more than there are.
const fn nodes([heavy, light, mispredicts, clears, latency, bandwidth]: [Formula; 6]) -> [Row; 12] {
    [
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Balance(&[1, 3], &[0])),
        root(FRONTEND_BOUND, Slots(2)),
        root(BACKEND_BOUND, Rest),
        child(HEAVY_OPERATIONS, TD_NODE_RETIRING, heavy),
        child(LIGHT_OPERATIONS, TD_NODE_RETIRING, light),
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, mispredicts),
        child(MACHINE_CLEARS, TD_NODE_BAD_SPECULATION, clears),
        child(FETCH_LATENCY, TD_NODE_FRONTEND_BOUND, latency),
        child(FETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND, bandwidth),
        child(MEMORY_BOUND, TD_NODE_BACKEND_BOUND, NoCounter),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, NoCounter),
    ]
}

/// Bad speculation divides as mispredicts and machine clears do.
pub(crate) static TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Cycles(3, WIDTH), Cycles(4, WIDTH), Counter(5), Counter(6)],
    clocks: None,
    unsure: &[],
    nodes: &nodes([NoCounter, NoCounter, Of(&MISPREDICTED), Rest, Slots(4), Rest]),
    per_cycle: &[1.6, 1.8, 0.8, 0.05, 0.1, 0.006, 0.002],
};

/// Heavy operations are slots that retired besides one for each instruction; two instructions that were fused have one. (At the edges
/// of a region four slots retire no more than six instructions, since no more than two branches do in a cycle.)
pub(crate) static RETIRING_TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Cycles(3, WIDTH), Counter(4), Counter(5)],
    clocks: None,
    unsure: &[],
    nodes: &nodes([Balance(&[0, 4], &[5]), Rest, NoCounter, NoCounter, NoCounter, NoCounter]),
    per_cycle: &[1.6, 1.8, 0.8, 0.05, 0.1, 1.2],
};

const MISPREDICTED: Expr = Expr::Product(
    &Expr::Node(TD_NODE_BAD_SPECULATION),
    &Expr::Quotient(&Expr::Input(5), &Expr::Sum(&Expr::Input(5), &Expr::Input(6))),
);

const RETIRED: Event = Event::new("topdown-slots-retired", 0x02c2);
const ISSUED: Event = Event::new("topdown-slots-issued", 0x010e);
const BUBBLES: Event = Event::new("topdown-fetch-bubbles", 0x019c);
const RECOVERY: Event = Event::new("INT_MISC.RECOVERY_CYCLES", 0x0100_010d);

const NO_DEEPER: &str = "not of retiring and backend bound: td_options.subtree counts retiring's, and backend bound's would take 9 \
    general counters, of which the core has 8";

const fn counters(
    tree: &'static Tree,
    subtree: u32,
    events: &'static [Event],
    no_deeper: &'static str,
) -> Counters {
    Counters {
        tree,
        subtree,
        general: 8, // of a core that runs one thread
        returns: Some(p_counters::RETURNS),
        clock: None,
        leaders: &[INTEL_CYCLES],
        events,
        no_deeper,
        alone: true,
    }
}

static COUNTERS: Counters = counters(
    &TREE,
    TD_NODE_NONE,
    &[
        RETIRED,
        ISSUED,
        BUBBLES,
        RECOVERY,
        Event::new("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x0400_019c),
        Event::new("BR_MISP_RETIRED.ALL_BRANCHES", 0x00c5),
        Event::new("MACHINE_CLEARS.COUNT", 0x0104_01c3),
    ],
    NO_DEEPER,
);
/// Instructions have a fixed counter.
static RETIRING_COUNTERS: Counters = counters(
    &RETIRING_TREE,
    TD_NODE_RETIRING,
    &[
        RETIRED,
        ISSUED,
        BUBBLES,
        RECOVERY,
        Event::new("UOPS_RETIRED.MACRO_FUSED", 0x04c2).may_be_silent(),
        Event::new("instructions", 0x00c0),
    ],
    "",
);

const fn row(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, &[0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6], WIDTH, counters)
        .of(INTEL, 6)
        .proved(FORMULA)
}

pub(super) const ROWS: &[Model] = &[
    row("Skylake or Cascade Lake", &COUNTERS),
    row("Skylake or Cascade Lake, retiring", &RETIRING_COUNTERS),
];
