//! Cores of arm64 that count the slots which stalls took (kernel-facts G.3, formulas from perf's pmu-events): what no stall took is
//! divided as operations are that retired and that were dispatched. STALL_SLOT, which perf takes in some formulas, is what
//! STALL_SLOT_FRONTEND and STALL_SLOT_BACKEND are together, and takes no counter here.

use super::metrics::{BACKEND_BOUND, BAD_SPECULATION, FRONTEND_BOUND, RETIRING, TD_NODE_NONE};
use super::tree::Formula::{self, Balance, Rest, Slots};
use super::tree::Input::{self, Counter, Cycles};
use super::tree::{Retired, Row, Tree, root};
use super::{Counters, Counting, Event, Leader, Model};
use crate::sys::cpu::ARM64;

/// Cycles, which have a counter of their own.
pub(super) const CYCLES: Leader =
    Leader { event: Event::new("cpu_cycles", 0x11), by_cycle: true, general: false };

const FRONTEND: Event = Event::new("stall_slot_frontend", 0x3e);
const BACKEND: Event = Event::new("stall_slot_backend", 0x3d);
const RETIRED: Event = Event::new("op_retired", 0x3a);
const DISPATCHED: Event = Event::new("op_spec", 0x3b);
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
const AMPERE_ONE: [Row; 4] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Balance(&[1], &[0])),
    root(FRONTEND_BOUND, Rest),
    root(BACKEND_BOUND, Slots(2)),
];
const T410: [Row; 4] = roots(
    Formula::Retired(Retired { stalls: &[2], not_stalls: &[], retired: 3, dispatched: 4 }),
    Slots(0),
    Slots(1),
);

const fn tree(inputs: &'static [Input], nodes: &'static [Row; 4], per_cycle: &'static [f64]) -> Tree {
    Tree { inputs, clocks: None, nodes, per_cycle }
}

/// Cycles of a core of this width, lost by the fifth event.
const fn five(width: u32) -> [Input; 5] {
    [Counter(0), Counter(1), Counter(2), Counter(3), Cycles(4, width)]
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
pub(crate) static TREE_AMPERE_ONE: Tree =
    tree(&[Counter(0), Counter(1), Counter(2)], &AMPERE_ONE, &[3.2, 4.0, 2.4]);
pub(crate) static TREE_T410: Tree =
    tree(&[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4)], &T410, &[1.2, 2.4, 4.0, 3.2, 4.0]);

const NO_DEEPER: &str = "the maker's deeper metrics are of stalled cycles, not of slots";

const fn counters(tree: &'static Tree, events: &'static [Event]) -> Counters {
    Counters {
        tree,
        leaders: &[CYCLES],
        events,
        subtree: TD_NODE_NONE,
        general: 6,
        dropping: None,
        no_deeper: NO_DEEPER,
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
static COUNTERS_N3: Counters = counters(&TREE_N3, BY_FLUSHES);
static COUNTERS_V3: Counters = counters(&TREE_V3, BY_FLUSHES);
static COUNTERS_AMPERE_ONE: Counters = counters(&TREE_AMPERE_ONE, &[RETIRED, DISPATCHED, BACKEND]);
/// Two threads of a core share its slots: CPU_SLOT counts those that a thread has.
static COUNTERS_T410: Counters = Counters {
    leaders: &[Leader { event: Event::new("CPU_SLOT", 0x1e1), by_cycle: false, general: true }],
    ..counters(
        &TREE_T410,
        &[
            Event::new("STALL_SLOT_FRONTEND_WITHOUT_MISPRED", 0x1e2),
            BACKEND,
            Event::new("stall_slot", 0x3f),
            RETIRED,
            DISPATCHED,
        ],
    )
};

/// Of `Model::proved`: each node was what perf's formula makes of the true rates of its events.
pub(super) const PUBLISHED: &str = "published formula of true counts on the emulated machine";

const ARM: &str = "Arm";
const N2_PART: &[u32] = &[0xd49];

const fn arm(core: &'static str, parts: &'static [u32], width: u32, counters: &'static Counters) -> Model {
    Model::counted(core, parts, width, counters).of(ARM, ARM64)
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
    arm("Neoverse V2", &[0xd4f], 8, &COUNTERS_V2),
    arm("Neoverse N3", &[0xd8e], 5, &COUNTERS_N3),
    arm("Neoverse V3", &[0xd83, 0xd84], 10, &COUNTERS_V3),
    // no document at hand tells the widths: AmpereOne's kernel does (`caps/slots`), and T410 counts slots
    Model::counted("AmpereOne", &[0xac3, 0xac4], 0, &COUNTERS_AMPERE_ONE).of("Ampere", ARM64),
    Model::counted("T410", &[0x010], 0, &COUNTERS_T410).of("NVIDIA", ARM64),
];

/// Their events count cycles that stalled, and no slots.
pub(super) const WITHOUT: &[Model] = &[Model {
    counting: Counting::None("its events count stalled cycles, not slots"),
    ..Model::counted("Neoverse N1", &[0xd0c], 4, &COUNTERS_V1).of(ARM, ARM64)
}];
