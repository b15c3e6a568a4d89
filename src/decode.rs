//! Two samples to shares, each with its bound.
//!
//! A share is a difference of two totals over the slots between them. What bounds its error is worked
//! out in slots (docs/error-bound.md): the rounding of both readings, what windows closed in between
//! added, each save and restore of the registers on the way, and the time that was not counted. Shares
//! lie between 0 and 1 and add up to 1, and that narrows the interval in which the truth can lie; the
//! bound is the farthest end of any share's interval.
#![forbid(unsafe_code)]

use crate::error::{Error, Result, TD_ENOTCOUNTING, TD_ESTALE};
use crate::model::{self, Counting, Model, slots_per_ns};
use crate::registers::{EDGE_SLOTS, RawMetrics, RawSlots, Registers};
use crate::sample::{
    Base, CATEGORIES, L1, L2, OF_READINGS, Sample, TD_SAMPLE_CLEARED, TD_SAMPLE_UNBOUNDED,
    TD_SAMPLE_WORK_AFTER, TD_SAMPLE_WORK_BEFORE, UNCHECKED_MS,
};

/// The library's own work in a region whose readings took the slow path, on the way back to the caller and on the way in.
const WORK_AFTER: f64 = 6.0 * EDGE_SLOTS as f64;
const WORK_BEFORE: f64 = 4.0 * EDGE_SLOTS as f64;

/// Where each reading clears the registers: what is lost between the two RDPMC, and the library's own work on the way
/// there and back.
const CLEARED_EDGES: f64 = 10.0 * EDGE_SLOTS as f64;

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

/// Where a share's truth can lie, and what we say of it.
#[derive(Clone, Copy, Default)]
struct Share {
    value: f64,
    low: f64,
    high: f64,
}

impl Share {
    /// A share that lies between `low` and `high`; anywhere, if that is nowhere.
    fn new(value: f64, low: f64, high: f64) -> Share {
        if low > high { Share { value, low: 0.0, high: 1.0 } } else { Share { value, low, high } }
    }

    fn error(&self) -> f64 {
        (self.high - self.value).max(self.value - self.low)
    }
}

/// Level 1 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// -EINVAL: not samples of this version's `td_read`, of two handles, or in the wrong order; TD_ESTALE: of
/// two periods; TD_ENOTCOUNTING: no slot was counted between them.
pub fn decode_l1(from: Option<&Sample>, to: &Sample) -> Result<L1> {
    Ok(level_1(&span(from, to, 1)?))
}

/// Level 2 shares between two samples of one period; from its start without `from`.
///
/// # Errors
/// Those of [`decode_l1`], and -ENOTSUP: the samples have no level 2.
pub fn decode_l2(from: Option<&Sample>, to: &Sample) -> Result<L2> {
    Ok(level_2(&span(from, to, 2)?))
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
        return Err(Error::errno(
            libc::ENOTSUP,
            "the upper half of PERF_METRICS is empty: this CPU has level 1 only",
        ));
    }
    Ok(level_2(&span))
}

fn model_of(sample: &Sample) -> Option<&'static Model> {
    model::at(sample.base.model.into()).filter(|m| !matches!(m.counting, Counting::None(_)))
}

impl Sample {
    /// How often the registers were saved and restored since this sample's window began.
    fn switches(&self) -> u64 {
        if self.base.switches == u16::MAX { u64::MAX } else { self.base.switches.into() }
    }

    /// No core of its kind does more.
    pub(crate) fn most_slots_per_ns(&self) -> f64 {
        slots_per_ns(model_of(self).map_or(0, |model| model.slots_per_cycle))
    }

    /// Whether the registers may have overflowed, unseen.
    fn is_unchecked(&self) -> bool {
        self.registers().slots.0 > 0 && self.unchecked_ms(self.time_enabled_ns) > 2 * UNCHECKED_MS
    }
}

/// Edges on the way from one reading to another: those of both, and of each window that was closed, by a reading
/// of the registers and a read(2) right after.
fn edges(readings: [Registers; 2], windows: u32) -> f64 {
    let readings = readings.iter().filter(|registers| registers.slots.0 > 0).count() as f64;
    (readings + 2.0 * f64::from(windows)) * EDGE_SLOTS as f64
}

