//! Shares of a function's slots from windows with both ends in it, each with an interval.
//!
//! The windows of a burst are a cluster, and bursts are drawn at random instants, each stratum's as often as it comes (`strata`): the ratio
//! estimator of cluster sampling. On top of its interval come
//! - how long each stratum ran, which is known by samples of a clock; what ran where no burst came may be all of a node, or none;
//! - if nobody knows how long they ran (a timer told the time), what the furthest stratum is from all;
//! - what shares differ by if strata are cut into cells of time twice as large: within a cell bursts may come more and less often;
//! - what the function may have called, or returned to, and come back from, within a window: of windows twice as long, whose ends
//!   are both in the function, the sample in the middle tells how many are in another one there. In shorter windows it is less. Nor is
//!   it more than the slots of those windows in which anything returned, where returns are counted (`proof::Calls`). No window is left
//!   out for what it counts: those without returns are of the middles of runs;
//! - nor is the sample off by less than if what no burst has met (three of as many, at 95 %) were as far from the rest as any burst's
//!   windows are from their function;
//! - what the first slots after a sample have in excess: windows of two lengths differ by it. (Where what the kernel does is counted, too,
//!   much of a window is the interrupts' at its ends: there, shares are of what longer windows have more than shorter ones);
//! - at either end of a window, counters that count at different stages of the pipeline;
//! - the rounding of registers, which is the same in all windows of a function and does not average out.
#![forbid(unsafe_code)]

use crate::statistics::{at_most, student};
use crate::strata::{BurstCount, Cluster, LEAST, Stratum, TimeOfStrata, WeighedBursts, add_counts};
use topdown::{SampledEvents, SampledNode};
use topdown_report::ShareInterval;

/// Of all ends of windows together, as a share of the slots: pipeline stages of each end are off by some slots, in either direction.
const EDGES: f64 = 0.0005;

/// Shares that can be told.
#[derive(Clone, Debug)]
pub struct EstimatedShares {
    /// Of each node, in the order of the events' nodes.
    pub shares: Vec<ShareInterval>,
    /// From so many windows.
    pub windows: usize,
    /// How far the worst node may be off by what a longer run makes smaller.
    pub sampling: f64,
}

impl EstimatedShares {
    /// How far the share of a node of level 1 may be off, if one is known so badly that its interval has half of all that can be.
    pub(crate) fn says_little(&self, nodes: &[SampledNode]) -> Option<f64> {
        let of_level_1 = nodes.iter().zip(&self.shares).filter(|(node, _)| node.level == 1);
        let wide = of_level_1.filter(|(_, share)| share.high - share.low >= 0.5);
        wide.map(|(_, share)| share.error()).reduce(f64::max)
    }
}

/// Why shares cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoShares {
    /// Only so many bursts have a window in the function.
    Few(usize),
    /// Others may have had so many of its windows, or so few were seen, that shares say little.
    Little,
    /// Samples were taken where a condition held: they have no windows.
    Conditional,
}

/// What is counted between two samples besides the function's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Background<'a> {
    /// In user mode alone.
    User(&'a SeenInAll),
    /// The way out of one interrupt, and into the next: what the kernel does is counted, too.
    Interrupts,
}

/// What was seen of all functions together, and may be so of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenInAll {
    /// Slots of each node in excess at the start of a window.
    pub excess: Vec<f64>,
    /// How often functions jump away and back without a return, as a part of bursts; 0 where none was seen to.
    pub jumps: f64,
    /// How far the share of each node in a burst's windows is from that of their function at the most.
    pub apart: Vec<f64>,
}

impl SeenInAll {
    pub fn of<'a>(events: &SampledEvents, all: impl Iterator<Item = &'a SeenIn> + Clone) -> SeenInAll {
        SeenInAll {
            excess: excess(events, all.clone()),
            jumps: jumps(all.clone()),
            apart: apart(events, all),
        }
    }
}

/// What was seen of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenIn {
    pub clusters: Vec<Cluster>,
    /// Of bursts with shorter gaps, and of those with longer ones.
    pub returns: [Returns; 2],
    /// Of bursts in which nothing returned, and no more was called than before.
    pub jumps: Returns,
    /// How long each stratum ran of what the function did.
    pub time: TimeOfStrata,
}

