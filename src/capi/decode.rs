//! From two samples, or from raw registers, to shares.

use super::border::{at, check, guard, handle, put, td};
use super::decoders;
use crate::error::{Error, Result};
use crate::handle;
use crate::model::metrics::TD_NODE_NONE;
use crate::sample::{L1, L2, Sample};
use crate::tree::{self, Node};
use std::ffi::{CStr, c_char, c_int};

/// The earlier sample; none for the start of the period.
///
/// # Safety
/// As `at`.
pub(super) unsafe fn earlier<'a>(from: *const Sample) -> Result<Option<&'a Sample>> {
    // SAFETY: the C caller's pointer, not NULL.
    if from.is_null() { Ok(None) } else { unsafe { at(from, "from") }.map(Some) }
}

/// Level 1: how the pipeline slots between two samples divide. `from` is the earlier sample, or NULL for the start of
/// the period. Both are of the same handle and period. Any thread, at any time, also after td_close. Returns 0, or:
///  -EINVAL          `to` or `out` is NULL, not a sample, of different handles, or in the wrong order
///  TD_ESTALE        the samples are of different periods
///  TD_ENOTCOUNTING  no slot was counted between them
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_l1(from: *const Sample, to: *const Sample, out: *mut L1) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    unsafe { decoders::l1(from, to, out) }
}

/// Level 2: each of the four in two parts. Any thread. Returns as td_decode_l1, and -ENOTSUP if level 2 was not
/// counted, or has other nodes than these: td_decode_tree gives those.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_l2(from: *const Sample, to: *const Sample, out: *mut L2) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    unsafe { decoders::l2(from, to, out) }
}

/// Room for nodes, and for their number.
pub(super) struct Room {
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
}

impl Room {
    /// # Safety
    /// `count` and, unless `capacity` is 0, `nodes` are NULL or point to memory for what their types say, `nodes` for
    /// `capacity` of them.
    pub(super) unsafe fn new(nodes: *mut Node, capacity: u32, count: *mut u32) -> Result<Room> {
        if capacity > 0 {
            check(nodes, "nodes")?;
        }
        check(count, "count")?;
        Ok(Room { nodes, capacity, count })
    }

    /// Writes as many nodes as there is room for, and how many there are.
    pub(super) fn put(self, made: impl ExactSizeIterator<Item = Node>) -> c_int {
        let all = made.len() as u32;
        for (place, node) in made.take(self.capacity as usize).enumerate() {
            // SAFETY: `place` is below `capacity`, for which the C caller has room.
            unsafe { self.nodes.add(place).write(node) };
        }
        // SAFETY: not NULL and aligned, as checked; the C caller has room for a number. `write` does not read what was there.
        unsafe { self.count.write(all) };
        0
    }
}

/// Every node that the CPU has, between two samples as in td_decode_l1. `nodes` receives the first `capacity` nodes,
/// parents before their children, as td_list_nodes; it may be NULL if `capacity` is 0. `count` receives the number of
/// all nodes. The samples tell the CPU: any machine decodes them. Any thread. Returns as td_decode_l1.
///
/// # Safety
/// The pointers are NULL or point to what their types say, `nodes` to `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_tree(
    from: *const Sample,
    to: *const Sample,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        let room = Room::new(nodes, capacity, count)?;
        tree::decode(earlier(from)?, at(to, "to")?, |nodes| room.put(nodes))
    })
}

/// As their maker publishes them: td_decode_tree.
pub const TD_AS_PUBLISHED: u32 = 0;
/// As registers or counters have them, without corrections (docs/sources.md).
pub const TD_AS_BARE: u32 = 2;

/// As td_decode_tree, by a definition of the nodes: TD_AS_*. Any thread. Returns as td_decode_tree; -EINVAL also if it is none.
///
/// # Safety
/// The pointers are NULL or point to what their types say, `nodes` to `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_tree_as(
    from: *const Sample,
    to: *const Sample,
    definition: u32,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        match definition {
            TD_AS_PUBLISHED => {
                let room = Room::new(nodes, capacity, count)?;
                tree::decode(earlier(from)?, at(to, "to")?, |nodes| room.put(nodes))
            }
            TD_AS_BARE => {
                let room = Room::new(nodes, capacity, count)?;
                tree::decode_bare(earlier(from)?, at(to, "to")?, |nodes| room.put(nodes))
            }
            other => Err(Error::invalid(format!("definition {other} is no TD_AS_*"))
                .remedy("use TD_AS_PUBLISHED or TD_AS_BARE")),
        }
    })
}

/// The nodes of the handle's CPU, as td_decode_tree, and which of them the handle measures; their shares are NaN. The
/// list stays the same as long as the handle is open. Threads and returns as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `nodes` NULL or points to `capacity` nodes, `count` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_list_nodes(
    td: *const td,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        let room = Room::new(nodes, capacity, count)?;
        Ok(room.put(handle::nodes(handle(td)?)?))
    })
}

/// Number of the node that perf calls `name` ("tma_l1_bound", or without "tma_"); TD_NODE_NONE if this version knows
/// none, or `name` is NULL. Any thread, also in a signal handler.
///
/// # Safety
/// `name` is NULL or a text that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_node_id(name: *const c_char) -> u32 {
    if name.is_null() {
        return TD_NODE_NONE;
    }
    // SAFETY: not NULL, as checked; that it is a text is what the C caller promises.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().ok().and_then(crate::model::metric_of_name).map_or(TD_NODE_NONE, |metric| metric.id)
}

/// perf's name of the node of a number ("tma_retiring"), or "". Static text. Any thread, also in a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn td_node_name(id: u32) -> *const c_char {
    crate::model::metric(id).map_or_else(Default::default, |metric| metric.name).as_ptr()
}

/// Level 1 shares between two readings of SLOTS and PERF_METRICS that the caller took by RDPMC, `a` before `b`, of a
/// perf group of its own. Both are of the same thread, with no context switch between them and nothing that resets the
/// registers (read(2), PERF_EVENT_IOC_RESET); else `error` does not hold. For the moment of the reset itself, pass 0
/// for slots_a and metrics_a. Any thread. Returns 0, or:
///  -EINVAL          `out` is NULL, or SLOTS has more than 48 bits
///  TD_ESTALE        SLOTS went back: the registers were reset in between
///  TD_ENOTCOUNTING  SLOTS stood still, or PERF_METRICS is empty
///
/// # Safety
/// `out` is NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_raw_l1(
    slots_a: u64,
    metrics_a: u64,
    slots_b: u64,
    metrics_b: u64,
    out: *mut L1,
) -> c_int {
    // SAFETY: the pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || crate::decode_raw_l1(slots_a, metrics_a, slots_b, metrics_b)) })
}

/// Level 2 shares, of the same. Any thread. Returns as td_decode_raw_l1, and -ENOTSUP if the upper halves are empty and this CPU has
/// level 1 only.
///
/// # Safety
/// `out` is NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_raw_l2(
    slots_a: u64,
    metrics_a: u64,
    slots_b: u64,
    metrics_b: u64,
    out: *mut L2,
) -> c_int {
    // SAFETY: the pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || crate::decode_raw_l2(slots_a, metrics_a, slots_b, metrics_b)) })
}
