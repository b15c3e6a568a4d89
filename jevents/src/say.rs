//! Diagnostics: plain lines on standard error, as callers are used to. A closed standard error is no error.

/// A line on standard error; errno stays as it was.
macro_rules! say {
    ($($argument:tt)*) => {{
        let text = format!("{}\n", format_args!($($argument)*));
        $crate::say::write(text.as_bytes());
    }};
}
pub(crate) use say;

/// An error as strerror says it.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().into()
}

pub(crate) fn write(text: &[u8]) {
    let errno = std::io::Error::last_os_error();
    // SAFETY: the text is valid for its length; errno is the thread's.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        *libc::__errno_location() = errno.raw_os_error().unwrap_or(0);
    }
}
