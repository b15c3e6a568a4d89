//! Two samples to shares, each with its bound.
//!
//! A share is a difference of two totals over the slots between them. What bounds its error is worked
//! out in slots (docs/error-bound.md): the rounding of both readings, what windows closed in between
//! added, each save and restore of the registers on the way, and the time that was not counted. Shares
//! lie between 0 and 1 and add up to 1, and that narrows the interval in which the truth can lie; the
//! bound is the farthest end of any share's interval.
#![forbid(unsafe_code)]

use crate::error::{Error, Result, TD_ENOTCOUNTING, TD_ESTALE};
use crate::model::{self, Counting, slots_per_ns};
use crate::registers::{EDGE_SLOTS, FEW_SWITCHES, RawMetrics, RawSlots, Registers};
use crate::sample::{
    Base, CATEGORIES, L1, L2, OF_READINGS, Sample, TD_SAMPLE_UNBOUNDED, TD_SAMPLE_WORK_AFTER,
    TD_SAMPLE_WORK_BEFORE, UNCHECKED_MS,
};
use std::array::from_fn;

#[cfg(test)]
mod reference;

/// The library's own work in a region whose readings took the slow path, on the way back to the caller and on the way in.
const WORK_AFTER: u64 = 8 * EDGE_SLOTS;
const WORK_BEFORE: u64 = 4 * EDGE_SLOTS;

/// What ran between two readings.
pub(crate) struct Span {
    pub flags: u32,
    pub slots: u64,
    /// Slots of each category; rounding may leave one below zero.
    pub category: [f64; CATEGORIES],
    /// Bound on the error of each of them, in slots: by rounding, which is another for each category, and at the
    /// edges, where some slots are not counted or those of something else are.
    pub rounding: f64,
    pub edges: f64,
    pub running: f64,
    /// Slots that may have passed uncounted.
    pub uncounted: f64,
}

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
    Ok(level_1(&span(from, to, 1)?))
}

/// `decode_l1` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l1_at_sight(from: &Sample, to: &Sample) -> Option<L1> {
    if go_together(from, to, 1) { Some(level_1(&difference::<4>(from, to))) } else { None }
}

/// Level 2 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// Those of [`decode_l1`], and -ENOTSUP: the samples have no level 2.
pub fn decode_l2(from: Option<&Sample>, to: &Sample) -> Result<L2> {
    Ok(level_2(&span(from, to, 2)?))
}

/// `decode_l2` of two samples that go together, if that is seen at first sight.
#[inline(always)]
pub(crate) fn l2_at_sight(from: &Sample, to: &Sample) -> Option<L2> {
    if go_together(from, to, 2) { Some(level_2(&difference::<CATEGORIES>(from, to))) } else { None }
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
    if empty && model::of_this_cpu().is_some_and(|m| m.counting == Counting::PerfMetrics { level: 1 }) {
        return Err(Error::errno(libc::ENOTSUP, "the upper half of PERF_METRICS is empty")
            .why("this CPU has level 1 only"));
    }
    Ok(level_2(&span))
}

/// As f64; numbers below 2^63, as all are that the library counts, take one instruction.
#[inline(always)]
fn float(n: u64) -> f64 {
    #[cold]
    #[inline(never)]
    fn large(n: u64) -> f64 {
        n as f64
    }
    if n as i64 >= 0 { n as i64 as f64 } else { large(n) }
}

impl Sample {
    /// How often the registers were saved and restored since this sample's window began.
    fn switches(&self) -> u64 {
        if self.base.switches == u16::MAX { u64::MAX } else { self.base.switches.into() }
    }

    /// No core of its kind does more.
    pub(crate) fn most_slots_per_ns(&self) -> f64 {
        slots_per_ns(model::at(self.base.model.into()).map_or(0, |model| model.slots_per_cycle))
    }

    /// Whether the registers may have overflowed, unseen.
    #[inline(always)]
    fn is_unchecked(&self) -> bool {
        const SOON_NS: u64 = 2 * UNCHECKED_MS as u64 * 1_000_000;
        // (most are soon after, before the milliseconds come round, and that takes no division)
        let checked_ns = u64::from(self.base.checked_ms) * 1_000_000;
        let soon = self.time_enabled_ns.wrapping_sub(checked_ns) <= SOON_NS; // (not before: that wraps to more)
        !soon && self.registers().slots.0 > 0 && self.unchecked_ms(self.time_enabled_ns) > 2 * UNCHECKED_MS
    }
}

