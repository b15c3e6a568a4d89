//! What tells a simulated group how long those that it stands for have worked: their CPU time.
#![forbid(unsafe_code)]

use super::group::GroupTarget;
use crate::sys::{self, CpuTimeOf};
use std::cell::{Cell, RefCell};
use std::time::Instant;
use topdown::Error;
use topdown_seam::page::Times;

/// A clock of CPU time, from when it was made on.
pub struct SimulatedClock {
    of: Timed,
    /// It is never less than it was.
    last_ns: Cell<u64>,
    begun: Instant,
}

enum Timed {
    /// A command: it runs, or has been waited for since. The nanoseconds of others for which this process had waited before.
    Command(i32, u64),
    /// A thread that had used so much.
    Thread(i32, u64),
    /// A CPU, whose time passes while it is idle, too.
    Cpu(RefCell<CpuTimeOf>),
}

impl SimulatedClock {
    /// Of whom a group counts. `pid`: the command's.
    ///
    /// # Errors
    /// -ENOTSUP: a command's threads are not told apart.
    pub fn of(target: &GroupTarget, pid: i32) -> Result<SimulatedClock, Error> {
        let of = match target {
            GroupTarget::Command => Timed::Command(pid, sys::waited_for_ns()),
            GroupTarget::Thread(tid) => Timed::Thread(*tid, sys::thread_ns(*tid)),
            GroupTarget::Cpu(cpu) => {
                Timed::Cpu(RefCell::new(CpuTimeOf::cpus([format!("cpu{cpu}")].into_iter())))
            }
            GroupTarget::CommandOn(_) => {
                return Err(Error::new(-libc::ENOTSUP, "a simulated PMU writes no records of threads"));
            }
        };
        Ok(SimulatedClock { of, last_ns: Cell::new(0), begun: Instant::now() })
    }

    /// Nanoseconds of work, and the group's times.
    pub fn read(&self) -> (u64, Times) {
        let now = match &self.of {
            Timed::Command(pid, before) => sys::waited_for_ns() - before + sys::process_ns(*pid),
            Timed::Thread(tid, before) => sys::thread_ns(*tid).saturating_sub(*before),
            Timed::Cpu(time) => {
                time.borrow_mut().look();
                time.borrow().used().map_or(0, |used| used.total_ns())
            }
        };
        let busy = now.max(self.last_ns.get());
        self.last_ns.set(busy);
        let passed = match &self.of {
            Timed::Cpu(_) => self.begun.elapsed().as_nanos() as u64,
            _ => busy,
        };
        (busy.min(passed), Times { enabled: passed, running: passed })
    }
}
