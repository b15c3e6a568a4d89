//! Cores of arm64 that count the slots which stalls took (kernel-facts G.3, formulas from perf's pmu-events): what no stall took is
//! divided as operations are that retired and that were dispatched. STALL_SLOT, which perf takes in some formulas, is what
//! STALL_SLOT_FRONTEND and STALL_SLOT_BACKEND are together, and takes no counter here.

use super::metrics::{
    BACKEND_BOUND, BACKEND_CORE_BOUND, BACKEND_MEM_BOUND, BAD_SPECULATION, FRONTEND_BOUND,
    FRONTEND_CORE_BOUND, FRONTEND_MEM_BOUND, Metric, RETIRING, TD_NODE_BACKEND_BOUND, TD_NODE_FRONTEND_BOUND,
    TD_NODE_NONE, TD_UNIT_CLOCKS,
};
use super::tree::Formula::{self, Balance, NoCounter, Of, Rest, Slots};
use super::tree::Input::{self, Counter, Cycles};
use super::tree::{Clocks, Expr, Retired, Row, Tree, root, with_rows};
use super::{Counters, Counting, Event, Leader, Model};
use crate::sys::cpu::ARM64;

/// Of PMUv3. A CPU that lacks it may count nothing by this number: it is tried before it is used.
pub(super) const RETURNS: Event = Event::new("br_return_retired", 0x0e);
/// Cycles, which have a counter of their own.
pub(super) const CYCLES: Leader =
    Leader { event: Event::new("cpu_cycles", 0x11), by_cycle: true, general: false };

pub(super) const FRONTEND: Event = Event::new("stall_slot_frontend", 0x3e);
pub(super) const BACKEND: Event = Event::new("stall_slot_backend", 0x3d);
pub(super) const RETIRED: Event = Event::new("op_retired", 0x3a);
pub(super) const DISPATCHED: Event = Event::new("op_spec", 0x3b);
const MISPREDICTS: Event = Event::new("br_mis_pred", 0x10).may_be_silent();
const FLUSH: Event = Event::new("STALL_FRONTEND_FLUSH", 0x8162).may_be_silent();

/// Operations that retired, with these slots taken by stalls.
const fn retired(stalls: &'static [usize], not_stalls: &'static [usize]) -> Formula {
    Formula::Retired(Retired { stalls, not_stalls, retired: 2, dispatched: 3 })
}

/// Slots that the frontend lost by flushes are bad speculation, which is the rest.
const fn roots(retired: Formula, frontend: Formula, backend: Formula) -> [Row; 4] {
    [
        root(RETIRING, retired),
        root(BAD_SPECULATION, Rest),
        root(FRONTEND_BOUND, frontend),
        root(BACKEND_BOUND, backend),
    ]
}

const RETIRING_OF_BOTH: Formula = retired(&[0, 1], &[]);
/// Four cycles a mispredict.
const V1: [Row; 4] = roots(RETIRING_OF_BOTH, Balance(&[0], &[4, 4, 4, 4]), Slots(1));
/// One cycle of the frontend's a mispredict, and three of the backend's.
const N2: [Row; 4] = roots(RETIRING_OF_BOTH, Balance(&[0], &[4]), Balance(&[1], &[4, 4, 4]));
/// STALL_SLOT_FRONTEND counts one too many in each cycle.
const N2_EARLY: [Row; 4] = roots(retired(&[0, 1], &[5]), Balance(&[0], &[4, 5]), Balance(&[1], &[4, 4, 4]));
const N3: [Row; 4] = roots(RETIRING_OF_BOTH, Balance(&[0], &[4]), Slots(1));
const T410: [Row; 4] = roots(
    Formula::Retired(Retired { stalls: &[2], not_stalls: &[], retired: 3, dispatched: 4 }),
    Slots(0),
    Slots(1),
);

/// Level 1, and of cycles this part, in which stalls wait for memory: how slots of these divide is not known.
const fn stalled(
    level_1: &[Row; 4],
    of: &'static Expr,
    [memory, core]: [Metric; 2],
    parent: u32,
) -> [Row; 6] {
    let memory = Row { metric: memory, parent, level: 2, unit: TD_UNIT_CLOCKS, formula: Of(of) };
    with_rows(level_1, &[memory, Row { metric: core, formula: NoCounter, ..memory }])
}

