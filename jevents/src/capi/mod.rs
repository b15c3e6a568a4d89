//! The C interface: the only place with exported symbols. Nothing inside knows about C but `extra` and `session`, whose
//! structs callers share.

mod counters;
mod events;
mod lists;
mod ring;
mod session;
mod sized;

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// No panic crosses the border: `failed` is returned in its place. And nobody cancels the thread meanwhile: its end would
/// be that of the program, since what unwinds a thread does not come through here. It ends at what it calls next.
pub(crate) fn guard<T>(failed: T, work: impl FnOnce() -> T) -> T {
    let _uncancelled = CancelGuard::begin();
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(failed)
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

/// PTHREAD_CANCEL_DISABLE.
const CANCEL_DISABLE: libc::c_int = 1;

/// While it lives, the thread is not cancelled. It holds what was so before.
struct CancelGuard(libc::c_int);

impl CancelGuard {
    fn begin() -> Self {
        let mut before = 0;
        // SAFETY: a number to write to.
        unsafe { pthread_setcancelstate(CANCEL_DISABLE, &mut before) };
        CancelGuard(before)
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(self.0, &mut 0) };
    }
}

/// The text of a C string, None for NULL. What is no UTF-8 names nothing that could be found; it is shown as it can be.
///
/// # Safety
/// NULL, or a C string that lives as long as is needed.
pub(crate) unsafe fn text<'a>(string: *const libc::c_char) -> Option<std::borrow::Cow<'a, str>> {
    // SAFETY: the caller's word.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_string_lossy())
}

/// A copy of a text by malloc, for the caller to free; NULL if there is no memory. Ends at a NUL in the text.
pub(crate) fn copy(text: &str) -> *mut libc::c_char {
    let length = text.bytes().position(|byte| byte == 0).unwrap_or(text.len());
    // SAFETY: the text is readable for its length; strndup adds the NUL.
    unsafe { libc::strndup(text.as_ptr().cast(), length) }
}
