//! Where a report goes: into a file that appears under its name, or replaces the one there, only once it is whole.
//!
//! It is written beside that file and then renamed, so a full disk or two reports at once never leave half of one. What cannot be
//! renamed onto (a FIFO, a device, an open descriptor, a mount point, a file in a directory that is not ours to write to) is
//! written straight. A FIFO is waited for, as long as [`wait_for_readers_by`] has it.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

const ENXIO: i32 = 6;
const EISDIR: i32 = 21;
const ELOOP: i32 = 40;
const O_NONBLOCK: i32 = 0o4000;

/// A file that is being written.
pub struct Output {
    /// As the caller names it.
    name: PathBuf,
    file: File,
    way: Way,
}

/// Waits so long for whoever reads a FIFO. Whether to go on waiting.
pub type Wait = Box<dyn FnMut(Duration) -> bool>;

static WAITS: OnceLock<fn(&Path) -> Wait> = OnceLock::new();

/// How this process waits for the reader of a FIFO: `begin` is called when a wait begins. Without, as long as it takes.
pub fn wait_for_readers_by(begin: fn(&Path) -> Wait) {
    let _ = WAITS.set(begin);
}

/// Tries again and again what a FIFO refuses as long as nobody reads it. (An open or write that blocks is restarted after a signal,
/// so nobody could end it who handles signals.)
fn patiently<T>(
    path: &Path,
    refused: fn(&io::Error) -> bool,
    mut ask: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    const LONGEST: Duration = Duration::from_millis(50);
    let (mut wait, mut time) = (None, Duration::from_millis(1));
    loop {
        match ask() {
            Err(error) if refused(&error) => {}
            answered => return answered,
        }
        let wait: &mut Wait = wait.get_or_insert_with(|| match WAITS.get() {
            Some(begin) => begin(path),
            None => Box::new(|time| {
                thread::sleep(time);
                true
            }),
        });
        if !wait(time) {
            return Err(io::Error::other("nobody reads this FIFO, and a signal ended the wait for a reader"));
        }
        time = (2 * time).min(LONGEST);
    }
}

enum Way {
    /// Into `beside`, which is to be renamed to `target`.
    Beside { beside: PathBuf, target: PathBuf },
    /// Over what a regular file holds.
    Over,
    /// To a FIFO, a device, or whoever has the descriptor.
    Through,
    /// `Beside`, and renamed.
    Done,
}

impl Output {
    /// Begins to write a file; what it has stays until [`Output::finish`], if that is possible.
    ///
    /// # Errors
    /// It cannot be written; the text names it.
    pub fn create(path: &Path) -> io::Result<Output> {
        Self::open(path).map_err(|error| failed(path, &error))
    }

    fn open(path: &Path) -> io::Result<Output> {
        let new = |file, way| Output { name: path.into(), file, way };
        let old = match fs::metadata(path) {
            Ok(about) => Some(about),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let target = target(path)?;
        if old.as_ref().is_some_and(|about| !about.is_file()) || is_descriptor(&target) {
            let mut options = OpenOptions::new();
            options.append(true);
            if old.is_some_and(|about| about.file_type().is_fifo()) {
                options.custom_flags(O_NONBLOCK);
            }
            let unread = |error: &io::Error| error.raw_os_error() == Some(ENXIO);
            return Ok(new(patiently(path, unread, || options.open(path))?, Way::Through));
        }
        match beside(&target, old.as_ref()) {
            Ok((file, beside)) => Ok(new(file, Way::Beside { beside, target })),
            // what is there may be writable all the same
            Err(error) if old.is_some() && is_not_ours(&error) => {
                Ok(new(OpenOptions::new().write(true).open(path)?, Way::Over))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a file can be written; it stays as it is.
    ///
    /// # Errors
    /// Those of [`Output::create`].
    pub fn check(path: &Path) -> io::Result<()> {
        match fs::metadata(path) {
            _ if is_stdout(path) => Ok(()),
            Ok(about) if about.is_dir() => Err(failed(path, &io::Error::from_raw_os_error(EISDIR))),
            // to open a FIFO is to wait for its reader, who would take the close for the end
            Ok(about) if !about.is_file() => Ok(()),
            _ => Output::create(path).map(drop),
        }
    }

    /// All is written: the file appears under its name.
    ///
    /// # Errors
    /// It cannot; the text names it, and what was there before is there still.
    pub fn finish(mut self) -> io::Result<()> {
        self.end().map_err(|error| failed(&self.name, &error))
    }

    fn end(&mut self) -> io::Result<()> {
        let Way::Beside { beside, target } = &self.way else {
            return self.cut();
        };
        match fs::rename(beside, target) {
            Err(error) if is_not_ours(&error) || is_mount(&error) => {
                let whole = fs::read(beside)?;
                let mut over = OpenOptions::new().write(true).open(target)?;
                over.write_all(&whole)?;
                over.set_len(whole.len() as u64)
            }
            renamed => {
                renamed?;
                self.way = Way::Done;
                Ok(())
            }
        }
    }

    /// What was there and is longer ends where this does.
    fn cut(&mut self) -> io::Result<()> {
        if matches!(self.way, Way::Over) {
            let end = io::Seek::stream_position(&mut self.file)?;
            self.file.set_len(end)?;
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let unread = |error: &io::Error| error.kind() == ErrorKind::WouldBlock;
        let written = patiently(&self.name, unread, || self.file.write(bytes));
        written.map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            _ => failed(&self.name, &error),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Way::Beside { beside, .. } = &self.way {
            let _ = fs::remove_file(beside);
        }
    }
}

/// "-" is standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn failed(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: cannot write the report: {error}", path.display()))
}

/// Others may write to the file, but neither make nor replace one in its directory.
fn is_not_ours(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

fn is_mount(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::CrossesDevices)
}

/// The file that a name leads to, which need not exist: links of the last part are followed, since the link is to stay.
fn target(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40; // as many as the kernel follows
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if is_descriptor(&path) || !fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink()) {
            return Ok(path);
        }
        path = directory(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::from_raw_os_error(ELOOP))
}

/// /dev/stdout, /dev/fd/3: somebody has the file open, and goes on writing to that.
fn is_descriptor(path: &Path) -> bool {
    fs::canonicalize(directory(path)).is_ok_and(|directory| directory.starts_with("/proc"))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// A new file beside another, with its owner and permissions if it exists.
fn beside(target: &Path, old: Option<&Metadata>) -> io::Result<(File, PathBuf)> {
    const MOST: usize = 200; // bytes of a name that leave room for an ending
    let name = target.file_name().ok_or(io::Error::from_raw_os_error(EISDIR))?.as_bytes();
    let name = OsStr::from_bytes(&name[..name.len().min(MOST)]);
    let mode = old.map_or(0o666, |about| about.mode() & 0o777);
    for turn in 0..1000_u32 {
        let mut part = name.to_os_string();
        part.push(format!(".{}.{turn}.part", std::process::id()));
        let beside = target.with_file_name(part);
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside) {
            Ok(file) => {
                let like = old.map_or(Ok(()), |old| like(&file, old));
                return like.map(|()| (file, beside.clone())).inspect_err(|_| _ = fs::remove_file(&beside));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "a thousand *.part files are beside it; remove them"))
}

fn like(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}
