//! What takes turns to count a level that no group holds, and which of the groups have a turn: all of them, or those of the children of
//! nodes that are flagged.
#![forbid(unsafe_code)]

use super::companions;
use super::levels::{DEEPEST, LevelTrial, NO_ROOM, only_p_cores};
use super::metric_files::{self, MetricFiles};
use crate::outcome::{Failure, failed};
use crate::{say, simulation};
use std::rc::Rc;
use topdown::{
    Bottleneck, Bounded, CompanionMetric, CountedCompanions, DeepTree, Flag, Node, Rotation, TD_NODE_NONE,
    TD_UNIT_SLOTS, TimedEvent, TurnPart, counted_companions, deep_tree, flag, metric,
};
use topdown_report::model::{BottleneckFigure, CompanionFigure, Finding};
use topdown_report::{Format, NodeKind, ShareInterval};

/// The name of `--metrics` that asks for all retire latencies.
const LATENCY: &str = "latency";

/// Groups that take turns beside the one of whole levels; none: that counts all.
#[derive(Clone, Debug, Default)]
pub struct TurnPlan {
    pub parts: Vec<TurnPart>,
    /// They have turns where the nodes above theirs are flagged.
    pub drills: bool,
    /// Companion figures to be told, and nodes that follow from retire latencies.
    pub metrics: Rc<Vec<CompanionMetric>>,
    /// Events whose retire latency is told.
    pub timed: Vec<TimedEvent>,
    /// What says how long it is.
    pub latencies: LatencyMode,
    /// The level that is counted in place of the one that was asked for, which cannot be; that was said.
    pub level_instead: Option<u32>,
}

/// A name of a list.
fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the list has an empty name".into()),
        name => Ok(name.into()),
    }
}

/// Nodes of deeper levels that are wanted.
#[derive(clap::Args, Clone, Default)]
pub struct DeepNodes {
    /// Count these nodes of levels 3 to 6, in turns: perf's names, with or without tma_
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = name, conflicts_with_all = ["drill", "td_level"])]
    pub nodes: Vec<String>,
    /// Drill down: count levels 1 and 2, and below them the children of what is above its threshold, level by level while the program runs
    #[arg(long)]
    pub drill: bool,
    /// Companion figures of the whole, counted in turns: ipc, clock, mpki, branches, frontend, memory, bandwidth, tlb, fp, smt, all, latency (retire
    /// latencies), EVENT:R (of one event), perf's or Arm's names of figures or of groups (`topdown list --metrics`); and all metrics of each FILE (a path with a / in it, or that ends with
    /// .json): JSON of Intel's perfmon, of Linux perf's pmu-events, or of Arm's telemetry
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',', value_parser = name)]
    pub metrics: Vec<String>,
    /// Sample retire latencies (PEBS with timing), and tell the nodes that follow from them; alone: tell the latencies
    #[arg(long)]
    pub record_tpebs: bool,
    /// Where retire latencies are from: samples (mean), or constants that Intel has published of one machine, up to twelve times off: nodes
    /// that follow from these have no bound. perf's min, max and last tell no share, and are refused
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub tpebs_mode: LatencyMode,
}

/// What says how long an event takes to retire.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyMode {
    /// The mean of samples
    #[default]
    Mean,
    /// A published constant
    Published,
    #[value(hide = true)]
    Min,
    #[value(hide = true)]
    Max,
    #[value(hide = true)]
    Last,
}

impl DeepNodes {
    /// Whether companion figures are wanted, retire latencies among them.
    pub fn has_figures(&self) -> bool {
        self.has_latencies() || !self.metrics.is_empty()
    }

    /// Whether all retire latencies are wanted, or all nodes that are named and follow from them.
    fn has_latencies(&self) -> bool {
        self.record_tpebs || self.tpebs_mode == LatencyMode::Published
    }

    /// That nothing of it is asked of a simulated PMU.
    ///
    /// # Errors
    /// Something is.
    pub fn refuse_simulated(&self) -> Result<(), String> {
        let asked = [
            (self.drill, "--drill"),
            (!self.nodes.is_empty(), "--nodes"),
            (!self.metrics.is_empty(), "--metrics"),
            (self.has_latencies(), "--record-tpebs, --tpebs-mode"),
        ];
        match asked.iter().find(|(is_asked, _)| *is_asked) {
            Some((_, option)) => {
                Err(simulation::refused(option, "counts none of levels 3 to 6, nor other figures"))
            }
            None => Ok(()),
        }
    }

