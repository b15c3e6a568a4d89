//! Which groups take turns in a thread, so that its regions have some nodes of deeper levels.
#![forbid(unsafe_code)]

use super::{DeepTree, deep_tree};
use crate::model::groups_of_level;
use crate::model::metrics::TD_NODE_NONE;
use crate::options::TurnPart;
use std::path::Path;

/// No group that takes turns measures more nodes of which other groups may know nothing (`is_in_turns`).
pub const MOST_NODES_IN_TURNS: usize = 10;
/// There on hybrid CPUs.
const P_CORES: &str = "/sys/bus/event_source/devices/cpu_core";
/// No thread has more groups that take turns.
pub const MOST_TURNS: usize = 8;

/// A group that takes turns with others in a thread, from one execution of a region to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionTurn {
    /// What opens it.
    pub part: TurnPart,
    /// Nodes below level 1 that are kept of it, at most [`MOST_NODES_IN_TURNS`]; none: all.
    pub nodes: Vec<u32>,
}

impl RegionTurn {
    /// A group that counts level 1 and what is below this node; TD_NODE_NONE: whole levels.
    #[must_use]
    pub fn of_subtree(subtree: u32) -> RegionTurn {
        RegionTurn { part: TurnPart { subtree, group: 0 }, nodes: Vec::new() }
    }
}

/// What counts these nodes of levels 3 to 6, after what counts levels 1 and 2.
///
/// # Errors
/// A node is none or cannot be counted here, they take too many groups, or this CPU has no tree.
pub fn region_turns<'n>(names: impl Iterator<Item = &'n str>) -> Result<Vec<RegionTurn>, String> {
    let tree = deep_tree()
        .ok_or("no tree of deeper levels is published for this CPU, or its core is not counted")?;
    if Path::new(P_CORES).exists() {
        return Err(
            "levels 3 to 6 are of this CPU's P-cores alone, and threads run on its E-cores, too".into()
        );
    }
    let whole = groups_of_level(2, "");
    tree.region_turns(if whole.is_empty() { &[TD_NODE_NONE] } else { &whole }, names)
}

impl DeepTree {
    /// The same of this tree, of whose levels 1 and 2 these parts are counted.
    ///
    /// # Errors
    /// As [`region_turns`].
    pub fn region_turns<'n>(
        &self,
        whole: &[u32],
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<RegionTurn>, String> {
        let nodes = names.map(|name| self.node_of_name(name)).collect::<Result<Vec<u32>, String>>()?;
        let deep = self.groups().iter().filter_map(|group| {
            let nodes: Vec<u32> = group.nodes.iter().filter(|id| nodes.contains(id)).copied().collect();
            let part = TurnPart { subtree: TD_NODE_NONE, group: group.number };
            (!nodes.is_empty()).then_some(RegionTurn { part, nodes })
        });
        if deep.clone().next().is_none() {
            return Err(
                "these nodes are of levels 1 and 2, which are measured with any others: name deeper ones"
                    .into(),
            );
        }
        let whole = whole.iter().map(|subtree| RegionTurn::of_subtree(*subtree));
        let turns: Vec<RegionTurn> = whole.chain(deep).collect();
        if turns.len() > MOST_TURNS {
            return Err(format!(
                "with levels 1 and 2 these nodes take {} groups, and a thread has at most {MOST_TURNS}: name fewer",
                turns.len()
            ));
        }
        match turns.iter().find(|turn| turn.nodes.len() > MOST_NODES_IN_TURNS) {
            Some(turn) => Err(format!(
                "{} of these nodes are of one group, of which at most {MOST_NODES_IN_TURNS} are kept: name fewer",
                turn.nodes.len()
            )),
            None => Ok(turns),
        }
    }
}
