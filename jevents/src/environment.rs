//! What surrounds the process and says where event files are.

use std::env::var_os;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

/// Variables; one that is empty is as one that is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// EVENTMAP: a file, or the CPU to take events of.
    pub event_map: Option<OsString>,
    /// JEVENTS_CACHEDIR.
    pub jevents_cache: Option<PathBuf>,
    /// XDG_CACHE_HOME.
    pub xdg_cache: Option<PathBuf>,
    /// The home directory of SUDO_USER.
    pub sudo_home: Option<PathBuf>,
    /// HOME.
    pub home: Option<PathBuf>,
    /// CACHEDIR: where the downloader was told to put files.
    pub downloads: Option<PathBuf>,
}

impl Environment {
    /// That of this process.
    pub fn real() -> Self {
        let set = |name: &str| var_os(name).filter(|value| !value.is_empty());
        Environment {
            event_map: set("EVENTMAP"),
            jevents_cache: set("JEVENTS_CACHEDIR").map(Into::into),
            xdg_cache: set("XDG_CACHE_HOME").map(Into::into),
            sudo_home: set("SUDO_USER").and_then(|user| home_of(&user)),
            home: set("HOME").map(Into::into),
            downloads: set("CACHEDIR").map(Into::into),
        }
    }
}

/// A user's home directory, None if there is no such user.
fn home_of(user: &OsStr) -> Option<PathBuf> {
    let user = CString::new(user.as_bytes()).ok()?;
    let mut texts = vec![0; 4096];
    loop {
        let mut found = ptr::null_mut();
        // SAFETY: all zeros are a passwd, of no user.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        // SAFETY: the name is a C string; the rest is ours to write, as long as is said.
        let error = unsafe {
            libc::getpwnam_r(user.as_ptr(), &mut entry, texts.as_mut_ptr(), texts.len(), &mut found)
        };
        if error == libc::ERANGE && texts.len() < 1 << 20 {
            texts.resize(texts.len() * 2, 0);
        } else if found.is_null() || entry.pw_dir.is_null() {
            return None;
        } else {
            // SAFETY: a C string within `texts`.
            let home = unsafe { CStr::from_ptr(entry.pw_dir) }.to_bytes();
            return Some(OsString::from_vec(home.to_vec()).into());
        }
    }
}

/// Whether this is a file that this process may read. It is not opened: that may have effects (a pipe's writer wakes).
pub fn readable(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string.
    !path.is_dir() && unsafe { libc::access(name.as_ptr(), libc::R_OK) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_homes() {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        let root = passwd.lines().find(|line| line.starts_with("root:")).unwrap();
        assert_eq!(home_of(OsStr::new("root")), root.split(':').nth(5).map(Into::into));
        assert_eq!(home_of(OsStr::new("no such user")), None);
        assert_eq!(home_of(OsStr::from_bytes(b"a\0b")), None);
    }

    #[test]
    fn files_are_readable_and_directories_are_not() {
        assert!(readable(Path::new("/proc/self/status")));
        assert!(!readable(Path::new("/proc/self")));
        assert!(!readable(Path::new("/proc/no such file")));
    }
}
