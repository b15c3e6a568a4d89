//! What nodes measure goes to their records in the table file.

use super::node::RegionNode;
use super::thread::ThreadState;
use crate::measurement;
use std::ptr::addr_of_mut;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{compiler_fence, fence};
use topdown::{Execution, PeriodTotals, Sample, TopDown};

/// An execution more whose slots alone were counted.
///
/// # Safety
/// The calling thread's node, which has a record.
#[inline(always)]
pub unsafe fn add(node: *mut RegionNode, execution: Execution) {
    // SAFETY: the record is mapped as long as the process is this one, and nobody else writes to it.
    unsafe {
        let to = (*node).measurement;
        (*to).executions = (*to).executions.wrapping_add(1);
        (*to).slots = (*to).slots.wrapping_add(execution.slots);
        (*to).enabled_ns = (*to).enabled_ns.wrapping_add(execution.enabled_ns);
        (*to).running_ns = (*to).running_ns.wrapping_add(execution.running_ns);
    }
}

/// The present execution ends, and plain counters tell all of it: it is added to those of which they did. None: nothing happened.
/// The file has those before or this one too, and no mixture.
///
/// # Safety
/// As `add`, with the thread's handle.
#[inline(always)]
pub unsafe fn add_counted(node: *mut RegionNode, td: &TopDown) -> Option<PeriodTotals> {
    // SAFETY: as `add`.
    unsafe {
        let (record, next) = ((*node).record, (*node).counted[1]);
        let (executions, ahead) = (&(*record).counted_executions, &(*record).counted_next);
        // (a handler that leaves by siglongjmp leaves it one ahead; set, not added to, it never is two ahead)
        ahead.store(executions.load(Relaxed).wrapping_add(1), Release);
        let Some(seen) = td.end_counted(&mut (*node).sum, &mut *next) else {
            ahead.store(executions.load(Relaxed), Release);
            return None;
        };
        // (no other thread writes to it: a plain addition, of one instruction)
        in_order();
        *executions.as_ptr() = (*executions.as_ptr()).wrapping_add(1);
        (*node).counted = [next, (*node).counted[0]];
        Some(seen)
    }
}

/// What was written before is seen by other processes before what is written after.
#[inline(always)]
fn in_order() {
    // (x86-64 keeps the order of writes)
    if cfg!(target_arch = "x86_64") { compiler_fence(SeqCst) } else { fence(Release) }
}

/// So far the thread has come.
///
/// # Safety
/// The calling thread's state.
#[inline(always)]
pub unsafe fn saw(thread: *mut ThreadState, seen: PeriodTotals) {
    // SAFETY: the thread's record is mapped as long as the process is this one.
    unsafe {
        let record = (*thread).record;
        (*record).seen_slots = seen.slots.wrapping_sub((*thread).zero.slots);
        (*record).seen_ns = seen.ns.wrapping_sub((*thread).zero.ns);
    }
}

/// The node's sum is complete: with what `add` has added.
///
/// # Safety
/// As `add`.
pub unsafe fn complete(node: *mut RegionNode) {
    // SAFETY: as `add`.
    unsafe {
        let (sum, from) = (addr_of_mut!((*node).sum), (*node).measurement);
        (*sum).executions = (*from).executions;
        (*sum).slots = (*from).slots;
        (*sum).time_enabled_ns = (*from).enabled_ns;
        (*sum).time_running_ns = (*from).running_ns;
    }
}

/// The sum has an execution more whose slots alone were counted.
///
/// # Safety
/// As `add`.
pub unsafe fn store_totals(node: *mut RegionNode) {
    // SAFETY: as `add`.
    unsafe {
        let (sum, to) = (addr_of_mut!((*node).sum), (*node).measurement);
        (*to).executions = (*sum).executions;
        (*to).slots = (*sum).slots;
        (*to).enabled_ns = (*sum).time_enabled_ns;
        (*to).running_ns = (*sum).time_running_ns;
    }
}

/// The sum has a measured execution more. The file has the sum before or this one, and no mixture: it is written beside the
/// one that holds, and then takes its place.
///
/// # Safety
/// As `add`.
pub unsafe fn store(node: *mut RegionNode) {
    // SAFETY: as `add`.
    unsafe {
        let record = (*node).record;
        let next = 1 - ((*record).current.load(Relaxed) & 1);
        let place = addr_of_mut!((*record).measurement[next as usize]);
        place.write(measurement::of(&(*node).sum));
        (*record).current.store(next, Release);
        (*node).measurement = place;
        // (a handler may have left `add_counted` by siglongjmp before these two followed the record)
        let holds = ((*record).counted_executions.load(Relaxed) & 1) as usize;
        (*node).counted = [holds, 1 - holds].map(|which| addr_of_mut!((*record).counted[which]).cast());
    }
}

/// The thread's own figures, up to this reading.
///
/// # Safety
/// The state of the calling thread, or of one that is stopped for good.
pub unsafe fn publish(thread: *mut ThreadState, now: &Sample) {
    // SAFETY: the thread's node and record.
    unsafe {
        let mut sum = (*thread).before;
        if sum.add(&(*thread).start, now).is_ok() {
            let node = ThreadState::root(thread);
            (*node).sum = sum;
            store(node);
        }
    }
}
