//! Nodes between whose ends the truth lies although a part of the slots passed uncounted. A share of slots that add up lies where the counted
//! ones are, but for that part (`Shares::widened`). Of products and quotients of counts that does not hold: what is of all is no mean of
//! what is of both parts.
#![forbid(unsafe_code)]

use super::evaluate::{NodeShares, Share};
use super::inputs::{Count, CountedInputs};
use super::interval::{self, Ends, Interval};
use crate::model::tree::{Clocks, Expr, Formula, NodeRow, Tree};

/// Opens the intervals of products and quotients so far that each input may have counted every slot of the part, or none; and of the nodes
/// that follow from such.
#[cold]
#[inline(never)]
pub(super) fn open(tree: &Tree, counted: &CountedInputs, shares: &mut NodeShares) {
    let mut opened = 0u64;
    for level in 1..=tree.depth() {
        for is_rest in [false, true] {
            let nodes = tree.nodes.iter().enumerate().filter(|(_, row)| row.level == level);
            for (place, row) in nodes.filter(|(_, row)| matches!(row.formula, Formula::Rest) == is_rest) {
                let ends = ends_of(tree, (place, row), counted, shares, opened);
                if let (Some((low, high)), Some(share)) = (ends, shares.get_mut(place)) {
                    share.low = share.low.at_most(low.at_least(0.0));
                    share.high = share.high.at_least(high.at_most(1.0));
                    opened |= 1 << place;
                }
            }
        }
    }
}

/// Between which a node's share of all is; None: its interval holds.
fn ends_of(
    tree: &Tree,
    (place, row): (usize, &NodeRow),
    counted: &CountedInputs,
    shares: &NodeShares,
    opened: u64,
) -> Option<(f64, f64)> {
    let is_opened = |place: usize| opened >> place & 1 == 1;
    let (more, all) = (counted.uncounted, counted.slots + counted.uncounted);
    let parent = row.above.map(usize::from).filter(|above| is_opened(*above));
    match &row.formula {
        Formula::Of(expr) if is_mean(expr, tree, &is_opened) => None,
        Formula::Of(expr) => of_all(tree, expr, counted, shares),
        Formula::Retired(of) => {
            let (least, most) = counted.ends_of_retired(of, more)?;
            Some((least / all, most / all))
        }
        Formula::Rest => {
            let is_sibling = |(other, its): &(usize, &NodeRow)| {
                *other != place && its.above == row.above && (row.above.is_some() || its.divides_all())
            };
            // (nothing is allocated: whoever decodes may be a signal handler)
            let siblings = || tree.nodes.iter().enumerate().filter(is_sibling).map(|(other, _)| other);
            if parent.is_none() && !siblings().any(is_opened) {
                return None;
            }
            let whole = row.above.map_or(Some((1.0, 1.0)), |above| shares.get(above.into()).map(ends))?;
            siblings().try_fold(whole, |(low, high), sibling| {
                let (least, most) = shares.get(sibling).map(ends)?;
                Some((low - most, high - least))
            })
        }
        // (slots of its own, which the parent no longer bounds)
        _ => {
            let (_, high) = shares.get(parent?).map(ends)?;
            let slots = shares.get(place)?.slots;
            let most = (slots.near + slots.bound(counted.slots)) * counted.slots + more;
            Some((0.0, (most / all).at_most(high)))
        }
    }
}

fn ends(share: &Share) -> (f64, f64) {
    (share.low, share.high)
}

/// Whether the share of all is the mean of the shares of its parts: what was counted, added up, in parts of all slots, or of all cycles.
fn is_mean(expr: &Expr, tree: &Tree, is_opened: &impl Fn(usize) -> bool) -> bool {
    fn adds_up(expr: &Expr) -> bool {
        match expr {
            Expr::Input(_) => true,
            Expr::Sum(a, b) | Expr::Difference(a, b) => adds_up(a) && adds_up(b),
            Expr::Product(a, Expr::Number(_)) | Expr::Quotient(a, Expr::Number(_)) => adds_up(a),
            _ => false,
        }
    }
    match (expr, tree.clocks) {
        (Expr::Quotient(counts, Expr::Slots), _) => adds_up(counts),
        (Expr::Quotient(counts, Expr::Input(all)), Some(Clocks::Input(clocks))) => {
            *all == clocks && adds_up(counts)
        }
        (Expr::Sum(a, b) | Expr::Difference(a, b), _) => {
            is_mean(a, tree, is_opened) && is_mean(b, tree, is_opened)
        }
        (Expr::Node(id), _) => tree.place(*id).is_some_and(|place| !is_opened(place)),
        _ => false,
    }
}

