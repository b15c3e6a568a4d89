//! HiSilicon's hip08 (Kunpeng 920): general counters of operations and stalls (kernel-facts G.4; formulas from perf's pmu-events,
//! which correct those of the first publication).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BP_MISP_FLUSH, BRANCH_MISPREDICTS, CORE_BOUND, DIVIDER, EXE_PORTS_UTIL,
    FETCH_BANDWIDTH, FETCH_LATENCY, FRONTEND_BOUND, FSU_STALL, IDLE_BY_ICACHE_MISS, IDLE_BY_ITLB_MISS,
    INDIRECT_BRANCH, L1_BOUND, L2_BOUND, MACHINE_CLEARS, MEM_BOUND, MEMORY_BOUND, NUKE_FLUSH, OOO_FLUSH,
    OTHER_BRANCH, OTHER_FLUSH, PC_BUFFER_STALL, POP_BRANCH, PTAG_STALL, PUSH_BRANCH, RESOURCE_BOUND,
    RETIRING, ROB_STALL, SAVEOPQ_STALL, SP_FLUSH, STORE_BOUND, SYNC_STALL, TD_NODE_BACKEND_BOUND,
    TD_NODE_BAD_SPECULATION, TD_NODE_BRANCH_MISPREDICTS, TD_NODE_CORE_BOUND, TD_NODE_FETCH_LATENCY,
    TD_NODE_FRONTEND_BOUND, TD_NODE_MACHINE_CLEARS, TD_NODE_MEMORY_BOUND, TD_NODE_NONE,
    TD_NODE_RESOURCE_BOUND,
};
use super::tree::Expr::{self, Difference, Input as Count, Least, Node, Number, Product, Quotient, Sum};
use super::tree::Formula::{self, Balance, NoCounter, Of, Rest, Slots};
use super::tree::Input::{self, Counter, Cycles};
use super::tree::{Row, Tree, child, grandchild, root, with_rows};
use super::{Counters, Event, Model, TRUTH, arm64};
use crate::sys::cpu::ARM64;

const WIDTH: u32 = 4;

/// Level 1, and level 2 by these formulas.
const fn level_2([mispredicts, clears, latency, bandwidth, memory, core]: [Formula; 6]) -> [Row; 10] {
    [
        root(RETIRING, Slots(0)),
        root(BAD_SPECULATION, Balance(&[1], &[0])),
        root(FRONTEND_BOUND, Slots(2)),
        root(BACKEND_BOUND, Rest),
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, mispredicts),
        child(MACHINE_CLEARS, TD_NODE_BAD_SPECULATION, clears),
        child(FETCH_LATENCY, TD_NODE_FRONTEND_BOUND, latency),
        child(FETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND, bandwidth),
        child(MEMORY_BOUND, TD_NODE_BACKEND_BOUND, memory),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, core),
    ]
}

/// All slots, and those of nodes.
const ALL: Expr = Expr::Slots;
const BAD: Expr = Node(TD_NODE_BAD_SPECULATION);
const MISPREDICTS: Expr = Node(TD_NODE_BRANCH_MISPREDICTS);

/// So many inputs, of which those between these places count cycles.
const fn inputs<const N: usize>(first: usize, end: usize) -> [Input; N] {
    let (mut inputs, mut place) = ([Counter(0); N], 0);
    while place < N {
        inputs[place] = if first <= place && place < end { Cycles(place, WIDTH) } else { Counter(place) };
        place += 1;
    }
    inputs
}

const fn tree(inputs: &'static [Input], nodes: &'static [Row], per_cycle: &'static [f64]) -> Tree {
    Tree { inputs, clocks: None, unsure: &[], nodes, per_cycle }
}