/// Whether nothing but the function ran, as calls and returns tell, if it was where a burst's samples are: in each window, and from its first
/// sample to the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnsharedWindows {
    pub windows: Vec<bool>,
    pub throughout: bool,
}

/// Bursts with both ends in a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returns {
    pub all: u64,
    /// Of these, how many were in another function in between.
    pub elsewhere: u64,
}

/// When a burst was, the stratum of each of its samples, and for how many it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstTime<'a> {
    pub at: u64,
    pub strata: &'a [Stratum],
    pub evened: BurstCount,
}

impl SeenIn {
    /// Adds a burst of which these of its samples are in the function, and these its windows.
    pub fn add(
        &mut self,
        inside: &[bool],
        windows: &[Option<Vec<u64>>],
        long: bool,
        alone: &UnsharedWindows,
        coming: BurstTime,
    ) {
        let BurstTime { at, strata, evened: [by, by_larger] } = coming;
        let larger = if by > 0.0 { by_larger / by } else { 1.0 };
        let mut cluster = Cluster { long, at, larger, ..Cluster::default() };
        for (place, (pair, counts)) in inside.windows(2).zip(windows).enumerate() {
            if let ([true, true], Some(counts)) = (pair, counts) {
                cluster.counts.resize(counts.len(), 0.0);
                cluster.counts.iter_mut().zip(counts).for_each(|(sum, n)| *sum += *n as f64);
                if cluster.windows == 0 {
                    cluster.stratum = strata.get(place).copied().unwrap_or_default();
                }
                cluster.windows += 1;
                cluster.weight += 1.0;
                if alone.windows.get(place) == Some(&true) {
                    cluster.alone += counts[0] as f64;
                }
            }
        }
        if let ([true, middle, true], [Some(_), Some(_)]) = (inside, windows) {
            let returns = &mut self.returns[usize::from(long)];
            returns.all += 1;
            returns.elsewhere += u64::from(!middle);
            if alone.throughout {
                self.jumps.all += 1;
                self.jumps.elsewhere += u64::from(!middle);
            }
        }
        if cluster.windows > 0 && by > 0.0 {
            cluster.scale(by);
            self.clusters.push(cluster);
        }
    }
}

/// What they have counted, and for how many windows they count.
fn total<'a>(clusters: impl IntoIterator<Item = &'a Cluster>) -> (Vec<f64>, f64) {
    let (mut counts, mut windows) = (Vec::new(), 0.0);
    for cluster in clusters {
        add_counts(&mut counts, cluster);
        windows += cluster.weight;
    }
    (counts, windows)
}

/// Each node's share, and how far a random sample is off it (95 %), by the jackknife: it takes any formula, also one that keeps a
/// share from being negative.
fn ratio(events: &SampledEvents, clusters: &[&Cluster]) -> Option<Vec<(f64, f64)>> {
    let (counts, _) = total(clusters.iter().copied());
    let shares = events.shares(&counts)?;
    let mut squares = vec![0.0; shares.len()];
    for cluster in clusters {
        let others: Vec<f64> = counts.iter().zip(&cluster.counts).map(|(all, one)| all - one).collect();
        let others = events.shares(&others)?;
        squares.iter_mut().zip(others.iter().zip(&shares)).for_each(|(sum, (o, s))| *sum += (o - s).powi(2));
    }
    let n = clusters.len() as f64;
    let half = |squares: f64| student(clusters.len() - 1) * (squares * (n - 1.0) / n).sqrt();
    Some(shares.into_iter().zip(squares.into_iter().map(half)).collect())
}

