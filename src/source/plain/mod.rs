//! General-purpose counters, read by RDPMC or read(2). What they count is exact, and nothing is ever reset: a sample is what was counted less
//! what had been counted when the period began.
//!
//! A reading on the fast path (src/read) is the counters plus what their totals are without them. That changes when the group
//! leaves the CPU and comes back: then the slow path here looks at the events' pages, and the fast path goes on from there.
#![forbid(unsafe_code)]

mod period;
#[cfg(test)]
mod tests;

use super::remembered::{REMEMBERED, ReadingRing, key};
use super::{MOST_TRIES, Source, interrupted, no_mark, stale_mark};
use crate::bound::{WORK_BEFORE_COUNTERS, WORK_BY_LOOK, WORK_BY_READ, skid_of_counters, uncounted_part};
use crate::budget::Budget;
use crate::error::Result;
use crate::read::{
    CountersSnapshot, Entry, MEASURES_ITSELF, MOST_COUNTERS, PlainCounters, PlainCounts, RawCounters, Reader,
    SeenRegisters, Shared,
};
use crate::sample::{
    Base, Head, MARKED_COUNTERS, Mark, OF_READINGS, Sample, SlotsOnly, TD_SAMPLE_COARSE_TIME,
    TD_SAMPLE_WORK_AFTER, TD_SAMPLE_WORK_COUNTED,
};
use crate::sys::kept::ThreadValue;
use crate::sys::page::PLAIN_WIDTH;
use period::Period;
use std::cell::Cell;
use std::mem::ManuallyDrop;

/// A group of general-purpose counters, and the period that samples are of.
pub(crate) struct Plain<C: ?Sized> {
    period: ThreadValue<Period>,
    remembered: ReadingRing<MarkedReading>,
    /// What is taken out of what these start from.
    taken: ManuallyDrop<Box<[OwnWork]>>,
    counters: C,
}

/// The library's own work at a reading: slots and counters, which do not count, and the bound from there on.
#[derive(Default)]
struct OwnWork {
    own: [Cell<u64>; 1 + MOST_COUNTERS],
    error: Cell<u64>,
}

impl OwnWork {
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
struct MarkedReading {
    /// What the mark's counters are added to; or the sample itself.
    start: Sample,
    is_whole: bool,
    /// What the leader's counter said at the reading that found this.
    from: u64,
    /// What a count of the leader is worth.
    slots_each: u64,
}

/// Whether totals start from zero at a reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PeriodStep {
    SamePeriod,
    NewPeriod,
    /// And nothing is read any more.
    Last,
}

impl<C: PlainCounters + 'static> Plain<C> {
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
            own,
            is_new: false,
            maybe_over: 0,
        };
        let taken = ManuallyDrop::new((0..REMEMBERED).map(|_| OwnWork::default()).collect());
        let (period, remembered) = (ThreadValue::new(period), ReadingRing::new());
        let mut plain = Box::new(Plain { counters, period, remembered, taken });
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

    /// The sample of what was counted elsewhere since the group was opened, as that of a thread which inherited it.
    pub fn sample_of_counts(&self, counts: &PlainCounts) -> Sample {
        self.period.look(|period| {
            let own_work = period.own_work.saturating_add(counts.slots_maybe_over);
            let own = [0; 1 + MOST_COUNTERS];
            Period { begun: PlainCounts::default(), own_work, own, ..*period }.sample(counts)
        })
    }
}

