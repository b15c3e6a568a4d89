//! `topdown stat`: slots that are counted from outside, of a command, of processes, threads or CPUs.
//!
//! Plain counters are opened on the process that is to be the command, and go from there to all that it starts. The kernel keeps what
//! they counted when a process ends, however it does. Those of other processes and of CPUs count from when they are opened on.
#![forbid(unsafe_code)]

mod group;
mod ipc;
mod outside;
mod table;
mod watch;
mod whom;

use crate::run::{FAILED, Failure, ended, not_run};
use crate::say;
use crate::sys::{self, End, Interrupts, Ran};
use clap::ArgGroup;
use group::{Counted, Figures, Group, Groups, Of, by_pmu};
use ipc::Ipc;
pub use outside::OutsideGroups;
use outside::{lost, whole};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use table::{Columns, Row, Style, Table};
use topdown::Options;
use topdown_report::model::Run;
use topdown_report::{Format, Output, OutsideCount, Report, UNCOUNTED, write};
use watch::{Until, Why, watch};
use whom::{By, Ending, Whom, cpu_list};

/// Options of `topdown stat`.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("of_cpus").args(["all_cpus", "cpus"]).multiple(true)))]
#[command(group(ArgGroup::new("of_threads").args(["pid", "tid"])))]
pub struct Arguments {
    /// Count these processes: all their threads, and what those start from now on. Until they end, COMMAND ends, or Ctrl-C
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..), help_heading = WHOM)]
    pid: Vec<i32>,
    /// Count these threads, and what they start from now on
    #[arg(short, long, value_name = "TID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "pid", help_heading = WHOM)]
    tid: Vec<i32>,
    /// Count whatever runs on all CPUs, until COMMAND ends or Ctrl-C (kernel.perf_event_paranoid at most 0, or CAP_PERFMON)
    #[arg(short, long, conflicts_with_all = ["pid", "tid"], help_heading = WHOM)]
    all_cpus: bool,
    /// Count whatever runs on these CPUs: a list such as 0-3,7
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", value_parser = cpu_list, conflicts_with_all = ["pid", "tid"], help_heading = WHOM)]
    cpus: Option<BTreeSet<u32>>,
    /// End after so many milliseconds; a command gets SIGTERM then
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=LONGEST), help_heading = WHOM)]
    timeout: Option<u64>,
    /// If the command leaves processes behind, wait until they have ended, too, or for Ctrl-C
    #[arg(long, conflicts_with_all = OTHERS, help_heading = WHOM)]
    wait: bool,
    #[command(flatten)]
    what: What,
    /// A row for each interval of so many milliseconds, from 10 up
    #[arg(short = 'I', long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=LONGEST), help_heading = ROWS)]
    interval_print: Option<u64>,
    /// Run the command so often: a row for each run, their mean, and their spread (the standard deviation)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = OTHERS, conflicts_with = "interval_print", help_heading = ROWS)]
    repeat: Option<u32>,
    /// A row for each core, with its hardware threads
    #[arg(long, conflicts_with_all = ["pid", "tid", "per_socket"], requires = "of_cpus", help_heading = ROWS)]
    per_core: bool,
    /// A row for each socket
    #[arg(long, conflicts_with_all = ["pid", "tid"], requires = "of_cpus", help_heading = ROWS)]
    per_socket: bool,
    /// A row for each thread that was there at the start, with what it started
    #[arg(long, requires = "of_threads", help_heading = ROWS)]
    per_thread: bool,
    /// Write the report to FILE (- for standard output), in the format of its ending: .csv, .json, .html, .txt or none
    /// [default: a text to standard error]
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Write rows of values with SEP between them, below a row of their names
    #[arg(short = 'x', long, value_name = "SEP", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = OUTPUT)]
    field_separator: Option<String>,
    /// Write each row as JSON, on a line
    #[arg(short, long, conflicts_with = "field_separator", help_heading = OUTPUT)]
    json_output: bool,
    /// Write the whole report as JSON, whatever the ending
    #[arg(long, conflicts_with_all = TABLES, help_heading = OUTPUT)]
    json: bool,
    /// Write the whole report as comma-separated values, whatever the ending
    #[arg(long, conflicts_with = "json", conflicts_with_all = TABLES, help_heading = OUTPUT)]
    csv: bool,
    /// The command and its arguments
    #[arg(required_unless_present_any = OTHERS, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Milliseconds: thirty years.
