//! Bursts and time by thread, by the function that runs there, and by the time at which it runs.
//!
//! Bursts do not come evenly: a burst that was asked for while a thread slept comes when the thread wakes, so a thread that sleeps often has more
//! bursts in a second of CPU time than a thread that runs on. How much time a thread spent in each function the thread's clock tells. So the windows
//! of each stratum count for as much as the stratum has of the time (post-stratification). A program has phases, which sleep differently, and what
//! a function does goes with the phases: so a stratum is cut into cells of time (`cells`).
#![forbid(unsafe_code)]

mod cells;
mod evened;

use crate::statistics::TWO_SIDED;
use cells::{Instant, cells};
pub(crate) use evened::{BurstCount, ThreadInstant, evened};
use std::collections::BTreeMap;
use topdown::SampledEvents;

/// A cell of time has no fewer bursts, and no fewer samples of the clock: the noise of the cell's weight is in the interval.
const FEWEST: usize = 8;
/// Fewer bursts of a function tell no shares.
pub(crate) const LEAST: usize = 10;

/// A thread where a function runs. (None: no frame is known)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stratum {
    pub thread: i32,
    pub function: Option<usize>,
}

/// The windows of one burst that have both ends in a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cluster {
    /// Of each event, over the windows.
    pub counts: Vec<f64>,
    pub windows: usize,
    /// The cluster counts for so many windows.
    pub weight: f64,
    /// What the first event has counted in the windows in which nothing else ran.
    pub alone: f64,
    pub long: bool,
    /// Where the first window began.
    pub stratum: Stratum,
    /// When the burst was.
    pub at: u64,
    /// The cluster would count for so many times as much, if more bursts counted together (`BurstCount`).
    pub larger: f64,
}

impl Cluster {
    /// The cluster counts for so many times as much.
    pub fn scale(&mut self, by: f64) {
        self.counts.iter_mut().chain([&mut self.weight, &mut self.alone]).for_each(|n| *n *= by);
    }
}

/// Adds what a burst has counted of each event.
pub(crate) fn add_counts(sums: &mut Vec<f64>, cluster: &Cluster) {
    sums.resize(cluster.counts.len(), 0.0);
    sums.iter_mut().zip(&cluster.counts).for_each(|(sum, n)| *sum += n);
}

/// What samples of clocks stand for.
#[derive(Clone, Copy, Debug, Default)]
struct SampledTime {
    ns: f64,
    squares: f64,
}

impl SampledTime {
    fn add(&mut self, ns: f64) {
        self.ns += ns;
        self.squares += ns * ns;
    }
}

/// A sample of a clock.
#[derive(Clone, Copy, Debug)]
struct TimeSample {
    stratum: Stratum,
    at: u64,
    ns: f64,
}

/// The time of each stratum.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeOfStrata {
    samples: Vec<TimeSample>,
    /// What samples stand for may be the time of others.
    pub is_doubtful: bool,
}

impl TimeOfStrata {
    /// Adds a sample that stands for so many nanoseconds.
    pub fn add(&mut self, stratum: Stratum, at: u64, ns: u64) {
        self.samples.push(TimeSample { stratum, at, ns: ns as f64 });
    }
}

/// Strata that are weighed apart from the rest: one that has bursts enough, or all that have fewer, of a function or of all functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StrataGroup {
    Of(Stratum),
    InFunction(Option<usize>),
    Rest,
}

/// A cell of a group.
#[derive(Debug, Default)]
struct GroupCell {
    time: SampledTime,
    clusters: Vec<usize>,
    measure: f64,
    /// Of each event, as the bursts came.
    counts: Vec<f64>,
}

/// Bursts that count as if they had come evenly.
#[derive(Debug)]
pub(crate) struct WeighedBursts {
    pub clusters: Vec<Cluster>,
    parts: Vec<GroupCell>,
    all: SampledTime,
    /// The part of all time that strata without a burst have.
    pub untold: f64,
    /// Whole strata, if nobody knows how much of the time each stratum has.
    doubtful: Vec<GroupCell>,
}

