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
mod tests {
    use super::super::lengths::{FIRST_STRETCH, TurnLengths};
    use super::*;
    use crate::sys::random::Random;

    fn node(id: u32, parent: u32, level: u32, value: f64) -> Node {
        Node {
            id,
            parent,
            level,
            unit: TD_UNIT_SLOTS,
            measured: 1,
            value,
            low: value - 0.001,
            high: value + 0.001,
            ..Node::default()
        }
    }

    /// Stretches of a program that starves in one half of the time, and of that by latency in every second part.
    fn starving(stretches: u32) -> Stretches {
        let mut over = Stretches::of_turns(2);
        for k in 0..stretches {
            let starved = f64::from(k / 2 % 2) * 0.8;
            let of_part = node(2, 1, 2, starved * 0.25);
            let nodes = [node(1, TD_NODE_NONE, 1, starved), of_part];
            let turn = k as usize % 2;
            over.add(turn, &nodes[..1 + turn], 1000, (1, 1), &[]);
        }
        over
    }

    fn told_of(id: u32) -> ToldNode {
        ToldNode { id, root: 1, is_estimated: false }
    }

    /// Programs whose node is there in a phase of its own, which few turns or none have seen where they are unlikely.
    #[test]
    fn a_phase_that_few_turns_saw_is_in_the_interval_as_often_as_promised() {
        let mut random = Random::new(23);
        let (mut told, mut outside) = (0, 0);
        for _ in 0..2000 {
            let mut part = || random.below(1 << 20) as f64 / f64::from(1 << 20);
            let chance = 0.05 + 0.15 * part();
            let (begins, lasts, ratios) = (200.0 * part(), 5.0 + 60.0 * part(), [0.05 * part(), part()]);
            let mut over = Stretches::of_odds(vec![vec![told_of(1)], vec![told_of(1), told_of(2)]]);
            let mut truth = 0.0;
            for k in 0..200 {
                let is_phase = (begins..begins + lasts).contains(&f64::from(k));
                let share = 0.6 * ratios[usize::from(is_phase)];
                truth += share / 200.0;
                let turn = usize::from(part() < chance);
                let nodes = [node(1, TD_NODE_NONE, 1, 0.6), node(2, 1, 2, share)];
                over.add(turn, &nodes[..=turn], 1000, (1, 1), &[1.0 - chance, chance]);
            }
            let Some(second) = over.nodes(0.0).into_iter().find(|node| node.id == 2) else { continue };
            told += 1;
            outside += u32::from(truth < second.low || second.high < truth);
        }
        assert!(told > 1500 && outside * 20 <= told, "{outside} of {told}");
    }

    /// What was not seen of it is no less than the rest.
    #[test]
    fn an_estimate_may_be_more_than_its_root_where_it_was_not_seen() {
        let high = |is_estimated| {
            let second = ToldNode { is_estimated, ..told_of(2) };
            let mut over = Stretches::of_odds(vec![vec![told_of(1)], vec![told_of(1), second]]);
            for k in 0..200 {
                let (turn, odds) = if k < 20 { (0, [1.0, 0.0]) } else { (k % 2, [0.5, 0.5]) };
                let nodes = [node(1, TD_NODE_NONE, 1, 0.4), node(2, 1, 2, 0.9)];
                over.add(turn, &nodes[..=turn], 1000, (1, 1), &odds);
            }
            over.nodes(0.0)[1].high
        };
        assert!(high(true) >= 0.9 && high(false) < 0.86, "{} {}", high(true), high(false));
    }

    #[test]
    fn a_node_that_was_counted_in_turns_has_the_share_of_its_parent_and_a_wider_bound() {
        let shares = starving(64).nodes(0.0);
        let [all, part] = &shares[..] else { panic!("{}", shares.len()) };
        assert_eq!((all.id, part.id, part.parent, part.level, part.whole), (1, 2, 1, 2, 64_000));
        assert!((all.value - 0.4).abs() < 1e-9 && (far(all) - 0.001).abs() < 1e-9, "{all:?}");
        assert!((part.value - 0.1).abs() < 1e-9 && far(part) > 0.001 && far(part) < 0.01, "{part:?}");
        assert!(part.low >= 0.0 && part.high <= 1.0);
    }

    #[test]
    fn what_varies_has_a_wider_bound_and_of_a_few_stretches_nothing_is_told() {
        let mut over = Stretches::of_turns(2);
        for k in 0..64_i32 {
            let root = node(1, TD_NODE_NONE, 1, 0.4);
            let part = node(2, 1, 2, f64::from(k / 2 % 2) * 0.4);
            over.add(k as usize % 2, &[root, part][..1 + k as usize % 2], 1000, (1, 1), &[]);
        }
        let varying = over.nodes(0.0)[1];
        let bound = far(&varying);
        assert!((varying.value - 0.2).abs() < 0.01 && bound > 0.08 && bound < 0.16, "{varying:?}");
        assert_eq!(starving(16).turns(), [8, 8]);
        assert_eq!(starving(14).nodes(0.0).len(), 1);
        assert_eq!(Stretches::default().nodes(0.0).len(), 0);
    }

