//! Regions of td_region_begin that overlap: one ends in which others are still open.
//!
//!     begin A, begin B, end A, end B       becomes       A ( B ), B
//!
//! Those end first, and begin again after it, so that each slot is in the regions that were open, and none is counted twice.
//! Whether such a region overlaps or its end was forgotten is known only when it ends, or begins once more: then the piece
//! that is open does not count.
#![forbid(unsafe_code)]

use super::execution::{begin, end, end_innermost, leave};
use super::frame::{ExecutionStart, Frame};
use super::thread::ThreadState;
use crate::record::OwnRecord;
use std::ffi::{CStr, c_int};

/// Pieces that may be open in a thread. If there are more, ends were forgotten, and none of the pieces counts.
const PIECES: usize = 16;

/// The region of frame `at` ends, in which others are open. Those that td_region_begin began go on after it; others (of hooked
/// functions, which a longjmp may have left) do not count.
#[cold]
pub fn end_around(thread: &ThreadState, at: usize) -> c_int {
    let frame = thread.open.at(at);
    if !frame.node.is_direct() {
        leave(thread, at);
        return end_innermost(thread);
    }
    if frame.again > 0 {
        // it goes on, with all that is open in it
        thread.open.set(at, Frame { again: frame.again - 1, ..frame });
        return 0;
    }
    let direct = |frame: &Frame| frame.node.is_direct();
    let code = take_out(thread, at, direct, ExecutionStart::ReadAgain, end_innermost);
    thread.open.pieces.set(true);
    if pieces(thread).count() > PIECES {
        while let Some(innermost) = pieces(thread).next_back() {
            give_up(thread, innermost);
        }
    }
    code
}

/// A region of this name is to begin: if a piece of it is open, its end was forgotten.
pub fn before(thread: &ThreadState, name: &CStr) {
    if thread.open.pieces.get() {
        thread.open.pieces.set(pieces(thread).next().is_some());
        let of_name = |at: &usize| thread.open.at(*at).node.is_called(name);
        if let Some(at) = pieces(thread).rev().find(of_name) {
            give_up(thread, at);
        }
    }
}

/// The frames of pieces, the outermost first.
fn pieces(thread: &ThreadState) -> impl DoubleEndedIterator<Item = usize> {
    let pieces = thread.open.regions().filter(|(_, frame)| frame.state == ExecutionStart::ReadAgain);
    pieces.map(|(number, _)| number)
}

/// The piece does not count.
fn give_up(thread: &ThreadState, at: usize) {
    let leave = |thread: &ThreadState| {
        leave(thread, at - 1);
        0
    };
    take_out(thread, at, |_| true, ExecutionStart::Read, leave);
}

/// Has all within frame `at` end, then that itself by `end_it`, and those that `go_on` begin again, as a `piece` or plain.
fn take_out(
    thread: &ThreadState,
    at: usize,
    go_on: impl Fn(&Frame) -> bool,
    piece: ExecutionStart,
    end_it: impl FnOnce(&ThreadState) -> c_int,
) -> c_int {
    // Frames above the depth stay as they are until others take their places, which those that begin again do further down.
    let depth = thread.open.depth();
    for k in (at + 1..=depth).rev() {
        let frame = thread.open.at(k);
        if go_on(&frame) {
            thread.open.cut(k - 1);
            if frame.state.is_read() {
                end(thread, frame.node);
            }
        } else {
            leave(thread, k - 1);
            thread.open.clear(k);
        }
    }
    let ended = thread.open.at(at).node.number();
    let code = end_it(thread);
    for k in at + 1..=depth {
        if let Some(frame) = thread.open.above(k) {
            begin_again(thread, &frame, ended, piece);
        }
    }
    code
}

/// An open region goes on in the place that is now the innermost, since the one of the record `ended` around it has ended.
fn begin_again(thread: &ThreadState, was: &Frame, ended: u32, piece: ExecutionStart) {
    let name = was.node.name().text();
    let within = thread.open.innermost().node;
    if !was.state.is_read() {
        if let Ok(node) = thread.nodes.look_up(thread.groups.root(), within, name) {
            let _ = thread.open.push(Frame { node, ..*was });
        }
        return;
    }
    let depth = thread.open.depth();
    begin(thread, name, was.node.is_direct());
    if thread.open.depth() > depth {
        let frame = thread.open.innermost();
        let state = match frame.state {
            ExecutionStart::Read if was.state == ExecutionStart::Read => piece,
            ExecutionStart::Read => was.state,
            state => state,
        };
        thread.open.set(depth + 1, Frame { state, again: was.again, ..frame });
    }
    if let Some(record) = was.node.record() {
        record.add(OwnRecord::split, 1);
        if piece == ExecutionStart::ReadAgain {
            record.split_by().set(ended.wrapping_add(1));
        }
    }
}
