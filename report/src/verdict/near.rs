//! Which of several shares are near the largest.
#![forbid(unsafe_code)]

use crate::nodes::NodeInterval;

/// What is no more than a quarter smaller than the largest is near it.
pub const NEAR: f64 = 0.75;

/// A node that is near the largest.
#[derive(Clone, Copy, Debug)]
pub struct NearNode<'t> {
    pub node: &'t NodeInterval,
    /// Wherever in the intervals the truth is; else it may be.
    pub is_sure: bool,
}

/// A node with its bound, and into how many parts it divides that are told apart no further: the largest of these has that part of it at
/// least, and all of it at most.
pub struct Candidate<'t> {
    pub node: &'t NodeInterval,
    pub bound: f64,
    pub parts: usize,
}

impl Candidate<'_> {
    /// The ends of what the largest part of it is.
    fn ends(&self) -> (f64, f64) {
        let Candidate { node, bound, parts } = self;
        ((node.share.value - bound).max(0.0) / *parts as f64, (node.share.value + bound).min(1.0))
    }
}

/// Those of the candidates that are or may be near the largest of them, the largest first. One that is near in truth is always among them, and
/// so is the one that is the largest in truth, since the truth is between the ends.
pub fn near<'t>(candidates: &[Candidate<'t>]) -> Vec<NearNode<'t>> {
    let ends: Vec<(f64, f64)> = candidates.iter().map(Candidate::ends).collect();
    let largest_of_others = |own: usize, end: fn(&(f64, f64)) -> f64| {
        let others = ends.iter().enumerate().filter(|(place, _)| *place != own);
        others.map(|(_, ends)| end(ends)).fold(0.0, f64::max)
    };
    let judged = candidates.iter().zip(&ends).enumerate().filter_map(|(place, (candidate, (low, high)))| {
        let may_be = *high >= NEAR * largest_of_others(place, |ends| ends.0);
        let is_sure = *low >= NEAR * largest_of_others(place, |ends| ends.1);
        may_be.then_some(NearNode { node: candidate.node, is_sure })
    });
    let mut near: Vec<NearNode> = judged.collect();
    near.sort_by(|a, b| b.node.share.value.total_cmp(&a.node.share.value));
    near
}
