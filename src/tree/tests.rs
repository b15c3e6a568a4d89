//! The trees give what the fixed structures give, to the last bit.

use super::*;
use crate::bound::skid_of_counters;
use crate::decode::by_counters;
use crate::decode::tests::{bits_1, bits_2, pairs};
use crate::model;
use crate::model::metrics::*;
use crate::sample::{Base, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_UNCORRECTED};
use crate::{Sum, decode, decode_l1, decode_l2};

mod cores;
mod corrected;
mod deep;
mod made_up;
mod sums;

/// Nodes between two samples.
fn nodes_between(span: &Span, from: Option<&Sample>, to: &Sample) -> Vec<Node> {
    between(span, from, to, |nodes| nodes.collect()).unwrap()
}

/// The place of the first CPU with this tree in the table of models.
fn place_of(tree: &Tree) -> u8 {
    let (place, _) = model::trees_by_place().find(|(_, its)| std::ptr::eq(*its, tree)).unwrap();
    place
}

#[test]
fn registers_at_sight_are_the_nodes_to_the_last_bit() {
    let (mut decoded, mut at_sight) = ([0; 2], [0; 2]);
    for (k, (mut from, mut to)) in pairs().enumerate() {
        if k % 4 == 0 {
            (from.base.level, to.base.level) = (1, 1);
        }
        for from in [Some(&from), None] {
            let Ok(l1) = decode_l1(from, &to) else { continue };
            let span = span::span(from, &to, 1).unwrap();
            if model::levels_by_category(to.base.model) == 0 || span.rounding + span.edges == 0.0 {
                continue;
            }
            assert_eq!(bits_1(&decode::level_1_of_span(&span)), bits_1(&l1), "{from:?} {to:?}");
            decoded[0] += 1;
            if let Ok(l2) = decode_l2(from, &to) {
                assert_eq!(bits_2(&decode::level_2_of_span(&span)), bits_2(&l2), "{from:?} {to:?}");
                decoded[1] += 1;
            }
            if let Some(l1_at_sight) = from.and_then(|from| decode::l1_at_sight(from, &to)) {
                assert_eq!(bits_1(&l1_at_sight), bits_1(&l1), "{from:?} {to:?}");
                at_sight[0] += 1;
            }
            if let Some(l2_at_sight) = from.and_then(|from| decode::l2_at_sight(from, &to)) {
                assert_eq!(bits_2(&l2_at_sight), bits_2(&decode_l2(from, &to).unwrap()), "{from:?} {to:?}");
                at_sight[1] += 1;
            }
        }
    }
    assert!(decoded.iter().chain(&at_sight).all(|count| *count > 7_000), "{decoded:?} {at_sight:?}");
}

/// The tree of the core of this name.
fn of_core(name: &str) -> &'static Tree {
    model::tree_of(model::of_core(name).unwrap()).unwrap()
}

/// A reading by read(2), level 1, of general-purpose counters.
fn counted_by_read(tree: &Tree, slots: u64, counts: &[u64]) -> Sample {
    let base = Base::of_handle(1 << 32, place_of(tree), 1);
    let base = Base { window: base.first_window().wrapping_add(1), error: 3_000, ..base };
    let size = size_of::<Sample>() as u32;
    let mut sample = Sample { size, slots, slots_before: slots, base, ..Sample::default() };
    sample.counter[..counts.len()].copy_from_slice(counts);
    sample
}

/// The nodes of so many slots that these counters divide, down to the deepest level: shares in slots, by id; NaN: not measured.
fn slots_of(tree: &Tree, slots: u64, counts: &[u64]) -> impl Fn(u32) -> f64 + use<> {
    let mut to = counted_by_read(tree, slots, counts);
    to.base.level = tree.depth() as u8;
    let nodes = decode_tree(None, &to).unwrap();
    for node in nodes.iter().filter(|node| node.measured == 1) {
        assert!(node.low <= node.value && node.value <= node.high && node.high - node.low < 1.0, "{node:?}");
    }
    move |id| nodes.iter().find(|node| node.id == id).unwrap().value * slots as f64
}

/// Level 1 of every core is sums of its counters, where these decide it, but of one that takes six for it.
#[test]
fn level_1_of_every_core_takes_no_evaluation() {
    let mut without = Vec::new();
    for (place, tree) in model::trees_by_place() {
        assert!(model::sums(place).is_none() || tree.takes_counters() && tree.is_sure());
        let core = model::at(place.into()).unwrap().core;
        let has_below = tree.nodes.len() == 12 && tree.nodes.iter().all(|row| row.is_measured(2));
        match model::sums(place) {
            None if tree.takes_counters() && tree.is_sure() => without.push(core),
            Some(sums) => assert_eq!(sums.has_l2, has_below, "{core}"),
            None => (),
        }
    }
    assert_eq!(without, ["Neoverse N2 before r0p3"]);
}

