//! A table for people.
#![forbid(unsafe_code)]

use super::{Heading, in_module, next, remarks, title};
use crate::mean_latency::MeanLatency;
use crate::profile::{FunctionFigures, Profile, ProfiledCore, ProfiledFunction, ProfiledLine};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use topdown_report::ShareInterval;
use topdown_report::{clean, short, thousands};

fn percent(interval: &ShareInterval) -> String {
    format!("{:5.1} ±{:4.1}", 100.0 * interval.value, 100.0 * interval.error())
}

/// So many lines of a function are.
const MOST_LINES: usize = 5;
/// Of a line's text.
const MOST_COLUMNS: usize = 60;

/// Columns between the time and the name.
fn width_of_shares(core: &ProfiledCore) -> usize {
    9 + 14 * core.nodes.iter().filter(|node| node.level == 1).count()
}

/// The hottest lines of a function.
/// `besides`: what is between a line's part and its number.
fn lines(
    profile: &Profile,
    function: &ProfiledFunction,
    besides: impl Fn(&ProfiledLine) -> String,
) -> String {
    let listed = function.lines.iter().filter(|line| line.time.value >= remarks::LEAST_TIME).take(MOST_LINES);
    let text = |line: &ProfiledLine| {
        let text = profile.sources.line(&function.path, &line.file, line.line).unwrap_or_default();
        if text.is_empty() { String::new() } else { format!("  {}", short(text.trim_start(), MOST_COLUMNS)) }
    };
    let row = |line: &ProfiledLine| {
        let file = line.file.rsplit('/').next().unwrap_or_default();
        format!("{}{}     {file}:{}{}\n", percent(&line.time), besides(line), line.line, text(line))
    };
    listed.map(row).collect()
}

/// Columns of a retire latency.
const LATENCY_COLUMNS: usize = 22;

/// A retire latency in cycles, with its ends, as wide as its column; nothing, where the core's samples have none.
fn latency(core: &ProfiledCore, latency: Option<&MeanLatency>) -> String {
    let text = match latency {
        _ if core.all.latency.is_none() => return String::new(),
        None => "-".into(),
        Some(MeanLatency { value, low, high: Some(high) }) => format!("{value:.1} ({low:.1} to {high:.1})"),
        Some(MeanLatency { value, low, high: None }) => format!("{value:.1} (from {low:.1})"),
    };
    format!("   {text:>LATENCY_COLUMNS$}")
}

/// A core where samples are of an event: functions have parts of those, and no shares.
fn of_samples(profile: &Profile, place: usize, core: &ProfiledCore, with_lines: bool) -> String {
    let row = |figures: &FunctionFigures, name: &str| {
        let latency = latency(core, figures.latency.as_ref());
        let samples = thousands(figures.bursts as u64);
        format!("{}   {samples:>9}{latency}   {name}\n", percent(&figures.time))
    };
    let latencies = core
        .all
        .latency
        .map_or(String::new(), |_| format!("   {:>LATENCY_COLUMNS$}", "retire latency, cycles"));
    let part = if profile.is_of_time() { "time %" } else { "part %" };
    let names = |of: &str| format!("{part:>11}   {:>9}{latencies}   {of}\n", "samples");
    let mut text = format!("\n{}\n{}{}", core.name, names("function"), row(&core.all, "(all)"));
    for function in remarks::listed(profile, place) {
        text += &row(&function.own, &in_module(&function.name, &function.module));
        if with_lines {
            text += &lines(profile, function, |line| {
                format!("{:12}{}", "", latency(core, line.latency.as_ref()))
            });
        }
    }
    let processes = remarks::processes(profile, place);
    if !processes.is_empty() {
        text += &names("process");
    }
    processes.iter().for_each(|process| text += &row(&process.inclusive, &process.name));
    remarks::of_unlisted(profile, place).into_iter().for_each(|remark| text += &(remark + "\n"));
    text + "\n"
}

