//! Where no group of counters holds a level whole: groups of its parts take turns, and each execution of a region, or each stretch of a
//! program, is counted by one of them. What turns tell of a node is a random sample of all of them (docs/error-bound-sums.md, Turns).
#![forbid(unsafe_code)]

use super::Sum;
use crate::bound::{
    LEAST_SAMPLE, Moments, SomeTurns, is_enough, missed_by_turns, random_turns, skew, spread_of_turns,
    unseen_by_turns,
};
use crate::error::Result;
use crate::model::MOST_NODES;
use crate::model::metrics::{LEVEL_1, TD_NODE_NONE, TD_NODE_RETIRING, TD_UNIT_OPERATIONS};
use crate::span::float;
use crate::tree::Node;

/// Of fewer turns a node is not measured: their spread tells nothing.
pub const FEWEST_TURNS: u64 = LEAST_SAMPLE;
/// What was counted of a node, and of its parent, in the turns in which both were: sums, squares and products, in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TurnTally {
    /// How many turns.
    pub turns: u64,
    /// All slots in them.
    pub slots: f64,
    /// The node's.
    pub own: f64,
    /// Its parent's.
    pub parent: f64,
    /// Squares of the node's.
    pub own_own: f64,
    /// Products of both.
    pub own_parent: f64,
    /// Squares of the parent's.
    pub parent_parent: f64,
    /// How far the node's bound is from its figure.
    pub far: f64,
    /// Slots, or cycles, of which the node is a share.
    pub whole: f64,
}

/// How far the bound of a node is from its figure.
fn far(node: &Node) -> f64 {
    (node.value - node.low).max(node.high - node.value)
}

/// Whether of the groups that take turns some may measure such a node, and others not.
#[must_use]
pub fn is_in_turns(level: u32, id: u32) -> bool {
    level > 1 || LEVEL_1.iter().all(|metric| metric.id != id)
}

/// The node of whose slots turns tell the part that this one has: of one that is a share of operations it is retiring, and else the nearest one above
/// it that its group measures.
#[must_use]
pub fn tallied_by(node: &Node, nearest: u32) -> u32 {
    if node.unit == TD_UNIT_OPERATIONS { TD_NODE_RETIRING } else { nearest }
}

impl TurnTally {
    /// Adds a turn of so many slots, in which the node was so, and the one above it that it is tallied by ([`tallied_by`]) had so many.
    pub fn add(&mut self, node: &Node, parent: f64, slots: f64) {
        self.add_weighted(node, parent, slots, 1.0);
    }

    /// The same of a turn that stands for so many, as one like it was so unlikely.
    pub fn add_weighted(&mut self, node: &Node, parent: f64, slots: f64, weight: f64) {
        // (a share of operations is of the slots that retired)
        let whole = if node.unit == TD_UNIT_OPERATIONS { parent } else { slots };
        let (own, parent) = (weight * node.value * whole, weight * parent);
        self.merge(&TurnTally {
            turns: 1,
            slots,
            own,
            parent,
            own_own: own * own,
            own_parent: own * parent,
            parent_parent: parent * parent,
            far: weight * whole * far(node),
            whole: float(node.whole),
        });
    }

    /// Whether there are enough of them, and none is more than the others together have room for.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        is_enough(self.turns, self.parent, self.parent_parent)
    }

    /// The part of the parent's slots that may be of turns like none of these: of `n` draws nothing that is missing has more than 3 / n (95 %).
    #[must_use]
    pub fn missed(&self) -> f64 {
        const MISSING: f64 = 3.0;
        (MISSING * self.parent_parent / (self.parent * self.parent)).min(1.0)
    }

    /// Adds other turns.
    pub fn merge(&mut self, more: &TurnTally) {
        self.turns = self.turns.saturating_add(more.turns);
        for (all, more) in self.sums().into_iter().zip(more.clone().sums()) {
            *all += *more;
        }
    }

    fn sums(&mut self) -> [&mut f64; 8] {
        let TurnTally { turns: _, slots, own, parent, own_own, own_parent, parent_parent, far, whole } = self;
        [slots, own, parent, own_own, own_parent, parent_parent, far, whole]
    }

    /// What came since then.
    #[must_use]
    pub fn since(&self, then: &TurnTally) -> TurnTally {
        let mut since = TurnTally { turns: self.turns - then.turns, ..*self };
        for (all, before) in since.sums().into_iter().zip(then.clone().sums()) {
            *all -= *before;
        }
        since
    }

    /// The node's part of its parent, and its bound, where this is of some of so many turns (None: they have weights), which had so many slots,
    /// the parent so many of them. None: the parent had none, or these turns are too few to tell.
    #[must_use]
    pub fn part_of_parent(
        &self,
        all_turns: Option<u64>,
        all_slots: f64,
        of_parent: f64,
    ) -> Option<(f64, f64)> {
        if self.parent <= 0.0 {
            return None;
        }
        let part = self.own / self.parent;
        let some = SomeTurns {
            turns: self.turns,
            all_turns,
            slots: self.parent,
            all_slots: of_parent,
            left_out: 1.0 - self.slots / all_slots,
        };
        let moments = Moments { xx: self.parent_parent, xy: self.own_parent, yy: self.own_own };
        Some((part, self.far / self.parent + random_turns(&some, part, &moments)?))
    }
}

