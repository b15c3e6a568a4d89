//! A tree of metrics, as data: which nodes a CPU has, and the formula of each. Parents and levels are those of perf's metrics
//! (tools/perf/pmu-events). Each table stands with the CPUs that it is of.
#![forbid(unsafe_code)]

use super::metrics::{self, LEVEL_1, Metric, TD_NODE_NONE, TD_UNIT_CLOCKS, TD_UNIT_SLOTS};
use super::sums::Sums;

/// What is counted on a CPU, and the metrics that follow from it.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Where a sample has each input of the formulas: at the place that it has here.
    pub inputs: &'static [Input],
    /// What tells the core's cycles, if a node is a share of them.
    pub clocks: Option<Clocks>,
    /// Parents before their children, so that one pass evaluates all.
    pub nodes: &'static [NodeRow],
    /// Slots that the published metrics give to other nodes than the sources of these do. How many is not known, but where the tree
    /// `is_corrected`: there inputs count them, perhaps not all the time.
    pub unsure: &'static [DoubtfulSlots],
    /// What the simulated PMU counts of each input in a cycle, unless it is told otherwise; empty for CPUs with
    /// PERF_METRICS, which are simulated by a mix of their categories.
    pub per_cycle: &'static [f64],
    /// Level 1 as sums, and level 2, if they are that.
    pub sums: Option<&'static Sums>,
    /// A bit for each node that a measurement down to each level tells.
    measured: [u64; 8],
    /// All inputs are counted, whether a node takes them or not.
    counts_all: bool,
}

/// Slots that may be of some nodes rather than of others, and how many is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DoubtfulSlots {
    /// The inputs count them as of each of these nodes, so none of them has fewer.
    pub counted_in: &'static [u32],
    /// By the published metrics they are of each of these.
    pub published_in: &'static [u32],
}

/// No tree has more roots that divide all slots.
pub(crate) const MOST_ROOTS: usize = 5;

/// A number in a sample that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Slots of a category, in the order of the fields of PERF_METRICS.
    Category(usize),
    /// `td_sample.counter[]`: exact, but for what passes at the edges of a region.
    Counter(usize),
    /// Likewise; it counts cycles that are worth so many slots each.
    Cycles(usize, u32),
}

impl Input {
    /// Its place in `td_sample.counter[]`, and what each count is worth; None: it is none of them.
    pub const fn counter(self) -> Option<(usize, u32)> {
        match self {
            Input::Category(_) => None,
            Input::Counter(place) => Some((place, 1)),
            Input::Cycles(place, slots) => Some((place, slots)),
        }
    }

    /// How many slots each count is worth.
    pub const fn each(self) -> u32 {
        match self {
            Input::Category(_) | Input::Counter(_) => 1,
            Input::Cycles(_, slots) => slots,
        }
    }
}

/// How many cycles passed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clocks {
    /// An input counts them.
    Input(usize),
    /// All slots, of which a cycle has so many.
    Slots(u32),
}

/// A node of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeRow {
    /// The metric's id.
    pub id: u32,
    /// The parent's id.
    pub parent: u32,
    /// The parent's place in the table.
    pub above: Option<u8>,
    pub level: u32,
    pub unit: u32,
    pub formula: Formula,
}

/// How a node's value follows from inputs, by their places in `Tree::inputs`, and from nodes above it in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Formula {
    /// Slots that the input counted, of all slots. The roots of this kind divide all slots among them; a child's slots
    /// are part of its parent's.
    Slots(usize),
    /// The same: slots of an input as the published metric corrects it by others.
    Corrected(&'static CorrectionInputs),
    /// The same: slots that the first inputs counted, less those that the others did.
    Balance(&'static BalanceInputs),
    /// Of a root: slots that no stall took, as many of them as operations retired of those that were dispatched.
    Retired(&'static RetirementInputs),
    /// What the siblings, all above it, leave of the parent; of one root, what the others leave of all slots.
    Rest,
    /// Arithmetic. The value is a share, between 0 and 1, whatever the parent's is.
    Of(&'static Expr),
    /// The core tells it, but its group has no counter left for it: never measured.
    NoCounter,
}

/// Inputs of `Formula::Corrected`, by their places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CorrectionInputs {
    pub slots: usize,
    /// Each counts slots that are among those, and by the published metric are of another node.
    pub less: &'static [usize],
    /// Each counts slots that are not among those, and by the published metric are.
    pub more: &'static [usize],
}

/// Inputs of `Formula::Balance`, by their places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BalanceInputs {
    pub more: &'static [usize],
    pub less: &'static [usize],
}

/// Inputs of `Formula::Retired`, by their places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetirementInputs {
    /// They count slots that stalls took.
    pub stalls: &'static [usize],
    /// They count slots that are among these and that no stall took.
    pub not_stalls: &'static [usize],
    /// It counts operations that retired.
    pub retired: usize,
    /// It counts operations that were dispatched, whether they retired or not.
    pub dispatched: usize,
}