    /// Whether what is wanted has a place in reports of this format.
    ///
    /// # Errors
    /// It has none.
    pub fn check_format(&self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Csv | Format::Trace | Format::Parquet if self.has_figures() => Err(failed(
                "--metrics, --record-tpebs: a text, .json and .html have companion figures, other files have no place for them",
            )),
            _ => Ok(()),
        }
    }
}

impl TurnPlan {
    /// What counts what is wanted; no parts, if one group does, or none here (`td_open` says why). Of a level that cannot be counted here the
    /// deepest above it is, and a line says so.
    ///
    /// # Errors
    /// A node is none, or cannot be counted here.
    pub fn of(level: Option<u32>, wanted: &DeepNodes, trial: &LevelTrial) -> Result<TurnPlan, Failure> {
        let subtree = |subtree| TurnPart { subtree, group: 0 };
        let own = |level| topdown::subtrees_of_level(level).into_iter().map(subtree);
        if let LatencyMode::Min | LatencyMode::Max | LatencyMode::Last = wanted.tpebs_mode {
            return Err(failed(
                "--tpebs-mode: the smallest, the largest or the last latency of an event tells no share of a node: take mean (which has \
                 an interval), or published",
            ));
        }
        let of_nodes = wanted.drill || !wanted.nodes.is_empty();
        let level = match level {
            None if of_nodes => DEEPEST,
            None if !wanted.has_figures() => return Ok(TurnPlan::default()),
            level => level.unwrap_or(0),
        };
        if wanted.has_figures() {
            only_p_cores(trial.cpus).map_err(failed)?;
        }
        let instead = if of_nodes || level < 2 { None } else { level_instead(level, trial) };
        let level = instead.unwrap_or(level);
        let held: Vec<TurnPart> = own(level).collect();
        let tree = deep_tree().filter(|_| level > 2 && held.is_empty());
        if of_nodes && tree.is_none() {
            return Err(failed(
                "--drill, --nodes: no tree with thresholds is published for this CPU, or its core is not counted; --td-level takes the levels \
                 that it has",
            ));
        }
        if tree.is_some() {
            only_p_cores(trial.cpus).map_err(failed)?; // (of the E-cores' slots the tree says nothing)
        }
        let timed_nodes = tree.map_or(Vec::new(), |tree| timed_nodes(tree, level, wanted));
        let of_levels: Vec<TurnPart> = match tree {
            Some(tree) => own(2).chain(deep_parts(tree, level, &wanted.nodes, &timed_nodes)?).collect(),
            None => held,
        };
        // (and one of whole levels)
        let room = Rotation::most_groups().saturating_sub(of_levels.len() + 1);
        let CountedCompanions { metrics, timed } = companions_of(wanted, &timed_nodes, trial.kernel, room)?;
        let of_metrics = companions::groups_of(&metrics).into_iter();
        let of_metrics = of_metrics.map(|group| TurnPart { subtree: TD_NODE_NONE, group });
        let parts = of_levels.into_iter().chain(of_metrics).collect();
        Ok(TurnPlan {
            parts,
            drills: wanted.drill,
            metrics: Rc::new(metrics),
            timed,
            latencies: wanted.tpebs_mode,
            level_instead: instead,
        })
    }
}

/// The level that is counted if this one cannot be, which a line says; None: it can be, or none can, and who opens it says why.
fn level_instead(level: u32, trial: &LevelTrial) -> Option<u32> {
    let reached = trial.reached(level).ok()?;
    say(&reached.remark(level)?);
    Some(reached.level)
}

/// The nodes down to this level, or those that are named, that follow from retire latencies, where these are sampled.
fn timed_nodes(tree: &DeepTree, level: u32, wanted: &DeepNodes) -> Vec<u32> {
    let named: Vec<u32> =
        wanted.nodes.iter().filter_map(|name| topdown::metric_of_name(name)).map(|node| node.id).collect();
    let is_wanted = |id: &u32| tree.level(*id) <= level && (wanted.nodes.is_empty() || named.contains(id));
    tree.timed().filter(|id| wanted.has_latencies() && is_wanted(id)).collect()
}

