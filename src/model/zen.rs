//! AMD's cores from Zen 4 on: general counters of dispatch slots (kernel-facts G.2; widths and formulas from perf's pmu-events,
//! models as in the kernel's arch/x86/kernel/cpu/amd.c).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FASTPATH, FETCH_BANDWIDTH, FETCH_LATENCY,
    FRONTEND_BOUND, MEMORY_BOUND, MICROCODE, PIPELINE_RESTARTS, RETIRING, SMT_CONTENTION,
    TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_NONE, TD_NODE_RETIRING,
};
use super::tree::Formula::{self, Balance, NoCounter, Of, Rest, Slots};
use super::tree::Input::{Counter, Cycles};
use super::tree::{Expr, Input, Row, Tree, child, root};
use super::{Counters, Event, Leader, Model, TRUTH, sixteens};

/// Family 0x19, too, without event 0x1a0.
pub(super) const ZEN_3: [u32; 80] = sixteens(&[0x00, 0x20, 0x30, 0x40, 0x50]);
const ZEN_4: [u32; 96] = sixteens(&[0x10, 0x60, 0x70, 0x80, 0x90, 0xa0]);
const ZEN_5: [u32; 96] = sixteens(&[0x00, 0x10, 0x20, 0x40, 0x60, 0x70]);
const ZEN_6: [u32; 80] = sixteens(&[0x50, 0x80, 0x90, 0xa0, 0xc0]);

/// Operations that retired, and all that were dispatched: the difference is bad speculation. Slots in which nothing was dispatched
/// are the frontend's, the other thread's or the backend's; one need not be counted. That is the backend's: so all fits beside
/// the NMI watchdog, which has the sixth counter.
const ROOTS: [Row; 4] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Balance(&[1], &[0])),
    root(FRONTEND_BOUND, Slots(2)),
    root(BACKEND_BOUND, Rest),
];

pub(crate) static TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3)],
    clocks: None,
    unsure: &[],
    nodes: &{
        let [retiring, bad_speculation, frontend_bound, backend_bound] = ROOTS;
        [retiring, bad_speculation, frontend_bound, backend_bound, root(SMT_CONTENTION, Slots(3))]
    },
    per_cycle: &[2.4, 3.0, 1.2, 0.3],
};

/// Level 1 of a core that runs one thread: nothing is lost to another.
pub(crate) static FEWER_TREE: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2)],
    clocks: None,
    unsure: &[],
    nodes: &ROOTS,
    per_cycle: &[2.4, 3.0, 1.2],
};

/// What a group has no counter for.
const NO_PAIR: [Formula; 2] = [NoCounter, NoCounter];

/// With level 2 of the roots in their order, and SMT contention.
const fn with_smt([retiring, bad, frontend, backend]: [[Formula; 2]; 4]) -> [Row; 13] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = without_smt([retiring, bad, frontend, backend]);
    [a, b, c, d, root(SMT_CONTENTION, Slots(3)), e, f, g, h, i, j, k, l]
}

/// The same where the core runs no other thread.
const fn without_smt([retiring, bad, frontend, backend]: [[Formula; 2]; 4]) -> [Row; 12] {
    let [retires, speculates, starves, stalls] = ROOTS;
    [
        retires,
        speculates,
        starves,
        stalls,
        child(MICROCODE, TD_NODE_RETIRING, retiring[0]),
        child(FASTPATH, TD_NODE_RETIRING, retiring[1]),
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, bad[0]),
        child(PIPELINE_RESTARTS, TD_NODE_BAD_SPECULATION, bad[1]),
        child(FETCH_LATENCY, TD_NODE_FRONTEND_BOUND, frontend[0]),
        child(FETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND, frontend[1]),
        child(MEMORY_BOUND, TD_NODE_BACKEND_BOUND, backend[0]),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, backend[1]),
    ]
}

