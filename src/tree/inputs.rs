//! What was counted between two samples, as a tree's formulas take it: slots, with bounds on their errors.
#![forbid(unsafe_code)]

use super::interval::{Ends, Interval};
use crate::model::perf_metrics::MOST_MOVED;
use crate::model::tree::{CorrectionInputs, Formula, RetirementInputs};
use crate::model::{self, MOST_INPUTS};
use crate::sample::TD_SAMPLE_UNCORRECTED;
use crate::span::Span;

/// How much an input counted, and bounds on its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub n: f64,
    /// By rounding, which is independent of that of other inputs.
    pub rounding: f64,
    /// At the edges of the region. What happened there is the same for all inputs.
    pub edges: f64,
    /// Of executions that were measured as a random sample of more: how far the sample may be off, at the rate at which those
    /// counted.
    pub sampled: f64,
}

impl Count {
    /// Of this, as much more. Each input has errors of its own at the edges: they count at other stages of the pipeline.
    fn plus(self, sign: f64, other: Count) -> Count {
        Count {
            n: self.n + sign * other.n,
            rounding: self.rounding + other.rounding,
            edges: self.edges + other.edges,
            sampled: self.sampled + other.sampled,
        }
    }

    const NOTHING: Count = Count { n: 0.0, rounding: 0.0, edges: 0.0, sampled: 0.0 };

    pub fn interval(self) -> Interval {
        let error = self.rounding + self.edges + self.sampled;
        Interval { value: self.n, low: (self.n - error).at_least(0.0), high: self.n + error }
    }
}

/// What was counted between two samples.
#[derive(Clone, Debug)]
pub(crate) struct CountedInputs {
    /// How much each of the tree's inputs counted, in their order.
    pub inputs: [f64; MOST_INPUTS],
    /// A bit for each of those that was measured.
    pub measured: u32,
    /// Bounds on the error of each: see `Count`.
    pub rounding: f64,
    pub edges: f64,
    /// Of each of them; None: it is 0.
    pub sampled: Option<[f64; MOST_INPUTS]>,
    pub slots: f64,
    /// Slots that may have passed uncounted. No more cycles can have.
    pub uncounted: f64,
    /// Of all slots, the part of which it is not known how it divides: what a sample is off is not more.
    pub unknown: f64,
    /// Nodes are to be as their sources count them, not as the published metrics correct these.
    pub bare: bool,
    /// What corrects them was not counted all the time.
    pub uncorrected: bool,
    /// `Tree::is_sure`.
    pub is_sure: bool,
    /// What others have counted of what the published metrics correct them by.
    pub moved: MovedSlots,
}

/// Slots that the published metrics give to other nodes (`Tree::unsure`), as others have counted them in a part of the same work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovedSlots {
    /// Of each entry of `Tree::unsure`.
    pub counted: [f64; MOST_MOVED],
    /// How far each of these may be off.
    pub off: f64,
    /// Slots of the work that they have not seen: any of these may be such.
    pub rest: f64,
}

impl MovedSlots {
    /// Nobody has counted any.
    pub const UNSEEN: MovedSlots = MovedSlots { counted: [0.0; MOST_MOVED], off: 0.0, rest: f64::INFINITY };

    /// Adds what was counted in another part.
    pub fn add(&mut self, other: &MovedSlots) {
        self.counted.iter_mut().zip(other.counted).for_each(|(all, new)| *all += new);
        self.off += other.off;
    }
}

impl CountedInputs {
    /// What was counted in a span, by the tree of the row at this place: nothing yet.
    #[inline]
    pub fn new(row: u8, span: &Span) -> CountedInputs {
        // Of a general-purpose counter nothing is rounded, so all error is what passed at the edges. Counters of slots that are read together were
        // all off by the same slots, each of which is of one category.
        let errors = match model::levels_by_category(row) {
            0 => (0.0, span.rounding + span.edges),
            _ => (span.rounding, span.edges),
        };
        CountedInputs {
            inputs: [0.0; MOST_INPUTS],
            measured: 0,
            rounding: errors.0,
            edges: errors.1,
            sampled: None,
            slots: span.slots as f64,
            uncounted: span.uncounted,
            unknown: 0.0,
            bare: false,
            uncorrected: span.flags & TD_SAMPLE_UNCORRECTED != 0,
            is_sure: model::is_sure(row),
            moved: MovedSlots::UNSEEN,
        }
    }

    /// An input was measured.
    #[inline]
    pub fn set(&mut self, input: usize, n: f64) {
        self.inputs[input] = n;
        self.measured |= 1 << input;
    }

    /// An input was not measured.
    pub fn unset(&mut self, input: usize) {
        self.inputs[input] = 0.0;
        self.measured &= !(1 << input);
    }

    /// Whether no input is in doubt.
    #[inline(always)]
    pub fn is_exact(&self) -> bool {
        self.rounding + self.edges == 0.0
    }