/// What counts a tree down to this level, or these of its nodes, if there are some.
fn deep_parts(
    tree: &DeepTree,
    level: u32,
    nodes: &[String],
    timed: &[u32],
) -> Result<Vec<TurnPart>, Failure> {
    let is_timed =
        |name: &str, ids: &[u32]| topdown::metric_of_name(name).is_some_and(|node| ids.contains(&node.id));
    let all_timed: Vec<u32> = tree.timed().collect();
    let id_of = |name: &String| {
        let remedy = if is_timed(name, &all_timed) { "; --record-tpebs samples it" } else { "" };
        tree.node_of_name(name).map_err(|why| failed(format!("--nodes: {why}{remedy}")))
    };
    let counted = nodes.iter().filter(|name| !is_timed(name, timed));
    let ids = counted.map(id_of).collect::<Result<Vec<u32>, _>>()?;
    if ids.is_empty() && !nodes.is_empty() {
        return Ok(Vec::new()); // (all follow from retire latencies)
    }
    let groups = tree.groups_of(level, &ids).into_iter();
    let parts = groups.map(|group| TurnPart { subtree: TD_NODE_NONE, group: group.number });
    let parts: Vec<TurnPart> = parts.collect();
    if parts.is_empty() {
        say(&format!("levels 3 to 6 are not counted: {NO_ROOM}"));
    }
    Ok(parts)
}

/// The companion figures that are wanted, those of the files among them, and these nodes, in so many groups at most.
fn companions_of(
    wanted: &DeepNodes,
    nodes: &[u32],
    counts_kernel: bool,
    most_groups: usize,
) -> Result<CountedCompanions, Failure> {
    let refused = |what: String| failed(format!("--metrics: {what}"));
    let (paths, names): (Vec<String>, Vec<String>) =
        wanted.metrics.iter().cloned().partition(|item| metric_files::is_file(item));
    let files = MetricFiles::read(paths, counts_kernel)?;
    // (of nodes that are named it samples what these take)
    let has_all = wanted.has_latencies() && wanted.nodes.is_empty();
    let names: Vec<String> = names.into_iter().chain(has_all.then(|| LATENCY.into())).collect();
    let counted = counted_companions(&names, nodes, files.given(), most_groups).ok_or_else(|| {
        refused("there is no room for the groups of so many figures: name fewer, or a file of fewer".into())
    })?;
    if !wanted.has_figures() {
        return Ok(counted);
    }
    let all = &counted.metrics;
    let built_in = topdown::companions();
    files.check(all)?;
    if wanted.has_latencies() && counted.timed.is_empty() {
        let what = if wanted.nodes.is_empty() {
            "no node of this CPU's tree follows"
        } else {
            "none of these nodes follows"
        };
        return Err(failed(format!(
            "--record-tpebs, --tpebs-mode: {what} from retire latencies, no counter is left for them beside level 1, or other figures have all turns"
        )));
    }
    let has_names = !names.is_empty() || !wanted.metrics.is_empty();
    if all.is_empty() && has_names && built_in.is_empty() {
        return Err(refused(
            "no companion figures are published for this CPU, or its core is not counted".into(),
        ));
    }
    if all.iter().any(|one| one.untold.is_empty()) && companions::groups_of(all).is_empty() {
        return Err(refused(
            "none of these figures takes an event, which is what is counted: name one that does".into(),
        ));
    }
    if wanted.tpebs_mode == LatencyMode::Published
        && counted.timed.iter().all(|event| event.latency.is_none())
    {
        return Err(failed(
            "--tpebs-mode published: no retire latencies are published for this CPU; --record-tpebs samples them",
        ));
    }
    files.say_replaced(&built_in);
    for name in names.iter().filter(|name| *name != "all" && !(has_all && *name == LATENCY)) {
        let asked: Vec<_> = all.iter().filter(|one| one.is_called(name)).collect();
        let Some(first) = asked.first() else {
            return Err(refused(format!(
                "'{name}' is no companion figure of this CPU, nor a group of them (`topdown list --metrics`)"
            )));
        };
        if asked.iter().all(|one| !one.untold.is_empty()) {
            return Err(refused(format!("'{name}' cannot be counted here: {}", first.untold)));
        }
    }
    Ok(counted)
}

/// The published tree of these nodes, if some of them are of deeper levels.
pub fn tree(nodes: &[Node]) -> Option<String> {
    let tree = deep_tree().filter(|_| nodes.iter().any(|node| node.level > 2))?;
    Some(format!("TMA {}", tree.version))
}

