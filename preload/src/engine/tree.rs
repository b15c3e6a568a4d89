//! The tree of a thread's regions: nodes are found by name, and made.
#![forbid(unsafe_code)]

use super::cache::Cache;
use super::index::{self, NodeIndex};
use super::node::RegionNode;
use crate::arena::{ALIGN, Arena};
use crate::name::Name;
use crate::record::OwnRecord;
use crate::tables::TableFile;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering::Release;
use topdown::Sum;
use topdown_table::{NAME, NONE, REGION};

/// What a node and its name take of an arena at most.
const NODE: usize = size_of::<RegionNode>().next_multiple_of(ALIGN) + (NAME + 1).next_multiple_of(ALIGN);

/// A thread's nodes, and how they are found. Where groups take turns: the trees of all of them.
pub struct ThreadNodes {
    arena: Arena,
    tables: &'static TableFile,
    pub cache: Cache,
    index: RefCell<NodeIndex>,
    /// Counts executions of nothing; None at first.
    empty: Cell<Option<&'static RegionNode>>,
}

impl ThreadNodes {
    /// The thread's own node, of its record, and none below it. None: there is no memory.
    pub fn new(
        tables: &'static TableFile,
        record: OwnRecord,
        number: u32,
    ) -> Option<(ThreadNodes, &'static RegionNode)> {
        let arena = Arena::new();
        let root = new_root(&arena, record, number)?;
        let cache = Cache::new(root)?;
        let nodes = ThreadNodes {
            arena,
            tables,
            cache,
            index: RefCell::new(NodeIndex::EMPTY),
            empty: Cell::new(None),
        };
        Some((nodes, root))
    }

    pub fn tables(&self) -> &'static TableFile {
        self.tables
    }

    /// One more of the thread's own nodes.
    pub fn new_root(&self, record: OwnRecord, number: u32) -> Option<&'static RegionNode> {
        new_root(&self.arena, record, number)
    }

    /// The node of this name below another, found or made, in the tree of this thread's own node.
    #[cold]
    pub fn look_up(
        &self,
        root: &'static RegionNode,
        within: &'static RegionNode,
        name: &CStr,
    ) -> Result<&'static RegionNode, c_int> {
        match name.count_bytes() {
            0 => return Err(-libc::EINVAL),
            1..=NAME => {}
            _ => return Err(-libc::ENAMETOOLONG),
        }
        let hash = index::hash(within, name);
        let found = self.index.borrow().find(within, name, hash);
        let node = match found {
            Some(node) => node,
            None => self.new_region(root, within, name, hash)?,
        };
        // (without a record there is no steady state)
        if node.record().is_some() {
            self.cache.add(within, name.as_ptr(), node);
        }
        Ok(node)
    }

    fn new_region(
        &self,
        root: &'static RegionNode,
        within: &'static RegionNode,
        name: &CStr,
        hash: u32,
    ) -> Result<&'static RegionNode, c_int> {
        let mut index = self.index.borrow_mut();
        // (before a record is taken)
        if !index.has_room() || !self.arena.secure(NODE) {
            return Err(-libc::ENOMEM);
        }
        self.cache.grow(index.len(), root);
        let record = self.tables.take(name);
        if record.is_none() {
            self.tables.refuse();
        }
        let kept = match record {
            Some((record, _)) => Some(record.name()),
            None => self.arena.keep_text(name),
        };
        let name = kept.map(Name::new).ok_or(-libc::ENOMEM)?;
        let node = RegionNode::new(&self.arena, Some(within), name, hash, record).ok_or(-libc::ENOMEM)?;
        if let (Some((record, _)), Some(own)) = (record, root.record()) {
            record.parent().set(within.number());
            record.thread().set(root.number());
            record.core().set(own.core().get());
            record.kind().store(REGION, Release);
        }
        index.add(node);
        Ok(node)
    }

    /// The node that counts executions of nothing: it is in no tree, and its record in no table.
    pub fn empty(&self) -> Option<&'static RegionNode> {
        if self.empty.get().is_none() {
            let record = (OwnRecord::apart()?, NONE);
            self.empty.set(RegionNode::new(&self.arena, None, Name::new(c""), 0, Some(record)));
        }
        self.empty.get()
    }

    /// Whether the node is `empty`.
    #[inline]
    pub fn is_empty(&self, node: &RegionNode) -> bool {
        self.empty.get().is_some_and(|empty| std::ptr::eq(empty, node))
    }

    /// A sum for what a node had at the end of a turn.
    pub fn new_sum(&self) -> Option<&'static Cell<Sum>> {
        self.arena.keep(Cell::new(Sum::default()))
    }
}

fn new_root(arena: &Arena, record: OwnRecord, number: u32) -> Option<&'static RegionNode> {
    RegionNode::new(arena, None, Name::new(record.name()), 0, Some((record, number)))
}

/// The nodes of the tree below a thread's own node, and that itself, each before those below it.
pub fn walk(root: &'static RegionNode) -> impl Iterator<Item = &'static RegionNode> {
    std::iter::successors(Some(root), |node| following(node))
}

/// The node after this one in a walk through the whole tree.
fn following(node: &'static RegionNode) -> Option<&'static RegionNode> {
    node.first_child().or_else(|| {
        let ancestors = std::iter::successors(Some(node), |node| node.parent());
        ancestors.map(|node| (node.parent(), node.sibling())).find_map(|(_, sibling)| sibling)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_comes_to_each_node_once_and_to_parents_first() {
        let arena = Arena::new();
        let node =
            |within, number| RegionNode::new(&arena, within, Name::new(c"region"), number, None).unwrap();
        let mut all = vec![node(None, 0)];
        for number in 1..40_u32 {
            let within = all[(number * 7 % 5 % number) as usize];
            all.push(node(Some(within), number));
        }
        let walked: Vec<u32> = walk(all[0]).map(RegionNode::hash).collect();
        let mut sorted = walked.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..40).collect::<Vec<_>>());
        let place = |number: u32| walked.iter().position(|one| *one == number);
        for node in &all[1..] {
            assert!(node.parent().is_some_and(|parent| place(parent.hash()) < place(node.hash())));
        }
    }
}