/// Of a node so much as the first input has of what both, or the second alone, count.
const MISPREDICTED: Formula = Of(&Expr::Product(
    &Expr::Node(TD_NODE_BAD_SPECULATION),
    &Expr::Quotient(&Expr::Input(3), &Expr::Sum(&Expr::Input(3), &Expr::Input(4))),
));
const LOADS: Formula =
    Of(&Expr::Product(&Expr::Node(TD_NODE_BACKEND_BOUND), &Expr::Quotient(&Expr::Input(4), &Expr::Input(3))));

/// A fifth input.
const fn five(fifth: Input) -> [Input; 5] {
    [Counter(0), Counter(1), Counter(2), Counter(3), fifth]
}

const fn tree(inputs: &'static [Input; 5], nodes: &'static [Row], per_cycle: &'static [f64; 5]) -> Tree {
    Tree { inputs, clocks: None, unsure: &[], nodes, per_cycle }
}

pub(crate) static RETIRING_TREE: Tree = tree(
    &five(Counter(4)),
    &with_smt([[Slots(4), Rest], NO_PAIR, NO_PAIR, NO_PAIR]),
    &[2.4, 3.0, 1.2, 0.3, 0.6],
);
static FRONTEND_NODES: [Row; 13] = with_smt([NO_PAIR, NO_PAIR, [Slots(4), Rest], NO_PAIR]);
/// Cycles in which the frontend delivers nothing lose all slots of Zen 4.
pub(crate) static FRONTEND_TREE_6: Tree =
    tree(&five(Cycles(4, 6)), &FRONTEND_NODES, &[2.4, 3.0, 1.2, 0.3, 0.1]);
/// Of Zen 5 and 6.
pub(crate) static FRONTEND_TREE_8: Tree =
    tree(&five(Cycles(4, 8)), &FRONTEND_NODES, &[2.4, 3.0, 1.2, 0.3, 0.075]);
pub(crate) static SPECULATION_TREE: Tree = tree(
    &five(Counter(4)),
    &without_smt([NO_PAIR, [MISPREDICTED, Rest], NO_PAIR, NO_PAIR]),
    &[2.4, 3.0, 1.2, 0.006, 0.002],
);
pub(crate) static BACKEND_TREE: Tree = tree(
    &five(Counter(4)),
    &without_smt([NO_PAIR, NO_PAIR, NO_PAIR, [LOADS, Rest]]),
    &[2.4, 3.0, 1.2, 0.3, 0.2],
);

const CYCLES: Leader = Leader { event: Event::new("cpu-cycles", 0x76), by_cycle: true, general: true };
/// At the rate of the time stamp counter, which is that of P0 (the kernel's ref-cycles since 6.10, arch/x86/events/amd/core.c).
const P0_CYCLES: Event = Event::new("ls_not_halted_p0_cyc", 0x1_0000_0120);
const RETURNS: Event = Event::new("ex_ret_near_ret", 0xc8);
const RETIRED: Event = Event::new("ex_ret_ops", 0xc1);
const DISPATCHED: Event = Event::new("de_src_op_disp.all", 0x7aa);
const EMPTY: Event = Event::new("de_no_dispatch_per_slot.no_ops_from_frontend", 0x1_0000_01a0);
const CONTENTION: Event = Event::new("de_no_dispatch_per_slot.smt_contention", 0x1_0000_60a0).may_be_silent();

const NO_DEEPER: &str =
    "level 2 takes 11 general counters, and the core has 6; td_options.subtree counts a part of it";

const fn counters(tree: &'static Tree, events: &'static [Event], subtree: u32) -> Counters {
    Counters {
        tree,
        leaders: &[CYCLES],
        events,
        general: 6,
        returns: Some(RETURNS),
        clock: Some(P0_CYCLES),
        subtree,
        no_deeper: if subtree == TD_NODE_NONE { NO_DEEPER } else { "" },
        alone: false,
    }
}

const fn alone(counters: Counters) -> Counters {
    Counters { alone: true, ..counters }
}

