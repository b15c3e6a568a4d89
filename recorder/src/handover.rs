//! Values that one thread hands to another. (Channels of the standard library note which thread waits, in memory that is never given
//! back on the main thread of a C program.)
#![forbid(unsafe_code)]

use parking_lot::{Condvar, Mutex};

/// One value at a time.
pub struct Handover<T> {
    place: Mutex<HandoverSlot<T>>,
    changed: Condvar,
}

struct HandoverSlot<T> {
    value: Option<T>,
    /// No more will come.
    closed: bool,
}

impl<T> Handover<T> {
    pub fn new() -> Handover<T> {
        Handover { place: Mutex::new(HandoverSlot { value: None, closed: false }), changed: Condvar::new() }
    }

    pub fn give(&self, value: T) {
        self.place.lock().value = Some(value);
        self.changed.notify_all();
    }

    pub fn close(&self) {
        self.place.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for a value; none: no more will come.
    pub fn take(&self) -> Option<T> {
        let mut place = self.place.lock();
        while place.value.is_none() && !place.closed {
            self.changed.wait(&mut place);
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
