//! A tree of metrics, evaluated over what was counted: each node's value, and the interval in which the truth lies.
#![forbid(unsafe_code)]

use super::interval::{self, Interval};
use crate::model::metrics::TD_UNIT_CLOCKS;
use crate::model::perf_metrics::MOST_MOVED;
use crate::model::tree::{Clocks, Corrected, Expr, Formula, Retired, Row, Tree};
use crate::model::{MOST_INPUTS, MOST_NODES};
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
    /// Slots of a category of PERF_METRICS, which is rounded.
    pub fn by_category(n: f64, span: &Span) -> Count {
        Count { n, rounding: span.rounding, edges: span.edges, sampled: 0.0 }
    }

    /// What a plain counter counted: nothing is rounded, so all error is what passed at the edges. Counters of slots that are read
    /// together were all off by the same slots, each of which is of one category.
    pub fn by_counter(n: f64, span: &Span) -> Count {
        Count { n, rounding: 0.0, edges: span.rounding + span.edges, sampled: 0.0 }
    }

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
        Interval { value: self.n, low: (self.n - error).max(0.0), high: self.n + error }
    }
}

/// What was counted between two samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// The tree's inputs in their order; None: not measured.
    pub inputs: [Option<Count>; MOST_INPUTS],
    pub slots: f64,
    /// Slots that may have passed uncounted. No more cycles can have.
    pub uncounted: f64,
    /// Of all slots, the part of which it is not known how it divides: what a sample is off is not more.
    pub unknown: f64,
    /// Nodes are to be as their sources count them, not as the published metrics correct these.
    pub bare: bool,
    /// What corrects them was not counted all the time.
    pub uncorrected: bool,
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

