//! Time alone, where no counters tell how slots divide: the kernel's own timers sample, which need no PMU.
//!
//! A timer that is due while the kernel has interrupts off samples what runs next, so functions that make system calls may have some of
//! the kernel's time. Of a thread all of its time is counted beside, and what has no sample is in the intervals.
#![forbid(unsafe_code)]

use super::resolved::{Config, PmuSampling, SamplingRule};
use super::samples_of::SamplesOf;
use super::written::Periods;
use crate::settings::Settings;
use perf_event_open_sys::bindings::{PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK, PERF_TYPE_SOFTWARE};

/// Nanoseconds in a second, but for what keeps samples from going along with a program's own timers.
const SECOND: u64 = 999_983_017;

/// Samples of CPU time, as many in a second of it as the settings say; of CPUs, or of threads. `why`: no slots are told.
pub(super) fn sampled(settings: Settings, of_cpus: bool, why: String) -> SamplingRule {
    let (event, config) = match of_cpus {
        true => ("cpu-clock", PERF_COUNT_SW_CPU_CLOCK),
        false => ("task-clock", PERF_COUNT_SW_TASK_CLOCK),
    };
    let sampling = PmuSampling {
        name: if settings.kernel { "CPU time" } else { "CPU time in user mode" },
        kind: PERF_TYPE_SOFTWARE,
        cpus: None,
        sampled: Config { config: config.into(), config1: 0 },
        precise_ip: 0,
        is_timed: false,
        kernel: settings.kernel,
        callers: settings.callers,
        reload: None,
        // (the clock of a CPU goes on while that is idle)
        is_counted_beside: !of_cpus,
    };
    SamplingRule {
        of: SamplesOf::Time { why },
        event: event.into(),
        periods: Periods { sampled: SECOND / u64::from(settings.frequency.max(1)), other: 0 },
        pmus: vec![sampling],
        without: Vec::new(),
    }
}
