//! The process ends, or becomes another program: what there is left to know of it, and the report.

use crate::at_work::{AtWork, WorkGuard};
use crate::engine::ThreadState;
use crate::process::{MeasuredProcess, MeasuredThread};
use crate::tables::put;
use crate::threads::THREAD;
use crate::{apart, fault, memory, say, stack};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};
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
const PATIENCE: Duration = Duration::from_secs(10);
/// So long a thread that calls exit(3) waits for one that has called it before to come to the report. (That one may wait for this one, in a
/// function of the program's that exit calls.)
const PATIENCE_BEFORE: Duration = Duration::from_secs(1);

/// So long the end of the process waits for other threads that are at work on their handles, for all of them together.
const PATIENCE_FOR_OTHERS: Duration = Duration::from_secs(1);

/// The thread that came first, by its id; 0: none has.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// That one is done: 1.
static DONE: AtomicI32 = AtomicI32::new(0);
/// The thread that called exit(3) first.
static CALLED_EXIT: AtomicI32 = AtomicI32::new(0);

/// The process is a forked child: none of its threads has come to its end.
pub fn forget() {
    for word in [&FIRST, &DONE, &CALLED_EXIT] {
        word.store(0, Ordering::Relaxed);
    }
}

/// The first is done when the value goes.
struct FirstThread;

impl Drop for FirstThread {
    fn drop(&mut self) {
        DONE.store(1, Ordering::Release);
        wake(&DONE);
    }
}

fn thread_id() -> libc::pid_t {
    // SAFETY: the call has no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Wakes the threads that wait until the word is no longer 0.
fn wake(word: &'static AtomicI32) {
    // SAFETY: a word that is there for ever, at which the kernel does not write.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, libc::c_int::MAX) };
}

/// Waits until the word is no longer 0, at most so long.
fn wait(word: &'static AtomicI32, patience: Duration) {
    let begun = Instant::now();
    while word.load(Ordering::Acquire) == 0 {
        let Some(left) = patience.checked_sub(begun.elapsed()) else { return };
        let left = libc::timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
        // SAFETY: as in `wake`; the time is there until the call returns. (A signal handler ends the wait, too.)
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, 0, &raw const left) };
    }
}

/// The thread calls exit(3). If another thread is at its exit(3), glibc before 2.41 has no function of atexit(3) left to call for this one, and
/// would end the process at once: this one waits for the report of the other.
pub fn exits() {
    if MeasuredProcess::here().is_none() {
        return;
    }
    let own = thread_id();
    let called = CALLED_EXIT.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
    if called.is_err_and(|first| first != own) {
        wait(&FIRST, PATIENCE_BEFORE);
    }
    if ![0, own].contains(&FIRST.load(Ordering::Acquire)) {
        wait(&DONE, PATIENCE);
    }
}

/// Whether the calling thread is the first that has come to the end; if not, the first is done.
pub fn is_first() -> bool {
    let own = thread_id();
    match FIRST.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => wake(&FIRST),
        Err(first) if first == own => {}
        Err(_) => {
            wait(&DONE, PATIENCE);
            return false;
        }
    }
    true
}

/// The process ends in an orderly way.
pub fn finish() {
    let _work = AtWork::new();
    let Some(process) = MeasuredProcess::here() else { return };
    // (the first may have come before, or be at the report, which a signal handler interrupts)
    if !is_first() || process.tables.close() {
        return;
    }
    let _first = FirstThread;
    let alone = WorkGuard::new();
    let guard = stack::lock();
    let until = Instant::now() + PATIENCE_FOR_OTHERS;
    stack::call(&guard, || {
        for MeasuredThread { thread, .. } in process.threads().live.iter() {
            if ThreadState::is_current(*thread) { thread.end() } else { thread.end_of_another(until) }
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
