//! An event that samples on one thread, or on one CPU. By itself each overflow is a sample; a second one beside it counts all, since the
//! kernel stops the first where it throttles it. (Of an event that one counter alone counts there is none.)
//!
//! Of a condition it is a group: two counters that reload each other, of which one samples, and a third that counts all that the first
//! does. A stretch begins where the last one ended. It ends when either of the two has counted its period, and is a sample if the one that
//! samples was first. What these two count in all is garbage, since nobody sees that they are reloaded.
//!
//! On a CPU a fourth event of that group, of software, has a sample at each switch from one thread to another.
#![forbid(unsafe_code)]

use super::owners::StretchOwners;
use super::resolved::{Config, PmuSampling, attr_of};
use super::written::Periods;
use crate::event::{CLOCK, EventTimes, TaskEvent};
use crate::records::{CallGraph, RawSample, SamplerRecord, sampled, without_callers};
use crate::sampler::{PAGE, SampledTarget, switches_attr};
use perf_event_open_sys::bindings::{PERF_SAMPLE_WEIGHT_STRUCT, perf_event_attr};
use std::io;
use topdown_seam::group_read;
use topdown_seam::identity;
use topdown_seam::random::Random;
use topdown_seam::ring::RecordRing;

/// Some 300 samples with ten callers each: those of 10 ms are fewer.
const RING_PAGES: usize = 16;
/// Samples with the deepest stacks that it has room for.
const FEWEST_SAMPLES: usize = 8;
/// Of a CPU, if so much may be locked: some 3,000 switches besides.
const RING_PAGES_OF_CPU: usize = 64;

/// What became of the stretches of a thread, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Stretches in which the condition held.
    pub held: u64,
    /// Events for which they stand.
    pub sampled: u64,
    /// Samples that are left out: the thread was descheduled since the one before, and the two counters do not go on as they were. Or, on
    /// a CPU, another thread has counted in the stretch, too.
    pub parted: u64,
    /// Samples that found no room.
    pub lost: u64,
    /// The kernel throttled the event, or let it go on.
    pub throttled: u64,
    /// What the sampling event counted in all (of a CPU without what the recorder did), and for how long the group was enabled and counted.
    pub all: EventTimes,
    /// Threads, or CPUs: each has a stretch that had not ended.
    pub threads: u64,
    /// Of these so many have counts of which samples are missing: nothing beside the event counts all.
    pub uncounted: u64,
}

impl Tally {
    /// So many samples, which stand for so much of all nanoseconds.
    pub fn of_time(held: u64, sampled: u64, ns: u64) -> Tally {
        let all = EventTimes { count: ns, enabled: ns, running: ns };
        Tally { held, sampled, all, ..Tally::default() }
    }

    /// Adds another.
    pub fn add(&mut self, other: Tally) {
        self.held += other.held;
        self.sampled += other.sampled;
        self.parted += other.parted;
        self.lost += other.lost;
        self.throttled += other.throttled;
        self.threads += other.threads;
        self.uncounted += other.uncounted;
        self.all.count += other.all.count;
        self.all.enabled += other.all.enabled;
        self.all.running += other.all.running;
    }

    /// Of the records that found no room so many were no samples.
    fn is_not_lost(&mut self, records: u64) {
        self.lost = self.lost.saturating_sub(records);
    }
}

/// Whose samples are.
#[derive(Debug)]
enum Owner {
    /// Whose the instruction is that was sampled.
    Its {
        /// None: any process's on a CPU, but what the recorder does.
        pid: Option<i32>,
        recorder: i32,
        /// Samples of the recorder.
        by_recorder: u64,
    },
    Thread {
        pid: i32,
        /// It was descheduled since the last sample.
        descheduled: bool,
    },
    Cpu {
        owners: StretchOwners,
        recorder: i32,
        /// The recorder may run elsewhere, and does when this ends.
        beside: bool,
    },
}

impl Owner {
    fn of(counted: SampledTarget, period: u64, is_condition: bool) -> Owner {
        match counted {
            SampledTarget::Thread { pid, .. } if is_condition => Owner::Thread { pid, descheduled: false },
            SampledTarget::Cpu { recorder, beside, .. } if is_condition => {
                Owner::Cpu { owners: StretchOwners::new(period, recorder), recorder, beside }
            }
            SampledTarget::Thread { pid, .. } => Owner::Its { pid: Some(pid), recorder: 0, by_recorder: 0 },
            SampledTarget::Cpu { recorder, .. } => Owner::Its { pid: None, recorder, by_recorder: 0 },
        }
    }
}

/// A period lasts for so many samples at the least: what of a program always follows a nap has none before the first period is over.
const SAMPLES_OF_A_PERIOD: u64 = 64;