/// Slots of each node in excess at the start of a window, per window: what windows of two lengths differ by, over all functions.
fn excess<'a>(events: &SampledEvents, all: impl Iterator<Item = &'a SeenIn>) -> Vec<f64> {
    let nodes = events.nodes().len();
    let (mut difference, mut weight) = (vec![0.0; nodes], 0.0);
    let (mut short_windows, mut long_windows) = ((0.0, 0.0), (0.0, 0.0));
    for seen in all {
        let of = |long: bool| -> Vec<&Cluster> {
            seen.clusters.iter().filter(|cluster| cluster.long == long).collect()
        };
        let (short, long) = (of(false), of(true));
        if short.len().min(long.len()) < LEAST {
            continue;
        }
        let ((short, n), (long, m)) = (total(short), total(long));
        let (slots, more_slots) = (events.slots(&short), events.slots(&long));
        if let (Some(short), Some(long)) = (events.shares(&short), events.shares(&long)) {
            let each = slots.min(more_slots);
            difference
                .iter_mut()
                .zip(short.iter().zip(&long))
                .for_each(|(sum, (s, l))| *sum += each * (s - l));
            weight += each;
            short_windows = (short_windows.0 + slots, short_windows.1 + n);
            long_windows = (long_windows.0 + more_slots, long_windows.1 + m);
        }
    }
    if weight <= 0.0 {
        return vec![0.0; nodes];
    }
    let apart = short_windows.1 / short_windows.0 - long_windows.1 / long_windows.0;
    difference.iter().map(|sum| sum / weight / apart).collect()
}

/// How often those functions jump away and back without a return that were not seen to, as a part of all bursts in which nothing returned:
/// as often as those that were seen to do it once (Good and Turing's estimate of what was not seen). Where none was seen to, compilers made no
/// such jumps.
fn jumps<'a>(all: impl Iterator<Item = &'a SeenIn>) -> f64 {
    let (mut bursts, mut seen, mut once) = (0, 0, 0);
    for SeenIn { jumps: Returns { all, elsewhere }, .. } in all {
        bursts += all;
        seen += elsewhere;
        once += u64::from(*elsewhere == 1);
    }
    if seen == 0 { 0.0 } else { at_most(once as f64, bursts as f64) }
}

/// See `SeenInAll::apart`.
fn apart<'a>(events: &SampledEvents, all: impl Iterator<Item = &'a SeenIn>) -> Vec<f64> {
    let mut apart = vec![0.0; events.nodes().len()];
    for clusters in all.map(|seen| &seen.clusters).filter(|clusters| clusters.len() >= LEAST) {
        let Some(shares) = events.shares(&total(clusters).0) else { continue };
        for of_one in clusters.iter().filter_map(|cluster| events.shares(&cluster.counts)) {
            let further =
                |(apart, (one, all)): (&mut f64, (f64, &f64))| *apart = apart.max((one - all).abs());
            apart.iter_mut().zip(of_one.into_iter().zip(&shares)).for_each(further);
        }
    }
    apart
}

/// The shares of a function: from all windows, or from the shorter ones alone if it was seen to be left and come back to in the
/// longer. `unsampled`: so large a part of what it did nobody has seen.
///
/// # Errors
/// Why they cannot be told.
pub(crate) fn shares(
    events: &SampledEvents,
    seen: &SeenIn,
    besides: Background,
    unsampled: f64,
) -> Result<EstimatedShares, NoShares> {
    let Background::User(in_all) = besides else { return by_difference(events, seen, unsampled) };
    let all: Vec<&Cluster> = seen.clusters.iter().collect();
    let shorter: Vec<&Cluster> = all.iter().copied().filter(|cluster| !cluster.long).collect();
    let from = |clusters: &[&Cluster]| from(events, seen, in_all, clusters, unsampled);
    let (both, shorter) = (from(&all), from(&shorter));
    let comes_back = seen.returns[1].elsewhere > 0;
    let worst = |told: &EstimatedShares| told.shares.iter().map(ShareInterval::error).fold(0.0, f64::max);
    let best = match (both, shorter) {
        (Some(both), Some(shorter)) if !comes_back && worst(&both) < worst(&shorter) => Some(both),
        (_, Some(shorter)) => Some(shorter),
        (both, None) => both,
    };
    best.ok_or(NoShares::Few(all.len()))
}

/// How far the share of a function's own slots may be from that of all, of which so large a part is others': these may be all of the node,
/// or none.
fn displaced(share: f64, foreign: f64) -> f64 {
    let by = share.max(1.0 - share);
    if foreign < 1.0 { (by * foreign / (1.0 - foreign)).min(1.0) } else { 1.0 }
}

