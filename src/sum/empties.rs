//! What the library itself executes between the two readings of an execution that is counted steadily: measured in place, by
//! executions of nothing. Two in a row come before one in so many executions, chosen at random, and take the same code. The mean of
//! the second ones is subtracted from each execution. How far it may be off is in the bound, and so is what the first ones, which come
//! after other code, have more or less than the second (docs/error-bound-sums.md).
#![forbid(unsafe_code)]

use super::{STEADY, Sum};
use crate::bound::{MOST_WHILE_HANDLED, mean_of_sample, skid_of_counters, unseen};
use crate::model::counters_down_to;
use crate::registers::rounded;
use crate::sample::{Increments, Sample};
use crate::span::float;

/// One in so many executions has a pair of empty ones before it, of the first and of the later.
const ONE_IN: [u64; 2] = [16, 512];
/// The least number of pairs that tells anything, in the weight of the last.
const LEAST_PAIRS: f64 = 32.0;
/// `Sum::wait` when it is due: there is no less.
pub(super) const DUE: u64 = 1 << 63;
/// So many counters of theirs are kept.
const COUNTERS: usize = 8;

/// Sums over executions of nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Empties {
    /// Their weights: each is one of so many executions, in units of the least such number.
    pub weight: f64,
    /// Their slots, times the weight; so are all below.
    pub slots: f64,
    /// The squares of the slots.
    pub slots_squares: f64,
    /// Slots by which the first of a pair and the second are apart: all, and those of the category where they are most.
    pub apart: f64,
    /// What each counter counted, in the order of `Sample::counter`.
    pub counter: [f64; COUNTERS],
    /// The squares of what each counter counted.
    pub squares: [f64; COUNTERS],
}

impl Empties {
    /// One in so many executions is to have a pair before it, from now on: a part of the executions that there were, so that the
    /// last ones do not have more weight than all others.
    pub(super) fn one_in(&self) -> u64 {
        let [first, later] = ONE_IN;
        ((self.weight / 4.0) as u64).clamp(first, later).next_power_of_two()
    }

    /// The weight of a pair that is chosen now.
    fn weight_of_next(&self) -> f64 {
        float(self.one_in() / ONE_IN[0])
    }
}

impl Sum {
    /// What was counted in executions of nothing. (Of CPUs with general-purpose counters nothing else is in these places.)
    #[must_use]
    pub fn empties(&self) -> Empties {
        let (sums, squares) = (&self.together, &self.apart);
        Empties {
            weight: sums.rounding,
            slots: sums.edges,
            slots_squares: squares.edges,
            apart: self.closed.category[0],
            counter: sums.category,
            squares: squares.category,
        }
    }

    /// Says what was; of a sum by inputs.
    pub fn set_empties(&mut self, empties: &Empties) {
        if self.takes_counters() {
            (self.together.rounding, self.together.edges) = (empties.weight, empties.slots);
            (self.together.category, self.apart.category) = (empties.counter, empties.squares);
            (self.apart.edges, self.closed.category[0]) = (empties.slots_squares, empties.apart);
        }
    }

    /// Whether one is due before the next execution.
    #[must_use]
    pub fn is_empty_due(&self) -> bool {
        self.wait == DUE
    }

    /// Whether executions are to come before the next that is measured, and not none since an empty one is due.
    #[inline(always)]
    pub(crate) fn waits(&self) -> bool {
        self.wait != DUE - 1
    }

    /// A sum that counts one, of what samples start from now. None: executions are not counted steadily.
    pub(crate) fn empty(&self, start: &Sample) -> Option<Sum> {
        let mut empty = Sum { level: self.level, last: self.last, ..Sum::default() };
        let counts = self.counters() <= COUNTERS && empty.starts_from(start);
        (empty.state, empty.closed.edges) = (STEADY, 0.0);
        counts.then_some(empty)
    }

    /// What such a sum has counted. None: its execution was not counted steadily from beginning to end.
    pub(crate) fn as_empty(&self) -> Option<Increments> {
        let counter = std::array::from_fn(|k| self.counted[k]);
        let one = Increments { slots: self.slots, ns: self.time_enabled_ns, counter };
        (self.executions == 1 && self.was_steady()).then_some(one)
    }

