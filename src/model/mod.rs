//! What each CPU can count, as data: the rows that the build makes from the texts of cores. Adding a CPU is adding a text.
#![forbid(unsafe_code)]

pub(crate) mod deep;
mod fingerprint;
mod list;
pub(crate) mod metrics;
pub(crate) mod perf_metrics;
mod place;
pub(crate) mod sums;
mod texts;
pub(crate) mod tree;

use crate::options;
use crate::sys::cpu::{self, Identity};
pub use deep::{
    Bottleneck, Bounded, CompanionMetric, CountPlace, CountedCompanions, DEEPEST_PUBLISHED, DeepGroup,
    DeepTree, GivenMetric, GivenMetrics, LocatingEvent, MOST_NODES_IN_TURNS, MOST_TURNS, PublishedNames,
    RegionTurn, TimedEvent, companions, counted_companions, deep_tree, deep_tree_of, published_names,
    region_turns,
};
pub(crate) use deep::{row_of_group, row_of_nodes};
pub use fingerprint::fingerprint;
pub(crate) use fingerprint::{MARK, mark, mark_of_table};
pub(crate) use list::names_of_cores;
pub use list::{Core, cores, not_measured};
use metrics::Metric;
use perf_metrics::Correction;
use place::row_at;
pub(crate) use place::{
    counters_at_sight, counters_down_to, has_sums, inputs_down_to, is_corrected, is_sure, levels,
    levels_by_category, move_parts, moved, sources_of_level_1, sums, tree_of,
};
use std::fmt;
use std::sync::{Mutex, OnceLock};
use tree::{NodeRow, Tree};

/// One row: CPUs that count alike.
#[derive(Debug)]
pub(crate) struct Model {
    /// The row's name, for people: its core's, and what of it is counted, in which way.
    pub core: &'static str,
    /// The name of the core, or of both of a hybrid CPU's. Its rows have it in common.
    pub base: &'static str,
    pub variant: Variant,
    /// Vendor string of CPUID; of arm64 the implementer. "": no CPU's.
    pub vendor: &'static str,
    pub family: u32,
    /// Model numbers; empty for the whole family.
    pub models: &'static [u32],
    /// The first stepping that the row is not of.
    pub before: u32,
    /// Pipeline slots per cycle; 0 where no document tells.
    pub slots_per_cycle: u32,
    pub counting: Counting,
    /// Nodes of the core that none of its groups tells.
    pub untold: &'static [&'static str],
    /// What the emulated machine has shown; "" if it did not run this core.
    pub proved: &'static str,
}

/// `Model::before` of rows of all steppings.
pub(crate) const ANY_STEPPING: u32 = u32::MAX;

/// What a row is among those of its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// What a CPU, or its P-cores, are measured by unless they are told otherwise.
    Own,
    /// The same of E-cores beside P-cores.
    ECores,
    /// What both kinds of core of a hybrid CPU count.
    Hybrid,
    /// Deeper levels, below one node.
    Subtree,
    /// Nodes of a deeper tree (`deep`).
    Deep,
    /// Level 1 by a counter less, where each core runs one thread.
    OneThread,
    /// By general-purpose counters, where registers are there, too.
    Counters,
    /// The same without what corrects the others: the intervals have those slots.
    FewerCounters,
    /// The same as they are (TD_FLAG_BARE).
    BareCounters,
    /// The registers without a counter beside them that corrects: the intervals have those slots.
    RegistersAlone,
    /// The registers as they are (TD_FLAG_BARE).
    BareRegisters,
}

