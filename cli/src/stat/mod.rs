//! `topdown stat`: slots that are counted from outside, of a command, of processes, threads or CPUs.
//!
//! General-purpose counters are opened on the process that is to be the command, and go from there to all that it starts. The kernel keeps what
//! they counted when a process ends, however it does. Those of other processes and of CPUs count from when they are opened on.
#![forbid(unsafe_code)]

mod arguments;
mod cgroup_names;
pub mod cgroups;
mod clock;
mod columns;
mod companions;
pub mod counted;
mod counted_rows;
mod cpus;
pub mod drill;
mod execs;
pub mod figures;
pub mod group;
pub mod groups;
pub mod intervals;
pub mod ipc;
pub mod levels;
mod metric_files;
mod outside;
mod publisher;
mod repeated;
mod rotation;
mod rows_per;
mod simulated;
mod spread;
mod stretches;
mod table;
pub mod target;
mod tasks;
pub mod timed;
mod watch;
mod whole;

use crate::means;
use crate::metrics::{Endpoint, TotalsCell};
use crate::outcome::{FAILED, Failure, ended, failed, not_run, say_report, write_timeline};
use crate::require::judged;
use crate::sys::{self, CommandEnd, CpuTimeOf, End, Hotplug, Interrupts, LOOK};
use crate::{say, simulation};
use arguments::Show;
pub use arguments::{Arguments, HELP, LONGEST, USAGE};
pub use cgroup_names::{CgroupNames, cut as cgroup_path};
use cgroups::{CgroupCounts, CgroupSums};
use columns::columns;
use counted::CountedGroups;
pub use cpus::{E_CORES, P_CORES, cpu_list};
use drill::TurnPlan;
use groups::RecordsUpTo;
use intervals::{IntervalRecorder, SHORTEST};
use ipc::Ipc;
pub use outside::OutsideGroups;
pub use outside::TAKE_CGROUPS;
use outside::TAKE_RECORDS;
use publisher::Publisher;
use rotation::FIRST;
pub use rotation::GroupsInTurns;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use table::{Columns, StatTable};
use target::Ending;
pub use target::StatTarget;
use topdown_report::model::Run;
use topdown_report::terminal::say_written;
use topdown_report::{Claim, CpuTime, CpuUse, Format, Output, OutsideCount, Report, timeline_format, write};
use watch::{NextTick, StopCondition, StopReason, watch};
use whole::whole;

/// Exit status of the command.
pub fn run(mut arguments: Arguments) -> ExitCode {
    ended(arguments.name_files().and_then(|()| counted(&mut arguments)))
}

fn counted(arguments: &mut Arguments) -> Result<End, Failure> {
    arguments.check()?;
    arguments.what.simulated = simulation::core_by_counters().map_err(failed)?;
    let show = arguments.show()?;
    if let Some(timeline) = arguments.timeline.as_deref() {
        timeline_format(timeline).map_err(failed)?;
    }
    for output in arguments.output.iter().chain(&arguments.timeline) {
        // not after hours that it cannot be written
        Output::check(output).map_err(failed)?;
    }
    let turns = arguments.turns()?;
    arguments.what.td_level = turns.level_instead.or(arguments.what.td_level);
    let arguments = &*arguments;
    let mut counting = StatCount {
        arguments,
        show,
        columns: None,
        table: None,
        broken: false,
        cpus: None,
        hotplug: None,
        endpoint: arguments.endpoint()?,
        looked: Duration::ZERO,
        unread: false,
        turns,
        cgroups_before: CgroupSums::default(),
        cgroups: arguments.cgroups().map(CgroupCounts::new).transpose().map_err(failed)?,
        row_due: arguments.interval().unwrap_or_default(),
        remarked: false,
        room_ns: 0,
        claim: arguments.output.as_deref().map(Claim::of),
        lacks: arguments.require.map(|_| "there is no report".into()),
    };
    let end = match arguments.whom() {
        Some(whom) => counting.others(&whom),
        None if arguments.repeat.is_some() => counting.repeatedly(),
        None => counting.command().map(|ran| ran.end),
    };
    if let Some(path) = arguments.output.as_deref().filter(|_| counting.table.is_some() && !counting.broken) {
        counting.table = None; // (the end of a document is written)
        say_written("rows", path);
    }
    judged(end?, counting.lacks)
}

