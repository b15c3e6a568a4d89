//! What turns tell, of programs whose truth is known.

use super::*;
use crate::sys::random::Random;
use crate::turns::lengths::{FIRST_STRETCH, TurnLengths};

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
        let nodes = [node(1, TD_NODE_NONE, 1, 0.6), node(2, 1, 2, varying), node(3, TD_NODE_NONE, 1, 0.4)];
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
        let nodes = [node(1, TD_NODE_NONE, 1, 0.6), node(3, TD_NODE_NONE, 1, 0.4), node(2, 1, 2, varying)];
        alone.add(k as usize % 2, &nodes[..2 + k as usize % 2], 500, (2, 2), &[]);
    }
    assert!((far(&alone.nodes(0.0)[2]) - far(&nodes[2])).abs() < 1e-9);
    assert!(now.since(&now).nodes(0.0).is_empty());
}
