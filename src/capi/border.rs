//! The border between C and Rust: errors become codes and texts, no panic passes, and pointers are checked before they are
//! used.

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::sys::floating::Floating;
use crate::sys::thread_text;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// The opaque handle of C: where a `Handle` points.
#[allow(non_camel_case_types)]
pub struct td {
    _private: (),
}

/// Runs an entry point: what it returns or fails with becomes a code and, if it failed, this thread's last-error text. The program's
/// floating-point environment stays its own.
pub(super) fn guard(work: impl FnOnce() -> Result<c_int>) -> c_int {
    let _floating = Floating::new();
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str);
        let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(Error::errno(libc::EFAULT, "the library failed in itself, please report it").why(why.to_string()))
    });
    result.unwrap_or_else(|error| {
        thread_text::set(error.reason());
        error.code()
    })
}

/// Refuses a pointer that cannot point to a T: NULL, or misaligned.
#[inline(always)]
pub(super) fn check<T>(pointer: *const T, what: &str) -> Result<()> {
    #[cold]
    #[inline(never)]
    fn refused(pointer: *const (), what: &str) -> Error {
        if pointer.is_null() {
            return Error::invalid(format!("`{what}` is NULL"));
        }
        Error::invalid(format!("`{what}` is misaligned"))
            .why(format!("no such structure begins at {pointer:p}"))
    }
    if pointer.is_null() || !pointer.is_aligned() { Err(refused(pointer.cast(), what)) } else { Ok(()) }
}

/// What a caller's pointer points to.
///
/// # Safety
/// `pointer` is NULL or points to a T.
pub(super) unsafe fn at<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    check(pointer, what)?;
    // SAFETY: not NULL and aligned, as checked; what it points to is what the C caller promises.
    Ok(unsafe { &*pointer })
}

/// What a caller's pointer points to, to be changed.
///
/// # Safety
/// `pointer` is NULL or points to a T that nobody else uses during the call.
pub(super) unsafe fn at_mut<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T> {
    check(pointer, what)?;
    // SAFETY: not NULL and aligned, as checked; that it points to a T which nobody else uses is what the C caller promises.
    Ok(unsafe { &mut *pointer })
}

/// The handle behind a caller's pointer.
///
/// # Safety
/// `td` is NULL or came from `td_open`.
pub(super) unsafe fn handle(td: *const td) -> Result<Handle> {
    check(td, "td")?;
    let td = NonNull::new(td.cast_mut()).expect("not NULL");
    // SAFETY: not NULL and aligned, as checked; that it came from td_open is what the C caller promises, and the pool keeps a
    // handle's memory after td_close.
    unsafe { Handle::from_raw(td) }
        .ok_or_else(|| Error::invalid("`td` is no handle").why(format!("none begins at {td:p}")))
}

/// Writes a result to a caller's memory, if there is one.
///
/// # Safety
/// `out` is NULL or points to memory for a T.
#[inline(always)]
pub(super) unsafe fn put<T>(out: *mut T, what: &str, value: impl FnOnce() -> Result<T>) -> Result<c_int> {
    check(out, what)?;
    let value = value()?;
    // SAFETY: not NULL and aligned, as checked; that it has room for a T is what the C caller promises. `write` does not read
    // what was there.
    unsafe { out.write(value) };
    Ok(0)
}