/// Arithmetic over intervals.
#[derive(Debug)]
pub(crate) enum Expr {
    /// A number of the CPU's.
    Number(f64),
    /// How much an input counted.
    Input(usize),
    /// All slots.
    Slots,
    /// The value of the node with this id.
    Node(u32),
    Sum(&'static Expr, &'static Expr),
    Difference(&'static Expr, &'static Expr),
    Product(&'static Expr, &'static Expr),
    Quotient(&'static Expr, &'static Expr),
    Least(&'static Expr, &'static Expr),
    Greatest(&'static Expr, &'static Expr),
    /// As a quotient; 0 where nothing is divided by nothing, and where anything else is it may be anything.
    Part(&'static Expr, &'static Expr),
    /// The third where the first is less than the second, else the fourth.
    IfLess(&'static [Expr; 4]),
}

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

impl Expr {
    /// One more than the greatest place of an input in it.
    const fn inputs(&self) -> usize {
        match self {
            Expr::Number(_) | Expr::Slots | Expr::Node(_) => 0,
            Expr::Input(input) => *input + 1,
            Expr::Sum(a, b)
            | Expr::Difference(a, b)
            | Expr::Product(a, b)
            | Expr::Quotient(a, b)
            | Expr::Least(a, b)
            | Expr::Greatest(a, b)
            | Expr::Part(a, b) => larger(a.inputs(), b.inputs()),
            Expr::IfLess([a, b, c, d]) => {
                larger(larger(a.inputs(), b.inputs()), larger(c.inputs(), d.inputs()))
            }
        }
    }
}

/// One more than the greatest of some places.
const fn last(places: &[usize]) -> usize {
    let (mut greatest, mut k) = (0, 0);
    while k < places.len() {
        greatest = larger(greatest, places[k] + 1);
        k += 1;
    }
    greatest
}

/// A root, whose value is a share of all slots.
pub(crate) const fn root(metric: Metric, formula: Formula) -> NodeRow {
    NodeRow { id: metric.id, parent: TD_NODE_NONE, above: None, level: 1, unit: TD_UNIT_SLOTS, formula }
}

/// A node of level 2, whose value is a share of all slots, below one of level 1 at its place there.
pub(crate) const fn child(metric: Metric, above: u8, formula: Formula) -> NodeRow {
    let parent = LEVEL_1[above as usize].id;
    NodeRow { id: metric.id, parent, above: Some(above), level: 2, unit: TD_UNIT_SLOTS, formula }
}

impl NodeRow {
    /// The metric.
    pub const fn metric(&self) -> &'static Metric {
        metrics::of_id(self.id).expect("nodes are of metrics that there are")
    }

    /// Whether a measurement down to this level tells the node.
    pub const fn is_measured(&self, level: u32) -> bool {
        self.level <= level && !matches!(self.formula, Formula::NoCounter)
    }

    /// Whether the node is one of the roots among which all slots are divided.
    pub const fn divides_all(&self) -> bool {
        self.parent == TD_NODE_NONE && !matches!(self.formula, Formula::Of(_))
    }
}

impl Tree {
    /// The tree of these parts, each of whose nodes is evaluated by its own formula.
    pub const fn new(
        inputs: &'static [Input],
        clocks: Option<Clocks>,
        unsure: &'static [DoubtfulSlots],
        nodes: &'static [NodeRow],
        per_cycle: &'static [f64],
    ) -> Tree {
        let (mut measured, mut place) = ([0; 8], 0);
        while place < 8 * nodes.len() {
            let (node, level) = (place / 8, place % 8);
            if nodes[node].is_measured(level as u32) {
                measured[level] |= 1 << node;
            }
            place += 1;
        }
        Tree { inputs, clocks, unsure, nodes, per_cycle, sums: None, measured, counts_all: false }
    }

    /// The same, with what `as_sums` says of it: apart, as many trees have the same.
    pub const fn with_sums(self, sums: &'static Option<Sums>) -> Tree {
        Tree { sums: sums.as_ref(), ..self }
    }

    /// The same, of which inputs are counted that no node takes.
    pub fn with_all_inputs(self) -> Tree {
        Tree { counts_all: true, ..self }
    }

