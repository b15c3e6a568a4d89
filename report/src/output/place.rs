//! Where a name leads to. Each directory, link and file on the way is opened once, without following, and what is asked of it is
//! asked of what was opened: what is put under the name meanwhile is never written to.
//!
//! A link that is there is followed as the kernel follows one with `fs.protected_symlinks`, and a file or FIFO that is there is
//! taken as with `fs.protected_regular` and `fs.protected_fifos`, whatever these settings are here.
#![forbid(unsafe_code)]

use rustix::fs::{AtFlags, FileType};
use rustix::fs::{
    CWD, Mode, OFlags, PROC_SUPER_MAGIC, RenameFlags, fstatfs, openat, readlinkat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

const ENOENT: i32 = 2;
const EISDIR: i32 = 21;
const ELOOP: i32 = 40;

const STICKY: u32 = 0o1000;
const BY_GROUP: u32 = 0o020;
const BY_OTHERS: u32 = 0o002;

/// A directory, and a name in it.
pub struct FilePlace {
    directory: OwnedFd,
    pub name: OsString,
    pub there: PlaceContent,
    /// What is there, open: while it is, no file that comes later has its inode number.
    _kept: Option<File>,
}

/// What has the name.
pub enum PlaceContent {
    Nothing,
    File(Metadata),
    /// A FIFO, a device.
    Other(Metadata),
    /// /dev/stdout, /dev/fd/3: somebody has it open, and goes on writing to that.
    Descriptor {
        is_fifo: bool,
    },
}

/// What has become of the file that takes a place.
pub enum Replaced {
    /// It has the place.
    Whole,
    /// Another command's report has it, which came meanwhile.
    NotYet,
    /// It has the place, and another command's report, which came meanwhile, its name.
    Another,
}

impl FilePlace {
    /// Of a path, whose last part may be a link, and lead to what does not exist yet.
    pub fn of(path: &Path) -> io::Result<FilePlace> {
        const MOST_LINKS: usize = 40; // as many as the kernel follows
        let (mut path, mut last) = (path.to_path_buf(), None::<OwnedFd>);
        for _ in 0..=MOST_LINKS {
            let (parent, name) = split(&path)?;
            let from = last.as_ref().map_or(CWD, AsFd::as_fd);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = openat(from, parent, flags, Mode::empty())?;
            let name = name.to_os_string();
            if fstatfs(&directory)?.f_type == PROC_SUPER_MAGIC {
                let about = statat(&directory, &name, AtFlags::empty())?;
                let is_fifo = FileType::from_raw_mode(about.st_mode).is_fifo();
                let there = PlaceContent::Descriptor { is_fifo };
                return Ok(FilePlace { directory, name, there, _kept: None });
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let entry = match openat(&directory, &name, flags, Mode::empty()).map_err(io::Error::from) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let there = PlaceContent::Nothing;
                    return Ok(FilePlace { directory, name, there, _kept: None });
                }
                opened => File::from(opened?),
            };
            let (around, about) = (File::from(directory.try_clone()?).metadata()?, entry.metadata()?);
            if about.is_dir() {
                return Err(io::Error::from_raw_os_error(EISDIR));
            }
            let own = rustix::process::geteuid().as_raw();
            if about.uid() != own && about.uid() != around.uid() && is_for_all(&around, about.is_symlink()) {
                return Err(not_chosen(&about));
            }
            if !about.is_symlink() {
                let there =
                    if about.is_file() { PlaceContent::File(about) } else { PlaceContent::Other(about) };
                return Ok(FilePlace { directory, name, there, _kept: Some(entry) });
            }
            path = PathBuf::from(OsString::from_vec(readlinkat(&entry, "", Vec::new())?.into_bytes()));
            last = Some(directory);
        }
        Err(io::Error::from_raw_os_error(ELOOP))
    }

    /// Opens what was there.
    ///
    /// # Errors
    /// It cannot be opened; something else is there by now.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let (about, more) = match &self.there {
            // (a link of procfs' own, which is no path)
            PlaceContent::Descriptor { .. } => (None, OFlags::empty()),
            PlaceContent::File(about) | PlaceContent::Other(about) => (Some(about), OFlags::NOFOLLOW),
            PlaceContent::Nothing => return Err(io::Error::from_raw_os_error(ENOENT)),
        };
        let flags = flags | more | OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(&self.directory, &self.name, flags, Mode::empty())?);
        let identity = |about: &Metadata| (about.dev(), about.ino());
        if about.is_some_and(|about| file.metadata().map(|new| identity(&new)).ok() != Some(identity(about)))
        {
            return Err(io::Error::other("another file has taken its place meanwhile"));
        }
        Ok(file)
    }

    /// Makes a file of this name beside it, which nothing has yet.
    pub fn make(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.directory, name, flags, Mode::from_raw_mode(mode))?))
    }

    /// A file beside it takes its place, whatever is there: a link, too, is replaced, and not followed. A report that another command of
    /// this user has put there since this began is not lost.
    pub fn replace_by(&self, beside: &OsStr) -> io::Result<Replaced> {
        let replace = || renameat(&self.directory, beside, &self.directory, &self.name);
        let with = |flags| renameat_with(&self.directory, beside, &self.directory, &self.name, flags);
        // (an error: the file system cannot, or what has the name came or went meanwhile)
        match &self.there {
            PlaceContent::Nothing => match with(RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) if self.is_own_file(&self.name, None) => return Ok(Replaced::NotYet),
                renamed => renamed.or_else(|_| replace())?,
            },
            PlaceContent::File(old) => match with(RenameFlags::EXCHANGE) {
                Ok(()) if self.is_own_file(beside, Some(old)) => return Ok(Replaced::Another),
                Ok(()) => _ = self.remove(beside),
                Err(_) => replace()?,
            },
            _ => replace()?,
        }
        Ok(Replaced::Whole)
    }

    /// Whether a file beside it is this user's, and not the one that was there.
    fn is_own_file(&self, name: &OsStr, old: Option<&Metadata>) -> bool {
        statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|about| {
            FileType::from_raw_mode(about.st_mode).is_file()
                && about.st_uid == rustix::process::geteuid().as_raw()
                && old.is_none_or(|old| (old.dev(), old.ino()) != (about.st_dev, about.st_ino))
        })
    }

    /// Gives a file beside it another name, which nothing has.
    pub fn rename(&self, beside: &OsStr, name: &OsStr) -> io::Result<()> {
        Ok(renameat_with(&self.directory, beside, &self.directory, name, RenameFlags::NOREPLACE)?)
    }

    /// Removes a file beside it.
    pub fn remove(&self, beside: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.directory, beside, AtFlags::empty())?)
    }
}

