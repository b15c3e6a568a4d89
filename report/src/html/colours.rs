//! Colours of all pages, as their CSS has them: whether eyes of every kind tell them apart, and whether each text can be read.
//!
//! Eyes without one kind of cones are simulated as Brettel, Viénot and Mollon do (Computerized simulation of color appearance for
//! dichromats, J. Opt. Soc. Am. A 14, 1997): in light that adds up, what the missing cones would tell is taken from the two
//! others, along one of two half-planes. Matrices and planes are those that libDaltonLens has for sRGB (daltonlens.org).

use super::page::{CUBE, terminal_colour};
use palette::color_difference::{Ciede2000, Wcag21RelativeContrast};
use palette::white_point::D65;
use palette::{IntoColor, Lab, LinSrgb, Mix, Srgb};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Colour = Srgb<f64>;
type Matrix = [[f64; 3]; 3];

/// One half-plane, the other, and the normal of what separates them.
struct Dichromat {
    name: &'static str,
    halves: [Matrix; 2],
    normal: [f64; 3],
}

const DICHROMATS: [Dichromat; 3] = [
    Dichromat {
        name: "protanopia",
        halves: [
            [[0.14980, 1.19548, -0.34528], [0.10764, 0.84864, 0.04372], [0.00384, -0.00540, 1.00156]],
            [[0.14570, 1.16172, -0.30742], [0.10816, 0.85291, 0.03892], [0.00386, -0.00524, 1.00139]],
        ],
        normal: [0.00048, 0.00393, -0.00441],
    },
    Dichromat {
        name: "deuteranopia",
        halves: [
            [[0.36477, 0.86381, -0.22858], [0.26294, 0.64245, 0.09462], [-0.02006, 0.02728, 0.99278]],
            [[0.37298, 0.88166, -0.25464], [0.25954, 0.63506, 0.10540], [-0.01980, 0.02784, 0.99196]],
        ],
        normal: [-0.00281, -0.00611, 0.00892],
    },
    Dichromat {
        name: "tritanopia",
        halves: [
            [[1.01277, 0.13548, -0.14826], [-0.01243, 0.86812, 0.14431], [0.07589, 0.80500, 0.11911]],
            [[0.93678, 0.18979, -0.12657], [0.06154, 0.81526, 0.12320], [-0.37562, 1.12767, 0.24796]],
        ],
        normal: [0.03901, -0.02788, -0.01113],
    },
];

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Dichromat {
    fn sees(&self, colour: Colour) -> Colour {
        let light: [f64; 3] = colour.into_linear().into();
        let half = &self.halves[usize::from(dot(self.normal, light) < 0.0)];
        let seen = half.map(|row| dot(row, light).clamp(0.0, 1.0));
        Srgb::from_linear(LinSrgb::from(seen))
    }
}

fn lab(colour: Colour) -> Lab<D65, f64> {
    colour.into_color()
}

/// By CIEDE2000, to the kind of eyes that tells them apart least, and which these are.
fn difference(one: Colour, other: Colour) -> (f64, &'static str) {
    let of = |one: Colour, other: Colour| lab(one).difference(lab(other));
    let seen = DICHROMATS.iter().map(|eyes| (of(eyes.sees(one), eyes.sees(other)), eyes.name));
    let all = seen.chain([(of(one, other), "all cones")]);
    all.min_by(|a, b| a.0.total_cmp(&b.0)).expect("four kinds")
}

fn lighter(one: Colour, other: Colour) -> f64 {
    (lab(one).l - lab(other).l).abs()
}

fn parsed(colour: &str) -> Colour {
    let bytes: Srgb<u8> = colour.parse().unwrap_or_else(|_| panic!("{colour} is no colour"));
    bytes.into_format()
}

/// What is declared for a selector, in the order of the file.
struct Rule {
    dark: bool,
    selector: String,
    declarations: Vec<(String, String)>,
}

impl Rule {
    fn value(&self, property: &str) -> Option<&str> {
        self.declarations.iter().rev().find(|(name, _)| name == property).map(|(_, value)| &**value)
    }
}

