//! rdpmc.h, interrupts.h and measure.h.

use super::guard;
use crate::measure::{self, COUNTERS, Measure};
use crate::rdpmc::{self, Counter, Ctx};
use crate::{Attr, interrupts};
use libc::{FILE, c_char, c_int, c_uint};
use std::ffi::CStr;

/// Opens an event by number.
///
/// # Safety
/// `ctx` can be written, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdpmc_open(counter: c_uint, ctx: *mut Ctx) -> c_int {
    // SAFETY: the caller's word.
    unsafe { opened(ctx, || Counter::open_number(counter)) }
}

/// Opens an event, in the group of another.
///
/// # Safety
/// `attr` is as large as its `size` says, `ctx` can be written, `leader` is open; any may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdpmc_open_attr(attr: *mut Attr, ctx: *mut Ctx, leader: *mut Ctx) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        opened(ctx, || {
            let leader = if leader.is_null() { -1 } else { (*leader).fd };
            (!attr.is_null()).then(|| Counter::open(attr, leader))?
        })
    }
}

/// # Safety
/// `ctx` can be written, or is NULL.
unsafe fn opened(ctx: *mut Ctx, open: impl FnOnce() -> Option<Counter>) -> c_int {
    if ctx.is_null() {
        return -1;
    }
    let counter = guard(None, open);
    let result = if counter.is_some() { 0 } else { -1 };
    // SAFETY: the caller's word.
    unsafe { ctx.write(counter.map_or(Ctx::CLOSED, Counter::into_ctx)) };
    result
}

/// Closes a counter; what is not open stays closed, a copy of a closed counter too.
///
/// # Safety
/// `ctx` can be read and written, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdpmc_close(ctx: *mut Ctx) {
    if !ctx.is_null() {
        // SAFETY: the caller's word.
        guard((), || drop(Counter::from_ctx(unsafe { ctx.replace(Ctx::CLOSED) })));
    }
}

/// The counter's total. No guard: there is nothing in `rdpmc::read` that can panic, and it is a few instructions.
///
/// # Safety
/// `ctx` is as rdpmc_open left it, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdpmc_read(ctx: *mut Ctx) -> u64 {
    // SAFETY: the caller's word.
    unsafe { rdpmc::read(ctx) }
}

/// Counts this thread's interrupts.
#[unsafe(no_mangle)]
pub extern "C" fn interrupts_init() {
    guard((), interrupts::init);
}

/// Counts them no longer.
#[unsafe(no_mangle)]
pub extern "C" fn interrupts_exit() {
    guard((), interrupts::exit);
}

/// How many since interrupts_init.
#[unsafe(no_mangle)]
pub extern "C" fn get_interrupts() -> u64 {
    guard(0, interrupts::get)
}

/// The thread measures this group; ends the program if it cannot.
///
/// # Safety
/// `group` is an array of N_COUNTER, or NULL; what it points to stays there. `name` is a string or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn measure_group_init(group: *mut Measure, name: *const c_char) {
    if group.is_null() {
        return;
    }
    let ready = guard(false, || {
        // SAFETY: the caller's word.
        let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
        // SAFETY: as above.
        measure::init(unsafe { group.cast::<[Measure; COUNTERS]>().read() }, name)
    });
    if !ready {
        // SAFETY: no lock of ours is held, so what runs at exit may call us.
        unsafe { libc::exit(1) };
    }
}

/// What follows is measured.
#[unsafe(no_mangle)]
pub extern "C" fn measure_group_start() {
    guard((), measure::start);
}

/// What follows is not.
#[unsafe(no_mangle)]
pub extern "C" fn measure_group_stop() {
    guard((), measure::stop);
}

/// The thread measures no group any more.
#[unsafe(no_mangle)]
pub extern "C" fn measure_group_finish() {
    guard((), measure::finish);
}

/// Prints all that was measured.
///
/// # Safety
/// `out` is open, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn measure_print_all(out: *mut FILE) {
    if !out.is_null() {
        // SAFETY: the caller's word.
        guard((), || unsafe { measure::print_all(out) });
    }
}

/// Forgets all that was measured.
#[unsafe(no_mangle)]
pub extern "C" fn measure_free_all() {
    guard((), measure::free_all);
}
