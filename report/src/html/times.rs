//! What clocks tell, where they alone do: a table of regions and threads, and the trees of threads.

use super::HtmlText;
use crate::model::Report;
use crate::time_alone::{self, COLUMNS, TimeRow, TimeTrees};
use crate::words::count;
use maud::{Markup, html};

/// Rows of regions and their threads, and of trees.
const MOST_ROWS: usize = 2500;
/// Deeper rows are not indented further.
const DEEPEST: usize = 30;

pub fn section(report: &Report) -> Markup {
    let rows = time_alone::rows(report, MOST_ROWS);
    let TimeTrees { trees, left_out, .. } = time_alone::trees(report, MOST_ROWS);
    html! {
        @if !rows.is_empty() {
            section.card #times {
                h2 { "Time alone" }
                (table("times", &rows))
                @if let Some(more) = time_alone::left_out(report, MOST_ROWS) { p.meta { (more) } }
                p.meta { (time_alone::NOTE) }
                @for (thread, tree) in &trees {
                    details {
                        summary { (HtmlText(thread)) ", what began in what" }
                        (table(thread, tree))
                    }
                }
                @if left_out > 0 { p.meta { "Not shown: " (count(left_out as u64, "place")) " with less time" } }
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
