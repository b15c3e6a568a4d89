//! Asynchronous cancellation, which a thread may be open to at any instruction: it waits while the library is at work in the thread, and
//! acts when a call is done, where the only frames between it and the program's are such as unwinders pass without a look. (Rust's own
//! end the process: no exception of the C library's goes through them.)
//!
//! A function that unwinders pass so is `extern "C-unwind"` and has nothing to drop. `cancelled_later` makes one around each function
//! that is not.

use libc::c_int;
use std::ptr::null_mut;

unsafe extern "C-unwind" {
    /// It may be where the thread ends.
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

const PTHREAD_CANCEL_DEFERRED: c_int = 0;

/// How the thread is cancelled, until now: from here on at cancellation points alone.
#[must_use]
#[derive(Clone, Copy)]
pub struct CancelType(c_int);

/// The calling thread is cancelled at cancellation points alone.
#[inline(always)]
pub fn defer() -> CancelType {
    let mut before = PTHREAD_CANCEL_DEFERRED;
    // SAFETY: a live int.
    unsafe { pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &mut before) };
    CancelType(before)
}

/// It is cancelled as before: now, if it was to be meanwhile. Nothing of the caller's may be left to be done but to return.
#[inline(always)]
pub fn go_on(CancelType(kind): CancelType) {
    if kind != PTHREAD_CANCEL_DEFERRED {
        // SAFETY: the type that it had.
        unsafe { pthread_setcanceltype(kind, null_mut()) };
    }
}

/// Functions during which no cancellation acts but at cancellation points. (What is in them is `extern "C"`: no panic leaves it.)
#[macro_export]
macro_rules! cancelled_later {
    ($($(#[$about:meta])* $visible:vis unsafe extern "C" fn $name:ident $(<const $switch:ident: bool>)?
        ($($argument:ident: $of:ty),* $(,)?) $(-> $result:ty)? $work:block)*) => {$(
        $(#[$about])*
        $visible unsafe extern "C-unwind" fn $name $(<const $switch: bool>)? ($($argument: $of),*) $(-> $result)? {
            #[inline(never)]
            unsafe extern "C" fn within $(<const $switch: bool>)? ($($argument: $of),*) $(-> $result)? $work
            let before = $crate::cancellation::defer();
            // SAFETY: the caller's word.
            let result = unsafe { within $(::<$switch>)? ($($argument),*) };
            $crate::cancellation::go_on(before);
            result
        }
    )*};
}