    /// The same, each of whose nodes is evaluated by its own formula.
    #[cfg(test)]
    pub fn without_sums(&self) -> Tree {
        Tree::new(self.inputs, self.clocks, self.unsure, self.nodes, self.per_cycle)
    }

    /// A bit for each node that a measurement down to this level tells.
    #[inline(always)]
    pub fn measured_down_to(&self, level: u32) -> u64 {
        self.measured[level.min(7) as usize]
    }

    /// The place of a node in the table.
    pub fn place(&self, id: u32) -> Option<usize> {
        self.nodes.iter().position(|row| row.id == id)
    }

    /// Whether this node is below the one with this id.
    pub fn is_below(&self, row: &NodeRow, id: u32) -> bool {
        row.parent == id
            || self.place(row.parent).is_some_and(|parent| self.is_below(&self.nodes[parent], id))
    }

    /// Level of the deepest node.
    pub const fn depth(&self) -> u32 {
        let (mut depth, mut place) = (0, 0);
        while place < self.nodes.len() {
            if self.nodes[place].level > depth {
                depth = self.nodes[place].level;
            }
            place += 1;
        }
        depth
    }

    /// Whether the inputs are general-purpose counters, all of them, rather than categories of PERF_METRICS.
    pub const fn takes_counters(&self) -> bool {
        self.inputs[0].counter().is_some()
    }

    /// Level 1's inputs without those that correct others: so many, from the first.
    pub const fn sources_of_level_1(&self) -> usize {
        let (mut sources, mut place) = (self.inputs_of(1), 0);
        while place < self.nodes.len() {
            if let (1, Formula::Corrected(of)) = (self.nodes[place].level, self.nodes[place].formula) {
                if let [first, ..] = of.less {
                    sources = if *first < sources { *first } else { sources };
                }
                if let [first, ..] = of.more {
                    sources = if *first < sources { *first } else { sources };
                }
            }
            place += 1;
        }
        sources
    }

    /// Whether inputs correct others.
    pub const fn is_corrected(&self) -> bool {
        self.sources_of_level_1() < self.inputs_of(1)
    }

    /// Whether what it takes decides its nodes.
    pub const fn is_sure(&self) -> bool {
        self.unsure.is_empty() || self.is_corrected()
    }

