//! What is done once in a process, and survives a fork while it is being done.

use std::ffi::c_void;
use std::mem::zeroed;
use std::sync::atomic::{AtomicU32, Ordering};

/// Who is doing it: a process; 0 for none, `DONE` when it is done.
pub(crate) struct ProcessOnce(AtomicU32);

const DONE: u32 = u32::MAX;

impl ProcessOnce {
    pub const fn new() -> ProcessOnce {
        ProcessOnce(AtomicU32::new(0))
    }

    /// Does it, unless it is done; false if it failed.
    pub fn run(&self, work: impl Fn() -> bool) -> bool {
        let process = std::process::id();
        let work = || {
            let done = work();
            self.0.store(if done { DONE } else { 0 }, Ordering::Release);
            done
        };
        for _ in 0..1000 {
            match self.0.compare_exchange(0, process, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return work(),
                Err(DONE) => return true,
                // a thread of the parent's, which this forked child does not have
                Err(holder) if holder != process => {
                    let taken =
                        self.0.compare_exchange(holder, process, Ordering::Acquire, Ordering::Acquire);
                    if taken.is_ok() {
                        return work();
                    }
                }
                Err(_) => std::thread::yield_now(),
            }
        }
        false
    }
}

/// The object that this code is in is not to be unloaded: libtopdown.so is linked so, but the static library may be in
/// another.
pub(crate) fn stay_loaded(code: usize) {
    // SAFETY: an address of ours, and the name that the dynamic linker has for its object.
    unsafe {
        let mut here: libc::Dl_info = zeroed();
        if libc::dladdr(code as *const c_void, &mut here) != 0 {
            libc::dlopen(here.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}
