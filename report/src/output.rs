//! Where a report goes: into a file that appears under its name, or replaces the one there, only once it is whole.
//!
//! It is written beside that file and then renamed, so a full disk or two reports at once never leave half of one. What cannot be
//! renamed onto (a FIFO, a device, an open descriptor, a mount point, a file in a directory that is not ours to write to) is
//! written straight. A FIFO is waited for, as long as [`wait_for_readers_by`] has it.
#![forbid(unsafe_code)]

mod place;

use place::{FilePlace, PlaceContent, Replaced};
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

const ENXIO: i32 = 6;

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
    /// Into a file of this name beside the place, which it is to take.
    Beside { beside: OsString, place: Box<FilePlace> },
    /// Over what a regular file holds.
    Over,
    /// To a FIFO, a device, whoever has the descriptor, or row by row into a file.
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
        Self::open(path, Self::whole).map_err(|error| failed(path, &error))
    }

    /// The same of what is to be read while it is written: it is empty at first, and then has what was written.
    ///
    /// # Errors
    /// It cannot be written; the text names it.
    pub fn row_by_row(path: &Path) -> io::Result<Output> {
        Self::open(path, Self::straight).map_err(|error| failed(path, &error))
    }

    fn open(path: &Path, open: fn(FilePlace) -> io::Result<(File, Way)>) -> io::Result<Output> {
        let mut place = FilePlace::of(path)?;
        // (what came since is another command's)
        if matches!(&place.there, PlaceContent::File(about) if is_new(path, about)) {
            place.there = PlaceContent::Nothing;
        }
        let (file, way) = match place.there {
            PlaceContent::Nothing | PlaceContent::File(_) => open(place)?,
            PlaceContent::Other(_) | PlaceContent::Descriptor { .. } => {
                (Self::through(path, &place)?, Way::Through)
            }
        };
        Ok(Output { name: path.into(), file, way })
    }

    fn through(path: &Path, place: &FilePlace) -> io::Result<File> {
        if !place.there.is_fifo() {
            return place.open(OFlags::APPEND);
        }
        let unread = |error: &io::Error| error.raw_os_error() == Some(ENXIO);
        patiently(path, unread, || place.open(OFlags::APPEND | OFlags::NONBLOCK))
    }

    fn whole(place: FilePlace) -> io::Result<(File, Way)> {
        match beside(&place) {
            Ok((file, beside)) => Ok((file, Way::Beside { beside, place: place.into() })),
            // what is there may be writable all the same
            Err(error) if is_not_ours(&error) && matches!(place.there, PlaceContent::File(_)) => {
                Ok((place.open(OFlags::NONBLOCK)?, Way::Over))
            }
            Err(error) => Err(error),
        }
    }

    fn straight(place: FilePlace) -> io::Result<(File, Way)> {
        let file = match place.there {
            PlaceContent::Nothing => place.make(&place.name, 0o666)?,
            _ => place.open(OFlags::NONBLOCK)?,
        };
        file.set_len(0)?;
        Ok((file, Way::Through))
    }

    /// Whether a file can be written; it stays as it is.
    ///
    /// # Errors
    /// Those of [`Output::create`].
    pub fn check(path: &Path) -> io::Result<()> {
        if is_stdout(path) {
            return stdout_is_open();
        }
        match FilePlace::of(path).map_err(|error| failed(path, &error))?.there {
            // to open a FIFO is to wait for its reader, who would take the close for the end
            PlaceContent::Other(_) | PlaceContent::Descriptor { .. } => Ok(()),
            PlaceContent::Nothing | PlaceContent::File(_) => Output::create(path).map(drop),
        }
    }

    /// All is written: the file appears under its name.
    ///
    /// # Errors
    /// It cannot; the text names it, and what was there before is there still.
    pub fn finish(mut self) -> io::Result<()> {
        self.end().map_err(|error| failed(&self.name, &error))
    }

    /// Gives a file beside the place a name that nothing has: FILE.PID.ENDING, or where this process has made that before FILE.PID-2.ENDING ...
    fn aside(place: &FilePlace, beside: &OsStr) -> io::Result<PathBuf> {
        let mut names = (1..).map(|number| with_pid(Path::new(&place.name), number));
        loop {
            let name = names.next().expect("numbers go on");
            match place.rename(beside, name.as_os_str()) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                renamed => return renamed.map(|()| name),
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match &self.way {
            Way::Beside { beside, place } => match place.replace_by(beside) {
                Err(error) if is_not_ours(&error) || is_mount(&error) => {
                    // (of nothing that was there before, the error stays)
                    let mut over = place.open(OFlags::NONBLOCK).map_err(|_| error)?;
                    self.file.rewind()?;
                    let length = io::copy(&mut self.file, &mut over)?;
                    over.set_len(length)
                }
                Ok(replaced @ (Replaced::NotYet | Replaced::Another)) => {
                    let name = Self::aside(place, beside)?;
                    self.way = Way::Done;
                    let named = self.name.with_file_name(name);
                    crate::terminal::say(&match replaced {
                        Replaced::NotYet => meanwhile(&self.name, "the", &named),
                        _ => meanwhile(&self.name, "that command's", &named),
                    });
                    Ok(())
                }
                renamed => {
                    renamed?;
                    self.way = Way::Done;
                    Ok(())
                }
            },
            // what was there and is longer ends where this does
            Way::Over => {
                let end = self.file.stream_position()?;
                self.file.set_len(end)
            }
            Way::Through | Way::Done => Ok(()),
        }
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
        if let Way::Beside { beside, place } = &self.way {
            let _ = place.remove(beside);
        }
    }
}

