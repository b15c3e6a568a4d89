//! A tree of metrics, evaluated over what was counted: each node's value, and the interval in which the truth lies.
#![forbid(unsafe_code)]

use super::interval::{self, Ends, Interval};
use super::roots::{ADDED, COUNTERS, Errors, Roots, near_below};
use super::shares::{Shares, divided};
use crate::model::metrics::TD_UNIT_CLOCKS;
use crate::model::perf_metrics::MOST_MOVED;
use crate::model::sums::{SUMMED, Sums};
use crate::model::tree::{Clocks, Corrected, Expr, Formula, MOST_ROOTS, Retired, Tree};
use crate::model::{self, MOST_INPUTS, MOST_NODES};
use crate::sample::TD_SAMPLE_UNCORRECTED;
use crate::span::Span;

/// No arithmetic here loses more.
pub(crate) const LOST: f64 = 1e-9;

/// How much an input counted, and bounds on its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub n: f64,
    /// By rounding, which is independent of that of other inputs.
    pub rounding: f64,
    /// At the edges of the region. What happened there is the same for all inputs.
    pub edges: f64,
    /// Of executions that were measured as a random sample of more: how far the sample may be off, at the rate at which those
    /// counted.
    pub sampled: f64,
}

impl Count {
    /// Of this, as much more. Each input has errors of its own at the edges: they count at other stages of the pipeline.
    fn plus(self, sign: f64, other: Count) -> Count {
        Count {
            n: self.n + sign * other.n,
            rounding: self.rounding + other.rounding,
            edges: self.edges + other.edges,
            sampled: self.sampled + other.sampled,
        }
    }

    const NOTHING: Count = Count { n: 0.0, rounding: 0.0, edges: 0.0, sampled: 0.0 };

    fn interval(self) -> Interval {
        let error = self.rounding + self.edges + self.sampled;
        Interval { value: self.n, low: (self.n - error).at_least(0.0), high: self.n + error }
    }
}

/// What was counted between two samples.
#[derive(Clone, Debug)]
pub(crate) struct CountedInputs {
    /// How much each of the tree's inputs counted, in their order.
    pub inputs: [f64; MOST_INPUTS],
    /// A bit for each of those that was measured.
    pub measured: u32,
    /// Bounds on the error of each: see `Count`.
    pub rounding: f64,
    pub edges: f64,
    /// Of each of them; None: it is 0.
    pub sampled: Option<[f64; MOST_INPUTS]>,
    pub slots: f64,
    /// Slots that may have passed uncounted. No more cycles can have.
    pub uncounted: f64,
    /// Of all slots, the part of which it is not known how it divides: what a sample is off is not more.
    pub unknown: f64,
    /// Nodes are to be as their sources count them, not as the published metrics correct these.
    pub bare: bool,
    /// What corrects them was not counted all the time.
    pub uncorrected: bool,
    /// `Tree::is_sure`.
    pub is_sure: bool,
    /// What others have counted of what the published metrics correct them by.
    pub moved: Moved,
}

/// Slots that the published metrics give to other nodes (`Tree::unsure`), as others have counted them in a part of the same work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Of each entry of `Tree::unsure`.
    pub counted: [f64; MOST_MOVED],
    /// How far each of these may be off.
    pub off: f64,
    /// Slots of the work that they have not seen: any of these may be such.
    pub rest: f64,
}

impl Moved {
    /// Nobody has counted any.
    pub const UNSEEN: Moved = Moved { counted: [0.0; MOST_MOVED], off: 0.0, rest: f64::INFINITY };

    /// Adds what was counted in another part.
    pub fn add(&mut self, other: &Moved) {
        self.counted.iter_mut().zip(other.counted).for_each(|(all, new)| *all += new);
        self.off += other.off;
    }
}