fn group_of(clusters: &[&Cluster]) -> impl Fn(&Stratum) -> StrataGroup {
    let (mut strata, mut functions) = (BTreeMap::new(), BTreeMap::new());
    clusters.iter().for_each(|cluster| *strata.entry(cluster.stratum).or_insert(0) += 1);
    strata.retain(|stratum: &Stratum, bursts: &mut usize| {
        let enough = *bursts >= LEAST;
        if !enough {
            *functions.entry(stratum.function).or_insert(0) += *bursts;
        }
        enough
    });
    move |stratum| match functions.get(&stratum.function) {
        _ if strata.contains_key(stratum) => StrataGroup::Of(*stratum),
        Some(bursts) if *bursts >= LEAST => StrataGroup::InFunction(stratum.function),
        _ => StrataGroup::Rest,
    }
}

/// The parts whose bursts are weighed together.
fn parts(
    time: &TimeOfStrata,
    clusters: &[&Cluster],
    measure: fn(&Cluster) -> f64,
    fewest: usize,
) -> Vec<GroupCell> {
    let group_of = group_of(clusters);
    let mut groups: BTreeMap<StrataGroup, (Vec<Instant>, Vec<Instant>)> = BTreeMap::new();
    for (place, TimeSample { stratum, at, .. }) in time.samples.iter().enumerate() {
        groups.entry(group_of(stratum)).or_default().0.push(Instant { at: *at, place });
    }
    for (place, cluster) in clusters.iter().enumerate() {
        groups.entry(group_of(&cluster.stratum)).or_default().1.push(Instant { at: cluster.at, place });
    }
    let part = |(samples, bursts): (Vec<usize>, Vec<usize>)| {
        let mut part = GroupCell::default();
        samples.into_iter().for_each(|place| part.time.add(time.samples[place].ns));
        for cluster in bursts.iter().map(|place| clusters[*place]) {
            part.measure += measure(cluster);
            add_counts(&mut part.counts, cluster);
        }
        GroupCell { clusters: bursts, ..part }
    };
    groups.into_values().flat_map(|(samples, bursts)| cells(samples, bursts, fewest)).map(part).collect()
}

impl WeighedBursts {
    /// Weighs bursts; `measure`: how much a burst has of what is to be divided as the time is.
    pub fn new(time: &TimeOfStrata, clusters: &[&Cluster], measure: fn(&Cluster) -> f64) -> WeighedBursts {
        WeighedBursts::by_cells(time, clusters, measure, FEWEST)
    }

    /// The same by cells of twice as many bursts: the difference is what shares may be off since bursts come unevenly within a cell.
    pub fn by_larger_cells(
        time: &TimeOfStrata,
        clusters: &[&Cluster],
        measure: fn(&Cluster) -> f64,
    ) -> WeighedBursts {
        WeighedBursts::by_cells(time, clusters, measure, 2 * FEWEST)
    }

    fn by_cells(
        time: &TimeOfStrata,
        clusters: &[&Cluster],
        measure: fn(&Cluster) -> f64,
        fewest: usize,
    ) -> WeighedBursts {
        let whole = || parts(time, clusters, measure, usize::MAX);
        let doubtful = if time.is_doubtful { whole() } else { Vec::new() };
        let parts = parts(time, clusters, measure, fewest);
        let mut all = SampledTime::default();
        time.samples.iter().for_each(|sample| all.add(sample.ns));
        let parts: Vec<GroupCell> = parts.into_iter().filter(|part| part.measure > 0.0).collect();
        let told: f64 = parts.iter().map(|part| part.time.ns).sum();
        let measured: f64 = parts.iter().map(|part| part.measure).sum();
        let mut clusters: Vec<Cluster> = clusters.iter().map(|cluster| (*cluster).clone()).collect();
        // (where nothing tells the time of any part, bursts count as they came)
        for part in parts.iter().filter(|_| told > 0.0) {
            let by = part.time.ns / told * measured / part.measure;
            part.clusters.iter().for_each(|place| clusters[*place].scale(by));
        }
        let untold = if all.ns > 0.0 { 1.0 - told / all.ns } else { 0.0 };
        WeighedBursts { clusters, parts, all, untold, doubtful }
    }

