//! The memory of a handle: one page that a forked child finds zeroed, one where the control page of its leader
//! is mapped, and the rest, which a child inherits.
//!
//! A closed handle's memory is kept for the next one, so that a stale pointer meets a closed handle
//! and not a fault, and opening ten thousand times takes no more memory than opening once.

use memmap2::MmapMut;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Gives its content pages of its own.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Pages<T>(T);

#[repr(C)]
struct Halves<H, C> {
    hot: Pages<H>,
    control: Pages<u8>,
    cold: Pages<Inherited<C>>,
}

#[repr(C)]
struct Inherited<C> {
    /// The control page may be somebody else's by now: the slot is never used again.
    lost: AtomicBool,
    content: C,
}

/// A pair of halves with a fixed address. Not dropped by itself, nor ever unmapped: C holds the pointer.
pub struct Slot<H, C>(NonNull<Halves<H, C>>);

impl<H, C> Clone for Slot<H, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H, C> Copy for Slot<H, C> {}

impl<H, C> Slot<H, C> {
    /// The pointer that C holds.
    pub fn into_raw<T>(self) -> *mut T {
        self.0.as_ptr().cast()
    }

    /// The slot behind such a pointer; none if no slot can begin there.
    ///
    /// # Safety
    /// The pointer came from `into_raw`, of a slot of these types.
    #[inline(always)]
    pub unsafe fn from_raw<T>(raw: NonNull<T>) -> Option<Slot<H, C>> {
        let slot = raw.cast::<Halves<H, C>>();
        slot.is_aligned().then_some(Slot(slot))
    }

    /// The half that a forked child finds zeroed.
    #[inline(always)]
    pub fn hot(&self) -> &H {
        // SAFETY: `Pool::take` made it and nobody unmaps it; zeros are a valid H.
        unsafe { &(*self.0.as_ptr()).hot.0 }
    }

    /// The page behind it, for another mapping.
    pub fn control(&self) -> Place {
        // SAFETY: as above.
        unsafe {
            Place {
                page: NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).control).cast(),
                lost: &(*self.0.as_ptr()).cold.0.lost,
            }
        }
    }

    /// The half that it inherits.
    pub fn cold(&self) -> &C {
        // SAFETY: as above; no fork touches it.
        unsafe { &(*self.0.as_ptr()).cold.0.content }
    }
}

/// A page of a slot, in which its holder may map what it likes.
#[derive(Debug)]
pub struct Place {
    page: NonNull<u8>,
    lost: &'static AtomicBool,
}

impl Place {
    /// A mapping in it has failed or ended: reserves it again, unless somebody else was given the place meanwhile.
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

    /// Where.
    pub fn address(&self) -> *mut u8 {
        self.page.as_ptr()
    }
}

/// Types for which memory full of zeros is a valid value.
///
/// # Safety
/// It must be.
pub unsafe trait Zeroable {}

/// Slots that were given back, the oldest first.
pub struct Pool<H, C> {
    /// The process that is at them; 0 for none.
    holder: AtomicU32,
    slots: UnsafeCell<VecDeque<Slot<H, C>>>,
}

// SAFETY: one thread at a time is at the slots, see `with`; a slot among them belongs to nobody, and what a thread
// takes, it alone has.
unsafe impl<H, C> Sync for Pool<H, C> {}

/// So many slots rest before the first is used again, so that a stale pointer meets a closed handle for a
/// while, and not the next one that is opened.
const RESTING: usize = 16;

#[allow(clippy::new_without_default)] // pools are statics
impl<H: Zeroable, C: Default> Pool<H, C> {
    /// An empty pool.
    pub const fn new() -> Pool<H, C> {
        Pool { holder: AtomicU32::new(0), slots: UnsafeCell::new(VecDeque::new()) }
    }

    /// Works on the slots, alone. A forked child may find them as a thread that it does not have left them, in the
    /// middle of a change: then it goes without.
    fn with<T>(&self, work: impl FnOnce(&mut VecDeque<Slot<H, C>>) -> T) -> T {
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
        let slots = unsafe { &mut *self.slots.get() };
        if broken {
            std::mem::forget(std::mem::take(slots));
        }
        let result = work(slots);
        self.holder.store(0, Ordering::Release);
        result
    }

    /// A slot: one that was given back, as it was left, or a new one.
    pub fn take(&self) -> io::Result<Slot<H, C>> {
        let rested = self.with(|slots| if slots.len() > RESTING { slots.pop_front() } else { None });
        if let Some(slot) = rested {
            return Ok(slot);
        }
        let mut memory = MmapMut::map_anon(size_of::<Halves<H, C>>())?;
        // SAFETY: the advice is about memory of ours that holds nothing yet.
        if unsafe { libc::madvise(memory.as_mut_ptr().cast(), size_of::<Pages<H>>(), libc::MADV_WIPEONFORK) }
            != 0
        {
            return Err(io::Error::last_os_error());
        }
        let start: NonNull<Halves<H, C>> =
            NonNull::new(memory.as_mut_ptr()).expect("never at address 0").cast();
        // SAFETY: the mapping is as large as this, aligned to pages, and nobody else knows it; H is zeros.
        unsafe {
            (&raw mut (*start.as_ptr()).cold.0)
                .write(Inherited { lost: AtomicBool::new(false), content: C::default() });
        }
        std::mem::forget(memory);
        Ok(Slot(start))
    }

    /// Takes a slot back. Its content stays as it is.
    pub fn give(&self, slot: Slot<H, C>) {
        if !slot.control().lost.load(Ordering::Relaxed) {
            self.with(|slots| slots.push_back(slot));
        }
    }
}
