//! A begin and an end that need nothing new, of an execution of which only the slots are counted, or of which plain counters tell
//! all.
//!
//! Each step goes on to the next or to the slow path, and nothing has happened then; so the quickest way has no frame on
//! the stack.

use super::frame::{DEEPEST, Frame};
use super::index::Cache;
use super::node::RegionNode;
use super::record;
use super::slow;
use super::thread::{ThreadState, current};
use crate::name::crosses;
use std::ffi::{c_char, c_int};
use std::ptr::addr_of_mut;
use topdown::PeriodTotals;

/// A region begins, `DIRECT` if by td_region_begin.
///
/// # Safety
/// The calling thread's state, which is idle; a C string, or NULL.
#[inline(always)]
pub unsafe fn begin<const DIRECT: bool>(thread: *mut ThreadState, name: *const c_char) -> c_int {
    // SAFETY: the caller's word. Only the head of the name is read, which does not cross a page.
    unsafe {
        let within = (*ThreadState::innermost(thread)).node;
        let node = *Cache::of(thread, within, name);
        if (*node).parent != within || crosses(name) {
            return begin_neighbour::<DIRECT>(name);
        }
        if !(*node).name.is_at_sight(name) {
            return begin_longer::<DIRECT>(name, node);
        }
        enter::<DIRECT>(thread, node, name)
    }
}

/// It is not known at sight that this is the node.
#[inline(never)]
unsafe extern "C-unwind" fn begin_longer<const DIRECT: bool>(
    name: *const c_char,
    node: *mut RegionNode,
) -> c_int {
    // SAFETY: as `begin`, which calls it.
    unsafe {
        if (*node).name.is_longer(name) {
            enter::<DIRECT>(current(), node, name)
        } else {
            begin_neighbour::<DIRECT>(name)
        }
    }
}

/// It is not at the place where it is looked for first.
#[inline(never)]
unsafe extern "C-unwind" fn begin_neighbour<const DIRECT: bool>(name: *const c_char) -> c_int {
    // SAFETY: as `begin`, which calls it.
    unsafe {
        let thread = current();
        let within = (*ThreadState::innermost(thread)).node;
        let node = *Cache::neighbour(Cache::of(thread, within, name));
        let is_it = || !crosses(name) && ((*node).name.is_at_sight(name) || (*node).name.is_longer(name));
        if (*node).parent == within && is_it() {
            enter::<DIRECT>(thread, node, name)
        } else {
            slow::begin::<DIRECT>(name)
        }
    }
}

/// A signal handler may interrupt it with begins and ends of its own: it leaves the stack as it was.
#[inline(always)]
unsafe fn enter<const DIRECT: bool>(
    thread: *mut ThreadState,
    node: *mut RegionNode,
    name: *const c_char,
) -> c_int {
    // SAFETY: as `begin`; nodes in the cache have records.
    unsafe {
        if !DIRECT && (*node).direct {
            return slow::begin::<DIRECT>(name); // it has the library's own slots of the other way, which is shorter
        }
        let inner = (*thread).innermost + size_of::<Frame>();
        if inner > DEEPEST * size_of::<Frame>() {
            return slow::begin::<DIRECT>(name);
        }
        let frame = ThreadState::frame_at(thread, inner);
        Frame::set_plain(frame, node);
        addr_of_mut!((*thread).innermost).write_volatile(inner);
        // A handler that came before that had its own frame there. One that comes now and begins this region finds
        // it begun, and does not touch the sum.
        Frame::set_plain(frame, node);
        if (*(*thread).td).begin_steadily(&mut (*node).sum, &*(*node).counted[0]) {
            return 0;
        }
        (*current()).innermost -= size_of::<Frame>();
        slow::begin::<DIRECT>(name)
    }
}

/// It ends.
///
/// # Safety
/// As `begin`.
#[inline(always)]
pub unsafe fn end(thread: *mut ThreadState, name: *const c_char) -> c_int {
    // SAFETY: as `begin`. The first frame's node has a record.
    unsafe {
        let frame = ThreadState::innermost(thread);
        let node = (*frame).node;
        if !Frame::is_plain(frame) || crosses(name) {
            return slow::end(name);
        }
        if !(*node).name.is_at_sight(name) {
            return end_longer(name, node);
        }
        exit(thread, node, name)
    }
}

/// As `begin_longer`.
#[inline(never)]
unsafe extern "C-unwind" fn end_longer(name: *const c_char, node: *mut RegionNode) -> c_int {
    // SAFETY: as `end`, which calls it.
    unsafe { if (*node).name.is_longer(name) { exit(current(), node, name) } else { slow::end(name) } }
}

#[inline(always)]
unsafe fn exit(thread: *mut ThreadState, node: *mut RegionNode, name: *const c_char) -> c_int {
    // SAFETY: as `end`; a region that began with a reading has a record.
    unsafe {
        let Some((execution, seen)) = (*(*thread).td).end_steadily(&mut (*node).sum) else {
            return exit_counted(node, name);
        };
        record::add(node, execution);
        leave(current(), seen)
    }
}

/// No reading of slots alone ends it.
#[inline(never)]
unsafe extern "C-unwind" fn exit_counted(node: *mut RegionNode, name: *const c_char) -> c_int {
    // SAFETY: as `exit`, which calls it.
    unsafe {
        let thread = current();
        match record::add_counted(node, &*(*thread).td) {
            Some(seen) => leave(thread, seen),
            None => slow::end(name),
        }
    }
}

/// It has ended, when the thread had come so far.
#[inline(always)]
unsafe fn leave(thread: *mut ThreadState, seen: PeriodTotals) -> c_int {
    // SAFETY: the calling thread's state.
    unsafe {
        (*thread).innermost -= size_of::<Frame>();
        record::saw(thread, seen);
    }
    0
}