/// Whether this process had no standard output when it began: Rust's runtime opens /dev/null in its place.
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// This process has no standard output, whatever seems to be there.
pub fn stdout_was_closed() {
    STDOUT_WAS_CLOSED.store(true, Relaxed);
}

pub(crate) fn stdout_is_open() -> io::Result<()> {
    match STDOUT_WAS_CLOSED.load(Relaxed) {
        true => Err(io::Error::other("cannot write to standard output: it was closed when this began")),
        false => Ok(()),
    }
}

/// The file of a report that is written later: what it was in the beginning.
pub struct Claim {
    path: PathBuf,
    before: Option<FileState>,
}

/// Which file it is, and when it was written last.
type FileState = (u64, i64, i64, u64);

/// Files that were claimed, and what they were then.
static CLAIMED: Mutex<Vec<(PathBuf, Option<FileState>)>> = Mutex::new(Vec::new());

/// Whether what is there now has come since the file was claimed.
fn is_new(path: &Path, about: &Metadata) -> bool {
    let claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    claimed.iter().any(|(other, before)| other == path && *before != Some(state_of(about)))
}

fn state(path: &Path) -> Option<FileState> {
    path.metadata().ok().filter(Metadata::is_file).as_ref().map(state_of)
}

fn state_of(about: &Metadata) -> FileState {
    (about.ino(), about.mtime(), about.mtime_nsec(), about.size())
}

impl Claim {
    /// From now on.
    pub fn of(path: &Path) -> Claim {
        Claim::made(path, state(path))
    }

    fn made(path: &Path, before: Option<FileState>) -> Claim {
        CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).push((path.into(), before));
        Claim { path: path.into(), before }
    }

    /// Where the report goes: there, or, if another command has written that file meanwhile, beside it, which a line says.
    pub fn place(&self) -> PathBuf {
        let now = state(&self.path);
        if now.is_none() || now == self.before {
            return self.path.clone();
        }
        let place = self.path.with_file_name(with_pid(&self.path, 1));
        crate::terminal::say(&meanwhile(&self.path, "the", &place));
        place
    }

    /// What the file was, for another process.
    pub fn state(&self) -> String {
        state_text(self.before)
    }

    /// What a file is now, likewise.
    pub(crate) fn state_now(path: &Path) -> String {
        state_text(state(path))
    }

    /// Since another process found it like this ([`Claim::state`]); None: it said something else.
    pub fn since(path: &Path, state: &str) -> Option<Claim> {
        let mut numbers = state.split(':');
        let mut next = || numbers.next();
        let before =
            (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        Some(Claim::made(path, (before.0 != 0).then_some(before)))
    }
}

fn state_text(state: Option<FileState>) -> String {
    let (inode, seconds, ns, size) = state.unwrap_or_default();
    format!("{inode}:{seconds}:{ns}:{size}")
}

/// FILE.PID.ENDING, in place of FILE.ENDING; from the second on with a number behind the id.
fn with_pid(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{}", std::process::id()));
    if number > 1 {
        name.push(format!("-{number}"));
    }
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    name.into()
}

/// That another command was first, and where whose report is.
fn meanwhile(path: &Path, whose: &str, place: &Path) -> String {
    format!(
        "{} was written by another command meanwhile: {whose} report is in {} (%p, %h, %r in a name tell processes, hosts and ranks apart)",
        path.display(),
        place.display()
    )
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

/// A new file beside another, with its owner and permissions if it exists.
fn beside(place: &FilePlace) -> io::Result<(File, OsString)> {
    const MOST: usize = 200; // bytes of a name that leave room for an ending
    let name = place.name.as_bytes();
    let name = OsStr::from_bytes(&name[..name.len().min(MOST)]);
    let old = if let PlaceContent::File(about) = &place.there { Some(about) } else { None };
    let mode = old.map_or(0o666, |about| about.mode() & 0o777);
    for attempt in 0..1000_u32 {
        let mut beside = name.to_os_string();
        beside.push(format!(".{}.{attempt}.part", std::process::id()));
        match place.make(&beside, mode) {
            Ok(file) => {
                let like = old.map_or(Ok(()), |old| like(&file, old));
                return like.map(|()| (file, beside.clone())).inspect_err(|_| _ = place.remove(&beside));
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
