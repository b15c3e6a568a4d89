//! Whether all programs of a command kept their events: a thread takes the kernel's records as they come, so that none is lost for want
//! of room however many programs there are.
#![forbid(unsafe_code)]

use super::cpus::online;
use crate::sys;
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
pub use topdown_seam::execs::ExecEvents;
use topdown_seam::execs::Execs;
use topdown_seam::signals::SignalBlock;

/// Of more CPUs they are not watched: each thread that starts inherits an event for each CPU.
const MOST_CPUS: usize = 16;
/// So long at least from one look to the next. (A buffer that wakes has room for three times as much as is in it.)
const PAUSE: Duration = Duration::from_millis(10);

/// Watches from now on.
pub struct ExecsWatch {
    cpus: BTreeSet<u32>,
    execs: Arc<Mutex<Execs>>,
    /// Its other end ends the thread when this one is closed.
    _stop: UnixStream,
}

fn locked(execs: &Mutex<Execs>) -> MutexGuard<'_, Execs> {
    execs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExecsWatch {
    /// Of a process that is about to execute a program; None: it cannot be watched.
    pub fn of(pid: i32) -> Option<ExecsWatch> {
        let cpus = online();
        if cpus.len() > MOST_CPUS {
            return None;
        }
        let execs = Execs::of(pid, cpus.iter().copied()).ok()?;
        let (stop, stopped) = UnixStream::pair().ok()?;
        let mut descriptors = vec![stopped.as_raw_fd()];
        descriptors.extend(execs.descriptors());
        let execs = Arc::new(Mutex::new(execs));
        let its = Arc::clone(&execs);
        let takes = move || {
            let _stopped = stopped;
            loop {
                let come = sys::wait_for(&descriptors, None);
                locked(&its).take();
                if come[0] || sys::wait_for(&descriptors[..1], Some(Instant::now() + PAUSE))[0] {
                    return;
                }
            }
        };
        let _signals = SignalBlock::new(); // they are for the thread that waits for the command
        thread::Builder::new().spawn(takes).ok()?;
        Some(ExecsWatch { cpus, execs, _stop: stop })
    }

    /// Whether all programs that were executed so far have kept their events.
    pub fn kept(&self) -> ExecEvents {
        let kept = locked(&self.execs).kept();
        if sys::maps_vdso() && online() == self.cpus { kept } else { ExecEvents::Unknown }
    }

    /// Whether processes have ended for which nobody of the command waited.
    pub fn has_orphans(&self) -> bool {
        locked(&self.execs).has_orphans()
    }
}
