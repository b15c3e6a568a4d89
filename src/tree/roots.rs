//! Levels 1 and 2 of whatever is sums of inputs (`model::sums`), all four shares at once: where the evaluation of a tree begins, and all that
//! td_decode_l1 and td_decode_l2 take.
#![forbid(unsafe_code)]

use super::inputs::RetiredPart;
use super::interval::Ends;
use super::shares::{NearShare, Shares, divided};
use crate::model::sums::{ChildInputs, Coefficients, SUMMED, Sums};
use std::array::from_fn;

/// Inputs that are added up here.
pub(crate) const COUNTERS: usize = ChildInputs::NONE as usize;
/// The same, and one behind them that there is not.
pub(crate) const ADDED: usize = COUNTERS + 1;

/// Bounds on the error of each input, in slots: by rounding, and at the edges of the region.
#[derive(Clone, Copy)]
pub(crate) struct Errors {
    pub rounding: f64,
    pub edges: f64,
}

/// The roots that divide all slots, before they are made to add up to 1: as shares, and bounds on their errors, in slots.
pub(crate) struct Roots {
    pub near: [f64; 4],
    pub rounding: [f64; 4],
    pub edges: [f64; 4],
    pub fifth: Option<NearShare>,
}

impl Roots {
    /// Of categories of PERF_METRICS, in slots.
    #[inline(always)]
    pub fn of_categories(category: &[f64], errors: Errors, slots: f64) -> Roots {
        Roots {
            near: from_fn(|k| category[k] / slots),
            rounding: [errors.rounding; 4],
            edges: [errors.edges; 4],
            fifth: None,
        }
    }

    /// Of general-purpose counters.
    #[allow(clippy::needless_range_loop)] // an iterator takes a hundred instructions more
    #[inline(always)]
    pub fn of_sums(
        sums: &Sums,
        Coefficients { roots, fifth: of_fifth }: &Coefficients,
        counts: &[f64; ADDED],
        errors: Errors,
        slots: f64,
    ) -> Roots {
        let mut parts: [f64; 4] = from_fn(|k| f64::from(roots[0][k]) * counts[0]);
        for input in 1..SUMMED {
            let part: [f64; 4] = from_fn(|k| f64::from(roots[input][k]) * counts[input]);
            parts = from_fn(|k| parts[k] + part[k]);
        }
        let times = |error: f64| from_fn(|k| sums.errors[k] * error);
        let (mut rounding, mut edges): ([f64; 4], [f64; 4]) = ([0.0; 4], times(errors.edges));
        let (rest, mut fifth) = (usize::from(sums.rest % 4), None);
        if sums.has_more {
            let of = |input: usize| of_fifth[input] * counts[input];
            let more = (1..SUMMED).map(of).fold(of(0), |all, part| all + part);
            match &sums.retired {
                None => {
                    let [rounding, edges] =
                        [errors.rounding, errors.edges].map(|error| sums.errors[4] * error);
                    fifth = Some(NearShare { near: more / slots, rounding, edges });
                }
                Some(of) => {
                    let root = usize::from(of.root % 4);
                    let count = |place: u8| counts[usize::from(place) % ADDED];
                    let part = RetiredPart::new(slots, more, count(of.retired), count(of.dispatched));
                    let all = errors.rounding + errors.edges;
                    (parts[root], edges[root]) = (part.slots(), part.off(sums.errors[4] * all, all, all));
                    edges[rest] = edges[rest].at_least(edges[root]);
                }
            }
        }
        // (general-purpose counters are not rounded, but where the kernel samples them)
        if errors.rounding != 0.0 {
            rounding = times(errors.rounding);
            rounding[rest] = sums.rounding_of_rest * errors.rounding;
        }
        let mut near = parts.map(|part| part / slots);
        near[rest] = 0.0;
        let left = 1.0 - near[0] - near[1] - near[2] - near[3];
        near[rest] = left - fifth.map_or(0.0, |fifth: NearShare| fifth.near);
        Roots { near, rounding, edges, fifth }
    }

    /// Made to add up: four, and the one that a fifth may be.
    #[inline(always)]
    pub fn divided(&self, slots: f64, is_exact: bool) -> (Shares<4>, Shares<1>) {
        let doubt = from_fn(|k| (self.rounding[k] + self.edges[k]) / slots);
        let fifth = self.fifth.map(|fifth| (fifth.near, (fifth.rounding + fifth.edges) / slots));
        divided(self.near, doubt, fifth, if fifth.is_some() { 5.0 } else { 4.0 }, is_exact)
    }

    /// Level 2, where each of four roots is two nodes: the first of each, which are near to these shares, and what these leave. Each is rounded in
    /// its own way; what happened at the edges is the same for all.
    #[inline(always)]
    pub fn pairs(
        &self,
        parents: &Shares<4>,
        near: [f64; 4],
        errors: Errors,
        slots: f64,
        is_exact: bool,
    ) -> [Shares<4>; 2] {
        let first = parents.parts(near, [(errors.rounding + errors.edges) / slots; 4]);
        let mut rest = parents.less(&first);
        if !is_exact {
            let doubt = |k: usize| self.rounding[k] + errors.rounding + self.edges[k].at_least(errors.edges);
            rest = rest.within(from_fn(|k| self.near[k] - near[k]), from_fn(|k| doubt(k) / slots));
        }
        [first, rest.left()]
    }
}

/// What the first of each pair is near to, of inputs one of which is so many slots.
#[inline(always)]
pub(crate) fn near_below(
    below: &[ChildInputs; 4],
    counts: &[f64; ADDED],
    each: impl Fn(usize) -> f64,
    slots: f64,
) -> [f64; 4] {
    from_fn(|k| {
        let (input, less) = (usize::from(below[k].input) % ADDED, usize::from(below[k].less) % ADDED);
        (counts[input] * each(input) - counts[less] * each(less)) / slots
    })
}
