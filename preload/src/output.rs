//! Where figures go: this process's table, those of the processes that it belongs together with, and the report of them.

use crate::tables::Tables;
use crate::{directory, private, say};
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::addr_of;
use std::sync::atomic::Ordering::Relaxed;
use topdown_report::table::{EXECED, HEADER_SIZE, Header, RUNS};

/// Numbers of tables that are tried in turn; if all are taken, random ones.
const NUMBERS: u32 = 100;

/// As TOPDOWN_OUTPUT says.
#[derive(Clone)]
pub struct Output {
    /// None: standard error.
    report: Option<PathBuf>,
    /// Where table files are; nobody else's unless they are what is wanted.
    directory: PathBuf,
    /// A table file's name is this, the pid, a number and ".topdown".
    name: OsString,
    /// Table files are what is wanted; somebody else makes the report.
    raw: bool,
}

/// Which processes belong together, and which one reports for them.
#[derive(Clone, Copy)]
pub struct Run {
    pub root: libc::pid_t,
    pub token: [u8; 16],
}

impl Output {
    pub fn from_environment() -> Result<Output> {
        // (the program may go to another directory)
        let report = private::path_in(OsStr::new("TOPDOWN_OUTPUT"))?
            .map(|path| std::path::absolute(&path).unwrap_or(path));
        match report {
            Some(path) if path.extension().is_some_and(|ending| ending == "topdown") => Ok(Output {
                directory: path.parent().unwrap_or(Path::new("/")).into(),
                name: path.file_stem().unwrap_or_default().into(),
                report: None,
                raw: true,
            }),
            report => {
                Ok(Output { report, directory: private::directory()?, name: "topdown".into(), raw: false })
            }
        }
    }

    fn table(&self, pid: libc::pid_t, number: u32) -> PathBuf {
        let mut name = self.name.clone();
        name.push(format!(".{pid}.{number}.topdown"));
        self.directory.join(name)
    }

    /// This process's table file.
    pub fn create(&self) -> Result<Tables> {
        let failed = |error: Error| {
            Error::new(error.kind(), format!("no table file in {}: {error}", self.directory.display()))
        };
        // SAFETY: getpid has no preconditions.
        let pid = unsafe { libc::getpid() };
        for turn in 0..2 * NUMBERS {
            // (who else may write there may have taken any that can be foreseen)
            let number =
                if turn < NUMBERS { turn } else { u32::from_ne_bytes(private::random().map_err(failed)?) };
            match Tables::create(&self.table(pid, number)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // whoever had the directory has ended, and removed it
                Err(error) if error.kind() == ErrorKind::NotFound && !self.raw && turn == 0 => {
                    private::create(&self.directory).map_err(failed)?;
                }
                made => return made.map_err(failed),
            }
        }
        Err(failed(ErrorKind::AlreadyExists.into()))
    }

    /// The run that this process is part of: that of the program that it was before an exec, or of the nearest ancestor
    /// that is measured; else one of its own.
    pub fn run_of(&self, pid: libc::pid_t) -> Run {
        let mut ancestor = Some(pid);
        while let Some(one) = ancestor.filter(|pid| *pid > 1) {
            if let Some(header) = self.latest(one) {
                return Run { root: header.root, token: header.run };
            }
            ancestor = stat(one).map(|(parent, _)| parent);
        }
        Run { root: pid, token: private::random().unwrap_or_default() }
    }

    /// The header of a process's last table file, if it runs.
    fn latest(&self, pid: libc::pid_t) -> Option<Header> {
        (0..NUMBERS)
            .map(|number| read_header(&self.table(pid, number)))
            .take_while(|read| read.as_ref().err().map(Error::kind) != Some(ErrorKind::NotFound))
            .filter_map(|read| read.ok().filter(|header| header.pid == pid && is_alive(header)))
            .last()
    }

    /// Whether reports are made in the measured processes. (Standard error may be the program's now: then table files stay.)
    pub fn reports(&self) -> bool {
        !self.raw && (self.report.is_some() || say::stderr_is_known())
    }

