//! Stretches of code in which the thread is left alone: a lock is held there, and who comes for the same one in a signal
//! handler would wait for itself; a thread that was cancelled there would never give it back.

use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr::null_mut;

/// As long as it lives, no signal handler runs in this thread, and nobody cancels it.
pub struct Quiet {
    signals: libc::sigset_t,
    cancel: c_int,
    /// A thread's own: it cannot be sent to another.
    _own: std::marker::PhantomData<*mut ()>,
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}
const PTHREAD_CANCEL_DISABLE: c_int = 1;

impl Quiet {
    pub fn new() -> Quiet {
        let mut cancel = 0;
        // SAFETY: a live int.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut cancel) };
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
        Quiet { signals, cancel, _own: std::marker::PhantomData }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: the state and the set that it had. A handler that runs now finds everything done, and may leave by longjmp.
        unsafe {
            pthread_setcancelstate(self.cancel, null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.signals, null_mut());
        }
    }
}
