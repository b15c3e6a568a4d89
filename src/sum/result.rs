//! A sum to shares, each with its bound.
#![forbid(unsafe_code)]

use super::{Sum, TD_SAMPLE_SPARSE};
use crate::bound::{Moments, RandomSample, random_sample};
use crate::decode::{level_1_of, level_2_of};
use crate::error::{Error, Result, TD_ENOTCOUNTING};
use crate::model::MOST_INPUTS;
use crate::model::tree::{Formula, Input, NodeRow, Tree};
use crate::sample::{CATEGORIES, L1, L2, TD_SAMPLE_UNCORRECTED};
use crate::span::{Span, another_version, float};
use crate::tree::{self, CountedInputs, MovedSlots, Node, Nodes};

impl Sum {
    /// What was measured, and the tree of the CPU that it was measured on.
    fn measured(&self, level: u32) -> Result<(Span, &'static Tree)> {
        if self.is_of_another_version() {
            return Err(another_version("sum"));
        }
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
        let tree = self.last.base.tree().expect("a plausible sum has a tree");
        let all_of = self.parts();
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
            uncounted: self.uncounted_slots() * self.measured_slots as f64 / (self.slots.max(1) as f64),
            level: self.level,
        };
        Ok((span, tree))
    }

    /// The error that comes from measuring a part of the executions only: of each category, as a share.
    fn sampled(&self, span: &Span) -> [f64; CATEGORIES] {
        let slots = self.measured_slots as f64;
        let Sum { measured, executions, .. } = *self;
        let chosen = RandomSample { measured, executions, measured_slots: slots, slots: self.slots as f64 };
        std::array::from_fn(|k| {
            let moments = Moments { xx: self.xx, xy: self.moments[k], yy: self.moments[CATEGORIES + k] };
            random_sample(&chosen, span.category[k] / slots, &moments)
        })
    }

    /// The part of all slots of which it is not known how it divides.
    fn unknown(&self) -> f64 {
        (1.0 - self.measured_slots as f64 / self.slots.max(1) as f64).max(0.0)
    }

    /// Level 1 shares of the sum.
    ///
    /// # Errors
    /// TD_ENOTCOUNTING: nothing was measured; -ENOTSUP: the CPU's tree has others.
    pub fn l1(&self) -> Result<L1> {
        self.l1_beside(&MovedSlots::UNSEEN)
    }

    /// Level 2 shares of the sum.
    ///
    /// # Errors
    /// TD_ENOTCOUNTING: nothing was measured; -ENOTSUP: the samples have no level 2, or the CPU's tree has others.
    pub fn l2(&self) -> Result<L2> {
        self.l2_beside(&MovedSlots::UNSEEN)
    }

    /// Nodes of the CPU's tree of metrics, of all executions in the sum, in the order of
    /// [`TopDown::nodes`](crate::TopDown::nodes).
    ///
    /// # Errors
    /// TD_ENOTCOUNTING: nothing was measured.
    pub fn decode_tree(&self) -> Result<Vec<Node>> {
        self.decode_tree_beside(&MovedSlots::UNSEEN)
    }

    /// As `l1`, with what others have counted of the same work.
    ///
    /// # Errors
    /// Those of `l1`.
    pub fn l1_beside(&self, moved: &MovedSlots) -> Result<L1> {
        let sum = self.without_edges();
        sum.nodes_as_counted(1, moved, |nodes| level_1_of(nodes, sum.slots))?
    }

    /// As `l2`, with what others have counted of the same work.
    ///
    /// # Errors
    /// Those of `l2`.
    pub fn l2_beside(&self, moved: &MovedSlots) -> Result<L2> {
        let sum = self.without_edges();
        sum.nodes_as_counted(2, moved, |nodes| level_2_of(nodes, sum.slots))?
    }

    /// As `decode_tree`, with what others have counted of the same work.
    ///
    /// # Errors
    /// Those of `decode_tree`.
    pub fn decode_tree_beside(&self, moved: &MovedSlots) -> Result<Vec<Node>> {
        self.without_edges().nodes_as_counted(1, moved, |nodes| nodes.collect())
    }

    /// What it has counted of what the published metrics correct by, for a sum of the same work that has not; and of how many slots.
    /// None: nothing corrects its nodes, or nothing was measured.
    #[must_use]
    pub fn moved(&self) -> Option<(MovedSlots, u64)> {
        let (span, tree) = self.measured(1).ok().filter(|_| self.flags & TD_SAMPLE_UNCORRECTED == 0)?;
        let corrected = |row: &NodeRow| match row.formula {
            Formula::Corrected(of) if row.divides_all() => Some(of),
            _ => None,
        };
        let slots = |inputs: &'static [usize]| -> f64 {
            let counters = inputs.iter().filter_map(|input| tree.inputs[*input].counter());
            counters.map(|(k, each)| float(self.counted[k]) * f64::from(each)).sum()
        };
        tree.nodes.iter().any(|row| corrected(row).is_some()).then(|| {
            let of = || tree.nodes.iter().filter_map(corrected);
            let counted = [of().map(|of| slots(of.less)).sum(), of().map(|of| slots(of.more)).sum()];
            (MovedSlots { counted, off: span.rounding + span.edges, rest: 0.0 }, span.slots)
        })
    }

    /// As `decode_tree`, for a function that is given the nodes; an error unless this level was counted.
    pub(crate) fn nodes<R>(&self, level: u32, then: impl FnOnce(Nodes) -> R) -> Result<R> {
        self.without_edges().nodes_as_counted(level, &MovedSlots::UNSEEN, then)
    }

    /// The same with the library's own instructions at the edges.
    fn nodes_as_counted<R>(
        &self,
        level: u32,
        moved: &MovedSlots,
        then: impl FnOnce(Nodes) -> R,
    ) -> Result<R> {
        let (span, tree) = self.measured(level)?;
        let sampled = self.sampled(&span).map(|part| part * span.slots as f64);
        let mut counted = CountedInputs {
            unknown: self.unknown(),
            uncorrected: self.flags & TD_SAMPLE_UNCORRECTED != 0,
            moved: *moved,
            ..CountedInputs::new(self.last.base.model, &span)
        };
        // (nobody noted how the counters of different executions vary, as each is to be measured)
        let mut may_be_off =
            [if self.measured == self.executions { 0.0 } else { f64::INFINITY }; MOST_INPUTS];
        for (place, input) in tree.inputs.iter().enumerate() {
            match *input {
                Input::Category(k) => {
                    may_be_off[place] = sampled[k];
                    counted.set(place, span.category[k]);
                }
                Input::Counter(k) => counted.set(place, float(self.counted[k])),
                Input::Cycles(k, slots) => counted.set(place, float(self.counted[k]) * f64::from(slots)),
            }
        }
        counted.sampled = Some(may_be_off);
        Ok(tree::nodes(tree, self.level, &counted, &Span { slots: self.slots, ..span }, then))
    }
}