/// Edges on the way from one reading to another: those of both, and of each window that was closed, by a reading
/// of the registers and a read(2) right after.
#[inline(always)]
fn edges(readings: [Registers; 2], windows: u32) -> u64 {
    let readings = readings.map(|registers| u64::from(registers.slots.0 > 0));
    (readings[0] + readings[1] + 2 * u64::from(windows)) * EDGE_SLOTS
}

/// What `b` and `since` have more than `a`. Samples that the library did not write may hold anything.
#[inline(always)]
fn more(b: i64, a: i64, since: i64) -> f64 {
    #[cold]
    #[inline(never)]
    fn wide(b: i64, a: i64, since: i64) -> f64 {
        (i128::from(b) - i128::from(a) + i128::from(since)) as f64
    }
    match b.checked_sub(a).and_then(|more| more.checked_add(since)) {
        Some(more) => more as f64,
        None => wide(b, a, since),
    }
}

/// Checks that two samples go together, and takes their difference; from the start of the period without `from`.
pub(crate) fn span(from: Option<&Sample>, to: &Sample, level: u32) -> Result<Span> {
    let start = Sample {
        size: to.size,
        base: Base { window: to.base.first_window(), error: 0, category: [0; 7], ..to.base },
        ..Sample::default()
    };
    let from = from.unwrap_or(&start);
    if !go_together(from, to, level) {
        check(from, to, level)?;
    }
    Ok(difference::<CATEGORIES>(from, to))
}

/// Why two samples do not go together, if so.
#[cold]
#[inline(never)]
fn check(from: &Sample, to: &Sample, level: u32) -> Result<()> {
    for sample in [from, to] {
        let plausible = sample.size as usize == size_of::<Sample>()
            && sample.base.handle != 0
            && (1..=2).contains(&sample.base.level)
            && model::counts(sample.base.model)
            && sample.registers().are_possible();
        if !plausible {
            return Err(Error::invalid("not a sample")
                .why("it was not filled in by td_read of this version of the library"));
        }
    }
    if from.base.handle != to.base.handle {
        return Err(Error::invalid("the two samples are of different handles")
            .remedy("decode each handle's with its own"));
    }
    if from.base.period != to.base.period {
        return Err(Error::new(
            TD_ESTALE,
            "one of the samples is from before a td_reset and the other from after it",
        )
        .remedy("take both in one period"));
    }
    if from.slots > to.slots || from.base.error > to.base.error {
        return Err(Error::invalid("the samples are in the wrong order").why("`from` was taken after `to`"));
    }
    if level > to.base.level.into() {
        return Err(Error::errno(libc::ENOTSUP, "level 2 was not counted")
            .why("this CPU has level 1 only, or the handle was opened with level 1"));
    }
    if from.slots == to.slots {
        let (ran, enabled) = times(from, to);
        return Err(Error::new(TD_ENOTCOUNTING, "no slot was counted between the samples").why(format!(
            "the counters ran for {ran} of {enabled} ns; either nothing ran, or others hold the counters, or it ran where \
             they do not exist (an E-core, or with TD_FLAG_E_CORES a P-core)"
        )));
    }
    Ok(())
}

/// Whether two samples go together, and that is seen at first sight.
#[inline(always)]
fn go_together(from: &Sample, to: &Sample, level: u32) -> bool {
    let of = |base: &Base| u64::from(base.period) << 32 | u64::from(base.handle);
    let kind = |base: &Base| u16::from_le_bytes([base.model, base.level]);
    from.size as usize == size_of::<Sample>()
        && to.size as usize == size_of::<Sample>()
        && of(&to.base) as u32 != 0
        && of(&from.base) == of(&to.base)
        && kind(&from.base) == kind(&to.base)
        && (level.max(1)..=2).contains(&to.base.level.into())
        && model::counts(to.base.model)
        && from.registers().are_possible()
        && to.registers().are_possible()
        && from.slots < to.slots
        && from.base.error <= to.base.error
}