/// Some turns, of all that a count had.
#[derive(Clone, Copy, Debug)]
pub struct SampledTurns {
    /// How many.
    pub turns: u64,
    /// The slots in them.
    pub counted: f64,
    /// The slots that they stand for: each has them as many times as its weight says.
    pub slots: f64,
    /// The squares of these.
    pub squares: f64,
}

impl SampledTurns {
    /// What the sum of squares of their residuals, or of products of two of these, is to be multiplied by for the square of how far their sum
    /// may be off, or for such a product. `all_turns`: of how many these are some; None: they have weights. None: they are too few to tell, or stand
    /// for too little of all slots.
    #[must_use]
    pub fn spread(&self, all_turns: Option<u64>, all_slots: f64) -> Option<f64> {
        let some = self.some(all_turns, all_slots);
        let spread = spread_of_turns(&some, self.squares)? * skew(self.slots, self.squares);
        (some.left_out <= 0.0 || missed_by_turns(&some, self.squares) <= 0.0).then_some(spread)
    }

    /// In which part of all slots may be what none of them has seen, or few have.
    #[must_use]
    pub fn unseen(&self, all_slots: f64) -> f64 {
        unseen_by_turns(&self.some(None, all_slots), self.squares)
    }

    fn some(&self, all_turns: Option<u64>, all_slots: f64) -> SomeTurns {
        let left_out = 1.0 - self.counted / all_slots;
        SomeTurns { turns: self.turns, all_turns, slots: self.slots, all_slots, left_out }
    }
}

impl Sum {
    /// What came since then; of a sum by general-purpose counters.
    #[must_use]
    pub fn since(&self, then: &Sum) -> Sum {
        let mut since = *self;
        for (all, before) in [
            (&mut since.executions, then.executions),
            (&mut since.slots, then.slots),
            (&mut since.time_enabled_ns, then.time_enabled_ns),
            (&mut since.time_running_ns, then.time_running_ns),
            (&mut since.measured, then.measured),
            (&mut since.measured_slots, then.measured_slots),
        ] {
            *all = all.saturating_sub(before);
        }
        for (part, before) in [
            (&mut since.closed.rounding, then.closed.rounding),
            (&mut since.closed.edges, then.closed.edges),
            (&mut since.apart.rounding, then.apart.rounding),
        ] {
            *part = (*part - before).max(0.0);
        }
        since
            .counted
            .iter_mut()
            .zip(then.counted)
            .for_each(|(all, before)| *all = all.saturating_sub(before));
        since
    }

