//! Sums over many executions of a region.

use super::border::{at, at_mut, guard, handle, put, td};
use super::decode::Room;
use crate::handle::{self, Handle};
use crate::read::HoldsSample;
use crate::sample::{Increments, L1, L2, Sample};
use crate::sum::Sum;
use crate::sys::cancelled_later;
use crate::tree::Node;
use std::ffi::c_int;
use std::hint::black_box;
use std::mem::offset_of;
use std::ptr::NonNull;

// SAFETY: all fields of `struct td_sum` are numbers, and this one is a sample.
unsafe impl HoldsSample for Sum {
    const AT: usize = offset_of!(Sum, from);
}

/// Adds one execution of a region, from a sample taken before it and one taken after it. Any thread, one at a time.
/// Each is measured, so `error` of the result always holds: at most the sum of the bounds of single executions, and far
/// less if they follow each other closely. Returns as td_decode_l1; nothing is added if it fails. An execution without
/// a slot is counted, and changes no share.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_add(sum: *mut Sum, from: *const Sample, to: *const Sample) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises. The samples are copied first: they may lie in the sum.
    guard(|| unsafe {
        let (from, to) = (*at(from, "from")?, *at(to, "to")?);
        at_mut(sum, "sum")?.add(&from, &to).map(|()| 0)
    })
}

/// Begins an execution of the sum's region, which may be short and run often (docs/cost.md has what it costs). By
/// registers, a random choice of executions is measured, as many as td_options.max_overhead_ppm allows, and of all
/// others the slots alone are counted: the result is right if what an execution does has nothing to do with its being
/// chosen. By general counters each execution is measured.
///
/// Each thread has sums of its own (a signal handler that executes the sum that it interrupts: docs/robustness.md).
/// Executions of different sums may nest; a second begin of one starts it anew. Threads and returns as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `sum` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_sum_begin(td: *mut td, sum: *mut Sum) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    unsafe {
        let done = plausible(td, sum).is_some_and(|(td, sum)| handle::sum_begin_steadily(td, sum));
        if done { 0 } else { begin_slowly(td, sum) }
    }
}

/// Handle and sum, if they can be; what is wrong with them otherwise is for the slow path to say.
///
/// # Safety
/// As td_sum_begin.
#[inline(always)]
unsafe fn plausible<'a>(td: *mut td, sum: *mut Sum) -> Option<(Handle, &'a mut Sum)> {
    if sum.is_null() || !sum.is_aligned() {
        return None;
    }
    // SAFETY: the caller's word.
    unsafe { Some((Handle::from_raw(NonNull::new(td)?)?, &mut *sum)) }
}

cancelled_later! {
/// # Safety
/// As td_sum_begin.
#[inline(never)]
unsafe extern "C" fn begin_slowly(td: *mut td, sum: *mut Sum) -> c_int {
    // SAFETY: the caller's word.
    guard(|| unsafe {
        let (of, into) = (handle(td)?, at_mut(sum, "sum")?);
        let wait = into.wait_before();
        if let Some(empty) = handle::sum_empty(of, into) {
            // (not inlined: the very code that programs call)
            let [begin, end] = black_box::<[unsafe extern "C-unwind" fn(_, _) -> _; 2]>([td_sum_begin, td_sum_end]);
            let mut pair = [empty; 2];
            let ended = pair.each_mut().map(|one| begin(td, &raw mut *one) == 0 && end(td, one) == 0);
            if let ([true, true], [Some(first), Some(second)]) = (ended, pair.map(|one| one.as_empty())) {
                into.add_empty(&[first, second]);
            }
        }
        let begun = handle::sum_begin(of, into, Increments::NONE).map(|()| 0);
        if begun.is_err() {
            into.wait = wait; // nothing has happened
        }
        begun
    })
}

/// # Safety
/// As td_sum_begin.
#[inline(never)]
unsafe extern "C" fn end_slowly(td: *mut td, sum: *mut Sum) -> c_int {
    // SAFETY: the caller's word.
    guard(|| unsafe { handle::sum_end(handle(td)?, at_mut(sum, "sum")?, Increments::NONE).map(|_| 0) })
}
}

/// Ends the execution that td_sum_begin began with the same handle. Threads and returns as td_read; -EINVAL also if
/// none had begun (td_sum.unbalanced counts these) or with another handle, TD_ESTALE after a td_reset in between.
///
/// # Safety
/// As td_sum_begin.
///
/// cbindgen:postfix=TD_NO_PLT
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_sum_end(td: *mut td, sum: *mut Sum) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    unsafe {
        let done = plausible(td, sum).is_some_and(|(td, sum)| handle::sum_end_steadily(td, sum));
        if done { 0 } else { end_slowly(td, sum) }
    }
}

/// Level 1 shares of all executions in a sum, and `slots` of all of them. If each was measured, `error` bounds the
/// error of the shares; else (TD_SAMPLE_SPARSE) it has four standard errors of the random sample, too. Any thread.
/// Returns 0; -EINVAL: an argument is NULL, or `sum` is not a sum; TD_ENOTCOUNTING: no execution was measured yet.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_l1(sum: *const Sum, out: *mut L1) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || at(sum, "sum")?.l1()) })
}

/// Level 2 shares of all executions in a sum. Any thread. Returns as td_sum_l1, and -ENOTSUP if level 2 was not counted.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_l2(sum: *const Sum, out: *mut L2) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || at(sum, "sum")?.l2()) })
}

/// Nodes over all executions in a sum, as td_decode_tree, with bounds as sure as td_sum_l1's. Any thread. Returns
/// as td_sum_l1.
///
/// # Safety
/// The pointers are NULL or point to what their types say, `nodes` to `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_decode_tree(
    sum: *const Sum,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        let room = Room::new(nodes, capacity, count)?;
        at(sum, "sum")?.nodes(1, |nodes| room.put(nodes))
    })
}
