//! What a CPU, or a thread, runs at instants of a clock of its own.
//!
//! The first sample of a burst comes a gap after it was asked for, and in user mode: of a CPU where threads change faster than that it is
//! the next one's, or of whoever stays for longer. Of a thread it is of what runs when the recorder has left the thread's CPU: signals that became
//! due meanwhile have their handlers run first. Of a thread in the kernel it may come behind what asks for it, and where the recorder
//! waits for the thread's CPU until the thread leaves the kernel (lazy preemption), it is not asked for in the kernel. A sample of the clock is of the thread that runs now. It counts
//! user mode alone, unless the kernel is wanted; an interrupt that comes when the kernel was entered already has the callers of user mode.
//!
//! The clock is an event that counts cycles at a constant rate, where a fixed counter counts it or a general one is left: its interrupt cannot be masked.
//! That of the events cpu-clock and task-clock, a timer's, waits while the kernel has interrupts off: where it switches from one thread to another, it is
//! then the next one's.
//!
//! Where no counter is left beside the group the clock takes turns with the group (`ClockTurns`): from one chance of the thread or CPU to the next the clock counts, then a burst is
//! asked for and the clock is off, and so on. Chances are at random instants, whatever the thread does and whoever has the turn: at each instant of the thread's time
//! the clock is on as likely as off. What the clock counts stands for the time in which it was off, too.
#![forbid(unsafe_code)]

use crate::clock_event::ClockEvent;
use crate::event::{CLOCK, EventTimes, TaskEvent};
use crate::records::{CallGraph, RawSample, SamplerRecord, sampled};
use crate::sampler::SampledTarget;
use crate::settings::Settings;
use perf_event_open_sys::bindings::{
    PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL, perf_event_attr,
};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use topdown_seam::group_read;
use topdown_seam::records::header;
use topdown_seam::ring::RecordRing;

/// Samples for which a ring has room, at the least; of so much if so much may be locked.
const ROOM: [usize; 2] = [32, 8];
/// The same of a thread, which has a chance about as often as a sample. (A sample without a copy of the stack takes a tenth of its room as a rule)
const ROOM_OF_THREAD: [usize; 2] = [4, 2];
/// The smallest page.
const PAGE: usize = 4096;
/// Samples with one period, before the next is drawn: to change it takes a system call, and the period begins anew. (After so many chances the period would
/// begin anew before it ends where a thread runs for a small part of it each time)
const BLOCK: u64 = 8;
/// Until a new thread's first chance after a sample its periods are so much shorter: it may have come to its end before one has passed.
const OF_NEW_THREAD: f64 = 0.25;
/// A clock on a CPU, or on a thread.
#[derive(Debug)]
pub(crate) struct CpuClock {
    /// Of which kind of core.
    pub kind: usize,
    clock: ClockEvent,
    event: TaskEvent,
    ring: RecordRing,
    callers: CallGraph,
    /// What the kernel does is told, too.
    kernel: bool,
    /// The event is cpu-clock or task-clock.
    pub by_timer: bool,
    /// The process of the thread that it is on, of which this was the last sample.
    process: Option<i32>,
    latest: Option<RawSample>,
    /// It counts wherever the thread runs: where it did not, others had its counter.
    everywhere: bool,
    /// From one sample to the next, in its counts.
    period: u64,
    period_before: u64,
    /// What it had counted by the last sample.
    counted: EventTimes,
    /// How many samples are still to come before the period is changed.
    unchanged: u64,
    turns: Option<ClockTurns>,
    record: Vec<u64>,
}

/// The turns of a clock and the group.
#[derive(Debug)]
struct ClockTurns {
    /// Counts for how long the thread runs (of a CPU, for how long it is there): the leader, so that it is in the clock's samples.
    ran: TaskEvent,
    /// The clock counts now.
    is_on: bool,
    /// How often its counter had changed when it was switched on.
    changes: u32,
}

