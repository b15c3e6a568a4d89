//! The process ends, or becomes another program: what there is left to know of it, and the report.

use crate::at_work::{AtWork, WorkGuard};
use crate::engine::ThreadState;
use crate::process::{MeasuredProcess, MeasuredThread};
use crate::tables::put;
use crate::threads::THREAD;
use crate::{apart, fault, memory, say, stack};
use std::sync::atomic::{AtomicI32, Ordering};
use topdown_table::{EXECED, EXITED};

/// Bytes that are allocated at most for a message.
const MESSAGE: usize = 1 << 14;

/// The process is about to become another program, or to abort: what there is to know of this thread.
pub fn update(execs: bool) {
    let Some(process) = MeasuredProcess::here() else { return };
    let _alone = WorkGuard::new();
    if let Some(thread) = ThreadState::current() {
        thread.groups.update();
    }
    if execs {
        process.tables.ended().store(EXECED, Ordering::Relaxed);
    }
}

/// So long a thread that ends the process, too, waits for the report of the one that came first.
static PATIENCE: libc::timespec = libc::timespec { tv_sec: 10, tv_nsec: 0 };

/// The thread that came first, while it is at it: by its id; 0: there is none, or it is done.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// The calling thread is the first, as long as the value lives.
struct First;

impl First {
    fn new() -> First {
        FIRST.store(thread_id(), Ordering::Release);
        First
    }
}

impl Drop for First {
    fn drop(&mut self) {
        FIRST.store(0, Ordering::Release);
        // SAFETY: a word that is there for ever, at which the kernel does not write.
        unsafe { libc::syscall(libc::SYS_futex, FIRST.as_ptr(), libc::FUTEX_WAKE, libc::c_int::MAX) };
    }
}

fn thread_id() -> libc::pid_t {
    // SAFETY: the call has no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Another thread is at the report, which would end with the process.
fn wait_for_the_first() {
    let first = FIRST.load(Ordering::Acquire);
    if first != 0 && first != thread_id() {
        // SAFETY: as in `drop`; the time is there until the call returns.
        unsafe {
            libc::syscall(libc::SYS_futex, FIRST.as_ptr(), libc::FUTEX_WAIT, first, &raw const PATIENCE)
        };
    }
}

/// The process ends in an orderly way.
pub fn finish() {
    let _work = AtWork::new();
    let Some(process) = MeasuredProcess::here() else { return };
    if process.tables.close() {
        return wait_for_the_first();
    }
    let _first = First::new();
    let alone = WorkGuard::new();
    let guard = stack::lock();
    stack::call(&guard, || {
        for MeasuredThread { thread, .. } in process.threads().live.iter() {
            if ThreadState::is_current(*thread) { thread.end() } else { thread.end_of_another() }
        }
    });
    if fault::has_lost() {
        lost(process);
    }
    process.tables.ended().store(EXITED, Ordering::Release);
    drop(alone); // the report may wait for whoever reads it
    let (output, run, own) = (&process.output, process.run, process.tables.path());
    let is_ours = || run.root == process.pid || !memory::secure(THREAD) || output.is_ours_to_report(&run);
    if output.reports() && stack::call(&guard, is_ours) {
        // SAFETY: the copy is what `apart::run` makes.
        let report = || unsafe { output.report(process.pid, &run, own) };
        if let Err(why) = apart::run(|| stack::call(&guard, report)) {
            if memory::secure(MESSAGE) {
                output.no_report(own, &why);
            }
        }
    }
}

/// Somebody truncated the table file: says so, also in the file, if there is something left of it.
#[cold]
fn lost(process: &MeasuredProcess) {
    const WHY: &str = "its table file was truncated while it ran";
    process.tables.describe(|header| put(&mut header.trouble, WHY.as_bytes()));
    if memory::secure(MESSAGE) {
        say::say(&format!(
            "{}: truncated while the program ran: what was measured is lost in part",
            process.tables.path().display()
        ));
    }
}