// (once, whatever counts)
impl Plain<dyn PlainCounters> {
    /// Sends readings to the slow path until they have something to start from.
    fn pause(&self, shared: &Shared) {
        shared.pause();
        self.counters.second().inspect(|second| second.pause());
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
        let shown = MarkedReading { start, is_whole: false, from: 0, slots_each: snapshot.slots_each };
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
        if calls_now != period.calls {
            // another group has counted since, whose page may have had the same number
            period.start.base.window = period.start.base.window.wrapping_add(1);
            period.own_work += skid_of_counters(0, snapshot.count);
        }
        period.own_work += calls.saturating_sub(period.calls) * WORK_BY_READ;
        period.calls = calls_now;
        let start = period.show(here, snapshot, || false);
        let wanted = key(start.base.sequence, start.base.window);
        let goes_on = self.remembered.latest_is(wanted);
        let from = entry.raw.counter[0];
        let shown = MarkedReading { start, is_whole: false, from, slots_each: snapshot.slots_each };
        self.remembered.add(wanted, &shown, newest);
        let place = self.remembered.latest();
        *out = shown.reading(&entry.raw);
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

    /// Of a mark that the fast path has read in a call: what has been executed since. It is more than what came before the reading, and than
    /// what comes after this. (A signal handler's is in it, too.) None: the counters are others now.
    fn work_since(&self, shared: &Shared, read: &Sample) -> Option<u64> {
        if !MEASURES_ITSELF {
            return Some(0);
        }
        let both = [Some(shared), self.counters.second()].into_iter().flatten();
        let (here, now) = both.filter_map(|here| here.raw_counters().map(|now| (here, now))).next()?;
        let total = now.counter[0].wrapping_mul(here.slots_each.get()).wrapping_add(here.slots_at_zero());
        (now.sequence == u64::from(read.base.sequence)).then(|| total.saturating_sub(read.slots))
    }

    /// A reading by RDPMC, or else by read(2).
    fn sample(&self, shared: &Shared, early: Option<Entry>, out: &mut Sample) -> Result<()> {
        if let Err(looks) = self.read_counters(shared, early, out) {
            *out = self.count(shared, PeriodStep::SamePeriod, looks)?;
        }
        Ok(())
    }

    /// read(2) of the group, and what a sample of it is. Once more if a signal handler has read it meanwhile: samples of this
    /// thread are in the order in which they are taken.
    fn count(&self, shared: &Shared, next: PeriodStep, looks: u32) -> Result<Sample> {
        let is_marked = self.counters.reader().is_some() && !MEASURES_ITSELF;
        let look = if is_marked { WORK_BEFORE_COUNTERS } else { 0 };
        for _ in 0..MOST_TRIES {
            self.pause(shared);
            let mut change = self.period.begin();
            let number = change.number;
            let counts =
                if next == PeriodStep::Last { self.counters.last_counts() } else { self.counters.counts() };
            let (period, calls) = (change.value(), self.counters.calls());
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
                    PeriodStep::NewPeriod => {
                        period.begin(&counts, own_work + look);
                        (period.own, period.is_new) = ([0; 1 + MOST_COUNTERS], true);
                    }
                    // each reading is a window, in number: marks tell readings apart by it, and each has its skid
                    PeriodStep::SamePeriod | PeriodStep::Last => {
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
                let shown = MarkedReading { start: sample, is_whole: true, ..MarkedReading::default() };
                self.remembered.add(key(sample.base.sequence, sample.base.window), &shown, newest);
                return Ok(sample);
            }
        }
        Err(interrupted())
    }
}

/// In `Mark::metrics` of a mark with totals in it, in place of what the counters said. From these bits up are the library's own work after
/// it, in so many slots, and the sample's `Base::error`.
const TOTALS: u64 = 1;
const WORK: u32 = 1;
const ERROR: u32 = 20;
const UNIT_OF_WORK: u64 = 64;

/// A mark of these totals, with so many slots of the library's own work after them. None: there is no room for that, or the error.
fn with_totals(read: &Sample, work: u64) -> Option<Mark> {
    let (work, error) = (work.div_ceil(UNIT_OF_WORK), read.base.error);
    let counter = std::array::from_fn(|k| read.counter[k]);
    let metrics = error << ERROR | work << WORK | TOTALS;
    let fits = work >> (ERROR - WORK) == 0 && error >> (u64::BITS - ERROR) == 0;
    fits.then(|| Mark { slots: read.slots, metrics, counter, ..read.mark() })
}

/// So many counters leave no room for more in a mark: the last is where registers have their metrics.
const MOST_MARKED: usize = 1 + MARKED_COUNTERS;
/// What a counter says; above it is room for a part of something else.
const SAID: u64 = (1 << PLAIN_WIDTH) - 1;
const PART: u32 = u64::BITS - PLAIN_WIDTH as u32;
/// The counters above which the error is, and the one above which the work is.
const ABOVE_ERROR: std::ops::Range<usize> = 0..4;
const ABOVE_WORK: usize = 4;

/// The same of so many counters, in the form of an inline one: what they say is added to `start`. None: the reading is of another
/// start, as those by a second group are, or those before a signal handler changed it.
fn full_mark(start: &Sample, slots_each: u64, read: &Sample, work: u64) -> Option<Mark> {
    let of = |base: &Base| (base.sequence, base.window, base.switches, base.level);
    if of(&read.base) != of(&start.base) {
        return None;
    }
    let said = |k: usize| read.counter[k].wrapping_sub(start.counter[k]);
    let mut counter: [u64; MARKED_COUNTERS] = std::array::from_fn(said);
    let (last, slots) = (said(MARKED_COUNTERS), read.slots.wrapping_sub(start.slots) / slots_each.max(1));
    let work = work.div_ceil(UNIT_OF_WORK);
    if counter.iter().fold(last | slots, |all, said| all | said) & !SAID != 0 || work >> PART != 0 {
        return None;
    }
    for k in ABOVE_ERROR {
        counter[k] |= read.base.error >> (PART * k as u32) << PLAIN_WIDTH;
    }
    counter[ABOVE_WORK] |= work << PLAIN_WIDTH;
    Some(Mark { slots, metrics: last | TOTALS << PLAIN_WIDTH, counter, ..read.mark() })
}

/// What the counters of such a mark said; and of one that was taken by a call the error, and the work in its unit.
fn of_full_mark(mark: &Mark) -> ([u64; MOST_MARKED], Option<(u64, u64)>) {
    let counter = |k: usize| *mark.counter.get(k).unwrap_or(&mark.metrics);
    if mark.metrics >> PLAIN_WIDTH == 0 {
        return (std::array::from_fn(counter), None);
    }
    let above = |k: usize| counter(k) >> PLAIN_WIDTH;
    let error = ABOVE_ERROR.fold(0, |error, k| error | above(k) << (PART * k as u32));
    (std::array::from_fn(|k| counter(k) & SAID), Some((error, above(ABOVE_WORK))))
}

/// One in so many instructions of a look is executed before the first reading of the counters, if that is the first thing that is done,
/// and if not; and after the last.
const ONE_IN_BEFORE_EARLY: u64 = 16;
const ONE_IN_BEFORE: u64 = 4;
const ONE_IN_AFTER: u64 = 4;
/// Of a look at the few counters of a spare: what follows is no shorter for it.
const ONE_IN_AFTER_OF_FEW: u64 = 2;

/// Flags of readings on the slow path: constants bound the library's own work where it does not measure itself.
const OF_SLOW_READINGS: u32 = if MEASURES_ITSELF { 0 } else { OF_READINGS };

impl MarkedReading {
    /// The reading at which the counters said this.
    fn reading(&self, raw: &RawCounters) -> Sample {
        let [leader, members @ ..] = &raw.counter;
        let mut sample = self.start;
        sample.slots = sample.slots.wrapping_add(leader.wrapping_mul(self.slots_each));
        sample.slots_before = sample.slots; // no register holds any
        sample.counter.iter_mut().zip(members).for_each(|(all, raw)| *all = all.wrapping_add(*raw));
        sample
    }
}

/// How often the counters are looked for before a system call asks the kernel.
const MOST_LOOKS: u32 = 16;

source_of_any!(Plain<PlainCounters>);

// (as `Source` has them)
impl Plain<dyn PlainCounters> {
    fn read(&self, shared: &Shared, seen: SeenRegisters, out: &mut Sample) -> Result<()> {
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
        self.count(shared, PeriodStep::NewPeriod, 0)?;
        // so that the first reading need not
        let _ = self.read_counters(shared, None, &mut Sample::default());
        Ok(())
    }

