//! Two samples to shares under fixed names, each with its bound: levels 1 and 2 of the tree of metrics.
//!
//! A share is a difference of two totals over the slots between them. Shares lie between 0 and 1 and add up to 1, and that
//! narrows the interval in which the truth can lie; the bound is the farthest end of any share's interval. What is seen at
//! first sight to go together takes less here, four shares at once, and gives what the evaluation of the tree gives, to the last bit.
#![forbid(unsafe_code)]

use crate::bound::{rounding, skid};
use crate::error::{Error, Result, TD_ENOTCOUNTING, TD_ESTALE};
use crate::model;
use crate::model::metrics::{LEVEL_1, LEVEL_2, Metric, SMT_CONTENTION};
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::{CATEGORIES, L1, L2, Sample};
use crate::span::{Span, difference, float, go_together, span};
use crate::tree::{self, Ends, Errors, Node, Roots, Shares};
use std::array::from_fn;

pub(crate) mod by_counters;
#[cfg(test)]
mod reference;

/// Level 1 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// -EINVAL: not samples of this version's `td_read`, of two handles, or in the wrong order; TD_ESTALE: of
/// two periods; TD_ENOTCOUNTING: no slot was counted between them.
pub fn decode_l1(from: Option<&Sample>, to: &Sample) -> Result<L1> {
    let span = span(from, to, 1)?;
    tree::between(&span, from, to, |nodes| level_1_of(nodes, span.slots))?
}

/// `decode_l1` of two samples of registers that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l1_at_sight(from: &Sample, to: &Sample) -> Option<L1> {
    if !model::is_sure(to.base.model) || !go_together(from, to, 1, model::levels_by_category(to.base.model)) {
        return None;
    }
    let span = difference::<4>(from, to);
    if is_in_doubt(&span) { Some(level_1_of_span(&span)) } else { None }
}

/// Level 2 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// Those of [`decode_l1`], and -ENOTSUP: the samples have no level 2.
pub fn decode_l2(from: Option<&Sample>, to: &Sample) -> Result<L2> {
    let span = span(from, to, 2)?;
    tree::between(&span, from, to, |nodes| level_2_of(nodes, span.slots))?
}

/// `decode_l2` of two samples of registers that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l2_at_sight(from: &Sample, to: &Sample) -> Option<L2> {
    if !model::is_sure(to.base.model) || !go_together(from, to, 2, model::levels_by_category(to.base.model)) {
        return None;
    }
    let span = difference::<CATEGORIES>(from, to);
    if is_in_doubt(&span) { Some(level_2_of_span(&span)) } else { None }
}

/// Level 1 shares between two readings of the registers in one window (no reset in between), `a` first.
///
/// # Errors
/// TD_ESTALE: SLOTS went back, so the registers were reset in between; TD_ENOTCOUNTING: SLOTS stood still, or
/// PERF_METRICS is empty.
pub fn decode_raw_l1(slots_a: u64, metrics_a: u64, slots_b: u64, metrics_b: u64) -> Result<L1> {
    Ok(level_1_of_span(&raw_span(slots_a, metrics_a, slots_b, metrics_b)?))
}

/// Level 2 shares between two readings of the registers in one window, as [`decode_raw_l1`].
///
/// # Errors
/// Those of [`decode_raw_l1`], and -ENOTSUP: the upper halves are empty and the CPU that runs this has level 1
/// only.
pub fn decode_raw_l2(slots_a: u64, metrics_a: u64, slots_b: u64, metrics_b: u64) -> Result<L2> {
    let span = raw_span(slots_a, metrics_a, slots_b, metrics_b)?;
    let empty = (metrics_a | metrics_b) >> 32 == 0;
    if empty && model::has_level_1_only() {
        return Err(Error::errno(libc::ENOTSUP, "the upper half of PERF_METRICS is empty")
            .why("this CPU has level 1 only"));
    }
    Ok(level_2_of_span(&span))
}