/// What the sixth input counts, of cycles: of all slots, as it is worth a cycle's; of another input.
const OF_SLOTS: Expr = Expr::Quotient(&Expr::Input(5), &Expr::Slots);
const OF_CYCLES: Expr = Expr::Quotient(&Expr::Input(5), &Expr::Input(6));
const AT_FRONTEND: [Metric; 2] = [FRONTEND_MEM_BOUND, FRONTEND_CORE_BOUND];
const AT_BACKEND: [Metric; 2] = [BACKEND_MEM_BOUND, BACKEND_CORE_BOUND];
const N3_FRONTEND: [Row; 6] = stalled(&N3, &OF_SLOTS, AT_FRONTEND, TD_NODE_FRONTEND_BOUND);
const N3_BACKEND: [Row; 6] = stalled(&N3, &OF_SLOTS, AT_BACKEND, TD_NODE_BACKEND_BOUND);
const T410_FRONTEND: [Row; 6] = stalled(&T410, &OF_CYCLES, AT_FRONTEND, TD_NODE_FRONTEND_BOUND);
const T410_BACKEND: [Row; 6] = stalled(&T410, &OF_CYCLES, AT_BACKEND, TD_NODE_BACKEND_BOUND);

const fn tree(inputs: &'static [Input], nodes: &'static [Row], per_cycle: &'static [f64]) -> Tree {
    Tree { inputs, clocks: None, unsure: &[], nodes, per_cycle }
}

/// Cycles of a core of this width, lost by the fifth event.
const fn five(width: u32) -> [Input; 5] {
    [Counter(0), Counter(1), Counter(2), Counter(3), Cycles(4, width)]
}

/// The same, and stalled cycles.
const fn six(width: u32) -> [Input; 6] {
    [Counter(0), Counter(1), Counter(2), Counter(3), Cycles(4, width), Cycles(5, width)]
}

/// What a simulated core of this width counts of each input in a cycle.
const fn per_cycle(width: f64, fifth: f64) -> [f64; 5] {
    [0.2 * width, 0.3 * width, 0.4 * width, 0.5 * width, fifth]
}

pub(crate) static TREE_V1: Tree = tree(&five(8), &V1, &per_cycle(8.0, 0.01));
pub(crate) static TREE_N2_EARLY: Tree = tree(
    &[Counter(0), Counter(1), Counter(2), Counter(3), Cycles(4, 5), Counter(5)],
    &N2_EARLY,
    &[2.0, 1.5, 2.0, 2.5, 0.01, 1.0],
);
pub(crate) static TREE_N2: Tree = tree(&five(5), &N2, &per_cycle(5.0, 0.01));
pub(crate) static TREE_V2: Tree = tree(&five(8), &N2, &per_cycle(8.0, 0.01));
pub(crate) static TREE_N3: Tree = tree(&five(5), &N3, &per_cycle(5.0, 0.02));
pub(crate) static TREE_V3: Tree = tree(&five(10), &N3, &per_cycle(10.0, 0.02));
/// Inputs that all count what they say.
const fn plain<const N: usize>() -> [Input; N] {
    let (mut inputs, mut place) = ([Counter(0); N], 0);
    while place < N {
        inputs[place] = Counter(place);
        place += 1;
    }
    inputs
}

const fn of_t410(inputs: &'static [Input; 7], nodes: &'static [Row]) -> Tree {
    Tree { clocks: Some(Clocks::Input(6)), ..tree(inputs, nodes, &[1.2, 2.4, 4.0, 3.2, 4.0, 0.1, 1.0]) }
}

pub(crate) static TREE_T410: Tree = tree(&plain::<5>(), &T410, &[1.2, 2.4, 4.0, 3.2, 4.0]);
pub(crate) static TREE_T410_FRONTEND: Tree = of_t410(&plain::<7>(), &T410_FRONTEND);
pub(crate) static TREE_T410_BACKEND: Tree = of_t410(&plain::<7>(), &T410_BACKEND);

const fn of_stalls(
    width: u32,
    inputs: &'static [Input; 6],
    nodes: &'static [Row],
    per_cycle: &'static [f64],
) -> Tree {
    Tree { clocks: Some(Clocks::Slots(width)), ..tree(inputs, nodes, per_cycle) }
}

const STALLS_5: [f64; 6] = [1.0, 1.5, 2.0, 2.5, 0.02, 0.1];
const STALLS_10: [f64; 6] = [2.0, 3.0, 4.0, 5.0, 0.02, 0.1];
pub(crate) static TREE_N3_FRONTEND: Tree = of_stalls(5, &six(5), &N3_FRONTEND, &STALLS_5);
pub(crate) static TREE_N3_BACKEND: Tree = of_stalls(5, &six(5), &N3_BACKEND, &STALLS_5);
pub(crate) static TREE_V3_FRONTEND: Tree = of_stalls(10, &six(10), &N3_FRONTEND, &STALLS_10);
pub(crate) static TREE_V3_BACKEND: Tree = of_stalls(10, &six(10), &N3_BACKEND, &STALLS_10);

