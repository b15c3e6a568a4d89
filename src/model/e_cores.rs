//! E-cores, of hybrid CPUs and of CPUs that have no other: general counters, one for what became of the slots each (kernel-facts
//! A.2; widths and formulas from perf's pmu-events).

use super::metrics::{
    BACKEND_BOUND, BAD_SPECULATION, BRANCH_MISPREDICTS, CORE_BOUND, FRONTEND_BOUND, IFETCH_BANDWIDTH,
    IFETCH_LATENCY, MACHINE_CLEARS, RESOURCE_BOUND, RETIRING, TD_NODE_BACKEND_BOUND, TD_NODE_BAD_SPECULATION,
    TD_NODE_FRONTEND_BOUND, TD_NODE_NONE,
};
use super::perf_metrics::INTEL;
use super::tree::Formula::{self, NoCounter, Rest, Slots};
use super::tree::Input::Counter;
use super::tree::{Row, Tree, child, root};
use super::{Counters, Event, FORMULA, INTEL_CYCLES, Leader, Model, TRUTH};

/// Bad speculation is the rest: Gracemont's own event of it does not count all.
const LEVEL_1: [Row; 4] = [
    root(RETIRING, Slots(0)),
    root(BAD_SPECULATION, Rest),
    root(FRONTEND_BOUND, Slots(1)),
    root(BACKEND_BOUND, Slots(2)),
];

/// Two nodes below each root but retiring. Those of bad speculation have an event each, and need not add up to it.
const fn both_levels(machine_clears: Formula) -> [Row; 10] {
    level_2([Slots(5), machine_clears, Slots(3), Rest, Slots(4), Rest])
}

/// Both levels, with these formulas of the second.
pub(super) const fn level_2(
    [mispredicts, clears, latency, bandwidth, core, resource]: [Formula; 6],
) -> [Row; 10] {
    let [retiring, bad_speculation, frontend_bound, backend_bound] = LEVEL_1;
    [
        retiring,
        bad_speculation,
        frontend_bound,
        backend_bound,
        child(BRANCH_MISPREDICTS, TD_NODE_BAD_SPECULATION, mispredicts),
        child(MACHINE_CLEARS, TD_NODE_BAD_SPECULATION, clears),
        child(IFETCH_LATENCY, TD_NODE_FRONTEND_BOUND, latency),
        child(IFETCH_BANDWIDTH, TD_NODE_FRONTEND_BOUND, bandwidth),
        child(CORE_BOUND, TD_NODE_BACKEND_BOUND, core),
        child(RESOURCE_BOUND, TD_NODE_BACKEND_BOUND, resource),
    ]
}

const PER_CYCLE: [f64; 7] = [2.0, 1.0, 1.5, 0.5, 0.5, 0.375, 0.125];

/// Of cores with four general counters.
pub(crate) static TREE_1: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2)],
    clocks: None,
    unsure: &[],
    nodes: &LEVEL_1,
    per_cycle: &[1.6, 0.8, 1.2],
};
/// With six.
pub(crate) static TREE_6: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Counter(5)],
    clocks: None,
    unsure: &[],
    nodes: &both_levels(NoCounter),
    per_cycle: PER_CYCLE.split_at(6).0,
};
/// With eight, one of which may have to count cycles.
pub(crate) static TREE_8: Tree = Tree {
    inputs: &[Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Counter(5), Counter(6)],
    clocks: None,
    unsure: &[],
    nodes: &both_levels(Slots(6)),
    per_cycle: &PER_CYCLE,
};

/// Cycles.
pub(super) const LEADERS: &[Leader] = &[INTEL_CYCLES];

const NO_MACHINE_CLEARS: &str = "machine clears would take a seventh general counter, and level 3 fifteen more; \
    td_options.subtree counts a part of them";
const NO_DEEPER: &str =
    "level 3 takes 22 general counters, and the core has 8; td_options.subtree counts a part of it";

const fn counters(tree: &'static Tree, general: usize, events: &'static [Event]) -> Counters {
    Counters {
        tree,
        leaders: LEADERS,
        events,
        general,
        subtree: TD_NODE_NONE,
        no_deeper: match general {
            4 => "",
            6 => NO_MACHINE_CLEARS,
            _ => NO_DEEPER,
        },
        alone: false,
        returns: Some(RETURNS),
        clock: None,
    }
}

pub(super) const RETIRED: Event = Event::new("topdown-retiring", 0x00c2);
pub(super) const FRONTEND: Event = Event::new("topdown-fe-bound", 0x0071);
pub(super) const BACKEND: Event = Event::new("topdown-be-bound", 0x0074);
pub(super) const SIERRA_FOREST_RETIRED: Event = Event::new("topdown-retiring", 0x0072);
/// The same of hybrid CPUs, whose kernel calls UOPS_RETIRED.ALL c2/00 topdown-retiring: the published metric counts this.
pub(super) const CRESTMONT_RETIRED: Event = Event::new("TOPDOWN_RETIRING.ALL", 0x0072);
pub(super) const SKYMONT_RETIRED: Event = Event::new("topdown-retiring", 0x02c2);
pub(super) const SKYMONT_FRONTEND: Event = Event::new("topdown-fe-bound", 0x019c);
pub(super) const SKYMONT_BACKEND: Event = Event::new("topdown-be-bound", 0x02a4);
pub(super) const LATENCY: Event = Event::new("TOPDOWN_FE_BOUND.FRONTEND_LATENCY", 0x7271);
pub(super) const ALLOCATION: Event =
    Event::new("TOPDOWN_BE_BOUND.ALLOC_RESTRICTIONS", 0x0174).may_be_silent();
