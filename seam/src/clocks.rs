//! Clocks of the kernel: elapsed time, which user space mostly reads without a system call, and the CPU time of threads.

use std::mem::MaybeUninit;

/// Nanoseconds of a clock; None: there is no such clock.
fn nanoseconds(clock: libc::clockid_t) -> Option<u64> {
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

/// CPU time of a thread of this process, by its id; None: there is no such thread.
pub fn cpu_ns_of(thread: libc::pid_t) -> Option<u64> {
    // (as CLOCK_THREAD_CPUTIME_ID, with the id in the place of none: linux/posix-timers_types.h)
    const PER_THREAD: libc::clockid_t = 4;
    const SCHEDULED: libc::clockid_t = 2;
    nanoseconds(!thread << 3 | PER_THREAD | SCHEDULED)
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
    }
}
