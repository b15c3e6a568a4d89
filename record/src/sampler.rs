//! A group of counters on one thread, which samples in bursts.
#![forbid(unsafe_code)]

use crate::event::{CLOCK, TaskEvent, now};
use crate::proof::Strobe;
use crate::records::{CallGraph, READ_FORMAT, RawSample, Sampled, sampled};
use crate::ring::RecordRing;
use perf_event_open_sys::bindings::perf_event_attr;
use std::io;
use topdown::SampledEvents;

/// Samples of a burst: two windows, of which each could have another function in it that the sample between them shows.
pub(crate) const SAMPLES: u32 = 3;
/// The smallest page; a ring has room for a burst wherever pages are larger, too.
const PAGE: usize = 4096;
/// A burst that begins later than this after it was asked for was not of that instant: the thread slept.
const LATE_NS: u64 = 500_000;

/// Until the first gap is set.
const FIRST_PERIOD: u64 = 1_000_000;

/// A burst as it came.
#[derive(Debug)]
pub(crate) struct RawBurst {
    pub pid: i32,
    /// Which of the kinds of cores.
    pub kind: usize,
    /// The gap was one of the longer ones.
    pub long: bool,
    /// CPU time of this thread for which it stands.
    pub weight_ns: u64,
    pub strobe: Strobe,
    pub samples: Vec<RawSample>,
}

/// An open group.
#[derive(Debug)]
pub(crate) struct Sampler {
    pid: i32,
    tid: i32,
    kind: usize,
    ring: RecordRing,
    /// All but the leader, which is closed last: metric events die with it.
    members: Vec<TaskEvent>,
    leader: TaskEvent,
    /// Counts always, beside the group (`CallGraph::keeps_on`).
    _keeper: Option<TaskEvent>,
    /// The one that samples: its place in the group.
    sampling: usize,
    /// How many of its events are in a cycle, by which a gap is multiplied.
    per_cycle: u64,
    callers: CallGraph,
    /// Overflows that the kernel still permits.
    permitted: u32,
    /// What the burst under way has shown, when it was asked for, and for how long it stands.
    samples: Vec<RawSample>,
    /// The next sample comes after a gap.
    after_gap: bool,
    asked: Option<(u64, u64)>,
    long: bool,
    /// Of the one that samples, in its events.
    period: u64,
    bursts: u64,
    /// When it was opened.
    since: u64,
    record: Vec<u8>,
}

/// What is left of the bursts that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// The thread did not run at that instant.
    pub asleep: u64,
    /// Records that found no room.
    pub lost: u64,
    /// The kernel throttled the event, or let it go on.
    pub throttled: u64,
}

/// For these cores with branch records that follow calls have a fixed counter.
const INSTRUCTIONS: u64 = 0xc0;

pub(crate) fn attr(events: &SampledEvents, config: u64, kernel: bool) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: events.kind,
        config,
        read_format: READ_FORMAT,
        ..perf_event_attr::default()
    };
    attr.set_exclude_kernel((!kernel).into());
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    // (events of a group have one clock)
    attr.set_use_clockid(1);
    attr.clockid = CLOCK;
    attr
}

/// Cycles take no less time.
const CYCLE_NS: f64 = 0.2;

impl RawBurst {
    /// What the burst took of the thread's time, in nanoseconds: interrupts of all samples, of which those up to the last are between
    /// the first and the last sample, beside the gaps. (Gaps are taken to be as short as they can be.)
    pub fn cost_ns(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        if self.samples.iter().any(|sample| sample.after_gap) {
            return None; // it waited for the tick
        }
        let between = (self.samples.len() - 1) as f64;
        let cycles = self.strobe.period as f64 / self.strobe.per_cycle as f64;
        let each = last.enabled.checked_sub(first.enabled)? as f64 / between - cycles * CYCLE_NS;
        (between > 0.0).then(|| each.max(0.0) * (between + 1.0))
    }
}

