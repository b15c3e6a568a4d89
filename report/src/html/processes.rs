//! Processes of which more than a tenth was counted from outside alone: a bar for each, and for the rest.

use super::{HtmlText, amount, bar_of, largest};
use crate::model::{OutsideProcess, Report};
use crate::words;
use maud::{Markup, html};

/// With bars, the largest if there are more.
const MOST_PROCESSES: usize = 48;

pub fn section(report: &Report) -> Markup {
    let all = report.outside.iter().flat_map(|outside| &outside.processes);
    let (processes, rest): (Vec<_>, Vec<_>) =
        all.filter(|one| one.is_unseen()).partition(|one| one.pid.is_some());
    let shown = processes.len().min(MOST_PROCESSES);
    html! {
        @if shown + rest.len() > 0 {
            section.card #processes {
                h2 { "Processes that did not measure themselves" (largest(shown, processes.len())) }
                p.meta { "Counted from outside: more than a tenth of each is of no thread that measured itself." }
                @for one in processes[..shown].iter().chain(&rest) { (article(one)) }
            }
        }
    }
}

fn article(one: &OutsideProcess) -> Markup {
    let figures = &one.item.inclusive;
    let name = one.pid.map_or(one.name.clone(), |pid| format!("{pid} {}", one.name));
    html! {
        div.region {
            div {
                div.name title=(HtmlText(&name)) { (HtmlText(&name)) }
                div.meta { (amount(figures)) }
                @if one.inside > 0 { div.meta { (words::slots(one.inside as f64)) " of these it measured itself" } }
            }
            div { (bar_of(&name, figures)) }
        }
        "\n"
    }
}
