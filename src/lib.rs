//! Where the CPU's pipeline slots go (TopDown, TMA), for any region of a program, measured from inside it.
//!
//! [`measure`] runs a closure and tells the shares of its slots, each with the bound of its error. [`TopDown`] is an open handle; two
//! [`Sample`]s of it give shares by [`decode_l1`], [`decode_l2`] and [`decode_tree`], and many executions of a region a [`Sum`].
//! [`Options`] say what is measured and how, an [`Error`] what is in the way and what to do. The other names serve the crates of the
//! same tree, and change with them.
//!
//! The modules in the order of tests/rooms.rs: none imports from a later one. "kernel-facts" in comments is
//! docs/kernel-facts.md (0, A to C) and docs/kernel-facts-more.md (D to I).

pub(crate) use topdown_seam as sys;

mod error;
mod options;

mod cpu;
pub(crate) mod model;

mod plan;

pub(crate) mod detect;

mod registers;
mod sample;

mod bound;
mod budget;

pub(crate) mod read;

pub(crate) mod group;

mod totals;

pub(crate) mod source;

mod decode;
mod span;
mod tree;
mod turns;

mod sampling;

mod rotation;
mod sum;

mod handle;

mod measure;

mod probe;

pub mod capi;

#[cfg(test)]
mod failures;
#[cfg(any(test, fuzzing))]
pub mod fuzz;

pub use cpu::deep::DeepEvent;
pub use cpu::expression::{Expression, Operator};
pub use decode::{decode_l1, decode_l2, decode_raw_l1, decode_raw_l2};
pub use detect::remedies::{Obstacle, Remedy};
pub use detect::withheld_by_watchdog;
pub use error::{Error, Reason, Result, TD_ENORDPMC, TD_ENOTCOUNTING, TD_ESTALE, TD_EWRONGTHREAD};
pub use handle::{Info, Path, PeriodTotals, TopDown};
pub use measure::{Measured, measure};
pub use model::metrics::{
    LEVEL_1, LEVEL_2, Metric, TD_NODE_BACKEND_BOUND, TD_NODE_BACKEND_CORE_BOUND, TD_NODE_BACKEND_MEM_BOUND,
    TD_NODE_BAD_SPECULATION, TD_NODE_BRANCH_MISPREDICTS, TD_NODE_CORE_BOUND, TD_NODE_FASTPATH,
    TD_NODE_FETCH_BANDWIDTH, TD_NODE_FETCH_LATENCY, TD_NODE_FRONTEND_BOUND, TD_NODE_FRONTEND_CORE_BOUND,
    TD_NODE_FRONTEND_MEM_BOUND, TD_NODE_HEAVY_OPERATIONS, TD_NODE_IFETCH_BANDWIDTH, TD_NODE_IFETCH_LATENCY,
    TD_NODE_LIGHT_OPERATIONS, TD_NODE_MACHINE_CLEARS, TD_NODE_MEMORY_BOUND, TD_NODE_MICROCODE, TD_NODE_NONE,
    TD_NODE_PIPELINE_RESTARTS, TD_NODE_RESOURCE_BOUND, TD_NODE_RETIRING, TD_NODE_SMT_CONTENTION,
    TD_UNIT_CLOCKS, TD_UNIT_OPERATIONS, TD_UNIT_SLOTS,
};
/// The name of a core that can be simulated, for [`Options::core`]: those that `Info::core` tells, and "made-up core", with plain
/// counters and a tree of three levels.
#[must_use]
pub fn core_named(name: &str) -> Option<&'static str> {
    model::named(name).map(|(_, model)| model.core)
}

/// What a value of the environment variable TOPDOWN_SIMULATE asks for: nothing (empty, or "0"), or the simulated core of this name, which is
/// empty for "1", as in [`Options::core`].
///
/// # Errors
/// No core has the name: -EINVAL, and the text lists them.
pub fn simulation(value: &str) -> Result<Option<&'static str>> {
    match value {
        "" | "0" => Ok(None),
        "1" => Ok(Some("")),
        name => core_named(name).map(Some).ok_or_else(|| handle::unknown_core(name)),
    }
}

/// The simulated core that stands for this one where general-purpose counters alone can count, as from outside: itself, if it has some; for "",
/// which is no CPU's, "made-up core".
///
/// # Errors
/// The core has PERF_METRICS alone: -ENOTSUP.
pub fn simulated_by_counters(core: &'static str) -> Result<&'static str> {
    let core = if core.is_empty() { "made-up core" } else { core };
    let has_counters = |name: &&str| model::named(name).is_some_and(|(_, model)| model.has_counters());
    let by_counters = format!("{core}, by counters");
    let found = [Some(core), core_named(&by_counters)].into_iter().flatten().find(has_counters);
    found.ok_or_else(|| {
        Error::errno(libc::ENOTSUP, format!("no general-purpose counters of {core} count slots"))
            .why("these alone count from outside, and sample")
            .remedy("simulate another core; `topdown run` simulates the registers of this one")
    })
}

/// The metric with this id, whichever CPU's tree has it.
#[must_use]
pub fn metric(id: u32) -> Option<&'static Metric> {
    model::metric(id)
}

pub use model::{
    Bottleneck, Bounded, CompanionMetric, Core, CountPlace, CountedCompanions, DEEPEST_PUBLISHED, DeepGroup,
    DeepTree, GivenMetric, GivenMetrics, LocatingEvent, MOST_NODES_IN_TURNS, MOST_TURNS, NoDeeper,
    PublishedNames, RegionTurn, TimedEvent, companions, core_as_published, core_of_subtree, cores,
    counted_companions, deep_tree, deep_tree_of, deepest_level, fingerprint, groups_of_level, is_bounded,
    metric_of_name, not_measured, published_names, region_turns, subtree_of_name, subtrees_of_level,
};
pub use options::{
    CoreKind, Corrections, OptionNames, Options, SourceKind, Target, TurnPart, WantedNodes, name_options,
};
pub use probe::{Finding, Survey, Verdict, probe};
pub use rotation::Rotation;
pub use sample::{
    Base, Increments, L1, L2, Sample, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_SIMULATED, TD_SAMPLE_UNBOUNDED,
    TD_SAMPLE_WORK_AFTER, TD_SAMPLE_WORK_BEFORE, TD_SAMPLE_WORK_COUNTED,
};
pub use sampling::{SampledEvents, SampledNode, sampled_events};
pub use source::simulated::Mix;
pub use sum::{
    Empties, Execution, FEWEST_TURNS, InputSum, SampledTurns, Sum, TD_SAMPLE_SPARSE, TurnTally, is_in_turns,
    tallied_by,
};
pub use tree::{MovedSlots, Node, decode_tree, decode_tree_bare};
pub use turns::{
    DrillDown, FIRST_STRETCH, Flag, RegionTurns, STRETCH, Stretches, ToldNode, TurnLengths, flag,
};