    #[test]
    fn a_node_in_cycles_stays_one_and_has_as_many_as_the_slots_have() {
        let mut over = Stretches::of_turns(2);
        for k in 0..64 {
            // backend bound of half the slots; of the cycles, four slots each, three in ten wait for memory
            let root = Node { whole: 1000, ..node(1, TD_NODE_NONE, 1, 0.5) };
            let waits = Node { unit: TD_UNIT_CLOCKS, whole: 250, ..node(2, 1, 2, 0.3) };
            over.add(k as usize % 2, &[root, waits][..1 + k as usize % 2], 1000, (1, 1), &[]);
        }
        let waits = over.nodes(0.0)[1];
        assert_eq!((waits.unit, waits.whole), (TD_UNIT_CLOCKS, 16_000));
        assert!((waits.value - 0.3).abs() < 1e-9 && far(&waits) < 0.003, "{waits:?}");
    }

    #[test]
    fn what_is_below_a_node_that_its_group_does_not_measure_is_a_part_of_the_nearest_that_it_does() {
        let mut over = Stretches::of_turns(2);
        for k in 0..64 {
            let starved = f64::from(k / 2 % 2) * 0.8;
            let root = node(1, TD_NODE_NONE, 1, starved);
            // the second group has the grandchild alone, a quarter of the root
            let unmeasured = Node { measured: 0, value: f64::NAN, ..node(2, 1, 2, 0.0) };
            let nodes = [root, if k % 2 == 0 { node(2, 1, 2, starved / 2.0) } else { unmeasured }];
            let grandchild = node(3, 2, 3, starved / 4.0);
            let all = [&nodes[..], &[grandchild][..k as usize % 2]].concat();
            over.add(k as usize % 2, &all, 1000, (1, 1), &[]);
        }
        let shares = over.nodes(0.0);
        assert_eq!(shares.iter().map(|node| node.id).collect::<Vec<_>>(), [1, 2, 3]);
        assert!((shares[1].value - 0.2).abs() < 1e-9 && (shares[2].value - 0.1).abs() < 1e-9, "{shares:?}");
        assert!(shares.iter().all(|node| node.low <= node.value && node.value <= node.high));
    }

    /// Programs of phases, whose second node is looked at while the first is large, by turns that are likelier at some times: the truth is in
    /// the interval, whatever was not seen.
    #[test]
    fn the_truth_is_in_the_interval_however_unevenly_turns_come() {
        let (mut random, mut told, mut wide) = (Random::new(5), 0, 0.0);
        let mut part = || random.below(1000) as f64 / 1000.0;
        for program in 0..400 {
            let phases: Vec<(f64, f64)> = (0..3).map(|_| (part() * 0.8, part())).collect();
            let root = told_of(1);
            let mut over = Stretches::of_odds(vec![vec![root], vec![root, told_of(2)], vec![root]]);
            let (mut truth, mut all) = (0.0, 0.0);
            for k in 0..300 {
                let (share, ratio) = phases[k / 100];
                let (share, ratio) = (share + 0.2 * part(), (ratio * (0.8 + 0.4 * part())).min(1.0));
                let slots = 500 + (1000.0 * part()) as u64;
                (truth, all) = (truth + share * ratio * slots as f64, all + slots as f64);
                // what is above its threshold by now may come, the more while it is unknown
                let open = over.nodes(0.0).first().is_some_and(|node| node.value > 0.3);
                let second = if !open {
                    0.0
                } else if over.of_turn[1] < 20 {
                    0.7
                } else {
                    0.2
                };
                let odds = [0.25 * (1.0 - second), second, 0.75 * (1.0 - second)];
                let draw = part();
                let turn = if draw < odds[0] {
                    0
                } else if draw < odds[0] + odds[1] {
                    1
                } else {
                    2
                };
                let nodes = [node(1, TD_NODE_NONE, 1, share), node(2, 1, 2, share * ratio)];
                over.add(turn, &nodes[..1 + usize::from(turn == 1)], slots, (1, 1), &odds);
            }
            let shares = over.nodes(0.0);
            let Some(second) = shares.iter().find(|node| node.id == 2) else { continue };
            let truth = truth / all;
            assert!(second.low <= truth && truth <= second.high, "{program}: {second:?} {truth} {phases:?}");
            assert!(second.low <= second.value && second.value <= second.high, "{second:?}");
            (told, wide) = (told + 1, wide + second.high - second.low);
        }
        // (and it is not everything)
        assert!(told > 250 && wide / f64::from(told) < 0.35, "{told} {wide}");
    }

