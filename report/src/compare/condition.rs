//! Changes at which a comparison fails: of a node's share, and only where the bounds leave no doubt.
#![forbid(unsafe_code)]

use super::{Change, Comparison, RegionChange};
use std::str::FromStr;

/// A share has changed by more than so much, upwards or downwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As it was given.
    text: String,
    /// Empty: of the whole.
    region: String,
    /// As comparisons name it.
    figure: &'static str,
    falls: bool,
    /// As a share.
    by: f64,
}

/// What a comparison says of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionState {
    /// All of the difference's interval is beyond it, as this says.
    Holds(String),
    /// Some of it is not.
    DoesNot,
    /// Why it is not known.
    Unknown(String),
}

impl FromStr for Condition {
    type Err = String;

    /// `[REGION:]NODE<POINTS` or `[REGION:]NODE>POINTS`.
    fn from_str(text: &str) -> Result<Condition, String> {
        let wrong = |why: &str| {
            format!(
                "{why}: a condition is NODE>POINTS or NODE<POINTS, as in memory_bound>2 or retiring<-1, of a region REGION:NODE>POINTS"
            )
        };
        let (place, of_name) =
            text.rmatch_indices(['<', '>']).next().ok_or_else(|| wrong("there is no < or >"))?;
        let (name, points) = (&text[..place], &text[place + 1..]);
        let (region, node) = name.rsplit_once(':').unwrap_or(("", name));
        let region = region.trim_start();
        let points: f64 =
            points.trim().parse().map_err(|_| wrong(&format!("{points} is no number of points")))?;
        if !points.is_finite() {
            return Err(wrong(&format!("{points} is no number of points")));
        }
        let node = node.trim();
        let figure = topdown::metric_of_name(node.strip_prefix("tma_").unwrap_or(node))
            .ok_or_else(|| wrong(&format!("there is no node {node}")))?;
        Ok(Condition {
            text: text.into(),
            region: region.into(),
            figure: figure.field(),
            falls: of_name == "<",
            by: points / 100.0,
        })
    }
}

impl Condition {
    /// Several, with commas between them; names of regions may have some, too.
    ///
    /// # Errors
    /// One is none; the text says which.
    pub fn list(text: &str) -> Result<Vec<Condition>, String> {
        let mut all = Vec::new();
        let mut begun = String::new();
        for piece in text.split(',') {
            begun += piece;
            match begun.parse() {
                Ok(condition) => {
                    all.push(condition);
                    begun.clear();
                }
                Err(_) => begun.push(','),
            }
        }
        match begun.strip_suffix(',') {
            Some(rest) => Err(rest.parse::<Condition>().expect_err("it was none before")),
            None => Ok(all),
        }
    }
}

impl Comparison {
    /// Whether a condition holds. That of the whole is one of each region where there is no whole, as of benchmarks.
    #[must_use]
    pub fn state_of(&self, condition: &Condition) -> ConditionState {
        let Condition { text, region, .. } = condition;
        let has_whole = self.regions.iter().any(|one| one.region.is_empty());
        // (of one that is only before, or only after, nothing has changed, and some are timed alone)
        let is_benchmark = |one: &RegionChange| {
            let known =
                condition.change_in(one).is_some_and(|change| change.before.or(change.after).is_some());
            region.is_empty() && !has_whole && one.in_both() && known
        };
        let is_meant = |one: &&RegionChange| one.region == *region || is_benchmark(one);
        let rows: Vec<&RegionChange> = self.regions.iter().filter(is_meant).collect();
        if rows.is_empty() {
            return ConditionState::Unknown(match region.is_empty() {
                true => format!("{text}: no benchmark of both has {}", condition.figure),
                false => format!("{text}: neither report has a region {region}"),
            });
        }
        let (mut held, mut unknown) = (Vec::new(), None);
        for state in rows.into_iter().map(|one| condition.state_in(one)) {
            match state {
                ConditionState::Holds(what) => held.push(what),
                ConditionState::Unknown(why) => unknown = unknown.or(Some(why)),
                ConditionState::DoesNot => {}
            }
        }
        match (held.is_empty(), unknown) {
            (false, _) => ConditionState::Holds(held.join("; ")),
            (true, Some(why)) => ConditionState::Unknown(why),
            (true, None) => ConditionState::DoesNot,
        }
    }
}