fn raw_span(slots_a: u64, metrics_a: u64, slots_b: u64, metrics_b: u64) -> Result<Span> {
    let a = Registers { slots: RawSlots(slots_a), metrics: RawMetrics(metrics_a) };
    let b = Registers { slots: RawSlots(slots_b), metrics: RawMetrics(metrics_b) };
    if !a.are_possible() || !b.are_possible() {
        return Err(Error::invalid("SLOTS is a counter of 48 bits").why("these are no readings of it"));
    }
    if slots_b < slots_a {
        return Err(Error::new(TD_ESTALE, "SLOTS went back between the readings")
            .why("the registers were reset")
            .remedy("take both readings in one window"));
    }
    if metrics_b as u32 == 0 {
        return Err(Error::new(TD_ENOTCOUNTING, "PERF_METRICS is empty").why("no metric event is counting"));
    }
    if slots_b == slots_a {
        return Err(
            Error::new(TD_ENOTCOUNTING, "SLOTS stood still between the readings").why("it is not counting")
        );
    }
    let (from, to) = (a.split(), b.split());
    Ok(Span {
        flags: 0,
        slots: slots_b - slots_a,
        category: from_fn(|k| (i128::from(to[k]) - i128::from(from[k])) as f64),
        rounding: rounding(a, 0).saturating_add(rounding(b, 0)) as f64,
        edges: skid([a, b], 0) as f64,
        running: 1.0,
        uncounted: 0.0,
        level: 2,
    })
}

/// Values of the nodes of these names, the largest distance of any to an end of its interval, flags, and the part of the time
/// that was counted. -ENOTSUP: the tree does not have the first `all` of them, or they were not measured.
fn named<const N: usize>(
    metrics: [Metric; N],
    all: usize,
    nodes: impl Iterator<Item = Node>,
) -> Result<([f64; N], f64, u32, f64)> {
    let (mut value, mut found, mut error, mut flags, mut running) = ([0.0; N], 0, 0.0f64, 0, 0.0);
    for node in nodes.filter(|node| node.measured == 1) {
        let Some(place) = metrics.iter().position(|metric| metric.id == node.id) else { continue };
        value[place] = node.value;
        error = error.max(node.high - node.value).max(node.value - node.low);
        (flags, running, found) = (node.flags, node.running, found + usize::from(place < all));
    }
    if found < all {
        return Err(Error::errno(libc::ENOTSUP, "not all nodes of this level were measured")
            .why("the tree of this CPU lacks some, or a counter went back")
            .remedy("td_decode_tree gives those that there are"));
    }
    Ok((value, error, flags, running))
}

/// Level 1 of any tree that has it. `slots`: in all.
pub(crate) fn level_1_of(nodes: impl Iterator<Item = Node>, slots: u64) -> Result<L1> {
    let [retiring, bad, frontend, backend] = LEVEL_1;
    let metrics = [retiring, bad, frontend, backend, SMT_CONTENTION];
    let ([shares @ .., smt_contention], error, flags, running) = named(metrics, LEVEL_1.len(), nodes)?;
    Ok(L1 { smt_contention, ..L1::new(flags, slots, shares, error, running) })
}

/// Level 2 of any tree that has it.
pub(crate) fn level_2_of(nodes: impl Iterator<Item = Node>, slots: u64) -> Result<L2> {
    let (value, error, flags, running) = named(LEVEL_2, LEVEL_2.len(), nodes)?;
    Ok(L2::new(flags, slots, value, error, running))
}

/// The largest of these, or 0.
#[inline(always)]
fn largest(of: [f64; 4]) -> f64 {
    of[0].at_least(of[2]).at_least(of[1].at_least(of[3])).at_least(0.0)
}

/// How far the farther end of each interval is, of what ran between two samples that have so many slots.
#[inline(always)]
fn farthest<const N: usize>(shares: Shares<N>, span: &Span, slots: f64) -> [f64; N] {
    let part = span.uncounted / (span.uncounted + slots);
    if span.uncounted != 0.0 { shares.widened(part).farthest() } else { shares.farthest() }
}

