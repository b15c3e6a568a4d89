//! Level 3 of E-cores, which no group of theirs holds whole: a row for each node of level 2 that `td_options.subtree` names. It counts
//! level 1, that node and what is below it (perf's pmu-events; the events count issue slots that were lost to one cause each).

use super::e_cores::{
    ALDER_LAKE_N, ALLOCATION, BACKEND, CLEARWATER_FOREST, CRESTMONT_MODELS, CRESTMONT_RETIRED,
    DARKMONT_MODELS, FRONTEND, GRACEMONT_MODELS, LATENCY, LEADERS, RETIRED, RETURNS, SIERRA_FOREST_MODELS,
    SIERRA_FOREST_RETIRED, SKYMONT_BACKEND, SKYMONT_FRONTEND, SKYMONT_MODELS, SKYMONT_RETIRED, level_2,
};
use super::metrics::{
    ALLOCATION_RESTRICTION, BRANCH_DETECT, BRANCH_RESTEER, CISC, DECODE, FAST_NUKE, ICACHE_MISSES,
    ITLB_MISSES, MEM_SCHEDULER, NON_MEM_SCHEDULER, NUKE, OTHER_FB, PREDECODE, REGISTER, REORDER_BUFFER,
    SERIALIZATION, TD_NODE_CORE_BOUND, TD_NODE_IFETCH_BANDWIDTH, TD_NODE_IFETCH_LATENCY,
    TD_NODE_MACHINE_CLEARS, TD_NODE_RESOURCE_BOUND,
};
use super::perf_metrics::INTEL;
use super::tree::Formula::{NoCounter, Rest, Slots};
use super::tree::Input::{self, Counter};
use super::tree::{Row, Tree, grandchild, with_rows};
use super::{Counters, Event, FORMULA, Model};

const INPUTS: [Input; 8] =
    [Counter(0), Counter(1), Counter(2), Counter(3), Counter(4), Counter(5), Counter(6), Counter(7)];
/// What a simulated core counts of level 1, of a node of level 2 and of its children in a cycle.
const PER_CYCLE: [f64; 8] = [2.0, 1.0, 1.5, 0.5, 0.125, 0.125, 0.125, 0.125];

const fn tree(inputs: usize, nodes: &'static [Row]) -> Tree {
    Tree {
        inputs: INPUTS.split_at(inputs).0,
        clocks: None,
        unsure: &[],
        nodes,
        per_cycle: PER_CYCLE.split_at(inputs).0,
    }
}

const FETCH: [Row; 10] = level_2([NoCounter, NoCounter, Slots(3), Rest, NoCounter, NoCounter]);
const BACK: [Row; 10] = level_2([NoCounter, NoCounter, NoCounter, NoCounter, Slots(3), Rest]);