/// The rules of CSS that has neither comments nor braces in texts, those of a media query with the others.
fn rules(css: &str) -> Vec<Rule> {
    let (mut rules, mut media) = (Vec::new(), None);
    for piece in css.split_inclusive(['{', '}']).map(str::trim) {
        if let Some(query) = piece.strip_suffix('{').filter(|query| query.starts_with('@')) {
            media = Some(query.contains("dark"));
        } else if let Some(selectors) = piece.strip_suffix('{') {
            rules.push((selectors.trim().to_string(), String::new(), media == Some(true)));
        } else if let Some(body) = piece.strip_suffix('}') {
            match rules.last_mut().filter(|rule| rule.1.is_empty() && !body.is_empty()) {
                Some(rule) => rule.1 = body.to_string(),
                None => media = None,
            }
        }
    }
    let declarations = |body: &str| {
        let all = body.split(';').filter_map(|one| one.split_once(':'));
        all.map(|(name, value)| (name.trim().to_string(), value.trim().to_string())).collect::<Vec<_>>()
    };
    let alone = |(selectors, body, dark): (String, String, bool)| {
        let alone = |selector: &str| Rule {
            dark,
            selector: selector.trim().to_string(),
            declarations: declarations(&body),
        };
        selectors.split(',').map(alone).collect::<Vec<_>>()
    };
    rules.into_iter().flat_map(alone).collect()
}

/// All rules: this crate's, and those of the pages and flame graphs of `topdown record`.
fn all_rules() -> Vec<Rule> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tree");
    let files =
        ["report/src/html/style.css", "record/src/views/html/style.css", "record/src/views/flame/flame.css"];
    files.iter().flat_map(|file| rules(&fs::read_to_string(tree.join(file)).expect(file))).collect()
}

/// The colours that have names, on a light or on a dark page.
struct Named {
    page: &'static str,
    colours: BTreeMap<String, Colour>,
}

impl Named {
    fn both(rules: &[Rule]) -> [Named; 2] {
        [("light", false), ("dark", true)].map(|(page, dark)| {
            let roots = rules.iter().filter(|rule| rule.selector == ":root" && (dark || !rule.dark));
            let named = roots.flat_map(|rule| &rule.declarations).filter_map(|(name, value)| {
                let name = name.strip_prefix("--")?;
                Some((name.to_string(), parsed(value)))
            });
            let mut named = Named { page, colours: named.collect() };
            named.fade(rules);
            named
        })
    }

    /// Frames that a search has not found, with the card behind them.
    fn fade(&mut self, rules: &[Rule]) {
        let mut opacities = rules.iter().filter_map(|rule| rule.value("fill-opacity"));
        let opacity = opacities.next().expect("frames fade").parse().expect("a number");
        assert!(opacities.next().is_none(), "frames alone fade");
        for name in LEVEL_1 {
            let faded = self.get("card").mix(self.get(name), opacity);
            self.colours.insert(format!("faded {name}"), faded);
        }
    }

    fn get(&self, name: &str) -> Colour {
        *self.colours.get(name).unwrap_or_else(|| panic!("no --{name}"))
    }

    /// What a declaration has: a name, or the colour itself.
    fn value(&self, value: &str) -> Colour {
        match value.strip_prefix("var(--").and_then(|rest| rest.strip_suffix(')')) {
            Some(name) => self.get(name),
            None => parsed(value),
        }
    }
}

/// Categories of level 1 in the order of a bar, and frames of which nothing can be told.
const LEVEL_1: [&str; 5] = ["a0", "a1", "a2", "a3", "untold"];
const LEVEL_2: [&str; 8] = ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"];

/// CIEDE2000 of 1 is just seen where two large areas touch. A part of a bar is small, and its sample in the legend far from it:
/// so the categories are 18 apart. Seven of the colours of Okabe and Ito, which were chosen for eyes of all kinds
/// (jfly.uni-koeln.de/color), come to 7.9; the eight nodes of level 2, each below its category, are to have no less than 10.
const APART_1: f64 = 18.0;
const APART_2: f64 = 10.0;
/// Those that touch in a bar are further apart, and not by hue alone: so many of 100 from black to white.
const BESIDE_2: f64 = 18.0;
const LIGHTER_1: f64 = 12.0;
const LIGHTER_2: f64 = 9.0;
/// Of the categories in the few colours that terminals have.
const APART_TERMINAL: f64 = 14.0;
const LIGHTER_TERMINAL: f64 = 8.0;

