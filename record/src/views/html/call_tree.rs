//! Callers with what they call, from the outermost on: nested lists, which open and close without a script.
#![forbid(unsafe_code)]

use crate::profile::Profile;
use crate::views::flame::{Callees, FlameFrame, Flames, FrameKind, FrameLook, LargestFrames, Width};
use crate::views::remarks;
use maud::{Markup, html};
use topdown_report::page::HtmlText;
use topdown_report::{SIMULATED, percent, thousands};

/// So many rows are shown, at the most: of a larger tree those of most time.
const MOST_ROWS: usize = 2000;
/// Rows of so much of all are open at first, unless they are deeper than this.
const OPEN: f64 = 0.1;
const DEEPEST_OPEN: usize = 20;
/// What is left out of a function's callees and needs no row.
const LITTLE: f64 = 0.0005;

struct CallTree<'p> {
    flames: Flames<'p>,
    /// Nanoseconds (or events) of all.
    all: f64,
    shown: LargestFrames,
}

pub(super) fn section(profile: &Profile) -> Markup {
    let flames = Flames::new(profile, Width::Time, Callees::Above);
    let all = flames.root().ns;
    let shown = LargestFrames::of(flames.root(), remarks::LEAST_TIME * all, MOST_ROWS);
    let tree = CallTree { flames, all, shown };
    let of = profile.held.as_ref().map_or("the time", |held| held.of.all());
    html! {
        @if all > 0.0 {
            section.card #calls {
                h2 { "Call tree" }
                @if profile.simulated.is_some() { p.meta { (SIMULATED) ": times are real, colours are not." } }
                p.meta {
                    "Callers above what they call, with their part of " (of) ": with all that a function calls, and alone. Parts of less than "
                    (percent(remarks::LEAST_TIME)) " are left out"
                    @if tree.shown.is_cut { ", and all but the " (thousands(MOST_ROWS as u64)) " largest" }
                    "."
                }
                div.calls {
                    div.row.head { span { "with calls" } span { "alone" } span { "function" } }
                    (tree.within(tree.top(), 0))
                }
            }
        }
    }
}

impl<'p> CallTree<'p> {
    /// What the outermost rows are in: where one kind of core is alone it needs no row.
    fn top(&self) -> &FlameFrame<'p> {
        let root = self.flames.root();
        match root.inner.len() {
            1 => root.inner.values().next().unwrap_or(root),
            _ => root,
        }
    }

    fn within(&self, frame: &FlameFrame<'p>, depth: usize) -> Markup {
        let (mut shown, hidden): (Vec<_>, Vec<_>) =
            frame.inner.iter().partition(|(_, inner)| self.shown.has(inner));
        shown.sort_by(|(_, a), (_, b)| b.ns.total_cmp(&a.ns));
        let rest: f64 = hidden.iter().map(|(_, inner)| inner.ns).sum();
        html! {
            @for (of, inner) in shown { (self.node(*of, inner, depth)) "\n" }
            @if rest >= LITTLE * self.all {
                div.row style={ "--d:" (depth) } {
                    (self.part(rest)) span.n {} span.what { span.meta { (hidden.len()) " smaller" } }
                }
            }
        }
    }

    fn node(&self, of: FrameKind<'p>, frame: &FlameFrame<'p>, depth: usize) -> Markup {
        let is_open = frame.ns >= OPEN * self.all && depth < DEEPEST_OPEN;
        html! {
            @if frame.inner.values().all(|inner| !self.shown.has(inner) && inner.ns < LITTLE * self.all) {
                div.row style={ "--d:" (depth) } { (self.cells(of, frame)) }
            } @else {
                details open[is_open] {
                    summary.row style={ "--d:" (depth) } { (self.cells(of, frame)) }
                    (self.within(frame, depth + 1))
                }
            }
        }
    }

    fn part(&self, ns: f64) -> Markup {
        let part = percent(ns / self.all);
        html! { span.n style={ "--p:" (format!("{:.1}", 100.0 * ns / self.all)) "%" } { (part) } }
    }

    fn cells(&self, of: FrameKind<'p>, frame: &FlameFrame<'p>) -> Markup {
        let FrameLook { name, module, class, bottleneck } = self.flames.look(of);
        let alone = frame.ns - frame.inner.values().map(|inner| inner.ns).sum::<f64>();
        html! {
            (self.part(frame.ns))
            span.n { (percent(alone.max(0.0) / self.all)) }
            span.what {
                svg.swatch width="10" height="10" role="img" aria-label=(bottleneck) { title { (bottleneck) } rect.(class) width="10" height="10" rx="2" {} }
                span.name { (HtmlText(name)) }
                @if !module.is_empty() { " " span.meta { (HtmlText(module)) } }
            }
        }
    }
}
