//! Trees whose levels 1 and 2 are sums of inputs, as one table of coefficients each, so that four nodes are evaluated at once (`tree::roots`).
#![forbid(unsafe_code)]

use super::metrics::{LEVEL_1, LEVEL_2, SMT_CONTENTION};
use super::tree::{CorrectionInputs, Formula, Tree};

/// No root of `Sums` takes a later input.
pub(crate) const SUMMED: usize = 5;

/// Level 1 as sums of inputs, in slots: the roots have the slots of td_l1's four shares in their order, and one may be a fifth. Of general-purpose counters
/// one is what the others leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    /// Of slots of each input.
    pub of_slots: Coefficients,
    /// Of counts of each input, some of which are several slots.
    pub of_counts: Coefficients,
    /// Of how many inputs each root has the errors; of what the others leave, as many as one of them.
    pub errors: [f64; 5],
    /// Of how many inputs what the others leave has the rounding: of all.
    pub rounding_of_rest: f64,
    /// A bit for each input that the roots take, of those that correct others for itself.
    pub sources: u32,
    pub corrections: u32,
    /// A bit for each input that there is.
    pub measured: u32,
    /// How many slots a count of each input is.
    pub each: [f32; ChildInputs::NONE as usize],
    /// The root that is what the others leave.
    pub rest: u8,
    /// There is a fifth root, or one of `Formula::Retired`.
    pub has_more: bool,
    /// The root that has the slots no stall took, as `RetirementInputs` divides them.
    pub retired: Option<RetiredRoot>,
    /// The first of two nodes below each of td_l1's, of those whose second is what the first leaves.
    pub below: [ChildInputs; 4],
    /// The nodes below are those of td_l2, and all of them are so.
    pub has_l2: bool,
    /// Deepest level of the tree.
    pub levels: u8,
}

/// How many slots of each root one of each input is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coefficients {
    pub roots: [[f32; 4]; SUMMED],
    /// The same of the fifth; or where one is `retired`, of the stalls.
    pub fifth: [f64; SUMMED],
}

impl Coefficients {
    const NONE: Coefficients = Coefficients { roots: [[0.0; 4]; SUMMED], fifth: [0.0; SUMMED] };
}

/// A root of `Formula::Retired`: its place, and those of its inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetiredRoot {
    pub root: u8,
    pub retired: u8,
    pub dispatched: u8,
}

/// Slots of a child: of an input, less those of another that corrects level 1, too. `NONE`: there is no such child, or no other input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildInputs {
    pub input: u8,
    pub less: u8,
    /// Where the child is in the table.
    pub place: u8,
}

impl ChildInputs {
    /// The place behind all counters that are added up.
    pub(crate) const NONE: u8 = 8;
    const NOTHING: ChildInputs = ChildInputs { input: ChildInputs::NONE, less: ChildInputs::NONE, place: 0 };
}

impl Sums {
    /// Whether the roots are categories of PERF_METRICS, in their order.
    pub const fn is_of_categories(&self) -> bool {
        self.rest == Sums::NO_REST
    }

    const NO_REST: u8 = u8::MAX;
    const NONE: Sums = Sums {
        of_slots: Coefficients::NONE,
        of_counts: Coefficients::NONE,
        errors: [0.0; 5],
        rounding_of_rest: 0.0,
        sources: 0,
        corrections: 0,
        measured: 0,
        each: [1.0; ChildInputs::NONE as usize],
        rest: Sums::NO_REST,
        has_more: false,
        retired: None,
        below: [ChildInputs::NOTHING; 4],
        has_l2: false,
        levels: 0,
    };

