//! Memory of a thread's own, from mmap(2), since it may be wanted in a signal handler. A forked child finds it zeroed.

use std::cell::Cell;
use std::ffi::CStr;
use std::io;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut, slice_from_raw_parts_mut};

/// Bytes that an arena takes at a time.
const ARENA: usize = 1 << 16;
/// What is in an arena begins at multiples of this: as nodes do.
pub const ALIGN: usize = 128;
const PAGE: usize = 4096;

/// Zeroed memory.
fn pages(size: usize) -> io::Result<*mut u8> {
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

/// The value, for good, in pages of its own.
pub fn keep<T>(value: T) -> io::Result<&'static T> {
    const { assert!(align_of::<T>() <= PAGE) };
    let at: *mut T = pages(size_of::<T>().next_multiple_of(PAGE))?.cast();
    // SAFETY: new memory of that size, which is never unmapped.
    unsafe {
        at.write(value);
        Ok(&*at)
    }
}

/// Memory for small things, which stay for good.
pub struct Arena {
    /// Where the rest of the present piece is, and how long.
    rest: Cell<(*mut u8, usize)>,
}

impl Arena {
    pub const fn new() -> Arena {
        Arena { rest: Cell::new((null_mut(), 0)) }
    }

    /// Whether there is memory for things that take so many bytes, each rounded up to a multiple of `ALIGN`.
    pub fn secure(&self, bytes: usize) -> bool {
        assert!(bytes <= ARENA);
        if self.rest.get().1 < bytes {
            let Ok(at) = pages(ARENA) else { return false };
            self.rest.set((at, ARENA));
        }
        true
    }

    /// The value, for good; None: there is no memory.
    pub fn keep<T>(&self, value: T) -> Option<&'static T> {
        const { assert!(align_of::<T>() <= ALIGN) };
        let at: *mut T = self.take(size_of::<T>())?.cast();
        // SAFETY: memory of that size, which nothing else has.
        unsafe {
            at.write(value);
            Some(&*at)
        }
    }

    /// A thing of which all bytes are zero, for good; None: there is no memory.
    ///
    /// # Safety
    /// Zeros are such a thing.
    pub unsafe fn zeroed<T>(&self) -> Option<&'static T> {
        const { assert!(align_of::<T>() <= ALIGN) };
        // SAFETY: zeroed memory of that size, which nothing else has, and the caller's word.
        Some(unsafe { &*self.take(size_of::<T>())?.cast() })
    }

    /// A copy of the text, as `Name` wants one: it crosses no page within a name's head.
    pub fn keep_text(&self, text: &CStr) -> Option<&'static CStr> {
        let bytes = text.to_bytes_with_nul();
        let at = self.take(bytes.len())?;
        // SAFETY: memory of that size, which nothing else has; a C string.
        unsafe {
            at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            Some(CStr::from_ptr(at.cast()))
        }
    }

    fn take(&self, size: usize) -> Option<*mut u8> {
        let size = size.next_multiple_of(ALIGN);
        if !self.secure(size) {
            return None;
        }
        let (at, length) = self.rest.get();
        self.rest.set((at.wrapping_add(size), length - size));
        Some(at)
    }
}

/// So many places for references, none of which is taken at first; unmapped when it is dropped.
pub struct Places<T: 'static>(NonNull<[Cell<Option<&'static T>>]>);

impl<T> Places<T> {
    pub fn new(count: usize) -> Option<Places<T>> {
        let at = pages(count * size_of::<&T>()).ok()?;
        NonNull::new(slice_from_raw_parts_mut(at.cast(), count)).map(Places)
    }
}

impl<T> Deref for Places<T> {
    type Target = [Cell<Option<&'static T>>];

    fn deref(&self) -> &Self::Target {
        // SAFETY: memory of that size, of which zeros are no references.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Places<T> {
    fn drop(&mut self) {
        // SAFETY: what `new` has mapped, to which nothing refers any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of_val(&**self)) };
    }
}

/// So many words, for good, which are zero; they begin a page.
pub fn words(count: usize) -> Option<&'static [Cell<usize>]> {
    let at = pages(count * size_of::<usize>()).ok()?;
    // SAFETY: new memory of that size, which is never unmapped; zeros are integers.
    Some(unsafe { std::slice::from_raw_parts(at.cast(), count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_arena_keeps_stays_apart_and_aligned() {
        let arena = Arena::new();
        let kept: Vec<&u64> = (0..2000).map(|k| arena.keep(k).unwrap()).collect();
        for (k, number) in kept.iter().enumerate() {
            assert_eq!(**number, k as u64);
            assert_eq!(std::ptr::from_ref(*number) as usize % ALIGN, 0);
        }
        assert_eq!(arena.keep_text(c"a region").unwrap(), c"a region");
    }

    #[test]
    fn places_are_empty_at_first() {
        let places = Places::<u32>::new(512).unwrap();
        assert!(places.len() == 512 && places.iter().all(|place| place.get().is_none()));
        places[3].set(Some(&7));
        assert_eq!(places[3].get(), Some(&7));
    }
}
