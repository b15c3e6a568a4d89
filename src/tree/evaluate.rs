//! A tree of metrics, evaluated over what was counted: each node's value, and the interval in which the truth lies.
#![forbid(unsafe_code)]

use super::interval::{self, Interval};
use crate::model::tree::{Expr, Formula, MOST_NODES, Row, TD_NODE_NONE, TD_UNIT_CLOCKS, Tree};

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
}

impl Count {
    fn interval(self) -> Interval {
        let error = self.rounding + self.edges;
        Interval { value: self.n, low: (self.n - error).max(0.0), high: self.n + error }
    }
}

/// What was counted between two samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// The tree's inputs in their order; None: not measured.
    pub inputs: [Option<Count>; MOST_NODES],
    pub slots: f64,
    /// Slots that may have passed uncounted. No more cycles can have.
    pub uncounted: f64,
}

/// A node that was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// As the inputs say, before it was made to agree with its parent and siblings; for nodes that count slots.
    slots: Option<Near>,
}

#[derive(Clone, Copy, Debug)]
struct Near {
    near: f64,
    rounding: f64,
    edges: f64,
}

impl Share {
    /// A share between these ends; anywhere, if there is nothing between them.
    fn new(value: f64, low: f64, high: f64, slots: Option<Near>) -> Share {
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        Share { value, low, high, slots }
    }

    fn interval(self) -> Interval {
        Interval { value: self.value, low: self.low, high: self.high }
    }

    /// A part of the whole passed uncounted. It may have been all of this node or none.
    fn widened(self, part: f64) -> Share {
        Share { low: self.low * (1.0 - part), high: self.high * (1.0 - part) + part, ..self }
    }
}

/// Each node's share, in the order of the tree's table, of a measurement down to `level`; None: not measured.
pub(crate) fn evaluate(tree: &Tree, level: u32, counted: &Counted) -> [Option<Share>; MOST_NODES] {
    let mut shares = [None; MOST_NODES];
    divide(tree, counted, &mut shares);
    for (place, row) in tree.nodes.iter().enumerate() {
        if row.level <= level && !divides_all(row) {
            shares[place] = evaluate_one(tree, row, counted, &shares);
        }
    }
    // (at the end: the parts uncounted of a parent and its child are the same slots)
    for (share, row) in shares.iter_mut().zip(tree.nodes) {
        let whole = whole(tree, row, counted);
        *share =
            whole.and_then(|whole| Some((*share)?.widened(counted.uncounted / (counted.uncounted + whole))));
    }
    shares
}

/// How many of its unit passed, of which a node's value is a share.
fn whole(tree: &Tree, row: &Row, counted: &Counted) -> Option<f64> {
    match row.unit {
        TD_UNIT_CLOCKS => counted.inputs[tree.clocks?].map(|clocks| clocks.n),
        _ => Some(counted.slots),
    }
    .filter(|whole| *whole > 0.0)
}

/// Whether the node is one of the roots among which all slots are divided.
fn divides_all(row: &Row) -> bool {
    row.parent == TD_NODE_NONE && matches!(row.formula, Formula::Slots(_))
}

fn near(count: Count, counted: &Counted) -> Near {
    Near { near: count.n / counted.slots, rounding: count.rounding, edges: count.edges }
}

impl Near {
    fn doubt(self, counted: &Counted) -> f64 {
        (self.rounding + self.edges) / counted.slots
    }
}

/// The roots that divide all slots: their shares are made to add up to 1, and each has at least what the others leave,
/// and at most. Nothing is known of them unless all were measured.
fn divide(tree: &Tree, counted: &Counted, shares: &mut [Option<Share>; MOST_NODES]) {
    let mut roots = [(0, Near { near: 0.0, rounding: 0.0, edges: 0.0 }); MOST_NODES];
    let mut count = 0;
    for (place, row) in tree.nodes.iter().enumerate().filter(|(_, row)| divides_all(row)) {
        let Formula::Slots(input) = row.formula else { continue };
        let Some(slots) = counted.inputs[input] else { return };
        roots[count] = (place, near(slots, counted));
        count += 1;
    }
    let roots = &roots[..count];
    let low = |root: Near| (root.near - root.doubt(counted)).clamp(0.0, 1.0);
    let high = |root: Near| (root.near + root.doubt(counted)).clamp(0.0, 1.0);
    let whole: f64 = roots.iter().map(|(_, root)| root.near.clamp(0.0, 1.0)).sum();
    let all_low: f64 = roots.iter().map(|(_, root)| low(*root)).sum();
    let all_high: f64 = roots.iter().map(|(_, root)| high(*root)).sum();
    for (place, root) in roots {
        let value = if whole > 0.0 { root.near.clamp(0.0, 1.0) / whole } else { 1.0 / count as f64 };
        let (mut low, mut high) = (low(*root), high(*root));
        if root.doubt(counted) > 0.0 {
            // (an exact share can only lose by this, since the sums are rounded)
            let (least, most) = (1.0 - (all_high - high), 1.0 - (all_low - low));
            (low, high) = (low.max(least), high.min(most));
        }
        shares[*place] = Some(Share::new(value, low, high, Some(*root)));
    }
}

fn evaluate_one(tree: &Tree, row: &Row, counted: &Counted, shares: &[Option<Share>]) -> Option<Share> {
    let of = |id| tree.place(id).and_then(|place| shares[place]);
    match row.formula {
        Formula::Slots(input) => {
            Some(part_of(of(row.parent)?, near(counted.inputs[input]?, counted), counted))
        }
        Formula::Rest => {
            let siblings = tree
                .nodes
                .iter()
                .zip(shares)
                .filter(|(other, _)| other.parent == row.parent && other.id != row.id);
            rest_of(of(row.parent)?, siblings.map(|(_, share)| *share), counted)
        }
        Formula::Of(expr) => {
            let Interval { value, low, high } = interval::evaluate(expr, &|leaf| match leaf {
                Expr::Input(input) => counted.inputs[*input].map(Count::interval),
                Expr::Node(id) => of(*id).map(Share::interval),
                _ => Some(Interval::exact(counted.slots)),
            })?;
            Some(Share::new(value.clamp(0.0, 1.0), low.clamp(0.0, 1.0), high.clamp(0.0, 1.0), None))
        }
    }
}

/// A share that counts slots, of its parent's.
fn part_of(parent: Share, slots: Near, counted: &Counted) -> Share {
    let doubt = slots.doubt(counted);
    let value = slots.near.max(0.0).min(parent.value);
    let low = (slots.near - doubt).max(0.0).min(parent.high);
    let high = (slots.near + doubt).max(low).min(parent.high);
    Share::new(value, low, high, Some(slots))
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
            // each is rounded in its own way; what happened at the edges is the same for all
            slots: rest.slots.zip(sibling.slots).map(|(all, part)| Near {
                near: all.near - part.near,
                rounding: all.rounding + part.rounding,
                edges: all.edges.max(part.edges),
            }),
        };
    }
    let (mut low, mut high) = (rest.low, rest.high);
    if let Some(slots) = rest.slots.filter(|slots| slots.doubt(counted) > 0.0) {
        low = low.max(slots.near - slots.doubt(counted));
        high = high.min(slots.near + slots.doubt(counted));
    }
    Some(Share::new(rest.value.max(0.0), low.max(0.0), high.max(0.0), rest.slots))
}
