//! Whether a file is the one that ran: another one may be at its path, in another root directory, or by the time names are looked up.
#![allow(unsafe_code)]

use crate::elf_file::{ElfFile, build_id, lacked_descriptors, regular};
use crate::event::{behind_files, now};
use object::ReadCache;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use topdown_seam::records::Inode;

/// The kernel's number of the machine's last start (addresses of the kernel's functions are others after the next one); "": it is not known.
pub(crate) fn boot_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    let read =
        || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string();
    ID.get_or_init(read)
}

/// Behind the name of a mapped file that is not there any more, or another one has its name.
pub(crate) const DELETED: &str = " (deleted)";

/// How the file that ran is told from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileProof {
    /// It was not found, or changed while it was mapped.
    #[default]
    Unseen,
    /// By what the linker has computed of its contents.
    BuildId(String),
    /// It has no build id: by device, inode, size, and when it was written last.
    Unwritten { device: u64, inode: u64, size: u64, written_ns: i64 },
}

impl FileProof {
    pub fn of(file: &File) -> FileProof {
        let data = file.try_clone().ok().map(ReadCache::new);
        let elf = data.as_ref().and_then(|data| ElfFile::parse(data).ok());
        if let Some(id) = elf.as_ref().and_then(build_id) {
            return FileProof::BuildId(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        let Ok(about) = file.metadata() else { return FileProof::Unseen };
        let written_ns = about.mtime().wrapping_mul(1_000_000_000).wrapping_add(about.mtime_nsec());
        FileProof::Unwritten { device: about.dev(), inode: about.ino(), size: about.len(), written_ns }
    }

    pub fn is_of(&self, file: &File) -> bool {
        *self != FileProof::Unseen && *self == FileProof::of(file)
    }
}

/// A file that a process has mapped, as the kernel has reported it.
pub(crate) struct FileMapping<'a> {
    pub pid: i32,
    pub start: u64,
    pub end: u64,
    /// In the process's root directory.
    pub path: &'a str,
    pub inode: Inode,
    /// It has not been changed since, in nanoseconds of the clock of files.
    pub since_ns: i128,
}

impl FileMapping<'_> {
    /// The file itself; None: it is not found.
    pub fn file(&self) -> Option<File> {
        let process = PathBuf::from(format!("/proc/{}", self.pid));
        let in_root = |path: &str| Some(process.join("root").join(path.strip_prefix('/')?));
        let is_path = !self.path.starts_with("/memfd:");
        let paths = [
            is_path.then(|| in_root(self.path)).flatten(),
            is_path.then(|| self.path.into()),
            // (for root alone)
            Some(process.join(format!("map_files/{:x}-{:x}", self.start, self.end))),
            Some(process.join("exe")),
        ];
        let find = |path: &Option<PathBuf>, inode: Inode| {
            let file = regular(path.as_ref()?)?;
            (self.has_not_changed(&file) && is_mapped_as(&file, inode)).then_some(file)
        };
        paths.iter().find_map(|path| find(path, self.inode)).or_else(|| {
            let (inode, path) = self.in_maps()?;
            find(&in_root(&path), inode).or_else(|| paths.iter().find_map(|path| find(path, inode)))
        })
    }

    fn has_not_changed(&self, file: &File) -> bool {
        let Ok(about) = file.metadata() else { return false };
        let changed_ns = i128::from(about.ctime()) * 1_000_000_000 + i128::from(about.ctime_nsec());
        let is_of_other_clock = changed_ns > i128::from(now()) + behind_files(); // (a file server's)
        changed_ns <= self.since_ns || is_of_other_clock || about.nlink() == 0 // (its removal has changed it)
    }

    /// Inode and path of what the process has there now, if its name is the same. (Of a file in overlayfs some kernels' records have the inode, and
    /// the path, of the one below.)
    fn in_maps(&self) -> Option<(Inode, String)> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid)).ok()?;
        let is_there = |line: &&str| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            range
                .and_then(|(start, end)| Some((number(start)?, number(end)?)))
                .is_some_and(|(start, end)| (start..end).contains(&self.start))
        };
        let line = maps.lines().find(is_there)?;
        let path = line.splitn(6, ' ').nth(5)?.trim_start().trim_end_matches(DELETED);
        (Path::new(path).file_name() == Path::new(self.path).file_name())
            .then_some((inode_of(line)?, path.into()))
    }
}

/// Whether a file that is mapped has this device and inode. (Those of stat(2) are others in some file systems, such as overlayfs and btrfs.)
fn is_mapped_as(file: &File, inode: Inode) -> bool {
    let Ok(about) = file.metadata() else { return false };
    let of_stat =
        Inode { major: libc::major(about.dev()), minor: libc::minor(about.dev()), number: about.ino() };
    inode.number != 0 && (of_stat == inode || as_mapped(file) == Some(inode))
}

/// Whether a file has code in a format that is read.
pub(crate) fn is_program(file: &File) -> bool {
    file.try_clone().is_ok_and(|file| ElfFile::parse(&ReadCache::new(file)).is_ok())
}

/// Device and inode of a file that this process maps.
fn as_mapped(file: &File) -> Option<Inode> {
    const LENGTH: usize = 1;
    // SAFETY: a new mapping, which nobody reads, of an open file.
    let page = unsafe {
        libc::mmap(ptr::null_mut(), LENGTH, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    let maps = fs::read_to_string("/proc/thread-self/maps").unwrap_or_default();
    let begins = format!("{:08x}-", page as usize);
    let inode = maps.lines().find(|line| line.starts_with(&begins)).and_then(inode_of);
    // SAFETY: what was mapped above, to which no reference is left.
    unsafe { libc::munmap(page, LENGTH) };
    inode
}

/// Device and inode in a line of /proc/PID/maps.
pub(crate) fn inode_of(line: &str) -> Option<Inode> {
    let mut words = line.split(' ').skip(3);
    let (major, minor) = words.next()?.split_once(':')?;
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    Some(Inode { major: hex(major)?, minor: hex(minor)?, number: words.next()?.parse().ok()? })
}

/// A new file in memory, which programs that are executed have open, too.
#[cfg(test)]
pub(crate) fn memfd(name: &std::ffi::CStr) -> File {
    use std::os::fd::{FromRawFd, OwnedFd};
    // SAFETY: the name ends; the descriptor is new, and nobody else's.
    let descriptor = unsafe {
        let descriptor = libc::memfd_create(name.as_ptr(), 0);
        assert!(descriptor >= 0);
        OwnedFd::from_raw_fd(descriptor)
    };
    descriptor.into()
}

/// What is at a path, as a process would map it now.
#[cfg(test)]
pub(crate) fn inode_at(path: &str) -> Inode {
    regular(Path::new(path)).and_then(|file| as_mapped(&file)).unwrap_or_default()
}

/// Why a file that ran has no names: what there is instead.
pub(crate) fn why_not(proof: &FileProof, path: &str) -> &'static str {
    match proof {
        _ if lacked_descriptors() => "no descriptor was left to open it (ulimit -n)",
        FileProof::Unseen => "the file that ran was not found",
        _ if Path::new(path).exists() => "another file is at its path",
        _ => "it is not at its path",
    }
}
