//! The bottleneck view in words (`bottlenecks.list`).

use crate::model::BottleneckFigure;
use crate::nodes::ShareInterval;
use crate::words::percent;

const LIST: &str = include_str!("bottlenecks.list");
/// What may be less and may be more has no figure of its own.
const LEAST: f64 = 0.01;

/// What a bottleneck of this name is, and what to do about it.
fn words(name: &str) -> Option<(&'static str, &'static str)> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    let mut all = lines.filter_map(|line| line.split_once('|'));
    let (_, rest) = all.find(|(own, _)| own.trim() == name)?;
    rest.split_once('|').map(|(meaning, advice)| (meaning.trim(), advice.trim()))
}

impl BottleneckFigure {
    /// One of perf's name, without "tma_bottleneck_".
    #[must_use]
    pub fn new(name: &str, share: ShareInterval, threshold: f64) -> BottleneckFigure {
        let (meaning, advice) = words(name).unwrap_or((name, ""));
        let ShareInterval { value, low, high } = share;
        BottleneckFigure {
            name: name.into(),
            value: (low >= LEAST || high < LEAST).then_some(value),
            low,
            high,
            threshold,
            meaning: meaning.into(),
            advice: advice.into(),
        }
    }

    /// The same in words, of such a figure, with advice where it is, or may be, above its threshold.
    fn text(&self, value: f64) -> String {
        let BottleneckFigure { low, high, threshold, meaning, advice, .. } = self;
        let advice = match (low > threshold, value > *threshold) {
            (true, _) => format!(": {advice}"),
            (_, true) => format!("; if so: {advice}"),
            _ => String::new(),
        };
        let [value, low, high] = [value, *low, *high].map(percent);
        format!("{value} {meaning} (between {low} and {high}){advice}")
    }
}

/// The view, a line for each figure that is there for certain, and one of what may be; none where none was measured.
pub fn lines(all: &[BottleneckFigure]) -> Vec<String> {
    let there = all.iter().filter(|one| one.low >= LEAST);
    let mut lines: Vec<String> = there.filter_map(|one| Some(one.text(one.value?))).collect();
    let unknown = all.iter().filter(|one| one.value.is_none());
    let small = all.iter().filter(|one| one.high < LEAST);
    let up_to = |one: &BottleneckFigure| format!("{} (up to {})", one.meaning, percent(one.high));
    let mut list = |what: &str, names: Vec<String>| {
        if !names.is_empty() {
            lines.push(format!("{what}: {}", names.join("; ")));
        }
    };
    list("not known for certain", unknown.map(up_to).collect());
    let below = format!("less than {} each", percent(LEAST));
    list(&below, small.map(|one| one.meaning.clone()).collect());
    // (what is left is told as the rest of all; where there is more than all, none is left)
    let sum: f64 = all.iter().filter_map(|one| one.value).sum();
    if sum > 1.0 + 1e-9 {
        lines.push(format!("together {}: their formulas overlap", percent(sum)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: f64, low: f64, high: f64) -> BottleneckFigure {
        BottleneckFigure::new(name, ShareInterval { value, low, high }, 0.2)
    }

    #[test]
    fn each_bottleneck_has_one_line() {
        let names: Vec<&str> = LIST
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split_once('|')?.0.trim()))
            .collect();
        for name in &names {
            assert!(words(name).is_some_and(|(meaning, advice)| !meaning.is_empty() && !advice.is_empty()));
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{name}");
        }
    }

    #[test]
    fn each_bottleneck_of_each_tree_has_its_line() {
        let trees = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../cpus/deep")).unwrap();
        let texts = trees.map(|file| file.unwrap().path());
        let texts = texts.filter(|path| path.extension().is_some_and(|kind| kind == "txt"));
        let mut named = 0;
        for text in texts.map(|path| std::fs::read_to_string(path).unwrap()) {
            for line in text.lines().filter_map(|line| line.strip_prefix("bottleneck ")) {
                let name = line.split_whitespace().next().unwrap();
                assert!(words(name).is_some(), "{name}");
                named += 1;
            }
        }
        assert!(named > 100, "{named}");
    }

    #[test]
    fn what_may_be_nothing_has_no_value() {
        let value = |value, low, high| of("big_code", value, low, high).value;
        assert_eq!(value(0.2, 0.0, 0.5), None);
        assert_eq!(value(0.2, 0.1, 0.5), Some(0.2));
        assert_eq!(value(0.002, 0.0, 0.005), Some(0.002));
    }

    #[test]
    fn advice_is_given_where_the_threshold_is_passed() {
        let all = [
            of("big_code", 0.5, 0.4, 0.6),
            of("memory_data_tlbs", 0.22, 0.1, 0.3),
            of("mispredictions", 0.19, 0.1, 0.3),
            of("compute_bound_est", 0.0, 0.0, 0.004),
            of("useful_work", 0.0, 0.0, 0.3),
        ];
        let lines = lines(&all);
        assert!(lines[0].starts_with("50.0 % code that does not fit") && lines[0].contains("): make hot"));
        assert!(lines[1].contains("); if so: large pages"), "{lines:?}");
        assert!(lines[2].ends_with("(between 10.0 % and 30.0 %)"), "{lines:?}");
        assert_eq!(lines[3], "not known for certain: work that the program asks for (up to 30.0 %)");
        assert_eq!(lines[4], "less than 1.0 % each: execution units");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn more_than_all_is_said() {
        let lines = lines(&[of("big_code", 0.7, 0.6, 0.8), of("useful_work", 0.5, 0.4, 0.6)]);
        assert_eq!(lines[2], "together 120.0 %: their formulas overlap");
    }
}
