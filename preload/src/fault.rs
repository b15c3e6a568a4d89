//! The table file is mapped, and whoever may write to it may truncate it: the kernel then raises SIGBUS in the thread that next
//! touches a page beyond the file's new end.
//!
//! A handler puts zeroed memory of the process's own in the place of such a page, and the thread goes on; what it counts
//! from then on is not reported. Every other SIGBUS is passed on as if the handler were not there. No mapping that
//! outlives kill -9 avoids this: memfd_create(2) has F_SEAL_SHRINK, but its memory is gone with the last process
//! that has it open or mapped, a lease needs a descriptor, which programs close, and mode bits do not stop the owner.

use crate::memory;
use libc::{c_int, c_void, siginfo_t};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use topdown_seam::chained::ChainedAction;

/// Whether a page at this address is one of a mapped table. Lock-free: the handler asks.
pub type IsMapped = fn(usize) -> bool;

static ASK: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicBool = AtomicBool::new(false);
static CHAINED: ChainedAction = ChainedAction::new(libc::SIGBUS);

/// Whether a part of the table was lost in this process.
pub fn has_lost() -> bool {
    LOST.load(Acquire)
}

/// The table of the parent process was lost, not this one's.
pub fn forget() {
    LOST.store(false, Relaxed);
}

/// Installs the handler, once.
pub fn survive(is_mapped: IsMapped) {
    if ASK.swap(is_mapped as usize, Release) != 0 {
        return;
    }
    // SAFETY: a handler, which passes on what is not for it; before main nobody else is here.
    unsafe { CHAINED.install(on_fault as *const () as usize, true) };
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's record; errno is this thread's.
    unsafe {
        let errno = *libc::__errno_location();
        if (*info).si_code == libc::BUS_ADRERR && replace((*info).si_addr() as usize) {
            *libc::__errno_location() = errno;
            return;
        }
        CHAINED.next(info, context)(signal, info, context);
    }
}

/// Puts zeroed memory in the place of a table's page.
fn replace(address: usize) -> bool {
    let ask = ASK.load(Acquire);
    // SAFETY: what `survive` stored.
    if ask == 0 || !unsafe { std::mem::transmute::<usize, IsMapped>(ask) }(address) {
        return false;
    }
    let size = memory::page();
    let page = (address & !(size - 1)) as *mut c_void;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a page of our own mapping, on which nothing but plain data is.
    unsafe {
        if libc::mmap(page, size, access, flags | libc::MAP_FIXED, -1, 0) == libc::MAP_FAILED {
            return false;
        }
        // as the rest of the mapping
        libc::madvise(page, size, libc::MADV_DONTFORK);
    }
    LOST.store(true, Release);
    true
}
