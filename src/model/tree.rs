//! Trees of metrics, as data: which nodes a CPU has, and the formula of each. Names, parents and levels are those of
//! perf's metrics (tools/perf/pmu-events).

use std::ffi::CStr;

/// Of td_node.parent: the node is a root.
pub const TD_NODE_NONE: u32 = 0;
/// tma_retiring
pub const TD_NODE_RETIRING: u32 = 1;
/// tma_bad_speculation
pub const TD_NODE_BAD_SPECULATION: u32 = 2;
/// tma_frontend_bound
pub const TD_NODE_FRONTEND_BOUND: u32 = 3;
/// tma_backend_bound
pub const TD_NODE_BACKEND_BOUND: u32 = 4;
/// tma_heavy_operations
pub const TD_NODE_HEAVY_OPERATIONS: u32 = 5;
/// tma_light_operations
pub const TD_NODE_LIGHT_OPERATIONS: u32 = 6;
/// tma_branch_mispredicts
pub const TD_NODE_BRANCH_MISPREDICTS: u32 = 7;
/// tma_machine_clears
pub const TD_NODE_MACHINE_CLEARS: u32 = 8;
/// tma_fetch_latency
pub const TD_NODE_FETCH_LATENCY: u32 = 9;
/// tma_fetch_bandwidth
pub const TD_NODE_FETCH_BANDWIDTH: u32 = 10;
/// tma_memory_bound
pub const TD_NODE_MEMORY_BOUND: u32 = 11;
/// tma_core_bound
pub const TD_NODE_CORE_BOUND: u32 = 12;

/// A share of the pipeline slots.
pub const TD_UNIT_SLOTS: u32 = 1;
/// A share of the core's cycles.
pub const TD_UNIT_CLOCKS: u32 = 2;

/// What is counted on a CPU, and the metrics that follow from it.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Where a sample has each input of the formulas.
    pub inputs: &'static [Input],
    /// The input that counts the core's cycles, if a node is a share of them.
    pub clocks: Option<usize>,
    /// Parents before their children, so that one pass evaluates all.
    pub nodes: &'static [Row],
}

/// A number in a sample that grows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    /// Slots of a category, in the order of the fields of PERF_METRICS.
    Category(usize),
    /// `td_sample.counter[]`: exact, but for what passes at the edges of a region.
    #[cfg_attr(not(test), expect(dead_code, reason = "for CPUs whose events are all plain counters"))]
    Counter(usize),
}

/// A node of a tree. The same name has the same id in all trees.
#[derive(Debug)]
pub(crate) struct Row {
    pub id: u32,
    pub name: &'static CStr,
    pub parent: u32,
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
    /// What the siblings, all above it, leave of the parent.
    Rest,
    /// Arithmetic. The value is a share, between 0 and 1, whatever the parent's is.
    #[cfg_attr(not(test), expect(dead_code, reason = "for deeper levels"))]
    Of(&'static Expr),
}

/// Arithmetic over intervals.
#[derive(Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "as Formula::Of"))]
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
}

/// No tree has more nodes.
pub(crate) const MOST_NODES: usize = 32;

const fn root(id: u32, name: &'static CStr, input: usize) -> Row {
    Row { id, name, parent: TD_NODE_NONE, level: 1, unit: TD_UNIT_SLOTS, formula: Formula::Slots(input) }
}

const fn child(id: u32, name: &'static CStr, parent: u32, formula: Formula) -> Row {
    Row { id, name, parent, level: 2, unit: TD_UNIT_SLOTS, formula }
}

use Formula::{Rest, Slots};

