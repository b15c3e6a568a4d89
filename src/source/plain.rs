//! Plain counters, read by RDPMC or read(2). What they count is exact, and nothing is ever reset: a sample is what was counted less
//! what had been counted when the period began.
//!
//! A reading on the fast path (src/read) is the counters plus what their totals are without them. That changes when the group
//! leaves the CPU and comes back: then the slow path here looks at the events' pages, and the fast path goes on from there.
#![forbid(unsafe_code)]

use super::remembered::{REMEMBERED, Remembered, key};
use super::{MOST_TRIES, Source, interrupted, no_mark, stale_mark};
use crate::bound::{WORK_BEFORE_COUNTERS, WORK_BY_LOOK, WORK_BY_READ, skid_of_counters, uncounted_part};
use crate::budget::Budget;
use crate::error::Result;
use crate::read::{
    CountersSnapshot, Entry, MEASURES_ITSELF, MOST_COUNTERS, PlainCounters, PlainCounts, RawCounters, Reader,
    Seen, Shared,
};
use crate::registers::Registers;
use crate::sample::{
    Head, MARKED_COUNTERS, Mark, OF_READINGS, Sample, SlotsOnly, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_WORK_AFTER,
};
use crate::sys::kept::Kept;
use crate::sys::page::PLAIN_WIDTH;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

/// A group of plain counters, and the period that samples are of.
pub(crate) struct Plain<C> {
    counters: C,
    period: Kept<Period>,
    remembered: Remembered<Marked>,
    /// Slots of the library's own work at marks on the fast path, to which a call came.
    called: AtomicU64,
    /// What is taken out of what these start from.
    taken: ManuallyDrop<Box<[Taken]>>,
}

/// The library's own work at a reading: slots and counters, which do not count, and the bound from there on.
#[derive(Default)]
struct Taken {
    own: [Cell<u64>; 1 + MOST_COUNTERS],
    error: Cell<u64>,
}

impl Taken {
    #[inline]
    fn set(&self, own: &RawCounters, slots_each: u64, error: u64) {
        self.own.iter().zip(&own.counter).for_each(|(place, own)| place.set(*own));
        self.own[0].set(own.counter[0].wrapping_mul(slots_each));
        self.error.set(error);
    }

    fn from(&self, mut start: Sample) -> Sample {
        let [slots, counters @ ..] = &self.own;
        start.slots = start.slots.wrapping_sub(slots.get());
        start.counter.iter_mut().zip(counters).for_each(|(all, own)| *all = all.wrapping_sub(own.get()));
        start.base.error = self.error.get();
        start
    }
}

/// What a mark is made a sample of.
#[derive(Clone, Copy, Default)]
struct Marked {
    /// What the mark's counters are added to; or the sample itself.
    start: Sample,
    is_whole: bool,
    /// What the leader's counter said at the reading that found this.
    from: u64,
}

#[derive(Clone, Copy)]
struct Period {
    /// What was counted when it began.
    begun: PlainCounts,
    /// What its first sample would be.
    start: Head,
    /// Slots of the library's own work so far that are in the totals, at the most; and others by which they may be wrong.
    own_work: u64,
    /// `PlainCounters::calls` and `Plain::called`, as far as they are among these.
    calls: u64,
    called: u64,
    /// What was counted of its own work and is taken out of them: slots, then as `Sample::counter`.
    own: [u64; 1 + MOST_COUNTERS],
    /// Nothing but the library's own work was executed in it yet.
    is_new: bool,
    /// `PlainCounts::slots_maybe_over`, as it was last.
    maybe_over: u64,
}

/// Whether totals start from zero at a reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    SamePeriod,
    NewPeriod,
    /// And nothing is read any more.
    Last,
}

