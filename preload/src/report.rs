//! The report at the program's end: made by the command `topdown`, whose code is not loaded into the program.

use crate::{apart, private, say};
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::null;

const COMMAND: &str = "topdown";
/// Where it is, from the library's directory.
const PLACES: [&str; 3] = ["", "../bin", "../../bin"];

/// A process whose command could not be executed ends with this and the error's number; `topdown` itself ends below it.
const NOT_EXECUTED: c_int = 128;

/// In the environment of a command that reports. Where the library is loaded into it all the same (/etc/ld.so.preload), nothing
/// is measured, or the report's report would have one.
const MARK: &CStr = c"TOPDOWN_REPORTS=1";

/// Whether this process makes a report.
pub fn is_made_here() -> bool {
    private::variable("TOPDOWN_REPORTS").is_some()
}

/// Why there is no report.
pub enum NoReport {
    /// There is no command.
    NoCommand,
    /// The command has said why.
    Said,
    /// There is no report, for this reason.
    Other(String),
}

/// The commands to be tried, one after the other: `named`, or those beside the library.
pub fn commands(named: Option<PathBuf>) -> Vec<CString> {
    let all = match named {
        Some(path) => vec![std::path::absolute(&path).unwrap_or(path)],
        None => library().map_or(Vec::new(), |library| {
            let directory = library.parent().unwrap_or(Path::new("/"));
            PLACES.map(|place| directory.join(place).join(COMMAND)).into()
        }),
    };
    all.into_iter().filter_map(|path| CString::new(path.into_os_string().into_vec()).ok()).collect()
}

/// This library's file.
pub fn library() -> Option<PathBuf> {
    // SAFETY: the structure is filled in, or stays zero; the name is that of a library that is not unloaded.
    let name = unsafe {
        let mut about: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(library as *const libc::c_void, &mut about);
        (!about.dli_fname.is_null()).then(|| CStr::from_ptr(about.dli_fname))?
    };
    std::path::absolute(OsStr::from_bytes(name.to_bytes())).ok()
}

/// Has the command report on the run of which `own` is a table: into a file, which was so when the program began, or to standard error.
///
/// # Safety
/// In a copy of the process (`apart::run`).
pub unsafe fn make(
    commands: &[CString],
    token: &[u8; 16],
    output: Option<(&Path, &str)>,
    own: &Path,
) -> std::result::Result<(), NoReport> {
    let other = |error: Error| NoReport::Other(error.to_string());
    let arguments = arguments(token, output, own);
    let mut pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(null());
    let (mut said, says) = pipe().map_err(other)?;
    // SAFETY: the caller's word. Whether the program ignores the ends of children is its own affair.
    let child = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        apart::copy(|| execute(commands, &pointers, output.is_none(), says.as_raw_fd())).map_err(other)?
    };
    drop(says);
    let mut text = [0; 4096];
    let length = fill(&mut said, &mut text);
    let text = String::from_utf8_lossy(&text[..length]);
    let lines = text.lines().map(|line| line.strip_prefix("topdown: ").unwrap_or(line));
    let status = apart::wait(child).unwrap_or(-1);
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, code @ (0 | 1)) => {
            lines.for_each(say::say);
            if code == 0 { Ok(()) } else { Err(NoReport::Said) }
        }
        (true, code) if code > NOT_EXECUTED => match code - NOT_EXECUTED {
            libc::ENOENT | libc::ENOTDIR => Err(NoReport::NoCommand),
            errno => Err(NoReport::Other(format!(
                "{COMMAND} cannot be executed: {}",
                Error::from_raw_os_error(errno)
            ))),
        },
        // (the dynamic linker found no memory, say)
        _ => Err(NoReport::Other(
            lines.into_iter().next().map_or_else(|| apart::ended(status), |line| line.into()),
        )),
    }
}

/// What the command is called with.
fn arguments(token: &[u8; 16], output: Option<(&Path, &str)>, own: &Path) -> Vec<CString> {
    let mut number = String::new();
    token.iter().for_each(|byte| _ = write!(number, "{byte:02x}"));
    let mut all: Vec<&[u8]> = vec![COMMAND.as_bytes(), b"report", b"--run", number.as_bytes()];
    if let Some((output, state)) = output {
        all.extend([b"-o", output.as_os_str().as_bytes()]);
        if !state.is_empty() {
            all.extend([b"--output-was", state.as_bytes()]);
        }
    }
    all.push(own.as_os_str().as_bytes());
    all.into_iter().filter_map(|argument| CString::new(argument).ok()).collect()
}

/// Becomes the command, with an environment that has `MARK` alone: so nothing is preloaded into it. What it has to say goes to
/// `says`; its standard output is the program's standard error if `text`. Returns an exit status.
fn execute(commands: &[CString], arguments: &[*const c_char], text: bool, says: RawFd) -> c_int {
    let environment = [MARK.as_ptr(), null()];
    // SAFETY: C strings, and lists of them that end in NULL.
    unsafe {
        if text && libc::dup2(2, 1) < 0 {
            libc::dup2(says, 1); // (not to the program's standard output)
        }
        libc::dup2(says, 2);
        let mut errno = libc::ENOENT;
        for command in commands {
            libc::execve(command.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            errno = Error::last_os_error().raw_os_error().unwrap_or(libc::ENOENT);
            if !matches!(errno, libc::ENOENT | libc::ENOTDIR) {
                break;
            }
        }
        NOT_EXECUTED + errno
    }
}

/// A pipe to be read and one to be written, neither of which is a standard stream, though the program may have closed those.
fn pipe() -> Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors, which are this function's own, as their copies are.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Error::last_os_error());
        }
        let low = ends.map(|end| File::from_raw_fd(end));
        let high = ends.map(|end| libc::fcntl(end, libc::F_DUPFD_CLOEXEC, 3));
        drop(low);
        if high.iter().any(|end| *end < 0) {
            return Err(Error::last_os_error());
        }
        let [read, write] = high.map(|end| File::from_raw_fd(end));
        Ok((read, write))
    }
}

/// Reads to the end, and keeps what there is room for.
fn fill(from: &mut File, text: &mut [u8]) -> usize {
    let (mut length, mut rest) = (0, [0; 512]);
    loop {
        let more = if length < text.len() { &mut text[length..] } else { &mut rest[..] };
        match from.read(more) {
            Ok(0) => return length,
            Ok(read) => length = text.len().min(length + read),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return length,
        }
    }
}
