//! Nodes of the tree of metrics of many sums, added and subtracted. Each is a number of slots (or cycles) with the two ends between
//! which the truth lies.
#![forbid(unsafe_code)]

use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt::{self, Display, Formatter};
use topdown::{
    FEWEST_TURNS, Metric, Node, TD_NODE_NONE, TD_UNIT_CLOCKS, TD_UNIT_OPERATIONS, TD_UNIT_SLOTS, TurnTally,
    is_in_turns,
};

/// Which node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeKind {
    /// What it is.
    pub metric: &'static Metric,
    /// The parent's id; TD_NODE_NONE for roots.
    pub parent: u32,
    /// 1 for roots.
    pub level: u32,
    /// TD_UNIT_*.
    pub unit: u32,
}

impl NodeKind {
    /// Of a node; None: it has no name.
    #[must_use]
    pub fn of(node: &Node) -> Option<NodeKind> {
        Some(NodeKind { metric: node.metric()?, parent: node.parent, level: node.level, unit: node.unit })
    }

    /// perf's name.
    pub fn name(&self) -> &'static str {
        self.metric.name.to_str().unwrap_or_default()
    }

    /// What its value is a share of.
    pub fn unit_name(&self) -> &'static str {
        match self.unit {
            TD_UNIT_SLOTS => "slots",
            TD_UNIT_CLOCKS => "clocks",
            TD_UNIT_OPERATIONS => "operations",
            _ => "",
        }
    }
}

impl Serialize for NodeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parent = (self.parent != TD_NODE_NONE).then_some(self.parent);
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", self.name())?;
        map.serialize_entry(
            "parent",
            &parent.and_then(topdown::metric).map(|metric| metric.name.to_str().ok()),
        )?;
        map.serialize_entry("level", &self.level)?;
        map.serialize_entry("unit", self.unit_name())?;
        map.end()
    }
}

/// A share, and the ends between which the truth lies: of what was counted for certain, of samples with a probability of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ShareInterval {
    /// 0 to 1.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl ShareInterval {
    /// As far to either side, from 0 to 1.
    #[must_use]
    pub fn around(value: f64, half: f64) -> ShareInterval {
        ShareInterval { value, low: (value - half).max(0.0), high: (value + half).min(1.0) }
    }

    /// The distance to the farther end.
    #[must_use]
    pub fn error(&self) -> f64 {
        (self.high - self.value).max(self.value - self.low)
    }
}

/// "25.1 ± 4.6 %".
impl Display for ShareInterval {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ± {:.1} %", 100.0 * self.value, 100.0 * self.error())
    }
}

/// A node's share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeInterval {
    /// Which node.
    pub kind: NodeKind,
    /// How much of its whole the node is.
    pub share: ShareInterval,
    /// The whole: slots, cycles or operations.
    pub whole: f64,
}

impl NodeInterval {
    /// "20.0 % of cycles, between 19.9 and 20.1".
    pub fn text(&self) -> String {
        let of = match self.kind.unit {
            TD_UNIT_CLOCKS => "cycles",
            TD_UNIT_OPERATIONS => "operations",
            _ => "slots",
        };
        let ShareInterval { value, low, high } = self.share;
        format!("{:.1} % of {of}, between {:.1} and {:.1}", 100.0 * value, 100.0 * low, 100.0 * high)
    }
}

/// The nodes of figures: in JSON an object of `value`, `low` and `high` for each name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeTree(pub Vec<NodeInterval>);

impl NodeTree {
    /// The node with this id.
    pub fn find(&self, id: u32) -> Option<&NodeInterval> {
        self.0.iter().find(|node| node.kind.metric.id == id)
    }
}

impl Serialize for NodeTree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|node| (node.kind.name(), node.share)))
    }
}

/// A node's slots or cycles, of those of which something is known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Amount {
    kind: NodeKind,
    value: f64,
    low: f64,
    high: f64,
    /// Those of which something is known: in all, of which the value is a part.
    known: f64,
    /// Those of which nothing is known; of cycles, as many as the slots that there were.
    unknown: f64,
}

