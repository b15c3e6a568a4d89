//! The tree of a thread's regions: found by name, and made.

use super::index::{self, Cache};
use super::thread::ThreadState;
use super::totals::SoFar;
use crate::name::Name;
use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::mem::offset_of;
use std::ptr::{addr_of, addr_of_mut, null_mut};
use std::sync::atomic::Ordering::Release;
use topdown::{Increments, Sum};
use topdown_table::{Measurement, NAME, NONE, REGION, Record};

const _: () = {
    assert!(
        size_of::<Increments>() == size_of::<topdown_table::RecordedCounts>()
            && align_of::<topdown_table::RecordedCounts>() == 16
    );
    assert!(offset_of!(Increments, counter) == offset_of!(topdown_table::RecordedCounts, counter));
};

/// Bytes of memory that nodes are taken from, at a time; for good, as threads' states are.
const ARENA: usize = 1 << 16;

/// A region in the place where it began.
#[repr(C, align(128))]
pub struct RegionNode {
    /// What was measured, but for what is in `counted`. How many executions there were and what they took is in `measurement`, and
    /// here only while a call of the slow path needs it.
    pub sum: Sum,
    pub parent: *mut RegionNode,
    /// Kept in its record, or in the arena if there is none.
    pub name: Name,
    /// NULL: there was no room.
    pub record: *mut Record,
    /// The one of the record's that holds.
    pub measurement: *mut Measurement,
    /// The one of the record's that holds, and the other one.
    pub counted: [*mut Increments; 2],
    pub number: u32,
    /// All its executions were begun by td_region_begin, as those of nothing are.
    pub direct: bool,
    /// Of the name (`index`).
    pub hash: u32,
    /// What the cache's places of its children begin from: odd.
    pub spread: u32,
    pub children: *mut RegionNode,
    pub sibling: *mut RegionNode,
    /// What does not count for a program that asks for totals.
    pub since: SoFar,
    /// Where groups take turns: the sum as the last turn in which the region was executed ended; NULL: there was none.
    pub then: *mut Sum,
}

/// `spread` of a thread's own node.
const ROOT_SPREAD: u32 = 0x9e37_79b1;

impl RegionNode {
    /// One of which nothing is measured yet.
    pub fn new(parent: *mut RegionNode, name: Name, record: *mut Record, number: u32) -> RegionNode {
        let (measurement, counted) = if record.is_null() {
            (null_mut(), [null_mut(); 2])
        } else {
            // SAFETY: a record of the table's.
            unsafe {
                let counted = [0, 1].map(|which| addr_of_mut!((*record).counted[which]).cast());
                (addr_of_mut!((*record).measurement[0]), counted)
            }
        };
        RegionNode {
            parent,
            name,
            record,
            measurement,
            counted,
            number,
            direct: true,
            hash: 0,
            spread: ROOT_SPREAD,
            children: null_mut(),
            sibling: null_mut(),
            since: SoFar::default(),
            sum: Sum::default(),
            then: null_mut(),
        }
    }
}

/// The node of this name below another, found or made.
///
/// # Safety
/// The calling thread's state and one of its nodes; a C string.
#[cold]
pub unsafe fn look_up(
    thread: *mut ThreadState,
    within: *mut RegionNode,
    name: *const c_char,
) -> Result<*mut RegionNode, c_int> {
    // SAFETY: nodes stay as long as the thread's state, and no one else is at them.
    unsafe {
        let text = CStr::from_ptr(name);
        match text.count_bytes() {
            0 => return Err(-libc::EINVAL),
            1..=NAME => {}
            _ => return Err(-libc::ENAMETOOLONG),
        }
        let hash = index::hash(within, text);
        let mut node = (*thread).index.find(within, name, hash);
        if node.is_null() {
            node = new_region(thread, within, text, hash)?;
        }
        // (without a record there is no steady state)
        if !(*node).record.is_null() {
            Cache::add(thread, within, name, node);
        }
        Ok(node)
    }
}

unsafe fn new_region(
    thread: *mut ThreadState,
    within: *mut RegionNode,
    name: &CStr,
    hash: u32,
) -> Result<*mut RegionNode, c_int> {
    // SAFETY: as `look_up`; memory of the arena is the thread's own, and the record nobody else's.
    unsafe {
        if !(*thread).index.has_room() {
            return Err(-libc::ENOMEM);
        }
        Cache::grow(thread, (*thread).index.len());
        let node: *mut RegionNode = allocate(thread, size_of::<RegionNode>())?.cast();
        let (record, number) = match (*(*thread).tables).take(name) {
            Some((record, number)) => {
                (*record).parent = (*within).number;
                (*record).thread = (*ThreadState::root(thread)).number;
                (*record).core = (*(*thread).record).core;
                (*record).kind.store(REGION, Release);
                (record, number)
            }
            None => (null_mut(), NONE),
        };
        let own = if record.is_null() {
            let copy = allocate(thread, name.count_bytes() + 1)?;
            copy.copy_from_nonoverlapping(name.as_ptr().cast(), name.count_bytes() + 1);
            copy.cast_const()
        } else {
            addr_of!((*record).name).cast()
        };
        node.write(RegionNode {
            sibling: (*within).children,
            hash,
            spread: hash | 1,
            ..RegionNode::new(within, Name::new(name, own.cast()), record, number)
        });
        (*within).children = node;
        (*thread).index.add(node);
        Ok(node)
    }
}

/// The node of the thread itself, below which all others are.
///
/// # Safety
/// The state of a thread that begins, and its record.
pub unsafe fn new_root(
    thread: *mut ThreadState,
    name: &CStr,
    record: *mut Record,
    number: u32,
) -> Option<*mut RegionNode> {
    // SAFETY: the record's name lives as long as the table is mapped.
    unsafe {
        let node: *mut RegionNode = allocate(thread, size_of::<RegionNode>()).ok()?.cast();
        let name = Name::new(name, addr_of!((*record).name).cast());
        node.write(RegionNode::new(null_mut(), name, record, number));
        Some(node)
    }
}

/// A node in no tree, with a record in no table.
///
/// # Safety
/// The calling thread's state.
pub unsafe fn new_apart(thread: *mut ThreadState) -> Option<*mut RegionNode> {
    // SAFETY: memory of that size, of which zeros are a record.
    unsafe {
        let record: *mut Record = pages(size_of::<Record>()).ok()?.cast();
        let node: *mut RegionNode = allocate(thread, size_of::<RegionNode>()).ok()?.cast();
        node.write(RegionNode::new(null_mut(), Name::new(c"", c"".as_ptr()), record, NONE));
        Some(node)
    }
}

/// Memory of the thread's own, which stays until the thread ends: from mmap(2), since this may be in a signal handler.
pub(super) unsafe fn allocate(thread: *mut ThreadState, size: usize) -> Result<*mut u8, c_int> {
    // SAFETY: the calling thread's state.
    unsafe {
        let size = size.next_multiple_of(align_of::<RegionNode>());
        if (*thread).arena.1 < size {
            (*thread).arena = (pages(ARENA).map_err(|_| -libc::ENOMEM)?, ARENA);
        }
        let at = (*thread).arena.0;
        (*thread).arena = (at.add(size), (*thread).arena.1 - size);
        Ok(at)
    }
}

/// Zeroed memory that a forked child finds zeroed again.
pub fn pages(size: usize) -> io::Result<*mut u8> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel likes.
    unsafe {
        let at = libc::mmap(null_mut(), size, access, flags, -1, 0);
        if at == libc::MAP_FAILED || libc::madvise(at, size, libc::MADV_WIPEONFORK) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(at.cast())
    }
}