impl<C: PlainCounters> Plain<C> {
    /// Starts the first period. `start`: what its samples have in common.
    // (a frame of its own: it is large)
    #[inline(never)]
    pub fn new(counters: C, shared: &Shared, start: Head) -> Result<Box<Plain<C>>> {
        let own = [0; 1 + MOST_COUNTERS];
        let period = Period {
            begun: PlainCounts::default(),
            start,
            own_work: 0,
            calls: counters.calls(),
            called: 0,
            own,
            is_new: false,
            maybe_over: 0,
        };
        let taken = ManuallyDrop::new((0..REMEMBERED).map(|_| Taken::default()).collect());
        let (period, remembered) = (Kept::new(period), Remembered::new());
        let mut plain = Box::new(Plain { counters, period, remembered, called: AtomicU64::new(0), taken });
        match plain.reset(shared) {
            Ok(()) => Ok(plain),
            Err(error) => {
                plain.free();
                Err(error)
            }
        }
    }

    /// Ends it, where no call on it was interrupted.
    pub fn free(&mut self) {
        self.remembered.free();
        let nothing = ManuallyDrop::new(Box::default());
        drop(ManuallyDrop::into_inner(std::mem::replace(&mut self.taken, nothing)));
    }

    /// The group.
    pub fn counters(&self) -> &C {
        &self.counters
    }

    /// The group, to be changed.
    pub fn counters_mut(&mut self) -> &mut C {
        &mut self.counters
    }

    /// Sends readings to the slow path until they have something to start from.
    fn pause(&self, shared: &Shared) {
        shared.pause();
        self.counters.second().inspect(|second| second.pause());
    }

    /// The sample of what was counted elsewhere since the group was opened, as that of a thread which inherited it.
    pub fn sample_of_counts(&self, counts: &PlainCounts) -> Sample {
        self.period.look(|period| {
            let own_work = period.own_work.saturating_add(counts.slots_maybe_over);
            let own = [0; 1 + MOST_COUNTERS];
            Period { begun: PlainCounts::default(), own_work, own, ..*period }.sample(counts)
        })
    }

    /// A reading in user space, for which the fast path has to look where the counters are now. Else: they are not to be read so, which so
    /// many looks have told.
    fn read_counters(
        &self,
        shared: &Shared,
        mut early: Option<Entry>,
        out: &mut Sample,
    ) -> std::result::Result<(), u32> {
        let (reader, _) = self.counters.reader().ok_or(0u32)?;
        let mut snapshot = CountersSnapshot::default();
        for looks in 0..MOST_LOOKS {
            self.pause(shared); // a signal handler's readings are seen from here on
            if self.period.unfinished() {
                return Err(looks); // this signal handler has interrupted a reading by read(2), or a reset
            }
            let calls = self.counters.calls();
            let before = if early.is_some() { ONE_IN_BEFORE_EARLY } else { ONE_IN_BEFORE };
            let entry = early.take().unwrap_or_else(|| Entry::new(shared, self.counters.second()));
            let number = self.period.next_number();
            if self.counters.snapshot(&entry, &mut snapshot).is_none() {
                return Err(looks + 1);
            }
            let done = match MEASURES_ITSELF {
                true => self.look(shared, reader, &entry, &snapshot, (looks, before, calls), out),
                false => self.look_at(shared, reader, &snapshot, number, out),
            };
            if done {
                return Ok(());
            }
        }
        Err(MOST_LOOKS)
    }

    /// The part of the handle that readings of the group look at which this is a snapshot of; they may from now on.
    fn attach<'a>(&'a self, shared: &'a Shared, reader: Reader, snapshot: &CountersSnapshot) -> &'a Shared {
        let second = self.counters.second().filter(|_| snapshot.is_second);
        let here = second.unwrap_or(shared);
        here.attach_counters(reader, snapshot.count, snapshot.slots_each);
        second.inspect(|second| shared.attach_second(reader, second));
        here
    }

