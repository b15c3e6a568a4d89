//! Companion figures in words.

use crate::model::CompanionFigure;
use crate::words::percent;

/// So many digits say what the interval leaves to say.
const DIGITS: i32 = 3;

impl CompanionFigure {
    /// The same of a part of what it is of: not told, as nobody knows what the rest did.
    #[must_use]
    pub fn of_a_part(self) -> CompanionFigure {
        let why = if self.why.is_empty() { "a part of the program was not counted".into() } else { self.why };
        CompanionFigure { value: None, low: None, high: None, why, ..self }
    }

    fn number(&self, value: f64) -> String {
        if self.unit == "share" {
            return percent(value);
        }
        let digits =
            if value == 0.0 { 0 } else { (DIGITS - 1 - value.abs().log10().floor() as i32).clamp(0, 6) };
        format!("{value:.*}", digits as usize)
    }

    /// "info_thread_ipc 1.23 per cycle (between 1.20 and 1.26)"; None: it has no value.
    fn text(&self) -> Option<String> {
        let value = self.number(self.value?);
        // (a file's metric may have no unit)
        let has_word = self.unit != "share" && !self.unit.is_empty();
        let unit = if has_word { format!(" {}", self.unit) } else { String::new() };
        let ends = match (self.low, self.high) {
            (Some(low), Some(high)) => format!("between {} and {}", self.number(low), self.number(high)),
            (Some(low), None) => format!("{} or more", self.number(low)),
            (None, Some(high)) => format!("{} or less", self.number(high)),
            (None, None) => "it may be anything".into(),
        };
        Some(format!("{} {value}{unit} ({ends})", self.name))
    }
}

/// A line for each that was measured, and one of those that were not for each reason.
pub fn lines(all: &[CompanionFigure]) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().filter_map(CompanionFigure::text).collect();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in all.iter().filter(|one| one.value.is_none()) {
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, names)) => names.push(&one.name),
            None => reasons.push((&one.why, vec![&one.name])),
        }
    }
    lines.extend(
        reasons.into_iter().map(|(why, names)| format!("not measured ({why}): {}", names.join(", "))),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(unit: &str, value: f64, low: f64, high: Option<f64>) -> CompanionFigure {
        let (name, unit) = ("info_thread_ipc".into(), unit.into());
        CompanionFigure { name, unit, value: Some(value), low: Some(low), high, why: String::new() }
    }

    #[test]
    fn a_figure_has_three_digits_and_its_ends() {
        let text = |unit, value, low, high| of(unit, value, low, high).text().unwrap();
        assert_eq!(
            text("per cycle", 1.2345, 1.2, Some(1.3)),
            "info_thread_ipc 1.23 per cycle (between 1.20 and 1.30)"
        );
        assert_eq!(
            text("share", 0.5, 0.25, Some(1.0)),
            "info_thread_ipc 50.0 % (between 25.0 % and 100.0 %)"
        );
        assert_eq!(
            text("instructions", 12345.6, 9000.0, None),
            "info_thread_ipc 12346 instructions (9000 or more)"
        );
        assert_eq!(
            text("GB/s", 0.00123, 0.0, Some(0.01)),
            "info_thread_ipc 0.00123 GB/s (between 0 and 0.0100)"
        );
        assert_eq!(text("", 2.0, 1.0, Some(3.0)), "info_thread_ipc 2.00 (between 1.00 and 3.00)");
    }

    #[test]
    fn what_was_not_measured_has_its_reason() {
        let whole = of("per cycle", 1.0, 0.9, Some(1.1));
        let lines = lines(&[whole.clone(), whole.of_a_part()]);
        assert_eq!(lines[1], "not measured (a part of the program was not counted): info_thread_ipc");
    }
}
