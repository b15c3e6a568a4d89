//! What the nanoseconds of a stack divide into: those of each node of level 1, as the shares of the innermost function are, and
//! those of which it cannot be told.
#![forbid(unsafe_code)]

use super::index::FunctionIndex;
use super::name;
use crate::profile::{CallStack, Profile};

pub(super) struct Parts<'p> {
    profile: &'p Profile,
    pub index: FunctionIndex<'p>,
    /// Nodes of level 1 of all kinds of cores, by perf's names.
    pub names: Vec<&'static str>,
}

impl<'p> Parts<'p> {
    pub fn new(profile: &'p Profile) -> Parts<'p> {
        let mut names = Vec::new();
        for node in profile.cores.iter().flat_map(|core| &core.nodes).filter(|node| node.level == 1) {
            if !names.contains(&name(node)) {
                names.push(name(node));
            }
        }
        Parts { profile, index: FunctionIndex::new(profile), names }
    }

    /// Whether there are some of which it cannot be told. (Of an event no slots are)
    pub fn has_unknown(&self) -> bool {
        self.profile.held.is_none()
    }

    /// All, those of each name, and those of which it cannot be told.
    pub fn of(&self, stack: &'p CallStack, ns: u64) -> Vec<i64> {
        let leaf = stack.functions().last().and_then(|leaf| self.index.find(stack.core, leaf));
        let nodes = &self.profile.cores[stack.core].nodes;
        let told = leaf.and_then(|function| function.own.told(nodes).ok());
        let of = |wanted: &&str| {
            let node = nodes.iter().position(|node| name(node) == *wanted);
            told.zip(node).map_or(0, |(told, node)| (told.shares[node].value * ns as f64).round() as i64)
        };
        let unknown = self.has_unknown().then_some(if told.is_none() { ns as i64 } else { 0 });
        [ns as i64].into_iter().chain(self.names.iter().map(of)).chain(unknown).collect()
    }
}