/// Nanoseconds between two samples in which the counters counted, and all.
fn times(from: &Sample, to: &Sample) -> (u64, u64) {
    (
        to.time_running_ns.saturating_sub(from.time_running_ns),
        to.time_enabled_ns.saturating_sub(from.time_enabled_ns),
    )
}

/// Of two samples that go together, in the first N categories.
#[inline(always)]
fn difference<const N: usize>(from: &Sample, to: &Sample) -> Span {
    let slots = to.slots - from.slots;
    let (a, b) = (from.registers(), to.registers());
    let (whole_a, whole_b) = (a.metrics.whole(), b.metrics.whole());
    let windows = to.base.window.wrapping_sub(from.base.window);
    // a window's switches until `from` are in the rounding of `from`
    let before = if windows == 0 && a.slots.0 > 0 { from.base.switches } else { 0 };
    let rounding = if to.base.switches < FEW_SWITCHES {
        a.rounding_by(whole_a, 0) + b.rounding_by(whole_b, to.base.switches.saturating_sub(before))
    } else {
        rounding_of_many(from, to, windows)
    };
    let rounding = rounding.saturating_add(to.base.error - from.base.error);
    let flags = (from.flags | to.flags) & !OF_READINGS;
    let bounded = flags & TD_SAMPLE_UNBOUNDED == 0 && !from.is_unchecked() && !to.is_unchecked();
    let after = if from.flags & TD_SAMPLE_WORK_AFTER != 0 { WORK_AFTER } else { 0 };
    let before = if to.flags & TD_SAMPLE_WORK_BEFORE != 0 { WORK_BEFORE } else { 0 };
    let edges = edges([a, b], windows) + after + before;
    let at = [from.base.categories(from.slots_before), to.base.categories(to.slots_before)];
    let since = [a.split_by::<N>(whole_a), b.split_by::<N>(whole_b)];
    let mut category = [0.0; CATEGORIES];
    for k in 0..N {
        category[k] = more(at[1][k], at[0][k], since[1][k] - since[0][k]);
    }
    // (nothing passed uncounted if time running went on with time enabled, and neither came round)
    let enabled = to.time_enabled_ns.wrapping_sub(from.time_enabled_ns);
    let counted_all = to.time_running_ns.checked_sub(from.time_running_ns) == Some(enabled);
    let (running, uncounted) = if counted_all { (1.0, 0.0) } else { multiplexed(from, to) };
    let rounding = if bounded { float(rounding) } else { f64::INFINITY };
    Span { flags, slots, category, rounding, edges: edges as i64 as f64, running, uncounted }
}

/// What rounding of both readings comes to, of registers that were saved and restored often.
#[cold]
#[inline(never)]
fn rounding_of_many(from: &Sample, to: &Sample, windows: u32) -> u64 {
    let (a, b) = (from.registers(), to.registers());
    let before = if windows == 0 && a.slots.0 > 0 { from.switches() } else { 0 };
    a.rounding(0).saturating_add(b.rounding(to.switches().saturating_sub(before)))
}

/// Part of the time in which the counters counted, and how many slots may have passed in the rest.
#[inline(never)]
fn multiplexed(from: &Sample, to: &Sample) -> (f64, f64) {
    let (ran, enabled) = times(from, to);
    if ran >= enabled {
        return (1.0, 0.0);
    }
    let (ran, enabled, slots) = (ran as f64, enabled as f64, (to.slots - from.slots) as f64);
    // the fastest that slots can pass: what any core does, or what this one did, whichever is more
    let rate = to.most_slots_per_ns().max(if ran > 0.0 { slots / ran } else { 0.0 });
    (ran / enabled, (enabled - ran) * rate)
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
        rounding: a.rounding(0).saturating_add(b.rounding(0)) as f64,
        edges: edges([a, b], 0) as f64,
        running: 1.0,
        uncounted: 0.0,
    })
}

/// The level 1 shares, adding up to 1, each with its interval; and before they were made to.
#[inline(always)]
fn shares_1(span: &Span) -> (Shares, [f64; 4]) {
    let slots = float(span.slots);
    let doubt = (span.rounding + span.edges) / slots;
    let near: [f64; 4] = from_fn(|k| span.category[k] / slots);
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
    (Shares { value, low, high }, near)
}

