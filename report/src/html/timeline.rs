//! Slots over time: areas of the level 1 categories, one upon the other, for the whole and for each of its parts.
#![forbid(unsafe_code)]

use super::HtmlText;
use super::chart::{self, ChartColumn, ChartTip, PARTS};
use crate::model::DOUBTFUL;
use crate::timeline::{Series, SeriesSubject, Timeline, TimelineInterval};
use crate::words::{self, percent, time};
use maud::{Markup, html};
use topdown::LEVEL_1;

/// Columns with a tooltip.
const TOOLTIPS: usize = 200;

/// A part of the time, and how its slots divide.
#[derive(Clone, Copy)]
struct Column {
    begin: f64,
    end: f64,
    parts: [f64; PARTS],
    slots: f64,
    /// Bound on each share, times the slots.
    error: f64,
}

impl Column {
    fn of(interval: &TimelineInterval) -> Column {
        let slots = interval.slots as f64;
        let mut parts = [0.0; PARTS];
        for (part, metric) in parts.iter_mut().zip(&LEVEL_1) {
            let node = interval.nodes.iter().find(|node| node.kind.metric == metric);
            *part = node.map_or(0.0, |node| node.share.value * slots);
        }
        parts[PARTS - 1] = (slots - parts.iter().sum::<f64>()).max(0.0);
        let error = interval.error(1).unwrap_or(1.0) * slots;
        Column { begin: interval.begin_ns as f64, end: interval.end_ns as f64, parts, slots, error }
    }

    fn add(self, next: &Column) -> Column {
        Column {
            end: next.end,
            parts: std::array::from_fn(|k| self.parts[k] + next.parts[k]),
            slots: self.slots + next.slots,
            error: self.error + next.error,
            ..self
        }
    }

    fn rate(&self) -> f64 {
        self.slots / (self.end - self.begin).max(1.0)
    }

    fn is_doubtful(&self) -> bool {
        self.error > DOUBTFUL * self.slots
    }

    fn text(&self) -> String {
        let mut lines = vec![
            format!("{} to {}", time(self.begin), time(self.end)),
            format!("{} slots", words::slots(self.slots)),
        ];
        if self.slots > 0.0 {
            let share = |(k, metric): (usize, &topdown::Metric)| {
                format!("{} {}", metric.title(), percent(self.parts[k] / self.slots))
            };
            lines.extend(LEVEL_1.iter().enumerate().map(share));
            lines.push(format!("each within {:.1} points", 100.0 * self.error / self.slots));
        }
        lines.join("\n")
    }
}

/// How high a column is drawn.
#[derive(Clone, Copy)]
enum Scale {
    /// By slots per nanosecond, of which so many are the full height (1).
    Rate(f64),
    /// All have the full height.
    Share,
}

impl Scale {
    fn of(self, column: &Column, slots: f64) -> f64 {
        match self {
            Scale::Rate(most) => slots / (column.end - column.begin).max(1.0) / most,
            Scale::Share if column.slots > 0.0 => slots / column.slots,
            Scale::Share => 0.0,
        }
    }
}

/// The section of the report; nothing, where there are not two intervals.
pub fn section(timeline: Option<&Timeline>) -> Markup {
    let Some((whole, parts)) = timeline.and_then(|timeline| timeline.series.split_first()) else {
        return Markup::default();
    };
    let columns: Vec<Column> = whole.intervals.iter().map(Column::of).collect();
    let most = columns.iter().map(Column::rate).fold(0.0, f64::max);
    let (Some(last), true) = (columns.last(), columns.len() > 1 && most > 0.0) else {
        return Markup::default();
    };
    let end = last.end;
    let widest = columns.iter().filter(|column| column.slots > 0.0).map(|one| one.error / one.slots);
    let widest = 100.0 * widest.fold(0.0, f64::max);
    let charts = html! {
        (draw("slots per second over time", &columns, Scale::Rate(most), end, 150))
        (chart::axis(end))
        p.meta { "Shares of the slots, each within " (format!("{widest:.1}")) " points or less" }
        (draw("shares of the slots over time", &columns, Scale::Share, end, 110))
        (chart::axis(end))
        (parts_of(parts, end))
    };
    html! {
        section.card id="timeline" {
            h2 { "Over time" }
            p.meta {
                "Slots per second, up to " (words::slots(most * 1e9)) ": " (words::count(columns.len() as u64, "interval"))
                ", counted from outside"
            }
            (chart::charts(end, &charts))
        }
    }
}

/// A row for each thread, process or CPU.
fn parts_of(parts: &[Series], end: f64) -> Markup {
    let rows: Vec<(&SeriesSubject, Vec<Column>)> =
        parts.iter().map(|part| (&part.of, part.intervals.iter().map(Column::of).collect())).collect();
    let most = rows.iter().flat_map(|(_, columns)| columns).map(Column::rate).fold(0.0, f64::max);
    if most == 0.0 {
        return Markup::default();
    }
    html! {
        details open {
            summary.meta { "Each by itself, up to " (words::slots(most * 1e9)) " slots per second" }
            @for (of, columns) in &rows {
                div.lane {
                    div.meta { (HtmlText(of.title())) }
                    (draw(&of.title(), columns, Scale::Rate(most), end, 44))
                }
            }
        }
    }
}

/// A chart, as wide as there is room, and so many pixels high.
fn draw(name: &str, columns: &[Column], scale: Scale, end: f64, pixels: u32) -> Markup {
    let drawn = |column: &Column| ChartColumn {
        begin: column.begin,
        end: column.end,
        parts: column.parts.map(|slots| scale.of(column, slots)),
        is_doubtful: column.slots > 0.0 && column.is_doubtful(),
    };
    let tip = |some: &[Column]| {
        let column = some[1..].iter().fold(some[0], |all, next| all.add(next));
        ChartTip { begin: column.begin, end: column.end, text: column.text() }
    };
    let tips = columns.chunks(columns.len().div_ceil(TOOLTIPS)).map(tip).collect();
    let drawn: Vec<ChartColumn> = columns.iter().map(drawn).collect();
    chart::chart(name, &drawn, tips, end, pixels)
}
