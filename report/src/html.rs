//! The report as one page, which needs no other file, no network, and no script: the one in it sorts and hides. Written with the
//! crate maud, which escapes all that is not markup of these modules.
#![forbid(unsafe_code)]

mod bar;
pub mod chart;
#[cfg(test)]
mod colours;
mod figures;
pub mod page;
mod processes;
mod ranks;
mod regions;
mod threads;
mod timeline;
mod times;
mod trees;

use crate::bottlenecks;
use crate::companions;
use crate::model::{Figures, Report};
use crate::time_alone;
use crate::words::{self, clean, percent, thousands, time};
use bar::LARGE;
use maud::{Markup, PreEscaped, html};
use page::HtmlText;
use topdown::LEVEL_2;

const SCRIPT: &str = concat!(include_str!("html/script.js"), include_str!("html/chart.js"));
/// Regions that are ranked by what they wasted.
const RANKED: usize = 10;
/// Sample of a bar that has no parts.
const UNMEASURED: &str = r#"<svg class="bar" style="display:inline" width="34" height="16"><rect class="nothing" x="1" y="1" width="32" height="14"/></svg>"#;

/// The page. Sections that not every report has are functions of modules of their own, empty if there is nothing to show.
pub fn render(report: &Report) -> String {
    let (command, much) = words::title(report);
    let content = html! {
        (header(report, &command))
        @if !report.machines.is_empty() {
            (whole(report, &much))
            (timeline::section(report.timeline.as_ref()))
            (wasted(report))
            (companion_figures(report))
            (ranks::section(report))
            (regions::section(report))
            (processes::section(report))
            (threads::section(report))
            (trees::section(report))
            (figures::section(report))
        } @else if report.run.is_some() && report.time_alone.is_none() {
            (unmeasured(report, &much))
        }
        @if report.machines.is_empty() && report.time_alone.is_some() { (ranks::section(report)) }
        (times::section(report))
        @if report.machines.is_empty() && !report.steps.is_empty() {
            section.card #next { h2 { "What next" } (page::steps(&report.steps)) }
        }
        footer {
            "libtopdown " (report.version)
            @if !report.machines.is_empty() { ". Each share is within its bound of the truth; docs/report.md says how." }
        }
    };
    page::page(&command, "", &content, SCRIPT)
}

/// What can be had of a run that was not measured.
fn unmeasured(report: &Report, much: &str) -> Markup {
    html! {
        section.card {
            h2 { "What it took" }
            p { (HtmlText(much)) }
            @if let Some(time) = report.whole.time.total_text() { p.meta { (time) } }
        }
    }
}

fn header(report: &Report, command: &str) -> Markup {
    let alone = time_alone::sentence(report);
    let remarks: Vec<String> = alone.clone().into_iter().chain(words::remarks(report)).collect();
    html! {
        header {
            p.over { @if alone.is_some() { "Where the time went" } @else { "Where the pipeline slots went" } }
            h1 title=(HtmlText(command)) { (HtmlText(command)) }
            @if let Some(occasion) = words::occasion(report) { p.machine { (HtmlText(occasion)) } }
            @for machine in words::machines(&report.machines) { p.machine { (HtmlText(machine)) } }
            @if words::simulated(report) {
                p.simulated { "SIMULATED: the figures are made up, since there was nothing to measure with." }
            }
            @if !remarks.is_empty() {
                ul.remarks { @for remark in &remarks { li { (HtmlText(remark)) } } }
            }
        }
    }
}

/// All of it, and what the colours mean.
fn whole(report: &Report, much: &str) -> Markup {
    let figures = &report.whole.inclusive;
    html! {
        section.card #whole {
            div.whole {
                div {
                    p.over { "Whole program" }
                    p.number { (words::slots(figures.slots as f64)) " slots" }
                    p.meta {
                        (time(figures.time_ns as f64)) " of threads' time" br;
                        @if let Some(time) = report.whole.time.text() { (time) br; }
                        (much) ", " (words::count(report.regions.iter().filter(|one| !one.time_alone).count() as u64, "region"))
                    }
                }
                div { (bar_of("whole program", figures)) }
            }
            (page::legend_of(|k| (2 * k..2 * k + 2).map(|place| (place, LEVEL_2[place].title())).collect()))
            div.marks {
                (page::marks("the bound: a part may be so much longer or shorter"))
                span { (PreEscaped(UNMEASURED)) "not measured" }
                span { "level 1 above, its parts (level 2) below" }
            }
        }
    }
}

/// Figures that are no shares, if some were asked for.
fn companion_figures(report: &Report) -> Markup {
    let runs = report.outside.iter().map(|outside| &outside.run);
    html! {
        @for run in runs.filter(|run| !run.metrics.is_empty()) {
            section.card {
                h2 { "Companion figures" }
                ul {
                    @for one in companions::lines(&run.metrics) { li { (HtmlText(&one)) } }
                }
            }
        }
    }
}

/// Where the most slots were wasted, and what to do next.
fn wasted(report: &Report) -> Markup {
    let all = words::wasted(report, RANKED);
    let share = |slots: u64| percent(slots as f64 / report.whole.inclusive.slots as f64);
    html! {
        @if !all.is_empty() || !report.steps.is_empty() {
            section.card #next {
                h2 { "Wasted slots, and what next" }
                @for run in report.outside.iter().map(|outside| &outside.run).filter(|run| !run.bottlenecks.is_empty()) {
                    h3 { "Bottlenecks, in % of slots, by the formulas of " (HtmlText(&run.tree)) }
                    ul {
                        @for one in bottlenecks::lines(&run.bottlenecks) { li { (HtmlText(&one)) } }
                    }
                }
                ol {
                    @for one in &all {
                        @let error = one.figures.level_1.map_or(0.0, |level| 100.0 * level.error);
                        li {
                            b { (HtmlText(one.name)) } " "
                            span.meta {
                                (words::slots(one.slots as f64)) " slots, " (share(one.slots)) " of all; its shares within "
                                (format!("{error:.1}")) " points"
                            }
                            p { (HtmlText(&one.figures.bottleneck)) }
                            @if !one.next.is_empty() { p.step { (HtmlText(&one.next)) } }
                        }
                    }
                }
                @for run in report.outside.iter().map(|outside| &outside.run).filter(|run| !run.findings.is_empty()) {
                    h3 { "Below level 2, by the thresholds of " (HtmlText(&run.tree)) }
                    ol {
                        @for finding in &run.findings { li { (HtmlText(&finding.text())) } }
                    }
                }
                (page::steps(&report.steps))
            }
        }
    }
}

/// ": the 100 largest of 2,000", if there are so many.
fn largest(shown: usize, all: usize) -> String {
    if shown < all { format!(": the {shown} largest of {}", thousands(all as u64)) } else { String::new() }
}

/// "1.23 G slots, 123 ms, 45.6 % of all"
fn amount(figures: &Figures) -> String {
    let share = percent(figures.share.unwrap_or(0.0));
    format!("{} slots, {}, {share} of all", words::slots(figures.slots as f64), time(figures.time_ns as f64))
}

/// A verdict, its bound, and the bar.
fn bar_of(name: &str, figures: &Figures) -> Markup {
    let mut others = words::other_nodes(figures).peekable();
    html! {
        (page::head(&figures.bottleneck, figures.level_1.map(|one| one.error), figures.level_2.map(|two| two.error)))
        (PreEscaped(bar::draw(&clean(name), figures, LARGE)))
        @if others.peek().is_some() {
            ul.nodes { @for (name, node) in others { li { (HtmlText(name)) ": " (HtmlText(node.text())) } } }
        }
    }
}
