//! The dominant bottleneck in words, only as sure as the bound allows.
#![forbid(unsafe_code)]

use crate::account::{Level1, Level2};
use crate::model::Figures;
use crate::nodes::{NodeInterval, NodeTree};
use topdown::{LEVEL_1, LEVEL_2, TD_NODE_NONE};

/// How far a node is from the truth at the most: the bound of its level where it has a fixed name there, else its own.
fn bound(node: &NodeInterval, one: Option<&Level1>, two: Option<&Level2>) -> f64 {
    let is_of = |level: &[topdown::Metric]| level.contains(&node.kind.metric);
    match (one, two) {
        (Some(one), _) if is_of(&LEVEL_1) => one.error,
        (_, Some(two)) if is_of(&LEVEL_2) => two.error,
        _ => node.share.error(),
    }
}

/// What is known of which node is dominant.
enum Dominant<'t> {
    Unmeasured,
    One(&'t NodeInterval),
    Either(&'t NodeInterval, &'t NodeInterval),
    /// More than two may be; the largest is known so far.
    Open(f64),
}

/// The rule: a root is dominant if its share, less the bound, is above each other's, plus the bound. Where two are left they are
/// both named, where more are, none is. Of what the dominant one divides into the largest is named, if it is so by the same
/// rule, and so on; else the node itself.
fn dominant<'t>(tree: &'t NodeTree, one: Option<&Level1>, two: Option<&Level2>) -> Dominant<'t> {
    let bound = |node: &NodeInterval| bound(node, one, two);
    let below = |id: u32| {
        let mut nodes: Vec<&NodeInterval> = tree.0.iter().filter(|node| node.kind.parent == id).collect();
        nodes.sort_by(|a, b| b.share.value.total_cmp(&a.share.value));
        nodes
    };
    let mut roots = below(TD_NODE_NONE);
    let Some(largest) = roots.first().copied() else { return Dominant::Unmeasured };
    roots.retain(|root| root.share.value + bound(root) >= largest.share.value - bound(largest));
    match *roots {
        [root] => {
            let mut named = root;
            loop {
                let parts = below(named.kind.metric.id);
                let [first, rest @ ..] = &parts[..] else { break };
                let apart = |other: &&NodeInterval| {
                    first.share.value - other.share.value > bound(first) + bound(other)
                };
                let says = first.kind.unit == named.kind.unit && !first.kind.metric.verdict.is_empty();
                if rest.is_empty() || !rest.iter().all(apart) || !says {
                    break;
                }
                named = first;
            }
            Dominant::One(named)
        }
        [a, b] => Dominant::Either(a, b),
        _ => Dominant::Open(bound(largest)),
    }
}

/// The dominant bottleneck.
pub fn words(tree: &NodeTree, one: Option<&Level1>, two: Option<&Level2>) -> String {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    match dominant(tree, one, two) {
        Dominant::Unmeasured => "not measured".into(),
        Dominant::One(named) => named.kind.metric.verdict.replacen('%', &percent(named.share.value), 1),
        Dominant::Either(a, b) => {
            let each =
                |root: &NodeInterval| format!("{} {}", root.kind.metric.title(), percent(root.share.value));
            format!("{} or {}: too close to tell", each(a), each(b))
        }
        Dominant::Open(bound) => format!("cannot be told: the bound is {:.1} points", 100.0 * bound),
    }
}

/// What to do about each node, by perf's name without "tma_".
const STEPS: [(&str, &str); 12] = [
    (
        "retiring",
        "little waits: what is left is to execute fewer instructions (another algorithm, vector instructions, -O3)",
    ),
    (
        "light_operations",
        "little waits: what is left is to execute fewer instructions (another algorithm, vector instructions, -O3)",
    ),
    (
        "heavy_operations",
        "look for instructions of many micro-operations (microcode, division, gather, denormal numbers): `perf annotate`",
    ),
    ("bad_speculation", "find the branches that are mispredicted: `perf record -e branch-misses`"),
    (
        "branch_mispredicts",
        "find the branches that are mispredicted: `perf record -e branch-misses`; make them arithmetic, or sort what they look at",
    ),
    (
        "machine_clears",
        "look for memory that several threads write, self-modifying code and denormal numbers: `perf record -e machine_clears.count`",
    ),
    (
        "frontend_bound",
        "make the code that runs smaller and closer together: profile-guided optimization, less inlining, huge pages for code",
    ),
    (
        "fetch_latency",
        "make the code that runs smaller and closer together: profile-guided optimization, less inlining, huge pages for code",
    ),
    (
        "fetch_bandwidth",
        "look at the hottest loops: alignment, long instructions, many taken branches; unroll less",
    ),
    (
        "backend_bound",
        "find what is waited for: `perf annotate` for long chains of operations, `perf mem record` for memory",
    ),
    (
        "memory_bound",
        "find the loads that wait: `perf mem record`; touch less data, in the order in which it lies, and prefetch the rest",
    ),
    (
        "core_bound",
        "look for divisions and long chains of dependent operations: `perf annotate`; break them up, use vector instructions",
    ),
];

/// Retiring is a bottleneck to work on from this share on; below, what the other slots wait for is.
const BUSY: f64 = 0.7;

