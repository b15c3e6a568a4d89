//! Which of several groups counts next, and for how long: each once in a round, in a random order and for a random time, as what is
//! counted may have a period. No clock and no allocation: whoever drives a rotation knows what time it is (`topdown stat` by stretches of time,
//! the preload library where executions end).
#![forbid(unsafe_code)]

use crate::sys::random::Random;

/// Groups that take turns. Zeroed memory is a rotation of no group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotation {
    groups: u32,
    /// Those that have yet to come in this round, a bit for each.
    to_come: u64,
    random: Random,
}

/// No level takes more groups.
const MOST_GROUPS: usize = 64;

impl Rotation {
    /// The most groups of one.
    #[must_use]
    pub const fn most_groups() -> usize {
        MOST_GROUPS
    }

    /// Of so many groups, of which the first that `choose` gives is any.
    ///
    /// # Panics
    /// There are more than 64.
    #[must_use]
    pub fn new(groups: usize, seed: u64) -> Rotation {
        assert!(groups <= MOST_GROUPS);
        Rotation { groups: groups as u32, to_come: 0, random: Random::new(seed) }
    }

    /// Begins a new round.
    pub fn start_over(&mut self) {
        self.to_come = 0;
    }

    /// Whose turn is next.
    pub fn choose(&mut self) -> usize {
        if self.to_come == 0 {
            self.to_come = u64::MAX.checked_shr(u64::BITS - self.groups).unwrap_or(0);
        }
        let mut before = self.random.below(self.to_come.count_ones().into());
        let mut rest = self.to_come;
        while before > 0 {
            rest &= rest - 1;
            before -= 1;
        }
        let next = rest.trailing_zeros() % u64::BITS;
        self.to_come &= !(1 << next);
        next as usize
    }

    /// How long the next turn is, in nanoseconds: from half of this to one and a half.
    pub fn length(&mut self, mean_ns: u64) -> u64 {
        mean_ns / 2 + self.random.below(mean_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_a_turn_in_each_round_and_any_is_the_first() {
        for groups in 1..=MOST_GROUPS {
            let mut rotation = Rotation::new(groups, groups as u64);
            let mut first = [0; MOST_GROUPS];
            for round in 0..100 * groups {
                let mut in_round: Vec<usize> = (0..groups).map(|_| rotation.choose()).collect();
                first[in_round[0]] += 1;
                in_round.sort_unstable();
                assert!(in_round.into_iter().eq(0..groups), "{groups} {round}");
            }
            // (100 are expected, with a standard deviation of 10)
            assert!(first[..groups].iter().all(|n| (50..=150).contains(n)), "{groups}: {first:?}");
        }
    }

    #[test]
    fn a_new_round_has_all_groups_again() {
        let mut rotation = Rotation::new(3, 7);
        for _ in 0..20 {
            rotation.choose();
            rotation.start_over();
            let mut round: Vec<usize> = (0..3).map(|_| rotation.choose()).collect();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2]);
        }
    }

    #[test]
    fn turns_are_from_half_to_one_and_a_half_as_long_as_is_wanted() {
        let mut rotation = Rotation::new(2, 1);
        let lengths: Vec<u64> = (0..10_000).map(|_| rotation.length(1000)).collect();
        assert!(lengths.iter().all(|length| (500..1500).contains(length)));
        assert!(lengths.iter().any(|length| *length < 510) && lengths.iter().any(|length| *length > 1490));
        assert_eq!((rotation.length(0), Rotation::default().choose()), (0, 0));
    }
}
