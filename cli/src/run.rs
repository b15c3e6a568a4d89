//! `topdown run`: a program under libtopdown-preload.so, and the report of it.

mod destination;

use crate::means;
use crate::metrics::Endpoint;
use crate::outcome::{FAILED, Failure, ended, failed, not_run, say_report, write_timeline};
use crate::require::{Requirement, judged};
use crate::stat::drill::{DeepNodes, TurnPlan};
use crate::stat::levels::{DEEPEST, LevelTrial};
use crate::stat::{LONGEST, OutsideGroups};
use crate::sys::{self, End, OpenedWatch};
use crate::{preload, say, simulation, sources, unmeasured};
use destination::{Destination, leave_job};
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use topdown::{Options, SourceKind, TopDown};
use topdown_report::{Format, Output, OutsideCount, Report};

/// What the library inside counts.
const SOURCE: &str = "TOPDOWN_SOURCE";
/// Down to which level it counts.
const LEVEL: &str = "TOPDOWN_LEVEL";
/// Which nodes of deeper levels regions have.
const NODES: &str = "TOPDOWN_NODES";
/// Names the library that programs with Intel's ITT API tell of their tasks.
const COLLECTOR: &str = "INTEL_LIBITTNOTIFY64";
/// How many seccomp filters `topdown` has: a program that has more was put into a sandbox, and nothing is done in it that may be killed for.
const FILTERS: &str = "TOPDOWN_SECCOMP_FILTERS";
/// Options of AddressSanitizer.
const SANITIZER: &str = "ASAN_OPTIONS";
/// Ending of the table files.
pub const TABLE: &str = "topdown";

/// Options of `topdown run`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the report to FILE, in the format of its ending: .csv, .json, .html, .parquet, .txt, .pftrace (the timeline alone); `-` is
    /// standard output [default: a text to standard error]. In the name, %p stands for the process id, %h for the host, %r for the rank, %n
    /// for the program, %t for the time
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write what was counted in each interval to FILE, too: .csv, .json, or .pftrace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Milliseconds between two readings for the timeline, from 1 up; twice as many whenever there are 1,000 intervals. 0: no timeline
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=LONGEST))]
    interval: u64,
    /// Answer HTTP requests for OpenMetrics (/metrics) at this address meanwhile: HOST:PORT, or a PORT of this machine alone
    #[arg(long, value_name = "ADDR")]
    open_metrics: Option<String>,
    /// Measure functions of the program as regions, static ones, too, at each call: FUNCTION,... or LIBRARY:FUNCTION,... as in TOPDOWN_FUNCTIONS. (On
    /// arm64 only in programs built with -finstrument-functions.) Names are the symbols that `nm` shows. Those of C++ and Rust are mangled: *parse* stands
    /// for each that has parse in it
    #[arg(long, value_name = "PATTERNS")]
    functions: Option<OsString>,
    /// Measure functions that libraries export as regions, at each call from the program or another library: LIBRARY:FUNCTION,... as in
    /// TOPDOWN_REGIONS. Names as for --functions
    #[arg(long, value_name = "PATTERNS")]
    regions: Option<OsString>,
    /// Show processes that do not measure themselves (static ones, say), too, each for itself (Linux 6.12 or later)
    #[arg(long, conflicts_with = "inside")]
    per_process: bool,
    /// Measure from inside alone; with --nodes, these nodes of each region. The program's own performance counters (perf events, PAPI, ...) then have all general-purpose counters,
    /// but nothing is known of static programs, nor of what a killed one did last
    #[arg(long)]
    inside: bool,
    /// Measure from outside alone, as `topdown stat` does: nothing is loaded into the command, so there are no regions
    #[arg(long, conflicts_with_all = ["inside", "regions", "functions", "preload"])]
    outside: bool,
    /// Count the whole down to this level from outside, or with --inside the regions. Where no group of counters holds it, groups of its
    /// parts take turns: from outside, and then nothing is measured from inside, so there are no regions; or with --inside from one
    /// execution of a region to another
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=DEEPEST.into()))]
    td_level: Option<u32>,
    #[command(flatten)]
    deep: DeepNodes,
    /// Exit with status 123 if the command succeeds and of the whole no slots are measured, or no nodes of this level
    #[arg(long, value_name = "slots|LEVEL")]
    require: Option<Requirement>,
    /// The library to load into the command [default: libtopdown-preload.so beside `topdown` or in ../lib]
    #[arg(long, value_name = "FILE", env = "TOPDOWN_PRELOAD")]
    preload: Option<PathBuf>,
    /// FILE before patterns in it were replaced
    #[arg(skip)]
    named: Option<PathBuf>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What `topdown run --help` says of the rest.