/// Of V1, N2 and V2.
const NO_TREE: &str = "the maker publishes no deeper tree, but ratios of misses and of stalled cycles";
/// Of N3 and V3.
const STALLS: &str = "level 2 is of stalled cycles, and six general counters hold a node of it; td_options.subtree counts \
    that of the frontend, or of the backend";
/// Of a subtree of these.
const ONE_NODE: &str = "six general counters hold no more than one node of it";

pub(super) const fn counters(tree: &'static Tree, events: &'static [Event]) -> Counters {
    Counters {
        tree,
        leaders: &[CYCLES],
        events,
        subtree: TD_NODE_NONE,
        general: 6,
        returns: Some(RETURNS),
        clock: Some(CYCLES.event),
        no_deeper: NO_TREE,
        alone: false,
    }
}

const BY_MISPREDICTS: &[Event] = &[FRONTEND, BACKEND, RETIRED, DISPATCHED, MISPREDICTS];
const BY_FLUSHES: &[Event] = &[FRONTEND, BACKEND, RETIRED, DISPATCHED, FLUSH];

static COUNTERS_V1: Counters = counters(&TREE_V1, BY_MISPREDICTS);
static COUNTERS_N2_EARLY: Counters = counters(
    &TREE_N2_EARLY,
    &[FRONTEND, BACKEND, RETIRED, DISPATCHED, MISPREDICTS, Event::new("cpu_cycles", 0x11)],
);
static COUNTERS_N2: Counters = counters(&TREE_N2, BY_MISPREDICTS);
static COUNTERS_V2: Counters = counters(&TREE_V2, BY_MISPREDICTS);
static COUNTERS_N3: Counters = Counters { no_deeper: STALLS, ..counters(&TREE_N3, BY_FLUSHES) };
static COUNTERS_V3: Counters = Counters { no_deeper: STALLS, ..counters(&TREE_V3, BY_FLUSHES) };

const fn subtree(tree: &'static Tree, events: &'static [Event], subtree: u32) -> Counters {
    Counters { subtree, no_deeper: ONE_NODE, ..counters(tree, events) }
}

const FRONTEND_MEMORY: Event = Event::new("STALL_FRONTEND_MEMBOUND", 0x8158).may_be_silent();
const BACKEND_MEMORY: Event = Event::new("STALL_BACKEND_MEMBOUND", 0x8164).may_be_silent();
const OF_FRONTEND: &[Event] = &[FRONTEND, BACKEND, RETIRED, DISPATCHED, FLUSH, FRONTEND_MEMORY];
const OF_BACKEND: &[Event] = &[FRONTEND, BACKEND, RETIRED, DISPATCHED, FLUSH, BACKEND_MEMORY];
static N3_FRONTEND_COUNTERS: Counters = subtree(&TREE_N3_FRONTEND, OF_FRONTEND, TD_NODE_FRONTEND_BOUND);
static N3_BACKEND_COUNTERS: Counters = subtree(&TREE_N3_BACKEND, OF_BACKEND, TD_NODE_BACKEND_BOUND);
static V3_FRONTEND_COUNTERS: Counters = subtree(&TREE_V3_FRONTEND, OF_FRONTEND, TD_NODE_FRONTEND_BOUND);
static V3_BACKEND_COUNTERS: Counters = subtree(&TREE_V3_BACKEND, OF_BACKEND, TD_NODE_BACKEND_BOUND);

/// Two threads of a core share its slots: this counts those that a thread has.
const THREADS_SLOTS: Leader = Leader { event: Event::new("CPU_SLOT", 0x1e1), by_cycle: false, general: true };

/// What T410 counts, and below this node. No document tells how many general counters it has: the kernel refuses a group that
/// is too large.
const fn counters_t410(tree: &'static Tree, events: &'static [Event], subtree: u32) -> Counters {
    Counters {
        leaders: &[THREADS_SLOTS],
        subtree,
        general: 0,
        no_deeper: if subtree == TD_NODE_NONE { SEVENTH } else { ONE_MORE },
        ..counters(tree, events)
    }
}

const SEVENTH: &str = "level 2 is of stalled cycles, and a node of it takes a seventh general counter; td_options.subtree counts \
    that of the frontend, or of the backend";
