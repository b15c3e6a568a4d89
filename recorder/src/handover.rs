//! Values that one thread hands to another. (Channels of the standard library note which thread waits, in memory that is never given
//! back on the main thread of a C program.)
#![forbid(unsafe_code)]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One value at a time.
pub struct Handover<T> {
    place: Mutex<Place<T>>,
    changed: Condvar,
}

struct Place<T> {
    value: Option<T>,
    /// No more will come.
    closed: bool,
}

impl<T> Handover<T> {
    pub fn new() -> Handover<T> {
        Handover { place: Mutex::new(Place { value: None, closed: false }), changed: Condvar::new() }
    }

    fn place(&self) -> MutexGuard<'_, Place<T>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn give(&self, value: T) {
        self.place().value = Some(value);
        self.changed.notify_all();
    }

    pub fn close(&self) {
        self.place().closed = true;
        self.changed.notify_all();
    }

    /// Waits for a value; none: no more will come.
    pub fn take(&self) -> Option<T> {
        let mut place = self.place();
        while place.value.is_none() && !place.closed {
            place = self.changed.wait(place).unwrap_or_else(PoisonError::into_inner);
        }
        place.value.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_taken_and_then_the_end() {
        let handover = Handover::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                handover.give(1);
                handover.close();
            });
            assert_eq!((handover.take(), handover.take()), (Some(1), None));
        });
    }
}
