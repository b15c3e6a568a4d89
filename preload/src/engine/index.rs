//! How a region's node is found, whatever the number of names: at sight by where the name is (`Cache`), else by what it says (`Index`).

use super::node::{RegionNode, pages};
use super::thread::ThreadState;
use crate::names::mix;
use std::ffi::{CStr, c_char};
use std::ptr::{addr_of, null_mut};

/// Nodes that a cache has places for at first.
const FIRST: usize = 512;
/// And at most: four for each of 65,536 names.
const MOST: usize = 1 << 18;
/// Places for each node.
const ROOM: usize = 4;

/// A thread's cache: each node has one place or its neighbour, which two share. Never unmapped, nor made smaller: a call of the steady
/// state may be interrupted by a handler whose regions have it grow.
pub struct Cache {
    /// A power of two of them. `HEAD` words before them: by how many bits a square (`of`) is shifted to a place's number.
    places: *mut *mut RegionNode,
}

/// (Two, so that both places that share two nodes are in 16 bytes that begin at a multiple of 16.)
const HEAD: usize = 2;

impl Cache {
    /// Where a name's node of a parent may be, or in the `neighbour`: places that hold a node.
    ///
    /// # Safety
    /// The calling thread's state, which has begun, and a node of it.
    #[inline(always)]
    pub unsafe fn of(
        thread: *mut ThreadState,
        parent: *mut RegionNode,
        name: *const c_char,
    ) -> *mut *mut RegionNode {
        // SAFETY: the caller's word.
        unsafe {
            let places = addr_of!((*thread).cache.places).read_volatile();
            // (Names often lie at equal distances. At some of these a multiplication by a constant maps nearly all to a few places; a
            // square does not.)
            let from = (name as u32).wrapping_add((*parent).spread);
            let square = from.wrapping_mul(from);
            places.add((square >> (Cache::unused_bits(places) & 31)) as usize)
        }
    }

    /// The other place.
    ///
    /// # Safety
    /// A place.
    pub unsafe fn neighbour(place: *mut *mut RegionNode) -> *mut *mut RegionNode {
        place.map_addr(|address| address ^ size_of::<*mut RegionNode>())
    }

    /// The place that has the node, which is below this parent and called so, if it has one; else the first.
    ///
    /// # Safety
    /// As `of`.
    pub unsafe fn place(
        thread: *mut ThreadState,
        parent: *mut RegionNode,
        name: *const c_char,
        node: *mut RegionNode,
    ) -> *mut *mut RegionNode {
        // SAFETY: the caller's word.
        unsafe {
            let first = Cache::of(thread, parent, name);
            let second = Cache::neighbour(first);
            if *second == node { second } else { first }
        }
    }

    /// Gives it a place; who was there takes the neighbour's.
    ///
    /// # Safety
    /// As `of`.
    pub unsafe fn add(
        thread: *mut ThreadState,
        parent: *mut RegionNode,
        name: *const c_char,
        node: *mut RegionNode,
    ) {
        // SAFETY: the caller's word.
        unsafe {
            let place = Cache::place(thread, parent, name, node);
            if *place != node {
                Cache::neighbour(place).write(*place);
                place.write(node);
            }
        }
    }

    /// See `places`.
    ///
    /// # Safety
    /// Places of a cache.
    #[inline(always)]
    unsafe fn unused_bits(places: *mut *mut RegionNode) -> u32 {
        // SAFETY: the caller's word: `set` has written it.
        unsafe { places.cast::<usize>().sub(HEAD).cast::<u32>().read() }
    }

    /// Makes the first; all places have this node, which is below none. None: there is no memory.
    ///
    /// # Safety
    /// The calling thread's state.
    pub unsafe fn begin(thread: *mut ThreadState, root: *mut RegionNode) -> Option<()> {
        // SAFETY: the caller's word.
        unsafe { Cache::set(thread, FIRST, root) }
    }

    /// So many nodes are there: has it grow, if there is memory.
    ///
    /// # Safety
    /// The calling thread's state, in a call of the slow path.
    #[inline]
    pub unsafe fn grow(thread: *mut ThreadState, nodes: usize) {
        // SAFETY: the caller's word.
        unsafe {
            let places = 1 << (u32::BITS - Cache::unused_bits((*thread).cache.places));
            if nodes * ROOM > places && places < MOST {
                Cache::set(thread, 4 * places, ThreadState::root(thread));
            }
        }
    }

    unsafe fn set(thread: *mut ThreadState, count: usize, root: *mut RegionNode) -> Option<()> {
        // SAFETY: new memory for so many pointers, and the thread's own cache.
        unsafe {
            let all: *mut usize = pages((HEAD + count) * size_of::<usize>()).ok()?.cast();
            all.write((u32::BITS - count.ilog2()) as usize);
            let places: *mut *mut RegionNode = all.add(HEAD).cast();
            (0..count).for_each(|k| places.add(k).write(root));
            (&raw mut (*thread).cache.places).write_volatile(places);
        }
        Some(())
    }
}

/// All of a thread's nodes but its own, by their parents and names: a table that is at most half full. Zeros are an empty one.
pub struct Index {
    slots: *mut *mut RegionNode,
    /// A power of two, or 0.
    count: usize,
    used: usize,
}

/// What tells a node from others, mostly.
///
/// # Safety
/// A node.
pub unsafe fn hash(within: *const RegionNode, name: &CStr) -> u32 {
    let words = name.to_bytes().chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    });
    (words.fold(within as u64, mix) >> 32) as u32
}

impl Index {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// The node of this hash and name below another; NULL: there is none.
    ///
    /// # Safety
    /// Of the calling thread's; a C string.
    pub unsafe fn find(&self, within: *mut RegionNode, name: *const c_char, hash: u32) -> *mut RegionNode {
        if self.count == 0 {
            return null_mut();
        }
        let mut at = hash as usize;
        loop {
            // SAFETY: within the table, of which half is NULL; nodes stay as long as the thread's state.
            unsafe {
                let node = self.slots.add(at & (self.count - 1)).read();
                let same = |node: *mut RegionNode| {
                    (*node).hash == hash && (*node).parent == within && (*node).name.is(name)
                };
                if node.is_null() || same(node) {
                    return node;
                }
            }
            at += 1;
        }
    }

    /// Whether there is room for one more: grows if there is not.
    pub fn has_room(&mut self) -> bool {
        const FIRST: usize = 512;
        if 2 * self.used < self.count {
            return true;
        }
        let count = (2 * self.count).max(FIRST);
        let Ok(slots) = pages(count * size_of::<*mut RegionNode>()) else { return false };
        let old = std::mem::replace(self, Index { slots: slots.cast(), count, used: 0 });
        // SAFETY: the old table's nodes, and its memory, which nobody is at: signals are blocked.
        unsafe {
            for at in 0..old.count {
                let node = old.slots.add(at).read();
                if !node.is_null() {
                    self.add(node);
                }
            }
            if old.count > 0 {
                libc::munmap(old.slots.cast(), old.count * size_of::<*mut RegionNode>());
            }
        }
        true
    }

    /// Adds a node, for which there is room.
    ///
    /// # Safety
    /// Of the calling thread's, and none like it is there.
    pub unsafe fn add(&mut self, node: *mut RegionNode) {
        // SAFETY: within the table, of which more than half is NULL.
        unsafe {
            let mut at = (*node).hash as usize;
            let slot = loop {
                let slot = self.slots.add(at & (self.count - 1));
                if slot.read().is_null() {
                    break slot;
                }
                at += 1;
            };
            slot.write(node);
        }
        self.used += 1;
    }
}