/// With eight general counters. Bandwidth is, as without its children, what latency leaves of frontend bound.
pub(crate) static LATENCY_8: Tree = tree(
    8,
    &with_rows::<14>(
        &FETCH,
        &[
            grandchild(ICACHE_MISSES, TD_NODE_IFETCH_LATENCY, Slots(4)),
            grandchild(ITLB_MISSES, TD_NODE_IFETCH_LATENCY, Slots(5)),
            grandchild(BRANCH_DETECT, TD_NODE_IFETCH_LATENCY, Slots(6)),
            grandchild(BRANCH_RESTEER, TD_NODE_IFETCH_LATENCY, Slots(7)),
        ],
    ),
);
/// With six.
pub(crate) static LATENCY_6: Tree = tree(
    6,
    &with_rows::<14>(
        &FETCH,
        &[
            grandchild(ICACHE_MISSES, TD_NODE_IFETCH_LATENCY, Slots(4)),
            grandchild(ITLB_MISSES, TD_NODE_IFETCH_LATENCY, Slots(5)),
            grandchild(BRANCH_DETECT, TD_NODE_IFETCH_LATENCY, NoCounter),
            grandchild(BRANCH_RESTEER, TD_NODE_IFETCH_LATENCY, NoCounter),
        ],
    ),
);
pub(crate) static BANDWIDTH_8: Tree = tree(
    8,
    &with_rows::<14>(
        &FETCH,
        &[
            grandchild(CISC, TD_NODE_IFETCH_BANDWIDTH, Slots(4)),
            grandchild(DECODE, TD_NODE_IFETCH_BANDWIDTH, Slots(5)),
            grandchild(PREDECODE, TD_NODE_IFETCH_BANDWIDTH, Slots(6)),
            grandchild(OTHER_FB, TD_NODE_IFETCH_BANDWIDTH, Slots(7)),
        ],
    ),
);
pub(crate) static BANDWIDTH_6: Tree = tree(
    6,
    &with_rows::<14>(
        &FETCH,
        &[
            grandchild(CISC, TD_NODE_IFETCH_BANDWIDTH, Slots(4)),
            grandchild(DECODE, TD_NODE_IFETCH_BANDWIDTH, Slots(5)),
            grandchild(PREDECODE, TD_NODE_IFETCH_BANDWIDTH, NoCounter),
            grandchild(OTHER_FB, TD_NODE_IFETCH_BANDWIDTH, NoCounter),
        ],
    ),
);
pub(crate) static CLEARS: Tree = tree(
    6,
    &with_rows::<12>(
        &level_2([NoCounter, Slots(3), NoCounter, NoCounter, NoCounter, NoCounter]),
        &[
            grandchild(NUKE, TD_NODE_MACHINE_CLEARS, Slots(4)),
            grandchild(FAST_NUKE, TD_NODE_MACHINE_CLEARS, Slots(5)),
        ],
    ),
);
/// Core bound has one child, which is all of it; so there is room for two of resource bound.
pub(crate) static CORE: Tree = tree(
    6,
    &with_rows::<13>(
        &BACK,
        &[
            grandchild(ALLOCATION_RESTRICTION, TD_NODE_CORE_BOUND, Slots(3)),
            grandchild(REGISTER, TD_NODE_RESOURCE_BOUND, Slots(4)),
            grandchild(SERIALIZATION, TD_NODE_RESOURCE_BOUND, Slots(5)),
        ],
    ),
);
pub(crate) static RESOURCE_8: Tree = tree(
    8,
    &with_rows::<15>(
        &BACK,
        &[
            grandchild(MEM_SCHEDULER, TD_NODE_RESOURCE_BOUND, Slots(4)),
            grandchild(REORDER_BUFFER, TD_NODE_RESOURCE_BOUND, Slots(5)),
            grandchild(NON_MEM_SCHEDULER, TD_NODE_RESOURCE_BOUND, Slots(6)),
            grandchild(REGISTER, TD_NODE_RESOURCE_BOUND, Slots(7)),
            grandchild(SERIALIZATION, TD_NODE_RESOURCE_BOUND, NoCounter),
        ],
    ),
);
pub(crate) static RESOURCE_6: Tree = tree(
    6,
    &with_rows::<15>(
        &BACK,
        &[
            grandchild(MEM_SCHEDULER, TD_NODE_RESOURCE_BOUND, Slots(4)),
            grandchild(REORDER_BUFFER, TD_NODE_RESOURCE_BOUND, Slots(5)),
            grandchild(NON_MEM_SCHEDULER, TD_NODE_RESOURCE_BOUND, NoCounter),
            grandchild(REGISTER, TD_NODE_RESOURCE_BOUND, NoCounter),
            grandchild(SERIALIZATION, TD_NODE_RESOURCE_BOUND, NoCounter),
        ],
    ),
);

const fn event(name: &'static str, config: u64) -> Event {
    Event::new(name, config).may_be_silent()
}

// (a node of level 2, and below it what the trees take, in their order)
const OF_LATENCY: [Event; 5] = [
    LATENCY,
    event("TOPDOWN_FE_BOUND.ICACHE", 0x2071),
    event("TOPDOWN_FE_BOUND.ITLB_MISS", 0x1071),
    event("TOPDOWN_FE_BOUND.BRANCH_DETECT", 0x0271),
    event("TOPDOWN_FE_BOUND.BRANCH_RESTEER", 0x4071),
];
const OF_BANDWIDTH: [Event; 5] = [
    LATENCY,
    event("TOPDOWN_FE_BOUND.CISC", 0x0171),
    event("TOPDOWN_FE_BOUND.DECODE", 0x0871),
    event("TOPDOWN_FE_BOUND.PREDECODE", 0x0471),
    event("TOPDOWN_FE_BOUND.OTHER", 0x8071),
];
const OF_CLEARS: [Event; 3] = [
    super::e_cores::CLEARS,
    event("TOPDOWN_BAD_SPECULATION.NUKE", 0x0173),
    event("TOPDOWN_BAD_SPECULATION.FASTNUKE", 0x0273),
];
const REGISTERS: Event = event("TOPDOWN_BE_BOUND.REGISTER", 0x2074);
const OF_CORE: [Event; 3] = [ALLOCATION, REGISTERS, event("TOPDOWN_BE_BOUND.SERIALIZATION", 0x1074)];
const OF_RESOURCE: [Event; 5] = [
    ALLOCATION,
    event("TOPDOWN_BE_BOUND.MEM_SCHEDULER", 0x0274),
    event("TOPDOWN_BE_BOUND.REORDER_BUFFER", 0x4074),
    event("TOPDOWN_BE_BOUND.NON_MEM_SCHEDULER", 0x0874),
    REGISTERS,
];

