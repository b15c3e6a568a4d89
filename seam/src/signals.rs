//! Signals are blocked while a handle is opened or closed, and where memory is taken: a handler that left by siglongjmp would
//! lose what the caller has not got yet.

use libc::c_int;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// A signal's bit in the kernel's set, which is one word.
const fn bit(signal: c_int) -> u64 {
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

/// Signals of the C library, by which it cancels threads and changes the identity of all of them.
const OF_THE_C_LIBRARY: u64 = bit(32) | bit(33);

/// A mask of signals that is put back at the end.
struct Mask {
    before: u64,
    /// A thread's own: it is not sent to another.
    _here: PhantomData<*mut ()>,
}

impl Mask {
    fn block(set: u64) -> Mask {
        Mask { before: set_mask(libc::SIG_BLOCK, set), _here: PhantomData }
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        set_mask(libc::SIG_SETMASK, self.before);
    }
}

/// As long as it lives, no handler of an asynchronous signal runs in this thread, nor is the thread cancelled: it would end by an
/// exception of the C library's, which Rust does not let through.
pub struct SignalBlock {
    cancel: c_int,
    _mask: Mask,
}

#[allow(clippy::new_without_default)] // it does something
impl SignalBlock {
    /// Blocks them from now on.
    pub fn new() -> SignalBlock {
        let mut cancel = 0;
        // SAFETY: a live int.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut cancel) };
        SignalBlock { cancel, _mask: Mask::block(!FAULTS) }
    }
}

impl Drop for SignalBlock {
    fn drop(&mut self) {
        // SAFETY: the state that it had.
        unsafe { pthread_setcancelstate(self.cancel, null_mut()) };
    }
}

/// The same for stretches in which a lock is held and the C library is called: who comes for the lock in a signal handler
/// would wait for itself, and a thread that was cancelled in a call would never give it back. The C library's own signals
/// are let through.
pub struct NeverCancelled {
    cancel: c_int,
    _mask: Mask,
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}
const PTHREAD_CANCEL_DISABLE: c_int = 1;

#[allow(clippy::new_without_default)] // it does something
impl NeverCancelled {
    /// From now on.
    pub fn new() -> NeverCancelled {
        let mut cancel = 0;
        // SAFETY: a live int.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut cancel) };
        NeverCancelled { cancel, _mask: Mask::block(!(FAULTS | OF_THE_C_LIBRARY)) }
    }
}

impl Drop for NeverCancelled {
    fn drop(&mut self) {
        // SAFETY: the state that it had. The mask is put back behind this: a handler that runs then finds everything done, and
        // may leave by longjmp.
        unsafe { pthread_setcancelstate(self.cancel, null_mut()) };
    }
}

/// The system call, not the C library's function: that leaves out the signal by which it cancels threads. Where a seccomp
/// filter refuses it, the mask stays as it is.
fn set_mask(how: c_int, set: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: both are live sets of 8 bytes, as the kernel has them.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &set, &mut before, size_of::<u64>()) };
    before
}

/// Whether all signals are blocked in this thread, but for faults and what cannot be.
pub fn all_are_blocked() -> bool {
    const NEVER: u64 = bit(libc::SIGKILL) | bit(libc::SIGSTOP);
    set_mask(libc::SIG_BLOCK, 0) | NEVER | FAULTS | OF_THE_C_LIBRARY == u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> u64 {
        set_mask(libc::SIG_BLOCK, 0)
    }

    #[test]
    fn signals_are_blocked_but_faults_and_let_through_again() {
        let before = mask();
        let blocked = SignalBlock::new();
        assert!(all_are_blocked());
        assert_eq!(mask() & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP)), !FAULTS & !(bit(9) | bit(19)));
        let state = |wanted| {
            let mut state = -1;
            // SAFETY: a live int.
            unsafe { pthread_setcancelstate(wanted, &mut state) };
            state
        };
        assert_eq!(state(PTHREAD_CANCEL_DISABLE), PTHREAD_CANCEL_DISABLE);
        {
            let _inner = NeverCancelled::new();
            assert_eq!(state(PTHREAD_CANCEL_DISABLE), PTHREAD_CANCEL_DISABLE);
        }
        drop(blocked);
        assert!(!all_are_blocked());
        assert_eq!((mask(), state(0)), (before, 0));
        {
            let _alone = NeverCancelled::new();
            assert_eq!(mask() & OF_THE_C_LIBRARY, 0);
            assert_ne!(mask() & bit(libc::SIGALRM), 0);
        }
        assert_eq!((mask(), state(0)), (before, 0));
    }
}
