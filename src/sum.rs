//! Many executions of one region, added up.
//!
//! Two ways. `add` takes samples that the caller took, of every execution, and gives a bound that holds whatever
//! they were. `begin` and `end` read by themselves, and open a fresh window for as many executions, chosen at
//! random, as the budget allows: those tell how slots divide, all tell how many there were. docs/error-bound.md
//! derives both.
#![forbid(unsafe_code)]

use crate::decode::{Span, level_1, level_2, span};
use crate::error::{Error, Result, TD_ENOTCOUNTING, TD_ESTALE};
use crate::read::Glance;
use crate::registers::EDGE_SLOTS;
use crate::sample::{CATEGORIES, L1, L2, OF_READINGS, Sample};

/// Of a sum: not every execution was measured, and `error` is four standard errors of a random sample more than the bound of
/// those that were.
pub const TD_SAMPLE_SPARSE: u32 = 8;

/// `Sum::state`.
const BETWEEN: u32 = 0;
const COUNTING: u32 = 1;
const MEASURING: u32 = 2;
/// Standard errors in the bound of a random sample.
const STANDARD_ERRORS: f64 = 4.0;
/// So few executions make no sample.
const FEW: u64 = 8;

/// Sum over executions of one region. Clear it (memset) before the first execution; then call td_sum_begin and td_sum_end
/// around each execution, or td_sum_add after it. Plain data, for one thread at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// sizeof(struct td_sum), set by the library.
    pub size: u32,
    /// TD_SAMPLE_* bits of all samples.
    pub flags: u32,
    /// Executions that have ended.
    pub executions: u64,
    /// Slots in all of them.
    pub slots: u64,
    /// Nanoseconds of all of them, as td_sample.time_enabled_ns.
    pub time_enabled_ns: u64,
    /// Nanoseconds of those in which the counters counted.
    pub time_running_ns: u64,
    /// Executions that were measured: it is known how their slots divide.
    pub measured: u64,
    /// Slots in those.
    pub measured_slots: u64,
    /// Calls of td_sum_end without a td_sum_begin.
    pub unbalanced: u64,
    /// Zero.
    pub unseen: u64,
    /// The rest is the library's own.
    pub level: u32,
    /// Between two executions, in one, or in one that is measured.
    pub state: u32,
    /// Executions to come before the next that is measured.
    pub wait: u64,
    /// State of the random numbers.
    pub random: u64,
    /// time_enabled_ns when the first execution began.
    pub begun_ns: u64,
    /// Measured executions that have been added up for good.
    pub closed: Part,
    /// The last ones, which follow each other closely: taken together, and each by itself.
    pub together: Part,
    /// See `together`.
    pub apart: Part,
    /// Sum of the squares of their slots.
    pub xx: f64,
    /// Sums of the products of their slots and those of each category.
    pub xy: [f64; 8],
    /// Sums of the squares of the latter.
    pub yy: [f64; 8],
    /// The last sample added.
    pub last: Sample,
    /// Where the present execution began.
    pub from: Sample,
}

/// Slots of each category, and bounds on their errors.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Slots of each category.
    pub category: [f64; 8],
    /// By rounding.
    pub rounding: f64,
    /// At the edges.
    pub edges: f64,
}

impl Part {
    fn add(&mut self, other: &Part) {
        self.category.iter_mut().zip(other.category).for_each(|(all, new)| *all += new);
        self.rounding += other.rounding;
        self.edges += other.edges;
    }
}

/// Adds to a number that may hold anything: who wrote it is not known.
#[inline]
fn grow(all: &mut u64, more: u64) {
    *all = all.saturating_add(more);
}

impl Sum {
    #[inline]
    fn slots_are(&mut self, flags: u32, from: &Glance, to: &Glance) {
        self.size = size_of::<Sum>() as u32;
        self.flags |= flags;
        for (all, more) in [
            (&mut self.executions, 1),
            (&mut self.slots, to.slots.saturating_sub(from.slots)),
            (&mut self.time_enabled_ns, to.enabled.saturating_sub(from.enabled)),
            (&mut self.time_running_ns, to.running.saturating_sub(from.running)),
        ] {
            grow(all, more);
        }
    }