impl Amount {
    /// What is not known taken to be as the rest: then it may be all of this node, or nothing of it.
    fn filled(&self) -> Amount {
        let scale = if self.known > 0.0 { 1.0 + self.unknown / self.known } else { 1.0 };
        Amount {
            value: self.value * scale,
            high: self.high + self.unknown,
            known: self.known + self.unknown,
            unknown: 0.0,
            ..*self
        }
    }
}

/// What turns told of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TalliedNode {
    /// TD_NODE_*.
    pub id: u32,
    /// The node of whose slots it had a part (`tallied_by`): the nearest one above it that was measured beside it, or retiring; TD_NODE_NONE: of all.
    pub above: u32,
    /// The turns.
    pub tally: TurnTally,
}

/// Nodes of regions that groups of counters have counted in turns: each group level 1, and the nodes of a part below it.
#[derive(Clone, Debug, PartialEq)]
pub struct InTurns {
    /// What every group counts: level 1.
    level_1: NodeSums,
    /// What the turns tell of all else.
    tallies: Vec<(NodeKind, TalliedNode)>,
    /// How many turns each group had here, by its name.
    groups: Vec<(String, u64)>,
}

impl InTurns {
    /// None.
    pub const NONE: InTurns = InTurns { level_1: NodeSums::NONE, tallies: Vec::new(), groups: Vec::new() };

    /// What a group has counted in its turns: so many slots, which divide so.
    pub fn new(
        slots: f64,
        nodes: &[Node],
        (group, turns): (&str, u64),
        tallies: Vec<TalliedNode>,
    ) -> InTurns {
        let level_1: Vec<Node> =
            nodes.iter().filter(|node| !is_in_turns(node.level, node.id)).copied().collect();
        let find = |id: u32| NodeKind::of(nodes.iter().find(|node| node.id == id)?);
        InTurns {
            level_1: NodeSums::new(slots, &level_1),
            tallies: tallies.into_iter().filter_map(|one| Some((find(one.id)?, one))).collect(),
            groups: vec![(group.into(), turns)],
        }
    }

    /// Whether nothing was counted so.
    pub fn is_none(&self) -> bool {
        self.groups.is_empty()
    }

    /// Adds others.
    pub fn add(&mut self, other: &InTurns) {
        self.level_1.add(&other.level_1);
        for (kind, more) in &other.tallies {
            let is_same =
                |(mine, one): &&mut (NodeKind, TalliedNode)| mine == kind && one.above == more.above;
            match self.tallies.iter_mut().find(is_same) {
                Some((_, one)) => one.tally.merge(&more.tally),
                None => self.tallies.push((*kind, *more)),
            }
        }
        for (group, turns) in &other.groups {
            match self.groups.iter_mut().find(|(mine, _)| mine == group) {
                Some((_, all)) => *all = all.saturating_add(*turns),
                None => self.groups.push((group.clone(), *turns)),
            }
        }
    }

    /// There were so many slots more, of which nothing is known.
    pub fn more_slots(&mut self, more: f64) {
        self.level_1.more_slots(more);
    }

    /// Whether a group had so few turns, or a few that were most of them, that nodes which it counts are not measured.
    pub fn are_few(&self) -> bool {
        let few = || self.groups.iter().any(|(_, turns)| *turns < FEWEST_TURNS);
        let nodes = self.nodes();
        let lacks = || {
            let counted = self.tallies.iter().filter(|(_, one)| one.tally.parent > 0.0);
            counted.into_iter().any(|(kind, _)| nodes.find(kind.metric.id).is_none())
        };
        self.level_1.slots > 0.0 && (few() || lacks())
    }

