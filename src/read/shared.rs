//! What a reading needs, in memory that a forked child finds zeroed. One definition for the reader in this
//! library, for the one that programs inline (include/topdown_inline.h) and for who writes it.

use super::{HAS_RDPMC, MOST_COUNTERS, RawCounters, entries, entries_beside};
use crate::model::perf_metrics::MOST_MOVED;
use crate::registers::RawSlots;
use crate::sample::{Base, CATEGORIES, Head, MARKED_COUNTERS, Mark, Sample};
use crate::sys::memory::Zeroable;
use crate::sys::page::PlainCounter;
use crate::sys::thread;
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr::{addr_of_mut, null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// A sequence number that no page has at rest, when it is even: the counters were away.
const AWAY: u32 = u32::MAX;

/// The part of a handle that readings look at; the control page of SLOTS follows it in memory. The library's own: programs
/// that inline readings are compiled with it, so when it changes after the first release, what td_read_mark calls gets another name.
#[repr(C)]
pub struct Shared {
    /// Thread pointer of the thread whose calls of td_read may read the registers; 0 while nobody's may.
    pub(crate) reader: AtomicU64,
    /// The same of readings that programs inline.
    pub(crate) mark_reader: AtomicU64,
    /// Where the reader tells the kernel of its restartable sequence.
    pub(crate) rseq: Cell<*mut u64>,
    /// With more slots than this in the registers, the library wants to have a look. (arm64: in the sample.)
    pub(crate) limit: Cell<u64>,
    /// Turns the clock that user space sees into nanoseconds (`Clock::scale`).
    pub(crate) scale: Cell<u64>,
    /// 1 since td_open; 0 in a forked child, where the kernel wiped the page (MADV_WIPEONFORK).
    pub(crate) present: AtomicU64,
    /// How many general-purpose counters readings read, besides the leader's.
    pub(crate) count: Cell<u64>,
    /// Thread pointer of the thread that may read general-purpose counters; 0 if none may.
    pub(crate) counts_of: AtomicU64,
    /// What a sample would be were registers, counters and clock at zero; `base.sequence` is what the page must say.
    pub(crate) start: Cell<Sample>,
    /// RDPMC numbers of general-purpose counters: the leader's, then those of `Sample::counter`.
    pub(crate) numbers: Cell<[u32; 1 + MOST_COUNTERS]>,
    /// Where readings of so many of them begin (src/read/rdpmc.rs).
    pub(crate) entries: Cell<[usize; 2]>,
    /// Where they go on if each count of the leader is worth several slots, and how many; or from the registers.
    pub(crate) members: Cell<[usize; 2]>,
    pub(crate) slots_each: Cell<u64>,
    /// `rseq` in bytes from here; of `nowhere`, if there is none. (0 in a forked child, and who writes there does no harm.)
    pub(crate) rseq_from_here: Cell<usize>,
    /// What is written here means nothing.
    nowhere: Cell<u64>,
    /// Of a handle with two groups: the part that readings of the second group look at, which is followed by its control page;
    /// and in that part, the handle's own. Else the handle's own.
    pub(crate) second: Cell<*const Shared>,
    pub(crate) main: Cell<*const Shared>,
    /// How often its general-purpose counters were read by `raw_counters`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) looks: Cell<u64>,
    /// `count` of general-purpose counters, or 0 if each count of the leader is worth several slots: where readings of executions go on from it.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) place: Cell<u64>,
    /// `limit` of general-purpose counters, in counts of the leader's, as readings that programs inline have them.
    pub(crate) leader_limit: Cell<u64>,
}

// SAFETY: numbers, and raw pointers.
unsafe impl Zeroable for Shared {}

#[cfg(test)]
impl Default for Shared {
    fn default() -> Shared {
        Shared {
            reader: AtomicU64::new(0),
            mark_reader: AtomicU64::new(0),
            rseq: Cell::new(null_mut()),
            limit: Cell::new(0),
            scale: Cell::new(0),
            present: AtomicU64::new(1),
            count: Cell::new(0),
            start: Cell::default(),
            numbers: Cell::default(),
            entries: Cell::default(),
            members: Cell::default(),
            slots_each: Cell::default(),
            counts_of: AtomicU64::new(0),
            rseq_from_here: Cell::new(offset_of!(Shared, nowhere)),
            nowhere: Cell::default(),
            second: Cell::new(null()),
            main: Cell::new(null()),
            looks: Cell::default(),
            place: Cell::default(),
            leader_limit: Cell::default(),
        }
    }
}

/// Where the control page of SLOTS is, in bytes from the handle. The library's own.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub const TD_CONTROL_PAGE: usize = 4096;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) const SEQUENCE: usize = offset_of!(Shared, start) + offset_of!(Sample, base.sequence);

/// Types of numbers with a sample in them, which a reading of slots alone fills in.
///
/// # Safety
/// There is a `Sample` at `AT`.
pub(crate) unsafe trait HoldsSample {
    /// Bytes before it.
    const AT: usize;
}

/// Whose readings may come straight from the registers.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    /// The thread pointer.
    pub thread: u64,
    /// Its descriptor of restartable sequences.
    pub rseq: *mut u64,
    /// RDPMC cannot fault on any CPU of this machine, so a reading need not look at the page before.
    pub everywhere: bool,
}

