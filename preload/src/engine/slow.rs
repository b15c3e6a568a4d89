//! All begins and ends that are not of the steady state.

use super::empty;
use super::frame::{DEEPEST, ExecutionStart, Frame};
use super::index::Cache;
use super::node::{RegionNode, look_up};
use super::record;
use super::split;
use super::thread::{ThreadState, current};
use super::turns;
use crate::at_work::Alone;
use crate::process::MeasuredProcess;
use std::ffi::{c_char, c_int};
use std::ptr::{addr_of_mut, null_mut};
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::compiler_fence;
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
    // SAFETY: a C string; frames are the calling thread's.
    unsafe {
        let again = in_itself(name);
        if !again.is_null() && (*again).state != ExecutionStart::ReadAgain {
            (*again).again += 1;
            let record = (*(*again).node).record;
            if !record.is_null() {
                (*record).nested += 1;
            }
            return 0;
        }
        in_thread(|thread| {
            split::before(thread, name);
            begin_in(thread, name, DIRECT)
        })
    }
}

/// It ends. Returns as `regions::end`; 0 in a thread that is not measured.
///
/// # Safety
/// A C string, or NULL.
#[cold]
#[inline(never)]
pub unsafe extern "C" fn end(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: a C string; frames are the calling thread's.
    unsafe {
        let again = in_itself(name);
        if !again.is_null() && (*again).again > 0 {
            (*again).again -= 1;
            return 0;
        }
        in_thread(|thread| {
            let code = end_in(thread, name);
            turns::end_if_due(thread);
            code
        })
    }
}
}

/// As `end`, but the execution does not count: the region was left by longjmp.
///
/// # Safety
/// A C string.
pub unsafe fn abandon(name: *const c_char) {
    // SAFETY: a C string; frames are the calling thread's.
    unsafe {
        in_thread(|thread| {
            if let Some(at) = find(thread, name) {
                leave(thread, at);
                let frame = addr_of_mut!((*thread).frames[at]);
                if (*frame).again > 0 { left(frame, 1) } else { leave(thread, at - 1) }
            }
            0
        });
    }
}

/// The open execution of this region is a piece of one that was split.
///
/// # Safety
/// A C string.
pub unsafe fn count_piece(name: *const c_char) {
    // SAFETY: a C string; frames and records are the calling thread's.
    unsafe {
        in_thread(|thread| {
            if let Some(at) = find(thread, name) {
                let record = (*(*thread).frames[at].node).record;
                if !record.is_null() {
                    (*record).split += 1;
                }
            }
            0
        });
    }
}

/// The innermost frame, if it is of a region of this name; else NULL.
#[inline(always)]
unsafe fn in_itself(name: *const c_char) -> *mut Frame {
    let thread = current();
    // SAFETY: the calling thread's state; a C string.
    unsafe {
        if !ThreadState::is_idle(thread) || ThreadState::depth(thread) == 0 {
            return null_mut();
        }
        let frame = ThreadState::innermost(thread);
        if (*(*frame).node).name.is(name) { frame } else { null_mut() }
    }
}

/// Does this work on the thread's own state, if it has one. No signal handler runs meanwhile: one that left by longjmp would
/// leave the handle busy for good, and one that had regions would find the state as no call leaves it. Nor is the thread
/// cancelled.
unsafe fn in_thread(work: impl FnOnce(*mut ThreadState) -> c_int) -> c_int {
    if ThreadState::is_for_good_without(current()) || MeasuredProcess::get().is_none() {
        return 0;
    }
    let _alone = Alone::new();
    let thread = current();
    // SAFETY: the calling thread's state.
    unsafe {
        if !ThreadState::has_begun(thread) {
            return 0;
        }
        let code = work(thread);
        (*thread).idle = usize::from((*thread).over == 0);
        code
    }
}

/// # Safety
/// The calling thread's state, in which no other call is at work; a C string.
#[inline(always)]
pub(super) unsafe fn begin_in(thread: *mut ThreadState, name: *const c_char, direct: bool) -> c_int {
    // SAFETY: the calling thread's state, in which no other call is at work; a C string.
    unsafe {
        let depth = ThreadState::depth(thread);
        let within = (*thread).frames[depth].node;
        if depth == DEEPEST {
            (*thread).over += 1;
            return -libc::ENOSPC;
        }
        let place = Cache::of(thread, within, name);
        let is_it = |node: *mut RegionNode| (*node).parent == within && (*node).name.is(name);
        let [mut node, second] = [*place, *Cache::neighbour(place)];
        if !is_it(node) {
            // (an execution of nothing, which has the place of the region's, is none of the region: `empty`)
            node = if second == (*thread).empty && is_it(second) {
                second
            } else {
                match look_up(thread, within, name) {
                    Ok(node) => node,
                    Err(code) => return code,
                }
            };
        }
        empty::before(thread, node, name, direct);
        let frame = addr_of_mut!((*thread).frames[depth + 1]);
        frame.write(Frame::new(node, ExecutionStart::Unread));
        compiler_fence(Release); // what is below `depth` is there, for a signal handler, too
        ThreadState::set_depth(thread, depth + 1);
        if (*node).record.is_null() {
            return -libc::ENOSPC;
        }
        match (*(*thread).td).begin(&mut (*node).sum, &*(*node).counted[0]) {
            Ok(()) => {
                (*frame).state = ExecutionStart::Read;
                0
            }
            Err(error) => missed(thread, node, &error),
        }
    }
}

