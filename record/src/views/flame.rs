//! Flame graphs: stacks one upon the other, frames of one function beside each other merged, as wide as what they stand for and of
//! the colour of the function's bottleneck.
//!
//! Not by the crate inferno, the port of flamegraph.pl: its licence (CDDL-1.0) is not among those of deny.toml. Coordinates are
//! percentages, so that a graph is as wide as there is room without a script.
#![forbid(unsafe_code)]

mod file;
mod frames;
mod largest;

pub(super) use file::svg;
pub(super) use frames::{Callees, FlameFrame, Flames, FrameKind, FrameLook, Width};
pub(super) use largest::LargestFrames;

use crate::profile::{FunctionFigures, Profile, ProfiledCore};
use topdown::LEVEL_1;
use topdown_report::ShareInterval;

/// How graphs look, besides what all pages have.
pub(super) const STYLE: &str = include_str!("flame/flame.css");
/// Zooms, searches, and shortens labels.
pub(super) const SCRIPT: &str = include_str!("flame/flame.js");
/// Of what cannot be told.
const GREY: &str = "untold";

/// What a frame's width is, in words.
pub(super) fn time(profile: &Profile) -> String {
    match profile.event() {
        None => "CPU time".into(),
        Some(held) if held.of.is_condition() => format!("{} in stretches{}", held.event, held.of.heading()),
        Some(held) => held.event.clone(),
    }
}

/// The category of level 1 with the largest share, by its place in `LEVEL_1`.
pub(super) fn dominant<'p>(
    core: &ProfiledCore,
    figures: &'p FunctionFigures,
) -> Option<(usize, &'p ShareInterval)> {
    let told = figures.told(&core.nodes).ok()?;
    let place = |node: &topdown::SampledNode| LEVEL_1.iter().position(|metric| *metric == node.metric);
    let roots = core.nodes.iter().zip(&told.shares).filter_map(|(node, share)| Some((place(node)?, share)));
    roots.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
}