/// A count, and where its figures go.
struct StatCount<'a> {
    arguments: &'a Arguments,
    show: Show,
    columns: Option<Columns>,
    table: Option<StatTable>,
    /// Nothing can be written any more.
    broken: bool,
    /// If CPUs are counted: which, and what tells at once that one goes or comes.
    cpus: Option<StatTarget>,
    hotplug: Option<Hotplug>,
    /// Answers requests.
    endpoint: Option<Endpoint>,
    /// When it was last seen which CPUs are online.
    looked: Duration,
    /// It was said that figures could not be read.
    unread: bool,
    /// What is counted in turns; none: one group counts all.
    turns: TurnPlan,
    /// Cgroups, if they are told apart.
    cgroups: Option<CgroupCounts>,
    /// What was counted of them when the last rows were written.
    cgroups_before: CgroupSums,
    /// When the next row is due.
    row_due: Duration,
    /// It was said that nodes were not measured for want of turns.
    remarked: bool,
    /// `Groups::room_ns` at the last row.
    room_ns: u64,
    /// The file of the report.
    claim: Option<Claim>,
    /// What the report lacks of what is required.
    lacks: Option<String>,
}

impl StatCount<'_> {
    /// Counts the command.
    fn command(&mut self) -> Result<CommandEnd, Failure> {
        let options = self.arguments.options(&self.show);
        let kinds = Ipc::kinds(&options);
        let by_task = self.arguments.by_task();
        let (keeps_time, interval) = (self.keeps_time(), self.arguments.interval());
        let (published, turns) = (self.published(), self.turns.clone());
        let watched = |pid| {
            let mut groups = match by_task {
                Some(_) => OutsideGroups::by_task(pid, &options),
                None => OutsideGroups::of_whole(pid, &options, &kinds, &turns),
            };
            if let (Ok(groups), true) = (&mut groups, keeps_time) {
                groups.keep_time(interval);
            }
            if let (Ok(groups), Some(published)) = (&mut groups, published) {
                groups.publish(published);
            }
            groups
        };
        let (ran, groups) = self.run(watched, |counting, groups, at| {
            let groups = groups.as_mut().ok()?;
            groups.look_for_losses();
            counting.tick(&mut groups.groups, at, true);
            groups.tick(at);
            let pace = if counting.show_rows() { counting.pace() } else { groups.pace() };
            groups.groups.turn(at, pace)
        })?;
        let mut groups = match groups {
            Ok(groups) => groups,
            Err(why) => {
                self.nothing(&why.to_string(), ran.run(&self.arguments.command));
                return Ok(ran);
            }
        };
        if self.show_rows() {
            let ended = Instant::now();
            let outlived = groups.outlived(self.arguments.wait);
            let waited = if self.arguments.wait { ended.elapsed() } else { Duration::ZERO };
            let (at, at_work) = (ran.wall + waited, outlived != Some(false));
            match by_task {
                Some(by) => {
                    let loss = groups.loss(&ran, outlived);
                    self.task_rows(&mut groups, by, (at, at_work), loss);
                }
                None => {
                    let loss = groups.loss(&ran, outlived);
                    self.rows(&mut groups.groups, at, at_work, Some(loss));
                }
            }
            self.say_of_kernel(&groups.cpu_use(&ran, 0));
        } else {
            let wait = self.arguments.wait;
            match groups.end(&ran, &self.arguments.command, wait) {
                Ok(counted) => self.report(&Report::new(&[], Some(counted))),
                Err(why) => self.nothing(&why.to_string(), ran.run(&self.arguments.command)),
            }
        }
        Ok(ran)
    }

    /// Runs the command; `tick` is called after each interval.
    fn run<T>(
        &mut self,
        watched: impl FnOnce(i32) -> T,
        mut tick: impl FnMut(&mut Self, &mut T, Duration) -> Option<NextTick>,
    ) -> Result<(CommandEnd, T), Failure> {
        let arguments = self.arguments;
        let (program, rest) = arguments.command.split_first().expect("clap demands one");
        let mut command = Command::new(program);
        command.args(rest);
        let attend = |groups: &mut T, pid: i32, start: Instant| {
            let pace = self.first();
            if pace.or(arguments.timeout()).is_none() {
                return;
            }
            let process = match sys::process(pid) {
                Ok(process) => process,
                Err(error) => {
                    return say(&format!(
                        "the command runs without intervals and --timeout: pidfd_open: {error}"
                    ));
                }
            };
            let ends = vec![process.as_raw_fd()];
            let events = self.hotplug.as_ref().map(Hotplug::descriptor);
            let until = StopCondition { start, ends, interrupt: None, events, timeout: arguments.timeout() };
            if watch(until, pace, |at| tick(self, groups, at)) == StopReason::TimedOut {
                sys::signal(&process, libc::SIGTERM);
            }
        };
        sys::run_attended(&mut command, watched, attend).map_err(|error| not_run(program, &error))
    }

    /// Counts others than the command, if there is one.
    fn others(&mut self, whom: &StatTarget) -> Result<End, Failure> {
        let alone = self.arguments.command.is_empty();
        sys::raise_descriptors();
        let endings = whom.endings().map_err(failed)?;
        let title = whom.title();
        let options = self.arguments.options(&self.show);
        let mut groups = CountedGroups::of(whom, &options, &Ipc::kinds(&options), &self.turns)
            .map_err(|why| failed(means::refusal_of(whom, &why.to_string())))?;
        groups.label(self.arguments.by());
        let at_work = !matches!(whom, StatTarget::Cpus(_));
        self.cpus = Some(whom.clone()).filter(|_| !at_work);
        self.hotplug = self.cpus.as_ref().and_then(|_| Hotplug::open().ok()); // (without, they are looked for)
        if self.show_rows() {
            self.columns = Some(columns(self.arguments, &groups));
            self.begin(); // (to open a FIFO is to wait for its reader)
            if alone && self.broken {
                return Ok(End::Status(FAILED));
            }
        }
        // (what comes while a command runs is the command's)
        let interrupts = alone.then(sys::interrupts).transpose().map_err(failed)?;
        if self.cgroups.is_none() {
            groups.count(at_work, Duration::ZERO); // what was counted while others were opened (of cgroups, records have that)
        }
        let mut cpu_time = whom.cpu_time();
        let mut recorder =
            self.keeps_time().then(|| IntervalRecorder::new(&groups, self.arguments.interval()));
        let mut publisher = self.published().map(|to| Publisher::new(&groups, to));
        let mut tick = |counting: &mut Self, groups: &mut CountedGroups, at| {
            counting.tick(groups, at, at_work);
            cpu_time.look_at(at);
            if let Some(publisher) = &mut publisher {
                publisher.tick(groups, counting.cgroups.as_mut(), at, at_work);
            }
            let pace = recorder.as_mut().map(|recorder| {
                recorder.tick(groups, at, at_work);
                recorder.interval().min(LOOK)
            });
            groups.turn(at, pace.or(counting.pace()))
        };
        let (end, wall) = if alone {
            let start = Instant::now();
            let ends = endings.iter().map(Ending::descriptor).collect();
            let interrupt = interrupts.as_ref().map(Interrupts::descriptor);
            let events = self.hotplug.as_ref().map(Hotplug::descriptor);
            let until = StopCondition { start, ends, interrupt, events, timeout: self.arguments.timeout() };
            watch(until, self.first(), |at| tick(self, &mut groups, at).filter(|_| !self.broken));
            (End::Status(0), start.elapsed())
        } else {
            let (ran, ()) = self.run(|_| (), |counting, (), at| tick(counting, &mut groups, at))?;
            (ran.end, ran.wall)
        };
        cpu_time.look();
        drop(interrupts); // a second one ends what is done after the count
        if self.show_rows() {
            self.rows(&mut groups, wall, at_work, None);
            let remarks = self.cgroups.as_ref().map(CgroupCounts::remarks);
            remarks.iter().flatten().for_each(|line| say(line));
            self.say_of_kernel(&cpu_use(&cpu_time, &groups, 0));
            return Ok(end);
        }
        match whole(&mut groups, None, at_work, wall, title.clone()) {
            Err(why) if alone => return Err(failed(why)),
            Err(why) => {
                let run = Run { command: title, wall_ns: wall.as_nanos() as u64, ..Run::default() };
                self.nothing(&why.to_string(), run);
            }
            Ok(counted) => {
                let timeline = recorder.map(|recorder| recorder.end(&groups, wall));
                let cpu = cpu_use(&cpu_time, &groups, counted.run.cpu_ns);
                let run = Run { cpu, means: means::of_until(whom, &self.arguments.command), ..counted.run };
                self.of_others(OutsideCount { timeline, run, ..counted });
            }
        }
        Ok(end)
    }

    /// Reports what was counted of others, if that is anything.
    fn of_others(&mut self, counted: OutsideCount) {
        if counted.parts.iter().any(|(_, sum)| sum.slots > 0) {
            return self.report(&Report::new(&[], Some(counted)));
        }
        let title = &counted.run.command;
        let why = format!("nothing was counted of {title}: it did not run, or others hold the counters");
        if self.arguments.output.is_some() {
            self.nothing(&why, counted.run);
        } else {
            self.lacks = self.arguments.require.map(|_| why.clone());
            say(&why);
        }
    }

    /// Below rows, that much of the time was the kernel's and was not counted. (Figures that are made up leave nothing out)
    fn say_of_kernel(&self, cpu: &CpuUse) {
        let remark = cpu.remark().filter(|_| self.arguments.what.simulated.is_none());
        remark.iter().for_each(|line| say(line));
    }

    fn show_rows(&self) -> bool {
        matches!(self.show, Show::Rows(_))
    }

    /// Whether there is a report that shows a timeline.
    fn keeps_time(&self) -> bool {
        let timeline = self.arguments.timeline.is_some();
        matches!(self.show, Show::Report(format) if format.has_timeline() || timeline)
    }

    /// Where to put what is to be scraped.
    fn published(&self) -> Option<TotalsCell> {
        self.endpoint.as_ref().map(|endpoint| endpoint.published().clone())
    }

    /// How often `tick` is called, at first.
    fn pace(&self) -> Option<Duration> {
        let report = self.keeps_time().then_some(SHORTEST);
        let looks = (self.arguments.whom().is_some() || self.endpoint.is_some()).then_some(LOOK);
        let of_tasks = self.arguments.by_task().map(|_| TAKE_RECORDS);
        let records = self.cgroups.as_ref().map(|_| TAKE_CGROUPS).or(of_tasks);
        let polls = (self.cpus.is_some() && self.hotplug.is_none()).then_some(LOOK);
        let pace = self.arguments.interval().or(report).into_iter().chain(records).min().or(looks);
        polls.into_iter().chain(pace).min()
    }

    /// When it is called first.
    fn first(&self) -> Option<Duration> {
        let turn = (!self.turns.parts.is_empty()).then_some(FIRST);
        self.pace().into_iter().chain(turn).min()
    }

    /// An interval is over.
    fn tick(&mut self, groups: &mut CountedGroups, at: Duration, at_work: bool) {
        self.take_records(groups, RecordsUpTo::LastTime);
        let interval = self.arguments.interval().filter(|_| self.show_rows() && at >= self.row_due);
        if let Some(interval) = interval {
            self.rows(groups, at, at_work, None);
            self.row_due = NextTick::Multiple(interval).after(at);
        }
        let changed = self.hotplug.as_ref().is_some_and(Hotplug::has_changed);
        let looks = (self.show_rows() && self.turns.parts.is_empty()) || changed || at >= self.looked + LOOK;
        let looked_at = Instant::now();
        if let Some(online) = self.cpus.as_ref().filter(|_| looks).and_then(StatTarget::online) {
            self.looked = at;
            if interval.is_none() {
                groups.look();
            }
            for (cpu, why) in groups.follow(&online, looked_at, self.arguments.by()) {
                say(&format!("CPU {cpu} came online, and is not counted: {why}"));
            }
        }
    }

    /// Takes up what the kernel says of cgroups.
    fn take_records(&mut self, groups: &mut CountedGroups, up_to: RecordsUpTo) {
        if let Some(cgroups) = &mut self.cgroups {
            let records = groups.records(up_to);
            cgroups.take(records, |group| groups.all[group].info.pmu.clone());
        }
    }

    /// The command ran, and nothing of it could be counted.
    fn nothing(&mut self, why: &str, run: Run) {
        let why = why.to_string() + &self.arguments.e_cores_instead();
        if self.show_rows() {
            say(&format!("nothing is measured: {why}"));
            return self.empty(&why);
        }
        let run = Run { means: means::without_slots(run.means), ..run };
        let nothing = OutsideCount { run, ..OutsideCount::default() };
        self.report(&Report { trouble: why, ..Report::new(&[], Some(nothing)) });
    }

    fn report(&mut self, report: &Report) {
        let Show::Report(format) = self.show else { return };
        self.lacks = self.arguments.require.and_then(|require| require.lacks(report));
        let output = self.claim.as_ref().map(Claim::place);
        match write(report, output.as_deref(), format) {
            Ok(()) => output.iter().for_each(|path| say_report(report, path, format)),
            Err(error) => {
                say(&format!("no report: {error}"));
                if self.arguments.output.is_some() {
                    let _ = write(report, None, Format::Text); // what was counted is not lost
                }
            }
        }
        write_timeline(report, self.arguments.timeline.as_deref());
    }
}

/// CPU time of others than a command, and what of it these groups count. How much they ran, if that is known, tells the kernel to the
/// nanosecond, and by mode to its ticks.
fn cpu_use(cpu_time: &CpuTimeOf, groups: &CountedGroups, ran_ns: u64) -> CpuUse {
    let used = cpu_time.used();
    let time = used.map(|used| used.scaled_to(ran_ns).filter(|_| ran_ns > 0).unwrap_or(used));
    CpuUse {
        total_ns: time.map(CpuTime::total_ns).or((ran_ns > 0).then_some(ran_ns)),
        time,
        counts_kernel: groups.counts_kernel(),
        refused: sys::kernel_is_refused(),
    }
}