    /// How far each of these shares may be off, if nobody knows how much of the time each stratum has: all time may be any stratum's.
    pub fn off_by_doubt(&self, events: &SampledEvents, shares: &[f64]) -> Vec<f64> {
        let mut furthest = vec![0.0; shares.len()];
        for of_part in self.doubtful.iter().filter_map(|part| events.shares(&part.counts)) {
            let apart = of_part.iter().zip(shares).map(|(of_part, all)| (of_part - all).abs());
            furthest.iter_mut().zip(apart).for_each(|(most, apart)| *most = f64::max(*most, apart));
        }
        furthest
    }

    /// How far each of these shares may be off (95 %), since time is told by samples.
    pub fn off_by_time(&self, events: &SampledEvents, shares: &[f64]) -> Vec<f64> {
        let mut squares = vec![0.0; shares.len()];
        let SampledTime { ns, squares: of_all } = self.all;
        if self.parts.len() < 2 || ns <= 0.0 {
            return squares;
        }
        // (a part that no sample of a clock has met may have had one sample)
        let one_sample = (of_all / ns).powi(2);
        for part in &self.parts {
            let Some(of_part) = events.shares(&part.counts) else { continue };
            let weight = part.time.squares.max(one_sample) / ns.powi(2);
            let apart = of_part.iter().zip(shares).map(|(of_part, all)| (of_part - all).powi(2));
            squares.iter_mut().zip(apart).for_each(|(sum, apart)| *sum += weight * apart);
        }
        squares.into_iter().map(|squares| TWO_SIDED * squares.sqrt()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stratum(thread: i32, function: usize) -> Stratum {
        Stratum { thread, function: Some(function) }
    }

    /// So many bursts of one window, with this share of 1,000 slots retired and the rest backend bound.
    fn bursts(stratum: Stratum, number: usize, retired: f64) -> Vec<Cluster> {
        let counts = vec![1000.0, 1000.0 * retired, 1000.0 * (1.0 - retired), 0.0];
        vec![Cluster { counts, windows: 1, weight: 1.0, stratum, ..Cluster::default() }; number]
    }

    fn events() -> SampledEvents {
        SampledEvents::of_core("Sunny, Willow or Cypress Cove, bare counters").unwrap()
    }

    /// What retires by all bursts together, how far the share may be off by the samples of time, and what part of the time is untold.
    fn told(time: &[(Stratum, usize)], clusters: &[Vec<Cluster>]) -> (f64, f64, f64) {
        let mut all = TimeOfStrata::default();
        for (stratum, samples) in time {
            (0..*samples).for_each(|_| all.add(*stratum, 0, 1000));
        }
        let clusters: Vec<&Cluster> = clusters.iter().flatten().collect();
        let weighed = WeighedBursts::new(&all, &clusters, |cluster| cluster.counts[0]);
        let mut sums = Vec::new();
        weighed.clusters.iter().for_each(|cluster| add_counts(&mut sums, cluster));
        let before = clusters.iter().map(|cluster| cluster.counts[0]).sum::<f64>();
        assert!((sums[0] - before).abs() < 1e-6 * before, "as many slots as before: {sums:?}");
        let shares = events().shares(&sums).unwrap();
        (shares[0], weighed.off_by_time(&events(), &shares)[0], weighed.untold)
    }

    #[test]
    fn bursts_count_for_the_time_that_their_thread_has_in_their_function() {
        let (a, b) = (stratum(1, 7), stratum(2, 8));
        let uneven = [bursts(a, 80, 0.9), bursts(b, 20, 0.1)];
        let (share, off, untold) = told(&[(a, 100), (b, 100)], &uneven);
        assert!((share - 0.5).abs() < 1e-9 && untold == 0.0, "{share} {untold}");
        // two halves of 200 samples, whose shares are 0.8 apart: 1.96 * 0.4 / sqrt(200)
        assert!((off - 0.0554).abs() < 1e-3, "{off}");
        // the same function in two threads, and two functions in one
        let mut same = uneven.clone();
        same[1] = bursts(stratum(2, 7), 20, 0.1);
        assert!((told(&[(a, 50), (stratum(2, 7), 150)], &same).0 - 0.3).abs() < 1e-9);
        same[1] = bursts(stratum(1, 8), 20, 0.1);
        assert!((told(&[(a, 50), (stratum(1, 8), 150)], &same).0 - 0.3).abs() < 1e-9);
        // where no clock tells the time bursts count as they came
        assert_eq!(told(&[], &uneven), (0.74, 0.0, 0.0));
    }

    #[test]
    fn where_time_is_doubtful_all_may_be_any_stratums() {
        let [a, b] = [stratum(1, 7), stratum(2, 8)];
        let clusters = [bursts(a, 80, 0.9), bursts(b, 20, 0.1)];
        let clusters: Vec<&Cluster> = clusters.iter().flatten().collect();
        let mut time = TimeOfStrata::default();
        [a, a, a, b].into_iter().for_each(|stratum| time.add(stratum, 0, 1000));
        for is_doubtful in [false, true] {
            let time = TimeOfStrata { is_doubtful, ..time.clone() };
            let off = |share: f64, clusters: &[&Cluster]| {
                let weighed = WeighedBursts::new(&time, clusters, |cluster| cluster.counts[0]);
                weighed.off_by_doubt(&events(), &[share, 0.0, 0.0, 1.0 - share])[0]
            };
            let (of_both, of_one) = (off(0.7, &clusters), off(0.9, &clusters[..80]));
            let expected = if is_doubtful { 0.6 } else { 0.0 };
            assert!((of_both - expected).abs() < 1e-9 && of_one < 1e-9, "{of_both} {of_one}");
        }
    }

    #[test]
    fn strata_with_few_bursts_are_weighed_together() {
        // of many threads each has one burst in each of two functions
        let of = |function: usize, retired: f64| {
            (0..50).flat_map(move |thread| bursts(stratum(thread, function), 1, retired)).collect()
        };
        let time: Vec<(Stratum, usize)> =
            (0..50).flat_map(|thread| [(stratum(thread, 7), 3), (stratum(thread, 8), 1)]).collect();
        let (share, ..) = told(&time, &[of(7, 0.8), of(8, 0.4)]);
        assert!((share - 0.7).abs() < 1e-9, "{share}");
        // functions with one burst each are told by the bursts of all such functions
        let rare: Vec<Vec<Cluster>> = (0..20).map(|function| bursts(stratum(1, function), 1, 0.2)).collect();
        let mut all = vec![bursts(stratum(1, 99), 100, 0.8)];
        all.extend(rare);
        let time: Vec<(Stratum, usize)> =
            (0..20).chain([99, 99, 99]).map(|function| (stratum(1, function), 20)).collect();
        let (share, _, untold) = told(&time, &all);
        assert!((share - (0.8 * 60.0 + 0.2 * 400.0) / 460.0).abs() < 1e-9 && untold == 0.0, "{share}");
    }

    #[test]
    fn time_of_which_no_burst_tells_is_untold() {
        let (a, b) = (stratum(1, 7), stratum(1, 8));
        let (share, off, untold) = told(&[(a, 30), (b, 10)], &[bursts(a, 40, 0.8)]);
        assert!(
            (share - 0.8).abs() < 1e-9 && off == 0.0 && (untold - 0.25).abs() < 1e-9,
            "{share} {off} {untold}"
        );
        // a stratum that bursts have met and no sample of the clock counts for nothing, but it may have had a sample
        let (share, off, untold) = told(&[(a, 100)], &[bursts(a, 40, 0.8), bursts(b, 40, 0.2)]);
        assert!((share - 0.8).abs() < 1e-9 && untold == 0.0, "{share} {untold}");
        assert!((off - TWO_SIDED * 0.6 / 100.0).abs() < 1e-9, "{off}");
        assert_eq!(told(&[(b, 10)], &[bursts(a, 40, 0.8)]), (0.8, 0.0, 1.0));
    }
}