    /// With the root at a place. None: it is no sum, or takes a later input.
    const fn with_root(mut self, place: usize, formula: Formula) -> Option<Sums> {
        let sum = match formula {
            Formula::Rest if self.rest == Sums::NO_REST => {
                self.rest = place as u8;
                return Some(self);
            }
            Formula::Slots(input) => PartialSum::NOTHING.with(&[input], 1.0),
            Formula::Balance(of) => PartialSum::NOTHING.with(of.more, 1.0).with(of.less, -1.0),
            Formula::Corrected(of) => {
                let sum = PartialSum::NOTHING.with(&[of.slots], 1.0);
                let (errors, sum) = (sum.inputs, sum.with(of.less, -1.0).with(of.more, 1.0));
                self.corrections |= sum.inputs & !errors;
                PartialSum { inputs: errors, ..sum }
            }
            Formula::Retired(of)
                if self.retired.is_none() && of.retired < SUMMED && of.dispatched < SUMMED =>
            {
                let stalls = PartialSum::NOTHING.with(of.stalls, 1.0).with(of.not_stalls, -1.0);
                self.of_slots.fifth = wide(stalls.slots);
                if stalls.inputs.count_ones() > 3 {
                    return None;
                }
                self.errors[4] = stalls.inputs.count_ones() as f64;
                let (retired, dispatched) = (of.retired as u8, of.dispatched as u8);
                self.retired = Some(RetiredRoot { root: place as u8, retired, dispatched });
                self.has_more = true;
                self.sources |= stalls.inputs | 1 << of.retired | 1 << of.dispatched;
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
                4 => self.of_slots.fifth[input] = sum.slots[input] as f64,
                _ => self.of_slots.roots[input][place] = sum.slots[input],
            }
            input += 1;
        }
        self.has_more |= place == 4;
        self.sources |= sum.inputs;
        self.rounding_of_rest += errors as f64;
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
struct PartialSum {
    slots: [f32; SUMMED],
    /// Which are in it.
    inputs: u32,
    /// None of those is a later one.
    is_whole: bool,
}

impl PartialSum {
    const NOTHING: PartialSum = PartialSum { slots: [0.0; SUMMED], inputs: 0, is_whole: true };

    const fn with(mut self, places: &[usize], sign: f32) -> PartialSum {
        let mut k = 0;
        while k < places.len() {
            if places[k] < SUMMED {
                self.slots[places[k]] += sign;
                self.inputs |= 1 << places[k];
            } else {
                self.is_whole = false;
            }
            k += 1;
        }
        self
    }
}

impl Tree {
    /// Level 1 as sums, if that is all that there is to it.
    pub(super) const fn as_sums(&self) -> Option<Sums> {
        let (mut sums, mut place, mut roots) = (Sums::NONE, 0, 0);
        sums.levels = self.depth() as u8;
        while place < self.nodes.len() {
            let row = &self.nodes[place];
            if row.divides_all() {
                let expected = if place < 4 { LEVEL_1[place].id } else { SMT_CONTENTION.id };
                if place > 4 || row.id != expected {
                    return None;
                }
                sums = match sums.with_root(place, row.formula) {
                    Some(sums) => sums,
                    None => return None,
                };
                roots += 1;
            }
            place += 1;
        }
        let rest = sums.rest as usize;
        let has_rest = sums.rest != Sums::NO_REST;
        if roots < 4 || has_rest != self.takes_counters() || roots == 5 && sums.retired.is_some() {
            return None;
        }
        place = 0;
        while place < roots && has_rest {
            if rest >= 4 {
                return None;
            }
            if sums.errors[place] > sums.errors[rest] {
                sums.errors[rest] = sums.errors[place];
            }
            place += 1;
        }
        (place, sums.measured) = (0, (1 << self.inputs.len()) - 1);
        while place < sums.each.len() && place < self.inputs.len() {
            sums.each[place] = self.inputs[place].each() as f32;
            place += 1;
        }
        (place, sums.of_counts) = (0, sums.of_slots);
        while place < SUMMED && place < self.inputs.len() {
            let (each, mut root) = (sums.each[place], 0);
            while root < 4 {
                sums.of_counts.roots[place][root] *= each;
                root += 1;
            }
            sums.of_counts.fifth[place] *= each as f64;
            place += 1;
        }
        (place, sums.has_l2) = (0, self.nodes.len() == 12);
        while place < 4 {
            let (first, below) = (4 + 2 * place, self.below(place, sums.corrections));
            sums.below[place] = below;
            sums.has_l2 &= below.place as usize == first
                && self.nodes[first].id == LEVEL_2[2 * place].id
                && self.nodes[first + 1].id == LEVEL_2[2 * place + 1].id;
            place += 1;
        }
        Some(sums)
    }

    /// The first of two nodes below the root at a place, if the second is what it leaves.
    const fn below(&self, root: usize, corrections: u32) -> ChildInputs {
        let (mut first, mut children, mut place) = (0, 0, 0);
        while place < self.nodes.len() {
            if matches!(self.nodes[place].above, Some(above) if above as usize == root) {
                (first, children) = (if children == 0 { place } else { first }, children + 1);
            }
            place += 1;
        }
        if children != 2 || !matches!(self.nodes[first + 1].formula, Formula::Rest) {
            return ChildInputs::NOTHING;
        }
        let (slots, less) = match self.nodes[first].formula {
            Formula::Slots(slots) => (slots, ChildInputs::NONE),
            Formula::Corrected(&CorrectionInputs { slots, less: &[less], more: &[] })
                if corrections >> less & 1 == 1 =>
            {
                (slots, less as u8)
            }
            _ => return ChildInputs::NOTHING,
        };
        if slots >= ChildInputs::NONE as usize {
            return ChildInputs::NOTHING;
        }
        ChildInputs { input: slots as u8, less, place: first as u8 }
    }
}
