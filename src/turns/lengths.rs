//! How long the turns of groups are.
#![forbid(unsafe_code)]

use crate::sum::FEWEST_TURNS;
use std::time::Duration;

/// A stretch is shorter than twice this; how long is left to chance, as what is counted may have a period.
pub const STRETCH: Duration = Duration::from_millis(20);
/// The same at first: a short program has been measured by then.
pub const FIRST_STRETCH: Duration = Duration::from_millis(5);

/// How long turns are: all as long at a time, whichever group comes, since how much time a turn stands for is reckoned by how likely it
/// was. They grow, but one that stands for as much as the others of its group together tells little: none stands for more than an eighth of that.
#[derive(Clone, Debug)]
pub struct TurnLengths {
    /// Nanoseconds that the turns of each group stand for.
    stood_for: Vec<f64>,
    /// They are no shorter.
    first: Duration,
}

impl TurnLengths {
    /// Of so many groups; turns are so long at first.
    #[must_use]
    pub fn new(turns: usize, first: Duration) -> TurnLengths {
        TurnLengths { stood_for: vec![0.0; turns], first }
    }

    /// How likely a turn of this group is by these odds; empty: as likely as the others.
    fn chance(&self, turn: usize, odds: &[f64]) -> f64 {
        odds.get(turn).copied().unwrap_or(1.0 / self.stood_for.len() as f64)
    }

    /// A turn of this group is over, which was drawn by these odds.
    pub fn add(&mut self, turn: usize, ns: u64, odds: &[f64]) {
        self.stood_for[turn] += ns as f64 / self.chance(turn, odds);
    }

    /// How long the next turn is on average, which is drawn by these odds; `Rotation::length` makes it half as long again at the most.
    #[must_use]
    pub fn next(&self, odds: &[f64]) -> Duration {
        let chances = self.stood_for.iter().enumerate().map(|(turn, ns)| (self.chance(turn, odds), ns));
        let others = chances.filter(|(chance, _)| *chance > 0.0).map(|(chance, ns)| chance * ns);
        let most = others.fold(f64::INFINITY, f64::min) / FEWEST_TURNS as f64;
        Duration::from_nanos((most / 1.5) as u64).clamp(self.first, STRETCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_grow_as_far_as_the_others_of_their_group_let_them() {
        let mut lengths = TurnLengths::new(2, FIRST_STRETCH);
        let mut grow = |turns: usize, odds: [f64; 2]| {
            (0..turns).for_each(|turn| lengths.add(turn % 2, lengths.next(&odds).as_nanos() as u64, &odds));
            lengths.next(&odds)
        };
        assert_eq!(grow(0, [0.5, 0.5]), FIRST_STRETCH);
        assert_eq!(grow(22, [0.5, 0.5]), FIRST_STRETCH);
        assert!(grow(6, [0.5, 0.5]) > FIRST_STRETCH);
        assert_eq!(grow(200, [0.5, 0.5]), STRETCH);
        // the same turn stands for fifty times as much where it is so unlikely
        assert!(grow(0, [0.99, 0.01]) < STRETCH);
        assert_eq!(grow(0, [1.0, 0.0]), STRETCH, "the other may not come");
        assert_eq!(TurnLengths::new(3, FIRST_STRETCH).next(&[]), FIRST_STRETCH);
    }
}