impl Condition {
    fn change_in<'c>(&self, row: &'c RegionChange) -> Option<&'c Change> {
        row.figures.iter().find(|(name, _)| *name == self.figure).map(|(_, change)| change)
    }

    /// Whether it holds in a region.
    fn state_in(&self, row: &RegionChange) -> ConditionState {
        let Condition { text, figure, falls, by, .. } = self;
        let what = if row.region.is_empty() { String::new() } else { format!(" of {}", row.region) };
        let change = self.change_in(row);
        let Some(Change { difference: Some(difference), ends: Some([least, most]), .. }) = change else {
            return ConditionState::Unknown(format!("{text}: {figure}{what} was not measured in both"));
        };
        let holds = if *falls { most < by } else { least > by };
        if !holds {
            return ConditionState::DoesNot;
        }
        let points = |share: f64| 100.0 * share;
        ConditionState::Holds(format!(
            "{text}: {figure}{what} has changed by {:+.1} points ({:+.1} to {:+.1})",
            points(*difference),
            points(*least),
            points(*most)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::ShareInterval;

    fn interval(value: f64, error: f64) -> ShareInterval {
        ShareInterval { value, low: value - error, high: value + error }
    }

    fn comparison(region: &str, before: ShareInterval, after: ShareInterval) -> Comparison {
        let figures = vec![("retiring", Change::of_intervals([Some(before), Some(after)]))];
        Comparison {
            schema: crate::SCHEMA,
            files: ["a".into(), "b".into()],
            path: None,
            regions: vec![RegionChange { region: region.into(), figures }],
        }
    }

    fn holds(comparison: &Comparison, condition: &str) -> bool {
        matches!(comparison.state_of(&condition.parse().unwrap()), ConditionState::Holds(_))
    }

    #[test]
    fn only_what_the_bounds_leave_no_doubt_of_fails() {
        let fallen = comparison("", interval(0.50, 0.004), interval(0.48, 0.004));
        assert!(holds(&fallen, "retiring<-1") && holds(&fallen, "tma_retiring<0"));
        // (-2 points within 0.8)
        assert!(!holds(&fallen, "retiring<-1.3"));
        assert!(holds(&fallen, "retiring>-3"));
        assert!(!holds(&fallen, "retiring>1") && !holds(&fallen, "retiring<-2"));
        let region = comparison("a:b", interval(0.20, 0.0), interval(0.25, 0.01));
        assert!(holds(&region, "a:b:retiring>3.9") && !holds(&region, "a:b:retiring>4.1"));
        // (intervals that are not around what is told: from -2.1 to 2.9 points)
        let value = |low: f64, value: f64, high: f64| ShareInterval { value, low, high };
        let told = comparison("", value(0.10, 0.10, 0.12), value(0.099, 0.12, 0.129));
        assert!(holds(&told, "retiring<3") && !holds(&told, "retiring<2.8"));
        assert!(holds(&told, "retiring>-2.2") && !holds(&told, "retiring>-2"));
        let unknown = |condition: &str| match region.state_of(&condition.parse().unwrap()) {
            ConditionState::Unknown(why) => why,
            state => panic!("{condition}: {state:?}"),
        };
        assert_eq!(unknown("retiring>1"), "retiring>1: no benchmark of both has retiring");
        assert_eq!(
            unknown("a:b:core_bound>1"),
            "a:b:core_bound>1: core_bound of a:b was not measured in both"
        );
    }

    #[test]
    fn equal_programs_never_fail_and_two_points_always_do() {
        // (each side anywhere within its bound of its truth)
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..10_000 {
            let (truth, errors) = (0.1 + 0.8 * random(), [0.02 * random(), 0.02 * random()]);
            let mut told = |truth: f64, error: f64| interval(truth + error * (2.0 * random() - 1.0), error);
            let (before, after) = (told(truth, errors[0]), told(truth, errors[1]));
            let equal = comparison("", before, after);
            assert!(!holds(&equal, "retiring<0") && !holds(&equal, "retiring>0"), "{equal:?}");
            let small = [told(truth, 0.002), told(truth - 0.02, 0.002)];
            assert!(holds(&comparison("", small[0], small[1]), "retiring<-1"));
        }
    }

    #[test]
    fn what_is_no_condition_is_named() {
        for (text, why) in [
            ("retiring", "there is no < or >"),
            ("retiring>x", "x is no number of points"),
            ("retiring<inf", "inf is no number of points"),
            ("slots>5", "there is no node slots"),
            ("", "there is no < or >"),
        ] {
            for list in [text.into(), format!("retiring<1,{text}")] {
                let said = Condition::list(&list).unwrap_err();
                assert!(said.starts_with(why), "{list}: {said}");
            }
        }
        let list = Condition::list("retiring<-1,f<int, long>:core_bound>2,g:retiring>0.5").unwrap();
        let regions: Vec<&str> = list.iter().map(|one| &*one.region).collect();
        assert_eq!(regions, ["", "f<int, long>", "g"]);
    }
}
