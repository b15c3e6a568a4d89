//! What groups that took turns have counted: how slots divide, and companion figures.
#![forbid(unsafe_code)]

use super::companions::{TurnCounts, WantedCompanions};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;
use topdown::{FEWEST_TURNS, FIRST_STRETCH, Stretches, Sum};
use topdown_record::TimedSamples;
use topdown_report::Gaps;

/// Stretches that are over.
#[derive(Clone, Default)]
pub struct CountedStretches {
    slots: Stretches,
    /// Companion figures, if some are to be told.
    pub companions: Option<Rc<WantedCompanions>>,
    /// What turns counted for these, by the number of their group.
    pub counts: BTreeMap<u32, TurnCounts>,
}

impl Deref for CountedStretches {
    type Target = Stretches;

    fn deref(&self) -> &Stretches {
        &self.slots
    }
}

impl DerefMut for CountedStretches {
    fn deref_mut(&mut self) -> &mut Stretches {
        &mut self.slots
    }
}

impl CountedStretches {
    /// These, with companion figures, if some are to be told.
    pub fn new(slots: Stretches, companions: Option<Rc<WantedCompanions>>) -> CountedStretches {
        CountedStretches { slots, companions, counts: BTreeMap::new() }
    }

    /// Adds what a turn has counted for companion figures; `odds`: as of `Stretches::add`.
    pub fn add_counts(&mut self, turn: usize, sum: &Sum, timed: &[TimedSamples], odds: &[f64]) {
        let group = self.companions.as_ref().map_or(0, |wanted| wanted.groups[turn]);
        if group > 0 && sum.slots > 0 {
            let weight = odds.get(turn).map_or(1.0, |chance| 1.0 / chance);
            self.counts.entry(group).or_default().add(sum, timed, weight);
        }
    }

    /// Those since then.
    pub fn since(&self, then: &CountedStretches) -> CountedStretches {
        let counts = self.counts.iter().map(|(group, all)| (*group, all.since(then.counts.get(group))));
        CountedStretches {
            slots: self.slots.since(&then.slots),
            companions: self.companions.clone(),
            counts: counts.collect(),
        }
    }

    /// The time between two stretches.
    pub fn gaps(&self) -> Gaps {
        Gaps { ns: self.gap_ns, most_slots_per_ns: self.most_slots_per_ns_between() }
    }

    /// What to say, if one of the groups, all of which are to come, came too seldom for its nodes to be measured.
    pub fn remark(&self) -> Option<String> {
        let groups = self.turns();
        let lacks = self.slots.slots > 0 && !self.is_drilled() && groups.iter().any(|n| *n < FEWEST_TURNS);
        let rounds = FEWEST_TURNS as u32 + 2; // (a round may lie across an end, and stretches may be long)
        let mean = Duration::from_nanos(self.running_ns / self.count().max(1)).max(FIRST_STRETCH);
        let least = (mean * rounds * groups.len() as u32).as_millis();
        lacks.then(|| {
            format!(
                "nodes whose group had fewer than {FEWEST_TURNS} turns are not measured: an interval, or a run, must have about {least} ms of running threads"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown::{Node, TD_NODE_NONE};

    /// So many turns of two groups, one after the other.
    fn counted(turns: usize) -> CountedStretches {
        let mut over = CountedStretches::new(Stretches::of_turns(2), None);
        let root = Node { id: 1, parent: TD_NODE_NONE, level: 1, measured: 1, value: 0.4, ..Node::default() };
        (0..turns).for_each(|k| over.add(k % 2, &[root], 1000, (1, 1), &[]));
        over
    }

    #[test]
    fn too_few_turns_of_a_group_are_said_with_the_time_that_would_do() {
        assert_eq!((counted(0).remark(), counted(16).remark()), (None, None));
        assert!(counted(14).remark().unwrap().contains("about 100 ms of"));
        assert!(counted(20).since(&counted(16)).remark().is_some());
    }
}
