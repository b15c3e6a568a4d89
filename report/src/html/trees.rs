//! Which region began in which.

use super::HtmlText;
use super::threads::title_of;
use crate::model::{Figures, Report, Thread, TreeRegion};
use crate::words::{self, percent, thousands};
use maud::{Markup, html};

/// Places of regions in the trees of threads.
const MOST_PLACES: usize = 2500;
/// Deeper places are not indented further.
const DEEPEST: usize = 30;

pub fn section(report: &Report) -> Markup {
    let threads = report.processes.iter().flat_map(|process| {
        let with_regions =
            process.threads.iter().filter(|thread| thread.counts_slots() && !thread.tree.is_empty());
        with_regions.map(|thread| (process.pid, thread))
    });
    let mut places = 0;
    let (shown, left_out): (Vec<_>, Vec<_>) = threads.partition(|(_, thread)| {
        places += thread.tree.len();
        places <= MOST_PLACES
    });
    html! {
        @if report.regions.iter().any(|region| region.nests && !region.time_alone) {
            section.card {
                details {
                    summary { h2 { "What began in what" } }
                    @for (pid, thread) in shown { (tree(&title_of(report, pid, thread), thread)) }
                    @if !left_out.is_empty() {
                        p.meta { "and " (words::count(left_out.len() as u64, "thread")) " more: -o FILE.json has all" }
                    }
                }
            }
        }
    }
}

fn tree(title: &str, thread: &Thread) -> Markup {
    html! {
        details {
            summary { (HtmlText(title)) }
            div.scroll tabindex="0" role="region" aria-label=(HtmlText(title)) {
                table.tree {
                    thead {
                        tr {
                            th { "region" } th.n { "executions" } th.n { "of all slots" } th.n { "without those in it" }
                            th { "most slots" }
                        }
                    }
                    tbody { @for node in &thread.tree { (row(node)) } }
                }
            }
        }
    }
}

fn row(node: &TreeRegion) -> Markup {
    let share = |figures: &Figures| figures.share.map_or("–".into(), percent);
    let indent = 8 + 18 * node.depth.min(DEEPEST);
    html! {
        tr {
            td style={ "padding-left:" (indent) "px" } { (HtmlText(&node.name)) }
            td.n { (thousands(node.item.counts.executions)) }
            td.n { (share(&node.item.inclusive)) }
            td.n { (share(&node.item.exclusive)) }
            td { (HtmlText(&node.item.inclusive.bottleneck)) }
        }
        "\n"
    }
}
