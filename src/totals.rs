//! Totals that only grow, over registers that are reset again and again.
//!
//! Every read(2) of the group tells exactly what SLOTS and PERF_METRICS had counted until then, and zeroes
//! them if the group is running; RDPMC then sees what has come since. So the total at any moment is the
//! kernel's count at the last read(2), which is kept here, plus the registers. No slot is lost at a
//! reset: the kernel reads and zeroes with the counters stopped.
#![forbid(unsafe_code)]

use crate::bound::{MOST_WHILE_HANDLED, closed_by_read, closed_by_registers, units};
use crate::read::GroupCounts;
use crate::registers::{CATEGORIES, RawSlots, Registers};
use crate::sys::page::Times;

/// The totals at the start of the present window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowTotals {
    /// Slots since the period began.
    pub slots: u64,
    pub category: [i64; CATEGORIES],
    /// Bound on the error of each category, in slots; only grows.
    pub error: u64,
    /// The kernel's counts at the last read(2).
    last: GroupCounts,
    /// Slots that the registers may still hold since then: they were not zeroed.
    held: u64,
    /// The categories in `last` are not the kernel's but what `close_by_registers` made of them, and that far off at most.
    stale: u64,
}

impl WindowTotals {
    /// Takes in what the kernel counted since the last time, over which the registers were saved and
    /// restored `switches` times. `zeroed`: this read(2) is known to have zeroed them.
    pub fn add_counts(&mut self, now: &GroupCounts, switches: u64, zeroed: bool) {
        let slots = self.since(now);
        let counted: [u64; CATEGORIES] =
            std::array::from_fn(|k| now.category[k].saturating_sub(self.last.category[k]));
        let whole: u64 = counted[..4].iter().sum();
        let part = |k: usize| {
            (u128::from(counted[k]) * u128::from(slots) / u128::from(whole.max(1))).min(slots.into())
        };
        let mut split: [i64; CATEGORIES] = std::array::from_fn(|k| part(k) as i64);
        split[3] = slots as i64 - split[0] - split[1] - split[2];
        for k in 0..4 {
            split[4 + k] = split[4 + k].min(split[k].max(0)); // a part is no more than its parent
        }
        for (total, new) in self.category.iter_mut().zip(split) {
            *total += new;
        }
        self.slots = self.slots.wrapping_add(slots);
        let stale = std::mem::take(&mut self.stale);
        let bound = closed_by_read(slots, self.held, switches, whole.abs_diff(slots));
        self.error += bound.saturating_add(stale).min(slots);
        self.held = if zeroed { 0 } else { self.held + slots };
        self.last = *now;
    }

    /// Closes a window at a reading of its registers. What came after that, until a read(2) of the leader alone told the
    /// slots and the times and zeroed the registers, is this library's own work and does not count: `end` is what they held
    /// right before. If the read(2) tells far more, an overflow had reset the registers: that much counts, and is
    /// admitted; so does all that came after, if a signal handler has `shown` some of it. None if the registers are not of this
    /// window.
    pub fn close_by_registers(
        &mut self,
        reading: Registers,
        end: Registers,
        shown: bool,
        switches: u64,
        slots: u64,
        time: Times,
    ) -> Option<()> {
        let counted = slots.saturating_sub(self.last.slots);
        let gap = counted.checked_sub(end.slots.0)?;
        let lost = match shown {
            true => counted.saturating_sub(reading.slots.0),
            false if gap > MOST_WHILE_HANDLED => gap,
            false => 0,
        };
        let held = reading.slots.0.max(1) as f64;
        let split = reading.split();
        let stretched = |to: u64| {
            let more = to.saturating_sub(reading.slots.0) as f64 / held;
            let mut parts = split.map(|part| part + (part as f64 * more) as i64);
            parts[3] = to as i64 - parts[0] - parts[1] - parts[2];
            parts
        };
        let total = reading.slots.0 + lost;
        for (all, new) in self.category.iter_mut().zip(if lost > 0 { stretched(total) } else { split }) {
            *all += new;
        }
        for (kept, new) in self.last.category.iter_mut().zip(stretched(counted)) {
            *kept = kept.saturating_add_signed(new);
        }
        self.slots = self.slots.wrapping_add(total);
        let bound = closed_by_registers(reading, switches, lost);
        self.error += bound;
        // what the kernel made of the same slots is off by its own bound, and includes what does not count here
        self.stale +=
            bound.saturating_add(closed_by_read(counted, 0, switches, 0)) + counted.abs_diff(reading.slots.0);
        self.last.slots = slots;
        self.last.time = time;
        self.held = 0;
        Some(())
    }