/// What an event counts from one sample to the next, another number now and then.
#[derive(Debug)]
struct RandomPeriods {
    random: Random,
    mean: u64,
    now: u64,
    /// Samples with this one.
    samples: u64,
    /// What it counted between a sample and the beginning of another period: nothing of that could have a sample.
    skipped: u64,
}

impl RandomPeriods {
    fn new(mean: u64) -> RandomPeriods {
        let mut random = Random::new(identity::unique());
        let now = RandomPeriods::one(&mut random, mean);
        RandomPeriods { random, mean, now, samples: 0, skipped: 0 }
    }

    fn one(random: &mut Random, mean: u64) -> u64 {
        ((0.5 + random.part()) * mean as f64) as u64
    }

    /// So many samples more. If those are enough, another period begins now, some time after the last one.
    fn taken(&mut self, event: &TaskEvent, samples: &[RawSample]) {
        self.samples += samples.len() as u64;
        let Some(last) = samples.last().filter(|_| self.samples >= SAMPLES_OF_A_PERIOD) else { return };
        let next = RandomPeriods::one(&mut self.random, self.mean);
        // (one whose thread has ended, or whose CPU has gone, has none)
        if event.set_period(next).is_ok() {
            (self.now, self.samples) = (next, 0);
            let counted = event.times_of_group().map_or(0, |times| times.count);
            self.skipped += counted.saturating_sub(last.counts.first().copied().unwrap_or(counted));
        }
    }
}

/// An open group.
#[derive(Debug)]
pub(crate) struct EventSampler {
    /// Place among the PMUs of all that is sampled at once.
    pub kind: usize,
    ring: RecordRing,
    sampled: TaskEvent,
    /// Of a condition, the one that reloads it.
    _other: Option<TaskEvent>,
    all: Option<TaskEvent>,
    _switches: Option<TaskEvent>,
    callers: CallGraph,
    owner: Owner,
    period: u64,
    random: Option<RandomPeriods>,
    tally: Tally,
    record: Vec<u64>,
}

fn attr(pmu: &PmuSampling, event: Config, mask: u64) -> perf_event_attr {
    let mut attr = attr_of(pmu.kind, event, mask);
    attr.set_exclude_kernel((!pmu.kernel).into());
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    // (events of a group have one clock)
    attr.set_use_clockid(1);
    attr.clockid = CLOCK;
    attr
}

/// A ring for a thread or CPU, with the most room that may be locked.
fn ring(sampled: &TaskEvent, callers: CallGraph, counted: SampledTarget) -> io::Result<RecordRing> {
    let least = (FEWEST_SAMPLES * callers.most_bytes()).div_ceil(PAGE).next_power_of_two();
    match counted {
        SampledTarget::Thread { .. } => RecordRing::map(sampled, least.max(RING_PAGES)),
        SampledTarget::Cpu { .. } => RecordRing::map(sampled, least.max(RING_PAGES_OF_CPU))
            .or_else(|_| RecordRing::map(sampled, least.max(RING_PAGES))),
    }
}

/// Of a CPU: a sample at each switch, with the counts of the group. (Records of switches have no counts)
fn each_switch() -> perf_event_attr {
    let mut attr = switches_attr();
    attr.__bindgen_anon_1.sample_period = 1;
    CallGraph::set_none(&mut attr);
    attr
}

impl EventSampler {
    /// On a thread or CPU, with other events than the condition's for a test.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended; ENOENT: the CPU is of another kind.
    pub fn open(
        pmu: &PmuSampling,
        kind: usize,
        periods: Periods,
        counted: SampledTarget,
    ) -> io::Result<EventSampler> {
        let (tid, cpu) = counted.target();
        let is_condition = pmu.reload.is_some();
        // (the order is what bits of masks mean; what has no mask comes last)
        let mut first = attr(pmu, pmu.sampled, pmu.reload.map_or(0, |reload| reload.masks[0]));
        let random = pmu.is_random.then(|| RandomPeriods::new(periods.sampled));
        first.__bindgen_anon_1.sample_period = random.as_ref().map_or(periods.sampled, |random| random.now);
        pmu.callers.set(&mut first);
        first.set_exclude_callchain_kernel((!pmu.kernel).into());
        first.sample_type |= if pmu.is_timed { u64::from(PERF_SAMPLE_WEIGHT_STRUCT) } else { 0 };
        first.read_format = group_read::GROUP;
        first.set_disabled(1);
        first.set_precise_ip(pmu.precise_ip);
        first.set_context_switch((is_condition && counted.process().is_some()).into());
        let sampled = TaskEvent::open(first, tid, cpu, None)?;
        let other = pmu.reload.map(|reload| {
            let mut second = attr(pmu, reload.other, reload.masks[1]);
            second.__bindgen_anon_1.sample_period = periods.other;
            TaskEvent::open(second, tid, cpu, Some(&sampled))
        });
        let other = other.transpose()?;
        let mut third = attr(pmu, pmu.sampled, 0);
        third.read_format = group_read::TIMES;
        let all = || TaskEvent::open(third, tid, cpu, Some(&sampled).filter(|_| is_condition));
        let all = pmu.is_counted_beside.then(all).transpose()?;
        let ring = ring(&sampled, pmu.callers, counted)?;
        let switches = match counted {
            SampledTarget::Cpu { .. } if is_condition => {
                let switches = TaskEvent::open(each_switch(), tid, cpu, Some(&sampled))?;
                switches.set_output(&sampled)?;
                Some(switches)
            }
            _ => None,
        };
        sampled.enable()?;
        let tally = Tally { threads: 1, ..Tally::default() };
        Ok(EventSampler {
            kind,
            ring,
            sampled,
            _other: other,
            all,
            _switches: switches,
            callers: pmu.callers,
            owner: Owner::of(counted, periods.sampled, is_condition),
            period: periods.sampled,
            random,
            tally,
            record: Vec::new(),
        })
    }

