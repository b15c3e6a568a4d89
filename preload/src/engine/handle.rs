//! What reads a thread: counters, or clocks.

use super::clocks;
use std::ptr::NonNull;
use topdown::{Result, Sample, TopDown};

/// What a thread's executions are read by: a handle of its own, or where nothing counts slots, clocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ThreadHandle(Option<NonNull<TopDown>>);

impl ThreadHandle {
    /// Time alone is measured.
    pub const CLOCKS: ThreadHandle = ThreadHandle(None);

    /// # Safety
    /// The handle lives until the thread that has it ends, or the process.
    pub unsafe fn new(td: &TopDown) -> ThreadHandle {
        ThreadHandle(Some(NonNull::from(td)))
    }

    /// The handle; None: there are clocks alone.
    #[inline]
    pub fn counters(&self) -> Option<&TopDown> {
        // SAFETY: the word of who called `new`.
        self.0.map(|td| unsafe { td.as_ref() })
    }

    /// The handle.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub unsafe fn counters_unchecked(&self) -> &TopDown {
        // SAFETY: the caller's word, and that of who called `new`.
        unsafe { self.0.unwrap_unchecked().as_ref() }
    }

    /// A reading by the handle's thread. Of clocks: elapsed time as the one in which counters are enabled, CPU time as the one in which
    /// they run.
    pub fn read(&self) -> Result<Sample> {
        self.counters().map_or_else(|| Ok(clocks::now()), TopDown::read)
    }

    /// The last reading, by another thread than the handle's, which is this one.
    pub fn read_last(&self, thread: libc::pid_t) -> Result<Sample> {
        self.counters().map_or_else(|| clocks::now_of(thread), TopDown::read_last)
    }
}
