//! From counters to one reading: in user space, by RDPMC (`rdpmc`) or arm64's MRS (`no_rdpmc`), or by read(2) (`crate::group`).

#[cfg(target_arch = "x86_64")]
mod rdpmc;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_rdpmc.rs"]
mod rdpmc;
mod shared;

use crate::error::Result;
use crate::model::perf_metrics::MOST_MOVED;
use crate::registers::{CATEGORIES, Registers};
pub(crate) use crate::sys::page::{METRICS_INDEX, SLOTS_INDEX};
use crate::sys::page::{PlainCounter, Times};
use crate::sys::{Mapping, fault};
pub(crate) use rdpmc::MEASURES_ITSELF;
pub(crate) use rdpmc::{FAST, snapshot};
use rdpmc::{HAS_RDPMC, LIMITS_TOTALS, entries, entries_beside, margin, tells, undisturbed};
pub use shared::Shared;
pub(crate) use shared::{HoldsSample, Reader};
#[cfg(target_arch = "x86_64")]
pub(crate) use {
    rdpmc::{STARTED, counters_into, fast_read},
    shared::{BY_COUNTERS, BY_SECOND, SEQUENCE, TD_CONTROL_PAGE},
};

/// How the clock that user space sees (the time-stamp counter, CNTVCT_EL0 on arm64) becomes an event's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Nanoseconds are the upper 65 bits of the product of counter and scale (arm64: the upper 96); 0 if there is no clock.
    pub scale: u64,
    /// The event's times when the clock was zero; without a clock, the last that are known.
    pub zero: Times,
    /// They are those of the last time that the thread was scheduled.
    pub coarse: bool,
}

impl Clock {
    /// Times of a period that began at `begun`, at clock zero.
    pub fn zero_since(&self, begun: Times) -> Times {
        if self.scale == 0 {
            return self.zero.since(begun);
        }
        Times {
            enabled: self.zero.enabled.wrapping_sub(begun.enabled),
            running: self.zero.running.wrapping_sub(begun.running),
        }
    }
}

/// One reading of the registers by their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub registers: Registers,
    pub sequence: u32,
    pub clock: Clock,
    /// Nanoseconds of the clock.
    pub ns: u64,
    /// A clock to pace by, which runs while the thread does: nanoseconds, or ticks where there are none.
    pub pace: u64,
    /// What general-purpose counters beside the registers said, of the same stretch.
    pub beside: [PlainCounter; MOST_MOVED],
}

impl Snapshot {
    /// What was counted beside the registers since the group was opened.
    pub fn beside(&self) -> [u64; MOST_MOVED] {
        self.beside.map(|counter| counter.base.wrapping_add(counter.raw))
    }

    /// The event's times.
    pub fn time(&self) -> Times {
        let Times { enabled, running } = self.clock.zero;
        Times { enabled: enabled.wrapping_add(self.ns), running: running.wrapping_add(self.ns) }
    }
}

/// What one read(2) of a group with SLOTS and PERF_METRICS tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupCounts {
    pub time: Times,
    pub slots: u64,
    /// How many slots can have passed, where that is counted apart.
    pub most: Option<u64>,
    /// In slots, as the kernel makes them of the fields.
    pub category: [u64; CATEGORIES],
    /// What general-purpose counters beside the registers have counted.
    pub beside: [u64; MOST_MOVED],
}

/// Whose slots a group counts, and how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The calling thread's own, by RDPMC or MRS.
    Rdpmc,
    /// The calling thread's own, by read(2).
    OwnByRead,
    /// Those of the calling thread and of what it starts, by read(2).
    OwnAndInherited,
    /// A CPU's, by read(2).
    Cpu,
    /// Another thread's, or those of what another thread or a CPU's threads start, by read(2).
    OtherThread,
}

impl Access {
    /// Whether what the library executes for a read(2) is counted with the rest.
    pub fn counts_itself(self) -> bool {
        matches!(self, Access::OwnByRead | Access::OwnAndInherited)
    }

    /// Whether the group runs whenever it is enabled, unless it is multiplexed: what it counts is never asleep when it is read.
    pub fn runs_while_enabled(self) -> bool {
        matches!(self, Access::Rdpmc | Access::OwnByRead | Access::Cpu)
    }
}

/// What the control page of a group's leader shows at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageSchedule {
    /// The group has no page.
    Unknown,
    /// The group is not on the counters; the page's sequence number.
    Out(u32),
    /// It is.
    In(u32),
}

