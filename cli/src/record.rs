//! `topdown record`: which functions waste slots, sampled from outside.
#![forbid(unsafe_code)]

use crate::run::{FAILED, Failure, SOURCE, ended, not_run};
use crate::say;
use crate::stat::name_of;
use crate::sys::{self, End, Interrupts};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use topdown::{Options, SampledEvents, SourceKind, TopDown, sampled_events};
use topdown_record::views::{Heading, View};
use topdown_record::{Profile, RecordUntil, Recorder, Settings};
use topdown_report::Output;

/// Options of `topdown record`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Record these processes: all their threads, and what those start. Until they end, or Ctrl-C
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "command")]
    pid: Vec<i32>,
    /// Bursts per second and thread. One costs the thread some 16,000 instructions
    #[arg(short = 'F', long, value_name = "N", default_value_t = Settings::default().frequency, value_parser = clap::value_parser!(u32).range(1..=2000))]
    frequency: u32,
    /// Bursts take no more than this part of a thread's time, by measurement: fewer are begun than -F says, and that is said
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0 * Settings::default().budget, value_parser = percent)]
    budget: f64,
    /// Record no longer than so many seconds; a command goes on
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Cycles from one sample of a burst to the next, on average; of half of the bursts four times as many. Functions that run for
    /// less cannot be told
    #[arg(long, value_name = "CYCLES", default_value_t = Settings::default().gap, value_parser = clap::value_parser!(u64).range(300..=100_000))]
    gap: u64,
    /// Count down to this level [default: the deepest that the general counters have, or the registers where those are taken]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=2))]
    td_level: Option<u32>,
    /// Sample what the kernel does, too (kernel.perf_event_paranoid at most 1, or CAP_PERFMON)
    #[arg(long)]
    kernel: bool,
    /// Write the profile to FILE (- for standard output), in the format of its ending: .html (a page), .svg (a flame graph), .json,
    /// .csv, .folded (stacks), .pprof, .txt or none [default: a text to standard error]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// In the text, below each function its hottest lines: where there is DWARF (-g). (.json has lines in any case)
    #[arg(long)]
    lines: bool,
    /// The command and its arguments
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What `topdown record --help` says of the rest.
pub const HELP: &str = "\
Nothing is loaded into the programs, which need frame pointers for their callers to be seen, symbols for names, and DWARF
(-g) for inlined functions and lines. At random instants counters are enabled on a thread for three samples that lie a short gap
apart. What was counted between two of them is the function's in which both are; the first sample of each burst tells the time.
Each figure has an interval in which the truth is with a probability of 95 %, or it is said that it cannot be told. Of user mode
alone, unless --kernel says otherwise.

Exit status: that of the command, and if a signal killed it, by the same signal; 126 if the command cannot be
executed, 127 if it is not found; 125 if `topdown` itself fails before it runs.";

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.01..=50.0).contains(percent));
    percent.ok_or_else(|| "not a percentage from 0.01 to 50".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|duration| !duration.is_zero()).ok_or_else(|| "not a number of seconds".into())
}

/// Exit status of the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    ended(recorded(arguments))
}

fn failed(error: impl ToString) -> Failure {
    (FAILED, error.to_string())
}

fn recorded(arguments: &Arguments) -> Result<End, Failure> {
    let view = arguments.output.as_deref().map_or(Ok(View::Text), View::of).map_err(failed)?;
    let view = if arguments.lines { view.with_lines().map_err(failed)? } else { view };
    if let Some(output) = arguments.output.as_deref() {
        Output::check(output).map_err(failed)?;
    }
    sys::raise_descriptors();
    if arguments.command.is_empty() { arguments.others(view) } else { arguments.command(view) }
}

/// What TOPDOWN_SOURCE says.
fn source() -> Result<SourceKind, String> {
    match std::env::var(SOURCE).unwrap_or_default().as_str() {
        "" => Ok(SourceKind::Automatic),
        "registers" => Ok(SourceKind::Registers),
        "counters" => Ok(SourceKind::Counters),
        other => Err(format!("{SOURCE} is '{other}', neither registers nor counters")),
    }
}

