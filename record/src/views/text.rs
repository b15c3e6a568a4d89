//! A table for people.
#![forbid(unsafe_code)]

use super::{Heading, in_module, next, remarks, title};
use crate::mean_latency::MeanLatency;
use crate::profile::{FunctionFigures, Profile, ProfiledCore, ProfiledFunction, ProfiledLine};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use topdown_report::terminal::{Layout, columns, short};
use topdown_report::{ShareInterval, clean, thousands};

fn percent(interval: &ShareInterval) -> String {
    format!("{:5.1} ±{:4.1}", 100.0 * interval.value, 100.0 * interval.error())
}

/// So many lines of a function are.
const MOST_LINES: usize = 5;
/// Of a line's text.
const MOST_COLUMNS: usize = 60;

/// Columns of a part with its interval (`percent`).
const PERCENT_COLUMNS: usize = 11;
/// Columns of what is wasted, with those before it.
const WASTED_COLUMNS: usize = 9;

/// The columns of a core's shares.
#[derive(Clone, Copy)]
struct ShareColumns {
    count: usize,
    /// Before each: fewer, where they would be wider than the terminal.
    gap: usize,
}

impl ShareColumns {
    fn of(core: &ProfiledCore, layout: &Layout) -> ShareColumns {
        let count = core.nodes.iter().filter(|node| node.level == 1).count();
        let all = |gap| ShareColumns { count, gap };
        let fits = PERCENT_COLUMNS + all(3).width() <= layout.columns;
        all(if layout.is_terminal && !fits { 1 } else { 3 })
    }

    /// Columns between the time and the name.
    fn width(self) -> usize {
        WASTED_COLUMNS + (PERCENT_COLUMNS + self.gap) * self.count
    }

    /// The next column.
    fn write(self, row: &mut String, text: &str) {
        let _ = write!(row, "{:1$}{text:>PERCENT_COLUMNS$}", "", self.gap);
    }
}

/// Names in fewer columns than these say little: where no more are left behind the figures, names stand above theirs.
const LEAST_COLUMNS: usize = 24;

/// Rows of figures, each with a name.
struct Rows<'l> {
    layout: &'l Layout,
    /// Names of the figures' columns.
    titles: String,
    /// Columns that are left for a name.
    room: usize,
    is_above: bool,
}

impl Rows<'_> {
    fn new(layout: &Layout, titles: String) -> Rows<'_> {
        let behind = layout.columns.saturating_sub(columns(&titles) + 3);
        let is_above = layout.is_terminal && behind < LEAST_COLUMNS;
        Rows { layout, titles, room: if is_above { layout.columns } else { behind }, is_above }
    }

    /// `of`: what the rows are.
    fn head(&self, of: &str) -> String {
        self.layout.heading(&self.row(&self.titles, of))
    }

    fn row(&self, figures: &str, name: &str) -> String {
        if self.is_above {
            format!("{name}\n{}\n", figures.trim_end())
        } else {
            format!("{figures}   {name}\n")
        }
    }

    /// Rows of these functions.
    fn names(&self, functions: &[&ProfiledFunction]) -> Vec<String> {
        let names: Vec<_> =
            functions.iter().map(|function| in_module(&function.name, &function.module)).collect();
        self.layout.names(names.iter().map(String::as_str), self.layout.columns - self.room)
    }
}

/// The hottest lines of a function.
/// `besides`: what is between a line's part and its number.
fn lines(
    profile: &Profile,
    function: &ProfiledFunction,
    layout: &Layout,
    besides: impl Fn(&ProfiledLine) -> String,
) -> String {
    let listed = function.lines.iter().filter(|line| line.time.value >= remarks::LEAST_TIME).take(MOST_LINES);
    let row = |line: &ProfiledLine| {
        let file = line.file.rsplit('/').next().unwrap_or_default();
        let row = format!("{}{}     {file}:{}", percent(&line.time), besides(line), line.line);
        let room = layout.columns.saturating_sub(columns(&row) + 2);
        let most = if layout.is_terminal { room.min(MOST_COLUMNS) } else { MOST_COLUMNS };
        let text = profile.sources.line(&function.path, &line.file, line.line).unwrap_or_default();
        match text.trim_start() {
            "" => row + "\n",
            text => format!("{row}  {}\n", short(text, most)),
        }
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

type Figures<'a> = Box<dyn Fn(&FunctionFigures) -> String + 'a>;
type Besides<'a> = Box<dyn Fn(&ProfiledLine, bool) -> String + 'a>;

/// What the table of a core shows.
struct CoreTable<'a> {
    heading: String,
    /// Of its columns.
    titles: String,
    figures: Figures<'a>,
    /// What is between a line's part and its number, and whether names stand above figures.
    besides: Besides<'a>,
    remarks: Vec<String>,
}

impl CoreTable<'_> {
    fn text(&self, profile: &Profile, place: usize, with_lines: bool, layout: &Layout) -> String {
        let rows = Rows::new(layout, self.titles.clone());
        let mut text = format!("\n{}\n", layout.heading(&layout.sentence(&self.heading)));
        text += &(rows.head("function") + &rows.row(&(self.figures)(&profile.cores[place].all), "(all)"));
        let functions: Vec<_> = remarks::listed(profile, place).collect();
        for (function, name) in functions.iter().zip(rows.names(&functions)) {
            text += &rows.row(&(self.figures)(&function.own), &name);
            if with_lines {
                text += &lines(profile, function, layout, |line| (self.besides)(line, rows.is_above));
            }
        }
        let processes = remarks::processes(profile, place);
        if !processes.is_empty() {
            text += &rows.head("process");
        }
        processes.iter().for_each(|one| text += &rows.row(&(self.figures)(&one.inclusive), &one.name));
        self.remarks.iter().for_each(|remark| text += &said(layout, remark));
        text
    }
}

