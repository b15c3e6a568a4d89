//! The memory of a handle: one page that a forked child finds zeroed, one where the control page of its leader
//! is mapped, and the rest, which a child inherits.
//!
//! A closed handle's memory is kept for the next one, so that a stale pointer meets a closed handle
//! and not a fault, and opening ten thousand times takes no more memory than opening once.

use memmap2::MmapMut;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::ptr::NonNull;

/// Gives its content pages of its own.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Pages<T>(T);

#[repr(C)]
struct Halves<H, C> {
    hot: Pages<H>,
    control: Pages<u8>,
    cold: Pages<C>,
}

/// A pair of halves with a fixed address. Not dropped by itself, nor ever unmapped: C holds the pointer.
pub(crate) struct Slot<H, C>(NonNull<Halves<H, C>>);

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

    /// The slot behind such a pointer.
    ///
    /// # Safety
    /// The pointer came from `into_raw`, of a slot of these types.
    #[inline(always)]
    pub unsafe fn from_raw<T>(raw: NonNull<T>) -> Slot<H, C> {
        Slot(raw.cast())
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
        Place(unsafe { NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).control) }.cast())
    }

    /// The half that it inherits.
    pub fn cold(&self) -> &C {
        // SAFETY: as above; no fork touches it.
        unsafe { &(*self.0.as_ptr()).cold.0 }
    }
}

/// A page of a slot, in which its holder may map what it likes.
#[derive(Debug)]
pub(crate) struct Place(NonNull<u8>);

/// Slots whose control page may be somebody else's by now; they are never used again.
static LOST: Mutex<Vec<usize>> = Mutex::new(Vec::new());

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
            LOST.lock().push(self.address() as usize);
        }
    }

    /// Where.
    pub fn address(&self) -> *mut u8 {
        self.0.as_ptr()
    }
}

/// Types for which memory full of zeros is a valid value.
///
/// # Safety
/// It must be.
pub(crate) unsafe trait Zeroable {}

/// Slots that were given back, the oldest first.
pub(crate) struct Pool<H, C>(Mutex<VecDeque<Slot<H, C>>>);

// SAFETY: a slot in the pool belongs to nobody; what a thread takes, it alone has.
unsafe impl<H, C> Sync for Pool<H, C> {}

/// So many slots rest before the first is used again, so that a stale pointer meets a closed handle for a
/// while, and not the next one that is opened.
const RESTING: usize = 16;

impl<H: Zeroable, C: Default> Pool<H, C> {
    pub const fn new() -> Pool<H, C> {
        Pool(Mutex::new(VecDeque::new()))
    }

    /// The lock, unless it is not to be had: a forked child may find it taken by a thread that it does not
    /// have.
    fn slots(&self) -> Option<MutexGuard<'_, VecDeque<Slot<H, C>>>> {
        (0..1000).find_map(|_| {
            let slots = self.0.try_lock();
            if slots.is_none() {
                std::thread::yield_now();
            }
            slots
        })
    }

    /// A slot: one that was given back, as it was left, or a new one.
    pub fn take(&self) -> io::Result<Slot<H, C>> {
        if let Some(mut slots) = self.slots().filter(|slots| slots.len() > RESTING) {
            return Ok(slots.pop_front().expect("more than those at rest"));
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
        unsafe { (&raw mut (*start.as_ptr()).cold.0).write(C::default()) };
        std::mem::forget(memory);
        Ok(Slot(start))
    }

    /// Takes a slot back. Its content stays as it is.
    pub fn give(&self, slot: Slot<H, C>) {
        if LOST.lock().contains(&(slot.control().address() as usize)) {
            return;
        }
        if let Some(mut slots) = self.slots() {
            slots.push_back(slot);
        }
    }
}
