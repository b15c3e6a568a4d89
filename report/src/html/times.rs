//! What clocks tell, where they alone do: a table of regions and threads, and the trees of threads.

use super::HtmlText;
use crate::model::Report;
use crate::time_alone::{self, COLUMNS, TimeRow};
use maud::{Markup, html};

/// Rows of a tree that are shown.
const MOST_PLACES: usize = 2500;
/// Deeper rows are not indented further.
const DEEPEST: usize = 30;

pub fn section(report: &Report) -> Markup {
    let rows = time_alone::rows(report);
    let mut places = 0;
    let (shown, left_out): (Vec<_>, Vec<_>) = time_alone::trees(report).partition(|(_, tree)| {
        places += tree.len();
        places <= MOST_PLACES
    });
    html! {
        @if !rows.is_empty() {
            section.card #times {
                h2 { "Time alone" }
                (table("times", &rows))
                @if let Some(more) = time_alone::left_out(report) { p.meta { (more) } }
                p.meta { (time_alone::NOTE) }
                @for (thread, tree) in &shown {
                    details {
                        summary { (HtmlText(thread)) ", what began in what" }
                        (table(thread, tree))
                    }
                }
                @if !left_out.is_empty() {
                    p.meta { "and " (crate::words::count(left_out.len() as u64, "thread")) " more: -o FILE.json has all" }
                }
            }
        }
    }
}

fn table(title: &str, rows: &[TimeRow]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(HtmlText(title)) {
            table.tree {
                thead { tr { th { "region" } @for title in COLUMNS { th.n { (title) } } } }
                tbody { @for row in rows { (self::row(row)) } }
            }
        }
    }
}

fn row(row: &TimeRow) -> Markup {
    let indent = 8 + 18 * row.depth.min(DEEPEST);
    let share = row.figures().time_alone.and_then(|time| time.wall_share).unwrap_or(0.0).min(1.0);
    html! {
        tr {
            td style={ "padding-left:" (indent) "px" } {
                (HtmlText(&row.name))
                div.weight { div style={ "width:" (format!("{:.2}", 100.0 * share)) "%" } {} }
                @for odd in row.odd() { div.meta { (HtmlText(odd)) } }
            }
            @for cell in row.cells() { td.n { (cell) } }
        }
        "\n"
    }
}
