//! Events that count time: cycles at a constant rate, or a timer of the kernel.
#![forbid(unsafe_code)]

use crate::event::TaskEvent;
use crate::sampler::SampledTarget;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use std::hint::black_box;
use std::{fs, io};
use topdown::SampledEvents;
use topdown_seam::clocks::own_cpu_ns;
use topdown_seam::group_read;
use topdown_seam::ring::RecordRing;
use topdown_seam::thread;

/// The kernel's timers are no faster.
const LEAST_NS: f64 = 10_000.0;
/// Passes of a loop in which it shows whether a counter counts; how long a cycle is, the second one of two loops tells, which takes so many times as long.
const TRIED: u64 = 20_000;
const LONGER: u64 = 8;
/// Nobody interrupts one of so many, most likely.
const TRIES: usize = 5;
/// What Intel's PMUs have as ref-cycles, and its configuration. Fixed counter 2 counts it, at the rate of the time stamp counter while the CPU is not
/// halted; the second one could be in a general-purpose counter, too, but the kernel takes fixed ones first (arch/x86/events/intel/core.c,
/// intel_pmu_ref_cycles_ext; core.c, __perf_sched_find_counter).
const FIXED_REF_CYCLES: [(&str, u64); 2] =
    [("event=0x00,umask=0x03", 0x0300), ("event=0x3c,umask=0x01", 0x013c)];

/// The event that a PMU has in a fixed counter, by the kernel's own word.
fn fixed_ref_cycles(pmu: &str) -> Option<u64> {
    let event = fs::read_to_string(format!("/sys/bus/event_source/devices/{pmu}/events/ref-cycles")).ok()?;
    FIXED_REF_CYCLES.iter().find(|known| known.0 == event.trim()).map(|known| known.1)
}

/// An event that counts time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockEvent {
    type_: u32,
    config: u64,
    /// Nanoseconds for each that it counts.
    ns_each: f64,
    /// It has one of the group's counters while that does not count.
    pub in_turns: bool,
}

impl ClockEvent {
    /// cpu-clock or task-clock.
    pub fn timer(counted: SampledTarget) -> ClockEvent {
        let config = match counted {
            SampledTarget::Cpu { .. } => PERF_COUNT_SW_CPU_CLOCK,
            SampledTarget::Thread { .. } => PERF_COUNT_SW_TASK_CLOCK,
        };
        ClockEvent { type_: PERF_TYPE_SOFTWARE, config: config.into(), ns_each: 1.0, in_turns: false }
    }

    /// The cycles of a kind of core, if a counter counts them whenever a thread runs: others may have it.
    pub fn cycles(events: &SampledEvents) -> Option<ClockEvent> {
        let type_ = events.kind;
        let fixed = fixed_ref_cycles(events.pmu);
        let config = fixed.or(events.clock.map(|(_, config)| config))?;
        let ns_each = || ns_each(type_, config, fixed.is_some()).unwrap_or(None);
        let here = || (0..3).find_map(|_| ns_each());
        let ns_each = thread::on_cpus(events.cpus.as_deref(), here).flatten();
        ns_each.map(|ns_each| ClockEvent { type_, config, ns_each, in_turns: events.clock_in_turns })
    }

    /// Nanoseconds for each that it counts.
    pub fn ns_each(self) -> f64 {
        self.ns_each
    }

    /// In its counts.
    pub fn period(self, ns: f64) -> u64 {
        (ns.max(LEAST_NS) / self.ns_each) as u64
    }

    pub fn attr(self) -> perf_event_attr {
        perf_event_attr { type_: self.type_, config: self.config, ..perf_event_attr::default() }
    }
}

/// How many nanoseconds each of these cycles takes, if they count on this thread all the time: by the rate of the time stamp counter if that is theirs.
fn ns_each(type_: u32, config: u64, of_time_stamps: bool) -> io::Result<Option<f64>> {
    let mut attr =
        perf_event_attr { type_, config, read_format: group_read::TIMES, ..perf_event_attr::default() };
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let event = TaskEvent::open(attr, 0, -1, None)?;
    let ring = RecordRing::map(&event, 1)?;
    let mut least = [(u64::MAX, u64::MAX); 2];
    for _ in 0..TRIES {
        for (least, longer) in least.iter_mut().zip([1, LONGER]) {
            let (began, before) = (own_cpu_ns(), event.times()?);
            (0..TRIED * longer).for_each(|n| _ = black_box(n));
            let (after, ended) = (event.times()?, own_cpu_ns());
            *least = (least.0.min(ended - began), least.1.min(after.count - before.count));
        }
    }
    let all = event.times()?;
    if all.count == 0 || all.enabled != all.running {
        return Ok(None);
    }
    if of_time_stamps {
        return Ok(ring.ns_per_time_stamp());
    }
    // (what it takes to read is in both)
    let [(short_ns, short), (long_ns, long)] = least;
    Ok((long > short && long_ns > short_ns).then(|| (long_ns - short_ns) as f64 / (long - short) as f64))
}
