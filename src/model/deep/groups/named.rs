//! A group of nodes that somebody names, with what is below them.
#![forbid(unsafe_code)]

use super::super::facts::DeepFacts;
use super::{DeepCore, Draft, NodeNeeds, PlannedGroup, need, put, too_much};
use crate::cpu::deep::DeepNode;
use crate::model::metrics::{self, Metric};
use crate::sys::short;
use std::collections::BTreeSet;

/// Plans a group of these nodes, and of as many below them as it has room for: down to this level, or their own children (0).
///
/// # Errors
/// One of them cannot be counted, or no group has room for all: which ones one has.
pub(in crate::model::deep) fn plan_nodes(
    core: &DeepCore,
    wanted: &[Metric],
    level: u32,
    facts: &DeepFacts,
) -> Result<PlannedGroup, String> {
    let (mut needs, mut drafts) = (Vec::new(), Vec::new());
    let named = |metric: &Metric| {
        let of_text = core.text.node_of(metric.field()).filter(|node| !node.is_part);
        of_text.ok_or_else(|| format!("{} is no node of this CPU's tree", metric.title()))
    };
    let wanted = wanted.iter().map(named).collect::<Result<Vec<&DeepNode>, String>>()?;
    for node in &wanted {
        let cannot = |why| format!("{} cannot be counted here: {why}", node.name.replace('_', " "));
        let draft = core.draft_node(node, &mut needs, facts).map_err(cannot)?;
        put(core, &mut drafts, 0, draft, facts);
    }
    let together = |draft: &Draft| {
        let is_in = |node: &&&DeepNode| draft.listed.contains(&node.name);
        wanted.iter().filter(is_in).map(|node| node.name.replace('_', " ")).collect::<Vec<_>>().join(", ")
    };
    let [_] = &drafts[..] else {
        let lists: Vec<String> = drafts.iter().map(together).collect();
        return Err(format!("one group counts {}, another {}", lists[0], lists[1..].join(", another ")));
    };
    let is_below = |node: &&DeepNode| {
        let parent_is_wanted = || wanted.iter().any(|above| node.parent.as_ref() == Some(&above.name));
        let path = core.path(node);
        let under = wanted.iter().any(|above| above.name != node.name && path.contains(&above.name));
        !node.is_part && if level == 0 { parent_is_wanted() } else { under && node.level <= level }
    };
    let mut below: Vec<&DeepNode> = core.text.nodes.iter().filter(is_below).collect();
    short::sort_by_key(&mut below, |node| node.level);
    for node in below {
        if let Ok(draft) = core.draft_node(node, &mut needs, facts) {
            let both = drafts[0].with(&draft);
            if core.fits(&both, facts) {
                drafts[0] = both;
            }
        }
    }
    Ok(core.group(&drafts[0], &needs))
}

impl<'t> DeepCore<'t> {
    /// A group of one node, which is put with those that have been: of whatever level.
    fn draft_node(
        &self,
        node: &'t DeepNode,
        needs: &mut Vec<NodeNeeds<'t>>,
        facts: &DeepFacts,
    ) -> Result<Draft, String> {
        let metric = metrics::ALL.iter().find(|metric| metric.field() == node.name);
        let metric = metric.ok_or("this version has no number for it")?;
        let mut draft = Draft { listed: self.path(node), ..Draft::default() };
        match self.own_place(&node.name) {
            Some(place) => draft.taken.nodes = BTreeSet::from([place]),
            None => {
                let need = need(node, *metric, self, facts)?;
                (draft.taken, draft.nodes) = (need.taken.clone(), vec![needs.len()]);
                needs.push(need);
            }
        }
        match self.fits(&draft, facts) {
            true => Ok(draft),
            false => Err(too_much(self, &draft.taken, facts)),
        }
    }
}