    /// Each node that not every group measures which takes turns, as it was counted: those below level 1, and SMT contention. With the
    /// node that it is tallied by (TD_NODE_NONE: none), the slots of that, and all slots. Takes no memory.
    ///
    /// # Errors
    /// Those of [`Sum::decode_tree`].
    pub fn nodes_in_turns(&self, mut each: impl FnMut(&Node, u32, f64, f64)) -> Result<()> {
        let slots = float(self.slots);
        // (of each node itself, or the nearest above it that was measured, and its share)
        let (mut known, mut count) = ([(TD_NODE_NONE, TD_NODE_NONE, 1.0); 1 + MOST_NODES], 1);
        self.counted().nodes(1, |nodes| {
            for node in nodes {
                let above = known[..count].iter().find(|(id, ..)| *id == node.parent);
                let Some((_, above, share)) = above.copied() else { continue };
                let is_measured = node.measured != 0 && node.value.is_finite();
                let by = tallied_by(&node, above);
                let of_whole = match by == above {
                    true => Some(share),
                    false => known[..count].iter().find(|(id, ..)| *id == by).map(|(.., share)| *share),
                };
                if let Some(of_whole) = of_whole.filter(|_| is_measured && is_in_turns(node.level, node.id)) {
                    each(&node, by, of_whole * slots, slots);
                }
                let own = if is_measured { (node.id, node.value) } else { (above, share) };
                known[count] = (node.id, own.0, own.1);
                count += 1;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, MOST_NODES_IN_TURNS};
    use crate::sample::{Base, Sample};
    use crate::sys::random::Random;

    fn turn(value: f64, far: f64) -> Node {
        Node { value, low: value - far, high: value + far, ..Node::default() }
    }

    /// A program of which one half retires much more than the other.
    #[test]
    fn a_share_of_operations_is_of_the_slots_that_retired() {
        let mut tally = TurnTally::default();
        let of_operations = |value| Node { unit: TD_UNIT_OPERATIONS, ..turn(value, 0.01) };
        for _ in 0..16 {
            tally.add(&of_operations(0.6), 100.0, 1000.0);
            tally.add(&of_operations(0.0), 600.0, 1000.0);
        }
        let (part, _) = tally.part_of_parent(Some(32), 32_000.0, 16.0 * 700.0).unwrap();
        assert!((part - 60.0 / 700.0).abs() < 1e-12, "{part}");
        assert!((tally.far / tally.parent - 0.01).abs() < 1e-12, "{tally:?}");
        assert_eq!(tallied_by(&of_operations(0.1), 7), TD_NODE_RETIRING);
        assert_eq!(tallied_by(&turn(0.1, 0.0), 7), 7);
    }

    #[test]
    fn of_all_turns_the_part_is_exact_but_for_the_bounds_of_each() {
        let mut tally = TurnTally::default();
        (0..3).for_each(|k| tally.add(&turn(0.1 * f64::from(k), 0.01), 500.0, 1000.0));
        let (part, far) = tally.part_of_parent(Some(3), 3000.0, 1500.0).unwrap();
        assert!((part - 0.2).abs() < 1e-9 && (far - 0.02).abs() < 1e-9, "{part} {far}");
        assert_eq!(
            tally.part_of_parent(Some(4), 3001.0, 1500.0),
            None,
            "there were others, and these are too few"
        );
        assert_eq!(TurnTally::default().part_of_parent(Some(0), 0.0, 0.0), None);
        let twice = {
            let mut twice = tally;
            twice.merge(&tally);
            twice
        };
        assert_eq!((twice.turns, twice.since(&tally)), (6, tally));
    }

    #[test]
    fn the_truth_of_all_turns_is_within_the_bound_of_a_random_part_of_them() {
        let mut random = Random::new(88_172_645_463_325_252);
        let (mut widest, mut outside) = (0.0_f64, 0);
        for run in 0..2000 {
            let (turns, groups) = (32 + run % 300, 2 + run % 5);
            let (mut tally, mut all, mut of_parents, mut slots) = (TurnTally::default(), 0.0, 0.0, 0.0);
            for round in 0..turns {
                let mine = (random.part() * f64::from(groups)) as i32;
                for k in 0..groups {
                    let length = 1000.0 * (0.5 + random.part());
                    let parent = 0.2 + 0.6 * random.part();
                    // (of some programs it comes and goes, of others it is a part of the parent, more or less)
                    let part = if run % 2 == 0 { f64::from(round % 2) } else { 0.4 + 0.2 * random.part() };
                    (all, of_parents, slots) =
                        (all + part * parent * length, of_parents + parent * length, slots + length);
                    if k == mine {
                        tally.add(&turn(part * parent, 0.0), parent * length, length);
                    }
                }
            }
            let (part, far) = tally.part_of_parent(Some((turns * groups) as u64), slots, of_parents).unwrap();
            outside += u32::from((part - all / of_parents).abs() > far);
            widest = widest.max(far);
        }
        assert!(outside <= 1 && widest < 0.6, "{outside} outside, {widest} the widest");
    }

    #[test]
    fn a_long_turn_that_the_others_do_not_stand_for_is_in_the_bound_or_leaves_nothing_to_tell() {
        let mut tally = TurnTally::default();
        (0..50).for_each(|k| tally.add(&turn(0.1 + 0.01 * f64::from(k % 2), 0.0), 500.0, 1000.0));
        let all = |turns: u64, others: f64| {
            tally.part_of_parent(Some(turns), 50_000.0 + others, (50_000.0 + others) / 2.0)
        };
        let (_, far) = all(100, 50_000.0).unwrap();
        assert!(far < 0.02, "{far}");
        // one of the others is as long as all of these twice
        let (_, far) = all(100, 149_000.0).unwrap();
        assert!(far > 0.45 && far < 0.55, "{far}");
        tally.add(&turn(0.4, 0.0), 50_000.0, 100_000.0);
        assert_eq!(tally.part_of_parent(Some(101), 200_000.0, 100_000.0), None, "it is most of these");
    }

    #[test]
    fn what_the_root_had_where_no_turn_was_drawn_is_in_the_bound() {
        let mut tally = TurnTally::default();
        // 50 turns, each of which stands for four
        (0..50).for_each(|_| tally.add_weighted(&turn(0.1, 0.0), 500.0, 1000.0, 4.0));
        let of_root = |all: f64| tally.part_of_parent(None, 2.0 * all, all).unwrap();
        assert!((tally.parent - 100_000.0).abs() < 1e-6);
        // (their sum may be off by four times the root of fifty squares of 2,000)
        let is_all = |(part, far): (f64, f64)| (part - 0.2).abs() < 1e-9 && far < 1e-6;
        assert!(is_all(of_root(100_000.0)));
        assert!(is_all(of_root(156_000.0)));
        let (part, far) = of_root(200_000.0);
        assert!(
            (part - 0.2).abs() < 1e-9 && (far - 0.5).abs() < 1e-6,
            "half of it is not among these: {far}"
        );
    }

    #[test]
    fn what_came_since_a_turn_ended_divides_as_itself_alone() {
        let (row, model) = model::named("Zen 4, frontend bound").unwrap();
        let base = Base::of_handle(1, row as u8, 2);
        let sample = |slots: u64, counter: [u64; 5]| {
            let mut sample = Sample {
                size: size_of::<Sample>() as u32,
                base,
                slots,
                slots_before: slots,
                ..Sample::default()
            };
            sample.counter[..5].copy_from_slice(&counter);
            sample
        };
        let mut sum = Sum::default();
        let (first, second) =
            (sample(0, [0; 5]), sample(6_000_000, [3_000_000, 3_600_000, 1_200_000, 0, 100_000]));
        sum.add(&first, &second).unwrap();
        let then = sum;
        let third = sample(12_000_000, [4_000_000, 4_600_000, 6_000_000, 0, 500_000]);
        sum.add(&second, &third).unwrap();
        let mut alone = Sum::default();
        alone.add(&second, &third).unwrap();
        let (since, alone) = (sum.since(&then), alone);
        assert_eq!((since.slots, since.measured, since.executions), (6_000_000, 1, 1));
        assert_eq!(format!("{:?}", since.decode_tree()), format!("{:?}", alone.decode_tree()));
        let mut nodes = Vec::new();
        since
            .nodes_in_turns(|node, above, parent, slots| {
                assert_eq!(above, node.parent);
                nodes.push((node.name(), node.value, parent / slots));
            })
            .unwrap();
        let names: Vec<_> = nodes.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["tma_smt_contention", "tma_fetch_latency", "tma_fetch_bandwidth"], "{nodes:?}");
        assert!(
            (nodes[1].1 - 0.4).abs() < 1e-9 && (nodes[1].2 - 0.8).abs() < 1e-9 && nodes[0].2 == 1.0,
            "{nodes:?}"
        );
        assert_eq!(model.levels(), 2);
    }

    #[test]
    fn no_group_that_takes_turns_has_more_nodes_than_there_is_room_for() {
        let mut groups = 0;
        for core in model::cores() {
            for level in 2..=model::DEEPEST {
                assert!(model::groups_of_level(level, core.core).len() <= model::MOST_TURNS, "{core:?}");
                for group in model::groups_of_level(level, core.core) {
                    let (_, row) = model::named(core.core).unwrap();
                    let (place, _) =
                        model::with_subtree(row, group).or_else(|| model::named(core.core)).unwrap();
                    let nodes = crate::tree::list(place as u8, level).unwrap();
                    let in_turns =
                        nodes.filter(|node| node.measured != 0 && is_in_turns(node.level, node.id));
                    assert!(in_turns.count() <= MOST_NODES_IN_TURNS, "{core:?} {group}");
                    groups += 1;
                }
            }
        }
        assert!(groups > 20, "{groups}");
        for (part, core) in [
            ("Zen 4, retiring", "Zen 4"),
            ("Crestmont of servers, core bound", "Crestmont (Sierra Forest, Grand Ridge)"),
            ("Skylake or Cascade Lake", "Skylake or Cascade Lake"),
            ("no such core", "no such core"),
        ] {
            assert_eq!(model::core_of_subtree(part), core);
        }
        assert_eq!(model::groups_of_level(2, "Zen 4").len(), 4);
        assert_eq!(model::groups_of_level(2, "Skylake or Cascade Lake").len(), 2);
        assert_eq!(model::groups_of_level(3, "Crestmont (Sierra Forest, Grand Ridge)")[0], TD_NODE_NONE);
        assert!(
            model::groups_of_level(1, "Zen 4").is_empty()
                && model::groups_of_level(2, "no such core").is_empty()
        );
    }
}
