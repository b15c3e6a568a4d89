//! The record of each thread, in a slot that is read in two instructions.

use crate::engine::Thread;

mod slot {
    topdown_seam::thread_local_slot!("topdown_region_thread", first 0);
}

/// What this thread's slot holds; NULL at first.
#[inline(always)]
pub fn get() -> *mut Thread {
    slot::get() as *mut Thread
}

/// From now on it holds this.
pub fn set(value: *mut Thread) {
    slot::set(value as u64);
}
