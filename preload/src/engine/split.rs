//! Regions of td_region_begin that overlap: one ends in which others are still open.
//!
//!     begin A, begin B, end A, end B       becomes       A ( B ), B
//!
//! Those end first, and begin again after it, so that each slot is in the regions that were open, and none is counted twice.
//! Whether such a region overlaps or its end was forgotten is known only when it ends, or begins once more: then the piece
//! that is open does not count.

use super::frame::{ExecutionStart, Frame};
use super::node::look_up;
use super::slow::{begin_in, end_execution, end_innermost, leave};
use super::thread::ThreadState;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

/// Pieces that may be open in a thread. If there are more, ends were forgotten, and none of the pieces counts.
const PIECES: usize = 16;

/// The region of frame `at` ends, in which others are open. Those that td_region_begin began go on after it; others (of hooked
/// functions, which a longjmp may have left) do not count.
///
/// # Safety
/// The calling thread's state, in a call of the slow path; a frame within its depth.
#[cold]
pub unsafe fn end_around(thread: *mut ThreadState, at: usize) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        let frame = &raw mut (*thread).frames[at];
        if !(*(*frame).node).direct {
            leave(thread, at);
            return end_innermost(thread);
        }
        if (*frame).again > 0 {
            (*frame).again -= 1; // it goes on, with all that is open in it
            return 0;
        }
        let direct = |frame: *const Frame| (*(*frame).node).direct;
        let code = take_out(thread, at, direct, ExecutionStart::ReadAgain, |thread| end_innermost(thread));
        (*thread).pieces = true;
        if pieces(thread).count() > PIECES {
            while let Some(innermost) = pieces(thread).next_back() {
                give_up(thread, innermost);
            }
        }
        code
    }
}

/// A region of this name is to begin: if a piece of it is open, its end was forgotten.
///
/// # Safety
/// As `end_around`; a C string.
pub unsafe fn before(thread: *mut ThreadState, name: *const c_char) {
    // SAFETY: the caller's word.
    unsafe {
        if (*thread).pieces {
            (*thread).pieces = pieces(thread).next().is_some();
            let of_name = |at: &usize| (*(*thread).frames[*at].node).name.is(name);
            if let Some(at) = pieces(thread).rev().find(of_name) {
                give_up(thread, at);
            }
        }
    }
}

/// The frames of pieces, the outermost first.
unsafe fn pieces(thread: *mut ThreadState) -> impl DoubleEndedIterator<Item = usize> {
    // SAFETY: frames up to the depth are filled in.
    unsafe {
        (1..=ThreadState::depth(thread))
            .filter(move |at| (*thread).frames[*at].state == ExecutionStart::ReadAgain)
    }
}

/// The piece does not count.
unsafe fn give_up(thread: *mut ThreadState, at: usize) {
    // SAFETY: as `end_around`.
    unsafe {
        take_out(
            thread,
            at,
            |_| true,
            ExecutionStart::Read,
            |thread| {
                leave(thread, at - 1);
                0
            },
        );
    }
}

/// Has all within frame `at` end, then that itself by `end`, and those that `go_on` begin again, as a `piece` or plain.
unsafe fn take_out(
    thread: *mut ThreadState,
    at: usize,
    go_on: impl Fn(*const Frame) -> bool,
    piece: ExecutionStart,
    end: impl FnOnce(*mut ThreadState) -> c_int,
) -> c_int {
    // SAFETY: as `end_around`. Frames above the depth stay as they are until others take their places, which those that begin again
    // do further down.
    unsafe {
        let depth = ThreadState::depth(thread);
        for k in (at + 1..=depth).rev() {
            let frame = &raw mut (*thread).frames[k];
            if go_on(frame) {
                ThreadState::set_depth(thread, k - 1);
                if (*frame).state.is_read() {
                    end_execution(thread, (*frame).node);
                }
            } else {
                leave(thread, k - 1);
                (*frame).node = null_mut();
            }
        }
        let ended = (*(*thread).frames[at].node).number;
        let code = end(thread);
        for k in at + 1..=depth {
            let frame = (*thread).frames[k];
            if !frame.node.is_null() {
                begin_again(thread, &frame, ended, piece);
            }
        }
        code
    }
}

/// An open region goes on in the place that is now the innermost, since the one of the record `ended` around it has ended.
unsafe fn begin_again(thread: *mut ThreadState, was: &Frame, ended: u32, piece: ExecutionStart) {
    // SAFETY: as `end_around`; the name stays as long as the node.
    unsafe {
        let name = (*was.node).name.text();
        let within = (*ThreadState::innermost(thread)).node;
        if !was.state.is_read() {
            let Ok(node) = look_up(thread, within, name) else { return };
            let depth = ThreadState::depth(thread) + 1;
            (*thread).frames[depth] = Frame { node, ..*was };
            ThreadState::set_depth(thread, depth);
            return;
        }
        let depth = ThreadState::depth(thread);
        begin_in(thread, name, (*was.node).direct);
        if ThreadState::depth(thread) > depth {
            let frame = ThreadState::innermost(thread);
            (*frame).again = was.again;
            if (*frame).state == ExecutionStart::Read {
                (*frame).state = if was.state == ExecutionStart::Read { piece } else { was.state };
            }
        }
        let record = (*was.node).record;
        (*record).split += 1;
        if piece == ExecutionStart::ReadAgain {
            (*record).split_by = ended.wrapping_add(1);
        }
    }
}
