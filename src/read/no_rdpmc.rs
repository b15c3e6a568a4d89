//! Where there is no RDPMC. arm64 reads general-purpose counters by MRS; all else takes the slow path.

use super::{CountersSnapshot, Snapshot};
use crate::model::perf_metrics::MOST_MOVED;
use crate::sys::Mapping;
use crate::sys::page::{PageSnapshot, Times};
#[cfg(target_arch = "aarch64")]
use by_mrs::read_counters;
#[cfg(target_arch = "aarch64")]
pub(crate) use by_mrs::undisturbed;

/// Whether td_read has a fast path here.
pub(crate) const FAST: fn() -> bool = || cfg!(target_arch = "aarch64");

/// Of so many counts that a counter has left, those that remain when a reading is to look at the pages: nobody counts twice as
/// much as there are slots.
pub(crate) fn margin(left: u64) -> u64 {
    left / 2
}

/// `Shared::limit` is one of a sample's slots: a 64-bit counter times a core's width is more than a number holds.
pub(crate) const LIMITS_TOTALS: bool = true;

impl super::Shared {
    pub fn slots_only(&self) -> Option<crate::sample::SlotsOnly> {
        None
    }

    pub fn slots_only_or_zero(&self) -> crate::sample::SlotsOnly {
        crate::sample::SlotsOnly::default()
    }

    pub fn slots_since<T: super::HoldsSample>(&self, _: &T) -> crate::sample::SlotsOnly {
        crate::sample::SlotsOnly::default()
    }

    pub fn slots_only_into<T: super::HoldsSample>(&self, _: &mut T) -> bool {
        false
    }

    pub fn count_from<T: super::HoldsSample>(&self, _: &mut T, _: &crate::sample::Increments) -> bool {
        false
    }

    pub fn count_one<T: super::HoldsSample, R>(
        &self,
        _: &mut T,
        _: impl FnOnce(&mut T, &crate::sample::Increments) -> R,
    ) -> Option<R> {
        None
    }

    pub fn count_to<T: super::HoldsSample>(&self, _: &T, _: &mut crate::sample::Increments) -> bool {
        false
    }

    /// A reading, if the fast path serves; else what was seen of the registers, and `out` means nothing.
    pub fn read(&self, out: &mut crate::sample::Sample) -> Result<(), super::SeenRegisters> {
        if self.may_count() && read_counters(self, out) { Ok(()) } else { Err(Default::default()) }
    }

    pub fn raw_counters(&self) -> Option<super::RawCounters> {
        None
    }
}

/// No reading is inlined, and executions are read as anything else is.
pub(crate) const HAS_RDPMC: bool = false;

/// A look at the pages does not count itself.
pub(crate) const MEASURES_ITSELF: bool = false;

/// None is.
#[cfg(not(target_arch = "aarch64"))]
fn read_counters(_: &super::Shared, _: &mut crate::sample::Sample) -> bool {
    false
}

/// No counter is read.
pub(crate) fn entries(_: usize) -> [usize; 2] {
    [0; 2]
}

/// No register is read.
pub(crate) fn entries_beside(_: usize) -> [usize; 2] {
    [0; 2]
}

/// Whether the counters say what was counted.
pub(crate) fn tells(_: &CountersSnapshot) -> bool {
    true
}

/// None.
#[cfg(not(target_arch = "aarch64"))]
pub(crate) fn undisturbed<'a, M: Mapping + 'a>(
    _: &M,
    _: &PageSnapshot,
    _: impl Iterator<Item = &'a M>,
    _: *mut u64,
    _: &super::Entry,
    _: &mut CountersSnapshot,
) -> Option<()> {
    None
}

/// None.
pub(crate) fn snapshot<M: Mapping>(
    _: &M,
    _: &PageSnapshot,
    _: &[Option<M>; MOST_MOVED],
    _: Option<*mut u64>,
    _: Times,
) -> Option<Snapshot> {
    None
}

#[cfg(target_arch = "aarch64")]
mod by_mrs {
    use super::super::{Clock, CountersSnapshot, Entry, Shared};
    use crate::sample::{Sample, TD_SAMPLE_WORK_AFTER};
    use crate::sys::Mapping;
    use crate::sys::memory::APART;
    use crate::sys::mrs::{MOST, Request, plain_counters, read};
    use crate::sys::page::{Page, PageSnapshot, Times, short_clock};
    use std::mem::offset_of;
    use std::ptr::{addr_of, from_mut, from_ref};

    /// Nanoseconds are the product of clock and scale, less so many bits.
    const FRACTION: u32 = 32;

    /// What a reading takes of `Shared` besides the start of its sample.
    const LIMIT_AND_SCALE: usize = offset_of!(Shared, limit);

    const _: () = {
        assert!(offset_of!(Shared, scale) == LIMIT_AND_SCALE + 8 && size_of::<Sample>() % 32 == 0);
    };

