//! AmpereOne and AmpereOneX: level 1 of operations and of the backend's stalls, level 2 below one root at a time (formulas from perf's
//! pmu-events, which mix shares and percentages; here all are shares of the slots).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FETCH_BANDWIDTH, FETCH_LATENCY,
    FRONTEND_BOUND, MACHINE_CLEARS, MEMORY_BOUND, Metric, RETIRING, TD_NODE_BACKEND_BOUND,
    TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND,
};
use super::tree::Expr::{self, Difference, Input as Count, Least, Node, Number, Product, Quotient, Sum};
use super::tree::Formula::{Balance, Of, Rest, Slots};
use super::tree::Input::{self, Counter};
use super::tree::{Row, Tree, child, root, with_rows};
use super::{Counters, Event, Model, arm64};
use crate::sys::cpu::ARM64;

const LEVEL_1: [Row; 4] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Balance(&[1], &[0])),
    root(FRONTEND_BOUND, Rest),
    root(BACKEND_BOUND, Slots(2)),
];

/// Level 1, and a part of this root and the rest of it. The part is not more than the root.
const fn with_pair(parent: u32, part: Metric, value: &'static Expr, rest: Metric) -> [Row; 6] {
    with_rows(&LEVEL_1, &[child(part, parent, Of(value)), child(rest, parent, Rest)])
}

/// The part of the flushes that mispredicted branches are.
const MISPREDICTED: Expr =
    Product(&Node(TD_NODE_BAD_SPECULATION), &Least(&Quotient(&Count(3), &Count(4)), &Number(1.0)));
/// Cycles in which the backend accepts nothing and waits for the first data cache or its TLB, of all cycles, which an input counts
/// since no table knows their slots. They are taken to lose all slots, as the maker's formula has it.
const WAITING: Expr = Least(&Quotient(&Sum(&Count(3), &Count(4)), &Count(5)), &Node(TD_NODE_BACKEND_BOUND));
/// Cycles in which the frontend delivers nothing, which lose all slots. The core counts too many of them (erratum AC03_CPU_29), and all
/// their slots as stalled ones: as many too many as these are more than frontend bound.
const EMPTY: Expr = Least(
    &Sum(
        &Node(TD_NODE_FRONTEND_BOUND),
        &Difference(&Quotient(&Count(3), &Count(5)), &Quotient(&Count(4), &Expr::Slots)),
    ),
    &Node(TD_NODE_FRONTEND_BOUND),
);

const fn tree(inputs: &'static [Input], nodes: &'static [Row], per_cycle: &'static [f64]) -> Tree {
    Tree { inputs, clocks: None, unsure: &[], nodes, per_cycle }
}

const SIX: [Input; 6] = [Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Counter(5)];

pub(crate) static TREE: Tree = tree(&[Counter(0), Counter(1), Counter(2)], &LEVEL_1, &[3.2, 4.0, 2.4]);
pub(crate) static SPECULATION_TREE: Tree = tree(
    &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4)],
    &with_pair(TD_NODE_BAD_SPECULATION, BRANCH_MISPREDICTS, &MISPREDICTED, MACHINE_CLEARS),
    &[3.2, 4.0, 2.4, 0.006, 0.008],
);
pub(crate) static FRONTEND_TREE: Tree = tree(
    &SIX,
    &with_pair(TD_NODE_FRONTEND_BOUND, FETCH_LATENCY, &EMPTY, FETCH_BANDWIDTH),
    &[3.2, 4.0, 2.4, 0.15, 2.0, 1.0],
);
pub(crate) static BACKEND_TREE: Tree = tree(
    &SIX,
    &with_pair(TD_NODE_BACKEND_BOUND, MEMORY_BOUND, &WAITING, CORE_BOUND),
    &[3.2, 4.0, 2.4, 0.05, 0.15, 1.0],
);

const NO_DEEPER: &str = "level 2 takes 10 general counters, and no document tells of more than six; td_options.subtree counts a \
    part of it";

const MISPREDICTS: Event = Event::new("br_mis_pred_retired", 0x22).may_be_silent();
const FLUSHES: Event = Event::new("GPC_FLUSH", 0x120).may_be_silent();
const FRONTEND_STALLS: Event = Event::new("stall_frontend", 0x23).may_be_silent();
const CACHE_STALLS: Event = Event::new("STALL_BACKEND_CACHE", 0xd20d).may_be_silent();
/// Of AmpereOne; AmpereOneX has the event of Arm's architecture.
const TLB_STALLS: Event = Event::new("STALL_BACKEND_TLB", 0xd20e).may_be_silent();
const TLB_STALLS_X: Event = Event::new("STALL_BACKEND_TLB", 0x8167).may_be_silent();
const CYCLES: Event = arm64::CYCLES.event;

/// Level 1's events, and these.
const fn with<const N: usize>(more: &[Event]) -> [Event; N] {
    let level_1 = [arm64::RETIRED, arm64::DISPATCHED, arm64::BACKEND];
    let (mut events, mut place) = ([level_1[0]; N], 0);
    while place < N {
        events[place] = if place < 3 { level_1[place] } else { more[place - 3] };
        place += 1;
    }
    events
}

static COUNTERS: Counters = Counters { no_deeper: NO_DEEPER, ..arm64::counters(&TREE, &with::<3>(&[])) };

const fn below(tree: &'static Tree, events: &'static [Event], subtree: u32) -> Counters {
    Counters { subtree, no_deeper: "", ..arm64::counters(tree, events) }
}

static SPECULATION: Counters =
    below(&SPECULATION_TREE, &with::<5>(&[MISPREDICTS, FLUSHES]), TD_NODE_BAD_SPECULATION);
static FRONTEND: Counters =
    below(&FRONTEND_TREE, &with::<6>(&[FRONTEND_STALLS, arm64::FRONTEND, CYCLES]), TD_NODE_FRONTEND_BOUND);
static BACKEND: Counters =
    below(&BACKEND_TREE, &with::<6>(&[TLB_STALLS, CACHE_STALLS, CYCLES]), TD_NODE_BACKEND_BOUND);
static BACKEND_X: Counters =
    below(&BACKEND_TREE, &with::<6>(&[TLB_STALLS_X, CACHE_STALLS, CYCLES]), TD_NODE_BACKEND_BOUND);

const ONE: &[u32] = &[0xac3];
const ONE_X: &[u32] = &[0xac4];

/// No document at hand tells the width: the kernel does (`caps/slots`).
const fn row(core: &'static str, parts: &'static [u32], counters: &'static Counters) -> Model {
    Model::counted(core, parts, 0, counters).of("Ampere", ARM64).proved(arm64::PUBLISHED)
}

pub(super) const ROWS: &[Model] = &[
    row("AmpereOne", ONE, &COUNTERS),
    row("AmpereOne, bad speculation", ONE, &SPECULATION),
    row("AmpereOne, frontend bound", ONE, &FRONTEND),
    row("AmpereOne, backend bound", ONE, &BACKEND),
    row("AmpereOneX", ONE_X, &COUNTERS),
    row("AmpereOneX, bad speculation", ONE_X, &SPECULATION),
    row("AmpereOneX, frontend bound", ONE_X, &FRONTEND),
    row("AmpereOneX, backend bound", ONE_X, &BACKEND_X),
];