    /// Lets the fast path read from this snapshot, and takes a reading by it, which the bound of what precedes it allows for.
    fn look_at(
        &self,
        shared: &Shared,
        reader: Reader,
        snapshot: &CountersSnapshot,
        number: u32,
        out: &mut Sample,
    ) -> bool {
        let newest = || self.period.is_newest(number);
        let second = self.counters.second().filter(|_| snapshot.is_second);
        let start = self.period.look(|period| period.show(second.unwrap_or(shared), snapshot, newest));
        let shown = Marked { start, is_whole: false, from: 0 };
        self.remembered.add(key(start.base.sequence, start.base.window), &shown, newest);
        self.attach(shared, reader, snapshot);
        let is_read = shared.read(out).is_ok();
        out.flags |= OF_SLOW_READINGS;
        is_read
    }

    /// Lets the fast path read from this snapshot. The reading is what the counters said at the entry; what the library has executed
    /// since is counted, and taken out. `looks`: so many others came before, which were disturbed; one in so many instructions of one comes
    /// before the entry, and so many calls of read(2).
    fn look(
        &self,
        shared: &Shared,
        reader: Reader,
        entry: &Entry,
        snapshot: &CountersSnapshot,
        (looks, one_in, calls): (u32, u64, u64),
        out: &mut Sample,
    ) -> bool {
        let here = self.attach(shared, reader, snapshot);
        if !snapshot.goes_with_entry {
            here.numbers.set(snapshot.numbers());
            return false;
        }
        let mut change = self.period.begin();
        let number = change.number;
        let newest = || self.period.is_newest(number);
        let (period, calls_now) = (change.value(), self.counters.calls());
        period.add_called(&self.called);
        if calls_now != period.calls {
            // the thread is on the other kind of core, whose page may have the same number
            period.start.base.window = period.start.base.window.wrapping_add(1);
            period.own_work += skid_of_counters(0, snapshot.count);
        }
        period.own_work += calls.saturating_sub(period.calls) * WORK_BY_READ;
        period.calls = calls_now;
        let start = period.show(here, snapshot, || false);
        let wanted = key(start.base.sequence, start.base.window);
        let goes_on = self.remembered.latest_is(wanted);
        let shown = Marked { start, is_whole: false, from: entry.raw.counter[0] };
        self.remembered.add(wanted, &shown, newest);
        let place = self.remembered.latest();
        *out = shown.reading(&entry.raw, snapshot.slots_each);
        // from here on little is left to do
        let Some(own) = here.raw_counters().and_then(|now| entry.until(&now)) else {
            change.cancel();
            return false;
        };
        let slots = own.counter[0].wrapping_mul(snapshot.slots_each);
        let period = change.value();
        let other_looks = u64::from(looks) * (slots + uncounted_part(slots, ONE_IN_BEFORE));
        period.own_work += uncounted_part(slots, one_in) + other_looks;
        if std::mem::take(&mut period.is_new) {
            period.own_work += out.slots;
        }
        out.base.error = period.own_work;
        // (readings that go on from the same state have no part taken out between them)
        let taken = if goes_on { RawCounters::default() } else { own };
        let one_in = if snapshot.is_level_1 { ONE_IN_AFTER_OF_FEW } else { ONE_IN_AFTER };
        period.own_work += uncounted_part(slots, one_in) + if goes_on { slots } else { 0 };
        let error = period.own_work;
        period.own[0] = period.own[0].wrapping_add(taken.counter[0].wrapping_mul(snapshot.slots_each));
        period.own[1..]
            .iter_mut()
            .zip(&taken.counter[1..])
            .for_each(|(all, one)| *all = all.wrapping_add(*one));
        if !change.end() {
            return false;
        }
        here.take_out(&taken, error, snapshot.sequence, newest);
        self.remembered.update(place, |_| {
            self.taken[place].set(&taken, snapshot.slots_each, error);
            newest()
        });
        true
    }

