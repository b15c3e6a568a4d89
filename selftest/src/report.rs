//! The report: a head, a block for each check as it is done, and a line that sums up.
#![forbid(unsafe_code)]

use super::sources::WorkloadComparison;
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use topdown_report::clean;
use topdown_report::terminal::{Layout, Progress, columns};

/// What a check found. `Err`: it could not be tried, and why.
pub type CheckResult = Result<Observation, CheckObstacle>;

/// What was seen, and whether it is what was expected.
#[derive(Debug)]
pub struct Observation {
    pub holds: bool,
    pub what: String,
}

/// Why a check could not be tried.
#[derive(Debug)]
pub struct CheckObstacle(pub String);

impl<E: std::error::Error> From<E> for CheckObstacle {
    fn from(error: E) -> CheckObstacle {
        CheckObstacle(error.to_string())
    }
}

/// The verdict in JSON.
fn word(tried: &CheckResult) -> &'static str {
    match tried {
        Ok(Observation { holds: true, .. }) => "holds",
        Ok(Observation { holds: false, .. }) => "fails",
        Err(_) => "untried",
    }
}

/// A check that was tried.
pub fn seen(holds: bool, what: String) -> CheckResult {
    Ok(Observation { holds, what })
}

/// A check that could not be tried.
pub fn untried<T>(why: impl Into<String>) -> Result<T, CheckObstacle> {
    Err(CheckObstacle(why.into()))
}

/// A report as it is written. Each check is out before the next begins: one that ends the program leaves the rest. As JSON it
/// is written at the end.
pub struct CheckReport<W: Write> {
    to: W,
    json: Option<ReportJson>,
    hold: usize,
    do_not: usize,
    not_tried: usize,
    /// Of a text.
    layout: Layout,
    /// What is tried, of so many checks, where the report does not come to the same terminal.
    progress: Option<(Progress, usize)>,
}

/// The report for scripts.
#[derive(Default, Serialize)]
struct ReportJson {
    machine: Vec<JsonFact>,
    notes: Vec<String>,
    checks: Vec<JsonCheck>,
    sources: Vec<WorkloadComparison>,
    hold: usize,
    do_not: usize,
    not_tried: usize,
}

#[derive(Serialize)]
struct JsonFact {
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
struct JsonCheck {
    name: String,
    verdict: &'static str,
    expected: String,
    facts: String,
    found: String,
}

impl<W: Write> CheckReport<W> {
    /// A report, to be written there.
    pub fn new(to: W, json: bool) -> CheckReport<W> {
        let json = json.then(ReportJson::default);
        CheckReport { to, json, hold: 0, do_not: 0, not_tried: 0, progress: None, layout: Layout::FILE }
    }

    /// The same, in lines that fit.
    pub fn laid_out(self, layout: Layout) -> CheckReport<W> {
        CheckReport { layout, ..self }
    }

    /// The same, which tells meanwhile how many of so many checks are done.
    pub fn telling(self, checks: usize) -> CheckReport<W> {
        CheckReport { progress: Some((Progress::of("selftest"), checks)), ..self }
    }

    /// The head.
    pub fn head(&mut self, lines: Vec<(&'static str, String)>) -> io::Result<()> {
        if let Some(json) = &mut self.json {
            json.machine.extend(lines.into_iter().map(|(name, value)| JsonFact { name, value }));
            return Ok(());
        }
        self.line("topdown selftest")?;
        for (name, value) in lines {
            self.line(&format!("{name:<11} {value}"))?;
        }
        Ok(())
    }

    /// A line of its own.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        if let Some(json) = &mut self.json {
            json.notes.push(text.trim().to_string());
            return Ok(());
        }
        let fitting = |line: &str| {
            let line = clean(line);
            if columns(&line) > self.layout.columns { self.layout.sentence(&line) } else { line }
        };
        let text: Vec<String> = text.split('\n').map(fitting).collect();
        writeln!(self.to, "{}", text.join("\n"))?;
        self.to.flush()
    }

