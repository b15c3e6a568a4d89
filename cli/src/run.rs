//! `topdown run`: a program under libtopdown-preload.so, and the report of it.

use crate::stat::OutsideGroups;
use crate::sys::{self, End};
use crate::{say, unmeasured};
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use topdown::{Options, SourceKind, TopDown};
use topdown_report::{Format, Output, OutsideCount, Report};

/// What the library inside counts.
const SOURCE: &str = "TOPDOWN_SOURCE";
const LIBRARY: &str = "libtopdown-preload.so";
/// Names the library that programs with Intel's ITT API tell of their tasks.
const COLLECTOR: &str = "INTEL_LIBITTNOTIFY64";
/// Options of AddressSanitizer.
const SANITIZER: &str = "ASAN_OPTIONS";
/// Ending of the table files.
pub const TABLE: &str = "topdown";

/// Options of `topdown run`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the report to FILE, in the format of its ending: .csv, .json, .html, .txt; `-` is standard output [default: a text to
    /// standard error]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure functions as regions too: OBJECT:FUNCTION,... as in TOPDOWN_REGIONS
    #[arg(long, value_name = "PATTERNS")]
    regions: Option<OsString>,
    /// Measure functions of programs built with -finstrument-functions: PATTERN,... as in TOPDOWN_FUNCTIONS
    #[arg(long, value_name = "PATTERNS")]
    functions: Option<OsString>,
    /// Measure from inside alone. The program's own performance counters (perf events, PAPI, ...) then have all general counters,
    /// but nothing is known of static programs, nor of what a killed one did last
    #[arg(long)]
    inside: bool,
    /// The library to load into the command [default: libtopdown-preload.so beside `topdown` or in ../lib]
    #[arg(long, value_name = "FILE", env = "TOPDOWN_PRELOAD")]
    preload: Option<PathBuf>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What `topdown run --help` says of the rest.
pub const HELP: &str = "\
The command runs as it would without: same input and output, same exit status; signals go on to it. Its children are measured, too.
What cannot be measured (no PMU, say) runs all the same, and one line says why.

Exit status: that of the command, and if a signal killed it, by the same signal; 126 if the command cannot be
executed, 127 if it is not found; 125 if `topdown` itself fails before it runs.";

/// `topdown` itself failed.
pub const FAILED: u8 = 125;

/// Exit status of the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    ended(measured(arguments))
}

/// Exit status of the command, by the same signal if one ended it.
pub fn ended(end: Result<End, Failure>) -> ExitCode {
    match end {
        Ok(End::Status(status)) => ExitCode::from(status),
        Ok(End::Signal(signal)) => {
            sys::raise(signal);
            ExitCode::from(128 + signal as u8) // a signal that does not kill
        }
        Err((status, text)) => {
            say(&text);
            ExitCode::from(status)
        }
    }
}

/// The exit status of `topdown` itself, and why.
pub type Failure = (u8, String);

fn measured(arguments: &Arguments) -> Result<End, Failure> {
    let failed = |text| (FAILED, text);
    if arguments.output.as_deref().and_then(Path::extension) == Some(OsStr::new(TABLE)) {
        return Err(failed(format!(
            "-o {}: a run leaves a table file for each process, not one; choose .csv, .json, .html or a text, or set \
             LD_PRELOAD and TOPDOWN_OUTPUT yourself to keep them",
            arguments.output.as_deref().unwrap_or(Path::new("")).display(),
        )));
    }
    let format = Format::of(arguments.output.as_deref()).map_err(|error| failed(error.to_string()))?;
    let library = library(arguments.preload.as_deref()).map_err(failed)?;
    if let Some(output) = &arguments.output {
        // not after hours that it cannot be written
        Output::check(output).map_err(|error| failed(error.to_string()))?;
    }
    reported(arguments, &library, format)
}