/// Checks that two samples go together, and takes their difference.
pub(crate) fn span(from: Option<&Sample>, to: &Sample, level: u32) -> Result<Span> {
    for sample in from.into_iter().chain([to]) {
        let plausible = sample.size as usize == size_of::<Sample>()
            && sample.base.handle != 0
            && (1..=2).contains(&sample.base.level)
            && model_of(sample).is_some()
            && sample.registers().are_possible();
        if !plausible {
            return Err(Error::invalid(
                "not a sample: it was not filled in by td_read of this version of the library",
            ));
        }
    }
    let start = Sample {
        base: Base { window: to.base.first_window(), error: 0, category: [0; 7], ..to.base },
        ..Sample::default()
    };
    let from = match from {
        None => &start,
        Some(from) if from.base.handle != to.base.handle => {
            return Err(Error::invalid(
                "the two samples are of different handles; decode each handle's with its own",
            ));
        }
        Some(from) if from.base.period != to.base.period => {
            return Err(Error::new(
                TD_ESTALE,
                "one of the samples is from before a td_reset and the other from after it; take both in one period",
            ));
        }
        Some(from) => from,
    };
    if from.slots > to.slots || from.base.error > to.base.error {
        return Err(Error::invalid("the samples are in the wrong order: `from` was taken after `to`"));
    }
    if level > to.base.level.into() {
        return Err(Error::errno(
            libc::ENOTSUP,
            "level 2 was not counted: this CPU has level 1 only, or the handle was opened with level 1",
        ));
    }
    let slots = to.slots - from.slots;
    let enabled = to.time_enabled_ns.saturating_sub(from.time_enabled_ns) as f64;
    let ran = to.time_running_ns.saturating_sub(from.time_running_ns) as f64;
    if slots == 0 {
        return Err(Error::new(
            TD_ENOTCOUNTING,
            format!(
                "no slot was counted between the samples: the counters ran for {ran} of {enabled} ns; either nothing \
                 ran, or others hold the counters, or it ran where they do not exist (an E-core, or with \
                 TD_FLAG_E_CORES a P-core)"
            ),
        ));
    }
    let (a, b) = (from.registers(), to.registers());
    let windows = to.base.window.wrapping_sub(from.base.window);
    let before = if windows == 0 && a.slots.0 > 0 { from.switches() } else { 0 };
    let rounding = a
        .rounding(0)
        .saturating_add(b.rounding(to.switches().saturating_sub(before)))
        .saturating_add(to.base.error - from.base.error);
    let flags = (from.flags | to.flags) & !OF_READINGS;
    let bounded = flags & TD_SAMPLE_UNBOUNDED == 0 && !from.is_unchecked() && !to.is_unchecked();
    let edges = if flags & TD_SAMPLE_CLEARED != 0 {
        f64::from(windows) * CLEARED_EDGES
    } else {
        let after = if from.flags & TD_SAMPLE_WORK_AFTER != 0 { WORK_AFTER } else { 0.0 };
        let before = if to.flags & TD_SAMPLE_WORK_BEFORE != 0 { WORK_BEFORE } else { 0.0 };
        edges([a, b], windows) + after + before
    };
    let total = |sample: &Sample| {
        let (before, since) = (sample.base.categories(sample.slots_before), sample.registers().split());
        std::array::from_fn::<_, CATEGORIES, _>(|k| i128::from(before[k]) + i128::from(since[k]))
    };
    let (a, b) = (total(from), total(to));
    // the fastest that slots can pass: what any core does, or what this one did, whichever is more
    let rate = to.most_slots_per_ns().max(if ran > 0.0 { slots as f64 / ran } else { 0.0 });
    Ok(Span {
        flags,
        slots,
        category: std::array::from_fn(|k| (b[k] - a[k]) as f64),
        rounding: if bounded { rounding as f64 } else { f64::INFINITY },
        edges,
        running: if enabled > 0.0 { (ran / enabled).min(1.0) } else { 1.0 },
        uncounted: (enabled - ran).max(0.0) * rate,
    })
}