    fn read_last(&self, shared: &Shared) -> Result<Sample> {
        self.count(shared, PeriodStep::Last, 0)
    }

    fn mark(&self, shared: &Shared, seen: std::result::Result<&Sample, Option<Entry>>) -> Result<Mark> {
        let count = self.counters.reader().map_or(usize::MAX, |(_, count)| count);
        let is_full = count == MOST_MARKED;
        if count > MARKED_COUNTERS && !is_full {
            return Ok(self.count(shared, PeriodStep::SamePeriod, 0)?.mark());
        }
        let put = |out: &Sample, work| match is_full {
            true => full_mark(&shared.start(), shared.slots_each.get(), out, work),
            false => with_totals(out, work),
        };
        let early = match seen {
            Ok(read) => {
                let mark = self.work_since(shared, read).and_then(|work| put(read, work));
                if let Some(mark) = mark {
                    return Ok(mark);
                }
                None
            }
            Err(early) => early,
        };
        let mut looked = Sample::default();
        let looks = match self.read_counters(shared, early, &mut looked) {
            Ok(()) => match put(&looked, 0) {
                Some(mark) => return Ok(mark),
                None => 1,
            },
            Err(looks) => looks,
        };
        Ok(self.count(shared, PeriodStep::SamePeriod, looks)?.mark())
    }

