//! A bar: 100 % of the slots of something, split by category; level 2 below level 1.
//!
//! Drawn with the crate `svg`, which escapes what it is given and depends on nothing. plotters' SVG has neither classes nor
//! titles, so no dark page and no tooltips.
#![forbid(unsafe_code)]

use super::page::SIGNS;
use crate::account::{BoundedShares, Level1, Level2};
use crate::model::{DOUBTFUL, Figures};
use crate::nodes::{NodeInterval, NodeTree, ShareInterval};
use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text, Title};
use topdown::{LEVEL_1, LEVEL_2, Metric, TD_UNIT_SLOTS};

/// Narrower parts are not drawn.
const THIN: f64 = 0.0005;

/// How large, in pixels; as wide as there is room, and at least so wide that labels for this width fit.
#[derive(Clone, Copy)]
pub struct BarSize {
    level_1: f64,
    level_2: f64,
    /// Without labels and tooltips of each part if 0.
    width: f64,
    /// The same on a page of less than 620 pixels.
    narrow: f64,
}

/// One to look at.
pub const LARGE: BarSize = BarSize { level_1: 30.0, level_2: 18.0, width: 520.0, narrow: 296.0 };
/// One among many.
pub const SMALL: BarSize = BarSize { level_1: 16.0, level_2: 8.0, width: 0.0, narrow: 0.0 };

/// How wide a small bar is at least, and a part of it that has a letter.
const CELL: f64 = 92.0;
const LETTER: f64 = 14.0;
/// Between the levels.
const GAP: f64 = 2.0;

fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// A part of a level: what it is, the number of its colour, where it begins, how much it is, and how much less and more it may be.
struct BarPart {
    metric: Metric,
    colour: usize,
    at: f64,
    share: f64,
    less: f64,
    more: f64,
}

impl BarPart {
    fn of(node: &NodeInterval, colour: usize, at: f64) -> BarPart {
        let NodeInterval { kind, share: ShareInterval { value, low, high }, .. } = *node;
        BarPart { metric: *kind.metric, colour, at, share: value, less: value - low, more: high - value }
    }

    fn error(&self) -> f64 {
        self.less.max(self.more)
    }
}

fn parts<const N: usize>(shares: &BoundedShares<N>) -> Vec<BarPart> {
    let mut at = 0.0;
    let part = |(colour, (metric, share)): (usize, (&Metric, f64))| {
        let begin = at;
        at += share;
        BarPart { metric: *metric, colour, at: begin, share, less: shares.error, more: shares.error }
    };
    BoundedShares::<N>::metrics().iter().zip(shares.of).enumerate().map(part).collect()
}

/// The parts of a category of level 1 in this tree, and the numbers of their colours.
pub fn parts_of(tree: &NodeTree, category: usize) -> Vec<(usize, &NodeInterval)> {
    let is_part =
        |node: &&NodeInterval| node.kind.parent == LEVEL_1[category].id && node.kind.unit == TD_UNIT_SLOTS;
    // (two shades each: what other trees have instead is taken in turns)
    let colour = |(k, node): (usize, &NodeInterval)| {
        LEVEL_2.iter().position(|metric| metric == node.kind.metric).unwrap_or(2 * category + k % 2)
    };
    tree.0.iter().filter(is_part).enumerate().map(|(k, node)| (colour((k, node)), node)).collect()
}

/// The bar of these figures, of `name`.
pub fn draw(name: &str, figures: &Figures, size: BarSize) -> String {
    let one = figures.level_1.as_ref().map_or(Vec::new(), parts);
    let two = figures.level_2.as_ref().map_or(Vec::new(), parts);
    let tooltip = (size.width == 0.0).then(|| summary(name, figures));
    stacked(&format!("{name}: {}", figures.bottleneck), tooltip, &one, &two, size)
}

/// The bar of a tree whose verdict this is: level 1, and below each of its categories the parts that this tree has.
pub fn draw_tree(name: &str, verdict: &str, tree: &NodeTree, size: BarSize) -> String {
    let (mut one, mut two, mut at) = (Vec::new(), Vec::new(), 0.0);
    for (k, metric) in LEVEL_1.iter().enumerate() {
        let Some(root) = tree.find(metric.id) else { continue };
        let mut begin = at;
        for (colour, node) in parts_of(tree, k) {
            two.push(BarPart::of(node, colour, begin));
            begin += node.share.value;
        }
        one.push(BarPart::of(root, k, at));
        at += root.share.value;
    }
    let label = format!("{name}: {verdict}");
    let tooltip = (size.width == 0.0).then(|| label.clone());
    stacked(&label, tooltip, &one, &two, size)
}