/// A core where samples are of an event, or of time: functions have parts of those, and no shares.
fn of_samples<'a>(profile: &'a Profile, place: usize, _: &Layout) -> CoreTable<'a> {
    let core = &profile.cores[place];
    let part = if profile.is_of_time() { "time %" } else { "part %" };
    let latencies = core
        .all
        .latency
        .map_or(String::new(), |_| format!("   {:>LATENCY_COLUMNS$}", "retire latency, cycles"));
    let figures = |figures: &FunctionFigures| {
        let latency = latency(core, figures.latency.as_ref());
        format!("{}   {:>9}{latency}", percent(&figures.time), thousands(figures.bursts as u64))
    };
    // (an empty line comes behind it)
    let remarks = remarks::of_unlisted(profile, place).into_iter().chain([String::new()]);
    CoreTable {
        heading: core.name.into(),
        titles: format!("{part:>11}   {:>9}{latencies}", "samples"),
        figures: Box::new(figures),
        besides: Box::new(|line, _| format!("{:12}{}", "", latency(core, line.latency.as_ref()))),
        remarks: remarks.collect(),
    }
}

/// A remark on a line of its own.
fn said(layout: &Layout, remark: &str) -> String {
    layout.sentence(remark) + "\n"
}

/// Names of columns, each above its own on a terminal.
fn titles(core: &ProfiledCore, columns: ShareColumns, layout: &Layout) -> String {
    let mut text = format!("{:>PERCENT_COLUMNS$}   {:>6}", "time %", "wasted");
    for node in core.nodes.iter().filter(|node| node.level == 1) {
        let mut title = title(node).replace("speculation", "spec.");
        if layout.is_terminal {
            title = title.replace(" bound", "").replace("contention", "cont.");
        }
        title.truncate(14);
        columns.write(&mut text, &title);
    }
    text
}

fn shares(
    profile: &Profile,
    core: &ProfiledCore,
    figures: &FunctionFigures,
    columns: ShareColumns,
) -> String {
    let mut row = percent(&figures.time);
    match figures.told(&core.nodes) {
        Ok(told) => {
            let wasted = figures.wasted(&core.nodes).unwrap_or(0.0);
            let _ = write!(row, "   {:6.1}", 100.0 * wasted);
            for (node, share) in core.nodes.iter().zip(&told.shares) {
                if node.level == 1 {
                    columns.write(&mut row, &percent(share));
                }
            }
        }
        Err(untold) => {
            let width = columns.width();
            let why = format!("   {}", remarks::untold(untold, figures, profile));
            let _ = write!(row, "{why:<width$.width$}");
        }
    }
    row
}

fn of_core<'a>(profile: &'a Profile, place: usize, layout: &Layout) -> CoreTable<'a> {
    let core = &profile.cores[place];
    let columns = ShareColumns::of(core, layout);
    CoreTable {
        heading: format!("{}: {} windows", core.name, thousands(core.windows as u64)),
        titles: titles(core, columns, layout),
        figures: Box::new(move |figures| shares(profile, core, figures, columns)),
        besides: Box::new(move |_, is_above| " ".repeat(if is_above { 0 } else { columns.width() })),
        remarks: remarks::of_core(profile, place, core),
    }
}

/// The verdict and what to run next, below all else, where a terminal ends.
fn end(profile: &Profile, heading: &Heading, with_lines: bool, layout: &Layout) -> String {
    let next = next::next(profile, heading, with_lines);
    let lines: String = next.lines.iter().map(|line| said(layout, line)).collect();
    let steps: String =
        next.steps.iter().flat_map(|step| step.lines(2, layout)).map(|line| line + "\n").collect();
    match (&lines[..], &steps[..]) {
        ("", "") => String::new(),
        (_, "") => format!("\n{lines}"),
        _ => format!("\n{lines}next:\n{steps}"),
    }
}

pub(super) fn text(profile: &Profile, heading: &Heading, with_lines: bool, layout: &Layout) -> String {
    let next = end(profile, heading, with_lines, layout);
    let command = heading.command;
    let samples = profile.held.as_ref().map_or(String::new(), |held| held.of.heading());
    let heading = format!("topdown: {command}{samples} ({})", remarks::amount(profile));
    let mut text = layout.heading(&layout.sentence(&heading)) + "\n";
    // (it is the first of all remarks, and stands where it is read first)
    let first = remarks::first(profile);
    first.iter().for_each(|why| text += &(layout.warning(&layout.sentence(why)) + "\n"));
    let of_core = if profile.held.is_some() { of_samples } else { of_core };
    for place in 0..profile.cores.len() {
        text += &of_core(profile, place, layout).text(profile, place, with_lines, layout);
    }
    if with_lines {
        // (two programs may have it)
        let newer: BTreeSet<&Path> = profile.sources.newer().collect();
        for path in newer {
            let file = clean(&path.file_name().unwrap_or_default().to_string_lossy());
            let remark = format!("{file} was written after the program: its lines may be others by now.");
            text += &said(layout, &remark);
        }
    }
    let nothing = remarks::of_nothing(profile).map(String::from);
    let remarks = remarks::of_all(profile).into_iter().skip(first.iter().len());
    nothing.into_iter().chain(remarks).for_each(|remark| text += &said(layout, &remark));
    text + &next
}
