//! Work that a thread of its own does, which shares all with the caller and ends at once.
//!
//! An event belongs to the thread that opened it, and prctl(PR_TASK_PERF_EVENTS_DISABLE) switches off all that belong to
//! the thread that calls it, whichever library opened them: times and counters stand still, and nothing tells. What a
//! thread that has ended opened belongs to nobody (kernel/events/core.c, perf_event_exit_task).

use super::signals::SignalBlock;
use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

/// Room for system calls and what they need.
const STACK: usize = 64 * 1024;
/// As the C library makes a thread, but that it shares the caller's thread-local storage: the caller waits.
const FLAGS: c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;

/// Runs `work` in such a thread, and comes back when it has ended. No signal may reach it, and it does not panic. Signals
/// are blocked as long as it runs, so that none is handled there.
pub fn on_helper_thread<W: FnMut()>(_: &SignalBlock, mut work: W) -> io::Result<()> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, where the kernel likes.
    let stack = unsafe { libc::mmap(null_mut(), STACK, access, flags | libc::MAP_STACK, -1, 0) };
    if stack == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let thread = AtomicI32::new(0);
    // SAFETY: the thread runs on memory of its own and with what `work` borrows, all of which is there until the kernel
    // has cleared `thread`, which it does when the thread executes nothing more.
    let made = unsafe {
        let top = stack.byte_add(STACK);
        let (argument, id) = (&raw mut work, thread.as_ptr());
        libc::clone(run::<W>, top, FLAGS, argument.cast::<c_void>(), id, null_mut::<c_void>(), id)
    };
    let made = if made < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    if made.is_ok() {
        wait(&thread);
    }
    // SAFETY: mapped above, and nobody's any more.
    unsafe { libc::munmap(stack, STACK) };
    made
}

extern "C" fn run<W: FnMut()>(work: *mut c_void) -> c_int {
    // SAFETY: `on_helper_thread` gave it, and waits.
    unsafe { (*work.cast::<W>())() };
    0
}

/// Until the kernel has written 0, as it does when the thread ends.
fn wait(thread: &AtomicI32) {
    loop {
        let id = thread.load(Ordering::Acquire);
        if id == 0 {
            return;
        }
        // SAFETY: a live word. The kernel wakes as for memory that processes share.
        unsafe {
            libc::syscall(libc::SYS_futex, thread.as_ptr(), libc::FUTEX_WAIT, id, null_mut::<c_void>())
        };
    }
}