    /// All nodes that were measured: below level 1 each has the part that it had in its turns, which are a random sample of all, of the node
    /// above it (docs/error-bound-sums.md, Turns).
    pub fn nodes(&self) -> NodeSums {
        let mut all = self.level_1.clone();
        let turns = self.groups.iter().map(|(_, turns)| *turns).fold(0, u64::saturating_add);
        let mut tallies: Vec<_> = self.tallies.iter().collect();
        tallies.sort_by_key(|(kind, _)| kind.level);
        for (kind, TalliedNode { above, tally, .. }) in tallies {
            if all.find(kind.metric.id).is_some() {
                continue; // (another CPU's groups have another node above it)
            }
            let whole = Amount {
                kind: *kind,
                value: all.slots,
                low: all.slots,
                high: all.slots,
                known: all.slots,
                unknown: 0.0,
            };
            let parent = if *above == TD_NODE_NONE { Some(whole) } else { all.find(*above).copied() };
            let Some(parent) = parent else { continue };
            let Some((ratio, far)) = tally.part_of_parent(Some(turns), all.slots, parent.value) else {
                continue;
            };
            let value = ratio * parent.value;
            if kind.unit == TD_UNIT_OPERATIONS {
                let (low, high) =
                    ((ratio - far).max(0.0) * parent.value, (ratio + far).min(1.0) * parent.value);
                all.amounts.push(Amount { kind: *kind, value, low, high, known: parent.value, ..parent });
                continue;
            }
            let parent_far = (parent.value - parent.low).max(parent.high - parent.value);
            let far = parent.value * far + ratio * parent_far;
            let (low, high) = ((value - far).max(0.0), (value + far).min(parent.known));
            all.amounts.push(Amount { kind: *kind, value, low, high, ..parent });
        }
        all
    }
}

/// Nodes that add up.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSums {
    amounts: Vec<Amount>,
    /// In all, measured or not.
    slots: f64,
}

impl NodeSums {
    /// No slots.
    pub const NONE: NodeSums = NodeSums { amounts: Vec::new(), slots: 0.0 };

    /// So many slots, with these nodes.
    pub fn new(slots: f64, nodes: &[Node]) -> NodeSums {
        let amount = |node: &Node| {
            let whole = node.whole as f64;
            Some(Amount {
                kind: NodeKind::of(node)?,
                value: node.value * whole,
                low: node.low * whole,
                high: node.high * whole,
                known: whole,
                unknown: 0.0,
            })
        };
        let measured = nodes.iter().filter(|node| node.measured == 1 && node.whole > 0);
        NodeSums { amounts: measured.filter_map(amount).collect(), slots }
    }

    fn find(&self, id: u32) -> Option<&Amount> {
        self.amounts.iter().find(|amount| amount.kind.metric.id == id)
    }

    /// Adds others.
    pub fn add(&mut self, other: &NodeSums) {
        for mine in &mut self.amounts {
            match other.find(mine.kind.metric.id) {
                Some(more) => {
                    mine.value += more.value;
                    mine.low += more.low;
                    mine.high += more.high;
                    mine.known += more.known;
                    mine.unknown += more.unknown;
                }
                None => mine.unknown += other.slots,
            }
        }
        for new in &other.amounts {
            if self.find(new.kind.metric.id).is_none() {
                self.amounts.push(Amount { unknown: new.unknown + self.slots, ..*new });
            }
        }
        self.slots += other.slots;
    }

    /// Takes the nodes of level 2 that others have; how so many slots more divide they do not know.
    pub fn take_level_2(&mut self, of: &NodeSums, unseen: f64) {
        let level_2 = of.amounts.iter().filter(|amount| amount.kind.level == 2);
        let new = level_2.filter(|amount| self.find(amount.kind.metric.id).is_none());
        let new: Vec<Amount> =
            new.map(|amount| Amount { unknown: amount.unknown + unseen, ..*amount }).collect();
        self.amounts.extend(new);
    }

    /// There were so many slots more; how they divide is not known.
    pub fn more_slots(&mut self, more: f64) {
        self.slots += more;
        self.amounts.iter_mut().for_each(|amount| amount.unknown += more);
    }

