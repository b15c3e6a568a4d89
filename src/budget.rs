//! When to open a new window: as soon as the next region could not be told to within the wanted error, as
//! long as that costs no more than the budget.
//!
//! A region of n slots, read when the registers held S and again when they held S + n, is known to within
//! (2 S + n)/255 slots and the skid; a level 2 share that is a difference of two fields, twice that. The wanted
//! error at the shortest region that is to have it, `LEAST`, so gives the most that the registers may hold.
//! Nobody knows how long the next region will be: with credit in hand, or if the way here has earned a window,
//! as long as `LEAST`. When credit is short, as long as what came between the reading before the last and the
//! last, since readings mostly come in pairs; and the windows go where less is to come than has just passed: to
//! the readings that begin a region, not to those that end one.
#![forbid(unsafe_code)]

use crate::bound::most_held;

/// The shortest region that is to have the wanted error, in slots: some 50 us.
const LEAST: u64 = 1_000_000;
/// Windows that may be opened one after another when none was for long.
const BURST: i64 = 64;
/// Windows that are kept for executions of regions that were hardly measured yet.
const RESERVE: i64 = BURST / 4;
/// Readings on the slow path that cost as much as a window.
const SLOW_PATHS: i64 = 8;
/// So many windows' worth of slow paths in vain are owed at most.
const MOST_IN_VAIN: i64 = 4;
/// What a window costs before one was measured.
const FIRST_GUESS: i64 = 5_000;
/// Slots between readings on the slow path when no windows are wanted.
const SELDOM: u64 = 1 << 28;
const MILLION: f64 = 1e6;
/// `sharing` is adapted whenever so many windows' credit was earned.
const SHARED_ANEW: f64 = 16.0;
/// Its upper limit.
const MOST_SHARING: f64 = 1e6;

/// What the caller wants, in parts per million, and what its handle counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetSettings {
    pub max_error: u32,
    pub max_overhead: u32,
    pub level: u32,
    pub slots_per_cycle: u32,
}

impl BudgetSettings {
    /// The most that the registers may hold at the start of a region of so many slots.
    fn most_held(&self, region: u64) -> u64 {
        match self.max_error {
            1_000_000.. => u64::MAX, // any error will do
            ppm => most_held(region, ppm, self.level),
        }
    }
}

/// Time that may go into windows, and what was spent of it, in the units of the clock by which it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    settings: BudgetSettings,
    /// The most that the registers may hold at the start of a region of `LEAST`.
    step: u64,
    /// Time that may be spent on windows.
    credit: i64,
    /// What a window costs.
    cost: i64,
    /// The clock at the last reading on the slow path.
    last: u64,
    /// Slots in the registers then.
    held: u64,
    /// Slots that passed before that reading, and before the one before.
    passed: [u64; 2],
    /// The next reading is to open a window if there is credit for so many.
    requested: Option<i64>,
    /// By this factor each region asks more seldom than if it were alone; half of the requests then find credit.
    sharing: f64,
    /// Requests since `sharing` was adapted, and the clock then.
    requests: (u64, u64),
    /// Windows that were paid for, and the time that they took.
    pub windows: u64,
    pub spent: u64,
}

impl Budget {
    pub fn new(settings: BudgetSettings) -> Budget {
        let (cost, credit) = (FIRST_GUESS, BURST * FIRST_GUESS);
        let step = settings.most_held(LEAST);
        Budget {
            settings,
            step,
            credit,
            cost,
            last: 0,
            held: 0,
            passed: [LEAST; 2],
            requested: None,
            sharing: 1.0,
            requests: (0, 0),
            windows: 0,
            spent: 0,
        }
    }

    /// Whether to open a window at this reading.
    pub fn wants_window(&mut self, clock: u64, held: u64) -> bool {
        let elapsed = if self.last == 0 { 0 } else { clock.saturating_sub(self.last) };
        self.last = clock;
        let earned = elapsed as f64 * f64::from(self.settings.max_overhead) / MILLION;
        let credit = self.credit.saturating_add(earned as i64).min(BURST * self.cost);
        // (ways in vain, which many new regions ask for at once, are no debt that keeps later ones from being measured)
        let owed = (credit + MOST_IN_VAIN * self.cost).clamp(0, self.cost / SLOW_PATHS);
        self.credit = credit - owed;
        self.passed = [held.saturating_sub(self.held), self.passed[0]];
        self.held = held;
        if let Some(windows) = self.requested.take() {
            self.share(clock);
            return self.credit >= windows * self.cost;
        }
        if self.credit < self.cost {
            return false;
        }
        // after a way that pays for a window, one leaves the next reading no poorer
        if self.credit >= BURST / 2 * self.cost || earned as i64 >= self.cost + self.cost / SLOW_PATHS {
            return held > self.step;
        }
        let [passed, next] = self.passed;
        next <= passed + passed / 4 && held > self.settings.most_held(next.max(LEAST))
    }

