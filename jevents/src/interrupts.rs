//! How many hardware interrupts this thread received.

use crate::rdpmc::Counter;
use std::cell::RefCell;

/// HW_INTERRUPTS.RECEIVED.
const RECEIVED: u32 = 0x1cb;

thread_local! {
    static COUNTER: RefCell<Option<Counter>> = const { RefCell::new(None) };
}

/// There is none when the thread ends.
fn with<T>(work: impl FnOnce(&mut Option<Counter>) -> T) -> Option<T> {
    COUNTER.try_with(|counter| work(&mut counter.borrow_mut())).ok()
}

/// Counts from now on; if that fails it is said on standard error, and none are counted.
pub fn init() {
    with(|counter| {
        *counter = None;
        *counter = Counter::open_number(RECEIVED);
    });
}

/// Counts no longer.
pub fn exit() {
    with(Option::take);
}

/// How many since `init`; 0 if none are counted.
pub fn get() -> u64 {
    with(|counter| counter.as_ref().map_or(0, Counter::read)).unwrap_or(0)
}