/// Memory bound and core bound are stalls of the execution units, in parts of all cycles; with those of other resources, which are
/// not counted here, they make up backend bound.
pub(crate) static TREE: Tree = tree(
    &[
        Counter(0),
        Counter(1),
        Counter(2),
        Cycles(3, WIDTH),
        Counter(4),
        Counter(5),
        Cycles(6, WIDTH),
        Cycles(7, WIDTH),
        Cycles(8, WIDTH),
    ],
    &level_2([
        Of(&Product(&BAD, &Quotient(&Count(4), &Sum(&Count(4), &Count(5))))),
        Rest,
        Slots(3),
        Rest,
        Of(&Quotient(&Sum(&Count(7), &Count(8)), &ALL)),
        Of(&Quotient(&Difference(&Count(6), &Sum(&Count(7), &Count(8))), &ALL)),
    ]),
    &[1.6, 2.0, 0.8, 0.1, 0.006, 0.002, 0.25, 0.15, 0.05],
);

// (the maker's estimates: slots of 15 cycles for each lookup, of 85 more if it misses, of 5 for each flush)
const LOOKUP: Expr = Number(15.0 * WIDTH as f64);
const MISS: Expr = Number(85.0 * WIDTH as f64);
const FLUSH: Expr = Number(5.0 * WIDTH as f64);
const ITLB: Expr = Sum(&Product(&Count(4), &LOOKUP), &Product(&Count(5), &MISS));
const ICACHE: Expr = Sum(&Product(&Count(6), &LOOKUP), &Product(&Count(7), &MISS));

/// Level 3 of the frontend.
pub(crate) static FRONTEND_TREE: Tree = tree(
    &inputs::<11>(3, 4),
    &with_rows::<15>(
        &level_2([NoCounter, NoCounter, Slots(3), Rest, NoCounter, NoCounter]),
        &[
            grandchild(IDLE_BY_ITLB_MISS, TD_NODE_FETCH_LATENCY, Of(&Quotient(&ITLB, &ALL))),
            grandchild(IDLE_BY_ICACHE_MISS, TD_NODE_FETCH_LATENCY, Of(&Quotient(&ICACHE, &ALL))),
            grandchild(
                BP_MISP_FLUSH,
                TD_NODE_FETCH_LATENCY,
                Of(&Quotient(&Product(&Count(8), &FLUSH), &ALL)),
            ),
            grandchild(OOO_FLUSH, TD_NODE_FETCH_LATENCY, Of(&Quotient(&Product(&Count(9), &FLUSH), &ALL))),
            grandchild(SP_FLUSH, TD_NODE_FETCH_LATENCY, Of(&Quotient(&Product(&Count(10), &FLUSH), &ALL))),
        ],
    ),
    &[1.6, 2.0, 0.8, 0.1, 0.002, 0.0005, 0.002, 0.0005, 0.006, 0.002, 0.002],
);

/// Parts of the mispredicts, and of the machine clears.
const INDIRECT: Expr = Least(&Quotient(&Count(5), &Count(3)), &Number(1.0));
const CALLS: Expr = Least(&Quotient(&Sum(&Count(6), &Count(7)), &Count(3)), &Number(1.0));
const RETURNS: Expr = Least(&Quotient(&Count(8), &Count(3)), &Number(1.0));
const NUKES: Expr = Least(&Quotient(&Count(9), &Count(4)), &Number(1.0));

/// Level 3 of bad speculation.
pub(crate) static SPECULATION_TREE: Tree = tree(
    &inputs::<10>(0, 0),
    &with_rows::<16>(
        &level_2([
            Of(&Product(&BAD, &Quotient(&Count(3), &Sum(&Count(3), &Count(4))))),
            Rest,
            NoCounter,
            NoCounter,
            NoCounter,
            NoCounter,
        ]),
        &[
            grandchild(INDIRECT_BRANCH, TD_NODE_BRANCH_MISPREDICTS, Of(&Product(&MISPREDICTS, &INDIRECT))),
            grandchild(PUSH_BRANCH, TD_NODE_BRANCH_MISPREDICTS, Of(&Product(&MISPREDICTS, &CALLS))),
            grandchild(POP_BRANCH, TD_NODE_BRANCH_MISPREDICTS, Of(&Product(&MISPREDICTS, &RETURNS))),
            grandchild(OTHER_BRANCH, TD_NODE_BRANCH_MISPREDICTS, Rest),
            grandchild(
                NUKE_FLUSH,
                TD_NODE_MACHINE_CLEARS,
                Of(&Product(&Node(TD_NODE_MACHINE_CLEARS), &NUKES)),
            ),
            grandchild(OTHER_FLUSH, TD_NODE_MACHINE_CLEARS, Rest),
        ],
    ),
    &[1.6, 2.0, 0.8, 0.006, 0.002, 0.002, 0.0005, 0.0005, 0.001, 0.001],
);