    /// A request. Adapts `sharing` to how often they came, if it is time to.
    fn share(&mut self, clock: u64) {
        let (requests, since) = &mut self.requests;
        *requests += 1;
        if *since == 0 {
            *since = clock;
        }
        let earned = clock.saturating_sub(*since) as f64 * f64::from(self.settings.max_overhead) / MILLION;
        let windows = earned / (self.cost + self.cost / SLOW_PATHS) as f64;
        if windows >= SHARED_ANEW {
            let factor = *requests as f64 / (2.0 * windows);
            self.sharing = (self.sharing * factor.max(0.25)).clamp(1.0, MOST_SHARING);
            self.requests = (0, clock);
        }
    }

    /// The next reading is to open a window if there is credit, however little the registers hold. `new`: it is for a
    /// region that was hardly measured yet, which may execute once and never again.
    pub fn request_window(&mut self, new: bool) {
        self.requested = Some(if new { 1 } else { 1 + RESERVE });
    }

    /// Of executions of a region that are so far apart, one in so many can have a window. (Each region knows of its own executions:
    /// were all to ask as if they were alone, most would ask in vain, which costs a slow path.)
    pub fn one_in(&self, distance: u64) -> u64 {
        let earned = distance as f64 * f64::from(self.settings.max_overhead) / MILLION;
        let price = (self.cost + self.cost / SLOW_PATHS) as f64 * self.sharing;
        let ratio = price / earned.max(1.0);
        (ratio as u64).saturating_add(u64::from(ratio as u64 as f64 != ratio))
    }

    /// A window was opened; the clock when that began and when it was done.
    pub fn opened(&mut self, begun: u64, done: u64) {
        let took = done.saturating_sub(begun);
        let took = took + took / 3; // what could not be timed: the way here and back
        let took = took.min(4 * self.cost as u64); // and what was an interrupt's
        self.windows += 1;
        self.spent += took;
        self.credit = (self.credit - took as i64).max(-BURST * self.cost);
        self.cost = (self.cost + (took as i64 - self.cost) / 8).max(1);
        self.last = done;
        self.held = 0;
    }

    /// The registers start from zero, and no window was paid for.
    pub fn restarted(&mut self) {
        self.held = 0;
    }

