//! The report for people: as wide as the terminal, and in files 100 columns.
#![forbid(unsafe_code)]

use crate::account::BoundedShares;
use crate::bottlenecks;
use crate::companions;
use crate::extent::{ShownPlaces, regions_in};
use crate::model::{Counts, Figures, Item, Region, Report, Thread, UNTOLD};
use crate::ranks;
use crate::steps::Step;
use crate::terminal::{Layout, columns, short, shortened, told_apart};
use crate::time_alone::{self, TimeTrees};
use crate::words::{self, clean, percent, thousands, time};
use std::collections::BTreeSet;
use topdown::{LEVEL_1, LEVEL_2};

/// Columns of a row's label and of the shares of each category, as wide as they are read best, and as narrow as they can be. (Beside
/// them are two columns of indent, and six of the bound.)
const WIDE: (usize, [usize; 4]) = (22, [17; 4]);
const NARROW: (usize, [usize; 4]) = (12, [12, 17, 16, 15]);
/// From so many columns on rows are wide.
const ENOUGH: usize = 97;
/// Of so many threads the trees are shown.
const FEW: usize = 4;
/// What a region did itself.
const EXCLUSIVE: &str = "exclusive";
/// So many regions are ranked by what they wasted.
const RANKED: usize = 5;
/// So many threads are shown, the largest if there are more.
const MOST: usize = 16;
/// Rows of regions and their threads, and of trees.
const MOST_ROWS: usize = 200;

/// A text that grows.
struct Page {
    out: String,
    layout: Layout,
    /// Columns of a row's label, and of the shares of each category.
    label: usize,
    shares: [usize; 4],
}

impl Page {
    fn new(layout: &Layout) -> Page {
        let (label, shares) = if layout.columns >= ENOUGH { WIDE } else { NARROW };
        Page { out: String::new(), layout: *layout, label, shares }
    }

    /// Words, wrapped; further lines begin two columns further in.
    fn line(&mut self, indent: usize, text: &str) {
        self.painted(indent, text, |_, text| text.into());
    }

    fn steps(&mut self, steps: &[Step]) {
        for line in steps.iter().flat_map(|step| step.lines(2, &self.layout)) {
            self.out += &(line + "\n");
        }
    }

    fn heading(&mut self, text: &str) {
        self.painted(0, text, Layout::heading);
    }

    fn painted(&mut self, indent: usize, text: &str, paint: fn(&Layout, &str) -> String) {
        let (first, rest) = (" ".repeat(indent), " ".repeat(indent + 2));
        for line in self.layout.lines(&first, &rest, text) {
            self.out += &(paint(&self.layout, &line) + "\n");
        }
    }

    /// The label of a row: cut if it is too long, or where labels are narrow on a line of its own.
    fn label(&mut self, label: &str) {
        let label = if self.label == WIDE.0 { shortened(label, self.label - 1) } else { clean(label) };
        if columns(&label) >= self.label {
            self.line(2, &label);
            self.out += &format!("  {:1$}", "", self.label);
        } else {
            self.out += &format!("  {label}{}", " ".repeat(self.label - columns(&label)));
        }
    }
}

pub fn render(report: &Report, layout: &Layout) -> String {
    let mut page = Page::new(layout);
    fill(&mut page, report);
    page.out
}

