//! Totals that only grow, over registers that are reset again and again.
//!
//! Every read(2) of the group tells exactly what SLOTS and PERF_METRICS had counted until then, and zeroes
//! them if the group is running; RDPMC then sees what has come since. So the total at any moment is the
//! kernel's count at the last read(2), which the ledger keeps, plus the registers. No slot is lost at a
//! reset: the kernel reads and zeroes with the counters stopped.
#![forbid(unsafe_code)]

use crate::registers::{EDGE_SLOTS, RawSlots, Registers, units};
use crate::sample::CATEGORIES;

/// Nanoseconds that a group was enabled, and of those that it was counting.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub enabled: u64,
    pub running: u64,
}

impl Times {
    /// What has passed since; nothing, if that was later.
    pub fn since(self, begun: Times) -> Times {
        let passed = |now: u64, begun: u64| (now.wrapping_sub(begun) as i64).max(0) as u64;
        Times { enabled: passed(self.enabled, begun.enabled), running: passed(self.running, begun.running) }
    }

    /// The later of each.
    pub fn latest(self, other: Times) -> Times {
        Times { enabled: self.enabled.max(other.enabled), running: self.running.max(other.running) }
    }
}

/// What one read(2) of the group tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub time: Times,
    pub slots: u64,
    /// How many slots can have passed, where that is counted apart.
    pub most: Option<u64>,
    /// In slots, as the kernel makes them of the fields.
    pub category: [u64; CATEGORIES],
}

/// The totals at the start of the present window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Slots since the period began.
    pub slots: u64,
    pub category: [i64; CATEGORIES],
    /// Bound on the error of each category, in slots; only grows.
    pub error: u64,
    /// The kernel's counts at the last read(2).
    last: Counts,
    /// Slots that the registers may still hold since then: they were not zeroed.
    held: u64,
    /// The categories in `last` are not the kernel's but what `close` made of them, and that far off at most.
    stale: u64,
}

impl Ledger {
    /// Takes in what the kernel counted since the last time, over which the registers were saved and
    /// restored `switches` times. `zeroed`: this read(2) is known to have zeroed them.
    pub fn absorb(&mut self, now: &Counts, switches: u64, zeroed: bool) {
        let slots = self.since(now);
        let counted: [u64; CATEGORIES] =
            std::array::from_fn(|k| now.category[k].saturating_sub(self.last.category[k]));
        let whole: u64 = counted[..4].iter().sum();
        let part = |k| (u128::from(counted[k]) * u128::from(slots) / u128::from(whole.max(1))) as i64;
        let mut split: [i64; CATEGORIES] = std::array::from_fn(part);
        split[3] = slots as i64 - split[0] - split[1] - split[2];
        for (total, new) in self.category.iter_mut().zip(split) {
            *total += new;
        }
        self.slots += slots;
        let stale = std::mem::take(&mut self.stale);
        self.error +=
            window_doubt(slots, self.held, switches, whole.abs_diff(slots)).saturating_add(stale).min(slots);
        self.held = if zeroed { 0 } else { self.held + slots };
        self.last = *now;
    }

    /// Closes a window by its registers, right before a read(2) of the leader alone told the slots and the times
    /// until now, and zeroed them. What came between the two, some instructions of this library, divides as the
    /// rest did; what of it is more than an edge is admitted. None if the registers are not of this window.
    pub fn close(&mut self, end: Registers, switches: u64, slots: u64, time: Times) -> Option<()> {
        let counted = slots.saturating_sub(self.last.slots);
        let gap = counted.checked_sub(end.slots.0)?;
        let stretch = gap as f64 / end.slots.0.max(1) as f64;
        let mut split = end.split().map(|part| part + (part as f64 * stretch) as i64);
        split[3] = counted as i64 - split[0] - split[1] - split[2];
        for ((total, kept), new) in self.category.iter_mut().zip(&mut self.last.category).zip(split) {
            *total += new;
            *kept = kept.saturating_add_signed(new);
        }
        self.slots += counted;
        let doubt = end.rounding(switches).saturating_add(gap.saturating_sub(EDGE_SLOTS)).min(counted);
        self.error += doubt;
        self.stale += doubt.saturating_add(window_doubt(counted, 0, switches, 0)).saturating_add(EDGE_SLOTS);
        self.last.slots = slots;
        self.last.time = time;
        self.held = 0;
        Some(())
    }

    /// Takes in what the registers held when a reading cleared them. The slots that passed between the two RDPMC
    /// are lost.
    pub fn take(&mut self, registers: Registers, switches: u64) {
        for (total, new) in self.category.iter_mut().zip(registers.split()) {
            *total += new;
        }
        self.slots += registers.slots.0;
        self.error += registers.rounding(switches).min(registers.slots.0) + EDGE_SLOTS;
    }

    /// Takes in slots of which nothing else is known.
    pub fn take_unknown(&mut self, slots: u64) {
        self.slots += slots;
        self.category[3] += slots as i64;
        self.error += slots;
    }

    /// Forgets what the kernel counted since the last time: it counted another program's slots.
    pub fn discard(&mut self, now: &Counts, zeroed: bool) {
        self.held = if zeroed { 0 } else { self.held + self.since(now) };
        self.stale = 0;
        self.last = *now;
    }

    /// Admits that up to this many slots may be missing from the totals or foreign to them.
    pub fn admit(&mut self, slots: u64) {
        self.error += slots;
    }

    /// How many slots can have passed since the last time, where that is counted apart.
    pub fn most_since(&self, now: &Counts) -> Option<u64> {
        Some(now.most?.saturating_sub(self.last.most?))
    }

    /// Slots that the kernel has counted since the last time.
    pub fn since(&self, now: &Counts) -> u64 {
        now.slots.saturating_sub(self.last.slots)
    }