/// `reader` of who reads general-purpose counters is so much less than the thread pointer, which is aligned.
pub(crate) const BY_COUNTERS: u64 = 2;
/// So much less, if it reads those of the second group now.
pub(crate) const BY_SECOND: u64 = 6;

/// So many counters, besides the leader's, a reading reads that programs inline. (The sixth is not read without a seventh, which counts for
/// nothing where there is none.)
const MARKED: std::ops::RangeInclusive<usize> = 3..=1 + MARKED_COUNTERS;

impl Shared {
    /// Lets a thread read the registers by itself from now on, and so many general-purpose counters beside them.
    pub fn attach(&self, reader: Reader, beside: usize) {
        self.set_rseq(reader.rseq);
        self.count.set(beside as u64);
        self.members.set(entries_beside(beside));
        compiler_fence(Ordering::SeqCst);
        self.reader.store(reader.thread, Ordering::Relaxed);
        self.mark_reader.store(if reader.everywhere { reader.thread } else { 0 }, Ordering::Relaxed);
        self.counts_of.store(0, Ordering::Relaxed);
    }

    /// Lets a thread read so many general-purpose counters, besides the leader's, by itself from now on. `slots_each`: what a count of the
    /// leader is worth.
    pub fn attach_counters(&self, reader: Reader, count: usize, slots_each: u64) {
        self.set_rseq(reader.rseq);
        self.slots_each.set(slots_each);
        self.members.set(entries(count));
        self.entries.set(if slots_each == 1 { entries(count) } else { entries(MOST_COUNTERS + 1) });
        self.count.set(count as u64);
        self.place.set(if slots_each == 1 { count as u64 } else { 0 });
        compiler_fence(Ordering::SeqCst);
        let thread = reader.thread - BY_COUNTERS;
        self.reader.store(thread, Ordering::Relaxed);
        self.counts_of.store(reader.thread, Ordering::Relaxed);
        let is_inlined = HAS_RDPMC && MARKED.contains(&count);
        self.mark_reader.store(if is_inlined { thread } else { 0 }, Ordering::Relaxed);
    }

    /// Lets a thread read the counters of the second group by itself from now on, to which `attach_counters` of `second` lets it.
    pub fn attach_second(&self, reader: Reader, second: &Shared) {
        self.set_rseq(reader.rseq);
        self.second.set(second);
        compiler_fence(Ordering::SeqCst);
        self.reader.store(reader.thread - BY_SECOND, Ordering::Relaxed);
        self.counts_of.store(0, Ordering::Relaxed);
        self.mark_reader.store(0, Ordering::Relaxed);
    }

    /// Slots that samples would have, were its counters at zero.
    pub fn slots_at_zero(&self) -> u64 {
        self.start.get().slots
    }

    /// Whether programs inline readings of these counters: such marks are of what a look has found.
    pub fn is_inlined(&self) -> bool {
        self.mark_reader.load(Ordering::Relaxed) != 0
    }

    /// The part of the second group, if the calling thread reads its counters by itself.
    #[inline(always)]
    pub fn second(&self) -> Option<&Shared> {
        let is_read = self.reader.load(Ordering::Relaxed) == thread::pointer() - BY_SECOND;
        // SAFETY: `attach_second` was given it before, and the memory of handles is never unmapped.
        is_read.then(|| unsafe { &*self.second.get() })
    }

    /// Whether a thread reads SLOTS and PERF_METRICS by itself now.
    pub fn reads_registers(&self) -> bool {
        self.reader.load(Ordering::Relaxed) != 0 && !self.reads_counters()
    }

    /// Whether a thread reads general-purpose counters by itself now, of whichever group.
    #[inline(always)]
    pub fn reads_counters(&self) -> bool {
        self.reader.load(Ordering::Relaxed) % 4 == 4 - BY_COUNTERS
    }

