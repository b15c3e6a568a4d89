//! What is in a directory, without the C library's opendir, which calls malloc.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `struct dirent64` of getdents64(2): where an entry's length is, and its name.
const LENGTH: usize = 16;
const NAME: usize = 19;

/// The names in a directory.
pub fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC).open(directory)?;
    let mut names = Vec::new();
    let mut buffer = vec![0_u8; 1 << 14];
    loop {
        let filled = read(&file, &mut buffer)?;
        if filled == 0 {
            return Ok(names);
        }
        let mut entries = &buffer[..filled];
        while entries.len() > NAME {
            let length = usize::from(u16::from_ne_bytes([entries[LENGTH], entries[LENGTH + 1]]));
            let (entry, rest) = entries.split_at(length.clamp(NAME, entries.len()));
            if let Ok(name) = CStr::from_bytes_until_nul(&entry[NAME..]) {
                names.push(OsStr::from_bytes(name.to_bytes()).to_owned());
            }
            entries = rest;
        }
    }
}

fn read(directory: &File, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: a live descriptor, and a buffer of that length.
    let got = unsafe {
        libc::syscall(libc::SYS_getdents64, directory.as_raw_fd(), buffer.as_mut_ptr(), buffer.len())
    };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_the_standard_library_finds() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = names(&own).unwrap();
        found.retain(|name| name != "." && name != "..");
        found.sort();
        let mut wanted: Vec<OsString> =
            std::fs::read_dir(own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        wanted.sort();
        assert_eq!(found, wanted);
        assert!(names(Path::new("/nowhere")).is_err());
    }
}