impl PageSchedule {
    /// A number that moves by four or more each time that the registers are saved and restored.
    pub fn sequence(self) -> Option<u32> {
        match self {
            PageSchedule::Unknown => None,
            PageSchedule::Out(sequence) | PageSchedule::In(sequence) => Some(sequence),
        }
    }
}

/// A group with SLOTS and PERF_METRICS, real or simulated.
pub(crate) trait MetricsCounters {
    /// read(2) of the group: what the kernel has counted since it was opened. If the group is running, this zeroes the
    /// registers.
    fn counts(&self) -> Result<GroupCounts>;
    /// read(2) of SLOTS alone, which is cheaper: the same without the categories.
    fn slots(&self) -> Result<(u64, Times)>;
    /// The registers, if they can be read and count for this thread now. `known`: the times at the last read(2).
    fn registers(&self, known: Times) -> Option<Snapshot>;
    /// Whether the group is on the counters right now.
    fn scheduled(&self) -> PageSchedule;
    /// The same for the life of the group.
    fn access(&self) -> Access;
    /// Who can read without this library's slow path, if anybody can.
    fn reader(&self) -> Option<Reader> {
        None
    }
    /// How many general-purpose counters there are beside the registers.
    fn beside(&self) -> usize {
        0
    }
}

/// The number of `td_sample.counter[]`.
pub(crate) const MOST_COUNTERS: usize = 15;

/// What one read(2) of a group of general-purpose counters tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainCounts {
    pub time: Times,
    pub slots: u64,
    /// By so much they may be too large.
    pub slots_maybe_over: u64,
    /// In the order of the inputs of the CPU's tree.
    pub counter: [u64; MOST_COUNTERS],
    /// How many stretches there were in which level 1 alone was counted, for want of counters; whether this is one.
    pub stretches: u16,
    pub is_stretch: bool,
}

/// A group of general-purpose counters, real or simulated; or one for each kind of core. What they count is exact, and nothing resets them.
pub(crate) trait PlainCounters {
    /// read(2) of the group: what was counted since it was opened.
    fn counts(&self) -> Result<PlainCounts>;
    /// The same, once more at the end: also of a group that the kernel has taken apart, as it does when its CPU goes offline.
    fn last_counts(&self) -> Result<PlainCounts> {
        self.counts()
    }
    /// Whether what the library executes for a read(2) is counted with the rest.
    fn counts_itself(&self) -> bool;
    /// How often a group was read by read(2) so far.
    fn calls(&self) -> u64;
    /// Where the counters stand, if they count for this thread now and user space reads them.
    fn snapshot(&self, _: &Entry, _: &mut CountersSnapshot) -> Option<()> {
        None
    }
    /// Of two groups: where readings of the second one start from. (Those of the first start from the handle's own.)
    fn second(&self) -> Option<&Shared> {
        None
    }
    /// Who can read without this library's slow path, if anybody can, and how many counters besides the leader's.
    fn reader(&self) -> Option<(Reader, usize)> {
        None
    }
}

/// What the fast path saw of the registers before it gave up, and the sequence number of the page then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeenRegisters {
    pub registers: Registers,
    pub sequence: u32,
    /// The program did not call td_read: more was executed before.
    pub is_later: bool,
    /// General-purpose counters, as they were right after.
    pub entry: Option<Entry>,
}

/// What general-purpose counters said at one moment: the leader's, then those of `td_sample.counter[]`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawCounters {
    /// Of the leader's page.
    pub sequence: u64,
    /// How often that was asked.
    pub look: u64,
    /// The restartable sequence by which they were read, and what the thread's descriptor held before: the kernel clears it when the
    /// thread is interrupted by a signal, preempted or moved.
    pub descriptor: u64,
    pub before: u64,
    pub counter: [u64; 1 + MOST_COUNTERS],
}

/// Where a look at the pages of general-purpose counters begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// They are of the counters with these numbers, of the second of two groups or not.
    pub raw: RawCounters,
    // (elsewhere no counter is read by its number)
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub numbers: [u32; 1 + MOST_COUNTERS],
    pub is_second: bool,
}

impl Entry {
    /// Of the calling thread, where it is the one that reads.
    pub fn early(shared: &Shared) -> Option<Entry> {
        if let Some(second) = shared.second() {
            let raw = second.raw_counters()?;
            return Some(Entry { raw, numbers: second.numbers.get(), is_second: true });
        }
        let raw = if shared.may_count() { shared.raw_counters()? } else { return None };
        Some(Entry { raw, numbers: shared.numbers.get(), is_second: false })
    }

