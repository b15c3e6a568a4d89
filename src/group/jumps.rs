//! SLOTS as a plain event, of which the kernel may count 2^48 too many.
//!
//! PERF_METRICS counts beside it, whether or not anybody asked for it. When that overflows, the kernel adds what SLOTS holds to
//! its count and zeroes it, although what it adds next is still the difference from where SLOTS was before: all together right, or
//! 2^48 too many (kernel-facts I). What other counters and the clock say tells which.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

const JUMP: u64 = 1 << 48;

/// What a group has told.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupTotals {
    pub slots: u64,
    /// Of these, slots that other counters have told, too.
    pub named: u64,
    pub running_ns: u64,
}

/// How much too large its slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotsJump {
    pub by: u64,
    /// They may be so much larger still.
    pub maybe_by: u64,
}

/// The jumps of a group's slots so far, and what it told last. (A signal handler that judges meanwhile finds old and new in it,
/// which are of the same moment, or as good.)
#[derive(Debug)]
pub(super) struct Jumps {
    most_slots_per_ns: f64,
    by: AtomicU64,
    maybe_by: AtomicU64,
    slots: AtomicU64,
    named: AtomicU64,
    running_ns: AtomicU64,
}

impl Jumps {
    /// Of a group that has told nothing, on a core that has no more slots in a nanosecond.
    pub fn new(most_slots_per_ns: f64) -> Jumps {
        let zero = || AtomicU64::new(0);
        Jumps {
            most_slots_per_ns,
            by: zero(),
            maybe_by: zero(),
            slots: zero(),
            named: zero(),
            running_ns: zero(),
        }
    }

    /// Slots since what was told last, if they are so many that some may be of a jump.
    fn many(&self, told: &GroupTotals) -> Option<u64> {
        let by = self.by.load(Ordering::Relaxed);
        let slots = told.slots.wrapping_sub(by).wrapping_sub(self.slots.load(Ordering::Relaxed));
        (JUMP..=u64::MAX / 2).contains(&slots).then_some(slots)
    }

    /// How much too large these slots are, if they go on from what was told last without a jump.
    pub fn goes_on(&self, told: &GroupTotals) -> Option<SlotsJump> {
        let by = self.by.load(Ordering::Relaxed);
        self.many(told).is_none().then_some(SlotsJump { by, maybe_by: 0 })
    }

    /// How much too large these slots are: since what was told last there were no more than fit in the time, and no fewer than
    /// other counters have told.
    pub fn judge(&self, told: &GroupTotals) -> SlotsJump {
        let last = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let by = last(&self.by);
        let Some(slots) = self.many(told) else { return SlotsJump { by, maybe_by: 0 } };
        let possible = told.running_ns.saturating_sub(last(&self.running_ns)) as f64 * self.most_slots_per_ns;
        let least = slots.saturating_sub(possible as u64).div_ceil(JUMP);
        // (the categories' counters may tell a little more than there was: an eighth, to be safe)
        let named = told.named.saturating_sub(last(&self.named)) / 8 * 7;
        let most = slots.saturating_sub(named) / JUMP;
        // (where the clock says more than the counters: there was no such time, as on an emulated machine)
        let least = least.min(most);
        SlotsJump { by: by.wrapping_add(least * JUMP), maybe_by: (most - least).saturating_mul(JUMP) }
    }

    /// The same since the beginning, of a task that is counted apart.
    pub fn judge_all(&self, told: &GroupTotals) -> SlotsJump {
        Jumps::new(self.most_slots_per_ns).judge(told)
    }

    /// From now on this is what was told last. Returns by how much more its slots may be too large, with all of before.
    pub fn note(&self, told: &GroupTotals, jumped: SlotsJump) -> u64 {
        self.by.store(jumped.by, Ordering::Relaxed);
        self.slots.store(told.slots.wrapping_sub(jumped.by), Ordering::Relaxed);
        self.named.store(told.named, Ordering::Relaxed);
        self.running_ns.store(told.running_ns, Ordering::Relaxed);
        let maybe_by = self.maybe_by.load(Ordering::Relaxed).saturating_add(jumped.maybe_by);
        self.maybe_by.store(maybe_by, Ordering::Relaxed);
        maybe_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;
    const NONE: SlotsJump = SlotsJump { by: 0, maybe_by: 0 };

    /// Six slots a cycle, of at most 8 GHz: 2^48 in 1.6 hours.
    fn jumps() -> Jumps {
        Jumps::new(48.0)
    }

    fn told(slots: u64, named: u64, running_ns: u64) -> GroupTotals {
        GroupTotals { slots, named, running_ns }
    }

    #[test]
    fn a_jump_is_more_than_fits_in_the_time() {
        let jumps = jumps();
        let first = told(1_000_000, 900_000, 50_000);
        assert_eq!(jumps.judge(&first), NONE);
        jumps.note(&first, NONE);
        assert_eq!(jumps.goes_on(&told(2_000_000, 1_800_000, 100_000)), Some(NONE));
        assert_eq!(jumps.goes_on(&told(JUMP + 2_000_000, 1_800_000, 100_000)), None);
        let jumped = jumps.judge(&told(JUMP + 2_000_000, 1_800_000, 100_000));
        assert_eq!(jumped, SlotsJump { by: JUMP, maybe_by: 0 });
        jumps.note(&told(JUMP + 2_000_000, 1_800_000, 100_000), jumped);
        // what follows is as much too large, and may jump again
        assert_eq!(jumps.judge(&told(JUMP + 3_000_000, 2_700_000, 150_000)).by, JUMP);
        assert_eq!(jumps.judge(&told(2 * JUMP + 3_000_000, 2_700_000, 150_000)).by, 2 * JUMP);
        // a reading of before is none
        assert_eq!(jumps.judge(&told(JUMP + 1_500_000, 1_000_000, 90_000)).by, JUMP);
    }

    #[test]
    fn hours_are_no_jump_if_other_counters_say_so() {
        let four_hours = JUMP + JUMP / 4;
        assert_eq!(jumps().judge(&told(four_hours, four_hours / 10 * 9, 4 * HOUR_NS)), NONE);
        let jumps_once = jumps();
        let first = told(four_hours, JUMP / 8, 4 * HOUR_NS);
        let unsure = jumps_once.judge(&first);
        assert_eq!(unsure, SlotsJump { by: 0, maybe_by: JUMP }, "it may have been one hour");
        assert_eq!(jumps_once.note(&first, unsure), JUMP);
        assert_eq!(jumps_once.note(&first, jumps_once.judge(&first)), JUMP, "for good");
    }

    #[test]
    fn without_a_clock_the_other_counters_tell() {
        let four_hours = JUMP + JUMP / 4;
        assert_eq!(jumps().judge(&told(four_hours, four_hours / 10 * 9, 1)), NONE);
        assert_eq!(jumps().judge(&told(four_hours + JUMP, four_hours / 10 * 9, 1)).by, JUMP);
        assert_eq!(
            jumps().judge(&told(JUMP + 1_000_000, 1_010_000, 1)).by,
            JUMP,
            "none was for bad speculation"
        );
    }
}
