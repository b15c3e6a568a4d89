//! A tree of metrics, evaluated over what was counted: each node's value, and the interval in which the truth lies.
#![forbid(unsafe_code)]

use super::inputs::{Count, CountedInputs, MovedSlots};
use super::interval::{self, Ends, Interval};
use super::roots::{ADDED, COUNTERS, Errors, Roots, near_below};
use super::shares::{NearShare, Shares, divided};
use super::uncounted;
use crate::model::metrics::TD_UNIT_CLOCKS;
use crate::model::sums::{SUMMED, Sums};
use crate::model::tree::{Clocks, Expr, Formula, MOST_ROOTS, Tree};
use crate::model::{MOST_INPUTS, MOST_NODES};

/// A node that was measured. (Were its ends and its value neighbours in memory, the compiler would compute them as one vector, which takes
/// more instructions than it saves.)
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Share {
    pub low: f64,
    /// How far a random sample may be off, which is not between `low` and `high` yet.
    sampled: f64,
    pub high: f64,
    /// As the inputs say, before it was made to agree with its parent and siblings; for nodes that count slots.
    pub(super) slots: NearShare,
    pub value: f64,
}

impl Share {
    const NOTHING: Share = Share { value: 0.0, low: 0.0, high: 0.0, slots: NearShare::NOTHING, sampled: 0.0 };

    #[inline(always)]
    fn new(
        Shares { value: [value], low: [low], high: [high] }: Shares<1>,
        slots: NearShare,
        sampled: f64,
    ) -> Share {
        Share { value, low, high, slots, sampled }
    }

    /// One of several.
    #[inline(always)]
    fn of(all: &Shares<4>, k: usize, slots: NearShare) -> Share {
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
pub(crate) struct NodeShares {
    all: [Share; MOST_NODES],
    /// A bit for each node that was measured.
    measured: u64,
}

const _: () = assert!(MOST_NODES <= u64::BITS as usize && MOST_INPUTS <= u32::BITS as usize);

impl NodeShares {
    /// None.
    pub const NONE: NodeShares = NodeShares { all: [Share::NOTHING; MOST_NODES], measured: 0 };

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

    /// As `get`, to be changed.
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Share> {
        if self.measured >> place & 1 == 1 { Some(&mut self.all[place]) } else { None }
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
pub(crate) fn evaluate(tree: &Tree, level: u32, counted: &CountedInputs, shares: &mut NodeShares) {
    match tree.sums {
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
    if counted.uncounted > 0.0 {
        uncounted::open(tree, counted, shares);
    }
}

/// Slots that nothing counted here may be of other nodes: as many as each of the nodes can have that count them, and no more than others
/// leave.
#[cold]
#[inline(never)]
fn doubt(tree: &Tree, counted: &CountedInputs, shares: &mut NodeShares) {
    let MovedSlots { counted: all, off, rest } = counted.moved;
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
fn near(count: Count, counted: &CountedInputs) -> NearShare {
    NearShare { near: count.n / counted.slots, rounding: count.rounding, edges: count.edges }
}

/// What are sums of levels 1 and 2, four nodes at once.
fn summed(sums: &Sums, level: u32, counted: &CountedInputs, shares: &mut NodeShares) {
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
        let slots = NearShare { near: roots.near[k], rounding: roots.rounding[k], edges: roots.edges[k] };
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
            let slots = NearShare { near: near[k], rounding: errors.rounding, edges: errors.edges };
            let left = shares.all[k].slots.minus(slots);
            shares.set(place, Share::of(&first, k, slots));
            shares.set(place + 1, Share::of(&rest, k, left));
        }
    }
}

/// The roots that divide all slots: their shares are made to add up to 1, and each has at least what the others leave,
/// and at most. Nothing is known of them unless all were measured.
fn divide(tree: &Tree, counted: &CountedInputs, shares: &mut NodeShares) {
    let (mut near, mut doubt, mut count, mut rest) = ([0.0; MOST_ROOTS], [0.0; MOST_ROOTS], 0, None);
    let mut places = [0; MOST_ROOTS];
    let (mut left, mut left_sampled) = (NearShare { near: 1.0, ..NearShare::NOTHING }, 0.0);
    for (place, row) in tree.nodes.iter().enumerate().filter(|(_, row)| row.divides_all()) {
        places[count] = place;
        if let Formula::Rest = row.formula {
            rest = Some(count);
        } else {
            let Some(slots) = counted.slots_of(&row.formula) else { return };
            let (of, sampled) = (self::near(slots, counted), slots.sampled / counted.slots);
            (left, left_sampled) = (left.minus(of), left_sampled + sampled);
            (near[count], doubt[count]) = (of.near, of.bound(counted.slots));
            (shares.all[place].slots, shares.all[place].sampled) = (of, sampled);
        }
        count += 1;
    }
    if let Some(rest) = rest {
        (near[rest], doubt[rest]) = (left.near, left.bound(counted.slots));
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
fn value_of(tree: &Tree, expr: &Expr, counted: &CountedInputs, shares: &NodeShares) -> Option<Share> {
    let node = |id| Some(shares.get(tree.place(id)?)?.interval(counted));
    let Interval { value, low, high } = interval::evaluate(expr, &|leaf| match leaf {
        Expr::Input(input) => counted.input(*input).map(Count::interval),
        Expr::Node(id) => node(*id),
        _ => Some(Interval::exact(counted.slots)),
    })
    .filter(|interval| !interval.value.is_nan())?;
    let [value, low, high] = [value, low, high].map(|end| [end.at_least(0.0).at_most(1.0)]);
    Some(Share::new(Shares { value, low, high }.sure(), NearShare::NONE, 0.0))
}

/// A share that counts slots, of its parent's.
#[inline(always)]
fn part_of(parent: &Share, count: Count, counted: &CountedInputs) -> Share {
    let slots = near(count, counted);
    let part = parent.alone().parts([slots.near], [slots.bound(counted.slots)]);
    Share::new(part, slots, count.sampled / counted.slots)
}

/// What the siblings at these places leave of the parent.
#[inline(always)]
fn rest_of(
    parent: &Share,
    siblings: std::ops::Range<usize>,
    counted: &CountedInputs,
    shares: &NodeShares,
) -> Option<Share> {
    let (mut rest, mut slots, mut sampled) = (parent.alone(), parent.slots, parent.sampled);
    for sibling in siblings {
        let sibling = shares.get(sibling)?;
        (rest, slots) = (rest.less(&sibling.alone()), slots.minus(sibling.slots));
        sampled += sibling.sampled; // a difference has the errors of both
    }
    if !counted.is_exact() {
        rest = rest.within([slots.near], [slots.bound(counted.slots)]);
    }
    Some(Share::new(rest.left(), slots, sampled))
}
