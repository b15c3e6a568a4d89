//! Executions that the library reads itself: which of them are measured, and where each begins and ends.
#![forbid(unsafe_code)]

use super::{BETWEEN, COUNTING, MEASURING, Sum, grow};
use crate::bound::{LEAST_SAMPLE, WORK_BEFORE_COUNTERS, skid_of_counters};
use crate::error::{Error, Result, TD_ESTALE};
use crate::model::counters_down_to;
use crate::sample::{Base, OF_READINGS, Sample, SlotsOnly};
use crate::span::{float, own_work};

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

impl Sum {
    /// Whether the execution that begins is one of those that are not to be measured, and not the last of them; whatever began
    /// before does not count.
    #[inline(always)]
    pub(crate) fn begins_unmeasured(&mut self) -> bool {
        self.state = BETWEEN;
        self.wait > 1
    }

    /// It has begun, with the reading in `from`.
    #[inline(always)]
    pub(crate) fn has_begun(&mut self) -> bool {
        self.wait -= 1;
        self.state = COUNTING;
        true
    }

    /// It ends, if it began with a reading of the same handle and period. The caller adds it up.
    #[inline(always)]
    pub(crate) fn end_steadily(&mut self, to: &SlotsOnly) -> Option<Execution> {
        let of = |handle: u32, period: u32| u64::from(period) << 32 | u64::from(handle); // one comparison
        if of(self.from.base.handle, self.from.base.period) != of(to.handle, to.period) {
            return None;
        }
        self.state = BETWEEN;
        Some(Execution {
            slots: to.slots.wrapping_sub(self.from.slots),
            enabled_ns: to.enabled.wrapping_sub(self.from.time_enabled_ns),
            running_ns: to.running.wrapping_sub(self.from.time_running_ns),
        })
    }

    /// Whether only the slots of the present execution are counted.
    #[inline]
    pub(crate) fn is_counting(&self) -> bool {
        self.state == COUNTING
    }

    /// Whether the present execution was to be measured, or the last one: the next is not chosen yet.
    #[inline]
    pub(crate) fn was_due(&self) -> bool {
        self.wait == 0
    }

    /// Whether the next execution is to be measured.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.wait = self.wait.saturating_sub(1);
        self.wait == 0
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
        let one_in = one_in.min(self.executions.max(1));
        if self.random == 0 {
            self.random = 0x9e37_79b9_7f4a_7c15 ^ self.begun_ns ^ self.from.slots << 32;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.wait = 1 + self.random % one_in.saturating_mul(2).saturating_sub(1).max(1);
    }

    /// Whether hardly an execution was measured yet.
    pub(crate) fn is_new(&self) -> bool {
        self.measured < LEAST_SAMPLE
    }

    /// An execution begins, of which plain counters tell all, with the reading that comes into this sample.
    #[inline(always)]
    pub(crate) fn begin_of_counted(&mut self) -> &mut Sample {
        &mut self.from
    }

    /// It has come.
    #[inline(always)]
    pub(crate) fn begins_counted(&mut self) {
        self.state = MEASURING;
    }

    /// It ends with the reading that comes into this sample.
    #[inline(always)]
    pub(crate) fn end_of_counted(&mut self) -> &mut Sample {
        &mut self.last
    }

    /// Row of the CPU of the executions so far.
    #[inline(always)]
    pub(crate) fn model(&self) -> u8 {
        self.last.base.model
    }

    /// It has ended, and is added up to those before, which were of this row: the last reading's slots and time. None: that is
    /// not to be seen at first sight, and nothing happened.
    #[inline(always)]
    pub(crate) fn ends_counted(&mut self, before: u8) -> Option<(u64, u64)> {
        let (from, to) = (&self.from, &self.last);
        let kind = |base: &Base| u16::from_le_bytes([base.model, base.level]);
        let Base { model, level, .. } = to.base;
        let counters = counters_down_to(model, level);
        let same = from.base.handle == to.base.handle
            && from.base.period == to.base.period
            && from.base.error == to.base.error
            && from.base.window == to.base.window
            && kind(&from.base) == kind(&to.base)
            && (self.measured == 0 || self.level == u32::from(level) && model == before);
        if !same || counters == 0 || from.slots >= to.slots {
            self.last.base.model = before;
            return None;
        }
        self.state = BETWEEN; // whatever becomes of what follows, it is not added twice
        for k in 0..counters {
            self.moments[k] += to.counter[k].wrapping_sub(from.counter[k]) as i64 as f64;
        }
        let slots = to.slots - from.slots;
        let own_work = own_work(from, to, WORK_BEFORE_COUNTERS);
        self.closed.edges += float((skid_of_counters(0, counters) + own_work).min(slots));
        self.size = size_of::<Sum>() as u32;
        self.flags |= (from.flags | to.flags) & !OF_READINGS;
        self.level = level.into();
        let enabled = to.time_enabled_ns.saturating_sub(from.time_enabled_ns);
        let running = to.time_running_ns.saturating_sub(from.time_running_ns);
        let seen = (to.slots, to.time_enabled_ns);
        for (all, more) in [
            (&mut self.executions, 1),
            (&mut self.measured, 1),
            (&mut self.slots, slots),
            (&mut self.measured_slots, slots),
            (&mut self.time_enabled_ns, enabled),
            (&mut self.time_running_ns, running),
        ] {
            grow(all, more);
        }
        Some(seen)
    }

    /// Whether an execution has begun that is measured.
    #[inline]
    pub fn is_measuring(&self) -> bool {
        self.state == MEASURING
    }

    /// The measured execution ends with this reading.
    ///
    /// # Errors
    /// Those of [`crate::decode_l1`].
    pub(crate) fn ends_measured(&mut self, to: &Sample) -> Result<()> {
        self.state = BETWEEN;
        self.close(); // other executions may be between two that are measured
        let from = self.from;
        self.add(&from, to)
    }

    /// The execution ends with this reading.
    ///
    /// # Errors
    /// -EINVAL: none had begun, or with another handle; TD_ESTALE: before a reset.
    #[inline]
    pub(crate) fn ends(&mut self, to: &SlotsOnly) -> Result<()> {
        let state = std::mem::replace(&mut self.state, BETWEEN);
        if state != COUNTING {
            grow(&mut self.unbalanced, 1);
            return Err(
                Error::invalid("td_sum_end without a td_sum_begin").why("no execution of this sum has begun")
            );
        }
        let from = self.from.slots_only();
        if from.handle != to.handle {
            return Err(Error::invalid("td_sum_end with another handle than td_sum_begin")
                .remedy("end with the same"));
        }
        if from.period != to.period {
            return Err(Error::new(TD_ESTALE, "a td_reset came between td_sum_begin and td_sum_end")
                .remedy("the execution does not count"));
        }
        self.slots_are(0, &from, to);
        Ok(())
    }
}
