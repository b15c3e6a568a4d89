//! The report for a terminal of 100 columns.
#![forbid(unsafe_code)]

use crate::account::BoundedShares;
use crate::bottlenecks;
use crate::companions;
use crate::model::{Figures, Item, Region, Report, Thread, UNTOLD};
use crate::words::{self, clean, percent, short, thousands, time};
use std::collections::BTreeSet;
use topdown::{LEVEL_1, LEVEL_2};

const WIDTH: usize = 100;
const LABEL: usize = 22;
const COLUMN: usize = 17;
/// Of so many threads the trees are shown.
const FEW: usize = 4;
/// So many regions are ranked by what they wasted.
const RANKED: usize = 5;
/// So many threads are shown, the largest if there are more.
const MOST: usize = 16;

pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let (command, much) = words::title(report);
    if report.machines.is_empty() {
        for trouble in words::troubles(report).keys() {
            out += &format!("topdown: {command}: nothing is measured: {trouble}\n"); // a line, however long
        }
        return out;
    }
    line(&mut out, 0, &format!("topdown: {command} ({much})"));
    if let Some(occasion) = words::occasion(report) {
        line(&mut out, 0, &occasion);
    }
    for machine in words::machines(&report.machines) {
        line(&mut out, 0, &machine);
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
    budgets.iter().for_each(|budget| line(&mut out, 0, budget));
    for remark in words::remarks(report) {
        line(&mut out, 0, &format!("! {remark}"));
    }
    if !report.processes.is_empty() {
        overview(&mut out, report);
    }
    wasted(&mut out, report);
    report.steps.iter().for_each(|step| line(&mut out, 2, &clean(&step.text())));
    let whole =
        if report.outside.is_some() { "whole program, counted from outside" } else { "whole program" };
    block(&mut out, whole, &report.whole, false, report.whole.time.text());
    for run in report.outside.iter().map(|outside| &outside.run) {
        if !run.bottlenecks.is_empty() {
            line(&mut out, 2, "bottlenecks, in % of slots:");
            bottlenecks::lines(&run.bottlenecks).iter().for_each(|one| line(&mut out, 4, one));
        }
        run.findings.iter().for_each(|finding| line(&mut out, 2, &finding.text()));
        if !run.tree.is_empty() {
            line(&mut out, 2, &format!("(nodes below level 2: {})", run.tree));
        }
    }
    parts(&mut out, &report.whole, "outside regions", !report.regions.is_empty());
    for run in report.outside.iter().map(|outside| &outside.run).filter(|run| !run.metrics.is_empty()) {
        line(&mut out, 2, "companion figures:");
        companions::lines(&run.metrics).iter().for_each(|one| line(&mut out, 4, one));
    }
    kinds_of_core(&mut out, report);
    let threads = words::threads(report, MOST);
    if threads.len() > 1 {
        for one in &threads {
            row(&mut out, &label(one.thread), &one.thread.item.inclusive);
        }
        rest(&mut out, count(report), threads.len());
    }
    outside_alone(&mut out, report);
    for region in &report.regions {
        self::region(&mut out, report, region);
    }
    if count(report) <= FEW {
        trees(&mut out, report);
    } else if report.regions.iter().any(|region| region.nests) {
        out.push('\n');
        line(
            &mut out,
            0,
            &format!("what began in what, for each of {} threads: -o FILE.html or FILE.json", count(report)),
        );
    }
    out
}

/// Of a hybrid CPU each kind of core, as deep as it is counted, if the whole is not of one kind alone.
fn kinds_of_core(out: &mut String, report: &Report) {
    let all = report.outside.as_ref().map_or(&[][..], |outside| &outside.cores);
    let counted: Vec<_> = all.iter().filter(|cores| cores.figures.slots > 0).collect();
    for cores in counted.iter().filter(|_| all.len() > 1) {
        let pmu = &report.machines[cores.machine].pmu;
        if counted.len() > 1 {
            as_deep_as_counted(out, pmu, "", &cores.figures);
        } else {
            row(out, pmu, &cores.figures);
        }
    }
}

