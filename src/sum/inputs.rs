//! A sum by the inputs of its CPU's tree of metrics, the same for all CPUs: as files keep it.
#![forbid(unsafe_code)]

use super::{Part, Sum};
use crate::model;
use crate::model::tree::{Input, Tree};
use crate::registers::rounded;
use crate::sample::{Base, CATEGORIES, Sample};
use crate::span::float;

/// What an input of the tree counted in the measured executions of a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InputSum {
    /// The sum of its counts.
    pub sum: f64,
    /// Bound on the error of the sum by rounding.
    pub rounding: f64,
    /// Sum of the products of its counts and the executions' slots.
    pub products: f64,
    /// Sum of the squares of its counts.
    pub squares: f64,
}

/// The inputs that are counted where nodes down to this level are measured.
fn counted(tree: &Tree, level: u32) -> &[Input] {
    &tree.inputs[..tree.inputs_of(level)]
}

impl Sum {
    /// The inputs of its CPU's tree, in the tree's order; None: not counted.
    pub fn inputs(&self) -> impl Iterator<Item = Option<InputSum>> + use<> {
        let (all, moments, counts, level) = (self.parts(), self.moments, self.counted, self.level);
        let tree = self.last.base.tree();
        let (inputs, counted) = tree.map_or((&[][..], 0), |tree| (tree.inputs, counted(tree, level).len()));
        inputs.iter().enumerate().map(move |(place, input)| {
            let (sum, products, squares) = match *input {
                Input::Category(k) => (all.category[k], moments[k], moments[CATEGORIES + k]),
                Input::Counter(k) => (float(counts[k]), 0.0, 0.0),
                Input::Cycles(k, slots) => (float(counts[k]) * f64::from(slots), 0.0, 0.0),
            };
            let input_sum = InputSum { sum, rounding: all.rounding, products, squares };
            (place < counted).then_some(input_sum)
        })
    }

    /// Bound on the slots of each input that were counted in or left out at the edges of the measured executions.
    pub fn edges(&self) -> f64 {
        self.parts().edges
    }

    /// A sum with these inputs, measured down to this level on the core of this name (`Info::core`), and no execution
    /// yet; `measured`: how many will not be by `add_counted`. None: this version does not know the core, or its tree has other inputs.
    pub fn of_inputs(
        core: &str,
        level: u32,
        measured: u64,
        edges: f64,
        inputs: impl Iterator<Item = Option<InputSum>>,
    ) -> Option<Sum> {
        let model = model::of_core(core)?;
        let tree = model::tree_of(model)?;
        let base = Base::of_handle(0, model, 0);
        let mut sum = Sum {
            level,
            measured,
            closed: Part { edges, ..Part::default() },
            last: Sample { base, ..Sample::default() },
            ..Sum::default()
        };
        if tree.takes_counters() {
            sum.apart.rounding = float(measured);
        }
        let counted = counted(tree, level).len();
        let mut places = tree.inputs.iter().enumerate();
        for given in inputs {
            let place = places.next();
            if given.is_some() != place.is_some_and(|(place, _)| place < counted) {
                return None;
            }
            let (Some(InputSum { sum: all, rounding, products, squares }), Some((_, input))) = (given, place)
            else {
                continue;
            };
            if rounding.is_nan() || rounding < 0.0 || !all.is_finite() {
                return None;
            }
            sum.closed.rounding = sum.closed.rounding.max(rounding);
            match *input {
                Input::Category(k) => {
                    sum.closed.category[k] = all;
                    (sum.moments[k], sum.moments[CATEGORIES + k]) = (products, squares);
                }
                Input::Counter(k) => sum.counted[k] = rounded(all),
                Input::Cycles(k, slots) => sum.counted[k] = rounded(all / f64::from(slots)),
            }
        }
        places.next().is_none().then_some(sum)
    }
}
