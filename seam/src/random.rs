//! Random numbers for choices (xorshift, 64 bits). A seed that nobody can foresee is `identity::unique`.
#![forbid(unsafe_code)]

/// Their state. Zeroed memory is one, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// Numbers that are the same for the same seed.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    #[inline]
    pub fn number(&mut self) -> u64 {
        if self.0 == 0 {
            self.0 = 0x9e37_79b9_7f4a_7c15; // (of 0 comes nothing but 0)
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next from 0 to `end`, which is not one of them; of none, 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// The next from 0 to 1, which is not one of them.
    pub fn part(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_a_few_comes_about_as_often_whatever_the_seed() {
        for seed in [0, 1, 88_172_645_463_325_252, u64::MAX] {
            let mut random = Random::new(seed);
            let mut count = [0_u32; 7];
            (0..70_000).for_each(|_| count[random.below(7) as usize] += 1);
            // (10,000 are expected, with a standard deviation of 93)
            assert!(count.iter().all(|n| (9_500..10_500).contains(n)), "{seed}: {count:?}");
            let parts: f64 =
                (0..10_000).map(|_| random.part()).inspect(|p| assert!((0.0..1.0).contains(p))).sum();
            assert!((4_850.0..5_150.0).contains(&parts), "{seed}: {parts}");
            assert_eq!(random.below(0), 0);
        }
    }
}
