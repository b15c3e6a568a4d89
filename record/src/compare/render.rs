//! A comparison as a text, CSV and JSON.
#![forbid(unsafe_code)]

use super::{FiguresChange, PartChange, RecordingComparison, TimeChange};
use crate::views::{LEAST_TIME, in_module, in_words, with_ends};
use std::fmt::Write;
use topdown_report::terminal::Layout;
use topdown_report::{
    Format, clean, count, json, number, path_column, percent, quoted, simulated_line, time, yes_or_no,
};

/// Columns of each value, where there is room and where there is little.
const WIDE: usize = 12;
const NARROW: usize = 10;
/// From so many columns on there is room.
const ENOUGH: usize = 86;

fn width(layout: &Layout) -> usize {
    if layout.columns >= ENOUGH { WIDE } else { NARROW }
}

/// A row: a name, both values, and the difference with its interval.
fn row(name: &str, change: &PartChange, layout: &Layout) -> Option<String> {
    let (before, after, difference) = (change.before?, change.after?, change.difference?);
    let [value, low, high] = [difference.value, difference.low, difference.high].map(|part| 100.0 * part);
    let (before, after) = (percent(before.value), percent(after.value));
    let width = width(layout);
    Some(format!(
        "  {name:20}{before:>width$}{after:>width$}{value:>+width$.1} points ({low:+.1} to {high:+.1})"
    ))
}

/// Where it is in one recording alone.
fn only(figures: &FiguresChange) -> Option<String> {
    match (&figures.time.before, &figures.time.after) {
        (Some(before), None) => Some(format!("seen only before: {before} of the time")),
        (None, Some(after)) => Some(format!("seen only after: {after} of the time")),
        _ => None,
    }
}

/// What stands where it is not known whether the time has changed.
const UNSURE: &str = ", not known to have changed";

fn figures(name: &str, figures: &FiguresChange, time_of: &str, layout: &Layout) -> String {
    if let Some(only) = only(figures) {
        return format!("\n{}\n", layout.heading(&layout.sentence(&format!("{name}: {only}"))));
    }
    let mut text = format!("\n{}\n", layout.heading(name));
    if let Some(row) = row("time", &figures.time, layout) {
        let overlap = if figures.time.significant == Some(true) { "" } else { UNSURE };
        let fits = !layout.is_terminal || row.chars().count() + overlap.len() <= layout.columns;
        let overlap = if fits { overlap.into() } else { overlap.replace(", ", "\n    ") };
        text += &format!("{row}{overlap}\n");
    }
    if let (Some(before), Some(after)) = (figures.time_ns.before, figures.time_ns.after) {
        let (before, after, width) = (before as f64, after as f64, width(layout));
        let more = if before > 0.0 {
            format!("{:>+width$.1} %", 100.0 * (after - before) / before)
        } else {
            String::new()
        };
        let _ = writeln!(text, "  {time_of:20}{:>width$}{:>width$}{more}", time(before), time(after));
    }
    let significant = figures.shares.iter().filter(|(_, change)| change.significant == Some(true));
    let rows = significant.filter_map(|(name, change)| row(&in_words(name), change, layout));
    rows.for_each(|row| text += &(row + "\n"));
    let unsure = figures.shares.iter().filter(|(_, change)| change.significant == Some(false)).count();
    text += &topdown_report::unsure(unsure, "intervals");
    match &figures.cannot_be_told {
        [None, None] => {}
        [Some(_), Some(_)] => text += "  shares cannot be told of either\n",
        [Some(why), None] => text += &cannot_be_told("before", why, layout),
        [None, Some(why)] => text += &cannot_be_told("after", why, layout),
    }
    text
}

fn cannot_be_told(when: &str, why: &str, layout: &Layout) -> String {
    layout.sentence(&format!("  shares cannot be told {when}: {}", clean(why))) + "\n"
}

