//! Which groups have a turn while a program is drilled down: those of the children of nodes that are flagged.
#![forbid(unsafe_code)]

use super::stretches::{Stretches, ToldNode};
use crate::model::metrics::TD_NODE_NONE;
use crate::model::{DeepGroup, DeepTree, deep_tree};
use crate::options::TurnPart;
use crate::sum::FEWEST_TURNS;
use crate::sys::random::Random;
use crate::tree::Node;
use std::collections::{BTreeMap, BTreeSet};

/// Whether the truth of a node is above its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// It is not, or nothing is known of it.
    Not,
    /// Its interval has the threshold in it, or that of a node above it has.
    MayBe,
    /// All of its interval is, and so are those above it.
    Is,
}

/// Which groups have a turn while a program is drilled down.
#[derive(Debug)]
pub struct DrillDown {
    tree: &'static DeepTree,
    /// Of each turn the nodes for which it is there: it comes where those above them are flagged. None of those that always may come.
    of_turn: Vec<Vec<u32>>,
    /// The nodes above these, each once.
    above: Vec<Vec<u32>>,
    /// What each turn measures.
    told: Vec<Vec<ToldNode>>,
    /// What there was some time ago, and the time before that.
    before: [Stretches; 2],
    /// Turns that cannot come.
    excluded: Vec<bool>,
    /// Each turn that was worth one has had enough of them.
    is_settled: bool,
    random: Random,
}

/// Of all turns those that tell levels 1 and 2 are at least such a part.
const OF_WHOLE: f64 = 0.25;
/// A turn that was not drawn for long is so many times as likely, at the most.
const MOST_WISHED: f64 = 4.0;
/// So many stretches are a phase, of which a node is looked at by itself.
const PHASE: u64 = 32;

impl DrillDown {
    /// Of these turns, which are those of these parts, and the one of whole levels; with what each measures. None: this CPU has no tree.
    #[must_use]
    pub fn new(parts: &[TurnPart], measured: Vec<Vec<Node>>, seed: u64) -> Option<DrillDown> {
        Some(DrillDown::of_tree(deep_tree()?, parts, measured, seed))
    }

    /// The same of this tree.
    fn of_tree(
        tree: &'static DeepTree,
        parts: &[TurnPart],
        measured: Vec<Vec<Node>>,
        seed: u64,
    ) -> DrillDown {
        let own = |part: &TurnPart| {
            let group = tree.groups().iter().find(|group| group.number == part.group);
            let is_always = |group: &&DeepGroup| group.nodes.iter().any(|node| tree.is_unbounded(*node));
            group.filter(|group| !is_always(group)).map_or(Vec::new(), |group| group.nodes.clone())
        };
        let told = measured.iter().map(|nodes| {
            nodes
                .iter()
                .map(|node| ToldNode {
                    id: node.id,
                    root: root_of(tree, node.id),
                    is_estimated: tree.is_estimated(node.id),
                })
                .collect()
        });
        let of_turn: Vec<Vec<u32>> = parts.iter().map(own).chain([Vec::new()]).collect();
        let above = |own: &Vec<u32>| {
            let above: BTreeSet<u32> = own.iter().map(|id| tree.parent(*id)).collect();
            above.into_iter().collect()
        };
        DrillDown {
            excluded: vec![false; told.len()],
            tree,
            above: of_turn.iter().map(above).collect(),
            of_turn,
            told: told.collect(),
            before: [Stretches::default(), Stretches::default()],
            is_settled: false,
            random: Random::new(seed),
        }
    }

    /// No stretches yet.
    #[must_use]
    pub fn none_yet(&self) -> Stretches {
        Stretches::of_odds(self.told.clone())
    }

    /// Of the first turn, which is the first.
    #[must_use]
    pub fn first_odds(&self) -> Vec<f64> {
        (0..self.of_turn.len()).map(|turn| f64::from(u8::from(turn == 0))).collect()
    }

    /// A turn cannot come: its group could not be opened.
    pub fn exclude(&mut self, turn: usize) {
        self.excluded[turn] = true;
    }

