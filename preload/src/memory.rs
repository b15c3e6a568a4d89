//! Memory of this library's own, so that it never calls the program's malloc: it may be called in a signal handler that
//! interrupted malloc (_exit and execve are allowed there), before the program's own malloc is ready, and in a malloc
//! that is hooked.
//!
//! Blocks of each power of two have a list of those that are free, which takes no lock; large ones are mappings.
//!
//! Rust aborts the process if an allocation fails. Work that allocates therefore begins with `secure`: as many bytes as
//! it may need are mapped, and taken from there if the kernel refuses more. If they cannot be had, the work is not begun.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};

/// Lists: blocks of 16 bytes to 32 KiB.
const LISTS: usize = 12;
const SMALLEST: usize = 16;
/// Blocks are cut from mappings of so many bytes, which are never given back.
const CHUNK: usize = 1 << 16;

/// The list of blocks of one size: the address of the first in the lower 48 bits, and above it a number that changes
/// whenever one is taken, so that nobody takes a list for unchanged that has changed and changed back.
struct FreeList(AtomicU64);
const ADDRESS: u64 = (1 << 48) - 1;

/// The smallest page that a kernel has.
const PAGE: usize = 4096;

/// Bytes of a page of this kernel's: on arm64 up to 64 KiB.
pub fn page() -> usize {
    if cfg!(target_arch = "x86_64") {
        return PAGE;
    }
    // SAFETY: getauxval has no preconditions.
    unsafe { libc::getauxval(libc::AT_PAGESZ) as usize }
}

/// Mapped, and not used unless the kernel refuses memory.
struct Reserve {
    /// What is left begins here; whole pages.
    next: AtomicUsize,
    end: usize,
}
static RESERVE: AtomicPtr<Reserve> = AtomicPtr::new(null_mut());
/// The least that is mapped at a time.
const RESERVE_SIZE: usize = 1 << 20;
/// What begins a list takes a page at least: so much more than what was asked for.
const LISTS_BEGUN: usize = 1 << 16;

/// Whether so many bytes can be allocated from here on, whatever the kernel says.
pub fn secure(bytes: usize) -> bool {
    // a block may be almost twice as large as what it is for
    let Some(wanted) = bytes.checked_mul(2).and_then(|twice| twice.checked_add(LISTS_BEGUN)) else {
        return false;
    };
    // SAFETY: reserves stay mapped.
    let left = unsafe { RESERVE.load(Acquire).as_ref() }
        .map_or(0, |reserve| reserve.end.saturating_sub(reserve.next.load(Relaxed)));
    if left >= wanted {
        return true;
    }
    let size = wanted.next_multiple_of(PAGE).max(RESERVE_SIZE) + PAGE;
    let Some(at) = map(size) else { return false };
    let reserve: *mut Reserve = at.cast();
    // SAFETY: a mapping that nobody else knows yet; its first page is the reserve's own.
    unsafe { reserve.write(Reserve { next: AtomicUsize::new(at as usize + PAGE), end: at as usize + size }) };
    RESERVE.store(reserve, Release);
    true
}

/// Pages of the reserve; None: it has not as many.
fn spare(size: usize) -> Option<*mut u8> {
    // SAFETY: reserves stay mapped.
    let reserve = unsafe { RESERVE.load(Acquire).as_ref() }?;
    let size = size.checked_next_multiple_of(PAGE)?;
    let enough = |next: usize| next.checked_add(size).filter(|after| *after <= reserve.end);
    reserve.next.fetch_update(Relaxed, Relaxed, enough).ok().map(|at| at as *mut u8)
}

/// This process does nothing but what may fail: it ends where memory ends, with this status.
pub const NO_MEMORY: i32 = 3;
static EXPENDABLE: AtomicBool = AtomicBool::new(false);

/// From now on this process is ended by an allocation that fails.
pub fn may_end_process() {
    EXPENDABLE.store(true, Relaxed);
}

/// What the caller of an allocation gets that failed.
fn none() -> *mut u8 {
    if EXPENDABLE.load(Relaxed) {
        // SAFETY: it does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, NO_MEMORY) };
    }
    null_mut()
}

struct Memory([FreeList; LISTS]);

#[global_allocator]
static MEMORY: Memory = Memory([const { FreeList(AtomicU64::new(0)) }; LISTS]);

