//! Where most slots go, in words: all that is near the largest loss, only as sure as the bounds allow.
//!
//! A loss is named with the largest if it is no more than a quarter smaller: slots are time, so that whoever removes it gains at least
//! three quarters of what the largest would bring, and which of them is the easiest to remove decides, not which is larger. Where the
//! ends of the intervals leave open whether it is near, it "may be". So of two measurements of one program neither leaves out what the
//! other one names for certain.
#![forbid(unsafe_code)]

mod near;
#[cfg(test)]
mod tests;

use crate::account::{Level1, Level2};
use crate::advice::advice;
use crate::model::Figures;
use crate::nodes::{NodeInterval, NodeTree};
use near::{Candidate, NearNode, near};
use topdown::{LEVEL_1, LEVEL_2, TD_NODE_NONE, TD_NODE_RETIRING};

/// Where so large a share retires, little is lost, and what retires is what is left to work on.
const BUSY: f64 = 0.7;
/// Verdicts have whole percents: half a point is the least that they can be off, and that two runs may differ by.
const LEAST_BOUND: f64 = 0.005;
/// So many are named; of more it is said how many.
const NAMED: usize = 4;

/// Shares of nodes, and how far from the truth they are at the most.
struct Shares<'t> {
    tree: &'t NodeTree,
    one: Option<&'t Level1>,
    two: Option<&'t Level2>,
}

/// What is known of where most slots go.
#[derive(Debug)]
struct Verdict<'t> {
    /// Retiring, if it is above `BUSY` or may be.
    busy: Option<NearNode<'t>>,
    /// What is near the largest loss, the largest first; none where it is certain that little is lost, or nothing is told.
    losses: Vec<NearNode<'t>>,
    /// The bound of the largest, if that is too large to tell what is near it.
    untold: Option<f64>,
}

impl<'t> Shares<'t> {
    fn of(figures: &'t Figures) -> Shares<'t> {
        let Figures { tree, level_1, level_2, .. } = figures;
        Shares { tree, one: level_1.as_ref(), two: level_2.as_ref() }
    }

    /// All that the verdict names.
    fn named(&self) -> Vec<NearNode<'t>> {
        let Verdict { busy, losses, .. } = self.verdict();
        // (what may be near is less urgent than what is)
        let (sure, maybe): (Vec<_>, Vec<_>) = losses.into_iter().partition(|one| one.is_sure);
        busy.into_iter().chain(sure).chain(maybe).collect()
    }

    /// The bound of a node's level where it has a fixed name there, else its own.
    fn bound(&self, node: &NodeInterval) -> f64 {
        let is_of = |level: &[topdown::Metric]| level.contains(node.kind.metric);
        let bound = match (self.one, self.two) {
            (Some(one), _) if is_of(&LEVEL_1) => one.error,
            (_, Some(two)) if is_of(&LEVEL_2) => two.error,
            _ => node.share.error(),
        };
        bound.max(LEAST_BOUND)
    }

    fn below(&self, id: u32) -> Vec<&'t NodeInterval> {
        self.tree.0.iter().filter(|node| node.kind.parent == id).collect()
    }

    /// The parts of a node that are worth a name of their own; none: it is not divided so.
    fn parts(&self, node: &NodeInterval) -> Vec<&'t NodeInterval> {
        let parts = self.below(node.kind.metric.id);
        let are_told =
            parts.iter().all(|part| part.kind.unit == node.kind.unit && !part.kind.metric.verdict.is_empty());
        if parts.len() > 1 && are_told { parts } else { Vec::new() }
    }

    fn candidate(&self, node: &'t NodeInterval, parts: usize) -> Candidate<'t> {
        Candidate { node, bound: self.bound(node), parts }
    }

    /// Retiring, as far as it may be above `BUSY`.
    fn busy(&self) -> Option<NearNode<'t>> {
        let node = self.tree.find(TD_NODE_RETIRING)?;
        let (value, bound) = (node.share.value, self.bound(node));
        (value + bound >= BUSY).then_some(NearNode { node, is_sure: value - bound >= BUSY })
    }

    fn roots_of_losses(&self) -> Vec<&'t NodeInterval> {
        let roots = self.below(TD_NODE_NONE);
        roots.into_iter().filter(|root| root.kind.metric.id != TD_NODE_RETIRING).collect()
    }

    /// The losses: what roots divide into, down to level 2, so that what is compared is as finely divided everywhere.
    fn losses(&self) -> Vec<Candidate<'t>> {
        let parts = |root: &&'t NodeInterval| match self.parts(root) {
            parts if parts.is_empty() => vec![*root],
            parts => parts,
        };
        let nodes = self.roots_of_losses();
        nodes.iter().flat_map(parts).map(|node| self.candidate(node, 1)).collect()
    }

    /// The same where it is not told how roots divide.
    fn undivided_losses(&self) -> Vec<Candidate<'t>> {
        let nodes = self.roots_of_losses().into_iter();
        nodes.map(|root| self.candidate(root, self.parts(root).len().max(1))).collect()
    }

    /// The node, or the part of it that is alone the largest of its parts, and so on.
    fn deepest(&self, node: &'t NodeInterval) -> &'t NodeInterval {
        let parts = self.below(node.kind.metric.id).into_iter().map(|part| self.candidate(part, 1));
        match near(&parts.collect::<Vec<_>>())[..] {
            [NearNode { node: part, is_sure: true }]
                if part.kind.unit == node.kind.unit && !part.kind.metric.verdict.is_empty() =>
            {
                self.deepest(part)
            }
            _ => node,
        }
    }

    fn verdict(&self) -> Verdict<'t> {
        let busy = self.busy();
        let mut verdict = Verdict { busy, losses: Vec::new(), untold: None };
        if busy.is_some_and(|busy| busy.is_sure) {
            return verdict;
        }
        // (where bounds are so wide that all may be near, roots may still say something)
        let says = |near: &Vec<NearNode>| near.len() <= 2 || near.iter().any(|one| one.is_sure);
        let found = [near(&self.losses()), near(&self.undivided_losses())];
        let widest = found[1].first().map(|one| self.bound(one.node));
        match found.into_iter().find(says) {
            Some(near) => verdict.losses = near,
            // (retiring may be anything, too)
            None => verdict = Verdict { busy: None, untold: widest, ..verdict },
        }
        verdict
    }
}

