//! perf events: opened, and controlled by ioctl(2).
#![allow(unsafe_code)]

use perf_event_open_sys::bindings::{PERIOD, perf_event_attr};
use perf_event_open_sys::ioctls;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Instant;
use topdown_seam::clocks::nanoseconds;
use topdown_seam::open_event;
use topdown_seam::ring;

/// An open event.
#[derive(Debug)]
pub(crate) struct TaskEvent(OwnedFd);

/// What an event has counted, and for how many nanoseconds it was enabled, and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventTimes {
    pub count: u64,
    pub enabled: u64,
    pub running: u64,
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl TaskEvent {
    /// On a thread (on one CPU, or with -1 on all), in the group of `leader`.
    ///
    /// # Errors
    /// Those of perf_event_open(2).
    pub fn open(
        attr: perf_event_attr,
        tid: i32,
        cpu: i32,
        leader: Option<&TaskEvent>,
    ) -> io::Result<TaskEvent> {
        let group = leader.map_or(-1, |leader| leader.0.as_raw_fd());
        let open = || open_event(&attr, tid, cpu, group).map(TaskEvent);
        match open() {
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => beyond_the_limit(open),
            opened => opened,
        }
    }

    /// Lets the event overflow so many times more than it may still, and enables it. (None is without limit.)
    pub fn refresh(&self, overflows: u32) -> io::Result<()> {
        assert!(overflows > 0, "the kernel takes 0 for no limit");
        // SAFETY: an ioctl without pointers.
        done(unsafe { ioctls::REFRESH(self.0.as_raw_fd(), overflows as libc::c_int) })
    }

    /// Enables it for the overflows that it may still have.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without pointers.
        done(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) })
    }

    /// Stops it; overflows that it may have are kept.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without pointers.
        done(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) })
    }

    /// Sets the period, which begins anew.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        // (not by the crate's wrapper, which passes the number and not its address)
        // SAFETY: the kernel reads one live number.
        done(unsafe { libc::ioctl(self.0.as_raw_fd(), PERIOD as libc::Ioctl, &raw const period) })
    }

    fn read<const WORDS: usize>(&self) -> io::Result<[u64; WORDS]> {
        let mut words = [0_u64; WORDS];
        // SAFETY: the kernel writes no more than it is told there is room for.
        let read = unsafe { libc::read(self.0.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
        match usize::try_from(read) {
            Ok(read) if read == size_of_val(&words) => Ok(words),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Reads one that was opened with both times.
    pub fn times(&self) -> io::Result<EventTimes> {
        self.read().map(|[count, enabled, running]| EventTimes { count, enabled, running })
    }

    /// The same of one that is a group by itself, and was opened as such.
    pub fn times_of_group(&self) -> io::Result<EventTimes> {
        self.read().map(|[_, enabled, running, count]| EventTimes { count, enabled, running })
    }

    /// What a group of two has counted, of which this is the leader, and the nanoseconds in which it was not on its counters.
    pub fn counts_of_two(&self) -> io::Result<([u64; 2], u64)> {
        self.read()
            .map(|[_, enabled, running, first, second]| ([first, second], enabled.saturating_sub(running)))
    }

    /// Its records go to the ring of another.
    pub fn set_output(&self, other: &TaskEvent) -> io::Result<()> {
        ring::write_into(&self.0, &other.0)
    }
}

/// Opens a descriptor above the process's limit, which is raised meanwhile, as far as it may be.
fn beyond_the_limit<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut own = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: live rlimits.
    unsafe {
        done(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut own))?;
        let raised = libc::rlimit { rlim_cur: own.rlim_max, ..own };
        done(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised))?;
        let opened = open();
        done(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const own))?;
        opened
    }
}

impl AsRawFd for TaskEvent {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What poll(2) said of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PollResult {
    /// It can be read.
    pub readable: bool,
    /// It has come to its end.
    pub ended: bool,
}

/// Waits until one of the descriptors can be read or has ended, or for so long.
pub(crate) fn wait(descriptors: &[RawFd], until: Instant) -> Vec<PollResult> {
    let event = |fd: &RawFd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
    let mut all: Vec<libc::pollfd> = descriptors.iter().map(event).collect();
    let time = until.saturating_duration_since(Instant::now());
    let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: as many pollfds as it is told, and a live timespec.
    let come = unsafe {
        libc::ppoll(all.as_mut_ptr(), all.len() as libc::nfds_t, &raw const time, std::ptr::null())
    };
    let polled = |one: &libc::pollfd| PollResult {
        readable: come > 0 && one.revents & libc::POLLIN != 0,
        ended: come > 0 && one.revents & (libc::POLLHUP | libc::POLLERR) != 0,
    };
    all.iter().map(polled).collect()
}

/// The thread that calls.
pub(crate) fn own_tid() -> i32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Lets the thread that calls run on these CPUs alone, if it may on any.
pub(crate) fn run_on(cpus: impl Iterator<Item = u32>) {
    // SAFETY: zeros are a set; CPU_SET is given numbers below its size; the set is as long as the call is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.filter(|cpu| *cpu < libc::CPU_SETSIZE as u32)
            .for_each(|cpu| libc::CPU_SET(cpu as usize, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// The clock of all records.
pub(crate) const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Now, by that clock.
pub(crate) fn now() -> u64 {
    time_of(CLOCK)
}

/// How far that clock is behind the one of files' times.
pub(crate) fn behind_files() -> i128 {
    i128::from(time_of(libc::CLOCK_REALTIME)) - i128::from(now())
}

/// How far the time since the start of the machine, sleep included, is behind the clock of files.
pub(crate) fn boot_behind_files() -> i128 {
    i128::from(time_of(libc::CLOCK_REALTIME)) - i128::from(time_of(libc::CLOCK_BOOTTIME))
}

fn time_of(clock: libc::clockid_t) -> u64 {
    nanoseconds(clock).unwrap_or(0)
}