/// The ends of an expression, if each input may have counted as much more as passed uncounted.
fn of_all(tree: &Tree, expr: &Expr, counted: &CountedInputs, shares: &NodeShares) -> Option<(f64, f64)> {
    let open = |interval: Interval| Interval { high: interval.high + counted.uncounted, ..interval };
    let node = |id| {
        let Share { low, value, high, .. } = *shares.get(tree.place(id)?)?;
        Some(Interval { value, low, high })
    };
    let Interval { low, high, .. } = interval::evaluate(expr, &|leaf| match leaf {
        Expr::Input(input) => counted.input(*input).map(Count::interval).map(open),
        Expr::Node(id) => node(*id),
        _ => Some(open(Interval::exact(counted.slots))),
    })?;
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, MOST_INPUTS};
    use crate::sys::random::Random;
    use crate::tree::evaluate::evaluate;
    use crate::tree::inputs::MovedSlots;

    /// Counts of a stretch of time.
    fn counted(slots: f64, inputs: [f64; MOST_INPUTS], tree: &Tree) -> CountedInputs {
        CountedInputs {
            inputs,
            measured: (1 << tree.inputs.len()) - 1,
            rounding: 0.0,
            edges: 1.0,
            sampled: None,
            slots,
            uncounted: 0.0,
            unknown: 0.0,
            bare: false,
            uncorrected: false,
            is_sure: true,
            moved: MovedSlots::UNSEEN,
        }
    }

    /// Counts of a random mix.
    fn random_mix(random: &mut Random, tree: &Tree, width: u32) -> CountedInputs {
        let cycles = 1e6 * (1 + random.below(20)) as f64;
        let mut inputs = [0.0; MOST_INPUTS];
        for (k, input) in tree.inputs.iter().enumerate() {
            let part = [0.0, 0.2, 0.7, 1.0, 1.2, 2.0][random.below(6) as usize];
            let most = cycles * f64::from(input.each());
            inputs[k] =
                (tree.per_cycle[k] * cycles * f64::from(input.each()) * part).min(most * f64::from(width));
        }
        if let Some(Clocks::Input(clocks)) = tree.clocks {
            inputs[clocks] = cycles;
        }
        counted(cycles * f64::from(width), inputs, tree)
    }

    /// These counts; None: no core can count so, as a node would have less than nothing, or more than its parent.
    fn possible(stretch: CountedInputs, tree: &Tree) -> Option<CountedInputs> {
        let mut shares = NodeShares::NONE;
        evaluate(tree, tree.depth(), &stretch, &mut shares);
        let is_divided = |row: &NodeRow| {
            let is_rest =
                |other: &NodeRow| other.parent == row.parent && matches!(other.formula, Formula::Rest);
            !matches!(row.formula, Formula::Of(_)) || tree.nodes.iter().any(is_rest)
        };
        let slots_of = |row: &NodeRow| stretch.slots_of(&row.formula).map(|count| count.n / stretch.slots);
        let mut left = vec![1.0; tree.nodes.len()];
        let mut roots = 1.0;
        for (place, row) in tree.nodes.iter().enumerate() {
            let Some(share) = shares.get(place) else { continue };
            left[place] = share.value;
            let slots = match &row.formula {
                Formula::Of(expr) => {
                    let leaf = |leaf: &Expr| match leaf {
                        Expr::Input(input) => stretch.input(*input).map(|count| Interval::exact(count.n)),
                        Expr::Node(id) => Some(Interval::exact(shares.get(tree.place(*id)?)?.value)),
                        _ => Some(Interval::exact(stretch.slots)),
                    };
                    let value = interval::evaluate(expr, &leaf)?.value;
                    if !(0.0..=1.0).contains(&value) {
                        return None;
                    }
                    value
                }
                Formula::Rest => continue,
                _ => slots_of(row)?,
            };
            let left = row.above.map_or(&mut roots, |above| &mut left[usize::from(above)]);
            *left -= slots;
            if slots < 0.0 || *left < -1e-9 && is_divided(row) {
                return None;
            }
        }
        Some(stretch)
    }

    #[test]
    fn what_counts_tell_of_a_part_holds_for_all_whatever_the_rest_was() {
        let (mut random, mut checked, mut opened) = (Random::new(7), 0, 0);
        for (place, tree) in model::trees_by_place().filter(|(_, tree)| tree.takes_counters()) {
            let width = model::at(place.into()).unwrap().slots_per_cycle.max(4);
            let mut tried = 0;
            for _ in 0..20_000 {
                let mut stretch = || possible(random_mix(&mut random, tree, width), tree);
                let (Some(part), Some(rest)) = (stretch(), stretch()) else { continue };
                let inputs = std::array::from_fn(|k| part.inputs[k] + rest.inputs[k]);
                let all = counted(part.slots + rest.slots, inputs, tree);
                let Some(all) = possible(all, tree) else { continue };
                let [mut of_part, mut of_all] = [NodeShares::NONE, NodeShares::NONE];
                evaluate(tree, tree.depth(), &all, &mut of_all);
                evaluate(tree, tree.depth(), &CountedInputs { uncounted: rest.slots, ..part }, &mut of_part);
                for (place, row) in tree.nodes.iter().enumerate() {
                    let (Some(told), Some(truth)) = (of_part.get(place), of_all.get(place)) else { continue };
                    assert!(
                        told.low - 1e-6 <= truth.value && truth.value <= told.high + 1e-6,
                        "{row:?}: {} between {} and {}",
                        truth.value,
                        told.low,
                        told.high
                    );
                    checked += 1;
                    opened += u32::from(
                        matches!(&row.formula, Formula::Of(expr) if !is_mean(expr, tree, &|_| false)),
                    );
                }
                tried += 1;
                if tried == 100 {
                    break;
                }
            }
        }
        assert!(checked > 20_000 && opened > 1_000, "{checked} {opened}");
    }
}