fn fill(page: &mut Page, report: &Report) {
    let (command, much) = words::title(report);
    if let Some(why) = time_alone::sentence(report) {
        page.heading(&format!("topdown: {command}, time alone ({much})"));
        page.line(0, &why);
        words::occasion(report).iter().for_each(|occasion| page.line(0, occasion));
        for remark in words::remarks(report) {
            page.painted(0, &format!("! {remark}"), Layout::warning);
        }
        ranks_of(page, report);
        times(page, report);
        return;
    }
    if report.machines.is_empty() {
        return unmeasured(page, report, &command, &much);
    }
    page.heading(&format!("topdown: {command} ({much})"));
    if let Some(occasion) = words::occasion(report) {
        page.line(0, &occasion);
    }
    for machine in words::machines(&report.machines) {
        page.line(0, &machine);
    }
    // (elsewhere what it costs is not weighed against how near it is)
    let weighed = report.machines.iter().filter(|machine| machine.max_error != 0.0);
    let budgets: BTreeSet<String> = weighed
        .map(|machine| {
            format!(
                "each share is to be within {:.1} points, as far as {} of the time suffices for it",
                100.0 * machine.max_error,
                percent(machine.max_overhead)
            )
        })
        .collect();
    budgets.iter().for_each(|budget| page.line(0, budget));
    for remark in words::remarks(report) {
        page.painted(0, &format!("! {remark}"), Layout::warning);
    }
    if !report.processes.is_empty() {
        overview(page, report);
    }
    wasted(page, report);
    page.steps(&report.steps);
    let whole =
        if report.outside.is_some() { "whole program, counted from outside" } else { "whole program" };
    block(page, whole, &report.whole, false, report.whole.time.text());
    for run in report.outside.iter().map(|outside| &outside.run) {
        if !run.bottlenecks.is_empty() {
            page.line(2, "bottlenecks, in % of slots:");
            bottlenecks::lines(&run.bottlenecks).iter().for_each(|one| page.line(4, one));
        }
        run.findings.iter().for_each(|finding| page.line(2, &finding.text()));
        if !run.tree.is_empty() {
            page.line(2, &format!("(nodes below level 2: {})", run.tree));
        }
    }
    parts(page, &report.whole, "outside regions", !report.regions.is_empty());
    for run in report.outside.iter().map(|outside| &outside.run).filter(|run| !run.metrics.is_empty()) {
        page.line(2, "companion figures:");
        companions::lines(&run.metrics).iter().for_each(|one| page.line(4, one));
    }
    kinds_of_core(page, report);
    ranks_of(page, report);
    let threads = words::threads(report, MOST);
    if threads.len() > 1 {
        for one in &threads {
            row(page, &label(one.thread), &one.thread.item.inclusive);
        }
        rest(page, count(report), threads.len());
    }
    outside_alone(page, report);
    let (shown, each) = regions_in(MOST_ROWS, counted(report).count());
    counted(report).take(shown).for_each(|one| region(page, report, one, each));
    if report.time_alone.is_some() {
        times(page, report);
    }
    match nesting(report).count() {
        threads if threads <= FEW => trees(page, report),
        threads => {
            page.out.push('\n');
            page.line(0, &trees_elsewhere(threads));
        }
    }
}

/// Of what was not measured: why, the time that it took nevertheless, and what can be had of it.
fn unmeasured(page: &mut Page, report: &Report, command: &str, much: &str) {
    for trouble in words::troubles(report).keys() {
        let line = format!("topdown: {command}: nothing is measured: {trouble}");
        page.out += &(page.layout.sentence(&line) + "\n");
    }
    if report.run.is_some() {
        page.line(2, much);
        report.whole.time.total_text().iter().for_each(|time| page.line(2, time));
        page.steps(&report.steps);
    }
}

/// What clocks tell, where they alone do.
fn times(page: &mut Page, report: &Report) {
    page.out.push('\n');
    let rows = time_alone::rows(report, MOST_ROWS);
    table_of_times(page, "region", &rows);
    for row in &rows {
        row.odd().iter().for_each(|odd| page.line(0, &format!("{}: {odd}", clean(&row.name))));
    }
    if rows.first().is_some_and(|whole| whole.figures().wall_ns().is_none()) {
        report.whole.time.total_text().iter().for_each(|time| page.line(0, time));
    }
    time_alone::left_out(report, MOST_ROWS).iter().for_each(|more| page.line(0, more));
    page.out.push('\n');
    page.line(0, time_alone::NOTE);
    let TimeTrees { trees, left_out, threads } = time_alone::trees(report, MOST_ROWS);
    if threads <= FEW {
        for (thread, rows) in &trees {
            page.out.push('\n');
            page.line(0, &format!("{thread}, what began in what:"));
            table_of_times(page, "region", rows);
        }
        not_shown(page, left_out);
    } else {
        page.line(0, &trees_elsewhere(threads));
    }
    if !report.steps.is_empty() && report.machines.is_empty() {
        page.out += "\nnext:\n";
        page.steps(&report.steps);
    }
}