pub const HELP: &str = "\
The command runs as it would without: same input and output, same exit status; signals go on to it. Its children are measured, too.
Where nothing counts slots (no PMU, say), the report has times of regions and threads, and one line says why. What cannot be measured at all
runs all the same, and one line says why.

Exit status: that of the command, and if a signal killed it, by the same signal; 126 if the command cannot be
executed, 127 if it is not found; 125 if `topdown` itself fails before it runs, as for wrong arguments; 123 if it succeeds and less was
measured than --require says.";

/// Exit status of the command.
pub fn run(mut arguments: Arguments) -> ExitCode {
    let program = arguments.command.first();
    arguments.named = arguments.output.clone();
    for file in arguments.output.iter_mut().chain(&mut arguments.timeline) {
        match sys::named(file, program) {
            Ok(named) => *file = named,
            Err(error) => return ended(Err((FAILED, error.to_string()))),
        }
    }
    ended(measured(&mut arguments))
}

fn measured(arguments: &mut Arguments) -> Result<End, Failure> {
    let failed = |text| (FAILED, text);
    if arguments.output.as_deref().and_then(Path::extension) == Some(OsStr::new(TABLE)) {
        return Err(failed(format!(
            "-o {}: a run leaves a table file for each process, not one; choose .csv, .json, .html or a text, or set \
             LD_PRELOAD and TOPDOWN_OUTPUT yourself to keep them",
            arguments.output.as_deref().unwrap_or(Path::new("")).display(),
        )));
    }
    let format = Format::of(arguments.output.as_deref()).map_err(|error| failed(error.to_string()))?;
    arguments.deep.check_format(format)?;
    let turns = arguments.turns()?;
    arguments.td_level = turns.level_instead.or(arguments.td_level);
    if !turns.parts.is_empty() {
        arguments.outside_alone()?;
    }
    let library = match preload::find(arguments.preload.as_deref()) {
        _ if arguments.outside || !turns.parts.is_empty() => None,
        found => Some(found.map_err(failed)?),
    };
    if let Some(timeline) = &arguments.timeline {
        topdown_report::timeline_format(timeline).map_err(|error| failed(error.to_string()))?;
    }
    for output in arguments.output.iter().chain(&arguments.timeline) {
        // not after hours that it cannot be written
        Output::check(output).map_err(|error| failed(error.to_string()))?;
    }
    reported(arguments, library.as_deref(), format, &turns)
}

impl Arguments {
    /// What is counted in turns from outside; none: one group holds the level, or none does.
    fn turns(&self) -> Result<TurnPlan, Failure> {
        let simulated = simulation::core().map_err(failed)?;
        if simulated.is_some() {
            self.deep.refuse_simulated().map_err(failed)?;
        }
        if self.inside {
            if self.deep.drill || self.deep.has_figures() {
                return Err(failed(
                    "--drill, --metrics and --record-tpebs count the whole from outside: not with --inside",
                ));
            }
            if !self.deep.nodes.is_empty() {
                let turns = topdown::region_turns(self.deep.nodes.iter().map(String::as_str));
                turns.map_err(|why| failed(format!("--nodes: {why}")))?;
            }
            return Ok(TurnPlan::default());
        }
        if simulated.is_some() && !self.outside {
            return Ok(TurnPlan::default()); // (the library alone counts)
        }
        if let Some((core, level)) = simulation::core_by_counters().map_err(failed)?.zip(self.td_level) {
            let reached = simulation::reached(core, level).map_err(failed)?;
            let remark = reached.remark(level);
            remark.iter().for_each(|line| say(line));
            return Ok(TurnPlan { level_instead: remark.map(|_| reached.level), ..TurnPlan::default() });
        }
        // (a level that one group holds may be the library's, by registers)
        let source = if self.outside { SourceKind::Counters } else { SourceKind::Automatic };
        TurnPlan::of(self.td_level, &self.deep, &LevelTrial { cpus: None, kernel: false, source })
    }

