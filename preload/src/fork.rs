//! A forked child is measured as its parent is: with a table and handles of its own, in the regions that had begun.

use crate::at_work::AtWork;
use crate::begin::begin_process;
use crate::engine::ThreadState;
use crate::process::{MeasuredProcess, Threads};
use crate::stack::{self, StackGuard};
use crate::{end, fault, memory};
use std::cell::Cell;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use topdown_seam::signals::NeverCancelled;

/// Bytes that are allocated at most when a process forks (names of its open regions).
const FORK: usize = 1 << 19;

/// Names of the forking thread's open regions; locked from before the fork until after it.
static OPEN: Mutex<Vec<(CString, u32)>> = Mutex::new(Vec::new());

thread_local! {
    /// What the thread has locked while it forks, so that no other thread holds it in the child; NULL: nothing. (The child has this thread's.)
    static HELD: Cell<*mut HeldByFork> = const { Cell::new(null_mut()) };
}

struct HeldByFork {
    _threads: MutexGuard<'static, Threads>,
    open: MutexGuard<'static, Vec<(CString, u32)>>,
    stack: StackGuard,
    /// Until everything is let go of.
    blocked: NeverCancelled,
}

/// Has forks noticed.
pub fn notice() {
    // SAFETY: functions of this library, which is not unloaded.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
}

extern "C" fn before_fork() {
    let _work = AtWork::new();
    // (whoever is at its end may be at the report, and have forked in a signal handler)
    let Some(process) = MeasuredProcess::here().filter(|process| !process.has_ended()) else { return };
    let blocked = NeverCancelled::new();
    let stack = stack::lock();
    if !memory::secure(FORK) {
        return; // the child is not measured
    }
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.clear();
    if let Some(thread) = ThreadState::current() {
        open.extend(thread.open_regions().into_iter().map(|(name, again)| (name.to_owned(), again)));
    }
    let held = HeldByFork { _threads: process.threads(), open, stack, blocked };
    HELD.set(Box::into_raw(Box::new(held)));
}

fn release() -> Option<Box<HeldByFork>> {
    let held = HELD.replace(null_mut());
    // SAFETY: made by `before_fork` in this thread, or in the one that this is a copy of.
    (!held.is_null()).then(|| unsafe { Box::from_raw(held) })
}

extern "C" fn after_fork() {
    let _work = AtWork::new();
    drop(release());
}

extern "C" fn in_child() {
    let _work = AtWork::new();
    let Some(mut held) = release() else { return };
    let open = std::mem::take(&mut *held.open);
    let HeldByFork { _threads, open: names, stack, blocked: _blocked } = *held;
    drop((_threads, names));
    let Some(old) = MeasuredProcess::get() else { return };
    MeasuredProcess::set(None);
    end::forget();
    ThreadState::set_current(null_mut());
    fault::forget();
    // the parent's handles, whose descriptors this child has, too
    old.threads().live.clear();
    stack::call(&stack, || {
        let output = old.output.clone();
        // (without a word: the program has begun, and may not be where files can be made)
        let Ok(tables) = output.create() else { return };
        begin_process(tables, output, &open);
    });
}