/// Processes that did not measure themselves.
fn outside_alone(out: &mut String, report: &Report) {
    let all = report.outside.iter().flat_map(|outside| &outside.processes);
    let (processes, rest): (Vec<_>, Vec<_>) =
        all.filter(|one| one.is_unseen()).partition(|one| one.pid.is_some());
    if !rest.is_empty() {
        line(out, 2, "by process, of which more than a tenth was counted from outside alone:");
    }
    for one in processes.iter().take(MOST) {
        row(out, &format!("{} {}", one.pid.unwrap_or_default(), one.name), &one.item.inclusive);
    }
    if processes.len() > MOST {
        line(out, 2, &format!("{} smaller processes: -o FILE.csv or FILE.json", processes.len() - MOST));
    }
    rest.iter().for_each(|one| row(out, &one.name, &one.item.inclusive));
}

fn count(report: &Report) -> usize {
    report.processes.iter().map(|process| process.threads.len()).sum()
}

fn label(thread: &Thread) -> String {
    let before = if thread.before > 0 { format!(" and {} before it", thread.before) } else { String::new() };
    format!("{}{} {}{before}", thread.tid, if thread.ended { "" } else { " (no end)" }, thread.name)
}

/// How many threads are not shown.
fn rest(out: &mut String, all: usize, shown: usize) {
    if all > shown {
        line(out, 2, &format!("{} smaller threads: -o FILE.csv or FILE.json", all - shown));
    }
}

/// Words, wrapped; further lines begin two columns further in.
fn line(out: &mut String, indent: usize, text: &str) {
    let mut column = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let long = word.chars().count();
        if column == 0 {
            *out += &" ".repeat(indent);
            column = indent;
        } else if column + 1 + long > WIDTH {
            *out += "\n";
            *out += &" ".repeat(indent + 2);
            column = indent + 2;
        } else {
            out.push(' ');
            column += 1;
        }
        *out += word;
        column += long;
    }
    out.push('\n');
}

/// A line for each region.
fn overview(out: &mut String, report: &Report) {
    *out += &format!("\n{:24}{:>12}{:>10}{:>8}  {}\n", "region", "executions", "time", "slots", "most slots");
    let mut one = |name: &str, executions: String, figures: &Figures| {
        let share = figures.share.map_or("-".into(), percent);
        let words = short(&figures.bottleneck, WIDTH - 56);
        let time = time(figures.time_ns as f64);
        *out += &format!("{:24}{executions:>12}{time:>10}{share:>8}  {words}\n", short(name, 23));
    };
    one("whole program", String::new(), &report.whole.inclusive);
    for region in &report.regions {
        one(&region.name, thousands(region.item.counts.executions), &region.item.inclusive);
    }
}

/// Where the most slots were wasted, and what to do next.
fn wasted(out: &mut String, report: &Report) {
    let all = words::wasted(report, RANKED);
    if all.is_empty() {
        return;
    }
    *out += "\nwasted slots (not retiring), and what next\n";
    for (k, one) in all.iter().enumerate() {
        let share = one.slots as f64 / report.whole.inclusive.slots as f64;
        let (name, slots) = (clean(one.name), words::slots(one.slots as f64));
        let error = one.figures.level_1.map_or(0.0, |one| 100.0 * one.error);
        let much = format!("{slots}, {} of all slots (its shares within {error:.1} points)", percent(share));
        line(out, 1, &format!("{}. {name}: {much}; {}", k + 1, one.figures.bottleneck));
        if !one.next.is_empty() {
            line(out, 4, &one.next);
        }
    }
}

/// `more`: a line about its time.
fn block(out: &mut String, name: &str, item: &Item, region: bool, more: Option<String>) {
    let figures = &item.inclusive;
    out.push('\n');
    line(out, 0, &format!("{}: {}", clean(name), figures.bottleneck));
    let mut what = if region { words::executions(&item.counts) + "; " } else { String::new() };
    what += &format!("{} slots", words::slots(figures.slots as f64));
    if let (true, Some(share)) = (region, figures.share) {
        what += &format!(" ({} of all)", percent(share));
    }
    what += &format!(", {}", time(figures.time_ns as f64));
    line(out, 2, &what);
    more.iter().for_each(|more| line(out, 2, more));
    let executions = item.counts.executions as f64;
    if region && executions > 1.0 {
        let (slots, ns) = (figures.slots as f64 / executions, figures.time_ns as f64 / executions);
        line(out, 2, &format!("{} slots, {} each", words::slots(slots), time(ns)));
    }
    if region && item.counts.measured < item.counts.executions && item.counts.measured > 0 {
        line(
            out,
            2,
            "not every execution was measured: the bound is four standard errors of a random sample",
        );
    }
    for odd in words::oddities(name, &item.counts) {
        line(out, 2, &odd);
    }
    if figures.level_1.is_some() {
        *out += &format!("  {:LABEL$}", "");
        for metric in &LEVEL_1 {
            *out += &format!("{:COLUMN$}", metric.title());
        }
        *out += "within\n";
    }
}