    /// Whether the command has regions, as far as that is known before it runs.
    fn has_regions(&self) -> bool {
        let patterns = self.regions.is_some() || self.functions.is_some() || sources::has_patterns();
        patterns || sources::has_marks(&self.command)
    }

    /// What cannot be had if the level is counted in turns, which takes all counters.
    fn outside_alone(&self) -> Result<(), Failure> {
        let refused = [
            (self.per_process, "--per-process"),
            (self.regions.is_some(), "--regions"),
            (self.functions.is_some(), "--functions"),
        ];
        let taken = "no group holds this level here, and its parts take turns on all counters (--inside: from one execution of a region to another)";
        match refused.iter().find(|(given, _)| *given) {
            Some((_, option)) => {
                Err((FAILED, format!("--td-level, --drill, --nodes, --metrics: {taken}: not with {option}")))
            }
            None if self.outside => Ok(()),
            None => {
                say(&format!(
                    "counted from outside alone, without regions: {taken} (--td-level, --drill, --nodes, --metrics)"
                ));
                Ok(())
            }
        }
    }
}

/// Why this level of the whole is not counted.
fn no_level(level: u32) -> String {
    let own = Options { level, source: SourceKind::Counters, ..Options::default() };
    let why = match TopDown::open(&own) {
        Err(error) => error.to_string(),
        Ok(_) => "the counters are for regions here; --outside leaves them to the whole".into(),
    };
    format!("--td-level {level}: the whole is not counted from outside: {why}")
}

/// Whether groups of general-purpose counters leave the registers to the library, where `asked`.
fn beside_registers_fits(asked: bool) -> bool {
    asked && outside_options(1, true, true).is_some()
}

/// Options of groups on the command that take no counters from the library, if that is loaded; None: there are none. `may_load`: it
/// was to be. Level 2 is left to the library where counting it leaves no counter for what corrects level 1.
fn outside_options(level: u32, may_load: bool, loaded: bool) -> Option<Options> {
    let own = Options { level, ..Options::default() };
    let beside = Options { source: SourceKind::Counters, beside_registers: true, ..own };
    let fits = |options: &Options| TopDown::open(options).is_ok();
    let candidates = [(beside, may_load), (own, !loaded)];
    let deepest =
        candidates.into_iter().find_map(|(options, tried)| (tried && fits(&options)).then_some(options))?;
    let level_1 = Options { level: 1, ..deepest };
    let bounded = |options: &Options| sources::is_bounded(options);
    let is_better =
        level == 0 && loaded && bounded(&deepest) == Some(true) && bounded(&level_1) == Some(false);
    Some(if is_better { level_1 } else { deepest })
}

