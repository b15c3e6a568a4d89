//! Which region began in which.

use super::HtmlText;
use super::threads::title_of;
use crate::extent::ShownPlaces;
use crate::model::{Figures, Report, TreeRegion};
use crate::words::{self, percent, thousands};
use maud::{Markup, html};

/// Places of regions in the trees of threads.
const MOST_PLACES: usize = 2500;
/// Deeper places are not indented further.
const DEEPEST: usize = 30;

pub fn section(report: &Report) -> Markup {
    let threads = || {
        let all =
            report.processes.iter().flat_map(|process| process.threads.iter().map(|one| (process.pid, one)));
        all.filter(|(_, thread)| thread.counts_slots() && !thread.tree.is_empty())
    };
    let places = ShownPlaces::new(threads().map(|(_, thread)| thread), MOST_PLACES);
    let shown = || threads().map(|(pid, thread)| (pid, thread, places.of(thread)));
    let left_out: usize = shown().map(|(_, thread, places)| thread.tree.len() - places.len()).sum();
    html! {
        @if report.regions.iter().any(|region| region.nests && !region.time_alone) {
            section.card {
                details {
                    summary { h2 { "What began in what" } }
                    @for (pid, thread, places) in shown().filter(|(_, _, places)| !places.is_empty()) {
                        (tree(&title_of(report, pid, thread), places.iter().map(|place| &thread.tree[*place])))
                    }
                    @if left_out > 0 { p.meta { "Not shown: " (words::count(left_out as u64, "place")) " with less time" } }
                }
            }
        }
    }
}

fn tree<'r>(title: &str, places: impl Iterator<Item = &'r TreeRegion>) -> Markup {
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
                    tbody { @for node in places { (row(node)) } }
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
