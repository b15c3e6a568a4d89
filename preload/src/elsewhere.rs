//! A program that is executed where the library is not (chroot(8), bwrap(1)): its loader would say so among the program's errors, so
//! LD_PRELOAD does not name the library there.

use crate::process::MeasuredProcess;
use crate::{private, report};
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library's file; NULL: not known.
static LIBRARY: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// To be called before main.
pub fn prepare() {
    let library = report::library().and_then(|path| CString::new(path.into_os_string().into_vec()).ok());
    LIBRARY.store(library.map_or(null_mut(), CString::into_raw), Ordering::Relaxed);
}

/// This process is about to execute a program, with its environment (or one of its own making, which is the program's affair).
pub fn leave_out() {
    let library = LIBRARY.load(Ordering::Relaxed);
    if library.is_null() {
        return;
    }
    // SAFETY: a C string that stays; errno is this thread's own.
    let (library, errno) = unsafe { (CStr::from_ptr(library), libc::__errno_location()) };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    // SAFETY: a C string.
    let is_there = unsafe { libc::access(library.as_ptr(), libc::R_OK) == 0 };
    // (a child of vfork has its parent's environment)
    let is_own = |process: &MeasuredProcess| process.is_here() || process.tables.is_unmapped();
    if !is_there && MeasuredProcess::get().is_none_or(is_own) {
        // SAFETY: who executes a program does not change its environment meanwhile.
        unsafe { private::shorten(b"LD_PRELOAD=", |list| without(list, library.to_bytes())) };
    }
    // SAFETY: as above.
    unsafe { *errno = kept };
}

/// No system call is made any more: a filter is about to be there.
pub fn leave_out_for_good() {
    leave_out();
    LIBRARY.store(null_mut(), Ordering::Relaxed);
}

/// Leaves out of a list of libraries those of this one's name; the length of the rest.
fn without(list: &mut [u8], library: &[u8]) -> usize {
    fn name(path: &[u8]) -> &[u8] {
        path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }
    let (mut left, mut from) = (0, 0);
    while from < list.len() {
        let is_end = |byte: &u8| matches!(byte, b':' | b' ');
        let end = list[from..].iter().position(is_end).map_or(list.len(), |length| from + length);
        if name(&list[from..end]) != name(library) {
            let next = (end + 1).min(list.len()); // with what follows it
            list.copy_within(from..next, left);
            left += next - from;
        }
        from = end + 1;
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_libraries_stay() {
        let rest = |list: &str| {
            let mut bytes = list.as_bytes().to_vec();
            let left = without(&mut bytes, b"/a/l.so");
            String::from_utf8(bytes[..left].to_vec()).unwrap()
        };
        assert_eq!(rest("/usr/$LIB/../a/l.so:x.so /y/z.so"), "x.so /y/z.so");
        assert_eq!(rest("l.so"), "");
        assert_eq!(rest("x:/l.so"), "x:"); // (ld.so passes over what is empty)
        assert_eq!(rest("/a/l.so.1:/l.so/b"), "/a/l.so.1:/l.so/b");
    }
}
