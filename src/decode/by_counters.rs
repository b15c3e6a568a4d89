//! Levels 1 and 2 of general-purpose counters, where they are sums of these: what the evaluation of the tree gives, to the last bit.

use super::{Shares, largest, max, min, pairs_below, shares_of_all};
use crate::model;
use crate::model::sums::{Below, RetiredRoot, SUMMED, Sums};
use crate::sample::{L1, L2, Sample, TD_SAMPLE_UNCORRECTED};
use crate::span::{Span, difference_of, float, go_together};
use crate::tree::LOST;
use std::array::from_fn;

/// Counters that are added up here.
const ADDED: usize = Below::NONE as usize;

/// No counter has so many bits of a region: all sums of counts are exact then, in whatever order.
const MOST_BITS: u32 = 45;

/// All bits of so many first counters.
static FIRST: [[u64; ADDED]; ADDED + 1] = {
    let (mut all, mut counters) = ([[0; ADDED]; ADDED + 1], 0);
    while counters <= ADDED {
        let mut k = 0;
        while k < counters {
            all[counters][k] = u64::MAX;
            k += 1;
        }
        counters += 1;
    }
    all
};

/// What the first counters, and one behind them that there is not, have counted between two samples. None: one of those that the samples
/// have went back, or has counted too much.
#[inline(always)]
fn counted(from: &Sample, to: &Sample, counters: usize) -> Option<[f64; ADDED + 1]> {
    // (so few bits are the fraction of a number of a fixed exponent)
    const EXPONENT: f64 = (1u64 << 52) as f64;
    const WRONG: u64 = !((1 << MOST_BITS) - 1);
    let first = &FIRST[if counters < ADDED { counters } else { ADDED }];
    let more: [u64; ADDED] = from_fn(|k| to.counter[k].wrapping_sub(from.counter[k]) & first[k]);
    // (from less than half of what there is nothing goes round so soon)
    let doubtful: [u64; ADDED] = from_fn(|k| more[k] | from.counter[k] & first[k] & 1 << 63);
    let both: [u64; 4] = from_fn(|k| doubtful[k] | doubtful[4 + k]);
    let wrong = (both[0] | both[2] | (both[1] | both[3])) & WRONG;
    let mut counts = [0.0; ADDED + 1];
    for k in 0..ADDED {
        counts[k] = f64::from_bits(EXPONENT.to_bits() | more[k]) - EXPONENT;
    }
    if wrong != 0 || counters > ADDED && further_went_back(from, to, counters) { None } else { Some(counts) }
}

#[cold]
#[inline(never)]
fn further_went_back(from: &Sample, to: &Sample, counters: usize) -> bool {
    (ADDED..counters).any(|k| from.counter[k] > to.counter[k])
}

/// What the roots are near to before they are made to add up, and how far each may be off, as shares of so many slots: four, and the one
/// that a fifth may be.
#[allow(clippy::needless_range_loop)] // an iterator takes a hundred instructions more
#[inline(always)]
fn roots(
    sums: &Sums,
    counts: &[f64; ADDED + 1],
    span: &Span,
    slots: f64,
) -> ([f64; 4], [f64; 4], Option<(f64, f64)>) {
    let mut parts: [f64; 4] = from_fn(|k| f64::from(sums.roots[0][k]) * counts[0]);
    for input in 1..SUMMED {
        let part: [f64; 4] = from_fn(|k| f64::from(sums.roots[input][k]) * counts[input]);
        parts = from_fn(|k| parts[k] + part[k]);
    }
    let mut edges: [f64; 4] = from_fn(|k| sums.errors[k] * span.edges);
    let (rest, mut fifth) = (usize::from(sums.rest % 4), None);
    if sums.has_more {
        let of = |input: usize| sums.fifth[input] * counts[input];
        let more = (1..SUMMED).map(of).fold(of(0), |all, part| all + part);
        let off = sums.errors[4] * span.edges;
        match &sums.retired {
            None => fifth = Some((more / slots, off / slots)),
            Some(of) => {
                let root = usize::from(of.root % 4);
                (parts[root], edges[root]) = retired(of, counts, (more, off), span, slots);
                edges[rest] = max(edges[rest], edges[root]);
            }
        }
    }
    let mut near = parts.map(|part| part / slots);
    let doubt = edges.map(|edges| edges / slots);
    near[rest] = 0.0;
    let left = 1.0 - near[0] - near[1] - near[2] - near[3];
    near[rest] = left - fifth.map_or(0.0, |(near, _)| near);
    (near, doubt, fifth)
}

