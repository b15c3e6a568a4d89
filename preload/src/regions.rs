//! Regions begin and end, in the thread that calls. A thread that is not measured yet is from its first region on.

use crate::engine::steady::{self, Clocks, Counters};
use crate::engine::{ENDED, ThreadState, slow};
use crate::{at_work, threads};
use std::ffi::{CStr, c_char, c_int};
use topdown_seam::cancelled_later;

/// A region begins in this thread, `DIRECT` if by td_region_begin. Returns 0, or as td_read; -EINVAL, -ENAMETOOLONG, -ENOSPC: no name, or
/// too long a one, or no room: it is not counted.
///
/// # Safety
/// `name` is a C string, or NULL.
#[inline(always)]
pub unsafe fn begin<const DIRECT: bool>(name: *const c_char) -> c_int {
    // SAFETY: the caller's word; the state is this thread's.
    unsafe {
        match ThreadState::idle() {
            Some(thread) => steady::begin::<DIRECT, Counters>(thread, name),
            None => begin_by_clocks::<DIRECT>(name),
        }
    }
}

/// As `begin`, by another way than td_region_begin.
pub fn begin_named(name: &CStr) -> c_int {
    // SAFETY: a C string.
    unsafe { begin::<false>(name.as_ptr()) }
}

/// As `end`.
pub fn end_named(name: &CStr) -> c_int {
    // SAFETY: a C string.
    unsafe { end(name.as_ptr()) }
}

/// As `abandon`.
pub fn abandon_named(name: &CStr) {
    // SAFETY: a C string.
    unsafe { abandon(name.as_ptr()) };
}

/// A region goes on, as its next execution, after the one around it has ended.
pub fn begin_piece(name: &CStr) {
    if begin_named(name) == 0 {
        slow::count_piece(name);
    }
}

/// The innermost region of this name ends; those within it that did not end are counted as unended. Returns 0, or as
/// td_read; -EINVAL: none had begun (which is counted).
///
/// # Safety
/// `name` is a C string, or NULL.
#[inline(always)]
pub unsafe fn end(name: *const c_char) -> c_int {
    // SAFETY: the caller's word; the state is this thread's.
    unsafe {
        match ThreadState::idle() {
            Some(thread) => steady::end::<Counters>(thread, name),
            None => end_by_clocks(name),
        }
    }
}

/// As `begin`, in a thread that has no counters, or not yet.
#[inline(never)]
unsafe extern "C-unwind" fn begin_by_clocks<const DIRECT: bool>(name: *const c_char) -> c_int {
    // SAFETY: the caller's word; the state is this thread's.
    unsafe {
        match ThreadState::idle_by_clocks() {
            Some(thread) => steady::begin::<DIRECT, Clocks>(thread, name),
            None => first_begin::<DIRECT>(name),
        }
    }
}

/// As `begin_by_clocks`.
#[inline(never)]
unsafe extern "C-unwind" fn end_by_clocks(name: *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe {
        match ThreadState::idle_by_clocks() {
            Some(thread) => steady::end::<Clocks>(thread, name),
            None => first_end(name),
        }
    }
}

/// The thread is measured from now on.
fn measure() {
    at_work::is_the_programs();
    threads::measure();
}

cancelled_later! {
/// As `end`, but what was executed does not count: the region was left by longjmp.
///
/// # Safety
/// `name` is a C string.
pub unsafe extern "C" fn abandon(name: *const c_char) {
    measure();
    // SAFETY: the caller's word.
    slow::abandon(unsafe { CStr::from_ptr(name) });
}

/// The thread is not measured yet, or no more, or too deep in regions.
#[cold]
#[inline(never)]
unsafe extern "C" fn first_begin<const DIRECT: bool>(name: *const c_char) -> c_int {
    if ThreadState::is_current(ENDED) && !name.is_null() {
        // SAFETY: the caller's word.
        threads::miss(unsafe { CStr::from_ptr(name) });
    }
    measure();
    // SAFETY: the caller's word.
    unsafe { slow::begin::<DIRECT>(name) }
}

/// As `first_begin`.
#[cold]
#[inline(never)]
unsafe extern "C" fn first_end(name: *const c_char) -> c_int {
    measure();
    // SAFETY: the caller's word.
    unsafe { slow::end(name) }
}
}