/// Whether anything is in doubt of these categories, as of all that a reading gives. (If not, the tree's evaluation knows what to make of it.)
#[inline(always)]
fn is_in_doubt(span: &Span) -> bool {
    span.rounding + span.edges > 0.0
}

/// Level 1 of these roots, which are in doubt.
#[inline(always)]
fn level_1(roots: &Roots, span: &Span, slots: f64) -> L1 {
    let (shares, fifth) = roots.divided(slots, false);
    let (mut error, mut smt_contention) = (largest(farthest(shares, span, slots)), 0.0);
    if roots.fifth.is_some() {
        smt_contention = fifth.value[0];
        error = error.at_least(farthest(fifth, span, slots)[0]);
    }
    L1 { smt_contention, ..L1::new(span.flags, span.slots, shares.value, error, span.running) }
}

/// Level 2 below these roots, the first of each pair near to these shares.
#[inline(always)]
fn level_2(roots: &Roots, near: [f64; 4], errors: Errors, span: &Span, slots: f64) -> L2 {
    let (parents, _) = roots.divided(slots, false);
    let [first, rest] = roots.pairs(&parents, near, errors, slots, false);
    let value = from_fn(|k| if k % 2 == 0 { first.value[k / 2] } else { rest.value[k / 2] });
    let (of_first, of_rest) = (farthest(first, span, slots), farthest(rest, span, slots));
    let error = largest(from_fn(|k| of_first[k].at_least(of_rest[k])));
    L2::new(span.flags, span.slots, value, error, span.running)
}

/// Level 1 by the registers.
#[inline(always)]
pub(crate) fn level_1_of_span(span: &Span) -> L1 {
    let (slots, errors) = (float(span.slots), Errors { rounding: span.rounding, edges: span.edges });
    level_1(&Roots::of_categories(&span.category, errors, slots), span, slots)
}

