//! All numbers, for who wants them, or cannot see the bars.

use super::HtmlText;
use crate::model::{Figures, Item, Report};
use crate::words::{self, thousands, time};
use maud::{Markup, html};
use topdown::{LEVEL_1, LEVEL_2, Metric};

/// Columns besides those of the levels.
const AMOUNTS: [&str; 4] = ["executions", "slots", "time", "running"];

pub fn section(report: &Report) -> Markup {
    let whole = &report.whole;
    html! {
        section.card {
            details {
                summary { h2 { "All figures" } }
                div.scroll tabindex="0" role="region" aria-label="all figures" {
                    table.figures {
                        thead {
                            tr {
                                th { "region" }
                                @for title in titles() { th.n { (title) } }
                            }
                        }
                        tbody {
                            (row("", "whole program", whole, &whole.inclusive))
                            @for region in report.regions.iter().filter(|region| !region.time_alone) {
                                (row("r", &region.name, &region.item, &region.item.inclusive))
                                @if region.nests {
                                    @let name = format!("{} (without the regions in it)", region.name);
                                    (row("x", &name, &region.item, &region.item.exclusive))
                                }
                            }
                            @if !report.regions.is_empty() { (row("", "outside regions", whole, &whole.exclusive)) }
                        }
                    }
                }
            }
        }
    }
}

fn titles() -> impl Iterator<Item = String> {
    let amounts = AMOUNTS.map(String::from).into_iter();
    let one = LEVEL_1.iter().map(Metric::title).chain(["within".into()]);
    let two = LEVEL_2.iter().map(Metric::title).chain(["level 2 within".into()]);
    amounts.chain(one).chain(two)
}

/// Each column's number to sort by, and its text.
fn columns(item: &Item, figures: &Figures) -> Vec<(f64, String)> {
    let (executions, slots, ns) = (item.counts.executions, figures.slots as f64, figures.time_ns as f64);
    let share =
        |share: Option<f64>| (-1.0, share.map_or("–".into(), |share| format!("{:.1}", 100.0 * share)));
    let amounts = [
        (executions as f64, thousands(executions)),
        (slots, words::slots(slots)),
        (ns, time(ns)),
        share(figures.running),
    ];
    let one = (0..LEVEL_1.len()).map(|k| share(figures.level_1.map(|one| one.of[k])));
    let two = (0..LEVEL_2.len()).map(|k| share(figures.level_2.map(|two| two.of[k])));
    let one = one.chain([share(figures.level_1.map(|one| one.error))]);
    let two = two.chain([share(figures.level_2.map(|two| two.error))]);
    amounts.into_iter().chain(one).chain(two).collect()
}

/// `kind`: "r" of a region, "x" of the one before without the regions in it.
fn row(kind: &str, name: &str, item: &Item, figures: &Figures) -> Markup {
    html! {
        tr class=[(!kind.is_empty()).then_some(kind)] {
            td { (HtmlText(name)) }
            // (the number where the text is none)
            @for (value, text) in columns(item, figures) {
                td data-v=[text.parse::<f64>().is_err().then_some(value)] { (text) }
            }
        }
        "\n"
    }
}
