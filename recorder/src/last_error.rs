//! Each thread's last failure, as text.
#![forbid(unsafe_code)]

use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a text. (Not in a thread that is about to end.)
pub fn set(text: String) {
    let _ = LAST.try_with(|last| last.replace(text));
}

/// The text that is kept.
pub fn get() -> String {
    LAST.try_with(|last| last.borrow().clone()).unwrap_or_default()
}
