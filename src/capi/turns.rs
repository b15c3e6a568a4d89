//! Regions whose groups take turns.

use super::border::{at_mut, guard, put};
use super::decode::Room;
use super::{COptions, options};
use crate::error::Error;
use crate::sys::cancelled_later;
use crate::tree::Node;
use crate::turns::RegionTurns;
use std::ffi::c_int;

/// Each group has as many turns as the others.
pub const TD_TURNS_ALL: u32 = 0;
/// Those of the children of nodes that are above their thresholds, level by level.
pub const TD_TURNS_DRILL: u32 = 1;

/// The opaque region of C.
#[allow(non_camel_case_types)]
pub struct td_turns(RegionTurns);

cancelled_later! {
/// # Safety
/// As td_turns_open.
unsafe extern "C" fn open(out: *mut *mut td_turns, options: *const COptions, how: u32) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        put(out, "out", || {
            if how > TD_TURNS_DRILL {
                return Err(Error::invalid(format!("{how} is no TD_TURNS_*")));
            }
            let region = RegionTurns::open(&options::read(options)?, how == TD_TURNS_DRILL)?;
            Ok(Box::into_raw(Box::new(td_turns(region))))
        })
    })
}

/// # Safety
/// As td_turns_begin.
unsafe extern "C" fn begin(turns: *mut td_turns) -> c_int {
    // SAFETY: the pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { at_mut(turns, "turns")?.0.begin().map(|()| 0) })
}

/// # Safety
/// As td_turns_end.
unsafe extern "C" fn end(turns: *mut td_turns) -> c_int {
    // SAFETY: the pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { at_mut(turns, "turns")?.0.end().map(|()| 0) })
}

/// # Safety
/// As td_turns_decode_tree.
unsafe extern "C" fn decode_tree(turns: *mut td_turns, nodes: *mut Node, capacity: u32, count: *mut u32) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        let room = Room::new(nodes, capacity, count)?;
        Ok(room.put(at_mut(turns, "turns")?.0.nodes()?.into_iter()))
    })
}

/// # Safety
/// As td_turns_close.
unsafe extern "C" fn close(turns: *mut td_turns) {
    if !turns.is_null() {
        // SAFETY: it came from td_turns_open and was not closed, which the C caller promises.
        guard(|| unsafe {
            drop(Box::from_raw(turns));
            Ok(0)
        });
    }
}
}

/// Opens groups that take turns in a region of the calling thread, from one execution to another: nodes of levels 3 to 6 that
/// one group does not hold. `options->nodes` names nodes; without any all are counted down to `options->level` (0: the
/// last). `how` is TD_TURNS_ALL or TD_TURNS_DRILL. Groups are opened when their first turn comes: a group that cannot be
/// opened then has none. A thread has one such region at a time. What other handles of the thread count by general
/// counters takes them from it, and is in the intervals.
///
/// Threads, signals and returns as td_open; -ENOTSUP also if this CPU has no published tree, or a node cannot be
/// counted here; -EBUSY: the thread has a region open; -EINVAL: another target than the calling thread, the registers as
/// source, TD_FLAG_INHERIT or TD_FLAG_SIMULATE.
///
/// # Safety
/// `out` and `options` are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_turns_open(
    out: *mut *mut td_turns,
    options: *const COptions,
    how: u32,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe { open(out, options, how) }
}

/// Begins an execution of the region: a reading of the group whose turn it is, as td_sum_begin. A second begin starts it
/// anew. Not in a signal handler. Threads and returns as td_sum_begin.
///
/// # Safety
/// `turns` is NULL or from td_turns_open.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_turns_begin(turns: *mut td_turns) -> c_int {
    // SAFETY: the caller's word.
    unsafe { begin(turns) }
}

/// Ends it. If the turn has lasted long enough (2 ms at first, later 20 ms) the next begins: two ioctl(2), and at a
/// group's first turn the calls that open it. Threads and returns as td_sum_end.
///
/// # Safety
/// `turns` is NULL or from td_turns_open.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_turns_end(turns: *mut td_turns) -> c_int {
    // SAFETY: the caller's word.
    unsafe { end(turns) }
}

/// The nodes that were measured in all executions, as td_decode_tree: those of groups that had eight turns. The interval of
/// each has what its turns leave to chance, and what passed before its group could come. Nodes that were named and were not
/// measured are among them (`measured` 0). Ends the turn.
///
/// Threads and returns as td_read; -EINVAL also if an execution has not ended.
///
/// # Safety
/// The pointers are NULL or point to what their types say, `nodes` to `capacity` of them, and `turns` is from
/// td_turns_open.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_turns_decode_tree(
    turns: *mut td_turns,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe { decode_tree(turns, nodes, capacity, count) }
}

/// Closes all groups. NULL is nothing. Any thread, once no other uses them.
///
/// # Safety
/// `turns` is NULL or from td_turns_open, and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_turns_close(turns: *mut td_turns) {
    // SAFETY: the caller's word.
    unsafe { close(turns) }
}