/// Level 3 of memory bound and of core bound: cycles in which the execution units stall.
pub(crate) static BACKEND_TREE: Tree = tree(
    &inputs::<10>(3, 10),
    &with_rows::<17>(
        &level_2([
            NoCounter,
            NoCounter,
            NoCounter,
            NoCounter,
            Of(&Quotient(&Sum(&Count(4), &Count(5)), &ALL)),
            Of(&Quotient(&Difference(&Count(3), &Sum(&Count(4), &Count(5))), &ALL)),
        ]),
        &[
            grandchild(
                L1_BOUND,
                TD_NODE_MEMORY_BOUND,
                Of(&Quotient(&Difference(&Count(4), &Count(8)), &ALL)),
            ),
            grandchild(
                L2_BOUND,
                TD_NODE_MEMORY_BOUND,
                Of(&Quotient(&Difference(&Count(8), &Count(9)), &ALL)),
            ),
            grandchild(MEM_BOUND, TD_NODE_MEMORY_BOUND, Of(&Quotient(&Count(9), &ALL))),
            grandchild(STORE_BOUND, TD_NODE_MEMORY_BOUND, Of(&Quotient(&Count(5), &ALL))),
            grandchild(DIVIDER, TD_NODE_CORE_BOUND, Of(&Quotient(&Count(6), &ALL))),
            grandchild(FSU_STALL, TD_NODE_CORE_BOUND, Of(&Quotient(&Count(7), &ALL))),
            grandchild(EXE_PORTS_UTIL, TD_NODE_CORE_BOUND, Rest),
        ],
    ),
    &[1.6, 2.0, 0.8, 0.28, 0.15, 0.05, 0.03, 0.02, 0.1, 0.05],
);

const TAGS: Expr = Sum(&Count(6), &Sum(&Count(7), &Count(8)));

/// What stalls of the execution units leave of backend bound is of other resources. Their cycles, those of each, may overlap.
pub(crate) static RESOURCE_TREE: Tree = tree(
    &inputs::<11>(3, 11),
    &with_rows::<16>(
        &level_2([NoCounter; 6]),
        &[
            child(
                RESOURCE_BOUND,
                TD_NODE_BACKEND_BOUND,
                Of(&Difference(&Node(TD_NODE_BACKEND_BOUND), &Quotient(&Count(3), &ALL))),
            ),
            grandchild(SYNC_STALL, TD_NODE_RESOURCE_BOUND, Of(&Quotient(&Count(4), &ALL))),
            grandchild(ROB_STALL, TD_NODE_RESOURCE_BOUND, Of(&Quotient(&Count(5), &ALL))),
            grandchild(PTAG_STALL, TD_NODE_RESOURCE_BOUND, Of(&Quotient(&TAGS, &ALL))),
            grandchild(SAVEOPQ_STALL, TD_NODE_RESOURCE_BOUND, Of(&Quotient(&Count(9), &ALL))),
            grandchild(PC_BUFFER_STALL, TD_NODE_RESOURCE_BOUND, Of(&Quotient(&Count(10), &ALL))),
        ],
    ),
    &[1.6, 2.0, 0.8, 0.15, 0.02, 0.05, 0.01, 0.01, 0.01, 0.03, 0.01],
);

