//! What a profile says in the end: the verdict, where most of it is, and what to run next.
#![forbid(unsafe_code)]

use super::{Heading, in_module, remarks};
use crate::profile::{CallStack, FunctionFigures, Profile, ProfiledCore, ProfiledFunction};
use crate::records::CallGraph;
use topdown::TD_UNIT_SLOTS;
use topdown_report::nodes::{NodeInterval, NodeKind, NodeTree};
use topdown_report::steps::{KERNEL, Means, Step, steps};
use topdown_report::{ShareInterval, verdict, verdict_names};

/// More of the time than this is most of it.
const MOST: f64 = 0.5;

/// The end of a profile.
pub(super) struct Next {
    pub lines: Vec<String>,
    pub steps: Vec<Step>,
}

/// Those of a function that are told, as reports have them.
pub(super) fn tree(core: &ProfiledCore, figures: &FunctionFigures) -> Option<NodeTree> {
    let told = figures.told(&core.nodes).ok()?;
    let shown = |(node, share): (&topdown::SampledNode, &ShareInterval)| {
        let metric = topdown::metric(node.metric.id)?;
        let kind = NodeKind { metric, parent: node.parent, level: node.level, unit: TD_UNIT_SLOTS };
        Some(NodeInterval { kind, share: *share, whole: 0.0 })
    };
    Some(NodeTree(core.nodes.iter().zip(&told.shares).filter_map(shown).collect()))
}

/// The kind of core on which most ran.
fn main_core(profile: &Profile) -> Option<(usize, &ProfiledCore)> {
    profile.cores.iter().enumerate().max_by_key(|(_, core)| core.all.time_ns)
}

/// The level below the first, of all that ran.
fn level_2(tree: &NodeTree) -> Option<String> {
    let of_level = tree.0.iter().filter(|node| node.kind.level == 2);
    let shares: Vec<String> =
        of_level.map(|node| format!("{} {}", node.kind.metric.title(), node.share)).collect();
    (!shares.is_empty()).then(|| format!("level 2: {}", shares.join(", ")))
}

/// Of time alone, with an interval that reaches so far, nothing is said of one function.
const TOO_WIDE: f64 = 0.25;

/// The function that wastes most, and of what kind that is; of time alone, the one that takes most.
fn first_function(core: &ProfiledCore, function: &ProfiledFunction, is_of_time: bool) -> Option<String> {
    let name = in_module(&function.name, &function.module);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    if is_of_time && function.own.time.error() > TOO_WIDE {
        let bound = 100.0 * function.own.time.error();
        return Some(format!("most time: cannot be told: the bound is {bound:.1} points"));
    }
    if is_of_time {
        return Some(format!("most time: {name}, {} of it", percent(function.own.time.value)));
    }
    let wasted = percent(function.own.wasted(&core.nodes)?);
    Some(format!("most wasted: {name}, {wasted} of the time: {}", verdict(&tree(core, &function.own)?)))
}

/// Of more than this part of the time that new threads may have had, it is said how to see them.
const MUCH_UNSEEN: f64 = 0.1;

/// Functions of a stack, the innermost first, without its process.
fn innermost(stack: &CallStack) -> impl Iterator<Item = &(String, String)> {
    stack.functions().rev().filter(|(_, module)| module != crate::processes::PROCESS)
}

/// Whether frame pointers tell no caller in most of the time. (That of the program's first function is nobody's matter.)
fn lacks_callers(profile: &Profile) -> bool {
    let is_alone = |stack: &CallStack| {
        let mut functions = innermost(stack);
        functions.next().is_some_and(|(name, _)| name != "main") && functions.next().is_none()
    };
    let all: u64 = profile.stacks.values().sum();
    let alone: u64 = profile.stacks.iter().filter(|(stack, _)| is_alone(stack)).map(|(_, ns)| ns).sum();
    profile.callers == CallGraph::FramePointers && alone as f64 > MOST * all as f64
}

/// A function as `--regions` names it, if calls of it go through the dynamic linker: its library is called from another object.
fn hooked(profile: &Profile, function: &ProfiledFunction) -> Option<String> {
    let ProfiledFunction { name, module, .. } = function;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_called = |stack: &CallStack| {
        let mut functions = innermost(stack).skip_while(|(other, of)| other != name || of != module);
        functions.next().is_some()
            && functions.next().is_some_and(|(_, caller)| caller != module && !caller.is_empty())
    };
    let is_hooked =
        module.contains(".so") && name.chars().all(is_plain) && profile.stacks.keys().any(is_called);
    is_hooked.then(|| format!("{module}:{name}"))
}

/// `shows_lines`: the view has lines of functions.
pub(super) fn next(profile: &Profile, heading: &Heading, shows_lines: bool) -> Next {
    let is_of_time = profile.no_slots().is_some();
    let place = main_core(profile).filter(|_| is_of_time || profile.held.is_none());
    let Some((place, core)) = place else { return Next { lines: Vec::new(), steps: Vec::new() } };
    let tree = tree(core, &core.all);
    let function = remarks::listed(profile, place).next();
    let lines = [
        tree.as_ref().map(|tree| format!("verdict: {}", verdict(tree))),
        tree.as_ref().and_then(level_2),
        function.and_then(|function| first_function(core, function, is_of_time)),
    ];
    let mut named = tree.as_ref().map_or(Vec::new(), verdict_names);
    let sampled = profile.held.as_ref().and_then(|held| held.part);
    named.extend(sampled.filter(|part| is_of_time && part.high < 1.0 - MOST).map(|_| KERNEL.into()));
    let call = function.and_then(|function| hooked(profile, function));
    let has_lines = profile.functions.iter().any(|function| !function.lines.is_empty());
    let means = heading.means.cloned().unwrap_or_default();
    let means = if profile.simulated.is_some() { means.without_counters() } else { means };
    let is_command = means.whom.starts_with("-- ");
    let means = Means { call: call.clone().unwrap_or_default(), ..means }
        .and("stops", profile.is_by_stops())
        .and("new", remarks::unseen_part(profile).is_some_and(|part| part > MUCH_UNSEEN))
        // (hooks are there from the start of a command on)
        .and("hooked", call.is_some() && is_command)
        .and("dwarf", has_lines)
        .and("lines", shows_lines)
        .and("no-callers", lacks_callers(profile));
    let after = if is_of_time { "time" } else { "profile" };
    Next { lines: lines.into_iter().flatten().collect(), steps: steps(after, &named, &means) }
}