/// The bound over all shares: the farthest end of any interval. What happened uncounted widens each: it may have been all of
/// that category or none. Rounded up past what the arithmetic here may have lost.
#[inline(always)]
fn bound(shares: &Shares, span: &Span) -> f64 {
    let slots = float(span.slots);
    let part = span.uncounted / (span.uncounted + slots);
    let counted = 1.0 - part;
    let low = shares.low.map(|low| low * counted);
    let high = shares.high.map(|high| high * counted + part);
    let above: [f64; 4] = from_fn(|k| high[k] - shares.value[k]);
    let below: [f64; 4] = from_fn(|k| shares.value[k] - low[k]);
    let error: [f64; 4] = from_fn(|k| max(above[k], below[k]));
    min(error.into_iter().fold(0.0, max) + 1e-9, 1.0)
}

#[inline(always)]
pub(crate) fn level_1(span: &Span) -> L1 {
    let (shares, _) = shares_1(span);
    let [retiring, bad_speculation, frontend_bound, backend_bound] = shares.value;
    L1 {
        size: size_of::<L1>() as u32,
        flags: span.flags,
        slots: span.slots,
        retiring,
        bad_speculation,
        frontend_bound,
        backend_bound,
        error: bound(&shares, span),
        running: span.running,
        reserved: [0; 2],
    }
}

#[inline(always)]
pub(crate) fn level_2(span: &Span) -> L2 {
    let slots = float(span.slots);
    let doubt = (span.rounding + span.edges) / slots;
    // two fields are rounded, each in its own way; what happened at the edges is the same for both
    let doubt_of_rest = (2.0 * span.rounding + span.edges) / slots;
    let (parent, near_parent) = shares_1(span);
    let near: [f64; 4] = from_fn(|k| span.category[4 + k] / slots);
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
    let error = max(bound(&field, span), bound(&rest, span));
    L2 {
        size: size_of::<L2>() as u32,
        flags: span.flags,
        slots: span.slots,
        heavy_operations: field.value[0],
        light_operations: rest.value[0],
        branch_mispredicts: field.value[1],
        machine_clears: rest.value[1],
        fetch_latency: field.value[2],
        fetch_bandwidth: rest.value[2],
        memory_bound: field.value[3],
        core_bound: rest.value[3],
        error,
        running: span.running,
        reserved: [0; 2],
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sample::TD_SAMPLE_COARSE_TIME;

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
                6 => sample.base.model = self.below(12) as u8,
                _ => sample.base.category[self.below(7) as usize] = value as i64,
            }
        }
    }

    /// All that a result says, bit for bit.
    pub(crate) fn bits_1(l1: &L1) -> [u64; 8] {
        let L1 { retiring, bad_speculation, frontend_bound, backend_bound, error, running, .. } = *l1;
        let [a, b, c, d, e, f] =
            [retiring, bad_speculation, frontend_bound, backend_bound, error, running].map(f64::to_bits);
        [l1.flags.into(), l1.slots, a, b, c, d, e, f]
    }

    pub(crate) fn bits_2(l2: &L2) -> [u64; 12] {
        let mut bits = [u64::from(l2.flags); 12];
        bits[1] = l2.slots;
        let shares = [
            l2.heavy_operations,
            l2.light_operations,
            l2.branch_mispredicts,
            l2.machine_clears,
            l2.fetch_latency,
            l2.fetch_bandwidth,
            l2.memory_bound,
            l2.core_bound,
            l2.error,
            l2.running,
        ];
        bits[2..].copy_from_slice(&shares.map(f64::to_bits));
        bits
    }

    /// Samples of one handle, a fourth of them with any number in a place.
    pub(crate) fn pairs() -> impl Iterator<Item = (Sample, Sample)> {
        let mut random = Random(1);
        (0..60_000).map(move |_| {
            let zero = Sample {
                size: size_of::<Sample>() as u32,
                base: Base {
                    model: 1,
                    level: 2,
                    window: random.next() as u32,
                    ..Base::of_handle(random.next())
                },
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
