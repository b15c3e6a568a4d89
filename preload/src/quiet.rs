//! Stretches of code in which the thread is left alone: a lock is held there, and who comes for the same one in a signal
//! handler would wait for itself; a thread that was cancelled there would never give it back.

use std::mem::zeroed;
use std::ptr::null_mut;

/// As long as it lives, no signal handler runs in this thread, and nobody cancels it.
pub struct Quiet {
    signals: libc::sigset_t,
    _cancel: Uncancelled,
    /// A thread's own: it cannot be sent to another.
    _own: std::marker::PhantomData<*mut ()>,
}

/// As long as it lives, nobody cancels this thread.
pub struct Uncancelled(i32);

unsafe extern "C" {
    fn pthread_setcancelstate(state: i32, before: *mut i32) -> i32;
}
const PTHREAD_CANCEL_DISABLE: i32 = 1;

impl Uncancelled {
    #[inline]
    pub fn new() -> Uncancelled {
        let mut before = 0;
        // SAFETY: a live int.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a state that it had.
        unsafe { pthread_setcancelstate(self.0, null_mut()) };
    }
}

impl Quiet {
    pub fn new() -> Quiet {
        let cancel = Uncancelled::new();
        // SAFETY: live sets. Signals of this thread's own faults are not blocked: the kernel would end the process, and a
        // handler of SIGSEGV is what readings rely on where RDPMC is taken away.
        let signals = unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
            libc::sigfillset(&mut all);
            for fault in
                [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS]
            {
                libc::sigdelset(&mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
            before
        };
        Quiet { signals, _cancel: cancel, _own: std::marker::PhantomData }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: the set that it had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.signals, null_mut()) };
    }
}
