//! `topdown record`: which functions waste slots, sampled from outside.
#![forbid(unsafe_code)]

mod drill;
mod sampled;

use crate::means;
use crate::outcome::{Failure, ended, failed, not_run};
use crate::require::{Requirement, judged};
use crate::stat::{CgroupNames, StatTarget, cgroup_path, cpu_list};
use crate::sys::{self, End, Interrupts};
use crate::{say, simulation};
use sampled::AnyRecorder;
pub use sampled::{NO_PROC, Sampled};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use topdown_record::views::{Heading, View, says_no_callers, says_nothing};
use topdown_record::{
    CallGraph, EventSampling, Journal, JournalContents, Profile, RecordUntil, RecordingEnd, Settings,
    SourcePlace, lbr_of_cpus,
};
use topdown_report::steps::{Means, quoted};
use topdown_report::terminal::{Layout, Progress, Stream, say_written};
use topdown_report::{Claim, Output};

/// Options of `topdown record`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Record these processes: all their threads, and what those start. Until they end, or Ctrl-C
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "command")]
    pid: Vec<i32>,
    /// Record the processes of these cgroups and of their descendants, and what those start. (Processes that are moved there later are not
    /// recorded.) Cgroups are named by their paths below the mount point of the hierarchy (mostly /sys/fs/cgroup)
    #[arg(short = 'G', long = "cgroup", value_name = "CGROUP,...", value_delimiter = ',', conflicts_with_all = ["command", "pid", "all_cpus", "cpus"])]
    cgroup: Vec<String>,
    /// Record whatever runs on all CPUs, until COMMAND ends or Ctrl-C (kernel.perf_event_paranoid at most 0, or CAP_PERFMON)
    #[arg(short, long, conflicts_with = "pid")]
    all_cpus: bool,
    /// Record whatever runs on these CPUs: a list such as 0-3,7
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", value_parser = cpu_list, conflicts_with = "pid")]
    cpus: Option<BTreeSet<u32>>,
    /// Bursts per second and thread, or with -a or -C per second and CPU [default: 500]. One costs the thread some 16,000 instructions. Where
    /// slots cannot be told, samples per second of CPU time [default: 1000]. At most 2000, which is what `max` asks for
    #[arg(short = 'F', long, value_name = "N|max", value_parser = frequency)]
    frequency: Option<u32>,
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
    /// How callers are told: fp (frame pointers), or dwarf[,BYTES]: with each sample so many bytes of the stack are copied [8192],
    /// and unwound by what files say of functions without frame pointers; or lbr: by branch records that Intel's CPUs have, the last 8 to 32
    #[arg(long, value_name = "fp|dwarf[,BYTES]|lbr", default_value = "fp", value_parser = call_graph)]
    call_graph: CallGraph,
    /// Callers are told by frame pointers, as they are without it; or as --call-graph says
    #[arg(short = 'g')]
    callers: bool,
    /// Count down to this level [default: the deepest that the general-purpose counters have, or the registers where those are taken]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=2))]
    td_level: Option<u32>,
    /// Sample what the kernel does, too (kernel.perf_event_paranoid at most 1, or CAP_PERFMON)
    #[arg(long, conflicts_with = "call_graph")]
    kernel: bool,
    /// Time alone, without perf_event_open(2): stop the command's threads at random instants, by ptrace(2), and look at them. Debuggers do not work in a
    /// command that is traced, nor do setuid programs
    #[arg(long, requires = "command", conflicts_with_all = ["all_cpus", "cpus", "pid", "cgroup", "kernel", "condition", "locate", "drill", "td_level"])]
    ptrace: bool,
    /// Sample only where a ratio of two events is above or below a limit: 'ipc<0.5', 'cache-misses/instructions>0.01', or perf's
    /// 'instructions/period=20000/,cycles/ratio-to-prev=0.5/'. By auto counter reload, which few CPUs have
    #[arg(long = "where", value_name = "CONDITION", group = "sampled", conflicts_with_all = ["frequency", "gap", "budget", "td_level", "call_graph", "kernel"])]
    condition: Option<String>,
    /// Sample the event that locates this node of levels 1 to 6 (`topdown list --nodes`), as precisely as the CPU can: which functions
    /// and lines have it. NODE=EVENT chooses where several events do
    #[arg(long, value_name = "NODE", group = "sampled", conflicts_with_all = ["frequency", "gap", "budget", "td_level", "call_graph", "kernel"])]
    locate: Option<String>,
    /// Drill down as `topdown stat --drill` does, and then, while the program goes on, sample the events that locate what was found: which
    /// nodes are over their thresholds, and which functions and lines have them. A text, or .json
    #[arg(long, conflicts_with_all = ["frequency", "gap", "budget", "td_level", "call_graph", "kernel", "condition", "locate"])]
    drill: bool,
    /// Exit with status 123 if the command succeeds, and how slots divide is not told, or not down to this level
    #[arg(long, value_name = "slots|LEVEL", conflicts_with_all = ["from", "drill"])]
    require: Option<Requirement>,
    /// With --locate, how many events from one sample to the next [default: as many as its maker has published]; with --where, what the
    /// event that samples counts in a stretch of which it is told whether the condition held [default: such that the longer of the two
    /// periods is 1,000,000]
    #[arg(long, value_name = "N", requires = "sampled", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    period: Option<u64>,
    /// Write the profile to FILE (- for standard output), in the format of its ending: .html (a page), .svg (a flame graph), .json,
    /// .csv, .folded (stacks), .pprof, .firefox.json (for profiler.firefox.com), .recording (for --from), .txt or none [default: a text to
    /// standard error]. In the name, %p stands for the process id, %h for the host, %r for the rank, %n for the program, %t for the time
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What was there when this began.
    #[arg(skip)]
    claim: Option<Claim>,
    /// Record nothing: make a profile of what was recorded into FILE. Programs and libraries are looked up as they are now
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "pid", "cgroup", "all_cpus", "cpus", "frequency", "budget", "duration", "gap", "td_level", "call_graph", "condition", "locate", "drill", "kernel"])]
    from: Option<PathBuf>,
    /// In the text, below each function its hottest lines: where there is DWARF (-g). (.html, .json, .pprof and .firefox.json have lines in any case)
    #[arg(long)]
    lines: bool,
    /// Source files are in DIR, at the end of the paths that the compiler knew; or those whose paths begin with FROM are in DIR. May be
    /// given more than once. (Of a file that is nowhere else its own path counts)
    #[arg(long, value_name = "[FROM=]DIR", value_parser = SourcePlace::of)]
    source: Vec<SourcePlace>,
    /// The command and its arguments
    #[arg(required_unless_present_any = ["pid", "cgroup", "all_cpus", "cpus", "from"], trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How it is called.