/// Pairs of these that are less than so far apart.
fn alike(named: &Named, names: &[&str], least: f64) -> Vec<String> {
    let pairs =
        names.iter().enumerate().flat_map(|(k, one)| names[..k].iter().map(move |other| (one, other)));
    let alike = pairs.filter_map(|(one, other)| {
        let (apart, eyes) = difference(named.get(one), named.get(other));
        (apart < least)
            .then(|| format!("{} page, {eyes}: {other} and {one} are {apart:.1} apart", named.page))
    });
    alike.collect()
}

/// Neighbours in a bar that are less than so far apart, or one hardly lighter than the other.
fn neighbours(named: &Named, names: &[&str], least: f64, least_lighter: f64) -> Vec<String> {
    let unlike = |pair: &[&str]| {
        let lighter = lighter(named.get(pair[0]), named.get(pair[1]));
        (lighter < least_lighter)
            .then(|| format!("{} page: {pair:?} differ by {lighter:.1} in lightness", named.page))
    };
    names.windows(2).flat_map(|pair| alike(named, pair, least).into_iter().chain(unlike(pair))).collect()
}

#[test]
fn colours_are_told_apart_by_eyes_of_every_kind() {
    let mut wrong = Vec::new();
    for named in &Named::both(&all_rules()) {
        wrong.extend(alike(named, &LEVEL_1, APART_1));
        wrong.extend(alike(named, &LEVEL_2, APART_2));
        wrong.extend(neighbours(named, &LEVEL_1[..4], APART_1, LIGHTER_1));
        wrong.extend(neighbours(named, &LEVEL_2, BESIDE_2, LIGHTER_2));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a terminal shows for the number of a colour in its cube.
fn shown(number: u8) -> Colour {
    let steps = [36, 6, 1].map(|place| CUBE[usize::from((number - 16) / place % 6)]);
    Srgb::from(steps).into_format()
}

#[test]
fn colours_of_terminals_are_told_apart_and_their_letters_read() {
    let names = LEVEL_1[..4].iter().flat_map(|name| [name.to_string(), format!("on-{name}")]);
    let colours = names.map(|name| (name.clone(), shown(terminal_colour(&name)))).collect();
    let named = Named { page: "terminal", colours };
    let mut wrong = alike(&named, &LEVEL_1[..4], APART_TERMINAL);
    wrong.extend(neighbours(&named, &LEVEL_1[..4], APART_TERMINAL, LIGHTER_TERMINAL));
    assert!(wrong.is_empty(), "{wrong:#?}");
    for name in &LEVEL_1[..4] {
        let contrast = named.get(name).relative_contrast(named.get(&format!("on-{name}")));
        assert!(contrast >= READABLE, "{name} has {contrast:.2}");
    }
}

#[test]
fn colours_that_are_known_to_be_alike_are_found_to_be() {
    for (one, other, eyes) in [
        ("#2a9263", "#cf3a63", "deuteranopia"), // green and crimson
        ("#7cc5a1", "#94bbec", "tritanopia"),   // light green and light blue
        ("#0000ff", "#6a00ff", "protanopia"),   // blue and violet
    ] {
        let (apart, least) = difference(parsed(one), parsed(other));
        assert!(apart < 6.0 && least == eyes, "{one} {other}: {apart} to {least}");
    }
    assert!(difference(parsed("#000000"), parsed("#ffffff")).0 > 99.9);
    // (Sharma, Wu and Dalal, The CIEDE2000 color-difference formula, 2005: the first pair of their test data)
    let apart = Lab::<D65, f64>::new(50.0, 2.6772, -79.7751).difference(Lab::new(50.0, 0.0, -82.7485));
    assert!((apart - 2.0425).abs() < 1e-4, "{apart}");
}

/// WCAG 2.1, 1.4.3: what level AA asks of text that is not large.
const READABLE: f64 = 4.5;

/// What is behind texts besides the background of their own rule: of each selector that gives a text its colour.
const BEHIND: &[(&str, &[&str])] = &[
    ("body", &["page", "card", "warn-page"]),
    (".over", &["page", "card"]),
    (".machine", &["page"]),
    (".meta", &["page", "card"]),
    (".simulated", &[]),
    (".remarks", &[]),
    (".bound", &["card"]),
    (".legend span", &["card"]),
    (".marks", &["card"]),
    (".tools form", &["card"]),
    (".tools select", &[]),
    (".tools input[type=search]", &[]),
    ("::placeholder", &["page"]),
    (".chip", &["card"]),
    (".chip.warn", &["card"]),
    ("#more", &[]),
    ("svg.bar text.faint", &["card"]),
    ("svg.bar text.on-doubt", &["card"]), // its own halo, which covers the hatched part
    ("th", &["card"]),
    (".matrix th:first-child", &[]),
    (".matrix small", &["card"]),
    (".matrix td", &["card"]),
    ("footer", &["page"]),
    ("#next li::marker", &["card"]),
    ("#next .step", &["card"]),
    (".axis", &["card"]),
    (".zoom button", &[]),
    (".graphs button", &[]),
    (".keys", &["card"]),
    (".keys button", &[]),
    (".keys button[aria-pressed=true]", &[]),
    (".calls .head", &["card"]),
    (".lines summary", &["card"]),
    (".lines .warn", &["card"]),
    (".source th", &["card"]),
    (".source .at", &["card", "warn-page"]),
    (".source .skip", &["card"]),
    ("svg.flame text", &["card"]),
    ("svg.flame .meta", &["card"]),
    ("svg.flame .untold text", &["untold"]),
    (
        "svg.flame.searched .frames svg:not(.found) text",
        &["faded a0", "faded a1", "faded a2", "faded a3", "faded untold"],
    ),
];

/// Selectors that fill what is no text.
const SHAPES: &[&str] = &[
    "svg.bar rect.nothing",
    "svg.bar rect.doubt",
    "svg.time rect.doubt",
    "svg.time .rest",
    "svg.time .tips rect",
    "svg.time .tips rect:hover",
    "svg.time .chosen",
    "svg.flame .untold",
    ".calls .swatch .untold",
    "svg.flame .page",
];

/// The names of the categories' colours.
fn is_part(name: &str) -> bool {
    LEVEL_1[..4].contains(&name) || LEVEL_2.contains(&name)
}

/// What a text of this selector stands on, if it has the colour of a text.
fn behind(selector: &str) -> Option<Vec<&str>> {
    let known = BEHIND.iter().find(|(text, _)| *text == selector).map(|(_, behind)| behind.to_vec());
    let frame = selector.strip_prefix("svg.flame .").and_then(|rest| rest.strip_suffix(" text"));
    let part = selector.strip_prefix(".on-").or(frame).filter(|name| is_part(name));
    known.or(part.map(|name| vec![name]))
}

fn is_shape(selector: &str) -> bool {
    let last = selector.rsplit('.').next().unwrap_or_default();
    SHAPES.contains(&selector) || is_part(last)
}

#[test]
fn colours_of_texts_have_enough_contrast() {
    let rules = all_rules();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for rule in &rules {
        let opaque = rule.value("opacity").is_none_or(|value| value == "1");
        assert!(
            opaque || is_shape(&rule.selector),
            "what is behind {} shines through its text",
            rule.selector
        );
        let Some(text) = rule.value("color").or(rule.value("fill")) else { continue };
        let selector = &*rule.selector;
        let Some(mut behind) = behind(selector) else {
            assert!(is_shape(selector), "what is behind the text of {selector}?");
            continue;
        };
        seen.insert(selector);
        let own = rule.value("background").and_then(|value| value.strip_prefix("var(--")?.strip_suffix(')'));
        behind.extend(own);
        assert!(!behind.is_empty(), "what is behind the text of {selector}?");
        for (named, behind) in
            Named::both(&rules).iter().flat_map(|named| behind.iter().map(move |one| (named, one)))
        {
            let contrast = named.value(text).relative_contrast(named.get(behind));
            if contrast < READABLE {
                wrong.push(format!("{} page: {selector} on {behind} has {contrast:.2}", named.page));
            }
        }
    }
    let gone: Vec<_> = BEHIND.iter().filter(|(text, _)| !seen.contains(text)).collect();
    assert!(gone.is_empty(), "no rule gives a colour to {gone:?}");
    let parts = LEVEL_2.iter().chain(&LEVEL_1[..4]).filter(|name| !seen.contains(&*format!(".on-{name}")));
    assert_eq!(parts.collect::<Vec<_>>(), <[&&str; 0]>::default(), "parts with labels of no colour");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
