//! How long a command's threads ran, by a software event that goes from each to what it starts. (Linux 7.2 counts the enabled time of
//! inherited events on one CPU in part.) And how long a CPU was there.
#![forbid(unsafe_code)]

use super::group::GroupTarget;
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE};
use std::cell::Cell;
use std::io;
use topdown_seam::page::Times;
use topdown_seam::records::SAMPLE_TYPE;
use topdown_seam::{Attr, Kernel, Linux, group_read};

/// An open event.
pub struct TaskClock(<Linux as Kernel>::Fd);

fn dummy() -> Attr {
    let mut attr = Attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<Attr>() as u32,
        config: PERF_COUNT_SW_DUMMY.into(),
        read_format: group_read::TIMES,
        ..Attr::default()
    };
    attr.set_inherit(1);
    attr.set_exclude_kernel(1);
    attr.set_disabled(1);
    attr
}

impl TaskClock {
    /// Of a process, from its exec on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_command(pid: i32) -> io::Result<TaskClock> {
        let mut attr = dummy();
        attr.set_enable_on_exec(1);
        TaskClock::open(&attr, pid, -1)
    }

    /// Of a thread, or of a CPU, from now on; None: it has ended, or a command is meant.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(what: &GroupTarget) -> io::Result<Option<TaskClock>> {
        let (id, cpu) = match what {
            GroupTarget::Thread(id) => (*id, -1),
            GroupTarget::Cpu(cpu) => (-1, *cpu as i32),
            GroupTarget::Command | GroupTarget::CommandOn(_) => return Ok(None), // its id is not in it
        };
        let mut attr = dummy();
        attr.set_disabled(0);
        attr.set_inherit((cpu < 0).into());
        match TaskClock::open(&attr, id, cpu) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn open(attr: &Attr, id: i32, cpu: i32) -> io::Result<TaskClock> {
        let opened = Linux::default().open_group(&[*attr], id, cpu, None);
        Ok(TaskClock(opened.map_err(|refusal| refusal.error)?.remove(0)))
    }

    /// Nanoseconds so far.
    pub fn enabled_ns(&self) -> Option<u64> {
        let mut words = [0; 3];
        let got = Linux::default().read(&self.0, &mut words).ok()?;
        let (_, Times { enabled, .. }) = group_read::alone(&words[..got])?;
        Some(enabled)
    }
}

/// How long something was there to be counted: it may end.
pub struct TimeOf {
    /// Of what.
    pub of: GroupTarget,
    clock: Option<TaskClock>,
    /// What it showed last.
    last: Cell<u64>,
    /// Before it went.
    before_ns: u64,
}

impl TimeOf {
    /// Of a command.
    pub fn command(clock: TaskClock) -> TimeOf {
        TimeOf { of: GroupTarget::Command, clock: Some(clock), last: Cell::new(0), before_ns: 0 }
    }

    /// Of a thread, or of a CPU, from now on; None as of [`TaskClock::of`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(of: &GroupTarget) -> io::Result<Option<TimeOf>> {
        let clock = TaskClock::of(of)?;
        Ok(clock.map(|clock| TimeOf { of: of.clone(), clock: Some(clock), last: Cell::new(0), before_ns: 0 }))
    }

    /// So long it may have been there before.
    pub fn since_before(self, before_ns: u64) -> TimeOf {
        TimeOf { before_ns, ..self }
    }

    /// Whether it is there.
    pub fn goes_on(&self) -> bool {
        self.clock.is_some()
    }

    /// It is there no more: its time is what its clock shows now, or showed last.
    pub fn end(&mut self) {
        self.ns();
        self.clock = None;
    }

    /// Nanoseconds so far.
    pub fn ns(&self) -> u64 {
        // (of a CPU that has gone offline Linux 6.1 shows none)
        let now = self.clock.as_ref().and_then(TaskClock::enabled_ns).unwrap_or(0);
        self.last.set(self.last.get().max(now));
        self.last.get() + self.before_ns
    }
}

/// Whether samples of inherited events have what the thread itself has counted: the kernel opens them from 6.12 on.
pub fn tells_threads_apart() -> bool {
    let attr = Attr { sample_type: SAMPLE_TYPE, ..dummy() };
    Linux::default().open_group(&[attr], 0, -1, None).is_ok()
}
