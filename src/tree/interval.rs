//! Numbers that are known to lie between two ends.
#![forbid(unsafe_code)]

use crate::model::tree::Expr;

/// A value, and the ends between which the truth lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// The greater and the lesser of two numbers, the latter of which is one: of something that is none, that. (One instruction each, unlike
/// f64's own.)
pub(crate) trait Ends {
    fn at_least(self, least: Self) -> Self;
    fn at_most(self, most: Self) -> Self;
}

impl Ends for f64 {
    #[inline(always)]
    fn at_least(self, least: f64) -> f64 {
        if self > least { self } else { least }
    }

    #[inline(always)]
    fn at_most(self, most: f64) -> f64 {
        if self < most { self } else { most }
    }
}

impl Interval {
    pub fn exact(value: f64) -> Interval {
        Interval { value, low: value, high: value }
    }

    /// As narrow as the ends of both operands allow, for operations that are monotonic in each of them.
    fn by(self, other: Interval, operation: impl Fn(f64, f64) -> f64) -> Interval {
        let corners =
            [(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)]
                .map(|(a, b)| operation(a, b));
        // of ends that are infinite: infinity less itself, or times zero, may be anything
        let unknown = corners.iter().any(|corner| corner.is_nan());
        let (low, high) = if unknown {
            (f64::NEG_INFINITY, f64::INFINITY)
        } else {
            (
                corners.into_iter().fold(f64::INFINITY, f64::at_most),
                corners.into_iter().fold(f64::NEG_INFINITY, f64::at_least),
            )
        };
        Interval { value: operation(self.value, other.value), low, high }
    }

    /// By an operation that no end of either makes less.
    fn each(self, other: Interval, operation: impl Fn(f64, f64) -> f64) -> Interval {
        Interval {
            value: operation(self.value, other.value),
            low: operation(self.low, other.low),
            high: operation(self.high, other.high),
        }
    }

    /// With these ends; an end that is none, of infinities, may be anything.
    fn between(value: f64, low: f64, high: f64) -> Interval {
        Interval { value, low: low.at_least(f64::NEG_INFINITY), high: high.at_most(f64::INFINITY) }
    }

    /// Whether both ends of it are finite, and none is below zero.
    fn is_amount(&self) -> bool {
        self.low >= 0.0 && self.high < f64::INFINITY
    }

    fn times(self, other: Interval) -> Interval {
        if self.is_amount() && other.is_amount() {
            return Interval::between(self.value * other.value, self.low * other.low, self.high * other.high);
        }
        self.by(other, |a, b| a * b)
    }

    /// All that one of two may be.
    fn or(self, other: Interval, value: f64) -> Interval {
        Interval { value, low: self.low.at_most(other.low), high: self.high.at_least(other.high) }
    }

    /// None: divided by nothing.
    fn over(self, other: Interval) -> Option<Interval> {
        if other.value == 0.0 {
            return None;
        }
        if self.is_amount() && other.is_amount() && other.low > 0.0 {
            let value = self.value / other.value;
            return Some(Interval::between(value, self.low / other.high, self.high / other.low));
        }
        if other.low <= 0.0 && other.high >= 0.0 {
            let value = self.value / other.value;
            return Some(Interval { value, low: f64::NEG_INFINITY, high: f64::INFINITY });
        }
        Some(self.by(other, |a, b| a / b))
    }
}

/// The value of an expression. None: something in it was not measured, or it divides by nothing.
#[inline(always)]
pub(crate) fn evaluate(expr: &Expr, leaf: &impl Fn(&Expr) -> Option<Interval>) -> Option<Interval> {
    match expr {
        Expr::Number(number) => Some(Interval::exact(*number)),
        Expr::Input(_) | Expr::Slots | Expr::Node(_) => leaf(expr),
        Expr::Part(..) | Expr::IfLess(_) => of_parts(expr, leaf),
        _ => of_operands(expr, leaf),
    }
}

/// Of what trees of deeper levels have alone.
#[cold]
fn of_parts(expr: &Expr, leaf: &impl Fn(&Expr) -> Option<Interval>) -> Option<Interval> {
    match expr {
        Expr::Part(a, b) => {
            let (a, b) = (evaluate(a, leaf)?, evaluate(b, leaf)?);
            let is_nothing = a.low == 0.0 && a.high == 0.0;
            match b.value == 0.0 {
                true if is_nothing => Some(Interval::exact(0.0)),
                true => Some(Interval { value: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY }),
                false => a.over(b),
            }
        }
        Expr::IfLess([a, b, less, not_less]) => {
            let (a, b) = (evaluate(a, leaf)?, evaluate(b, leaf)?);
            if a.high < b.low {
                return evaluate(less, leaf);
            }
            if a.low >= b.high {
                return evaluate(not_less, leaf);
            }
            let (less, not_less) = (evaluate(less, leaf)?, evaluate(not_less, leaf)?);
            Some(less.or(not_less, if a.value < b.value { less.value } else { not_less.value }))
        }
        _ => None,
    }
}

