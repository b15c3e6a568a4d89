//! Work that may fail in any way: it is done in a process of its own, a copy of this one, while the thread waits. What
//! becomes of it there does not touch the program.

use crate::memory;
use std::ffi::c_int;
use std::io::Error;
use std::mem::zeroed;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// Exit status of a copy that did its work, and of one that failed and has said why.
const DONE: c_int = 0;
const SAID: c_int = 1;

/// Does this in a process of its own; `work` returns whether it did, and says why if not. Err: why nothing is known.
///
/// The copy is made by clone(2) without a signal for its end: no handlers of fork run, and the program's wait(2) does not see
/// it. All signals are blocked in it, so that none of the program's handlers runs, and no SIGPIPE or SIGXFSZ ends it; it
/// is killed if this thread ends.
pub fn run(work: impl FnOnce() -> bool) -> Result<(), String> {
    // SAFETY: signal sets of this function. The child has one thread, a copy of this one, and uses of the C library only
    // what takes no lock; locks of this library that other threads held are not taken.
    let child = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigfillset(&mut all);
        let parent = libc::getpid();
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let child = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            memory::may_end_process();
            let done = libc::getppid() == parent && catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
            loop {
                libc::syscall(libc::SYS_exit_group, if done { DONE } else { SAID });
            }
        }
        let error = Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        if child < 0 {
            return Err(format!("no process for it: {error}"));
        }
        child
    };
    let mut status: c_int = 0;
    loop {
        // (not by waitpid, in which the thread could be cancelled)
        // SAFETY: a live int.
        let ended = unsafe {
            libc::syscall(libc::SYS_wait4, child, &raw mut status, libc::__WALL, null_mut::<libc::rusage>())
        };
        if ended == child {
            break;
        }
        if Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return Err("what became of its process is not known".into()); // the program has waited for it
        }
    }
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, DONE | SAID) => Ok(()),
        (true, memory::NO_MEMORY) => Err("no memory".into()),
        _ => Err(format!("its process ended with wait status {status:#x}")),
    }
}