/// Slots of operations that retired, and how far they may be off, as the tree's evaluation has them.
#[inline(always)]
fn retired(
    of: &RetiredRoot,
    counts: &[f64; ADDED + 1],
    (stalls, stalls_off): (f64, f64),
    span: &Span,
    slots: f64,
) -> (f64, f64) {
    let free = (slots - stalls).max(0.0);
    let (retired, dispatched) =
        (counts[usize::from(of.retired) % ADDED], counts[usize::from(of.dispatched) % ADDED]);
    let part = if dispatched > 0.0 { (retired / dispatched).min(1.0) } else { 0.0 };
    let least = dispatched - span.edges;
    let part_off = if least > 0.0 { (span.edges + part * span.edges) / least } else { 1.0 };
    (free * part, stalls_off + free * part_off.min(1.0))
}

/// The farthest end of any interval, where each end includes what the arithmetic may have lost.
#[inline(always)]
fn farthest<const N: usize>(shares: Shares<N>, span: &Span, slots: f64) -> [f64; N] {
    let Shares { value, low, high } = shares.widened(span, || slots);
    let above: [f64; N] = from_fn(|k| min(high[k] + LOST, 1.0) - value[k]);
    let below: [f64; N] = from_fn(|k| value[k] - max(low[k] - LOST, 0.0));
    from_fn(|k| max(above[k], below[k]))
}

/// What ran between two samples, and what the counters counted; None: they are not seen at first sight to go together, or their tree is
/// to be evaluated.
#[inline(always)]
fn at_sight(sums: &Sums, from: &Sample, to: &Sample, level: u32) -> Option<(Span, [f64; ADDED + 1])> {
    // (all of the level was counted all the time)
    let whole =
        from.base.switches == to.base.switches && (from.flags | to.flags) & TD_SAMPLE_UNCORRECTED == 0;
    if !go_together(from, to, level, sums.levels) || !whole {
        return None;
    }
    let counters = model::counters_down_to(to.base.model, to.base.level);
    let span = difference_of(counters, from, to);
    let counts = counted(from, to, counters)?;
    // as of `Count::by_counter`
    Some((Span { rounding: 0.0, edges: span.rounding + span.edges, ..span }, counts))
}

/// `decode_l1` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l1_at_sight(from: &Sample, to: &Sample) -> Option<L1> {
    let sums = model::sums(to.base.model)?;
    let (span, counts) = at_sight(sums, from, to, 1)?;
    let slots = float(span.slots);
    let (near, doubt, fifth) = roots(sums, &counts, &span, slots);
    let (shares, more) = shares_of_all(near, doubt, fifth);
    let (value, mut smt_contention) = (shares.value, 0.0);
    let mut error = largest(farthest(shares, &span, slots));
    if fifth.is_some() {
        smt_contention = more.value[0];
        error = max(error, farthest(more, &span, slots)[0]);
    }
    Some(L1 { smt_contention, ..L1::new(span.flags, span.slots, value, error, span.running) })
}

/// `decode_l2` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l2_at_sight(from: &Sample, to: &Sample) -> Option<L2> {
    let sums = model::sums(to.base.model)?;
    let below = sums.below.as_ref()?;
    let (span, counts) = at_sight(sums, from, to, 2)?;
    let slots = float(span.slots);
    let (near, doubt, _) = roots(sums, &counts, &span, slots);
    let near_below = from_fn(|k| {
        let Below { input, each, less } = below[k];
        let counted = |place: u8| counts[usize::from(place) % (ADDED + 1)];
        (counted(input) * f64::from(each) - counted(less)) / slots
    });
    let doubt_below = span.edges / slots;
    // (what happened at the edges is the same for all)
    let doubt_of_rest = doubt.map(|doubt| max(doubt, doubt_below));
    let (parents, _) = shares_of_all(near, doubt, None);
    let pairs = pairs_below(&parents, near, near_below, doubt_below, doubt_of_rest);
    let value = pairs.value();
    let (first, rest) = (farthest(pairs.first, &span, slots), farthest(pairs.rest, &span, slots));
    let error = largest(from_fn(|k| max(first[k], rest[k])));
    Some(L2::new(span.flags, span.slots, value, error, span.running))
}