impl CountedInputs {
    /// What was counted in a span, by the tree of the row at this place: nothing yet.
    #[inline]
    pub fn new(row: u8, span: &Span) -> CountedInputs {
        // Of a plain counter nothing is rounded, so all error is what passed at the edges. Counters of slots that are read together were
        // all off by the same slots, each of which is of one category.
        let errors = match model::levels_by_category(row) {
            0 => (0.0, span.rounding + span.edges),
            _ => (span.rounding, span.edges),
        };
        CountedInputs {
            inputs: [0.0; MOST_INPUTS],
            measured: 0,
            rounding: errors.0,
            edges: errors.1,
            sampled: None,
            slots: span.slots as f64,
            uncounted: span.uncounted,
            unknown: 0.0,
            bare: false,
            uncorrected: span.flags & TD_SAMPLE_UNCORRECTED != 0,
            is_sure: model::is_sure(row),
            moved: Moved::UNSEEN,
        }
    }

    /// An input was measured.
    #[inline]
    pub fn set(&mut self, input: usize, n: f64) {
        self.inputs[input] = n;
        self.measured |= 1 << input;
    }

    /// An input was not measured.
    pub fn unset(&mut self, input: usize) {
        self.inputs[input] = 0.0;
        self.measured &= !(1 << input);
    }

    /// Whether no input is in doubt.
    #[inline(always)]
    fn is_exact(&self) -> bool {
        self.rounding + self.edges == 0.0
    }

    /// None: not measured.
    #[inline(always)]
    fn input(&self, input: usize) -> Option<Count> {
        let (n, sampled) = (self.inputs[input], self.sampled.as_ref().map_or(0.0, |sampled| sampled[input]));
        let count = Count { n, rounding: self.rounding, edges: self.edges, sampled };
        (self.measured >> input & 1 == 1).then_some(count)
    }

    /// What a formula says that counts slots. None: an input was not measured, or it is none of these.
    #[inline(always)]
    fn slots_of(&self, formula: &Formula) -> Option<Count> {
        match formula {
            Formula::Slots(input) => self.input(*input),
            Formula::Corrected(of) => self.corrected(of),
            Formula::Balance(more, less) => self.balance(more, less),
            Formula::Retired(of) => self.retired(of),
            Formula::Rest | Formula::Of(_) | Formula::NoCounter => None,
        }
    }

    /// What the first inputs counted, less what the others did. An input that is named several times is worth so much more, of
    /// events that each take all those slots: no more of them fit into what passed at the edges.
    fn balance(&self, more: &[usize], less: &[usize]) -> Option<Count> {
        let (mut balance, mut named) = (Count::NOTHING, 0u32);
        for (sign, inputs) in [(1.0, more), (-1.0, less)] {
            for input in inputs {
                let count = self.input(*input)?;
                let again = named >> *input & 1 == 1;
                let count = if again { Count { rounding: 0.0, edges: 0.0, ..count } } else { count };
                balance = balance.plus(sign, count);
                named |= 1 << *input;
            }
        }
        Some(balance)
    }

    /// What an input counted, as others correct it. What happened at the edges is the same for all of them: each slot there is of one
    /// category.
    #[inline]
    fn corrected(&self, of: &Corrected) -> Option<Count> {
        let mut count = self.input(of.slots)?;
        if self.bare || self.uncorrected {
            return Some(count);
        }
        for (sign, inputs) in [(-1.0, of.less), (1.0, of.more)] {
            for input in inputs {
                let other = self.input(*input)?;
                count.n += sign * other.n;
                count.sampled += other.sampled;
            }
        }
        Some(count)
    }

    /// Slots of operations that retired: if none was dispatched, none, or any that are free.
    fn retired(&self, of: &Retired) -> Option<Count> {
        let stalls = self.balance(of.stalls, of.not_stalls)?;
        let (retired, dispatched) = (self.input(of.retired)?, self.input(of.dispatched)?);
        let part = RetiredPart::new(self.slots, stalls.n, retired.n, dispatched.n);
        let all = |count: Count| count.rounding + count.edges;
        Some(Count {
            n: part.slots(),
            rounding: 0.0,
            edges: part.off(all(stalls), all(retired), all(dispatched)),
            sampled: part.off(stalls.sampled, retired.sampled, dispatched.sampled),
        })
    }
}

