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

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// What samples.
fn clock(settings: Settings, config: u32, is_counted_beside: bool) -> PmuSampling {
    PmuSampling {
        name: if settings.kernel { "CPU time" } else { "CPU time in user mode" },
        kind: PERF_TYPE_SOFTWARE,
        cpus: None,
        sampled: Config { config: config.into(), config1: 0 },
        precise_ip: 0,
        is_timed: false,
        kernel: settings.kernel,
        callers: settings.callers,
        reload: None,
        is_random: true,
        is_counted_beside,
    }
}

fn rule(event: &str, period: u64, of: SamplesOf, clock: PmuSampling) -> SamplingRule {
    let periods = Periods { sampled: period, other: 0 };
    SamplingRule { of, event: event.into(), periods, pmus: vec![clock], without: Vec::new() }
}

/// Samples of CPU time, as many in a second of it as the settings say; of CPUs, or of threads. `why`: no slots are told.
pub(super) fn sampled(settings: Settings, of_cpus: bool, why: String) -> SamplingRule {
    let (event, config) = match of_cpus {
        true => ("cpu-clock", PERF_COUNT_SW_CPU_CLOCK),
        false => ("task-clock", PERF_COUNT_SW_TASK_CLOCK),
    };
    let period = SECOND / u64::from(settings.frequency.max(1));
    // (the clock of a CPU goes on while that is idle)
    rule(event, period, SamplesOf::Time { why, by_stops: false }, clock(settings, config, !of_cpus))
}

/// What was seen of threads that were stopped, each time after so much CPU time on average.
pub(super) fn by_stops(settings: Settings, mean_ns: u64, why: String) -> SamplingRule {
    let clock = clock(settings, PERF_COUNT_SW_TASK_CLOCK, true);
    // (a thread that is stopped in one is where that interrupted it, and in no system call)
    let clock = PmuSampling { name: "CPU time in user mode and page faults", ..clock };
    rule("ptrace", mean_ns, SamplesOf::Time { why, by_stops: true }, clock)
}
