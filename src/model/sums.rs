//! Trees whose levels 1 and 2 are sums of counters, as one table of coefficients each: what decodes them then takes no evaluation.
#![forbid(unsafe_code)]

use super::metrics::{LEVEL_1, LEVEL_2, SMT_CONTENTION};
use super::tree::{Corrected, Formula, Input, Tree};

/// No root of `Sums` takes a later input.
pub(crate) const SUMMED: usize = 5;

/// Level 1 as sums of general-purpose counters: the roots have the slots of td_l1's four shares in their order, and one may be a fifth. One is what the
/// others leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    /// How many slots of each root a count of each input is.
    pub roots: [[f32; 4]; SUMMED],
    /// The same of the fifth; or where one is `retired`, of the stalls.
    pub fifth: [f64; SUMMED],
    /// Of how many inputs each root has the errors; of what the others leave, as many as one of them.
    pub errors: [f64; 5],
    /// The root that is what the others leave.
    pub rest: u8,
    /// There is a fifth root, or one of `Formula::Retired`.
    pub has_more: bool,
    /// The root that has the slots no stall took, as `Retired` divides them.
    pub retired: Option<RetiredRoot>,
    /// The first of each pair of td_l2, where all of them are so: level 2 is these, and what each leaves of its parent.
    pub below: Option<[Below; 4]>,
    /// Deepest level of the tree.
    pub levels: u8,
}

/// A root of `Formula::Retired`: its place, and those of its inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetiredRoot {
    pub root: u8,
    pub retired: u8,
    pub dispatched: u8,
}

/// Slots of a child: of an input, each of whose counts is worth so many, less what another counted; `NONE` if there is no other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Below {
    pub input: u8,
    pub each: u8,
    pub less: u8,
}

impl Below {
    /// The place behind all counters that are added up.
    pub(crate) const NONE: u8 = 8;
}

impl Sums {
    const NONE: Sums = Sums {
        roots: [[0.0; 4]; SUMMED],
        fifth: [0.0; SUMMED],
        errors: [0.0; 5],
        rest: u8::MAX,
        has_more: false,
        retired: None,
        below: None,
        levels: 0,
    };

    /// With the root at a place. None: it is no sum, or takes a later input.
    const fn with_root(mut self, place: usize, formula: Formula, inputs: &[Input]) -> Option<Sums> {
        let sum = match formula {
            Formula::Rest if self.rest == u8::MAX => {
                self.rest = place as u8;
                return Some(self);
            }
            Formula::Slots(input) => Sum::NOTHING.with(&[input], 1.0, inputs),
            Formula::Balance(more, less) => Sum::NOTHING.with(more, 1.0, inputs).with(less, -1.0, inputs),
            Formula::Corrected(of) => {
                let sum = Sum::NOTHING.with(&[of.slots], 1.0, inputs);
                let errors = sum.inputs;
                Sum { inputs: errors, ..sum.with(of.less, -1.0, inputs).with(of.more, 1.0, inputs) }
            }
            Formula::Retired(of)
                if self.retired.is_none() && of.retired < SUMMED && of.dispatched < SUMMED =>
            {
                let stalls = Sum::NOTHING.with(of.stalls, 1.0, inputs).with(of.not_stalls, -1.0, inputs);
                self.fifth = wide(stalls.slots);
                if stalls.inputs.count_ones() > 3 {
                    return None;
                }
                self.errors[4] = stalls.inputs.count_ones() as f64;
                let (retired, dispatched) = (of.retired as u8, of.dispatched as u8);
                self.retired = Some(RetiredRoot { root: place as u8, retired, dispatched });
                self.has_more = true;
                return if stalls.is_whole { Some(self) } else { None };
            }
            Formula::Rest | Formula::Retired(_) | Formula::Of(_) | Formula::NoCounter => return None,
        };
        // (up to three errors in a row add up to what their product is, to the last bit)
        let errors = sum.inputs.count_ones();
        if !sum.is_whole || errors > 3 {
            return None;
        }
        let mut input = 0;
        while input < SUMMED {
            match place {
                4 => self.fifth[input] = sum.slots[input] as f64,
                _ => self.roots[input][place] = sum.slots[input],
            }
            input += 1;
        }
        self.has_more |= place == 4;
        self.errors[place] = errors as f64;
        Some(self)
    }
}