fn rows(csv: &mut String, head: &[&str], figures: &FiguresChange, path: &str) {
    let head = head.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",");
    let TimeChange { before, after, difference } = figures.time_ns;
    let (before, after, difference) = (number(before), number(after), number(difference));
    let _ = writeln!(csv, "{head},\"time_ns\",{before},,,{after},,,{difference},,,{path}");
    let time = ("time".to_string(), figures.time);
    for (name, change) in [&time].into_iter().chain(&figures.shares) {
        let significant = yes_or_no(change.significant);
        let parts = [change.before, change.after, change.difference].map(with_ends).join(",");
        let _ = writeln!(csv, "{head},{},{parts},{significant}{path}", quoted(name));
    }
}

impl RecordingComparison {
    /// As a text, CSV or JSON; None: there is no such format of it.
    #[must_use]
    pub fn render(&self, format: Format) -> Option<String> {
        self.render_for(format, &Layout::FILE)
    }

    /// The same, where a text is laid out so.
    #[must_use]
    pub fn render_for(&self, format: Format, layout: &Layout) -> Option<String> {
        match format {
            Format::Text => Some(self.text(layout)),
            Format::Csv => Some(self.csv()),
            Format::Json => Some(json(self)),
            Format::Html | Format::Trace | Format::Parquet => None,
        }
    }

    fn csv(&self) -> String {
        let mut text = String::from("core,function,module,scope,figure");
        for name in ["before", "after", "difference"] {
            let _ = write!(text, ",{name},{name}_low,{name}_high");
        }
        let (name_of_path, path) = path_column(self.path);
        let _ = writeln!(text, ",significant{name_of_path}");
        for core in &self.cores {
            rows(&mut text, &[&core.name, "", "", "all"], &core.all, &path);
        }
        for function in &self.functions {
            for (scope, figures) in [("own", &function.own), ("inclusive", &function.inclusive)] {
                rows(&mut text, &[&function.core, &function.name, &function.module, scope], figures, &path);
            }
        }
        text
    }

    fn text(&self, layout: &Layout) -> String {
        let [before, after] = self.files.each_ref().map(|file| clean(file));
        let sentence = |text: &str| layout.sentence(text) + "\n";
        let mut text = layout.heading(&layout.sentence(&format!("topdown: from {before} to {after}"))) + "\n";
        text += &simulated_line(self.path, layout);
        if self.commands[0] != self.commands[1] {
            for (when, command) in ["before", "after"].iter().zip(&self.commands) {
                text += &sentence(&format!("{when}: {}", clean(command)));
            }
        }
        let time_of = if self.of_samples { "sampled time" } else { "CPU time" };
        let mut less = 0;
        for core in &self.cores {
            text += &figures(&format!("{}: all", clean(&core.name)), &core.all, time_of, layout);
            let of_core = self.functions.iter().filter(|function| function.core == core.name);
            let (shown, few): (Vec<_>, Vec<_>) = of_core.partition(|function| {
                let time = &function.own.time;
                [time.before, time.after].iter().flatten().any(|time| time.value >= LEAST_TIME)
            });
            less += few.len() as u64;
            let names: Vec<_> =
                shown.iter().map(|function| in_module(&function.name, &function.module)).collect();
            for (function, name) in shown.iter().zip(layout.names(names.iter().map(String::as_str), 0)) {
                text += &figures(&name, &function.own, time_of, layout);
            }
        }
        if less > 0 {
            text.push('\n');
            text += &sentence(&format!(
                "{} of less than {} % of the time: .csv and .json have them.",
                count(less, "function"),
                100.0 * LEAST_TIME
            ));
        }
        if self.of_samples {
            text.push('\n');
            text += &sentence(
                "Sampled time is not all CPU time: what had no sample, as the kernel's, is in none of it. How much longer a program runs \
                 `topdown stat` tells, or time(1).",
            );
        }
        if self.cores.iter().all(|core| core.all.time.difference.is_none()) {
            text.push('\n');
            text += &sentence("No kind of core is in both: nothing can be compared.");
        }
        text
    }
}