    /// The next turn after these stretches, and how likely each was to be it.
    pub fn choose(&mut self, over: &Stretches) -> (usize, Vec<f64>) {
        let flags = self.flags(over, &over.as_seen());
        let is_known =
            |turn: usize| self.excluded[turn] || self.of_turn[turn].iter().all(|id| over.is_measured(*id));
        self.is_settled = flags.iter().enumerate().all(|(turn, flag)| *flag == Flag::Not || is_known(turn));
        let told = &self.told;
        let coverage = |turn: usize| {
            let of_turn = told[turn].iter().filter(|node| node.id != node.root);
            of_turn.map(|node| over.coverage(node)).fold(1.0, f64::min)
        };
        // what is unknown is the likeliest, then what has had the fewest turns, or was not looked at for long
        let wish = |(turn, flag): (usize, &Flag)| match flag {
            Flag::Not => 0.0,
            _ if self.excluded[turn] => 0.0,
            _ if is_known(turn) => {
                let seldom = FEWEST_TURNS as f64 / over.turns()[turn].max(FEWEST_TURNS) as f64;
                seldom / coverage(turn).max(1.0 / MOST_WISHED)
            }
            _ => 1.0,
        };
        let mut odds: Vec<f64> = flags.iter().enumerate().map(wish).collect();
        let all: f64 = odds.iter().sum();
        odds.iter_mut().for_each(|odds| *odds *= (1.0 - OF_WHOLE) / all);
        // levels 1 and 2 say what is to be looked at
        odds[flags.len() - 1] += OF_WHOLE;
        (self.drawn(&odds), odds)
    }

    /// Whether each turn that was worth one has had enough of them, by the stretches of the last choice.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A turn at random, each as likely as that.
    fn drawn(&mut self, odds: &[f64]) -> usize {
        const WHOLE: u64 = 1 << 32;
        let mut rest = self.random.below(WHOLE) as f64 / WHOLE as f64;
        for (turn, odds) in odds.iter().enumerate() {
            if rest < *odds {
                return turn;
            }
            rest -= odds;
        }
        odds.len() - 1 // (by rounding)
    }

    /// Of each turn the most that is said of what is above its nodes: by all stretches, or those of the last phase.
    fn flags(&mut self, over: &Stretches, all: &[Node]) -> Vec<Flag> {
        if over.count() >= self.before[0].count() + PHASE {
            self.before.swap(0, 1);
            self.before[0] = over.clone();
        }
        let recent = over.since(&self.before[1]).as_seen();
        let mut known = BTreeMap::new();
        let mut flag_of = |id: &u32| {
            let flag = |nodes: &[Node]| flag(self.tree, *id, nodes, Flag::Not);
            *known.entry(*id).or_insert_with(|| flag(all).max(flag(&recent)))
        };
        self.above.iter().map(|above| above.iter().map(&mut flag_of).max().unwrap_or(Flag::Is)).collect()
    }
}

/// The root above a node; of a root, itself.
fn root_of(tree: &DeepTree, id: u32) -> u32 {
    match tree.parent(id) {
        TD_NODE_NONE => id,
        parent => root_of(tree, parent),
    }
}

