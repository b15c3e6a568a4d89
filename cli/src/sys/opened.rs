//! Whether anybody opens a file.

use std::ffi::CString;
use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Watches a file from now on.
pub struct OpenedWatch(File);

impl OpenedWatch {
    /// # Errors
    /// The kernel's.
    pub fn of(path: &Path) -> Result<OpenedWatch> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: a C string, and a descriptor that was just made.
        unsafe {
            let watch = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
            if watch < 0 {
                return Err(Error::last_os_error());
            }
            let watch = File::from_raw_fd(watch);
            if libc::inotify_add_watch(watch.as_raw_fd(), path.as_ptr(), libc::IN_OPEN) < 0 {
                return Err(Error::last_os_error());
            }
            Ok(OpenedWatch(watch))
        }
    }

    /// Whether it was opened since.
    pub fn was_opened(&self) -> bool {
        let mut events = [0; 4096];
        (&self.0).read(&mut events).is_ok_and(|read| read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_opens_a_file_is_noticed() {
        let path = std::env::temp_dir().join(format!("topdown-opened-{}", std::process::id()));
        File::create(&path).unwrap();
        let watch = OpenedWatch::of(&path).unwrap();
        assert!(!watch.was_opened());
        File::open(&path).unwrap();
        assert!(watch.was_opened());
        std::fs::remove_file(&path).unwrap();
    }
}
