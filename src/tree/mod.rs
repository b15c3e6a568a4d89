//! Two samples to the nodes of the CPU's tree of metrics.
#![forbid(unsafe_code)]

pub(crate) mod evaluate;
mod inputs;
mod interval;
mod roots;
mod shares;
mod uncounted;

use crate::error::{Error, Result};
use crate::model;
use crate::model::metrics::{Metric, TD_UNIT_CLOCKS, TD_UNIT_SLOTS};
use crate::model::tree::{NodeRow, Tree};
use crate::sample::{CATEGORIES, Sample};
use crate::span::{self, Span, float};
use evaluate::{NodeShares, Share};
pub(crate) use inputs::CountedInputs;
pub use inputs::MovedSlots;
pub(crate) use interval::Ends;
pub(crate) use roots::{ADDED, COUNTERS, Errors, Roots, near_below};
pub(crate) use shares::Shares;

/// A node of the tree of metrics, with its share between two samples.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Node {
    /// sizeof(struct td_node), set by the library.
    pub size: u32,
    /// TD_SAMPLE_* bits of both samples.
    pub flags: u32,
    /// TD_NODE_*, or what td_node_id says: the same on all CPUs and in all versions.
    pub id: u32,
    /// `id` of the node of which it is a part; TD_NODE_NONE for roots.
    pub parent: u32,
    /// 1 for roots, else one more than the parent's.
    pub level: u32,
    /// TD_UNIT_*: what the shares are of. Nodes of two units do not add up.
    pub unit: u32,
    /// 1; or 0 if the node was not counted: then `value`, `low` and `high` are NaN.
    pub measured: u32,
    /// Zero.
    pub reserved0: u32,
    /// The share, 0 to 1, as td_decode_l1 and td_decode_l2 give it.
    pub value: f64,
    /// Lower end of the bound: the truth is not below it.
    pub low: f64,
    /// Upper end of the bound: the truth is not above it.
    pub high: f64,
    /// Part of the time between the samples in which the counters counted, 0 to 1.
    pub running: f64,
    /// Number of slots or cycles (`unit`) between the samples.
    pub whole: u64,
    /// Zeros.
    pub reserved: [u64; 3],
}

const _: () = assert!(size_of::<Node>() == 96);

impl Node {
    fn unmeasured(row: &NodeRow) -> Node {
        Node {
            size: size_of::<Node>() as u32,
            id: row.id,
            parent: row.parent,
            level: row.level,
            unit: row.unit,
            value: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
            ..Node::default()
        }
    }

    /// perf's name of the metric.
    pub fn name(&self) -> &'static str {
        self.metric().and_then(|metric| metric.name.to_str().ok()).unwrap_or("")
    }

    /// What the node is, in whichever tree it stands.
    pub fn metric(&self) -> Option<&'static Metric> {
        model::metric(self.id)
    }
}

/// Nodes of the tree of metrics between two samples of one period; from its start without `from`. Parents come before
/// their children, in the same order as in [`TopDown::nodes`](crate::TopDown::nodes).
///
/// # Errors
/// Those of [`decode_l1`](crate::decode_l1).
pub fn decode_tree(from: Option<&Sample>, to: &Sample) -> Result<Vec<Node>> {
    decode(from, to, |nodes| nodes.collect())
}

/// As [`decode_tree`], of nodes as their sources count them: the published metrics correct some of these by further events.
///
/// # Errors
/// Those of [`decode_tree`].
pub fn decode_tree_bare(from: Option<&Sample>, to: &Sample) -> Result<Vec<Node>> {
    decode_bare(from, to, |nodes| nodes.collect())
}

/// As `decode_tree_bare`, for a function that is given the nodes.
pub(crate) fn decode_bare<R>(from: Option<&Sample>, to: &Sample, then: impl FnOnce(Nodes) -> R) -> Result<R> {
    let mut span = span::span(from, to, 1)?;
    let tree = tree_of(to)?;
    span::move_slots(&mut span, from.unwrap_or(&span::begin_of_period(to)), to, false);
    let mut counted = CountedInputs::new(to.base.model, &span);
    count(&mut counted, tree, &span, from, to);
    counted.bare = true;
    Ok(nodes(tree, span.level, &counted, &span, then))
}

/// As `decode_tree`, for a function that is given the nodes.
pub(crate) fn decode<R>(from: Option<&Sample>, to: &Sample, then: impl FnOnce(Nodes) -> R) -> Result<R> {
    between(&span::span(from, to, 1)?, from, to, then)
}