/// Level 1, level 2, and what is left without the regions in it, if there are any.
fn parts(out: &mut String, item: &Item, alone: &str, nests: bool) {
    as_deep_as_counted(out, "level 1", "level 2", &item.inclusive);
    if nests && item.exclusive.slots > 0 {
        let share = item.exclusive.share.map_or(String::new(), |share| format!(" {:.0} %", 100.0 * share));
        levels(out, &format!("{alone}{share}"), "", &item.exclusive);
    }
}

/// Both levels, and below them nodes that `td_l2` has not.
fn as_deep_as_counted(out: &mut String, first: &str, second: &str, figures: &Figures) {
    levels(out, first, second, figures);
    for (name, node) in words::other_nodes(figures) {
        line(out, 2 * node.kind.level as usize, &format!("{name}: {}", node.text()));
    }
}

fn levels(out: &mut String, first: &str, second: &str, figures: &Figures) {
    row(out, first, figures);
    let Some(BoundedShares { of, error, .. }) = figures.level_2 else { return };
    if error > UNTOLD {
        // (of two levels that cannot be told one line is enough)
        if figures.level_1.is_some_and(|one| one.error <= UNTOLD) {
            *out += &format!("  {second:LABEL$}{}\n", untold(error));
        }
        return;
    }
    for half in 0..2 {
        *out += &format!("  {:LABEL$}", if half == 0 { second } else { "" });
        for k in 0..4 {
            let at = 2 * k + half;
            *out += &format!("{:COLUMN$}", format!("{:4.1} {}", 100.0 * of[at], LEVEL_2[at].short));
        }
        *out += &if half == 0 { format!("{:.1}", 100.0 * error) } else { String::new() };
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }
}

fn untold(error: f64) -> String {
    format!("cannot be told: the bound is {:.1} points", 100.0 * error)
}

/// Level 1 in a line.
fn row(out: &mut String, label: &str, figures: &Figures) {
    *out += &format!("  {:LABEL$}", short(label, LABEL - 1));
    match figures.level_1 {
        None => *out += "not measured",
        Some(BoundedShares { error, .. }) if error > UNTOLD => {
            *out += &untold(error);
        }
        Some(BoundedShares { of, error, .. }) => {
            for share in of {
                *out += &format!("{:COLUMN$}", format!("{:4.1} %", 100.0 * share));
            }
            *out += &format!("{:.1}", 100.0 * error);
        }
    }
    match figures.running {
        Some(running) if running < 0.9995 => {
            *out += &format!("\n  {:LABEL$}counted {} of the time\n", "", percent(running))
        }
        _ => out.push('\n'),
    }
}

fn region(out: &mut String, report: &Report, region: &Region) {
    block(out, &region.name, &region.item, true, None);
    parts(out, &region.item, "exclusive", region.nests);
    if count(report) > 1 {
        let mut threads: Vec<_> = region.threads.iter().collect();
        if threads.len() > MOST {
            threads.sort_by_key(|one| std::cmp::Reverse(one.item.inclusive.slots));
        }
        for one in threads.iter().take(MOST) {
            let thread = &report.processes[one.place.0].threads[one.place.1];
            row(out, &label(thread), &one.item.inclusive);
        }
        rest(out, threads.len(), MOST);
    }
}

/// Which region began in which, where any did.
fn trees(out: &mut String, report: &Report) {
    for process in &report.processes {
        for thread in process.threads.iter().filter(|thread| thread.tree.iter().any(|node| node.depth > 0)) {
            out.push('\n');
            line(out, 0, &format!("thread {} {}, what began in what:", thread.tid, clean(&thread.name)));
            for node in &thread.tree {
                let indent = 2 + 2 * node.depth.min(20);
                let name = short(&node.name, 40usize.saturating_sub(indent).max(12));
                let label = format!("{:indent$}{name}", "");
                let share = node.item.inclusive.share.map_or("-".into(), percent);
                let times = thousands(node.item.counts.executions);
                let words = short(&node.item.inclusive.bottleneck, WIDTH - 66);
                *out += &format!("{label:42}{times:>12}{share:>8}  {words}\n");
            }
        }
    }
}
