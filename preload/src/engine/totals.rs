//! What a thread's regions have come to so far, for programs that ask.

use super::node::RegionNode;
use super::thread::{ThreadState, current};
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;

/// Executions that have ended, and nanoseconds in them.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoFar {
    pub executions: u64,
    pub ns: u64,
}

/// Of the regions of this name in the calling thread since `forget`, wherever they began, without those within another of the
/// name.
pub fn so_far(name: &CStr) -> SoFar {
    let mut all = SoFar::default();
    each_of_name(name, |node| {
        // SAFETY: the calling thread's node.
        let (now, since) = unsafe { (of(node), (*node).since) };
        all.executions += now.executions - since.executions;
        all.ns += now.ns - since.ns;
    });
    all
}

/// What regions of this name in the calling thread have come to no longer counts for `so_far`.
pub fn forget(name: &CStr) {
    each_of_name(name, |node| {
        // SAFETY: as above.
        unsafe { (*node).since = of(node) };
    });
}

/// What the node's executions have come to.
///
/// # Safety
/// A node of the calling thread's, or of a state that no thread uses.
pub unsafe fn of(node: *const RegionNode) -> SoFar {
    // SAFETY: the caller's word; nodes with a record have its measurement and counts.
    unsafe {
        if (*node).record.is_null() {
            return SoFar::default();
        }
        let (executions, ns) = ((*(*node).measurement).executions, (*(*node).measurement).enabled_ns);
        let counted = (*(*node).record).counted_executions.load(Relaxed);
        SoFar { executions: executions + counted, ns: ns + (*(*node).counted[0]).ns }
    }
}

fn each_of_name(name: &CStr, mut work: impl FnMut(*mut RegionNode)) {
    let thread = current();
    // SAFETY: the calling thread's state; its nodes stay as long as the state.
    unsafe {
        if ThreadState::has_begun(thread) {
            for root in ThreadState::roots(thread) {
                each_below(root, name, &mut work);
            }
        }
    }
}

/// # Safety
/// A node of the calling thread's.
unsafe fn each_below(within: *const RegionNode, name: &CStr, work: &mut impl FnMut(*mut RegionNode)) {
    // SAFETY: the caller's word.
    unsafe {
        let mut node = (*within).children;
        while !node.is_null() {
            if (*node).name.is(name.as_ptr()) {
                work(node);
            } else {
                each_below(node, name, work);
            }
            node = (*node).sibling;
        }
    }
}