/// CPUs with PERF_METRICS.
pub(crate) static PERF_METRICS: Tree = Tree {
    inputs: &[
        Input::Category(0),
        Input::Category(1),
        Input::Category(2),
        Input::Category(3),
        Input::Category(4),
        Input::Category(5),
        Input::Category(6),
        Input::Category(7),
    ],
    clocks: None,
    nodes: &[
        root(TD_NODE_RETIRING, c"tma_retiring", 0),
        root(TD_NODE_BAD_SPECULATION, c"tma_bad_speculation", 1),
        root(TD_NODE_FRONTEND_BOUND, c"tma_frontend_bound", 2),
        root(TD_NODE_BACKEND_BOUND, c"tma_backend_bound", 3),
        child(TD_NODE_HEAVY_OPERATIONS, c"tma_heavy_operations", TD_NODE_RETIRING, Slots(4)),
        child(TD_NODE_LIGHT_OPERATIONS, c"tma_light_operations", TD_NODE_RETIRING, Rest),
        child(TD_NODE_BRANCH_MISPREDICTS, c"tma_branch_mispredicts", TD_NODE_BAD_SPECULATION, Slots(5)),
        child(TD_NODE_MACHINE_CLEARS, c"tma_machine_clears", TD_NODE_BAD_SPECULATION, Rest),
        child(TD_NODE_FETCH_LATENCY, c"tma_fetch_latency", TD_NODE_FRONTEND_BOUND, Slots(6)),
        child(TD_NODE_FETCH_BANDWIDTH, c"tma_fetch_bandwidth", TD_NODE_FRONTEND_BOUND, Rest),
        child(TD_NODE_MEMORY_BOUND, c"tma_memory_bound", TD_NODE_BACKEND_BOUND, Slots(7)),
        child(TD_NODE_CORE_BOUND, c"tma_core_bound", TD_NODE_BACKEND_BOUND, Rest),
    ],
};

/// E-cores. Their sample has the slots of each category as PERF_METRICS would give them.
pub(crate) static E_CORES: Tree = Tree {
    inputs: &[Input::Category(0), Input::Category(1), Input::Category(2), Input::Category(3)],
    clocks: None,
    nodes: &[
        root(TD_NODE_RETIRING, c"tma_retiring", 0),
        root(TD_NODE_BAD_SPECULATION, c"tma_bad_speculation", 1),
        root(TD_NODE_FRONTEND_BOUND, c"tma_frontend_bound", 2),
        root(TD_NODE_BACKEND_BOUND, c"tma_backend_bound", 3),
    ],
};

pub(crate) static TREES: [&Tree; 2] = [&PERF_METRICS, &E_CORES];

/// The name of the node with this id, whichever tree has it.
pub(crate) fn name(id: u32) -> Option<&'static CStr> {
    TREES.iter().flat_map(|tree| tree.nodes).find(|row| row.id == id).map(|row| row.name)
}

impl Tree {
    /// The place of a node in the table.
    pub fn place(&self, id: u32) -> Option<usize> {
        self.nodes.iter().position(|row| row.id == id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What evaluation relies on.
    pub(crate) fn check(tree: &Tree) {
        let inputs_exist = |input: usize| assert!(input < tree.inputs.len());
        assert!(tree.nodes.len() <= MOST_NODES);
        tree.clocks.inspect(|input| inputs_exist(*input));
        for (place, row) in tree.nodes.iter().enumerate() {
            let above = &tree.nodes[..place];
            assert!(row.id != TD_NODE_NONE && above.iter().all(|other| other.id != row.id), "{row:?}");
            assert!(
                row.unit == TD_UNIT_SLOTS || row.unit == TD_UNIT_CLOCKS && tree.clocks.is_some(),
                "{row:?}"
            );
            let parent = above.iter().find(|other| other.id == row.parent);
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
                Rest => {
                    assert!(parent.is_some_and(|parent| parent.unit == row.unit), "{row:?}");
                    let below = &tree.nodes[place + 1..];
                    assert!(
                        below.iter().all(|other| other.parent != row.parent),
                        "a sibling is below {row:?}"
                    );
                }
                Formula::Of(expr) => check_expr(tree, above, expr),
            }
        }
    }

    fn check_expr(tree: &Tree, above: &[Row], expr: &Expr) {
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
            | Expr::Greatest(a, b) => [a, b].into_iter().for_each(|expr| check_expr(tree, above, expr)),
        }
    }

    #[test]
    fn each_tree_can_be_evaluated_in_one_pass() {
        TREES.into_iter().for_each(check);
    }

    #[test]
    fn a_name_and_an_id_go_together_in_all_trees() {
        let rows = || TREES.iter().flat_map(|tree| tree.nodes);
        for a in rows() {
            assert!(a.name.to_str().unwrap().starts_with("tma_"), "{a:?}");
            for b in rows() {
                assert_eq!(a.id == b.id, a.name == b.name, "{a:?} {b:?}");
            }
            assert_eq!(name(a.id), Some(a.name));
        }
        assert_eq!((name(TD_NODE_NONE), name(u32::MAX)), (None, None));
    }
}
