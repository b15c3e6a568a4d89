//! Executions that the library reads itself: which of them are measured, and where each begins and ends.
#![forbid(unsafe_code)]

use super::empties::DUE;
use super::{BETWEEN, COUNTED, COUNTING, MEASURING, STEADY, Sum};
use crate::bound::{LEAST_SAMPLE, WORK_AFTER, WORK_BEFORE};
use crate::error::{Error, Result, TD_ESTALE};
use crate::model::tree::Tree;
use crate::model::{MARK, counters_down_to};
use crate::sample::{Base, Increments, Sample, SlotsOnly};
use crate::sys::at_once;
use crate::sys::signals::SignalBlock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

/// A sequence number of no page at rest: it is odd.
const NEVER: u32 = 1;

/// An execution whose slots alone were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Execution {
    /// Pipeline slots.
    pub slots: u64,
    /// Nanoseconds.
    pub enabled_ns: u64,
    /// Nanoseconds of those in which the counters were counting.
    pub running_ns: u64,
}

/// An execution that is to end: how it is counted, and what it began with.
#[derive(Clone, Copy)]
pub(crate) struct OpenExecution {
    /// As `Sum::state`.
    state: u32,
    from: Sample,
}

impl OpenExecution {
    /// Whether it is measured.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self.state, MEASURING | COUNTED)
    }

    /// One that was counted steadily: what it began with, besides `before`, as a sample, where samples start from `start`.
    fn measured(self, start: &Sample, before: &Increments) -> OpenExecution {
        let from = &self.from;
        let slots = from.slots.wrapping_add(before.slots);
        let ns = from.time_enabled_ns.wrapping_add(before.ns);
        let counter = |k: usize| from.counter[k].wrapping_add(before.counter[k]);
        let from = Sample {
            slots: start.slots.wrapping_add(slots),
            slots_before: start.slots_before.wrapping_add(slots), // no register holds any
            time_enabled_ns: start.time_enabled_ns.wrapping_add(ns),
            time_running_ns: start.time_running_ns.wrapping_add(ns),
            counter: std::array::from_fn(|k| start.counter[k].wrapping_add(counter(k))),
            ..*start
        };
        OpenExecution { from, ..self }
    }
}

impl Sum {
    /// Whether the execution that begins is one of those that are not to be measured. (Of those that are counted steadily: whether
    /// an empty one is due, which comes to the same branch: no reading of slots alone begins it.)
    #[inline(always)]
    pub(crate) fn begins_unmeasured(&mut self) -> bool {
        self.wait = self.wait.wrapping_sub(1);
        self.wait as i64 >= 0
    }

    /// It has begun, with the reading in `from`; or that failed.
    #[inline(always)]
    pub(crate) fn has_begun_unmeasured(&mut self, begun: bool) -> bool {
        if begun {
            self.state = COUNTING;
        } else {
            self.wait = self.wait.wrapping_add(1);
        }
        begun
    }

    /// The execution ends, of which so much was counted, by handle and period of the reading that ends it. None: no execution has begun with
    /// this handle and in this period, and nothing happened. The caller adds it up.
    #[inline(always)]
    pub(crate) fn end_since(&mut self, since: &SlotsOnly) -> Option<Execution> {
        if self.state != COUNTING || !self.began_with(since) {
            return None;
        }
        self.state = BETWEEN;
        Some(Execution { slots: since.slots, enabled_ns: since.enabled, running_ns: since.running })
    }

    /// The execution, of which slots alone are counted, ends with these totals. None: it did not begin with this handle and in this period,
    /// and nothing happened. The caller adds it up.
    #[inline(always)]
    pub(crate) fn end_steadily(&mut self, to: &SlotsOnly) -> Option<Execution> {
        if !self.began_with(to) {
            return None;
        }
        self.state = BETWEEN;
        Some(Execution {
            slots: to.slots.wrapping_sub(self.from.slots),
            enabled_ns: to.enabled.wrapping_sub(self.from.time_enabled_ns),
            running_ns: to.running.wrapping_sub(self.from.time_running_ns),
        })
    }

    /// Whether the present execution began with this handle, in this period.
    #[inline(always)]
    fn began_with(&self, read: &SlotsOnly) -> bool {
        let of = |handle: u32, period: u32| u64::from(period) << 32 | u64::from(handle); // one comparison
        of(self.from.base.handle, self.from.base.period) == of(read.handle, read.period)
    }

    /// Adds it.
    #[inline(always)]
    pub(crate) fn add_execution(&mut self, execution: &Execution) -> bool {
        self.size = size_of::<Sum>() as u32;
        let Execution { slots, enabled_ns, running_ns } = *execution;
        for (all, more) in [
            (&mut self.executions, 1),
            (&mut self.slots, slots),
            (&mut self.time_enabled_ns, enabled_ns),
            (&mut self.time_running_ns, running_ns),
        ] {
            at_once::add_saturating(all, more);
        }
        true
    }

    /// Whether an execution has begun, and not ended.
    #[inline]
    pub fn has_begun(&self) -> bool {
        matches!(self.state, COUNTING | MEASURING | COUNTED)
    }

