//! Bottlenecks are their published formulas, and their intervals hold what follows from the truth of each node.
#![forbid(unsafe_code)]

use super::super::{TEXTS, read};
use super::*;
use crate::sys::random::Random;
use std::collections::BTreeMap;

/// A formula, as it is published.
fn plain(all: &Expression, named: &dyn Fn(&str) -> f64) -> f64 {
    match all {
        Expression::Number(number) => *number,
        Expression::Name(name) => named(name),
        Expression::If(_) => panic!("no bottleneck has a condition"),
        Expression::Of(operator, operands) => {
            let [a, b] = [plain(&operands[0], named), plain(&operands[1], named)];
            match operator {
                Operator::Plus => a + b,
                Operator::Minus => a - b,
                Operator::Times => a * b,
                Operator::By => a / b,
                Operator::Min => a.min(b),
                Operator::Max => a.max(b),
                Operator::Less | Operator::NotLess => panic!("nor a comparison"),
            }
        }
    }
}

fn tree_of(place: usize) -> DeepTree {
    let bottlenecks = read(place).unwrap().bottlenecks;
    DeepTree {
        counters: 8,
        version: String::new(),
        groups: Vec::new(),
        nodes: Vec::new(),
        bottlenecks,
        locating: Vec::new(),
    }
}

/// Shares of all nodes that the bottlenecks of a tree take, some of which are parts of others.
fn truths(tree: &DeepTree, random: &mut Random) -> BTreeMap<String, f64> {
    let mut any = || (1 + random.below(900)) as f64 / 3000.0;
    let names = tree.bottlenecks.iter().flat_map(|one| one.value.names());
    let mut truths: BTreeMap<String, f64> = names.map(|name| (name.to_string(), any())).collect();
    for (part, whole) in [
        ("microcode_sequencer", "heavy_operations"),
        ("other_mispredicts", "branch_mispredicts"),
        ("unknown_branches", "branch_resteers"),
        ("assists", "microcode_sequencer"),
        ("rep_iterations", "microcode_cycles"),
        ("ports_utilized_0", "ports_utilization"),
    ] {
        if let Some(whole) = truths.get(whole).copied() {
            truths.insert(part.into(), whole * any());
        }
    }
    truths
}

/// Each of a tree by its published formula, between 0 and 1.
fn published(tree: &DeepTree, truths: &BTreeMap<String, f64>, name: &str) -> f64 {
    let one = tree.bottlenecks.iter().find(|one| one.name == name);
    one.map_or_else(
        || truths[name],
        |one| plain(&one.value, &|name| published(tree, truths, name)).clamp(0.0, 1.0),
    )
}

#[test]
fn bottlenecks_are_their_formulas_and_their_intervals_hold_what_follows_from_the_truth() {
    let (mut random, mut compared, mut wide) = (Random::new(11), 0, 0.0);
    for (place, (text, _)) in TEXTS.iter().enumerate() {
        let tree = tree_of(place);
        // (of one its own core's text has all nodes)
        if read(place).is_some_and(|text| text.nodes.is_empty()) {
            continue;
        }
        assert!(tree.bottlenecks.len() >= 8, "{text}");
        for _ in 0..40 {
            let truths = truths(&tree, &mut random);
            for one in tree.view(&|name| Bounded::exactly(truths[name])) {
                let wanted = published(&tree, &truths, one.name);
                let is = |value: f64| (value - wanted).abs() < 1e-9;
                assert!(
                    is(one.share.value) && is(one.share.low) && is(one.share.high),
                    "{text} {one:?} {wanted}"
                );
            }
            let mut seen = BTreeMap::new();
            for (name, truth) in &truths {
                let mut off = || 1.0 + random.below(200) as f64 / 1000.0;
                let (low, high) = (truth / off(), (truth * off()).min(1.0));
                seen.insert(name.as_str(), Bounded { value: f64::midpoint(low, high), low, high });
            }
            for one in tree.view(&|name| seen[name]) {
                let wanted = published(&tree, &truths, one.name);
                let Bounded { value, low, high } = one.share;
                assert!(low <= wanted + 1e-12 && wanted <= high + 1e-12, "{text} {one:?} {wanted}");
                assert!(low <= value && value <= high, "{text} {one:?}");
                (compared, wide) = (compared + 1, wide + high - low);
            }
        }
    }
    // (and they are not everything)
    assert!(compared > 5_000 && wide / f64::from(compared) < 0.25, "{compared} {wide}");
}

