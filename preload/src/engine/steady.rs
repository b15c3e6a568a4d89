//! A begin and an end that need nothing new, of an execution of which only the slots are counted, or of which general-purpose counters
//! tell all; or of which clocks alone tell.
//!
//! Each step goes on to the next or to the slow path, and nothing has happened then; so the quickest way has no frame on
//! the stack.

use super::node::RegionNode;
use super::slow;
use super::thread::ThreadState;
use crate::name::crosses;
use std::ffi::{c_char, c_int};
use topdown::PeriodTotals;

/// What reads both ends of an execution: by the calling thread, without a call of the slow path.
pub trait Meter {
    /// The execution begins; false: nothing happened.
    ///
    /// # Safety
    /// The thread is measured so, and the node has a record.
    unsafe fn begin(thread: &ThreadState, node: &RegionNode) -> bool;

    /// It ends. None: nothing happened.
    ///
    /// # Safety
    /// The same.
    unsafe fn end(thread: &ThreadState, node: &RegionNode) -> Option<PeriodTotals>;

    /// It ends, where `end` does not end it.
    ///
    /// # Safety
    /// The same, of the calling thread; `name` is a C string.
    unsafe extern "C-unwind" fn end_otherwise(node: &'static RegionNode, name: *const c_char) -> c_int;
}

/// Counters, and their clock.
pub struct Counters;

/// Clocks alone.
pub struct Clocks;

impl Meter for Counters {
    #[inline(always)]
    unsafe fn begin(thread: &ThreadState, node: &RegionNode) -> bool {
        // SAFETY: the caller's word.
        unsafe { node.begin_steadily(thread.groups.td().counters_unchecked()) }
    }

    #[inline(always)]
    unsafe fn end(thread: &ThreadState, node: &RegionNode) -> Option<PeriodTotals> {
        // SAFETY: the caller's word.
        unsafe { node.end_steadily(thread.groups.td().counters_unchecked()) }
    }

    /// No reading of slots alone ends the execution.
    #[inline(never)]
    unsafe extern "C-unwind" fn end_otherwise(node: &'static RegionNode, name: *const c_char) -> c_int {
        // SAFETY: the caller's word.
        unsafe {
            let thread = ThreadState::own();
            match node.end_counted(thread.groups.td().counters_unchecked()) {
                Some(seen) => leave(thread, seen),
                None => slow::end(name),
            }
        }
    }
}

impl Meter for Clocks {
    #[inline(always)]
    unsafe fn begin(_: &ThreadState, node: &RegionNode) -> bool {
        node.begin_by_clocks();
        true
    }

    #[inline(always)]
    unsafe fn end(_: &ThreadState, node: &RegionNode) -> Option<PeriodTotals> {
        node.end_by_clocks()
    }

    unsafe extern "C-unwind" fn end_otherwise(_: &'static RegionNode, name: *const c_char) -> c_int {
        // SAFETY: the caller's word.
        unsafe { slow::end(name) }
    }
}

/// A region begins, `DIRECT` if by td_region_begin.
///
/// # Safety
/// The calling thread's state, which is idle; a C string, or NULL.
#[inline(always)]
pub unsafe fn begin<const DIRECT: bool, M: Meter>(
    thread: &'static ThreadState,
    name: *const c_char,
) -> c_int {
    let within = thread.open.innermost_node();
    let node = thread.nodes.cache.place(within, name).get();
    // SAFETY: the caller's word. Only the head of the name is read, which does not cross a page.
    unsafe {
        if !node.is_within(within) || crosses(name) {
            return begin_neighbour::<DIRECT, M>(name);
        }
        if !node.name().is_at_sight(name) {
            return begin_longer::<DIRECT, M>(name, node);
        }
        enter::<DIRECT, M>(thread, node, name)
    }
}

/// It is not known at sight that the node is the name's.
#[inline(never)]
unsafe extern "C-unwind" fn begin_longer<const DIRECT: bool, M: Meter>(
    name: *const c_char,
    node: &'static RegionNode,
) -> c_int {
    // SAFETY: as `begin`, which calls it.
    unsafe {
        if node.name().is_longer(name) {
            enter::<DIRECT, M>(ThreadState::own(), node, name)
        } else {
            begin_neighbour::<DIRECT, M>(name)
        }
    }
}

/// The name's node is not at the place where it is looked for first.
#[inline(never)]
unsafe extern "C-unwind" fn begin_neighbour<const DIRECT: bool, M: Meter>(name: *const c_char) -> c_int {
    // SAFETY: as `begin`, which calls it.
    unsafe {
        let thread = ThreadState::own();
        let within = thread.open.innermost_node();
        let node = thread.nodes.cache.place(within, name).neighbour().get();
        let is_it = || !crosses(name) && (node.name().is_at_sight(name) || node.name().is_longer(name));
        if node.is_within(within) && is_it() {
            enter::<DIRECT, M>(thread, node, name)
        } else {
            slow::begin::<DIRECT>(name)
        }
    }
}

/// A signal handler may interrupt it with begins and ends of its own: it leaves the stack as it was.
#[inline(always)]
unsafe fn enter<const DIRECT: bool, M: Meter>(
    thread: &'static ThreadState,
    node: &'static RegionNode,
    name: *const c_char,
) -> c_int {
    // SAFETY: as `begin`; nodes in the cache have records.
    unsafe {
        if !DIRECT && node.is_direct() {
            return slow::begin::<DIRECT>(name); // it has the library's own slots of the other way, which is shorter
        }
        if !thread.open.push_plain(node) {
            return slow::begin::<DIRECT>(name);
        }
        if M::begin(thread, node) {
            return 0;
        }
        ThreadState::own().open.pop();
        slow::begin::<DIRECT>(name)
    }
}

/// A region ends.
///
/// # Safety
/// As `begin`.
#[inline(always)]
pub unsafe fn end<M: Meter>(thread: &'static ThreadState, name: *const c_char) -> c_int {
    // SAFETY: as `begin`. A region that began with a reading has a record.
    unsafe {
        let Some(node) = thread.open.innermost_plain() else { return slow::end(name) };
        if crosses(name) {
            return slow::end(name);
        }
        if !node.name().is_at_sight(name) {
            return end_longer::<M>(name, node);
        }
        exit::<M>(thread, node, name)
    }
}

/// As `begin_longer`.
#[inline(never)]
unsafe extern "C-unwind" fn end_longer<M: Meter>(name: *const c_char, node: &'static RegionNode) -> c_int {
    // SAFETY: as `end`, which calls it.
    unsafe {
        if node.name().is_longer(name) { exit::<M>(ThreadState::own(), node, name) } else { slow::end(name) }
    }
}

#[inline(always)]
unsafe fn exit<M: Meter>(
    thread: &'static ThreadState,
    node: &'static RegionNode,
    name: *const c_char,
) -> c_int {
    // SAFETY: as `end`; a region that began with a reading has a record.
    unsafe {
        match M::end(thread, node) {
            Some(seen) => leave(ThreadState::own(), seen),
            None => M::end_otherwise(node, name),
        }
    }
}

/// The innermost region has ended, when the thread had come so far. (In this order: no signal handler ends the turn that was meant, as long
/// as a region is open whose execution has ended.)
#[inline(always)]
fn leave(thread: &ThreadState, seen: PeriodTotals) -> c_int {
    thread.groups.saw(seen);
    thread.open.pop();
    0
}
