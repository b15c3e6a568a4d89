//! A group of general-purpose counters for each kind of core of a hybrid CPU, which count for the same thread: each while the thread runs on
//! its cores. What both have counted is added up.
//!
//! The kernel counts the times of both by one clock of the thread, so the time in which neither counted is what the time enabled
//! is more than the times running of both. But no system call tells the times of two groups at one moment. So a reading is one of
//! the group that counts now, while the other one is seen to stand still, and goes by the time enabled of the former. By which
//! group a reading goes makes a difference: the time from the opening of the first to that of the second, which is known within
//! two system calls at first, and exactly as soon as the thread has been on the other cores and back (`EnabledLag`). Readings never tell
//! less time enabled than there was.
#![forbid(unsafe_code)]

use super::PlainGroup;
use crate::error::{Error, Result, TD_ENOTCOUNTING};
use crate::read::{
    CountersSnapshot, Entry, MEASURES_ITSELF, MOST_COUNTERS, PlainCounters, PlainCounts, Reader, Shared,
};
use crate::sys::Kernel;
use crate::sys::kept::ThreadValue;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Places in `groups`: that of the P-cores was opened first.
const P_CORES: usize = 0;
const E_CORES: usize = 1;

/// Readings until a group that is to stand still is given up. (A thread moves far less often.)
const MOST_READS: u32 = 16;
/// Readings at the start that tell how far apart the groups were opened.
const FIRST_READS: u32 = 8;

/// By how many nanoseconds the P-cores' group has been enabled for longer than the E-cores'.
///
/// What the time enabled of the former is more than the times running of both is the time in which neither counted. By the latter's
/// time enabled it is so much less. It never shrinks: each reading that goes by the one and an earlier one that goes by the
/// other bound the difference, and if neither was ever away from the counters in between, they tell it.
struct EnabledLag {
    most: AtomicU64,
    least: AtomicU64,
    /// The time in which neither counted, by either time enabled, as it was last seen.
    idle: [AtomicI64; 2],
}

impl EnabledLag {
    /// What readings of the times enabled tell, each of the second group between two of the first.
    fn new<K: Kernel>(groups: &[PlainGroup<K>; 2]) -> Result<EnabledLag> {
        let enabled = |place: usize| Ok(groups[place].counts()?.time.enabled);
        let (mut most, mut least, mut before) = (u64::MAX, 0, enabled(P_CORES)?);
        for _ in 0..FIRST_READS {
            let (second, after) = (enabled(E_CORES)?, enabled(P_CORES)?);
            (most, least) =
                (most.min(after.saturating_sub(second)), least.max(before.saturating_sub(second)));
            before = after;
        }
        if least > most {
            let what = "the groups of P-cores and E-cores do not tell one time";
            return Err(Error::new(TD_ENOTCOUNTING, what));
        }
        let idle = [i64::MIN, i64::MIN].map(AtomicI64::new);
        Ok(EnabledLag { most: most.into(), least: least.into(), idle })
    }

    fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    fn least(&self) -> u64 {
        self.least.load(Ordering::Relaxed)
    }

    /// A reading of both groups at one moment has told this time in which neither counted, by the time enabled of this one.
    fn learn(&self, place: usize, idle: i64) {
        self.idle[place].fetch_max(idle, Ordering::Relaxed);
        let other = self.idle[1 - place].load(Ordering::Relaxed);
        if other == i64::MIN {
            return;
        }
        match place {
            P_CORES => self.most.fetch_min(idle.saturating_sub(other).max(0) as u64, Ordering::Relaxed),
            _ => self.least.fetch_max(other.saturating_sub(idle).max(0) as u64, Ordering::Relaxed),
        };
    }
}

/// A group of the other kind of core: what it has counted. It counts nothing more until its leader's page has another sequence
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AwayCounts {
    /// Its place among the groups.
    place: usize,
    sequence: u32,
    running: u64,
    slots: u64,
    counter: [u64; MOST_COUNTERS],
}

/// Both groups, open, for one thread. (Signal handlers may read at any instruction of a reading: each number is changed by one
/// instruction, to what is right or says more time than there was.)
pub(crate) struct HybridGroup<K: Kernel> {
    groups: [PlainGroup<K>; 2],
    /// Where readings of the second one start from; None: all is read by read(2).
    second: Option<&'static Shared>,
    apart: EnabledLag,
    /// Place of the group by whose time enabled the last reading went, and what was added to that of the E-cores.
    last: AtomicU32,
    used: AtomicU64,
    /// Nanoseconds to be added to either time enabled: for each move from the E-cores to the P-cores, what was added on the E-cores
    /// and may have been too much.
    added: AtomicU64,
    /// What the last read(2) found of the group that was not on this CPU.
    away: ThreadValue<Option<AwayCounts>>,
}

impl<K: Kernel> HybridGroup<K> {
    /// Of open groups of the same thread, that of the P-cores first, with the same events of the same order. `second`: where
    /// readings of the other one start from, whose leader's page is mapped behind it.
    pub fn new(groups: [PlainGroup<K>; 2], second: Option<&'static Shared>) -> Result<HybridGroup<K>> {
        let apart = EnabledLag::new(&groups)?;
        let (last, used, added) = (AtomicU32::new(P_CORES as u32), AtomicU64::new(0), AtomicU64::new(0));
        Ok(HybridGroup { groups, second, apart, last, used, added, away: ThreadValue::new(None) })
    }

    /// Whether one of them was on the counters at all times since both were open.
    pub fn had_their_turns_always(&self) -> Result<bool> {
        let time = self.counts()?.time;
        Ok(time.enabled.saturating_sub(time.running) <= 2 * self.apart.most())
    }