/// The node of this number, as a figure tells it; None: it is none, or was not measured.
pub fn timed_node(id: u32, figure: &CompanionFigure, slots: u64, cycles: u64) -> Option<Node> {
    let tree = deep_tree().filter(|_| id != TD_NODE_NONE)?;
    let value = figure.value?.clamp(0.0, 1.0);
    let unit = tree.unit(id);
    Some(Node {
        size: size_of::<Node>() as u32,
        id,
        parent: tree.parent(id),
        level: tree.level(id),
        unit,
        measured: 1,
        value,
        low: figure.low.unwrap_or(0.0).clamp(0.0, value),
        high: figure.high.unwrap_or(1.0).clamp(value, 1.0),
        running: 1.0,
        whole: if unit == TD_UNIT_SLOTS { slots } else { cycles },
        ..Node::default()
    })
}

/// The nodes of the tree among these.
pub fn of_tree(mut nodes: Vec<Node>) -> Vec<Node> {
    let tree = deep_tree().filter(|_| nodes.iter().any(|node| node.level > 2));
    nodes.retain(|node| !tree.is_some_and(|tree| tree.is_part(node.id)));
    nodes
}

/// The bottleneck view of what was measured, the largest first. None, if that was less than half of what it takes, but where a program was
/// drilled down: there what was not looked at is a part of what is small.
pub fn bottlenecks(nodes: &[Node], is_drilled: bool) -> Vec<BottleneckFigure> {
    let Some(tree) = deep_tree() else { return Vec::new() };
    let told = |id: u32| {
        let node = nodes.iter().find(|node| node.id == id && node.measured != 0);
        node.map(|node| Bounded { value: node.value, low: node.low, high: node.high })
    };
    let taken = tree.bottleneck_nodes();
    let measured = taken.iter().filter(|id| told(**id).is_some()).count();
    if measured == 0 || !is_drilled && measured < taken.len() / 2 {
        return Vec::new();
    }
    let mut all = tree.bottlenecks(&told);
    all.sort_by(|a, b| b.share.value.total_cmp(&a.share.value));
    let figure = |Bottleneck { name, share: Bounded { value, low, high }, above }| {
        BottleneckFigure::new(name, ShareInterval { value, low, high }, above)
    };
    all.into_iter().map(figure).collect()
}

/// What was found: the nodes that are flagged and below which none is, the largest first. (One whose interval alone is above the threshold
/// is not.) Of nodes that were named those above them may not have been counted; a program that was drilled down was looked at where it was
/// worth it.
pub fn found(nodes: &[Node], is_drilled: bool) -> Vec<Finding> {
    let uncounted = if is_drilled { Flag::Not } else { Flag::MayBe };
    let Some(tree) = deep_tree() else { return Vec::new() };
    let is_above = |node: &Node| tree.threshold(node.id).is_none_or(|above| node.value > above);
    let is_flagged = |node: &&Node| is_above(node) && flag(tree, node.id, nodes, uncounted) > Flag::Not;
    let flagged: Vec<&Node> = nodes.iter().filter(is_flagged).collect();
    let is_leaf = |node: &&&Node| node.level > 2 && !flagged.iter().any(|other| other.parent == node.id);
    let mut leaves: Vec<&Node> = flagged.iter().filter(is_leaf).copied().collect();
    leaves.sort_by(|a, b| b.value.total_cmp(&a.value));
    leaves.into_iter().filter_map(|leaf| finding(tree, leaf, nodes, uncounted)).collect()
}

fn finding(tree: &DeepTree, leaf: &Node, nodes: &[Node], uncounted: Flag) -> Option<Finding> {
    let kind = NodeKind::of(leaf)?;
    let mut above = Vec::new();
    let mut id = tree.parent(leaf.id);
    while let Some(metric) = metric(id) {
        let share = nodes.iter().find(|node| node.id == id && node.measured != 0).map(|node| node.value);
        above.insert(0, (metric.title(), share));
        id = tree.parent(id);
    }
    let name = kind.metric.field();
    Some(Finding {
        node: leaf.name().into(),
        share: ShareInterval { value: leaf.value, low: leaf.low, high: leaf.high },
        unit: kind.unit_name(),
        threshold: tree.threshold(leaf.id).unwrap_or_default(),
        sure: flag(tree, leaf.id, nodes, uncounted) == Flag::Is,
        above,
        meaning: topdown_report::meaning(&kind, leaf.value),
        advice: topdown_report::advice(name).unwrap_or_default().into(),
        locate: tree.samples(tree.located(leaf.id)).map(|event| event.name.to_lowercase()).collect(),
    })
}
