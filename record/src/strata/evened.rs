//! How many bursts each burst of a thread counts for, so that each stretch of the thread's time has as many bursts as the clock tells that it is long.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

/// So many bursts of a thread, one behind the other, count for the time in which these bursts came.
const TOGETHER: usize = 3;

/// What came of a thread (on a kind of core) at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadInstant {
    pub of: (usize, i32),
    pub at: u64,
    /// A sample of a clock stands for so much of the thread's time.
    pub ns: u64,
    /// A burst that has windows.
    pub windows: bool,
}

/// For how many a burst counts; and for how many if twice as many bursts counted together: the first may be off by the difference of both.
pub(crate) type BurstCount = [f64; 2];

/// The time of a thread from its first instant to others.
struct Elapsed(Vec<(u64, f64)>);

impl Elapsed {
    fn of(all: &[ThreadInstant]) -> Elapsed {
        let mut sum = 0.0;
        let add = |came: &ThreadInstant| {
            sum += came.ns as f64;
            (came.at, sum)
        };
        let first = all.first().map(|came| (came.at, 0.0));
        Elapsed(first.into_iter().chain(all.iter().filter(|came| came.ns > 0).map(add)).collect())
    }

    /// The time that had passed by an instant. (Between two samples of the clock time passes evenly.)
    fn until(&self, at: u64) -> f64 {
        let next = self.0.partition_point(|(then, _)| *then <= at);
        match (next.checked_sub(1).map(|last| self.0[last]), self.0.get(next)) {
            (Some((from, before)), Some((to, after))) => {
                before + (after - before) * (at - from) as f64 / (to - from) as f64
            }
            (Some((_, all)), None) => all,
            (None, _) => 0.0,
        }
    }

    fn all(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, all)| *all)
    }
}

/// For how many each of the bursts of a thread counts, on average one.
fn of_thread(bursts: &[u64], elapsed: &Elapsed, together: usize) -> Vec<f64> {
    let each = elapsed.all() / bursts.len() as f64;
    if each <= 0.0 || bursts.is_empty() {
        return vec![1.0; bursts.len()];
    }
    let cells = (bursts.len() / together).max(1);
    // (a cell ends before a burst that was not at once with the burst before, and at a time between both)
    let bounds = (1..cells).map(|cell| cell * bursts.len() / cells);
    let bounds = bounds.filter(|burst| bursts[burst - 1] < bursts[*burst]);
    let middle = |burst: usize| bursts[burst - 1] + (bursts[burst] - bursts[burst - 1]) / 2;
    let bounds = bounds.map(|burst| (burst, elapsed.until(middle(burst))));
    let bounds: Vec<(usize, f64)> = bounds.chain([(bursts.len(), elapsed.all())]).collect();
    let (mut by, mut last) = (Vec::new(), (0, 0.0));
    for (burst, passed) in bounds {
        let number = burst - last.0;
        by.extend(std::iter::repeat_n((passed - last.1) / (number as f64 * each), number));
        last = (burst, passed);
    }
    by
}

/// For how many each burst counts.
pub(crate) fn evened(all: &[ThreadInstant]) -> Vec<BurstCount> {
    let mut threads: BTreeMap<(usize, i32), Vec<usize>> = BTreeMap::new();
    all.iter().enumerate().for_each(|(place, came)| threads.entry(came.of).or_default().push(place));
    let mut evened = vec![[1.0; 2]; all.len()];
    for mut places in threads.into_values() {
        places.sort_by_key(|place| all[*place].at);
        let elapsed = Elapsed::of(&places.iter().map(|place| all[*place]).collect::<Vec<_>>());
        places.retain(|place| all[*place].windows);
        let bursts: Vec<u64> = places.iter().map(|place| all[*place].at).collect();
        for (k, together) in [TOGETHER, 2 * TOGETHER].into_iter().enumerate() {
            let by = of_thread(&bursts, &elapsed, together);
            places.iter().zip(by).for_each(|(place, by)| evened[*place][k] = by);
        }
    }
    evened
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn came(at: u64, ns: u64, windows: bool) -> ThreadInstant {
        ThreadInstant { of: (0, 7), at: at * MS, ns: ns * MS, windows }
    }

    #[test]
    fn bursts_count_for_the_time_in_which_they_came() {
        // 100 ms of running, with a burst in each 2 ms; then 100 ms of which 10 are running and the rest sleep, with as many bursts
        let running = (0..100).map(|at| came(at, 1, false)).chain((0..50).map(|k| came(2 * k, 0, true)));
        let asleep =
            (0..10).map(|k| came(105 + 10 * k, 1, false)).chain((50..100).map(|k| came(2 * k, 0, true)));
        let all: Vec<ThreadInstant> = running.chain(asleep).collect();
        let evened = evened(&all);
        let sum = |from: u64, to: u64, k: usize| -> f64 {
            let within = all
                .iter()
                .zip(&evened)
                .filter(|(came, _)| came.windows && (from * MS..to * MS).contains(&came.at));
            within.map(|(_, evened)| evened[k]).sum()
        };
        for k in 0..2 {
            let (first, all) = (sum(0, 100, k), sum(0, 1000, k));
            assert!(
                (all - 100.0).abs() < 1e-9 && (first / all - 100.0 / 110.0).abs() < 0.02,
                "{first} of {all}"
            );
        }
    }

    #[test]
    fn where_nothing_tells_the_time_each_counts_once() {
        let bursts: Vec<ThreadInstant> = (0..7).map(|at| came(at, 0, true)).collect();
        assert_eq!(evened(&bursts), [[1.0; 2]; 7]);
        // so does each where nobody knows when the bursts came, and a burst that is alone
        let at_once: Vec<ThreadInstant> = (0..7).map(|_| came(0, 5, true)).collect();
        assert_eq!(evened(&at_once), [[1.0; 2]; 7]);
        assert_eq!(evened(&[came(5, 9, true)]), [[1.0; 2]]);
    }
}