/// "memory bound 22 %".
fn named(node: &NodeInterval) -> String {
    format!("{} {:.0} %", node.kind.metric.title(), 100.0 * node.share.value)
}

/// The sentence of its kind.
fn sentence(node: &NodeInterval) -> String {
    node.kind.metric.verdict.replacen('%', &format!("{:.0} %", 100.0 * node.share.value), 1)
}

/// "two things", "three things".
fn things(number: usize) -> String {
    let words = ["two", "three", "four"];
    let word = number.checked_sub(2).and_then(|place| words.get(place));
    format!("{} things", word.map_or(number.to_string(), |word| (*word).into()))
}

/// All that are named, those that are near for certain first.
fn list(losses: &[NearNode]) -> String {
    let (sure, maybe): (Vec<_>, Vec<_>) = losses.iter().partition(|one| one.is_sure);
    let listed = |nodes: &[&NearNode], most: usize| {
        let mut names: Vec<String> = nodes.iter().take(most).map(|one| named(one.node)).collect();
        names.extend((nodes.len() > most).then(|| format!("{} more", nodes.len() - most)));
        names.join("; ")
    };
    let certain = match sure.len() {
        0 => String::new(),
        1 => listed(&sure, NAMED),
        number => format!("{}: {}", things(number), listed(&sure, NAMED)),
    };
    let perhaps = listed(&maybe, NAMED.saturating_sub(sure.len()).max(1));
    match (&certain[..], &perhaps[..]) {
        (_, "") => certain,
        ("", _) => format!("{}: too close to tell", perhaps.replacen("; ", " or ", 1)),
        _ => format!("{certain}; maybe {perhaps}"),
    }
}

/// The verdict.
pub fn words(tree: &NodeTree, one: Option<&Level1>, two: Option<&Level2>) -> String {
    let shares = Shares { tree, one, two };
    let Verdict { busy, losses, untold } = shares.verdict();
    let lost = match (untold, &losses[..]) {
        (Some(bound), _) => Some(format!("cannot be told: the bound is {:.1} points", 100.0 * bound)),
        (None, []) => None,
        (None, [NearNode { node, .. }]) => Some(sentence(shares.deepest(node))),
        (None, _) => Some(list(&losses)),
    };
    match (busy, lost) {
        (None, None) => "not measured".into(),
        (None, Some(lost)) => lost,
        (Some(busy), None) => sentence(shares.deepest(busy.node)),
        (Some(busy), Some(lost)) => format!("{}; or if less: {lost}", named(busy.node)),
    }
}

/// The same of a tree whose nodes have bounds of their own.
#[must_use]
pub fn of_tree(tree: &NodeTree) -> String {
    words(tree, None, None)
}

/// Names without "tma_" of what the verdict on a tree names, and of what that is part of.
#[must_use]
pub fn names_of_tree(tree: &NodeTree) -> Vec<String> {
    names(&Shares { tree, one: None, two: None })
}

fn names(shares: &Shares) -> Vec<String> {
    let parent = |node: &NodeInterval| shares.tree.find(node.kind.parent);
    let with_parent = |one: NearNode| {
        let above = parent(one.node).map(|above| above.kind.metric.field());
        [Some(one.node.kind.metric.field()), above]
    };
    shares.named().into_iter().flat_map(with_parent).flatten().map(String::from).collect()
}

/// The same of figures.
pub fn names_of(figures: &Figures) -> Vec<String> {
    names(&Shares::of(figures))
}

/// What to do next about figures: about each thing that the verdict names; empty, if it names none.
pub fn next(figures: &Figures) -> String {
    let step = |one: &NearNode| {
        // (a node without advice has that of the nearest above it)
        let mut node = one.node;
        let advice = loop {
            match advice(node.kind.metric.field()) {
                Some(advice) => break advice,
                None => node = figures.tree.find(node.kind.parent)?,
            }
        };
        let maybe = if one.is_sure { "" } else { "maybe " };
        Some(format!("{maybe}{}: {advice}", named(node)))
    };
    let steps: Vec<String> = Shares::of(figures).named().iter().filter_map(step).take(NAMED).collect();
    steps.join("; ")
}