const ONE_MORE: &str = "the other node of it would take another general counter";
const T410_FRONTEND_STALLS: Event = Event::new("STALL_SLOT_FRONTEND_WITHOUT_MISPRED", 0x1e2);
const STALLED: Event = Event::new("stall_slot", 0x3f);
/// Of T410, which another event leads: the counter of cycles is free.
const ALL_CYCLES: Event = CYCLES.event;

static COUNTERS_T410: Counters =
    counters_t410(&TREE_T410, &[T410_FRONTEND_STALLS, BACKEND, STALLED, RETIRED, DISPATCHED], TD_NODE_NONE);
static T410_FRONTEND_COUNTERS: Counters = counters_t410(
    &TREE_T410_FRONTEND,
    &[T410_FRONTEND_STALLS, BACKEND, STALLED, RETIRED, DISPATCHED, FRONTEND_MEMORY, ALL_CYCLES],
    TD_NODE_FRONTEND_BOUND,
);
static T410_BACKEND_COUNTERS: Counters = counters_t410(
    &TREE_T410_BACKEND,
    &[T410_FRONTEND_STALLS, BACKEND, STALLED, RETIRED, DISPATCHED, BACKEND_MEMORY, ALL_CYCLES],
    TD_NODE_BACKEND_BOUND,
);

/// Of `Model::proved`: each node was what perf's formula makes of the true rates of its events.
pub(super) const PUBLISHED: &str = "published formula of true counts on the emulated machine";

const ARM: &str = "Arm";
const N2_PART: &[u32] = &[0xd49];
const N3_PART: &[u32] = &[0xd8e];
const V3_PARTS: &[u32] = &[0xd83, 0xd84];

const fn arm(core: &'static str, parts: &'static [u32], width: u32, counters: &'static Counters) -> Model {
    Model::counted(core, parts, width, counters).of(ARM, ARM64)
}

const fn nvidia(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, &[0x010], 0, counters).of("NVIDIA", ARM64)
}

/// Rows of early revisions, each with the first stepping that is not one of them.
pub(super) const EARLY: &[Model] =
    &[arm("Neoverse N2 before r0p3", N2_PART, 5, &COUNTERS_N2_EARLY).proved(PUBLISHED)];
const EARLIER_THAN: [(&str, u32); 1] = [("Neoverse N2 before r0p3", 0x03)];

/// Whether a row is of CPUs of this stepping.
pub(super) fn has_stepping(row: &Model, stepping: u32) -> bool {
    EARLIER_THAN.iter().all(|(core, first_not)| row.core != *core || stepping < *first_not)
}

pub(super) const ROWS: &[Model] = &[
    arm("Neoverse V1", &[0xd40], 8, &COUNTERS_V1).proved(PUBLISHED),
    arm("Neoverse N2", N2_PART, 5, &COUNTERS_N2).proved(PUBLISHED),
    arm("Neoverse V2", &[0xd4f], 8, &COUNTERS_V2).proved(PUBLISHED),
    arm("Neoverse N3", N3_PART, 5, &COUNTERS_N3).proved(PUBLISHED),
    arm("Neoverse N3, frontend bound", N3_PART, 5, &N3_FRONTEND_COUNTERS).proved(PUBLISHED),
    arm("Neoverse N3, backend bound", N3_PART, 5, &N3_BACKEND_COUNTERS).proved(PUBLISHED),
    arm("Neoverse V3", V3_PARTS, 10, &COUNTERS_V3).proved(PUBLISHED),
    arm("Neoverse V3, frontend bound", V3_PARTS, 10, &V3_FRONTEND_COUNTERS).proved(PUBLISHED),
    arm("Neoverse V3, backend bound", V3_PARTS, 10, &V3_BACKEND_COUNTERS).proved(PUBLISHED),
    // no document at hand tells the width: it counts slots
    nvidia("T410", &COUNTERS_T410),
    nvidia("T410, frontend bound", &T410_FRONTEND_COUNTERS),
    nvidia("T410, backend bound", &T410_BACKEND_COUNTERS),
];

/// Their events count cycles that stalled, and no slots.
pub(super) const WITHOUT: &[Model] = &[Model {
    counting: Counting::None(
        "its events count stalled cycles, not slots: `perf stat -e cycles,stalled-cycles-frontend,stalled-cycles-backend` \
         shows these",
    ),
    ..Model::counted("Neoverse N1", &[0xd0c], 4, &COUNTERS_V1).of(ARM, ARM64)
}];
