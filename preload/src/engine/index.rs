//! How a region's node is found by what its name says, whatever the number of names.
#![forbid(unsafe_code)]

use super::node::RegionNode;
use crate::arena::Places;
use crate::names::mix;
use std::ffi::CStr;

const FIRST: usize = 512;

/// All of a thread's nodes but its own, by their parents and names: a table that is at most half full.
pub struct NodeIndex {
    /// A power of two of them, or None.
    places: Option<Places<RegionNode>>,
    used: usize,
}

/// What tells a node from others, mostly.
pub fn hash(within: &RegionNode, name: &CStr) -> u32 {
    let words = name.to_bytes().chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    });
    (words.fold(std::ptr::from_ref(within) as u64, mix) >> 32) as u32
}

impl NodeIndex {
    pub const EMPTY: NodeIndex = NodeIndex { places: None, used: 0 };

    /// How many there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// The node of this hash and name below another.
    pub fn find(&self, within: &RegionNode, name: &CStr, hash: u32) -> Option<&'static RegionNode> {
        let places = self.places.as_ref()?;
        (hash as usize..)
            .map_while(|at| places[at & (places.len() - 1)].get())
            .find(|node| node.hash() == hash && node.is_within(within) && node.is_called(name))
    }

    /// Whether there is room for one more: the table grows if there is not.
    pub fn has_room(&mut self) -> bool {
        let count = self.places.as_ref().map_or(0, |places| places.len());
        if 2 * self.used < count {
            return true;
        }
        let Some(places) = Places::new((2 * count).max(FIRST)) else { return false };
        if let Some(old) = &self.places {
            old.iter().filter_map(|place| place.get()).for_each(|node| put(&places, node));
        }
        self.places = Some(places);
        true
    }

    /// Adds a node, for which there is room, and none like it.
    pub fn add(&mut self, node: &'static RegionNode) {
        if let Some(places) = &self.places {
            put(places, node);
            self.used += 1;
        }
    }
}

/// In the first free place from that of its hash on; there is one.
fn put(places: &Places<RegionNode>, node: &'static RegionNode) {
    let mut all = (node.hash() as usize..).map(|at| &places[at & (places.len() - 1)]);
    if let Some(place) = all.find(|place| place.get().is_none()) {
        place.set(Some(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::name::Name;
    use std::ffi::CString;

    fn roots(arena: &Arena) -> [&'static RegionNode; 2] {
        [0, 1].map(|_| RegionNode::new(arena, None, Name::new(c"thread"), 0, None).unwrap())
    }

    #[test]
    fn each_node_is_found_by_its_parent_and_name_as_the_table_grows() {
        let arena = Arena::new();
        let roots = roots(&arena);
        let (mut index, mut nodes) = (NodeIndex::EMPTY, Vec::new());
        for k in 0..2000 {
            let text: &'static CStr =
                Box::leak(CString::new(format!("region {}", k / 2)).unwrap().into_boxed_c_str());
            let within = roots[k % 2];
            // (a few hashes, so that many nodes are not in the first place)
            let number = hash(within, text) & !0xff;
            assert!(index.find(within, text, number).is_none());
            assert!(index.has_room());
            let node = RegionNode::new(&arena, Some(within), Name::new(text), number, None).unwrap();
            nodes.push((within, text, node));
            index.add(nodes[k].2);
            assert_eq!(index.len(), k + 1);
        }
        for (within, text, node) in nodes {
            assert!(index.find(within, text, node.hash()).is_some_and(|found| std::ptr::eq(found, node)));
        }
    }

    #[test]
    fn hashes_tell_parents_and_names_apart() {
        let roots = roots(&Arena::new());
        assert_ne!(hash(roots[0], c"a"), hash(roots[1], c"a"));
        assert_ne!(hash(roots[0], c"a"), hash(roots[0], c"b"));
        assert_eq!(hash(roots[0], c"a long name of a region"), hash(roots[0], c"a long name of a region"));
    }
}