/// Names have so many columns at the least.
const LEAST_NAME: usize = 18;

fn table_of_times(page: &mut Page, head: &str, rows: &[time_alone::TimeRow]) {
    const WIDTHS: [usize; time_alone::COLUMNS.len()] = [12, 10, 9, 10, 10, 10];
    let indent = |row: &time_alone::TimeRow| 2 * row.depth.min(20);
    let longest = rows.iter().map(|row| indent(row) + columns(&clean(&row.name))).max().unwrap_or(0);
    let name = page.layout.columns.saturating_sub(WIDTHS.iter().sum()).min(longest + 1).max(LEAST_NAME);
    let cells = |cells: [String; WIDTHS.len()]| -> String {
        WIDTHS.iter().zip(cells).map(|(width, cell)| format!("{cell:>width$}")).collect()
    };
    let titles = cells(time_alone::COLUMNS.map(String::from));
    page.out += &format!("{}\n", page.layout.heading(&format!("{head:name$}{titles}")));
    for row in rows {
        let indent = indent(row);
        let label =
            format!("{:indent$}{}", "", shortened(&row.name, (name - 1).saturating_sub(indent).max(12)));
        let gap = " ".repeat(name.saturating_sub(columns(&label)));
        page.out += format!("{label}{gap}{}", cells(row.cells())).trim_end();
        page.out.push('\n');
    }
}

/// Of a hybrid CPU each kind of core, as deep as it is counted, if the whole is not of one kind alone.
fn kinds_of_core(page: &mut Page, report: &Report) {
    let all = report.outside.as_ref().map_or(&[][..], |outside| &outside.cores);
    let counted: Vec<_> = all.iter().filter(|cores| cores.figures.slots > 0).collect();
    for cores in counted.iter().filter(|_| all.len() > 1) {
        let pmu = &report.machines[cores.machine].pmu;
        if counted.len() > 1 {
            as_deep_as_counted(page, pmu, "", &cores.figures);
        } else {
            row(page, pmu, &cores.figures);
        }
    }
}

/// Processes that did not measure themselves.
fn outside_alone(page: &mut Page, report: &Report) {
    let all = report.outside.iter().flat_map(|outside| &outside.processes);
    let (processes, rest): (Vec<_>, Vec<_>) =
        all.filter(|one| one.is_unseen()).partition(|one| one.pid.is_some());
    if !rest.is_empty() {
        page.line(2, "by process, of which more than a tenth was counted from outside alone:");
    }
    for one in processes.iter().take(MOST) {
        row(page, &format!("{} {}", one.pid.unwrap_or_default(), one.name), &one.item.inclusive);
    }
    if processes.len() > MOST {
        page.line(2, &format!("{} smaller processes: -o FILE.csv or FILE.json", processes.len() - MOST));
    }
    rest.iter().for_each(|one| row(page, &one.name, &one.item.inclusive));
}

/// Threads that count slots.
fn count(report: &Report) -> usize {
    let threads = report.processes.iter().flat_map(|process| &process.threads);
    threads.filter(|thread| thread.counts_slots()).count()
}

fn label(thread: &Thread) -> String {
    let before = if thread.before > 0 { format!(" and {} before it", thread.before) } else { String::new() };
    format!("{}{} {}{before}", thread.tid, if thread.ended { "" } else { " (no end)" }, thread.name)
}

