//! A bar for each region.

use super::{HtmlText, amount, bar_of, largest};
use crate::model::{Counts, Figures, Item, Region, Report};
use crate::words::{self, percent, thousands};
use maud::{Markup, html};

/// Regions with bars, the largest if there are more: of others the script makes them when asked. (A page of 2,000 regions in 64 threads is to have less than 5 MB.)
const MOST_REGIONS: usize = 100;

/// What regions can be sorted by: an attribute of theirs, and in words.
const ORDERS: [(&str, &str); 5] = [
    ("slots", "slots"),
    ("exclusive", "exclusive slots"),
    ("wasted", "wasted slots"),
    ("executions", "executions"),
    ("name", "name"),
];

pub fn section(report: &Report) -> Markup {
    let regions: Vec<&Region> = report.regions.iter().filter(|region| !region.time_alone).collect();
    let shown = regions.len().min(MOST_REGIONS);
    let rest = &report.whole.exclusive;
    html! {
        @if !regions.is_empty() {
            section.card {
                div.tools { h2 { "Regions" (largest(shown, regions.len())) } (tools()) }
                div #regions { @for region in &regions[..shown] { (article(region)) } }
                @if shown < regions.len() { button #more.scripted hidden type="button" { "show more" } }
                @if rest.slots > 0 {
                    div.exclusive {
                        div.region {
                            div { div.name { "outside regions" } div.meta { (at_most(rest)) (amount(rest)) } }
                            div { (bar_of("outside regions", rest)) }
                        }
                    }
                }
            }
        }
    }
}

/// Before what ran in no region.
fn at_most(rest: &Figures) -> &'static str {
    if rest.lacks { "at most " } else { "" }
}

fn tools() -> Markup {
    html! {
        form onsubmit="return false" {
            span {
                label { input #inclusive type="radio" name="which" checked; " inclusive" } " "
                label { input #exclusive type="radio" name="which"; " exclusive: without the regions in it" }
            }
            label.scripted hidden {
                "sort by "
                select #order { @for (value, title) in ORDERS { option value=(value) { (title) } } }
            }
            input.scripted #filter hidden type="search" placeholder="name" aria-label="only names with";
        }
    }
}

fn article(region: &Region) -> Markup {
    let Item { counts, inclusive, exclusive } = &region.item;
    let name = HtmlText(&region.name);
    let both = [("inclusive", inclusive), ("exclusive", exclusive)];
    let chips = chips(&region.name, counts, inclusive);
    html! {
        article.region data-name=(name) data-slots=(inclusive.slots) data-exclusive=(exclusive.slots)
            data-wasted=(region.wasted.unwrap_or(0)) data-executions=(counts.executions) {
            div {
                div.name title=(name) { (name) }
                div.meta { (words::count(counts.executions, "execution")) }
                @for (class, figures) in both {
                    @let share = figures.share.filter(|_| !figures.lacks);
                    @let width = 100.0 * share.unwrap_or(0.0).min(1.0);
                    div class=(class) {
                        @if figures.lacks {
                            div.meta { "how many slots is not known: executions did not end" }
                        } @else {
                            div.meta { (amount(figures)) }
                        }
                        div.weight { div style={ "width:" (format!("{width:.2}")) "%" } {} }
                    }
                }
            }
            div {
                @for (class, figures) in both { div class=(class) { (bar_of(&region.name, figures)) } }
                @if !chips.is_empty() {
                    div.chips { @for (class, chip) in &chips { span class=(class) { (HtmlText(chip)) } } }
                }
            }
        }
        "\n"
    }
}

/// What is to be known of its executions, with a class.
fn chips(name: &str, counts: &Counts, inclusive: &Figures) -> Vec<(&'static str, String)> {
    let mut chips = Vec::new();
    if counts.measured < counts.executions {
        let sample =
            if counts.measured > 0 { ": a random sample, bounds are four standard errors" } else { "" };
        let (measured, all) = (thousands(counts.measured), thousands(counts.executions));
        chips.push(("chip", format!("{measured} of {all} measured{sample}")));
    }
    if let Some(running) = inclusive.running.filter(|running| *running < 0.9995) {
        chips.push(("chip warn", format!("counted {} of the time", percent(running))));
    }
    chips.extend(words::oddities(Some(name), counts).into_iter().map(|odd| ("chip warn", odd)));
    chips
}
