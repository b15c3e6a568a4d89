//! What include/topdown_inline.h needs. Programs are compiled with it, so from the first release on none of this changes: if
//! the reader has to look at something else, what it calls gets another name.

use super::border::{at, guard, handle, put, td};
use crate::handle;
use crate::read::Shared;
use crate::sample::{Mark, Sample};
use crate::sys::cancelled_later;
use std::ffi::c_int;
use std::mem::offset_of;

/// The thread pointer of the thread whose inline readings may read the registers; 2 less if they may read general counters; 0
/// if none may.
pub const TD_INLINE_READER: usize = 8;
/// How many general counters, besides the one of slots or cycles: 3 to 8; or beside the registers: none, 1 or 2.
pub const TD_INLINE_COUNTERS: usize = 48;
/// The address of that thread's `rseq_cs` field, by which it tells the kernel of a restartable sequence.
pub const TD_INLINE_RSEQ: usize = 16;
/// SLOTS above which a reading calls the library.
pub const TD_INLINE_LIMIT: usize = 24;
/// Likewise the general counter of slots or cycles.
pub const TD_INLINE_LEADER_LIMIT: usize = 472;
/// Sequence number and number of the window, in this order: what td_mark takes over.
pub const TD_INLINE_STAMP: usize = 104;
/// The counters' RDPMC numbers, that of slots or cycles first.
pub const TD_INLINE_NUMBERS: usize = 320;

const _: () = {
    assert!(TD_INLINE_READER == offset_of!(Shared, mark_reader));
    assert!(
        TD_INLINE_COUNTERS == offset_of!(Shared, count) && TD_INLINE_NUMBERS == offset_of!(Shared, numbers)
    );
    assert!(TD_INLINE_RSEQ == offset_of!(Shared, rseq));
    assert!(TD_INLINE_LIMIT == offset_of!(Shared, limit));
    assert!(TD_INLINE_LEADER_LIMIT == offset_of!(Shared, leader_limit));
    assert!(TD_INLINE_STAMP == offset_of!(Shared, start) + offset_of!(Sample, base.sequence));
    assert!(
        offset_of!(Mark, sequence) == 16 && offset_of!(Mark, window) == 20 && offset_of!(Mark, counter) == 24
    );
};

cancelled_later! {
/// # Safety
/// As `td_mark_read_slowly`.
unsafe extern "C" fn mark(td: *mut td, out: *mut Mark) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || handle::mark(handle(td)?)) })
}
}

/// What td_read_mark calls where it may not read registers or counters itself. It works with any handle.
///
/// Threads and returns as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `out` NULL or a mark to be filled in.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_mark_read_slowly(td: *mut td, out: *mut Mark) -> c_int {
    // SAFETY: the caller's word.
    unsafe { mark(td, out) }
}

/// Makes a sample of a mark that td_read_mark took of the same handle.
///
/// The sample decodes with all others of its period. Its times are those at which the library last read the clock
/// (TD_SAMPLE_COARSE_TIME).
///
/// Call it soon after the region: the handle remembers the state of the counters at its last 64 looks at it (one for
/// each context switch, reset of the registers, and reading that does not take the fast path), and marks from before
/// are stale. Threads as in td_read.
///
/// Returns 0, or:
///  -EINVAL         an argument is NULL, or not a mark
///  TD_ESTALE       the mark is too old, or of another handle
/// or as td_read.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_mark_sample(td: *mut td, mark: *const Mark, out: *mut Sample) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || handle::sample_of(handle(td)?, at(mark, "mark")?)) })
}
