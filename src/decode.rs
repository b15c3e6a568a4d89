//! Two samples to shares under fixed names, each with its bound: levels 1 and 2 of the tree of metrics.
//!
//! A share is a difference of two totals over the slots between them. Shares lie between 0 and 1 and add up to 1, and that
//! narrows the interval in which the truth can lie; the bound is the farthest end of any share's interval. CPUs with
//! PERF_METRICS have their own, faster evaluation here, which gives what that of the tree gives, to the last bit.
#![forbid(unsafe_code)]

use crate::bound::{rounding, skid};
use crate::error::{Error, Result, TD_ENOTCOUNTING, TD_ESTALE};
use crate::model;
use crate::model::metrics::{LEVEL_1, LEVEL_2, Metric, SMT_CONTENTION};
use crate::model::tree::Tree;
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::{CATEGORIES, L1, L2, Sample};
use crate::span::{Span, difference, float, go_together, span};
use crate::tree::{self, Node};
use std::array::from_fn;

pub(crate) mod by_counters;
#[cfg(test)]
mod reference;

/// Where the shares' truth can lie, and what we say of them.
struct Shares<const N: usize> {
    value: [f64; N],
    low: [f64; N],
    high: [f64; N],
}

/// As f64's own, of which neither is NaN: one instruction.
fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The ends of intervals; 0 and 1 of what is none.
#[inline(always)]
fn intervals<const N: usize>(low: [f64; N], high: [f64; N]) -> ([f64; N], [f64; N]) {
    (
        from_fn(|k| if low[k] > high[k] { 0.0 } else { low[k] }),
        from_fn(|k| if low[k] > high[k] { 1.0 } else { high[k] }),
    )
}

/// Level 1 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// -EINVAL: not samples of this version's `td_read`, of two handles, or in the wrong order; TD_ESTALE: of
/// two periods; TD_ENOTCOUNTING: no slot was counted between them.
pub fn decode_l1(from: Option<&Sample>, to: &Sample) -> Result<L1> {
    let span = span(from, to, 1)?;
    match by_tree(to) {
        None => Ok(level_1(&span)),
        Some(tree) => tree::between(tree, &span, from, to, |nodes| level_1_of(nodes, span.slots)),
    }
}

/// `decode_l1` of two samples of registers that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l1_at_sight(from: &Sample, to: &Sample) -> Option<L1> {
    if !model::is_sure(to.base.model) || !go_together(from, to, 1, model::levels_by_category(to.base.model)) {
        return None;
    }
    Some(level_1(&difference::<4>(from, to)))
}

/// Level 2 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// Those of [`decode_l1`], and -ENOTSUP: the samples have no level 2.
pub fn decode_l2(from: Option<&Sample>, to: &Sample) -> Result<L2> {
    let span = span(from, to, 2)?;
    match by_tree(to) {
        None => Ok(level_2(&span)),
        Some(tree) => tree::between(tree, &span, from, to, |nodes| level_2_of(nodes, span.slots)),
    }
}

/// `decode_l2` of two samples of registers that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l2_at_sight(from: &Sample, to: &Sample) -> Option<L2> {
    if !model::is_sure(to.base.model) || !go_together(from, to, 2, model::levels_by_category(to.base.model)) {
        return None;
    }
    Some(level_2(&difference::<CATEGORIES>(from, to)))
}

