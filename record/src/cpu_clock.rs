//! What a CPU runs at instants of a clock of its own, in the kernel, too.
//!
//! The first sample of a burst comes a gap after it was asked for, and in user mode: where threads take turns faster than that it is
//! the next one's, or of whoever stays for longer. A sample of the clock is of the thread that runs now, and has the callers that it
//! has in user mode if it is in the kernel.
//!
//! The clock is the event ref-cycles where a fixed counter counts it: its interrupt cannot be masked. That of the event cpu-clock, a timer's, waits
//! while the kernel switches from one thread to another, and is then the next one's.
#![forbid(unsafe_code)]

use crate::event::{CLOCK, TaskEvent};
use crate::records::{CallGraph, READ_FORMAT, RawSample, Sampled, sampled};
use crate::ring::RecordRing;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL, PERF_TYPE_SOFTWARE,
    perf_event_attr,
};
use std::os::fd::{AsRawFd, RawFd};
use std::{fs, io};
use topdown::SampledEvents;

/// Samples for which a ring has room, at the least; of so much if so much may be locked.
const ROOM: [usize; 2] = [32, 8];
/// The smallest page.
const PAGE: usize = 4096;
/// Turns with one period, before the next is drawn: to change it takes a system call, and the period begins anew.
const BLOCK: u64 = 8;
/// The kernel's timers are no faster.
const LEAST_NS: f64 = 10_000.0;
/// What Intel's PMUs have as ref-cycles, and its configuration. Fixed counter 2 counts it, at the rate of the time stamp counter while the CPU is not
/// halted; the second one could be in a general counter, too, but the kernel takes fixed ones first (arch/x86/events/intel/core.c,
/// intel_pmu_ref_cycles_ext; core.c, __perf_sched_find_counter).
const FIXED_REF_CYCLES: [(&str, u64); 2] =
    [("event=0x00,umask=0x03", 0x0300), ("event=0x3c,umask=0x01", 0x013c)];

/// A clock on a CPU.
#[derive(Debug)]
pub(crate) struct CpuClock {
    /// Which kind of core the CPU is.
    pub kind: usize,
    event: TaskEvent,
    ring: RecordRing,
    callers: CallGraph,
    /// What the kernel does is told, too.
    kernel: bool,
    /// The event is cpu-clock.
    pub by_timer: bool,
    /// Nanoseconds for each that the event counts.
    ns_each: f64,
    /// What it had counted by the last sample.
    counted: u64,
    turns: u64,
    record: Vec<u8>,
}

/// What ran, and the time for which it stands.
#[derive(Debug)]
pub(crate) struct ClockSample {
    pub ran: RawSample,
    pub weight_ns: u64,
}

/// The configuration of the event that a PMU has in a fixed counter, by the kernel's own word.
fn fixed_ref_cycles(pmu: &str) -> Option<u64> {
    let event = fs::read_to_string(format!("/sys/bus/event_source/devices/{pmu}/events/ref-cycles")).ok()?;
    FIXED_REF_CYCLES.iter().find(|known| known.0 == event.trim()).map(|known| known.1)
}

fn attr(clock: (u32, u64), period: u64, callers: CallGraph, kernel: bool) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: clock.0,
        config: clock.1,
        read_format: READ_FORMAT,
        clockid: CLOCK,
        ..perf_event_attr::default()
    };
    attr.__bindgen_anon_1.sample_period = period;
    callers.set(&mut attr);
    attr.set_exclude_callchain_kernel((!kernel).into());
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    attr.set_use_clockid(1);
    attr.set_watermark(1);
    attr
}

