//! What is measured of this process.

use crate::engine::ThreadState;
use crate::output::Destination;
use crate::tables::TableFile;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use topdown::{Options, RegionTurn, TopDown};
use topdown_table::run::RunId;

/// What is measured of this process, and for whom.
pub struct MeasuredProcess {
    pub pid: libc::pid_t,
    pub run: RunId,
    pub tables: TableFile,
    pub options: Options,
    /// Groups that take turns; empty: one group counts all.
    pub groups: Vec<RegionTurn>,
    pub output: Destination,
    /// Threads are measured.
    pub measured: AtomicBool,
    /// By clocks, as counters could not be opened.
    pub by_clocks: AtomicBool,
    pub threads: Mutex<Threads>,
}

/// The threads that are measured, and those that were.
#[derive(Default)]
pub struct Threads {
    pub live: Vec<MeasuredThread>,
    /// States of threads that have ended, and in which others can go on.
    pub ended: Vec<&'static ThreadState>,
    /// How many have records.
    pub records: usize,
}

/// A thread that is measured, and its handle.
pub struct MeasuredThread {
    pub thread: &'static ThreadState,
    /// None: time alone is measured.
    pub td: Option<Box<TopDown>>,
    /// Handles that take turns with `td`; none comes or goes, so that each stays where it is.
    pub others: Vec<TopDown>,
}

impl Threads {
    /// Whether one more can begin, and all that have begun can end, without an allocation.
    pub fn has_room(&mut self) -> bool {
        self.live.try_reserve(1).is_ok() && self.ended.try_reserve(self.live.len() + 1).is_ok()
    }
}

/// NULL: nothing is measured. Never freed: other threads may be at it.
static PROCESS: AtomicPtr<MeasuredProcess> = AtomicPtr::new(null_mut());

impl MeasuredProcess {
    /// What is measured, if anything is.
    pub fn get() -> Option<&'static MeasuredProcess> {
        // SAFETY: it is never freed.
        unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
    }

    /// What is measured, if the caller is in the process that is measured, and not in a child that shares its memory.
    pub fn here() -> Option<&'static MeasuredProcess> {
        MeasuredProcess::get().filter(|process| process.is_here())
    }

    /// Whether the caller is in this process, and not in a child that shares its memory.
    pub fn is_here(&self) -> bool {
        self.pid == std::process::id() as libc::pid_t
    }

    /// From now on this process is what is measured. It stays for good.
    pub fn set(process: Option<&'static MeasuredProcess>) {
        let process = process.map_or(null_mut(), |process| std::ptr::from_ref(process).cast_mut());
        PROCESS.store(process, Ordering::Release);
    }

    pub fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is at its end: nothing begins to be measured any more.
    pub fn has_ended(&self) -> bool {
        self.tables.is_closed()
    }
}

/// Whether anything is measured.
pub fn active() -> bool {
    MeasuredProcess::get().is_some_and(|process| !process.has_ended())
}