fn stacked(label: &str, tooltip: Option<String>, one: &[BarPart], two: &[BarPart], size: BarSize) -> String {
    let height = size.level_1 + if two.is_empty() { 0.0 } else { GAP + size.level_2 };
    let mut document = Document::new()
        .set("class", "bar")
        .set("role", "img")
        .set("width", "100%")
        .set("height", height)
        .set("aria-label", label);
    if let Some(tooltip) = tooltip {
        document = document.add(Title::new(tooltip));
    }
    document =
        document.add(if one.is_empty() { nothing(size) } else { level(one, true, 0.0, size.level_1, size) });
    if !two.is_empty() {
        document = document.add(level(two, false, size.level_1 + GAP, size.level_2, size));
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

fn nothing(size: BarSize) -> Group {
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

/// One level, the first or the second: its parts, hatched if they mean little, else with a whisker at the ends.
fn level(of: &[BarPart], first: bool, top: f64, height: f64, size: BarSize) -> Group {
    let class = if first { "a" } else { "b" };
    let doubtful = of.iter().any(|part| part.error() > DOUBTFUL);
    let (mut parts, mut labels, mut whiskers) =
        (Group::new(), Group::new(), Group::new().set("class", "whisker"));
    for part in of.iter().filter(|part| part.share > THIN) {
        let BarPart { colour, at, share, .. } = *part;
        let rectangle = Rectangle::new()
            .set("class", format!("{class}{colour}"))
            .set("x", percent(at))
            .set("y", top)
            .set("width", percent(share))
            .set("height", height);
        let class = if doubtful { "on-doubt".into() } else { format!("on-{class}{colour}") };
        let middle = (at + share / 2.0, top + height / 2.0);
        if size.width == 0.0 {
            parts = parts.add(rectangle);
            if first && share * CELL > LETTER {
                labels = labels.add(label(&SIGNS[colour].to_string(), middle.0, middle.1, &class));
            }
        } else {
            let title = part.metric.title();
            let title = format!("{title} {:.1} %, within {:.1} points", 100.0 * share, 100.0 * part.error());
            parts = parts.add(Group::new().add(rectangle).add(Title::new(title)));
            for (text, width) in fitting(part.metric.short, first.then(|| SIGNS[colour]), share, size) {
                labels = labels.add(label(&text, middle.0, middle.1, &format!("{class}{width}")));
            }
        }
        // the second of a pair has the same bound, and there is no room for both; nor for small ones in a small bar
        let room = match (first, size.width > 0.0) {
            (true, large) => colour + 1 < LEVEL_1.len() && (large || part.error() > 0.02),
            (false, large) => large && colour % 2 == 0,
        };
        if room && !doubtful {
            whiskers = whisker(whiskers, part, top + 0.8 * height, height / 8.0);
        }
    }
    if doubtful {
        let hatch = Rectangle::new().set("x", 0).set("y", top).set("width", "100%").set("height", height);
        parts = parts.add(hatch.set("class", "doubt"));
    }
    Group::new().set("class", if first { "level1" } else { "level2" }).add(parts).add(whiskers).add(labels)
}

/// The name and number, or the sign and number, or the sign, or (what has no sign) the number: what fits, and for which widths of
/// the page, if not for all (a class).
fn fitting(name: &str, sign: Option<char>, share: f64, size: BarSize) -> Vec<(String, &'static str)> {
    let number = format!("{:.0}", 100.0 * share);
    let short =
        sign.map_or([number.clone(), number.clone()], |sign| [format!("{sign} {number}"), sign.into()]);
    let labels = [&[format!("{name} {number}")], &short[..]].concat();
    let text = |width: f64| {
        let fits = |text: &&String| 6.4 * text.len() as f64 + 8.0 < share * width;
        labels.iter().find(fits).cloned()
    };
    match (text(size.width), text(size.narrow)) {
        (wide, narrow) if wide == narrow => wide.map(|text| (text, "")).into_iter().collect(),
        (wide, narrow) => {
            wide.map(|text| (text, " wide")).into_iter().chain(narrow.map(|text| (text, " narrow"))).collect()
        }
    }
}

/// From a part's end to where it may be.
fn whisker(group: Group, part: &BarPart, y: f64, cap: f64) -> Group {
    let end = part.at + part.share;
    let (low, high) = ((end - part.less).max(0.0), (end + part.more).min(1.0));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(size: BarSize) -> Vec<String> {
        let one = BoundedShares { of: [0.4, 0.04, 0.06, 0.5], other: 0.0, error: 0.001 };
        let bar = stacked("", None, &parts(&one), &[], size);
        let texts = bar.split("<text").skip(1).filter_map(|text| text.split(['>', '<']).nth(1));
        texts.map(|text| text.trim().to_string()).collect()
    }

    #[test]
    fn parts_have_the_sign_of_their_category_where_its_name_has_no_room() {
        assert_eq!(labels(LARGE), ["retiring 40", "S", "F 6", "F", "backend bound 50"]);
        assert_eq!(labels(SMALL), ["R", "B"]);
    }
}
