//! The ranks of a job, merged: each, those of a host, and each region over all of them.
#![forbid(unsafe_code)]

use super::places::{All, ItemTally, total};
use super::{CountedPart, OutsideCount};
use crate::RankPart;
use crate::cpu_time::{CpuTime, CpuUse};
use crate::model::{HostOfRanks, OverRanks, Rank, RankEnd, Run};
use crate::steps::Means;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that are named where a run's is.
const FEW: usize = 3;

/// The job as one run: its first rank's command, from the first start on, CPU time of all, and of ends the first that is a failure.
pub(super) fn run_of(ranks: &[RankPart], outside: &[Option<OutsideCount>], means: &Means) -> Run {
    let runs = || outside.iter().flatten().map(|count| &count.run);
    let hosts: BTreeSet<&str> = ranks.iter().map(|part| part.host.as_str()).collect();
    let mut host = hosts.iter().take(FEW).copied().collect::<Vec<_>>().join(", ");
    if hosts.len() > FEW {
        host += &format!(" and {} more", hosts.len() - FEW);
    }
    let ended = runs().find(|run| run.signal.is_some()).or_else(|| runs().max_by_key(|run| run.status));
    let sources: BTreeSet<&str> =
        runs().map(|run| run.sources.as_str()).filter(|one| !one.is_empty()).collect();
    let times = runs().map(|run| run.cpu.time).collect::<Option<Vec<CpuTime>>>();
    let sum_of = |times: Vec<CpuTime>| {
        let add = |sum: CpuTime, one: CpuTime| CpuTime {
            user_ns: sum.user_ns + one.user_ns,
            system_ns: sum.system_ns + one.system_ns,
        };
        times.into_iter().fold(CpuTime::default(), add)
    };
    Run {
        command: ranks.first().map(|part| part.command.clone()).unwrap_or_default(),
        host,
        started: runs()
            .map(|run| &run.started)
            .filter(|one| !one.is_empty())
            .min()
            .cloned()
            .unwrap_or_default(),
        status: ended.and_then(|run| run.status),
        signal: ended.and_then(|run| run.signal),
        wall_ns: runs().map(|run| run.wall_ns).max().unwrap_or(0),
        cpu_ns: runs().map(|run| run.cpu_ns).sum(),
        cpu: CpuUse {
            total_ns: runs().map(|run| run.cpu.total_ns).sum(),
            time: times.map(sum_of),
            counts_kernel: runs().all(|run| run.cpu.counts_kernel),
            refused: runs().map(|run| run.cpu.refused.clone()).max().unwrap_or_default(),
        },
        lost_ns: runs().map(|run| run.lost_ns).sum(),
        outlived: if runs().any(|run| run.outlived == Some(true)) {
            Some(true)
        } else {
            runs().map(|run| run.outlived).min().flatten()
        },
        sources: sources.into_iter().collect::<Vec<_>>().join("; "),
        sandboxed: runs().any(|run| run.sandboxed),
        means: means.clone(),
        ..Run::default()
    }
}

/// Each rank, and those of each host.
pub(super) fn ranks_of(ranks: &[RankPart], parts: &[CountedPart], all: All) -> (Vec<Rank>, Vec<HostOfRanks>) {
    let mut hosts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (k, part) in ranks.iter().enumerate() {
        hosts.entry(&part.host).or_default().push(k);
    }
    let rank = |(of, part): (&RankPart, &CountedPart)| {
        let (ended, status, signal) = match of.end {
            RankEnd::Status(status) => ("exited", Some(status), None),
            RankEnd::Exited => ("exited", None, None),
            RankEnd::Signal(signal) => ("killed", None, Some(signal)),
            RankEnd::Runs => ("runs", None, None),
            RankEnd::Lost => ("lost", None, None),
        };
        Rank {
            rank: of.rank,
            host: of.host.clone(),
            ended,
            status,
            signal,
            wall_ns: None,
            cpu_ns: None,
            processes: part.processes,
            item: part.tally().item_of(all),
        }
    };
    // (slots of those that have some, as of the whole)
    let has_slots = |k: &&usize| parts[**k].tally().inclusive.elapsed.is_none();
    let host = |(host, own): (&str, Vec<usize>)| {
        let counted: Vec<&usize> = own.iter().filter(has_slots).collect();
        let shown = if counted.is_empty() { own.iter().collect() } else { counted };
        HostOfRanks {
            host: host.into(),
            ranks: own.iter().map(|k| ranks[*k].rank).collect(),
            item: total(shown.into_iter().map(|k| parts[*k].tally().clone())).item_of(all),
        }
    };
    (ranks.iter().zip(parts).map(rank).collect(), hosts.into_iter().map(host).collect())
}

/// How a region's time divides among ranks; `tallies`: by place of the rank.
pub(super) fn over_ranks(tallies: &BTreeMap<usize, ItemTally>, ranks: &[RankPart]) -> Option<OverRanks> {
    if ranks.is_empty() {
        return None;
    }
    let ns = |k: usize| {
        let of = tallies.get(&k).map(|tally| &tally.inclusive);
        of.map_or(0, |of| of.elapsed.map_or(of.time_ns, |elapsed| elapsed.wall_ns.unwrap_or(0)))
    };
    let (mut slowest, mut fastest) = (0, 0);
    for k in 0..ranks.len() {
        slowest = if ns(k) > ns(slowest) { k } else { slowest };
        fastest = if ns(k) < ns(fastest) { k } else { fastest };
    }
    let sum_ns: u64 = (0..ranks.len()).map(ns).sum();
    let mean = sum_ns as f64 / ranks.len() as f64;
    let max_ns = ns(slowest);
    Some(OverRanks {
        ranks: tallies.len(),
        sum_ns,
        min_ns: ns(fastest),
        mean_ns: mean as u64,
        max_ns,
        slowest: ranks[slowest].rank,
        fastest: ranks[fastest].rank,
        imbalance: if max_ns > 0 { 1.0 - mean / max_ns as f64 } else { 0.0 },
        of_slowest: tallies.get(&slowest).unwrap_or(&ItemTally::NONE).item().inclusive,
    })
}
