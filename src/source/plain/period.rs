//! The period that samples of general-purpose counters are of: what had been counted when it began, and what is taken out.
#![forbid(unsafe_code)]

use crate::read::{CountersSnapshot, MOST_COUNTERS, PlainCounts, Shared};
use crate::registers::Registers;
use crate::sample::{Head, Sample, TD_SAMPLE_COARSE_TIME};

/// A period.
#[derive(Clone, Copy)]
pub(super) struct Period {
    /// What was counted when it began.
    pub begun: PlainCounts,
    /// What its first sample would be.
    pub start: Head,
    /// Slots of the library's own work so far that are in the totals, at the most; and others by which they may be wrong.
    pub own_work: u64,
    /// `PlainCounters::calls`, as far as they are among these.
    pub calls: u64,
    /// What was counted of its own work and is taken out of them: slots, then as `Sample::counter`.
    pub own: [u64; 1 + MOST_COUNTERS],
    /// Nothing but the library's own work was executed in it yet.
    pub is_new: bool,
    /// `PlainCounts::slots_maybe_over`, as it was last.
    pub maybe_over: u64,
}

impl Period {
    /// Lets the fast path read where this snapshot found counters and clock, and returns what a sample would be now were the
    /// counters at zero.
    pub fn show(&self, shared: &Shared, now: &CountersSnapshot, newest: impl Fn() -> bool) -> Sample {
        let [slots, counters @ ..] = &now.counter;
        let [own_slots, own @ ..] = &self.own;
        let mut start = self.start;
        let counted = slots.base.wrapping_mul(now.slots_each).wrapping_add(now.slots_away);
        start.slots = counted.wrapping_sub(self.begun.slots).wrapping_sub(*own_slots);
        start.slots_before = start.slots; // no register holds any
        start.time_is(now.clock.zero_since(self.begun.time), now.ns);
        start.flags |= if now.clock.coarse { TD_SAMPLE_COARSE_TIME } else { 0 };
        start.base.sequence = now.sequence;
        start.base.switches = self.stretches(now.stretches);
        if now.is_level_1 {
            start.is_of_few();
        }
        start.base.error = self.own_work;
        let counter: [u64; MOST_COUNTERS] = std::array::from_fn(|k| {
            counters[k].base.wrapping_sub(self.begun.counter[k]).wrapping_sub(own[k])
        });
        let (numbers, limit) = (now.numbers(), now.limit(start.slots));
        shared.restart_counters(
            (now.clock.scale, limit, limit / now.slots_each.max(1)),
            &start,
            &numbers,
            &counter,
            newest,
        );
        Sample { counter, ..start.sample(Registers::default(), now.ns) }
    }

    /// How many of these stretches of level 1 alone are in it.
    fn stretches(&self, stretches: u16) -> u16 {
        stretches.wrapping_sub(self.begun.stretches).wrapping_add(self.begun.is_stretch.into())
    }

    pub fn begin(&mut self, counts: &PlainCounts, own_work: u64) {
        self.begun = *counts;
        self.own_work = own_work;
        let base = &mut self.start.base;
        base.period = base.period.wrapping_add(1);
        base.window = base.first_window();
    }

    pub fn sample(&self, counts: &PlainCounts) -> Sample {
        let [own_slots, own @ ..] = self.own;
        let counted = |now: u64, begun: u64, own: u64| now.saturating_sub(begun).saturating_sub(own);
        let mut start = self.start;
        start.slots = counted(counts.slots, self.begun.slots, own_slots);
        start.slots_before = start.slots; // no register holds any
        start.time_is(counts.time.since(self.begun.time), 0);
        start.base.error = self.own_work;
        start.base.switches = self.stretches(counts.stretches);
        if counts.is_stretch {
            start.is_of_few();
        }
        let counter = std::array::from_fn(|k| counted(counts.counter[k], self.begun.counter[k], own[k]));
        Sample { counter, ..start.sample(Registers::default(), 0) }
    }
}
