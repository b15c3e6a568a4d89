//! The memory of a handle: one page that a forked child finds zeroed, one where the control page of its leader
//! is mapped, and the rest, which a child inherits.
//!
//! A closed handle's memory is kept for the next one, so that a stale pointer meets a closed handle
//! and not a fault, and opening ten thousand times takes no more memory than opening once.

use memmap2::MmapMut;
use std::cell::{Cell, UnsafeCell};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How far apart what has pages of its own begins: as large as pages of this machine may be.
pub const APART: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 65536 };

/// Gives its content pages of its own.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Pages<T>(T);

#[repr(C)]
struct Layout<S, P> {
    shared: Pages<S>,
    control: Pages<u8>,
    private: Pages<ForkMemory<S, P>>,
}

#[repr(C)]
struct ForkMemory<S, P> {
    /// The control page may be somebody else's by now: this memory is never used again.
    lost: AtomicBool,
    /// Of closed handles: the one that was closed next.
    next: Cell<Option<HandleMemory<S, P>>>,
    content: P,
}

/// The memory of one handle, at a fixed address. Not dropped by itself, nor ever unmapped: C holds the pointer.
pub struct HandleMemory<S, P>(NonNull<Layout<S, P>>);

impl<S, P> Clone for HandleMemory<S, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, P> Copy for HandleMemory<S, P> {}

impl<S, P> HandleMemory<S, P> {
    /// The pointer that C holds.
    pub fn into_raw<T>(self) -> *mut T {
        self.0.as_ptr().cast()
    }

    /// The memory behind such a pointer; none if none can begin there.
    ///
    /// # Safety
    /// The pointer came from `into_raw`, of memory with these types.
    #[inline(always)]
    pub unsafe fn from_raw<T>(raw: NonNull<T>) -> Option<HandleMemory<S, P>> {
        let memory = raw.cast::<Layout<S, P>>();
        memory.is_aligned().then_some(HandleMemory(memory))
    }

    /// What other parties read (the program's inline reader, the kernel); a forked child finds it zeroed.
    #[inline(always)]
    pub fn shared(&self) -> &S {
        // SAFETY: `Pool::take` mapped it and nobody unmaps it; zeros are a valid S.
        unsafe { &(*self.0.as_ptr()).shared.0 }
    }

    /// The same, for who has only the reference: the memory is there for ever, as whoever has the handle's once had it.
    pub fn shared_for_ever(self) -> &'static S
    where
        S: 'static,
    {
        // SAFETY: `Pool::take` mapped it and nobody ever unmaps it; zeros are a valid S.
        unsafe { &(*self.0.as_ptr()).shared.0 }
    }

    /// The page behind it, for the leader's control page.
    pub fn control(&self) -> ReservedPage {
        // SAFETY: `Pool::take` mapped it and wrote `lost`, and nobody unmaps it.
        unsafe {
            ReservedPage {
                page: NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).control).cast(),
                lost: &(*self.0.as_ptr()).private.0.lost,
            }
        }
    }

    /// Its place in a queue of closed handles.
    fn next(&self) -> &Cell<Option<HandleMemory<S, P>>> {
        // SAFETY: `Pool::take` wrote it, and nobody unmaps it.
        unsafe { &(*self.0.as_ptr()).private.0.next }
    }

    /// What this library alone works on; a forked child inherits it.
    pub fn private(&self) -> &P {
        // SAFETY: `Pool::take` wrote it, and nobody unmaps it.
        unsafe { &(*self.0.as_ptr()).private.0.content }
    }
}

/// A page of a handle's memory, in which its holder may map what it likes.
#[derive(Debug)]
pub struct ReservedPage {
    page: NonNull<u8>,
    lost: &'static AtomicBool,
}

impl ReservedPage {
    /// A mapping in it has failed or ended: reserves it again, unless the kernel gave its address to somebody else meanwhile.
    pub fn reserve(&self, length: usize) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: maps only where nothing is.
        let got = unsafe { libc::mmap(self.address().cast(), length, libc::PROT_NONE, flags, -1, 0) };
        if got != self.address().cast() {
            if got != libc::MAP_FAILED {
                // SAFETY: a kernel that does not know the flag has put it elsewhere.
                unsafe { libc::munmap(got, length) };
            }
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Where it is.
    pub fn address(&self) -> *mut u8 {
        self.page.as_ptr()
    }
}

/// Types for which memory full of zeros is a valid value.
///
/// # Safety
/// It must be.
pub unsafe trait Zeroable {}

/// Memory of closed handles, of the one that was closed first at the front.
pub struct Pool<S, P> {
    /// The process that works on them; 0 for none.
    holder: AtomicU32,
    blocks: UnsafeCell<Blocks<S, P>>,
}

/// A queue, in the blocks themselves: it takes no memory, which one thread would allocate and another free.
struct Blocks<S, P> {
    /// The first and the last one; none if it is empty.
    ends: Option<(HandleMemory<S, P>, HandleMemory<S, P>)>,
    length: usize,
}

impl<S, P> Blocks<S, P> {
    const EMPTY: Blocks<S, P> = Blocks { ends: None, length: 0 };

