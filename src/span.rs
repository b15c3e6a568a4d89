//! What ran between two samples, in slots, and what bounds the error of each number (docs/error-bound.md): the rounding of
//! both readings, what windows closed in between added, each save and restore of the registers on the way, and the time that
//! was not counted.
#![forbid(unsafe_code)]

use crate::bound::{
    FEW_SWITCHES, SKID_BESIDE, UNCHECKED_MS, WORK_AFTER, WORK_BEFORE_COUNTERS, rounding, rounding_of_few,
    skid, skid_of_counters, uncounted,
};
use crate::error::{Error, Result, TD_ENOTCOUNTING, TD_ESTALE};
use crate::model::{self, slots_per_ns};
use crate::sample::{
    Base, CATEGORIES, OF_READINGS, Sample, TD_SAMPLE_UNBOUNDED, TD_SAMPLE_UNCORRECTED, TD_SAMPLE_WORK_AFTER,
    TD_SAMPLE_WORK_BEFORE, TD_SAMPLE_WORK_COUNTED,
};

/// What ran between two readings.
pub(crate) struct Span {
    pub flags: u32,
    pub slots: u64,
    /// Slots of each category, on CPUs with PERF_METRICS; rounding may leave one below zero.
    pub category: [f64; CATEGORIES],
    /// Bound on the error of each of them, in slots: by rounding, which is another for each category, and at the
    /// edges, where some slots are not counted or those of something else are.
    pub rounding: f64,
    pub edges: f64,
    pub running: f64,
    /// Slots that may have passed uncounted.
    pub uncounted: f64,
    /// Deepest level that was counted all the time.
    pub level: u32,
}

/// As f64; numbers below 2^63, as all are that the library counts, take one instruction.
#[inline(always)]
pub(crate) fn float(n: u64) -> f64 {
    #[cold]
    #[inline(never)]
    fn large(n: u64) -> f64 {
        n as f64
    }
    if n as i64 >= 0 { n as i64 as f64 } else { large(n) }
}

impl Sample {
    /// How often the registers were saved and restored since this sample's window began.
    pub(crate) fn switches(&self) -> u64 {
        if self.base.switches == u16::MAX { u64::MAX } else { self.base.switches.into() }
    }

    /// No core of its kind does more.
    pub(crate) fn most_slots_per_ns(&self) -> f64 {
        slots_per_ns(model::at(self.base.model.into()).map_or(0, |model| model.slots_per_cycle))
    }