/// How many threads are not shown.
fn rest(page: &mut Page, all: usize, shown: usize) {
    if all > shown {
        page.line(2, &format!("{} smaller threads: -o FILE.csv", all - shown));
    }
}

/// A row for each rank of a job, those with the most time if they are many, and for each host if there are several.
fn ranks_of(page: &mut Page, report: &Report) {
    if report.ranks.is_empty() {
        return;
    }
    page.out.push('\n');
    let shown = ranks::shown(report, MOST);
    for rank in &shown {
        let label = ranks::label(rank);
        rank_or_host(page, &label, &rank.item.inclusive);
    }
    if report.ranks.len() > shown.len() {
        page.line(2, &format!("{} ranks with less time: -o FILE.json", report.ranks.len() - shown.len()));
    }
    if report.hosts.len() > 1 {
        for host in report.hosts.iter().take(MOST) {
            let ranks = words::count(host.ranks.len() as u64, "rank");
            rank_or_host(page, &format!("{} ({ranks})", clean(&host.host)), &host.item.inclusive);
        }
        if report.hosts.len() > MOST {
            page.line(2, &format!("{} other hosts: -o FILE.json", report.hosts.len() - MOST));
        }
    }
}

/// Its shares, or, where clocks alone tell, its time.
fn rank_or_host(page: &mut Page, label: &str, figures: &Figures) {
    match figures.time_alone {
        None => row(page, label, figures),
        Some(_) => page.line(2, &format!("{label}: {}", time(ranks::time_of(figures) as f64))),
    }
}

/// A line for each region.
fn overview(page: &mut Page, report: &Report) {
    let all = counted(report).count();
    let shown: Vec<&Region> = counted(report).take(regions_in(MOST_ROWS, all).0).collect();
    let regions = shown.iter().map(|region| &*region.name);
    let longest = regions.clone().map(|name| name.chars().count()).max().unwrap_or(0);
    let name = (page.layout.columns.saturating_sub(76)).min(longest + 1).max(24);
    let names = told_apart(regions, name - 1);
    let head =
        format!("{:name$}{:>12}{:>10}{:>8}  {}", "region", "executions", "time", "slots", "most slots");
    page.out += &format!("\n{}\n", page.layout.heading(&head));
    let mut one = |region: &str, counts: Option<&Counts>, figures: &Figures| {
        let executions = counts.map_or(String::new(), |counts| thousands(counts.executions));
        // (of what never ended nothing is known)
        let known = counts.is_none_or(|counts| counts.executions > 0 || counts.unended == 0);
        let share = figures.share.filter(|_| known).map_or("-".into(), percent);
        let words = short(&figures.bottleneck, page.layout.columns.saturating_sub(name + 32));
        let time = if known { time(figures.time_ns as f64) } else { "-".into() };
        let gap = " ".repeat(name.saturating_sub(columns(region)));
        page.out += &format!("{region}{gap}{executions:>12}{time:>10}{share:>8}  {words}\n");
    };
    one("whole program", None, &report.whole.inclusive);
    for (region, name) in shown.iter().zip(&names) {
        one(name, Some(&region.item.counts), &region.item.inclusive);
    }
    if names.len() < all {
        page.line(0, &format!("{} smaller regions: -o FILE.csv", thousands((all - names.len()) as u64)));
    }
}

/// Regions of which slots were counted, the largest first.
fn counted(report: &Report) -> impl Iterator<Item = &Region> {
    report.regions.iter().filter(|region| !region.time_alone)
}

