//! What the library itself executes between the two readings of an execution that is counted steadily: measured in place, by
//! executions of nothing. One comes before one in so many executions, chosen at random, and takes the same code. Their mean is
//! subtracted from each execution, and how far it may be off is in the bound (docs/error-bound.md).
#![forbid(unsafe_code)]

use super::{STEADY, Sum};
use crate::bound::{LEAST_SAMPLE, MOST_WHILE_HANDLED, mean_of_sample, skid_of_counters};
use crate::model::{self, counters_down_to};
use crate::sample::{Increments, Sample, TD_SAMPLE_DROPPING};
use crate::span::float;

/// One in so many executions has an empty one before it.
pub(super) const ONE_IN: u64 = 512;
/// `Sum::wait` when it is due: there is no less.
pub(super) const DUE: u64 = 1 << 63;
/// So many counters of theirs are kept.
const COUNTERS: usize = 8;

/// Sums over executions of nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Empties {
    /// How many.
    pub executions: f64,
    /// Their slots.
    pub slots: f64,
    /// The squares of these.
    pub slots_squares: f64,
    /// What each counter counted, in the order of `Sample::counter`.
    pub counter: [f64; COUNTERS],
    /// The squares of these.
    pub squares: [f64; COUNTERS],
}

impl Sum {
    /// What was counted in executions of nothing. (Of CPUs with plain counters nothing else is in these places.)
    #[must_use]
    pub fn empties(&self) -> Empties {
        let (sums, squares) = (&self.together, &self.apart);
        Empties {
            executions: sums.rounding,
            slots: sums.edges,
            slots_squares: squares.edges,
            counter: sums.category,
            squares: squares.category,
        }
    }

    /// Says what was; of a sum by inputs.
    pub fn set_empties(&mut self, empties: &Empties) {
        if self.takes_counters() {
            (self.together.rounding, self.together.edges) = (empties.executions, empties.slots);
            (self.together.category, self.apart.category) = (empties.counter, empties.squares);
            self.apart.edges = empties.slots_squares;
        }
    }

    /// Whether one is due before the next execution.
    #[must_use]
    pub fn is_empty_due(&self) -> bool {
        self.wait == DUE
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
        let counter = std::array::from_fn(|k| self.moments[k] as u64);
        let one = Increments { slots: self.slots, ns: self.time_enabled_ns, counter };
        (self.executions == 1 && self.was_steady()).then_some(one)
    }

    /// Whether nothing but steady executions was counted.
    #[must_use]
    pub fn was_steady(&self) -> bool {
        self.apart.rounding == 0.0 && self.closed.edges == 0.0
    }

    /// Adds an execution of nothing, unless a signal handler was in it.
    pub fn add_empty(&mut self, one: &Increments) {
        if one.slots > MOST_WHILE_HANDLED {
            return;
        }
        let mut all = self.empties();
        let add = |sum: &mut f64, squares: &mut f64, n: u64| {
            *sum += float(n);
            *squares += float(n) * float(n);
        };
        all.executions += 1.0;
        add(&mut all.slots, &mut all.slots_squares, one.slots);
        let counters = all.counter.iter_mut().zip(&mut all.squares).zip(one.counter);
        counters.for_each(|((sum, squares), n)| add(sum, squares, n));
        self.set_empties(&all);
    }

    /// How many counters its executions have.
    fn counters(&self) -> usize {
        let dropping = usize::from(self.flags & TD_SAMPLE_DROPPING != 0);
        counters_down_to(self.last.base.model, self.level as u8) + dropping
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
        let tree = model::tree_of(self.last.base.model).filter(|_| self.is_plausible())?;
        let (all, steady, counters) = (self.empties(), self.steady(), self.counters());
        if !tree.takes_counters()
            || counters > COUNTERS
            || steady == 0.0
            || all.executions < LEAST_SAMPLE as f64
        {
            return None;
        }
        let off = |sum: f64, squares: f64| mean_of_sample(all.executions, sum, squares);
        let inputs = tree.inputs[..tree.inputs_of(self.level)].iter().filter_map(|input| input.counter());
        let worst = inputs.map(|(k, slots)| off(all.counter[k], all.squares[k]) * f64::from(slots));
        // what a count is off is of one category, what the slots are off of another
        let off = steady * (worst.fold(0.0, f64::max) + off(all.slots, all.slots_squares));
        if off >= self.steady_skid() {
            return None;
        }
        let own = |counted: f64, of_empties: f64| counted - steady * of_empties / all.executions;
        let slots = |counted: u64| own(float(counted), all.slots).max(1.0) as u64;
        let mut sum = Sum { slots: slots(self.slots), measured_slots: slots(self.measured_slots), ..*self };
        for (moment, of_empties) in sum.moments.iter_mut().zip(all.counter) {
            *moment = own(*moment, of_empties).max(0.0);
        }
        sum.closed.edges += off;
        (sum.together, sum.apart) = Default::default();
        sum.apart.rounding = float(self.measured);
        Some(sum)
    }
}