    /// Whether the registers may have overflowed, unseen.
    #[inline(always)]
    pub(crate) fn is_unchecked(&self) -> bool {
        const SOON_NS: u64 = 2 * UNCHECKED_MS as u64 * 1_000_000;
        // (most are soon after, before the milliseconds come round, and that takes no division)
        let checked_ns = u64::from(self.base.checked_ms) * 1_000_000;
        let soon = self.time_enabled_ns.wrapping_sub(checked_ns) <= SOON_NS; // (not before: that wraps to more)
        !soon && self.registers().slots.0 > 0 && self.unchecked_ms(self.time_enabled_ns) > 2 * UNCHECKED_MS
    }
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

/// Where the sample's period began.
pub(crate) fn begin_of_period(sample: &Sample) -> Sample {
    Sample {
        size: sample.size,
        base: Base {
            window: sample.base.first_window(),
            error: 0,
            category: [0; 7],
            switches: 0,
            ..sample.base
        },
        ..Sample::default()
    }
}

/// Checks that two samples go together, and takes their difference; from the start of the period without `from`.
pub(crate) fn span(from: Option<&Sample>, to: &Sample, level: u32) -> Result<Span> {
    match from {
        Some(from) => between(from, to, level),
        None => between(&begin_of_period(to), to, level),
    }
}

fn between(from: &Sample, to: &Sample, level: u32) -> Result<Span> {
    let (levels, by_category) = (model::levels(to.base.model), model::levels_by_category(to.base.model) != 0);
    if !go_together(from, to, level, levels) || !by_category && went_back(from, to) {
        check(from, to, level)?;
    }
    if by_category {
        return Ok(difference::<CATEGORIES>(from, to));
    }
    if level > level_between(from, to) { Err(not_counted()) } else { Ok(difference_of_counters(from, to)) }
}

/// Why two samples do not go together, if so.
#[cold]
#[inline(never)]
fn check(from: &Sample, to: &Sample, level: u32) -> Result<()> {
    for sample in [from, to] {
        let plausible = sample.size as usize == size_of::<Sample>()
            && sample.base.handle != 0
            && sample.registers().are_possible();
        if !plausible {
            return Err(Error::invalid("not a sample")
                .why("it was not filled in by td_read of this version of the library"));
        }
        let Some(tree) = sample.base.tree() else { return Err(another_version("sample")) };
        if !(1..=tree.depth()).contains(&sample.base.level.into()) {
            return Err(Error::invalid("not a sample").why("no CPU has as many levels"));
        }
    }
    if !from.base.is_of_the_handle(to.base.handle, to.base.period) {
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
    if went_back(from, to) {
        return Err(Error::invalid("the samples are in the wrong order")
            .why("a counter of `from` has more than that of `to`"));
    }
    if level > to.base.level.into() {
        return Err(not_counted());
    }
    if from.slots == to.slots {
        let (ran, enabled) = times(from, to);
        return Err(Error::new(TD_ENOTCOUNTING, "no slot was counted between the samples").why(format!(
            "the counters ran for {ran} of {enabled} ns; either nothing ran, or others hold the counters, or it ran where \
             they do not exist (an E-core, or with TD_CORES_E a P-core)"
        )));
    }
    Ok(())
}

#[cold]
fn not_counted() -> Error {
    Error::errno(libc::ENOTSUP, "level 2 was not counted").why(
        "this CPU has level 1 only, the handle was opened with level 1, or others held counters that level 2 takes",
    )
}

/// Deepest level that general-purpose counters counted all the time between two samples.
#[inline(always)]
pub(crate) fn level_between(from: &Sample, to: &Sample) -> u32 {
    let all = from.base.switches == to.base.switches;
    if all { from.base.level.min(to.base.level).into() } else { 1 }
}

/// Whether what corrects general-purpose counters was not counted all the time between two samples.
#[inline(always)]
pub(crate) fn is_uncorrected(from: &Sample, to: &Sample) -> bool {
    (from.flags | to.flags) & TD_SAMPLE_UNCORRECTED != 0
        || from.base.switches != to.base.switches && model::is_corrected(to.base.model)
}

/// A sample, or a sum, that says by its fingerprint that this version does not have the tree of metrics that it was counted by.
#[cold]
pub(crate) fn another_version(what: &str) -> Error {
    Error::invalid(format!("the {what} was counted by another version of the library"))
        .why("the core's tree of metrics or its events are not those of this version, or its nodes were named by another process")
        .remedy("decode it where it was counted")
}

/// Whether a general-purpose counter that the tree takes went back.
#[inline(always)]
fn went_back(from: &Sample, to: &Sample) -> bool {
    let model = to.base.model;
    let counted = match is_uncorrected(from, to) {
        true => model::sources_of_level_1(model),
        false => model::counters_down_to(model, level_between(from, to) as u8),
    };
    let (from, to) = (&from.counter[..counted.min(from.counter.len())], &to.counter[..]);
    let mut back = false;
    for k in 0..from.len() {
        back |= from[k] > to[k];
    }
    back
}

/// Whether two samples go together, and that is seen at first sight. `levels`: as many as a sample of their CPU can have, if
/// it is of the kind that is meant; 0 if not.
#[inline(always)]
pub(crate) fn go_together(from: &Sample, to: &Sample, level: u32, levels: u8) -> bool {
    let of = |base: &Base| u64::from(base.period) << 32 | u64::from(base.handle);
    let kind = |base: &Base| u16::from_le_bytes([base.model, base.level]);
    from.size as usize == size_of::<Sample>()
        && to.size as usize == size_of::<Sample>()
        && to.base.is_of_the_table() // (so no tree is there if it is of no handle, and `levels` is 0)
        && of(&from.base) == of(&to.base)
        && kind(&from.base) == kind(&to.base)
        && (level <= 1 || level <= to.base.level.into())
        // (one comparison: 0 wraps to more than any has)
        && to.base.level.wrapping_sub(1) < levels
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
pub(crate) fn difference<const N: usize>(from: &Sample, to: &Sample) -> Span {
    let slots = to.slots - from.slots;
    let (a, b) = (from.registers(), to.registers());
    let (whole_a, whole_b) = (a.metrics.whole(), b.metrics.whole());
    let windows = to.base.window.wrapping_sub(from.base.window);
    // a window's switches until `from` are in the rounding of `from`
    let before = if windows == 0 && a.slots.0 > 0 { from.base.switches } else { 0 };
    let rounding = if to.base.switches < FEW_SWITCHES {
        rounding_of_few(a, whole_a, 0) + rounding_of_few(b, whole_b, to.base.switches.saturating_sub(before))
    } else {
        rounding_of_many(from, to, windows)
    };
    let rounding = rounding.saturating_add(to.base.error - from.base.error);
    let flags = from.flags | to.flags;
    let bounded = flags & TD_SAMPLE_UNBOUNDED == 0 && !from.is_unchecked() && !to.is_unchecked();
    let edges = skid([a, b], windows) + own_work(from, to);
    let at = [from.base.categories(from.slots_before), to.base.categories(to.slots_before)];
    let since = [a.split_by::<N>(whole_a), b.split_by::<N>(whole_b)];
    let mut category = [0.0; CATEGORIES];
    for k in 0..N {
        category[k] = more(at[1][k], at[0][k], since[1][k] - since[0][k]);
    }
    let (running, uncounted) = ran(from, to);
    let rounding = if bounded { float(rounding) } else { f64::INFINITY };
    let level = to.base.level.into();
    let edges = edges as i64 as f64;
    let mut span = Span { flags, slots, category, rounding, edges, running, uncounted, level };
    if !model::moved(to.base.model).is_empty() {
        move_slots(&mut span, from, to, true);
    }
    span
}

/// Slots that are of other categories by the published metrics than by the registers go there; or back, as they are counted.
#[cold]
#[inline(never)]
pub(crate) fn move_slots(span: &mut Span, from: &Sample, to: &Sample, there: bool) {
    for (k, moved) in model::moved(to.base.model).iter().enumerate() {
        // (samples that nobody read may hold anything)
        let slots = float(to.counter[k].saturating_sub(from.counter[k])) * f64::from(moved.each);
        let slots = if there { slots } else { -slots };
        moved.from.iter().for_each(|k| span.category[*k] -= slots);
        moved.to.iter().for_each(|k| span.category[*k] += slots);
        // (what the library itself has executed between windows was taken out as published)
        let windows = to.base.window != from.base.window;
        span.edges += if there {
            SKID_BESIDE as f64
        } else if windows {
            slots.abs()
        } else {
            0.0
        };
    }
}

/// Of two samples of general-purpose counters that go together: nothing is rounded, and there is no category.
#[inline(always)]
pub(crate) fn difference_of_counters(from: &Sample, to: &Sample) -> Span {
    let counters = model::counters_down_to(to.base.model, from.base.level.max(to.base.level));
    difference_of(counters, from, to)
}

/// The same of samples that have so many counters.
#[inline(always)]
pub(crate) fn difference_of(counters: usize, from: &Sample, to: &Sample) -> Span {
    let uncorrected = if is_uncorrected(from, to) { TD_SAMPLE_UNCORRECTED } else { 0 };
    let flags = from.flags | to.flags | uncorrected;
    let bounded = flags & TD_SAMPLE_UNBOUNDED == 0;
    let rounding = to.base.error - from.base.error;
    let windows = to.base.window.wrapping_sub(from.base.window);
    let edges = skid_of_counters(windows, counters)
        + match flags & (OF_READINGS | TD_SAMPLE_WORK_COUNTED) {
            0 => 0,
            _ => own_work(from, to) + own_work_at_marks(from, to),
        };
    let (running, uncounted) = ran(from, to);
    Span {
        flags,
        slots: to.slots - from.slots,
        category: [0.0; CATEGORIES],
        rounding: if bounded { float(rounding) } else { f64::INFINITY },
        edges: float(edges),
        running,
        uncounted,
        level: level_between(from, to),
    }
}

/// The library's own work after one reading and before the other.
#[inline(always)]
pub(crate) fn own_work(from: &Sample, to: &Sample) -> u64 {
    let after = if from.flags & TD_SAMPLE_WORK_AFTER != 0 { WORK_AFTER } else { 0 };
    let before = if to.flags & TD_SAMPLE_WORK_BEFORE != 0 { WORK_BEFORE_COUNTERS } else { 0 };
    after + before
}

/// The same of general-purpose counters, where it was counted: as much came before the reading as was counted after it, and after that, at the most.
#[inline(always)]
fn own_work_at_marks(from: &Sample, to: &Sample) -> u64 {
    let of = |sample: &Sample| match sample.flags & TD_SAMPLE_WORK_COUNTED {
        0 => 0,
        _ => sample.base.category[0].clamp(0, i64::from(u32::MAX)) as u64,
    };
    2 * of(from) + of(to)
}

/// Part of the time in which the counters counted, and how many slots may have passed in the rest.
#[inline(always)]
fn ran(from: &Sample, to: &Sample) -> (f64, f64) {
    // (nothing passed uncounted if time running went on with time enabled, and neither came round)
    let enabled = to.time_enabled_ns.wrapping_sub(from.time_enabled_ns);
    let counted_all = to.time_running_ns.checked_sub(from.time_running_ns) == Some(enabled);
    if counted_all { (1.0, 0.0) } else { multiplexed(from, to) }
}

/// What rounding of both readings comes to, of registers that were saved and restored often.
#[cold]
#[inline(never)]
fn rounding_of_many(from: &Sample, to: &Sample, windows: u32) -> u64 {
    let (a, b) = (from.registers(), to.registers());
    let before = if windows == 0 && a.slots.0 > 0 { from.switches() } else { 0 };
    rounding(a, 0).saturating_add(rounding(b, to.switches().saturating_sub(before)))
}

#[inline(never)]
fn multiplexed(from: &Sample, to: &Sample) -> (f64, f64) {
    let (ran, enabled) = times(from, to);
    if ran >= enabled {
        return (1.0, 0.0);
    }
    let (ran, enabled, slots) = (ran as f64, enabled as f64, (to.slots - from.slots) as f64);
    (ran / enabled, uncounted(enabled, ran, slots, to.most_slots_per_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;
    use crate::decode::by_counters::{l1_at_sight, l2_at_sight};
    use crate::sum::Sum;
    use crate::{decode_l1, decode_l2, decode_tree};

    /// Two samples of the row at a place, which decode.
    fn two(place: u8) -> (Sample, Sample) {
        let base = Base::of_handle(1 << 40, place, 1);
        let from =
            Sample { size: size_of::<Sample>() as u32, base, raw_metrics: 0x3333_6633, ..Sample::default() };
        let from = Sample { slots: 1_000_000, ..from };
        (from, Sample { slots: 2_000_000, ..from })
    }

    #[test]
    fn between_two_samples_with_a_stretch_of_level_1_no_deeper_level_is_told() {
        let (place, row) = model::named("Golden or Raptor Cove, by counters").unwrap();
        let base = Base { level: 2, ..Base::of_handle(1 << 40, place as u8, 2) };
        let from = Sample { size: size_of::<Sample>() as u32, base, slots: 1_000_000, ..Sample::default() };
        let to = Sample { slots: 2_000_000, counter: [100_000; 15], ..from };
        let of = |sample: &Sample, level: u8, switches: u16| Sample {
            base: Base { level, switches, ..sample.base },
            ..*sample
        };
        let whole = from;
        let measured = |from: &Sample, to: &Sample| {
            let nodes = decode_tree(Some(from), to).unwrap();
            let deep = nodes.iter().filter(|node| node.level == 2 && node.measured == 1).count();
            assert!(nodes.iter().all(|node| node.level > 1 || node.measured == 1));
            assert_eq!(decode_l2(Some(from), to).is_ok(), deep > 0);
            assert_eq!(l2_at_sight(from, to).is_some(), deep > 0);
            assert!(decode_l1(Some(from), to).is_ok());
            let mut sum = Sum::default();
            sum.add(from, to).unwrap();
            assert_eq!(sum.l2().is_ok(), deep > 0);
            // one without it does not make the sum whole
            sum.add(&whole, &of(to, 2, 0)).unwrap();
            assert_eq!(sum.l2().is_ok(), deep > 0);
            deep
        };
        assert_eq!(row.levels(), 2);
        assert!(measured(&from, &to) > 0);
        assert!(measured(&of(&from, 2, 3), &of(&to, 2, 3)) > 0);
        for (a, b) in [((2, 0), (2, 1)), ((1, 1), (1, 1)), ((2, 0), (1, 1)), ((1, 1), (2, 1))] {
            // (the fast path does not write the counters of deeper levels then)
            let mut from = of(&from, a.0, a.1);
            if a.0 == 1 {
                from.counter[4..].fill(u64::MAX);
            }
            assert_eq!(measured(&from, &of(&to, b.0, b.1)), 0, "{a:?} {b:?}");
        }
        let begun = decode_tree(None, &of(&to, 2, 1)).unwrap();
        assert!(begun.iter().all(|node| node.level == 1 || node.measured == 0), "since the period began");
    }

    /// Another version has other cores, or the same with other trees, at the same places.
    #[test]
    fn what_another_version_counted_is_refused() {
        let places = || model::trees_by_place().map(|(place, _)| place);
        assert!(places().count() > 90);
        for place in places() {
            let (from, to) = two(place);
            assert!(decode_tree(Some(&from), &to).is_ok(), "{place}");
            let mut sum = Sum::default();
            sum.add(&from, &to).unwrap();
            assert!(sum.decode_tree().is_ok(), "{place}");
            // its tree is another; or its place is
            let changed = |sample: &Sample| Base {
                handle: sample.base.handle ^ (model::MARK ^ model::MARK >> 1),
                ..sample.base
            };
            let others = places().filter(|other| *other != place).map(|model| Base { model, ..to.base });
            for base in others.chain([changed(&to)]) {
                let (from, to) = (Sample { base, ..from }, Sample { base, ..to });
                assert!(l1_at_sight(&from, &to).is_none() && l2_at_sight(&from, &to).is_none());
                assert!(
                    decode::l1_at_sight(&from, &to).is_none() && decode::l2_at_sight(&from, &to).is_none()
                );
                let mut other = Sum { last: to, ..sum };
                for refused in [
                    decode_l1(Some(&from), &to).err(),
                    decode_l1(None, &to).err(),
                    decode_l2(Some(&from), &to).err(),
                    decode_tree(Some(&from), &to).err(),
                    crate::decode_tree_bare(Some(&from), &to).err(),
                    Sum::default().add(&from, &to).err(),
                    other.l1().err(),
                    other.decode_tree().err(),
                    other.add(&two(place).0, &two(place).1).err(),
                ] {
                    let refused = refused.expect("it is of another version");
                    assert_eq!(refused.code(), -libc::EINVAL);
                    assert!(refused.to_string().contains("by another version of the library"), "{refused}");
                }
            }
        }
    }
}