/// How a CPU's shares are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counting {
    /// SLOTS and PERF_METRICS, with fields down to this level, the tree of metrics that follow from them, and what is counted beside
    /// them.
    PerfMetrics { level: u32, tree: &'static Tree, moved: &'static [Correction] },
    /// General-purpose counters.
    Counters(&'static Counters),
    /// Not by this version; why.
    None(&'static str),
}

/// General-purpose counters, and the tree of metrics that follow from them.
#[derive(Debug)]
pub(crate) struct Counters {
    pub tree: &'static Tree,
    /// What leads the group: the first of these that the kernel shows, or else the last.
    pub leaders: &'static [Leader],
    /// What is counted besides all slots: the inputs of the tree, in their order.
    pub events: &'static [Event],
    /// The node whose deeper levels are counted, of a core whose group cannot hold all of them; TD_NODE_NONE: of a row that a CPU
    /// is measured by unless it is told otherwise.
    pub subtree: u32,
    /// How many general-purpose counters the core has; 0 where that says nothing of what fits, as SLOTS leads.
    pub general: usize,
    /// Counts near returns that have retired, of whatever function (for samples: `sampling`).
    pub returns: Option<Event>,
    /// Counts time in a general-purpose counter (for samples): cycles, at a constant rate if the core has such. None: a fixed counter does, or none.
    pub clock: Option<Event>,
    pub no_deeper: NoDeeper,
    /// Cycles tell how many slots a thread had only if its core runs no other thread.
    pub alone: bool,
}

/// Why a group tells no deeper level, where the core's maker publishes one; else its text is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoDeeper {
    /// The reason.
    pub why: &'static str,
    /// Where groups of subtrees tell more: what they do not tell either.
    pub besides_subtrees: Option<&'static str>,
}

impl NoDeeper {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.why.is_empty()
    }
}

impl fmt::Display for NoDeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)?;
        match self.besides_subtrees {
            Some(but) => write!(f, "; {}{but}", options::names().in_parts),
            None => Ok(()),
        }
    }
}

/// An event that counts all slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub event: Event,
    /// It counts cycles, each of as many slots as the core is wide.
    pub by_cycle: bool,
    /// It takes a general-purpose counter; else it has a fixed one.
    pub general: bool,
}

/// Cycles, for which Intel's cores have a fixed counter.
#[cfg(test)]
pub(crate) const INTEL_CYCLES: Leader =
    Leader { event: Event::new("cpu-cycles", 0x003c), by_cycle: true, general: false };

/// An event of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name under `events/` in sysfs, or the maker's. Where the kernel shows an event of this name, it is to be this one.
    pub name: &'static str,
    /// What stands for it in perf_event_attr.config, as the core's maker documents it.
    pub config: u64,
    /// In perf_event_attr.config1: the value of the extra register by which it is told from others.
    pub config1: u64,
    /// It has a counter of its own.
    pub fixed: bool,
    /// The one general-purpose counter that counts it, if not all do.
    pub counter: Option<u32>,
    /// It may well count nothing, whatever runs.
    pub may_be_silent: bool,
    /// It counts nothing, in neither mode: it takes the place of an event that the other kind of core has.
    pub never: bool,
}

impl Event {
    pub const fn new(name: &'static str, config: u64) -> Event {
        Event { name, config, config1: 0, fixed: false, counter: None, may_be_silent: false, never: false }
    }
}

/// Of arm64, which has a counter of its own for them.
const ARM64_CYCLES: Event = Event::new("cpu_cycles", 0x11);

/// How many general-purpose counters these events take, led by this one. Of arm64 the first event of cycles has a counter of its own.
pub(crate) fn general_counters(leader: &Leader, events: &[Event]) -> usize {
    let has_its_own = |event: &Event| event.fixed || *event == ARM64_CYCLES && leader.event != *event;
    events.iter().filter(|event| !has_its_own(event)).count() + usize::from(leader.general)
}

/// Cycles per nanosecond that no core exceeds.
const MOST_CYCLES_PER_NS: f64 = 8.0;

/// Slots per nanosecond that no core of this width (0: not known) exceeds.
pub(crate) fn slots_per_ns(slots_per_cycle: u32) -> f64 {
    let width =
        if slots_per_cycle == 0 { perf_metrics::MOST_SLOTS_PER_CYCLE } else { slots_per_cycle.into() };
    width as f64 * MOST_CYCLES_PER_NS
}

