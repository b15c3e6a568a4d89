//! What decoding comes to, in the plainest form that there is: integers that cannot overflow, one share after the other. What
//! the library computes has to be the same to the last bit.

use super::*;
use crate::bound::SKID_SLOTS;
use crate::registers::FULL;
use crate::sample::{Base, TD_SAMPLE_UNBOUNDED, TD_SAMPLE_WORK_AFTER, TD_SAMPLE_WORK_BEFORE};

const EDGE: f64 = SKID_SLOTS as f64;

fn edges(readings: [Registers; 2], windows: u32) -> f64 {
    let readings = readings.iter().filter(|registers| registers.slots.0 > 0).count() as f64;
    (readings + 2.0 * f64::from(windows)) * EDGE
}

/// Where a share's truth can lie, and what we say of it.
#[derive(Clone, Copy, Default)]
struct ReferenceShare {
    value: f64,
    low: f64,
    high: f64,
}

impl ReferenceShare {
    /// A share that lies between `low` and `high`; anywhere, if that is nowhere.
    fn new(value: f64, low: f64, high: f64) -> ReferenceShare {
        if low > high {
            ReferenceShare { value, low: 0.0, high: 1.0 }
        } else {
            ReferenceShare { value, low, high }
        }
    }

    /// With what the arithmetic may have lost.
    fn error(&self) -> f64 {
        ((self.high + 1e-9).min(1.0) - self.value).max(self.value - (self.low - 1e-9).max(0.0))
    }
}

fn field(metrics: u64, k: usize) -> u64 {
    metrics >> (8 * k) & 0xff
}

fn whole(metrics: u64) -> u64 {
    (0..4).map(|k| field(metrics, k)).sum()
}

fn split(registers: Registers) -> [i64; CATEGORIES] {
    let Registers { slots, metrics } = registers;
    let mut split: [i64; CATEGORIES] =
        std::array::from_fn(|k| (slots.0 * field(metrics.0, k) / whole(metrics.0).max(1)) as i64);
    split[3] = slots.0 as i64 - split[0] - split[1] - split[2];
    split
}

fn rounding(registers: Registers, switches: u64) -> u64 {
    let Registers { slots, metrics } = registers;
    if slots.0 == 0 {
        return 0;
    }
    let units = switches.saturating_add(1 + whole(metrics.0).abs_diff(FULL));
    slots.0.saturating_mul(units).div_ceil(FULL)
}

/// Between two samples that go together.
pub fn span(from: Option<&Sample>, to: &Sample) -> Span {
    let start = Sample {
        base: Base { window: to.base.first_window(), error: 0, category: [0; 7], ..to.base },
        ..Sample::default()
    };
    let from = from.unwrap_or(&start);
    let slots = to.slots - from.slots;
    let enabled = to.time_enabled_ns.saturating_sub(from.time_enabled_ns) as f64;
    let ran = to.time_running_ns.saturating_sub(from.time_running_ns) as f64;
    let (a, b) = (from.registers(), to.registers());
    let windows = to.base.window.wrapping_sub(from.base.window);
    let before = if windows == 0 && a.slots.0 > 0 { from.switches() } else { 0 };
    let rounding = rounding(a, 0)
        .saturating_add(rounding(b, to.switches().saturating_sub(before)))
        .saturating_add(to.base.error - from.base.error);
    let flags = from.flags | to.flags;
    let bounded = flags & TD_SAMPLE_UNBOUNDED == 0 && !from.is_unchecked() && !to.is_unchecked();
    let after = if from.flags & TD_SAMPLE_WORK_AFTER != 0 { 8.0 * EDGE } else { 0.0 };
    let before = if to.flags & TD_SAMPLE_WORK_BEFORE != 0 { 64.0 * EDGE } else { 0.0 };
    let edges = edges([a, b], windows) + after + before;
    let total = |sample: &Sample| {
        let (before, since) = (sample.base.categories(sample.slots_before), split(sample.registers()));
        std::array::from_fn::<_, CATEGORIES, _>(|k| i128::from(before[k]) + i128::from(since[k]))
    };
    let (a, b) = (total(from), total(to));
    // the fastest that slots can pass: what any core does, or what this one did, whichever is more
    let rate = to.most_slots_per_ns().max(if ran > 0.0 { slots as f64 / ran } else { 0.0 });
    Span {
        flags,
        slots,
        category: std::array::from_fn(|k| (b[k] - a[k]) as f64),
        rounding: if bounded { rounding as f64 } else { f64::INFINITY },
        edges,
        running: if enabled > 0.0 { (ran / enabled).min(1.0) } else { 1.0 },
        uncounted: (enabled - ran).max(0.0) * rate,
        level: to.base.level.into(),
    }
}

