//! ELF files, as far as they are read at all.
#![forbid(unsafe_code)]

use object::ReadCache;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file of which no more is read than is asked for: debug information may be large.
pub(crate) type ElfFile<'data> = object::File<'data, &'data ReadCache<File>>;

/// Opens a regular file: others could block, or never end.
pub(crate) fn regular(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}