    /// As `PlainGroup::forget_mappings`.
    pub fn forget_mappings(&mut self) {
        self.groups.iter_mut().for_each(PlainGroup::forget_mappings);
    }

    /// As `PlainGroup::leave_zeros`.
    pub fn leave_zeros(&mut self) {
        self.groups.iter_mut().for_each(PlainGroup::leave_zeros);
    }

    /// Whether RDPMC of these counters may have faulted since the groups were opened.
    pub fn may_have_faulted(&self) -> bool {
        self.groups.iter().any(PlainGroup::may_have_faulted)
    }

    /// As `PlainGroup::stop`.
    pub fn stop(&self) {
        self.groups.iter().for_each(PlainGroup::stop);
    }

    /// What is to be added to the time enabled of this group.
    fn behind(&self, place: usize) -> u64 {
        let apart = if place == E_CORES { self.used.load(Ordering::Relaxed) } else { 0 };
        apart.saturating_add(self.added.load(Ordering::Relaxed))
    }

    /// A reading goes by the time enabled of this group.
    fn goes_by(&self, place: usize) {
        if place == E_CORES {
            self.used.store(self.apart.most(), Ordering::Relaxed);
        } else if self.last.load(Ordering::Relaxed) as usize == E_CORES {
            let too_much = self.used.load(Ordering::Relaxed).saturating_sub(self.apart.least());
            self.added.fetch_add(too_much, Ordering::Relaxed);
        }
        self.last.store(place as u32, Ordering::Relaxed);
    }

    /// What the group of the other kind of core has counted, if that is known and it has not counted since.
    fn stands_still(&self) -> Option<AwayCounts> {
        let away = self.away.get(|away| *away)?;
        let is_last = self.last.load(Ordering::Relaxed) as usize == away.place;
        // (what has counted since has left another number)
        (!is_last && self.groups[away.place].scheduled() == Some((away.sequence, false))).then_some(away)
    }

    /// What both have counted, of which `here` counts now, or none does.
    fn both(&self, here: usize, counts: &[PlainCounts; 2], away: Option<u32>) -> PlainCounts {
        self.goes_by(here);
        let (mut all, other) = (counts[here], &counts[1 - here]);
        all.time.enabled = all.time.enabled.saturating_add(self.behind(here));
        all.time.running = all.time.running.saturating_add(other.time.running);
        all.slots = all.slots.saturating_add(other.slots);
        all.slots_maybe_over = all.slots_maybe_over.saturating_add(other.slots_maybe_over);
        for (sum, more) in all.counter.iter_mut().zip(other.counter) {
            *sum = sum.saturating_add(more);
        }
        let away = away.map(|sequence| AwayCounts {
            place: 1 - here,
            sequence,
            running: other.time.running,
            slots: other.slots,
            counter: other.counter,
        });
        let mut change = self.away.begin();
        *change.value() = away;
        change.end(); // (a signal handler's took effect: it is the later one)
        all
    }
}

impl<K: Kernel> PlainCounters for HybridGroup<K> {
    fn counts(&self) -> Result<PlainCounts> {
        // one group stands still from one reading to the next, and between them the other one is read
        let mut here = self.last.load(Ordering::Relaxed) as usize;
        let sequence_of = |place: usize| self.groups[place].scheduled().map(|(sequence, _)| sequence);
        let mut sequences = [P_CORES, E_CORES].map(sequence_of);
        let mut counts = [PlainCounts::default(); 2];
        counts[1 - here] = self.groups[1 - here].counts()?;
        counts[here] = self.groups[here].counts()?;
        for _ in 0..MOST_READS {
            let away = 1 - here;
            let sequence = sequence_of(away);
            let again = self.groups[away].counts()?;
            if again.time.running == counts[away].time.running {
                let here_time = counts[here].time;
                let running = here_time.running.saturating_add(again.time.running);
                self.apart.learn(here, here_time.enabled as i64 - running as i64);
                let since = sequences[away].filter(|_| sequences[away] == sequence_of(away));
                return Ok(self.both(here, &counts, since));
            }
            (counts[away], sequences[away], here) = (again, sequence, away);
        }
        Ok(self.both(here, &counts, None))
    }

    fn last_counts(&self) -> Result<PlainCounts> {
        let here = self.last.load(Ordering::Relaxed) as usize;
        let counts = [self.groups[P_CORES].last_counts()?, self.groups[E_CORES].last_counts()?];
        Ok(self.both(here, &counts, None))
    }

    fn counts_itself(&self) -> bool {
        self.groups[P_CORES].counts_itself()
    }

    fn calls(&self) -> u64 {
        self.groups.iter().map(PlainGroup::calls).sum()
    }

    fn snapshot(&self, entry: &Entry, out: &mut CountersSnapshot) -> Option<()> {
        let mut away = self.stands_still();
        if away.is_none() && MEASURES_ITSELF {
            self.counts().ok()?;
            away = self.stands_still();
        }
        let away = away?;
        let here = 1 - away.place;
        self.groups[here].snapshot(entry, out)?;
        out.goes_with_entry &= !MEASURES_ITSELF || entry.is_second == (here == E_CORES);
        if self.stands_still() != Some(away) {
            return None;
        }
        for (counter, more) in out.counter[1..].iter_mut().zip(away.counter) {
            counter.base = counter.base.wrapping_add(more);
        }
        out.slots_away = away.slots;
        let zero = &mut out.clock.zero;
        zero.enabled = zero.enabled.wrapping_add(self.behind(here));
        zero.running = zero.running.wrapping_add(away.running);
        out.is_second = here == E_CORES;
        Some(())
    }

    fn second(&self) -> Option<&Shared> {
        self.second
    }

    fn reader(&self) -> Option<(Reader, usize)> {
        self.second.and(self.groups[E_CORES].reader()).and(self.groups[P_CORES].reader())
    }
}
