//! A group of counters on one thread, or on one CPU, which samples in bursts.
#![forbid(unsafe_code)]

use crate::event::{CLOCK, TaskEvent, now};
use crate::proof::Strobe;
use crate::records::{CallGraph, RawSample, SamplerRecord, sampled};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_TYPE_SOFTWARE, perf_event_attr};
use std::cell::Cell;
use std::io;
use topdown::SampledEvents;
use topdown_seam::group_read;
use topdown_seam::ring::RecordRing;

/// Samples of a burst: two windows, of which each could have another function in it that the sample between them shows.
pub(crate) const SAMPLES: u32 = 3;
/// The smallest page; a ring has room for a burst wherever pages are larger, too.
pub(crate) const PAGE: usize = 4096;
/// A burst that begins later than this after it was asked for was not of that instant: the thread slept.
const LATE_NS: u64 = 500_000;

/// A burst that has not come after this is asked for once more.
const AGAIN_NS: u64 = 1_000_000;

/// Until the first gap is set.
const FIRST_PERIOD: u64 = 1_000_000;

/// Samples that a CPU's burst has more, where those of the recorder itself cannot be avoided: it is the one that asks for the burst.
const OF_RECORDER: u32 = 2;

/// What a group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampledTarget {
    Thread {
        pid: i32,
        tid: i32,
    },
    /// Whatever runs there but the thread that records; `beside`: that one may run elsewhere.
    Cpu {
        cpu: u32,
        recorder: i32,
        beside: bool,
    },
}

impl SampledTarget {
    /// Thread and CPU, as perf_event_open(2) has them.
    pub fn target(self) -> (i32, i32) {
        match self {
            SampledTarget::Thread { tid, .. } => (tid, -1),
            SampledTarget::Cpu { cpu, .. } => (-1, cpu as i32),
        }
    }

    /// Several threads run while a group of a CPU counts.
    fn is_cpu(self) -> bool {
        matches!(self, SampledTarget::Cpu { .. })
    }

    /// Of the thread that is counted.
    pub fn process(self) -> Option<i32> {
        match self {
            SampledTarget::Thread { pid, .. } => Some(pid),
            SampledTarget::Cpu { .. } => None,
        }
    }

    /// Samples that are asked for.
    fn samples(self) -> u32 {
        SAMPLES + if matches!(self, SampledTarget::Cpu { beside: false, .. }) { OF_RECORDER } else { 0 }
    }
}

/// A burst as it came.
#[derive(Debug)]
pub(crate) struct RawBurst {
    /// Which of the kinds of cores.
    pub kind: usize,
    /// The gap was one of the longer ones.
    pub long: bool,
    /// CPU time of this thread for which it stands. (Of a CPU a clock tells the time)
    pub weight_ns: u64,
    pub strobe: Strobe,
    pub samples: Vec<RawSample>,
}

/// An open group.
#[derive(Debug)]
pub(crate) struct Sampler {
    counted: SampledTarget,
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
    /// The place of an event that is not opened, and counts nothing.
    silent: Option<usize>,
    callers: CallGraph,
    /// Overflows that the kernel still permits.
    permitted: OverflowLimit,
    /// What the burst under way has shown, when it was asked for, and for how long it stands.
    samples: Vec<RawSample>,
    /// The next sample comes after a gap.
    after_gap: bool,
    /// Of a CPU: how often it had switched to another thread by the last sample.
    switches: u64,
    /// What comes now is no part of the burst.
    cut: bool,
    asked: Option<(u64, u64)>,
    /// When it is to be asked for again, if that is later than usual.
    again: Cell<u64>,
    /// How often its counter had changed before.
    changes: u32,
    long: bool,
    /// Of the one that samples, in its events.
    period: u64,
    bursts: u64,
    /// When it was opened.
    since: u64,
    record: Vec<u64>,
}

/// How many overflows the kernel still permits an event. It counts those that found no room for a sample, too, of which a record tells
/// only when the next one finds room. An event that is enabled with none left overflows without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OverflowLimit {
    most: u32,
    least: u32,
}

impl OverflowLimit {
    /// There were so many.
    fn used(&mut self, overflows: u32) {
        self.most = self.most.saturating_sub(overflows);
        self.least = self.least.saturating_sub(overflows);
    }

    /// There may have been others.
    fn may_be_used(&mut self) {
        self.least = 0;
    }

