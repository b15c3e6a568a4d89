//! Clocks of the kernel: elapsed time, which user space mostly reads without a system call, and the CPU time of threads and processes.

use std::mem::MaybeUninit;
use std::{fs, io};

/// Nanoseconds of a clock; None: there is no such clock.
pub fn nanoseconds(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: clock_gettime fills in the time if it returns 0.
    let time = unsafe {
        if libc::clock_gettime(clock, time.as_mut_ptr()) != 0 {
            return None;
        }
        time.assume_init()
    };
    Some((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// Elapsed time, of CLOCK_MONOTONIC.
pub fn elapsed_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of the calling thread: a system call.
pub fn own_cpu_ns() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

// The clock of a thread or process, whose id stands in the place of none (linux/posix-timers_types.h).
const PER_THREAD: libc::clockid_t = 4;
const SCHEDULED: libc::clockid_t = 2;

/// CPU time of a thread of this process, by its id; None: there is no such thread.
pub fn cpu_ns_of(thread: libc::pid_t) -> Option<u64> {
    nanoseconds(!thread << 3 | PER_THREAD | SCHEDULED)
}

/// CPU time of any process, of all its threads; None: there is no such process.
pub fn cpu_ns_of_process(pid: libc::pid_t) -> Option<u64> {
    nanoseconds(!pid << 3 | SCHEDULED)
}

/// What the scheduler says of a thread, in nanoseconds (Linux, Documentation/scheduler/sched-stats.rst). Of one that runs it may be a tick old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduledTime {
    /// On a CPU.
    pub ran: u64,
    /// Ready to run, while others did.
    pub waited: u64,
}

/// The same of any thread, of other processes, too.
///
/// # Errors
/// There is no such thread, or no descriptor is left.
pub fn scheduled(tid: i32) -> io::Result<ScheduledTime> {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat"))?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or(0));
    Ok(ScheduledTime { ran: numbers.next().unwrap_or(0), waited: numbers.next().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on_and_a_thread_is_found_by_its_id() {
        // SAFETY: gettid has no preconditions.
        let own = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
        let (elapsed, cpu) = (elapsed_ns(), own_cpu_ns());
        while own_cpu_ns() < cpu + 1_000_000 {}
        let of_own = cpu_ns_of(own).unwrap();
        assert!((cpu + 1_000_000..=own_cpu_ns()).contains(&of_own));
        assert!(elapsed_ns() > elapsed);
        assert_eq!(cpu_ns_of(1 << 22), None); // no thread id is so large
        let pid = std::process::id() as libc::pid_t;
        assert!(cpu_ns_of_process(pid).unwrap() >= of_own && cpu_ns_of_process(1 << 22).is_none());
        assert!(scheduled(own).unwrap().ran <= own_cpu_ns() && scheduled(1 << 22).is_err());
    }
}