    /// A check: what is assumed, and where that is written.
    pub fn check(&mut self, name: &str, assumed: &str, facts: &str, tried: CheckResult) -> io::Result<()> {
        let (verdict, seen) = match &tried {
            Ok(Observation { holds: true, what }) => ("holds", what),
            Ok(Observation { holds: false, what }) => ("DOES NOT HOLD", what),
            Err(CheckObstacle(why)) => ("could not be tried", why),
        };
        *match &tried {
            Ok(Observation { holds: true, .. }) => &mut self.hold,
            Ok(Observation { holds: false, .. }) => &mut self.do_not,
            Err(_) => &mut self.not_tried,
        } += 1;
        let done = self.hold + self.do_not + self.not_tried;
        if let Some((progress, all)) = &mut self.progress {
            progress.at(done, done.max(*all));
        }
        if let Some(json) = &mut self.json {
            json.checks.push(JsonCheck {
                name: name.into(),
                verdict: word(&tried),
                expected: assumed.into(),
                facts: facts.into(),
                found: seen.clone(),
            });
            return Ok(());
        }
        let facts = if facts.is_empty() { String::new() } else { format!(" ({facts})") };
        let label = if tried.is_ok() { "seen" } else { "why" };
        self.line(&format!("\n{name}: {verdict}\n    expected  {assumed}{facts}\n    {label:<8}  {seen}"))
    }

    /// The numbers behind a check of both sources, of which its text tells people.
    pub fn sources(&mut self, compared: WorkloadComparison) {
        if let Some(json) = &mut self.json {
            json.sources.push(compared);
        }
    }

    /// Writes what sums up, and returns it.
    pub fn end(&mut self) -> io::Result<String> {
        self.progress = None;
        let summary = self.summary();
        let Some(json) = self.json.take() else {
            self.line(&format!("\n{summary}"))?;
            return Ok(summary);
        };
        let &mut CheckReport { hold, do_not, not_tried, .. } = self;
        self.to
            .write_all(topdown_report::json(&ReportJson { hold, do_not, not_tried, ..json }).as_bytes())?;
        self.to.flush()?;
        Ok(summary)
    }

    /// So many checks could not be tried, all for a reason that was told.
    pub fn none_of(&mut self, checks: usize) {
        self.not_tried += checks;
    }

    fn summary(&self) -> String {
        let CheckReport { hold, do_not, not_tried, .. } = self;
        format!("selftest: {hold} hold, {do_not} do not, {not_tried} could not be tried")
    }

    /// Success, if something was proved and nothing was refuted.
    pub fn status(&self) -> ExitCode {
        if self.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn is_good(&self) -> bool {
        self.hold > 0 && self.do_not == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(tried: Vec<CheckResult>) -> (String, bool) {
        let mut text = Vec::new();
        let mut report = CheckReport::new(&mut text, false);
        report.head(vec![("CPU", "made up".into())]).unwrap();
        for tried in tried {
            report.check("name", "what was expected", "B.3", tried).unwrap();
        }
        report.end().unwrap();
        let good = report.is_good();
        (String::from_utf8(text).unwrap(), good)
    }

    #[test]
    fn each_verdict_reads_as_it_is_and_counts() {
        let (text, good) =
            written(vec![seen(true, "7".into()), seen(false, "8".into()), untried("no such PMU")]);
        assert_eq!(
            text,
            "topdown selftest\n\
             CPU         made up\n\
             \nname: holds\n    expected  what was expected (B.3)\n    seen      7\n\
             \nname: DOES NOT HOLD\n    expected  what was expected (B.3)\n    seen      8\n\
             \nname: could not be tried\n    expected  what was expected (B.3)\n    why       no such PMU\n\
             \nselftest: 1 hold, 1 do not, 1 could not be tried\n"
        );
        assert!(!good);
    }

    #[test]
    fn on_a_terminal_no_line_is_wider_than_that() {
        let mut text = Vec::new();
        let layout = Layout { columns: 60, is_terminal: true, ..Layout::FILE };
        let mut report = CheckReport::new(&mut text, false).laid_out(layout);
        report.head(vec![("CPU", "made up".into())]).unwrap();
        report.line(&format!("\nNO PMU: {}", "words ".repeat(30))).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\nCPU         made up\n") && text.contains("\nNO PMU: "), "{text}");
        assert!(text.lines().count() > 5 && text.lines().all(|line| line.len() <= 60), "{text}");
    }

    #[test]
    fn only_what_was_tried_and_held_is_success() {
        assert!(written(vec![seen(true, String::new()), untried("")]).1);
        assert!(!written(vec![seen(true, String::new()), seen(false, String::new())]).1);
        assert!(!written(vec![untried("")]).1);
        assert!(!written(vec![]).1);
    }
}