static COUNTERS: Counters = counters(&TREE, &[RETIRED, DISPATCHED, EMPTY, CONTENTION], TD_NODE_NONE);
static FEWER_COUNTERS: Counters = alone(counters(&FEWER_TREE, &[RETIRED, DISPATCHED, EMPTY], TD_NODE_NONE));
static RETIRING_COUNTERS: Counters = counters(
    &RETIRING_TREE,
    &[RETIRED, DISPATCHED, EMPTY, CONTENTION, Event::new("ex_ret_ucode_ops", 0x1_0000_00c2)],
    TD_NODE_RETIRING,
);
static FRONTEND_6: Counters = counters(
    &FRONTEND_TREE_6,
    &[
        RETIRED,
        DISPATCHED,
        EMPTY,
        CONTENTION,
        Event::new("de_no_dispatch_per_slot.no_ops_from_frontend:c6", 0x1_0600_01a0),
    ],
    TD_NODE_FRONTEND_BOUND,
);
static FRONTEND_8: Counters = counters(
    &FRONTEND_TREE_8,
    &[
        RETIRED,
        DISPATCHED,
        EMPTY,
        CONTENTION,
        Event::new("de_no_dispatch_per_slot.no_ops_from_frontend:c8", 0x1_0800_01a0),
    ],
    TD_NODE_FRONTEND_BOUND,
);
const MISPREDICTS: Event = Event::new("ex_ret_brn_misp", 0xc3);
static SPECULATION_4: Counters = alone(counters(
    &SPECULATION_TREE,
    &[RETIRED, DISPATCHED, EMPTY, MISPREDICTS, Event::new("resyncs_or_nc_redirects", 0x96).may_be_silent()],
    TD_NODE_BAD_SPECULATION,
));
static SPECULATION_5: Counters = alone(counters(
    &SPECULATION_TREE,
    &[RETIRED, DISPATCHED, EMPTY, MISPREDICTS, Event::new("bp_redirects.resync", 0x19f).may_be_silent()],
    TD_NODE_BAD_SPECULATION,
));
static BACKEND: Counters = alone(counters(
    &BACKEND_TREE,
    &[
        RETIRED,
        DISPATCHED,
        EMPTY,
        Event::new("ex_no_retire.not_complete", 0x2d6),
        Event::new("ex_no_retire.load_not_complete", 0xa2d6),
    ],
    TD_NODE_BACKEND_BOUND,
));

const AMD: &str = "AuthenticAMD";

const fn zen_4(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, &ZEN_4, 6, counters).of(AMD, 0x19).proved(TRUTH)
}

const fn zen_5(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, &ZEN_5, 8, counters).of(AMD, 0x1a).proved(TRUTH)
}

const fn zen_6(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, &ZEN_6, 8, counters).of(AMD, 0x1a)
}

pub(super) const ROWS: &[Model] =
    &[zen_4("Zen 4", &COUNTERS), zen_5("Zen 5", &COUNTERS), zen_6("Zen 6", &COUNTERS)];

/// The same by a counter less, where each core runs one thread.
pub(super) const FEWER: &[Model] = &[
    zen_4("Zen 4, fewer counters", &FEWER_COUNTERS).nameless(),
    zen_5("Zen 5, fewer counters", &FEWER_COUNTERS).nameless(),
    zen_6("Zen 6, fewer counters", &FEWER_COUNTERS).nameless(),
];

/// The same with a part of level 2 (`td_options.subtree`).
pub(super) const SUBTREES: &[Model] = &[
    zen_4("Zen 4, retiring", &RETIRING_COUNTERS),
    zen_4("Zen 4, bad speculation", &SPECULATION_4),
    zen_4("Zen 4, frontend bound", &FRONTEND_6),
    zen_4("Zen 4, backend bound", &BACKEND),
    zen_5("Zen 5, retiring", &RETIRING_COUNTERS),
    zen_5("Zen 5, bad speculation", &SPECULATION_5),
    zen_5("Zen 5, frontend bound", &FRONTEND_8),
    zen_5("Zen 5, backend bound", &BACKEND),
    zen_6("Zen 6, retiring", &RETIRING_COUNTERS),
    zen_6("Zen 6, bad speculation", &SPECULATION_5),
    zen_6("Zen 6, frontend bound", &FRONTEND_8),
    zen_6("Zen 6, backend bound", &BACKEND),
];
