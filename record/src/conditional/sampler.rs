//! The group of a condition on one thread: two counters that reload each other, of which one samples, and a third that counts all
//! that the first does.
//!
//! A stretch begins where the last one ended. It ends when either of the two has counted its period, and is a sample if the one that
//! samples was first. What these two count in all is garbage, since nobody sees that they are reloaded.
#![forbid(unsafe_code)]

use super::resolved::{Config, OnPmu, attr_of};
use super::written::Periods;
use crate::event::{CLOCK, TaskEvent, Times};
use crate::records::{CallGraph, READ_FORMAT, READ_TIMES, RawSample, Sampled, sampled};
use crate::ring::RecordRing;
use perf_event_open_sys::bindings::perf_event_attr;
use std::io;

/// Some 300 samples with ten callers each: those of 10 ms are fewer.
const RING_PAGES: usize = 16;

/// What became of the stretches of a thread, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Stretches in which the condition held.
    pub held: u64,
    /// Samples that are left out: the thread was descheduled since the one before, and the two counters do not go on as they were.
    pub parted: u64,
    /// Samples that found no room.
    pub lost: u64,
    /// The kernel throttled the event, or let it go on.
    pub throttled: u64,
    /// What the sampling event counted in all, and for how long the group was enabled and counted.
    pub all: Times,
    /// Threads.
    pub threads: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Tally) {
        self.held += other.held;
        self.parted += other.parted;
        self.lost += other.lost;
        self.throttled += other.throttled;
        self.threads += other.threads;
        self.all.count += other.all.count;
        self.all.enabled += other.all.enabled;
        self.all.running += other.all.running;
    }
}

/// An open group.
#[derive(Debug)]
pub(crate) struct ConditionalSampler {
    pub pid: i32,
    /// Place among the condition's PMUs.
    pub kind: usize,
    ring: RecordRing,
    sampled: TaskEvent,
    _other: TaskEvent,
    all: TaskEvent,
    /// The thread was descheduled since the last sample.
    descheduled: bool,
    tally: Tally,
    record: Vec<u8>,
}

fn attr(pmu: &OnPmu, event: Config, mask: u64) -> perf_event_attr {
    let mut attr = attr_of(pmu.kind, event, mask);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    // (events of a group have one clock)
    attr.set_use_clockid(1);
    attr.clockid = CLOCK;
    attr
}

impl ConditionalSampler {
    /// On a thread, with other events than the condition's for a test.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended.
    pub fn open(
        pmu: &OnPmu,
        kind: usize,
        periods: Periods,
        pid: i32,
        tid: i32,
    ) -> io::Result<ConditionalSampler> {
        // (the order is what bits of masks mean; what has no mask comes last)
        let mut first = attr(pmu, pmu.sampled, pmu.masks[0]);
        first.__bindgen_anon_1.sample_period = periods.sampled;
        CallGraph::FramePointers.set(&mut first);
        first.read_format = READ_FORMAT;
        first.set_disabled(1);
        first.set_context_switch(1);
        let sampled = TaskEvent::open(first, tid, -1, None)?;
        let mut second = attr(pmu, pmu.other, pmu.masks[1]);
        second.__bindgen_anon_1.sample_period = periods.other;
        let other = TaskEvent::open(second, tid, -1, Some(&sampled))?;
        let mut third = attr(pmu, pmu.sampled, 0);
        third.read_format = READ_TIMES;
        let all = TaskEvent::open(third, tid, -1, Some(&sampled))?;
        let ring = RecordRing::map(&sampled, RING_PAGES)?;
        sampled.enable()?;
        let tally = Tally { threads: 1, ..Tally::default() };
        Ok(ConditionalSampler {
            pid,
            kind,
            ring,
            sampled,
            _other: other,
            all,
            descheduled: false,
            tally,
            record: Vec::new(),
        })
    }

    /// Samples that were taken since the last time.
    pub fn drain(&mut self) -> Vec<RawSample> {
        let mut samples = Vec::new();
        let mut record = std::mem::take(&mut self.record);
        while let Some((kind, _)) = self.ring.next(&mut record) {
            match sampled(kind, &record, CallGraph::FramePointers) {
                Sampled::Sample(_) if std::mem::take(&mut self.descheduled) => self.tally.parted += 1,
                Sampled::Sample(sample) => samples.push(sample),
                Sampled::Descheduled => self.descheduled = true,
                Sampled::Throttled => self.tally.throttled += 1,
                Sampled::Unreadable => self.tally.lost += 1,
                Sampled::Lost(lost) => self.tally.lost += lost,
                Sampled::Other => {}
            }
        }
        self.record = record;
        self.tally.held += samples.len() as u64;
        samples
    }

    /// Stops it: the last samples, and what became of all.
    pub fn end(mut self) -> (Vec<RawSample>, Tally) {
        // (one that has ended has nothing to stop)
        let _ = self.sampled.disable();
        let samples = self.drain();
        self.tally.all = self.all.times().unwrap_or_default();
        (samples, self.tally)
    }
}