#[test]
fn what_was_not_measured_may_be_anything() {
    let tree = tree_of(TEXTS.iter().position(|(name, _)| *name == "spr").unwrap());
    let (small, rest) = (Bounded { value: 0.01, low: 0.0, high: 0.02 }, UNKNOWN);
    let view = tree.view(&|name| if name == "memory_bound" { small } else { rest });
    let of = |name: &str| view.iter().find(|one| one.name == name).unwrap().share;
    // (a part of what is small is small, whichever it is)
    let tlbs = of("memory_data_tlbs");
    assert!(tlbs.low == 0.0 && tlbs.high <= 0.04 + 1e-12 && tlbs.high > 0.0, "{tlbs:?}");
    let code = of("big_code");
    assert_eq!((code.low, code.high), (0.0, 1.0));
}

#[test]
fn parts_of_one_whole_are_no_more_than_it_together_and_what_is_less_stays_so() {
    let wide = Bounded { value: 0.3, low: 0.1, high: 0.5 };
    let of = |text: &str| Names(&|_| wide).of(&Expression::read(text).unwrap());
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    let whole = of("c * a / ( a + b ) + c * b / ( a + b )");
    assert!(near(whole.value, 0.3) && near(whole.low, 0.1) && near(whole.high, 0.5), "{whole:?}");
    let less = of("2 - a / ( a + b ) - b / ( a + b )");
    assert!(
        near(less.value, 1.0) && near(less.low, 2.0 - 10.0 / 6.0) && near(less.high, 2.0 - 2.0 / 6.0),
        "{less:?}"
    );
    let both = of("c * a / ( a + b ) + c * a / ( a + b ) - b / ( a + b )");
    assert!(near(both.value, -0.2), "{both:?}");
}

#[test]
fn what_was_not_measured_has_no_more_than_what_is_above_it_unless_it_is_an_estimate() {
    let info = |name: &str, parent: &str, level, is_estimated| {
        let of = |name: &str| *metrics::ALL.iter().find(|metric| metric.field() == name).unwrap();
        let parent = if parent.is_empty() { metrics::TD_NODE_NONE } else { of(parent).id };
        DeepNodeInfo {
            metric: of(name),
            parent,
            level,
            above: None,
            is_alone: false,
            samples: Vec::new(),
            untold: String::new(),
            takes_latencies: false,
            is_part: false,
            unit: metrics::TD_UNIT_SLOTS,
            is_estimated,
        }
    };
    let nodes = vec![
        info("frontend_bound", "", 1, false),
        info("fetch_bandwidth", "frontend_bound", 2, false),
        info("ms", "fetch_bandwidth", 3, true),
    ];
    let tree = DeepTree { nodes, ..tree_of(TEXTS.iter().position(|(name, _)| *name == "spr").unwrap()) };
    let id = |name: &str| metrics::ALL.iter().find(|metric| metric.field() == name).unwrap().id;
    let told =
        |node: u32| (node == id("frontend_bound")).then_some(Bounded { value: 0.2, low: 0.1, high: 0.3 });
    let high = |name: &str| tree.bounded(id(name), &told).high;
    assert_eq!((high("frontend_bound"), high("fetch_bandwidth"), high("ms")), (0.3, 0.3, 1.0));
    assert!(tree.is_unbounded(id("ms")) && !tree.is_unbounded(id("fetch_bandwidth")));
}
