//! A bar: 100 % of the slots of something, split by category; level 2 below level 1.
//!
//! Drawn with the crate `svg`, which escapes what it is given and depends on nothing. plotters' SVG has neither classes nor
//! titles, so no dark page and no tooltips.
#![forbid(unsafe_code)]

use crate::account::{Level1, Level2, Shares};
use crate::model::{DOUBTFUL, Figures};
use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text, Title};
use topdown::Metric;

/// Narrower parts are not drawn.
const THIN: f64 = 0.0005;

/// How large, in pixels; as wide as there is room, and at least so wide that labels for this width fit.
#[derive(Clone, Copy)]
pub struct Size {
    level_1: f64,
    level_2: f64,
    /// Without labels and tooltips of each part if 0.
    width: f64,
}

/// One to look at.
pub const LARGE: Size = Size { level_1: 30.0, level_2: 18.0, width: 520.0 };
/// One among many.
pub const SMALL: Size = Size { level_1: 16.0, level_2: 8.0, width: 0.0 };

/// Between the levels.
const GAP: f64 = 2.0;

fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// The bar of these figures, of `name`.
pub fn draw(name: &str, figures: &Figures, size: Size) -> String {
    let height = size.level_1 + figures.level_2.map_or(0.0, |_| GAP + size.level_2);
    let mut document = Document::new()
        .set("class", "bar")
        .set("role", "img")
        .set("width", "100%")
        .set("height", height)
        .set("aria-label", format!("{name}: {}", figures.bottleneck));
    if size.width == 0.0 {
        document = document.add(Title::new(summary(name, figures)));
    }
    match &figures.level_1 {
        None => document = document.add(nothing(size)),
        Some(shares) => document = document.add(level(shares, "a", 0.0, size.level_1, size)),
    }
    if let Some(shares) = &figures.level_2 {
        let top = size.level_1 + GAP;
        document = document.add(level(shares, "b", top, size.level_2, size));
    }
    document.to_string()
}

/// All shares, a line each.
pub fn summary(name: &str, figures: &Figures) -> String {
    let mut lines = vec![name.to_string(), figures.bottleneck.clone()];
    let mut add = |metrics: &[Metric], of: &[f64], error: f64| {
        let share = |(metric, share): (&Metric, &f64)| format!("{} {:.1} %", metric.title(), 100.0 * share);
        lines.extend(metrics.iter().zip(of).map(share));
        lines.push(format!("each within {:.1} points", 100.0 * error));
    };
    if let Some(one) = figures.level_1 {
        add(Level1::metrics(), &one.of, one.error);
    }
    if let Some(two) = figures.level_2 {
        add(Level2::metrics(), &two.of, two.error);
    }
    lines.join("\n")
}

fn nothing(size: Size) -> Group {
    let mut group = Group::new().add(
        Rectangle::new()
            .set("class", "nothing")
            .set("x", 1)
            .set("y", 1)
            .set("width", "99.5%")
            .set("height", size.level_1 - 2.0)
            .set("rx", 3),
    );
    if size.width > 0.0 {
        group = group.add(label("not measured", 0.5, size.level_1 / 2.0, "faint"));
    }
    group
}

fn label(what: &str, at: f64, middle: f64, class: &str) -> Text {
    Text::new(what)
        .set("class", class)
        .set("x", percent(at))
        .set("y", middle)
        .set("dominant-baseline", "central")
        .set("text-anchor", "middle")
}

/// One level: its parts, hatched if they mean little, else with a whisker at the ends.
fn level<const N: usize>(shares: &Shares<N>, class: &str, top: f64, height: f64, size: Size) -> Group {
    let metrics = Shares::<N>::metrics();
    let doubtful = shares.error > DOUBTFUL;
    let (mut parts, mut labels, mut whiskers) =
        (Group::new(), Group::new(), Group::new().set("class", "whisker"));
    let mut at = 0.0;
    for (k, share) in shares.of.into_iter().enumerate().filter(|(_, share)| *share > THIN) {
        let rectangle = Rectangle::new()
            .set("class", format!("{class}{k}"))
            .set("x", percent(at))
            .set("y", top)
            .set("width", percent(share))
            .set("height", height);
        if size.width == 0.0 {
            parts = parts.add(rectangle);
        } else {
            let title = metrics[k].title();
            let title = format!("{title} {:.1} %, within {:.1} points", 100.0 * share, 100.0 * shares.error);
            parts = parts.add(Group::new().add(rectangle).add(Title::new(title)));
            if let Some(text) = fitting(metrics[k].short, share, size.width) {
                let class = if doubtful { "on-doubt".into() } else { format!("on-{class}{k}") };
                labels = labels.add(label(&text, at + share / 2.0, top + height / 2.0, &class));
            }
        }
        at += share;
        // the second of a pair has the same bound, and there is no room for both; nor for small ones in a small bar
        let room = if size.width > 0.0 { N == 4 || k % 2 == 0 } else { N == 4 && shares.error > 0.02 };
        if room && !doubtful && k + 1 < N {
            whiskers = whisker(whiskers, at, shares.error, top + 0.8 * height, height / 8.0);
        }
    }
    if doubtful {
        let hatch = Rectangle::new().set("x", 0).set("y", top).set("width", "100%").set("height", height);
        parts = parts.add(hatch.set("class", "doubt"));
    }
    Group::new().set("class", if N == 4 { "level1" } else { "level2" }).add(parts).add(whiskers).add(labels)
}

/// The name and number, or the number, or nothing.
fn fitting(name: &str, share: f64, width: f64) -> Option<String> {
    let number = format!("{:.0}", 100.0 * share);
    let named = format!("{name} {number}");
    let fits = |text: &str| 6.4 * text.len() as f64 + 8.0 < share * width;
    if fits(&named) { Some(named) } else { fits(&number).then_some(number) }
}

/// From a part's end to where it may be.
fn whisker(group: Group, end: f64, error: f64, y: f64, cap: f64) -> Group {
    let (low, high) = ((end - error).max(0.0), (end + error).min(1.0));
    let line = |class: &str, from: f64, to: f64, top: f64, bottom: f64| {
        Line::new()
            .set("class", class)
            .set("x1", percent(from))
            .set("x2", percent(to))
            .set("y1", top)
            .set("y2", bottom)
    };
    ["halo", "ink"].into_iter().fold(group, |group, class| {
        group.add(line(class, low, high, y, y)).add(line(class, low, low, y - cap, y + cap)).add(line(
            class,
            high,
            high,
            y - cap,
            y + cap,
        ))
    })
}
