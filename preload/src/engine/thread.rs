//! The state of a measured thread, and how a thread finds it.

use super::frame::OpenRegions;
use super::groups::ThreadGroups;
use super::tree::ThreadNodes;
use std::cell::Cell;
use std::ptr::without_provenance_mut;

/// What a thread needs, in memory that a forked child finds zeroed.
pub struct ThreadState {
    /// Not 0: it is as this process has made it, and of a thread that is measured.
    alive: Cell<usize>,
    /// Not 0: and not too deep in regions, and no call of the slow path was interrupted.
    idle: Cell<usize>,
    /// The same of a thread that is measured by clocks alone, whose `idle` is always 0: what reads counters does not ask who has some.
    idle_by_clocks: Cell<usize>,
    pub open: OpenRegions,
    pub nodes: ThreadNodes,
    pub groups: ThreadGroups,
}

/// What a thread has instead of a state when it cannot be measured.
pub const GONE: *mut ThreadState = without_provenance_mut(1);
/// What a thread has instead of a state when its measured end has come, and the program has it go on.
pub const ENDED: *mut ThreadState = without_provenance_mut(2);

mod slot {
    topdown_seam::thread_local_slot!("topdown_region_thread", first 0);
}

/// The calling thread's state: NULL at first, or GONE or ENDED.
#[inline(always)]
fn current() -> *mut ThreadState {
    slot::get() as *mut ThreadState
}

impl ThreadState {
    /// Of a thread that has yet to begin.
    pub fn new(open: OpenRegions, nodes: ThreadNodes, groups: ThreadGroups) -> ThreadState {
        ThreadState {
            alive: Cell::new(0),
            idle: Cell::new(0),
            idle_by_clocks: Cell::new(0),
            open,
            nodes,
            groups,
        }
    }

    /// From now on this is the calling thread's.
    pub fn set_current(thread: *const ThreadState) {
        slot::set(thread as u64);
    }

    /// Whether this is what the calling thread has.
    pub fn is_current(thread: *const ThreadState) -> bool {
        std::ptr::eq(current(), thread)
    }

    /// Whether the calling thread will have no state.
    pub fn is_for_good_without() -> bool {
        current() == GONE || current() == ENDED
    }

    /// The calling thread's state; it may have yet to begin, or be that of the parent process.
    #[inline(always)]
    pub fn current() -> Option<&'static ThreadState> {
        let thread = current();
        // SAFETY: what is none of these is a state, which is never unmapped.
        if thread > ENDED { Some(unsafe { &*thread }) } else { None }
    }

    /// The calling thread's state.
    ///
    /// # Safety
    /// The calling thread has one.
    #[inline(always)]
    pub unsafe fn own() -> &'static ThreadState {
        // SAFETY: the caller's word.
        unsafe { &*current() }
    }

    /// The same of a thread that is measured.
    #[inline(always)]
    pub fn measured() -> Option<&'static ThreadState> {
        ThreadState::current().filter(|thread| thread.alive.get() != 0)
    }

    /// The same of one with counters, if the state can be looked at, and no call that changes it was interrupted.
    #[inline(always)]
    pub fn idle() -> Option<&'static ThreadState> {
        let thread = current();
        // SAFETY: as `current`.
        unsafe { if thread > ENDED && (*thread).idle.get() != 0 { Some(&*thread) } else { None } }
    }

    /// The same of a thread that is measured by clocks.
    #[inline(always)]
    pub fn idle_by_clocks() -> Option<&'static ThreadState> {
        let thread = current();
        // SAFETY: as `current`.
        unsafe { if thread > ENDED && (*thread).idle_by_clocks.get() != 0 { Some(&*thread) } else { None } }
    }

    /// The thread is measured from now on.
    pub fn has_begun(&self) {
        self.alive.set(1);
        self.set_idle(1);
    }

    /// It is measured no more.
    pub fn has_ended(&self) {
        self.set_idle(0);
        self.alive.set(0);
    }

    /// A call of the slow path has come to its end.
    pub fn settle(&self) {
        self.set_idle(usize::from(self.open.over.get() == 0));
    }

    fn set_idle(&self, idle: usize) {
        let of = if self.groups.td().counters().is_some() { &self.idle } else { &self.idle_by_clocks };
        of.set(idle);
    }
}