/// Level 2 by the registers.
#[inline(always)]
pub(crate) fn level_2_of_span(span: &Span) -> L2 {
    let (slots, errors) = (float(span.slots), Errors { rounding: span.rounding, edges: span.edges });
    let roots = Roots::of_categories(&span.category, errors, slots);
    level_2(&roots, from_fn(|k| span.category[4 + k] / slots), errors, span, slots)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sample::{
        Base, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_UNBOUNDED, TD_SAMPLE_WORK_AFTER, TD_SAMPLE_WORK_BEFORE,
    };

    /// Numbers that look random and are the same in each run (splitmix64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }

        fn below(&mut self, end: u64) -> u64 {
            self.next() % end
        }

        /// Of any magnitude, small as often as large.
        fn any(&mut self) -> u64 {
            let shift = self.below(64);
            self.next() >> shift
        }

        /// The place of one of the first rows of the table, whose inputs tell its nodes for sure.
        fn sure_row(&mut self) -> u8 {
            let row = self.below(11) as u8;
            assert!(model::is_sure(row));
            row
        }

        fn one_in(&mut self, n: u64) -> bool {
            self.below(n) == 0
        }

        /// PERF_METRICS as the hardware gives them, nearly so, or any.
        fn metrics(&mut self) -> u64 {
            let mut fields = [0; 8];
            let mut left = 255;
            for field in &mut fields[..3] {
                *field = self.below(left + 1);
                left -= *field;
            }
            fields[3] = (left + self.below(3)).min(255);
            for k in 4..8 {
                fields[k] = self.below(fields[k - 4] + 1);
            }
            match self.below(8) {
                0 => self.next(),
                1 => self.next() & self.next() & self.next(),
                _ => u64::from_le_bytes(fields.map(|field| field as u8)),
            }
        }

        /// A sample that goes on where `last` was, in the same window or a later one.
        fn later(&mut self, last: &Sample) -> Sample {
            let mut next = *last;
            let slots = self.next() >> (17 + self.below(47));
            if self.one_in(3) {
                let windows = if self.one_in(8) { self.next() as u32 } else { self.below(4) as u32 };
                next.base.window = last.base.window.wrapping_add(windows);
                next.slots_before = last.slots.wrapping_add(self.any() >> 20);
                for category in &mut next.base.category {
                    *category = category.wrapping_add((self.any() >> 18) as i64);
                }
                next.base.error = last.base.error.saturating_add(self.any() >> 24);
                next.base.switches = 0;
            }
            next.slots = next.slots.max(next.slots_before).wrapping_add(slots);
            next.raw_metrics = self.metrics();
            let ns = self.any() >> self.below(40);
            next.time_enabled_ns = last.time_enabled_ns.wrapping_add(ns);
            next.time_running_ns =
                last.time_running_ns.wrapping_add(if self.one_in(3) { self.below(ns.max(1)) } else { ns });
            next.base.checked_ms = match self.below(4) {
                0 => self.next() as u32,
                _ => (next.time_enabled_ns / 1_000_000) as u32,
            };
            let more = if self.one_in(8) { u16::MAX.into() } else { self.below(5) };
            next.base.switches = (u64::from(next.base.switches) + more).min(u16::MAX.into()) as u16;
            next.flags |= match self.below(12) {
                0 => TD_SAMPLE_UNBOUNDED,
                2 => TD_SAMPLE_WORK_AFTER,
                3 => TD_SAMPLE_WORK_BEFORE,
                4 => TD_SAMPLE_COARSE_TIME,
                _ => 0,
            };
            next
        }

        /// Any of its numbers becomes another.
        fn spoil(&mut self, sample: &mut Sample) {
            let value = if self.one_in(2) { self.next() } else { 0_u64.wrapping_sub(self.any()) };
            match self.below(9) {
                0 => sample.slots = value,
                1 => sample.slots_before = value,
                2 => sample.time_enabled_ns = value,
                3 => sample.time_running_ns = value,
                4 => sample.base.error = value,
                5 => sample.base.window = value as u32,
                6 => sample.base.model = self.sure_row(),
                _ => sample.base.category[self.below(7) as usize] = value as i64,
            }
        }
    }

    /// All that a result says, bit for bit.
    pub(crate) fn bits_1(l1: &L1) -> [u64; 8] {
        let [a, b, c, d] = l1.shares().map(f64::to_bits);
        [l1.flags.into(), l1.slots, a, b, c, d, l1.error.to_bits(), l1.running.to_bits()]
    }

    pub(crate) fn bits_2(l2: &L2) -> [u64; 12] {
        let mut bits = [u64::from(l2.flags); 12];
        bits[1] = l2.slots;
        bits[2..10].copy_from_slice(&l2.shares().map(f64::to_bits));
        bits[10..].copy_from_slice(&[l2.error, l2.running].map(f64::to_bits));
        bits
    }

    /// Samples of one handle, a fourth of them with any number in a place.
    pub(crate) fn pairs() -> impl Iterator<Item = (Sample, Sample)> {
        let mut random = Random(1);
        (0..60_000).map(move |_| {
            let zero = Sample {
                size: size_of::<Sample>() as u32,
                base: Base { window: random.next() as u32, ..Base::of_handle(random.next(), 1, 2) },
                ..Sample::default()
            };
            let mut from = random.later(&zero);
            let mut to = random.later(&from);
            if random.one_in(4) {
                random.spoil(&mut from);
                random.spoil(&mut to);
            }
            (from, to)
        })
    }

    #[test]
    fn what_is_computed_is_the_plain_formula_to_the_last_bit() {
        let mut decoded = 0;
        for (from, to) in pairs() {
            for from in [Some(&from), None] {
                let (l1, l2) = (decode_l1(from, &to), decode_l2(from, &to));
                assert_eq!(l1.as_ref().err(), l2.as_ref().err());
                let (Ok(l1), Ok(l2)) = (l1, l2) else { continue };
                let span = reference::span(from, &to);
                assert_eq!(bits_1(&l1), bits_1(&reference::level_1(&span)), "{from:?} {to:?}");
                assert_eq!(bits_2(&l2), bits_2(&reference::level_2(&span)), "{from:?} {to:?}");
                decoded += 1;
            }
        }
        assert!(decoded > 60_000, "{decoded} of 120,000 go together");
    }
}