/// As many of the slots that no stall took as operations retired of those that were dispatched.
pub(crate) struct RetiredPart {
    free: f64,
    part: f64,
    dispatched: f64,
}

impl RetiredPart {
    #[inline(always)]
    pub fn new(slots: f64, stalls: f64, retired: f64, dispatched: f64) -> RetiredPart {
        let part = if dispatched > 0.0 { (retired / dispatched).at_most(1.0) } else { 0.0 };
        RetiredPart { free: (slots - stalls).at_least(0.0), part, dispatched }
    }

    #[inline(always)]
    pub fn slots(&self) -> f64 {
        self.free * self.part
    }

    /// How far they may be off, where stalls and both counts may be so far off. The quotient is off by no more than its operands are
    /// together, in parts of the least that the divisor can be. What the stalls are off is not made less by it: as much of that may be in
    /// what the siblings leave.
    #[inline(always)]
    pub fn off(&self, stalls: f64, retired: f64, dispatched: f64) -> f64 {
        let least = self.dispatched - dispatched;
        let part_off = if least > 0.0 { (retired + self.part * dispatched) / least } else { 1.0 };
        stalls + self.free * part_off.at_most(1.0)
    }
}

/// A node that was measured.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Share {
    pub low: f64,
    /// How far a random sample may be off, which is not between `low` and `high` yet.
    sampled: f64,
    pub high: f64,
    /// As the inputs say, before it was made to agree with its parent and siblings; for nodes that count slots.
    slots: Near,
    pub value: f64,
}

/// A share before it is made to agree with others, and bounds on its error, in slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    pub near: f64,
    pub rounding: f64,
    pub edges: f64,
}

impl Share {
    const NOTHING: Share = Share { value: 0.0, low: 0.0, high: 0.0, slots: Near::NOTHING, sampled: 0.0 };

    #[inline(always)]
    fn new(
        Shares { value: [value], low: [low], high: [high] }: Shares<1>,
        slots: Near,
        sampled: f64,
    ) -> Share {
        Share { value, low, high, slots, sampled }
    }

    /// One of several.
    #[inline(always)]
    fn of(all: &Shares<4>, k: usize, slots: Near) -> Share {
        Share { value: all.value[k], low: all.low[k], high: all.high[k], slots, sampled: 0.0 }
    }

    /// The same of a node that none is below.
    #[inline(always)]
    fn take_from(&mut self, all: &Shares<4>, k: usize) {
        (self.value, self.low, self.high) = (all.value[k], all.low[k], all.high[k]);
    }

    #[inline(always)]
    pub fn alone(&self) -> Shares<1> {
        Shares { value: [self.value], low: [self.low], high: [self.high] }
    }

    /// With what the sample may be off.
    fn interval(&self, counted: &CountedInputs) -> Interval {
        let sampled = self.sampled.at_most(counted.unknown);
        Interval { value: self.value, low: self.low - sampled, high: self.high + sampled }
    }

    /// Takes so much off each end, and off the value.
    fn take(&mut self, low: f64, value: f64, high: f64) {
        self.low = (self.low - low).at_least(0.0).at_most(1.0);
        self.value = (self.value - value).at_least(0.0).at_most(1.0);
        self.high = (self.high - high).at_least(0.0).at_most(1.0);
    }

    /// A part of the whole passed uncounted. It may have been all of this node or none. What a sample may be off comes on top.
    #[inline]
    fn widen(&mut self, part: f64, unknown: f64) {
        let (sampled, wider) = (self.sampled.at_most(unknown), self.alone().widened(part));
        (self.low, self.high) = (wider.low[0] - sampled, wider.high[0] + sampled);
    }
}

/// The shares of a tree's nodes, in the order of its table.
pub(crate) struct Evaluated {
    all: [Share; MOST_NODES],
    /// A bit for each node that was measured.
    measured: u64,
}

const _: () = assert!(MOST_NODES <= u64::BITS as usize && MOST_INPUTS <= u32::BITS as usize);

