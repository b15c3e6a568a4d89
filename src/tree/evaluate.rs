//! A tree of metrics, evaluated over what was counted: each node's value, and the interval in which the truth lies.
#![forbid(unsafe_code)]

use super::interval::{self, Ends, Interval};
use crate::model::metrics::{TD_NODE_NONE, TD_UNIT_CLOCKS};
use crate::model::perf_metrics::MOST_MOVED;
use crate::model::tree::{Clocks, Corrected, Expr, Formula, MOST_ROOTS, Retired, Row, Tree};
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
        // Of a general-purpose counter nothing is rounded, so all error is what passed at the edges. Counters of slots that are read together were
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

    /// None: not measured.
    #[inline]
    fn input(&self, input: usize) -> Option<Count> {
        let (n, sampled) = (self.inputs[input], self.sampled.as_ref().map_or(0.0, |sampled| sampled[input]));
        let count = Count { n, rounding: self.rounding, edges: self.edges, sampled };
        (self.measured >> input & 1 == 1).then_some(count)
    }

    /// What the first inputs counted, less what the others did. An input that is named several times is worth so much more, of
    /// events that each take all those slots: no more of them fit into what passed at the edges.
    fn balance(&self, more: &[usize], less: &[usize]) -> Option<Count> {
        let signed = more.iter().map(|input| (1.0, input)).chain(less.iter().map(|input| (-1.0, input)));
        let (mut balance, mut named) = (Count::NOTHING, 0u32);
        for (sign, input) in signed {
            let count = self.input(*input)?;
            let again = named >> *input & 1 == 1;
            let count = if again { Count { rounding: 0.0, edges: 0.0, ..count } } else { count };
            balance = balance.plus(sign, count);
            named |= 1 << *input;
        }
        Some(balance)
    }

    /// What an input counted, as others correct it. What happened at the edges is the same for all of them: each slot there is of one
    /// category.
    fn corrected(&self, of: &Corrected) -> Option<Count> {
        let mut count = self.input(of.slots)?;
        let signed =
            of.less.iter().map(|input| (-1.0, input)).chain(of.more.iter().map(|input| (1.0, input)));
        for (sign, input) in signed.filter(|_| !self.bare && !self.uncorrected) {
            let other = self.input(*input)?;
            count.n += sign * other.n;
            count.sampled += other.sampled;
        }
        Some(count)
    }

    /// Slots of operations that retired: if none was dispatched, none, or any that are free.
    fn retired(&self, of: &Retired) -> Option<Count> {
        let stalls = self.balance(of.stalls, of.not_stalls)?;
        let free = Count { n: (self.slots - stalls.n).at_least(0.0), ..stalls };
        let (retired, dispatched) = (self.input(of.retired)?, self.input(of.dispatched)?);
        let part = if dispatched.n > 0.0 { (retired.n / dispatched.n).at_most(1.0) } else { 0.0 };
        // The quotient is off by no more than its operands are together, in parts of the least that the divisor can be. What the
        // stalls are off is not made less by it: as much of that may be in what the siblings leave.
        let doubt = |free_off: f64, retired_off: f64, dispatched_off: f64| {
            let least = dispatched.n - dispatched_off;
            let part_off = if least > 0.0 { (retired_off + part * dispatched_off) / least } else { 1.0 };
            free_off + free.n * part_off.at_most(1.0)
        };
        Some(Count {
            n: free.n * part,
            rounding: 0.0,
            edges: doubt(
                free.rounding + free.edges,
                retired.rounding + retired.edges,
                dispatched.rounding + dispatched.edges,
            ),
            sampled: doubt(free.sampled, retired.sampled, dispatched.sampled),
        })
    }
}

/// A node that was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// As the inputs say, before it was made to agree with its parent and siblings; for nodes that count slots.
    slots: Near,
    /// How far a random sample may be off, which is not between `low` and `high` yet.
    sampled: f64,
}

#[derive(Clone, Copy, Debug)]
struct Near {
    near: f64,
    rounding: f64,
    edges: f64,
}

impl Share {
    const NOTHING: Share = Share { value: 0.0, low: 0.0, high: 0.0, slots: Near::NOTHING, sampled: 0.0 };

    /// A share between these ends; anywhere, if there is nothing between them.
    #[inline]
    fn new(value: f64, low: f64, high: f64, slots: Near, sampled: f64) -> Share {
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        Share { value, low, high, slots, sampled }
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
        let sampled = self.sampled.at_most(unknown);
        self.low = self.low * (1.0 - part) - sampled;
        self.high = self.high * (1.0 - part) + part + sampled;
    }
}