/// Level 1 shares between two readings of the registers in one window (no reset in between), `a` first.
///
/// # Errors
/// TD_ESTALE: SLOTS went back, so the registers were reset in between; TD_ENOTCOUNTING: SLOTS stood still, or
/// PERF_METRICS is empty.
pub fn decode_raw_l1(slots_a: u64, metrics_a: u64, slots_b: u64, metrics_b: u64) -> Result<L1> {
    Ok(level_1(&raw_span(slots_a, metrics_a, slots_b, metrics_b)?))
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
    Ok(level_2(&span))
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

/// The sample's tree, if its inputs are general-purpose counters, or do not tell its nodes for sure.
fn by_tree(sample: &Sample) -> Option<&'static Tree> {
    sample.base.tree().filter(|tree| tree.takes_counters() || !tree.is_sure())
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

/// A share is between these.
fn clamped(share: f64) -> f64 {
    min(max(share, 0.0), 1.0)
}

/// The shares of all slots, adding up to 1, each with its interval: four, and the one that a fifth may be. `near`: before they are made to
/// add up; `doubt`: how far each may be off.
#[inline(always)]
fn shares_of_all(near: [f64; 4], doubt: [f64; 4], fifth: Option<(f64, f64)>) -> (Shares<4>, Shares<1>) {
    let raw = near.map(clamped);
    let low: [f64; 4] = from_fn(|k| clamped(near[k] - doubt[k]));
    let high: [f64; 4] = from_fn(|k| clamped(near[k] + doubt[k]));
    let sum = |of: [f64; 4]| of.iter().sum::<f64>();
    let (mut whole, mut all_low, mut all_high, mut count) = (sum(raw), sum(low), sum(high), 4.0);
    let mut more = Shares { value: [0.0], low: [0.0], high: [0.0] };
    if let Some((near, doubt)) = fifth {
        more = Shares { value: [clamped(near)], low: [clamped(near - doubt)], high: [clamped(near + doubt)] };
        (whole, all_low) = (whole + more.value[0], all_low + more.low[0]);
        (all_high, count) = (all_high + more.high[0], 5.0);
        more = more.agreeing(whole, all_low, all_high, count);
    }
    (Shares { value: raw, low, high }.agreeing(whole, all_low, all_high, count), more)
}

impl<const N: usize> Shares<N> {
    /// So as all that there are, which have these sums, divide one whole.
    #[inline(always)]
    fn agreeing(self, whole: f64, all_low: f64, all_high: f64, count: f64) -> Shares<N> {
        let Shares { value, low, high } = self;
        let value = if whole > 0.0 { value.map(|value| value / whole) } else { [1.0 / count; N] };
        // the others leave no more, and no less, than this
        let least: [f64; N] = high.map(|high| 1.0 - (all_high - high));
        let most: [f64; N] = low.map(|low| 1.0 - (all_low - low));
        let low = from_fn(|k| max(low[k], least[k]));
        let high = from_fn(|k| min(high[k], most[k]));
        let (low, high) = intervals(low, high);
        Shares { value, low, high }
    }

    /// What happened uncounted widens each interval: it may have been all of that category or none.
    #[inline(always)]
    fn widened(mut self, span: &Span, slots: impl FnOnce() -> f64) -> Shares<N> {
        if span.uncounted != 0.0 {
            let part = span.uncounted / (span.uncounted + slots());
            let counted = 1.0 - part;
            self.low = self.low.map(|low| low * counted);
            self.high = self.high.map(|high| high * counted + part);
        }
        self
    }
}

/// The largest of these, or 0.
#[inline(always)]
fn largest(of: [f64; 4]) -> f64 {
    max(max(max(of[0], of[2]), max(of[1], of[3])), 0.0)
}

/// The bound over all shares: the farthest end of any interval. Rounded up past what the arithmetic here may have lost.
#[inline(always)]
fn farthest(shares: Shares<4>, span: &Span) -> f64 {
    let Shares { value, low, high } = shares.widened(span, || float(span.slots));
    let above: [f64; 4] = from_fn(|k| high[k] - value[k]);
    let below: [f64; 4] = from_fn(|k| value[k] - low[k]);
    min(largest(from_fn(|k| max(above[k], below[k]))) + 1e-9, 1.0)
}

/// Of all slots, the four shares of level 1, which are rounded alike.
#[inline(always)]
fn shares_1(span: &Span) -> Shares<4> {
    let doubt = (span.rounding + span.edges) / float(span.slots);
    shares_of_all(from_fn(|k| span.category[k] / float(span.slots)), [doubt; 4], None).0
}

#[inline(always)]
pub(crate) fn level_1(span: &Span) -> L1 {
    let shares = shares_1(span);
    L1::new(span.flags, span.slots, shares.value, farthest(shares, span), span.running)
}

/// Pairs of level 2, each a part of a share of level 1.
struct Pairs {
    first: Shares<4>,
    rest: Shares<4>,
}

/// `near` is of the first of each pair, `doubt` how far it may be off, and `doubt_of_rest` what it leaves of its parent.
#[inline(always)]
fn pairs_below(
    parent: &Shares<4>,
    near_parent: [f64; 4],
    near: [f64; 4],
    doubt: f64,
    doubt_of_rest: [f64; 4],
) -> Pairs {
    let value: [f64; 4] = from_fn(|k| min(max(near[k], 0.0), parent.value[k]));
    let low: [f64; 4] = from_fn(|k| min(max(near[k] - doubt, 0.0), parent.high[k]));
    let high: [f64; 4] = from_fn(|k| min(max(near[k] + doubt, low[k]), parent.high[k]));
    // what each of them leaves of its parent
    let rest: [f64; 4] = from_fn(|k| near_parent[k] - near[k]);
    let value_of_rest: [f64; 4] = from_fn(|k| parent.value[k] - value[k]);
    let low_of_rest: [f64; 4] =
        from_fn(|k| max(max(parent.low[k] - high[k], rest[k] - doubt_of_rest[k]), 0.0));
    let high_of_rest: [f64; 4] =
        from_fn(|k| max(min(parent.high[k] - low[k], rest[k] + doubt_of_rest[k]), 0.0));
    let (low, high) = intervals(low, high);
    let first = Shares { value, low, high };
    let (low, high) = intervals(low_of_rest, high_of_rest);
    Pairs { first, rest: Shares { value: value_of_rest, low, high } }
}

impl Pairs {
    #[inline(always)]
    fn value(&self) -> [f64; 8] {
        from_fn(|k| if k % 2 == 0 { self.first.value[k / 2] } else { self.rest.value[k / 2] })
    }
}

#[inline(always)]
pub(crate) fn level_2(span: &Span) -> L2 {
    let slots = float(span.slots);
    let near: [f64; CATEGORIES] = from_fn(|k| span.category[k] / slots);
    let doubt = (span.rounding + span.edges) / slots;
    // two fields are rounded, each in its own way; what happened at the edges is the same for both
    let doubt_of_rest = (2.0 * span.rounding + span.edges) / slots;
    let parts = |first: usize| from_fn(|k| near[first + k]);
    let pairs = pairs_below(&shares_1(span), parts(0), parts(4), doubt, [doubt_of_rest; 4]);
    let value = pairs.value();
    let error = max(farthest(pairs.first, span), farthest(pairs.rest, span));
    L2::new(span.flags, span.slots, value, error, span.running)
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
