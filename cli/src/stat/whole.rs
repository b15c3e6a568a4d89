//! What groups counted, as a report has it: the whole, and its processes.
#![forbid(unsafe_code)]

use super::companions::{self, WholeCount};
use super::counted::CountedGroups;
use super::drill;
use super::figures::by_pmu;
use super::group::GroupCount;
use super::ipc::IpcCounts;
use super::rows_per::RowsPer;
use super::stretches::CountedStretches;
use super::tasks::{TaskRow, Tasks};
use std::time::Duration;
use topdown::{Error, FEWEST_TURNS, Node, Path, Sum};
use topdown_report::model::{CompanionFigure, Machine, Run};
use topdown_report::{Gaps, OutsideCount, ProcessSums};

/// For the report, of groups that take turns.
/// What is to be known of figures that take constants.
const PUBLISHED_LATENCIES: &str = "retire latencies are constants that Intel has published of one machine, not measured here: what \
                                   follows from them has no bound, and may be several times off (--record-tpebs samples them)";

fn turns_note(stretches: &CountedStretches, is_found: bool) -> String {
    let note = "groups of its parts took turns: what is below level 1 is of a part of the time, which its bound allows for";
    let found = match (stretches.is_drilled() && !is_found, stretches.is_short()) {
        (false, _) => None,
        (true, false) => Some("below level 2 nothing is over its threshold".into()),
        (true, true) => Some(format!(
            "below level 2 nothing was found yet: nodes whose group had fewer than {FEWEST_TURNS} turns are not measured, and a longer run is \
             drilled deeper"
        )),
    };
    let has_constants = stretches.companions.as_ref().is_some_and(|wanted| wanted.has_published_latencies);
    let constants = has_constants.then(|| PUBLISHED_LATENCIES.into());
    let remarks = [Some(note.to_string()), stretches.remark(), found, constants];
    remarks.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// All that was counted since the last reading, for a report, and of it each process, if `tasks` tells. `at_work`: what is counted
/// goes on.
///
/// # Errors
/// Those of `td_read`.
pub fn whole(
    groups: &mut CountedGroups,
    tasks: Option<&Tasks>,
    at_work: bool,
    wall: Duration,
    what: String,
) -> Result<OutsideCount, Error> {
    // (a CPU is there all the time)
    let of_cpus = groups.counts_cpus();
    let enabled_ns = groups.enabled_ns();
    let counted = groups.count(at_work, wall).into_iter().collect::<Result<Vec<_>, _>>()?;
    let (metrics, timed) = companion_figures(&counted, wall)?;
    let count = count_of(&counted, of_cpus, enabled_ns, &timed)?;
    let run = Run { command: what, wall_ns: wall.as_nanos() as u64, metrics, ..count.run };
    let processes =
        tasks.map(|tasks| processes(tasks, &counted, enabled_ns)).transpose()?.unwrap_or_default();
    Ok(OutsideCount { run, processes, ..count })
}

/// Companion figures, if some are to be told, and the nodes that follow from retire latencies. (Of one that was not measured the figure says
/// why.)
fn companion_figures(
    counted: &[GroupCount],
    wall: Duration,
) -> Result<(Vec<CompanionFigure>, Vec<Node>), Error> {
    let none = || Ok((Vec::new(), Vec::new()));
    let kinds = by_pmu(counted)?;
    let in_turns = kinds
        .iter()
        .find_map(|(group, figures)| figures.stretches.as_ref().map(|all| (group, all, &figures.sum)));
    let Some((group, stretches, sum)) = in_turns else { return none() };
    let Some(wanted) = &stretches.companions else { return none() };
    let between = sum.time_enabled_ns.saturating_sub(sum.time_running_ns).max(stretches.gap_ns) as f64;
    let running = sum.time_running_ns.max(1) as f64;
    // (of a stretch's time, too, some is the kernel's, as it begins and ends: taken to be as much as passes between two)
    let most_slots_per_ns = stretches.most_slots_per_ns() * (1.0 + between / running);
    let whole = WholeCount {
        turns: stretches.count(),
        slots: stretches.slots as f64,
        is_weighted: stretches.is_drilled(),
        uncounted: between * most_slots_per_ns,
        likely_uncounted: between * stretches.slots as f64 / running,
        slots_per_cycle: f64::from(group.info.slots_per_cycle.max(1)),
        wall,
    };
    let cycles = stretches.slots / u64::from(group.info.slots_per_cycle.max(1));
    let (mut figures, mut nodes) = (Vec::new(), Vec::new());
    for (companion, figure) in
        wanted.metrics.iter().zip(companions::figures(wanted, &stretches.counts, &whole))
    {
        match drill::timed_node(companion.node, &figure, stretches.slots, cycles) {
            Some(node) => nodes.push(node),
            None => figures.push(figure),
        }
    }
    Ok((figures, nodes))
}

/// Nodes with others, parents before children.
fn with(mut nodes: Vec<Node>, more: &[Node]) -> Vec<Node> {
    nodes.extend_from_slice(more);
    nodes.sort_by_key(|node| (node.level, node.parent, node.id));
    nodes
}

/// Each process by itself, and the rest.
fn processes(
    tasks: &Tasks,
    counted: &[GroupCount],
    enabled_ns: Option<u64>,
) -> Result<Vec<ProcessSums>, Error> {
    let mut rows = tasks.figures(counted, enabled_ns.unwrap_or(0), RowsPer::Process)?;
    rows.pop(); // all
    let sums = |row: &TaskRow| row.kinds.iter().map(|(_, figures)| figures.sum).collect();
    Ok(rows.iter().map(|row| (row.id, row.name.clone(), sums(row))).collect())
}

/// What was counted, for a report, but for what it is of and how long that took. `enabled_ns`: `Groups::enabled_ns`; `timed`: nodes that follow
/// from retire latencies.
///
/// # Errors
/// Those of `td_sum_add`.
pub fn count_of(
    counted: &[GroupCount],
    of_cpus: bool,
    enabled_ns: Option<u64>,
    timed: &[Node],
) -> Result<OutsideCount, Error> {
    let (mut parts, mut nodes, mut all): (_, _, Option<IpcCounts>) = (Vec::new(), None, None);
    let (mut gaps, mut findings, mut bottlenecks) = (Gaps::default(), Vec::new(), Vec::new());
    for (group, mut figures) in by_pmu(counted)? {
        // (it is not read at once with the groups)
        let enabled_ns = enabled_ns.map(|ns| ns.max(figures.sum.time_running_ns));
        figures.sum.time_enabled_ns = enabled_ns.unwrap_or(figures.sum.time_enabled_ns);
        let info = &group.info;
        if let Some(stretches) = &figures.stretches {
            (nodes, gaps) = (Some(drill::of_tree(with(stretches.nodes(0.0), timed))), stretches.gaps());
            findings = drill::found(&with(figures.nodes(), timed), stretches.is_drilled());
            bottlenecks = drill::bottlenecks(&with(figures.all_nodes(), timed), stretches.is_drilled());
        }
        let machine = Machine {
            cpu: info.cpu.clone(),
            core: info.core.clone(),
            pmu: info.pmu.clone(),
            path: if info.path == Path::Simulated { Path::Simulated } else { Path::Read },
            level: nodes.iter().flatten().map(|node: &Node| node.level).max().unwrap_or(info.level),
            slots_per_cycle: info.slots_per_cycle,
            max_error: 0.0,
            max_overhead: 0.0,
            // (nobody expects that counters of others are read another way)
            note: match &figures.stretches {
                Some(stretches) => turns_note(stretches, !findings.is_empty()),
                None if nodes.is_some() || info.notes_path => String::new(),
                None => info.note.to_string(),
            },
        };
        all = match all {
            None if parts.is_empty() => figures.ipc,
            all => all.zip(figures.ipc).map(|(all, more)| all.plus(&more)),
        };
        parts.push((machine, figures.sum));
    }
    let enabled = |(_, sum): &(Machine, Sum)| sum.time_enabled_ns;
    let run = Run {
        cpu_ns: parts.iter().map(enabled).max().filter(|_| !of_cpus).unwrap_or(0),
        ipc: all.and_then(|all| all.ipc()),
        findings,
        bottlenecks,
        tree: nodes.as_deref().and_then(drill::tree).unwrap_or_default(),
        ..Run::default()
    };
    Ok(OutsideCount { run, parts, nodes, gaps, of_cpus, ..OutsideCount::default() })
}