impl Evaluated {
    /// None.
    pub const NONE: Evaluated = Evaluated { all: [Share::NOTHING; MOST_NODES], measured: 0 };

    /// Of a node; None: not measured.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&Share> {
        if self.measured >> place & 1 == 1 { Some(&self.all[place]) } else { None }
    }

    /// A bit for each node that was measured.
    #[inline(always)]
    pub fn measured(&self) -> u64 {
        self.measured
    }

    /// Of a node that was measured.
    #[inline(always)]
    pub fn at(&self, place: usize) -> &Share {
        &self.all[place]
    }

    #[inline]
    fn set(&mut self, place: usize, share: Share) {
        self.all[place] = share;
        self.measured |= 1 << place;
    }
}

/// Evaluates a measurement down to `level`. `shares`: none yet. (They are large: nothing moves them.)
pub(crate) fn evaluate(tree: &Tree, level: u32, counted: &CountedInputs, shares: &mut Evaluated) {
    match &tree.sums {
        Some(sums) if counted.sampled.is_none() => summed(sums, level, counted, shares),
        _ => divide(tree, counted, shares),
    }
    let mut left = tree.measured_down_to(level) & !shares.measured;
    while left != 0 {
        let place = left.trailing_zeros() as usize;
        left &= left - 1;
        let row = &tree.nodes[place];
        let parent = row.above.filter(|above| shares.measured >> *above & 1 == 1);
        let parent = parent.map(|above| &shares.all[usize::from(above)]);
        let share = match &row.formula {
            Formula::Of(expr) => value_of(tree, expr, counted, shares),
            Formula::Rest => {
                let Some(parent) = parent else { continue };
                // (all siblings are right above)
                let siblings = (0..place).rev().take_while(|sibling| tree.nodes[*sibling].above == row.above);
                rest_of(parent, place - siblings.count()..place, counted, shares)
            }
            slots => {
                let Some(parent) = parent else { continue };
                let Some(count) = counted.slots_of(slots) else { continue };
                Some(part_of(parent, count, counted))
            }
        };
        if let Some(share) = share {
            shares.set(place, share);
        }
    }
    if !counted.bare && (counted.uncorrected || !counted.is_sure) {
        doubt(tree, counted, shares);
    }
    // (at the end: the parts uncounted of a parent and its child are the same slots)
    let part = |whole: Option<f64>| {
        let whole = whole.filter(|whole| *whole > 0.0)?;
        Some(counted.uncounted / (counted.uncounted + whole))
    };
    let (of_slots, of_clocks) = (part(Some(counted.slots)), part(clocks(tree, counted)));
    if tree.clocks.is_none() && of_slots == Some(0.0) && counted.sampled.is_none() {
        return; // nothing is wider
    }
    for (place, row) in tree.nodes.iter().enumerate() {
        match if row.unit == TD_UNIT_CLOCKS { of_clocks } else { of_slots } {
            Some(part) => shares.all[place].widen(part, counted.unknown),
            None => shares.measured &= !(1 << place),
        }
    }
}

/// Slots that nothing counted here may be of other nodes: as many as each of the nodes can have that count them, and no more than others
/// leave.
#[cold]
#[inline(never)]
fn doubt(tree: &Tree, counted: &CountedInputs, shares: &mut Evaluated) {
    let Moved { counted: all, off, rest } = counted.moved;
    for (unsure, seen) in tree.unsure.iter().zip(all) {
        let ids = |ids: &'static [u32]| ids.iter().filter_map(|id| tree.place(*id));
        let least_of = |of: &dyn Fn(&Share) -> f64| {
            ids(unsure.counted_in).filter_map(|place| shares.get(place).map(of)).fold(1.0, f64::min)
        };
        let part = |slots: f64| (slots / counted.slots).at_least(0.0);
        // (each value gives as much as the others get)
        let value = part(seen).at_most(least_of(&|share| share.value));
        let most =
            part(seen + off + rest).at_most(least_of(&|share| share.interval(counted).high)).at_least(value);
        let least = part(seen - off).at_most(value);
        for place in ids(unsure.counted_in) {
            shares.all[place].take(most, value, least);
        }
        for place in ids(unsure.published_in) {
            shares.all[place].take(-least, -value, -most);
        }
    }
}