    /// Whether the group was counting all the time since the last read(2).
    pub fn ran_throughout(&self, now: &Counts) -> bool {
        let time = now.time.since(self.last.time);
        time.enabled == time.running
    }

    /// The times at the last read(2).
    pub fn times(&self) -> Times {
        self.last.time
    }

    /// The event's times are known without a read(2).
    pub fn time_is(&mut self, time: Times) {
        self.last.time = self.last.time.latest(time);
    }

    /// Starts a period: all totals are zero from here on.
    pub fn restart(&mut self) {
        *self = Ledger { last: self.last, held: self.held, stale: self.stale, ..Ledger::default() };
    }
}

/// Bound on the error of what the kernel counted between two read(2), in slots. It takes the registers at
/// their word, which is rounded to 8 bits of all that they hold (`held` at the start, `slots` more at the
/// end), at either end and each time that it saves and restores them; each save may also make it drop a
/// negative difference of up to a unit (kernel-facts B.2, B.4). Never more than all slots.
fn window_doubt(slots: u64, held: u64, switches: u64, missing: u64) -> u64 {
    let roundings = switches.saturating_mul(2).saturating_add(1);
    let start = units(RawSlots(held), 1);
    let end = units(RawSlots(held.saturating_add(slots)), roundings);
    // the kernel rounds each category down to whole slots, each time
    start.saturating_add(end).saturating_add(missing).saturating_add(roundings).min(slots)
}

/// How often the registers were saved and restored between two sequence numbers of the control page,
/// at the most: each time moves the number by four or more (twice at least, by two).
pub(crate) fn switches_between(from: u32, to: u32) -> u64 {
    u64::from(to.wrapping_sub(from) / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::RawMetrics;

    fn counts(slots: u64, category: [u64; 4]) -> Counts {
        let mut all = [0; CATEGORIES];
        all[..4].copy_from_slice(&category);
        Counts { slots, category: all, ..Counts::default() }
    }

    #[test]
    fn totals_are_the_kernels_differences_and_add_up() {
        let mut ledger = Ledger::default();
        ledger.absorb(&counts(1000, [100, 200, 300, 399]), 0, true); // the kernel rounds each down
        assert_eq!(ledger.slots, 1000);
        assert_eq!(ledger.category[..4].iter().sum::<i64>(), 1000);
        assert_eq!(
            ledger.error,
            4 + 1 + 1,
            "1000/255 rounded up, the slot that is missing, and that of each category"
        );
        ledger.absorb(&counts(3000, [2100, 200, 300, 399]), 0, true);
        assert_eq!((ledger.slots, ledger.category[0]), (3000, 2100));
        ledger.restart();
        ledger.absorb(&counts(3000, [2100, 200, 300, 399]), 0, true);
        assert_eq!((ledger.slots, ledger.error), (0, 0), "nothing counted since the restart");
    }

    #[test]
    fn each_switch_adds_two_units_and_no_bound_exceeds_the_window() {
        assert_eq!(window_doubt(255_000, 0, 0, 0), 1_001);
        assert_eq!(window_doubt(255_000, 0, 3, 0), 7_007);
        assert_eq!(window_doubt(255_000, 0, u64::MAX, 0), 255_000);
        assert_eq!(switches_between(10, 10), 0);
        assert_eq!(switches_between(10, 16), 1, "as today's kernels do it: six");
        assert_eq!(switches_between(u32::MAX - 1, 6), 2, "the sequence number goes round");
    }

    #[test]
    fn registers_that_were_not_zeroed_round_all_that_they_hold() {
        let mut ledger = Ledger::default();
        ledger.absorb(&counts(2_550_000, [637_500; 4]), 0, false);
        assert_eq!(ledger.error, 10_001);
        ledger.absorb(&counts(2_652_000, [663_000; 4]), 0, true);
        assert_eq!(
            ledger.error,
            10_001 + 10_000 + 10_401,
            "both ends of 102,000 slots more are rounded of all"
        );
        ledger.absorb(&counts(2_754_000, [688_500; 4]), 0, true);
        assert_eq!(ledger.error, 30_402 + 401, "after the reset only of the new ones");
    }

    #[test]
    fn foreign_counts_are_left_out() {
        let mut ledger = Ledger::default();
        ledger.absorb(&counts(1000, [250; 4]), 0, true);
        ledger.discard(&counts(61_001_000, [9_000_000; 4]), true);
        ledger.absorb(&counts(61_002_000, [9_000_250; 4]), 0, true);
        assert_eq!(ledger.slots, 2000);
    }

    #[test]
    fn a_window_that_its_registers_close_is_as_exact_as_they_are() {
        let mut ledger = Ledger::default();
        let end = Registers { slots: RawSlots(255_000), metrics: RawMetrics(0x3333_6633) };
        ledger.close(end, 0, 255_100, Times::default()).unwrap();
        assert_eq!((ledger.slots, ledger.error), (255_100, 1000));
        assert_eq!(ledger.category[..4], [51_020, 102_040, 51_020, 51_020]);
        assert_eq!(ledger.close(end, 0, 255_200, Times::default()), None, "less was counted than they say");
        assert_eq!(ledger.slots, 255_100);
        ledger.close(end, 2, 255_100 + 255_000 + EDGE_SLOTS + 7, Times::default()).unwrap();
        assert_eq!(ledger.error, 1000 + 3000 + 7, "switches, and what is more than an edge");
        // the kernel's own account of the same slots, at the next read(2) of the group
        let slots = ledger.slots + 100;
        let before = ledger.error;
        ledger.absorb(&counts(slots, [slots / 4; 4]), 0, true);
        assert_eq!((ledger.slots, ledger.error - before), (slots, 100), "all of them, at the most");
    }
}
