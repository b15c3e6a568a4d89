//! Signals are blocked while a handle is opened or closed, and where memory is taken: a handler that left by siglongjmp would
//! lose what the caller has not got yet.

use std::marker::PhantomData;

/// A signal's bit in the kernel's set, which is one word.
const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Signals of an instruction's own fault: the kernel ends a process that blocks them, and the handler of SIGSEGV is what
/// readings rely on where RDPMC is taken away.
const FAULTS: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGILL)
    | bit(libc::SIGFPE)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS);

/// As long as it lives, no handler of an asynchronous signal runs in this thread, nor is the thread cancelled.
pub struct Blocked {
    before: u64,
    /// A thread's own: it is not sent to another.
    _here: PhantomData<*mut ()>,
}

#[allow(clippy::new_without_default)] // it does something
impl Blocked {
    /// Blocks them from now on.
    pub fn new() -> Blocked {
        Blocked { before: set_mask(libc::SIG_BLOCK, !FAULTS), _here: PhantomData }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        set_mask(libc::SIG_SETMASK, self.before);
    }
}

/// The system call, not the C library's function: that leaves out the signal by which it cancels threads. Where a seccomp
/// filter refuses it, the mask stays as it is.
fn set_mask(how: libc::c_int, set: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: both are live sets of 8 bytes, as the kernel has them.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &set, &mut before, size_of::<u64>()) };
    before
}