impl CpuClock {
    /// On a CPU of the kind of core that has these events, with a sample after each `period_ns`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(
        cpu: u32,
        (kind, events): (usize, &SampledEvents),
        period_ns: f64,
        kernel: bool,
        callers: CallGraph,
    ) -> io::Result<CpuClock> {
        let open = |clock: (u32, u64)| {
            let ring = |samples: usize| {
                let pages = (samples * callers.most_bytes()).div_ceil(PAGE).next_power_of_two();
                let mut attr = attr(clock, period_ns as u64, callers, kernel);
                attr.__bindgen_anon_2.wakeup_watermark = (pages * PAGE / 2) as u32;
                let event = TaskEvent::open(attr, -1, cpu as i32, None)?;
                Ok((RecordRing::map(&event, pages)?, event))
            };
            let (ring, event) = ring(ROOM[0]).or_else(|_: io::Error| ring(ROOM[1]))?;
            io::Result::Ok((event, ring))
        };
        let of_pmu = || {
            let (event, ring) = open((events.kind, fixed_ref_cycles(events.pmu)?)).ok()?;
            let ns_each = ring.ns_per_time_stamp()?;
            Some((event, ring, ns_each))
        };
        let of_pmu = of_pmu();
        let by_timer = of_pmu.is_none();
        let (event, ring, ns_each) = match of_pmu {
            Some(clock) => clock,
            None => {
                let (event, ring) = open((PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.into()))?;
                (event, ring, 1.0)
            }
        };
        let (counted, turns, record) = (0, 0, Vec::new());
        let mut clock =
            CpuClock { kind, event, ring, callers, kernel, by_timer, ns_each, counted, turns, record };
        clock.set_period(period_ns);
        Ok(clock)
    }

    fn set_period(&mut self, period_ns: f64) {
        // (one whose CPU has gone offline has none)
        let _ = self.event.set_period((period_ns.max(LEAST_NS) / self.ns_each) as u64);
    }

    /// Now and then sets another period, which begins now.
    pub fn turn(&mut self, period_ns: f64) {
        self.turns += 1;
        if self.turns % BLOCK == 0 {
            self.set_period(period_ns);
        }
    }

    /// What ran since the last time.
    pub fn drain(&mut self) -> Vec<ClockSample> {
        let mut samples = Vec::new();
        let mut record = std::mem::take(&mut self.record);
        while let Some((kind, misc)) = self.ring.next(&mut record) {
            if let Sampled::Sample(sample) = sampled(kind, &record, self.callers) {
                // (it stands for those before it that found no room, too)
                let counted = sample.counts.first().copied().unwrap_or(self.counted);
                let counts = counted.saturating_sub(std::mem::replace(&mut self.counted, counted));
                let in_kernel = u32::from(misc) & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_KERNEL;
                let ran = if in_kernel && !self.kernel { seen_from_user_mode(sample) } else { sample };
                if !ran.is_idle() {
                    samples.push(ClockSample { ran, weight_ns: (counts as f64 * self.ns_each) as u64 });
                }
            }
        }
        self.record = record;
        samples
    }
}

impl AsRawFd for CpuClock {
    /// Can be read when the ring is half full.
    fn as_raw_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}

/// A sample in the kernel, of which the callers are those in user mode: it is where the thread came from, if it came from there.
fn seen_from_user_mode(sample: RawSample) -> RawSample {
    let instruction = sample.copy.as_ref().and_then(|copy| copy.registers.last().copied());
    let (innermost, callers) =
        sample.chain.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
    let from = instruction.map_or_else(|| callers.to_vec(), |instruction| vec![instruction]);
    match from.is_empty() {
        true => RawSample { chain: vec![innermost], in_kernel: 1, ..sample },
        false => RawSample { chain: from, in_kernel: 0, ..sample },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::StackCopy;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    fn sample(chain: &[u64], in_kernel: usize, registers: Option<&[u64]>) -> RawSample {
        let copy = registers.map(|all| StackCopy { registers: all.to_vec(), stack: Vec::new() });
        RawSample { tid: 7, chain: chain.to_vec(), in_kernel, copy, ..RawSample::default() }
    }

    #[test]
    fn what_the_kernel_does_for_a_thread_is_where_the_thread_came_from() {
        let seen = |sample: RawSample| {
            let RawSample { chain, in_kernel, .. } = seen_from_user_mode(sample);
            (chain, in_kernel)
        };
        assert_eq!(seen(sample(&[KERNEL, 0x1000, 0x2000], 0, None)), (vec![0x1000, 0x2000], 0));
        assert_eq!(seen(sample(&[KERNEL], 1, Some(&[1, 2, 0x1000]))), (vec![0x1000], 0));
        // a thread of the kernel
        assert_eq!(seen(sample(&[KERNEL], 1, None)), (vec![KERNEL], 1));
        assert_eq!(seen(sample(&[KERNEL], 1, Some(&[]))), (vec![KERNEL], 1));
    }

    #[test]
    fn the_idle_thread_is_idle_and_nobody_else() {
        let idle = |tid: i32, sample: RawSample| RawSample { tid, ..sample }.is_idle();
        assert!(idle(0, sample(&[KERNEL, KERNEL + 8], 2, None)));
        // another namespace's; a thread of the kernel
        assert!(!idle(0, sample(&[0x1000], 0, None)) && !idle(0, sample(&[KERNEL, 0x1000], 1, None)));
        assert!(!idle(9, sample(&[KERNEL], 1, None)));
    }
}
