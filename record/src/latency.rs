//! Retire latencies of events: how many cycles the CPU waited for an instruction to retire after the one before, as precise samples (PEBS) of
//! the event tell. Each event samples by itself, on each CPU, with a period that follows how often it happens. The kernel gathers such
//! samples and hands them over when the event is stopped, so that they cost little while they are taken.
#![forbid(unsafe_code)]

use crate::event::{EventTimes, TaskEvent};
use crate::records::LATENCY;
use perf_event_open_sys::bindings::{
    PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES, PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE, PERF_SAMPLE_PERIOD,
    PERF_SAMPLE_WEIGHT_STRUCT, perf_event_attr,
};
use std::io;
use topdown::TimedEvent;
use topdown_seam::group_read;
use topdown_seam::ring::RecordRing;

/// Room for some 1,360 samples of 24 bytes, or half as many: what a user may lock is shared by all events of a CPU.
const RING_PAGES: [usize; 2] = [8, 4];
/// Samples of an event that are wanted in a turn, on all CPUs together.
const WANTED: f64 = 200.0;
/// The shortest period, as a sample costs the kernel some thousand instructions, and the longest.
const SHORTEST: u64 = 5_003;
const LONGEST: u64 = 2_000_003;
/// The first period is the published one divided by this.
const OF_PUBLISHED: u64 = 10;
/// A period changes by this factor at most at a time.
const MOST_CHANGE: f64 = 8.0;
/// What the field of a latency holds at most, in cycles: it has this where the latency was that or more.
pub const LONGEST_LATENCY: u64 = 0xffff;
/// Fewer samples tell no mean retire latency.
pub const FEWEST_LATENCIES: u64 = 32;
/// precise_ip, tried in this order: 2, the instruction itself; 1, one at a constant distance.
const PRECISION: [u64; 2] = [2, 1];

/// What samples of an event told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimedSamples {
    /// Samples.
    pub samples: u64,
    /// Of these the latency was more than the field holds.
    pub saturated: u64,
    /// Events for which they stand.
    pub events: f64,
    /// All events that there were.
    pub counted: f64,
    /// Of these so many may have been in periods that ended without a sample as the event took another one: as likely as any others to be
    /// sampled.
    pub cut: f64,
    /// The same, in periods that have not ended.
    pub unended: f64,
    /// The latencies of these, in cycles.
    pub latencies: f64,
    /// Samples that found no room, and times that the kernel throttled the event.
    pub lost: u64,
}

impl TimedSamples {
    /// Adds later ones of the same event.
    pub fn add(&mut self, more: &TimedSamples) {
        self.samples += more.samples;
        self.saturated += more.saturated;
        self.events += more.events;
        self.counted += more.counted;
        self.cut += more.cut;
        self.unended = more.unended;
        self.latencies += more.latencies;
        self.lost += more.lost;
    }

    /// What came since then.
    #[must_use]
    pub fn since(&self, then: Option<&TimedSamples>) -> TimedSamples {
        let Some(then) = then else { return *self };
        TimedSamples {
            samples: self.samples - then.samples,
            saturated: self.saturated - then.saturated,
            events: self.events - then.events,
            counted: self.counted - then.counted,
            cut: self.cut - then.cut,
            unended: self.unended,
            latencies: self.latencies - then.latencies,
            lost: self.lost - then.lost,
        }
    }

    /// Events that no sample stands for, as they were of threads that ended within a period, or their samples found no room: of their latencies
    /// nothing is known.
    #[must_use]
    pub fn unsampled(&self) -> f64 {
        (self.counted - self.events - self.cut - self.unended).max(0.0)
    }

    /// Adds a record: the header, of a sample its period, and the weight, whose upper 16 bits are the latency.
    fn take(&mut self, record: &[u64]) {
        match (record[0] as u32, record) {
            (PERF_RECORD_SAMPLE, [_, period, weight, ..]) => {
                let latency = weight >> LATENCY;
                self.samples += 1;
                self.saturated += u64::from(latency == LONGEST_LATENCY);
                self.events += *period as f64;
                self.latencies += *period as f64 * latency as f64;
            }
            (PERF_RECORD_LOST | PERF_RECORD_LOST_SAMPLES, [_, .., lost]) => self.lost += (*lost).max(1),
            (PERF_RECORD_THROTTLE, _) => self.lost += 1,
            _ => {}
        }
    }
}

/// Which threads and CPUs events are opened on.
#[derive(Clone, Debug)]
pub struct TimedTarget {
    /// Thread (-1: any) and CPU (-1: any), as perf_event_open(2) has them.
    pub places: Vec<(i32, i32)>,
    /// With what the threads start.
    pub inherit: bool,
    /// The kernel's instructions, too.
    pub kernel: bool,
    /// `perf_event_attr.type` of the PMU.
    pub pmu: u32,
}

/// From when on events sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedStart {
    /// From now on.
    Now,
    /// From when the thread executes a program.
    OnExec,
    /// From `switch` on.
    Switched,
}

/// An event on each of the places.
#[derive(Debug)]
struct TimedSampler {
    period: u64,
    rings: Vec<SamplerRing>,
}

/// An event on one place.
#[derive(Debug)]
struct SamplerRing {
    event: TaskEvent,
    ring: RecordRing,
    /// What it had counted the last time.
    count: u64,
}

/// Events that sample at the same time.
#[derive(Debug)]
pub struct TimedSamplers(Vec<TimedSampler>);