    /// How many of the inputs, from the first, the nodes down to this level take.
    pub const fn inputs_of(&self, level: u32) -> usize {
        if self.counts_all {
            return self.inputs.len();
        }
        let (mut inputs, mut place) = (0, 0);
        while place < self.nodes.len() {
            let row = &self.nodes[place];
            if row.level <= level {
                inputs = larger(
                    inputs,
                    match row.formula {
                        Formula::Slots(input) => input + 1,
                        Formula::Corrected(of) => larger(of.slots + 1, larger(last(of.less), last(of.more))),
                        Formula::Balance(of) => larger(last(of.more), last(of.less)),
                        Formula::Retired(of) => larger(
                            larger(last(of.stalls), last(of.not_stalls)),
                            larger(of.retired, of.dispatched) + 1,
                        ),
                        Formula::Rest | Formula::NoCounter => 0,
                        Formula::Of(expr) => expr.inputs(),
                    },
                );
                if let (true, Some(Clocks::Input(clocks))) = (row.unit == TD_UNIT_CLOCKS, self.clocks) {
                    inputs = larger(inputs, clocks + 1);
                }
            }
            place += 1;
        }
        inputs
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::metrics::TD_UNIT_OPERATIONS;
    use Formula::{Rest, Slots};

    /// What evaluation relies on.
    pub(crate) fn check(tree: &Tree) {
        let inputs_exist = |input: usize| assert!(input < tree.inputs.len());
        match tree.clocks {
            Some(Clocks::Input(input)) => inputs_exist(input),
            Some(Clocks::Slots(width)) => assert!(width > 0),
            None => (),
        }
        for (place, row) in tree.nodes.iter().enumerate() {
            let above = &tree.nodes[..place];
            let id = row.id;
            assert!(id != TD_NODE_NONE && above.iter().all(|other| other.id != id), "{row:?}");
            assert!(
                matches!(row.unit, TD_UNIT_SLOTS | TD_UNIT_OPERATIONS)
                    || row.unit == TD_UNIT_CLOCKS && tree.clocks.is_some(),
                "{row:?}"
            );
            let parent = row.above.map(|place| &above[usize::from(place)]);
            assert_eq!(parent.map_or(TD_NODE_NONE, |parent| parent.id), row.parent, "{row:?}");
            assert_eq!(row.parent == TD_NODE_NONE, parent.is_none(), "the parent of {row:?} is not above it");
            assert_eq!(row.level, parent.map_or(1, |parent| parent.level + 1), "{row:?}");
            match row.formula {
                Slots(input) => {
                    inputs_exist(input);
                    assert!(
                        row.unit == TD_UNIT_SLOTS && parent.is_none_or(|p| p.unit == TD_UNIT_SLOTS),
                        "{row:?}"
                    );
                }
                Formula::Corrected(of) => {
                    of.less.iter().chain(of.more).chain([&of.slots]).for_each(|input| inputs_exist(*input));
                    assert!(
                        row.unit == TD_UNIT_SLOTS && parent.is_none_or(|p| p.unit == TD_UNIT_SLOTS),
                        "{row:?}"
                    );
                }
                Formula::Balance(of) => {
                    of.more.iter().chain(of.less).for_each(|input| inputs_exist(*input));
                    assert!(
                        row.unit == TD_UNIT_SLOTS && parent.is_none_or(|p| p.unit == TD_UNIT_SLOTS),
                        "{row:?}"
                    );
                }
                Formula::Retired(RetirementInputs { stalls, not_stalls, retired, dispatched }) => {
                    stalls.iter().chain(*not_stalls).for_each(|input| inputs_exist(*input));
                    [*retired, *dispatched].into_iter().for_each(inputs_exist);
                    assert!(row.unit == TD_UNIT_SLOTS && parent.is_none(), "{row:?}");
                }
                Rest => {
                    let whole = parent.map_or(TD_UNIT_SLOTS, |parent| parent.unit);
                    assert_eq!(whole, row.unit, "{row:?}");
                    let mut below = tree.nodes[place + 1..].iter().filter(|other| other.parent == row.parent);
                    let is_last = match parent {
                        Some(_) => below.next().is_none(),
                        None => below.all(|other| other.divides_all() && !matches!(other.formula, Rest)),
                    };
                    assert!(is_last, "a sibling is below {row:?}");
                    let is_child = |other: &NodeRow| other.parent == row.parent;
                    let first = above.iter().position(is_child).unwrap_or(place);
                    let in_a_row = parent.is_none() || above[first..].iter().all(is_child);
                    assert!(in_a_row, "something is between the siblings of {row:?}");
                }
                Formula::Of(expr) => check_expr(tree, above, expr),
                Formula::NoCounter => {
                    let mut siblings = tree.nodes.iter().filter(|other| other.parent == row.parent);
                    assert!(siblings.all(|other| !matches!(other.formula, Rest)), "the rest of {row:?}");
                    assert!(parent.is_some(), "{row:?}");
                }
            }
        }
        let roots = tree.nodes.iter().filter(|row| row.divides_all()).count();
        assert!(roots <= MOST_ROOTS, "{roots} roots");
        for unsure in tree.unsure {
            let ids = || unsure.counted_in.iter().chain(unsure.published_in);
            assert!(ids().all(|id| crate::model::metric(*id).is_some()), "{unsure:?}");
        }
        check_inputs(tree);
    }

    /// They are all of one kind, each is at its place in a sample, and those of a simulated tree have a number each.
    fn check_inputs(tree: &Tree) {
        for (place, input) in tree.inputs.iter().enumerate() {
            match *input {
                Input::Category(k) => assert!(k == place && k < 8 && !tree.takes_counters()),
                Input::Counter(k) | Input::Cycles(k, _) => {
                    assert!(k == place && k < 15 && tree.takes_counters());
                }
            }
        }
        assert_eq!(tree.per_cycle.len(), if tree.takes_counters() { tree.inputs.len() } else { 0 });
        assert!(tree.per_cycle.iter().all(|count| (0.0..=16.0).contains(count)));
    }

    fn check_expr(tree: &Tree, above: &[NodeRow], expr: &Expr) {
        match expr {
            Expr::Number(number) => assert!(number.is_finite()),
            Expr::Slots => (),
            Expr::Input(input) => assert!(*input < tree.inputs.len()),
            Expr::Node(id) => assert!(above.iter().any(|row| row.id == *id), "{id} is not above"),
            Expr::Sum(a, b)
            | Expr::Difference(a, b)
            | Expr::Product(a, b)
            | Expr::Quotient(a, b)
            | Expr::Least(a, b)
            | Expr::Greatest(a, b)
            | Expr::Part(a, b) => [a, b].into_iter().for_each(|expr| check_expr(tree, above, expr)),
            Expr::IfLess(all) => all.iter().for_each(|expr| check_expr(tree, above, expr)),
        }
    }
}