/// How many cycles passed; None: that was not measured, or no node is a share of them.
pub(crate) fn clocks(tree: &Tree, counted: &CountedInputs) -> Option<f64> {
    match tree.clocks? {
        Clocks::Input(input) => counted.input(input).map(|clocks| clocks.n),
        Clocks::Slots(width) => Some(counted.slots / f64::from(width)),
    }
}

#[inline(always)]
fn near(count: Count, counted: &CountedInputs) -> Near {
    Near { near: count.n / counted.slots, rounding: count.rounding, edges: count.edges }
}

impl Near {
    const NOTHING: Near = Near { near: 0.0, rounding: 0.0, edges: 0.0 };
    /// Of a node that does not count slots, and what comes of it.
    const NONE: Near = Near { near: f64::NAN, ..Near::NOTHING };

    #[inline(always)]
    fn bound(self, counted: &CountedInputs) -> f64 {
        (self.rounding + self.edges) / counted.slots
    }

    /// Less a part of it. Each is rounded in its own way; what happened at the edges is the same for all.
    #[inline(always)]
    fn minus(self, part: Near) -> Near {
        Near {
            near: self.near - part.near,
            rounding: self.rounding + part.rounding,
            edges: self.edges.at_least(part.edges),
        }
    }
}

/// What are sums of levels 1 and 2, four nodes at once.
fn summed(sums: &Sums, level: u32, counted: &CountedInputs, shares: &mut Evaluated) {
    let mut counts = [0.0; ADDED];
    counts[..COUNTERS].copy_from_slice(&counted.inputs[..COUNTERS]);
    let mut needed = sums.sources | sums.corrections;
    if counted.bare || counted.uncorrected {
        needed = sums.sources;
        for (k, count) in counts[..SUMMED].iter_mut().enumerate() {
            *count = if sums.corrections >> k & 1 == 1 { 0.0 } else { *count };
        }
    }
    if needed & !counted.measured != 0 {
        return;
    }
    let (errors, is_exact) =
        (Errors { rounding: counted.rounding, edges: counted.edges }, counted.is_exact());
    let roots = match sums.is_of_categories() {
        true => Roots::of_categories(&counts, errors, counted.slots),
        false => Roots::of_sums(sums, &sums.of_slots, &counts, errors, counted.slots),
    };
    let (four, fifth) = roots.divided(counted.slots, is_exact);
    for k in 0..4 {
        let slots = Near { near: roots.near[k], rounding: roots.rounding[k], edges: roots.edges[k] };
        shares.all[k] = Share::of(&four, k, slots);
    }
    shares.measured |= 0b1111;
    if let Some(slots) = roots.fifth {
        shares.set(4, Share::new(fifth, slots, 0.0));
    }
    if level < 2 {
        return;
    }
    let near = near_below(&sums.below, &counts, |_| 1.0, counted.slots);
    let [first, rest] = roots.pairs(&four, near, errors, counted.slots, is_exact);
    if sums.has_l2 && counted.measured == sums.measured {
        // (all that the tree has)
        for k in 0..4 {
            shares.all[4 + 2 * k].take_from(&first, k);
            shares.all[5 + 2 * k].take_from(&rest, k);
        }
        shares.measured |= 0xff0;
        return;
    }
    for (k, below) in sums.below.iter().enumerate().filter(|(_, below)| below.place > 0) {
        if counted.measured >> below.input & 1 == 1 {
            let place = usize::from(below.place);
            let slots = Near { near: near[k], rounding: errors.rounding, edges: errors.edges };
            let left = shares.all[k].slots.minus(slots);
            shares.set(place, Share::of(&first, k, slots));
            shares.set(place + 1, Share::of(&rest, k, left));
        }
    }
}