impl PlaceContent {
    pub fn is_fifo(&self) -> bool {
        match self {
            PlaceContent::Descriptor { is_fifo } => *is_fifo,
            PlaceContent::Other(about) => about.file_type().is_fifo(),
            PlaceContent::File(_) | PlaceContent::Nothing => false,
        }
    }
}

/// Whether anybody can make names there, and nobody remove those of others. (A group that can make links is trusted with those.)
fn is_for_all(directory: &Metadata, links: bool) -> bool {
    let by = if links { BY_OTHERS } else { BY_OTHERS | BY_GROUP };
    directory.mode() & STICKY != 0 && directory.mode() & by != 0
}

fn not_chosen(about: &Metadata) -> io::Error {
    let what = match about.file_type() {
        kind if kind.is_symlink() => "link",
        kind if kind.is_fifo() => "FIFO",
        _ => "file",
    };
    let text = format!(
        "user {} has put a {what} there, in a directory where anybody can: remove it, or choose another name",
        about.uid()
    );
    io::Error::new(ErrorKind::PermissionDenied, text)
}

/// The directory of a path, and the name in it.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(io::Error::from_raw_os_error(ENOENT));
    }
    let (parent, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&bytes[..=at], &bytes[at + 1..]),
        None => (&b"."[..], bytes),
    };
    match name {
        b"" | b"." | b".." => Err(io::Error::from_raw_os_error(EISDIR)),
        name => Ok((Path::new(OsStr::from_bytes(parent)), OsStr::from_bytes(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_report_that_came_meanwhile_stays_though_the_inode_of_what_was_there_is_free() {
        let directory = std::env::temp_dir().join(format!("topdown-place-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let path = directory.join("same.json");
        fs::write(&path, "what was there").unwrap();
        let place = FilePlace::of(&path).unwrap();
        place.make(OsStr::new("beside"), 0o600).unwrap();
        // (most file systems give a new file the number that was free last)
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        assert!(matches!(place.replace_by(OsStr::new("beside")).unwrap(), Replaced::Another));
        assert_eq!(fs::read_to_string(directory.join("beside")).unwrap(), "another's");
        fs::remove_dir_all(&directory).unwrap();
    }
}
