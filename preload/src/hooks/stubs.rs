//! Stubs, which callers of hooked functions jump to: what each stands for, and where the trampoline's places are.

use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};

/// How many functions can be hooked.
pub const STUBS: usize = 2048;
pub const STUB_SIZE: usize = 16;

/// What a stub stands for.
struct HookTarget {
    function: AtomicUsize,
    name: AtomicPtr<c_char>,
}

static HOOKED: [HookTarget; STUBS] =
    [const { HookTarget { function: AtomicUsize::new(0), name: AtomicPtr::new(ptr::null_mut()) } }; STUBS];
/// How many are taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// Whether there is something to look for, and what is hooked is measured.
pub static STARTED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    safe static td_stubs: u8;
    safe static td_return: u8;
    safe static td_pass: u8;
}

/// Where the stub of this number is.
pub fn stub(number: usize) -> usize {
    debug_assert!(number < STUBS);
    &raw const td_stubs as usize + number * STUB_SIZE
}

/// What a hooked function has for a return address.
pub fn return_address() -> usize {
    &raw const td_return as usize
}

/// Where unwinders find the frame of an entry.
pub fn pass_address() -> usize {
    &raw const td_pass as usize
}

/// Whether what is hooked is measured.
#[inline(always)]
pub fn started() -> bool {
    STARTED.load(Relaxed)
}

/// The function that a stub stands for, and its name.
pub fn hooked(number: usize) -> (usize, *const c_char) {
    let hooked = &HOOKED[number];
    if cfg!(target_arch = "x86_64") {
        return (hooked.function.load(Relaxed), hooked.name.load(Relaxed));
    }
    // (who sees the stub in a slot may see what was written before a moment later)
    let mut function = 0;
    while function == 0 {
        function = hooked.function.load(Acquire);
    }
    (function, hooked.name.load(Relaxed))
}

/// How many stubs are left.
#[cfg_attr(target_arch = "aarch64", allow(dead_code))]
pub fn left() -> usize {
    STUBS - TAKEN.load(Relaxed)
}

/// The number of a stub that nobody has.
pub fn take() -> Option<usize> {
    TAKEN.fetch_update(Relaxed, Relaxed, |taken| (taken < STUBS).then_some(taken + 1)).ok()
}

/// Has a stub stand for a function. The name is a C string that stays: regions may be called by it.
pub fn set_hooked(number: usize, function: usize, name: *const c_char) {
    HOOKED[number].name.store(name.cast_mut(), Relaxed);
    HOOKED[number].function.store(function, Release);
}

/// Whether the slot of an entry, whose function was left by longjmp, holds something else than td_return: nobody can return through
/// it. Its stack may be gone, so it is read with care.
#[cfg(target_arch = "x86_64")]
pub fn overwritten(slot: usize, _busy: usize) -> bool {
    let mut value = 0usize;
    let local = libc::iovec { iov_base: (&raw mut value).cast(), iov_len: size_of::<usize>() };
    let remote = libc::iovec { iov_base: slot as *mut std::ffi::c_void, iov_len: size_of::<usize>() };
    // SAFETY: writes to the variable only.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    read == size_of::<usize>() as isize && value != return_address()
}

/// Whether nobody can return through an entry, whose function was left by longjmp: its return address was below the stack pointer
/// of a caller that now calls a function, in `busy`, from there, and has not jumped there from the first one (a tail call).
#[cfg(target_arch = "aarch64")]
pub fn overwritten(slot: usize, busy: usize) -> bool {
    // SAFETY: `busy` is where `td_enter` has the return address of a call that is on its way, if it is a slot at all.
    slot == busy && unsafe { *(busy as *const usize) } != return_address()
}
