//! The two registers of PERF_METRICS: what a reading of them says. (How exactly: `crate::bound`.)
#![forbid(unsafe_code)]

/// Number of PERF_METRICS fields: four of level 1, four of level 2.
pub(crate) const CATEGORIES: usize = 8;

/// SLOTS (fixed counter 3): pipeline slots since the registers were last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RawSlots(pub u64);

/// PERF_METRICS: eight 8-bit shares of the same slots, level 1 in the lower half, level 2 in the upper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawMetrics(pub u64);

/// Both, read one right after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub slots: RawSlots,
    pub metrics: RawMetrics,
}

/// The most that SLOTS holds.
const SLOTS_WIDTH: u64 = (1 << 48) - 1;

/// A full share in a field of PERF_METRICS.
pub(crate) const FULL: u64 = 255;

impl RawMetrics {
    fn field(self, k: usize) -> u64 {
        self.0 >> (8 * k) & 0xff
    }

    /// Sum of the level 1 fields: what the fields are shares of, as in perf (kernel-facts, rule 7). It
    /// is 255 where the hardware rounds so that they add up.
    pub fn whole(self) -> u64 {
        let pairs = (self.0 & 0x00ff_00ff) + (self.0 >> 8 & 0x00ff_00ff); // of two fields each, 16 bits apart
        (pairs & 0xffff) + (pairs >> 16)
    }
}

impl Registers {
    /// SLOTS is 48 bits wide.
    pub fn are_possible(self) -> bool {
        self.slots.0 <= SLOTS_WIDTH
    }

    /// Slots of each category since the reset. The level 1 four add up to SLOTS.
    pub fn split(self) -> [i64; CATEGORIES] {
        let possible = RawSlots(self.slots.0.min(SLOTS_WIDTH));
        Registers { slots: possible, ..self }.split_by::<CATEGORIES>(self.metrics.whole())
    }

    /// The first N of `split`, of possible registers: level 1, or both. `whole`: the sum of the fields. A field's part of the slots is rounded down: of
    /// their quotient by the sum, which is exact, and of the remainder, which is so small that 32 bits of 1 / `whole` do.
    #[inline(always)]
    pub fn split_by<const N: usize>(self, whole: u64) -> [i64; N] {
        let whole = whole.max(1) as u32;
        let (quotient, remainder) = (self.slots.0 / u64::from(whole), self.slots.0 % u64::from(whole));
        let scaled = remainder * (u64::from(u32::MAX / whole) + 1);
        let part = |k| {
            let field = self.metrics.field(k);
            (quotient * field + ((scaled * field) >> 32)) as i64
        };
        let mut slots: [i64; N] = std::array::from_fn(part);
        slots[3] = self.slots.0 as i64 - slots[0] - slots[1] - slots[2];
        slots
    }
}

/// The nearest whole number; 0 of a negative one.
/// (`f64::round` and `f64::ceil` are calls of libm up to Rust 1.85, and the library needs none.)
pub(crate) fn rounded(n: f64) -> u64 {
    (n + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(slots: u64, metrics: u64) -> Registers {
        Registers { slots: RawSlots(slots), metrics: RawMetrics(metrics) }
    }

    #[test]
    fn level_1_adds_up_to_the_slots_whatever_the_fields_say() {
        for metrics in [0, u64::MAX, 0x1122_3344_5566_7788, 0xff, 0x0000_00ff_ff00_0001] {
            for slots in [0, 1, 7, 1_000_003, (1 << 48) - 1] {
                let split = registers(slots, metrics).split();
                assert_eq!(split[..4].iter().sum::<i64>(), slots as i64, "{slots} {metrics:#x}");
            }
        }
    }

    #[test]
    fn fields_are_shares_of_their_sum() {
        // 51 + 102 + 51 + 51 = 255: a fifth, two fifths, a fifth, a fifth of 1,000 slots
        let even = registers(1000, 0x0000_0000_3333_6633).split();
        assert_eq!(even[..4], [200, 400, 200, 200]);
        // 50 + 100 + 50 + 50 = 250: the same shares, though not the same of 255; level 2 of the same whole
        let short = registers(1000, 0x0019_0000_3232_6432);
        assert_eq!(short.split(), [200, 400, 200, 200, 0, 0, 100, 0]);
    }
}
