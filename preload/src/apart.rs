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
/// The program's wait(2) does not see the process. All signals are blocked in it, so that none of the program's handlers
/// runs, and no SIGPIPE or SIGXFSZ ends it.
pub fn run(work: impl FnOnce() -> bool) -> Result<(), String> {
    // SAFETY: signal sets of this function.
    let copy = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let copy = copy(|| {
            memory::may_end_process();
            let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
            if done { DONE } else { SAID }
        });
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        copy
    };
    let copy = copy.map_err(|error| format!("no process for it: {error}"))?;
    let Some(status) = wait(copy) else {
        return Err("what became of its process is not known".into()); // the program has waited for it
    };
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, DONE | SAID) => Ok(()),
        (true, memory::NO_MEMORY) => Err("no memory".into()),
        _ => Err(ended(status)),
    }
}

/// How a process ended that should not have.
pub fn ended(status: c_int) -> String {
    format!("its process ended with wait status {status:#x}")
}

/// A copy of this process that does this, ends with its result, and is killed if this thread ends. Made by clone(2)
/// without a signal for its end: no handlers of fork run, and the program's wait(2) does not see it.
///
/// # Safety
/// All signals are blocked. The work uses of the C library only what takes no lock, and takes no lock of this library that
/// another thread may hold.
pub unsafe fn copy(work: impl FnOnce() -> c_int) -> Result<libc::pid_t, Error> {
    // SAFETY: the copy has one thread, this one, and all of its memory but what is not inherited.
    unsafe {
        let parent = libc::getpid();
        let child = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let status = if libc::getppid() == parent { work() } else { SAID };
            loop {
                libc::syscall(libc::SYS_exit_group, status);
            }
        }
        if child < 0 { Err(Error::last_os_error()) } else { Ok(child as libc::pid_t) }
    }
}

/// Waits for a child; its status, if it is known. (Not by waitpid, in which the thread could be cancelled.)
pub fn wait(child: libc::pid_t) -> Option<c_int> {
    let mut status: c_int = 0;
    loop {
        // SAFETY: a live int.
        let ended = unsafe {
            libc::syscall(libc::SYS_wait4, child, &raw mut status, libc::__WALL, null_mut::<libc::rusage>())
        };
        if ended == child.into() {
            return Some(status);
        }
        if Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}
