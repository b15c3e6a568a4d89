//! Many executions of one region, added up.
//!
//! Two ways. `add` takes samples that the caller took, of every execution, and gives a bound that holds whatever
//! they were. `begin` and `end` read by themselves, and open a fresh window for as many executions, chosen at
//! random, as the budget allows: those tell how slots divide, all tell how many there were. docs/error-bound-sums.md
//! derives both.
#![forbid(unsafe_code)]

mod empties;
mod execution;
mod inputs;
mod result;
mod turns;

use crate::bound::{self, SKID_SLOTS};
use crate::error::{Error, Result, TD_ENOTCOUNTING};
use crate::model::tree::Tree;
use crate::sample::{CATEGORIES, Sample, TD_SAMPLE_UNCORRECTED};
use crate::span::{Span, another_version, span};
use crate::sys::at_once;

pub use empties::Empties;
pub use execution::Execution;
pub use inputs::InputSum;
pub use turns::{FEWEST_TURNS, SampledTurns, TurnTally, is_in_turns, tallied_by};

/// Of a sum: a random sample of the executions was measured.
pub const TD_SAMPLE_SPARSE: u32 = 8;

/// `Sum::state`.
const BETWEEN: u32 = 0;
const COUNTING: u32 = 1;
const MEASURING: u32 = 2;
/// Between two, after one by general-purpose counters: the next may be counted steadily.
const STEADY: u32 = 3;
/// In one that is counted steadily: its end takes no more than the counters.
const COUNTED: u32 = 4;

/// Sum over executions of one region. Clear it (memset) before the first; then call td_sum_begin and td_sum_end around
/// each, or td_sum_add after it. Plain data, for one thread at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// sizeof(struct td_sum), set by the library.
    pub size: u32,
    /// TD_SAMPLE_* bits of all samples.
    pub flags: u32,
    /// Executions that have ended.
    pub executions: u64,
    /// Slots in all of them, as they were counted.
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
    pub reserved: u64,
    /// The rest is the library's own.
    pub level: u32,
    /// Between two executions, or in one, and how it is counted.
    pub state: u32,
    /// Executions to come before the next that is measured; less than none, as a signed number, where each is.
    pub wait: u64,
    /// State of the random numbers.
    pub random: u64,
    /// time_enabled_ns when the first execution began.
    pub begun_ns: u64,
    /// Measured executions that have been added up for good.
    pub closed: Part,
    /// The last ones, which follow each other closely: taken together, and each by itself. On CPUs with general-purpose counters: sums over
    /// executions of nothing of what was counted, and of its squares.
    pub together: Part,
    /// See `together`.
    pub apart: Part,
    /// Sum of the squares of the slots of measured executions.
    pub xx: f64,
    /// Of measured executions: sums of the products of their slots and those of each category, then of the squares of the
    /// latter.
    pub moments: [f64; 16],
    /// On CPUs with general-purpose counters: how much each counted in measured executions.
    pub counted: [u64; 16],
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

impl Sum {
    /// So many executions more, of so many slots, enabled and running for so many nanoseconds.
    #[inline]
    fn slots_are(&mut self, executions: u64, slots: u64, [enabled_ns, running_ns]: [u64; 2]) {
        self.size = size_of::<Sum>() as u32;
        for (all, more) in [
            (&mut self.executions, executions),
            (&mut self.slots, slots),
            (&mut self.time_enabled_ns, enabled_ns),
            (&mut self.time_running_ns, running_ns),
        ] {
            at_once::add_saturating(all, more);
        }
    }

    /// One execution more, from one sample to another.
    fn slots_between(&mut self, flags: u32, from: &Sample, to: &Sample) {
        self.flags |= flags;
        let more = |of: fn(&Sample) -> u64| of(to).saturating_sub(of(from));
        self.slots_are(
            1,
            more(|at| at.slots),
            [more(|at| at.time_enabled_ns), more(|at| at.time_running_ns)],
        );
    }

    /// Adds an execution that the caller read.
    ///
    /// # Errors
    /// Those of [`crate::decode_l1`]; nothing is added then. An execution in which no slot was counted adds nothing.
    pub fn add(&mut self, from: &Sample, to: &Sample) -> Result<()> {
        self.is_steady_no_more();
        let one = match span(Some(from), to, 1) {
            Err(error) if error.code() == TD_ENOTCOUNTING => {
                self.slots_between(from.flags | to.flags, from, to);
                return Ok(());
            }
            other => other?,
        };
        let tree = self.tree_of(to)?;
        let level = one.level;
        self.level = if self.measured == 0 { level } else { self.level.min(level) };
        // (slots first, and measured last: of an execution that a signal handler leaves by siglongjmp in between, the intervals have all
        // slots as not measured)
        self.slots_between(one.flags, from, to);
        if tree.takes_counters() {
            self.add_counters(tree, from, to, &one);
        } else {
            self.add_categories(from, to, &one);
        }
        self.last = *to;
        at_once::add_saturating(&mut self.measured_slots, one.slots);
        at_once::add_saturating(&mut self.measured, 1);
        Ok(())
    }

