//! Threads: what each has of the time, and how its slots divide.
#![forbid(unsafe_code)]

use crate::event_sampling::SamplesOf;
use crate::profile::{Profile, ProfiledCore, ProfiledThread};
use crate::views::next::tree;
use crate::views::remarks;
use maud::{Markup, html};
use topdown_report::page::{self, HtmlText};
use topdown_report::{SIMULATED, count, thousands, time};

/// Threads of a core that have a row.
const MOST_ROWS: usize = 50;

/// Nothing where one thread alone was seen: it is all of it.
pub(super) fn section(profile: &Profile) -> Markup {
    let of_core = |place: usize| -> Vec<&ProfiledThread> {
        profile.by_thread.iter().filter(|thread| thread.core == place).collect()
    };
    html! {
        @if profile.by_thread.len() > 1 {
            section.card #threads {
                h2 { "Threads" }
                @if profile.simulated.is_some() { p.meta { (SIMULATED) ": times are real, how slots divide is not." } }
                @for (place, core) in profile.cores.iter().enumerate() {
                    @if profile.cores.len() > 1 { h3 { (core.name) } }
                    (table(profile, core, &of_core(place)))
                }
            }
        }
    }
}

fn table(profile: &Profile, core: &ProfiledCore, threads: &[&ProfiledThread]) -> Markup {
    let of = profile.held.as_ref().map_or("the time", |held| SamplesOf::all(&held.of));
    let amount = profile.event().map_or("CPU time", |held| &*held.event);
    let has_processes = threads.iter().any(|thread| !thread.process.is_empty());
    let (shown, rest) = threads.split_at(threads.len().min(MOST_ROWS));
    let part: f64 = rest.iter().map(|thread| thread.figures.time.value).sum();
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "threads, " (core.name) } {
            table.threads {
                thead {
                    tr {
                        th { "thread" }
                        @if has_processes { th { "process" } }
                        th.n { (amount) }
                        th.n { "part of " (of) }
                        @if profile.held.is_none() {
                            th.shares { "slots" }
                            @for node in core.nodes.iter().filter(|node| node.level == 1) { th.n { (node.metric.title()) } }
                        }
                    }
                }
                tbody { @for thread in shown { (row(profile, core, thread, has_processes)) "\n" } }
            }
        }
        @if !rest.is_empty() {
            p.meta {
                "and " (count(rest.len() as u64, "thread")) " more with " (format!("{:.1} %", 100.0 * part)) " of " (of)
                " together: -o FILE.json has all."
            }
        }
    }
}

fn row(profile: &Profile, core: &ProfiledCore, thread: &ProfiledThread, has_processes: bool) -> Markup {
    let figures = &thread.figures;
    let amount = match profile.is_of_time() {
        true => time(figures.time_ns as f64),
        false => thousands(figures.time_ns),
    };
    let roots = core.nodes.iter().filter(|node| node.level == 1).count();
    html! {
        tr {
            th scope="row" { (thread.tid) }
            @if has_processes { td { (HtmlText(&thread.process)) } }
            td.n { (amount) }
            td.n { (figures.time) }
            @if profile.held.is_none() {
                @match (figures.told(&core.nodes), tree(core, figures)) {
                    (Ok(told), Some(tree)) => {
                        td.shares { (page::small_shares(&format!("thread {}", thread.tid), &tree)) }
                        @for (_, share) in core.nodes.iter().zip(&told.shares).filter(|(node, _)| node.level == 1) { td.n { (share) } }
                    }
                    (Err(why), _) => { td colspan=(roots + 1) { (remarks::untold(why, figures, profile)) } }
                    (Ok(_), None) => { td colspan=(roots + 1) {} }
                }
            }
        }
    }
}
