//! A comparison as a text, CSV and JSON.
#![forbid(unsafe_code)]

use super::{FiguresChange, PartChange, RecordingComparison, TimeChange};
use crate::views::{LEAST_TIME, in_module, in_words, with_ends};
use std::fmt::Write;
use topdown_report::{Format, clean, count, json, number, percent, quoted, time, yes_or_no};

/// A row: a name, both values, and the difference with its interval.
fn row(name: &str, change: &PartChange) -> Option<String> {
    let (before, after, difference) = (change.before?, change.after?, change.difference?);
    let [value, low, high] = [difference.value, difference.low, difference.high].map(|part| 100.0 * part);
    let (before, after) = (percent(before.value), percent(after.value));
    Some(format!("  {name:20}{before:>12}{after:>12}{value:>+12.1} points ({low:+.1} to {high:+.1})"))
}

/// Where it is in one recording alone.
fn only(figures: &FiguresChange) -> Option<String> {
    match (&figures.time.before, &figures.time.after) {
        (Some(before), None) => Some(format!("seen only before: {before} of the time")),
        (None, Some(after)) => Some(format!("seen only after: {after} of the time")),
        _ => None,
    }
}

fn figures(name: &str, figures: &FiguresChange) -> String {
    if let Some(only) = only(figures) {
        return format!("\n{name}: {only}\n");
    }
    let mut text = format!("\n{name}\n");
    if let Some(row) = row("time", &figures.time) {
        let overlap = if figures.time.significant == Some(true) { "" } else { ", not known to have changed" };
        text += &format!("{row}{overlap}\n");
    }
    if let (Some(before), Some(after)) = (figures.time_ns.before, figures.time_ns.after) {
        let (before, after) = (before as f64, after as f64);
        let more = if before > 0.0 {
            format!("{:>+12.1} %", 100.0 * (after - before) / before)
        } else {
            String::new()
        };
        let _ = writeln!(text, "  {:20}{:>12}{:>12}{more}", "CPU time", time(before), time(after));
    }
    let significant = figures.shares.iter().filter(|(_, change)| change.significant == Some(true));
    let rows = significant.filter_map(|(name, change)| row(&in_words(name), change));
    rows.for_each(|row| text += &(row + "\n"));
    let unsure = figures.shares.iter().filter(|(_, change)| change.significant == Some(false)).count();
    text += &topdown_report::unsure(unsure, "intervals");
    match &figures.cannot_be_told {
        [None, None] => {}
        [Some(_), Some(_)] => text += "  shares cannot be told of either\n",
        [Some(why), None] => text += &format!("  shares cannot be told before: {}\n", clean(why)),
        [None, Some(why)] => text += &format!("  shares cannot be told after: {}\n", clean(why)),
    }
    text
}

fn rows(csv: &mut String, head: &[&str], figures: &FiguresChange) {
    let head = head.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",");
    let TimeChange { before, after, difference } = figures.time_ns;
    let (before, after, difference) = (number(before), number(after), number(difference));
    let _ = writeln!(csv, "{head},\"time_ns\",{before},,,{after},,,{difference},,,");
    let time = ("time".to_string(), figures.time);
    for (name, change) in [&time].into_iter().chain(&figures.shares) {
        let significant = yes_or_no(change.significant);
        let parts = [change.before, change.after, change.difference].map(with_ends).join(",");
        let _ = writeln!(csv, "{head},{},{parts},{significant}", quoted(name));
    }
}

impl RecordingComparison {
    /// As a text, CSV or JSON; None: there is no such format of it.
    #[must_use]
    pub fn render(&self, format: Format) -> Option<String> {
        match format {
            Format::Text => Some(self.text()),
            Format::Csv => Some(self.csv()),
            Format::Json => Some(json(self)),
            Format::Html | Format::Trace => None,
        }
    }

    fn csv(&self) -> String {
        let mut text = String::from("core,function,module,scope,figure");
        for name in ["before", "after", "difference"] {
            let _ = write!(text, ",{name},{name}_low,{name}_high");
        }
        text += ",significant\n";
        for core in &self.cores {
            rows(&mut text, &[&core.name, "", "", "all"], &core.all);
        }
        for function in &self.functions {
            for (scope, figures) in [("own", &function.own), ("inclusive", &function.inclusive)] {
                rows(&mut text, &[&function.core, &function.name, &function.module, scope], figures);
            }
        }
        text
    }

    fn text(&self) -> String {
        let [before, after] = self.files.each_ref().map(|file| clean(file));
        let mut text = format!("topdown: from {before} to {after}\n");
        if self.commands[0] != self.commands[1] {
            for (when, command) in ["before", "after"].iter().zip(&self.commands) {
                let _ = writeln!(text, "{when}: {}", clean(command));
            }
        }
        let mut less = 0;
        for core in &self.cores {
            text += &figures(&format!("{}: all", clean(&core.name)), &core.all);
            for function in self.functions.iter().filter(|function| function.core == core.name) {
                let time = &function.own.time;
                let most =
                    [time.before, time.after].iter().flatten().map(|time| time.value).fold(0.0, f64::max);
                if most < LEAST_TIME {
                    less += 1;
                    continue;
                }
                text += &figures(&clean(&in_module(&function.name, &function.module)), &function.own);
            }
        }
        if less > 0 {
            let _ = writeln!(
                text,
                "\n{} of less than {} % of the time: .csv and .json have them.",
                count(less, "function"),
                100.0 * LEAST_TIME
            );
        }
        if self.cores.iter().all(|core| core.all.time.difference.is_none()) {
            text += "\nNo kind of core is in both: nothing can be compared.\n";
        }
        text
    }
}