    /// Of the group that is on this CPU, by the numbers that its counters had when it was last looked at.
    pub fn new(shared: &Shared, second: Option<&Shared>) -> Entry {
        let of = |shared: &Shared, is_second: bool| {
            let raw = shared.raw_counters()?;
            Some(Entry { raw, numbers: shared.numbers.get(), is_second })
        };
        let by_second = || of(second?, true);
        let entry = match shared.second() {
            Some(_) => by_second().or_else(|| of(shared, false)),
            None => of(shared, false).or_else(by_second),
        };
        entry.unwrap_or_default()
    }

    /// What was counted until the latter: the library's own work. None: something came between, if only a signal handler, which may
    /// have looked, too.
    pub fn until(&self, now: &RawCounters) -> Option<RawCounters> {
        let raw = &self.raw;
        let undisturbed =
            now.sequence == raw.sequence && now.look == raw.look + 1 && now.before == raw.descriptor;
        let counter = std::array::from_fn(|k| now.counter[k].wrapping_sub(raw.counter[k]));
        undisturbed.then_some(RawCounters { counter, ..*now })
    }
}

/// Where general-purpose counters stand, and what their totals are made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountersSnapshot {
    pub sequence: u32,
    pub clock: Clock,
    /// Nanoseconds of the clock.
    pub ns: u64,
    /// Slots for each that the leader counts.
    pub slots_each: u64,
    /// Slots that another group has counted.
    pub slots_away: u64,
    /// As `PlainCounts::stretches`, and `is_stretch`.
    pub stretches: u16,
    pub is_level_1: bool,
    /// How many counters there are besides the leader's.
    pub count: usize,
    /// The leader's, then those of `td_sample.counter[]`.
    pub counter: [PlainCounter; 1 + MOST_COUNTERS],
    /// It is of the second of two groups.
    pub is_second: bool,
    /// The counters are those that the entry was of, and nothing came between.
    pub goes_with_entry: bool,
}

impl CountersSnapshot {
    pub fn numbers(&self) -> [u32; 1 + MOST_COUNTERS] {
        self.counter.map(|counter| counter.number)
    }

    /// Up to so many slots by the leader's counter, or in totals that stand so when it is at zero, none of them overflows: none counts
    /// more than slots.
    pub fn limit(&self, total: u64) -> u64 {
        let there = self.counter.iter().take_while(|counter| **counter != PlainCounter::default());
        let left = there.map(|counter| counter.left).min().unwrap_or(0);
        let from = if LIMITS_TOTALS { total } else { 0 };
        let now = from.wrapping_add(self.counter[0].raw.wrapping_mul(self.slots_each));
        now.saturating_add(left - margin(left))
    }
}

/// How often pages that the kernel changes meanwhile are read, where a look does not measure itself.
const TRIES: u32 = if MEASURES_ITSELF { 1 } else { 4 };

/// What readings of general-purpose counters start from: clock, numbers and bases. `leader` and `members` are the mapped pages of one
/// group of the calling thread's, which user space may read. None if it is not on this CPU, does not tell, or user space may read it
/// no more; if it was taken away meanwhile, what is told does not go with the entry.
pub(crate) fn counters_snapshot<'a, M: Mapping + 'a>(
    leader: &'a M,
    members: impl Iterator<Item = &'a M> + Clone,
    rseq: *mut u64,
    entry: &Entry,
    out: &mut CountersSnapshot,
) -> Option<()> {
    let faults = fault::count();
    for _ in 0..TRIES {
        let page = leader.snapshot()?;
        if page.index == 0 {
            return None;
        }
        let pages = std::iter::once(leader).chain(members.clone());
        let undisturbed = undisturbed(leader, &page, pages, rseq, entry, out);
        if undisturbed.is_some() || fault::count() != faults {
            return undisturbed.filter(|()| !out.goes_with_entry || tells(out));
        }
    }
    out.goes_with_entry = false;
    MEASURES_ITSELF.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_while_something_came_between_is_not_the_librarys_own() {
        let raw = RawCounters { sequence: 4, look: 7, descriptor: 0x1000, before: 0, counter: [100; 16] };
        let entry = Entry { raw, ..Entry::default() };
        let now = RawCounters { look: 8, before: 0x1000, counter: [160; 16], ..raw };
        assert_eq!(entry.until(&now).map(|own| own.counter), Some([60; 1 + MOST_COUNTERS]));
        for between in [
            RawCounters { sequence: 10, ..now }, // the counters were others', or another thread's
            RawCounters { before: 0, ..now },    // a signal handler ran
            RawCounters { before: 0x2000, ..now }, // and took a reading on the fast path
            RawCounters { look: 9, ..now },      // or looked, too
        ] {
            assert_eq!(entry.until(&between), None, "{between:?}");
        }
    }
}