const fn wide(of: [f32; SUMMED]) -> [f64; SUMMED] {
    let (mut wide, mut k) = ([0.0; SUMMED], 0);
    while k < SUMMED {
        wide[k] = of[k] as f64;
        k += 1;
    }
    wide
}

/// A sum of inputs on the way.
struct Sum {
    slots: [f32; SUMMED],
    /// Which are in it.
    inputs: u32,
    /// None of those is a later one.
    is_whole: bool,
}

impl Sum {
    const NOTHING: Sum = Sum { slots: [0.0; SUMMED], inputs: 0, is_whole: true };

    const fn with(mut self, places: &[usize], sign: f32, inputs: &[Input]) -> Sum {
        let mut k = 0;
        while k < places.len() {
            match inputs[places[k]].counter() {
                Some((_, each)) if places[k] < SUMMED => {
                    self.slots[places[k]] += sign * each as f32;
                    self.inputs |= 1 << places[k];
                }
                _ => self.is_whole = false,
            }
            k += 1;
        }
        self
    }
}

impl Tree {
    /// Level 1 as sums, if the tree is of general-purpose counters, and that is all that there is to it.
    pub const fn sums(&self) -> Option<Sums> {
        let (mut sums, mut place, mut roots) = (Sums::NONE, 0, 0);
        sums.levels = self.depth() as u8;
        if !self.is_in_order(self.inputs_of(1)) {
            return None;
        }
        while place < self.nodes.len() {
            let row = &self.nodes[place];
            if row.divides_all() {
                let expected = if place < 4 { LEVEL_1[place].id } else { SMT_CONTENTION.id };
                if place > 4 || row.metric.id != expected {
                    return None;
                }
                sums = match sums.with_root(place, row.formula, self.inputs) {
                    Some(sums) => sums,
                    None => return None,
                };
                roots += 1;
            }
            place += 1;
        }
        let rest = sums.rest as usize;
        if roots < 4 || rest >= 4 || roots == 5 && sums.retired.is_some() {
            return None;
        }
        place = 0;
        while place < roots {
            if sums.errors[place] > sums.errors[rest] {
                sums.errors[rest] = sums.errors[place];
            }
            place += 1;
        }
        sums.below = self.below();
        Some(sums)
    }

    /// Whether the first inputs are general-purpose counters, each at its place.
    const fn is_in_order(&self, inputs: usize) -> bool {
        let mut input = 0;
        while input < inputs {
            match self.inputs[input].counter() {
                Some((place, each)) if place == input && each <= u8::MAX as u32 => {}
                _ => return false,
            }
            input += 1;
        }
        true
    }

    /// Level 2, if its nodes are those of td_l2, and the first of each pair is slots.
    const fn below(&self) -> Option<[Below; 4]> {
        let (mut below, mut place) = ([Below { input: 0, each: 0, less: Below::NONE }; 4], 4);
        if self.nodes.len() != 12
            || !self.is_in_order(self.inputs_of(2))
            || self.inputs_of(2) > Below::NONE as usize
        {
            return None;
        }
        while place < 12 {
            let row = &self.nodes[place];
            if row.metric.id != LEVEL_2[place - 4].id || row.parent != LEVEL_1[place / 2 - 2].id {
                return None;
            }
            let (slots, less) = match row.formula {
                Formula::Rest if place % 2 == 1 => {
                    place += 1;
                    continue;
                }
                Formula::Slots(slots) => (slots, Below::NONE),
                Formula::Corrected(Corrected { slots, less: &[less], more: &[] }) => (slots, less as u8),
                _ => return None,
            };
            let is_plain = less == Below::NONE || matches!(self.inputs[less as usize], Input::Counter(_));
            let each = match self.inputs[slots].counter() {
                Some((_, each)) if is_plain => each as u8,
                _ => return None,
            };
            if place % 2 == 1 {
                return None;
            }
            below[place / 2 - 2] = Below { input: slots as u8, each, less };
            place += 1;
        }
        Some(below)
    }
}