    /// A reading that finds more slots than this in the registers takes the slow path.
    pub fn limit(&self) -> u64 {
        if self.step == u64::MAX {
            return self.held.saturating_add(SELDOM);
        }
        if self.held <= self.step {
            return self.step;
        }
        // until there is credit again, for a slow path and a window, at one cycle per nanosecond
        let missing = (self.cost + self.cost / SLOW_PATHS - self.credit).max(0) as f64 * MILLION
            / f64::from(self.settings.max_overhead);
        let wait = (missing * f64::from(self.settings.slots_per_cycle.max(1))) as u64;
        self.held.saturating_add(self.step.max(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: BudgetSettings =
        BudgetSettings { max_error: 10_000, max_overhead: 10_000, level: 2, slots_per_cycle: 6 };
    /// What a window takes here, as the budget sees it.
    const COST: u64 = 4_800;

    /// Reads at these distances in slots, at 6 slots per nanosecond, a thousand times over; the part of the
    /// readings that opened a window, for each distance, and of the time that was spent on them.
    fn run(settings: BudgetSettings, distances: &[u64]) -> (Vec<f64>, f64) {
        const ROUNDS: usize = 1000;
        let mut budget = Budget::new(settings);
        let (mut clock, mut held) = (1, 0);
        let mut opened = vec![0; distances.len()];
        for _ in 0..ROUNDS {
            for (k, distance) in distances.iter().enumerate() {
                clock += distance / 6;
                held += distance;
                if held > budget.limit() && budget.wants_window(clock, held) {
                    budget.opened(clock, clock + COST * 3 / 4);
                    clock += COST;
                    held = 0;
                    opened[k] += 1;
                }
            }
        }
        (opened.iter().map(|n| f64::from(*n) / ROUNDS as f64).collect(), budget.spent as f64 / clock as f64)
    }

    #[test]
    fn the_registers_may_hold_what_the_wanted_error_leaves() {
        // level 1: (2 S + n)/255 + 4 * 320 = n/100 for n = 1,000,000
        let level_1 = BudgetSettings { level: 1, ..SETTINGS };
        assert_eq!(level_1.most_held(1_000_000), (8_720 * 255 - 1_000_000) / 2);
        assert_eq!(SETTINGS.most_held(1_000_000), (8_720 * 255 / 2 - 1_000_000) / 2);
        assert_eq!(SETTINGS.most_held(100_000), 0, "not to be had: even a fresh window leaves more error");
        assert_eq!(
            BudgetSettings { max_error: 1_000_000, ..SETTINGS }.most_held(1),
            u64::MAX,
            "any error will do"
        );
    }

    #[test]
    fn where_there_is_time_each_reading_is_sharp() {
        let (opened, spent) = run(SETTINGS, &[4_000_000]);
        assert!(opened[0] > 0.99, "{opened:?}");
        assert!(spent < 0.01, "{spent}");
    }

    #[test]
    fn the_budget_is_kept_whatever_the_distances() {
        for distances in
            [&[1_000][..], &[100_000], &[1_000_000], &[100_000, 1_000_000], &[10_000, 50_000, 2_000_000]]
        {
            let (_, spent) = run(SETTINGS, distances);
            assert!(
                spent < 0.0105 + 64.0 * COST as f64 * 6.0 / (1000.0 * distances.iter().sum::<u64>() as f64)
            );
        }
    }

    #[test]
    fn what_there_is_is_spent() {
        for distances in [&[100_000][..], &[1_000_000], &[100_000, 200_000]] {
            let (_, spent) = run(SETTINGS, distances);
            assert!(spent > 0.006, "{distances:?}: {spent}");
        }
    }

    #[test]
    fn a_thrifty_pair_has_its_window_at_its_start() {
        // one window in 3.9 M slots is just within 1 %, with the slow paths
        let (opened, _) = run(SETTINGS, &[3_000_000, 900_000]);
        assert!(opened[0] > 0.95 && opened[1] < 0.2, "{opened:?}");
    }

    #[test]
    fn one_slow_window_does_not_starve_the_next() {
        let mut budget = Budget::new(SETTINGS);
        budget.opened(1, 1 + COST);
        budget.opened(1, 1_000_000);
        assert!(budget.wants_window(1_000_001, 1_000_000));
        assert!(budget.cost < 2 * COST as i64);
    }

    #[test]
    fn a_long_way_is_reason_enough_for_a_window_even_if_a_longer_one_may_follow() {
        let mut budget = Budget::new(SETTINGS);
        budget.credit = 20 * budget.cost;
        budget.wants_window(1, 1_100_000_000);
        budget.restarted();
        assert!(budget.wants_window(1_000_001, 6_000_000)); // a millisecond earns 10 us, a window and a half
    }

    #[test]
    fn a_new_region_is_measured_however_much_is_spent_on_others() {
        let mut budget = Budget::new(SETTINGS);
        let mut clock = 1;
        let mut execute = |new| {
            clock += 1000;
            budget.request_window(new);
            let opens = budget.wants_window(clock, 5_000);
            if opens {
                budget.opened(clock, clock + COST * 3 / 4);
            }
            opens
        };
        assert!((0..BURST).any(|_| !execute(false)), "nothing is left for those");
        assert!((0..RESERVE / 2).all(|_| execute(true)));
    }

    /// Regions that execute in turn, 1,000 ns each; how often they ask for a window, and get one, from the second second to the fourth.
    fn ask(regions: u64) -> (u64, u64) {
        let mut budget = Budget::new(SETTINGS);
        let mut waits = vec![0; regions as usize];
        let (mut asked, mut got, mut random) = (0, 0, 1u64);
        for turn in 1..=4_000_000 {
            if turn == 1_000_000 {
                (asked, got) = (0, 0);
            }
            let wait = &mut waits[(turn % regions) as usize];
            if *wait > 0 {
                *wait -= 1;
                continue;
            }
            asked += 1;
            budget.request_window(false);
            if budget.wants_window(turn * 1000, 5_000) {
                budget.opened(turn * 1000, turn * 1000 + COST * 3 / 4);
                got += 1;
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *wait = (random >> 33) % (2 * budget.one_in(regions * 1000));
        }
        (asked, got)
    }

    #[test]
    fn however_many_regions_ask_half_of_them_get_their_window() {
        let (_, alone) = ask(1);
        for regions in [10, 1_000, 5_000] {
            let (asked, got) = ask(regions);
            assert!(got > alone * 3 / 4, "{regions} regions: {got} windows, a region alone {alone}");
            assert!(asked < 3 * got, "{regions} regions: {asked} asked, {got} got");
        }
    }

    /// After thousands of requests in vain, within no time, a region waits for no more than a few windows' time.
    #[test]
    fn requests_in_vain_are_soon_forgotten() {
        let mut budget = Budget::new(SETTINGS);
        let mut clock = 1;
        for _ in 0..5_000 {
            budget.request_window(true);
            if budget.wants_window(clock, 1_000_000) {
                budget.opened(clock, clock + budget.cost as u64);
            }
        }
        let window = budget.cost as u64 * 100; // at 1 % of the time
        for waited in 1.. {
            clock += window;
            budget.request_window(true);
            if budget.wants_window(clock, 1_000_000) {
                assert!(waited < 10, "{waited} windows' time");
                return;
            }
        }
    }

    #[test]
    fn no_budget_no_windows_but_the_burst() {
        let (opened, _) = run(BudgetSettings { max_overhead: 0, ..SETTINGS }, &[4_000_000]);
        assert!(opened[0] <= 0.065, "{opened:?}");
    }
}