const LONGEST: u64 = 1_000_000_000_000;
const WHOM: &str = "Whom";
const ROWS: &str = "Rows";
const OUTPUT: &str = "Output";
/// What is counted if not a command.
const OTHERS: [&str; 4] = ["pid", "tid", "all_cpus", "cpus"];
/// What has rows, not a report.
const TABLES: [&str; 7] =
    ["interval_print", "repeat", "per_core", "per_socket", "per_thread", "field_separator", "json_output"];

/// What is counted.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct What {
    /// Count down to this level [default: the deepest that the general counters have; of rows of text 1. Level 1 takes three
    /// general counters, level 2 seven]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=2))]
    td_level: Option<u32>,
    /// Count what the kernel does, too
    #[arg(long)]
    kernel: bool,
}

/// What `topdown stat --help` says of the rest.
pub const HELP: &str = "\
Nothing is loaded into the command, which runs as it would without: same input and output, same exit status. It is counted with all
threads and processes that it starts, in user mode, to the end of each, whatever ends it; static programs, too. What cannot be
counted runs all the same, and one line says why. Regions are for `topdown run`.

Rows have perf's names of the metrics, as shares of the slots; `within`, the bound on the error of each share in points; `running`, the
part of the time in which the counters counted; instructions per cycle and the clock where they can be counted beside. On hybrid CPUs P-
and E-cores each have a row.

Exit status: that of the command, and if a signal killed it, by the same signal; 126 if the command cannot be
executed, 127 if it is not found; 125 if `topdown` itself fails before it runs.";

/// Exit status of the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    ended(counted(arguments))
}

fn failed(error: impl ToString) -> Failure {
    (FAILED, error.to_string())
}

fn counted(arguments: &Arguments) -> Result<End, Failure> {
    let show = arguments.show()?;
    if let Some(output) = arguments.output.as_deref() {
        // not after hours that it cannot be written
        Output::check(output).map_err(failed)?;
    }
    let mut counting =
        Counting { arguments, show, columns: None, table: None, broken: false, cpus: None, unread: false };
    match arguments.whom() {
        Some(whom) => counting.others(&whom),
        None if arguments.repeat.is_some() => counting.repeatedly(),
        None => Ok(counting.command()?.end),
    }
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Show {
    Report(Format),
    Rows(Style),
}

impl Arguments {
    /// Who is counted, if not the command.
    fn whom(&self) -> Option<Whom> {
        match self {
            _ if !self.pid.is_empty() => Some(Whom::Processes(self.pid.iter().copied().collect())),
            _ if !self.tid.is_empty() => Some(Whom::Threads(self.tid.iter().copied().collect())),
            _ if self.all_cpus || self.cpus.is_some() => Some(Whom::Cpus(self.cpus.clone())),
            _ => None,
        }
    }

    fn by(&self) -> Option<By> {
        let ways = [(self.per_core, By::Core), (self.per_socket, By::Socket), (self.per_thread, By::Thread)];
        ways.into_iter().find(|(chosen, _)| *chosen).map(|(_, by)| by)
    }

    fn show(&self) -> Result<Show, Failure> {
        let rows = self.interval_print.is_some() || self.repeat.is_some() || self.by().is_some();
        let format = Format::of(self.output.as_deref()).map_err(failed)?;
        Ok(match (&self.field_separator, format) {
            (Some(separator), _) => Show::Rows(Style::Separated(separator.clone())),
            _ if self.json_output => Show::Rows(Style::JsonLines),
            _ if self.json => Show::Report(Format::Json),
            _ if self.csv => Show::Report(Format::Csv),
            (_, format) if !rows => Show::Report(format),
            (_, Format::Text) => Show::Rows(Style::Text),
            (_, Format::Csv) => Show::Rows(Style::Separated(",".into())),
            (_, Format::Json) => Show::Rows(Style::JsonLines),
            (_, Format::Html) => return Err(failed("rows are a text, .csv or .json, not .html")),
        })
    }

    /// What all groups have in common.
    fn options(&self, show: &Show) -> Options {
        let level = if *show == Show::Rows(Style::Text) { 1 } else { 0 };
        Options { level: self.what.td_level.unwrap_or(level), kernel: self.what.kernel, ..Options::default() }
    }

    fn interval(&self) -> Option<Duration> {
        self.interval_print.map(Duration::from_millis)
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout.map(Duration::from_millis)
    }
}

/// How often it is seen which CPUs are online, if there is no interval.
const LOOK: Duration = Duration::from_secs(1);

/// A count, and where its figures go.
struct Counting<'a> {
    arguments: &'a Arguments,
    show: Show,
    columns: Option<Columns>,
    table: Option<Table>,
    /// Nothing can be written any more.
    broken: bool,
    /// If CPUs are counted: which.
    cpus: Option<Whom>,
    /// It was said that figures could not be read.
    unread: bool,
}