impl Sampler {
    /// On a thread, for one kind of core; `kernel`: of what the kernel does for it, too.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended.
    pub fn open(
        events: &SampledEvents,
        kind: usize,
        (pid, tid): (i32, i32),
        kernel: bool,
        callers: CallGraph,
    ) -> io::Result<Sampler> {
        let sampling = events.sampler;
        // (returns are counted behind all others)
        let all: Vec<u64> = events.events.iter().chain(&events.returns).map(|(_, config)| *config).collect();
        let attr = |place: usize| {
            let mut attr = attr(events, all[place], kernel);
            if place == sampling {
                attr.__bindgen_anon_1.sample_period = FIRST_PERIOD; // (set before each block of bursts)
                callers.set(&mut attr);
                attr.set_exclude_callchain_kernel((!kernel).into());
            }
            attr.set_disabled((place == 0 || place == sampling).into());
            attr
        };
        let leader = TaskEvent::open(attr(0), tid, -1, None)?;
        let members = (1..all.len()).map(|place| TaskEvent::open(attr(place), tid, -1, Some(&leader)));
        let members = members.collect::<io::Result<Vec<_>>>()?;
        let mut keeper = self::attr(events, INSTRUCTIONS, false);
        let keeps = callers.keeps_on(&mut keeper);
        let keeper = keeps.then(|| TaskEvent::open(keeper, tid, -1, None)).transpose()?;
        let sampler = if sampling == 0 { &leader } else { &members[sampling - 1] };
        let pages = (SAMPLES as usize * callers.most_bytes()).div_ceil(PAGE).next_power_of_two();
        let ring = RecordRing::map(sampler, pages)?;
        if sampling != 0 {
            // (that samples are throttled the kernel says to the leader)
            leader.set_output(sampler)?;
            leader.enable()?;
        }
        Ok(Sampler {
            pid,
            tid,
            kind,
            ring,
            members,
            leader,
            _keeper: keeper,
            sampling,
            per_cycle: events.sampled_per_cycle,
            callers,
            permitted: 0,
            samples: Vec::new(),
            after_gap: false,
            asked: None,
            long: false,
            period: FIRST_PERIOD,
            bursts: 0,
            since: now(),
            record: Vec::new(),
        })
    }

    /// The event that samples.
    fn event(&self) -> &TaskEvent {
        if self.sampling == 0 { &self.leader } else { &self.members[self.sampling - 1] }
    }

    /// Since when the thread is sampled.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// How many bursts were asked for.
    pub fn bursts(&self) -> u64 {
        self.bursts
    }

    /// A burst was asked for, and nothing was counted since: the thread did not run.
    pub fn waits(&self) -> bool {
        self.asked.is_some() && self.permitted > 0 && self.samples.is_empty() && self.ring.is_empty()
    }

    /// The gap of the next bursts, in cycles.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_gap(&mut self, cycles: u64, long: bool) -> io::Result<()> {
        self.long = long;
        self.period = (cycles * self.per_cycle).max(1);
        self.event().set_period(self.period)
    }

    fn drain(&mut self, fate: &mut Fate) {
        let mut record = std::mem::take(&mut self.record);
        let mut after_gap = std::mem::take(&mut self.after_gap);
        while let Some((kind, _)) = self.ring.next(&mut record) {
            match sampled(kind, &record, self.callers) {
                Sampled::Sample(sample) => {
                    self.permitted = self.permitted.saturating_sub(1);
                    self.samples.push(RawSample { after_gap: std::mem::take(&mut after_gap), ..sample });
                }
                Sampled::Throttled => {
                    after_gap = true;
                    fate.throttled += 1;
                }
                Sampled::Unreadable => {
                    self.permitted = self.permitted.saturating_sub(1);
                    after_gap = true;
                }
                Sampled::Lost(lost) => {
                    self.permitted = self.permitted.saturating_sub(lost.try_into().unwrap_or(u32::MAX));
                    after_gap = true;
                    fate.lost += lost;
                }
                Sampled::Descheduled | Sampled::Other => {}
            }
        }
        self.after_gap = after_gap;
        self.record = record;
    }

    /// Ends the burst under way, if there is one, and returns what it has shown.
    pub fn end(&mut self, fate: &mut Fate) -> Option<RawBurst> {
        let (asked, weight_ns) = self.asked.take()?;
        self.drain(fate);
        if self.permitted > 0 {
            // (one that has ended meanwhile has nothing to stop)
            let _ = self.event().disable();
            self.drain(fate);
        }
        let samples = std::mem::take(&mut self.samples);
        match samples.first() {
            Some(first) if first.time < asked + LATE_NS => {
                let Sampler { pid, tid, kind, long, period, per_cycle, .. } = *self;
                let strobe = Strobe { tid, period, per_cycle };
                Some(RawBurst { pid, kind, long, weight_ns, strobe, samples })
            }
            _ => {
                fate.asleep += 1;
                None
            }
        }
    }

    /// Asks for a burst now, which stands for so much of the thread's time.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended.
    pub fn begin(&mut self, weight_ns: u64) -> io::Result<()> {
        self.bursts += 1;
        match SAMPLES.saturating_sub(self.permitted) {
            0 => self.event().enable()?,
            more => {
                self.permitted = SAMPLES;
                self.event().refresh(more)?;
            }
        }
        // (if the thread runs it is interrupted by now, however long its CPU took to do that)
        self.asked = Some((now(), weight_ns));
        Ok(())
    }
}