/// Whether a node is flagged: it is above its threshold, and so are those above it, of which it is a part, unless it is flagged alone. What is
/// said of those that were not counted, but could have been, is `uncounted`.
#[must_use]
pub fn flag(tree: &DeepTree, id: u32, nodes: &[Node], uncounted: Flag) -> Flag {
    if id == TD_NODE_NONE {
        return Flag::Is;
    }
    let own = match (tree.threshold(id), nodes.iter().find(|node| node.id == id && node.measured != 0)) {
        (Some(above), Some(node)) if node.low > above => Flag::Is,
        // (of what was never seen nothing is known where its formula divides by it)
        (Some(above), Some(node)) if node.high > above && node.value > 0.0 => Flag::MayBe,
        // (what nothing here tells hides nothing below it)
        (Some(_), None) if tree.is_untold(id) => Flag::MayBe,
        (Some(_), None) if uncounted > Flag::Not => uncounted,
        (Some(_), _) => return Flag::Not,
        (None, _) => Flag::Is,
    };
    // (of what nothing tells only those above it say something)
    let is_measured = nodes.iter().any(|node| node.id == id && node.measured != 0);
    let is_alone = tree.is_alone(id) && (is_measured || !tree.is_untold(id));
    if is_alone { own } else { own.min(flag(tree, tree.parent(id), nodes, uncounted)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{deep_tree_of, metric_of_name};

    /// A program that waits for memory beyond the last cache, by the groups of Sapphire Rapids.
    #[test]
    fn turns_go_down_to_the_leaf_and_nowhere_else() {
        let tree = deep_tree_of("spr").unwrap();
        let id = |name: &str| metric_of_name(name).unwrap().id;
        let shares = [
            ("retiring", 0.2),
            ("backend_bound", 0.7),
            ("frontend_bound", 0.05),
            ("bad_speculation", 0.05),
            ("light_operations", 0.2),
            ("memory_bound", 0.65),
            ("core_bound", 0.05),
            ("l3_miss_bound", 0.6),
            ("mem_bandwidth", 0.5),
        ];
        let share =
            |of: u32| shares.iter().find(|(name, _)| id(name) == of).map_or(0.001, |(_, share)| *share);
        let told_by = |place: u8, level: u32| crate::tree::list(place, level).unwrap().collect::<Vec<Node>>();
        let groups = tree.groups_of(6, &[]);
        let whole = told_by(crate::model::of_core("Golden or Raptor Cove, by counters").unwrap(), 2);
        let mut told: Vec<Vec<Node>> =
            groups.iter().map(|group| told_by(group.place(), group.level)).chain([whole]).collect();
        for node in told.iter_mut().flatten() {
            let value = share(node.id);
            *node = Node { value, low: value - 0.001, high: value + 0.001, whole: 1000, ..*node };
        }
        let part = |group: &&DeepGroup| TurnPart { subtree: TD_NODE_NONE, group: group.number };
        let parts: Vec<TurnPart> = groups.iter().map(part).collect();
        let measured = |nodes: &Vec<Node>| nodes.iter().filter(|node| node.measured != 0).copied().collect();
        let mut drill = DrillDown::of_tree(tree, &parts, told.iter().map(measured).collect(), 3);
        let (mut over, mut turn) = (drill.none_yet(), parts.len());
        let mut odds: Vec<f64> = (0..=parts.len()).map(|one| f64::from(u8::from(one == turn))).collect();
        for _ in 0..1000 {
            over.add(turn, &told[turn], 1_000_000, (1_000_000, 1_000_000), &odds);
            (turn, odds) = drill.choose(&over);
        }
        assert!(drill.is_settled());
        let turns_of = |name: &str| {
            let of = groups.iter().zip(over.turns()).filter(|(group, _)| group.nodes.contains(&id(name)));
            of.map(|(_, turns)| *turns).sum::<u64>()
        };
        for name in ["l3_miss_bound", "mem_bandwidth", "mem_latency", "l1_bound", "store_bound"] {
            assert!(turns_of(name) >= FEWEST_TURNS, "{name}: {}", turns_of(name));
        }
        for name in ["icache_misses", "branch_resteers", "fb_full", "ports_utilized_1", "slow_pause"] {
            assert_eq!(turns_of(name), 0, "{name}");
        }
        let nodes = over.nodes(0.0);
        let leaf = nodes.iter().find(|node| node.id == id("mem_bandwidth")).unwrap();
        assert!(
            leaf.low <= 0.5 && 0.5 <= leaf.high && flag(tree, leaf.id, &nodes, Flag::Not) == Flag::Is,
            "{leaf:?}"
        );
    }

    #[test]
    fn a_node_below_one_that_was_not_counted_may_be_flagged_where_nodes_were_named() {
        let tree = deep_tree_of("spr").unwrap();
        let id = |name: &str| metric_of_name(name).unwrap().id;
        let node = |name: &str, value: f64| {
            let id = id(name);
            Node { id, value, low: value - 0.01, high: value + 0.01, measured: 1, ..Node::default() }
        };
        // (memory bound between them was not counted)
        let nodes = |backend: f64| vec![node("backend_bound", backend), node("l1_bound", 0.9)];
        let of = |backend: f64, uncounted| flag(tree, id("l1_bound"), &nodes(backend), uncounted);
        assert_eq!((of(0.7, Flag::Not), of(0.7, Flag::MayBe)), (Flag::Not, Flag::MayBe));
        assert_eq!((of(0.1, Flag::Not), of(0.1, Flag::MayBe)), (Flag::Not, Flag::Not));
        let counted = [nodes(0.7), vec![node("memory_bound", 0.6)]].concat();
        assert_eq!(flag(tree, id("l1_bound"), &counted, Flag::MayBe), Flag::Is);
    }
}