    fn push_back(&mut self, block: HandleMemory<S, P>) {
        block.next().set(None);
        let first = match self.ends {
            Some((first, last)) => {
                last.next().set(Some(block));
                first
            }
            None => block,
        };
        self.ends = Some((first, block));
        self.length += 1;
    }

    fn pop_front(&mut self) -> Option<HandleMemory<S, P>> {
        let (first, last) = self.ends?;
        self.ends = first.next().take().map(|next| (next, last));
        self.length -= 1;
        Some(first)
    }
}

// SAFETY: one thread at a time works on the blocks (`with`); a block among them belongs to nobody, and one that a thread takes
// is that thread's alone.
unsafe impl<S, P> Sync for Pool<S, P> {}

/// So many blocks rest before the first is used again, so that a stale pointer meets a closed handle for a
/// while, and not the next one that is opened.
const RESTING: usize = 16;

#[allow(clippy::new_without_default)] // pools are statics
impl<S: Zeroable, P: Default> Pool<S, P> {
    /// An empty pool.
    pub const fn new() -> Pool<S, P> {
        Pool { holder: AtomicU32::new(0), blocks: UnsafeCell::new(Blocks::EMPTY) }
    }

    /// Works on the blocks, alone. A forked child may find them as a thread that it does not have left them, in the
    /// middle of a change: then it goes without.
    fn with<T>(&self, work: impl FnOnce(&mut Blocks<S, P>) -> T) -> T {
        let process = std::process::id();
        let take_from =
            |holder| self.holder.compare_exchange(holder, process, Ordering::Acquire, Ordering::Relaxed);
        let broken = loop {
            match take_from(0) {
                Ok(_) => break false,
                Err(holder) if holder != process && take_from(holder).is_ok() => break true,
                Err(_) => std::thread::yield_now(),
            }
        };
        // SAFETY: the holder is this thread.
        let blocks = unsafe { &mut *self.blocks.get() };
        if broken {
            *blocks = Blocks::EMPTY;
        }
        let result = work(blocks);
        self.holder.store(0, Ordering::Release);
        result
    }

    /// Memory for a handle: a block that was given back, as it was left, or a new one.
    pub fn take(&self) -> io::Result<HandleMemory<S, P>> {
        let rested = self.with(|blocks| if blocks.length > RESTING { blocks.pop_front() } else { None });
        if let Some(memory) = rested {
            return Ok(memory);
        }
        // (a mapping begins at a page, of 4 KiB at least; what is before and behind the handle is never touched)
        const SMALLEST_PAGE: usize = 4096;
        let align = align_of::<Layout<S, P>>();
        let mut memory = MmapMut::map_anon(size_of::<Layout<S, P>>() + align - SMALLEST_PAGE)?;
        let begin = memory.as_mut_ptr();
        let begin = begin.wrapping_add(begin.align_offset(align));
        // SAFETY: the advice is about memory of ours that holds nothing yet.
        if unsafe { libc::madvise(begin.cast(), size_of::<Pages<S>>(), libc::MADV_WIPEONFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let start: NonNull<Layout<S, P>> = NonNull::new(begin).expect("never at address 0").cast();
        // SAFETY: the mapping has room for this from its first aligned address on, and nobody else knows it; S is zeros.
        unsafe {
            (&raw mut (*start.as_ptr()).private.0).write(ForkMemory {
                lost: AtomicBool::new(false),
                next: Cell::new(None),
                content: P::default(),
            });
        }
        std::mem::forget(memory);
        Ok(HandleMemory(start))
    }

    /// Takes a block back. Its content stays as it is.
    pub fn give(&self, memory: HandleMemory<S, P>) {
        if !memory.control().lost.load(Ordering::Relaxed) {
            self.with(|blocks| blocks.push_back(memory));
        }
    }
}
