//! What a CPU, or a thread, runs at instants of a clock of its own, in the kernel, too.
//!
//! The first sample of a burst comes a gap after it was asked for, and in user mode: of a CPU where threads take turns faster than that it is
//! the next one's, or of whoever stays for longer. Of a thread in the kernel it may come behind what asks for it, and where the recorder
//! waits for the thread's CPU until the thread leaves the kernel (lazy preemption), it is not asked for in the kernel. A sample of the clock is of the thread that runs now, and has the callers that it
//! has in user mode if it is in the kernel.
//!
//! The clock is the event ref-cycles where a fixed counter counts it: its interrupt cannot be masked. That of the events cpu-clock and task-clock, a timer's, waits
//! while the kernel has interrupts off: where it switches from one thread to another, it is then the next one's.
#![forbid(unsafe_code)]

use crate::event::{CLOCK, TaskEvent};
use crate::records::{CallGraph, READ_FORMAT, RawSample, Sampled, sampled};
use crate::ring::RecordRing;
use crate::sampler::Counted;
use crate::settings::Settings;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK, PERF_RECORD_MISC_CPUMODE_MASK,
    PERF_RECORD_MISC_KERNEL, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use std::os::fd::{AsRawFd, RawFd};
use std::{fs, io};
use topdown::SampledEvents;

/// Samples for which a ring has room, at the least; of so much if so much may be locked.
const ROOM: [usize; 2] = [32, 8];
/// The same of a thread, which has a turn about as often as a sample.
const ROOM_OF_THREAD: [usize; 2] = [8, 4];
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

/// A clock on a CPU, or on a thread.
#[derive(Debug)]
pub(crate) struct CpuClock {
    /// Of which kind of core.
    pub kind: usize,
    event: TaskEvent,
    ring: RecordRing,
    callers: CallGraph,
    /// What the kernel does is told, too.
    kernel: bool,
    /// The event is cpu-clock or task-clock.
    pub by_timer: bool,
    /// Nanoseconds for each that the event counts.
    ns_each: f64,
    /// From one sample to the next, in its counts.
    period: u64,
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

fn attr(clock: (u32, u64), period: u64, Settings { callers, kernel, .. }: Settings) -> perf_event_attr {
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

/// An event with a ring, with the most room that may be locked.
fn open(
    counted: Counted,
    clock: (u32, u64),
    period_ns: f64,
    settings: Settings,
    room: &[usize],
) -> io::Result<(TaskEvent, RecordRing)> {
    let (tid, cpu) = counted.target();
    let open = |samples: &usize| {
        let pages = (samples * settings.callers.most_bytes()).div_ceil(PAGE).next_power_of_two();
        let mut attr = attr(clock, period_ns as u64, settings);
        attr.__bindgen_anon_2.wakeup_watermark = (pages * PAGE / 2) as u32;
        let event = TaskEvent::open(attr, tid, cpu, None)?;
        let ring = RecordRing::map(&event, pages)?;
        Ok((event, ring))
    };
    let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
    for samples in room {
        match open(samples) {
            Ok(opened) => return Ok(opened),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

impl CpuClock {
    /// On a CPU, or on a thread while it runs on a kind of core, by ref-cycles or a timer, with a sample after each `period_ns`. `of`: which kind it
    /// is, with these events.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(
        counted: Counted,
        of: (usize, &SampledEvents),
        period_ns: f64,
        settings: Settings,
    ) -> io::Result<CpuClock> {
        let (timer, room) = match counted {
            Counted::Cpu { .. } => (PERF_COUNT_SW_CPU_CLOCK, ROOM),
            Counted::Thread { .. } => (PERF_COUNT_SW_TASK_CLOCK, ROOM_OF_THREAD),
        };
        CpuClock::of_counter(counted, of, period_ns, settings, &room).map_or_else(
            || {
                let timer = (PERF_TYPE_SOFTWARE, timer.into());
                let (event, ring) = open(counted, timer, period_ns, settings, &room)?;
                Ok(CpuClock::new(of.0, event, ring, None, period_ns, settings))
            },
            Ok,
        )
    }

    fn of_counter(
        counted: Counted,
        (kind, events): (usize, &SampledEvents),
        period_ns: f64,
        settings: Settings,
        room: &[usize],
    ) -> Option<CpuClock> {
        let ref_cycles = (events.kind, fixed_ref_cycles(events.pmu)?);
        let (event, ring) = open(counted, ref_cycles, period_ns, settings, room).ok()?;
        let ns_each = ring.ns_per_time_stamp()?;
        Some(CpuClock::new(kind, event, ring, Some(ns_each), period_ns, settings))
    }

    /// `ns_each`: none of a timer, which counts nanoseconds.
    fn new(
        kind: usize,
        event: TaskEvent,
        ring: RecordRing,
        ns_each: Option<f64>,
        period_ns: f64,
        settings: Settings,
    ) -> CpuClock {
        let Settings { callers, kernel, .. } = settings;
        let (by_timer, ns_each) = (ns_each.is_none(), ns_each.unwrap_or(1.0));
        let (period, counted, turns, record) = (0, 0, 0, Vec::new());
        let mut clock = CpuClock {
            kind,
            event,
            ring,
            callers,
            kernel,
            by_timer,
            ns_each,
            period,
            counted,
            turns,
            record,
        };
        clock.set_period(period_ns);
        clock
    }

    fn set_period(&mut self, period_ns: f64) {
        self.period = (period_ns.max(LEAST_NS) / self.ns_each) as u64;
        // (one whose CPU has gone offline has none)
        let _ = self.event.set_period(self.period);
    }

    /// Now and then sets another period, which begins now.
    pub fn turn(&mut self, period_ns: f64) {
        self.turns += 1;
        if self.turns % BLOCK == 0 {
            self.set_period(period_ns);
        }
    }

    /// What ran since the last time, and how many samples found no room.
    pub fn drain(&mut self) -> (Vec<ClockSample>, u64) {
        let (mut samples, mut all_lost) = (Vec::new(), 0);
        let mut record = std::mem::take(&mut self.record);
        while let Some((kind, misc)) = self.ring.next(&mut record) {
            match sampled(kind, &record, self.callers) {
                Sampled::Sample(sample) => {
                    let counted = sample.counts.first().copied().unwrap_or(self.counted);
                    let counts = counted.saturating_sub(std::mem::replace(&mut self.counted, counted));
                    // (one does not stand for all that found no room: it would have all of their time)
                    let counts = counts.min(3 * self.period);
                    let in_kernel =
                        u32::from(misc) & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_KERNEL;
                    let ran = if in_kernel && !self.kernel { seen_from_user_mode(sample) } else { sample };
                    if !ran.is_idle() {
                        samples.push(ClockSample { ran, weight_ns: (counts as f64 * self.ns_each) as u64 });
                    }
                }
                Sampled::Lost(lost) => all_lost += lost,
                _ => {}
            }
        }
        self.record = record;
        (samples, all_lost)
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