    fn nanoseconds(clock: u64, scale: u64) -> u64 {
        ((u128::from(clock) * u128::from(scale)) >> FRACTION) as u64
    }

    /// A reading, if the page's sequence number is the one that samples start from. The reader is the calling thread. What samples
    /// start from is of the same stretch of the thread as counters and clock: no signal handler changes it in between.
    pub fn read_counters(shared: &Shared, out: &mut Sample) -> bool {
        let mut raw = [0; MOST];
        let count = 1 + shared.counters();
        let here: *const u8 = from_ref(shared).cast();
        if count > MOST || shared.rseq.get().is_null() {
            return false;
        }
        // SAFETY: a handle is where its Shared is, and its control page follows, or zeros in its place. The rest are fields of it, the
        // sample, and an array of ours with room for so much; any bits make a sample. The descriptor is this thread's, since the
        // reader is. Who opens a group that is read so has the handler of SIGILL installed.
        let (is_read, [limit, scale], clock) = unsafe {
            let mut request = Request {
                rseq: shared.rseq.get(),
                lock: addr_of!((*here.add(APART).cast::<Page>()).lock),
                expected: addr_of!((*shared.start.as_ptr()).base.sequence),
                numbers: shared.numbers.as_ptr().cast(),
                count,
                raw: raw.as_mut_ptr(),
                from: shared.start.as_ptr().cast(),
                to: from_mut(out).cast(),
                bytes: size_of::<Sample>(),
                two: here.add(LIMIT_AND_SCALE).cast(),
                copied: [0; 2],
                clock: 0,
            };
            (read(&mut request), request.copied, request.clock)
        };
        out.slots = out.slots.wrapping_add(raw[0].wrapping_mul(shared.slots_each.get()));
        out.slots_before = out.slots; // no register holds any
        let ns = nanoseconds(clock, scale);
        out.time_enabled_ns = out.time_enabled_ns.wrapping_add(ns);
        out.time_running_ns = out.time_running_ns.wrapping_add(ns);
        for (total, raw) in out.counter.iter_mut().zip(&raw[1..count]) {
            *total = total.wrapping_add(*raw);
        }
        // (a reading executes more than a sample's skid allows for)
        out.flags |= TD_SAMPLE_WORK_AFTER;
        is_read && out.slots <= limit
    }

    /// At this snapshot of the leader's page. None: something came between.
    pub(crate) fn undisturbed<'a, M: Mapping + 'a>(
        leader: &M,
        page: &PageSnapshot,
        pages: impl Iterator<Item = &'a M> + Clone,
        rseq: *mut u64,
        _: &Entry,
        out: &mut CountersSnapshot,
    ) -> Option<()> {
        out.sequence = page.sequence;
        let pages = pages.map(|map| map.page());
        // SAFETY: the pages are mapped, of one group of the calling thread's; who opens one that is read so has the handler of
        // SIGILL installed.
        let (clock, short) = unsafe {
            (plain_counters(pages, rseq, page.sequence, &mut out.counter)?, short_clock(leader.page()))
        };
        if leader.sequence() != page.sequence {
            return None;
        }
        out.clock = clock_of(page, short, clock);
        out.ns = nanoseconds(clock, out.clock.scale);
        out.goes_with_entry = true;
        Some(())
    }

    /// The clock of a page, which said this a moment ago. One that has gone round since it began does not serve.
    fn clock_of(page: &PageSnapshot, short: Option<(u64, u64)>, clock: u64) -> Clock {
        let (from, mask) = short.unwrap_or((0, u64::MAX));
        let straight = from.wrapping_add(clock.wrapping_sub(from) & mask) == clock;
        let shift = FRACTION.checked_sub(page.time_shift.into());
        match shift.filter(|_| page.clock && straight && page.time_mult != 0) {
            None => Clock { scale: 0, zero: page.time, coarse: true },
            Some(shift) => {
                let zero = |time: u64| time.wrapping_add(page.time_offset);
                Clock {
                    scale: u64::from(page.time_mult) << shift,
                    zero: Times { enabled: zero(page.time.enabled), running: zero(page.time.running) },
                    coarse: false,
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_clock_is_the_pages_until_it_goes_round() {
            let page = PageSnapshot {
                clock: true,
                time_mult: 33_554_432,
                time_shift: 21,
                time_offset: 1000,
                ..PageSnapshot::default()
            };
            let clock = clock_of(&page, Some((5, (1 << 56) - 1)), 1 << 50);
            assert_eq!(nanoseconds(1 << 50, clock.scale), 1 << 54);
            assert_eq!(clock.zero.enabled, 1000);
            assert!(clock_of(&page, Some(((1 << 56) - 5, (1 << 56) - 1)), 3).coarse);
            assert!(clock_of(&PageSnapshot { clock: false, ..page }, None, 3).coarse);
        }
    }
}
