//! A node of the tree of a thread's regions, and how what it measures goes to its record in the table file.

use super::clocks::{BeginTimes, ExecutionTimes};
use super::handle::ThreadHandle;
use crate::arena::Arena;
use crate::measurement;
use crate::name::Name;
use crate::record::OwnRecord;
use std::cell::{Cell, UnsafeCell};
use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{compiler_fence, fence};
use topdown::{Execution, Increments, PeriodTotals, Result, Sample, Sum, TopDown};
use topdown_table::{Measurement, NONE, RecordedCounts};

const _: () = {
    assert!(size_of::<Increments>() == size_of::<RecordedCounts>() && align_of::<RecordedCounts>() == 16);
    assert!(offset_of!(Increments, counter) == offset_of!(RecordedCounts, counter));
};

/// Executions that have ended, and nanoseconds in them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SoFar {
    pub executions: u64,
    pub ns: u64,
}

/// A region in the place where it began. It stays as long as the thread's state, which is for good.
#[repr(C, align(128))]
pub struct RegionNode {
    /// What was measured, but for what is in `counted`. How many executions there were and what they took is in `measurement`, and
    /// here only while a call of the slow path needs it.
    sum: UnsafeCell<Sum>,
    parent: Cell<*const RegionNode>,
    name: Cell<Name>,
    record: Cell<Option<OwnRecord>>,
    /// The one of the record's that holds.
    measurement: Cell<*mut Measurement>,
    /// The one of the record's that holds, and the other one.
    counted: Cell<[*mut Increments; 2]>,
    number: Cell<u32>,
    direct: Cell<bool>,
    hash: Cell<u32>,
    spread: Cell<u32>,
    children: Cell<Option<&'static RegionNode>>,
    sibling: Cell<Option<&'static RegionNode>>,
    since: Cell<SoFar>,
    in_turns: Cell<Option<&'static Cell<Sum>>>,
    /// Of a thread without counters: where the present execution began.
    begun: Cell<Option<BeginTimes>>,
}

/// `spread` of a thread's own node.
const ROOT_SPREAD: u32 = 0x9e37_79b1;

static NOTHING_COUNTED: Increments = Increments { slots: 0, ns: 0, counter: [0; 15] };