/// Runs the command with the library, if that is to be loaded, and writes the report.
fn reported(
    arguments: &Arguments,
    library: Option<&Path>,
    format: Format,
    turns: &TurnPlan,
) -> Result<End, Failure> {
    let failed = |text| (FAILED, text);
    let (mut directory, library) = match Directory::new() {
        Ok(directory) => (directory, library),
        // (the program runs whatever cannot be measured)
        Err(error) => {
            if library.is_some() {
                say(&format!("counted from outside alone: no temporary directory for figures: {error}"));
            }
            (Directory { path: PathBuf::new(), keep: true }, None)
        }
    };
    let (program, rest) = arguments.command.split_first().expect("clap demands one");
    let mut command = Command::new(program);
    command.args(rest);
    let refuses = library.and_then(|_| unmeasured::refuses(program));
    let loaded = library.filter(|_| refuses.is_none());
    let sandboxed = loaded.and_then(|library| {
        load(&mut command, arguments, library, &directory);
        directory.watch_sandboxed().ok()
    });
    let simulated = simulation::core().map_err(failed)?.is_some();
    // (simulated figures are no part of real ones, and both cannot have the general-purpose counters)
    let has_nodes = is(NODES, &|value| !value.is_empty());
    let alone = arguments.inside || simulated || has_nodes || is(SOURCE, &|value| value == "counters");
    let alone = alone && library.is_some();
    let level = arguments.td_level.unwrap_or(0);
    // (of short executions registers tell little, and on E-cores there are none)
    let of_regions = beside_registers_fits(loaded.is_some() && !alone && turns.parts.is_empty() && level < 2)
        && !sources::is_chosen()
        && arguments.has_regions();
    let shared = if of_regions { sources::shared() } else { None };
    let from_outside = if arguments.outside { simulation::core_by_counters().map_err(failed)? } else { None };
    let options = match &turns.parts[..] {
        _ if from_outside.is_some() => Some(Options {
            level,
            simulate: true,
            core: from_outside.unwrap_or_default(),
            ..Options::default()
        }),
        [] if alone => None,
        [] if of_regions => shared.as_ref().map(|shared| shared.outside),
        [] => outside_options(level, library.is_some(), loaded.is_some()),
        _ => Some(Options { level, ..Options::default() }),
    };
    let was_said = turns.level_instead.is_some();
    if options.is_none() && arguments.td_level.is_some() && !arguments.inside && !was_said {
        say(&no_level(level));
    }
    if let Some(shared) = &shared {
        command.envs(shared.inside.iter().copied()); // (without, it takes the counters of itself, which are free)
    }
    let beside = !of_regions && options.as_ref().is_some_and(|options| options.beside_registers);
    if beside && (std::env::var_os(SOURCE).is_none() || is(SOURCE, &|value| value == "registers")) {
        // (alone: it would find the others taken, after it has taken turns with the outside)
        let corrected = options.as_ref().is_some_and(sources::leaves_what_corrects_registers);
        command.env(SOURCE, if corrected { "registers" } else { "registers alone" });
    }
    if options.is_none() && arguments.per_process {
        say(
            "--per-process: nothing is counted from outside here, so processes that do not measure themselves have no row",
        );
    }
    let endpoint = endpoint(arguments, &directory).map_err(failed)?;
    let watch = |pid| {
        let mut count = match (&options, arguments.per_process) {
            (None, _) => None,
            (Some(options), true) => OutsideGroups::by_task(pid, options).ok(),
            (Some(options), false) => OutsideGroups::of_whole(pid, options, &[], turns)
                .inspect_err(|why| {
                    turns.parts.iter().take(1).for_each(|_| say(&format!("nothing is measured: {why}")))
                })
                .ok(),
        };
        let shown = format.has_timeline() || arguments.timeline.is_some();
        if let (Some(count), true) = (&mut count, shown && arguments.interval > 0) {
            count.keep_time(Some(Duration::from_millis(arguments.interval)));
        }
        if let (Some(count), Some(endpoint)) = (&mut count, &endpoint) {
            count.publish(endpoint.published().clone());
        }
        count
    };
    let attend = |count: &mut Option<OutsideGroups>, pid, start| {
        count.iter_mut().for_each(|count| count.attend(pid, start));
    };
    let goes_to = arguments.destination(format, &directory);
    let (ran, count) =
        sys::run_attended(&mut command, watch, attend).map_err(|error| not_run(program, &error))?;
    drop(endpoint);
    let mut outside = count
        .and_then(|count| count.end(&ran, &arguments.command, false).ok())
        .filter(|counted| counted.parts.iter().any(|(_, sum)| sum.slots > 0))
        .unwrap_or_else(|| OutsideCount { run: ran.run(&arguments.command), ..OutsideCount::default() });
    if of_regions {
        outside.run.sources = sources::note(shared.as_ref()).into();
    }
    outside.level_2_of_threads = arguments.td_level.is_none();
    outside.run.sandboxed = sandboxed.is_some_and(|watch| watch.was_opened());
    let why_not = match (refuses, library) {
        (Some(why), _) => Some(format!("{} ran without the library: {why}", program.to_string_lossy())),
        (None, None) => {
            Some(TopDown::open(&Options::default()).err().map_or_else(String::new, |error| error.to_string()))
        }
        (None, Some(_)) => None,
    };
    let lacks = write_report(arguments, &mut directory, outside, why_not, (format, goes_to));
    judged(ran.end, lacks)
}