    /// Of a mark that the fast path has read in a call: what has been executed since is counted. It is more than what came before the
    /// reading, which is returned, and than what comes after this; so much is in the bound. (A signal handler's is in it, too.) None: the
    /// counters are others now.
    fn bound_call(&self, shared: &Shared, read: &Sample) -> Option<u64> {
        if !MEASURES_ITSELF {
            return Some(0);
        }
        let here = [Some(shared), self.counters.second()].into_iter().flatten();
        let (here, now) = here.filter_map(|here| here.raw_counters().map(|now| (here, now))).next()?;
        if now.sequence != u64::from(read.base.sequence) {
            return None;
        }
        let total = now.counter[0].wrapping_mul(here.slots_each.get()).wrapping_add(here.slots_at_zero());
        let slots = total.saturating_sub(read.slots);
        self.called.fetch_add(3 * slots, Ordering::Relaxed);
        here.add_error(3 * slots);
        Some(slots)
    }

    /// A reading by RDPMC, or else by read(2).
    fn sample(&self, shared: &Shared, early: Option<Entry>, out: &mut Sample) -> Result<()> {
        if let Err(looks) = self.read_counters(shared, early, out) {
            *out = self.count(shared, Next::SamePeriod, looks)?;
        }
        Ok(())
    }

    /// read(2) of the group, and what a sample of it is. Once more if a signal handler has read it meanwhile: samples of this
    /// thread are in the order in which they are taken.
    fn count(&self, shared: &Shared, next: Next, looks: u32) -> Result<Sample> {
        let is_marked = self.counters.reader().is_some() && !MEASURES_ITSELF;
        let look = if is_marked { WORK_BEFORE_COUNTERS } else { 0 };
        for _ in 0..MOST_TRIES {
            self.pause(shared);
            let mut change = self.period.begin();
            let number = change.number;
            let counts =
                if next == Next::Last { self.counters.last_counts() } else { self.counters.counts() };
            let (period, calls) = (change.value(), self.counters.calls());
            period.add_called(&self.called);
            // (readings that were interrupted, or left, have called, too)
            let mut own_work =
                calls.saturating_sub(period.calls) * WORK_BY_READ + u64::from(looks) * WORK_BY_LOOK;
            own_work *= u64::from(self.counters.counts_itself());
            period.calls = calls;
            period.own_work = period.own_work.saturating_add(own_work);
            let sample = counts.map(|counts| {
                let doubt = counts.slots_maybe_over.saturating_sub(period.maybe_over);
                period.own_work = period.own_work.saturating_add(doubt);
                period.maybe_over = counts.slots_maybe_over;
                match next {
                    Next::NewPeriod => {
                        period.begin(&counts, own_work + look);
                        (period.own, period.is_new) = ([0; 1 + MOST_COUNTERS], true);
                    }
                    // each reading is a window, in number: marks tell readings apart by it, and each has its skid
                    Next::SamePeriod | Next::Last => {
                        period.start.base.window = period.start.base.window.wrapping_add(1)
                    }
                }
                let sample = period.sample(&counts);
                // (what follows it: the next reading's own constant has that in it, but not if it is by RDPMC)
                let after = u64::from(self.counters.reader().is_some() && self.counters.counts_itself())
                    * WORK_BY_READ;
                period.own_work = period.own_work.saturating_add(after);
                sample
            });
            let ended = change.end();
            // what a signal handler has shown meanwhile is of before
            self.pause(shared);
            if ended || sample.is_err() {
                let sample = sample?;
                let newest = || self.period.is_newest(number);
                let shown = Marked { start: sample, is_whole: true, from: 0 };
                self.remembered.add(key(sample.base.sequence, sample.base.window), &shown, newest);
                return Ok(sample);
            }
        }
        Err(interrupted())
    }
}

/// In `Mark::metrics` of a mark with totals in it, in place of what the counters said; above it is the sample's `Base::error`.
const TOTALS: u64 = 1;