    /// So many slots that the registers of a window which has just begun hold, so divided, are this library's own work,
    /// and do not count.
    pub fn skip(&mut self, slots: RawSlots, parts: &[i64; CATEGORIES]) {
        for (all, part) in self.category.iter_mut().zip(parts) {
            *all -= part;
        }
        self.slots = self.slots.wrapping_sub(slots.0); // below zero until they are counted
        self.error += units(slots, 1);
    }

    /// Slots of which nothing else is known.
    pub fn add_unknown(&mut self, slots: u64) {
        self.slots = self.slots.wrapping_add(slots);
        self.category[3] += slots as i64;
        self.error += slots;
    }

    /// Forgets what the kernel counted since the last time: it counted another program's slots.
    pub fn discard(&mut self, now: &GroupCounts, zeroed: bool) {
        self.held = if zeroed { 0 } else { self.held + self.since(now) };
        self.stale = 0;
        self.last = *now;
    }

    /// Up to this many slots may be missing from the totals or foreign to them.
    pub fn may_be_off_by(&mut self, slots: u64) {
        self.error += slots;
    }

    /// How many slots can have passed since the last time, where that is counted apart.
    pub fn most_since(&self, now: &GroupCounts) -> Option<u64> {
        Some(now.most?.saturating_sub(self.last.most?))
    }

    /// What the kernel had counted at the last read(2).
    pub fn counted_slots(&self) -> u64 {
        self.last.slots
    }

    /// Slots that the kernel has counted since the last time.
    pub fn since(&self, now: &GroupCounts) -> u64 {
        now.slots.saturating_sub(self.last.slots)
    }

    /// Whether the group was counting all the time since the last read(2).
    pub fn ran_throughout(&self, now: &GroupCounts) -> bool {
        let time = now.time.since(self.last.time);
        time.enabled == time.running
    }

    /// The times at the last read(2).
    pub fn times(&self) -> Times {
        self.last.time
    }