/// The level 1 shares, adding up to 1, each with its interval.
fn shares_1(span: &Span) -> [ReferenceShare; 4] {
    let slots = span.slots as f64;
    let doubt = (span.rounding + span.edges) / slots;
    let raw: [f64; 4] = std::array::from_fn(|k| (span.category[k] / slots).clamp(0.0, 1.0));
    let whole: f64 = raw.iter().sum();
    let mut shares: [ReferenceShare; 4] = std::array::from_fn(|k| {
        let near = span.category[k] / slots;
        let value = if whole > 0.0 { raw[k] / whole } else { 0.25 };
        ReferenceShare { value, low: (near - doubt).clamp(0.0, 1.0), high: (near + doubt).clamp(0.0, 1.0) }
    });
    if doubt == 0.0 {
        return shares.map(|share| ReferenceShare::new(share.value, share.low, share.high));
    }
    // the others leave no more, and no less, than this
    let low: f64 = shares.iter().map(|s| s.low).sum();
    let high: f64 = shares.iter().map(|s| s.high).sum();
    for share in &mut shares {
        let least = 1.0 - (high - share.high);
        let most = 1.0 - (low - share.low);
        *share = ReferenceShare::new(share.value, share.low.max(least), share.high.min(most));
    }
    shares
}

/// Widens an interval by what happened uncounted, which may have been all of this category or none.
fn widen(share: &ReferenceShare, span: &Span) -> ReferenceShare {
    let part = span.uncounted / (span.uncounted + span.slots as f64);
    ReferenceShare {
        value: share.value,
        low: share.low * (1.0 - part),
        high: share.high * (1.0 - part) + part,
    }
}

/// The bound over all shares.
fn bound(shares: &[ReferenceShare], span: &Span) -> f64 {
    shares.iter().map(|s| widen(s, span).error()).fold(0.0, f64::max)
}

pub fn level_1(span: &Span) -> L1 {
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
        smt_contention: 0.0,
        reserved: [0],
    }
}

pub fn level_2(span: &Span) -> L2 {
    let slots = span.slots as f64;
    let doubt = (span.rounding + span.edges) / slots;
    // two fields are rounded, each in its own way; what happened at the edges is the same for both
    let doubt_of_rest = (2.0 * span.rounding + span.edges) / slots;
    let mut shares = [ReferenceShare::default(); 8];
    for (k, parent) in shares_1(span).iter().enumerate() {
        let near = span.category[4 + k] / slots;
        let value = near.clamp(0.0, parent.value);
        let low = (near - doubt).clamp(0.0, parent.high);
        let high = (near + doubt).clamp(low, parent.high);
        let rest = span.category[k] / slots - near;
        shares[2 * k] = ReferenceShare::new(value, low, high);
        let (mut least, mut most) = (parent.low - high, parent.high - low);
        if doubt > 0.0 {
            (least, most) = (least.max(rest - doubt_of_rest), most.min(rest + doubt_of_rest));
        }
        shares[2 * k + 1] = ReferenceShare::new(parent.value - value, least.max(0.0), most.max(0.0));
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