/// Level 1's events, and as many of the others as there is room for.
const fn events<const N: usize>(level_1: [Event; 3], others: &[Event]) -> [Event; N] {
    let (mut all, mut place) = ([level_1[0]; N], 0);
    while place < N {
        all[place] = if place < 3 { level_1[place] } else { others[place - 3] };
        place += 1;
    }
    all
}

const fn counters(
    tree: &'static Tree,
    subtree: u32,
    general: usize,
    events: &'static [Event],
    no_deeper: &'static str,
) -> Counters {
    Counters {
        tree,
        leaders: LEADERS,
        events,
        subtree,
        general,
        returns: Some(RETURNS),
        clock: None,
        no_deeper,
        alone: false,
    }
}

const NO_ROOM: &str = "six general counters hold no more than two nodes of it";
const ELSEWHERE: &str = "serialization is counted with core bound";

const fn latency_8(events: &'static [Event; 8]) -> Counters {
    counters(&LATENCY_8, TD_NODE_IFETCH_LATENCY, 8, events, "")
}

const fn bandwidth_8(events: &'static [Event; 8]) -> Counters {
    counters(&BANDWIDTH_8, TD_NODE_IFETCH_BANDWIDTH, 8, events, "")
}

const fn clears(general: usize, events: &'static [Event; 6]) -> Counters {
    counters(&CLEARS, TD_NODE_MACHINE_CLEARS, general, events, "")
}

const fn core(general: usize, events: &'static [Event; 6]) -> Counters {
    counters(&CORE, TD_NODE_CORE_BOUND, general, events, "")
}

const fn resource_8(events: &'static [Event; 8]) -> Counters {
    counters(&RESOURCE_8, TD_NODE_RESOURCE_BOUND, 8, events, ELSEWHERE)
}

// (what level 1 counts)
const GRACEMONT: [Event; 3] = [RETIRED, FRONTEND, BACKEND];
const CRESTMONT: [Event; 3] = [CRESTMONT_RETIRED, FRONTEND, BACKEND];
const SIERRA_FOREST: [Event; 3] = [SIERRA_FOREST_RETIRED, FRONTEND, BACKEND];
const SKYMONT: [Event; 3] = [SKYMONT_RETIRED, SKYMONT_FRONTEND, SKYMONT_BACKEND];

static GRACEMONT_LATENCY: Counters =
    counters(&LATENCY_6, TD_NODE_IFETCH_LATENCY, 6, &events::<6>(GRACEMONT, &OF_LATENCY), NO_ROOM);
static GRACEMONT_BANDWIDTH: Counters =
    counters(&BANDWIDTH_6, TD_NODE_IFETCH_BANDWIDTH, 6, &events::<6>(GRACEMONT, &OF_BANDWIDTH), NO_ROOM);
static GRACEMONT_CLEARS: Counters = clears(6, &events(GRACEMONT, &OF_CLEARS));
static GRACEMONT_CORE: Counters = core(6, &events(GRACEMONT, &OF_CORE));
static GRACEMONT_RESOURCE: Counters =
    counters(&RESOURCE_6, TD_NODE_RESOURCE_BOUND, 6, &events::<6>(GRACEMONT, &OF_RESOURCE), NO_ROOM);

static CRESTMONT_LATENCY: Counters = latency_8(&events(CRESTMONT, &OF_LATENCY));
static CRESTMONT_BANDWIDTH: Counters = bandwidth_8(&events(CRESTMONT, &OF_BANDWIDTH));
static CRESTMONT_CLEARS: Counters = clears(8, &events(CRESTMONT, &OF_CLEARS));
static CRESTMONT_CORE: Counters = core(8, &events(CRESTMONT, &OF_CORE));
static CRESTMONT_RESOURCE: Counters = resource_8(&events(CRESTMONT, &OF_RESOURCE));

static SIERRA_FOREST_LATENCY: Counters = latency_8(&events(SIERRA_FOREST, &OF_LATENCY));
static SIERRA_FOREST_BANDWIDTH: Counters = bandwidth_8(&events(SIERRA_FOREST, &OF_BANDWIDTH));
static SIERRA_FOREST_CLEARS: Counters = clears(8, &events(SIERRA_FOREST, &OF_CLEARS));
static SIERRA_FOREST_CORE: Counters = core(8, &events(SIERRA_FOREST, &OF_CORE));
static SIERRA_FOREST_RESOURCE: Counters = resource_8(&events(SIERRA_FOREST, &OF_RESOURCE));