    /// None: not measured.
    #[inline(always)]
    pub fn input(&self, input: usize) -> Option<Count> {
        let (n, sampled) = (self.inputs[input], self.sampled.as_ref().map_or(0.0, |sampled| sampled[input]));
        let count = Count { n, rounding: self.rounding, edges: self.edges, sampled };
        (self.measured >> input & 1 == 1).then_some(count)
    }

    /// What a formula says that counts slots. None: an input was not measured, or it is none of these.
    #[inline(always)]
    pub fn slots_of(&self, formula: &Formula) -> Option<Count> {
        match formula {
            Formula::Slots(input) => self.input(*input),
            Formula::Corrected(of) => self.corrected(of),
            Formula::Balance(of) => self.balance(of.more, of.less),
            Formula::Retired(of) => self.retired(of),
            Formula::Rest | Formula::Of(_) | Formula::NoCounter => None,
        }
    }

    /// What the first inputs counted, less what the others did. An input that is named several times is worth so much more, of
    /// events that each take all those slots: no more of them fit into what passed at the edges.
    fn balance(&self, more: &[usize], less: &[usize]) -> Option<Count> {
        let (mut balance, mut named) = (Count::NOTHING, 0u32);
        for (sign, inputs) in [(1.0, more), (-1.0, less)] {
            for input in inputs {
                let count = self.input(*input)?;
                let again = named >> *input & 1 == 1;
                let count = if again { Count { rounding: 0.0, edges: 0.0, ..count } } else { count };
                balance = balance.plus(sign, count);
                named |= 1 << *input;
            }
        }
        Some(balance)
    }

    /// What an input counted, as others correct it. What happened at the edges is the same for all of them: each slot there is of one
    /// category.
    #[inline]
    fn corrected(&self, of: &CorrectionInputs) -> Option<Count> {
        let mut count = self.input(of.slots)?;
        if self.bare || self.uncorrected {
            return Some(count);
        }
        for (sign, inputs) in [(-1.0, of.less), (1.0, of.more)] {
            for input in inputs {
                let other = self.input(*input)?;
                count.n += sign * other.n;
                count.sampled += other.sampled;
            }
        }
        Some(count)
    }

    /// The least and the most of these slots that there may be of all, where each input may have counted so much more meanwhile.
    pub fn ends_of_retired(&self, of: &RetirementInputs, more: f64) -> Option<(f64, f64)> {
        let stalls = self.balance(of.stalls, of.not_stalls)?.interval();
        let [retired, dispatched] =
            [self.input(of.retired)?.interval(), self.input(of.dispatched)?.interval()];
        let part =
            |retired: f64, dispatched: f64| if retired < dispatched { retired / dispatched } else { 1.0 };
        let least = (self.slots - stalls.high).at_least(0.0) * part(retired.low, dispatched.high + more);
        let most = (self.slots - stalls.low + more) * part(retired.high + more, dispatched.low);
        Some((least, most))
    }

    /// Slots of operations that retired: if none was dispatched, none, or any that are free.
    fn retired(&self, of: &RetirementInputs) -> Option<Count> {
        let stalls = self.balance(of.stalls, of.not_stalls)?;
        let (retired, dispatched) = (self.input(of.retired)?, self.input(of.dispatched)?);
        let part = RetiredPart::new(self.slots, stalls.n, retired.n, dispatched.n);
        let all = |count: Count| count.rounding + count.edges;
        Some(Count {
            n: part.slots(),
            rounding: 0.0,
            edges: part.off(all(stalls), all(retired), all(dispatched)),
            sampled: part.off(stalls.sampled, retired.sampled, dispatched.sampled),
        })
    }
}

/// As many of the slots that no stall took as operations retired of those that were dispatched.
pub(crate) struct RetiredPart {
    free: f64,
    part: f64,
    dispatched: f64,
}

impl RetiredPart {
    #[inline(always)]
    pub fn new(slots: f64, stalls: f64, retired: f64, dispatched: f64) -> RetiredPart {
        let part = if dispatched > 0.0 { (retired / dispatched).at_most(1.0) } else { 0.0 };
        RetiredPart { free: (slots - stalls).at_least(0.0), part, dispatched }
    }

    #[inline(always)]
    pub fn slots(&self) -> f64 {
        self.free * self.part
    }

    /// How far they may be off, where stalls and both counts may be so far off. The quotient is off by no more than its operands are
    /// together, in parts of the least that the divisor can be. What the stalls are off is not made less by it: as much of that may be in
    /// what the siblings leave.
    #[inline(always)]
    pub fn off(&self, stalls: f64, retired: f64, dispatched: f64) -> f64 {
        let least = self.dispatched - dispatched;
        let part_off = if least > 0.0 { (retired + self.part * dispatched) / least } else { 1.0 };
        stalls + self.free * part_off.at_most(1.0)
    }
}