    /// The tree of the sample's CPU, which is that of the samples before.
    fn tree_of(&self, sample: &Sample) -> Result<&'static Tree> {
        let tree = |sample: &Sample| sample.base.tree();
        if self.is_of_another_version() {
            return Err(another_version("sum"));
        }
        let (before, now) = (tree(&self.last), tree(sample));
        match now.filter(|now| self.measured == 0 || before.is_some_and(|before| std::ptr::eq(before, *now)))
        {
            Some(tree) => Ok(tree),
            None => Err(Error::invalid("the samples are of another kind of core than those in the sum")
                .remedy("keep a sum for each kind")),
        }
    }

    /// An execution, by the categories of PERF_METRICS.
    fn add_categories(&mut self, from: &Sample, to: &Sample, one: &Span) {
        let slots = one.slots as f64;
        // by itself; what is surely wrong is cut off
        let apart = Part {
            category: one.category.map(|part| part.clamp(0.0, slots)),
            rounding: one.rounding.min(slots),
            edges: one.edges.min(slots),
        };
        match self.joined(from, to, one) {
            Some(more) => self.together.add(&more),
            None => {
                self.close();
                self.together = Part { category: one.category, rounding: one.rounding, edges: one.edges };
            }
        }
        self.apart.add(&apart);
        self.xx += slots * slots;
        for (k, new) in apart.category.into_iter().enumerate() {
            self.moments[k] += slots * new;
            self.moments[CATEGORIES + k] += new * new;
        }
    }

    /// An execution, by general-purpose counters.
    fn add_counters(&mut self, tree: &Tree, from: &Sample, to: &Sample, one: &Span) {
        let counted = match one.flags & TD_SAMPLE_UNCORRECTED {
            0 => tree.inputs_of(one.level),
            _ => tree.sources_of_level_1(), // level 1 alone was counted, and nothing that corrects it
        };
        for input in &tree.inputs[..counted] {
            if let Some((k, _)) = input.counter() {
                at_once::add_saturating(&mut self.counted[k], to.counter[k].saturating_sub(from.counter[k]));
            }
        }
        let slots = one.slots as f64;
        at_once::add_float(&mut self.closed.rounding, one.rounding.min(slots));
        at_once::add_float(&mut self.closed.edges, one.edges.min(slots));
        at_once::add_float(&mut self.apart.rounding, 1.0); // see `empties`
    }

    /// What an execution adds to the one before if the two are taken together: the reading between them then need
    /// not be believed, but what came between the two is unknown. None if that would be worse.
    fn joined(&self, from: &Sample, to: &Sample, one: &Span) -> Option<Part> {
        let last = &self.last;
        let rounding = |sample: &Sample| bound::rounding(sample.registers(), 0) as f64;
        let between = from.slots.checked_sub(last.slots)? as f64;
        if self.together.rounding == 0.0 || between > rounding(last) + rounding(from) {
            return None;
        }
        let both = span(Some(last), to, 1).ok()?;
        let gap = if between > 0.0 { span(Some(last), from, 1).ok()?.category } else { [0.0; CATEGORIES] };
        // edges that are the end of one and the start of the next are none
        let edge = |sample: &Sample| if sample.registers().slots.0 > 0 { SKID_SLOTS as f64 } else { 0.0 };
        let edges =
            if between > 0.0 { one.edges.max(both.edges) } else { one.edges - edge(last) - edge(from) };
        let edges = edges.max(0.0); // samples that nobody read may say that they have none
        Some(Part {
            category: std::array::from_fn(|k| both.category[k] - gap[k].clamp(0.0, between)),
            rounding: both.rounding - 2.0 * rounding(last) + between,
            edges,
        })
    }

    /// All measured executions.
    fn parts(&self) -> Part {
        let mut all = self.closed;
        if self.takes_counters() {
            all.edges += self.steady_skid();
        } else {
            all.add(self.better());
        }
        all
    }

    /// Whether it is of a CPU with general-purpose counters.
    fn takes_counters(&self) -> bool {
        self.last.base.tree().is_some_and(Tree::takes_counters)
    }

    /// The better account of the last executions.
    fn better(&self) -> &Part {
        let bound = |part: &Part| part.rounding + part.edges;
        if bound(&self.together) < bound(&self.apart) { &self.together } else { &self.apart }
    }

    /// The next execution is not to be joined to the last.
    fn close(&mut self) {
        if self.takes_counters() {
            return; // they have nothing to join
        }
        let better = *self.better();
        self.closed.add(&better);
        (self.together, self.apart) = (Part::default(), Part::default());
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

    /// Whether it says by its fingerprint that this version does not have the tree that it was counted by.
    fn is_of_another_version(&self) -> bool {
        let size = self.size == 0 || self.size as usize == size_of::<Sum>();
        size && self.last.base.handle != 0 && self.last.base.tree().is_none()
    }

    /// Whether it can be what the library wrote.
    fn is_plausible(&self) -> bool {
        let part = |part: &Part| {
            let finite = part.category.iter().all(|slots| slots.is_finite());
            finite && part.rounding >= 0.0 && (0.0..=f64::MAX).contains(&part.edges)
        };
        let size = self.size == 0 || self.size as usize == size_of::<Sum>();
        let counts = self.measured <= self.executions && self.measured_slots <= self.slots;
        let squares = self.moments.iter().chain([&self.xx]).all(|sum| sum.is_finite());
        let depth = self.last.base.tree().map_or(0, Tree::depth);
        let level = (self.measured == 0 && self.measured_slots == 0) || (1..=depth).contains(&self.level);
        size && counts
            && level
            && squares
            && [&self.closed, &self.together, &self.apart].into_iter().all(part)
    }

    /// Slots that may have passed while the counters were not counting: at the most that any such core does, or at the pace
    /// of this one.
    pub fn uncounted_slots(&self) -> f64 {
        let (enabled, ran) = (self.time_enabled_ns as f64, self.time_running_ns as f64);
        let sample = if self.last.base.handle != 0 { &self.last } else { &self.from };
        bound::uncounted(enabled, ran, self.slots as f64, sample.most_slots_per_ns())
    }

    /// The same sum, of what was counted alone: its bound leaves out what passed uncounted.
    pub fn counted(&self) -> Sum {
        Sum { time_enabled_ns: self.time_running_ns, ..*self }
    }
}

#[cfg(test)]
mod tests;
