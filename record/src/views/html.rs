//! The profile as a page that needs no other file, no network, and but for zoom and search in flame graphs no script.
#![forbid(unsafe_code)]

mod call_tree;
mod listing;
mod sorting;
mod threads;
mod timeline;

use super::flame::{self, Callees, Flames, Width};
use super::next::{self, tree};
use super::{Heading, remarks};
use crate::event_sampling::SamplesOf;
use crate::profile::{FunctionFigures, Profile, ProfiledCore, ProfiledFunction};
use maud::{Markup, html};
use sorting::SortKey;
use topdown_report::page::{self, HtmlText};
use topdown_report::{SIMULATED, chart, count, thousands};

const STYLE: &str = concat!(include_str!("flame/flame.css"), include_str!("html/style.css"));

/// What is to be known of all lines.
const ABOUT_LINES: &str = "A line has the part of all time that the clock's samples in it stand for; the marked ones may be the hottest of their function. \
     An interrupt is taken some instructions late: a line may have time of those before it. Lines have no shares, since a window is longer \
     than a line runs: those of the function stand above them.";

pub(super) fn html(profile: &Profile, heading: &Heading) -> String {
    let nothing = remarks::of_nothing(profile).map(String::from);
    let remarks: Vec<String> = nothing.into_iter().chain(remarks::of_all(profile)).collect();
    let over = match &profile.held {
        Some(held) if held.of.is_time() => "Which functions take the CPU time".into(),
        None => "Which functions waste the pipeline slots".into(),
        Some(held) if held.of.is_condition() => format!("Which functions run{}", held.of.heading()),
        Some(held) => format!("Which functions have {}{}", held.event, held.of.heading()),
    };
    let content = html! {
        header {
            p.over { (over) }
            h1 title=(HtmlText(heading.command)) { (HtmlText(heading.command)) }
            p.machine { (remarks::amount(profile)) }
            @if !heading.occasion.is_empty() { p.machine { (HtmlText(heading.occasion)) } }
            @if profile.simulated.is_some() { p.simulated { (SIMULATED) ", since there was nothing to measure with." } }
            @if !remarks.is_empty() { ul.remarks { @for remark in &remarks { li { (HtmlText(remark)) } } } }
        }
        (next_steps(profile, heading))
        @for (place, core) in profile.cores.iter().enumerate() {
            @if profile.held.is_some() { (of_samples(profile, place, core)) } @else { (of_core(profile, place, core)) }
        }
        (timeline::section(profile))
        (threads::section(profile))
        @if !profile.cores.is_empty() { (graphs(profile)) }
        (call_tree::section(profile))
        footer {
            "libtopdown " (env!("CARGO_PKG_VERSION")) ". Each figure is in its interval with a probability of 95 %; docs/record-method.md says how."
        }
    };
    page::page(heading.command, STYLE, &content, &[flame::SCRIPT, chart::SCRIPT, sorting::SCRIPT].concat())
}

/// Where most of it is, and what to run next.
fn next_steps(profile: &Profile, heading: &Heading) -> Markup {
    let next = next::next(profile, heading, true);
    html! {
        @if !next.lines.is_empty() || !next.steps.is_empty() {
            section.card #next {
                h2 { "In short" }
                @for line in &next.lines { p { (HtmlText(line)) } }
                (page::steps(&next.steps))
            }
        }
    }
}

