//! What is evaluated four nodes at once is what the formula of each says, to the last bit.

use super::*;
use crate::sys::random::Random;

/// All of a share, bit for bit.
fn bits(share: Option<&Share>) -> Option<[u64; 3]> {
    share.map(|share| [share.value, share.low, share.high].map(f64::to_bits))
}

#[test]
fn nodes_that_are_sums_are_what_their_formulas_say_to_the_last_bit() {
    let mut random = Random::new(1);
    let (mut compared, mut unmeasured) = (0, 0);
    for (place, tree) in model::trees_by_place().filter(|(_, tree)| tree.sums.is_some()) {
        let formulas = tree.without_sums();
        let span = Span {
            flags: 0,
            slots: 0,
            category: [0.0; 8],
            rounding: 0.0,
            edges: 0.0,
            running: 1.0,
            uncounted: 0.0,
            level: 1,
        };
        for turn in 0..400 {
            let whole = |part: f64| (part * 1e9).floor();
            let mut counted = CountedInputs {
                slots: whole(random.part()) + 1.0,
                // (of exact counts nothing dispatched says nothing of what retired)
                rounding: if turn % 3 == 0 { whole(random.part() / 1e4) } else { 0.0 },
                edges: whole(random.part() / 1e4) + 1.0,
                bare: turn % 5 == 1,
                uncorrected: turn % 5 == 2,
                ..CountedInputs::new(place, &span)
            };
            for input in 0..tree.inputs.len() {
                // (now and then nothing, or more than there was, or not measured)
                let part = if turn % 7 == input % 7 { 0.0 } else { random.part() };
                let n = if turn % 11 == 0 { whole(part) } else { (counted.slots * part / 3.0).floor() };
                if turn % 13 != 0 || input % 4 != turn / 13 % 4 {
                    counted.set(input, n);
                }
            }
            for level in 1..=tree.depth() {
                let (mut sums, mut each) = (NodeShares::NONE, NodeShares::NONE);
                evaluate::evaluate(tree, level, &counted, &mut sums);
                evaluate::evaluate(&formulas, level, &counted, &mut each);
                for (node, row) in tree.nodes.iter().enumerate() {
                    assert_eq!(bits(sums.get(node)), bits(each.get(node)), "{place} {row:?} {counted:?}");
                    compared += usize::from(sums.get(node).is_some());
                    unmeasured += usize::from(sums.get(node).is_none());
                }
            }
        }
    }
    assert!(compared > 300_000 && unmeasured > 100_000, "{compared} {unmeasured}");
}
