//! Whether all programs of a command kept their events: a thread takes the kernel's records as they come, so that none is lost for want
//! of room however many programs there are.
#![forbid(unsafe_code)]

use super::whom::online;
use crate::sys;
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use topdown_seam::execs::Execs;
use topdown_seam::signals::Blocked;

/// Of more CPUs they are not watched: each thread that starts inherits an event for each CPU.
const MOST_CPUS: usize = 16;
/// So long at least from one look to the next. (A buffer that wakes has room for three times as much as is in it.)
const PAUSE: Duration = Duration::from_millis(10);

/// Watches from now until it is asked.
pub struct ExecsWatch {
    cpus: BTreeSet<u32>,
    /// Its other end wakes the thread when this one is closed.
    stop: UnixStream,
    thread: JoinHandle<Execs>,
}

impl ExecsWatch {
    /// Of a process that is about to execute a program; None: it cannot be watched.
    pub fn of(pid: i32) -> Option<ExecsWatch> {
        let cpus = online();
        if cpus.len() > MOST_CPUS {
            return None;
        }
        let mut execs = Execs::of(pid, cpus.iter().copied()).ok()?;
        let (stop, stopped) = UnixStream::pair().ok()?;
        let takes = move || {
            let mut descriptors = vec![stopped.as_raw_fd()];
            descriptors.extend(execs.descriptors());
            loop {
                let come = sys::wait_for(&descriptors, None);
                execs.take();
                if come[0] || sys::wait_for(&descriptors[..1], Some(Instant::now() + PAUSE))[0] {
                    return execs;
                }
            }
        };
        let _signals = Blocked::new(); // they are for the thread that waits for the command
        let thread = thread::Builder::new().spawn(takes).ok()?;
        Some(ExecsWatch { cpus, stop, thread })
    }

    /// Whether all programs that were executed so far have kept their events. False: that is not known, or they have not.
    pub fn all_kept(self) -> bool {
        drop(self.stop);
        let Ok(mut execs) = self.thread.join() else { return false };
        execs.all_kept() && online() == self.cpus
    }
}
