//! A command that is counted from its exec on, with all that it starts, whole.
#![forbid(unsafe_code)]

use super::clock::tells_threads_apart;
use super::counted::CountedGroups;
use super::cpus::online;
use super::drill::TurnPlan;
use super::execs::{ExecEvents, ExecsWatch};
use super::groups::{Groups, RecordsUpTo};
use super::intervals::IntervalRecorder;
use super::ipc::IpcPmu;
use super::publisher::{PACE, Publisher};
use super::target::StatTarget;
use super::tasks::{ALL, Tasks};
use super::watch::{StopCondition, watch};
use super::whole::whole;
use crate::metrics::TotalsCell;
use crate::say;
use crate::sys::{self, CommandEnd, Family};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use topdown::{Error, Options};
use topdown_report::model::Run;
use topdown_report::{CpuUse, OutsideCount};

/// How often records of threads are taken from the kernel's buffers, which have room for more than that.
pub const TAKE_RECORDS: Duration = Duration::from_millis(50);

/// The same of cgroups, whose records come with each change from one to another: the buffers have room for 150,000 a second on each CPU.
pub const TAKE_CGROUPS: Duration = Duration::from_millis(20);

/// Groups on a command.
pub struct OutsideGroups {
    pub groups: CountedGroups,
    /// Threads, if they are told apart.
    pub tasks: Option<Tasks>,
    family: Option<Family>,
    execs: Option<ExecsWatch>,
    opened: Instant,
    recorder: Option<IntervalRecorder>,
    publisher: Option<Publisher>,
}