/// One in so many instructions of a look is executed before the first reading of the counters, if that is the first thing that is done,
/// and if not; and after the last.
const ONE_IN_BEFORE_EARLY: u64 = 16;
const ONE_IN_BEFORE: u64 = 4;
const ONE_IN_AFTER: u64 = 4;
/// Of a look at the few counters of a spare: what follows is no shorter for it.
const ONE_IN_AFTER_OF_FEW: u64 = 2;

/// Flags of readings on the slow path: constants bound the library's own work where it does not measure itself.
const OF_SLOW_READINGS: u32 = if MEASURES_ITSELF { 0 } else { OF_READINGS };

impl Marked {
    /// The reading at which the counters said this.
    fn reading(&self, raw: &RawCounters, slots_each: u64) -> Sample {
        let [leader, members @ ..] = &raw.counter;
        let mut sample = self.start;
        sample.slots = sample.slots.wrapping_add(leader.wrapping_mul(slots_each));
        sample.slots_before = sample.slots; // no register holds any
        sample.counter.iter_mut().zip(members).for_each(|(all, raw)| *all = all.wrapping_add(*raw));
        sample
    }
}

/// How often the counters are looked for before a system call asks the kernel.
const MOST_LOOKS: u32 = 16;

impl Period {
    /// Lets the fast path read where this snapshot found counters and clock, and returns what a sample would be now were the
    /// counters at zero.
    fn show(&self, shared: &Shared, now: &CountersSnapshot, newest: impl Fn() -> bool) -> Sample {
        let [slots, counters @ ..] = &now.counter;
        let [own_slots, own @ ..] = &self.own;
        let mut start = self.start;
        let counted = slots.base.wrapping_mul(now.slots_each).wrapping_add(now.slots_away);
        start.slots = counted.wrapping_sub(self.begun.slots).wrapping_sub(*own_slots);
        start.slots_before = start.slots; // no register holds any
        start.time_is(now.clock.zero_since(self.begun.time), now.ns);
        start.flags |= if now.clock.coarse { TD_SAMPLE_COARSE_TIME } else { 0 };
        start.base.sequence = now.sequence;
        start.base.switches = self.stretches(now.stretches);
        start.base.level = if now.is_level_1 { 1 } else { start.base.level };
        start.base.error = self.own_work;
        let counter: [u64; MOST_COUNTERS] = std::array::from_fn(|k| {
            counters[k].base.wrapping_sub(self.begun.counter[k]).wrapping_sub(own[k])
        });
        let numbers = now.numbers();
        shared.restart_counters(
            (now.clock.scale, now.limit(start.slots)),
            &start,
            &numbers,
            &counter,
            newest,
        );
        Sample { counter, ..start.sample(Registers::default(), now.ns) }
    }

    fn add_called(&mut self, called: &AtomicU64) {
        let called = called.load(Ordering::Relaxed);
        self.own_work += called - std::mem::replace(&mut self.called, called);
    }

    /// How many of these stretches of level 1 alone are in it.
    fn stretches(&self, stretches: u16) -> u16 {
        stretches.wrapping_sub(self.begun.stretches).wrapping_add(self.begun.is_stretch.into())
    }

    fn begin(&mut self, counts: &PlainCounts, own_work: u64) {
        self.begun = *counts;
        self.own_work = own_work;
        let base = &mut self.start.base;
        base.period = base.period.wrapping_add(1);
        base.window = base.first_window();
    }

    fn sample(&self, counts: &PlainCounts) -> Sample {
        let [own_slots, own @ ..] = self.own;
        let counted = |now: u64, begun: u64, own: u64| now.saturating_sub(begun).saturating_sub(own);
        let mut start = self.start;
        start.slots = counted(counts.slots, self.begun.slots, own_slots);
        start.slots_before = start.slots; // no register holds any
        start.time_is(counts.time.since(self.begun.time), 0);
        start.base.error = self.own_work;
        start.base.switches = self.stretches(counts.stretches);
        start.base.level = if counts.is_stretch { 1 } else { start.base.level };
        let counter = std::array::from_fn(|k| counted(counts.counter[k], self.begun.counter[k], own[k]));
        Sample { counter, ..start.sample(Registers::default(), 0) }
    }
}

