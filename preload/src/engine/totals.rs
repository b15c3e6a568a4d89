//! What a thread's regions have come to so far, for programs that ask.
#![forbid(unsafe_code)]

use super::node::{RegionNode, SoFar};
use super::thread::ThreadState;
use std::ffi::CStr;

/// Of the regions of this name in the calling thread since `forget`, wherever they began, without those within another of the
/// name.
pub fn so_far(name: &CStr) -> SoFar {
    let mut all = SoFar::default();
    each_of_name(name, |node| {
        let (now, since) = (node.so_far(), node.since());
        all.executions += now.executions - since.executions;
        all.ns += now.ns - since.ns;
    });
    all
}

/// What regions of this name in the calling thread have come to no longer counts for `so_far`.
pub fn forget(name: &CStr) {
    each_of_name(name, RegionNode::forget);
}

fn each_of_name(name: &CStr, mut work: impl FnMut(&'static RegionNode)) {
    let Some(thread) = ThreadState::measured() else { return };
    thread.groups.roots().for_each(|root| each_below(root, name, &mut work));
}

fn each_below(within: &RegionNode, name: &CStr, work: &mut impl FnMut(&'static RegionNode)) {
    for node in std::iter::successors(within.first_child(), |node| node.sibling()) {
        if node.is_called(name) {
            work(node);
        } else {
            each_below(node, name, work);
        }
    }
}
