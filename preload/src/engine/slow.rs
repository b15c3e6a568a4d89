//! All begins and ends that are not of the steady state.

use super::execution;
use super::frame::{ExecutionStart, Frame};
use super::rotate;
use super::split;
use super::thread::ThreadState;
use crate::at_work::WorkGuard;
use crate::process::MeasuredProcess;
use crate::record::OwnRecord;
use std::ffi::{CStr, c_char, c_int};
use topdown_seam::cancelled_later;

cancelled_later! {
/// A region begins, `DIRECT` if by td_region_begin. Returns as `regions::begin`; 0 in a thread that is not measured.
///
/// # Safety
/// A C string, or NULL.
#[cold]
#[inline(never)]
pub unsafe extern "C" fn begin<const DIRECT: bool>(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    if ThreadState::is_for_good_without() {
        return 0;
    }
    // SAFETY: a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if in_itself(name, begin_in_itself) {
        return 0;
    }
    in_thread(|thread| {
        split::before(thread, name);
        execution::begin(thread, name, DIRECT)
    })
}

/// A region ends. Returns as `regions::end`; 0 in a thread that is not measured.
///
/// # Safety
/// A C string, or NULL.
#[cold]
#[inline(never)]
pub unsafe extern "C" fn end(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    if ThreadState::is_for_good_without() {
        return 0;
    }
    // SAFETY: a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if in_itself(name, end_in_itself) {
        return 0;
    }
    in_thread(|thread| {
        let code = end_in(thread, name);
        rotate::end_if_due(thread);
        code
    })
}
}

/// As `end`, but the execution does not count: the region was left by longjmp.
pub fn abandon(name: &CStr) {
    in_thread(|thread| {
        if let Some(at) = thread.open.find(name) {
            execution::leave(thread, at);
            let frame = thread.open.at(at);
            if frame.again == 0 {
                execution::leave(thread, at - 1);
            } else {
                thread.open.set(at, Frame { again: frame.again - 1, ..frame });
                if let Some(record) = frame.node.record() {
                    record.leave_nested(1);
                }
            }
        }
        0
    });
}

/// The open execution of this region is a piece of one that was split.
pub fn count_piece(name: &CStr) {
    in_thread(|thread| {
        let found = thread.open.find(name).and_then(|at| thread.open.at(at).node.record());
        if let Some(record) = found {
            record.add(OwnRecord::split, 1);
        }
        0
    });
}

/// Does this if the innermost region is called so; whether that was all there is to do.
#[inline(always)]
fn in_itself(name: &CStr, work: impl FnOnce(&ThreadState, Frame) -> bool) -> bool {
    let thread = ThreadState::idle().or_else(ThreadState::idle_by_clocks);
    let Some(thread) = thread else { return false };
    let frame = thread.open.innermost();
    thread.open.depth() > 0 && frame.node.is_called(name) && work(thread, frame)
}

fn begin_in_itself(thread: &ThreadState, frame: Frame) -> bool {
    if frame.state == ExecutionStart::ReadAgain {
        return false;
    }
    thread.open.set_again(thread.open.depth(), frame.again + 1);
    if let Some(record) = frame.node.record() {
        record.add(OwnRecord::nested, 1);
    }
    true
}

fn end_in_itself(thread: &ThreadState, frame: Frame) -> bool {
    if frame.again == 0 {
        return false;
    }
    thread.open.set_again(thread.open.depth(), frame.again - 1);
    true
}

/// Does this work on the thread's own state, if it has one. No signal handler runs meanwhile: one that left by longjmp would
/// leave the handle busy for good, and one that had regions would find the state as no call leaves it. Nor is the thread
/// cancelled.
fn in_thread(work: impl FnOnce(&ThreadState) -> c_int) -> c_int {
    if MeasuredProcess::get().is_none() {
        return 0;
    }
    let _alone = WorkGuard::new();
    let Some(thread) = ThreadState::measured() else { return 0 };
    let code = work(thread);
    thread.settle();
    code
}

#[inline(always)]
fn end_in(thread: &ThreadState, name: &CStr) -> c_int {
    let open = &thread.open;
    if open.over.get() > 0 && open.end_over(name) {
        return 0;
    }
    if open.depth() == 0 || !open.innermost().node.is_called(name) {
        return match open.find(name) {
            Some(at) => split::end_around(thread, at),
            None => unbalanced(thread, name),
        };
    }
    execution::end_innermost(thread)
}

/// A region ends that has not begun.
#[cold]
fn unbalanced(thread: &ThreadState, name: &CStr) -> c_int {
    let within = thread.open.innermost().node;
    let node = thread.nodes.look_up(thread.groups.root(), within, name);
    if let Some(record) = node.ok().and_then(|node| node.record()) {
        record.add(OwnRecord::unbalanced, 1);
    }
    -libc::EINVAL
}