impl<C: PlainCounters> Source for Plain<C> {
    fn read(&self, shared: &Shared, seen: Seen, out: &mut Sample) -> Result<()> {
        self.sample(shared, seen.entry, out)
    }

    fn slots_only(&self, shared: &Shared) -> Result<SlotsOnly> {
        let mut out = Sample::default();
        self.sample(shared, None, &mut out)?;
        Ok(out.slots_only())
    }

    fn read_fresh(&self, shared: &Shared, _: bool, out: &mut Sample) -> Result<bool> {
        match shared.read(out) {
            Ok(()) => out.flags |= TD_SAMPLE_WORK_AFTER,
            Err(_) => self.sample(shared, None, out)?,
        }
        Ok(true)
    }

    fn reset(&self, shared: &Shared) -> Result<()> {
        self.count(shared, Next::NewPeriod, 0)?;
        // so that the first reading need not
        let _ = self.read_counters(shared, None, &mut Sample::default());
        Ok(())
    }

    fn read_last(&self, shared: &Shared) -> Result<Sample> {
        self.count(shared, Next::Last, 0)
    }

    fn mark(
        &self,
        shared: &Shared,
        seen: std::result::Result<&Sample, Option<Entry>>,
        short: bool,
    ) -> Result<Mark> {
        let fits = self.counters.reader().is_some_and(|(_, count)| !short && count <= MARKED_COUNTERS);
        if !fits {
            return Ok(self.count(shared, Next::SamePeriod, 0)?.mark());
        }
        let with_totals = |out: &Sample, before: u64| {
            let counter = std::array::from_fn(|k| out.counter[k]);
            Mark { slots: out.slots, metrics: (out.base.error + before) << 1 | TOTALS, counter, ..out.mark() }
        };
        let early = match seen {
            Ok(out) => match self.bound_call(shared, out) {
                Some(before) => return Ok(with_totals(out, before)),
                None => None,
            },
            Err(early) => early,
        };
        let mut looked = Sample::default();
        match self.read_counters(shared, early, &mut looked) {
            Ok(()) => Ok(with_totals(&looked, 0)),
            Err(looks) => Ok(self.count(shared, Next::SamePeriod, looks)?.mark()),
        }
    }

    fn sample_of(&self, mark: &Mark, short: bool) -> Result<Sample> {
        let has_totals = mark.metrics & TOTALS != 0;
        // (a mark is of the latest look before it)
        let before = |marked: &Marked| has_totals || marked.is_whole || marked.from <= mark.slots;
        let found = self.remembered.find_latest(key(mark.sequence, mark.window), before);
        let (place, Marked { start, is_whole, .. }) = found.ok_or_else(stale_mark)?;
        let start = if is_whole { start } else { self.taken[place].from(start) };
        let mut sample = Sample { flags: start.flags | TD_SAMPLE_COARSE_TIME, ..start };
        let counter = match self.counters.reader() {
            _ if is_whole => &[],
            Some((_, count)) if !short && count <= MARKED_COUNTERS => &mark.counter[..count],
            _ => return Err(stale_mark()),
        };
        if has_totals && !is_whole {
            sample.slots = mark.slots;
            sample.base.error = mark.metrics >> 1;
            sample.counter[..counter.len()].copy_from_slice(counter);
            sample.flags |= OF_SLOW_READINGS;
        } else {
            if mark.metrics != 0 || counter.iter().chain([&mark.slots]).any(|raw| raw >> PLAIN_WIDTH != 0) {
                return Err(no_mark());
            }
            sample.slots = sample.slots.wrapping_add(mark.slots); // (only a leader that counts slots is read inline)
            sample.counter.iter_mut().zip(counter).for_each(|(all, raw)| *all = all.wrapping_add(*raw));
        }
        sample.slots_before = sample.slots; // no register holds any
        Ok(sample)
    }

