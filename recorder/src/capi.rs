//! The C interface: what include/topdown_record.h declares, which is made of the comments here and topdown_record.h.in.

use crate::options::{self, RecordOptions};
use crate::{last_error, recording};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use topdown::{Error, Result};
use topdown_seam::cancelled_later;

/// Runs an entry point: what it fails with becomes a code, and this thread's last-error text. No panic passes.
fn guard(work: impl FnOnce() -> Result<()>) -> c_int {
    let failed = |_| Err(Error::new(-libc::EFAULT, "the library failed in itself, please report it"));
    match catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed) {
        Ok(()) => 0,
        Err(error) => {
            last_error::set(error.to_string());
            error.code()
        }
    }
}

/// Begins to record all threads of this process, also those that start later. One recording at a time.
///
/// `options` may be NULL. A thread of the library, which is not recorded itself, asks for bursts of samples of the others. It has
/// all signals of the program blocked, and descriptors of its own (since Linux 5.9), which neither the program nor its
/// children see.
///
/// Children of a fork are not recorded; they may begin recordings of their own. An exec, or the end of the process, ends the
/// recording, and nothing is written.
///
/// Any thread may call this.
///
/// Returns 0, or:
///  -EINVAL         options->size or another field is wrong
///  -E2BIG          `options` has a value that this version does not know
///  -EBUSY          there is a recording already, or another thread is in one of these calls
///  -EAGAIN         no thread can be made
/// or what td_open returns where general-purpose counters cannot be counted (-ENODEV, -EACCES, -EPERM ...).
///
/// # Safety
/// `options` is NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_record_start(options: *const RecordOptions) -> c_int {
    // SAFETY: the caller's word.
    unsafe { start(options) }
}

cancelled_later! {
/// # Safety
/// As td_record_start.
unsafe extern "C" fn start(options: *const RecordOptions) -> c_int {
    // SAFETY: NULL or what the header calls it, which the C caller promises.
    guard(|| recording::start(unsafe { options::read(options) }?))
}

/// # Safety
/// As td_record_stop.
unsafe extern "C" fn stop(path: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: NULL or a string, which the C caller promises.
        let path = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) });
        recording::stop(path.map(|path| Path::new(OsStr::from_bytes(path.to_bytes()))))
    })
}
}

/// Ends the recording, and writes the profile to a file.
///
/// The ending of `path` chooses the format: .html, .svg, .json, .csv, .folded, .pprof, .firefox.json, .txt or none (text). "-" is standard output
/// (text). NULL discards the recording. Any thread may call this, whichever began the recording. It takes as long as it takes to
/// read the symbols of the functions that were seen; signals are blocked meanwhile.
///
/// Returns 0, or:
///  -EINVAL         `path` is empty, or has the ending of no format
///  -ENODATA        there is no recording; in a child of a fork: it is the parent's
///  -EBUSY          another thread is in one of these calls
///  -ENOENT, -EACCES ...  the file cannot be opened
///  -ENOSPC ...     the file cannot be written
/// After a failure nothing is lost: the recording goes on if the file could not be opened, and has ended and is kept if it could not
/// be written. Call this again, with another path.
///
/// # Safety
/// `path` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_record_stop(path: *const c_char) -> c_int {
    // SAFETY: the caller's word.
    unsafe { stop(path) }
}

/// Copies the calling thread's last failure of these calls in full: what happened, why, and what to do about it.
///
/// `buffer` receives the text, cut to `length` - 1 bytes, and a NUL. Pass NULL and 0 to ask for the length. Successful calls
/// do not change the text. Any thread may call this.
///
/// Returns the length of the whole text without the NUL, 0 if no call of this thread has failed yet; or -EINVAL if
/// `buffer` is NULL and `length` is not 0.
///
/// # Safety
/// `buffer` is NULL or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_record_last_error(buffer: *mut c_char, length: usize) -> c_int {
    if buffer.is_null() && length > 0 {
        return -libc::EINVAL;
    }
    let text = last_error::get();
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
