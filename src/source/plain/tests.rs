//! Readings of counters that a test moves.

use super::*;
use crate::error::TD_ESTALE;
use crate::sample::Base;
use crate::source::simulated::SimulatedCounters;
use crate::sys::page::Times;
use std::cell::Cell;

/// Counters that a test moves. The first read(2) of each reading may be interrupted by signal handlers, which read, too.
#[derive(Default)]
struct TestCounters {
    counts: Cell<PlainCounts>,
    handlers: Cell<u32>,
    calls: Cell<u64>,
    source: Cell<Option<&'static Plain<dyn PlainCounters>>>,
}

impl TestCounters {
    fn run(&self, slots: u64, counter: [u64; 2]) {
        let mut counts = self.counts.get();
        counts.slots += slots;
        counts.counter[0] += counter[0];
        counts.counter[1] += counter[1];
        counts.time = Times { enabled: counts.time.enabled + slots, running: counts.time.running + slots };
        self.counts.set(counts);
    }
}

impl PlainCounters for &'static TestCounters {
    fn counts(&self) -> Result<PlainCounts> {
        self.calls.set(self.calls.get() + 1);
        let before = self.counts.get();
        let handlers = self.handlers.take();
        for _ in 0..handlers {
            self.run(10, [10, 0]);
            self.source
                .get()
                .expect("set by the test")
                .count(&Shared::default(), PeriodStep::SamePeriod, 0)
                .unwrap();
        }
        Ok(if handlers > 0 { before } else { self.counts.get() })
    }

    fn counts_itself(&self) -> bool {
        true
    }

    fn calls(&self) -> u64 {
        self.calls.get()
    }
}

fn plain() -> (&'static TestCounters, &'static Plain<dyn PlainCounters>) {
    let counters: &'static TestCounters = Box::leak(Box::default());
    counters.run(7, [3, 4]); // before it was opened
    let start = Head { base: Base::of_handle(1, crate::model::UNKNOWN as u8, 1), ..Head::default() };
    let source: &'static Plain<dyn PlainCounters> =
        Box::leak(Plain::new(counters, &Shared::default(), start).unwrap());
    counters.source.set(Some(source));
    (counters, source)
}

fn read(source: &Plain<dyn PlainCounters>) -> Sample {
    source.count(&Shared::default(), PeriodStep::SamePeriod, 0).unwrap()
}

#[test]
fn samples_are_what_was_counted_since_the_period_began() {
    let (counters, source) = plain();
    counters.run(1000, [400, 100]);
    let first = read(source);
    assert_eq!((first.slots, first.counter[..3].to_vec()), (1000, vec![400, 100, 0]));
    assert_eq!((first.time_enabled_ns, first.registers().slots.0), (1000, 0));
    counters.run(1000, [0, 50]);
    let second = read(source);
    assert_eq!((second.slots, second.counter[1]), (2000, 150));
    assert_eq!(second.base.error - first.base.error, WORK_BY_READ);
    source.count(&Shared::default(), PeriodStep::NewPeriod, 0).unwrap();
    counters.run(5, [5, 0]);
    let third = read(source);
    assert_eq!((third.slots, third.counter[0], third.time_enabled_ns), (5, 5, 5));
    assert_eq!(third.base.period, second.base.period.wrapping_add(1));
    assert_eq!(third.base.error, 2 * WORK_BY_READ, "what began the period, and the reading");
}

#[test]
fn a_reading_that_handlers_interrupt_comes_after_theirs() {
    let (counters, source) = plain();
    counters.handlers.set(3);
    let first = read(source);
    assert_eq!((first.slots, first.counter[0]), (30, 30), "not what it was told before them");
    assert_eq!(
        first.base.error,
        WORK_BY_READ + 5 * WORK_BY_READ,
        "the reset, three handlers', and two of this reading"
    );
    let second = read(source);
    assert_eq!(second.base.error, first.base.error + WORK_BY_READ);
}

#[test]
fn marks_are_of_the_last_readings() {
    let (counters, source) = plain();
    counters.run(1000, [400, 100]);
    let sample = read(source);
    let found = source.sample_of(&sample.mark()).unwrap();
    assert_eq!(found, Sample { flags: TD_SAMPLE_COARSE_TIME, ..sample });
    for _ in 0..63 {
        read(source);
    }
    assert!(source.sample_of(&sample.mark()).is_ok());
    read(source);
    assert_eq!(source.sample_of(&sample.mark()).unwrap_err().code(), TD_ESTALE);
}

#[test]
fn simulated_counters_count_so_much_in_a_cycle() {
    let counters = SimulatedCounters::new(&[1.0], 4);
    counters.set_per_cycle(&[2.0, 0.0, 1.0]).unwrap();
    let start = Head { base: Base::of_handle(1, crate::model::UNKNOWN as u8, 1), ..Head::default() };
    let source = Plain::new(counters, &Shared::default(), start).unwrap();
    let mut sample = Sample::default();
    while sample.slots < 100_000 {
        sample = read(&*source);
    }
    let [a, b, c] = [0, 1, 2].map(|k| sample.counter[k] as f64 / sample.slots as f64);
    assert!((a - 0.5).abs() < 0.01 && b < 0.01 && (c - 0.25).abs() < 0.01, "{a} {b} {c}");
    for per_cycle in [&[65.0][..], &[-0.1], &[f64::NAN], &[0.0; 16]] {
        assert!(source.counters().set_per_cycle(per_cycle).is_err(), "{per_cycle:?}");
    }
}

#[test]
fn a_mark_of_eight_counters_that_was_taken_by_a_call_has_error_and_work() {
    let mut start = Sample { slots: 1 << 60, ..Sample::default() };
    start.base = Base::of_handle(1, crate::model::UNKNOWN as u8, 1);
    start.counter.iter_mut().zip(1..).for_each(|(counter, k)| *counter = k << 50);
    let mut read = Sample { slots: start.slots + SAID, ..start };
    read.counter.iter_mut().zip(1..).for_each(|(counter, k)| *counter += k * 1000);
    read.base.error = 0x1234_5678_9abc_def0;
    let mark = full_mark(&start, 1, &read, 130).unwrap();
    let (counter, called) = of_full_mark(&mark);
    assert_eq!(counter, std::array::from_fn(|k| 1000 * (k as u64 + 1)));
    assert_eq!((mark.slots, called), (SAID, Some((read.base.error, 3))));
    // the leader's counts, where each is worth several slots
    let by_cycles = Sample { slots: start.slots + 6 * SAID, ..read };
    assert_eq!(full_mark(&start, 6, &by_cycles, 130), Some(mark));
    // what a program inlines has neither
    let inlined = Mark { metrics: 8000, counter: std::array::from_fn(|k| 1000 * (k as u64 + 1)), ..mark };
    assert_eq!(of_full_mark(&inlined), (counter, None));
    // no room
    read.counter[3] += SAID;
    assert!(full_mark(&start, 1, &read, 130).is_none());
    assert!(full_mark(&start, 1, &start, (1 << PART) * UNIT_OF_WORK).is_none());
}