/// The shares of a tree's nodes, in the order of its table.
pub(crate) struct Shares {
    all: [Share; MOST_NODES],
    /// A bit for each node that was measured.
    measured: u64,
}

const _: () = assert!(MOST_NODES <= u64::BITS as usize && MOST_INPUTS <= u32::BITS as usize);

impl Shares {
    /// None.
    pub const NONE: Shares = Shares { all: [Share::NOTHING; MOST_NODES], measured: 0 };

    /// Of a node; None: not measured.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&Share> {
        if self.measured >> place & 1 == 1 { Some(&self.all[place]) } else { None }
    }

    #[inline]
    fn set(&mut self, place: usize, share: Share) {
        self.all[place] = share;
        self.measured |= 1 << place;
    }
}

/// A node that others are below, where its row is, and that of the first of these.
#[derive(Clone, Copy)]
struct Parent {
    id: u32,
    place: Option<usize>,
    first: usize,
}

/// Evaluates a measurement down to `level`. `shares`: none yet. (They are large: nothing moves them.)
pub(crate) fn evaluate(tree: &Tree, level: u32, counted: &CountedInputs, shares: &mut Shares) {
    divide(tree, counted, shares);
    let mut parent = Parent { id: TD_NODE_NONE, place: None, first: 0 };
    for (place, row) in tree.nodes.iter().enumerate() {
        if row.is_measured(level) && !row.divides_all() {
            if row.parent != parent.id {
                parent = Parent { id: row.parent, place: tree.place(row.parent), first: place };
            }
            if let Some(share) = evaluate_one(tree, (place, row), parent, counted, shares) {
                shares.set(place, share);
            }
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
    for (place, row) in tree.nodes.iter().enumerate() {
        match if row.unit == TD_UNIT_CLOCKS { of_clocks } else { of_slots } {
            Some(part) => shares.all[place].widen(part, counted.unknown),
            None => shares.measured &= !(1 << place),
        }
    }
}

/// Slots that nothing counted here may be of other nodes: as many as each of the nodes can have that count them, and no more than others
/// leave.
fn doubt(tree: &Tree, counted: &CountedInputs, shares: &mut Shares) {
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

fn near(count: Count, counted: &CountedInputs) -> Near {
    Near { near: count.n / counted.slots, rounding: count.rounding, edges: count.edges }
}

impl Near {
    const NOTHING: Near = Near { near: 0.0, rounding: 0.0, edges: 0.0 };
    /// Of a node that does not count slots, and what comes of it.
    const NONE: Near = Near { near: f64::NAN, ..Near::NOTHING };

    fn bound(self, counted: &CountedInputs) -> f64 {
        (self.rounding + self.edges) / counted.slots
    }

    /// Less a part of it. Each is rounded in its own way; what happened at the edges is the same for all.
    fn minus(self, part: Near) -> Near {
        Near {
            near: self.near - part.near,
            rounding: self.rounding + part.rounding,
            edges: self.edges.at_least(part.edges),
        }
    }
}

/// What was counted of a root that has a part of all slots.
#[derive(Clone, Copy)]
struct Root {
    place: usize,
    slots: Near,
    /// How far a random sample may be off, as a share.
    sampled: f64,
}

impl Root {
    const ALL: Root = Root { place: 0, slots: Near { near: 1.0, ..Near::NOTHING }, sampled: 0.0 };
}

/// The roots that divide all slots: how many they are. None: one was not measured.
fn roots(tree: &Tree, counted: &CountedInputs, roots: &mut [Root; MOST_ROOTS]) -> Option<usize> {
    let (mut count, mut rest, mut left) = (0, None, Root::ALL);
    for (place, row) in tree.nodes.iter().enumerate().filter(|(_, row)| row.divides_all()) {
        let input = match row.formula {
            Formula::Slots(input) => counted.input(input)?,
            Formula::Corrected(of) => counted.corrected(&of)?,
            Formula::Balance(more, less) => counted.balance(more, less)?,
            Formula::Retired(of) => counted.retired(&of)?,
            Formula::Rest | Formula::Of(_) | Formula::NoCounter => {
                (rest, left.place) = (Some(count), place);
                count += 1;
                continue;
            }
        };
        let root = Root { place, slots: near(input, counted), sampled: input.sampled / counted.slots };
        left = Root {
            place: left.place,
            slots: left.slots.minus(root.slots),
            sampled: left.sampled + root.sampled,
        };
        roots[count] = root;
        count += 1;
    }
    if let Some(rest) = rest {
        roots[rest] = left;
    }
    Some(count)
}

/// The roots that divide all slots: their shares are made to add up to 1, and each has at least what the others leave,
/// and at most. Nothing is known of them unless all were measured.
fn divide(tree: &Tree, counted: &CountedInputs, shares: &mut Shares) {
    let mut roots_of_all = [Root::ALL; MOST_ROOTS];
    let Some(count) = roots(tree, counted, &mut roots_of_all) else { return };
    let roots = &roots_of_all[..count];
    let (mut alone, mut all) = ([Interval::exact(0.0); MOST_ROOTS], [0.0; 3]);
    for (root, alone) in roots.iter().zip(&mut alone) {
        let (near, bound) = (root.slots.near, root.slots.bound(counted));
        let within = |share: f64| share.at_least(0.0).at_most(1.0);
        *alone = Interval { value: within(near), low: within(near - bound), high: within(near + bound) };
        all = [all[0] + alone.value, all[1] + alone.low, all[2] + alone.high];
    }
    let [whole, all_low, all_high] = all;
    for (Root { place, slots, sampled }, alone) in roots.iter().zip(alone) {
        let value = if whole > 0.0 { alone.value / whole } else { 1.0 / count as f64 };
        let (mut low, mut high) = (alone.low, alone.high);
        if slots.bound(counted) > 0.0 {
            // (an exact share can only lose by this, since the sums are rounded)
            let (least, most) = (1.0 - (all_high - high), 1.0 - (all_low - low));
            (low, high) = (low.at_least(least), high.at_most(most));
        }
        shares.set(*place, Share::new(value, low, high, *slots, *sampled));
    }
}

fn evaluate_one(
    tree: &Tree,
    (place, row): (usize, &Row),
    parent: Parent,
    counted: &CountedInputs,
    shares: &Shares,
) -> Option<Share> {
    let above = || parent.place.and_then(|place| shares.get(place));
    match row.formula {
        Formula::Slots(input) => Some(part_of(above()?, counted.input(input)?, counted)),
        Formula::Corrected(corrected) => Some(part_of(above()?, counted.corrected(&corrected)?, counted)),
        Formula::Balance(more, less) => Some(part_of(above()?, counted.balance(more, less)?, counted)),
        Formula::Retired(retired) => Some(part_of(above()?, counted.retired(&retired)?, counted)),
        Formula::Rest => {
            // (all siblings are above)
            let siblings = (parent.first..place).filter(|place| tree.nodes[*place].parent == row.parent);
            rest_of(above()?, siblings.map(|place| shares.get(place)), counted)
        }
        Formula::Of(expr) => {
            let place = |id| if id == parent.id { parent.place } else { tree.place(id) };
            let node = |id| Some(shares.get(place(id)?)?.interval(counted));
            let Interval { value, low, high } = interval::evaluate(expr, &|leaf| match leaf {
                Expr::Input(input) => counted.input(*input).map(Count::interval),
                Expr::Node(id) => node(*id),
                _ => Some(Interval::exact(counted.slots)),
            })
            .filter(|interval| !interval.value.is_nan())?;
            Some(Share::new(
                value.at_least(0.0).at_most(1.0),
                low.at_least(0.0).at_most(1.0),
                high.at_least(0.0).at_most(1.0),
                Near::NONE,
                0.0,
            ))
        }
        Formula::NoCounter => None,
    }
}

/// A share that counts slots, of its parent's.
fn part_of(parent: &Share, count: Count, counted: &CountedInputs) -> Share {
    let slots = near(count, counted);
    let bound = slots.bound(counted);
    let value = slots.near.at_least(0.0).at_most(parent.value);
    let low = (slots.near - bound).at_least(0.0).at_most(parent.high);
    let high = (slots.near + bound).at_least(low).at_most(parent.high);
    Share::new(value, low, high, slots, count.sampled / counted.slots)
}

/// What the siblings leave of the parent.
fn rest_of<'a>(
    parent: &Share,
    siblings: impl Iterator<Item = Option<&'a Share>>,
    counted: &CountedInputs,
) -> Option<Share> {
    let mut rest = *parent;
    for sibling in siblings {
        let sibling = sibling?;
        rest = Share {
            value: rest.value - sibling.value,
            low: rest.low - sibling.high,
            high: rest.high - sibling.low,
            slots: rest.slots.minus(sibling.slots),
            // a difference has the errors of both
            sampled: rest.sampled + sibling.sampled,
        };
    }
    let (mut low, mut high) = (rest.low, rest.high);
    let (slots, bound) = (rest.slots, rest.slots.bound(counted));
    if !slots.near.is_nan() && bound > 0.0 {
        low = low.at_least(slots.near - bound);
        high = high.at_most(slots.near + bound);
    }
    Some(Share::new(
        rest.value.at_least(0.0),
        low.at_least(0.0),
        high.at_least(0.0),
        rest.slots,
        rest.sampled,
    ))
}
