//! Files and directories that no other user can have made or changed, and the directory in which processes that belong
//! together keep their tables.

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::fs::DirBuilder;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use topdown_table::run::is_own;

/// Tells what is executed where the tables are.
const VARIABLE: &str = "TOPDOWN_TABLES";

unsafe extern "C" {
    /// The C library's own name of `environ`, which a program may have another variable of.
    #[link_name = "__environ"]
    static mut environ: *mut *mut c_char;
}

/// The texts of the environment that the process was started with, as the kernel has laid them: one behind the other, from the end of the
/// last argument to the program's name. (/proc/self/environ shows the same.)
static STARTED_WITH: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The kernel takes no longer arguments and environments.
const LONGEST: usize = 6 << 20;

/// Remembers where they are.
///
/// # Safety
/// main's arguments.
pub unsafe fn remember_start(count: c_int, arguments: *const *const c_char) {
    // SAFETY: the caller's word. What is between an argument that the kernel has laid and the program's name is on the stack.
    unsafe {
        let end = libc::getauxval(libc::AT_EXECFN) as usize;
        let last = usize::try_from(count).ok().and_then(|count| count.checked_sub(1));
        let Some(last) = last.filter(|_| !arguments.is_null()).map(|last| *arguments.add(last)) else {
            return;
        };
        if (1..LONGEST).contains(&end.wrapping_sub(last.addr())) {
            let start = last.addr() + libc::strnlen(last, end - last.addr()) + 1;
            STARTED_WITH[0].store(start.min(end), Relaxed);
            STARTED_WITH[1].store(end, Relaxed);
        }
    }
}

/// The value, if the text is of this variable.
///
/// # Safety
/// A C string that stays.
unsafe fn value(text: *const c_char, name: &str) -> Option<&'static CStr> {
    // SAFETY: the caller's word.
    unsafe {
        let rest = CStr::from_ptr(text).to_bytes().strip_prefix(name.as_bytes());
        rest.and_then(|rest| rest.strip_prefix(b"=")).map(|_| CStr::from_ptr(text.add(name.len() + 1)))
    }
}

/// A variable of the environment. (getenv(3) may be the program's, and know other variables, or none: bash has one.) One that is not there
/// any more, since a library's constructor has emptied it or put another in its place, is as it was when the process was started.
pub fn variable(name: &str) -> Option<&'static CStr> {
    // SAFETY: before main, where settings are read, nobody changes the environment, which ends in NULL; its texts stay.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if let Some(value) = value(*at, name) {
                return Some(value);
            }
            at = at.add(1);
        }
        let [mut text, end] = STARTED_WITH.each_ref().map(|one| one.load(Relaxed));
        while text < end {
            let at = ptr::with_exposed_provenance(text);
            if let Some(value) = value(at, name) {
                return Some(value);
            }
            text += CStr::from_ptr(at).count_bytes() + 1;
        }
    }
    None
}

/// The variable as a text; empty: it is not set.
pub fn setting(name: &str) -> Cow<'static, str> {
    variable(name).map_or(Cow::Borrowed(""), CStr::to_string_lossy)
}

/// A variable that names a path.
fn path(name: &str) -> Option<PathBuf> {
    variable(name).map(|value| PathBuf::from(OsStr::from_bytes(value.to_bytes())))
}

/// Random bytes.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    // (as a machine starts there may be none that are good enough for keys, which these are not)
    for flags in [libc::GRND_NONBLOCK, libc::GRND_INSECURE] {
        // SAFETY: a buffer of that length.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, flags) };
        if got == N as isize {
            return Ok(bytes);
        }
    }
    Err(Error::last_os_error())
}

/// Whether this is a directory of this user's, which nobody else can look into; no link to one.
fn is_private(path: &Path) -> bool {
    path.is_absolute()
        && std::fs::symlink_metadata(path).is_ok_and(|about| about.is_dir() && is_own(&about, 0o077))
}

/// The directory of the process that this one descends from; else a new one, in XDG_RUNTIME_DIR if that is private, or
/// in TMPDIR or /tmp. The error names the place.
pub fn directory() -> Result<PathBuf> {
    let named = |name| path(name).filter(|path| is_private(path));
    if let Some(known) = named(VARIABLE) {
        return Ok(known);
    }
    let base = named("XDG_RUNTIME_DIR").or_else(|| path("TMPDIR")).unwrap_or_else(|| "/tmp".into());
    let base = std::path::absolute(&base).unwrap_or(base);
    let failed = |error: Error| {
        Error::new(error.kind(), format!("no directory for tables in {}: {error}", base.display()))
    };
    for _ in 0..100 {
        let path = base.join(format!("topdown-{:016x}", u64::from_ne_bytes(random().map_err(failed)?)));
        match create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => {
                made.map_err(failed)?;
                announce(VARIABLE, path.as_os_str());
                return Ok(path);
            }
        }
    }
    Err(failed(ErrorKind::AlreadyExists.into()))
}

/// Makes such a directory.
pub fn create(path: &Path) -> Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Puts a variable into the environment, for programs that are executed. setenv(3) would call the program's malloc, which may
/// not be ready.
pub fn announce(name: &str, value: &OsStr) {
    let mut variable = OsString::from(name);
    variable.push("=");
    let prefix = variable.as_bytes().len();
    variable.push(value);
    let Ok(variable) = CString::new(variable.into_vec()) else { return };
    // SAFETY: before main nobody else is at the environment, which ends in NULL; what replaces it stays for good.
    unsafe {
        let mut all = Vec::new();
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            // (one that does not hold here)
            if CStr::from_ptr(*at).to_bytes().get(..prefix) != Some(&variable.as_bytes()[..prefix]) {
                all.push(*at);
            }
            at = at.add(1);
        }
        all.extend([variable.into_raw(), null_mut()]);
        environ = all.leak().as_mut_ptr();
    }
}

/// Shortens what a variable of the environment says, in place: programs (perl) free texts of their own that are there. `to` returns how
/// much of it is left, at its beginning.
///
/// # Safety
/// Nobody is at the environment meanwhile.
pub unsafe fn shorten(name_and_sign: &[u8], to: impl Fn(&mut [u8]) -> usize) {
    // SAFETY: the caller's word; it ends in NULL, and is what the kernel or the program has written.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            let length = CStr::from_ptr(*at).count_bytes();
            let text = std::slice::from_raw_parts_mut((*at).cast::<u8>(), length);
            if let Some(value) = text.strip_prefix(name_and_sign).map(<[u8]>::len) {
                let value = &mut text[length - value..];
                let left = to(value);
                if let Some(end) = value.get_mut(left) {
                    *end = 0;
                }
            }
            at = at.add(1);
        }
    }
}

/// The size of the environment: its texts and the pointers to them.
pub fn environment_size() -> usize {
    // SAFETY: before main nobody else is at the environment, which ends in NULL.
    unsafe {
        let (mut at, mut size) = (environ, 0);
        while !at.is_null() && !(*at).is_null() {
            size += size_of::<*mut c_char>() + CStr::from_ptr(*at).count_bytes() + 1;
            at = at.add(1);
        }
        size
    }
}

/// A variable of the environment that names a path; empty ones are none.
pub fn path_in(name: &str) -> Result<Option<PathBuf>> {
    let path = path(name).filter(|path| !path.as_os_str().is_empty());
    if path.as_ref().is_some_and(|path| path.as_os_str().len() >= libc::PATH_MAX as usize) {
        return Err(Error::other(format!("{name} is longer than a path can be")));
    }
    Ok(path)
}