/// Writes the report of a command that has ended, or says why there is none. `why_not`: why nothing in it was measured; empty: that
/// was not asked for. What it lacks of what is required.
fn write_report(
    arguments: &Arguments,
    directory: &mut Directory,
    mut outside: OutsideCount,
    why_not: Option<String>,
    (format, goes_to): (Format, Destination),
) -> Option<String> {
    let program = arguments.command[0].as_os_str();
    let tables = directory.tables().unwrap_or_default();
    let mut trouble = String::new();
    if outside.parts.is_empty() {
        outside.run.means = means::without_slots(outside.run.means);
    }
    if tables.is_empty() {
        let why = why_not.unwrap_or_else(|| match outside.run.sandboxed {
            true => topdown_report::SANDBOXED.into(),
            false => unmeasured::why(program),
        });
        if outside.parts.is_empty() {
            trouble = why;
        } else if !why.is_empty() {
            say(&format!("counted from outside alone: {why}"));
        }
    }
    let output = match goes_to {
        Destination::Job(job) => return leave_job(arguments, directory, (outside, &trouble), (format, *job)),
        Destination::File(claim) => Some(claim.place()),
        Destination::Terminal => None,
    };
    let output = output.as_deref();
    let mut lacks = arguments.require.map(|_| "there is no report".into());
    let written = topdown_report::merge(&tables, Some(outside)).and_then(|report| {
        let report = Report { trouble, ..report };
        lacks = arguments.require.and_then(|require| require.lacks(&report));
        topdown_report::write(&report, output, format)?;
        output.iter().for_each(|path| say_report(&report, path, format));
        write_timeline(&report, arguments.timeline.as_deref());
        came_to_nothing(arguments, &report).for_each(|line| say(&line));
        Ok(())
    });
    if let (Err(error), true) = (&written, tables.is_empty()) {
        say(&format!("no report: {error}"));
    } else if let Err(error) = written {
        let figures = directory.keep().join("*").with_extension(TABLE);
        let figures = figures.display();
        say(&format!("no report: {error}; the figures are in {figures}: `topdown report -o FILE {figures}`"));
    }
    lacks
}

/// Where requests for metrics are answered, of regions, too, as far as processes have measured them.
fn endpoint(arguments: &Arguments, directory: &Directory) -> Result<Option<Endpoint>, String> {
    let Some(address) = &arguments.open_metrics else { return Ok(None) };
    let path = directory.path.clone();
    let inside = move || topdown_report::merge(&tables(&path).ok()?, None).ok();
    let command: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
    let endpoint = Endpoint::open(address, &command.join(" "), Box::new(inside))?;
    say(&format!("metrics are at {}", endpoint.url()));
    Ok(Some(endpoint))
}

/// Has the library loaded into the command and into all that it starts.
fn load(command: &mut Command, arguments: &Arguments, library: &Path, directory: &Directory) {
    let before = std::env::var_os("LD_PRELOAD");
    let others = preload::of_ranks(library, before.clone()).or(before);
    command.env("LD_PRELOAD", preload::list(library, others));
    command.env("TOPDOWN_OUTPUT", directory.output());
    match topdown_seam::seccomp::filters() {
        Some(filters) => command.env(FILTERS, filters.to_string()),
        None => command.env_remove(FILTERS),
    };
    if let Some(level) = arguments.td_level.filter(|_| arguments.inside) {
        command.env(LEVEL, level.to_string());
    }
    if !arguments.deep.nodes.is_empty() {
        command.env(NODES, arguments.deep.nodes.join(","));
    }
    if std::env::var_os(COLLECTOR).is_none() {
        command.env(COLLECTOR, library);
    }
    // programs with AddressSanitizer that it starts would refuse to run; with this they are measured
    let mut sanitizer = std::env::var_os(SANITIZER).unwrap_or_default();
    if !sanitizer.is_empty() {
        sanitizer.push(":");
    }
    sanitizer.push("verify_asan_link_order=0");
    command.env(SANITIZER, sanitizer);
    for (name, patterns) in
        [("TOPDOWN_REGIONS", &arguments.regions), ("TOPDOWN_FUNCTIONS", &arguments.functions)]
    {
        if let Some(patterns) = patterns {
            command.env(name, patterns);
        }
    }
}