const RETIRED: Event = Event::new("inst_retired", 0x08);
const DISPATCHED: Event = Event::new("inst_spec", 0x1b);
const BUBBLES: Event = Event::new("FETCH_BUBBLE", 0x2014);
const LATENCY: Event = Event::new("FETCH_LATENCY_CYCLES", 0x201d).may_be_silent();
const BRANCHES: Event = Event::new("br_mis_pred", 0x10);
const CLEARS: Event = Event::new("OOO_FLUSH", 0x2013).may_be_silent();
const STALLS: Event = Event::new("EXE_STALL_CYCLE", 0x7001);
const LOADS: Event = Event::new("MEM_STALL_ANYLOAD", 0x7004);
const STORES: Event = Event::new("MEM_STALL_ANYSTORE", 0x7005).may_be_silent();

/// One of level 3.
const fn event(name: &'static str, config: u64) -> Event {
    Event::new(name, config).may_be_silent()
}

const NO_DEEPER: &str =
    "level 3 takes 30 general counters, and the core has 12; td_options.subtree counts a part of it";

const fn counters(tree: &'static Tree, subtree: u32, events: &'static [Event]) -> Counters {
    Counters {
        tree,
        leaders: &[arm64::CYCLES],
        events,
        subtree,
        general: 12,
        returns: Some(arm64::RETURNS),
        clock: Some(arm64::CYCLES.event),
        no_deeper: if subtree == TD_NODE_NONE { NO_DEEPER } else { "" },
        alone: false,
    }
}

static COUNTERS: Counters = counters(
    &TREE,
    TD_NODE_NONE,
    &[RETIRED, DISPATCHED, BUBBLES, LATENCY, BRANCHES, CLEARS, STALLS, LOADS, STORES],
);
static FRONTEND: Counters = counters(
    &FRONTEND_TREE,
    TD_NODE_FRONTEND_BOUND,
    &[
        RETIRED,
        DISPATCHED,
        BUBBLES,
        LATENCY,
        event("l2i_tlb", 0x30),
        event("l2i_tlb_refill", 0x2e),
        event("l2i_cache", 0x27),
        event("l2i_cache_refill", 0x28),
        BRANCHES,
        CLEARS,
        event("SP_FLUSH", 0x1001),
    ],
);
static SPECULATION: Counters = counters(
    &SPECULATION_TREE,
    TD_NODE_BAD_SPECULATION,
    &[
        RETIRED,
        DISPATCHED,
        BUBBLES,
        BRANCHES,
        CLEARS,
        event("INDIRECT_MISPREDICTS", 0x1010),
        event("BL_MISPREDICTS", 0x1013),
        event("BLR_MISPREDICTS", 0x1016),
        event("RETURN_MISPREDICTS", 0x100d),
        event("NUKE_FLUSH", 0x2012),
    ],
);
static BACKEND: Counters = counters(
    &BACKEND_TREE,
    TD_NODE_BACKEND_BOUND,
    &[
        RETIRED,
        DISPATCHED,
        BUBBLES,
        STALLS,
        LOADS,
        STORES,
        event("DIVIDER_STALL", 0x7002),
        event("FSU_STALL", 0x7003),
        event("MEM_STALL_L1MISS", 0x7006),
        event("MEM_STALL_L2MISS", 0x7007),
    ],
);
static RESOURCES: Counters = counters(
    &RESOURCE_TREE,
    TD_NODE_RESOURCE_BOUND,
    &[
        RETIRED,
        DISPATCHED,
        BUBBLES,
        STALLS,
        event("SYNC_STALL", 0x2010),
        event("ROB_STALL", 0x2004),
        event("PTAG_STALL_1", 0x2006),
        event("PTAG_STALL_2", 0x2007),
        event("PTAG_STALL_3", 0x2008),
        event("SAVEOPQ_STALL", 0x201e),
        event("PC_BUFFER_STALL", 0x2005),
    ],
);

const fn row(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, &[0xd01], WIDTH, counters).of("HiSilicon", ARM64).proved(arm64::PUBLISHED)
}

pub(super) const ROWS: &[Model] = &[
    row("hip08", &COUNTERS).proved(TRUTH),
    row("hip08, frontend bound", &FRONTEND),
    row("hip08, bad speculation", &SPECULATION),
    row("hip08, backend bound", &BACKEND),
    row("hip08, resource bound", &RESOURCES),
];