    /// What is left without a part.
    pub fn minus(&self, part: &NodeSums) -> NodeSums {
        let slots = (self.slots - part.slots).max(0.0);
        let rest = |amount: &Amount| {
            let all = amount.filled();
            let nothing =
                Amount { value: 0.0, low: 0.0, high: 0.0, known: 0.0, unknown: part.slots, ..*amount };
            let mut part = *part.find(amount.kind.metric.id).unwrap_or(&nothing);
            if part.known == 0.0 {
                // as the whole
                part.value = all.value / all.known * part.unknown;
                (part.high, part.known, part.unknown) = (part.unknown, part.unknown, 0.0);
            }
            let part = part.filled();
            let known = all.known - part.known;
            (known > 0.0 && slots > 0.0).then_some(Amount {
                value: all.value - part.value,
                low: all.low - part.high,
                high: all.high - part.low,
                known,
                unknown: 0.0,
                ..*amount
            })
        };
        NodeSums { amounts: self.amounts.iter().filter_map(rest).collect(), slots }
    }

    /// Any node may be nothing, or all.
    pub fn anything(&mut self) {
        self.amounts.iter_mut().for_each(|amount| (amount.low, amount.high) = (0.0, amount.known));
    }

    /// As shares, parents before their children. `uncounted`: slots that may have passed uncounted.
    pub fn shown(&self, uncounted: f64) -> Vec<NodeInterval> {
        let of_slots = self.amounts.iter().filter(|amount| amount.kind.unit == TD_UNIT_SLOTS);
        let slots = of_slots.map(|amount| amount.known + amount.unknown).fold(0.0, f64::max);
        let share = |amount: &Amount| {
            let all = amount.known + amount.unknown;
            // (no cycle has less than half of the slots of another, as where a core's two threads share them)
            let uncounted = match amount.kind.unit {
                TD_UNIT_CLOCKS if slots > 0.0 => uncounted * (2.0 * all / slots).min(1.0),
                _ => uncounted,
            };
            let value = (amount.value / amount.known).clamp(0.0, 1.0);
            let part = uncounted / (uncounted + all);
            let low = (amount.low / all).clamp(0.0, 1.0) * (1.0 - part);
            let high = ((amount.high + amount.unknown) / all).clamp(0.0, 1.0) * (1.0 - part) + part;
            let share = ShareInterval { value, low: low.min(value), high: high.max(value) };
            NodeInterval { kind: amount.kind, share, whole: all }
        };
        let finite = |node: &NodeInterval| {
            [node.share.value, node.share.low, node.share.high].iter().all(|end| end.is_finite())
        };
        let mut shown: Vec<NodeInterval> = self.amounts.iter().map(share).filter(finite).collect();
        shown.sort_by_key(|node| node.kind.level); // (trees of several CPUs may be merged)
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown::{LEVEL_1, TD_NODE_FETCH_LATENCY};

    fn node(k: usize, whole: u64, value: f64, error: f64) -> Node {
        let id = LEVEL_1[k].id;
        let (low, high) = ((value - error).max(0.0), (value + error).min(1.0));
        Node { id, level: 1, unit: TD_UNIT_SLOTS, measured: 1, whole, value, low, high, ..Node::default() }
    }

    fn is(shown: &NodeInterval, value: f64, low: f64, high: f64) {
        let share = shown.share;
        for (found, expected) in [(share.value, value), (share.low, low), (share.high, high)] {
            assert!((found - expected).abs() < 1e-9, "{shown:?}, not {value} in {low} to {high}");
        }
    }

    #[test]
    fn sums_have_the_sums_of_the_ends_and_what_is_not_known_may_be_anything() {
        let mut all = NodeSums::new(1000.0, &[node(0, 1000, 0.5, 0.01), node(1, 1000, 0.2, 0.0)]);
        all.add(&NodeSums::new(3000.0, &[node(0, 3000, 0.1, 0.02)]));
        let shown = all.shown(0.0);
        is(&shown[0], 0.2, (490.0 + 240.0) / 4000.0, (510.0 + 360.0) / 4000.0);
        // 3000 slots of which the second node is not known
        is(&shown[1], 0.2, 200.0 / 4000.0, 3200.0 / 4000.0);
        all.more_slots(1000.0);
        is(&all.shown(0.0)[0], 0.2, 730.0 / 5000.0, 1870.0 / 5000.0);
        // as many again may have passed uncounted
        is(&all.shown(5000.0)[0], 0.2, 730.0 / 10_000.0, 6870.0 / 10_000.0);
        let unmeasured = NodeSums::new(500.0, &[]);
        assert!(unmeasured.shown(0.0).is_empty());
    }

    #[test]
    fn differences_have_the_farthest_ends() {
        let all = NodeSums::new(1000.0, &[node(0, 1000, 0.5, 0.01)]);
        let part = NodeSums::new(600.0, &[node(0, 600, 0.75, 0.02)]);
        // 500 less 450 of 400: 490 - 462 to 510 - 438
        is(&all.minus(&part).shown(0.0)[0], 0.125, 28.0 / 400.0, 72.0 / 400.0);
        // nothing is known of the part
        is(&all.minus(&NodeSums::new(250.0, &[])).shown(0.0)[0], 0.5, 240.0 / 750.0, 510.0 / 750.0);
        assert!(all.minus(&all).shown(0.0).is_empty(), "of nothing");
        let mut anything = all.minus(&part);
        anything.anything();
        is(&anything.shown(0.0)[0], 0.125, 0.0, 1.0);
    }

    fn tally(turns: u64, slots: f64, own: f64, parent: f64) -> TurnTally {
        let n = turns as f64;
        TurnTally {
            turns,
            slots,
            own,
            parent,
            own_own: own * own / n,
            own_parent: own * parent / n,
            parent_parent: parent * parent / n,
            far: 0.0,
            whole: slots,
        }
    }

    fn tallied(tally: TurnTally) -> TalliedNode {
        TalliedNode { id: TD_NODE_FETCH_LATENCY, above: LEVEL_1[2].id, tally }
    }

    #[test]
    fn a_node_that_was_counted_in_turns_has_a_part_of_what_its_parent_has_of_all() {
        let child =
            Node { id: TD_NODE_FETCH_LATENCY, parent: LEVEL_1[2].id, level: 2, ..node(2, 10_000, 0.1, 0.0) };
        let group = |name, turns, nodes: &[Node]| {
            let tallies = if nodes.len() > 2 {
                vec![tallied(tally(turns, 10_000.0, 1_000.0, 4_000.0))]
            } else {
                vec![]
            };
            InTurns::new(10_000.0, nodes, (name, turns), tallies)
        };
        let mut all = group("frontend", 16, &[node(0, 10_000, 0.6, 0.0), node(2, 10_000, 0.4, 0.0), child]);
        assert!(!all.are_few() && InTurns::NONE.is_none());
        all.add(&group("retiring", 16, &[node(0, 10_000, 0.8, 0.0), node(2, 10_000, 0.2, 0.0)]));
        let shown = all.nodes().shown(0.0);
        assert_eq!(shown.len(), 3);
        is(&shown[1], 0.3, 0.3, 0.3);
        is(&shown[2], 0.3 / 4.0, 0.3 / 4.0, 0.3 / 4.0);
        // slots of which nothing is known may be of any node
        all.more_slots(20_000.0);
        assert!(all.nodes().shown(0.0)[2].share.high > 0.5);
        let few = group("backend", 7, &[node(0, 10_000, 0.8, 0.0), node(2, 10_000, 0.2, 0.0)]);
        all.add(&few);
        assert!(all.are_few());
    }

    #[test]
    fn of_too_few_turns_a_node_is_not_shown_unless_they_are_all() {
        let child =
            Node { id: TD_NODE_FETCH_LATENCY, parent: LEVEL_1[2].id, level: 2, ..node(2, 10_000, 0.1, 0.0) };
        let tallies = vec![tallied(tally(3, 10_000.0, 1_000.0, 4_000.0))];
        let mut all = InTurns::new(10_000.0, &[node(2, 10_000, 0.4, 0.0), child], ("frontend", 3), tallies);
        assert_eq!(all.nodes().shown(0.0).len(), 2);
        all.add(&InTurns::new(10.0, &[node(2, 10, 0.4, 0.0)], ("retiring", 1), Vec::new()));
        assert_eq!(all.nodes().shown(0.0).len(), 1);
    }
}