/// The events, once this thread has seen that they count: general counters if they are free, else registers.
fn events(level: u32, kernel: bool, wanted: SourceKind) -> Result<Vec<SampledEvents>, topdown::Error> {
    let info = |source| {
        let options = Options { source, level, kernel, no_rdpmc: true, ..Options::default() };
        TopDown::open(&options)?.info()
    };
    let (source, why) = match wanted {
        SourceKind::Automatic => match info(wanted)? {
            found if found.counters > 0 => (SourceKind::Counters, String::new()),
            found => (SourceKind::Registers, found.note.to_string()),
        },
        told => (told, format!("{SOURCE} says what is counted")),
    };
    let mut events = sampled_events(info(source)?.level, source)?;
    if source == SourceKind::Registers {
        events[0].note = format!(
            "{why}. SLOTS and PERF_METRICS are rounded to 1/255 of each window, which is within the bounds"
        );
    }
    Ok(events)
}

impl Arguments {
    fn recorder(&self, pids: &[i32], there: bool) -> Result<Recorder, String> {
        let events =
            events(self.td_level.unwrap_or(0), self.kernel, source()?).map_err(|error| error.to_string())?;
        let settings = Settings {
            frequency: self.frequency,
            gap: self.gap,
            budget: self.budget / 100.0,
            kernel: self.kernel,
        };
        Recorder::new(events, pids, there, settings).map_err(|error| error.to_string())
    }

    fn until(&self, ends: &[OwnedFd], interrupts: Option<&Interrupts>) -> RecordUntil {
        RecordUntil {
            ends: ends.iter().map(AsRawFd::as_raw_fd).collect(),
            interrupt: interrupts.map(Interrupts::descriptor),
            timeout: self.duration,
        }
    }

    /// Runs a command, and records it; if that is not possible it runs all the same.
    fn command(&self, view: View) -> Result<End, Failure> {
        let (program, rest) = self.command.split_first().expect("clap demands one");
        let mut command = Command::new(program);
        command.args(rest);
        let (mut elapsed, occasion) = (Duration::ZERO, sys::occasion());
        let attend = |recorder: &mut Result<Recorder, String>, pid: i32, start: Instant| {
            let Ok(recorder) = recorder else { return };
            match sys::process(pid) {
                Ok(process) => _ = recorder.run(self.until(&[process], None)),
                Err(error) => say(&format!("nothing is recorded: pidfd_open: {error}")),
            }
            elapsed = start.elapsed();
        };
        let ran = sys::run_attended(&mut command, |pid| self.recorder(&[pid], false), attend);
        let (ran, recorder) = ran.map_err(|error| not_run(program, &error))?;
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        match recorder {
            Ok(recorder) => self.write(recorder, elapsed, view, &words.join(" "), &occasion),
            Err(why) => say(&format!("nothing is recorded: {why}")),
        }
        Ok(ran.end)
    }

    fn others(&self, view: View) -> Result<End, Failure> {
        let ended = |error: io::Error, pid: &i32| match error.raw_os_error() {
            Some(libc::ESRCH) => failed(format!("there is no process {pid}")),
            _ => failed(format!("process {pid}: {error}")),
        };
        let process = |pid: &i32| sys::process(*pid).map_err(|error| ended(error, pid));
        let processes = self.pid.iter().map(process).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<_> = self.pid.iter().map(|pid| format!("{pid} ({})", name_of(*pid))).collect();
        let mut recorder = self.recorder(&self.pid, true).map_err(failed)?;
        let interrupts = sys::interrupts().map_err(failed)?;
        let (start, occasion) = (Instant::now(), sys::occasion());
        recorder.run(self.until(&processes, Some(&interrupts)));
        drop(interrupts); // a second one ends what follows
        self.write(recorder, start.elapsed(), view, &format!("process {}", names.join(", ")), &occasion);
        Ok(End::Status(0))
    }

    fn write(&self, recorder: Recorder, elapsed: Duration, view: View, command: &str, occasion: &str) {
        let profile = Profile::new(&recorder.finish(elapsed));
        let command = topdown_report::clean(command);
        let text = view.write(&profile, &Heading { command: &command, occasion });
        let written = match self.output.as_deref() {
            None => io::stderr().write_all(&text),
            Some(path) if path == Path::new("-") => io::stdout().write_all(&text),
            Some(path) => Output::create(path).and_then(|mut output| {
                output.write_all(&text)?;
                output.finish()
            }),
        };
        if let Err(error) = written {
            say(&format!("the profile cannot be written: {error}"));
        }
    }
}
