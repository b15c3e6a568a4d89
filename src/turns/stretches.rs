//! How slots divide that were counted in stretches, each of which shows a part of the tree of metrics (docs/error-bound-sums.md, Turns).
#![forbid(unsafe_code)]

use crate::model::metrics::{TD_NODE_NONE, TD_UNIT_CLOCKS, TD_UNIT_OPERATIONS, TD_UNIT_SLOTS};
use crate::sum::{FEWEST_TURNS, TurnTally, tallied_by};
use crate::tree::Node;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// So long are the stretches that tell how fast the threads run.
const LEAST_PACED: Duration = Duration::from_millis(20 * FEWEST_TURNS);

fn far(node: &Node) -> f64 {
    (node.value - node.low).max(node.high - node.value)
}

/// Of so many slots: these, or of a node that is a share of cycles or operations as many of those.
fn whole_of(tally: &TurnTally, node: &Node, slots: u64) -> u64 {
    if node.unit == TD_UNIT_SLOTS { slots } else { (tally.whole / tally.slots * slots as f64) as u64 }
}

/// Of all stretches since the first: how long they were, and the most slots per nanosecond that one of them had.
#[derive(Clone, Copy, Debug, Default)]
struct StretchPace {
    ns: u64,
    most_slots_per_ns: f64,
}

/// A node, as it was seen first.
#[derive(Clone, Copy, Debug)]
struct TalliedNode {
    node: Node,
    /// The node of whose slots its part is told (`tallied_by`): the nearest one above it that the group measured, or retiring.
    above: u32,
    tally: TurnTally,
}

/// A node that a turn tells, and the root above it (of a root: itself).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldNode {
    /// Its number.
    pub id: u32,
    /// That of the root.
    pub root: u32,
    /// It is an estimate, which may be more than its root.
    pub is_estimated: bool,
}

/// A node, and the turns that tell it.
#[derive(Clone, Debug)]
struct ToldBy {
    node: ToldNode,
    turns: Vec<usize>,
}

impl ToldBy {
    /// Of what each turn tells; by their ids.
    fn all(told: &[Vec<ToldNode>]) -> Vec<ToldBy> {
        let mut all: BTreeMap<u32, ToldBy> = BTreeMap::new();
        for (turn, node) in
            told.iter().enumerate().flat_map(|(turn, nodes)| nodes.iter().map(move |node| (turn, node)))
        {
            all.entry(node.id).or_insert_with(|| ToldBy { node: *node, turns: Vec::new() }).turns.push(turn);
        }
        all.into_values().collect()
    }

    /// How likely one of the turns was.
    fn chance(&self, odds: &[f64]) -> f64 {
        self.turns.iter().map(|turn| odds[*turn]).sum()
    }
}

/// Stretches in which no turn could come that tells a node: any part of them may be the node's.
#[derive(Clone, Copy, Debug, Default)]
struct UnseenStretches {
    count: u64,
    slots: f64,
    /// The slots of the root above the node.
    of_root: f64,
}

/// Stretches that are over.
#[derive(Clone, Debug, Default)]
pub struct Stretches {
    count: u64,
    /// Those of each of the groups that take turns.
    of_turn: Vec<u64>,
    /// Slots in all of them.
    pub slots: u64,
    /// For how long groups were enabled, on all threads or CPUs together, in nanoseconds.
    pub enabled_ns: u64,
    /// For how long they counted.
    pub running_ns: u64,
    /// Between two of them, while the threads ran.
    pub gap_ns: u64,
    pace: StretchPace,
    /// Nodes, parents before children; each as it was seen first.
    nodes: Vec<TalliedNode>,
    /// What turns tell, if some are likelier than others; else empty. By the node's id.
    told: Rc<Vec<ToldBy>>,
    /// By the node's id.
    unseen: BTreeMap<u32, UnseenStretches>,
}

impl Stretches {
    /// Of so many groups, each of which is as likely as the others at any time; none yet.
    pub fn of_turns(turns: usize) -> Stretches {
        Stretches { of_turn: vec![0; turns], ..Stretches::default() }
    }

    /// Of groups that tell these nodes, some of which may be likelier than others.
    pub fn of_odds(told: Vec<Vec<ToldNode>>) -> Stretches {
        Stretches { told: Rc::new(ToldBy::all(&told)), ..Stretches::of_turns(told.len()) }
    }

    /// Whether some turns were likelier than others.
    pub fn is_drilled(&self) -> bool {
        !self.told.is_empty()
    }

    /// Whether the node counts slots of its root, and has no more than that.
    fn is_within_root(&self, node: &Node) -> bool {
        node.unit == TD_UNIT_SLOTS && !self.told_by(node.id).is_some_and(|told| told.node.is_estimated)
    }

    /// How likely a turn was that tells the node, of turns that were so likely.
    fn chance(&self, id: u32, odds: &[f64]) -> f64 {
        self.told_by(id).map_or(0.0, |told| told.chance(odds))
    }