impl ClockTurns {
    fn new(counted: SampledTarget) -> io::Result<ClockTurns> {
        let (tid, cpu) = counted.target();
        let timer = ClockEvent::timer(counted).attr();
        let mut attr = perf_event_attr { read_format: group_read::GROUP, clockid: CLOCK, ..timer };
        attr.set_use_clockid(1);
        attr.set_exclude_kernel(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_guest(1);
        Ok(ClockTurns { ran: TaskEvent::open(attr, tid, cpu, None)?, is_on: true, changes: 0 })
    }

    /// What the clock has counted by now. For how long it was on nobody tells but its samples; since the last it was on for as large a part of the time
    /// as it was before.
    fn by_now(&self, last: EventTimes) -> io::Result<EventTimes> {
        let ([ran, count], waited) = self.ran.counts_of_two()?;
        let ran = ran.saturating_add(waited); // (as `counted_by`)
        let part = if last.enabled > 0 { last.running as f64 / last.enabled as f64 } else { 1.0 };
        let running = last.running + (ran.saturating_sub(last.enabled) as f64 * part) as u64;
        Ok(EventTimes { count, enabled: ran, running })
    }
}

/// What a clock has seen.
#[derive(Debug, Default)]
pub(crate) struct ClockTime {
    pub samples: Vec<ClockSample>,
    /// Samples that found no room.
    pub lost: u64,
    /// How often the kernel throttled it, or let it go on.
    pub throttled: u64,
    /// Nanoseconds of which no sample tells what ran.
    pub untold_ns: u64,
}

/// What ran, and the time for which it stands.
#[derive(Debug)]
pub(crate) struct ClockSample {
    pub ran: RawSample,
    pub weight_ns: u64,
}

fn attr(clock: ClockEvent, period_ns: f64, Settings { callers, kernel, .. }: Settings) -> perf_event_attr {
    let mut attr = perf_event_attr { read_format: group_read::GROUP, clockid: CLOCK, ..clock.attr() };
    attr.__bindgen_anon_1.sample_period = clock.period(period_ns);
    callers.set(&mut attr);
    attr.set_exclude_callchain_kernel((!kernel).into());
    attr.set_exclude_kernel((!kernel).into());
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    attr.set_use_clockid(1);
    attr.set_watermark(1);
    attr
}

/// What is open of a clock.
struct OpenClock {
    clock: ClockEvent,
    turns: Option<ClockTurns>,
    event: TaskEvent,
    ring: RecordRing,
}

/// An event with a ring, with the most room that may be locked.
fn open(
    counted: SampledTarget,
    clock: ClockEvent,
    period_ns: f64,
    settings: Settings,
) -> io::Result<OpenClock> {
    let (tid, cpu) = counted.target();
    let room = match counted {
        SampledTarget::Cpu { .. } => ROOM,
        SampledTarget::Thread { .. } => ROOM_OF_THREAD,
    };
    let open = |samples: &usize| {
        let turns = clock.in_turns.then(|| ClockTurns::new(counted)).transpose()?;
        let pages = (samples * settings.callers.most_bytes()).div_ceil(PAGE).next_power_of_two();
        let mut attr = attr(clock, period_ns, settings);
        attr.__bindgen_anon_2.wakeup_watermark = (pages * PAGE / 2) as u32;
        let event = TaskEvent::open(attr, tid, cpu, turns.as_ref().map(|turns| &turns.ran))?;
        let ring = RecordRing::map(&event, pages)?;
        Ok(OpenClock { clock, turns, event, ring })
    };
    let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
    for samples in room {
        match open(&samples) {
            Ok(opened) => return Ok(opened),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

impl CpuClock {
    /// On a CPU, or on a thread while it runs on a kind of core, with a sample after each `period_ns`. (Which of how many kinds,
    /// and what counts time there; None: a timer does.)
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(
        counted: SampledTarget,
        (kind, kinds, cycles): (usize, usize, Option<ClockEvent>),
        period_ns: f64,
        settings: Settings,
    ) -> io::Result<CpuClock> {
        let process = counted.process();
        let period_ns = if process.is_some() { period_ns * OF_NEW_THREAD } else { period_ns };
        let open = |clock| open(counted, clock, period_ns, settings);
        let by_counter = cycles.map(open).and_then(Result::ok);
        let by_timer = by_counter.is_none();
        let opened = by_counter.map_or_else(|| open(ClockEvent::timer(counted)), Ok)?;
        let OpenClock { clock, turns, event, ring } = opened;
        let Settings { callers, kernel, .. } = settings;
        Ok(CpuClock {
            kind,
            clock,
            event,
            ring,
            callers,
            kernel,
            by_timer,
            process,
            latest: None,
            everywhere: kinds == 1,
            period: clock.period(period_ns),
            period_before: 0,
            counted: EventTimes::default(),
            unchanged: 1,
            turns,
            record: Vec::new(),
        })
    }

    /// Now and then sets another period, which begins now.
    pub fn draw_period(&mut self, period_ns: f64) {
        if self.unchanged == 0 {
            self.unchanged = BLOCK;
            self.period_before = std::mem::replace(&mut self.period, self.clock.period(period_ns));
            // (one whose CPU has gone offline has none)
            let _ = self.event.set_period(self.period);
        }
    }

    /// Whether the clock takes turns with the group.
    pub fn has_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Whether it is the clock's turn, and the thread has not run since the turn began: it had a counter then, or has had one since. (It takes no system call. Of a
    /// group whose turn it is the same is seen: else what a thread does when it begins to run would be seen more or less often than what it does later)
    pub fn waits(&self) -> bool {
        self.turns.as_ref().is_some_and(|turns| turns.is_on && turns.changes == self.ring.changes())
    }

    /// From now on it is the group's turn, or the clock's, if they take turns; whether it is the clock's.
    pub fn changes_turn(&mut self) -> bool {
        let Some(turns) = &mut self.turns else { return false };
        turns.is_on = !turns.is_on;
        turns.changes = self.ring.changes();
        // (one whose thread has ended has neither)
        let _ = if turns.is_on { self.event.enable() } else { self.event.disable() };
        turns.is_on
    }

    /// What it had counted when a sample was taken.
    fn counted_by(&self, sample: &RawSample) -> EventTimes {
        let RawSample { enabled, running, ref counts, .. } = *sample;
        let count = |place: usize| counts.get(place).copied();
        match self.turns {
            None => EventTimes { count: count(0).unwrap_or(self.counted.count), enabled, running },
            // (others may have had the counter when it was on)
            Some(_) => EventTimes {
                count: count(1).unwrap_or(self.counted.count),
                enabled: count(0).unwrap_or(0).saturating_add(enabled.saturating_sub(running)),
                running,
            },
        }
    }

    /// The time since the last sample, if it has counted so much by now, and what no sample stands for, in nanoseconds.
    fn since_the_last(&mut self, by_now: EventTimes) -> (u64, u64) {
        let last = std::mem::replace(&mut self.counted, by_now);
        let counts = by_now.count.saturating_sub(last.count) as f64;
        let scale = if self.everywhere { scale_between(last, by_now) } else { 1.0 };
        // (a timer that finds the kernel, which is not wanted, has no sample, and counts on)
        let counts_others = self.by_timer && !self.kernel;
        let (told, untold) = stands_for(counts, [self.period_before, self.period], counts_others);
        let ns = |counts: f64| (counts * scale * self.clock.ns_each()) as u64;
        (ns(told), ns(untold))
    }

    /// What ran since the last time.
    pub fn drain(&mut self) -> ClockTime {
        let mut seen = ClockTime::default();
        let mut record = std::mem::take(&mut self.record);
        while let Some(record) = self.ring.next(&mut record) {
            match sampled(record, self.callers) {
                SamplerRecord::Sample(sample) => {
                    self.unchanged = self.unchanged.saturating_sub(1);
                    let pid = self.process.unwrap_or(sample.pid);
                    let sample = RawSample { pid, ..sample };
                    let (weight_ns, untold_ns) = self.since_the_last(self.counted_by(&sample));
                    seen.untold_ns += untold_ns;
                    let (_, misc) = header(record[0]);
                    let in_kernel = misc & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_KERNEL;
                    let ran = if in_kernel && !self.kernel { seen_from_user_mode(sample) } else { sample };
                    if !ran.is_idle() {
                        seen.samples.push(ClockSample { ran, weight_ns });
                    }
                }
                SamplerRecord::Lost(lost) => seen.lost += lost,
                SamplerRecord::Throttled => seen.throttled += 1,
                _ => {}
            }
        }
        self.record = record;
        if self.process.is_some() && !seen.samples.is_empty() {
            self.latest = seen.samples.last().map(|sample| sample.ran.clone());
        }
        seen
    }

    /// The last that it saw. What a thread did since its last sample goes to where that was.
    pub fn end(mut self) -> ClockTime {
        let mut seen = self.drain();
        if self.process.is_none() || self.by_timer {
            return seen;
        }
        let of_turns = |turns: &ClockTurns| turns.by_now(self.counted);
        let by_now = self.turns.as_ref().map_or_else(|| self.event.times_of_group(), of_turns);
        let Ok(by_now) = by_now else { return seen };
        let unseen = by_now.running.saturating_sub(self.counted.running);
        let not_counted = by_now.enabled.saturating_sub(self.counted.enabled).saturating_sub(unseen);
        let (weight_ns, untold_ns) = self.since_the_last(by_now);
        seen.untold_ns += untold_ns;
        match self.latest.take() {
            Some(ran) if weight_ns > 0 => seen.samples.push(ClockSample { ran, weight_ns }),
            _ => seen.untold_ns += weight_ns,
        }
        if self.everywhere && unseen == 0 {
            seen.untold_ns += not_counted;
        }
        seen
    }
}

impl AsRawFd for CpuClock {
    /// Can be read when the ring is half full.
    fn as_raw_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}

/// For how many times as long a clock was to count as it did, from then until now: it was off, or others had its counter.
fn scale_between(then: EventTimes, now: EventTimes) -> f64 {
    let since = |of: fn(EventTimes) -> u64| of(now).saturating_sub(of(then)) as f64;
    let (enabled, running) = (since(|at| at.enabled), since(|at| at.running));
    if running > 0.0 { (enabled / running).max(1.0) } else { 1.0 }
}

/// Of what was counted since the last sample, what one stands for, and what none does: it does not for all that found no room, of which nobody
/// knows where it was. (The period may have begun anew within the one before.) `counts_others`: what was counted besides a period is none of what is
/// wanted.
fn stands_for(counts: f64, [before, period]: [u64; 2], counts_others: bool) -> (f64, f64) {
    if counts_others {
        return (counts.min(period as f64), 0.0);
    }
    let told = counts.min((2 * (before + period)) as f64);
    (told, counts - told)
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
    fn a_sample_does_not_stand_for_those_that_were_lost() {
        assert_eq!(stands_for(700.0, [500, 300], false), (700.0, 0.0));
        assert_eq!(stands_for(9000.0, [500, 300], false), (1600.0, 7400.0));
        // a timer goes on in the kernel
        assert_eq!(stands_for(9000.0, [500, 300], true), (300.0, 0.0));
        assert_eq!(stands_for(200.0, [500, 300], true), (200.0, 0.0));
    }

    #[test]
    fn time_in_which_it_had_no_counter_goes_with_the_rest() {
        let at = |enabled, running| EventTimes { count: 0, enabled, running };
        let between = |now| scale_between(at(1000, 900), now);
        assert_eq!((between(at(1300, 1200)), between(at(1600, 1200))), (1.0, 2.0));
        // it never counted; a record is damaged
        assert_eq!((between(at(1600, 900)), between(at(0, 0))), (1.0, 1.0));
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
