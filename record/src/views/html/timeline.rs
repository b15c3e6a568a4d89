//! CPU time over time, of all threads and of those of most time.
#![forbid(unsafe_code)]

use crate::profile::Profile;
use crate::views::flame;
use crate::views::timeline::{Lane, TimeColumn, lanes};
use maud::{Markup, html};
use topdown::LEVEL_1;
use topdown_report::chart::{self, ChartColumn, ChartTip};
use topdown_report::page::HtmlText;
use topdown_report::{SIMULATED, count, percent, thousands, time};

/// Heights in pixels.
const OF_ALL: u32 = 150;
const OF_THREAD: u32 = 44;
const NS_PER_SECOND: f64 = 1e9;

/// Nothing, where it is not known when samples were, or there are few.
pub(super) fn section(profile: &Profile) -> Markup {
    let Some(timeline) = lanes(profile) else { return html! {} };
    let end = timeline.length_ns;
    let Some((all, threads)) = timeline.lanes.split_first() else { return html! {} };
    let (most, most_of_thread) = (highest(&timeline.lanes[..1], end), highest(threads, end));
    let samples = profile.samples.len() as f64 / all.columns.len() as f64;
    let charts = html! {
        (draw(profile, all, most, end, OF_ALL))
        (chart::axis(end))
        @if !threads.is_empty() {
            p.meta { "Threads" @if threads.len() < profile.by_thread.len() { " of most " (what(profile)) } ", each up to " (rate(profile, most_of_thread)) }
            @for lane in threads {
                div.lane {
                    div.meta { (HtmlText(title(lane))) }
                    (draw(profile, lane, most_of_thread, end, OF_THREAD))
                }
            }
        }
    };
    html! {
        section.card #timeline {
            h2 { (flame::time(profile)) " over time" }
            @if profile.simulated.is_some() { p.meta { (SIMULATED) ": times are real, colours are not." } }
            p.meta {
                "Up to " (rate(profile, most)) ", by the times of " (count(profile.samples.len() as u64, "sample")) ", some "
                (format!("{samples:.0}")) " in a column."
                @if profile.held.is_none() {
                    " Colours are those of the bars: where most of the slots went of the function that ran; grey where that cannot be told."
                }
            }
            (chart::charts(end, &charts))
        }
    }
}

fn what(profile: &Profile) -> &str {
    profile.event().map_or("CPU time", |held| &*held.event)
}

/// The highest column, in nanoseconds (or events) for each nanosecond.
fn highest(lanes: &[Lane], end: f64) -> f64 {
    let of_lane = |lane: &Lane| {
        let length = end / lane.columns.len() as f64;
        lane.columns.iter().map(|column| column.parts.iter().sum::<f64>() / length).fold(0.0, f64::max)
    };
    lanes.iter().map(of_lane).fold(0.0, f64::max)
}

fn rate(profile: &Profile, rate: f64) -> String {
    match profile.event() {
        None => format!("{rate:.2} CPUs in use"),
        Some(held) => format!("{} {} a second", thousands((rate * NS_PER_SECOND) as u64), held.event),
    }
}

fn title(lane: &Lane) -> String {
    lane.thread.map_or("all threads".into(), |thread| {
        let name = if thread.process.is_empty() { String::new() } else { format!(" {}", thread.process) };
        format!("thread {}{name}", thread.tid)
    })
}

fn draw(profile: &Profile, lane: &Lane, most: f64, end: f64, pixels: u32) -> Markup {
    let length = end / lane.columns.len() as f64;
    let numbered = || lane.columns.iter().enumerate();
    let drawn = |(k, column): (usize, &TimeColumn)| ChartColumn {
        begin: length * k as f64,
        end: length * (k + 1) as f64,
        parts: column.parts.map(|part| part / length / most),
        is_doubtful: false,
    };
    let tip = |(k, column): (usize, &TimeColumn)| ChartTip {
        begin: length * k as f64,
        end: length * (k + 1) as f64,
        text: tip(profile, column, length * k as f64, length),
    };
    let columns: Vec<ChartColumn> = numbered().map(drawn).collect();
    // (what a column has may all be of a sample that came later)
    let has_some = |column: &TimeColumn| column.samples > 0 || column.parts.iter().any(|part| *part > 0.0);
    let tips = numbered().filter(|(_, column)| has_some(column)).map(tip).collect();
    let name = format!("{} over time: {}", flame::time(profile), title(lane));
    chart::chart(&name, &columns, tips, end, pixels)
}

fn tip(profile: &Profile, column: &TimeColumn, begin: f64, length: f64) -> String {
    let all: f64 = column.parts.iter().sum();
    let amount = rate(profile, all / length);
    let mut lines = vec![
        format!("{} to {}", time(begin), time(begin + length)),
        format!("{amount}, {}", count(column.samples as u64, "sample")),
    ];
    if profile.held.is_none() {
        let titles = LEVEL_1.iter().map(|metric| metric.title()).chain(["cannot be told".into()]);
        let some = titles.zip(column.parts).filter(|(_, part)| *part > 0.0);
        lines.extend(some.map(|(title, part)| format!("{title} {}", percent(part / all))));
    }
    lines.join("\n")
}