    fn told_by(&self, id: u32) -> Option<&ToldBy> {
        let place = self.told.binary_search_by_key(&id, |told| told.node.id).ok()?;
        Some(&self.told[place])
    }

    /// What of a stretch is unknown as no turn could come that tells it.
    fn miss(&mut self, slots: f64, value: &impl Fn(u32) -> Option<f64>, odds: &[f64]) {
        for told in self.told.iter().filter(|told| told.chance(odds) == 0.0) {
            let unseen = self.unseen.entry(told.node.id).or_default();
            unseen.count += 1;
            unseen.slots += slots;
            unseen.of_root += value(told.node.root).unwrap_or(1.0) * slots;
        }
    }

    /// Adds one of a turn; `odds`: how likely each turn was, empty where each is as likely as the others at any time. Of one without a slot
    /// nothing is known.
    pub fn add(
        &mut self,
        turn: usize,
        nodes: &[Node],
        slots: u64,
        (enabled_ns, running_ns): (u64, u64),
        odds: &[f64],
    ) {
        self.enabled_ns += enabled_ns;
        self.running_ns += running_ns;
        if slots == 0 || nodes.is_empty() {
            return;
        }
        self.count += 1;
        self.pace.ns += running_ns;
        self.pace.most_slots_per_ns =
            self.pace.most_slots_per_ns.max(slots as f64 / running_ns.max(1) as f64);
        self.of_turn[turn] += 1;
        self.slots += slots;
        let of = |id: u32| nodes.iter().find(|node| node.id == id);
        let value = |id: u32| match id {
            TD_NODE_NONE => Some(1.0),
            _ => of(id).filter(|node| node.measured != 0).map(|node| node.value),
        };
        if !odds.is_empty() {
            self.miss(slots as f64, &value, odds);
        }
        for node in nodes.iter().filter(|node| node.measured != 0) {
            // (what was unlikely stands for all the more that was not seen)
            let weight = if odds.is_empty() { 1.0 } else { 1.0 / self.chance(node.id, odds) };
            let place = self.nodes.iter().position(|known| known.node.id == node.id).unwrap_or_else(|| {
                let mut above = node.parent;
                // (where some are likelier the root, as each turn tells it)
                let is_passed =
                    |node: &&Node| node.measured == 0 || !odds.is_empty() && node.parent != TD_NODE_NONE;
                while let Some(passed) = of(above).filter(is_passed) {
                    above = passed.parent;
                }
                let above = tallied_by(node, above);
                let order = |node: &Node| (node.level, node.parent, node.id);
                let place = self.nodes.partition_point(|known| order(&known.node) < order(node));
                self.nodes.insert(place, TalliedNode { node: *node, above, tally: TurnTally::default() });
                place
            });
            let known = &mut self.nodes[place];
            known.node.flags |= node.flags;
            if let Some(above) = value(known.above) {
                known.tally.add_weighted(node, above * slots as f64, slots as f64, weight);
            }
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those since then.
    pub fn since(&self, then: &Stretches) -> Stretches {
        let before = |id: u32| then.nodes.iter().find(|known| known.node.id == id).map(|known| known.tally);
        let nodes = self.nodes.iter().map(|known| {
            let before = before(known.node.id).unwrap_or_default();
            TalliedNode { tally: known.tally.since(&before), ..*known }
        });
        let nodes = nodes.collect();
        let of_turn = self.of_turn.iter().enumerate();
        Stretches {
            count: self.count - then.count,
            of_turn: of_turn.map(|(k, n)| n - then.of_turn.get(k).unwrap_or(&0)).collect(),
            slots: self.slots - then.slots,
            enabled_ns: self.enabled_ns - then.enabled_ns,
            running_ns: self.running_ns - then.running_ns,
            gap_ns: self.gap_ns.saturating_sub(then.gap_ns),
            pace: self.pace,
            nodes,
            told: Rc::clone(&self.told),
            unseen: self.unseen.iter().map(|(id, all)| (*id, all.since(then.unseen.get(id)))).collect(),
        }
    }

    /// What part of the slots of the root above a node its turns stand for, of those in which one could come; 0: it has had none.
    pub fn coverage(&self, told: &ToldNode) -> f64 {
        let tally = |id: u32| self.nodes.iter().find(|known| known.node.id == id).map(|known| known.tally);
        let (Some(own), Some(root)) = (tally(told.id), tally(told.root)) else { return 0.0 };
        let seen = root.own - self.unseen.get(&told.id).map_or(0.0, |unseen| unseen.of_root);
        if seen > 0.0 { own.parent / seen } else { 1.0 }
    }

    /// How many turns each group has had.
    #[must_use]
    pub fn turns(&self) -> &[u64] {
        &self.of_turn
    }

    /// Whether a group that has come had too few turns for its nodes to be measured.
    pub fn is_short(&self) -> bool {
        self.of_turn.iter().any(|turns| (1..FEWEST_TURNS).contains(turns))
    }

    /// The most that one of them had.
    pub fn most_slots_per_ns(&self) -> f64 {
        self.pace.most_slots_per_ns
    }

    /// The same, where it bounds what passed between two of them: as their ends are random, that is taken to have no more slots in a nanosecond
    /// than the fastest stretch, once they are long enough together; infinitely many: nothing is known.
    pub fn most_slots_per_ns_between(&self) -> f64 {
        let is_known = self.pace.ns >= LEAST_PACED.as_nanos() as u64;
        if is_known { self.pace.most_slots_per_ns } else { f64::INFINITY }
    }

    /// The nodes that were measured, with their shares, if such a part of the slots was not counted.
    pub fn nodes(&self, uncounted: f64) -> Vec<Node> {
        self.shares(uncounted, Some(&self.unseen))
    }

    /// The same as if what was not seen of a node were as the rest, and with no bound where too few turns were of it: it says where to look,
    /// not what is true.
    pub fn as_seen(&self) -> Vec<Node> {
        self.shares(0.0, None)
    }

    /// Whether enough turns were of the node.
    pub fn is_measured(&self, id: u32) -> bool {
        self.nodes.iter().any(|known| known.node.id == id && known.tally.is_enough())
    }

    /// The node's part of its parent, and its bound; none, if too few turns were of it.
    fn part(
        &self,
        tally: &TurnTally,
        (count, slots, seen): (u64, f64, f64),
        as_seen: bool,
    ) -> Option<(f64, f64)> {
        let told = tally.part_of_parent((!self.is_drilled()).then_some(count), slots, seen);
        told.or_else(|| (as_seen && tally.parent > 0.0).then(|| (tally.own / tally.parent, 0.0)))
    }

    /// `unseen`: what was not seen of each node; none: it is as the rest.
    fn shares(&self, uncounted: f64, unseen: Option<&BTreeMap<u32, UnseenStretches>>) -> Vec<Node> {
        let mut shares: Vec<(Node, f64, f64)> = Vec::new();
        for TalliedNode { node, above, tally } in &self.nodes {
            let of_parent = match *above {
                TD_NODE_NONE => Some((1.0, 0.0)),
                id => shares.iter().find(|(node, ..)| node.id == id).map(|(_, value, far)| (*value, *far)),
            };
            let slots = self.slots as f64;
            let as_seen = unseen.is_none();
            let unseen = unseen.and_then(|all| all.get(&node.id)).copied().unwrap_or_default();
            let share = of_parent.and_then(|(parent, parent_far)| {
                let seen = (parent * slots - unseen.of_root).max(0.0);
                let all = (self.count - unseen.count, slots - unseen.slots, seen);
                let (ratio, far) = self.part(tally, all, as_seen)?;
                let is_sample = self.is_drilled() && !as_seen && *above != TD_NODE_NONE;
                let missed = if is_sample { tally.missed() } else { 0.0 };
                if node.unit == TD_UNIT_OPERATIONS {
                    let part = if parent > 0.0 { seen / (parent * slots) } else { 1.0 };
                    let (low, high) = (far + missed * ratio, far + missed * (1.0 - ratio).max(0.0));
                    return Some((ratio, (ratio - low) * part, (ratio + high) * part + 1.0 - part));
                }
                let bound = seen / slots * far + ratio * parent_far;
                let most = if self.is_within_root(node) { unseen.of_root } else { unseen.slots } / slots;
                let (seen, value) = (ratio * seen / slots, ratio * parent);
                let room = if self.is_within_root(node) { parent } else { 1.0 };
                let (low, high) = (missed * value, missed * (room - value).max(0.0));
                Some((value, seen - bound - low, seen + bound + most + high))
            });
            shares.extend(share.map(|(value, low, high)| {
                let (low, high) = (low.max(0.0), high.min(1.0));
                let value = value.clamp(low.min(1.0), high.max(low.min(1.0)));
                let node = Node { value, low, high, whole: whole_of(tally, node, self.slots), ..*node };
                (node, value, far(&node))
            }));
        }
        let widened = |(node, ..): (Node, f64, f64)| {
            // (no cycle has less than half of the slots of another, as where a core's two threads share them)
            let of_cycles = node.unit == TD_UNIT_CLOCKS;
            let uncounted = if of_cycles { 2.0 * uncounted / (1.0 + uncounted) } else { uncounted };
            let counted = 1.0 - uncounted;
            Node { low: node.low * counted, high: (node.high * counted + uncounted).min(1.0), ..node }
        };
        shares.into_iter().map(widened).collect()
    }
}

impl UnseenStretches {
    fn since(&self, then: Option<&UnseenStretches>) -> UnseenStretches {
        let then = then.copied().unwrap_or_default();
        UnseenStretches {
            count: self.count - then.count,
            slots: self.slots - then.slots,
            of_root: self.of_root - then.of_root,
        }
    }
}

#[cfg(test)]
mod tests;
