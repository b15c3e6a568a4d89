//! Ranks of a job, and the hosts that they ran on: a bar for each, and how regions divide among them.

use super::{HtmlText, amount, bar_of, largest};
use crate::model::{Figures, HostOfRanks, Report};
use crate::ranks;
use crate::words::{clean, count, percent, time};
use maud::{Markup, html};

/// With bars, those with the most time if there are more.
const MOST_RANKS: usize = 48;
/// Regions with a row.
const MOST_REGIONS: usize = 100;

pub fn section(report: &Report) -> Markup {
    let shown = ranks::shown(report, MOST_RANKS);
    let over = report.regions.iter().filter_map(|region| Some((region, region.over_ranks.as_ref()?)));
    let rows: Vec<_> = over.take(MOST_REGIONS).collect();
    html! {
        @if !shown.is_empty() {
            section.card #ranks {
                h2 { "Ranks" (largest(shown.len(), report.ranks.len())) }
                @for rank in &shown {
                    (article(&ranks::label(rank), &elapsed(&rank.item.inclusive), &rank.item.inclusive))
                }
                @if report.hosts.len() > 1 {
                    h2 { "Hosts" }
                    @for host in report.hosts.iter().take(MOST_RANKS) {
                        (article(&clean(&host.host), &of_host(host), &host.item.inclusive))
                    }
                }
                @if !rows.is_empty() {
                    h2 { "Regions over ranks" (largest(rows.len(), report.regions.len())) }
                    div.scroll tabindex="0" role="region" aria-label="regions over ranks" {
                        table {
                            thead { tr {
                                th { "region" } th { "all ranks" } th { "least" } th { "mean" } th { "most" }
                                th { "slowest rank" } th { "imbalance" }
                            } }
                            tbody {
                                @for (region, over) in &rows {
                                    tr {
                                        th title=(HtmlText(&region.name)) { span.label { (HtmlText(&region.name)) } }
                                        @for ns in [over.sum_ns, over.min_ns, over.mean_ns, over.max_ns] {
                                            td { (time(ns as f64)) }
                                        }
                                        td { (over.slowest) }
                                        td { (percent(over.imbalance)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn of_host(host: &HostOfRanks) -> String {
    let ranks = count(host.ranks.len() as u64, "rank");
    let elapsed = elapsed(&host.item.inclusive);
    if elapsed.is_empty() { ranks } else { format!("{ranks}, {elapsed}") }
}

/// Where clocks alone tell.
fn elapsed(figures: &Figures) -> String {
    figures.wall_ns().map_or(String::new(), |ns| time(ns as f64))
}

fn article(name: &str, more: &str, figures: &Figures) -> Markup {
    html! {
        div.region {
            div {
                div.name title=(HtmlText(name)) { (HtmlText(name)) }
                @if !more.is_empty() { div.meta { (more) } }
                @if figures.time_alone.is_none() { div.meta { (amount(figures)) } }
            }
            div { (bar_of(name, figures)) }
        }
        "\n"
    }
}