/// The roots that divide all slots: their shares are made to add up to 1, and each has at least what the others leave,
/// and at most. Nothing is known of them unless all were measured.
fn divide(tree: &Tree, counted: &CountedInputs, shares: &mut Evaluated) {
    let (mut near, mut doubt, mut count, mut rest) = ([0.0; MOST_ROOTS], [0.0; MOST_ROOTS], 0, None);
    let mut places = [0; MOST_ROOTS];
    let (mut left, mut left_sampled) = (Near { near: 1.0, ..Near::NOTHING }, 0.0);
    for (place, row) in tree.nodes.iter().enumerate().filter(|(_, row)| row.divides_all()) {
        places[count] = place;
        if let Formula::Rest = row.formula {
            rest = Some(count);
        } else {
            let Some(slots) = counted.slots_of(&row.formula) else { return };
            let (of, sampled) = (self::near(slots, counted), slots.sampled / counted.slots);
            (left, left_sampled) = (left.minus(of), left_sampled + sampled);
            (near[count], doubt[count]) = (of.near, of.bound(counted));
            (shares.all[place].slots, shares.all[place].sampled) = (of, sampled);
        }
        count += 1;
    }
    if let Some(rest) = rest {
        (near[rest], doubt[rest]) = (left.near, left.bound(counted));
        let share = &mut shares.all[places[rest]];
        (share.slots, share.sampled) = (left, left_sampled);
    }
    let (first, fifth) = (|of: [f64; MOST_ROOTS]| [of[0], of[1], of[2], of[3]], (near[4], doubt[4]));
    let fifth = if count == MOST_ROOTS { Some(fifth) } else { None };
    let (four, fifth) = divided(first(near), first(doubt), fifth, count as f64, counted.is_exact());
    let all = (0..4).map(|k| (four.value[k], four.low[k], four.high[k]));
    let all = all.chain([(fifth.value[0], fifth.low[0], fifth.high[0])]);
    for (place, (value, low, high)) in places[..count].iter().zip(all) {
        let Share { slots, sampled, .. } = shares.all[*place];
        shares.set(*place, Share { value, low, high, slots, sampled });
    }
}

/// A share by arithmetic over intervals.
fn value_of(tree: &Tree, expr: &Expr, counted: &CountedInputs, shares: &Evaluated) -> Option<Share> {
    let node = |id| Some(shares.get(tree.place(id)?)?.interval(counted));
    let Interval { value, low, high } = interval::evaluate(expr, &|leaf| match leaf {
        Expr::Input(input) => counted.input(*input).map(Count::interval),
        Expr::Node(id) => node(*id),
        _ => Some(Interval::exact(counted.slots)),
    })
    .filter(|interval| !interval.value.is_nan())?;
    let [value, low, high] = [value, low, high].map(|end| [end.at_least(0.0).at_most(1.0)]);
    Some(Share::new(Shares { value, low, high }.sure(), Near::NONE, 0.0))
}

/// A share that counts slots, of its parent's.
#[inline(always)]
fn part_of(parent: &Share, count: Count, counted: &CountedInputs) -> Share {
    let slots = near(count, counted);
    let part = parent.alone().parts([slots.near], [slots.bound(counted)]);
    Share::new(part, slots, count.sampled / counted.slots)
}

/// What the siblings at these places leave of the parent.
#[inline(always)]
fn rest_of(
    parent: &Share,
    siblings: std::ops::Range<usize>,
    counted: &CountedInputs,
    shares: &Evaluated,
) -> Option<Share> {
    let (mut rest, mut slots, mut sampled) = (parent.alone(), parent.slots, parent.sampled);
    for sibling in siblings {
        let sibling = shares.get(sibling)?;
        (rest, slots) = (rest.less(&sibling.alone()), slots.minus(sibling.slots));
        sampled += sibling.sampled; // a difference has the errors of both
    }
    if !counted.is_exact() {
        rest = rest.within([slots.near], [slots.bound(counted)]);
    }
    Some(Share::new(rest.left(), slots, sampled))
}
