//! Processes that belong together, by the headers of their table files, and which of them still run. Files that another
//! user can have written are not believed.

use crate::file::Plain;
use crate::{EXECED, HEADER_SIZE, Header, MAGIC, RUNS};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// Which processes belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId {
    /// The process that reports for all of them.
    pub root: i32,
    /// Random.
    pub token: [u8; 16],
}

impl Header {
    /// The run that the process is part of.
    pub fn run(&self) -> RunId {
        RunId { root: self.root, token: self.run }
    }

    /// Whether the process that wrote it runs, this program or another.
    pub fn is_alive(&self) -> bool {
        // SAFETY: signal 0 is none.
        let there = unsafe { libc::kill(self.pid, 0) } == 0
            || Error::last_os_error().raw_os_error() == Some(libc::EPERM);
        let another = self.birth != 0 && stat(self.pid).is_some_and(|(_, birth)| birth != self.birth);
        there && !another && matches!(self.ended.load(Relaxed), RUNS | EXECED)
    }
}

/// A process's parent, and when it began, as in `Header::birth`.
pub fn stat(pid: i32) -> Option<(i32, u64)> {
    let mut text = [0; 1024];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
    // (the command's name, in parentheses, may have any byte in it)
    let after = text[..length].iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&text[after..length]).ok()?.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?; // field 4
    let birth = fields.nth(17)?.parse().ok()?; // field 22
    Some((parent, birth))
}

/// The header of a table file that this user wrote.
///
/// # Errors
/// It cannot be read, or is no such file.
pub fn header(path: &Path) -> Result<Header> {
    let mut page = [0; HEADER_SIZE];
    open(path)?.read_exact(&mut page)?;
    let header = Header::of(&page[..size_of::<Header>()]);
    if header.is_ours() { Ok(header) } else { Err(ErrorKind::InvalidData.into()) }
}

/// Whether a process has begun to fill in this table file. One that is killed in the first moments leaves a file that is empty, or zeros.
pub fn has_begun(path: &Path) -> bool {
    let mut magic = [0; size_of_val(&MAGIC)];
    match open(path).and_then(|mut file| file.read_exact(&mut magic)) {
        Ok(()) => magic.iter().any(|byte| *byte != 0),
        Err(error) => error.kind() != ErrorKind::UnexpectedEof,
    }
}

/// All table files of a run in a directory, the oldest first.
pub fn tables(directory: &Path, token: &[u8; 16]) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let header =
                path.extension().filter(|ending| *ending == "topdown").and_then(|_| header(&path).ok())?;
            (header.run == *token).then_some((header.started_unix_ns, path))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

/// Opens a file to be read, if it is a regular one of this user's, by this name alone, that others cannot write. Waits for
/// nobody.
fn open(path: &Path) -> Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if about.is_file() && is_own(&about, 0o022) && about.nlink() == 1 {
        Ok(file)
    } else {
        Err(ErrorKind::PermissionDenied.into())
    }
}

/// Whether this user has it, and others have none of these rights to it.
pub fn is_own(about: &Metadata, others: u32) -> bool {
    // SAFETY: geteuid has no preconditions.
    about.uid() == unsafe { libc::geteuid() } && about.mode() & others == 0
}