impl RegionNode {
    /// A node in the arena, and nothing is measured of it yet. (It is as long as a small thread's stack can bear but once, and so made in
    /// its place.) None for `within`: it is a thread's own; for a record: there was no room in the table. None: there is no memory.
    pub fn new(
        arena: &Arena,
        within: Option<&'static RegionNode>,
        name: Name,
        hash: u32,
        record: Option<(OwnRecord, u32)>,
    ) -> Option<&'static RegionNode> {
        // SAFETY: zeros are integers, sums and null pointers; of a name they are the head of none, and no text, until `set`.
        let node: &'static RegionNode = unsafe { arena.zeroed()? };
        node.name.set(name);
        node.parent.set(within.map_or(null(), from_ref));
        node.hash.set(hash);
        node.spread.set(if within.is_none() { ROOT_SPREAD } else { hash | 1 });
        node.number.set(record.map_or(NONE, |(_, number)| number));
        node.record.set(record.map(|(record, _)| record));
        node.direct.set(true);
        node.measure_from_zero();
        if let Some(within) = within {
            node.sibling.set(within.children.replace(Some(node)));
        }
        Some(node)
    }

    /// What the record's first halves have is what holds.
    fn measure_from_zero(&self) {
        let (measurement, counted) = match self.record.get() {
            Some(record) => {
                (record.measurement().as_ptr().cast(), [0, 1].map(|which| counted_of(record, which)))
            }
            None => (null_mut(), [from_ref(&NOTHING_COUNTED).cast_mut(); 2]),
        };
        self.measurement.set(measurement);
        self.counted.set(counted);
    }

    /// The node has an execution of nothing in the place of another's, to be counted by this sum; nothing of it is counted yet.
    pub fn stand_in_for(&self, other: &RegionNode, sum: Sum) {
        if let Some(record) = self.record.get() {
            record.counted_executions().store(0, Relaxed);
            record.counted().set(Default::default());
        }
        self.parent.set(other.parent.get());
        self.name.set(other.name.get());
        self.number.set(other.number.get());
        self.direct.set(true);
        self.measure_from_zero();
        self.set_sum(sum);
    }

    /// Whether the node is below this one.
    #[inline(always)]
    pub fn is_within(&self, parent: &RegionNode) -> bool {
        std::ptr::eq(self.parent.get(), parent)
    }

    /// None: the node is a thread's own.
    pub fn parent(&self) -> Option<&'static RegionNode> {
        // SAFETY: nodes stay for good.
        unsafe { self.parent.get().as_ref() }
    }

    /// Nodes below this one, the last first.
    pub fn first_child(&self) -> Option<&'static RegionNode> {
        self.children.get()
    }

    /// The next one below the same parent.
    pub fn sibling(&self) -> Option<&'static RegionNode> {
        self.sibling.get()
    }

    /// Kept in the node's record, or in the arena if there is none.
    #[inline(always)]
    pub fn name(&self) -> &Name {
        // SAFETY: the name is changed only by `stand_in_for`, of a node whose name nobody holds.
        unsafe { &*self.name.as_ptr() }
    }

    /// None: there was no room.
    #[inline(always)]
    pub fn record(&self) -> Option<OwnRecord> {
        self.record.get()
    }

    /// Of the record.
    pub fn number(&self) -> u32 {
        self.number.get()
    }

    /// Of the name and the parent (`index`).
    pub fn hash(&self) -> u32 {
        self.hash.get()
    }

    /// What the cache's places of the node's children begin from: odd.
    #[inline(always)]
    pub fn spread(&self) -> u32 {
        self.spread.get()
    }

    /// All its executions were begun by td_region_begin, as those of nothing are.
    #[inline(always)]
    pub fn is_direct(&self) -> bool {
        self.direct.get()
    }

    pub fn set_direct(&self, direct: bool) {
        self.direct.set(direct);
    }

    /// What does not count for a program that asks for totals.
    pub fn since(&self) -> SoFar {
        self.since.get()
    }

    /// What the node has come to no longer counts for these.
    pub fn forget(&self) {
        self.since.set(self.so_far());
    }

    /// Where groups take turns: the sum as the last turn in which the region was executed ended, in this place.
    pub fn last_turn(&self, make: impl FnOnce() -> Option<&'static Cell<Sum>>) -> Option<&'static Cell<Sum>> {
        if self.in_turns.get().is_none() {
            self.in_turns.set(make());
        }
        self.in_turns.get()
    }
}

/// What the node's thread does with it. None of these calls comes back to the node.
impl RegionNode {
    /// What was measured, but for what is counted steadily.
    pub fn sum(&self) -> Sum {
        // SAFETY: nobody has a reference to the sum.
        unsafe { *self.sum.get() }
    }

    /// The last sample that was added to the sum.
    #[inline]
    pub fn last(&self) -> Sample {
        self.with_sum(|sum| sum.last)
    }

    pub fn set_sum(&self, sum: Sum) {
        // SAFETY: as above.
        unsafe { *self.sum.get() = sum };
    }

    /// For calls that need a part of the sum alone.
    #[inline]
    fn with_sum<R>(&self, work: impl FnOnce(&mut Sum) -> R) -> R {
        // SAFETY: `work` is of this file, and none of it comes back here.
        work(unsafe { &mut *self.sum.get() })
    }

    /// What was counted steadily.
    #[inline]
    pub fn counted(&self) -> Increments {
        // SAFETY: the record's, or `NOTHING_COUNTED`.
        unsafe { self.counted.get()[0].read() }
    }

    /// An execution begins, in a call of the slow path.
    #[inline]
    pub fn begin(&self, td: ThreadHandle) -> Result<()> {
        let Some(td) = td.counters() else {
            self.begin_by_clocks();
            return Ok(());
        };
        // SAFETY: as `counted`; a reading writes to none of these.
        let before = unsafe { &*self.counted.get()[0] };
        self.with_sum(|sum| td.begin(sum, before))
    }