fn of_operands(expr: &Expr, leaf: &impl Fn(&Expr) -> Option<Interval>) -> Option<Interval> {
    let (Expr::Sum(a, b)
    | Expr::Difference(a, b)
    | Expr::Product(a, b)
    | Expr::Quotient(a, b)
    | Expr::Least(a, b)
    | Expr::Greatest(a, b)) = expr
    else {
        return None;
    };
    let (a, b) = (evaluate(a, leaf)?, evaluate(b, leaf)?);
    match expr {
        Expr::Sum(..) => Some(Interval::between(a.value + b.value, a.low + b.low, a.high + b.high)),
        Expr::Difference(..) => Some(Interval::between(a.value - b.value, a.low - b.high, a.high - b.low)),
        Expr::Product(..) => Some(a.times(b)),
        Expr::Quotient(..) => a.over(b),
        Expr::Least(..) => Some(a.each(b, f64::at_most)),
        _ => Some(a.each(b, f64::at_least)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Expr::{Difference, Greatest, Input, Least, Number, Product, Quotient, Sum};

    const A: &Expr = &Input(0);
    const B: &Expr = &Input(1);

    fn of(expr: &Expr, inputs: [Option<Interval>; 2]) -> Option<Interval> {
        evaluate(expr, &|leaf| match leaf {
            Input(k) => inputs[*k],
            _ => None,
        })
    }

    fn interval(value: f64, low: f64, high: f64) -> Interval {
        Interval { value, low, high }
    }

    /// Whatever the operands are within their ends, the result is within its own, and its ends are reached.
    #[test]
    fn the_ends_of_a_result_are_the_farthest_that_its_operands_allow() {
        type Operation = fn(f64, f64) -> f64;
        let all: [(Expr, Operation); 6] = [
            (Sum(A, B), |a, b| a + b),
            (Difference(A, B), |a, b| a - b),
            (Product(A, B), |a, b| a * b),
            (Quotient(A, B), |a, b| a / b),
            (Least(A, B), f64::min),
            (Greatest(A, B), f64::max),
        ];
        for (a, b) in [
            (interval(3.0, 2.0, 5.0), interval(4.0, 1.0, 4.0)),
            (interval(0.5, -1.0, 2.0), interval(-2.0, -3.0, -1.0)),
            (interval(-4.0, -5.0, 0.0), interval(2.0, 0.5, 8.0)),
        ] {
            for (expr, operation) in &all {
                let result = of(expr, [Some(a), Some(b)]).unwrap();
                assert_eq!(result.value, operation(a.value, b.value), "{expr:?}");
                let between =
                    |x: Interval| (0..=10).map(move |k| x.low + (x.high - x.low) * f64::from(k) / 10.0);
                let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                for (a, b) in between(a).flat_map(|a| between(b).map(move |b| (a, b))) {
                    let truth = operation(a, b);
                    assert!(result.low - 1e-12 <= truth && truth <= result.high + 1e-12, "{expr:?} {truth}");
                    (low, high) = (low.min(truth), high.max(truth));
                }
                assert!((low - result.low).abs() < 1e-12 && (high - result.high).abs() < 1e-12, "{expr:?}");
            }
        }
    }

    #[test]
    fn what_may_be_divided_by_zero_may_be_anything_and_what_is_has_no_value() {
        let (two, near_zero) = (interval(2.0, 1.0, 3.0), interval(1.0, -1.0, 3.0));
        let quotient = of(&Quotient(A, B), [Some(two), Some(near_zero)]).unwrap();
        assert_eq!(quotient, interval(2.0, f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(of(&Quotient(A, B), [Some(two), Some(Interval::exact(0.0))]), None);
    }

    #[test]
    fn what_was_not_measured_is_not_measured_whatever_is_done_with_it() {
        let two = Some(interval(2.0, 1.0, 3.0));
        for expr in [Sum(A, B), Product(B, &Number(0.0)), Quotient(A, B), Greatest(B, A)] {
            assert_eq!(of(&expr, [two, None]), None, "{expr:?}");
        }
        let unbounded = Some(interval(2.0, f64::NEG_INFINITY, f64::INFINITY));
        let none_of_it = of(&Product(A, &Number(0.0)), [unbounded, None]).unwrap();
        assert_eq!(none_of_it, interval(0.0, f64::NEG_INFINITY, f64::INFINITY));
    }
}