/// The whole table. A sample names its row by the place in it, and by what `fingerprint::mark` tells of the row.
const TABLE: &[&[Model]] = &[perf_metrics::ROWS, texts::ROWS];

/// A row, with its place.
type PlacedRow = (u32, &'static Model);

/// The rows of the table, with their places.
fn placed_rows() -> impl Iterator<Item = PlacedRow> {
    (0..).zip(TABLE.iter().copied().flatten())
}

fn rows() -> impl Iterator<Item = &'static Model> {
    placed_rows().map(|(_, row)| row)
}

/// The row of a CPU, with its place. Each td_open asks for it several times, of one CPU: the first one's is remembered. (Whoever finds
/// the lock held looks: in a forked child that is for ever.)
pub(crate) fn of_cpu(cpu: &Identity) -> Option<PlacedRow> {
    static FIRST: Mutex<Option<(Identity, Option<PlacedRow>)>> = Mutex::new(None);
    let found = || {
        let own = places(cpu).filter(|(_, row)| row.variant == Variant::Own && cpu.stepping < row.before);
        own.min_by_key(|(_, row)| row.before)
    };
    let Ok(mut first) = FIRST.try_lock() else { return found() };
    match &*first {
        Some((other, row)) if other == cpu => *row,
        Some(_) => found(),
        None => first.insert((cpu.clone(), found())).1,
    }
}

/// The rows of a CPU's vendor, family and model, with their places.
fn places(cpu: &Identity) -> impl Iterator<Item = (u32, &'static Model)> {
    placed_rows().filter(|(_, row)| {
        row.family == cpu.family
            && (row.models.is_empty() || row.models.contains(&cpu.model))
            && row.vendor == cpu.vendor // (the text last: all rows are looked at, several times for each handle)
    })
}

/// The row of a hybrid CPU's E-cores, with its place.
pub(crate) fn of_e_cores(cpu: &Identity) -> Option<PlacedRow> {
    places(cpu).find(|(_, row)| row.variant == Variant::ECores)
}

/// The row of a hybrid CPU as a whole, with its place, and what its E-cores count. The row is that of what its P-cores count.
pub(crate) fn of_hybrid(cpu: &Identity) -> Option<(u32, &'static Model, &'static Model)> {
    let (place, row) = places(cpu).find(|(_, row)| row.variant == Variant::Hybrid)?;
    let e_cores = texts::E_CORES.iter().find(|e_cores| e_cores.base == row.base)?;
    Some((place, row, e_cores))
}

/// The row of a CPU, or of its P-cores, in another variant.
pub(crate) fn variant_of(cpu: &Identity, variant: Variant) -> Option<PlacedRow> {
    another(of_cpu(cpu)?.1, variant)
}

/// The row of the same core in another variant, with its place.
pub(crate) fn another(row: &Model, variant: Variant) -> Option<PlacedRow> {
    placed_rows().find(|(_, other)| other.variant == variant && other.base == row.base)
}

/// The row of the CPU, or of its P-cores, by general-purpose counters, with its place.
pub(crate) fn by_counters(cpu: &Identity) -> Option<PlacedRow> {
    let own = of_cpu(cpu).filter(|(_, row)| matches!(row.counting, Counting::Counters(_)));
    own.or_else(|| variant_of(cpu, Variant::Counters))
}

/// The row of a CPU with PERF_METRICS, without what is counted beside the registers: as they are (`bare`), or with its slots in the
/// intervals. Its own, if there is no such thing.
pub(crate) fn registers_alone(row: (u32, &'static Model), bare: bool) -> (u32, &'static Model) {
    let variant = if bare { Variant::BareRegisters } else { Variant::RegistersAlone };
    another(row.1, variant).unwrap_or(row)
}

/// Whether the core of this name has in its intervals what the published metrics correct, as nothing counts it.
#[must_use]
pub fn is_bounded(core: &str) -> bool {
    of_core(core).is_some_and(|place| !is_sure(place))
}

/// The rows of the same core that count the deeper levels of a node each.
fn subtrees(row: &Model) -> impl Iterator<Item = &'static Model> {
    rows().filter(move |other| other.variant == Variant::Subtree && other.base == row.base)
}

