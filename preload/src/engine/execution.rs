//! Executions of regions begin and end, in calls of the slow path.
#![forbid(unsafe_code)]

use super::empty;
use super::frame::{ExecutionStart, Frame};
use super::node::RegionNode;
use super::thread::ThreadState;
use crate::record::OwnRecord;
use std::ffi::{CStr, c_int};

/// A region begins in the innermost one, `direct` if by td_region_begin.
#[inline(always)]
pub fn begin(thread: &ThreadState, name: &CStr, direct: bool) -> c_int {
    let within = thread.open.innermost().node;
    if thread.open.depth() == super::frame::DEEPEST {
        thread.open.begin_over(name);
        let node = thread.nodes.look_up(thread.groups.root(), within, name).ok();
        if let Some(record) = node.and_then(RegionNode::record) {
            record.add(OwnRecord::missed, 1);
        }
        return -libc::ENOSPC;
    }
    let place = thread.nodes.cache.place(within, name.as_ptr());
    let is_it = |node: &RegionNode| node.is_within(within) && node.is_called(name);
    let [mut node, second] = [place, place.neighbour()].map(|place| place.get());
    if !is_it(node) {
        // (an execution of nothing, which has the place of the region's, is none of the region: `empty`)
        node = if thread.nodes.is_empty(second) && is_it(second) {
            second
        } else {
            match thread.nodes.look_up(thread.groups.root(), within, name) {
                Ok(node) => node,
                Err(code) => return code,
            }
        };
    }
    empty::before(thread, node, name, direct);
    if !thread.open.push(Frame::new(node, ExecutionStart::Unread)) {
        return -libc::ENOSPC;
    }
    if node.record().is_none() {
        return -libc::ENOSPC;
    }
    match node.begin(thread.groups.td()) {
        Ok(()) => {
            thread.open.set(thread.open.depth(), Frame::new(node, ExecutionStart::Read));
            0
        }
        Err(error) => missed(thread, node, error.code()),
    }
}

/// The innermost region ends; there is one.
#[inline(always)]
pub fn end_innermost(thread: &ThreadState) -> c_int {
    let (depth, frame) = (thread.open.depth(), thread.open.innermost());
    if frame.again > 0 {
        // of one in which others were left open
        thread.open.set(depth, Frame { again: frame.again - 1, ..frame });
        return 0;
    }
    thread.open.cut(depth - 1);
    if !frame.state.is_read() {
        return 0;
    }
    end(thread, frame.node)
}

/// An execution of the node's that began with a reading ends.
#[inline(always)]
pub fn end(thread: &ThreadState, node: &RegionNode) -> c_int {
    let td = thread.groups.td();
    let Some(td) = td.counters() else {
        return match node.end_by_clocks() {
            Some(seen) => {
                thread.groups.saw(seen);
                0
            }
            None => missed(thread, node, -libc::EINVAL),
        };
    };
    node.complete();
    let slots_only = node.is_counting();
    match node.end(td) {
        Ok(seen) => {
            if let Some(turns) = thread.groups.turns() {
                turns.on_clock(|clock| clock.saw(seen.ns));
            }
            if slots_only {
                node.store_totals();
                thread.groups.saw(seen);
            } else {
                node.store();
                thread.groups.publish(&node.last());
            }
            0
        }
        Err(error) => missed(thread, node, error.code()),
    }
}

/// An execution could not be read.
#[cold]
fn missed(thread: &ThreadState, node: &RegionNode, code: c_int) -> c_int {
    // (handles are taken away from threads that run when the process ends)
    if let (Some(record), false) = (node.record(), thread.nodes.tables().is_closed()) {
        record.add(OwnRecord::missed, 1);
    }
    code
}

/// Leaves all regions deeper than this, which do not count.
#[cold]
pub fn leave(thread: &ThreadState, depth: usize) {
    while thread.open.depth() > depth {
        let frame = thread.open.innermost();
        if let Some(record) = frame.node.record() {
            record.leave_nested(frame.again.into());
            record.add(OwnRecord::unended, frame.state.is_to_end().into());
        }
        thread.open.cut(thread.open.depth() - 1);
    }
}