static SKYMONT_LATENCY: Counters = latency_8(&events(SKYMONT, &OF_LATENCY));
static SKYMONT_BANDWIDTH: Counters = bandwidth_8(&events(SKYMONT, &OF_BANDWIDTH));
static SKYMONT_CLEARS: Counters = clears(8, &events(SKYMONT, &OF_CLEARS));
static SKYMONT_CORE: Counters = core(8, &events(SKYMONT, &OF_CORE));
static SKYMONT_RESOURCE: Counters = resource_8(&events(SKYMONT, &OF_RESOURCE));

const fn gracemont(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, GRACEMONT_MODELS, 5, counters).proved(FORMULA)
}

const fn crestmont(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, CRESTMONT_MODELS, 6, counters)
}

const fn skymont(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, SKYMONT_MODELS, 8, counters).proved(FORMULA)
}

const fn darkmont(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, DARKMONT_MODELS, 8, counters)
}

const fn alder_lake_n(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, ALDER_LAKE_N, 5, counters).of(INTEL, 6)
}

const fn sierra_forest(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, SIERRA_FOREST_MODELS, 6, counters).of(INTEL, 6).proved(FORMULA)
}

const fn clearwater_forest(core: &'static str, counters: &'static Counters) -> Model {
    Model::counted(core, CLEARWATER_FOREST, 8, counters).of(INTEL, 6).proved(FORMULA)
}

pub(super) const ROWS: &[Model] = &[
    gracemont("Gracemont, fetch latency", &GRACEMONT_LATENCY),
    gracemont("Gracemont, fetch bandwidth", &GRACEMONT_BANDWIDTH),
    gracemont("Gracemont, machine clears", &GRACEMONT_CLEARS),
    gracemont("Gracemont, core bound", &GRACEMONT_CORE),
    gracemont("Gracemont, resource bound", &GRACEMONT_RESOURCE),
    crestmont("Crestmont, fetch latency", &CRESTMONT_LATENCY),
    crestmont("Crestmont, fetch bandwidth", &CRESTMONT_BANDWIDTH),
    crestmont("Crestmont, machine clears", &CRESTMONT_CLEARS),
    crestmont("Crestmont, core bound", &CRESTMONT_CORE),
    crestmont("Crestmont, resource bound", &CRESTMONT_RESOURCE),
    skymont("Skymont, fetch latency", &SKYMONT_LATENCY),
    skymont("Skymont, fetch bandwidth", &SKYMONT_BANDWIDTH),
    skymont("Skymont, machine clears", &SKYMONT_CLEARS),
    skymont("Skymont, core bound", &SKYMONT_CORE),
    skymont("Skymont, resource bound", &SKYMONT_RESOURCE),
    darkmont("Darkmont, fetch latency", &SKYMONT_LATENCY),
    darkmont("Darkmont, fetch bandwidth", &SKYMONT_BANDWIDTH),
    darkmont("Darkmont, machine clears", &SKYMONT_CLEARS),
    darkmont("Darkmont, core bound", &SKYMONT_CORE),
    darkmont("Darkmont, resource bound", &SKYMONT_RESOURCE),
    alder_lake_n("Gracemont (Alder Lake N), fetch latency", &GRACEMONT_LATENCY),
    alder_lake_n("Gracemont (Alder Lake N), fetch bandwidth", &GRACEMONT_BANDWIDTH),
    alder_lake_n("Gracemont (Alder Lake N), machine clears", &GRACEMONT_CLEARS),
    alder_lake_n("Gracemont (Alder Lake N), core bound", &GRACEMONT_CORE),
    alder_lake_n("Gracemont (Alder Lake N), resource bound", &GRACEMONT_RESOURCE),
    sierra_forest("Crestmont of servers, fetch latency", &SIERRA_FOREST_LATENCY),
    sierra_forest("Crestmont of servers, fetch bandwidth", &SIERRA_FOREST_BANDWIDTH),
    sierra_forest("Crestmont of servers, machine clears", &SIERRA_FOREST_CLEARS),
    sierra_forest("Crestmont of servers, core bound", &SIERRA_FOREST_CORE),
    sierra_forest("Crestmont of servers, resource bound", &SIERRA_FOREST_RESOURCE),
    clearwater_forest("Darkmont (Clearwater Forest), fetch latency", &SKYMONT_LATENCY),
    clearwater_forest("Darkmont (Clearwater Forest), fetch bandwidth", &SKYMONT_BANDWIDTH),
    clearwater_forest("Darkmont (Clearwater Forest), machine clears", &SKYMONT_CLEARS),
    clearwater_forest("Darkmont (Clearwater Forest), core bound", &SKYMONT_CORE),
    clearwater_forest("Darkmont (Clearwater Forest), resource bound", &SKYMONT_RESOURCE),
];