/// The nodes of a handle's CPU, none of them decoded, and which of them it measures.
pub(crate) fn list(row: u8, level: u32) -> Result<impl ExactSizeIterator<Item = Node>> {
    let tree = model::tree_of(row).ok_or_else(|| Error::invalid("the CPU has no tree of metrics"))?;
    let rows = tree.nodes.iter();
    Ok(rows.map(move |row| Node { measured: row.is_measured(level).into(), ..Node::unmeasured(row) }))
}

fn tree_of(sample: &Sample) -> Result<&'static Tree> {
    sample.base.tree().ok_or_else(|| span::another_version("sample"))
}

/// Nodes between two samples, of which this is what ran.
pub(crate) fn between<R>(
    span: &Span,
    from: Option<&Sample>,
    to: &Sample,
    then: impl FnOnce(Nodes) -> R,
) -> Result<R> {
    let tree = tree_of(to)?;
    let mut counted = CountedInputs::new(to.base.model, span);
    count(&mut counted, tree, span, from, to);
    Ok(nodes(tree, span.level, &counted, span, then))
}

/// Nodes of what was counted down to `level`, for a function that is given them. Flags, slots and running are those of the span.
pub(crate) fn nodes<R>(
    tree: &'static Tree,
    level: u32,
    counted: &CountedInputs,
    span: &Span,
    then: impl FnOnce(Nodes) -> R,
) -> R {
    let mut shares = NodeShares::NONE;
    evaluate::evaluate(tree, level, counted, &mut shares);
    let clocks = evaluate::clocks(tree, counted).map_or(0, |clocks| clocks as u64);
    let Span { flags, slots, running, .. } = *span;
    let rows = tree.nodes.iter().enumerate();
    then(Nodes { rows, shares: &shares, measured: shares.measured(), flags, slots, clocks, running })
}

/// The nodes of a tree that was evaluated. (Their shares are where they were made: nothing copies all of them.)
pub(crate) struct Nodes<'a> {
    rows: std::iter::Enumerate<std::slice::Iter<'static, NodeRow>>,
    shares: &'a NodeShares,
    measured: u64,
    flags: u32,
    slots: u64,
    clocks: u64,
    running: f64,
}

impl Nodes<'_> {
    /// Slots in which operations retired: those of the first root.
    #[cold]
    fn operations(&self) -> u64 {
        (self.slots as f64 * self.shares.at(0).value) as u64
    }
}

impl Iterator for Nodes<'_> {
    type Item = Node;

    #[inline]
    fn next(&mut self) -> Option<Node> {
        let (place, row) = self.rows.next()?;
        let Nodes { flags, running, .. } = *self;
        let whole = match row.unit {
            TD_UNIT_SLOTS => self.slots,
            TD_UNIT_CLOCKS => self.clocks,
            _ => self.operations(),
        };
        let node = Node { flags, running, whole, ..Node::unmeasured(row) };
        Some(if self.measured >> place & 1 == 1 { with_share(node, self.shares.at(place)) } else { node })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for Nodes<'_> {}

#[inline(always)]
fn with_share(node: Node, share: &Share) -> Node {
    let Shares { value: [value], low: [low], high: [high] } = share.alone().outward();
    Node { measured: 1, value, low, high, ..node }
}

/// Sets the tree's inputs between two samples.
#[inline(always)]
fn count(counted: &mut CountedInputs, tree: &Tree, span: &Span, from: Option<&Sample>, to: &Sample) {
    let inputs = &tree.inputs[..model::inputs_down_to(to.base.model, span.level)];
    if !tree.takes_counters() {
        // (each is at its place)
        let count = inputs.len().min(CATEGORIES);
        counted.inputs[..count].copy_from_slice(&span.category[..count]);
        counted.measured = (1 << count) - 1;
        return;
    }
    let before = from.map_or(&[0; 15], |from| &from.counter);
    let (mut signs, counters) = (0, inputs.iter().zip(&to.counter).zip(before));
    for (((input, to), from), n) in counters.clone().zip(&mut counted.inputs) {
        let more = to.wrapping_sub(*from) as i64;
        signs |= more;
        *n = more as f64 * f64::from(input.each());
    }
    counted.measured = (1 << inputs.len()) - 1;
    if signs < 0 {
        // (of a counter that went back nothing is known)
        for (place, ((input, to), from)) in counters.enumerate() {
            match to.checked_sub(*from) {
                Some(more) => counted.inputs[place] = float(more) * f64::from(input.each()),
                None => counted.unset(place),
            }
        }
    }
}

#[cfg(test)]
mod tests;
