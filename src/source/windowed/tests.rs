use super::*;
use crate::bound::WORK_BY_READ;
use crate::decode_l1;
use crate::read::{Clock, GroupCounts};
use crate::registers::RawMetrics;
use crate::sample::Base;
use std::cell::RefCell;
use std::rc::Rc;

/// Counters that a test moves: so much in the registers, so much that the kernel counted, and a clock.
#[derive(Default)]
struct TestRegisters {
    held: Cell<u64>,
    counted: Cell<u64>,
    ms: Cell<u64>,
    reads: Cell<u32>,
    /// A signal handler, and before which of the next uses of the counters it runs.
    handler: RefCell<Option<Box<dyn FnOnce()>>>,
    uses_before: Cell<u32>,
}

impl TestRegisters {
    fn run(&self, slots: u64, ms: u64) {
        self.held.set(self.held.get() + slots);
        self.ms.set(self.ms.get() + ms);
    }

    fn used(&self) {
        let left = self.uses_before.get();
        self.uses_before.set(left.wrapping_sub(1));
        let handler = if left == 0 { self.handler.take() } else { None };
        if let Some(handler) = handler {
            handler();
        }
    }

    fn time(&self) -> Times {
        Times { enabled: self.ms.get() * 1_000_000, running: self.ms.get() * 1_000_000 }
    }
}

impl MetricsCounters for Rc<TestRegisters> {
    fn counts(&self) -> Result<GroupCounts> {
        let (slots, time) = self.slots()?;
        Ok(GroupCounts { slots, time, category: [slots, 0, 0, 0, 0, 0, 0, 0], ..GroupCounts::default() })
    }

    fn slots(&self) -> Result<(u64, Times)> {
        self.used();
        self.reads.set(self.reads.get() + 1);
        self.counted.set(self.counted.get() + self.held.take());
        Ok((self.counted.get(), self.time()))
    }

    fn registers(&self, _: Times) -> Option<Snapshot> {
        self.used();
        let registers = Registers { slots: RawSlots(self.held.get()), metrics: RawMetrics(0xff) };
        let clock = Clock { zero: self.time(), ..Clock::default() };
        Some(Snapshot {
            registers,
            sequence: 0,
            clock,
            ns: 0,
            pace: self.time().enabled,
            beside: Default::default(),
        })
    }

    fn scheduled(&self) -> PageSchedule {
        PageSchedule::In(0)
    }

    fn access(&self) -> Access {
        Access::Rdpmc
    }
}

fn windowed(max_error: u32) -> (Rc<TestRegisters>, Rc<Shared>, Box<WindowedSource<dyn MetricsCounters>>) {
    let (counters, shared) = (Rc::<TestRegisters>::default(), Rc::<Shared>::default());
    let start = Head {
        size: size_of::<Sample>() as u32,
        base: Base::of_handle(1, crate::model::SIMULATED as u8, 1),
        ..Head::default()
    };
    let settings = BudgetSettings { max_error, max_overhead: 10_000, level: 1, slots_per_cycle: 6 };
    let source = WindowedSource::new(counters.clone(), &shared, start, settings).unwrap();
    (counters, shared, source)
}

#[test]
fn totals_go_on_over_windows_and_an_overdue_reading_opens_one() {
    let (counters, shared, source) = windowed(1_000_000); // none for exactness' sake
    let mut sample = Sample::default();
    let reads = counters.reads.get();
    for turn in 1..=10 {
        counters.run(1_000_000, 10);
        source.read(&shared, SeenRegisters::default(), &mut sample).unwrap();
        assert_eq!((sample.slots, counters.reads.get()), (1_000_000 * turn, reads));
    }
    counters.run(1_000_000, 1_500);
    source.read(&shared, SeenRegisters::default(), &mut sample).unwrap();
    assert_eq!((sample.slots, counters.reads.get()), (11_000_000, reads + 1));
    assert_eq!(sample.registers().slots.0, 0, "a window of its own");
}

#[test]
fn slots_only_after_hours_hides_nothing() {
    let (counters, shared, source) = windowed(10_000);
    let mut samples = [Sample::default(); 2];
    counters.run(50_000_000, 1);
    source.read(&shared, SeenRegisters::default(), &mut samples[0]).unwrap();
    counters.run(50_000_000, 14_400_000);
    source.slots_only(&shared).unwrap();
    counters.run(50_000_000, 1);
    source.read(&shared, SeenRegisters::default(), &mut samples[1]).unwrap();
    assert_eq!(decode_l1(Some(&samples[0]), &samples[1]).unwrap().error, 1.0);
}

#[test]
fn after_hours_without_a_reading_nothing_is_claimed_of_them() {
    let (counters, shared, source) = windowed(10_000);
    let mut samples = [Sample::default(); 3];
    for (sample, ms) in samples.iter_mut().zip([1, 7_200_000, 1]) {
        counters.run(50_000_000, ms);
        source.read(&shared, SeenRegisters::default(), sample).unwrap();
    }
    let [before, hours, after] = samples;
    assert_eq!(decode_l1(Some(&before), &hours).unwrap().error, 1.0, "SLOTS can have come round");
    assert!(decode_l1(Some(&hours), &after).unwrap().error < 0.01, "it cannot");
}

/// A signal handler executes something and reads the handle, at whatever step of a call it comes.
#[test]
fn a_signal_handler_in_a_call_sees_all_slots_once() {
    type Call = fn(&WindowedSource<dyn MetricsCounters>, &Shared, &mut Sample) -> Result<()>;
    let read: Call = |source, shared, out| source.read(shared, SeenRegisters::default(), out);
    let renew: Call = |source, shared, out| source.renew(shared, StartKind::Window, out);
    let mut interrupted = 0;
    for (call, ms) in [(read, 1), (read, 1_500), (read, 14_400_000), (renew, 1)] {
        for (before, executes) in (0..8).flat_map(|uses| [0, 1_000, 1_000_000].map(|slots| (uses, slots))) {
            let (counters, shared, source) = windowed(1_000_000);
            let source = Rc::new(source);
            let slots = {
                let (shared, source) = (shared.clone(), source.clone());
                move |call: Call| {
                    let mut sample = Sample::default();
                    call(&source, &shared, &mut sample).map(|()| sample.slots).unwrap()
                }
            };
            counters.run(50_000, 1);
            slots(read);
            counters.run(50_000, ms);
            let seen = Rc::new(Cell::new(None));
            let handler = {
                let (counters, seen, slots) = (counters.clone(), seen.clone(), slots.clone());
                move || {
                    counters.run(executes, 0);
                    let before = slots(read);
                    counters.run(2 * executes, 0);
                    seen.set(Some((before, slots(read))));
                }
            };
            *counters.handler.borrow_mut() = Some(Box::new(handler));
            counters.uses_before.set(before);
            let after = slots(call);
            let Some((first, last)) = seen.get() else { continue };
            interrupted += 1;
            let case = format!("{ms} ms, before use {before}, {executes} slots: {first} {last} {after}");
            assert!(first + WORK_BY_READ >= 100_000 + executes, "{case}");
            assert_eq!(last - first, 2 * executes, "{case}");
            // (the call tells what was before the handler, or what is after it)
            assert!(after <= 100_000 || last <= after, "{case}");
            counters.run(50_000, 1);
            assert!(slots(read) >= after + 50_000, "{case}");
            assert!(slots(read) + 2 * WORK_BY_READ >= 150_000 + 3 * executes, "{case}");
        }
    }
    assert!(interrupted > 40, "{interrupted}");
}