    /// Samples that were taken since the last time.
    pub fn drain(&mut self) -> Vec<RawSample> {
        let mut samples = Vec::new();
        let mut record = std::mem::take(&mut self.record);
        while let Some(record) = self.ring.next(&mut record) {
            samples.extend(self.taken(record));
        }
        self.record = record;
        let each = self.random.as_ref().map_or(self.period, |random| random.now);
        samples.iter_mut().for_each(|sample: &mut RawSample| sample.stands_for = each);
        self.tally.held += samples.len() as u64;
        self.tally.sampled += samples.len() as u64 * each;
        if let Some(random) = &mut self.random {
            random.taken(&self.sampled, &samples);
        }
        samples
    }

    /// The sample that a record is, if the condition is known to have held in its thread.
    fn taken(&mut self, record: &[u64]) -> Option<RawSample> {
        let tally = &mut self.tally;
        if let Owner::Cpu { owners, .. } = &mut self.owner {
            if let Some(switch) = without_callers(record) {
                tally.is_not_lost(owners.switched(&switch));
                return None;
            }
        }
        let sampled = sampled(record, self.callers);
        match (sampled, &mut self.owner) {
            (SamplerRecord::Sample(sample), Owner::Its { pid, recorder, by_recorder }) => {
                let is_recorders = pid.is_none() && sample.tid == *recorder;
                *by_recorder += u64::from(is_recorders);
                let pid = pid.unwrap_or(sample.pid);
                (!is_recorders && !sample.is_idle()).then_some(RawSample { pid, ..sample })
            }
            (SamplerRecord::Sample(sample), Owner::Thread { pid, descheduled }) => {
                let parted = std::mem::take(descheduled);
                tally.parted += u64::from(parted);
                (!parted).then_some(RawSample { pid: *pid, ..sample })
            }
            (SamplerRecord::Sample(sample), Owner::Cpu { owners, recorder, .. }) => {
                let (owns, missing) = owners.owns(&sample);
                tally.is_not_lost(missing);
                let others = sample.tid != *recorder && !sample.is_idle();
                tally.parted += u64::from(others && !owns);
                (others && owns).then_some(sample)
            }
            (SamplerRecord::Descheduled, Owner::Thread { descheduled, .. }) => {
                *descheduled = true;
                None
            }
            (SamplerRecord::Descheduled | SamplerRecord::Other, _) => None,
            (missing, owner) => {
                match missing {
                    SamplerRecord::Throttled => tally.throttled += 1,
                    SamplerRecord::Lost(lost) => tally.lost += lost,
                    _ => tally.lost += 1,
                }
                if let Owner::Cpu { owners, .. } = owner {
                    owners.breaks();
                }
                None
            }
        }
    }

    /// Stops it: the last samples, and what became of all.
    pub fn end(mut self) -> (Vec<RawSample>, Tally) {
        // (one that has ended has nothing to stop)
        let _ = self.sampled.disable();
        let samples = self.drain();
        let all = self.all.as_ref().map_or_else(|| self.sampled.times_of_group(), TaskEvent::times);
        let mut all = all.unwrap_or_default();
        match &self.owner {
            Owner::Cpu { owners, beside, .. } => {
                // (where it can run nowhere else it runs here now)
                let now = if *beside { 0 } else { owners.since_the_last(all.count) };
                all.count = all.count.saturating_sub(owners.by_recorder() + now);
            }
            Owner::Its { by_recorder, .. } => {
                all.count = all.count.saturating_sub(by_recorder * self.period);
            }
            Owner::Thread { .. } => {}
        }
        let skipped = self.random.as_ref().map_or(0, |random| random.skipped);
        all.count = all.count.saturating_sub(skipped);
        self.tally.all = all;
        let is_whole = self.all.is_some() || self.tally.throttled + self.tally.lost == 0;
        self.tally.uncounted = u64::from(!is_whole);
        (samples, self.tally)
    }
}
