//! Diagnostics: plain lines on standard error, as callers are used to. A closed standard error is no error.

use libc::c_char;
use std::cell::RefCell;
use std::ffi::CString;

/// A line on standard error; errno stays as it was.
macro_rules! say {
    ($($argument:tt)*) => {{
        let text = format!($($argument)*);
        $crate::say::keep(&text);
        $crate::say::write(format!("{text}\n").as_bytes());
    }};
}
pub(crate) use say;

/// An error as strerror says it.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().into()
}

thread_local! {
    /// What the last failure of this thread was.
    static LAST: RefCell<CString> = RefCell::default();
}

pub(crate) fn write(text: &[u8]) {
    let errno = std::io::Error::last_os_error();
    // SAFETY: the text is valid for its length; errno is the thread's.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        *libc::__errno_location() = errno.raw_os_error().unwrap_or(0);
    }
}

/// Keeps what was wrong, for `jevent_get_error_details`; errno stays as it was.
pub(crate) fn keep(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // a thread that ends has no last failure any more
    _ = LAST.try_with(|last| last.replace(text));
}

/// What was kept last in this thread; it stays where it is until the next.
pub(crate) fn kept() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