/// The deepest level of which the group of some subtree fits, led so, if so many general-purpose counters are taken by others; 0: none fits.
pub(crate) fn level_of_parts(row: &Model, leader: &Leader, taken: usize) -> u32 {
    let fits = |part: &&Model| match part.counting {
        Counting::Counters(counters) => {
            counters.general == 0 || general_counters(leader, counters.events) + taken <= counters.general
        }
        _ => false,
    };
    subtrees(row).filter(fits).map(Model::levels).max().unwrap_or(0)
}

/// The row of the same core that counts the deeper levels of this node: of this node alone, or else the only one that tells any of them, if
/// that tells each child of the node; or else the group of this CPU's deeper tree that tells the most of its children.
pub(crate) fn with_subtree(row: &Model, node: u32) -> Option<PlacedRow> {
    if node == metrics::TD_NODE_NONE {
        return None;
    }
    let counts = |other: &&Model| {
        let Some(tree) = tree_of_row(other) else { return false };
        let mut children = tree.nodes.iter().filter(|child| child.parent == node).peekable();
        let deepest = |child: &&NodeRow| child.level == other.levels() && child.is_measured(child.level);
        children.peek().is_some()
            && children.all(|child| child.is_measured(child.level))
            && tree.nodes.iter().filter(deepest).any(|child| tree.is_below(child, node))
    };
    let exact = subtrees(row).find(|other| other.subtree() == node);
    let mut others = subtrees(row).filter(counts);
    let of_table = exact.or_else(|| others.next().filter(|_| others.next().is_none()));
    of_table.map_or_else(|| deep::row_below(row, node), |row| named(row.core))
}

/// The row of the same core, whole or of a subtree, that counts these nodes, and the most of those below them.
///
/// # Errors
/// Why there is none.
fn row_with(own: &'static Model, nodes: &[Metric]) -> std::result::Result<PlacedRow, String> {
    let told = |row: &&Model, of: &dyn Fn(&NodeRow) -> bool| {
        let measured = |node: &&NodeRow| of(node) && node.is_measured(row.levels());
        tree_of_row(row).map_or(0, |tree| tree.nodes.iter().filter(measured).count())
    };
    let has_all =
        |row: &&'static Model| nodes.iter().all(|wanted| told(row, &|node| node.id == wanted.id) > 0);
    let below = |row: &&Model| told(row, &|node| nodes.iter().any(|wanted| wanted.id == node.parent));
    // (of several the first)
    let found = subtrees(own).chain([own]).filter(has_all).collect::<Vec<_>>();
    let found = found.into_iter().rev().max_by_key(below).and_then(|row| named(row.core));
    found.ok_or_else(|| {
        let has = |wanted: &&Metric| {
            subtrees(own).chain([own]).any(|row| told(&row, &|node| node.id == wanted.id) > 0)
        };
        match nodes.iter().find(|wanted| !has(wanted)) {
            Some(none) => format!("its groups do not tell {}", none.title()),
            None => "no group counts all of these nodes".into(),
        }
    })
}

/// The level of the nodes below this one in the row's tree.
pub(crate) fn level_below(row: &Model, node: u32) -> Option<u32> {
    tree_of_row(row)?.nodes.iter().find(|child| child.parent == node).map(|child| child.level)
}

/// What `td_options.subtree` may name on this core, by the names that `topdown stat --subtree` takes; empty: nothing.
pub(crate) fn names_of_subtrees(row: &Model) -> String {
    let names: Vec<_> = subtrees(row).filter_map(|row| Some(metric(row.subtree())?.field())).collect();
    names.join(", ")
}