impl OutsideGroups {
    /// On a process that is about to execute the command, with these options otherwise, and instructions and cycles on these PMUs; or
    /// of a level in parts below these nodes, which take turns.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of_whole(
        pid: i32,
        options: &Options,
        kinds: &[IpcPmu],
        turns: &TurnPlan,
    ) -> Result<OutsideGroups, Error> {
        let groups = CountedGroups::of_command(pid, options, kinds, turns)?;
        Ok(OutsideGroups::new(pid, groups, None))
    }

    fn new(pid: i32, groups: CountedGroups, tasks: Option<Tasks>) -> OutsideGroups {
        // (the time of programs that lose their events is in what is simulated)
        let execs = if groups.are_simulated() { None } else { ExecsWatch::of(pid) };
        let family = Family::of(pid).ok();
        OutsideGroups { tasks, family, execs, ..OutsideGroups::of_others(groups) }
    }

    fn of_others(groups: CountedGroups) -> OutsideGroups {
        OutsideGroups {
            groups,
            tasks: None,
            family: None,
            execs: None,
            opened: Instant::now(),
            recorder: None,
            publisher: None,
        }
    }

    /// On others than a command, from now on.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of(whom: &StatTarget, options: &Options, turns: &TurnPlan) -> Result<OutsideGroups, Error> {
        CountedGroups::of(whom, options, &[], turns).map(OutsideGroups::of_others)
    }

    /// The same, with its threads told apart. Where the kernel does not do that a line says so, and the command is counted whole.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn by_task(pid: i32, options: &Options) -> Result<OutsideGroups, Error> {
        let none = || Error::new(-libc::EOPNOTSUPP, "Linux does that from 6.12 on");
        let groups = if tells_threads_apart() { Ok(()) } else { Err(none()) };
        let groups = groups.and_then(|()| Groups::of_command_by_task(pid, online().into_iter(), options));
        match groups {
            Ok(groups) => Ok(OutsideGroups::new(pid, groups.into(), Some(Tasks::default()))),
            Err(why) => {
                let mut whole = OutsideGroups::of_whole(pid, options, &[], &TurnPlan::default())?;
                whole.groups.all.iter_mut().for_each(|group| group.label = ALL.into());
                say(&format!("threads and processes are not told apart: {why}"));
                Ok(whole)
            }
        }
    }

    /// Takes up what the kernel has said of threads.
    pub fn take_records(&mut self, up_to: RecordsUpTo) {
        if let Some(tasks) = &mut self.tasks {
            tasks.take(self.groups.records(up_to));
        }
    }

    /// Keeps a timeline in intervals of so much; None: as short as they can be read, at first.
    pub fn keep_time(&mut self, interval: Option<Duration>) {
        self.recorder = Some(IntervalRecorder::new(&self.groups, interval));
    }

    /// Publishes what is counted.
    pub fn publish(&mut self, to: TotalsCell) {
        self.publisher = Some(Publisher::new(&self.groups, to));
    }

    /// How often `tick` is to be called; None: there is nothing to do.
    pub fn pace(&self) -> Option<Duration> {
        let published = self.publisher.as_ref().map(|_| PACE);
        let records = self.tasks.as_ref().map(|_| TAKE_RECORDS);
        self.recorder
            .as_ref()
            .map(IntervalRecorder::interval)
            .into_iter()
            .chain(published)
            .chain(records)
            .min()
    }

    /// Sees whether a program has lost its events meanwhile: from then on intervals have room for all that the CPUs may have done.
    pub fn look_for_losses(&mut self) {
        if self.execs.as_ref().is_some_and(|execs| execs.kept() == ExecEvents::NotAll) {
            self.groups.lose();
        }
    }

    /// An interval is over.
    pub fn tick(&mut self, at: Duration) {
        self.take_records(RecordsUpTo::LastTime);
        self.look_for_losses();
        if let Some(recorder) = &mut self.recorder {
            recorder.tick(&mut self.groups, at, true);
        }
        if let Some(publisher) = &mut self.publisher {
            publisher.tick(&mut self.groups, None, at, true);
        }
    }

    /// Until the command with this id ends.
    pub fn attend(&mut self, pid: i32, start: Instant) {
        // (no pidfd, no intervals)
        let first = self.groups.first_turn(self.pace());
        let (Some(first), Ok(process)) = (first, sys::process(pid)) else { return };
        let until = StopCondition {
            start,
            ends: vec![process.as_raw_fd()],
            interrupt: None,
            events: None,
            timeout: None,
        };
        watch(until, Some(first), |at| {
            self.tick(at);
            self.groups.turn(at, self.pace())
        });
    }

    /// Whether processes go on after the command; None: not known. `wait`: until there is none, or a signal comes.
    pub fn outlived(&self, wait: bool) -> Option<bool> {
        self.family.as_ref().map(|family| family.goes_on(wait))
    }

    /// What tells how much of the command, which has ended, was not counted. `outlived`: as [`OutsideGroups::outlived`] says.
    pub fn loss(&self, ran: &CommandEnd, outlived: Option<bool>) -> Loss {
        let used = ran.cpu.total_ns();
        let room = self.opened.elapsed().as_nanos() as u64 * online().len() as u64;
        match self.execs.as_ref().map_or(ExecEvents::Unknown, ExecsWatch::kept) {
            // (what the kernel does at the end of a process, once that has no events any more, is no user's)
            ExecEvents::All if !self.groups.counts_kernel() => Loss::None,
            ExecEvents::NotAll => {
                let all_waited =
                    outlived == Some(false) && !self.execs.as_ref().is_some_and(ExecsWatch::has_orphans);
                Loss::Seen { used: all_waited.then_some(used), room }
            }
            _ => Loss::Unknown { used, switches: ran.switches },
        }
    }

    /// CPU time of the command, which has ended, and what of it is counted. If events were enabled for longer (0: not known), processes
    /// have run for which it did not wait, and whose modes nobody tells.
    pub fn cpu_use(&self, ran: &CommandEnd, enabled_ns: u64) -> CpuUse {
        let counts_kernel = self.groups.counts_kernel();
        let (waited, used) = (ran.cpu_use(), ran.cpu.total_ns());
        match (Loss::Unknown { used: enabled_ns, switches: ran.switches }).of(used) {
            0 => CpuUse { counts_kernel, ..waited },
            unwaited => CpuUse { counts_kernel, total_ns: Some(used + unwaited), time: None, ..waited },
        }
    }

    /// What was counted until now, so long after the start, of what the title says.
    ///
    /// # Errors
    /// Those of `td_read`.
    pub fn so_far(&mut self, at: Duration, title: String) -> Result<OutsideCount, Error> {
        let at_work = !self.groups.counts_cpus();
        let mut counted = whole(&mut self.groups, None, at_work, at, title)?;
        if self.execs.as_ref().is_some_and(|execs| execs.kept() == ExecEvents::NotAll) {
            let room = at.as_nanos() as u64 * online().len() as u64;
            counted.run.lost_ns = Loss::Seen { used: None, room }.of(counted.run.cpu_ns);
        }
        Ok(counted)
    }

    /// What was counted, once the command has ended.
    ///
    /// # Errors
    /// Those of `td_read`.
    pub fn end(mut self, ran: &CommandEnd, command: &[OsString], wait: bool) -> Result<OutsideCount, Error> {
        let outlived = self.outlived(wait);
        let loss = self.loss(ran, outlived);
        self.take_records(RecordsUpTo::Now);
        let (groups, tasks) = (&mut self.groups, self.tasks.as_ref());
        let mut counted = whole(groups, tasks, outlived != Some(false), ran.wall, String::new())?;
        tasks.iter().flat_map(|tasks| tasks.remarks()).for_each(|line| say(&line));
        let enabled_ns = counted.run.cpu_ns;
        let lost_ns = loss.of(enabled_ns);
        let Run { ipc, findings, bottlenecks, metrics, tree, .. } = std::mem::take(&mut counted.run);
        let metrics =
            metrics.into_iter().map(|one| if lost_ns > 0 { one.of_a_part() } else { one }).collect();
        let (cpu, run) = (self.cpu_use(ran, enabled_ns), ran.run(command));
        counted.run = Run { lost_ns, outlived, ipc, findings, bottlenecks, metrics, tree, cpu, ..run };
        counted.timeline = self.recorder.map(|recorder| recorder.end(&self.groups, ran.wall));
        Ok(counted)
    }
}

/// What of a command's CPU time was not counted.
#[derive(Clone, Copy)]
pub enum Loss {
    /// It is known that nothing of user mode was lost.
    None,
    /// A program has lost its events. `used`: the command's CPU time, unless processes were counted for which it did not wait; all that
    /// the CPUs can have done meanwhile is `room`.
    Seen { used: Option<u64>, room: u64 },
    /// Neither is known; the command's CPU time and context switches may tell.
    Unknown { used: u64, switches: u64 },
}

impl Loss {
    /// Nanoseconds in which processes ran on which nothing was open, if events were enabled for so long. Where no loss was seen, less than
    /// this may be the kernel's own, at exec, at context switches and when a thread ends.
    pub fn of(self, enabled: u64) -> u64 {
        const ONCE: u64 = 10_000_000;
        const SWITCH: u64 = 100_000;
        match self {
            Loss::None => 0,
            Loss::Seen { used, room } => {
                used.filter(|used| *used > enabled).unwrap_or(room).saturating_sub(enabled)
            }
            Loss::Unknown { used, switches } => {
                let lost = used.saturating_sub(enabled);
                let own = ONCE.saturating_add(SWITCH.saturating_mul(switches)).saturating_add(used / 100);
                if lost > own { lost } else { 0 }
            }
        }
    }
}