/// Where the most slots were wasted, and what to do next.
fn wasted(page: &mut Page, report: &Report) {
    let all = words::wasted(report, RANKED);
    if all.is_empty() {
        return;
    }
    page.out.push('\n');
    page.heading("wasted slots (not retiring), and what next");
    for (k, one) in all.iter().enumerate() {
        let share = one.slots as f64 / report.whole.inclusive.slots as f64;
        let (name, slots) = (clean(one.name), words::slots(one.slots as f64));
        let error = one.figures.level_1.map_or(0.0, |one| 100.0 * one.error);
        let much = format!("{slots}, {} of all slots (its shares within {error:.1} points)", percent(share));
        page.line(1, &format!("{}. {name}: {much}; {}", k + 1, one.figures.bottleneck));
        if !one.next.is_empty() {
            page.line(4, &one.next);
        }
    }
}

/// `more`: a line about its time.
fn block(page: &mut Page, name: &str, item: &Item, region: bool, more: Option<String>) {
    let figures = &item.inclusive;
    page.out.push('\n');
    page.heading(&format!("{}: {}", clean(name), figures.bottleneck));
    let mut what = if region { words::executions(&item.counts) + "; " } else { String::new() };
    what += &format!("{} slots", words::slots(figures.slots as f64));
    if let (true, Some(share)) = (region, figures.share) {
        what += &format!(" ({} of all)", percent(share));
    }
    what += &format!(", {}", time(figures.time_ns as f64));
    page.line(2, &what);
    more.iter().for_each(|more| page.line(2, more));
    let executions = item.counts.executions as f64;
    if region && executions > 1.0 {
        let (slots, ns) = (figures.slots as f64 / executions, figures.time_ns as f64 / executions);
        page.line(2, &format!("{} slots, {} each", words::slots(slots), time(ns)));
    }
    if region && item.counts.measured < item.counts.executions && item.counts.measured > 0 {
        page.line(
            2,
            "not every execution was measured: the bound is four standard errors of a random sample",
        );
    }
    for odd in words::oddities(region.then_some(name), &item.counts) {
        page.line(2, &odd);
    }
    if figures.level_1.is_some() {
        page.label("");
        for (metric, width) in LEVEL_1.iter().zip(page.shares) {
            page.out += &format!("{:width$}", metric.title());
        }
        page.out += "within\n";
    }
}

/// Level 1, level 2, and what is left without the regions in it, if there are any.
fn parts(page: &mut Page, item: &Item, alone: &str, nests: bool) {
    as_deep_as_counted(page, "level 1", "level 2", &item.inclusive);
    if nests && item.exclusive.slots > 0 {
        let (is_region, lacks) = (alone == EXCLUSIVE, item.exclusive.lacks);
        let share = item.exclusive.share.filter(|_| !(is_region && lacks));
        let at_most = if lacks { "≤" } else { "" };
        let share = share.map_or(String::new(), |share| format!(" {at_most}{:.0} %", 100.0 * share));
        levels(page, &format!("{alone}{share}"), "", &item.exclusive);
    }
}

/// Both levels, and below them nodes that `td_l2` has not.
fn as_deep_as_counted(page: &mut Page, first: &str, second: &str, figures: &Figures) {
    levels(page, first, second, figures);
    for (name, node) in words::other_nodes(figures) {
        page.line(2 * node.kind.level as usize, &format!("{name}: {}", node.text()));
    }
}

fn levels(page: &mut Page, first: &str, second: &str, figures: &Figures) {
    row(page, first, figures);
    let Some(BoundedShares { of, error, .. }) = figures.level_2 else { return };
    if error > UNTOLD {
        // (of two levels that cannot be told one line is enough)
        if figures.level_1.is_some_and(|one| one.error <= UNTOLD) {
            page.label(second);
            page.out += &(untold(error) + "\n");
        }
        return;
    }
    for half in 0..2 {
        page.label(if half == 0 { second } else { "" });
        for (k, width) in page.shares.into_iter().enumerate() {
            let at = 2 * k + half;
            page.out += &format!("{:width$}", format!("{:4.1} {}", 100.0 * of[at], LEVEL_2[at].short));
        }
        page.out += &if half == 0 { format!("{:.1}", 100.0 * error) } else { String::new() };
        while page.out.ends_with(' ') {
            page.out.pop();
        }
        page.out.push('\n');
    }
}

