//! ELF files, as far as they are read at all.
#![forbid(unsafe_code)]

use object::{Object, ReadCache};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A file of which no more is read than is asked for: debug information may be large.
pub(crate) type ElfFile<'data> = object::File<'data, &'data ReadCache<File>>;

/// A file was not opened, since no descriptor was left.
static LACKED_DESCRIPTORS: AtomicBool = AtomicBool::new(false);

pub(crate) fn lacked_descriptors() -> bool {
    LACKED_DESCRIPTORS.load(Relaxed)
}

/// Opens a regular file: others could block, or never end.
pub(crate) fn regular(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    if matches!(&file, Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))) {
        LACKED_DESCRIPTORS.store(true, Relaxed);
    }
    let file = file.ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// What the linker has computed of a file's contents. (One byte is none.)
pub(crate) fn build_id<'data>(file: &ElfFile<'data>) -> Option<&'data [u8]> {
    file.build_id().ok().flatten().filter(|id| id.len() > 1)
}
