//! Charts over time: areas of categories, one upon the other. Those of a section have one time axis, and the script zooms them together.
#![forbid(unsafe_code)]

use crate::words::{clean, time};
use maud::{Markup, PreEscaped, html};
use svg::Document;
use svg::node::element::path::Data;
use svg::node::element::{Group, Path, Rectangle, Title};
use topdown::LEVEL_1;

/// Zooms the charts of a section: by a drag, buttons or keys.
pub const SCRIPT: &str = include_str!("chart.js");
/// The categories of level 1, and what is of none of them, or not known.
pub const PARTS: usize = LEVEL_1.len() + 1;
/// Width and height in a chart's own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Labels below the time axis.
const TICKS: u64 = 4;

/// A part of the time, in nanoseconds from the beginning.
#[derive(Clone, Debug)]
pub struct ChartColumn {
    /// From then.
    pub begin: f64,
    /// Until then.
    pub end: f64,
    /// How high each part is, of the chart's height (0 to 1).
    pub parts: [f64; PARTS],
    /// The parts say little: hatched.
    pub is_doubtful: bool,
}

/// What a pointer tells of a part of the time.
#[derive(Clone, Debug)]
pub struct ChartTip {
    /// From then.
    pub begin: f64,
    /// Until then.
    pub end: f64,
    /// In words.
    pub text: String,
}

/// The charts of a section, all of which end then, with what zooms them: nothing without the script.
pub fn charts(end: f64, charts: &Markup) -> Markup {
    let button = |zoom: &str, text: &str| html! { button type="button" data-zoom=(zoom) { (text) } };
    html! {
        div.over-time data-end=(end) {
            div.zoom.scripted hidden role="group" aria-label="time that is shown" {
                (button("in", "zoom in"))
                (button("out", "zoom out"))
                (button("earlier", "earlier"))
                (button("later", "later"))
                (button("all", "all"))
                output.meta {}
                span.meta { "A drag over a chart zooms, too; on these buttons so do the keys + − ← → Esc." }
            }
            (charts)
        }
    }
}

/// Times below a chart.
pub fn axis(end: f64) -> Markup {
    html! {
        div.axis {
            @for k in 0..=TICKS { span { (if k == 0 { "0".into() } else { time(end * k as f64 / TICKS as f64) }) } }
        }
    }
}

/// A chart, as wide as there is room, and so many pixels high. Its time ends at `end`.
pub fn chart(name: &str, columns: &[ChartColumn], tips: Vec<ChartTip>, end: f64, pixels: u32) -> Markup {
    let mut document = Document::new()
        .set("class", "time")
        .set("role", "img")
        .set("width", "100%")
        .set("height", pixels)
        .set("viewBox", (0, 0, WIDTH as u32, HEIGHT as u32))
        .set("preserveAspectRatio", "none")
        .set("aria-label", clean(name));
    for part in 0..PARTS {
        if columns.iter().any(|column| column.parts[part] > 0.0) {
            document = document.add(area(columns, part, end));
        }
    }
    let x = |at: f64| WIDTH * at / end;
    for column in columns.iter().filter(|column| column.is_doubtful) {
        let height = HEIGHT * column.parts.iter().sum::<f64>();
        let hatch = Rectangle::new().set("class", "doubt").set("x", round(x(column.begin)));
        let hatch = hatch.set("y", round(HEIGHT - height)).set("height", round(height));
        document = document.add(hatch.set("width", round(x(column.end - column.begin))));
    }
    let mut group = Group::new().set("class", "tips");
    for ChartTip { begin, end, text } in tips {
        let (from, to) = (round(x(begin)), round(x(end)));
        let rectangle = Rectangle::new().set("x", from).set("y", 0).set("height", HEIGHT);
        let rectangle = rectangle.set("width", round(to - from));
        group = group.add(Group::new().add(rectangle).add(Title::new(text)));
    }
    PreEscaped(document.add(group).to_string())
}

/// The area of one part, on those of the parts before it. (Where the height does not change there is no point.)
fn area(columns: &[ChartColumn], part: usize, end: f64) -> Path {
    let x = |at: f64| round(WIDTH * at / end);
    let y = |column: &ChartColumn, parts: usize| {
        round(HEIGHT * (1.0 - column.parts[..parts].iter().sum::<f64>()))
    };
    let steps = |parts: usize| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for column in columns {
            let height = y(column, parts);
            if points.last().is_some_and(|last| *last == (x(column.begin), height)) {
                points.pop();
            } else {
                points.push((x(column.begin), height));
            }
            points.push((x(column.end), height));
        }
        points
    };
    let first = columns.first().map_or(0.0, |column| column.begin);
    let mut data = Data::new().move_to((x(first), HEIGHT));
    for point in steps(part + 1).into_iter().chain(steps(part).into_iter().rev()) {
        data = data.line_to(point);
    }
    let class = if part < LEVEL_1.len() { format!("a{part}") } else { "rest".into() };
    Path::new().set("class", class).set("d", data.close())
}

/// To a tenth of a unit.
fn round(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}