fn untold(error: f64) -> String {
    format!("cannot be told: the bound is {:.1} points", 100.0 * error)
}

/// Level 1 in a line.
fn row(page: &mut Page, label: &str, figures: &Figures) {
    page.label(label);
    match figures.level_1 {
        None => page.out += "not measured",
        Some(BoundedShares { error, .. }) if error > UNTOLD => {
            page.out += &untold(error);
        }
        Some(BoundedShares { of, error, .. }) => {
            for (share, width) in of.into_iter().zip(page.shares) {
                page.out += &format!("{:width$}", format!("{:4.1} %", 100.0 * share));
            }
            page.out += &format!("{:.1}", 100.0 * error);
        }
    }
    match figures.running {
        Some(running) if running < 0.9995 => {
            page.out.push('\n');
            page.label("");
            page.out += &format!("counted {} of the time\n", percent(running));
        }
        _ => page.out.push('\n'),
    }
}

/// `most`: threads.
fn region(page: &mut Page, report: &Report, region: &Region, most: usize) {
    block(page, &region.name, &region.item, true, None);
    parts(page, &region.item, EXCLUSIVE, region.nests);
    ranks::sentence(region, report).iter().for_each(|over| page.line(2, over));
    if count(report) > 1 {
        let mut threads: Vec<_> = region.threads.iter().collect();
        if threads.len() > most {
            threads.sort_by_key(|one| std::cmp::Reverse(one.item.inclusive.slots));
        }
        for one in threads.iter().take(most) {
            let thread = &report.processes[one.place.0].threads[one.place.1];
            row(page, &label(thread), &one.item.inclusive);
        }
        rest(page, threads.len(), most);
    }
}

fn not_shown(page: &mut Page, places: usize) {
    if places > 0 {
        page.line(0, &format!("Not shown: {} with less time", words::count(places as u64, "place")));
    }
}

/// Where the trees of so many threads are that a text has no room for.
fn trees_elsewhere(threads: usize) -> String {
    format!("what began in what, in {}: -o FILE.html or FILE.json", words::count(threads as u64, "thread"))
}

/// Threads that count slots and have regions in others.
fn nesting(report: &Report) -> impl Iterator<Item = &Thread> {
    let threads = report.processes.iter().flat_map(|process| &process.threads);
    threads.filter(|thread| thread.counts_slots() && thread.tree.iter().any(|place| place.depth > 0))
}

/// Which region began in which, where any did.
fn trees(page: &mut Page, report: &Report) {
    // (a line has room for a few words, too)
    let width = (page.layout.columns.saturating_sub(52)).clamp(28, 42);
    let threads: Vec<_> = nesting(report).collect();
    let shown = ShownPlaces::new(threads.iter().copied(), MOST_ROWS);
    let mut left_out = 0;
    for thread in threads {
        let places = shown.of(thread);
        left_out += thread.tree.len() - places.len();
        if places.is_empty() {
            continue;
        }
        page.out.push('\n');
        page.line(0, &format!("thread {} {}, what began in what:", thread.tid, clean(&thread.name)));
        for node in places.into_iter().map(|place| &thread.tree[place]) {
            let indent = 2 + 2 * node.depth.min(20);
            let name = shortened(&node.name, (width - 2).saturating_sub(indent).max(12));
            let label = format!("{:indent$}{name}", "");
            let share = node.item.inclusive.share.map_or("-".into(), percent);
            let times = thousands(node.item.counts.executions);
            let gap = " ".repeat(width.saturating_sub(columns(&label)));
            let words = short(
                &node.item.inclusive.bottleneck,
                page.layout.columns.saturating_sub(columns(&label) + gap.len() + 24),
            );
            page.out += &format!("{label}{gap}{times:>12}{share:>8}  {words}\n");
        }
    }
    not_shown(page, left_out);
}