/// What a longer run makes smaller of that part: nothing, if others were seen in it.
fn falling(foreign: f64, returns: &[Returns; 2]) -> f64 {
    if returns.iter().any(|returns| returns.elsewhere > 0) { 0.0 } else { foreign }
}

/// How far a share may be off if of so large a part of all nothing is known.
fn unknown(share: f64, part: f64) -> f64 {
    share.max(1.0 - share) * part
}

/// The shares from these of the windows.
fn from(
    events: &SampledEvents,
    seen: &SeenIn,
    in_all: &SeenInAll,
    clusters: &[&Cluster],
    unsampled: f64,
) -> Option<EstimatedShares> {
    if clusters.len() < LEAST {
        return None;
    }
    let as_they_came = clusters;
    let weighed = WeighedBursts::new(&seen.time, clusters, |cluster| cluster.counts[0]);
    let clusters: &[&Cluster] = &weighed.clusters.iter().collect::<Vec<_>>();
    let (counts, windows) = total(clusters.iter().copied());
    let slots = events.slots(&counts);
    // (so large a part of it no burst may have met, where it is as far from the rest as any function's)
    let unseen = at_most(0.0, clusters.len() as f64);
    let mut ratios = ratio(events, clusters)?;
    let shares: Vec<f64> = ratios.iter().map(|(share, _)| *share).collect();
    let by_time = weighed.off_by_time(events, &shares);
    ratios.iter_mut().zip(by_time).for_each(|((_, half), by_time)| *half = half.hypot(by_time));
    let by_doubt = weighed.off_by_doubt(events, &shares);
    ratios.iter_mut().zip(by_doubt).for_each(|((_, half), by_doubt)| *half += by_doubt);
    let larger = WeighedBursts::by_larger_cells(&seen.time, as_they_came, |cluster| cluster.counts[0]);
    let by_larger = events.shares(&total(&larger.clusters).0)?;
    let by_cells = by_larger.iter().zip(&shares).map(|(larger, share)| (larger - share).abs());
    ratios.iter_mut().zip(by_cells).for_each(|((_, half), by_cells)| *half += by_cells);
    ratios.iter_mut().zip(&in_all.apart).for_each(|((_, half), apart)| *half = half.max(unseen * apart));
    let rounded = events.rounded(&counts, events.rounding_of(slots, windows))?;
    // (one that was seen to do it is none of those of which nothing is known)
    let jumps = if seen.jumps.elsewhere > 0 { 1.0 } else { in_all.jumps };
    // slots of other functions, as a part of all: windows of each length have as many at the most
    let foreign = [false, true].map(|long| {
        let of_length = || clusters.iter().copied().filter(|cluster| cluster.long == long);
        let (counts, n) = total(of_length());
        let of = |returns: &[Returns]| {
            let all: u64 = returns.iter().map(|returns| returns.all).sum();
            let elsewhere: u64 = returns.iter().map(|returns| returns.elsewhere).sum();
            at_most(elsewhere as f64, all as f64)
        };
        // (in longer windows it is left and come back to no less often, so these may count with the shorter)
        let of_these = of(&seen.returns[usize::from(long)..][..1]);
        let part = if long { of_these } else { of_these.min(of(&seen.returns)) };
        if n == 0.0 || counts[0] <= 0.0 {
            return 0.0;
        }
        let alone = of_length().map(|cluster| cluster.alone).sum::<f64>() / counts[0];
        part.min(1.0 - alone + jumps * alone) * events.slots(&counts) / slots
    });
    let foreign: f64 = foreign.iter().sum();
    let part_unseen = 1.0 - (1.0 - weighed.untold) * (1.0 - unsampled);
    let one = |((share, sampling), (excess, rounded)): (&(f64, f64), (&f64, &f64))| {
        let others = displaced(*share, foreign);
        let start = excess.abs() * windows / slots;
        let unseen = unknown(*share, part_unseen);
        ShareInterval::around(*share, sampling + others + start + rounded + unseen + EDGES)
    };
    let sampling = ratios.iter().map(|(_, half)| *half).fold(0.0, f64::max);
    Some(EstimatedShares {
        shares: ratios.iter().zip(in_all.excess.iter().zip(&rounded)).map(one).collect(),
        windows: clusters.iter().map(|cluster| cluster.windows).sum(),
        sampling: sampling + falling(foreign, &seen.returns),
    })
}

