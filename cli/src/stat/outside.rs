//! A command that is counted from its exec on, with all that it starts, whole.
#![forbid(unsafe_code)]

use super::group::{Groups, Of, by_pmu};
use super::ipc::{IpcCounts, Kind};
use crate::sys::{Family, Ran};
use std::ffi::OsString;
use std::time::Duration;
use topdown::{Error, Options, Sum};
use topdown_report::OutsideCount;
use topdown_report::model::{Machine, Run};

/// Groups on a command.
pub struct OutsideGroups {
    pub groups: Groups,
    family: Option<Family>,
}

impl OutsideGroups {
    /// On a process that is about to execute the command, with these options otherwise.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of(pid: i32, options: &Options) -> Result<OutsideGroups, Error> {
        OutsideGroups::with_ipc(pid, options, &[])
    }

    /// The same, and instructions and cycles on these PMUs.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn with_ipc(pid: i32, options: &Options, kinds: &[Kind]) -> Result<OutsideGroups, Error> {
        Ok(OutsideGroups { groups: Groups::of_command(pid, options, kinds)?, family: Family::of(pid).ok() })
    }

    /// Whether processes go on after the command; None: not known. `wait`: until there is none, or a signal comes.
    pub fn outlived(&self, wait: bool) -> Option<bool> {
        self.family.as_ref().map(|family| family.goes_on(wait))
    }

    /// What was counted, once the command has ended.
    ///
    /// # Errors
    /// Those of `td_read`.
    pub fn end(mut self, ran: &Ran, command: &[OsString], wait: bool) -> Result<OutsideCount, Error> {
        let outlived = self.outlived(wait);
        let mut counted = whole(&mut self.groups, outlived != Some(false), ran.wall, String::new())?;
        let lost_ns = lost(ran, counted.run.cpu_ns);
        counted.run = Run { lost_ns, outlived, ipc: counted.run.ipc, ..ran.run(command) };
        Ok(counted)
    }
}

/// All that was counted since the last reading, for a report. `at_work`: what is counted goes on.
///
/// # Errors
/// Those of `td_read`.
pub fn whole(
    groups: &mut Groups,
    at_work: bool,
    wall: Duration,
    what: String,
) -> Result<OutsideCount, Error> {
    let (mut parts, mut all): (_, Option<IpcCounts>) = (Vec::new(), None);
    let counted = groups.count(at_work, wall).into_iter().collect::<Result<Vec<_>, _>>()?;
    for (group, figures) in by_pmu(&counted)? {
        let info = &group.info;
        let machine = Machine {
            cpu: info.cpu.clone(),
            core: info.core.clone(),
            pmu: info.pmu.clone(),
            path: "read",
            level: info.level,
            slots_per_cycle: info.slots_per_cycle,
            max_error: 0.0,
            max_overhead: 0.0,
            // (nobody expects that counters of others are read another way)
            note: Some(info.note.to_string())
                .filter(|note| !note.starts_with("read by read(2)"))
                .unwrap_or_default(),
        };
        all = match all {
            None if parts.is_empty() => figures.ipc,
            all => all.zip(figures.ipc).map(|(all, more)| all.plus(&more)),
        };
        parts.push((machine, figures.sum));
    }
    // (a CPU is there all the time)
    let threads = groups.all.iter().all(|group| !matches!(group.of, Of::Cpu(_)));
    let enabled = |(_, sum): &(Machine, Sum)| sum.time_enabled_ns;
    let run = Run {
        command: what,
        wall_ns: wall.as_nanos() as u64,
        cpu_ns: parts.iter().map(enabled).max().filter(|_| threads).unwrap_or(0),
        ipc: all.and_then(|all| all.ipc()),
        ..Run::default()
    };
    Ok(OutsideCount { run, parts, of_cpus: !threads })
}

/// CPU time in which processes ran on which nothing was open; less than this may be the kernel's own, at exec, at context switches and
/// when a thread ends.
pub fn lost(ran: &Ran, enabled: u64) -> u64 {
    const ONCE: u64 = 10_000_000;
    const SWITCH: u64 = 100_000;
    let used = ran.cpu.as_nanos() as u64;
    let lost = used.saturating_sub(enabled);
    let own = ONCE.saturating_add(SWITCH.saturating_mul(ran.switches)).saturating_add(used / 100);
    if lost > own { lost } else { 0 }
}