    /// Whether nothing but steady executions was counted.
    #[must_use]
    pub fn was_steady(&self) -> bool {
        self.apart.rounding == 0.0 && self.closed.edges == 0.0
    }

    /// Adds a pair of executions of nothing, unless a signal handler was in it.
    pub fn add_empty(&mut self, [first, second]: &[Increments; 2]) {
        if first.slots.max(second.slots) > MOST_WHILE_HANDLED {
            return;
        }
        let mut all = self.empties();
        let weight = all.weight_of_next();
        let add = |sum: &mut f64, squares: &mut f64, n: u64| {
            *sum += weight * float(n);
            *squares += weight * float(n) * float(n);
        };
        all.weight += weight;
        add(&mut all.slots, &mut all.slots_squares, second.slots);
        let counters = all.counter.iter_mut().zip(&mut all.squares).zip(second.counter);
        counters.for_each(|((sum, squares), n)| add(sum, squares, n));
        let apart = |k: usize| float(first.counter[k].abs_diff(second.counter[k]));
        all.apart += weight * (float(first.slots.abs_diff(second.slots)) + self.most_of_counters(apart));
        self.set_empties(&all);
    }

    /// Slots of the counter of which there are most, by how much each counted.
    fn most_of_counters(&self, of: impl Fn(usize) -> f64) -> f64 {
        let Some(tree) = self.last.base.tree() else { return 0.0 };
        let inputs = tree.inputs[..tree.inputs_of(self.level)].iter().filter_map(|input| input.counter());
        inputs.map(|(k, slots)| of(k) * f64::from(slots)).fold(0.0, f64::max)
    }

    /// How many counters its executions have.
    fn counters(&self) -> usize {
        counters_down_to(self.last.base.model, self.level as u8)
    }

    /// Executions that were counted steadily.
    fn steady(&self) -> f64 {
        (float(self.measured) - self.apart.rounding).max(0.0)
    }

    /// The skid of their readings.
    pub(super) fn steady_skid(&self) -> f64 {
        (self.steady() * float(skid_of_counters(0, self.counters()))).min(float(self.measured_slots))
    }

    /// The same sum without what the library itself executed between the readings of steady executions, where enough is known of
    /// that: slots are the region's own. What is left unknown of it is in the bound.
    #[must_use]
    pub fn without_edges(&self) -> Sum {
        self.subtracted().unwrap_or(*self)
    }

    fn subtracted(&self) -> Option<Sum> {
        let tree = self.last.base.tree().filter(|_| self.is_plausible())?;
        let (all, steady, counters) = (self.empties(), self.steady(), self.counters());
        if !tree.takes_counters()
            || counters > COUNTERS
            || steady == 0.0
            || all.weight < LEAST_PAIRS * all.weight_of_next()
        {
            return None;
        }
        // (of the later pairs alone, if the first have less weight)
        let pairs = all.weight / all.weight_of_next();
        let off = |sum: f64, squares: f64| {
            mean_of_sample(pairs, sum / all.weight * pairs, squares / all.weight * pairs)
        };
        let worst = self.most_of_counters(|k| off(all.counter[k], all.squares[k]));
        // what a count is off is of one category, what the slots are off of another
        let off =
            worst + off(all.slots, all.slots_squares) + unseen(pairs) + (all.apart / all.weight).max(0.0);
        let off = steady * off;
        if off >= self.steady_skid() {
            return None;
        }
        let own = |counted: f64, of_empties: f64| counted - steady * of_empties / all.weight;
        let slots = |counted: u64| own(float(counted), all.slots).max(1.0) as u64;
        let mut sum = Sum { slots: slots(self.slots), measured_slots: slots(self.measured_slots), ..*self };
        for (counted, of_empties) in sum.counted.iter_mut().zip(all.counter) {
            *counted = rounded(own(float(*counted), of_empties));
        }
        sum.closed.edges += off;
        (sum.together, sum.apart) = Default::default();
        sum.apart.rounding = float(self.measured);
        Some(sum)
    }
}