    /// Adds an execution that the caller read.
    ///
    /// # Errors
    /// Those of [`crate::decode_l1`]; nothing is added then. An execution in which no slot was counted adds nothing.
    pub fn add(&mut self, from: &Sample, to: &Sample) -> Result<()> {
        let one = match span(Some(from), to, 1) {
            Err(error) if error.code() == TD_ENOTCOUNTING => {
                self.slots_are((from.flags | to.flags) & !OF_READINGS, &from.glance(), &to.glance());
                return Ok(());
            }
            other => other?,
        };
        let slots = one.slots as f64;
        // by itself; what is surely wrong is cut off
        let apart = Part {
            category: one.category.map(|part| part.clamp(0.0, slots)),
            rounding: one.rounding.min(slots),
            edges: one.edges.min(slots),
        };
        match self.joined(from, to, &one) {
            Some(more) => self.together.add(&more),
            None => {
                self.close();
                self.together = Part { category: one.category, rounding: one.rounding, edges: one.edges };
            }
        }
        self.apart.add(&apart);
        self.slots_are((from.flags | to.flags) & !OF_READINGS, &from.glance(), &to.glance());
        let level = to.base.level.into();
        self.level = if self.measured == 0 { level } else { self.level.min(level) };
        grow(&mut self.measured, 1);
        grow(&mut self.measured_slots, one.slots);
        self.xx += slots * slots;
        for (k, new) in apart.category.into_iter().enumerate() {
            self.xy[k] += slots * new;
            self.yy[k] += new * new;
        }
        self.last = *to;
        Ok(())
    }

    /// What an execution adds to the one before if the two are taken together: the reading between them then need
    /// not be believed, but what came between the two is unknown. None if that would be worse.
    fn joined(&self, from: &Sample, to: &Sample, one: &Span) -> Option<Part> {
        let last = &self.last;
        let rounding = |sample: &Sample| sample.registers().rounding(0) as f64;
        let between = from.slots.checked_sub(last.slots)? as f64;
        if self.together.rounding == 0.0 || between > rounding(last) + rounding(from) {
            return None;
        }
        let both = span(Some(last), to, 1).ok()?;
        let gap = if between > 0.0 { span(Some(last), from, 1).ok()?.category } else { [0.0; CATEGORIES] };
        // edges that are the end of one and the start of the next are none
        let edge = |sample: &Sample| if sample.registers().slots.0 > 0 { EDGE_SLOTS as f64 } else { 0.0 };
        let edges =
            if between > 0.0 { one.edges.max(both.edges) } else { one.edges - edge(last) - edge(from) };
        let edges = edges.max(0.0); // samples that nobody read may say that they have none
        Some(Part {
            category: std::array::from_fn(|k| both.category[k] - gap[k].clamp(0.0, between)),
            rounding: both.rounding - 2.0 * rounding(last) + between,
            edges,
        })
    }

    /// The better account of the last executions.
    fn better(&self) -> &Part {
        let doubt = |part: &Part| part.rounding + part.edges;
        if doubt(&self.together) < doubt(&self.apart) { &self.together } else { &self.apart }
    }

    /// The next execution is not to be joined to the last.
    fn close(&mut self) {
        let better = *self.better();
        self.closed.add(&better);
        (self.together, self.apart) = (Part::default(), Part::default());
    }

    /// Whether the execution that begins is one of those that are not to be measured, and not the last of them; whatever began
    /// before does not count.
    #[inline(always)]
    pub(crate) fn begins_unmeasured(&mut self) -> bool {
        self.state = BETWEEN;
        self.wait > 1
    }

    /// It has begun, with the reading in `from`.
    #[inline(always)]
    pub(crate) fn has_begun(&mut self) -> bool {
        self.wait -= 1;
        self.state = COUNTING;
        true
    }

