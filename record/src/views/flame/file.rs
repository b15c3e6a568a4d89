//! A flame graph of CPU time as a file of its own.

use super::{Callees, Flames, GREY, SCRIPT, STYLE, Width, time};
use crate::profile::Profile;
use crate::views::remarks;
use maud::{Markup, html};
use topdown::LEVEL_1;
use topdown_report::SIMULATED;
use topdown_report::page::{HtmlText, colour};

/// Until a script makes it as wide as there is room, in pixels.
const WIDE: usize = 1200;
/// Above the frames, and beside and below what is there.
const HEAD: usize = 84;
const MARGIN: usize = 12;
/// From one colour of the legend to the next, and how wide a window must be for all.
const APART: usize = 150;
const NARROWEST: usize = 6 * APART;

/// The style with the colours of a light page for their names: not all that show pictures know these.
fn style() -> String {
    let mut pieces = STYLE.split("var(--");
    let mut style = pieces.next().unwrap_or_default().to_string();
    for (name, rest) in pieces.filter_map(|piece| piece.split_once(')')) {
        style += colour(name);
        style += rest;
    }
    style + &format!("svg.flame {{ min-width: {NARROWEST}px; }}\n")
}

/// What the colours mean.
fn legend() -> Markup {
    let classes = (0..LEVEL_1.len()).map(|k| (format!("a{k}"), LEVEL_1[k].title()));
    let all = classes.chain([(GREY.into(), "cannot be told".into())]).enumerate();
    html! {
        @for (place, (class, title)) in all {
            g.legend transform={ "translate(" (MARGIN + place * APART) " 56)" } {
                rect class=(class) width="12" height="12" {}
                text x="18" y="10" { (title) }
            }
        }
    }
}

pub(in crate::views) fn svg(profile: &Profile, command: &str) -> String {
    let flames = Flames::new(profile, Width::Time, Callees::Above);
    let height = HEAD + flames.height() + MARGIN;
    let mut remarks: Vec<String> = remarks::of_nothing(profile).map(String::from).into_iter().collect();
    remarks.extend(remarks::of_all(profile));
    let graph = html! {
        svg.flame xmlns="http://www.w3.org/2000/svg" width=(WIDE) height=(height) {
            style { (style()) }
            rect.page width="100%" height="100%" {}
            text.title x=(MARGIN) y="24" {
                @if profile.simulated.is_some() { (SIMULATED) ": " }
                (HtmlText(command))
            }
            text.meta x=(MARGIN) y="43" {
                "Width: " (time(profile)) " in user mode (" (remarks::amount(profile)) ")."
                @if profile.held.is_none() { " Colour: where most of the function's own slots went." }
                @if !remarks.is_empty() { title { (HtmlText(remarks.join(" "))) } " *" }
            }
            @if profile.held.is_none() { (legend()) }
            text.button.search x="99%" y="24" text-anchor="end" { "search" }
            text.button.reset x="99%" y="43" text-anchor="end" { "all" }
            text.matched x="99%" y="66" text-anchor="end" {}
            g transform={ "translate(0 " (HEAD) ")" } { (flames.frames()) }
            script { (SCRIPT) }
        }
    };
    graph.into_string() + "\n"
}