/// What one of so many windows counts on average.
fn mean((counts, windows): (impl Iterator<Item = f64>, f64)) -> Vec<f64> {
    counts.map(|n| n / windows).collect()
}

/// The shares of what longer windows have more than shorter ones: in that there is nothing of the interrupts, of which each window
/// has as much.
fn by_difference(events: &SampledEvents, seen: &SeenIn, unsampled: f64) -> Result<EstimatedShares, NoShares> {
    let of = |long: bool| -> Vec<&Cluster> {
        seen.clusters.iter().filter(|cluster| cluster.long == long).collect()
    };
    let both = [of(false), of(true)];
    let few = NoShares::Few(both.iter().map(Vec::len).min().unwrap_or(0));
    if both.iter().any(|clusters| clusters.len() < LEAST) {
        return Err(few);
    }
    let weighed =
        both.each_ref().map(|clusters| WeighedBursts::new(&seen.time, clusters, |cluster| cluster.weight));
    let both = weighed.each_ref().map(|weighed| &weighed.clusters);
    let totals = both.map(total);
    let means = totals.each_ref().map(|(counts, windows)| mean((counts.iter().copied(), *windows)));
    let slots = means.each_ref().map(|mean| events.slots(mean));
    let more = |[short, long]: &[Vec<f64>; 2]| -> Vec<f64> {
        long.iter().zip(short).map(|(long, short)| (long - short).max(0.0)).collect()
    };
    let difference = more(&means);
    let shares = events.shares(&difference).ok_or(few)?;
    let mut squares = vec![0.0; shares.len()];
    for (length, clusters) in both.iter().enumerate() {
        let n = clusters.len() as f64;
        let (counts, windows) = &totals[length];
        for cluster in *clusters {
            let others = counts.iter().zip(&cluster.counts).map(|(all, one)| all - one);
            let mut means = means.clone();
            means[length] = mean((others, windows - cluster.weight));
            let others = events.shares(&more(&means)).ok_or(few)?;
            let add = |(sum, (o, s)): (&mut f64, (&f64, &f64))| *sum += (o - s).powi(2) * (n - 1.0) / n;
            squares.iter_mut().zip(others.iter().zip(&shares)).for_each(add);
        }
    }
    let all = events.slots(&difference);
    let least = both.iter().map(|clusters| clusters.len()).min().unwrap_or(LEAST);
    // slots of other functions, which may make the difference larger or smaller
    let foreign = [0, 1].map(|length| {
        let Returns { all, elsewhere } = seen.returns[length];
        at_most(elsewhere as f64, all as f64) * slots[length]
    });
    let foreign = foreign.iter().sum::<f64>() / all;
    let rounded = events.rounded(&difference, events.rounding_of(slots[0] + slots[1], 2.0)).ok_or(few)?;
    let by_time = weighed[1].off_by_time(events, &shares);
    let by_doubt = weighed.each_ref().map(|weighed| weighed.off_by_doubt(events, &shares));
    let half = |k: usize| {
        let doubt = by_doubt.iter().map(|doubt| doubt[k]).fold(0.0, f64::max);
        (student(least - 1) * squares[k].sqrt()).hypot(by_time[k]) + doubt
    };
    let halves: Vec<f64> = (0..shares.len()).map(half).collect();
    let untold = weighed.iter().map(|weighed| weighed.untold).fold(0.0, f64::max);
    let part_unseen = 1.0 - (1.0 - untold) * (1.0 - unsampled);
    let one = |((share, half), rounded): ((&f64, &f64), &f64)| {
        let others = displaced(*share, foreign) + unknown(*share, part_unseen);
        ShareInterval::around(*share, half + others + rounded + EDGES)
    };
    let sampling = halves.iter().copied().fold(0.0, f64::max) + falling(foreign, &seen.returns);
    let windows = seen.clusters.iter().map(|cluster| cluster.windows).sum();
    Ok(EstimatedShares {
        shares: shares.iter().zip(&halves).zip(&rounded).map(one).collect(),
        windows,
        sampling,
    })
}

#[cfg(test)]
mod phases;
#[cfg(test)]
mod tests;
