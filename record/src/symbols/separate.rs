//! Separate debug files: where packages and build systems put what was stripped from a program.
#![forbid(unsafe_code)]

use super::elf::{ElfFile, regular};
use object::{Object, ReadCache};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The debug file of a program that is at this path: that of its build id, or what its .gnu_debuglink names.
pub(super) fn of(file: &ElfFile, path: &Path, debug: &Path) -> Option<ReadCache<File>> {
    let id = build_id(file);
    let by_id = id.and_then(|id| of_build_id(id, debug)).filter(|candidate| has_build_id(candidate, id));
    let link = file.gnu_debuglink().ok().flatten();
    let by_link = || {
        let (name, crc) = link?;
        let mut candidates = linked(name, path, debug)?.into_iter();
        candidates.find(|candidate| has_build_id(candidate, id) || crc_of(candidate) == Some(crc))
    };
    regular(&by_id.or_else(by_link)?).map(ReadCache::new)
}

fn build_id<'data>(file: &ElfFile<'data>) -> Option<&'data [u8]> {
    file.build_id().ok().flatten().filter(|id| id.len() > 1)
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
