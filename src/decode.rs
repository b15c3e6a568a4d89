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
use crate::model::tree::{SlotsOf, Tree};
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::{CATEGORIES, L1, L2, Sample};
use crate::span::{
    Span, difference, difference_of_counters, float, go_together, is_uncorrected, level_between, span,
};
use crate::tree::{self, Node};
use std::array::from_fn;

#[cfg(test)]
mod reference;

/// Where the shares' truth can lie, and what we say of them.
struct Shares {
    value: [f64; 4],
    low: [f64; 4],
    high: [f64; 4],
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
fn intervals(low: [f64; 4], high: [f64; 4]) -> ([f64; 4], [f64; 4]) {
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
        Some(tree) => level_1_of(tree::between(tree, &span, from, to), span.slots),
    }
}

/// `decode_l1` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l1_at_sight(from: &Sample, to: &Sample) -> Option<L1> {
    if !model::is_sure(to.base.model) {
        return None;
    }
    if go_together(from, to, 1, model::levels_by_category(to.base.model)) {
        return Some(level_1(&difference::<4>(from, to)));
    }
    let (span, near) = counted_at_sight::<4>(from, to, 1)?;
    Some(level_1_near(&span, near))
}

/// Level 2 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// Those of [`decode_l1`], and -ENOTSUP: the samples have no level 2.
pub fn decode_l2(from: Option<&Sample>, to: &Sample) -> Result<L2> {
    let span = span(from, to, 2)?;
    match by_tree(to) {
        None => Ok(level_2(&span)),
        Some(tree) => level_2_of(tree::between(tree, &span, from, to), span.slots),
    }
}

/// `decode_l2` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l2_at_sight(from: &Sample, to: &Sample) -> Option<L2> {
    if !model::is_sure(to.base.model) {
        return None;
    }
    if go_together(from, to, 2, model::levels_by_category(to.base.model)) {
        return Some(level_2(&difference::<CATEGORIES>(from, to)));
    }
    let (span, near) = counted_at_sight::<CATEGORIES>(from, to, 2)?;
    Some(level_2_near(&span, near))
}