#[inline(always)]
unsafe fn end_in(thread: *mut ThreadState, name: *const c_char) -> c_int {
    // SAFETY: as `begin_in`.
    unsafe {
        if (*thread).over > 0 {
            (*thread).over -= 1;
            return 0;
        }
        if ThreadState::depth(thread) == 0 || !(*(*ThreadState::innermost(thread)).node).name.is(name) {
            return match find(thread, name) {
                Some(at) => split::end_around(thread, at),
                None => unbalanced(thread, name),
            };
        }
        end_innermost(thread)
    }
}

/// The innermost region ends.
///
/// # Safety
/// As `begin_in`; there is one.
#[inline(always)]
pub(super) unsafe fn end_innermost(thread: *mut ThreadState) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        let frame = ThreadState::innermost(thread);
        if (*frame).again > 0 {
            (*frame).again -= 1; // of one in which others were left open
            return 0;
        }
        ThreadState::set_depth(thread, ThreadState::depth(thread) - 1);
        if !(*frame).state.is_read() {
            return 0;
        }
        end_execution(thread, (*frame).node)
    }
}

/// An execution that began with a reading ends.
///
/// # Safety
/// As `begin_in`; the node of such an execution, which has a record.
#[inline(always)]
pub(super) unsafe fn end_execution(thread: *mut ThreadState, node: *mut RegionNode) -> c_int {
    // SAFETY: as `begin_in`; such an execution has a record.
    unsafe {
        record::complete(node);
        let slots_only = (*node).sum.is_counting();
        match (*(*thread).td).end(&mut (*node).sum, &*(*node).counted[0]) {
            Ok(seen) if slots_only => {
                record::store_totals(node);
                record::saw(thread, seen);
                turns::saw(thread, seen);
                0
            }
            Ok(seen) => {
                turns::saw(thread, seen);
                record::store(node);
                record::publish(thread, &(*node).sum.last);
                0
            }
            Err(error) => missed(thread, node, &error),
        }
    }
}

/// An execution could not be read.
#[cold]
unsafe fn missed(thread: *mut ThreadState, node: *mut RegionNode, error: &topdown::Error) -> c_int {
    // SAFETY: as `end_execution`.
    unsafe {
        // (handles are taken away from threads that run when the process ends)
        if !(*(*thread).tables).is_closed() {
            (*(*node).record).missed += 1;
        }
    }
    error.code()
}

/// The innermost open frame of this name.
#[cold]
unsafe fn find(thread: *mut ThreadState, name: *const c_char) -> Option<usize> {
    // SAFETY: frames up to the depth are filled in.
    unsafe { (1..=ThreadState::depth(thread)).rev().find(|at| (*(*thread).frames[*at].node).name.is(name)) }
}

/// Leaves all regions deeper than this, which do not count.
///
/// # Safety
/// The calling thread's state.
#[cold]
pub unsafe fn leave(thread: *mut ThreadState, depth: usize) {
    // SAFETY: frames up to the depth are filled in; one that began with a reading has a record.
    unsafe {
        while ThreadState::depth(thread) > depth {
            let frame = ThreadState::innermost(thread);
            left(frame, (*frame).again);
            if (*frame).state.is_to_end() {
                (*(*(*frame).node).record).unended += 1;
            }
            ThreadState::set_depth(thread, ThreadState::depth(thread) - 1);
        }
    }
}

/// So many executions in themselves of a frame's region will not end.
unsafe fn left(frame: *mut Frame, times: u32) {
    // SAFETY: a frame of the calling thread's, which is filled in.
    unsafe {
        (*frame).again -= times;
        let record = (*(*frame).node).record;
        if !record.is_null() {
            (*record).nested = (*record).nested.saturating_sub(u64::from(times)); // some were of the parent
            (*record).unended += u64::from(times);
        }
    }
}

/// A region ends that has not begun.
#[cold]
unsafe fn unbalanced(thread: *mut ThreadState, name: *const c_char) -> c_int {
    // SAFETY: as `begin_in`.
    unsafe {
        let within = (*ThreadState::innermost(thread)).node;
        if let Ok(node) = look_up(thread, within, name) {
            if !(*node).record.is_null() {
                (*(*node).record).unbalanced += 1;
            }
        }
    }
    -libc::EINVAL
}
