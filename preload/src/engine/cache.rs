//! How a region's node is found at sight, by where its name is, whatever the number of names.

use super::node::RegionNode;
use crate::arena;
use std::cell::Cell;
use std::ffi::c_char;
use std::ptr::null;

/// Nodes that a cache has places for at first.
const FIRST: usize = 512;
/// And at most: four for each of 65,536 names.
const MOST: usize = 1 << 18;
/// Places for each node.
const ROOM: usize = 4;

/// A thread's cache: each node has one place or its neighbour, which two share. Never unmapped, nor made smaller: a call of the steady
/// state may be interrupted by a handler whose regions have it grow.
pub struct Cache {
    /// A power of two of them. `HEAD` words before them: by how many bits a square (`place`) is shifted to a place's number.
    places: Cell<*const Cell<&'static RegionNode>>,
}

/// (Two, so that both places that share two nodes are in 16 bytes that begin at a multiple of 16.)
const HEAD: usize = 2;

/// A place of a cache, which has a node.
#[derive(Clone, Copy)]
pub struct CachePlace(*const Cell<&'static RegionNode>);

impl CachePlace {
    #[inline(always)]
    pub fn get(self) -> &'static RegionNode {
        // SAFETY: places stay for good, and have nodes.
        unsafe { (*self.0).get() }
    }

    /// Has another node; the one before.
    pub fn replace(self, node: &'static RegionNode) -> &'static RegionNode {
        // SAFETY: as above.
        unsafe { (*self.0).replace(node) }
    }

    /// The other place.
    #[inline]
    pub fn neighbour(self) -> CachePlace {
        CachePlace(self.0.map_addr(|address| address ^ size_of::<*const RegionNode>()))
    }
}

impl Cache {
    /// All places have this node, which is below none. None: there is no memory.
    pub fn new(root: &'static RegionNode) -> Option<Cache> {
        let cache = Cache { places: Cell::new(null()) };
        cache.make(FIRST, root)?;
        Some(cache)
    }

    /// Where a name's node of a parent may be, or in the `neighbour`.
    #[inline(always)]
    pub fn place(&self, parent: &RegionNode, name: *const c_char) -> CachePlace {
        // SAFETY: the places have so many bits, whatever the name is.
        unsafe {
            let places = self.places.as_ptr().read_volatile();
            // (Names often lie at equal distances. At some of these a multiplication by a constant maps nearly all to a few places; a
            // square does not.)
            let from = (name as u32).wrapping_add(parent.spread());
            let square = from.wrapping_mul(from);
            CachePlace(places.add((square >> (Cache::unused_bits(places) & 31)) as usize))
        }
    }

    /// The place that has the node, which is below this parent and called so, if it has one; else the first.
    pub fn place_of(&self, parent: &RegionNode, name: *const c_char, node: &RegionNode) -> CachePlace {
        let first = self.place(parent, name);
        let second = first.neighbour();
        if std::ptr::eq(second.get(), node) { second } else { first }
    }

    /// Gives the node a place; who was there takes the neighbour's.
    pub fn add(&self, parent: &RegionNode, name: *const c_char, node: &'static RegionNode) {
        let place = self.place_of(parent, name, node);
        if !std::ptr::eq(place.get(), node) {
            place.neighbour().replace(place.get());
            place.replace(node);
        }
    }

    /// See `places`.
    ///
    /// # Safety
    /// Places of a cache.
    #[inline(always)]
    unsafe fn unused_bits(places: *const Cell<&'static RegionNode>) -> u32 {
        // SAFETY: the caller's word: `make` has written it.
        unsafe { places.cast::<usize>().sub(HEAD).cast::<u32>().read() }
    }

    /// So many nodes are there: the cache grows, if there is memory. All places have the thread's own node then.
    #[inline]
    pub fn grow(&self, nodes: usize, root: &'static RegionNode) {
        // SAFETY: as `place`.
        let places = 1 << (u32::BITS - unsafe { Cache::unused_bits(self.places.get()) });
        if nodes * ROOM > places && places < MOST {
            self.make(4 * places, root);
        }
    }

    fn make(&self, count: usize, root: &'static RegionNode) -> Option<()> {
        let words = arena::words(HEAD + count)?;
        words[0].set((u32::BITS - count.ilog2()) as usize);
        words[HEAD..].iter().for_each(|place| place.set(std::ptr::from_ref(root) as usize));
        let places = words[HEAD..].as_ptr().cast();
        // SAFETY: what a handler finds is the old ones or these.
        unsafe { self.places.as_ptr().write_volatile(places) };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::name::Name;

    #[test]
    fn nodes_are_found_where_their_names_are_as_the_cache_grows() {
        let arena = Arena::new();
        let node = |within, hash| RegionNode::new(&arena, within, Name::new(c""), hash, None).unwrap();
        let root = node(None, 0);
        let cache = Cache::new(root).unwrap();
        let text = [0; 600];
        let name = |k: usize| text[k..].as_ptr();
        let nodes: Vec<_> = (0..600).map(|k| node(Some(root), k)).collect();
        let mut found = 0;
        for (k, node) in nodes.iter().enumerate() {
            cache.grow(k + 1, root);
            cache.add(root, name(k), node);
            let place = cache.place_of(root, name(k), node);
            assert!(std::ptr::eq(place.get(), *node));
            cache.add(root, name(k), node); // it is there already
            assert!(std::ptr::eq(cache.place_of(root, name(k), node).get(), *node));
        }
        for (k, node) in nodes.iter().enumerate() {
            found += usize::from(std::ptr::eq(cache.place_of(root, name(k), node).get(), *node));
        }
        assert!(found > 60, "{found}"); // the cache has grown last at 512 nodes
    }

    #[test]
    fn two_nodes_share_two_places() {
        let arena = Arena::new();
        let node = |within, hash| RegionNode::new(&arena, within, Name::new(c""), hash, None).unwrap();
        let root = node(None, 0);
        let [one, other] = [1, 2].map(|hash| node(Some(root), hash));
        let cache = Cache::new(root).unwrap();
        let name = c"name".as_ptr();
        cache.add(root, name, one);
        cache.add(root, name, other);
        let place = cache.place(root, name);
        assert!(std::ptr::eq(place.get(), other) && std::ptr::eq(place.neighbour().get(), one));
        assert!(std::ptr::eq(place.neighbour().neighbour().get(), other));
    }
}
