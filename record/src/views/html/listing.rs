//! The lines of a function with the time of each.
#![forbid(unsafe_code)]

use crate::profile::{Profile, ProfiledFunction, ProfiledLine};
use crate::sources::{MissingText, SourceText};
use crate::views::listing::{self, InFile};
use maud::{Markup, html};
use topdown_report::count;
use topdown_report::page::HtmlText;

/// Nothing where no line is known. `open`: without a click.
pub(super) fn section(profile: &Profile, function: &ProfiledFunction, open: bool) -> Markup {
    let Some(hottest) = function.lines.first() else { return html! {} };
    let name = hottest.file.rsplit('/').next().unwrap_or_default();
    let without = function.own.bursts.saturating_sub(function.lines.iter().map(|line| line.bursts).sum());
    let others = function.lines.len() - listing::hottest(function).len();
    html! {
        details.lines open[open] {
            summary { "Lines: " (HtmlText(name)) ":" (hottest.line) " has " (hottest.time) }
            @for file in listing::of(profile, function) { (in_file(profile, function, &file)) }
            @if others > 0 { p.meta { (count(others as u64, "line")) " with less " (if others == 1 { "is" } else { "are" }) " not marked." } }
            @if without > 0 {
                p.meta { "To " (count(without as u64, "burst")) " of " (function.own.bursts) " in the function the compiler gave no line." }
            }
        }
    }
}

/// Where it is, and what is wrong with it.
fn heading(file: &InFile) -> Markup {
    html! {
        p.meta.file {
            @match file.text {
                None => { (HtmlText(file.file)) }
                Some(Err(MissingText::Absent)) => { (HtmlText(file.file)) ": " (MissingText::Absent) }
                Some(Err(why)) => { (HtmlText(file.file)) ": " (why) }
                Some(Ok(SourceText { path, newer, .. })) => {
                    (HtmlText(path.to_string_lossy()))
                    @if *newer { span.warn { " was written after the program: lines may be others by now" } }
                }
            }
        }
    }
}

fn in_file(profile: &Profile, function: &ProfiledFunction, file: &InFile) -> Markup {
    let time = if profile.held.is_some() { "part" } else { "time" };
    let before = std::iter::once(None).chain(file.rows.iter().map(|(number, _)| Some(*number)));
    let skips = |before: Option<u32>, number: u32| before.is_some_and(|before| before + 1 < number);
    html! {
        (heading(file))
        table.source {
            thead { tr { th { (time) } td {} th { "line" } td {} } }
            tbody {
                @for ((number, seen), before) in file.rows.iter().zip(before) {
                    @if skips(before, *number) { tr.skip { td {} td {} td { "⋮" } td {} } }
                    (row(function, file, *number, *seen))
                    "\n"
                }
            }
        }
    }
}

fn row(function: &ProfiledFunction, file: &InFile, number: u32, seen: Option<&ProfiledLine>) -> Markup {
    let text = file.text.and_then(|text| text.as_ref().ok()).and_then(|text| text.lines.get(&number));
    let hottest = seen.is_some_and(|line| listing::is_hottest(function, line));
    let part = |line: &ProfiledLine| 100.0 * line.time_ns as f64 / function.own.time_ns.max(1) as f64;
    html! {
        tr.hottest[hottest] {
            td.time { @if let Some(line) = seen { (line.time) } }
            td.part { @if let Some(line) = seen { div style={ "width:" (format!("{:.1}", part(line))) "%" } {} } }
            td.at { (number) }
            td.text { @if let Some(text) = text { (HtmlText(text)) } }
        }
    }
}