impl FreeList {
    /// Adds a chain of blocks, each of which begins with the address of the next.
    unsafe fn put(&self, first: *mut u64, last: *mut u64) {
        let mut head = self.0.load(Relaxed);
        loop {
            // SAFETY: the blocks are the caller's until they are in the list; others read them atomically.
            unsafe { AtomicU64::from_ptr(last).store(head & ADDRESS, Relaxed) };
            let new = head & !ADDRESS | first as u64;
            match self.0.compare_exchange_weak(head, new, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn take(&self) -> *mut u8 {
        let mut head = self.0.load(Acquire);
        loop {
            let first = (head & ADDRESS) as *mut u64;
            if first.is_null() {
                return null_mut();
            }
            // SAFETY: chunks stay mapped; if somebody else has taken the block meanwhile, what is read is not used.
            let next = unsafe { AtomicU64::from_ptr(first).load(Relaxed) } & ADDRESS;
            let new = (head & !ADDRESS).wrapping_add(1 << 48) | next;
            match self.0.compare_exchange_weak(head, new, Acquire, Acquire) {
                Ok(_) => return first.cast(),
                Err(now) => head = now,
            }
        }
    }

    /// Cuts a chunk into blocks; returns one of them, or NULL.
    fn cut(&self, size: usize) -> *mut u8 {
        let few = size.max(PAGE);
        let Some((chunk, length)) =
            map(CHUNK).map(|chunk| (chunk, CHUNK)).or_else(|| spare(few).map(|chunk| (chunk, few)))
        else {
            return none();
        };
        // SAFETY: a chunk of our own, in which the blocks are.
        unsafe {
            let last = chunk.add(length - size);
            let mut block = chunk.add(size);
            while block < last {
                block.cast::<u64>().write(block.add(size) as u64);
                block = block.add(size);
            }
            if last > chunk {
                self.put(chunk.add(size).cast(), last.cast());
            }
        }
        chunk
    }
}

/// Which list a block is of; None: it is a mapping.
fn list_of(layout: &Layout) -> Option<(usize, usize)> {
    let size = layout.size().max(layout.align()).max(SMALLEST).next_power_of_two();
    let list = (size / SMALLEST).trailing_zeros() as usize;
    (list < LISTS).then_some((list, size))
}

fn map(size: usize) -> Option<*mut u8> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel likes.
    let at = unsafe { libc::mmap(null_mut(), size, access, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

// SAFETY: blocks are as large as they have to be, and aligned to their size, up to a page, which is the largest alignment
// that anybody here asks for; each is given out once.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match list_of(&layout) {
            Some((list, size)) => {
                let block = self.0[list].take();
                if block.is_null() { self.0[list].cut(size) } else { block }
            }
            None => map(layout.size()).or_else(|| spare(layout.size())).unwrap_or_else(none),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's word: it is a block of this layout.
        unsafe {
            match list_of(&layout) {
                Some((list, _)) => self.0[list].put(block.cast(), block.cast()),
                None => _ = libc::munmap(block.cast(), layout.size()),
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; mremap moves what is in a mapping.
        unsafe {
            let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return null_mut() };
            match (list_of(&layout), list_of(&wanted)) {
                (Some(one), Some(other)) if one == other => block,
                (None, None) => {
                    let at = libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE);
                    if at == libc::MAP_FAILED { self.copy(block, layout, wanted) } else { at.cast() }
                }
                _ => self.copy(block, layout, wanted),
            }
        }
    }
}

impl Memory {
    /// Another block with what is in this one, which is given back; NULL: there is none, and this one stays.
    unsafe fn copy(&self, block: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
        // SAFETY: the caller's word: it is a block of this layout.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size().min(wanted.size()));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_threads_take_and_give_back_is_each_one_s_own() {
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                scope.spawn(move || {
                    let its_own = vec![thread; 1 << 17];
                    let mut held: Vec<Vec<u8>> = Vec::new();
                    for turn in 0..100_000_usize {
                        let size = 1 << (turn % 18);
                        held.push(vec![thread; size]);
                        if held.len() > 20 {
                            let one = held.swap_remove(turn * 7 % 20);
                            assert!(one[..] == its_own[..one.len()], "another's");
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn what_grows_keeps_what_it_had() {
        let mut all = Vec::new();
        for n in 0..200_000_u32 {
            all.push(n);
        }
        all.shrink_to_fit();
        assert!(all.iter().copied().eq(0..200_000));
    }
}