pub const USAGE: &str = "topdown record [OPTIONS] COMMAND...
       topdown record [OPTIONS] -p PID,...
       topdown record [OPTIONS] -a [COMMAND...]
       topdown record [OPTIONS] -C CPUS [COMMAND...]
       topdown record [-o FILE] --from FILE.recording";

/// What `topdown record --help` says of the rest.
pub const HELP: &str = "\
Nothing is loaded into the programs, which need frame pointers for their callers to be seen (or --call-graph dwarf or lbr), symbols for
names, and DWARF (-g) for inlined functions and lines. At random instants counters are enabled on a thread for three samples that lie a short gap
apart. What was counted between two of them is the function's in which both are; a clock of each thread tells the time, or with -a and -C
one of each CPU.
Each figure has an interval in which the truth is with a probability of 95 %, or it is said that it cannot be told. Shares and time are
of user mode alone, unless --kernel says otherwise.

While FILE of -o is not written yet, FILE.PID.recording beside it has what was recorded: if topdown is killed, `topdown record
--from` makes the profile of that.

With --where, --locate and --drill no windows are counted, no shares of functions told, and nothing is kept before the end. With --where two counters reload each other, and a sample is taken
where one of them comes first: each is a stretch of the program in which the condition held. With --locate each sample is an event.