    /// It ends, if it began with a reading of the same handle and period. Of sums that the library keeps: they never get
    /// so large that a number could overflow.
    #[inline(always)]
    pub(crate) fn end_steadily(&mut self, to: &Glance) -> bool {
        let of = |handle: u32, period: u32| u64::from(period) << 32 | u64::from(handle); // one comparison
        if of(self.from.base.handle, self.from.base.period) != of(to.handle, to.period) {
            return false;
        }
        self.state = BETWEEN;
        self.executions = self.executions.wrapping_add(1);
        self.slots = self.slots.wrapping_add(to.slots.wrapping_sub(self.from.slots));
        self.time_enabled_ns =
            self.time_enabled_ns.wrapping_add(to.enabled.wrapping_sub(self.from.time_enabled_ns));
        self.time_running_ns =
            self.time_running_ns.wrapping_add(to.running.wrapping_sub(self.from.time_running_ns));
        true
    }

    /// Whether only the slots of the present execution are counted.
    #[inline]
    pub(crate) fn is_counting(&self) -> bool {
        self.state == COUNTING
    }

    /// Whether the present execution was to be measured, or the last one: the next is not drawn yet.
    #[inline]
    pub(crate) fn was_due(&self) -> bool {
        self.wait == 0
    }

    /// Whether the next execution is to be measured.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.wait = self.wait.saturating_sub(1);
        self.wait == 0
    }

    /// An execution begins; whatever began before does not count.
    #[inline]
    pub(crate) fn begins_anew(&mut self) {
        self.state = BETWEEN;
    }

    /// An execution begins with this reading, and only its slots are counted.
    #[inline]
    pub(crate) fn begins(&mut self, from: Glance) {
        self.state = COUNTING;
        self.from.slots = from.slots;
        self.from.time_enabled_ns = from.enabled;
        self.from.time_running_ns = from.running;
        self.from.base.handle = from.handle;
        self.from.base.period = from.period;
    }

    /// An execution begins, to be measured if its window is fresh.
    pub(crate) fn begins_measured(&mut self, from: Sample, fresh: bool) {
        if self.begun_ns == 0 {
            self.begun_ns = from.time_enabled_ns.max(1);
        }
        self.state = if fresh { MEASURING } else { COUNTING };
        self.from = from;
    }

    /// The sum goes on in another thread, with another handle, whose time is this now; the thread before ended at `then`.
    pub fn go_on(&mut self, then: &Sample, now: &Sample) {
        self.state = BETWEEN;
        if self.begun_ns != 0 {
            // (both may lie before zero; and the last reading before the first, if nothing was counted since)
            let lasted = (then.time_enabled_ns.wrapping_sub(self.begun_ns) as i64).max(0) as u64;
            self.begun_ns = now.time_enabled_ns.wrapping_sub(lasted);
        }
    }

    /// Nanoseconds from one execution to the next, on average.
    pub(crate) fn turn_ns(&self, now: u64) -> u64 {
        // (in a later thread the begin lies before that thread's own time: see `go_on`)
        now.wrapping_sub(self.begun_ns) / self.executions.max(1)
    }

    /// One in so many executions can be measured: draws the next. How often they come is not known of the first, and
    /// little of the first few: none is to wait for longer than those took together.
    pub(crate) fn draw(&mut self, one_in: u64) {
        let one_in = one_in.min(self.executions.max(1));
        if self.random == 0 {
            self.random = 0x9e37_79b9_7f4a_7c15 ^ self.begun_ns ^ self.from.slots << 32;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.wait = 1 + self.random % one_in.saturating_mul(2).saturating_sub(1).max(1);
    }

    /// Whether hardly an execution was measured yet.
    pub(crate) fn is_new(&self) -> bool {
        self.measured < FEW
    }

    /// Whether an execution has begun that is measured.
    #[inline]
    pub fn is_measuring(&self) -> bool {
        self.state == MEASURING
    }

    /// The measured execution ends with this reading.
    ///
    /// # Errors
    /// Those of [`crate::decode_l1`].
    pub(crate) fn ends_measured(&mut self, to: &Sample) -> Result<()> {
        self.state = BETWEEN;
        self.close(); // other executions may be between two that are measured
        let from = self.from;
        self.add(&from, to)
    }

    /// The execution ends with this reading.
    ///
    /// # Errors
    /// -EINVAL: none had begun, or with another handle; TD_ESTALE: before a reset.
    #[inline]
    pub(crate) fn ends(&mut self, to: &Glance) -> Result<()> {
        let state = std::mem::replace(&mut self.state, BETWEEN);
        if state != COUNTING {
            grow(&mut self.unbalanced, 1);
            return Err(
                Error::invalid("td_sum_end without a td_sum_begin").why("no execution of this sum has begun")
            );
        }
        let from = self.from.glance();
        if from.handle != to.handle {
            return Err(Error::invalid("td_sum_end with another handle than td_sum_begin")
                .remedy("end with the same"));
        }
        if from.period != to.period {
            return Err(Error::new(TD_ESTALE, "a td_reset came between td_sum_begin and td_sum_end")
                .remedy("the execution does not count"));
        }
        self.slots_are(0, &from, to);
        Ok(())
    }

    /// Whether it can be what the library wrote.
    fn is_plausible(&self) -> bool {
        let part = |part: &Part| {
            let finite = part.category.iter().all(|slots| slots.is_finite());
            finite && part.rounding >= 0.0 && (0.0..=f64::MAX).contains(&part.edges)
        };
        let size = self.size == 0 || self.size as usize == size_of::<Sum>();
        let counts = self.measured <= self.executions && self.measured_slots <= self.slots;
        let squares = self.xy.iter().chain(&self.yy).chain([&self.xx]).all(|sum| sum.is_finite());
        let level = self.measured_slots == 0 || (1..=2).contains(&self.level);
        size && counts
            && level
            && squares
            && [&self.closed, &self.together, &self.apart].into_iter().all(part)
    }

    /// What was measured, and the error that comes from measuring a part only: of each of the eight categories, as a share.
    fn result(&self, level: u32) -> Result<(Span, [f64; CATEGORIES])> {
        if !self.is_plausible() {
            return Err(Error::invalid("not a sum")
                .why("clear it (memset) before the first execution, and leave it to the library then"));
        }
        if self.measured_slots == 0 {
            return Err(Error::new(
                TD_ENOTCOUNTING,
                format!("{} executions were added, and none was measured with a slot in it", self.executions),
            ));
        }
        if level > self.level {
            return Err(Error::errno(libc::ENOTSUP, "level 2 was not counted")
                .why("this CPU has level 1 only, or the handle was opened with level 1"));
        }
        let mut all_of = self.closed;
        all_of.add(self.better());
        let (m, all, slots) = (self.measured as f64, self.executions as f64, self.measured_slots as f64);
        let sampled = std::array::from_fn(|k| {
            if self.measured == self.executions {
                return 0.0;
            }
            if self.measured < FEW {
                return 1.0;
            }
            // the ratio estimator's standard error, for a part of a finite number
            let ratio = all_of.category[k] / slots;
            let squares = (self.yy[k] - 2.0 * ratio * self.xy[k] + ratio * ratio * self.xx).max(0.0);
            let variance = squares / (m - 1.0) * m * (1.0 - m / all);
            STANDARD_ERRORS * variance.max(0.0).sqrt() / slots
        });
        let ran = if self.time_enabled_ns > 0 {
            (self.time_running_ns as f64 / self.time_enabled_ns as f64).min(1.0)
        } else {
            1.0
        };
        let sparse = if self.measured < self.executions { TD_SAMPLE_SPARSE } else { 0 };
        let span = Span {
            flags: self.flags | sparse,
            slots: self.measured_slots,
            category: all_of.category,
            rounding: all_of.rounding,
            edges: all_of.edges,
            running: ran,
            // of those that were measured, as of all
            uncounted: self.uncounted_slots() * slots / (self.slots.max(1) as f64),
        };
        Ok((span, sampled))
    }

    /// `error` of a result: the bound of what was measured, and the sample's; or that of all that was not measured, if
    /// that is less.
    fn error(&self, measured: f64, sampled: f64) -> f64 {
        let unknown = 1.0 - self.measured_slots as f64 / self.slots.max(1) as f64;
        (measured + sampled.min(unknown.max(0.0))).min(1.0)
    }

    /// Slots that may have passed while the counters were not counting: at the most that any such core does, or at the pace
    /// of this one.
    pub fn uncounted_slots(&self) -> f64 {
        let (enabled, ran) = (self.time_enabled_ns as f64, self.time_running_ns as f64);
        let pace = if ran > 0.0 { self.slots as f64 / ran } else { 0.0 };
        let sample = if self.last.base.handle != 0 { &self.last } else { &self.from };
        (enabled - ran).max(0.0) * pace.max(sample.most_slots_per_ns())
    }

    /// The same sum, of what was counted alone: its bound leaves out what passed uncounted.
    pub fn counted(&self) -> Sum {
        Sum { time_enabled_ns: self.time_running_ns, ..*self }
    }

    /// Level 1 shares of the sum.
    ///
    /// # Errors
    /// TD_ENOTCOUNTING: nothing was measured.
    pub fn l1(&self) -> Result<L1> {
        let (span, sampled) = self.result(1)?;
        let l1 = level_1(&span);
        let sampled = sampled[..4].iter().copied().fold(0.0, f64::max);
        Ok(L1 { slots: self.slots, error: self.error(l1.error, sampled), ..l1 })
    }

    /// Level 2 shares of the sum.
    ///
    /// # Errors
    /// TD_ENOTCOUNTING: nothing was measured; -ENOTSUP: the samples have no level 2.
    pub fn l2(&self) -> Result<L2> {
        let (span, sampled) = self.result(2)?;
        let l2 = level_2(&span);
        // a difference has the errors of both
        let sampled = (0..4).map(|k| sampled[k] + sampled[4 + k]).fold(0.0, f64::max);
        Ok(L2 { slots: self.slots, error: self.error(l2.error, sampled), ..l2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;
    use crate::sample::Base;

    /// A sample whose registers hold so much of which so many 255ths retired, the rest backend bound.
    fn sample(slots: u64, retiring: u64) -> Sample {
        let base = Base { handle: 1, model: model::SIMULATED as u8, level: 2, ..Base::default() };
        let metrics = retiring | (255 - retiring) << 24;
        Sample { size: size_of::<Sample>() as u32, slots, raw_metrics: metrics, base, ..Sample::default() }
    }

    /// A thousand executions of 10,000 slots each, all retiring, with so many slots between them that do not, late in a
    /// window.
    fn chain(gap: u64) -> Sum {
        let mut sum = Sum::default();
        let (mut slots, mut retired) = (5_000_000, 5_000_000);
        let read = |slots: u64, retired: u64| sample(slots, retired * 255 / slots);
        for _ in 0..1000 {
            let from = read(slots, retired);
            (slots, retired) = (slots + 10_000, retired + 10_000);
            sum.add(&from, &read(slots, retired)).unwrap();
            slots += gap;
        }
        sum
    }

    #[test]
    fn executions_that_follow_each_other_closely_are_as_exact_as_one() {
        for gap in [0, 60, 400] {
            let (sum, l1) = (chain(gap), chain(gap).l1().unwrap());
            assert_eq!((sum.executions, sum.measured, l1.slots), (1000, 1000, 10_000_000));
            // readings at 5 M and 15 M slots, and what came between; the edges, but those that are shared
            let slots = 20_000_000.0 / 255.0 + (999 * gap) as f64;
            let edges = if gap == 0 { 640.0 } else { 640_000.0 };
            let most = (slots + edges) / 1e7 + 1e-5 + (999 * gap) as f64 * 2.0 / 255.0 / 1e7;
            assert!(l1.error <= most, "{gap}: {} > {most}", l1.error);
            assert!((l1.retiring - 1.0).abs() <= l1.error, "{gap}: {} {}", l1.retiring, l1.error);
        }
        let far = chain(1_000_000).l1().unwrap();
        assert!(far.error > 0.5, "each by itself: {}", far.error);
    }

    #[test]
    fn readings_that_close_their_windows_have_no_edges_to_share() {
        let mut sum = Sum::default();
        let mut own = 0.0;
        let read = |n: u64| Sample {
            slots: 10_000 * n,
            slots_before: 10_000 * n,
            base: Base {
                error: 400 * n,
                category: [10_000 * n as i64, 0, 0, 0, 0, 0, 0],
                ..sample(0, 0).base
            },
            ..sample(0, 0)
        };
        for turn in 0..100 {
            sum.add(&read(turn), &read(turn + 1)).unwrap();
            own += crate::decode_l1(Some(&read(turn)), &read(turn + 1)).unwrap().error / 100.0;
        }
        assert!((sum.l1().unwrap().error - own).abs() < 1e-6, "{} {own}", sum.l1().unwrap().error);
    }

    #[test]
    fn what_was_not_measured_is_a_sample() {
        let mut sum = Sum::default();
        assert_eq!(sum.l1().unwrap_err().code(), TD_ENOTCOUNTING);
        assert_eq!(sum.ends(&sample(5, 5).glance()).unwrap_err().code(), -libc::EINVAL);
        assert_eq!(sum.unbalanced, 1);
        for turn in 0..1000_u64 {
            // one of two kinds of execution: 20 or 60 of 255 retire
            let retiring = if turn % 2 == 0 { 51 } else { 153 };
            let (from, to) = (sample(0, 0), sample(100_000, retiring));
            if turn % 5 == 0 {
                sum.begins_measured(from, true);
                sum.ends_measured(&to).unwrap();
            } else {
                sum.begins(from.glance());
                sum.ends(&to.glance()).unwrap();
            }
        }
        let l1 = sum.l1().unwrap();
        assert_eq!((sum.executions, sum.measured, l1.slots), (1000, 200, 100_000_000));
        assert!(l1.flags & TD_SAMPLE_SPARSE != 0);
        assert!((l1.retiring - 0.4).abs() < 1e-6, "{}", l1.retiring);
        // the standard deviation of 0.2 and 0.6 is 0.2
        let expected = 4.0 * 0.2 / 200f64.sqrt() * 0.8f64.sqrt() + (100_000.0 / 255.0 + 320.0) / 100_000.0;
        assert!((l1.error - expected).abs() < 0.001, "{} {expected}", l1.error);
    }

    #[test]
    fn garbage_is_no_sum() {
        let good = chain(60);
        assert!(good.l2().is_ok());
        let spoil: [fn(&mut Sum); 6] = [
            |sum| sum.size = 7,
            |sum| sum.measured = sum.executions + 1,
            |sum| sum.measured_slots = sum.slots + 1,
            |sum| sum.closed.category[4] = f64::NAN,
            |sum| sum.together.rounding = f64::NAN,
            |sum| sum.apart.edges = -1.0,
        ];
        for spoil in spoil {
            let mut bad = good;
            spoil(&mut bad);
            assert_eq!(bad.l1().unwrap_err().code(), -libc::EINVAL);
            assert_eq!(bad.l2().unwrap_err().code(), -libc::EINVAL);
        }
    }

    #[test]
    fn numbers_that_are_full_stay_so() {
        let mut sum =
            Sum { executions: u64::MAX, unbalanced: u64::MAX, slots: u64::MAX - 1, ..Sum::default() };
        sum.add(&sample(0, 0), &sample(1000, 51)).unwrap();
        assert!(sum.ends(&sample(5, 5).glance()).is_err());
        assert_eq!((sum.executions, sum.unbalanced, sum.slots), (u64::MAX, u64::MAX, u64::MAX));
        assert!(sum.l1().is_ok());
    }

    #[test]
    fn the_draw_is_fair() {
        let mut sum = Sum { executions: 1000, ..Sum::default() };
        for one_in in [1, 2, 7, 100] {
            let mut waited = [0; 2];
            for _ in 0..20_000 {
                sum.draw(one_in);
                assert!((1..2 * one_in).contains(&sum.wait) || sum.wait == 1);
                waited = [waited[0] + sum.wait, waited[1] + sum.wait % 2];
            }
            let mean = waited[0] as f64 / 20_000.0;
            assert!((mean - one_in as f64).abs() < 0.02 * one_in as f64 + 0.02, "{one_in}: {mean}");
        }
    }

    #[test]
    fn the_first_executions_tell_how_often_the_next_can_be_measured() {
        let mut sum = Sum::default();
        for executions in [0, 1, 2, 10] {
            sum.executions = executions;
            for _ in 0..100 {
                sum.draw(u64::MAX);
                assert!((1..2 * executions.max(1)).contains(&sum.wait), "{executions}: {}", sum.wait);
            }
        }
    }
}