    /// Starts a period: all totals are zero from here on.
    pub fn restart(&mut self) {
        *self =
            WindowTotals { last: self.last, held: self.held, stale: self.stale, ..WindowTotals::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::RawMetrics;

    fn counts(slots: u64, category: [u64; 4]) -> GroupCounts {
        let mut all = [0; CATEGORIES];
        all[..4].copy_from_slice(&category);
        GroupCounts { slots, category: all, ..GroupCounts::default() }
    }

    #[test]
    fn totals_are_the_kernels_differences_and_add_up() {
        let mut totals = WindowTotals::default();
        totals.add_counts(&counts(1000, [100, 200, 300, 399]), 0, true); // the kernel rounds each down
        assert_eq!(totals.slots, 1000);
        assert_eq!(totals.category[..4].iter().sum::<i64>(), 1000);
        assert_eq!(
            totals.error,
            4 + 1 + 1,
            "1000/255 rounded up, the slot that is missing, and that of each category"
        );
        totals.add_counts(&counts(3000, [2100, 200, 300, 399]), 0, true);
        assert_eq!((totals.slots, totals.category[0]), (3000, 2100));
        totals.restart();
        totals.add_counts(&counts(3000, [2100, 200, 300, 399]), 0, true);
        assert_eq!((totals.slots, totals.error), (0, 0), "nothing counted since the restart");
    }

    #[test]
    fn registers_that_were_not_zeroed_round_all_that_they_hold() {
        let mut totals = WindowTotals::default();
        totals.add_counts(&counts(2_550_000, [637_500; 4]), 0, false);
        assert_eq!(totals.error, 10_001);
        totals.add_counts(&counts(2_652_000, [663_000; 4]), 0, true);
        assert_eq!(
            totals.error,
            10_001 + 10_000 + 10_401,
            "both ends of 102,000 slots more are rounded of all"
        );
        totals.add_counts(&counts(2_754_000, [688_500; 4]), 0, true);
        assert_eq!(totals.error, 30_402 + 401, "after the reset only of the new ones");
    }

    #[test]
    fn foreign_counts_are_left_out() {
        let mut totals = WindowTotals::default();
        totals.add_counts(&counts(1000, [250; 4]), 0, true);
        totals.discard(&counts(61_001_000, [9_000_000; 4]), true);
        totals.add_counts(&counts(61_002_000, [9_000_250; 4]), 0, true);
        assert_eq!(totals.slots, 2000);
    }

    #[test]
    fn a_window_that_its_registers_close_is_as_exact_as_they_are() {
        let mut totals = WindowTotals::default();
        let held = |slots| Registers { slots: RawSlots(slots), metrics: RawMetrics(0x3333_6633) };
        totals.close_by_registers(held(255_000), held(256_000), false, 0, 256_100, Times::default()).unwrap();
        assert_eq!(
            (totals.slots, totals.error),
            (255_000, 1000),
            "what came after the reading does not count"
        );
        assert_eq!(totals.category[..4], [51_000, 102_000, 51_000, 51_000]);
        assert_eq!(
            totals.close_by_registers(held(100), held(300), false, 0, 256_200, Times::default()),
            None,
            "less than they say"
        );
        assert_eq!(totals.slots, 255_000);
        totals.skip(RawSlots(2_550), &held(2_550).split());
        assert_eq!((totals.slots, totals.error, totals.category[1]), (252_450, 1010, 102_000 - 1020));
        totals
            .close_by_registers(
                held(2_550 + 255_000),
                held(258_000),
                false,
                2,
                256_100 + 258_000,
                Times::default(),
            )
            .unwrap();
        assert_eq!((totals.slots, totals.error), (510_000, 1010 + 3030), "two switches");
        // a signal handler has shown more than the reading that closes the window
        let mut shown = totals;
        shown
            .close_by_registers(held(1_000), held(50_000), true, 0, 514_100 + 60_000, Times::default())
            .unwrap();
        assert_eq!(shown.slots, 510_000 + 60_000, "all that read(2) told");
        assert!(shown.error >= 1010 + 3030 + 59_000, "and how it divides is not known");
        // an overflow on the way
        totals
            .close_by_registers(
                held(255_000),
                held(255_000),
                false,
                0,
                514_100 + 255_000 + MOST_WHILE_HANDLED + 1,
                Times::default(),
            )
            .unwrap();
        assert_eq!(
            (totals.slots, totals.error),
            (765_000 + MOST_WHILE_HANDLED + 1, 4040 + 1000 + MOST_WHILE_HANDLED + 1)
        );
        // the kernel's own account of the same slots, at the next read(2) of the group
        let (before, kernel) = (totals.error, 514_100 + 255_000 + MOST_WHILE_HANDLED + 1 + 100);
        totals.add_counts(&counts(kernel, [kernel / 4; 4]), 0, true);
        assert_eq!(
            (totals.slots, totals.error - before),
            (765_000 + MOST_WHILE_HANDLED + 101, 100),
            "all of them, at the most"
        );
    }
    #[test]
    fn a_part_is_never_more_than_its_parent() {
        let mut totals = WindowTotals::default();
        let mut now = counts(100, [90, 10, 0, 0]);
        now.category[4] = 39_000_000; // as it is told after the library closed windows in its own way
        totals.add_counts(&now, 0, true);
        assert_eq!((totals.category[0], totals.category[4]), (90, 90));
    }
}
