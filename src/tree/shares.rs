//! Shares of slots, several at once, each with the interval in which the truth lies: how they divide a whole, what is a part of them, and what
//! parts leave. Whoever evaluates a tree, or some of its nodes, calls these.
#![forbid(unsafe_code)]

use super::interval::Ends;
use std::array::from_fn;

/// No arithmetic here loses more.
pub(crate) const LOST: f64 = 1e-9;

/// A share before it is made to agree with others, and bounds on its error, in slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NearShare {
    pub near: f64,
    pub rounding: f64,
    pub edges: f64,
}

impl NearShare {
    pub(super) const NOTHING: NearShare = NearShare { near: 0.0, rounding: 0.0, edges: 0.0 };
    /// Of a node that does not count slots, and what comes of it.
    pub(super) const NONE: NearShare = NearShare { near: f64::NAN, ..NearShare::NOTHING };

    /// As a share of so many slots.
    #[inline(always)]
    pub fn bound(self, slots: f64) -> f64 {
        (self.rounding + self.edges) / slots
    }

    /// Less a part of it. Each is rounded in its own way; what happened at the edges is the same for all.
    #[inline(always)]
    pub fn minus(self, part: NearShare) -> NearShare {
        NearShare {
            near: self.near - part.near,
            rounding: self.rounding + part.rounding,
            edges: self.edges.at_least(part.edges),
        }
    }
}

/// N shares, and the ends between which the truth of each lies.
#[derive(Clone, Copy)]
pub(crate) struct Shares<const N: usize> {
    pub value: [f64; N],
    pub low: [f64; N],
    pub high: [f64; N],
}

/// A share is between these.
#[inline(always)]
fn clamped(share: f64) -> f64 {
    share.at_least(0.0).at_most(1.0)
}

/// The sums over shares that divide one whole, how many these are, and whether nothing is in doubt of them.
#[derive(Clone, Copy)]
struct ShareTotals {
    value: f64,
    low: f64,
    high: f64,
    count: f64,
    is_exact: bool,
}

/// The shares of all slots, made to add up to 1: four, and the one that a fifth may be. `near`: before they are made to
/// add up; `doubt`: how far each may be off; `count`: how many there are, the others of which are zeros; `is_exact`: what they are made of is in
/// no doubt.
#[inline(always)]
pub(crate) fn divided(
    near: [f64; 4],
    doubt: [f64; 4],
    fifth: Option<(f64, f64)>,
    count: f64,
    is_exact: bool,
) -> (Shares<4>, Shares<1>) {
    let (four, mut more) = (Shares::near(near, doubt), Shares { value: [0.0], low: [0.0], high: [0.0] });
    let sum = |of: [f64; 4]| of.iter().sum::<f64>();
    let (value, low, high) = (sum(four.value), sum(four.low), sum(four.high));
    let mut whole = ShareTotals { value, low, high, count, is_exact };
    if let Some((near, doubt)) = fifth {
        more = Shares::near([near], [doubt]);
        let Shares { value: [value], low: [low], high: [high] } = more;
        whole = ShareTotals {
            value: whole.value + value,
            low: whole.low + low,
            high: whole.high + high,
            ..whole
        };
        more = more.agreeing(whole);
    }
    (four.agreeing(whole), more)
}

impl<const N: usize> Shares<N> {
    /// Each by itself.
    #[inline(always)]
    fn near(near: [f64; N], doubt: [f64; N]) -> Shares<N> {
        Shares {
            value: near.map(clamped),
            low: from_fn(|k| clamped(near[k] - doubt[k])),
            high: from_fn(|k| clamped(near[k] + doubt[k])),
        }
    }

    /// So as all that there are divide one whole: the others leave no more, and no less. (Exact shares can only lose by this, since the
    /// sums are rounded.)
    #[inline(always)]
    fn agreeing(self, whole: ShareTotals) -> Shares<N> {
        let Shares { value, low, high } = self;
        let value =
            if whole.value > 0.0 { value.map(|value| value / whole.value) } else { [1.0 / whole.count; N] };
        if whole.is_exact {
            return Shares { value, low, high }.sure();
        }
        let least: [f64; N] = from_fn(|k| low[k].at_least(1.0 - (whole.high - high[k])));
        let most: [f64; N] = from_fn(|k| high[k].at_most(1.0 - (whole.low - low[k])));
        Shares { value, low: least, high: most }.sure()
    }

    /// Shares that are parts of these. `near`: as they were counted; `doubt`: how far each may be off. (Something is always between the ends.)
    #[inline(always)]
    pub fn parts(&self, near: [f64; N], doubt: [f64; N]) -> Shares<N> {
        let low: [f64; N] = from_fn(|k| (near[k] - doubt[k]).at_least(0.0).at_most(self.high[k]));
        Shares {
            value: from_fn(|k| near[k].at_least(0.0).at_most(self.value[k])),
            low,
            high: from_fn(|k| (near[k] + doubt[k]).at_least(low[k]).at_most(self.high[k])),
        }
    }

    /// What a part of each leaves of it, or of what other parts have left.
    #[inline(always)]
    pub fn less(&self, part: &Shares<N>) -> Shares<N> {
        Shares {
            value: from_fn(|k| self.value[k] - part.value[k]),
            low: from_fn(|k| self.low[k] - part.high[k]),
            high: from_fn(|k| self.high[k] - part.low[k]),
        }
    }

    /// Not further from these than so, where anything is known of them (a number).
    #[inline(always)]
    pub fn within(self, near: [f64; N], doubt: [f64; N]) -> Shares<N> {
        Shares {
            low: from_fn(|k| (near[k] - doubt[k]).at_least(self.low[k])),
            high: from_fn(|k| (near[k] + doubt[k]).at_most(self.high[k])),
            ..self
        }
    }

    /// What is left is not below zero.
    #[inline(always)]
    pub fn left(self) -> Shares<N> {
        let zero = |of: [f64; N]| of.map(|of| of.at_least(0.0));
        Shares { value: zero(self.value), low: zero(self.low), high: zero(self.high) }.sure()
    }

    /// Anywhere, where there is nothing between the ends.
    #[inline(always)]
    pub fn sure(self) -> Shares<N> {
        let Shares { value, low, high } = self;
        Shares {
            value,
            low: from_fn(|k| if low[k] > high[k] { 0.0 } else { low[k] }),
            high: from_fn(|k| if low[k] > high[k] { 1.0 } else { high[k] }),
        }
    }

    /// A part of the whole passed uncounted. It may have been all of each share or none.
    #[inline(always)]
    pub fn widened(self, part: f64) -> Shares<N> {
        Shares {
            low: self.low.map(|low| low * (1.0 - part)),
            high: self.high.map(|high| high * (1.0 - part) + part),
            ..self
        }
    }

    /// The ends include what the arithmetic may have lost, and the value.
    #[inline(always)]
    pub fn outward(self) -> Shares<N> {
        Shares {
            value: self.value,
            low: from_fn(|k| (self.low[k] - LOST).at_least(0.0).at_most(self.value[k])),
            high: from_fn(|k| (self.high[k] + LOST).at_least(self.value[k]).at_most(1.0)),
        }
    }

    /// How far the farther of its ends is from each, as `outward` has them; below zero if the value is beyond that end.
    #[inline(always)]
    pub fn farthest(&self) -> [f64; N] {
        let above: [f64; N] = from_fn(|k| (self.high[k] + LOST).at_most(1.0) - self.value[k]);
        let below: [f64; N] = from_fn(|k| self.value[k] - (self.low[k] - LOST).at_least(0.0));
        from_fn(|k| above[k].at_least(below[k]))
    }
}