Exit status: that of the command, and if a signal killed it, by the same signal; 126 if the command cannot be
executed, 127 if it is not found; 125 if `topdown` itself fails before it runs, as for wrong arguments, or without a command cannot
write the profile; 123 if it succeeds and slots are not told as --require says.";

/// After so long a recording the profile takes a while.
const LONG: Duration = Duration::from_secs(10);

const NO_SOURCE: &str = "--source: only texts with --lines and .html show lines of source files";

const NO_FILE: &str = "a recording is a file beside which others may be; this is none";
const NOTHING_KEPT: &str = "nothing of what was recorded is kept";

/// Whether a recording can be kept beside what a profile is written to: not beside a device or somebody's descriptor.
fn has_room_beside(path: &Path) -> bool {
    let named = fs::symlink_metadata(path);
    fs::metadata(path).map_or(true, |about| about.is_file())
        || named.is_ok_and(|about| about.file_type().is_fifo())
}

/// What to read instead of a profile that cannot be written. A file in which nothing can be read is removed.
fn what_is_kept(journal: &Journal) -> String {
    let much = match journal.failed() {
        None => "what was recorded",
        Some(_) if JournalContents::read(journal.path()).is_ok() => "the beginning of what was recorded",
        Some(_) => {
            let _ = fs::remove_file(journal.path());
            return NOTHING_KEPT.into();
        }
    };
    format!("{much} is in {} (--from)", journal.path().display())
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.01..=50.0).contains(percent));
    percent.ok_or_else(|| "not a percentage from 0.01 to 50".into())
}

/// So many bytes of a stack, unless others are asked for (as perf record).
const STACK: u32 = 8192;
/// A record has less than 64 KiB.
const MOST_STACK: u32 = 60 << 10;

fn call_graph(text: &str) -> Result<CallGraph, String> {
    let bytes = match text.split_once(',') {
        None if text == "fp" => return Ok(CallGraph::FramePointers),
        None if text == "lbr" => return Ok(CallGraph::Lbr),
        None if text == "dwarf" => Some(STACK),
        Some(("dwarf", bytes)) => bytes.parse().ok().filter(|bytes| (256..=MOST_STACK).contains(bytes)),
        _ => return Err("not fp, lbr, dwarf or dwarf,BYTES".into()),
    };
    let bytes = bytes.filter(|bytes| bytes % 8 == 0);
    bytes
        .map(CallGraph::Dwarf)
        .ok_or_else(|| format!("BYTES is not a multiple of 8 from 256 to {MOST_STACK}"))
}

/// Bursts in a second and thread: more would be in each other's way.
const MOST_FREQUENT: u32 = 2000;
/// What `max` stands for until it is known to be too many.
const AS_MANY_AS_CAN_BE: u32 = u32::MAX;

fn frequency(text: &str) -> Result<u32, String> {
    let number = if text == "max" { Some(AS_MANY_AS_CAN_BE) } else { text.parse().ok() };
    number.filter(|number| *number > 0).ok_or_else(|| "neither a number from 1 up nor max".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|duration| !duration.is_zero()).ok_or_else(|| "not a number of seconds above 0".into())
}

/// Exit status of the command.
pub fn run(mut arguments: Arguments) -> ExitCode {
    if let Some(file) = &mut arguments.output {
        match sys::named(file, arguments.command.first()) {
            Ok(named) => *file = named,
            Err(error) => return ended(Err(failed(error))),
        }
    }
    arguments.claim = arguments.output.as_deref().map(Claim::of);
    arguments.limit_frequency();
    ended(recorded(&arguments))
}

