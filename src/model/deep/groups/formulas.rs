//! Formulas of a core's own tree, in a group in which its inputs have other places.
#![forbid(unsafe_code)]

use crate::model::tree::{BalanceInputs, CorrectionInputs, Expr, Formula, NodeRow, RetirementInputs};

/// Inputs that a formula of the own tree takes.
pub(super) fn inputs_of(formula: &Formula) -> Vec<usize> {
    match formula {
        Formula::Slots(input) => vec![*input],
        Formula::Corrected(of) => [&[of.slots], of.less, of.more].concat(),
        Formula::Balance(of) => [of.more, of.less].concat(),
        Formula::Retired(of) => [of.stalls, of.not_stalls, &[of.retired, of.dispatched]].concat(),
        Formula::Rest | Formula::NoCounter => Vec::new(),
        Formula::Of(expr) => inputs_of_expr(expr),
    }
}

fn inputs_of_expr(expr: &Expr) -> Vec<usize> {
    match expr {
        Expr::Number(_) | Expr::Slots | Expr::Node(_) => Vec::new(),
        Expr::Input(input) => vec![*input],
        Expr::Sum(a, b)
        | Expr::Difference(a, b)
        | Expr::Product(a, b)
        | Expr::Quotient(a, b)
        | Expr::Least(a, b)
        | Expr::Greatest(a, b)
        | Expr::Part(a, b) => [inputs_of_expr(a), inputs_of_expr(b)].concat(),
        Expr::IfLess(all) => all.iter().flat_map(inputs_of_expr).collect(),
    }
}

/// A formula of the own tree, with its inputs where they are now.
pub(super) fn moved_formula(formula: &Formula, moved: &dyn Fn(usize) -> usize) -> Formula {
    let all = |places: &[usize]| -> &'static [usize] {
        places.iter().map(|place| moved(*place)).collect::<Vec<_>>().leak()
    };
    match formula {
        Formula::Slots(input) => Formula::Slots(moved(*input)),
        Formula::Corrected(of) => Formula::Corrected(leaked(CorrectionInputs {
            slots: moved(of.slots),
            less: all(of.less),
            more: all(of.more),
        })),
        Formula::Balance(of) => {
            Formula::Balance(leaked(BalanceInputs { more: all(of.more), less: all(of.less) }))
        }
        Formula::Retired(of) => Formula::Retired(leaked(RetirementInputs {
            stalls: all(of.stalls),
            not_stalls: all(of.not_stalls),
            retired: moved(of.retired),
            dispatched: moved(of.dispatched),
        })),
        Formula::Rest => Formula::Rest,
        Formula::NoCounter => Formula::NoCounter,
        Formula::Of(expr) => Formula::Of(Box::leak(Box::new(moved_expr(expr, moved)))),
    }
}

pub(super) fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// A formula of a root of the own tree, as a share, with its inputs where they are now, but for one of which there are so many in each slot.
/// `above`: the roots that have been, all others of what is the rest.
pub(super) fn as_share(
    formula: &Formula,
    (input, in_a_slot): (usize, f64),
    moved: &dyn Fn(usize) -> usize,
    above: &[NodeRow],
) -> Expr {
    let of = |place: usize| match place == input {
        true => Expr::Product(leaked(Expr::Slots), leaked(Expr::Number(in_a_slot))),
        false => Expr::Input(moved(place)),
    };
    // (each slot that there is less of one thing is one more of another)
    let balance = |first: Expr, more: &[usize], less: &[usize]| {
        let all = more.iter().fold(first, |all, place| Expr::Sum(leaked(all), leaked(of(*place))));
        less.iter().fold(all, |all, place| Expr::Difference(leaked(all), leaked(of(*place))))
    };
    let share = |slots: Expr| Expr::Quotient(leaked(slots), leaked(Expr::Slots));
    match formula {
        Formula::Slots(place) => share(of(*place)),
        Formula::Corrected(all) => share(balance(of(all.slots), all.more, all.less)),
        Formula::Balance(all) => share(balance(Expr::Number(0.0), all.more, all.less)),
        Formula::Retired(all) => {
            let left = balance(Expr::Slots, all.not_stalls, all.stalls);
            let part = Expr::Part(leaked(of(all.retired)), leaked(of(all.dispatched)));
            Expr::Product(leaked(share(left)), leaked(part))
        }
        Formula::Rest | Formula::NoCounter => above
            .iter()
            .fold(Expr::Number(1.0), |left, row| Expr::Difference(leaked(left), leaked(Expr::Node(row.id)))),
        Formula::Of(expr) => moved_expr(expr, moved),
    }
}

fn moved_expr(expr: &Expr, moved: &dyn Fn(usize) -> usize) -> Expr {
    let one = |expr: &Expr| -> &'static Expr { Box::leak(Box::new(moved_expr(expr, moved))) };
    match expr {
        Expr::Number(number) => Expr::Number(*number),
        Expr::Input(input) => Expr::Input(moved(*input)),
        Expr::Slots => Expr::Slots,
        Expr::Node(id) => Expr::Node(*id),
        Expr::Sum(a, b) => Expr::Sum(one(a), one(b)),
        Expr::Difference(a, b) => Expr::Difference(one(a), one(b)),
        Expr::Product(a, b) => Expr::Product(one(a), one(b)),
        Expr::Quotient(a, b) => Expr::Quotient(one(a), one(b)),
        Expr::Least(a, b) => Expr::Least(one(a), one(b)),
        Expr::Greatest(a, b) => Expr::Greatest(one(a), one(b)),
        Expr::Part(a, b) => Expr::Part(one(a), one(b)),
        Expr::IfLess(all) => {
            Expr::IfLess(Box::leak(Box::new([0, 1, 2, 3].map(|k| moved_expr(&all[k], moved)))))
        }
    }
}