    /// As `TopDown::end`.
    #[inline]
    pub fn end(&self, td: &TopDown) -> Result<PeriodTotals> {
        // SAFETY: as `begin`.
        let before = unsafe { &*self.counted.get()[0] };
        self.with_sum(|sum| td.end(sum, before))
    }

    /// Whether an execution has begun, and not ended.
    pub fn has_begun(&self) -> bool {
        self.with_sum(|sum| sum.has_begun())
    }

    /// Whether only the slots of the present execution are counted.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.with_sum(|sum| sum.is_counting())
    }

    /// Whether the last execution was counted steadily.
    pub fn was_steady(&self) -> bool {
        self.with_sum(|sum| sum.was_steady())
    }

    /// Whether an execution of nothing is due before the next.
    #[inline]
    pub fn is_empty_due(&self) -> bool {
        self.with_sum(|sum| sum.is_empty_due())
    }

    /// As `TopDown::empty`.
    pub fn empty(&self, td: &TopDown) -> Option<Sum> {
        self.with_sum(|sum| td.empty(sum))
    }

    /// As `Sum::add_empty`.
    pub fn add_empty(&self, counted: &[Increments; 2]) {
        self.with_sum(|sum| sum.add_empty(counted));
    }

    /// As `Sum::set_empties`.
    pub fn set_empties(&self, empties: &topdown::Empties) {
        self.with_sum(|sum| sum.set_empties(empties));
    }

    /// As `Sum::go_on`.
    pub fn go_on(&self, then: &Sample, now: &Sample) {
        self.with_sum(|sum| sum.go_on(then, now));
    }

    /// What the node's executions have come to.
    pub fn so_far(&self) -> SoFar {
        let Some(record) = self.record() else { return SoFar::default() };
        // SAFETY: the record's.
        let (executions, ns) =
            unsafe { ((*self.measurement.get()).executions, (*self.measurement.get()).enabled_ns) };
        let counted = record.counted_executions().load(Relaxed);
        SoFar { executions: executions + counted, ns: ns + self.counted().ns }
    }
}

/// Executions in a thread without counters.
impl RegionNode {
    /// One begins.
    #[inline]
    pub fn begin_by_clocks(&self) {
        // SAFETY: the record's.
        let of = unsafe { self.measurement.get().as_ref() };
        let begun = of.map(|of| BeginTimes::new(of.executions, of.measured, of.enabled_ns));
        self.begun.set(begun);
    }

    /// It ends, and is one more of the record's: elapsed time goes to that in which counters are enabled, CPU time to that in which they run.
    /// None: none has begun.
    #[inline]
    pub fn end_by_clocks(&self) -> Option<PeriodTotals> {
        // (a handler that leaves by siglongjmp leaves none begun)
        let ExecutionTimes { elapsed_ns, cpu_ns, now_ns } = self.begun.take()?.end();
        let to = self.measurement.get();
        // SAFETY: the record's, since one has begun.
        unsafe {
            (*to).executions = (*to).executions.wrapping_add(1);
            (*to).measured = (*to).measured.wrapping_add(cpu_ns.is_some().into());
            (*to).enabled_ns = (*to).enabled_ns.wrapping_add(elapsed_ns);
            (*to).running_ns = (*to).running_ns.wrapping_add(cpu_ns.unwrap_or(0));
        }
        Some(PeriodTotals { slots: 0, ns: now_ns })
    }
}

/// What the node measures goes to its record.
impl RegionNode {
    /// As `TopDown::begin_steadily`.
    #[inline(always)]
    pub fn begin_steadily(&self, td: &TopDown) -> bool {
        // SAFETY: as `begin`. A handler that comes between and begins this region finds that it has begun.
        unsafe { td.begin_steadily(&mut *self.sum.get(), &*self.counted.get()[0]) }
    }

