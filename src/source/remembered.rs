//! The last readings of a source, of which marks may be asked to become samples.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{Ordering, compiler_fence};

/// Readings that are remembered.
pub(super) const REMEMBERED: usize = 64;

/// A ring, the latest at one place and the older ones before it, around the end. What a signal handler interrupts is not found.
pub(super) struct ReadingRing<T> {
    /// On the heap, since who opens a handle may have a small stack. Given back by `free` alone: after a close in a signal
    /// handler, the call that was interrupted may use it yet.
    ring: ManuallyDrop<Box<[RingEntry<T>]>>,
    latest: Cell<usize>,
}

struct RingEntry<T> {
    /// Sequence number and window; none while the value changes.
    key: Cell<Option<u64>>,
    value: Cell<T>,
}

/// What a mark tells of its reading: the page's sequence number, and the window.
pub(super) fn key(sequence: u32, window: u32) -> u64 {
    u64::from(window) << 32 | u64::from(sequence)
}

impl<T: Copy + Default> ReadingRing<T> {
    pub fn new() -> ReadingRing<T> {
        let nothing = |_| RingEntry { key: Cell::new(None), value: Cell::default() };
        let ring = (0..REMEMBERED).map(nothing).collect();
        ReadingRing { ring: ManuallyDrop::new(ring), latest: Cell::new(0) }
    }

    /// Gives the memory back. Nobody uses it any more.
    pub fn free(&mut self) {
        let nothing = ManuallyDrop::new(Box::default());
        drop(ManuallyDrop::into_inner(std::mem::replace(&mut self.ring, nothing)));
    }

    /// Where the latest is.
    pub fn latest(&self) -> usize {
        self.latest.get()
    }

    /// Whether the latest has this key.
    pub fn latest_is(&self, key: u64) -> bool {
        self.ring[self.latest.get()].key.get() == Some(key)
    }

    /// Remembers a reading in place of the oldest. (Half of this and half of what a signal
    /// handler remembered is not found: the key belongs to what is there, and to the whole of it only if this is still the
    /// `newest`.)
    pub fn add(&self, key: u64, value: &T, newest: impl FnOnce() -> bool) {
        let place = (self.latest.get() + 1) % REMEMBERED;
        self.change(place, Some(key), |entry| {
            entry.set(*value);
            newest()
        });
        self.latest.set(place);
    }

    /// Changes the reading at this place. Returns whether all of it is of one change.
    pub fn update(&self, place: usize, update: impl FnOnce(&Cell<T>) -> bool) {
        self.change(place, self.ring[place].key.get(), update);
    }

    /// Half of a change is not found.
    fn change(&self, place: usize, key: Option<u64>, change: impl FnOnce(&Cell<T>) -> bool) {
        let entry = &self.ring[place];
        entry.key.set(None);
        compiler_fence(Ordering::SeqCst);
        let whole = change(&entry.value);
        compiler_fence(Ordering::SeqCst);
        entry.key.set(key.filter(|_| whole));
    }

    /// The latest of this key that is `wanted`.
    pub fn find_latest(&self, key: u64, wanted: impl Fn(&T) -> bool) -> Option<(usize, T)> {
        let latest = self.latest.get();
        let places = (0..REMEMBERED).map(|age| (latest + REMEMBERED - age) % REMEMBERED);
        let of_key = places.filter(|place| self.ring[*place].key.get() == Some(key));
        of_key.map(|place| (place, self.ring[place].value.get())).find(|(_, value)| wanted(value))
    }
}