/// A kind of core: all that ran on it, and the functions, those that waste most first.
fn of_core(profile: &Profile, place: usize, core: &ProfiledCore) -> Markup {
    let (told, untold): (Vec<_>, Vec<_>) =
        remarks::listed(profile, place).partition(|function| function.own.told(&core.nodes).is_ok());
    let (processes, remarks) = (remarks::processes(profile, place), remarks::of_core(profile, place, core));
    let functions = told.len() + untold.len();
    html! {
        section.card.core {
            div.whole {
                div {
                    p.over { (core.name) }
                    p.number { (count(core.windows as u64, "window")) }
                    @if profile.cores.len() > 1 { p.meta { (core.all.time) " of the time" } }
                }
                div { (bar(core, "all of it", &core.all)) (why_not(profile, core, &core.all)) }
            }
            @if let Some(tree) = tree(core, &core.all) { (page::legend(&tree)) }
            div.marks {
                (page::marks("the bound (95 %): a part may be so much longer or shorter"))
                span { "level 1 above, its parts (level 2) below" }
            }
        }
        div.function-list {
            section.card.functions {
                h2 { "Functions that waste most slots" }
                @if functions > 1 { (sorting::controls(&SortKey::of_shares(core), functions)) }
                @if told.iter().chain(&untold).any(|function| !function.lines.is_empty()) { p.meta { (ABOUT_LINES) } }
                div.rows {
                    @for (k, function) in told.iter().enumerate() { (row(profile, core, function, &function.own, Some(k == 0))) }
                }
                @if told.is_empty() { p.meta { "Of none it can be told." } }
                @for remark in &remarks { p.meta { (remark) } }
            }
            (cannot_be_told(profile, core, &untold))
        }
        @if !processes.is_empty() {
            section.card.functions {
                h2 { "Processes that waste most slots" }
                @for process in processes { (row(profile, core, process, &process.inclusive, None)) }
            }
        }
    }
}

/// Functions of which shares are not known.
fn cannot_be_told(profile: &Profile, core: &ProfiledCore, untold: &[&ProfiledFunction]) -> Markup {
    html! {
        @if !untold.is_empty() {
            section.card.untold {
                h2 { "Functions of which it cannot be told" }
                @for function in untold {
                    div.region data-values=(sorting::values(profile, core, function)) {
                        (name(function))
                        div {
                            (function.own.time) " of the time"
                            (why_not(profile, core, &function.own))
                        }
                        (listing::section(profile, function, false))
                    }
                }
            }
        }
    }
}

/// A core where samples are of an event: functions by the part that they have of those.
fn of_samples(profile: &Profile, place: usize, core: &ProfiledCore) -> Markup {
    let of = profile.held.as_ref().map(|held| &held.of);
    let all = of.map_or("", SamplesOf::all);
    let have_most = match of {
        Some(of) if of.is_time() => "that take most of the time",
        Some(of) if !of.is_condition() => "that have most of the events",
        _ => "in which most of the stretches end",
    };
    let part = |function: &ProfiledFunction, figures: &FunctionFigures, listing: &Markup| {
        html! {
            div.region data-values=(sorting::values(profile, core, function)) {
                (name(function))
                div {
                    (figures.time) " of " (all) ", " (count(figures.bursts as u64, "sample"))
                    div.weight { div style={ "width:" (format!("{:.2}", 100.0 * figures.time.value)) "%" } {} }
                }
                (listing)
            }
            "\n"
        }
    };
    let processes = remarks::processes(profile, place);
    let functions: Vec<&ProfiledFunction> = remarks::listed(profile, place).collect();
    html! {
        div.function-list {
            section.card.functions {
                h2 { (core.name) ": functions " (have_most) }
                @if functions.len() > 1 { (sorting::controls(&SortKey::of_parts(profile.is_of_time()), functions.len())) }
                @if let Some(remark) = remarks::of_unlisted(profile, place) { p.meta { (remark) } }
                div.rows {
                    @for (k, function) in functions.iter().enumerate() {
                        (part(function, &function.own, &listing::section(profile, function, k == 0)))
                    }
                }
            }
        }
        @if !processes.is_empty() {
            section.card.functions {
                h2 { (core.name) ": processes " (have_most) }
                @for process in processes { (part(process, &process.inclusive, &html! {})) }
            }
        }
    }
}

fn why_not(profile: &Profile, core: &ProfiledCore, figures: &FunctionFigures) -> Markup {
    html! { @if let Err(why) = figures.told(&core.nodes) { p.meta { (remarks::untold(why, figures, profile)) } } }
}

fn name(function: &ProfiledFunction) -> Markup {
    html! {
        div {
            div.name title=(HtmlText(&function.path)) { (HtmlText(&function.name)) }
            div.meta { (HtmlText(&function.module)) }
        }
    }
}

