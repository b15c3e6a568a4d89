//! The dominant bottleneck in words, only as sure as the bound allows.
#![forbid(unsafe_code)]

use crate::account::{Level1, Level2};

/// Name of a category, and what its share of the slots did. Of level 1, each with the two of level 2 that it divides into.
struct Kind {
    name: &'static str,
    what: &'static str,
    parts: [(&'static str, &'static str); 2],
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "retiring",
        what: "of slots do useful work",
        parts: [
            ("retiring, heavy operations", "of slots go into instructions of several operations"),
            ("retiring", "of slots do useful work"),
        ],
    },
    Kind {
        name: "bad speculation",
        what: "of slots are wasted on wrong paths",
        parts: [
            ("branch mispredicts", "of slots are wasted on mispredicted branches"),
            ("machine clears", "of slots are wasted on machine clears"),
        ],
    },
    Kind {
        name: "frontend bound",
        what: "of slots wait for instructions",
        parts: [
            ("fetch latency", "of slots wait for instructions to come at all"),
            ("fetch bandwidth", "of slots get too few instructions"),
        ],
    },
    Kind {
        name: "backend bound",
        what: "of slots wait for data or execution units",
        parts: [
            ("memory bound", "of slots wait for memory"),
            ("core bound", "of slots wait for execution units"),
        ],
    },
];

/// The rule: a category is dominant at level 1 if its share, less the bound, is above each other's, plus the bound. Where
/// two are left they are both named, where more are, none is. Of the dominant one's two parts the larger is named, if it is so by
/// the same rule; else the category itself.
pub fn words(one: Option<&Level1>, two: Option<&Level2>) -> String {
    let Some(one) = one else { return "not measured".into() };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let points = format!("{:.1} points", 100.0 * one.error);
    let most = one.of.iter().copied().fold(0.0, f64::max);
    let mut may_be: Vec<usize> = (0..4).filter(|k| one.of[*k] + one.error >= most - one.error).collect();
    may_be.sort_by(|a, b| one.of[*b].total_cmp(&one.of[*a]));
    match *may_be {
        [k] => {
            let kind = &KINDS[k];
            let part = two.and_then(|two| {
                let (first, second) = (two.of[2 * k], two.of[2 * k + 1]);
                let apart = (first - second).abs() > 2.0 * two.error;
                apart.then(|| if first > second { (first, &kind.parts[0]) } else { (second, &kind.parts[1]) })
            });
            match part {
                // light operations are how it should be: retiring, all of it
                Some((share, (name, what))) if *name != kind.name => {
                    format!("{name}: {} {what}", percent(share))
                }
                _ => format!("{}: {} {}", kind.name, percent(one.of[k]), kind.what),
            }
        }
        [a, b] => {
            let each = |k: usize| format!("{} {}", KINDS[k].name, percent(one.of[k]));
            format!("{} or {}: too close to tell", each(a), each(b))
        }
        _ => format!("cannot be told: the bound is {points}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Shares;

    fn said(one: [f64; 4], two: [f64; 8], error: f64) -> String {
        words(Some(&Shares { of: one, error }), Some(&Shares { of: two, error }))
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
        assert_eq!(words(None, None), "not measured");
    }

    #[test]
    fn level_1_alone_names_its_category() {
        let one = Shares { of: [0.1, 0.1, 0.7, 0.1], error: 0.01 };
        assert_eq!(words(Some(&one), None), "frontend bound: 70 % of slots wait for instructions");
    }
}