    /// How many more are to be permitted for so many; 0: there are as many, and at least one.
    fn more(&mut self, wanted: u32) -> u32 {
        let more = wanted.saturating_sub(self.most).max(u32::from(self.least == 0));
        self.most += more;
        self.least += more;
        more
    }
}

/// What is left of the bursts that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// The thread did not run at that instant, or no other than the recorder on the CPU.
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
        read_format: group_read::GROUP,
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

/// Of a CPU: how often it switches, in each sample. The kernel counts that in the kernel. Records of switches would be a second way, but
/// these take the room of samples, and so many that no record tells yet how many were lost: an event of which all overflows were
/// lost goes on without limit when it is enabled.
pub(crate) fn switches_attr() -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CONTEXT_SWITCHES.into(),
        read_format: group_read::GROUP,
        clockid: CLOCK,
        ..perf_event_attr::default()
    };
    attr.set_use_clockid(1);
    attr
}

/// Cycles take no less time.
const CYCLE_NS: f64 = 0.2;

impl RawBurst {
    /// What the burst took of the thread's time, in nanoseconds: interrupts of all samples, of which those up to the last are between
    /// the first and the last sample, beside the gaps. (Gaps are taken to be as short as they can be.)
    pub fn cost_ns(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        if self.samples.iter().skip(1).any(|sample| sample.after_gap || sample.switched) || first.after_gap {
            return None; // it waited for the tick, or others ran
        }
        let between = (self.samples.len() - 1) as f64;
        let cycles = self.strobe.period as f64 / self.strobe.per_cycle as f64;
        let each = last.enabled.checked_sub(first.enabled)? as f64 / between - cycles * CYCLE_NS;
        (between > 0.0).then(|| each.max(0.0) * (between + 1.0))
    }
}