/// Whether a tree has nodes below this one.
pub(crate) fn has_children(node: u32) -> bool {
    let mut nodes = rows().filter_map(tree_of_row).flat_map(|tree| tree.nodes);
    nodes.any(|row| row.parent == node) || deep::has_children(node)
}

/// The metric that is called so, by perf's name with "tma_" or without, whichever tree has it.
#[must_use]
pub fn metric_of_name(name: &str) -> Option<Metric> {
    let field = name.strip_prefix("tma_").unwrap_or(name);
    metrics::ALL.iter().find(|metric| metric.field() == field).copied()
}

/// The node of a name, as in [`metric_of_name`], if some tree has nodes below it.
#[must_use]
pub fn subtree_of_name(name: &str) -> Option<u32> {
    metric_of_name(name).map(|metric| metric.id).filter(|&node| has_children(node))
}

/// The nodes below each of which a group counts, so that all of them tell this level; none, if one group holds the level, or none does.
fn parts(row: &Model, level: u32) -> Vec<u32> {
    let down_to = || subtrees(row).filter(|part| part.levels() <= level);
    let is_told = down_to().any(|part| part.levels() == level);
    down_to().filter(|_| is_told).map(Model::subtree).collect()
}

/// `parts` of this CPU.
#[must_use]
pub fn subtrees_of_level(level: u32) -> Vec<u32> {
    of_this_cpu().map_or(Vec::new(), |row| parts(row, level))
}

/// The groups that take turns where none holds all of this level: each is named by the node below which it counts, and TD_NODE_NONE stands
/// for the one of no subtree, if that counts more than level 1. Of the core of this name (empty: this CPU); none, if one group holds the level,
/// or none does.
#[must_use]
pub fn groups_of_level(level: u32, core: &str) -> Vec<u32> {
    let row = if core.is_empty() { of_this_cpu() } else { named(core).map(|(_, row)| row) };
    let parts = row.map_or(Vec::new(), |row| parts(row, level));
    let whole = row.filter(|row| row.levels() > 1 && !parts.is_empty()).map(|_| metrics::TD_NODE_NONE);
    whole.into_iter().chain(parts).collect()
}

/// The core whose subtree is counted under this name; or the name itself.
#[must_use]
pub fn core_of_subtree(name: &str) -> &str {
    let is_part = |row: &Model| matches!(row.variant, Variant::Subtree | Variant::Deep);
    named(name).filter(|(_, row)| is_part(row)).map_or(name, |(_, row)| row.base)
}

/// The core whose published metrics are counted under this name, in whichever way; or the name itself.
#[must_use]
pub fn core_as_published(name: &str) -> &str {
    let in_a_way = |row: &Model| {
        use Variant::{Counters, FewerCounters, RegistersAlone};
        matches!(row.variant, Counters | FewerCounters | RegistersAlone)
    };
    named(name).filter(|(_, row)| in_a_way(row)).map_or(name, |(_, row)| row.base)
}

/// The row of the CPU that runs this.
pub(crate) fn of_this_cpu() -> Option<&'static Model> {
    static ROW: OnceLock<Option<&'static Model>> = OnceLock::new();
    *ROW.get_or_init(|| of_cpu(&cpu::identify()).map(|(_, row)| row))
}

/// The row at a place.
pub(crate) fn at(place: u32) -> Option<&'static Model> {
    let of_table = TABLE.iter().copied().flatten().nth(place as usize);
    of_table.or_else(|| deep::row_at(place as usize))
}

/// Place of the row of the core of this name, which can be counted. Places differ from version to version, names do not.
pub(crate) fn of_core(name: &str) -> Option<u8> {
    let is_it = |(_, row): &PlacedRow| row.core == name && tree_of_row(row).is_some();
    let of_table = placed_rows().find(is_it);
    let (place, _) = of_table.or_else(|| deep::load_of(name).and_then(|()| deep::rows().find(is_it)))?;
    place.try_into().ok()
}

