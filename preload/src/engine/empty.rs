//! Executions of nothing, which measure what regions that are counted steadily have of the library's own instructions: begun and
//! ended by the functions that the program calls, in the place of the region's next execution, just before it.

use super::index::Cache;
use super::node::{self, RegionNode};
use super::record;
use super::thread::ThreadState;
use crate::{td_region_begin, td_region_end};
use std::ffi::{c_char, c_int};
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use topdown::{Empties, Increments, Sum};

/// An execution of the node's region is to begin, `direct` by td_region_begin: if an empty one is due before it, this is it. Other
/// ways to begin are longer, and how long is not known.
///
/// # Safety
/// The calling thread's state, in a call of the slow path, and a child of its innermost region; a C string, which is its name.
#[inline]
pub unsafe fn before(thread: *mut ThreadState, node: *mut RegionNode, name: *const c_char, direct: bool) {
    // SAFETY: the caller's word.
    unsafe {
        if !direct && (*node).direct {
            (*node).direct = false;
            (*node).sum.set_empties(&Empties::default());
            if !(*node).record.is_null() {
                record::complete(node);
                record::store(node);
            }
        }
        if !(*node).record.is_null() && (*node).sum.is_empty_due() {
            measure(thread, node, name);
        }
    }
}

/// # Safety
/// As `before`.
#[cold]
unsafe fn measure(thread: *mut ThreadState, node: *mut RegionNode, name: *const c_char) {
    // SAFETY: as `before`; no signal handler runs meanwhile.
    unsafe {
        if !(*thread).turns.is_null() {
            return; // (such groups are led by cycles: nothing is counted steadily)
        }
        let Some(sum) = (*(*thread).td).empty(&mut (*node).sum).filter(|_| (*node).direct) else { return };
        let pair = [(); 2].map(|()| execute(thread, node, name, sum));
        if let [Some(first), Some(second)] = pair {
            (*node).sum.add_empty(&[first, second]);
            record::complete(node);
            record::store(node);
        }
    }
}

/// What an execution of nothing has counted, by this sum. None: it was not counted steadily.
unsafe fn execute(
    thread: *mut ThreadState,
    node: *mut RegionNode,
    name: *const c_char,
    sum: Sum,
) -> Option<Increments> {
    // SAFETY: as `before`. A node like it has its place as long as this takes.
    unsafe {
        if (*thread).empty.is_null() {
            (*thread).empty = node::new_apart(thread)?;
        }
        let empty = (*thread).empty;
        let record = (*empty).record;
        (*record).counted_executions.store(0, Relaxed);
        (*record).counted = Default::default();
        let like = RegionNode::new((*node).parent, (*node).name, record, (*node).number);
        empty.write(RegionNode { sum, ..like });
        let cached = Cache::place(thread, (*node).parent, name, node);
        let before = cached.replace(empty);
        // (not inlined: the very code that programs call)
        let [begin, end] =
            black_box::<[unsafe extern "C-unwind" fn(_) -> c_int; 2]>([td_region_begin, td_region_end]);
        let ended = begin(name) == 0 && end(name) == 0;
        cached.write(before);
        let counted = (*record).counted_executions.load(Relaxed) == 1 && (*empty).sum.was_steady();
        (ended && counted).then(|| (*empty).counted[0].read())
    }
}