impl Sampler {
    /// On a thread or CPU, for one kind of core; `kernel`: of what the kernel does for it, too.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended; ENOENT: the CPU is of another kind.
    pub fn open(
        events: &SampledEvents,
        kind: usize,
        counted: SampledTarget,
        kernel: bool,
        callers: CallGraph,
    ) -> io::Result<Sampler> {
        let sampling = events.sampler;
        let all = events.opened();
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
        let (tid, cpu) = counted.target();
        let leader = TaskEvent::open(attr(0), tid, cpu, None)?;
        let members = (1..all.len()).map(|place| TaskEvent::open(attr(place), tid, cpu, Some(&leader)));
        let mut members = members.collect::<io::Result<Vec<_>>>()?;
        if counted.is_cpu() {
            // (the last one: its count is the last of a sample)
            members.push(TaskEvent::open(switches_attr(), tid, cpu, Some(&leader))?);
        }
        let mut keeper = self::attr(events, INSTRUCTIONS, false);
        let keeps = callers.keeps_on(&mut keeper);
        let keeper = keeps.then(|| TaskEvent::open(keeper, tid, cpu, None)).transpose()?;
        let sampler = if sampling == 0 { &leader } else { &members[sampling - 1] };
        let pages = (counted.samples() as usize * callers.most_bytes()).div_ceil(PAGE).next_power_of_two();
        let ring = RecordRing::map(sampler, pages)?;
        if sampling != 0 {
            // (that samples are throttled the kernel says to the leader)
            leader.set_output(sampler)?;
            leader.enable()?;
        }
        Ok(Sampler {
            counted,
            kind,
            ring,
            members,
            leader,
            _keeper: keeper,
            sampling,
            per_cycle: events.sampled_per_cycle,
            silent: events.silent,
            callers,
            permitted: OverflowLimit::default(),
            samples: Vec::new(),
            after_gap: false,
            switches: 0,
            cut: false,
            asked: None,
            again: Cell::new(0),
            changes: 0,
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

    /// For which of the kinds of cores.
    pub fn kind(&self) -> usize {
        self.kind
    }

    /// How many bursts were asked for.
    pub fn bursts(&self) -> u64 {
        self.bursts
    }

    /// Nothing had a counter since a burst was asked for: the thread did not run.
    pub fn stands_still(&self) -> bool {
        self.asked.is_some() && self.changes == self.ring.changes()
    }

    /// A burst was asked for, and nothing was counted since: the thread did not run.
    pub fn waits(&self) -> bool {
        let waits = self.asked.is_some()
            && self.permitted.most > 0
            && self.samples.is_empty()
            && self.ring.is_empty();
        if waits {
            self.ask_again();
        }
        waits
    }

    /// Asks once more for a burst that has not come. The kernel stops an event some time after its last overflow, when the sample is there
    /// already (perf_event_disable_inatomic): if another burst was asked for in between it stops that one, too, as nobody else would notice.
    /// (Where the thread sleeps this does nothing. It is done less and less often)
    fn ask_again(&self) {
        let (Some((asked, _)), now) = (self.asked, now()) else { return };
        if now >= self.again.get().max(asked + AGAIN_NS) && self.permitted.least > 0 {
            self.again.set(now + 4 * (now - asked));
            // (one that has ended has nothing to begin)
            let _ = self.event().enable();
        }
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
        while let Some(record) = self.ring.next(&mut record) {
            match sampled(record, self.callers) {
                SamplerRecord::Sample(sample) => {
                    self.permitted.used(1);
                    self.add(sample);
                }
                SamplerRecord::Throttled => {
                    self.after_gap = true;
                    fate.throttled += 1;
                }
                SamplerRecord::Unreadable => {
                    self.permitted.used(1);
                    self.after_gap = true;
                }
                SamplerRecord::Lost(lost) => {
                    self.permitted.used(lost.try_into().unwrap_or(u32::MAX));
                    self.after_gap = true;
                    fate.lost += lost;
                }
                SamplerRecord::Descheduled | SamplerRecord::Other => {}
            }
        }
        self.record = record;
    }

    /// Adds a sample to the burst. Of a CPU neither the recorder, which has only just asked for the burst, nor the idle thread is
    /// sampled: a burst begins behind either, and ends before it.
    fn add(&mut self, sample: RawSample) {
        let mut sample = RawSample { after_gap: std::mem::take(&mut self.after_gap), ..sample };
        match self.counted {
            SampledTarget::Thread { pid, .. } => sample.pid = pid,
            SampledTarget::Cpu { recorder, .. } => {
                let switches = sample.counts.pop().unwrap_or_default();
                sample.switched = switches != std::mem::replace(&mut self.switches, switches);
                if sample.is_idle() || sample.tid == recorder {
                    self.cut |= !self.samples.is_empty();
                    return;
                }
                if self.cut || self.samples.len() == SAMPLES as usize {
                    return;
                }
            }
        }
        if let Some(place) = self.silent.filter(|place| *place <= sample.counts.len()) {
            sample.counts.insert(place, 0);
        }
        self.samples.push(sample);
    }

    /// Ends the burst under way, if there is one, and returns what it has shown.
    pub fn end(&mut self, fate: &mut Fate) -> Option<RawBurst> {
        let (asked, weight_ns) = self.asked.take()?;
        self.drain(fate);
        if self.permitted.most > 0 {
            // (one that has ended meanwhile has nothing to stop)
            let _ = self.event().disable();
            self.drain(fate);
        }
        let samples = std::mem::take(&mut self.samples);
        self.cut = false;
        match samples.first() {
            // (of a CPU no burst tells the time)
            Some(first) if self.counted.is_cpu() || first.time < asked + LATE_NS => {
                let Sampler { counted, kind, long, period, per_cycle, .. } = *self;
                let tid = match counted {
                    SampledTarget::Thread { tid, .. } => Some(tid),
                    SampledTarget::Cpu { .. } => None,
                };
                let strobe = Strobe { tid, period, per_cycle };
                Some(RawBurst { kind, long, weight_ns, strobe, samples })
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
        let wanted = self.counted.samples();
        if !self.ring.had_room(self.callers.most_bytes()) {
            self.permitted.may_be_used();
        }
        self.changes = self.ring.changes();
        match self.permitted.more(wanted) {
            0 => self.event().enable()?,
            more => self.event().refresh(more)?,
        }
        // (if the thread runs it is interrupted by now, however long its CPU took to do that)
        self.asked = Some((now(), weight_ns));
        self.again.set(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_never_enabled_if_it_may_have_no_overflow_left() {
        let mut permitted = OverflowLimit::default();
        assert_eq!(permitted.more(3), 3);
        permitted.used(2);
        assert_eq!(permitted.more(3), 2);
        assert_eq!(permitted.more(3), 0); // (the thread slept)
        permitted.may_be_used();
        assert_eq!(permitted.more(3), 1);
        // of this one it is known; then one was seen, which may have been it
        assert_eq!(permitted.more(3), 0);
        permitted.used(1);
        assert_eq!((permitted.most, permitted.more(3)), (3, 1));
        permitted.used(u32::MAX);
        assert_eq!(permitted.more(3), 3);
    }
}