    /// Whether the report is that of a process that is not the run's root: the root does not run to make it.
    pub fn is_ours_to_report(&self, run: &Run) -> bool {
        self.latest(run.root).is_none_or(|header| header.run != run.token)
    }

    /// Makes the report, and removes the table files; whether there is one. If not, says so. `own` is the table of this process.
    pub fn report(&self, pid: libc::pid_t, run: &Run, own: &Path) -> bool {
        let files = self.tables_of(run);
        if files.is_empty() {
            let directory = self.directory.display();
            say::say(&format!("no report: no table file of this run is left in {directory}"));
            return false;
        }
        let output = self
            .report
            .as_deref()
            .map(|path| if run.root == pid { path.to_owned() } else { beside(path, pid) });
        let written = match output.as_deref().filter(|path| private::leads_elsewhere(path)) {
            Some(_) => Err(Error::other("another user has put a link, a FIFO or a device there")),
            None => topdown_report::write(&files, output.as_deref()),
        };
        if let Err(error) = written {
            self.no_report(own, &error.to_string());
            return false;
        }
        for file in files {
            let ended = read_header(&file).ok().is_none_or(|header| !is_alive(&header) || header.pid == pid);
            if ended {
                let _ = std::fs::remove_file(file);
            }
        }
        let _ = std::fs::remove_dir(&self.directory); // unless others have files in it
        true
    }

    /// Says why there is none, and where the figures are.
    pub fn no_report(&self, own: &Path, why: &str) {
        let name = self.report.as_deref().unwrap_or(Path::new("standard error")).display();
        say::say(&format!(
            "no report in {name}: {why}; the figures are in {}, for `topdown report`",
            own.display()
        ));
    }

    /// All table files of the run, the oldest first.
    fn tables_of(&self, run: &Run) -> Vec<PathBuf> {
        let Ok(names) = directory::names(&self.directory) else { return Vec::new() };
        let mut files: Vec<(u64, PathBuf)> = names
            .iter()
            .filter(|name| name.as_bytes().ends_with(b".topdown"))
            .filter_map(|name| {
                let path = self.directory.join(name);
                let header = read_header(&path).ok()?;
                (header.run == run.token).then_some((header.started_unix_ns, path))
            })
            .collect();
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    }
}

/// FILE.ENDING is FILE.PID.ENDING.
fn beside(path: &Path, pid: libc::pid_t) -> PathBuf {
    let ending = path.extension().unwrap_or_default().to_owned();
    let mut name = path.with_extension("").into_os_string();
    name.push(format!(".{pid}."));
    name.push(ending);
    name.into()
}

/// The process that wrote it runs, this program or another.
fn is_alive(header: &Header) -> bool {
    // SAFETY: signal 0 is none.
    let there = unsafe { libc::kill(header.pid, 0) } == 0
        || Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    let another = header.birth != 0 && stat(header.pid).is_some_and(|(_, birth)| birth != header.birth);
    there && !another && matches!(header.ended.load(Relaxed), RUNS | EXECED)
}

/// A process's parent, and when it began, as in `Header::birth`.
pub fn stat(pid: libc::pid_t) -> Option<(libc::pid_t, u64)> {
    let mut text = [0; 1024];
    let length = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
    // (the command's name, in parentheses, may have any byte in it)
    let after = text[..length].iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&text[after..length]).ok()?.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?; // field 4
    let birth = fields.nth(17)?.parse().ok()?; // field 22
    Some((parent, birth))
}

/// The header of a table file that this user wrote.
fn read_header(path: &Path) -> Result<Header> {
    let mut page = [0_u64; HEADER_SIZE / 8];
    // SAFETY: the same bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(page.as_mut_ptr().cast::<u8>(), HEADER_SIZE) };
    private::open(path)?.read_exact(bytes)?;
    // SAFETY: a header is shorter, aligned as these are, and numbers and bytes alone.
    let header: Header = unsafe { addr_of!(page).cast::<Header>().read() };
    if header.is_ours() { Ok(header) } else { Err(ErrorKind::InvalidData.into()) }
}
