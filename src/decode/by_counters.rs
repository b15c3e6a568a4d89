//! Levels 1 and 2 of general-purpose counters, where they are sums of these: what the evaluation of the tree gives, to the last bit.

use super::{level_1, level_2};
use crate::model;
use crate::model::sums::Sums;
use crate::sample::{L1, L2, Sample, TD_SAMPLE_UNCORRECTED};
use crate::span::{Span, difference_of, float, go_together};
use crate::tree::{ADDED, COUNTERS, Errors, Roots, near_below};
use std::array::from_fn;

/// No counter has so many bits of a region: all sums of counts are exact then, in whatever order.
const MOST_BITS: u32 = 45;

/// All bits of so many first counters.
static FIRST: [[u64; COUNTERS]; COUNTERS + 1] = {
    let (mut all, mut counters) = ([[0; COUNTERS]; COUNTERS + 1], 0);
    while counters <= COUNTERS {
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
fn counted(from: &Sample, to: &Sample, counters: usize) -> Option<[f64; ADDED]> {
    // (so few bits are the fraction of a number of a fixed exponent)
    const EXPONENT: f64 = (1u64 << 52) as f64;
    const WRONG: u64 = !((1 << MOST_BITS) - 1);
    let first = &FIRST[if counters < COUNTERS { counters } else { COUNTERS }];
    let more: [u64; COUNTERS] = from_fn(|k| to.counter[k].wrapping_sub(from.counter[k]) & first[k]);
    // (from less than half of what there is nothing goes round so soon)
    let doubtful: [u64; COUNTERS] = from_fn(|k| more[k] | from.counter[k] & first[k] & 1 << 63);
    let both: [u64; 4] = from_fn(|k| doubtful[k] | doubtful[4 + k]);
    let wrong = (both[0] | both[2] | (both[1] | both[3])) & WRONG;
    let mut counts = [0.0; ADDED];
    for k in 0..COUNTERS {
        counts[k] = f64::from_bits(EXPONENT.to_bits() | more[k]) - EXPONENT;
    }
    if wrong != 0 || counters > COUNTERS && further_went_back(from, to, counters) {
        None
    } else {
        Some(counts)
    }
}

#[cold]
#[inline(never)]
fn further_went_back(from: &Sample, to: &Sample, counters: usize) -> bool {
    (COUNTERS..counters).any(|k| from.counter[k] > to.counter[k])
}

/// What ran between two samples, and what the counters counted; None: they are not seen at first sight to go together, or their tree is
/// to be evaluated.
#[inline(always)]
fn at_sight(sums: &Sums, from: &Sample, to: &Sample, level: u32) -> Option<(Span, [f64; ADDED])> {
    // (all of the level was counted all the time)
    let whole =
        from.base.switches == to.base.switches && (from.flags | to.flags) & TD_SAMPLE_UNCORRECTED == 0;
    if !go_together(from, to, level, sums.levels) || !whole {
        return None;
    }
    let counters = model::counters_at_sight(to.base.model, to.base.level);
    let span = difference_of(counters, from, to);
    let counts = counted(from, to, counters)?;
    if sums.retired.is_some() && span.uncounted != 0.0 {
        return None; // (a quotient: `tree::uncounted`)
    }
    // as of `CountedInputs::new`
    Some((Span { rounding: 0.0, edges: span.rounding + span.edges, ..span }, counts))
}

/// `decode_l1` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l1_at_sight(from: &Sample, to: &Sample) -> Option<L1> {
    let sums = model::sums(to.base.model)?;
    let (span, counts) = at_sight(sums, from, to, 1)?;
    let slots = float(span.slots);
    let errors = Errors { rounding: 0.0, edges: span.edges };
    Some(level_1(&Roots::of_sums(sums, &sums.of_counts, &counts, errors, slots), &span, slots))
}

/// `decode_l2` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l2_at_sight(from: &Sample, to: &Sample) -> Option<L2> {
    let sums = model::sums(to.base.model).filter(|sums| sums.has_l2)?;
    let (span, counts) = at_sight(sums, from, to, 2)?;
    let slots = float(span.slots);
    let errors = Errors { rounding: 0.0, edges: span.edges };
    let roots = Roots::of_sums(sums, &sums.of_counts, &counts, errors, slots);
    Some(level_2(
        &roots,
        near_below(&sums.below, &counts, |place| f64::from(sums.each[place % COUNTERS]), slots),
        errors,
        &span,
        slots,
    ))
}
