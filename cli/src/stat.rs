//! `topdown stat`: a program whose slots are counted from outside.
//!
//! Plain counters are opened on the process that is to be the program, and go from there to all that it starts. The kernel keeps what
//! they counted when a process ends, however it does.
#![forbid(unsafe_code)]

use crate::run::{FAILED, Failure, ended, not_run};
use crate::say;
use crate::sys::{self, End, Family, Ran};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;
use topdown::{Error, Options, Sample, SourceKind, Sum, Target, TopDown};
use topdown_report::model::{Machine, Run};
use topdown_report::{Format, Output, OutsideCount, Report, write};

/// Options of `topdown stat`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the report to FILE, in the format of its ending: .csv, .json, .html, else text [default: a text to standard
    /// error]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write JSON, whatever the ending
    #[arg(long)]
    json: bool,
    /// Write comma-separated values, whatever the ending
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    what: What,
    /// If the command leaves processes behind, wait until they have ended, too, or for Ctrl-C
    #[arg(long)]
    wait: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What is counted.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct What {
    /// Count down to this level [default: the deepest that the general counters have; level 1 takes three of them, level 2
    /// seven]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=2))]
    td_level: Option<u32>,
    /// Count what the kernel does for the command, too
    #[arg(long)]
    kernel: bool,
}

/// What `topdown stat --help` says of the rest.
pub const HELP: &str = "\
Nothing is loaded into the command, which runs as it would without: same input and output, same exit status. It is counted with all
threads and processes that it starts, in user mode, to the end of each, whatever ends it; static programs, too. What cannot be
counted runs all the same, and one line says why. Regions and single threads are for `topdown run`.

Exit status: that of the command, and if a signal killed it, by the same signal; 126 if the command cannot be
executed, 127 if it is not found; 125 if `topdown` itself fails before it runs.";

/// Exit status of the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    ended(counted(arguments))
}

fn counted(arguments: &Arguments) -> Result<End, Failure> {
    let output = arguments.output.as_deref();
    if let Some(output) = output {
        // not after hours that it cannot be written
        Output::check(output).map_err(|error| (FAILED, error.to_string()))?;
    }
    let (program, rest) = arguments.command.split_first().expect("clap demands one");
    let mut command = Command::new(program);
    command.args(rest);
    let (ran, count) = sys::run_to_end(&mut command, |pid| OutsideGroups::of(pid, &arguments.what.options()))
        .map_err(|error| not_run(program, &error))?;
    match count.and_then(|count| count.end(&ran, &arguments.command, arguments.wait)) {
        Err(why) => say(&format!("nothing is measured: {why}")),
        Ok(counted) => {
            let report = Report::new(&[], Some(counted));
            if let Err(error) = write(&report, output, format(arguments, output)) {
                say(&format!("no report: {error}"));
            }
        }
    }
    Ok(ran.end)
}

fn format(arguments: &Arguments, output: Option<&Path>) -> Format {
    match (arguments.json, arguments.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::of(output),
    }
}

/// A command as it was given.
fn words(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

impl What {
    fn options(self) -> Options {
        Options { level: self.td_level.unwrap_or(0), kernel: self.kernel, ..Options::default() }
    }
}

/// A process that is counted from its exec on, with all that it starts.
pub struct OutsideGroups {
    /// One for each kind of core, the P-cores first; each with its first reading.
    groups: Vec<(TopDown, Sample)>,
    family: Option<Family>,
}

impl OutsideGroups {
    /// Opens the counters, with these options otherwise.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of(pid: i32, options: &Options) -> Result<OutsideGroups, Error> {
        let p_cores = Options {
            target: Target::Task(pid),
            inherit: true,
            on_exec: true,
            source: SourceKind::Counters,
            ..*options
        };
        let open = |options: &Options| {
            let group = TopDown::open(options)?;
            let first = group.read()?;
            Ok((group, first))
        };
        let mut groups = vec![open(&p_cores)?];
        // (where there are none, or they cannot be counted, time on them is seen not to be counted)
        let e_cores = Options { e_cores: true, level: 1, source: SourceKind::Automatic, ..p_cores };
        groups.extend(open(&e_cores));
        Ok(OutsideGroups { groups, family: Family::of(pid).ok() })
    }

    /// What was counted, once the command has ended.
    ///
    /// # Errors
    /// Those of `td_read`.
    pub fn end(&self, ran: &Ran, command: &[OsString], wait: bool) -> Result<OutsideCount, Error> {
        let outlived = self.family.as_ref().is_some_and(|family| family.goes_on(wait));
        let mut parts = Vec::new();
        for (group, first) in &self.groups {
            let info = group.info()?;
            let machine = Machine {
                cpu: info.cpu,
                core: info.core,
                pmu: info.pmu,
                path: "read",
                level: info.level,
                slots_per_cycle: info.slots_per_cycle,
                max_error: 0.0,
                max_overhead: 0.0,
                note: info.note.to_string(),
            };
            let mut sum = Sum { from: *first, ..Sum::default() };
            sum.add(first, &settled(group, outlived)?)?;
            parts.push((machine, sum));
        }
        let (status, signal) = match ran.end {
            End::Status(status) => (Some(status), None),
            End::Signal(signal) => (None, Some(signal)),
        };
        let enabled = parts.iter().map(|(_, sum)| sum.time_enabled_ns).max().unwrap_or(0);
        let run = Run {
            command: words(command),
            status,
            signal,
            wall_ns: ran.wall.as_nanos() as u64,
            cpu_ns: ran.cpu.as_nanos() as u64,
            lost_ns: lost(ran, enabled),
            outlived,
        };
        Ok(OutsideCount { run, parts })
    }
}

/// CPU time in which processes ran on which nothing was open; less than this may be the kernel's own, at exec, at context switches and
/// when a thread ends.
fn lost(ran: &Ran, enabled: u64) -> u64 {
    const ONCE: u64 = 10_000_000;
    const SWITCH: u64 = 100_000;
    let used = ran.cpu.as_nanos() as u64;
    let lost = used.saturating_sub(enabled);
    let own = ONCE.saturating_add(SWITCH.saturating_mul(ran.switches)).saturating_add(used / 100);
    if lost > own { lost } else { 0 }
}

/// A reading of whose counters none is ahead of another. While a process ends, the kernel adds its counts to the others' one after
/// the other: then a later reading has less of a category, or more than there were slots in between.
fn settled(group: &TopDown, outlived: bool) -> Result<Sample, Error> {
    const TRIES: u32 = 100;
    let restless =
        || Error::new(-libc::EAGAIN, "processes end all the time, so the counters do not come to rest");
    let is_settled = |sample: &Sample, later: &Sample| {
        let slots = later.slots.checked_sub(sample.slots);
        let more = |(before, after): (&u64, &u64)| after.checked_sub(*before).zip(slots);
        let mut counters = sample.counter.iter().zip(&later.counter);
        counters.all(|counter| more(counter).is_some_and(|(more, slots)| more <= slots))
    };
    let mut last = Err(restless());
    for _ in 0..TRIES {
        last = group.read();
        if outlived {
            thread::sleep(Duration::from_millis(1)); // longer than that takes
        }
        match (&last, group.read()) {
            (Ok(sample), Ok(later)) if is_settled(sample, &later) => return last,
            (Ok(_), Ok(_)) => last = Err(restless()),
            // (the kernel reads no group whose events are just being taken apart: ECHILD)
            _ => {}
        }
    }
    last
}