impl Counting<'_> {
    /// Counts the command.
    fn command(&mut self) -> Result<Ran, Failure> {
        let options = self.arguments.options(&self.show);
        let kinds = Ipc::kinds(&options);
        let watched = |pid| OutsideGroups::with_ipc(pid, &options, &kinds);
        let (ran, groups) = self.run(watched, |counting, groups, at| {
            if let Ok(groups) = groups {
                counting.tick(&mut groups.groups, at, true);
            }
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
            self.rows(&mut groups.groups, ran.wall + waited, outlived != Some(false), Some(&ran));
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
        mut tick: impl FnMut(&mut Self, &mut T, Duration),
    ) -> Result<(Ran, T), Failure> {
        let arguments = self.arguments;
        let (program, rest) = arguments.command.split_first().expect("clap demands one");
        let mut command = Command::new(program);
        command.args(rest);
        let attend = |groups: &mut T, pid: i32, start: Instant| {
            let pace = self.pace();
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
            let until = Until { start, ends, interrupt: None, timeout: arguments.timeout() };
            let tick = |at| {
                tick(self, groups, at);
                true
            };
            if watch(until, pace, tick) == Why::TimedOut {
                sys::signal(&process, libc::SIGTERM);
            }
        };
        sys::run_attended(&mut command, watched, attend).map_err(|error| not_run(program, &error))
    }

    /// Counts others than the command, if there is one.
    fn others(&mut self, whom: &Whom) -> Result<End, Failure> {
        let alone = self.arguments.command.is_empty();
        sys::raise_descriptors();
        let endings = whom.endings().map_err(failed)?;
        let title = whom.title();
        let options = self.arguments.options(&self.show);
        let mut groups = whom.open(&options, &Ipc::kinds(&options)).map_err(failed)?;
        groups.label(self.arguments.by());
        let at_work = !matches!(whom, Whom::Cpus(_));
        self.cpus = Some(whom.clone()).filter(|_| !at_work);
        if self.show_rows() {
            self.columns = Some(columns(self.arguments, &groups));
            self.begin(); // (to open a FIFO is to wait for its reader)
        }
        // (what comes while a command runs is the command's)
        let interrupts = alone.then(sys::interrupts).transpose().map_err(failed)?;
        groups.count(at_work, Duration::ZERO); // what was counted while others were opened
        let (end, wall) = if alone {
            let start = Instant::now();
            let ends = endings.iter().map(Ending::descriptor).collect();
            let interrupt = interrupts.as_ref().map(Interrupts::descriptor);
            let until = Until { start, ends, interrupt, timeout: self.arguments.timeout() };
            watch(until, self.pace(), |at| {
                self.tick(&mut groups, at, at_work);
                !self.broken
            });
            (End::Status(0), start.elapsed())
        } else {
            let (ran, ()) = self.run(|_| (), |counting, (), at| counting.tick(&mut groups, at, at_work))?;
            (ran.end, ran.wall)
        };
        drop(interrupts); // a second one ends what is done after the count
        if self.show_rows() {
            self.rows(&mut groups, wall, at_work, None);
        } else {
            let counted = match whole(&mut groups, at_work, wall, title.clone()) {
                Err(why) if alone => return Err(failed(why)),
                Err(why) => {
                    let run = Run { command: title, wall_ns: wall.as_nanos() as u64, ..Run::default() };
                    self.nothing(&why.to_string(), run);
                    return Ok(end);
                }
                Ok(counted) => counted,
            };
            if counted.parts.iter().all(|(_, sum)| sum.slots == 0) {
                let why =
                    format!("nothing was counted of {title}: it did not run, or others hold the counters");
                if self.arguments.output.is_some() {
                    self.nothing(&why, counted.run);
                } else {
                    say(&why);
                }
            } else {
                self.report(&Report::new(&[], Some(counted)));
            }
        }
        Ok(end)
    }

    /// Counts the command again and again: each run, then mean and spread.
    fn repeatedly(&mut self) -> Result<End, Failure> {
        let options = self.arguments.options(&self.show);
        let kinds = Ipc::kinds(&options);
        let mut runs: Vec<Vec<Row>> = Vec::new();
        let mut number = 0;
        let end = loop {
            number += 1;
            let watched = |pid| OutsideGroups::with_ipc(pid, &options, &kinds);
            let (ran, groups) = self.run(watched, |_, _, _| {})?;
            let last = Some(number) == self.arguments.repeat || matches!(ran.end, End::Signal(_));
            match groups {
                Err(why) => say(&format!("nothing is measured: {why}")),
                Ok(mut groups) => {
                    let outlived = groups.outlived(false);
                    let rows = self.read(&mut groups.groups, ran.wall, outlived != Some(false), Some(&ran));
                    let rows: Vec<_> =
                        rows.into_iter().map(|row| Row { of: number.to_string(), ..row }).collect();
                    self.write(&rows);
                    runs.push(rows);
                }
            }
            if last || sys::interrupted() {
                break ran.end;
            }
        };
        if runs.is_empty() {
            self.empty();
        }
        let mut pmus: Vec<String> = Vec::new();
        for row in runs.iter().flatten() {
            if !pmus.contains(&row.pmu) {
                pmus.push(row.pmu.clone());
            }
        }
        for (what, figure) in [("mean", mean as fn(&[f64]) -> Option<f64>), ("spread", spread)] {
            for pmu in &pmus {
                let rows: Vec<_> = runs.iter().flatten().filter(|row| row.pmu == *pmu).cloned().collect();
                self.write(&[Row::over(&rows, what, &figure)]);
            }
        }
        Ok(end)
    }

    fn show_rows(&self) -> bool {
        matches!(self.show, Show::Rows(_))
    }

    /// How often `tick` is called.
    fn pace(&self) -> Option<Duration> {
        self.arguments.interval().or(self.cpus.as_ref().map(|_| LOOK))
    }

    /// An interval is over.
    fn tick(&mut self, groups: &mut Groups, at: Duration, at_work: bool) {
        if self.arguments.interval().is_some() {
            self.rows(groups, at, at_work, None);
        }
        if let Some(online) = self.cpus.as_ref().and_then(Whom::online) {
            for (cpu, why) in groups.follow(&online, self.arguments.by()) {
                say(&format!("CPU {cpu} came online, and is not counted: {why}"));
            }
        }
    }

    /// The command ran, and nothing of it could be counted.
    fn nothing(&mut self, why: &str, run: Run) {
        if self.show_rows() {
            say(&format!("nothing is measured: {why}"));
            return self.empty();
        }
        let nothing = OutsideCount { run, parts: Vec::new(), of_cpus: false };
        self.report(&Report { trouble: why.into(), ..Report::new(&[], Some(nothing)) });
    }

    fn report(&self, report: &Report) {
        let Show::Report(format) = self.show else { return };
        if let Err(error) = write(report, self.arguments.output.as_deref(), format) {
            say(&format!("no report: {error}"));
        }
    }

    /// Rows of what was counted since the last; of a command that has ended: how.
    fn rows(&mut self, groups: &mut Groups, at: Duration, at_work: bool, ran: Option<&Ran>) {
        let rows = self.read(groups, at, at_work, ran);
        self.write(&rows);
    }

    /// The same, to be written.
    fn read(&mut self, groups: &mut Groups, at: Duration, at_work: bool, ran: Option<&Ran>) -> Vec<Row> {
        let columns = self.columns.get_or_insert_with(|| columns(self.arguments, groups)).clone();
        let (counted, failed): (Vec<_>, Vec<_>) =
            groups.count(at_work, at).into_iter().partition(Result::is_ok);
        if let (Some(Err(why)), false) = (failed.first(), self.unread) {
            self.unread = true;
            say(&format!("a row is missing, and its figures are in the next, if there is one: {why}"));
        }
        let counted: Vec<_> = counted.into_iter().flatten().collect();
        let enabled = counted.iter().map(Counted::enabled_ns).max();
        let mut lost_ns = ran.zip(enabled).map_or(0, |(ran, enabled)| lost(ran, enabled));
        if lost_ns > 0 && self.arguments.interval().is_some() {
            let lost_s = std::mem::take(&mut lost_ns) as f64 / 1e9;
            say(&format!("{lost_s:.3} s of the command's CPU time are in no row: {UNCOUNTED}"));
        }
        let mut labels: Vec<&str> = counted.iter().map(|one| one.group.label.as_str()).collect();
        labels.dedup();
        let mut rows = Vec::new();
        for label in labels {
            let these = || counted.iter().filter(|one| one.group.label == label);
            let since = these().map(|one| one.since).min().unwrap_or_default();
            let wall_s = at.saturating_sub(since).as_secs_f64();
            let Ok(mut kinds) = by_pmu(these()) else { continue };
            apart(&mut kinds);
            // (it may have been on any kind of core)
            kinds.iter_mut().for_each(|(_, figures)| figures.sum.time_enabled_ns += lost_ns);
            rows.extend(kinds.iter().map(|(group, figures)| Row {
                time: at.as_nanos() as f64 / 1e9,
                of: label.into(),
                pmu: group.info.pmu.clone(),
                ..Row::new(&columns, figures, wall_s)
            }));
        }
        rows
    }

    /// There are no rows: a file has their names alone, and nothing of an earlier count.
    fn empty(&mut self) {
        if self.arguments.output.is_none() {
            return;
        }
        self.columns.get_or_insert_with(|| columns(self.arguments, &Groups::default()));
        self.begin();
        if let Some(Err(error)) = self.table.as_mut().map(Table::begin) {
            say(&format!("no report: {error}"));
        }
    }

    /// Opens where rows go.
    fn begin(&mut self) {
        let (Show::Rows(style), Some(columns)) = (&self.show, &self.columns) else { return };
        if self.table.is_none() && !self.broken {
            match Table::new(style.clone(), columns.clone(), self.arguments.output.as_deref()) {
                Ok(table) => self.table = Some(table),
                Err(error) => {
                    self.broken = true;
                    say(&format!("no report: {error}"));
                }
            }
        }
    }

    fn write(&mut self, rows: &[Row]) {
        self.begin();
        let Some(table) = self.table.as_mut().filter(|_| !self.broken) else { return };
        if let Err(error) = rows.iter().try_for_each(|row| table.write(row)) {
            self.broken = true;
            // (who closes the pipe has read enough)
            if error.kind() != ErrorKind::BrokenPipe {
                say(&format!("no more rows: {error}"));
            }
        }
    }
}

/// Of several kinds of cores each is enabled all the time: of that, a kind's is what it counted, and what none has counted. They are
/// not read at once; where one alone has counted, its own reading tells how long that was.
fn apart(kinds: &mut [(&Group, Figures)]) {
    if kinds.len() < 2 || kinds.iter().any(|(group, _)| matches!(group.of, Of::Cpu(_))) {
        return;
    }
    let times = |(_, figures): &(&Group, Figures)| (figures.sum.time_enabled_ns, figures.sum.time_running_ns);
    let all: Vec<(u64, u64)> = kinds.iter().map(times).collect();
    let mut counted = all.iter().filter(|(_, running)| *running > 0);
    let enabled = match (counted.next(), counted.next()) {
        (Some((enabled, _)), None) => *enabled,
        _ => all.iter().map(|(enabled, _)| *enabled).max().unwrap_or(0),
    };
    let none = enabled.saturating_sub(all.iter().map(|(_, running)| running).sum());
    for (_, figures) in kinds {
        figures.sum.time_enabled_ns = figures.sum.time_running_ns + none;
    }
}

fn columns(arguments: &Arguments, groups: &Groups) -> Columns {
    let cpus = groups.all.iter().any(|group| matches!(group.of, Of::Cpu(_)));
    let pmus: BTreeSet<&str> = groups.all.iter().map(|group| group.info.pmu.as_str()).collect();
    let repeats = arguments.repeat.is_some();
    let mut columns = Columns {
        time: arguments.interval_print.is_some(),
        of: arguments.by().map(By::name).or(repeats.then_some("run")),
        pmu: pmus.len() > 1,
        seconds: repeats,
        cpus: !cpus,
        // (of user mode alone the cycles are known, but not the time)
        clock: arguments.what.kernel && !cpus,
        ..Columns::default()
    };
    for group in &groups.all {
        columns.add(&group.nodes().unwrap_or_default());
    }
    columns
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation.
fn spread(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_the_standard_deviation() {
        assert_eq!(mean(&[1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(spread(&[1.0, 2.0, 3.0]), Some(1.0));
        assert_eq!((spread(&[1.0]), mean(&[])), (None, None));
    }
}
