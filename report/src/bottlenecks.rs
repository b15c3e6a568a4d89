//! The bottleneck view in words (`bottlenecks.list`).

use crate::model::BottleneckFigure;
use crate::nodes::ShareInterval;
use crate::words::percent;

const LIST: &str = include_str!("bottlenecks.list");
/// What is less for certain is not shown in words.
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
        BottleneckFigure {
            name: name.into(),
            share,
            threshold,
            meaning: meaning.into(),
            advice: advice.into(),
        }
    }

    /// The same in words, with advice where it is, or may be, above its threshold.
    fn text(&self) -> String {
        let BottleneckFigure { share, threshold, meaning, advice, .. } = self;
        let advice = match (share.low > *threshold, share.value > *threshold) {
            (true, _) => format!(": {advice}"),
            (_, true) => format!("; if so: {advice}"),
            _ => String::new(),
        };
        let [value, low, high] = [share.value, share.low, share.high].map(percent);
        format!("{value} {meaning} (between {low} and {high}){advice}")
    }
}

/// The view, a line for each figure that is there for certain, and one of what may be; none where none was measured.
pub fn lines(all: &[BottleneckFigure]) -> Vec<String> {
    let (there, rest): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.share.low >= LEAST);
    let (unknown, small): (Vec<_>, Vec<_>) = rest.into_iter().partition(|one| one.share.high >= LEAST);
    let mut lines: Vec<String> = there.iter().map(|one| one.text()).collect();
    let up_to = |one: &&BottleneckFigure| format!("{} (up to {})", one.meaning, percent(one.share.high));
    let mut list = |what: &str, names: Vec<String>| {
        if !names.is_empty() {
            lines.push(format!("{what}: {}", names.join("; ")));
        }
    };
    list("not known for certain", unknown.iter().map(up_to).collect());
    let below = format!("less than {} each", percent(LEAST));
    list(&below, small.iter().map(|one| one.meaning.clone()).collect());
    // (what is left is told as the rest of all; where there is more than all, none is left)
    let sum: f64 = all.iter().map(|one| one.share.value).sum();
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