/// What to do next about figures; empty, if it is not known which bottleneck is dominant.
pub fn next(figures: &Figures) -> String {
    let (one, two) = (figures.level_1.as_ref(), figures.level_2.as_ref());
    let (retiring, others): (Vec<NodeInterval>, Vec<NodeInterval>) =
        figures.tree.0.iter().partition(|node| node.kind.metric == LEVEL_1[0]);
    let is_busy = retiring.first().is_none_or(|node| node.share.value + bound(node, one, two) >= BUSY);
    let wasted = NodeTree(others);
    let Dominant::One(mut node) = dominant(if is_busy { &figures.tree } else { &wasted }, one, two) else {
        return String::new();
    };
    // (a node below level 2 has the step of the nearest above it)
    loop {
        let step = STEPS.iter().find(|(name, _)| *name == node.kind.metric.field());
        match (step, figures.tree.find(node.kind.parent)) {
            (Some((_, step)), _) => {
                return format!("{} {:.0} %: {step}", node.kind.metric.title(), 100.0 * node.share.value);
            }
            (None, Some(parent)) => node = parent,
            (None, None) => return String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::BoundedShares;
    use crate::nodes::{NodeKind, ShareInterval};
    use topdown::TD_UNIT_SLOTS;

    fn tree(one: &[f64], two: &[f64]) -> NodeTree {
        let level = |level: u32, metrics: &[topdown::Metric], shares: &[f64]| -> Vec<NodeInterval> {
            let parent = |k: usize| if level == 1 { TD_NODE_NONE } else { LEVEL_1[k / 2].id };
            let node = |(k, value): (usize, &f64)| NodeInterval {
                kind: NodeKind { metric: metrics[k], parent: parent(k), level, unit: TD_UNIT_SLOTS },
                share: ShareInterval { value: *value, low: 0.0, high: 1.0 },
            };
            shares.iter().enumerate().map(node).collect()
        };
        NodeTree(level(1, &LEVEL_1, one).into_iter().chain(level(2, &LEVEL_2, two)).collect())
    }

    fn said(one: [f64; 4], two: [f64; 8], error: f64) -> String {
        words(
            &tree(&one, &two),
            Some(&BoundedShares { of: one, other: 0.0, error }),
            Some(&BoundedShares { of: two, other: 0.0, error }),
        )
    }

    #[test]
    fn the_larger_part_of_the_largest_category_is_named() {
        let two = [0.05, 0.15, 0.02, 0.03, 0.02, 0.08, 0.61, 0.04];
        assert_eq!(said([0.2, 0.05, 0.1, 0.65], two, 0.01), "memory bound: 61 % of slots wait for memory");
        let two = [0.05, 0.55, 0.02, 0.03, 0.02, 0.08, 0.20, 0.05];
        assert_eq!(said([0.6, 0.05, 0.1, 0.25], two, 0.01), "retiring: 60 % of slots do useful work");
    }

    #[test]
    fn what_the_bound_leaves_open_is_left_open() {
        let (one, two) = ([0.2, 0.05, 0.1, 0.65], [0.05, 0.15, 0.02, 0.03, 0.02, 0.08, 0.34, 0.31]);
        // 34 and 31 are not two bounds of 2 points apart, but of 1 they are
        assert_eq!(said(one, two, 0.02), "backend bound: 65 % of slots wait for data or execution units");
        assert_eq!(said(one, two, 0.01), "memory bound: 34 % of slots wait for memory");
        // 65 - 22.6 > 20 + 22.4, but not 10 + ... with more
        assert_eq!(said(one, two, 0.224), "backend bound: 65 % of slots wait for data or execution units");
        assert_eq!(said(one, two, 0.226), "backend bound 65 % or retiring 20 %: too close to tell");
        assert_eq!(said(one, two, 0.3), "cannot be told: the bound is 30.0 points");
        assert_eq!(words(&NodeTree::default(), None, None), "not measured");
    }

    #[test]
    fn each_category_has_a_step() {
        for metric in LEVEL_1.iter().chain(&LEVEL_2) {
            assert!(STEPS.iter().any(|(name, _)| *name == metric.field()), "{}", metric.field());
        }
    }

    #[test]
    fn the_step_is_for_what_waits_unless_little_does() {
        let figures = |one: [f64; 4], two: [f64; 8], error: f64| {
            let (level_1, level_2) =
                (BoundedShares { of: one, other: 0.0, error }, BoundedShares { of: two, other: 0.0, error });
            Figures {
                slots: 1000,
                share: None,
                time_ns: 0,
                running: None,
                level_1: Some(level_1),
                level_2: Some(level_2),
                bottleneck: String::new(),
                tree: tree(&one, &two),
            }
        };
        let half = figures([0.5, 0.05, 0.1, 0.35], [0.1, 0.4, 0.03, 0.02, 0.05, 0.05, 0.3, 0.05], 0.01);
        assert!(next(&half).starts_with("memory bound 30 %: find the loads"), "{}", next(&half));
        let busy = figures([0.8, 0.05, 0.05, 0.1], [0.1, 0.7, 0.03, 0.02, 0.03, 0.02, 0.05, 0.05], 0.01);
        assert!(next(&busy).starts_with("retiring 80 %: little waits"), "{}", next(&busy));
        // the bound leaves open what waits most
        let open = figures([0.5, 0.05, 0.2, 0.25], [0.1, 0.4, 0.03, 0.02, 0.1, 0.1, 0.2, 0.05], 0.04);
        assert_eq!(next(&open), "");
    }

    #[test]
    fn level_1_alone_names_its_category() {
        let one = BoundedShares { of: [0.1, 0.1, 0.7, 0.1], other: 0.0, error: 0.01 };
        assert_eq!(
            words(&tree(&one.of, &[]), Some(&one), None),
            "frontend bound: 70 % of slots wait for instructions"
        );
    }
}
