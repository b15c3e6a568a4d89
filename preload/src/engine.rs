//! Regions begin and end.
#![allow(dead_code)] // until hooks use it

use std::ffi::{CStr, c_char, c_int};

/// A region begins in this thread. Returns 0, or as td_read; -ENAMETOOLONG.
///
/// # Safety
/// `name` is a C string.
pub unsafe fn begin(name: *const c_char) -> c_int {
    // SAFETY: the caller's word.
    eprintln!("begin {}", unsafe { CStr::from_ptr(name) }.to_string_lossy());
    0
}

/// The innermost region of this name ends; those within it that did not end are counted as unended. Returns 0, or as
/// td_read; -EINVAL: none had begun (which is counted).
///
/// # Safety
/// `name` is a C string.
pub unsafe fn end(name: *const c_char) -> c_int {
    // SAFETY: the caller's word.
    eprintln!("end {}", unsafe { CStr::from_ptr(name) }.to_string_lossy());
    0
}

/// As `end`, but what was executed does not count: the region was left by longjmp, or its thread ends.
///
/// # Safety
/// `name` is a C string.
pub unsafe fn abandon(name: *const c_char) {
    // SAFETY: the caller's word.
    eprintln!("abandon {}", unsafe { CStr::from_ptr(name) }.to_string_lossy());
}

/// Whether anything is measured in this process.
pub fn active() -> bool {
    true
}

#[unsafe(no_mangle)]
extern "C" fn td_region_begin(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: as its caller says.
    unsafe { begin(name) }
}

#[unsafe(no_mangle)]
extern "C" fn td_region_end(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: as its caller says.
    unsafe { end(name) }
}