#[test]
fn counters_at_sight_are_the_nodes_to_the_last_bit() {
    let places = model::trees_by_place().map(|(place, _)| place);
    let rows: Vec<u8> = places.filter(|place| model::sums(*place).is_some()).collect();
    let (mut compared, mut refused) = (vec![[0; 2]; rows.len()], 0);
    for (k, (from, to)) in pairs().enumerate() {
        let (row, tree) = (rows[k % rows.len()], model::tree_of(rows[k % rows.len()]).unwrap());
        let turn = k / rows.len();
        let base = Base::of_handle(k as u64, row, 1 + (turn as u8 / 4 + 1) % tree.depth() as u8);
        let counts = |sample: &Sample| {
            let registers = Sample { size: size_of::<Sample>() as u32, raw_metrics: 0, ..*sample };
            Sample {
                slots_before: sample.slots,
                base: Base { error: sample.base.error, window: sample.base.window, ..base },
                ..registers
            }
        };
        let (from, mut to) = (counts(&from), counts(&to));
        let slots = to.slots.saturating_sub(from.slots);
        to.counter = std::array::from_fn(|place| {
            // (as they are, or of any size, as of samples that nobody read)
            let most = if turn % 16 == 15 { u64::MAX >> (turn / 16 % 64) } else { (slots / 3).max(1) };
            let part =
                (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_mul(2 * place as u64 + 1) % most;
            from.counter[place].wrapping_add(if turn % 7 == place % 7 { 0 } else { part })
        });
        let nodes =
            |level| span::span(Some(&from), &to, level).map(|span| nodes_between(&span, Some(&from), &to));
        if let Some(l1) = by_counters::l1_at_sight(&from, &to) {
            let slow = decode::level_1_of(nodes(1).unwrap().into_iter(), to.slots - from.slots).unwrap();
            assert_eq!(bits_1(&l1), bits_1(&slow), "{from:?} {to:?}");
            assert_eq!(l1.smt_contention.to_bits(), slow.smt_contention.to_bits(), "{from:?} {to:?}");
            compared[k % rows.len()][0] += 1;
        }
        if let Some(l2) = by_counters::l2_at_sight(&from, &to) {
            let slow = decode::level_2_of(nodes(2).unwrap().into_iter(), to.slots - from.slots).unwrap();
            assert_eq!(bits_2(&l2), bits_2(&slow), "{from:?} {to:?}");
            compared[k % rows.len()][1] += 1;
        }
        // a counter that went back, of either level: samples that cannot be are refused, whichever level is asked for
        let (mut later, mut round, place) = ([from; 2], to, turn / 32 % 8);
        later[0].counter[place] = to.counter[place].saturating_add(1);
        (later[1].counter[place], round.counter[place]) = (u64::MAX - 3, 5);
        for (later, to) in later.iter().zip([&to, &round]) {
            let codes = [decode_l1(Some(later), to).err(), decode_l2(Some(later), to).err()];
            refused += usize::from(codes[0].is_some());
            assert!(by_counters::l1_at_sight(later, to).is_none() || codes[0].is_none(), "{later:?} {to:?}");
            assert!(by_counters::l2_at_sight(later, to).is_none() || codes[1].is_none(), "{later:?} {to:?}");
        }
    }
    for (row, [level_1, level_2]) in rows.iter().zip(compared) {
        let below = model::sums(*row).unwrap().has_l2;
        assert!(level_1 > 300 && (level_2 > 100) == below, "{row}: {level_1} {level_2}");
    }
    assert!(rows.len() > 70 && refused > 20_000, "{} {refused}", rows.len());
}

#[test]
fn each_value_lies_between_its_ends_and_children_within_their_parent() {
    let mut decoded = 0;
    for (from, to) in pairs() {
        let Ok(nodes) = decode_tree(Some(&from), &to) else { continue };
        decoded += 1;
        for node in nodes.iter().filter(|node| node.measured == 1) {
            assert!(
                0.0 <= node.low && node.low <= node.value && node.value <= node.high && node.high <= 1.0,
                "{node:?}"
            );
            let children = || nodes.iter().filter(|child| child.parent == node.id && child.measured == 1);
            let sum: f64 = children().map(|child| child.value).sum();
            assert!(children().next().is_none() || (sum - node.value).abs() <= 1e-9, "{node:?}");
            // (of registers that contradict themselves nothing is known)
            let unknown = |child: &Node| (child.low, child.high) == (0.0, 1.0);
            assert!(children().all(|child| child.high <= node.high + 1e-9 || unknown(child)), "{node:?}");
        }
    }
    assert!(decoded > 30_000, "{decoded}");
}

#[test]
fn what_was_not_measured_is_listed_and_is_no_number() {
    let (_, mut to) = pairs().find(|(from, to)| decode_tree(Some(from), to).is_ok()).unwrap();
    to.base.level = 1;
    let nodes = decode_tree(None, &to).unwrap();
    assert_eq!(nodes.len(), 12);
    for node in &nodes {
        assert_eq!(node.measured, u32::from(node.level == 1));
        assert_eq!([node.value, node.low, node.high].map(f64::is_nan), [node.level > 1; 3], "{node:?}");
        assert!(node.name().starts_with("tma_"));
    }
    let listed = list(to.base.model, 1).unwrap();
    for (listed, node) in listed.zip(&nodes) {
        assert_eq!((listed.id, listed.measured), (node.id, node.measured));
        assert!(listed.value.is_nan());
    }
}
