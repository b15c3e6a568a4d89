//! Separate debug files: where packages and build systems put what was stripped from a program, and what dwz has moved from the DWARF
//! of several programs to one file that they share.
#![forbid(unsafe_code)]

use super::elf::{ElfFile, regular};
use crate::elf_file::build_id;
use object::{Object, ObjectSection, ReadCache};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Path of the debug file of a program that is at this one: that of its build id, or what its .gnu_debuglink names.
pub(super) fn of(file: &ElfFile, path: &Path, debug: &Path) -> Option<PathBuf> {
    let id = build_id(file);
    let by_id = id.and_then(|id| of_build_id(id, debug)).filter(|candidate| has_build_id(candidate, id));
    let link = file.gnu_debuglink().ok().flatten();
    let by_link = || {
        let (name, crc) = link?;
        let mut candidates = linked(name, path, debug)?.into_iter();
        candidates.find(|candidate| has_build_id(candidate, id) || crc_of(candidate) == Some(crc))
    };
    by_id.or_else(by_link)
}

/// The file to which dwz has moved parts of another one's DWARF.
pub(super) struct SharedDwarf {
    /// As the other file has it: relative to its directory, or absolute.
    name: PathBuf,
    /// Its build id, or the checksum in its .debug_sup.
    id: Vec<u8>,
}

impl SharedDwarf {
    /// That of a file, if it has one.
    pub fn named_by(file: &ElfFile) -> Option<SharedDwarf> {
        let link = match file.gnu_debugaltlink() {
            Ok(Some((name, id))) => Some((name.to_vec(), id.to_vec())),
            Ok(None) => debug_sup(file.section_by_name(".debug_sup")?.data().ok()?, 0),
            Err(_) => None,
        };
        // (a link that cannot be read is one to no file)
        let (name, id) = link.unwrap_or_default();
        Some(SharedDwarf { name: PathBuf::from(OsStr::from_bytes(&name)), id })
    }

    /// Where it is: in the place that the file at `path` names, or where gdb looks.
    pub fn find(&self, path: &Path, debug: &Path) -> Option<PathBuf> {
        let directory = path.canonicalize().ok()?.parent()?.to_path_buf();
        let by_name = [directory.join(&self.name), debug.join(".dwz").join(self.name.file_name()?)];
        let mut candidates = by_name.into_iter().chain(of_build_id(&self.id, debug));
        candidates.find(|candidate| self.is_at(candidate))
    }

    fn is_at(&self, path: &Path) -> bool {
        let Some(data) = regular(path).map(ReadCache::new) else { return false };
        let Ok(file) = ElfFile::parse(&data) else { return false };
        let sup = file.section_by_name(".debug_sup").and_then(|section| section.data().ok());
        let checksum = sup.and_then(|section| debug_sup(section, 1)).map(|(_, checksum)| checksum);
        let ids = [build_id(&file), checksum.as_deref()];
        self.id.len() > 1 && ids.contains(&Some(&self.id))
    }
}

/// Name and checksum in a section .debug_sup (DWARF 5), if it is that of a shared file (1), or of one that refers to such a file (0).
fn debug_sup(section: &[u8], is_supplementary: u8) -> Option<(Vec<u8>, Vec<u8>)> {
    let (_, rest) = section.split_at_checked(2)?; // the version
    let rest = rest.strip_prefix(&[is_supplementary])?;
    let (name, rest) = rest.split_at_checked(rest.iter().position(|byte| *byte == 0)?)?;
    // (dwz's checksums are SHA-1: their length is one byte)
    let (length, checksum) = rest[1..].split_first()?;
    (usize::from(*length) == checksum.len()).then(|| (name.to_vec(), checksum.to_vec()))
}

fn of_build_id(id: &[u8], debug: &Path) -> Option<PathBuf> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (first, rest) = id.split_at_checked(1)?;
    Some(debug.join(format!(".build-id/{}/{}.debug", hex(first), hex(rest))))
}

/// Where a debug file of this name can be, in gdb's order. A name with directories in it is none.
fn linked(name: &[u8], path: &Path, debug: &Path) -> Option<[PathBuf; 3]> {
    let name = Path::new(OsStr::from_bytes(name));
    let directory = path.parent().filter(|_| name.file_name() == Some(name.as_os_str()))?;
    let below_debug = debug.join(directory.strip_prefix("/").ok()?);
    Some([directory.join(name), directory.join(".debug").join(name), below_debug.join(name)])
}

fn has_build_id(path: &Path, id: Option<&[u8]>) -> bool {
    let Some(data) = regular(path).map(ReadCache::new) else { return false };
    ElfFile::parse(&data).is_ok_and(|file| id.is_some() && build_id(&file) == id)
}

/// The checksum that a .gnu_debuglink has of its file.
fn crc_of(path: &Path) -> Option<u32> {
    let (mut file, mut crc) = (regular(path)?, crc32fast::Hasher::new());
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part).ok()? {
            0 => return Some(crc.finalize()),
            n => crc.update(&part[..n]),
        }
    }
}