    fn sample_of(&self, mark: &Mark) -> Result<Sample> {
        let count = self.counters.reader().map_or(0, |(_, count)| count);
        let has_totals = count <= MARKED_COUNTERS && mark.metrics & TOTALS != 0;
        // (a mark is of the latest look before it)
        let before = |marked: &MarkedReading| has_totals || marked.is_whole || marked.from <= mark.slots;
        let found = self.remembered.find_latest(key(mark.sequence, mark.window), before);
        let (place, MarkedReading { start, is_whole, slots_each, .. }) = found.ok_or_else(stale_mark)?;
        let start = if is_whole { start } else { self.taken[place].from(start) };
        let mut sample = Sample { flags: start.flags | TD_SAMPLE_COARSE_TIME, ..start };
        let (full, mut called) = of_full_mark(mark);
        let counter: &[u64] = match count {
            _ if is_whole => &[],
            1..=MARKED_COUNTERS => &mark.counter[..count],
            MOST_MARKED => &full,
            _ => return Err(stale_mark()),
        };
        if has_totals && !is_whole {
            sample.slots = mark.slots;
            sample.counter[..counter.len()].copy_from_slice(counter);
            called = Some((mark.metrics >> ERROR, (mark.metrics >> WORK) % (1 << (ERROR - WORK))));
        } else {
            let metrics = if counter.len() == MOST_MARKED { 0 } else { mark.metrics };
            if metrics != 0 || counter.iter().chain([&mark.slots]).any(|raw| raw >> PLAIN_WIDTH != 0) {
                return Err(no_mark());
            }
            sample.slots = sample.slots.wrapping_add(mark.slots.wrapping_mul(slots_each));
            sample.counter.iter_mut().zip(counter).for_each(|(all, raw)| *all = all.wrapping_add(*raw));
            called = called.filter(|_| counter.len() == MOST_MARKED);
        }
        if let Some((error, work)) = called {
            sample.base.error = error;
            sample.flags |= OF_SLOW_READINGS;
            if work > 0 {
                sample.flags |= TD_SAMPLE_WORK_COUNTED;
                sample.base.category[0] = (work * UNIT_OF_WORK) as i64;
            }
        }
        sample.slots_before = sample.slots; // no register holds any
        Ok(sample)
    }

    fn budget(&self) -> Option<Budget> {
        None
    }
}
