//! The memory of a handle: one page that a forked child finds zeroed, and the rest, which it inherits.
//!
//! A closed handle's memory is kept for the next one, so that a stale pointer meets a closed handle
//! and not a fault, and opening ten thousand times takes no more memory than opening once.

use memmap2::MmapMut;
use parking_lot::Mutex;
use std::io;
use std::ptr::NonNull;
use std::time::Duration;

/// Gives its content pages of its own.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Pages<T>(T);

#[repr(C)]
struct Halves<H, C> {
    hot: Pages<H>,
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

    /// The half that it inherits.
    pub fn cold(&self) -> &C {
        // SAFETY: as above; no fork touches it.
        unsafe { &(*self.0.as_ptr()).cold.0 }
    }
}

/// Types for which memory full of zeros is a valid value.
///
/// # Safety
/// It must be.
pub(crate) unsafe trait Zeroable {}

/// Slots that were given back.
pub(crate) struct Pool<H, C>(Mutex<Vec<Slot<H, C>>>);

// SAFETY: a slot in the pool belongs to nobody; what a thread takes, it alone has.
unsafe impl<H, C> Sync for Pool<H, C> {}

/// A forked child may find the lock taken by a thread that it does not have: then it does without.
const PATIENCE: Duration = Duration::from_millis(10);

impl<H: Zeroable + Default, C: Default> Pool<H, C> {
    pub const fn new() -> Pool<H, C> {
        Pool(Mutex::new(Vec::new()))
    }

    /// A slot: one that was given back, as it was left, or a new one.
    pub fn take(&self) -> io::Result<Slot<H, C>> {
        if let Some(slot) = self.0.try_lock_for(PATIENCE).and_then(|mut free| free.pop()) {
            return Ok(slot);
        }
        let mut memory = MmapMut::map_anon(size_of::<Halves<H, C>>())?;
        // SAFETY: the advice is about memory of ours that holds nothing yet.
        if unsafe { libc::madvise(memory.as_mut_ptr().cast(), size_of::<Pages<H>>(), libc::MADV_WIPEONFORK) }
            != 0
        {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(memory.as_mut_ptr()).expect("a mapping is not at address 0").cast();
        // SAFETY: the mapping is as large as this, aligned to pages, and nobody else knows it.
        unsafe { start.write(Halves { hot: Pages(H::default()), cold: Pages(C::default()) }) };
        std::mem::forget(memory);
        Ok(Slot(start))
    }

    /// Takes a slot back. Its content stays as it is.
    pub fn give(&self, slot: Slot<H, C>) {
        if let Some(mut free) = self.0.try_lock_for(PATIENCE) {
            free.push(slot);
        }
    }
}
