//! What pages have in common, also those of `topdown record`: the frame, the style and its colours, bars, and texts of the
//! measured program's.
#![forbid(unsafe_code)]

use super::bar;
use crate::model::DOUBTFUL;
use crate::nodes::NodeTree;
use crate::steps::Step;
use crate::verdict;
use crate::words::clean;
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use topdown::LEVEL_1;

const STYLE: &str = include_str!("style.css");
/// Nothing is fetched, and no other script runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// Hatching, for all bars.
const DEFINITIONS: &str = r##"<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="7" height="7" style="fill:var(--card);opacity:.25;stroke:none"/>
<rect width="3" height="7" style="fill:var(--card);opacity:.6;stroke:none"/></pattern></defs></svg>
"##;

/// What bars have besides parts: a sample of each, and in words.
const WHISKER: &str = r#"<svg width="34" height="16"><rect class="a0" width="17" height="16"/><rect class="a3" x="17" width="17" height="16"/><g class="whisker"><line class="halo" x1="9" x2="25" y1="8" y2="8"/><line x1="9" x2="25" y1="8" y2="8"/><line x1="9" x2="9" y1="4" y2="12"/><line x1="25" x2="25" y1="4" y2="12"/></g></svg>"#;
const HATCHED: &str = r#"<svg width="34" height="16"><rect class="a2" width="34" height="16"/><rect fill="url(#hatch)" width="34" height="16"/></svg>"#;

/// A text of the measured program's: without what changes the direction of writing and the like.
pub struct HtmlText<T>(pub T);

impl<T: AsRef<str>> Render for HtmlText<T> {
    fn render_to(&self, buffer: &mut String) {
        clean(self.0.as_ref()).render_to(buffer);
    }
}

/// A page that needs no other file and no network. `style` is put behind what all pages have.
pub fn page(title: &str, style: &str, content: &Markup, script: &str) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "topdown: " (HtmlText(title)) }
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            "\n"
            body {
                (PreEscaped(DEFINITIONS))
                main { (content) }
                script { (PreEscaped(script)) }
            }
        }
    };
    page.into_string()
}

/// What the style calls `--NAME`, on a light page.
///
/// # Panics
/// The style has no such name.
pub fn colour(name: &str) -> &'static str {
    let found = STYLE.split_once(&format!("--{name}: ")).and_then(|(_, rest)| rest.split_once(';'));
    found.expect("a name of the style").0
}

/// The letters of the categories of level 1 in their order (S: bad speculation): in bars with the colours, so that these are not
/// the only sign.
pub const SIGNS: [char; LEVEL_1.len()] = ['R', 'S', 'F', 'B'];

/// Of the 216 colours that terminals of 256 have in a cube (from number 16 on), the one nearest to what the style calls `--NAME`.
///
/// # Panics
/// The style has no such name.
pub fn terminal_colour(name: &str) -> u8 {
    let hex = colour(name).trim_start_matches('#');
    let step = |k: usize| {
        let value = u8::from_str_radix(&hex[2 * k..2 * k + 2], 16).expect("two digits");
        (0..6).min_by_key(|step| CUBE[*step].abs_diff(value)).expect("six steps") as u8
    };
    16 + 36 * step(0) + 6 * step(1) + step(2)
}

/// The steps of red, green and blue in that cube.
pub(crate) const CUBE: [u8; 6] = [0, 0x5f, 0x87, 0xaf, 0xd7, 0xff];

/// What the colours of bars mean: below each category of level 1 the parts of level 2, by their colours.
pub(crate) fn legend_of(parts: impl Fn(usize) -> Vec<(usize, String)>) -> Markup {
    html! {
        div.legend {
            @for (k, metric) in LEVEL_1.iter().enumerate() {
                div {
                    b {
                        i.sign aria-hidden="true" style={ "background:var(--a" (k) ");color:var(--on-a" (k) ")" } { (SIGNS[k]) }
                        (metric.title())
                    }
                    @for (place, title) in parts(k) {
                        span { i style={ "background:var(--b" (place) ")" } {} (title) }
                    }
                }
            }
        }
    }
}

/// What the colours of bars of such trees mean.
pub fn legend(tree: &NodeTree) -> Markup {
    legend_of(|k| {
        bar::parts_of(tree, k).into_iter().map(|(place, node)| (place, node.kind.metric.title())).collect()
    })
}

/// Marks of bars, and what they mean; `whisker` says it of that at a part's end.
pub fn marks(whisker: &str) -> Markup {
    html! {
        span { (PreEscaped(WHISKER)) (whisker) }
        span { (PreEscaped(HATCHED)) "the bound is above " (format!("{:.0}", 100.0 * DOUBTFUL)) " points" }
    }
}

/// Commands to run next.
pub fn steps(steps: &[Step]) -> Markup {
    html! {
        @if !steps.is_empty() {
            h3 { "What to run next" }
            ul.steps { @for step in steps { li { code { (HtmlText(&step.command)) } " " (step.why) } } }
        }
    }
}

/// What is above a bar: the verdict, and within how much the shares of each level are.
pub(crate) fn head(verdict: &str, one: Option<f64>, two: Option<f64>) -> Markup {
    let bound = match (one, two) {
        (Some(one), Some(two)) => {
            format!("level 1 within {:.1} points, level 2 within {:.1}", 100.0 * one, 100.0 * two)
        }
        (Some(one), None) => format!("within {:.1} points", 100.0 * one),
        _ => String::new(),
    };
    html! { div.head { span.verdict { (HtmlText(verdict)) } span.bound { (bound) } } }
}

/// The verdict on such shares of slots, how sure they are, and the bar.
pub fn shares(name: &str, tree: &NodeTree) -> Markup {
    let verdict = verdict::of_tree(tree);
    let worst = |level: u32| {
        let errors = tree.0.iter().filter(|node| node.kind.level == level).map(|node| node.share.error());
        errors.reduce(f64::max)
    };
    html! {
        (head(&verdict, worst(1), worst(2)))
        (PreEscaped(bar::draw_tree(&clean(name), &verdict, tree, bar::LARGE)))
    }
}

/// The bar of such shares alone, for a cell of a table.
pub fn small_shares(name: &str, tree: &NodeTree) -> Markup {
    PreEscaped(bar::draw_tree(&clean(name), &verdict::of_tree(tree), tree, bar::SMALL))
}