/// Whether the CPU that runs this has PERF_METRICS without fields of level 2.
pub(crate) fn has_level_1_only() -> bool {
    of_this_cpu().is_some_and(|row| matches!(row.counting, Counting::PerfMetrics { level: 1, .. }))
}

/// The trees of the table, with the places of their rows. (Tests run beside one another in a process, and some open groups, which have
/// rows behind these.)
#[cfg(test)]
pub(crate) fn trees_by_place() -> impl Iterator<Item = (u8, &'static Tree)> {
    (0..rows().count() as u8).filter_map(|place| Some((place, tree_of(place)?)))
}

/// All trees, some of them more than once.
#[cfg(test)]
fn trees() -> impl Iterator<Item = &'static Tree> {
    trees_by_place().map(|(_, tree)| tree)
}

/// The most nodes and inputs that a tree has, and the most levels that one of a CPU has that there is.
const fn largest() -> (usize, usize, u32) {
    let (mut nodes, mut inputs, mut levels, mut place) = (0, 0, 0, 0);
    while let Some(row) = row_at(place) {
        if let Some(tree) = tree_of_row(row) {
            nodes = if tree.nodes.len() > nodes { tree.nodes.len() } else { nodes };
            inputs = if tree.inputs.len() > inputs { tree.inputs.len() } else { inputs };
            let is_real = !row.models.is_empty();
            levels = if is_real && tree.depth() > levels { tree.depth() } else { levels };
        }
        place += 1;
    }
    (nodes, inputs, levels)
}

/// No tree has more nodes.
pub(crate) const MOST_NODES: usize = largest().0;
/// No tree has more inputs.
pub(crate) const MOST_INPUTS: usize = largest().1;
/// No node of a CPU that there is is deeper.
pub(crate) const DEEPEST: u32 = largest().2;

/// The deepest level of any CPU that there is.
#[must_use]
pub fn deepest_level() -> u32 {
    DEEPEST
}

/// The metric with this id, whichever tree has it.
pub(crate) fn metric(id: u32) -> Option<&'static Metric> {
    metrics::of_id(id)
}

const fn tree_of_row(row: &Model) -> Option<&'static Tree> {
    match row.counting {
        Counting::PerfMetrics { tree, .. } => Some(tree),
        Counting::Counters(counters) => Some(counters.tree),
        Counting::None(_) => None,
    }
}

/// The row of the core of this name, which can be counted, with its place.
pub(crate) fn named(core: &str) -> Option<PlacedRow> {
    let place = of_core(core)?.into();
    Some((place, at(place)?))
}

impl Model {
    /// `Counters::subtree`, of a row that has some.
    pub fn subtree(&self) -> u32 {
        match self.counting {
            Counting::Counters(counters) => counters.subtree,
            _ => metrics::TD_NODE_NONE,
        }
    }

    /// `Counters::no_deeper`, of a row that has it.
    pub fn no_deeper(&self) -> NoDeeper {
        match self.counting {
            Counting::Counters(counters) => counters.no_deeper,
            _ => NoDeeper::default(),
        }
    }

    /// Whether general-purpose counters count its slots.
    pub fn has_counters(&self) -> bool {
        matches!(self.counting, Counting::Counters(_))
    }

    /// Deepest level that is counted; 0 if none is.
    pub fn levels(&self) -> u32 {
        match self.counting {
            Counting::PerfMetrics { level, .. } => level,
            Counting::Counters(counters) => counters.tree.depth(),
            Counting::None(_) => 0,
        }
    }
}

/// Place of the row for a CPU that the table does not know but whose kernel shows PERF_METRICS.
pub(crate) const UNKNOWN: u32 = 0;
/// Slots per cycle of a core that is simulated, which has some width.
pub(crate) fn simulated_width(slots_per_cycle: u32) -> u32 {
    if slots_per_cycle == 0 { 8 } else { slots_per_cycle }
}

/// Place of the row of the simulated PMU.
pub(crate) const SIMULATED: u32 = 1;

#[cfg(test)]
mod tests;