    /// Whether only the slots of the present execution are counted.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.state == COUNTING
    }

    /// Whether the present execution was to be measured, or the last one: the next is not chosen yet.
    #[inline]
    pub(crate) fn was_due(&self) -> bool {
        (self.wait as i64) < 0
    }

    /// Whether the next execution is to be measured.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.is_empty_due() || !self.begins_unmeasured()
    }

    /// An execution begins; whatever began before does not count.
    #[inline]
    pub(crate) fn begins_anew(&mut self) {
        self.state = BETWEEN;
    }

    /// An execution begins with this reading, and only its slots are counted.
    #[inline]
    pub(crate) fn begins(&mut self, from: SlotsOnly) {
        self.state = COUNTING;
        compiler_fence(SeqCst); // a signal handler that ends one of this sum in between leaves none begun
        self.from.slots = from.slots;
        self.from.time_enabled_ns = from.enabled;
        self.from.time_running_ns = from.running;
        self.from.base.handle = from.handle;
        self.from.base.period = from.period;
    }

    /// An execution begins, to be measured if its window is fresh.
    pub(crate) fn begins_measured(&mut self, from: Sample, fresh: bool) {
        if self.begun_ns == 0 {
            self.begun_ns = from.time_enabled_ns.max(1);
        }
        self.state = if fresh { MEASURING } else { COUNTING };
        compiler_fence(SeqCst); // as in `begins`
        self.from = from;
    }

    /// Nanoseconds from one execution to the next, on average.
    pub(crate) fn turn_ns(&self, now: u64) -> u64 {
        // (in a later thread the begin lies before that thread's own time: see `go_on`)
        now.wrapping_sub(self.begun_ns) / self.executions.max(1)
    }

    /// One in so many executions can be measured: chooses the next, at random. How often they come is not known of the first, and
    /// little of the first few: none is to wait for longer than those took together.
    pub(crate) fn choose_next(&mut self, one_in: u64) {
        self.wait = self.random_below(one_in.min(self.executions.max(1)).min(1 << 60));
    }

    /// Where each is measured: chooses the next empty one.
    pub(crate) fn choose_next_empty(&mut self) {
        self.wait = DUE + 1 + self.random_below(self.empties().one_in());
    }

    /// One of 0 to twice this less two, evenly.
    fn random_below(&mut self, mean: u64) -> u64 {
        if self.random == 0 {
            self.random = 0x9e37_79b9_7f4a_7c15 ^ self.begun_ns ^ self.from.slots << 32;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % (2 * mean).saturating_sub(1).max(1)
    }

    /// `wait` before the fast path looked whether the next execution is to be measured, which it was.
    pub(crate) fn wait_before(&self) -> u64 {
        if self.was_due() && !self.is_empty_due() { self.wait.wrapping_add(1) } else { self.wait }
    }

    /// Whether hardly an execution was measured yet.
    pub(crate) fn is_new(&self) -> bool {
        self.measured < LEAST_SAMPLE
    }

    /// Whether the next execution, or the present one, may be counted steadily: the one before was by general-purpose counters.
    #[inline(always)]
    pub(crate) fn is_steady(&self) -> bool {
        self.state >= STEADY
    }

    /// Whether that is so of the next, and none has begun. (One that was begun and left by siglongjmp is for the slow path.)
    #[inline(always)]
    pub(crate) fn is_between_steady(&self) -> bool {
        self.state == STEADY
    }

    /// From now on executions are counted steadily that begin and end while this is what samples start from. False: they cannot
    /// be, as it is of another kind of core, or another level.
    pub(crate) fn starts_from(&mut self, start: &Sample) -> bool {
        let kind = |base: &Base| (base.model, base.handle & MARK);
        let (now, before) = (&start.base, &self.last.base);
        if now.handle == 0 || kind(now) != kind(before) || u32::from(now.level) != self.level {
            return false;
        }
        self.flags |= start.flags;
        self.last = *start;
        compiler_fence(SeqCst); // what samples start from is there before an execution that counts from it
        self.from = *start;
        at_once::add_float(&mut self.closed.edges, WORK_AFTER as f64); // on the way back to the program, which is longer now
        true
    }

    /// An execution is to begin that is counted steadily: until it has, there is none, whatever was begun before.
    pub(crate) fn begins_steadily(&mut self) {
        self.state = STEADY;
        compiler_fence(SeqCst);
    }

    /// An execution has begun, counted steadily: `from` has the counters alone, less what was counted before, without what they
    /// start from, which is in `last`.
    #[inline(always)]
    pub(crate) fn has_begun_steadily(&mut self) {
        self.state = COUNTED;
    }

    /// Whether there is such an execution.
    #[inline(always)]
    pub(crate) fn is_counted(&self) -> bool {
        self.state == COUNTED
    }

    /// It has ended, with so much counted in it and before. The result is the totals of slots and time; None: slots are more
    /// than this without what they start from, and nothing happened.
    #[inline(always)]
    pub(crate) fn has_ended_steadily(&mut self, after: &Increments, limit: u64) -> Option<(u64, u64)> {
        let slots = self.from.slots.wrapping_add(after.slots);
        if slots > limit {
            return None;
        }
        self.state = STEADY;
        let ns = self.from.time_enabled_ns.wrapping_add(after.ns);
        Some((self.last.slots.wrapping_add(slots), self.last.time_enabled_ns.wrapping_add(ns)))
    }

    /// What the present execution began with; where it was counted steadily, after so much before it, as a sample. Whatever a signal
    /// handler makes of the sum from here on, the execution ends as it began.
    #[inline]
    pub(crate) fn begun(&self, before: &Increments) -> OpenExecution {
        let begun = OpenExecution { state: self.state, from: self.from };
        let last = self.last;
        compiler_fence(SeqCst);
        let is_of_last = begun.state != COUNTED || begun.from.base == last.base;
        if self.state != begun.state || !is_of_last {
            return OpenExecution { state: BETWEEN, from: begun.from }; // a handler has executed the sum meanwhile: this execution is none any more
        }
        if begun.state == COUNTED { begun.measured(&last, before) } else { begun }
    }

    /// The execution, if there is one that is counted steadily, goes on as one that is measured.
    #[cold]
    pub(crate) fn is_steady_no_more(&mut self) {
        if self.state == COUNTED {
            let begun = self.begun(Increments::NONE);
            self.begins_measured(begun.from, true);
            at_once::add_float(&mut self.closed.edges, WORK_BEFORE as f64); // on the way to the reading that ends it
        } else if self.state == STEADY {
            self.state = BETWEEN;
        }
    }

    /// Adds so many executions of which general-purpose counters told all. The sum has one that was measured, of the same kind of core.
    pub fn add_counted(&mut self, executions: u64, counted: &Increments) {
        let counters = counters_down_to(self.last.base.model, self.level as u8).min(counted.counter.len());
        let Increments { slots, ns, .. } = *counted;
        self.slots_are(executions, slots, [ns; 2]);
        for (sum, more) in self.counted.iter_mut().zip(&counted.counter[..counters]) {
            at_once::add_saturating(sum, *more);
        }
        at_once::add_saturating(&mut self.measured_slots, slots);
        at_once::add_saturating(&mut self.measured, executions);
    }

    /// The same of one execution that just ended, of so many counters.
    #[inline(always)]
    pub(crate) fn add_one_counted(&mut self, one: &Increments, counters: usize) {
        let Increments { slots, ns, .. } = *one;
        at_once::add_one(&mut self.executions);
        at_once::add(&mut self.slots, slots);
        at_once::add(&mut self.time_enabled_ns, ns);
        at_once::add(&mut self.time_running_ns, ns);
        for (sum, more) in self.counted.iter_mut().zip(&one.counter[..counters % 16]) {
            at_once::add(sum, *more);
        }
        at_once::add(&mut self.measured_slots, slots);
        at_once::add_one(&mut self.measured);
    }

    /// The measured execution ends with this reading.
    ///
    /// # Errors
    /// Those of [`crate::decode_l1`].
    pub(crate) fn ends_measured(&mut self, begun: OpenExecution, to: &Sample) -> Result<()> {
        // (what counters add to takes each addition whole; categories are taken together with those of the execution before)
        let by_counters = to.base.tree().is_some_and(Tree::takes_counters);
        let _whole = (!by_counters).then(SignalBlock::new);
        self.state = BETWEEN;
        self.close(); // other executions may be between two that are measured
        self.add(&begun.from, to)?;
        if begun.state == COUNTED {
            at_once::add_float(&mut self.closed.edges, WORK_BEFORE as f64); // on the way to this reading
        }
        if counters_down_to(to.base.model, to.base.level) > 0 && self.last.base == to.base {
            self.state = STEADY;
            self.from.base.sequence = NEVER;
        } else {
            self.state = BETWEEN;
        }
        Ok(())
    }

    /// The execution ends with this reading.
    ///
    /// # Errors
    /// -EINVAL: none had begun, or with another handle; TD_ESTALE: before a reset.
    #[inline]
    pub(crate) fn ends(&mut self, begun: OpenExecution, to: &SlotsOnly) -> Result<()> {
        self.state = BETWEEN;
        if begun.state != COUNTING {
            at_once::add_saturating(&mut self.unbalanced, 1);
            return Err(
                Error::invalid("td_sum_end without a td_sum_begin").why("no execution of this sum has begun")
            );
        }
        let from = begun.from.slots_only();
        if !begun.from.base.is_of_the_handle(to.handle, to.period) {
            return Err(Error::invalid("td_sum_end with another handle than td_sum_begin")
                .remedy("end with the same"));
        }
        if from.period != to.period {
            return Err(Error::new(TD_ESTALE, "a td_reset came between td_sum_begin and td_sum_end")
                .remedy("the execution does not count"));
        }
        let more = |to: u64, from: u64| to.saturating_sub(from);
        let ns = [more(to.enabled, from.enabled), more(to.running, from.running)];
        self.slots_are(1, more(to.slots, from.slots), ns);
        Ok(())
    }
}