/// Patterns of functions that were no regions of any process. Of `--regions` the library says so itself, and why, where it is loaded.
fn came_to_nothing(arguments: &Arguments, report: &Report) -> impl Iterator<Item = String> {
    let is_measured = !report.machines.is_empty() || report.time_alone.is_some();
    let given = [
        ("--functions", arguments.functions.as_deref().filter(|_| is_measured)),
        ("--regions", arguments.regions.as_deref().filter(|_| report.processes.is_empty())),
    ];
    let patterns = given.into_iter().filter_map(|(option, patterns)| Some((option, patterns?.to_str()?)));
    patterns.flat_map(move |(option, patterns)| {
        let patterns = patterns.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        let is_none = |pattern: &&str| {
            let names = report.regions.iter().map(|region| &region.name).chain(&report.symbols);
            !names.into_iter().any(|name| sys::matches(function_of(pattern), name))
        };
        patterns.filter(is_none).map(move |pattern| {
            format!(
                "{option} {pattern}: no such function was executed in a program that was measured from inside (nm shows which a program has; \
                 inlined ones are none)"
            )
        })
    })
}

/// The function's part of LIBRARY:FUNCTION. The two colons of C++ divide nothing.
fn function_of(pattern: &str) -> &str {
    let colon = pattern.find(':').filter(|at| !pattern[at + 1..].starts_with(':'));
    colon.map_or(pattern, |at| &pattern[at + 1..])
}

/// Whether a variable has such a value.
fn is(name: &str, such: &dyn Fn(&OsStr) -> bool) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && such(&value))
}

/// A directory for table files, removed in the end unless it is kept.
struct Directory {
    path: PathBuf,
    keep: bool,
}

impl Directory {
    /// Where temporary files go by the environment, or where any may be.
    fn new() -> io::Result<Directory> {
        let others = ["/tmp", "/dev/shm", "/run/shm", "/var/tmp"].map(PathBuf::from);
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let first = Directory::in_directory(&std::env::temp_dir());
        let mut more = own.into_iter().chain(others).map(|base| Directory::in_directory(&base));
        first.or_else(|error| more.find_map(Result::ok).ok_or(error))
    }

    fn in_directory(base: &Path) -> io::Result<Directory> {
        for _ in 0..100 {
            // a random name: nobody who may write there, too, can take it beforehand
            let path = base.join(format!("topdown-{:016x}", RandomState::new().build_hasher().finish()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Directory { path, keep: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
                }
            }
        }
        Err(io::Error::other(format!("{} has all of the names that were tried", base.display())))
    }

    /// What is in it is for the user.
    fn keep(&mut self) -> &Path {
        self.keep = true;
        &self.path
    }

    /// What the library is told to write, which puts a process's id before the ending.
    fn output(&self) -> PathBuf {
        self.path.join("run").with_extension(TABLE)
    }

    /// Learns of programs that do not measure themselves, since they are executed under a seccomp filter.
    fn watch_sandboxed(&self) -> io::Result<OpenedWatch> {
        let mut mark = self.output().into_os_string();
        mark.push(topdown_table::SANDBOXED);
        fs::File::create(&mark)?;
        OpenedWatch::of(Path::new(&mark))
    }

    fn tables(&self) -> io::Result<Vec<PathBuf>> {
        tables(&self.path)
    }
}

/// The table files in a directory.
fn tables(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut tables = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(TABLE)) && topdown_table::run::has_begun(&path) {
            tables.push(path);
        }
    }
    tables.sort();
    Ok(tables)
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.keep {
            // (what somebody else has removed is not left over)
            let removed = fs::remove_dir_all(&self.path);
            if let Some(error) = removed.err().filter(|error| error.kind() != io::ErrorKind::NotFound) {
                crate::say(&format!("{} is left over: it cannot be removed: {error}", self.path.display()));
            }
        }
    }
}