    /// What samples of general-purpose counters start from, if the calling thread may read executions by them, and none is being changed.
    pub fn counters_start(&self) -> Option<Sample> {
        let start = self.start.get();
        (HAS_RDPMC && self.may_count() && start.base.sequence != AWAY).then_some(start)
    }

    /// How many general-purpose counters are read besides the leader's.
    #[inline(always)]
    pub fn counters(&self) -> usize {
        self.count.get() as usize
    }

    /// With more slots than this in the leader's counter, the library wants to have a look.
    #[inline(always)]
    pub fn limit(&self) -> u64 {
        self.limit.get()
    }

    /// Whether the calling thread reads general-purpose counters by itself.
    #[inline(always)]
    pub fn may_count(&self) -> bool {
        thread::pointer() == self.counts_of.load(Ordering::Relaxed)
    }

    /// Sends readings to the slow path until the next `restart`.
    pub fn pause(&self) {
        self.set_sequence(AWAY);
    }

    /// Sends all readings to the slow path.
    pub fn detach(&self) {
        self.pause();
        self.reader.store(0, Ordering::Relaxed);
        self.mark_reader.store(0, Ordering::Relaxed);
        self.counts_of.store(0, Ordering::Relaxed);
    }

    fn set_rseq(&self, rseq: *mut u64) {
        self.rseq.set(rseq);
        self.rseq_from_here.set(rseq.addr().wrapping_sub(std::ptr::from_ref(self).addr()));
    }

    /// Nobody reads it yet. (The memory may have been another handle's.)
    pub fn prepare(&self) {
        self.prepare_for(self);
    }

    /// The same of the part for the second group of a handle.
    pub fn prepare_for(&self, main: &Shared) {
        self.main.set(main);
        self.second.set(null());
        self.forget_rseq();
    }

    fn forget_rseq(&self) {
        self.rseq.set(null_mut());
        self.rseq_from_here.set(offset_of!(Shared, nowhere));
    }

    /// Lets the calling thread, the reader, point the kernel to its restartable sequence no longer.
    /// (The address stays: a reading that this signal handler interrupted before it took the address writes there yet.)
    pub fn leave(&self) {
        let rseq = self.rseq.get();
        if !rseq.is_null() {
            // SAFETY: the descriptor is the calling thread's, as it was when `attach` was given it.
            unsafe { rseq.write(0) };
        }
    }

