//! Exceptions, cancellation and backtraces go through hooked functions, whoever unwinds: a program may have an unwinder of its own, in
//! its file (-static-libgcc) or in a library (LLVM's), of which nothing is known here but that it reads unwind information.
//!
//! That of `td_return` leads to `td_pass`, which is only there to be unwound, and has this file's personality routine: it ends the
//! region, and has the unwinder go on. It asks nothing of the unwinder's context, which another unwinder's functions would take for
//! one of their own: which call is meant it finds by a walk of its own, up the same stack.
//!
//! Unwinders tell frames by where they end (libgcc, libgcc_s) or by their stack pointers (LLVM's), and end the process if one at which
//! they wanted to stop does not stop there. Nothing stops at `td_return`, though its stack pointer is its caller's: libgcc asks where
//! `td_pass` ends, which is a place of its own, and LLVM's does not ask where there is no personality routine.

use super::entries::{OpenCall, own_thread, unwound};
use super::stubs::pass_address;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

type Context = c_void;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        look: unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetGR(context: *mut Context, register: c_int) -> usize;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

/// The number that unwinders have for rbx, or x19.
const KEPT: c_int = if cfg!(target_arch = "x86_64") { 3 } else { 19 };

const CLEANUP_PHASE: c_int = 2;
const CONTINUE_UNWIND: c_int = 8;
const NO_REASON: c_int = 0;
const END_OF_STACK: c_int = 5;

/// Asked by an unwinder what is to be done in td_pass's frame: nothing, it goes on.
///
/// # Safety
/// An unwinder calls it, with a context of its own.
pub unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    _context: *mut c_void,
) -> c_int {
    if actions & CLEANUP_PHASE != 0 {
        let mut entry: *mut OpenCall = null_mut();
        // SAFETY: `find_open` gets the variable, and has found an entry, which stays until its stack is written over.
        unsafe {
            _Unwind_Backtrace(find_open, (&raw mut entry).cast());
            if !entry.is_null() {
                unwound(own_thread(), entry);
            }
        }
    }
    CONTINUE_UNWIND
}

/// Looks at a frame: stops at the first of a call that is open. (Those through which the unwinder has gone are not any more.)
unsafe extern "C" fn find_open(context: *mut Context, found: *mut c_void) -> c_int {
    // SAFETY: the context of this walk's unwinder, and the variable of who walks.
    unsafe {
        if _Unwind_GetIP(context) == pass_address() {
            let entry = _Unwind_GetGR(context, KEPT) as *mut OpenCall;
            if (*entry).is_open() {
                found.cast::<*mut OpenCall>().write(entry);
                return END_OF_STACK;
            }
        }
    }
    NO_REASON
}
