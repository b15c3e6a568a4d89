//! Where figures go: this process's table, those of the processes that it belongs together with, and the report of them.

use crate::report::{self, NoReport};
use crate::tables::TableFile;
use crate::{private, say};
use std::ffi::{CString, OsString};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use topdown_table::Header;
use topdown_table::run::{self, RunId, stat};

/// Numbers of tables that are tried one after the other; if all are taken, random ones.
const NUMBERS: u32 = 100;

/// As TOPDOWN_OUTPUT says.
#[derive(Clone)]
pub struct Destination {
    /// None: standard error.
    report: Option<PathBuf>,
    /// What was there when this began, as `topdown report --output-was` takes it; empty: the name has patterns, so it is another.
    state: String,
    /// Where table files are; nobody else's unless they are what is wanted.
    directory: PathBuf,
    /// A table file's name is this, the pid, a number and ".topdown".
    name: OsString,
    /// Table files are what is wanted; somebody else makes the report.
    raw: bool,
    /// Commands that make the report, of which the first that exists does.
    commands: Vec<CString>,
}

impl Destination {
    pub fn from_environment() -> Result<Destination> {
        // (the program may go to another directory)
        let to = private::path_in("TOPDOWN_OUTPUT")?.map(|path| std::path::absolute(&path).unwrap_or(path));
        match to {
            Some(path) if path.extension().is_some_and(|ending| ending == "topdown") => Ok(Destination {
                directory: path.parent().unwrap_or(Path::new("/")).into(),
                name: path.file_stem().unwrap_or_default().into(),
                report: None,
                state: String::new(),
                raw: true,
                commands: Vec::new(),
            }),
            to => Ok(Destination {
                state: to.as_deref().map(state).unwrap_or_default(),
                report: to,
                directory: private::directory()?,
                name: "topdown".into(),
                raw: false,
                commands: report::commands(private::path_in("TOPDOWN_COMMAND")?),
            }),
        }
    }

    fn table(&self, pid: libc::pid_t, number: u32) -> PathBuf {
        let mut name = self.name.clone();
        name.push(format!(".{pid}.{number}.topdown"));
        self.directory.join(name)
    }

    /// This process's table file.
    pub fn create(&self) -> Result<TableFile> {
        let failed = |error: Error| {
            Error::new(error.kind(), format!("no table file in {}: {error}", self.directory.display()))
        };
        let pid = std::process::id() as libc::pid_t;
        for attempt in 0..2 * NUMBERS {
            // (who else may write there may have taken any that can be foreseen)
            let number = if attempt < NUMBERS {
                attempt
            } else {
                u32::from_ne_bytes(private::random().map_err(failed)?)
            };
            match TableFile::create(&self.table(pid, number)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // whoever had the directory has ended, and removed it
                Err(error) if error.kind() == ErrorKind::NotFound && !self.raw && attempt == 0 => {
                    private::create(&self.directory).map_err(failed)?;
                }
                made => return made.map_err(failed),
            }
        }
        Err(failed(ErrorKind::AlreadyExists.into()))
    }

    /// The run that this process is part of, or one of its own.
    pub fn run_of(&self, pid: libc::pid_t) -> RunId {
        self.joined(pid).unwrap_or_else(|| RunId { root: pid, token: private::random().unwrap_or_default() })
    }

    /// The run of the program that this process was before an exec, or of the nearest ancestor that is measured.
    pub fn joined(&self, pid: libc::pid_t) -> Option<RunId> {
        let mut ancestor = Some(pid);
        while let Some(one) = ancestor.filter(|pid| *pid > 1) {
            if let Some(header) = self.latest(one) {
                return Some(header.run());
            }
            ancestor = stat(one).map(|(parent, _)| parent);
        }
        None
    }

    /// The header of a process's last table file, if it runs.
    fn latest(&self, pid: libc::pid_t) -> Option<Header> {
        (0..NUMBERS)
            .map(|number| run::header(&self.table(pid, number)))
            .take_while(|read| read.as_ref().err().map(Error::kind) != Some(ErrorKind::NotFound))
            .filter_map(|read| read.ok().filter(|header| header.pid == pid && header.is_alive()))
            .last()
    }

    /// Whether somebody else makes the report, as `topdown run` does.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// Whether reports are made in the measured processes. (Standard error may be the program's now: then table files stay.)
    pub fn reports(&self) -> bool {
        !self.raw && (self.report.is_some() || say::stderr_is_known())
    }

    /// Whether the report is that of a process that is not the run's root: the root does not run to make it.
    pub fn is_ours_to_report(&self, run: &RunId) -> bool {
        self.latest(run.root).is_none_or(|header| header.run != run.token)
    }

    /// Has the report made, and the table files removed; whether there is one. If not, says so. `own` is the table of this
    /// process.
    ///
    /// # Safety
    /// In a copy of the process (`apart::run`).
    pub unsafe fn report(&self, pid: libc::pid_t, run: &RunId, own: &Path) -> bool {
        let to = self.report.as_deref();
        let to = to.map(|path| if run.root == pid { path.to_owned() } else { beside(path, pid) });
        let state = if run.root == pid { self.state.as_str() } else { "" };
        let output = to.as_deref().map(|path| (path, state));
        // SAFETY: the caller's word.
        match unsafe { report::make(&self.commands, &run.token, output, own) } {
            Ok(()) => return true,
            Err(NoReport::Said) => {}
            Err(NoReport::Other(why)) => self.no_report(own, &why),
            Err(NoReport::NoCommand) => self.no_command(to.as_deref()),
        }
        false
    }

    /// Says why there is none, and where the figures are.
    pub fn no_report(&self, own: &Path, why: &str) {
        let name = self.report.as_deref().unwrap_or(Path::new("standard error")).display();
        say::say(&format!(
            "no report in {name}: {why}; the figures are in {}, for `topdown report`",
            own.display()
        ));
    }

    /// Says where the command was looked for, and how to make the report.
    fn no_command(&self, to: Option<&Path>) {
        let mut looked = String::new();
        for command in &self.commands {
            looked += if looked.is_empty() { "" } else { ", " };
            looked += &command.to_string_lossy();
        }
        let name = to.unwrap_or(Path::new("standard error")).display();
        let option = to.map_or(String::new(), |path| format!(" -o {}", path.display()));
        let figures = self.directory.join("*.topdown");
        let figures = figures.display();
        say::say(&format!(
            "no report in {name}: the command topdown is not there ({looked}), nor does TOPDOWN_COMMAND name it; the \
             figures are in {figures}: `topdown report{option} {figures}`"
        ));
    }
}

/// Which file it is, and when it was written last; empty: its name has patterns.
fn state(path: &Path) -> String {
    if path.as_os_str().as_encoded_bytes().contains(&b'%') {
        return String::new();
    }
    let about = path.metadata().ok().filter(std::fs::Metadata::is_file);
    let numbers =
        about.map_or((0, 0, 0, 0), |about| (about.ino(), about.mtime(), about.mtime_nsec(), about.size()));
    format!("{}:{}:{}:{}", numbers.0, numbers.1, numbers.2, numbers.3)
}

/// FILE.ENDING is FILE.PID.ENDING.
fn beside(path: &Path, pid: libc::pid_t) -> PathBuf {
    let ending = path.extension().unwrap_or_default().to_owned();
    let mut name = path.with_extension("").into_os_string();
    name.push(format!(".{pid}."));
    name.push(ending);
    name.into()
}