/// What ran between two samples of plain counters that count slots, and the shares of the first N categories, as they were
/// counted.
#[inline(always)]
fn counted_at_sight<const N: usize>(
    from: &Sample,
    to: &Sample,
    level: u32,
) -> Option<(Span, [f64; CATEGORIES])> {
    let (levels, counted) = model::slots_by_counters(to.base.model)?;
    if !go_together(from, to, level, levels)
        || (level > 1 && level > level_between(from, to))
        || is_uncorrected(from, to)
    {
        return None;
    }
    // Those of level 2, too: samples of which one went back are none of td_read, whichever level is asked for.
    let back = |place: u8| from.counter[usize::from(place)] > to.counter[usize::from(place)];
    let went_back = |by: &Option<SlotsOf>| by.is_some_and(|of| back(of.place) || of.less.is_some_and(back));
    if N < CATEGORIES && to.base.level > 1 && counted[N..].iter().any(went_back) {
        return None;
    }
    let span = difference_of_counters(from, to);
    let span = Span { rounding: 0.0, edges: span.rounding + span.edges, ..span }; // as Count::by_counter
    // (in the order in which the tree is evaluated)
    let (mut near, mut left, slots) = ([0.0; CATEGORIES], 1.0, float(span.slots));
    for k in 0..N {
        let Some(SlotsOf { place, each, less }) = counted[k] else { continue };
        let more = |place: u8| to.counter[usize::from(place)].checked_sub(from.counter[usize::from(place)]);
        let of_others = match less {
            Some(place) => float(more(place)?),
            None => 0.0,
        };
        near[k] = (float(more(place)?) * f64::from(each) - of_others) / slots;
        left -= if k < 4 { near[k] } else { 0.0 };
    }
    for k in 0..4 {
        near[k] = if counted[k].is_none() { left } else { near[k] };
    }
    Some((span, near))
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

/// The sample's tree, if its inputs are plain counters, or do not tell its nodes for sure.
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

/// The level 1 shares, adding up to 1, each with its interval. `near`: before they were made to.
#[inline(always)]
fn shares_1(span: &Span, near: [f64; 4]) -> Shares {
    let doubt = (span.rounding + span.edges) / float(span.slots);
    let raw = near.map(|near| near.clamp(0.0, 1.0));
    let whole: f64 = raw.iter().sum();
    let value = if whole > 0.0 { raw.map(|raw| raw / whole) } else { [0.25; 4] };
    let low = near.map(|near| (near - doubt).clamp(0.0, 1.0));
    let high = near.map(|near| (near + doubt).clamp(0.0, 1.0));
    // the others leave no more, and no less, than this
    let (all_low, all_high): (f64, f64) = (low.iter().sum(), high.iter().sum());
    let least = high.map(|high| 1.0 - (all_high - high));
    let most = low.map(|low| 1.0 - (all_low - low));
    let low = from_fn(|k| max(low[k], least[k]));
    let high = from_fn(|k| min(high[k], most[k]));
    let (low, high) = intervals(low, high);
    Shares { value, low, high }
}

/// The bound over all shares: the farthest end of any interval. What happened uncounted widens each: it may have been all of
/// that category or none. Rounded up past what the arithmetic here may have lost.
#[inline(always)]
fn farthest(shares: &Shares, span: &Span) -> f64 {
    let (mut low, mut high) = (shares.low, shares.high);
    if span.uncounted != 0.0 {
        let part = span.uncounted / (span.uncounted + float(span.slots));
        let counted = 1.0 - part;
        low = low.map(|low| low * counted);
        high = high.map(|high| high * counted + part);
    }
    let above: [f64; 4] = from_fn(|k| high[k] - shares.value[k]);
    let below: [f64; 4] = from_fn(|k| shares.value[k] - low[k]);
    let error: [f64; 4] = from_fn(|k| max(above[k], below[k]));
    min(error.into_iter().fold(0.0, max) + 1e-9, 1.0)
}

#[inline(always)]
pub(crate) fn level_1(span: &Span) -> L1 {
    level_1_near(span, from_fn(|k| span.category[k] / float(span.slots)))
}

#[inline(always)]
fn level_1_near(span: &Span, near: [f64; CATEGORIES]) -> L1 {
    let shares = shares_1(span, [near[0], near[1], near[2], near[3]]);
    L1::new(span.flags, span.slots, shares.value, farthest(&shares, span), span.running)
}

#[inline(always)]
pub(crate) fn level_2(span: &Span) -> L2 {
    level_2_near(span, from_fn(|k| span.category[k] / float(span.slots)))
}

#[inline(always)]
fn level_2_near(span: &Span, near: [f64; CATEGORIES]) -> L2 {
    let slots = float(span.slots);
    let doubt = (span.rounding + span.edges) / slots;
    // two fields are rounded, each in its own way; what happened at the edges is the same for both
    let doubt_of_rest = (2.0 * span.rounding + span.edges) / slots;
    let near_parent = [near[0], near[1], near[2], near[3]];
    let near: [f64; 4] = from_fn(|k| near[4 + k]);
    let parent = shares_1(span, near_parent);
    let value: [f64; 4] = from_fn(|k| min(max(near[k], 0.0), parent.value[k]));
    let low: [f64; 4] = from_fn(|k| min(max(near[k] - doubt, 0.0), parent.high[k]));
    let high: [f64; 4] = from_fn(|k| min(max(near[k] + doubt, low[k]), parent.high[k]));
    // what each of them leaves of its parent
    let rest: [f64; 4] = from_fn(|k| near_parent[k] - near[k]);
    let value_of_rest: [f64; 4] = from_fn(|k| parent.value[k] - value[k]);
    let low_of_rest: [f64; 4] = from_fn(|k| max(max(parent.low[k] - high[k], rest[k] - doubt_of_rest), 0.0));
    let high_of_rest: [f64; 4] = from_fn(|k| max(min(parent.high[k] - low[k], rest[k] + doubt_of_rest), 0.0));
    let (low, high) = intervals(low, high);
    let field = Shares { value, low, high };
    let (low, high) = intervals(low_of_rest, high_of_rest);
    let rest = Shares { value: value_of_rest, low, high };
    let error = max(farthest(&field, span), farthest(&rest, span));
    let value = from_fn(|k| if k % 2 == 0 { field.value[k / 2] } else { rest.value[k / 2] });
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
