//! Frames as a tree, and its picture.

use super::{GREY, LargestFrames, dominant};
use crate::profile::{CallStack, Profile};
use crate::views::index::FunctionIndex;
use maud::{Markup, html};
use std::collections::BTreeMap;
use topdown_report::page::HtmlText;
use topdown_report::{thousands, time};

/// Height of a frame, and how much of it is coloured, in pixels.
const ROW: usize = 18;
const FILLED: usize = ROW - 1;
/// Narrower frames are left out: one burst in 5,000.
const THIN: f64 = 0.0002;
/// Of more frames in a graph the smallest are left out.
const MOST_FRAMES: usize = 3000;

/// What a frame's width stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// CPU time.
    Time,
    /// CPU time in which slots were not retired, as the innermost function's shares are: nothing where these cannot be told.
    Waste,
}

/// Which of the functions are the outermost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callees {
    /// Callers at the bottom, what they call above.
    Above,
    /// Innermost functions at the top, their callers below.
    First,
}

/// What a frame is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FrameKind<'p> {
    /// All that ran on a kind of core.
    Core(usize),
    Function(usize, &'p (String, String)),
}

/// Frames of one function in one place, and those in them.
#[derive(Default)]
pub(crate) struct FlameFrame<'p> {
    pub ns: f64,
    pub inner: BTreeMap<FrameKind<'p>, FlameFrame<'p>>,
}

/// How a frame is shown.
pub(crate) struct FrameLook<'p> {
    pub name: &'p str,
    pub module: &'p str,
    /// Of the style: the category that has most of the function's own slots.
    pub class: String,
    /// The same in words.
    pub bottleneck: String,
}

/// A graph.
pub(crate) struct Flames<'p> {
    profile: &'p Profile,
    index: FunctionIndex<'p>,
    width: Width,
    callees: Callees,
    root: FlameFrame<'p>,
    shown: LargestFrames,
    /// Of all time, the part of functions of which it is not known how wide they are.
    pub unknown: f64,
}

impl<'p> Flames<'p> {
    pub fn new(profile: &'p Profile, width: Width, callees: Callees) -> Flames<'p> {
        let (index, root, shown) =
            (FunctionIndex::new(profile), FlameFrame::default(), LargestFrames::default());
        let mut flames = Flames { profile, index, width, callees, root, shown, unknown: 0.0 };
        let (mut all, mut unknown) = (0.0, 0.0);
        for (stack, ns) in &profile.stacks {
            let ns = *ns as f64;
            all += ns;
            match flames.weight(stack) {
                Some(weight) => flames.add(stack, ns * weight),
                None => unknown += ns,
            }
        }
        flames.unknown = if all > 0.0 { unknown / all } else { 0.0 };
        flames.shown = LargestFrames::of(&flames.root, THIN * flames.root.ns, MOST_FRAMES);
        flames
    }

    /// Of a stack's time, how much counts.
    fn weight(&self, stack: &'p CallStack) -> Option<f64> {
        match self.width {
            Width::Time => Some(1.0),
            Width::Waste => {
                let function = self.index.find(stack.core, stack.functions().last()?)?;
                function.own.wasted_share(&self.profile.cores[stack.core].nodes)
            }
        }
    }

    fn add(&mut self, stack: &'p CallStack, ns: f64) {
        let mut path = vec![FrameKind::Core(stack.core)];
        path.extend(stack.functions().map(|function| FrameKind::Function(stack.core, function)));
        if self.callees == Callees::First {
            path[1..].reverse();
        }
        let mut frame = &mut self.root;
        frame.ns += ns;
        for of in path {
            frame = frame.inner.entry(of).or_default();
            frame.ns += ns;
        }
    }

    fn is_shown(&self, frame: &FlameFrame) -> bool {
        self.shown.has(frame)
    }

    /// So many have a frame, and smaller ones have none; None: all that are not too thin have one.
    pub fn is_cut_to(&self) -> Option<usize> {
        self.shown.is_cut.then_some(MOST_FRAMES)
    }

    /// Rows of frames.
    fn rows(&self, frame: &FlameFrame) -> usize {
        let inner = frame.inner.values().filter(|inner| self.is_shown(inner));
        inner.map(|inner| 1 + self.rows(inner)).max().unwrap_or(0)
    }

    /// In pixels.
    pub fn height(&self) -> usize {
        ROW * self.rows(&self.root)
    }

    /// The frames, each an `svg` of its own, in which its label is cut where it ends. One that holds others comes before these, and
    /// those of a row from left to right.
    pub fn frames(&self) -> Markup {
        html! { g.frames { (self.within(&self.root, 0.0, 0, self.rows(&self.root))) } }
    }

    /// What is in a frame that begins at `at` (0 to 1), from this row of so many on.
    fn within(&self, frame: &FlameFrame<'p>, mut at: f64, row: usize, rows: usize) -> Markup {
        let y = match self.callees {
            Callees::Above => ROW * rows.saturating_sub(row + 1),
            Callees::First => ROW * row,
        };
        let percent = |part: f64| format!("{:.4}%", 100.0 * part);
        let mut placed = Vec::new();
        for (of, inner) in &frame.inner {
            placed.push((*of, inner, at));
            at += inner.ns / self.root.ns;
        }
        html! {
            @for (of, inner, x) in placed.into_iter().filter(|(_, inner, _)| self.is_shown(inner)) {
                @let look = self.look(of);
                svg class=(look.class) x=(percent(x)) y=(y) width=(percent(inner.ns / self.root.ns)) height=(FILLED) {
                    title { (HtmlText(look.name)) (self.tooltip(&look, inner)) }
                    rect width="100%" height="100%" {}
                    text x="4" y="12" { (HtmlText(look.name)) }
                }
                "\n"
                (self.within(inner, x, row + 1, rows))
            }
        }
    }

    /// All of it: no frame, but what holds those of each kind of core.
    pub fn root(&self) -> &FlameFrame<'p> {
        &self.root
    }

    pub fn look(&self, of: FrameKind<'p>) -> FrameLook<'p> {
        let (core, name, module, figures) = match of {
            FrameKind::Core(core) => {
                (core, self.profile.cores[core].name, "", Some(&self.profile.cores[core].all))
            }
            FrameKind::Function(core, function) => {
                let found = self.index.find(core, function).map(|function| &function.own);
                (core, &*function.0, &*function.1, found)
            }
        };
        let dominant = figures.and_then(|figures| dominant(&self.profile.cores[core], figures));
        let (class, bottleneck) = match dominant {
            None => (GREY.into(), "its own slots cannot be told".into()),
            Some((k, share)) => {
                let (value, error) = (100.0 * share.value, 100.0 * share.error());
                (format!("a{k}"), format!("{} {value:.1} ± {error:.1} %", topdown::LEVEL_1[k].title()))
            }
        };
        FrameLook { name, module, class, bottleneck }
    }

    /// The tooltip, behind the name.
    fn tooltip(&self, look: &FrameLook, frame: &FlameFrame) -> String {
        let part = 100.0 * frame.ns / self.root.ns;
        let what = if self.width == Width::Time { "the time" } else { "the time of wasted slots" };
        let (what, amount) = match self.profile.event() {
            None => (what, time(frame.ns)),
            Some(held) => (held.of.all(), format!("{} {}", thousands(frame.ns as u64), held.event)),
        };
        let module = if look.module.is_empty() { String::new() } else { format!(" ({})", look.module) };
        let module = topdown_report::clean(&module);
        format!("{module}\n{part:.1} % of {what}, {amount}\n{}", look.bottleneck)
    }
}
