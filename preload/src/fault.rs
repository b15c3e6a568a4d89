//! The table file is mapped, and whoever may write to it may truncate it: the kernel then raises SIGBUS in the thread that next
//! touches a page beyond the file's new end.
//!
//! A handler puts zeroed memory of the process's own in the place of such a page, and the thread goes on; what it counts
//! from then on is not reported. Every other SIGBUS is passed on as if the handler were not there. No mapping that
//! outlives kill -9 avoids this: memfd_create(2) has F_SEAL_SHRINK, but its memory is gone with the last process
//! that has it open or mapped, a lease needs a descriptor, which programs close, and mode bits do not stop the owner.

use libc::{c_int, c_void, sigaction, siginfo_t};
use std::mem::{MaybeUninit, zeroed};
use std::ptr::{addr_of_mut, null, null_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

const PAGE: usize = 4096;

/// Whether a page at this address is one of a mapped table. Lock-free: the handler asks.
pub type IsMapped = fn(usize) -> bool;

static ASK: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicBool = AtomicBool::new(false);
/// What was there before: written once, before the handler is installed.
static mut PREVIOUS: MaybeUninit<sigaction> = MaybeUninit::uninit();

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
    // SAFETY: plain data, of which zeros are values; before main nobody else writes PREVIOUS.
    unsafe {
        let mut ours: sigaction = zeroed();
        let previous = addr_of_mut!(PREVIOUS).cast::<sigaction>();
        let asked = libc::sigaction(libc::SIGBUS, null(), previous) == 0;
        // (an ignored signal stays so over an exec, which a handler does not)
        if !asked || (*previous).sa_sigaction == libc::SIG_IGN {
            return;
        }
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        if (*previous).sa_sigaction != libc::SIG_DFL {
            ours.sa_flags |= (*previous).sa_flags & !libc::SA_RESETHAND;
            ours.sa_mask = (*previous).sa_mask;
        }
        ours.sa_sigaction = on_fault as *const () as usize;
        libc::sigaction(libc::SIGBUS, &ours, null_mut());
    }
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's record; errno is this thread's.
    unsafe {
        let errno = *libc::__errno_location();
        if (*info).si_code == libc::BUS_ADRERR && replace((*info).si_addr() as usize) {
            *libc::__errno_location() = errno;
            return;
        }
        pass_on(signal, info, context);
    }
}

/// Puts zeroed memory in the place of a table's page.
fn replace(address: usize) -> bool {
    let ask = ASK.load(Acquire);
    // SAFETY: what `survive` stored.
    if ask == 0 || !unsafe { std::mem::transmute::<usize, IsMapped>(ask) }(address) {
        return false;
    }
    let page = (address & !(PAGE - 1)) as *mut c_void;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a page of our own mapping, on which nothing but plain data is.
    unsafe {
        if libc::mmap(page, PAGE, access, flags | libc::MAP_FIXED, -1, 0) == libc::MAP_FAILED {
            return false;
        }
        // as the rest of the mapping
        libc::madvise(page, PAGE, libc::MADV_DONTFORK);
    }
    LOST.store(true, Release);
    true
}

/// What the signal would have done.
unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: written before the handler was installed; a function of the type that its flags say.
    unsafe {
        let previous = &*addr_of_mut!(PREVIOUS).cast::<sigaction>();
        if previous.sa_sigaction == libc::SIG_DFL {
            // when this handler has returned: by the same fault, or by the signal once more
            libc::sigaction(signal, previous, null_mut());
            if (*info).si_code <= 0 {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
            }
        } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
            let run: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                std::mem::transmute(previous.sa_sigaction);
            run(signal, info, context);
        } else {
            let run: extern "C" fn(c_int) = std::mem::transmute(previous.sa_sigaction);
            run(signal);
        }
    }
}