    /// Programs whose node is a part of the root that changes in time, by turns as long as they are made to be: neither the beginning, when
    /// turns are short and the node's are likely, nor the end weighs more.
    #[test]
    fn each_part_of_the_time_weighs_as_much_however_long_turns_are_and_however_likely() {
        const WHOLE: u64 = 6_000_000_000;
        let mut random = Random::new(11);
        let (mut sum, mut squares, mut outside, programs) = (0.0, 0.0, 0, 400);
        for _ in 0..programs {
            let mut part = || random.below(1 << 20) as f64 / f64::from(1 << 20);
            let (at_first, at_last) = (part(), part());
            let root = told_of(1);
            let mut over = Stretches::of_odds(vec![vec![root], vec![root, told_of(2)]]);
            let (mut lengths, mut now) = (TurnLengths::new(2, FIRST_STRETCH), 0);
            while now < WHOLE {
                let second = if over.turns()[1] < 2 * FEWEST_TURNS { 0.6 } else { 0.05 };
                let odds = [1.0 - second, second];
                let turn = usize::from(part() < second);
                let ns = (lengths.next(&odds).as_nanos() as f64 * (0.5 + part())) as u64;
                let ratio = if now < WHOLE / 2 { at_first } else { at_last };
                let nodes = [node(1, TD_NODE_NONE, 1, 0.5), node(2, 1, 2, 0.5 * ratio)];
                over.add(turn, &nodes[..1 + turn], ns, (ns, ns), &odds);
                lengths.add(turn, ns, &odds);
                now += ns;
            }
            let truth = 0.25 * (at_first + at_last);
            let second = over.nodes(0.0)[1];
            outside += u32::from(!(second.low <= truth && truth <= second.high));
            // (what is too much of the beginning)
            let bias = (second.value - truth) * (at_first - at_last).signum();
            (sum, squares) = (sum + bias, squares + bias * bias);
        }
        let n = f64::from(programs);
        let error = ((squares - sum * sum / n) / (n - 1.0) / n).sqrt();
        assert_eq!(outside, 0);
        assert!((sum / n).abs() < 4.0 * error, "{} ± {error}", sum / n);
    }

    #[test]
    fn between_stretches_no_more_slots_pass_than_in_the_fastest() {
        let mut over = Stretches::of_turns(1);
        let mut stretch = |gap_ns, slots| {
            over.add(0, &[node(1, TD_NODE_NONE, 1, 0.4)], slots, (25_000_000, 20_000_000), &[]);
            over.gap_ns += gap_ns;
            over.clone()
        };
        let too_short = (0..7).map(|_| stretch(10, 40_000_000)).last().unwrap();
        let gaps = |over: &Stretches| (over.gap_ns, over.most_slots_per_ns_between());
        assert_eq!(gaps(&too_short), (70, f64::INFINITY));
        let then = stretch(30, 60_000_000);
        assert_eq!(gaps(&then), (100, 3.0));
        // Those of an interval are bounded by all.
        assert_eq!(gaps(&stretch(5, 20_000_000).since(&then)), (5, 3.0));
    }

    #[test]
    fn time_that_was_not_counted_is_in_every_bound() {
        let share = starving(64).nodes(0.1)[0];
        assert!((share.low - 0.9 * 0.399).abs() < 1e-9 && (share.high - (0.9 * 0.401 + 0.1)).abs() < 1e-9);
    }

    #[test]
    fn what_came_since_has_its_own_shares_and_bounds() {
        let then = starving(64);
        let mut now = then.clone();
        for k in 0..32 {
            let varying = f64::from(k / 2 % 2) * 0.4;
            let nodes =
                [node(1, TD_NODE_NONE, 1, 0.6), node(2, 1, 2, varying), node(3, TD_NODE_NONE, 1, 0.4)];
            now.add(k as usize % 2, &[nodes[0], nodes[2], nodes[1]][..2 + k as usize % 2], 500, (2, 2), &[]);
        }
        let since = now.since(&then);
        assert_eq!((since.slots, since.running_ns, since.count), (16_000, 64, 32));
        let nodes = since.nodes(0.0);
        assert_eq!(nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [1, 3, 2]);
        let is = |node: &Node, value: f64| (node.value - value).abs() < 1e-9;
        assert!(is(&nodes[0], 0.6) && is(&nodes[1], 0.4) && is(&nodes[2], 0.2), "{nodes:?}");
        // as if there had been nothing before
        let mut alone = Stretches::of_turns(2);
        for k in 0..32 {
            let varying = f64::from(k / 2 % 2) * 0.4;
            let nodes =
                [node(1, TD_NODE_NONE, 1, 0.6), node(3, TD_NODE_NONE, 1, 0.4), node(2, 1, 2, varying)];
            alone.add(k as usize % 2, &nodes[..2 + k as usize % 2], 500, (2, 2), &[]);
        }
        assert!((far(&alone.nodes(0.0)[2]) - far(&nodes[2])).abs() < 1e-9);
        assert!(now.since(&now).nodes(0.0).is_empty());
    }
}