fn recorded(arguments: &Arguments) -> Result<End, Failure> {
    let view = arguments.view().map_err(failed)?;
    if arguments.of_cpus().is_some() && arguments.call_graph == CallGraph::Lbr {
        lbr_of_cpus().map_err(failed)?;
    }
    if let Some(output) = arguments.output.as_deref() {
        Output::check(output).map_err(failed)?;
        if view.is_none() && fs::metadata(output).is_ok_and(|about| !about.is_file()) {
            return Err(failed(format!("-o {}: {NO_FILE}", output.display())));
        }
    }
    if let Some(from) = arguments.from.as_deref() {
        return arguments.again(from, view);
    }
    sys::raise_descriptors();
    let of_drill = arguments.drill.then(|| drill::checked(view)).transpose()?;
    let sampled = match simulation::core_by_counters().map_err(failed)? {
        Some(core) => Sampled::simulated(arguments, core),
        None => Sampled::of(arguments),
    };
    let sampled = sampled.map_err(failed)?;
    if let Some(view) = of_drill.filter(|_| sampled.tells_slots()) {
        return drill::recorded(arguments, view);
    }
    if let Some(why) = sampled.has_no_recording().filter(|_| view.is_none()) {
        return Err(failed(why));
    }
    let recorder = |pids: &[i32], there: bool| sampled.recorder(arguments, pids, there);
    let end = match arguments.command.is_empty() {
        true => arguments.others(view, recorder),
        false => arguments.command(view, recorder, matches!(sampled, Sampled::Time(..))),
    };
    judged(end?, arguments.require.and_then(|required| sampled.lacks(required)))
}

impl Arguments {
    /// Takes as many bursts as can be for more.
    fn limit_frequency(&mut self) {
        let Some(asked) = self.frequency.filter(|asked| *asked > MOST_FREQUENT) else { return };
        if asked != AS_MANY_AS_CAN_BE {
            say(&format!(
                "-F {asked}: no more than {MOST_FREQUENT} bursts a second can be asked for, and so many are"
            ));
        }
        self.frequency = Some(MOST_FREQUENT);
    }

    /// The view to write; None: what was recorded itself, of which views are made.
    fn view(&self) -> Result<Option<View>, String> {
        let view = match self.output.as_deref() {
            None => View::Text,
            Some(path) if path.extension().is_some_and(|ending| ending == "recording") => {
                let option = self.condition.as_ref().map(|_| "--where");
                return match option.or(self.locate.as_ref().map(|_| "--locate")) {
                    _ if self.lines => Err("--lines: a recording has all lines".into()),
                    _ if !self.source.is_empty() => Err(NO_SOURCE.into()),
                    Some(option) => {
                        Err(format!("{option}: there is no .recording of it; choose another ending"))
                    }
                    None => Ok(None),
                };
            }
            Some(path) => View::of(path).map_err(|why| format!("{why} (or .recording)"))?,
        };
        let view = if self.lines { view.with_lines()? } else { view };
        if !self.source.is_empty() && !view.shows_sources() {
            return Err(NO_SOURCE.into());
        }
        Ok(Some(view))
    }

    /// The event to sample, if one is; it has been tried.
    fn sampling(&self) -> Result<Option<EventSampling>, String> {
        let sampling = match (&self.condition, &self.locate) {
            (Some(text), _) => EventSampling::where_holds(text, self.period)?,
            (None, Some(text)) => EventSampling::locating(text, self.period)?,
            (None, None) => return Ok(None),
        };
        match &self.cpus {
            Some(cpus) => sampling.only_on(cpus).map(Some),
            None => Ok(Some(sampling)),
        }
    }

    /// The command as headings have it, with the CPUs that are recorded while it runs.
    fn command_line(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let command_line = words.join(" ");
        let during = self.of_cpus().map(|cpus| format!("{} during {command_line}", cpus.title()));
        topdown_report::clean(&during.unwrap_or(command_line))
    }

