//! Texts of errors, and the version.

use crate::sys::thread_text;
use std::ffi::{c_char, c_int};

/// Short text of a code that this library returned. Static, never NULL. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn td_strerror(code: c_int) -> *const c_char {
    crate::error::text_of(code).as_ptr().cast()
}

/// Copies the calling thread's last failure in full into `buffer`, cut to `length` - 1 bytes, and a NUL; NULL and 0 ask
/// for the length. Successful calls do not change the text. Any thread. Returns the length of the whole text without the
/// NUL (0: no call has failed yet), or -EINVAL if `buffer` is NULL and `length` is not 0.
///
/// # Safety
/// `buffer` is NULL or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_last_error(buffer: *mut c_char, length: usize) -> c_int {
    if buffer.is_null() && length > 0 {
        return -libc::EINVAL;
    }
    // SAFETY: the buffer is NULL or what the header calls it, which the C caller promises.
    thread_text::with(|text| unsafe { copy(text, buffer, length) })
}

/// Version of the library that runs, "MAJOR.MINOR.PATCH". Static text. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn td_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Copies as much of a text as there is room for with its NUL; returns the length of the whole.
///
/// # Safety
/// `buffer` has room for `length` bytes.
pub(super) unsafe fn copy(text: &[u8], buffer: *mut c_char, length: usize) -> c_int {
    if length > 0 {
        let fits = text.len().min(length - 1);
        // SAFETY: fits + 1 <= length; a text and a caller's buffer do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, fits);
            buffer.add(fits).write(0);
        }
    }
    text.len() as c_int
}
