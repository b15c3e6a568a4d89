//! What a rank says of its run besides its tables: JSON, for who merges the ranks with the same version.
#![forbid(unsafe_code)]

use super::bytes::{digits_of, of_digits};
use crate::account::Gaps;
use crate::cpu_time::{CpuTime, CpuUse};
use crate::merge::OutsideCount;
use crate::model::{Machine, Run};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use topdown::Path;

/// A rank, from its beginning on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RankFile {
    /// Of this library: another one's figures may be others.
    pub version: String,
    pub rank: u32,
    pub size: u32,
    pub host: String,
    pub command: String,
    /// Where the tables are while it runs, on its host.
    pub tables: PathBuf,
    /// None: it runs, or ended without leaving anything.
    pub ended: Option<EndedRank>,
}

/// What was seen of a rank, and counted from outside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndedRank {
    pub started: String,
    pub pid: Option<i32>,
    pub status: Option<u8>,
    pub signal: Option<i32>,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub total_ns: Option<u64>,
    pub modes_ns: Option<(u64, u64)>,
    pub counts_kernel: bool,
    pub refused: String,
    pub lost_ns: u64,
    pub outlived: Option<bool>,
    pub sources: String,
    pub sandboxed: bool,
    pub trouble: String,
    parts: Vec<CountedPart>,
    nodes: Option<Vec<String>>,
    /// Time that was not counted, and at most how many slots were in a nanosecond of it; None: any number. (JSON has no infinity.)
    gaps: (u64, Option<f64>),
    of_cpus: bool,
    level_2_of_threads: bool,
}

/// What one kind of core counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CountedPart {
    cpu: String,
    core: String,
    pmu: String,
    path: u32,
    level: u32,
    slots_per_cycle: u32,
    max_error: f64,
    max_overhead: f64,
    note: String,
    sum: String,
}

impl EndedRank {
    /// `trouble`: why nothing was measured; empty: it was.
    pub fn new(outside: &OutsideCount, trouble: &str) -> EndedRank {
        let run = &outside.run;
        let part = |(machine, sum): &(Machine, topdown::Sum)| CountedPart {
            cpu: machine.cpu.clone(),
            core: machine.core.clone(),
            pmu: machine.pmu.clone(),
            path: machine.path as u32,
            level: machine.level,
            slots_per_cycle: machine.slots_per_cycle,
            max_error: machine.max_error,
            max_overhead: machine.max_overhead,
            note: machine.note.clone(),
            sum: digits_of(sum),
        };
        EndedRank {
            started: run.started.clone(),
            pid: run.pid,
            status: run.status,
            signal: run.signal,
            wall_ns: run.wall_ns,
            cpu_ns: run.cpu_ns,
            total_ns: run.cpu.total_ns,
            modes_ns: run.cpu.time.map(|time| (time.user_ns, time.system_ns)),
            counts_kernel: run.cpu.counts_kernel,
            refused: run.cpu.refused.clone(),
            lost_ns: run.lost_ns,
            outlived: run.outlived,
            sources: run.sources.clone(),
            sandboxed: run.sandboxed,
            trouble: trouble.into(),
            parts: outside.parts.iter().map(part).collect(),
            nodes: outside.nodes.as_ref().map(|nodes| nodes.iter().map(digits_of).collect()),
            gaps: (outside.gaps.ns, Some(outside.gaps.most_slots_per_ns).filter(|most| most.is_finite())),
            of_cpus: outside.of_cpus,
            level_2_of_threads: outside.level_2_of_threads,
        }
    }

    /// Whether it ended as no rank should: the others may be killed for it.
    pub fn failed(&self) -> bool {
        self.signal.is_some() || self.status.is_some_and(|status| status != 0)
    }

    /// What was counted from outside, and of the run what adds up. None: this is not what the library wrote.
    pub fn outside(&self, of: &RankFile) -> Option<OutsideCount> {
        let part = |part: &CountedPart| {
            let path = [Path::Rdpmc, Path::Read, Path::Simulated]
                .into_iter()
                .find(|path| *path as u32 == part.path)?;
            let machine = Machine {
                cpu: part.cpu.clone(),
                core: part.core.clone(),
                pmu: part.pmu.clone(),
                path,
                level: part.level,
                slots_per_cycle: part.slots_per_cycle,
                max_error: part.max_error,
                max_overhead: part.max_overhead,
                note: part.note.clone(),
            };
            Some((machine, of_digits(&part.sum)?))
        };
        let nodes = match &self.nodes {
            Some(nodes) => Some(nodes.iter().map(|node| of_digits(node)).collect::<Option<Vec<_>>>()?),
            None => None,
        };
        let run = Run {
            command: of.command.clone(),
            host: of.host.clone(),
            started: self.started.clone(),
            pid: self.pid,
            status: self.status,
            signal: self.signal,
            wall_ns: self.wall_ns,
            cpu_ns: self.cpu_ns,
            cpu: CpuUse {
                total_ns: self.total_ns,
                time: self.modes_ns.map(|(user_ns, system_ns)| CpuTime { user_ns, system_ns }),
                counts_kernel: self.counts_kernel,
                refused: self.refused.clone(),
            },
            lost_ns: self.lost_ns,
            outlived: self.outlived,
            sources: self.sources.clone(),
            sandboxed: self.sandboxed,
            ..Run::default()
        };
        Some(OutsideCount {
            run,
            parts: self.parts.iter().map(part).collect::<Option<_>>()?,
            nodes,
            gaps: Gaps { ns: self.gaps.0, most_slots_per_ns: self.gaps.1.unwrap_or(f64::INFINITY) },
            of_cpus: self.of_cpus,
            level_2_of_threads: self.level_2_of_threads,
            ..OutsideCount::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_read_as_it_was_whatever_it_is() {
        for most in [0.0, 4.5, f64::INFINITY] {
            let gaps = Gaps { ns: 7, most_slots_per_ns: most };
            let outside = OutsideCount { gaps, of_cpus: true, ..OutsideCount::default() };
            let ended = Some(EndedRank::new(&outside, "why"));
            let text = serde_json::to_string(&RankFile { rank: 3, ended, ..RankFile::default() }).unwrap();
            let file: RankFile = serde_json::from_str(&text).unwrap();
            let read = file.ended.as_ref().unwrap().outside(&file).unwrap();
            assert_eq!((read.gaps.ns, read.gaps.most_slots_per_ns, read.of_cpus), (7, most, true));
        }
    }
}