fn raw_span(slots_a: u64, metrics_a: u64, slots_b: u64, metrics_b: u64) -> Result<Span> {
    let a = Registers { slots: RawSlots(slots_a), metrics: RawMetrics(metrics_a) };
    let b = Registers { slots: RawSlots(slots_b), metrics: RawMetrics(metrics_b) };
    if !a.are_possible() || !b.are_possible() {
        return Err(Error::invalid("SLOTS is a counter of 48 bits: these are no readings of it"));
    }
    if slots_b < slots_a {
        return Err(Error::new(
            TD_ESTALE,
            "SLOTS went back between the readings: the registers were reset; take both readings in one window",
        ));
    }
    if metrics_b as u32 == 0 {
        return Err(Error::new(TD_ENOTCOUNTING, "PERF_METRICS is empty: no metric event is counting"));
    }
    if slots_b == slots_a {
        return Err(Error::new(
            TD_ENOTCOUNTING,
            "SLOTS stood still between the readings: it is not counting",
        ));
    }
    let (from, to) = (a.split(), b.split());
    Ok(Span {
        flags: 0,
        slots: slots_b - slots_a,
        category: std::array::from_fn(|k| (i128::from(to[k]) - i128::from(from[k])) as f64),
        rounding: a.rounding(0).saturating_add(b.rounding(0)) as f64,
        edges: edges([a, b], 0),
        running: 1.0,
        uncounted: 0.0,
    })
}

/// The level 1 shares, adding up to 1, each with its interval.
fn shares_1(span: &Span) -> [Share; 4] {
    let slots = span.slots as f64;
    let doubt = (span.rounding + span.edges) / slots;
    let raw: [f64; 4] = std::array::from_fn(|k| (span.category[k] / slots).clamp(0.0, 1.0));
    let whole: f64 = raw.iter().sum();
    let mut shares: [Share; 4] = std::array::from_fn(|k| {
        let near = span.category[k] / slots;
        let value = if whole > 0.0 { raw[k] / whole } else { 0.25 };
        Share { value, low: (near - doubt).clamp(0.0, 1.0), high: (near + doubt).clamp(0.0, 1.0) }
    });
    // the others leave no more, and no less, than this
    let low: f64 = shares.iter().map(|s| s.low).sum();
    let high: f64 = shares.iter().map(|s| s.high).sum();
    for share in &mut shares {
        let least = 1.0 - (high - share.high);
        let most = 1.0 - (low - share.low);
        *share = Share::new(share.value, share.low.max(least), share.high.min(most));
    }
    shares
}

/// Widens an interval by what happened uncounted, which may have been all of this category or none.
fn widen(share: &Share, span: &Span) -> Share {
    let part = span.uncounted / (span.uncounted + span.slots as f64);
    Share { value: share.value, low: share.low * (1.0 - part), high: share.high * (1.0 - part) + part }
}

/// The bound over all shares, rounded up past what the arithmetic here may have lost.
fn bound(shares: &[Share], span: &Span) -> f64 {
    let worst = shares.iter().map(|s| widen(s, span).error()).fold(0.0, f64::max);
    (worst + 1e-9).min(1.0)
}

pub(crate) fn level_1(span: &Span) -> L1 {
    let shares = shares_1(span);
    L1 {
        size: size_of::<L1>() as u32,
        flags: span.flags,
        slots: span.slots,
        retiring: shares[0].value,
        bad_speculation: shares[1].value,
        frontend_bound: shares[2].value,
        backend_bound: shares[3].value,
        error: bound(&shares, span),
        running: span.running,
        reserved: [0; 2],
    }
}

pub(crate) fn level_2(span: &Span) -> L2 {
    let slots = span.slots as f64;
    let doubt = (span.rounding + span.edges) / slots;
    // two fields are rounded, each in its own way; what happened at the edges is the same for both
    let doubt_of_rest = (2.0 * span.rounding + span.edges) / slots;
    let mut shares = [Share::default(); 8];
    for (k, parent) in shares_1(span).iter().enumerate() {
        let near = span.category[4 + k] / slots;
        let value = near.clamp(0.0, parent.value);
        let low = (near - doubt).clamp(0.0, parent.high);
        let high = (near + doubt).clamp(low, parent.high);
        let rest = span.category[k] / slots - near;
        shares[2 * k] = Share::new(value, low, high);
        shares[2 * k + 1] = Share::new(
            parent.value - value,
            (parent.low - high).max(rest - doubt_of_rest).max(0.0),
            (parent.high - low).min(rest + doubt_of_rest).max(0.0),
        );
    }
    L2 {
        size: size_of::<L2>() as u32,
        flags: span.flags,
        slots: span.slots,
        heavy_operations: shares[0].value,
        light_operations: shares[1].value,
        branch_mispredicts: shares[2].value,
        machine_clears: shares[3].value,
        fetch_latency: shares[4].value,
        fetch_bandwidth: shares[5].value,
        memory_bound: shares[6].value,
        core_bound: shares[7].value,
        error: bound(&shares, span),
        running: span.running,
        reserved: [0; 2],
    }
}
