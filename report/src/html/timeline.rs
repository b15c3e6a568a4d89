//! Slots over time: areas of the level 1 categories, one upon the other, for the whole and for each of its parts.
#![forbid(unsafe_code)]

use super::HtmlText;
use crate::model::DOUBTFUL;
use crate::timeline::{Series, SeriesSubject, Timeline, TimelineInterval};
use crate::words::{self, percent, time};
use maud::{Markup, PreEscaped, html};
use svg::Document;
use svg::node::element::path::Data;
use svg::node::element::{Group, Path, Rectangle, Title};
use topdown::LEVEL_1;

/// The categories of level 1, and what is of none of them (on AMD, SMT contention), or not known.
const PARTS: usize = LEVEL_1.len() + 1;
/// Width and height in the chart's own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Columns with a tooltip.
const TOOLTIPS: usize = 200;
/// Labels below the time axis.
const TICKS: u64 = 4;

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
            let node = interval.nodes.iter().find(|node| node.kind.metric == *metric);
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
    /// By slots per nanosecond, of which so many are the full height.
    Rate(f64),
    /// All have the full height.
    Share,
}

impl Scale {
    fn of(self, column: &Column, slots: f64) -> f64 {
        match self {
            Scale::Rate(most) => HEIGHT * slots / (column.end - column.begin).max(1.0) / most,
            Scale::Share if column.slots > 0.0 => HEIGHT * slots / column.slots,
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
    html! {
        section.card id="timeline" {
            h2 { "Over time" }
            p.meta {
                "Slots per second, up to " (words::slots(most * 1e9)) ": " (words::count(columns.len() as u64, "interval"))
                ", counted from outside"
            }
            (draw("slots per second over time", &columns, Scale::Rate(most), end, 150))
            (axis(end))
            p.meta { "Shares of the slots, each within " (format!("{widest:.1}")) " points or less" }
            (draw("shares of the slots over time", &columns, Scale::Share, end, 110))
            (axis(end))
            (parts_of(parts, end))
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

/// Times below a chart.
fn axis(end: f64) -> Markup {
    html! {
        div.axis {
            @for k in 0..=TICKS { span { (if k == 0 { "0".into() } else { time(end * k as f64 / TICKS as f64) }) } }
        }
    }
}

/// A chart, as wide as there is room, and so many pixels high.
fn draw(name: &str, columns: &[Column], scale: Scale, end: f64, pixels: u32) -> Markup {
    let mut document = Document::new()
        .set("class", "time")
        .set("role", "img")
        .set("width", "100%")
        .set("height", pixels)
        .set("viewBox", (0, 0, WIDTH as u32, HEIGHT as u32))
        .set("preserveAspectRatio", "none")
        .set("aria-label", words::clean(name));
    for part in 0..PARTS {
        if columns.iter().any(|column| column.parts[part] > 0.0) {
            document = document.add(area(columns, part, scale, end));
        }
    }
    let x = |at: f64| WIDTH * at / end;
    for column in columns.iter().filter(|column| column.slots > 0.0 && column.is_doubtful()) {
        let height = scale.of(column, column.slots);
        let hatch = Rectangle::new().set("class", "doubt").set("x", round(x(column.begin)));
        let hatch = hatch.set("y", round(HEIGHT - height)).set("height", round(height));
        document = document.add(hatch.set("width", round(x(column.end - column.begin))));
    }
    let mut tips = Group::new().set("class", "tips");
    for some in columns.chunks(columns.len().div_ceil(TOOLTIPS)) {
        let column = some[1..].iter().fold(some[0], |all, next| all.add(next));
        let (from, to) = (round(x(column.begin)), round(x(column.end)));
        let rectangle = Rectangle::new().set("x", from).set("y", 0).set("height", HEIGHT);
        let rectangle = rectangle.set("width", round(to - from));
        tips = tips.add(Group::new().add(rectangle).add(Title::new(column.text())));
    }
    PreEscaped(document.add(tips).to_string())
}

/// The area of one part, on those of the parts before it.
fn area(columns: &[Column], part: usize, scale: Scale, end: f64) -> Path {
    let x = |at: f64| round(WIDTH * at / end);
    let y = |column: &Column, parts: usize| {
        round(HEIGHT - scale.of(column, column.parts[..parts].iter().sum::<f64>()))
    };
    let first = columns.first().map_or(0.0, |column| column.begin);
    let mut data = Data::new().move_to((x(first), HEIGHT));
    for column in columns {
        let top = y(column, part + 1);
        data = data.line_to((x(column.begin), top)).line_to((x(column.end), top));
    }
    for column in columns.iter().rev() {
        let bottom = y(column, part);
        data = data.line_to((x(column.end), bottom)).line_to((x(column.begin), bottom));
    }
    let class = if part < LEVEL_1.len() { format!("a{part}") } else { "rest".into() };
    Path::new().set("class", class).set("d", data.close())
}

/// To a tenth of a unit.
fn round(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}