/// Names of columns. `of`: what the rows are.
fn names(core: &ProfiledCore, of: &str) -> String {
    let mut text = format!("{:>11}   {:>6}", "time %", "wasted");
    for node in core.nodes.iter().filter(|node| node.level == 1) {
        let mut title = title(node).replace("speculation", "spec.");
        title.truncate(14);
        let _ = write!(text, "   {title:>11}");
    }
    format!("{text}   {of}\n")
}

fn row(profile: &Profile, core: &ProfiledCore, figures: &FunctionFigures, name: &str) -> String {
    let mut row = percent(&figures.time);
    match figures.told(&core.nodes) {
        Ok(told) => {
            let wasted = figures.wasted(&core.nodes).unwrap_or(0.0);
            let _ = write!(row, "   {:6.1}", 100.0 * wasted);
            for (node, share) in core.nodes.iter().zip(&told.shares) {
                if node.level == 1 {
                    let _ = write!(row, "   {}", percent(share));
                }
            }
        }
        Err(untold) => {
            let width = width_of_shares(core);
            let why = format!("   {}", remarks::untold(untold, figures, profile));
            let _ = write!(row, "{why:<width$.width$}");
        }
    }
    format!("{row}   {name}\n")
}

fn of_core(profile: &Profile, place: usize, core: &ProfiledCore, with_lines: bool) -> String {
    let mut text = format!("\n{}: {} windows\n", core.name, thousands(core.windows as u64));
    text += &names(core, "function");
    text += &row(profile, core, &core.all, "(all)");
    for function in remarks::listed(profile, place) {
        text += &row(profile, core, &function.own, &in_module(&function.name, &function.module));
        if with_lines {
            text += &lines(profile, function, |_| " ".repeat(width_of_shares(core)));
        }
    }
    let processes = remarks::processes(profile, place);
    if !processes.is_empty() {
        text += &names(core, "process");
    }
    processes.iter().for_each(|process| text += &row(profile, core, &process.inclusive, &process.name));
    remarks::of_core(profile, place, core).into_iter().for_each(|remark| text += &(remark + "\n"));
    text
}

/// The verdict and what to run next, below all else, where a terminal ends.
fn end(profile: &Profile, heading: &Heading, with_lines: bool) -> String {
    let next = next::next(profile, heading, with_lines);
    let lines: String = next.lines.iter().map(|line| format!("{line}\n")).collect();
    let steps: String = next.steps.iter().map(|step| format!("  {}\n", clean(&step.text()))).collect();
    match (&lines[..], &steps[..]) {
        ("", "") => String::new(),
        (_, "") => format!("\n{lines}"),
        _ => format!("\n{lines}next:\n{steps}"),
    }
}

pub(super) fn text(profile: &Profile, heading: &Heading, with_lines: bool) -> String {
    let command = heading.command;
    let samples = profile.held.as_ref().map_or(String::new(), |held| held.of.heading());
    let mut text = format!("topdown: {command}{samples} ({})\n", remarks::amount(profile));
    // (it is the first of all remarks, and stands where it is read first)
    let no_slots = remarks::of_no_slots(profile);
    no_slots.iter().for_each(|why| text += &format!("{why}\n"));
    let of_core = if profile.held.is_some() { of_samples } else { of_core };
    for (place, core) in profile.cores.iter().enumerate() {
        text += &of_core(profile, place, core, with_lines);
    }
    if with_lines {
        // (two programs may have it)
        let newer: BTreeSet<&Path> = profile.sources.newer().collect();
        let name = |path: &&Path| clean(&path.file_name().unwrap_or_default().to_string_lossy());
        let said =
            |file: String| format!("{file} was written after the program: its lines may be others by now.\n");
        newer.iter().map(name).map(said).for_each(|remark| text += &remark);
    }
    let nothing = remarks::of_nothing(profile).map(String::from);
    let remarks = remarks::of_all(profile).into_iter().skip(no_slots.iter().len());
    nothing.into_iter().chain(remarks).for_each(|remark| text += &(remark + "\n"));
    text + &end(profile, heading, with_lines)
}