impl TimedSamplers {
    /// Opens these.
    ///
    /// # Errors
    /// The kernel's: EINVAL or EOPNOTSUPP where the PMU takes no precise samples; EPERM where no more memory may be locked.
    pub fn open(events: &[TimedEvent], target: &TimedTarget, start: TimedStart) -> io::Result<TimedSamplers> {
        let of_event = |event: &TimedEvent| {
            let period = (event.period / OF_PUBLISHED).clamp(SHORTEST, LONGEST);
            let rings = target
                .places
                .iter()
                .filter_map(|place| opened(event, period, *place, target, start).transpose());
            Ok(TimedSampler { period, rings: rings.collect::<io::Result<_>>()? })
        };
        events.iter().map(of_event).collect::<io::Result<_>>().map(TimedSamplers)
    }

    /// Whether they sample from now on.
    pub fn switch(&self, on: bool) {
        for SamplerRing { event, .. } in self.0.iter().flat_map(|sampler| &sampler.rings) {
            // (what has ended has nothing to stop)
            let _ = if on { event.enable() } else { event.disable() };
        }
    }

    /// What the samples since the last time told of each event; it takes another period, if there were too many or too few.
    pub fn take(&mut self) -> Vec<TimedSamples> {
        self.0.iter_mut().map(TimedSampler::take).collect()
    }
}

impl TimedSampler {
    fn take(&mut self) -> TimedSamples {
        let (mut told, mut record) = (TimedSamples::default(), Vec::new());
        for SamplerRing { event, ring, count } in &mut self.rings {
            // (whoever reads an event has the kernel hand over what it has gathered, if it still samples)
            if let Ok(EventTimes { count: now, .. }) = event.times() {
                told.counted += now.saturating_sub(*count) as f64;
                *count = now;
            }
            ring.take(&mut record, |record| told.take(record));
        }
        let change = ((told.samples + told.lost) as f64 / WANTED).clamp(1.0 / MOST_CHANGE, MOST_CHANGE);
        let of_period = |period| (period * self.rings.len() as u64) as f64;
        let period = ((self.period as f64 * change) as u64).clamp(SHORTEST, LONGEST) | 1;
        if !(0.5..=2.0).contains(&change) && period != self.period {
            told.cut = of_period(self.period);
            self.period = period;
            // (of what was inherited before they go on as they were: each sample says which period it had)
            self.rings.iter().for_each(|one| _ = one.event.set_period(period));
        }
        told.unended = of_period(self.period);
        told
    }
}

/// An event with its ring; None: the thread has ended.
fn opened(
    event: &TimedEvent,
    period: u64,
    (tid, cpu): (i32, i32),
    target: &TimedTarget,
    start: TimedStart,
) -> io::Result<Option<SamplerRing>> {
    let mut attr = perf_event_attr { type_: target.pmu, config: event.config, ..Default::default() };
    attr.__bindgen_anon_3.config1 = event.config1;
    attr.__bindgen_anon_1.sample_period = period;
    attr.sample_type = u64::from(PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT_STRUCT);
    attr.read_format = group_read::TIMES;
    attr.set_exclude_kernel((!target.kernel).into());
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    attr.set_inherit(target.inherit.into());
    attr.set_disabled((start != TimedStart::Now).into());
    attr.set_enable_on_exec((start == TimedStart::OnExec).into());
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for precise in PRECISION {
        attr.set_precise_ip(precise);
        match TaskEvent::open(attr, tid, cpu, None) {
            Ok(event) => {
                let [many, few] = RING_PAGES;
                let ring = RecordRing::map(&event, many).or_else(|_| RecordRing::map(&event, few))?;
                return Ok(Some(SamplerRing { event, ring, count: 0 }));
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn header(kind: u32, words: u64) -> u64 {
        ((words * 8) << 48) | kind as u64
    }

    #[test]
    fn a_sample_stands_for_its_period_and_what_is_saturated_is_counted_apart() {
        let mut told = TimedSamples::default();
        told.take(&[header(PERF_RECORD_SAMPLE, 3), 1000, (57 << 48) | (3 << 32) | 7]);
        told.take(&[header(PERF_RECORD_SAMPLE, 3), 3000, 61 << 48]);
        assert_eq!((told.samples, told.saturated, told.events), (2, 0, 4000.0));
        assert_eq!(told.latencies / told.events, 60.0);
        told.take(&[header(PERF_RECORD_SAMPLE, 3), 1000, LONGEST_LATENCY << 48]);
        assert_eq!((told.samples, told.saturated, told.events), (3, 1, 5000.0));
        told.take(&[header(PERF_RECORD_LOST, 3), 9, 4]);
        told.take(&[header(PERF_RECORD_LOST_SAMPLES, 2), 2]);
        told.take(&[header(PERF_RECORD_THROTTLE, 4), 1, 2, 3]);
        let mut all = told;
        all.add(&told);
        assert_eq!((told.lost, told.samples, all.lost, all.events), (7, 3, 14, 10000.0));
    }

    #[test]
    fn what_is_in_periods_that_have_no_sample_yet_is_as_likely_as_the_rest() {
        let of =
            |counted, cut, unended| TimedSamples { counted, cut, unended, events: 5e3, ..Default::default() };
        assert_eq!(of(9e3, 0.0, 1e3).unsampled(), 3e3);
        assert_eq!(of(9e3, 2e3, 1e3).unsampled(), 1e3);
        assert_eq!((of(5.5e3, 0.0, 1e3).unsampled(), of(4e3, 0.0, 0.0).unsampled()), (0.0, 0.0));
        // (each time that it is read one period at most has not ended, and not one more)
        let mut all = of(9e3, 2e3, 1e3);
        all.add(&of(6e3, 0.0, 1e3));
        assert_eq!(all.unsampled(), 2e3);
        assert_eq!(all.since(Some(&of(9e3, 2e3, 1e3))).unsampled(), 0.0);
        assert_eq!(all.since(None), all);
    }
}