/// `listing`: there is one, and it is open at first.
fn row(
    profile: &Profile,
    core: &ProfiledCore,
    function: &ProfiledFunction,
    figures: &FunctionFigures,
    listing: Option<bool>,
) -> Markup {
    let wasted = 100.0 * figures.wasted(&core.nodes).unwrap_or(0.0);
    html! {
        div.region data-values=(sorting::values(profile, core, function)) {
            div {
                (name(function))
                div.meta { (figures.time) " of the time" br; "wasted in it: " (format!("{wasted:.1} %")) }
                div.weight { div style={ "width:" (format!("{wasted:.2}")) "%" } {} }
            }
            div { (bar(core, &function.name, figures)) (why_not(profile, core, figures)) }
            @if let Some(open) = listing { (listing::section(profile, function, open)) }
        }
        "\n"
    }
}

/// The bar of what is told, and each node with its interval.
fn bar(core: &ProfiledCore, name: &str, figures: &FunctionFigures) -> Markup {
    let (tree, told) = (tree(core, figures), figures.told(&core.nodes).ok());
    let of_level = |level: u32| {
        let shares = core.nodes.iter().zip(told.iter().flat_map(|told| &told.shares));
        let of = shares.filter(move |(node, _)| node.level == level);
        of.map(|(node, share)| format!("{} {share}", node.metric.title())).collect::<Vec<_>>()
    };
    html! {
        @if let Some(tree) = &tree { (page::shares(name, tree)) }
        @for level in [of_level(1), of_level(2)] {
            @if !level.is_empty() { p.meta { (level.join(", ")) } }
        }
        @if let Some(told) = told { p.meta { "from " (thousands(told.windows as u64)) " windows" } }
    }
}

fn graphs(profile: &Profile) -> Markup {
    let width = format!("width: {}", flame::time(profile));
    html! {
        section.card.graphs {
            div.tools {
                h2 { "Flame graphs" }
                form onsubmit="return false" {
                    input.search type="search" size="26" placeholder="part of a function's name" aria-label="part of a function's name";
                    button.reset type="button" { "all" }
                }
            }
            @if let Some(held) = &profile.held {
                @let title = held.of.title();
                (graph(title, &width, &Flames::new(profile, Width::Time, Callees::Above)))
                details {
                    summary { "Innermost functions first, their callers below" }
                    (graph(title, &width, &Flames::new(profile, Width::Time, Callees::First)))
                }
            } @else { (graphs_of_time(profile)) }
        }
    }
}

fn graphs_of_time(profile: &Profile) -> Markup {
    html! {
        p.meta {
            "Colours are those of the bars: where most of the function's own slots went; grey where that cannot be told. A click on a \
             frame widens it, and so does Enter on the one that arrow keys lead to."
        }
        (graph("Time", "width: CPU time", &Flames::new(profile, Width::Time, Callees::Above)))
        (graph("Wasted slots", "width: time in which slots were not retired", &Flames::new(profile, Width::Waste, Callees::Above)))
        details {
            summary { "Innermost functions first, their callers below" }
            (graph("Time", "width: CPU time", &Flames::new(profile, Width::Time, Callees::First)))
            (graph("Wasted slots", "width: time in which slots were not retired", &Flames::new(profile, Width::Waste, Callees::First)))
        }
    }
}

fn graph(title: &str, width: &str, flames: &Flames) -> Markup {
    html! {
        div.graph {
            h3 { (title) " " span.meta { (width) } " " span.meta.matched {} }
            @if flames.unknown > 0.0 {
                p.meta {
                    (format!("{:.1} %", 100.0 * flames.unknown)) " of the time is not in it: of the innermost functions it cannot be told"
                }
            }
            @if let Some(most) = flames.is_cut_to() { p.meta { "the " (thousands(most as u64)) " largest frames" } }
            svg.flame width="100%" height=(flames.height()) role="img" aria-label={ (title) ", " (width) } { (flames.frames()) }
        }
        "\n"
    }
}
