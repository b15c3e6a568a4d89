//! Threads side by side: what each did in each region.

use super::bar::{self, SMALL};
use super::{HtmlText, largest};
use crate::model::{Figures, Item, Region, Report, Thread};
use crate::words::{self, ThreadPlace, clean, percent};
use maud::{Markup, PreEscaped, html};
use std::collections::HashMap;

/// Side by side, the largest if there are more.
const MOST_THREADS: usize = 48;
/// Bars of regions in threads.
const MOST_CELLS: usize = 600;
/// Pixels of the column of names, and of each other.
const NAMES: usize = 176;
const COLUMN: usize = 100;

pub fn section(report: &Report) -> Markup {
    let threads = words::threads(report, MOST_THREADS);
    let all = words::threads(report, usize::MAX).len();
    let regions: Vec<&Region> = report.regions.iter().filter(|region| !region.time_alone).collect();
    let rows = regions.len().min(MOST_CELLS / threads.len().max(1));
    let several = report.processes.len() > 1;
    html! {
        @if threads.len() > 1 {
            section.card {
                h2 { "Threads" (largest(threads.len(), all)) }
                div.scroll tabindex="0" role="region" aria-label="threads" {
                    table.matrix style={ "width:" (NAMES + COLUMN * threads.len()) "px" } {
                        thead { tr { th { "region" } @for one in &threads { (head(one, several)) } } }
                        tbody {
                            tr {
                                th { "all of it" }
                                @for one in &threads {
                                    (cell(&title_of(report, one.process.pid, one.thread), &one.thread.item.inclusive))
                                }
                            }
                            @for region in &regions[..rows] { (row(report, &threads, region)) }
                        }
                    }
                }
                @if rows < regions.len() { p.meta { "Regions" (largest(rows, regions.len())) } }
            }
        }
    }
}

/// The thread's process first, if there are several.
pub fn title_of(report: &Report, pid: i32, thread: &Thread) -> String {
    let process = if report.processes.len() > 1 { format!("process {pid}, ") } else { String::new() };
    let killed = if thread.ended { "" } else { " (no end)" };
    format!("{process}thread {} {}{killed}", thread.tid, clean(&thread.name))
}

fn head(one: &ThreadPlace, several: bool) -> Markup {
    let Thread { tid, before, name, ended, item, .. } = one.thread;
    html! {
        th {
            (HtmlText(name)) small { (tid) }
            @if *before > 0 { small { "and " (before) " before it" } }
            @if several { small { "process " (one.process.pid) } }
            small { (item.inclusive.share.map_or(String::new(), percent)) }
            @if !ended { small { "no end" } }
        }
    }
}

fn row(report: &Report, threads: &[ThreadPlace], region: &Region) -> Markup {
    let of: HashMap<(usize, usize), &Item> =
        region.threads.iter().map(|one| (one.place, &one.item)).collect();
    let title = |one: &ThreadPlace| {
        format!("{} in {}", clean(&region.name), title_of(report, one.process.pid, one.thread))
    };
    html! {
        tr {
            th title=(HtmlText(&region.name)) { span.label { (HtmlText(&region.name)) } }
            @for one in threads {
                @match of.get(&one.place) {
                    Some(item) => { (cell(&title(one), &item.inclusive)) }
                    None => { td { "–" } }
                }
            }
        }
    }
}

fn cell(title: &str, figures: &Figures) -> Markup {
    html! { td { (PreEscaped(bar::draw(title, figures, SMALL))) } }
}