/// (0xf7 is the umask of these cores since Silvermont.)
pub(super) const RETURNS: Event = Event::new("BR_INST_RETIRED.NEAR_RETURN", 0xf7c4);
const MISPREDICTS: Event = Event::new("TOPDOWN_BAD_SPECULATION.MISPREDICT", 0x0473);
pub(super) const CLEARS: Event = Event::new("TOPDOWN_BAD_SPECULATION.MACHINE_CLEARS", 0x0373).may_be_silent();

static TREMONT: Counters = counters(&TREE_1, 4, &[RETIRED, FRONTEND, BACKEND]);
static GRACEMONT: Counters =
    counters(&TREE_6, 6, &[RETIRED, FRONTEND, BACKEND, LATENCY, ALLOCATION, MISPREDICTS]);
static CRESTMONT: Counters =
    counters(&TREE_8, 8, &[CRESTMONT_RETIRED, FRONTEND, BACKEND, LATENCY, ALLOCATION, MISPREDICTS, CLEARS]);
static SIERRA_FOREST: Counters = counters(
    &TREE_8,
    8,
    &[SIERRA_FOREST_RETIRED, FRONTEND, BACKEND, LATENCY, ALLOCATION, MISPREDICTS, CLEARS],
);
static SKYMONT: Counters = counters(
    &TREE_8,
    8,
    &[SKYMONT_RETIRED, SKYMONT_FRONTEND, SKYMONT_BACKEND, LATENCY, ALLOCATION, MISPREDICTS, CLEARS],
);

/// What P-cores count, too (`hybrid`).
pub(super) const SHARED_BY_GRACEMONT: [Event; 4] = [RETIRED, BACKEND, FRONTEND, MISPREDICTS];
/// See `SHARED_BY_GRACEMONT`.
pub(super) const SHARED_BY_CRESTMONT: [Event; 4] = [CRESTMONT_RETIRED, BACKEND, FRONTEND, MISPREDICTS];
/// See `SHARED_BY_GRACEMONT`.
pub(super) const SHARED_BY_SKYMONT: [Event; 4] =
    [SKYMONT_RETIRED, SKYMONT_BACKEND, SKYMONT_FRONTEND, MISPREDICTS];

/// Alder and Raptor Lake.
pub(super) const GRACEMONT_MODELS: &[u32] = &[0x97, 0x9a, 0xb7, 0xba, 0xbf];
/// Meteor Lake, Arrow Lake U.
pub(super) const CRESTMONT_MODELS: &[u32] = &[0xaa, 0xac, 0xb5];
/// Lunar Lake, Arrow Lake.
pub(super) const SKYMONT_MODELS: &[u32] = &[0xbd, 0xc5, 0xc6];
/// Panther Lake, Wildcat Lake.
pub(super) const DARKMONT_MODELS: &[u32] = &[0xcc, 0xd5];
pub(super) const ALDER_LAKE_N: &[u32] = &[0xbe];
/// With Grand Ridge.
pub(super) const SIERRA_FOREST_MODELS: &[u32] = &[0xaf, 0xb6];
pub(super) const CLEARWATER_FOREST: &[u32] = &[0xdd];

/// Beside P-cores.
pub(super) const HYBRID: &[Model] = &[
    Model::counted("Gracemont", GRACEMONT_MODELS, 5, &GRACEMONT).proved(TRUTH),
    Model::counted("Crestmont", CRESTMONT_MODELS, 6, &CRESTMONT),
    Model::counted("Skymont", SKYMONT_MODELS, 8, &SKYMONT).proved(TRUTH),
    Model::counted("Darkmont", DARKMONT_MODELS, 8, &SKYMONT),
];

/// All cores of their CPUs.
pub(super) const SERVERS: &[Model] = &[
    Model::counted("Tremont", &[0x86, 0x96, 0x9c], 4, &TREMONT).of(INTEL, 6).proved(FORMULA),
    Model::counted("Gracemont (Alder Lake N)", ALDER_LAKE_N, 5, &GRACEMONT).of(INTEL, 6),
    Model::counted("Crestmont (Sierra Forest, Grand Ridge)", SIERRA_FOREST_MODELS, 6, &SIERRA_FOREST)
        .of(INTEL, 6)
        .proved(TRUTH),
    Model::counted("Darkmont (Clearwater Forest)", CLEARWATER_FOREST, 8, &SKYMONT).of(INTEL, 6).proved(TRUTH),
];