    fn budget(&self) -> Option<Budget> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TD_ESTALE;
    use crate::sample::Base;
    use crate::source::simulated::SimulatedCounters;
    use crate::sys::page::Times;
    use std::cell::Cell;

    /// Counters that a test moves. The first read(2) of each reading may be interrupted by signal handlers, which read, too.
    #[derive(Default)]
    struct Moved {
        counts: Cell<PlainCounts>,
        handlers: Cell<u32>,
        calls: Cell<u64>,
        source: Cell<Option<&'static Plain<&'static Moved>>>,
    }

    impl Moved {
        fn run(&self, slots: u64, counter: [u64; 2]) {
            let mut counts = self.counts.get();
            counts.slots += slots;
            counts.counter[0] += counter[0];
            counts.counter[1] += counter[1];
            counts.time =
                Times { enabled: counts.time.enabled + slots, running: counts.time.running + slots };
            self.counts.set(counts);
        }
    }

    impl PlainCounters for &'static Moved {
        fn counts(&self) -> Result<PlainCounts> {
            self.calls.set(self.calls.get() + 1);
            let before = self.counts.get();
            let handlers = self.handlers.take();
            for _ in 0..handlers {
                self.run(10, [10, 0]);
                self.source
                    .get()
                    .expect("set by the test")
                    .count(&Shared::default(), Next::SamePeriod, 0)
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

    fn plain() -> (&'static Moved, &'static Plain<&'static Moved>) {
        let counters: &'static Moved = Box::leak(Box::default());
        counters.run(7, [3, 4]); // before it was opened
        let start = Head { base: Base::of_handle(1, crate::model::UNKNOWN as u8, 1), ..Head::default() };
        let source: &'static Plain<_> = Box::leak(Plain::new(counters, &Shared::default(), start).unwrap());
        counters.source.set(Some(source));
        (counters, source)
    }

    fn read(source: &Plain<&'static Moved>) -> Sample {
        source.count(&Shared::default(), Next::SamePeriod, 0).unwrap()
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
        source.count(&Shared::default(), Next::NewPeriod, 0).unwrap();
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
        let found = source.sample_of(&sample.mark(), false).unwrap();
        assert_eq!(found, Sample { flags: TD_SAMPLE_COARSE_TIME, ..sample });
        for _ in 0..63 {
            read(source);
        }
        assert!(source.sample_of(&sample.mark(), true).is_ok());
        read(source);
        assert_eq!(source.sample_of(&sample.mark(), true).unwrap_err().code(), TD_ESTALE);
    }

    #[test]
    fn simulated_counters_count_so_much_in_a_cycle() {
        let counters = SimulatedCounters::new(&[1.0], 4);
        counters.set_per_cycle(&[2.0, 0.0, 1.0]).unwrap();
        let start = Head { base: Base::of_handle(1, crate::model::UNKNOWN as u8, 1), ..Head::default() };
        let source = Plain::new(counters, &Shared::default(), start).unwrap();
        let mut sample = Sample::default();
        while sample.slots < 100_000 {
            sample = source.count(&Shared::default(), Next::SamePeriod, 0).unwrap();
        }
        let [a, b, c] = [0, 1, 2].map(|k| sample.counter[k] as f64 / sample.slots as f64);
        assert!((a - 0.5).abs() < 0.01 && b < 0.01 && (c - 0.25).abs() < 0.01, "{a} {b} {c}");
        for per_cycle in [&[65.0][..], &[-0.1], &[f64::NAN], &[0.0; 16]] {
            assert!(source.counters().set_per_cycle(per_cycle).is_err(), "{per_cycle:?}");
        }
    }
}
