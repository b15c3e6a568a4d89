//! Executions of nothing, which measure what regions that are counted steadily have of the library's own instructions: begun and
//! ended by the functions that the program calls, in the place of the region's next execution, just before it.

use super::node::RegionNode;
use super::thread::ThreadState;
use std::ffi::{CStr, c_char, c_int};
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use topdown::{Empties, Increments, Sum};

/// A function that programs call at a region's begin or end, with its name.
pub type MarkFunction = unsafe extern "C-unwind" fn(*const c_char) -> c_int;

/// td_region_begin and td_region_end: the very code that programs call.
static MARKS: OnceLock<[MarkFunction; 2]> = OnceLock::new();

/// Executions of nothing are begun and ended by these, which take a C string.
pub fn prepare(marks: [MarkFunction; 2]) {
    let _ = MARKS.set(marks);
}

/// An execution of the node's region is to begin, `direct` by td_region_begin: if an empty one is due before it, this is it. Other
/// ways to begin are longer, and how long is not known. The node is a child of the innermost region's, and called so.
#[inline]
pub fn before(thread: &ThreadState, node: &'static RegionNode, name: &CStr, direct: bool) {
    let by_clocks = thread.groups.td().counters().is_none(); // which have no executions of nothing
    if !direct && node.is_direct() {
        node.set_direct(false);
        node.set_empties(&Empties::default());
        if node.record().is_some() && !by_clocks {
            node.complete();
            node.store();
        }
    }
    if node.record().is_some() && !by_clocks && node.is_empty_due() {
        measure(thread, node, name);
    }
}

#[cold]
fn measure(thread: &ThreadState, node: &'static RegionNode, name: &CStr) {
    if thread.groups.turns().is_some() {
        return; // (a turn may be too short for the pairs that tell anything: the bound has the skid of each execution)
    }
    let td = thread.groups.td();
    let sum = td.counters().and_then(|td| node.empty(td)).filter(|_| node.is_direct());
    let Some(sum) = sum else { return };
    let pair = [(); 2].map(|()| execute(thread, node, name, sum));
    if let [Some(first), Some(second)] = pair {
        node.add_empty(&[first, second]);
        node.complete();
        node.store();
    }
}

/// What an execution of nothing has counted, by this sum. None: it was not counted steadily.
fn execute(thread: &ThreadState, node: &'static RegionNode, name: &CStr, sum: Sum) -> Option<Increments> {
    let (empty, parent) = (thread.nodes.empty()?, node.parent()?);
    let [begin, end] = *black_box(MARKS.get()?);
    // A node like the region's has its place as long as this takes.
    empty.stand_in_for(node, sum);
    let place = thread.nodes.cache.place_of(parent, name.as_ptr(), node);
    let before = place.replace(empty);
    let depth = thread.open.depth();
    // SAFETY: a C string.
    let ended = unsafe { begin(name.as_ptr()) == 0 && end(name.as_ptr()) == 0 };
    thread.open.cut(depth); // (a begin that failed leaves its region open)
    place.replace(before);
    let counted = empty.record()?.counted_executions().load(Relaxed) == 1 && empty.was_steady();
    (ended && counted).then(|| empty.counted())
}
