//! A CPU that there is not, with plain counters and a tree of three levels, the last in cycles: for tests of this library, and of
//! programs that walk the tree of whatever CPU they run on. Only the simulated PMU has it.
#![forbid(unsafe_code)]

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, CORE_BOUND, FRONTEND_BOUND, MEMORY_BOUND, Metric, RETIRING,
    TD_NODE_BACKEND_BOUND, TD_NODE_MEMORY_BOUND, TD_NODE_NONE, TD_UNIT_CLOCKS,
};
use super::tree::Formula::{Of, Rest, Slots};
use super::tree::{Clocks, Expr, Input, Row, Tree, child, root};
use super::{ANY_STEPPING, Counters, Counting, Model, Variant};

/// Ids from here on are of no metric of a real CPU.
const OWN: u32 = 0x8000_0000;

const CACHE_BOUND: Metric = Metric {
    id: OWN,
    name: c"tma_made_up_cache_bound",
    short: "cache",
    verdict: "cache bound: % of cycles wait for a cache",
};
const DRAM_BOUND: Metric = Metric {
    id: OWN + 1,
    name: c"tma_made_up_dram_bound",
    short: "dram",
    verdict: "dram bound: % of cycles wait for DRAM",
};

const WIDTH: u32 = 4;

// the inputs
const CYCLES: usize = 0;
const RETIRED: usize = 1;
const EMPTY: usize = 2;
const REFUSED: usize = 3;
const WAITS: usize = 4;
const WAITS_FOR_LOADS: usize = 5;
const WAITS_PAST_L1: usize = 6;
const WAITS_PAST_L2: usize = 7;

/// Of the cycles that wait for anything, those that wait for loads.
const LOADS: Expr =
    Expr::Quotient(&Expr::Input(WAITS_FOR_LOADS), &Expr::Greatest(&Expr::Input(WAITS), &Expr::Number(1.0)));
const CACHE: Expr = Expr::Quotient(
    &Expr::Difference(&Expr::Input(WAITS_PAST_L1), &Expr::Input(WAITS_PAST_L2)),
    &Expr::Input(CYCLES),
);
const DRAM: Expr =
    Expr::Quotient(&Expr::Product(&Expr::Input(WAITS_PAST_L2), &Expr::Number(WIDTH as f64)), &Expr::Slots);

const fn in_clocks(metric: Metric, formula: &'static Expr) -> Row {
    Row { metric, parent: TD_NODE_MEMORY_BOUND, level: 3, unit: TD_UNIT_CLOCKS, formula: Of(formula) }
}

pub(crate) static TREE: Tree = Tree {
    inputs: &[
        Input::Counter(0),
        Input::Counter(1),
        Input::Counter(2),
        Input::Counter(3),
        Input::Counter(4),
        Input::Counter(5),
        Input::Counter(6),
        Input::Counter(7),
    ],
    clocks: Some(Clocks::Input(CYCLES)),
    unsure: &[],
    nodes: &[
        root(RETIRING, Slots(RETIRED)),
        root(BAD_SPECULATION, Rest),
        root(FRONTEND_BOUND, Slots(EMPTY)),
        root(BACKEND_BOUND, Slots(REFUSED)),
        child(
            MEMORY_BOUND,
            TD_NODE_BACKEND_BOUND,
            Of(&Expr::Product(&Expr::Node(TD_NODE_BACKEND_BOUND), &LOADS)),
        ),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, Rest),
        in_clocks(CACHE_BOUND, &CACHE),
        in_clocks(DRAM_BOUND, &DRAM),
    ],
    per_cycle: &[1.0, 1.0, 0.4, 2.4, 0.6, 0.45, 0.3, 0.2],
};

static COUNTERS: Counters = Counters {
    tree: &TREE,
    leaders: &[],
    events: &[],
    subtree: TD_NODE_NONE,
    general: 0,
    returns: None,
    clock: None,
    no_deeper: "",
    alone: false,
};

pub(super) const ROWS: &[Model] = &[Model {
    core: "made-up core",
    base: "made-up core",
    variant: Variant::Own,
    vendor: "",
    family: 0,
    models: &[],
    before: ANY_STEPPING,
    slots_per_cycle: WIDTH,
    counting: Counting::Counters(&COUNTERS),
    proved: "",
}];
