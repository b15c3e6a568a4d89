//! What clocks tell of a thread for which nothing counts slots: elapsed time of each execution, and its CPU time where executions are so
//! long that a system call at both ends is worth it.
#![forbid(unsafe_code)]

use topdown::{Error, Result, Sample, Sum};
use topdown_seam::clocks::{cpu_ns_of, elapsed_ns, own_cpu_ns};

/// CPU time is read of executions of so many nanoseconds on average: both readings take about a hundredth of that. (Elapsed time takes none
/// of it: user space reads that clock without a system call.)
const WORTH_NS: u64 = 50_000;
/// And of the first few, of which it is not known how long they are.
const FEW: u64 = 16;

/// Where an execution began.
#[derive(Clone, Copy)]
pub struct BeginTimes {
    elapsed_ns: u64,
    /// None: not read.
    cpu_ns: Option<u64>,
}

/// An execution that has ended.
#[derive(Clone, Copy)]
pub struct ExecutionTimes {
    pub elapsed_ns: u64,
    /// None: not known.
    pub cpu_ns: Option<u64>,
    /// Elapsed time at its end.
    pub now_ns: u64,
}

impl BeginTimes {
    /// An execution begins of a region that has had so many, CPU time being known of so many of them, in so much time. (Of some that is of no
    /// use: once it was not read, it is read no more.)
    #[inline]
    pub fn new(executions: u64, with_cpu: u64, elapsed: u64) -> BeginTimes {
        let long = executions < FEW || elapsed >= executions.saturating_mul(WORTH_NS);
        let cpu_ns = (with_cpu == executions && long).then(own_cpu_ns);
        BeginTimes { cpu_ns, elapsed_ns: elapsed_ns() } // (this one last, and first at the end: it has little of the library's own)
    }

    /// It ends.
    #[inline]
    pub fn end(self) -> ExecutionTimes {
        let now_ns = elapsed_ns();
        ExecutionTimes {
            elapsed_ns: now_ns.saturating_sub(self.elapsed_ns),
            cpu_ns: self.cpu_ns.map(|from| own_cpu_ns().saturating_sub(from)),
            now_ns,
        }
    }
}

/// A reading of the calling thread.
pub fn now() -> Sample {
    sample(own_cpu_ns())
}

/// A reading of this thread.
pub fn now_of(thread: libc::pid_t) -> Result<Sample> {
    cpu_ns_of(thread).map(sample).ok_or_else(|| Error::new(-libc::ESRCH, "the thread is not there any more"))
}

fn sample(cpu_ns: u64) -> Sample {
    Sample { time_enabled_ns: elapsed_ns(), time_running_ns: cpu_ns, ..Sample::default() }
}

/// Adds what a thread did from one reading to another.
pub fn add(sum: &mut Sum, from: &Sample, to: &Sample) {
    sum.executions += 1;
    sum.measured += 1;
    sum.time_enabled_ns += to.time_enabled_ns.saturating_sub(from.time_enabled_ns);
    sum.time_running_ns += to.time_running_ns.saturating_sub(from.time_running_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_of_the_first_executions_and_of_long_ones_and_once_it_was_not_no_more() {
        let is_read =
            |executions, with_cpu, elapsed| BeginTimes::new(executions, with_cpu, elapsed).cpu_ns.is_some();
        assert!(is_read(0, 0, 0) && is_read(FEW - 1, FEW - 1, 10));
        assert!(is_read(1000, 1000, 1000 * WORTH_NS) && !is_read(1000, 1000, 1000 * WORTH_NS - 1));
        assert!(!is_read(1000, 999, 1000 * WORTH_NS) && !is_read(3, 2, 3 * WORTH_NS));
    }
}
