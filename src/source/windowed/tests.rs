use super::*;
use crate::decode_l1;
use crate::read::{Clock, GroupCounts};
use crate::registers::RawMetrics;
use crate::sample::Base;

/// Counters that a test moves: so much in the registers, so much that the kernel counted, and a clock.
#[derive(Default)]
struct Moved {
    held: Cell<u64>,
    counted: Cell<u64>,
    ms: Cell<u64>,
    reads: Cell<u32>,
}

impl Moved {
    fn run(&self, slots: u64, ms: u64) {
        self.held.set(self.held.get() + slots);
        self.ms.set(self.ms.get() + ms);
    }

    fn time(&self) -> Times {
        Times { enabled: self.ms.get() * 1_000_000, running: self.ms.get() * 1_000_000 }
    }
}

impl MetricsCounters for &Moved {
    fn counts(&self) -> Result<GroupCounts> {
        let (slots, time) = self.slots()?;
        Ok(GroupCounts { slots, time, category: [slots, 0, 0, 0, 0, 0, 0, 0], ..GroupCounts::default() })
    }

    fn slots(&self) -> Result<(u64, Times)> {
        self.reads.set(self.reads.get() + 1);
        self.counted.set(self.counted.get() + self.held.take());
        Ok((self.counted.get(), self.time()))
    }

    fn registers(&self, _: Times) -> Option<Snapshot> {
        let registers = Registers { slots: RawSlots(self.held.get()), metrics: RawMetrics(0xff) };
        let clock = Clock { zero: self.time(), ..Clock::default() };
        Some(Snapshot { registers, sequence: 0, clock, ns: 0, pace: self.time().enabled })
    }

    fn scheduled(&self) -> Scheduled {
        Scheduled::In(0)
    }

    fn access(&self) -> Access {
        Access::Rdpmc
    }
}

fn windowed(counters: &Moved, max_error: u32) -> (Box<Shared>, Windowed<&Moved>) {
    let shared = Box::<Shared>::default();
    let start = Head {
        size: size_of::<Sample>() as u32,
        base: Base { handle: 1, level: 1, model: crate::model::SIMULATED as u8, ..Base::default() },
        ..Head::default()
    };
    let settings = BudgetSettings { max_error, max_overhead: 10_000, level: 1, slots_per_cycle: 6 };
    let source = Windowed::new(counters, &shared, start, settings).unwrap();
    (shared, source)
}

#[test]
fn totals_go_on_over_windows_and_an_overdue_reading_opens_one() {
    let counters = Moved::default();
    let (shared, source) = windowed(&counters, 1_000_000); // none for exactness' sake
    let mut sample = Sample::default();
    let reads = counters.reads.get();
    for turn in 1..=10 {
        counters.run(1_000_000, 10);
        source.read(&shared, Registers::default(), &mut sample).unwrap();
        assert_eq!((sample.slots, counters.reads.get()), (1_000_000 * turn, reads));
    }
    counters.run(1_000_000, 1_500);
    source.read(&shared, Registers::default(), &mut sample).unwrap();
    assert_eq!((sample.slots, counters.reads.get()), (11_000_000, reads + 1));
    assert_eq!(sample.registers().slots.0, 0, "a window of its own");
}

#[test]
fn slots_only_after_hours_hides_nothing() {
    let counters = Moved::default();
    let (shared, source) = windowed(&counters, 10_000);
    let mut samples = [Sample::default(); 2];
    counters.run(50_000_000, 1);
    source.read(&shared, Registers::default(), &mut samples[0]).unwrap();
    counters.run(50_000_000, 14_400_000);
    source.slots_only(&shared).unwrap();
    counters.run(50_000_000, 1);
    source.read(&shared, Registers::default(), &mut samples[1]).unwrap();
    assert_eq!(decode_l1(Some(&samples[0]), &samples[1]).unwrap().error, 1.0);
}

#[test]
fn after_hours_without_a_reading_nothing_is_claimed_of_them() {
    let counters = Moved::default();
    let (shared, source) = windowed(&counters, 10_000);
    let mut samples = [Sample::default(); 3];
    for (sample, ms) in samples.iter_mut().zip([1, 7_200_000, 1]) {
        counters.run(50_000_000, ms);
        source.read(&shared, Registers::default(), sample).unwrap();
    }
    let [before, hours, after] = samples;
    assert_eq!(decode_l1(Some(&before), &hours).unwrap().error, 1.0, "SLOTS can have come round");
    assert!(decode_l1(Some(&hours), &after).unwrap().error < 0.01, "it cannot");
}
