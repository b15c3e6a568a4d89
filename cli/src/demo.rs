//! `topdown demo`: what each view looks like, on a machine without counters, too, and without a compiler: a program of its own runs under the
//! real commands, whose counters are simulated.
#![forbid(unsafe_code)]

mod work;

use crate::{preload, say, simulation};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use topdown_report::print;
use topdown_report::terminal::{Layout, Stream};

/// Options of `topdown demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write each view that is a file into DIR, too, which is made if it is not there: pages, pictures, and what other tools read
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Be the program that is shown
    #[arg(long, hide = true, conflicts_with = "directory")]
    work: bool,
}

/// What `topdown demo --help` says of the rest.
pub const HELP: &str = "\
A small program, which is part of topdown, runs under `topdown stat`, `record` and `run`, with TOPDOWN_SIMULATE: where the time goes is sampled, all
that is said of slots is made up, and each view says so. TOPDOWN_SIMULATE chooses another core.

Exit status: 0; 1 if one of the commands fails, or a file cannot be written; 2 for wrong arguments.";

/// The core that is simulated, unless the environment says otherwise: its views have as much as most CPUs' have.
const CORE: &str = "Golden or Raptor Cove";

/// What is shown on the terminal: a command of which this is the demo, and what it shows. (The library is loaded by the last.)
const SHOWN: [(&[&str], &str); 4] = [
    (&["stat"], "where the slots of a whole program go"),
    (&["stat", "-I", "200"], "the same in each interval of 200 ms"),
    (&["record"], "which functions waste slots"),
    (&["run"], "the whole and each thread, counted from inside, and regions if there are some"),
];

/// Files, and what each is.
const FILES: [(&str, &[&str], &str); 13] = [
    ("stat.html", &["stat"], "a page of the whole program, with a timeline"),
    ("stat.json", &["stat"], "the same for scripts"),
    ("stat.csv", &["stat"], "the same for spreadsheets"),
    ("stat.pftrace", &["stat"], "the timeline for ui.perfetto.dev"),
    ("record.html", &["record"], "a page of functions, with flame graphs and lines"),
    ("record.svg", &["record"], "a flame graph"),
    ("record.txt", &["record", "--lines"], "a table of functions with their hottest lines"),
    ("record.json", &["record"], "functions and lines for scripts, and for `topdown compare`"),
    ("record.csv", &["record"], "functions for spreadsheets"),
    ("record.folded", &["record"], "stacks for other flame graphs"),
    ("record.pprof", &["record"], "for pprof"),
    ("record.firefox.json", &["record"], "for profiler.firefox.com"),
    ("run.html", &["run"], "a page of the whole, each thread, and regions"),
];

/// The program as its views name it.
const PROGRAM: [&str; 4] = ["--", "topdown", "demo", "--work"];

/// Exit status 0, unless something failed.
pub fn run(arguments: &Arguments) -> ExitCode {
    if arguments.work {
        return work::run();
    }
    match shown(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("demo: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// What runs the commands.
struct Demo {
    program: PathBuf,
    /// Its directory comes before others.
    path: OsString,
    core: OsString,
    library: Option<PathBuf>,
}

fn shown(arguments: &Arguments) -> Result<(), String> {
    let demo = Demo::new()?;
    if let Some(directory) = &arguments.directory {
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let layout = Layout::of(Stream::Output);
    let put = |text: &str| print(text).map_err(|error| error.to_string());
    put(&(layout.sentence(&format!(
        "{}. On a machine with counters the same commands show what is.",
        demo.about()
    )) + "\n"))?;
    for (words, what) in SHOWN.iter().filter(|(words, _)| demo.has(words)) {
        let command = format!("$ topdown {} -- ./program # {what}", words.join(" "));
        put(&format!("\n{}\n\n", layout.heading(&layout.sentence(&command))))?;
        demo.show(words)?;
    }
    put(&format!(
        "\n{}\n",
        layout.heading(&layout.sentence("$ topdown top # the same on a terminal while it runs"))
    ))?;
    let Some(directory) = &arguments.directory else {
        let more = "`topdown demo DIR` writes pages, flame graphs and files for other tools into DIR, too.";
        return put(&format!("\n{}\n", layout.sentence(more)));
    };
    put("\n")?;
    let mut missing = 0;
    for (name, words, what) in FILES.iter().filter(|(_, words, _)| demo.has(words)) {
        let file = directory.join(name);
        let command = format!("topdown {} -o {name} -- ./program", words.join(" "));
        match demo.write(words, &file)? {
            None => put(&(layout.sentence(&format!("{}: {what} ({command})", file.display())) + "\n"))?,
            Some(why) => {
                missing += 1;
                say(&format!("demo: no {} ({command}): {why}", file.display()));
            }
        }
    }
    match missing {
        0 => Ok(()),
        missing => Err(format!("{missing} of the files were not written")),
    }
}

impl Demo {
    fn new() -> Result<Demo, String> {
        let program = std::env::current_exe().map_err(|error| format!("/proc/self/exe: {error}"))?;
        let own = program.parent().unwrap_or(Path::new("/")).to_path_buf();
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&others)));
        let path = path.map_err(|error| format!("PATH: {error}"))?;
        let asked = std::env::var_os(simulation::VARIABLE).unwrap_or_default();
        let core = match simulation::core_by_counters()? {
            Some(_) => asked,
            None => CORE.into(),
        };
        let library = preload::find(std::env::var_os("TOPDOWN_PRELOAD").as_deref().map(Path::new)).ok();
        Ok(Demo { program, path, core, library })
    }

    fn about(&self) -> String {
        let alone = if self.library.is_some() {
            ""
        } else {
            ", without `topdown run`, whose library is not beside it"
        };
        format!(
            "What topdown shows{alone}: of a small program of its own, with {}={}. What it says of slots is made up",
            simulation::VARIABLE,
            self.core.to_string_lossy()
        )
    }

    fn has(&self, words: &[&str]) -> bool {
        words[0] != "run" || self.library.is_some()
    }

    fn command(&self, words: &[&str], output: Option<&Path>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words);
        command.args(output.iter().flat_map(|file| [OsStr::new("-o"), file.as_os_str()])).args(PROGRAM);
        command.env(simulation::VARIABLE, &self.core).env("PATH", &self.path).stdin(Stdio::null());
        command
    }

    /// Shows what a command writes to standard error where this one's output goes, as wide as that is.
    fn show(&self, words: &[&str]) -> Result<(), String> {
        let failed = |error: io::Error| format!("topdown {}: {error}", words.join(" "));
        io::stdout().flush().map_err(failed)?;
        let output = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
        let status =
            self.command(words, None).stdout(Stdio::null()).stderr(output).status().map_err(failed)?;
        if status.success() { Ok(()) } else { Err(format!("topdown {}: {status}", words.join(" "))) }
    }

    /// Why there is no file, if the command has written none: nothing can be sampled here, say.
    fn write(&self, words: &[&str], file: &Path) -> Result<Option<String>, String> {
        let output = self.command(words, Some(file)).stdout(Stdio::null()).output();
        let output = output.map_err(|error| format!("topdown {}: {error}", words.join(" ")))?;
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_string();
        match output.status.success() {
            true => Ok((!file.is_file()).then_some(said)),
            false => Ok(Some(said)),
        }
    }
}