    /// The present execution ends, of which the slots alone were counted. None: nothing happened.
    ///
    /// # Safety
    /// The node has a record.
    #[inline(always)]
    pub unsafe fn end_steadily(&self, td: &TopDown) -> Option<PeriodTotals> {
        // SAFETY: the caller's word; as `begin_steadily`.
        unsafe {
            let (execution, seen) = td.end_steadily(&mut *self.sum.get())?;
            let Execution { slots, enabled_ns, running_ns } = execution;
            let to = self.measurement.get();
            (*to).executions = (*to).executions.wrapping_add(1);
            (*to).slots = (*to).slots.wrapping_add(slots);
            (*to).enabled_ns = (*to).enabled_ns.wrapping_add(enabled_ns);
            (*to).running_ns = (*to).running_ns.wrapping_add(running_ns);
            Some(seen)
        }
    }

    /// The present execution ends, and general-purpose counters tell all of it: it is added to those of which they did. None: nothing
    /// happened. The file has those before or this one too, and no mixture.
    ///
    /// # Safety
    /// The node has a record.
    #[inline(always)]
    pub unsafe fn end_counted(&self, td: &TopDown) -> Option<PeriodTotals> {
        // SAFETY: the caller's word; as `begin_steadily`.
        unsafe {
            let [_, next] = self.counted.get();
            let record = self.record.get().unwrap_unchecked();
            let (executions, ahead) = (record.counted_executions(), record.counted_next());
            // (a handler that leaves by siglongjmp leaves it one ahead; set, not added to, it never is two ahead)
            ahead.store(executions.load(Relaxed).wrapping_add(1), Release);
            let Some(seen) = td.end_counted(&mut *self.sum.get(), &mut *next) else {
                ahead.store(executions.load(Relaxed), Release);
                return None;
            };
            // (no other thread writes to it: a plain addition, of one instruction)
            in_order();
            *executions.as_ptr() = (*executions.as_ptr()).wrapping_add(1);
            self.counted.set([next, self.counted.get()[0]]);
            Some(seen)
        }
    }

    /// The sum is complete: with what `end_steadily` has added.
    pub fn complete(&self) {
        if self.record().is_none() {
            return;
        }
        // SAFETY: the record's.
        let from = unsafe { &*self.measurement.get() };
        self.with_sum(|sum| {
            sum.executions = from.executions;
            sum.slots = from.slots;
            sum.time_enabled_ns = from.enabled_ns;
            sum.time_running_ns = from.running_ns;
        });
    }

    /// The sum has an execution more whose slots alone were counted.
    pub fn store_totals(&self) {
        if self.record().is_none() {
            return;
        }
        let to = self.measurement.get();
        // SAFETY: the record's.
        self.with_sum(|sum| unsafe {
            (*to).executions = sum.executions;
            (*to).slots = sum.slots;
            (*to).enabled_ns = sum.time_enabled_ns;
            (*to).running_ns = sum.time_running_ns;
        });
    }

    /// The sum has a measured execution more. The file has the sum before or this one, and no mixture: it is written beside the
    /// one that holds, and then takes its place. (Not inlined: a reading needs the stack that it takes.)
    #[inline(never)]
    pub fn store(&self) {
        let Some(record) = self.record() else { return };
        let next = 1 - (record.current().load(Relaxed) & 1);
        let place = record.measurement().as_ptr().cast::<Measurement>().wrapping_add(next as usize);
        // SAFETY: one of the record's two.
        self.with_sum(|sum| unsafe { place.write(measurement::of(sum)) });
        record.current().store(next, Release);
        self.measurement.set(place);
        // (a handler may have left `end_counted` by siglongjmp before these two followed the record)
        let holds = (record.counted_executions().load(Relaxed) & 1) as usize;
        self.counted.set([holds, 1 - holds].map(|which| counted_of(record, which)));
    }
}

/// One of the two of a record, as the core has it.
fn counted_of(record: OwnRecord, which: usize) -> *mut Increments {
    record.counted().as_ptr().cast::<Increments>().wrapping_add(which)
}

/// What was written before is seen by other processes before what is written after.
#[inline(always)]
fn in_order() {
    // (x86-64 keeps the order of writes)
    if cfg!(target_arch = "x86_64") { compiler_fence(SeqCst) } else { fence(Release) }
}

/// Which of the names is the node's.
impl RegionNode {
    pub fn is_called(&self, name: &CStr) -> bool {
        self.name().is(name)
    }
}