    fn set_sequence(&self, sequence: u32) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: a field of our own cell.
        unsafe { addr_of_mut!((*self.start.as_ptr()).base.sequence).write_volatile(sequence) };
        compiler_fence(Ordering::SeqCst);
    }

    /// The bound of samples from here on is so much larger.
    pub fn add_error(&self, slots: u64) {
        // SAFETY: a field of our own cell, aligned; a signal handler that changes it comes before this, or after.
        let error = unsafe { AtomicU64::from_ptr(addr_of_mut!((*self.start.as_ptr()).base.error)) };
        error.fetch_add(slots, Ordering::Relaxed);
    }

    /// As `Sample::skip`, and the bound is so much larger; the thread's own readings are not to come from the registers meanwhile, nor after it if a signal
    /// handler has changed this, and the skip is not `newest` any more.
    pub fn skip(
        &self,
        slots: RawSlots,
        parts: &[i64; CATEGORIES],
        error: u64,
        newest: impl FnOnce() -> bool,
    ) {
        // SAFETY: our own cell, and nobody holds a reference to what is in it.
        let start = unsafe { &mut *self.start.as_ptr() };
        let sequence = start.base.sequence;
        self.set_sequence(AWAY);
        start.skip(slots, parts);
        start.base.error += error;
        compiler_fence(Ordering::SeqCst);
        self.set_sequence(if newest() { sequence } else { AWAY });
    }

    /// Changes what samples start from. A signal handler that reads meanwhile does not see half of it; if it changed this
    /// itself, the change is not `newest` any more, and readings take the slow path.
    pub fn restart(&self, scale: u64, limit: u64, start: &Head, newest: impl Fn() -> bool) {
        self.set_sequence(AWAY);
        self.scale.set(scale);
        self.limit.set(limit);
        // SAFETY: our own cell; a sample begins with its head (src/sample.rs), and nobody holds a reference to it.
        let head = unsafe { &mut *self.start.as_ptr().cast::<Head>() };
        *head = Head { base: Base { sequence: AWAY, ..start.base }, ..*start };
        compiler_fence(Ordering::SeqCst);
        // (if a handler changes all of it between the two halves of this line, the number is right, or the page has moved on)
        self.set_sequence(if newest() { start.base.sequence } else { AWAY });
    }

    /// So much of what general-purpose counters have counted does not count, and the bound is this: readings start from here now.
    pub fn take_out(&self, own: &RawCounters, error: u64, sequence: u32, newest: impl Fn() -> bool) {
        // SAFETY: our own cell, and nobody holds a reference to what is in it.
        let start = unsafe { &mut *self.start.as_ptr() };
        let [slots, counters @ ..] = &own.counter;
        start.slots = start.slots.wrapping_sub(slots.wrapping_mul(self.slots_each.get()));
        start.slots_before = start.slots; // no register holds any
        start.counter.iter_mut().zip(counters).for_each(|(all, own)| *all = all.wrapping_sub(*own));
        start.base.error = error;
        self.set_sequence(if newest() { sequence } else { AWAY });
        if !newest() {
            self.pause();
        }
    }

    /// As `restart`, with general-purpose counters beside the registers, at a reading where they said this; so much less of them counts.
    pub fn restart_beside(
        &self,
        (scale, limit): (u64, u64),
        start: &Head,
        beside: (&[PlainCounter; MOST_MOVED], &[u64; MOST_MOVED], usize),
        newest: impl Fn() -> bool,
    ) {
        let (counters, less, count) = beside;
        self.set_sequence(AWAY);
        if count > 0 {
            // (where there is one, it is read twice)
            let [first, second] = [0, count - 1].map(|k| counters[k].number);
            let mut numbers = self.numbers.get();
            (numbers[1], numbers[2]) = (first, second);
            self.numbers.set(numbers);
            // SAFETY: our own cell, and nobody holds a reference to what is in it.
            let start = unsafe { &mut *self.start.as_ptr() };
            for k in 0..MOST_MOVED {
                start.counter[k] = counters[k].base.wrapping_sub(less[k]);
            }
        }
        self.restart(scale, limit, start, &newest);
        // (as in `restart_counters`)
        if !newest() {
            self.pause();
        }
    }

    /// What samples start from now. (A signal handler that changes it meanwhile leaves numbers of two readings here.)
    #[inline(always)]
    pub fn start(&self) -> Sample {
        self.start.get()
    }

    /// What the fast path saw beside the registers, before it left a reading to the slow path.
    pub fn seen_beside(&self, out: &Sample) -> [PlainCounter; MOST_MOVED] {
        let (start, numbers) = (self.start.get(), self.numbers.get());
        std::array::from_fn(|k| PlainCounter {
            number: numbers[1 + k],
            raw: out.counter[k].wrapping_sub(start.counter[k]),
            ..PlainCounter::default()
        })
    }

    /// The mark of a reading of registers, as a program that inlines it would have noted it. None: a signal handler has changed what
    /// samples start from since the reading.
    pub fn mark_of_registers(&self, sample: &Sample) -> Option<Mark> {
        let of = |base: &Base| (base.sequence, base.window, base.period);
        let mut mark = sample.mark();
        let seen = self.seen_beside(sample);
        for (place, counter) in mark.counter.iter_mut().zip(&seen[..self.counters().min(MOST_MOVED)]) {
            *place = counter.raw;
        }
        compiler_fence(Ordering::SeqCst);
        (of(&self.start.get().base) == of(&sample.base)).then_some(mark)
    }

    /// As `restart`, of general-purpose counters with these RDPMC numbers, and what their totals are without what they say.
    pub fn restart_counters(
        &self,
        (scale, limit, leader_limit): (u64, u64, u64),
        start: &Head,
        numbers: &[u32; 1 + MOST_COUNTERS],
        counter: &[u64; MOST_COUNTERS],
        newest: impl Fn() -> bool,
    ) {
        self.set_sequence(AWAY);
        self.numbers.set(*numbers);
        self.leader_limit.set(leader_limit);
        // SAFETY: our own cell, and nobody holds a reference to what is in it.
        unsafe { (*self.start.as_ptr()).counter = *counter };
        self.restart(scale, limit, start, &newest);
        // (a handler that comes from here on and changes something pauses after it)
        if !newest() {
            self.pause();
        }
    }
}

const _: () = {
    assert!(offset_of!(Shared, start) == 64 && size_of::<Shared>() <= TD_CONTROL_PAGE);
    assert!(offset_of!(Sample, base.window) == offset_of!(Sample, base.sequence) + 4 && SEQUENCE % 8 == 0);
    // a reading copies what comes before the register; of general-purpose counters, what comes before the categories
    assert!(offset_of!(Sample, raw_metrics) == 128 && offset_of!(Sample, base.category) == 72);
    assert!(offset_of!(Sample, base.error) == 64);
    // `reads_counters`
    assert!(BY_SECOND % 4 == BY_COUNTERS % 4);
};