impl Counted {
    /// What the first inputs counted, less what the others did. An input that is named several times is worth so much more, of
    /// events that each take all those slots: no more of them fit into what passed at the edges.
    fn balance(&self, more: &[usize], less: &[usize]) -> Option<Count> {
        let signed = more.iter().map(|input| (1.0, input)).chain(less.iter().map(|input| (-1.0, input)));
        let (mut balance, mut named) = (Count::NOTHING, 0u32);
        for (sign, input) in signed {
            let count = self.inputs[*input]?;
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
        let mut count = self.inputs[of.slots]?;
        let signed =
            of.less.iter().map(|input| (-1.0, input)).chain(of.more.iter().map(|input| (1.0, input)));
        for (sign, input) in signed.filter(|_| !self.bare && !self.uncorrected) {
            let other = self.inputs[*input]?;
            count.n += sign * other.n;
            count.sampled += other.sampled;
        }
        Some(count)
    }

    /// Slots of operations that retired: if none was dispatched, none, or any that are free.
    fn retired(&self, of: &Retired) -> Option<Count> {
        let stalls = self.balance(of.stalls, of.not_stalls)?;
        let free = Count { n: (self.slots - stalls.n).max(0.0), ..stalls };
        let (retired, dispatched) = (self.inputs[of.retired]?, self.inputs[of.dispatched]?);
        let part = if dispatched.n > 0.0 { (retired.n / dispatched.n).min(1.0) } else { 0.0 };
        // The quotient is off by no more than its operands are together, in parts of the least that the divisor can be. What the
        // stalls are off is not made less by it: as much of that may be in what the siblings leave.
        let doubt = |free_off: f64, retired_off: f64, dispatched_off: f64| {
            let least = dispatched.n - dispatched_off;
            let part_off = if least > 0.0 { (retired_off + part * dispatched_off) / least } else { 1.0 };
            free_off + free.n * part_off.min(1.0)
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
    slots: Option<Near>,
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
    /// A share between these ends; anywhere, if there is nothing between them.
    fn new(value: f64, low: f64, high: f64, slots: Option<Near>, sampled: f64) -> Share {
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        Share { value, low, high, slots, sampled }
    }

    /// With what the sample may be off.
    fn interval(self, counted: &Counted) -> Interval {
        let sampled = self.sampled.min(counted.unknown);
        Interval { value: self.value, low: self.low - sampled, high: self.high + sampled }
    }

    /// Takes so much off each end, and off the value.
    fn take(&mut self, low: f64, value: f64, high: f64) {
        self.low = (self.low - low).clamp(0.0, 1.0);
        self.value = (self.value - value).clamp(0.0, 1.0);
        self.high = (self.high - high).clamp(0.0, 1.0);
    }

    /// A part of the whole passed uncounted. It may have been all of this node or none. What a sample may be off comes on top.
    fn widened(self, part: f64, counted: &Counted) -> Share {
        let counted_alone =
            Share { low: self.low * (1.0 - part), high: self.high * (1.0 - part) + part, ..self };
        let Interval { low, high, .. } = counted_alone.interval(counted);
        Share { low, high, ..self }
    }
}

/// Each node's share, in the order of the tree's table, of a measurement down to `level`; None: not measured.
pub(crate) fn evaluate(tree: &Tree, level: u32, counted: &Counted) -> [Option<Share>; MOST_NODES] {
    let mut shares = [None; MOST_NODES];
    divide(tree, counted, &mut shares);
    for (place, row) in tree.nodes.iter().enumerate() {
        if row.is_measured(level) && !row.divides_all() {
            shares[place] = evaluate_one(tree, row, counted, &shares);
        }
    }
    if !counted.bare && (counted.uncorrected || !tree.is_sure()) {
        doubt(tree, counted, &mut shares);
    }
    // (at the end: the parts uncounted of a parent and its child are the same slots)
    for (share, row) in shares.iter_mut().zip(tree.nodes) {
        let part = whole(tree, row, counted).map(|whole| counted.uncounted / (counted.uncounted + whole));
        *share = part.and_then(|part| Some((*share)?.widened(part, counted)));
    }
    shares
}

/// Slots that nothing counted here may be of other nodes: as many as each of the nodes can have that count them, and no more than others
/// leave.
fn doubt(tree: &Tree, counted: &Counted, shares: &mut [Option<Share>; MOST_NODES]) {
    let Moved { counted: all, off, rest } = counted.moved;
    for (unsure, seen) in tree.unsure.iter().zip(all) {
        let ids = |ids: &'static [u32]| ids.iter().filter_map(|id| tree.place(*id));
        let least_of = |of: &dyn Fn(Share) -> f64| {
            ids(unsure.counted_in).filter_map(|place| shares[place].map(of)).fold(1.0, f64::min)
        };
        let part = |slots: f64| (slots / counted.slots).max(0.0);
        // (each value gives as much as the others get)
        let value = part(seen).min(least_of(&|share| share.value));
        let most = part(seen + off + rest).min(least_of(&|share| share.interval(counted).high)).max(value);
        let least = part(seen - off).min(value);
        for place in ids(unsure.counted_in) {
            if let Some(share) = &mut shares[place] {
                share.take(most, value, least);
            }
        }
        for place in ids(unsure.published_in) {
            if let Some(share) = &mut shares[place] {
                share.take(-least, -value, -most);
            }
        }
    }
}

/// How many cycles passed; None: that was not measured, or no node is a share of them.
pub(crate) fn clocks(tree: &Tree, counted: &Counted) -> Option<f64> {
    match tree.clocks? {
        Clocks::Input(input) => counted.inputs[input].map(|clocks| clocks.n),
        Clocks::Slots(width) => Some(counted.slots / f64::from(width)),
    }
}

/// How many of its unit passed, of which a node's value is a share.
fn whole(tree: &Tree, row: &Row, counted: &Counted) -> Option<f64> {
    match row.unit {
        TD_UNIT_CLOCKS => clocks(tree, counted),
        _ => Some(counted.slots),
    }
    .filter(|whole| *whole > 0.0)
}

fn near(count: Count, counted: &Counted) -> Near {
    Near { near: count.n / counted.slots, rounding: count.rounding, edges: count.edges }
}

impl Near {
    fn bound(self, counted: &Counted) -> f64 {
        (self.rounding + self.edges) / counted.slots
    }

    /// Less a part of it. Each is rounded in its own way; what happened at the edges is the same for all.
    fn minus(self, part: Near) -> Near {
        Near {
            near: self.near - part.near,
            rounding: self.rounding + part.rounding,
            edges: self.edges.max(part.edges),
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

/// The roots that divide all slots, and their number. None: one was not measured.
fn roots(tree: &Tree, counted: &Counted) -> Option<([Root; MOST_NODES], usize)> {
    let all = Near { near: 1.0, rounding: 0.0, edges: 0.0 };
    let mut roots = [Root { place: 0, slots: all, sampled: 0.0 }; MOST_NODES];
    let (mut count, mut rest, mut left) = (0, None, Root { place: 0, slots: all, sampled: 0.0 });
    for (place, row) in tree.nodes.iter().enumerate().filter(|(_, row)| row.divides_all()) {
        let input = match row.formula {
            Formula::Slots(input) => counted.inputs[input]?,
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
    Some((roots, count))
}

/// The roots that divide all slots: their shares are made to add up to 1, and each has at least what the others leave,
/// and at most. Nothing is known of them unless all were measured.
fn divide(tree: &Tree, counted: &Counted, shares: &mut [Option<Share>; MOST_NODES]) {
    let Some((roots, count)) = roots(tree, counted) else { return };
    let roots = &roots[..count];
    let low = |slots: Near| (slots.near - slots.bound(counted)).clamp(0.0, 1.0);
    let high = |slots: Near| (slots.near + slots.bound(counted)).clamp(0.0, 1.0);
    let whole: f64 = roots.iter().map(|root| root.slots.near.clamp(0.0, 1.0)).sum();
    let all_low: f64 = roots.iter().map(|root| low(root.slots)).sum();
    let all_high: f64 = roots.iter().map(|root| high(root.slots)).sum();
    for Root { place, slots, sampled } in roots {
        let value = if whole > 0.0 { slots.near.clamp(0.0, 1.0) / whole } else { 1.0 / count as f64 };
        let (mut low, mut high) = (low(*slots), high(*slots));
        if slots.bound(counted) > 0.0 {
            // (an exact share can only lose by this, since the sums are rounded)
            let (least, most) = (1.0 - (all_high - high), 1.0 - (all_low - low));
            (low, high) = (low.max(least), high.min(most));
        }
        shares[*place] = Some(Share::new(value, low, high, Some(*slots), *sampled));
    }
}

fn evaluate_one(tree: &Tree, row: &Row, counted: &Counted, shares: &[Option<Share>]) -> Option<Share> {
    let of = |id| tree.place(id).and_then(|place| shares[place]);
    match row.formula {
        Formula::Slots(input) => Some(part_of(of(row.parent)?, counted.inputs[input]?, counted)),
        Formula::Corrected(corrected) => {
            Some(part_of(of(row.parent)?, counted.corrected(&corrected)?, counted))
        }
        Formula::Balance(more, less) => Some(part_of(of(row.parent)?, counted.balance(more, less)?, counted)),
        Formula::Retired(retired) => Some(part_of(of(row.parent)?, counted.retired(&retired)?, counted)),
        Formula::Rest => {
            let siblings = tree
                .nodes
                .iter()
                .zip(shares)
                .filter(|(other, _)| other.parent == row.parent && other.metric.id != row.metric.id);
            rest_of(of(row.parent)?, siblings.map(|(_, share)| *share), counted)
        }
        Formula::Of(expr) => {
            let Interval { value, low, high } = interval::evaluate(expr, &|leaf| match leaf {
                Expr::Input(input) => counted.inputs[*input].map(Count::interval),
                Expr::Node(id) => of(*id).map(|share| share.interval(counted)),
                _ => Some(Interval::exact(counted.slots)),
            })
            .filter(|interval| !interval.value.is_nan())?;
            Some(Share::new(value.clamp(0.0, 1.0), low.clamp(0.0, 1.0), high.clamp(0.0, 1.0), None, 0.0))
        }
        Formula::NoCounter => None,
    }
}

/// A share that counts slots, of its parent's.
fn part_of(parent: Share, count: Count, counted: &Counted) -> Share {
    let slots = near(count, counted);
    let bound = slots.bound(counted);
    let value = slots.near.max(0.0).min(parent.value);
    let low = (slots.near - bound).max(0.0).min(parent.high);
    let high = (slots.near + bound).max(low).min(parent.high);
    Share::new(value, low, high, Some(slots), count.sampled / counted.slots)
}

/// What the siblings leave of the parent.
fn rest_of(parent: Share, siblings: impl Iterator<Item = Option<Share>>, counted: &Counted) -> Option<Share> {
    let mut rest = parent;
    for sibling in siblings {
        let sibling = sibling?;
        rest = Share {
            value: rest.value - sibling.value,
            low: rest.low - sibling.high,
            high: rest.high - sibling.low,
            slots: rest.slots.zip(sibling.slots).map(|(all, part)| all.minus(part)),
            // a difference has the errors of both
            sampled: rest.sampled + sibling.sampled,
        };
    }
    let (mut low, mut high) = (rest.low, rest.high);
    if let Some(slots) = rest.slots.filter(|slots| slots.bound(counted) > 0.0) {
        low = low.max(slots.near - slots.bound(counted));
        high = high.min(slots.near + slots.bound(counted));
    }
    Some(Share::new(rest.value.max(0.0), low.max(0.0), high.max(0.0), rest.slots, rest.sampled))
}