/// Runs the command with the library, and writes the report.
fn reported(arguments: &Arguments, library: &Path, format: Format) -> Result<End, Failure> {
    let failed = |text| (FAILED, text);
    let mut directory =
        Directory::new().map_err(|error| failed(format!("no temporary directory: {error}")))?;
    let (program, rest) = arguments.command.split_first().expect("clap demands one");
    let mut command = Command::new(program);
    command.args(rest);
    let refuses = unmeasured::refuses(program);
    if refuses.is_none() {
        load(&mut command, arguments, library, &directory);
    }
    // (simulated figures are no part of real ones, and both cannot have the general counters)
    let alone = arguments.inside
        || is("TOPDOWN_SIMULATE", &|value| value != "0")
        || is(SOURCE, &|value| value == "counters");
    let beside = Options { source: SourceKind::Counters, beside_registers: true, ..Options::default() };
    let alone = alone || TopDown::open(&beside).is_err();
    if !alone && std::env::var_os(SOURCE).is_none() {
        command.env(SOURCE, "registers"); // it would find the others taken, after it has taken turns with the outside
    }
    let watch = |pid| if alone { None } else { OutsideGroups::of(pid, &beside).ok() };
    let (ran, count) = sys::run_to_end(&mut command, watch).map_err(|error| not_run(program, &error))?;
    let outside = count
        .and_then(|count| count.end(&ran, &arguments.command, false).ok())
        .filter(|counted| counted.parts.iter().any(|(_, sum)| sum.slots > 0))
        .unwrap_or_else(|| OutsideCount {
            run: ran.run(&arguments.command),
            parts: Vec::new(),
            of_cpus: false,
        });
    let tables = directory.tables().unwrap_or_default();
    let mut trouble = String::new();
    if tables.is_empty() {
        let why = refuses.map_or_else(
            || unmeasured::why(program),
            |why| format!("{} ran without the library: {why}", program.to_string_lossy()),
        );
        if outside.parts.is_empty() {
            trouble = why;
        } else {
            say(&format!("counted from outside alone: {why}"));
        }
    }
    let output = arguments.output.as_deref();
    let written = topdown_report::merge(&tables, Some(outside)).and_then(|report| {
        let report = Report { trouble, ..report };
        topdown_report::write(&report, output, format)?;
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
    Ok(ran.end)
}

/// Has the library loaded into the command and into all that it starts.
fn load(command: &mut Command, arguments: &Arguments, library: &Path, directory: &Directory) {
    command.env("LD_PRELOAD", preloaded(library, std::env::var_os("LD_PRELOAD")));
    command.env("TOPDOWN_OUTPUT", directory.path.join("run").with_extension(TABLE));
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

/// Patterns of functions that were no regions. Of `--regions` the library says so itself, and why, where it is loaded.
fn came_to_nothing(arguments: &Arguments, report: &Report) -> impl Iterator<Item = String> {
    let given = [
        ("--functions", arguments.functions.as_deref().filter(|_| !report.machines.is_empty())),
        ("--regions", arguments.regions.as_deref().filter(|_| report.processes.is_empty())),
    ];
    let patterns = given.into_iter().filter_map(|(option, patterns)| Some((option, patterns?.to_str()?)));
    patterns.flat_map(move |(option, patterns)| {
        let patterns = patterns.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        let is_none = |pattern: &&str| !report.regions.iter().any(|one| sys::matches(pattern, &one.name));
        patterns.filter(is_none).map(move |pattern| {
            format!(
                "{option} {pattern}: no such function was executed in a program that was measured from inside"
            )
        })
    })
}

/// Whether a variable has such a value.
fn is(name: &str, such: &dyn Fn(&OsStr) -> bool) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && such(&value))
}

/// As shells have it.
pub fn not_run(program: &OsStr, error: &io::Error) -> Failure {
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (status, format!("cannot run {}: {error}", program.to_string_lossy()))
}

/// Where the library is.
fn library(given: Option<&Path>) -> Result<PathBuf, String> {
    let there = |path: &Path| path.is_file().then(|| std::path::absolute(path)).and_then(Result::ok);
    let found = match given {
        Some(path) => {
            there(path).ok_or(format!("{}: no such library; name {LIBRARY} by --preload", path.display()))?
        }
        None => {
            let own = std::env::current_exe().unwrap_or_default();
            let beside = own.parent().unwrap_or(Path::new(""));
            let places =
                ["", "../lib", "../lib64", "../lib/x86_64-linux-gnu"].map(|at| beside.join(at).join(LIBRARY));
            places.iter().find_map(|path| there(path)).ok_or(format!(
                "{LIBRARY} is neither in {} nor in ../lib of it; `make install` puts it there, or name it by --preload or \
                 TOPDOWN_PRELOAD",
                beside.display()
            ))?
        }
    };
    // ld.so takes either of them for the end of a name
    match found.to_str() {
        Some(name) if !name.contains([' ', ':']) => Ok(found),
        _ => Err(format!(
            "{}: LD_PRELOAD cannot name a file with a space or a colon in its path; install it elsewhere, or name a link \
             by --preload",
            found.display()
        )),
    }
}

/// LD_PRELOAD with ours first.
fn preloaded(library: &Path, before: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        all.push(":");
        all.push(before);
    }
    all
}

/// A directory for table files, removed in the end unless it is kept.
struct Directory {
    path: PathBuf,
    keep: bool,
}

impl Directory {
    fn new() -> io::Result<Directory> {
        let base = std::env::temp_dir();
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

    fn tables(&self) -> io::Result<Vec<PathBuf>> {
        let mut tables = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new(TABLE)) {
                tables.push(path);
            }
        }
        tables.sort();
        Ok(tables)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_stays_behind_ours() {
        let all = |before: Option<&str>| preloaded(Path::new("/l/ours.so"), before.map(OsString::from));
        assert_eq!(all(None), "/l/ours.so");
        assert_eq!(all(Some("")), "/l/ours.so");
        assert_eq!(all(Some("a.so:b.so")), "/l/ours.so:a.so:b.so");
    }
}
