//! A reference that may be put in place while others look for it.

use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// A reference, or none yet. To look for it takes one load.
#[derive(Debug)]
pub struct LateRef<T: 'static>(AtomicPtr<T>, PhantomData<&'static T>);

impl<T> LateRef<T> {
    /// One to this, or to nothing yet.
    #[must_use]
    pub const fn new(to: Option<&'static T>) -> LateRef<T> {
        let to = match to {
            Some(to) => (to as *const T).cast_mut(),
            None => null_mut(),
        };
        LateRef(AtomicPtr::new(to), PhantomData)
    }

    /// What it refers to.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: `new` and `put` take references that are valid for ever, and nothing is written through the pointer
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Puts it in if there is none yet; gives back which there is.
    pub fn put_first(&self, to: &'static T) -> &'static T {
        let own = (to as *const T).cast_mut();
        match self.0.compare_exchange(null_mut(), own, AcqRel, Acquire) {
            Ok(_) => to,
            Err(_) => self.get().unwrap_or(to),
        }
    }

    /// Puts it in.
    pub fn put(&self, to: Option<&'static T>) {
        self.0.store(to.map_or(null_mut(), |to| (to as *const T).cast_mut()), Release);
    }
}
