//! When a turn of a thread's groups is over.
#![forbid(unsafe_code)]

/// Nanoseconds of a turn on average: of the first half as many, of later ones from half of this to one and a half, at random, as what is
/// counted may have a period.
pub const TURN_NS: u64 = 20_000_000;
const FIRST_NS: u64 = TURN_NS / 2;
/// The end of a turn takes no more than one in so many nanoseconds of it, if it takes so long, and so long for each region that was executed in it.
/// (A clock may be a system call, for which the program's seccomp filter may kill.)
const WORTH: u64 = 50;
const END_NS: u64 = 20_000;
const REGION_NS: u64 = 3_000;

/// Of the turn that is now, on the clock of its group.
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnClock {
    begun_ns: u64,
    seen_ns: u64,
    length_ns: u64,
    /// Groups could not be switched: the one that is on goes on.
    stuck: bool,
}

impl TurnClock {
    /// A reading of the group was at this time.
    #[inline(always)]
    pub fn saw(&mut self, ns: u64) {
        self.seen_ns = ns;
    }

    pub fn is_due(&self) -> bool {
        !self.stuck && self.seen_ns.wrapping_sub(self.begun_ns) >= self.length_ns
    }

    /// Turns begin and end.
    pub fn go(&mut self) {
        self.stuck = false;
    }

    /// No later turn begins, until `go`.
    pub fn stop(&mut self) {
        self.stuck = true;
    }

    /// A turn begins, at this time (None: at the last reading), after one in which so many regions were executed; its length is `chosen`,
    /// or what the end of such a turn is worth.
    pub fn begin(&mut self, now_ns: Option<u64>, chosen: u64, regions: u64) {
        self.begun_ns = now_ns.unwrap_or(self.seen_ns);
        self.seen_ns = self.begun_ns;
        self.length_ns = chosen.max(WORTH * (END_NS + REGION_NS * regions));
    }

    /// The turn that has begun is a thread's first.
    pub fn is_first(&mut self) {
        self.length_ns = FIRST_NS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_due_when_it_has_lasted_as_long_as_it_is_to_be() {
        let mut clock = TurnClock::default();
        clock.begin(Some(5), TURN_NS, 0);
        assert!(!clock.is_due());
        clock.saw(4 + TURN_NS);
        assert!(!clock.is_due());
        clock.saw(5 + TURN_NS);
        assert!(clock.is_due());
        clock.begin(None, TURN_NS, 0);
        assert!(!clock.is_due());
        clock.saw(4 + 2 * TURN_NS);
        assert!(!clock.is_due());
        clock.saw(5 + 2 * TURN_NS);
        assert!(clock.is_due());
        clock.stop();
        assert!(!clock.is_due());
        clock.go();
        assert!(clock.is_due());
    }

    #[test]
    fn many_regions_make_a_turn_longer_but_not_the_first() {
        let mut clock = TurnClock::default();
        clock.begin(Some(0), TURN_NS, 1000);
        clock.saw(WORTH * (END_NS + 1000 * REGION_NS) - 1);
        assert!(!clock.is_due());
        clock.saw(WORTH * (END_NS + 1000 * REGION_NS));
        assert!(clock.is_due());
        clock.is_first();
        clock.saw(FIRST_NS - 1);
        assert!(!clock.is_due());
        clock.saw(FIRST_NS);
        assert!(clock.is_due());
    }

    /// Clocks of groups go on from where they were switched off, or wrap.
    #[test]
    fn a_clock_that_wraps_is_no_end() {
        let mut clock = TurnClock::default();
        clock.begin(Some(u64::MAX - 3), TURN_NS, 0);
        clock.saw(5);
        assert!(!clock.is_due());
        clock.saw(TURN_NS);
        assert!(clock.is_due());
    }
}