    /// CPUs, if these are recorded.
    fn of_cpus(&self) -> Option<StatTarget> {
        (self.all_cpus || self.cpus.is_some()).then(|| StatTarget::Cpus(self.cpus.clone()))
    }

    fn until(&self, ends: &[OwnedFd], interrupts: Option<&Interrupts>) -> RecordUntil {
        RecordUntil {
            ends: ends.iter().map(AsRawFd::as_raw_fd).collect(),
            interrupt: interrupts.map(Interrupts::descriptor),
            timeout: self.duration,
            ..RecordUntil::default()
        }
    }

    /// Options by which the same is recorded again. (Others say how much is sampled, or what is shown.)
    fn kept_options(&self) -> String {
        let callers = match self.call_graph {
            CallGraph::FramePointers => String::new(),
            CallGraph::Lbr => "--call-graph lbr".into(),
            CallGraph::Dwarf(STACK) => "--call-graph dwarf".into(),
            CallGraph::Dwarf(bytes) => format!("--call-graph dwarf,{bytes}"),
        };
        let duration =
            self.duration.map_or(String::new(), |time| format!("--duration {}", time.as_secs_f64()));
        let kernel = if self.kernel { "--kernel" } else { "" };
        let stops = if self.ptrace { "--ptrace" } else { "" };
        let options = [stops, kernel, &callers, &duration];
        options.into_iter().filter(|option| !option.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Runs a command, and records it; if that is not possible it runs all the same. `is_of_timer`: it samples time alone.
    fn command(
        &self,
        view: Option<View>,
        recorder: impl Fn(&[i32], bool) -> Result<AnyRecorder, String>,
        is_of_timer: bool,
    ) -> Result<End, Failure> {
        let (program, rest) = self.command.split_first().expect("clap demands one");
        let mut command = Command::new(program);
        command.args(rest);
        let (command_line, occasion) = (self.command_line(), sys::occasion());
        let means = match self.of_cpus() {
            Some(cpus) => means::of_until(&cpus, &self.command),
            None if is_of_timer => means::from_the_start(means::of_command(&self.command)),
            None => means::of_command(&self.command),
        };
        let means = Means { options: self.kept_options(), ..means }.and("of-kernel", self.kernel);
        let heading = Heading { command: &command_line, occasion: &occasion, means: Some(&means) };
        let mut elapsed = Duration::ZERO;
        let write = |recorder: Option<AnyRecorder>, elapsed| {
            let written = recorder.map(|recorder| self.write(recorder, elapsed, view, &heading));
            written.and_then(Result::err).iter().for_each(|why| say(why));
        };
        let attend = |recorder: &mut Result<Option<AnyRecorder>, String>, pid: i32, start: Instant| {
            let Ok(there) = recorder else { return };
            let Some(recorder) = there else { return };
            self.keep(recorder, &heading);
            let end = sys::process(pid).map(|process| recorder.run(self.until(&[process], None)));
            elapsed = start.elapsed();
            match end {
                // (the command goes on, and no more of it is recorded)
                Ok(RecordingEnd::TimedOut) => write(there.take(), elapsed),
                Ok(_) => {}
                Err(error) => say(&format!("nothing is recorded: pidfd_open: {error}")),
            }
        };
        let ran = sys::run_attended(&mut command, |pid| recorder(&[pid], false).map(Some), attend);
        let (ran, recorder) = ran.map_err(|error| not_run(program, &error))?;
        match recorder {
            Ok(recorder) => write(recorder, elapsed),
            Err(why) => {
                say(&format!("nothing is recorded: {why}"));
                return judged(ran.end, self.require.map(|_| "nothing is recorded".into()));
            }
        }
        Ok(ran.end)
    }

    fn others(
        &self,
        view: Option<View>,
        recorder: impl Fn(&[i32], bool) -> Result<AnyRecorder, String>,
    ) -> Result<End, Failure> {
        let (whom, processes) = self.whom()?;
        let interrupts = sys::interrupts().map_err(failed)?; // (also one that comes while counters are opened ends the recording)
        let mut recorder = recorder(&whom.pids(), true).map_err(failed)?;
        let (start, occasion) = (Instant::now(), sys::occasion());
        let in_cgroups = (!self.cgroup.is_empty()).then(|| self.cgroup.join(","));
        let title = in_cgroups.as_ref().map_or_else(|| whom.title(), |cgroups| format!("cgroup {cgroups}"));
        let command = topdown_report::clean(&title);
        let mut means =
            Means { options: self.kept_options(), ..means::of(&whom) }.and("of-kernel", self.kernel);
        if let Some(cgroups) = &in_cgroups {
            means.whom = format!("-G {}", quoted(cgroups));
        }
        let heading = Heading { command: &command, occasion: &occasion, means: Some(&means) };
        self.keep(&mut recorder, &heading);
        recorder.run(self.until(&processes, Some(&interrupts)));
        drop(interrupts); // a second one ends what follows
        self.write(recorder, start.elapsed(), view, &heading).map_err(failed)?;
        Ok(End::Status(0))
    }

    /// The processes that are recorded, with what ends when they do; or the CPUs.
    fn whom(&self) -> Result<(StatTarget, Vec<OwnedFd>), Failure> {
        if let Some(cpus) = self.of_cpus() {
            return Ok((cpus, Vec::new()));
        }
        let ended = |error: io::Error, pid: &i32| match error.raw_os_error() {
            Some(libc::ESRCH) => failed(format!("there is no process {pid}")),
            Some(libc::EINVAL | libc::ENOENT) => failed(format!(
                "{pid} is a thread, not a process: record its process, the Tgid of /proc/{pid}/status"
            )),
            _ => failed(format!("process {pid}: {error}")),
        };
        if !self.cgroup.is_empty() {
            return self.of_cgroups();
        }
        let pids = BTreeSet::from_iter(self.pid.iter().copied());
        let process = |pid: &i32| sys::process(*pid).map_err(|error| ended(error, pid));
        let processes = pids.iter().map(process).collect::<Result<Vec<_>, _>>()?;
        Ok((StatTarget::Processes(pids), processes))
    }

    /// The processes that are in the cgroups now, but for this one.
    fn of_cgroups(&self) -> Result<(StatTarget, Vec<OwnedFd>), Failure> {
        let names = CgroupNames::read().map_err(failed)?;
        let paths: Vec<String> = self.cgroup.iter().map(|path| cgroup_path(path, usize::MAX)).collect();
        paths.iter().try_for_each(|path| names.find(path)).map_err(failed)?;
        // (one that ends meanwhile is none)
        let there = |pid: i32| Some((pid, sys::process(pid).ok()?));
        let others = names.processes(&paths).into_iter().filter(|pid| *pid != std::process::id() as i32);
        let (pids, processes): (BTreeSet<i32>, Vec<OwnedFd>) = others.filter_map(there).unzip();
        if pids.is_empty() {
            return Err(failed(format!("no process runs in {}", paths.join(" or "))));
        }
        Ok((StatTarget::Processes(pids), processes))
    }

    /// A profile of what was recorded before.
    fn again(&self, from: &Path, view: Option<View>) -> Result<End, Failure> {
        let view = view.ok_or("-o: what was recorded is in the file of --from; choose another ending");
        let view = view.map_err(failed)?;
        let JournalContents { recording, command, occasion, cut, .. } =
            JournalContents::read(from).map_err(failed)?;
        let (command, occasion) = (topdown_report::clean(&command), topdown_report::clean(&occasion));
        let means = means::of_file(from);
        let heading = Heading { command: &command, occasion: &occasion, means: Some(&means) };
        let mut progress = Progress::of("making the profile");
        progress.begin();
        let mut profile = Profile::new(&recording);
        drop(progress);
        profile.notes.extend([cut].into_iter().filter(|cut| !cut.is_empty()));
        self.write_view(profile, view, &heading, topdown_report::print_bytes).map_err(failed)?;
        Ok(End::Status(0))
    }

    /// Where the profile is to be, unless that is standard error.
    fn place(&self) -> Option<PathBuf> {
        self.claim.as_ref().map(Claim::place)
    }

    /// Keeps what is recorded beside the file that will be written, if there will be one.
    fn keep(&self, recorder: &mut AnyRecorder, heading: &Heading) {
        let Some(recorder) = recorder.keeper() else { return };
        let file = self.output.as_deref().filter(|path| !topdown_report::is_stdout(path));
        let Some(file) = file.filter(|path| has_room_beside(path)) else { return };
        let mut beside = file.as_os_str().to_os_string();
        beside.push(format!(".{}.recording", std::process::id()));
        let beside = PathBuf::from(beside);
        match Journal::create(&beside) {
            Ok(journal) => recorder.keep_in(journal, heading.command, heading.occasion),
            Err(error) => say(&format!("{}: {error}: nothing is kept until the end", beside.display())),
        }
    }

    fn write(
        &self,
        recorder: AnyRecorder,
        elapsed: Duration,
        view: Option<View>,
        heading: &Heading,
    ) -> Result<(), String> {
        let mut progress = Progress::of("making the profile");
        if elapsed >= LONG {
            progress.begin();
        }
        let (recording, journal) = recorder.finish(elapsed);
        let written = match (view, journal.as_ref(), self.place()) {
            (Some(view), ..) => {
                let profile = Profile::new(&recording);
                drop(progress);
                self.write_view(profile, view, heading, |text| io::stderr().write_all(text))
            }
            (None, Some(journal), Some(output)) => match journal.failed() {
                Some(error) => Err(io::Error::other(format!("{}: {error}", journal.path().display()))),
                None => fs::rename(journal.path(), &output)
                    .map(|()| say_written("recording", &output))
                    .map_err(|error| io::Error::other(format!("{}: {error}", output.display()))),
            },
            (None, ..) => Err(io::Error::other(NO_FILE)),
        };
        let kept = journal.filter(|journal| journal.path().exists());
        match (written, kept) {
            (Ok(()), Some(journal)) => {
                let removed = fs::remove_file(journal.path());
                if let Some(error) = removed.err().filter(|error| error.kind() != io::ErrorKind::NotFound) {
                    say(&format!("{} is left over: it cannot be removed: {error}", journal.path().display()));
                }
            }
            (Ok(()), None) => {}
            (Err(error), kept) => {
                let kept = kept.map_or(NOTHING_KEPT.into(), |journal| what_is_kept(&journal));
                return Err(format!("the profile cannot be written: {error}; {kept}"));
            }
        }
        Ok(())
    }

    fn write_view(
        &self,
        mut profile: Profile,
        view: View,
        heading: &Heading,
        otherwise: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        view.read_sources(&mut profile, &self.source);
        let of_others = if self.from.is_some() { Stream::Output } else { Stream::Error };
        let layout = Layout::of_output(self.output.as_deref(), of_others);
        let text = view.write_for(&profile, heading, &layout);
        match self.place() {
            None => otherwise(&text),
            Some(path) if topdown_report::is_stdout(&path) => topdown_report::print_bytes(&text),
            Some(path) => {
                let mut output = Output::create(&path)?;
                output.write_all(&text)?;
                output.finish()?;
                say_written("profile", &path);
                for why in says_nothing(&profile).into_iter().chain(says_no_callers(&profile)) {
                    say(&format!("{}: {why}", path.display()));
                }
                Ok(())
            }
        }
    }
}
