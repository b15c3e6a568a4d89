//! Readings that can take their time: of the registers with what is beside them, and of general-purpose counters, with their pages.

use super::super::{Clock, CountersSnapshot, Entry, SLOTS_INDEX, Snapshot};
use crate::bound::SKID_SLOTS;
use crate::model::perf_metrics::MOST_MOVED;
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sys::Mapping;
use crate::sys::fault::MARK;
use crate::sys::page::{Page, PageSnapshot, PlainCounter, Times};
use crate::sys::rdpmc::{SLOTS, plain_base, rdtsc, slots_and_metrics};

/// A multiplier that turns the time-stamp counter into nanoseconds in the upper 65 bits of the product,
/// one more than a register's: so that a clock of down to half a gigahertz fits.
fn tsc_scale(mult: u32, shift: u16) -> Option<u64> {
    let up = 63u32.checked_sub(shift.into())?;
    u64::try_from(u128::from(mult) << up).ok()
}

/// The clock of a page. `known`: the times at the last read(2), which are later than the page's where there is
/// no clock.
fn clock_of(page: &PageSnapshot, known: Times) -> Clock {
    // (readings take the clock times two, in 64 bits)
    let scale = if page.clock && rdtsc() >> 63 == 0 {
        tsc_scale(page.time_mult, page.time_shift).unwrap_or(0)
    } else {
        0
    };
    let zero = if scale == 0 {
        page.time.latest(known)
    } else {
        Times {
            enabled: page.time.enabled.wrapping_add(page.time_offset),
            running: page.time.running.wrapping_add(page.time_offset),
        }
    };
    Clock { scale, zero, coarse: scale == 0 }
}

/// The time-stamp counter, and the nanoseconds that it stands for.
fn clock_now(clock: &Clock) -> (u64, u64) {
    let tsc = rdtsc();
    (tsc, ((u128::from(tsc) * u128::from(clock.scale)) >> 63) as u64)
}

/// Both registers and the general-purpose counters beside them, whose pages these are, of one stretch of the thread, if the page's sequence number
/// is this one before and after.
///
/// # Safety
/// As of `slots_and_metrics`.
unsafe fn registers_and<M: Mapping>(
    page: *const Page,
    rseq: Option<*mut u64>,
    sequence: u32,
    pages: &[Option<M>; MOST_MOVED],
) -> Option<(Registers, [PlainCounter; MOST_MOVED])> {
    let mut numbers = [SLOTS; MOST_MOVED];
    for (number, map) in numbers.iter_mut().zip(pages.iter().flatten()) {
        *number = map.index().checked_sub(1)?;
    }
    // SAFETY: the caller's word; who opens a group that is read so has the handler of SIGSEGV installed. The kernel changes the leader's
    // page whenever it changes which counters the group's events have: if its number is the same before and after, they are those that
    // the events' pages named.
    let read = unsafe { slots_and_metrics::<MARK>(page, rseq, sequence, numbers) }?;
    // Without a descriptor a signal handler may have run in between: then SLOTS has moved on, by more than the readings take.
    let beside = pages.iter().flatten().count() as u64;
    let again = if beside == 0 { read.counter[0] } else { read.again };
    if rseq.is_none() && again.wrapping_sub(read.slots) > SKID_SLOTS + beside * SKID_SLOTS / 4 {
        return None;
    }
    let mut counters = [PlainCounter::default(); MOST_MOVED];
    for (k, map) in pages.iter().flatten().enumerate() {
        // SAFETY: the page of a plain event, which is mapped as long as the group is.
        counters[k] = unsafe { plain_base(map.page(), read.counter[k]) }
            .filter(|counter| counter.number == numbers[k])?;
    }
    Some((Registers { slots: RawSlots(read.slots), metrics: RawMetrics(read.metrics) }, counters))
}

/// A snapshot for the paths that can take their time. `map` is of a SLOTS event, with PERF_METRICS, of the calling thread,
/// for which RDPMC was granted, and `page` what it said right now. None if the counters are not on this CPU, or were taken
/// away meanwhile.
pub(crate) fn snapshot<M: Mapping>(
    map: &M,
    page: &PageSnapshot,
    beside: &[Option<M>; MOST_MOVED],
    rseq: Option<*mut u64>,
    known: Times,
) -> Option<Snapshot> {
    if page.index != SLOTS_INDEX {
        return None;
    }
    let clock = clock_of(page, known);
    let (tsc, ns) = clock_now(&clock);
    // SAFETY: the page is mapped and RDPMC was granted; groups on hybrid CPUs come with a descriptor.
    let (registers, beside) = unsafe { registers_and(map.page(), rseq, page.sequence, beside) }?;
    if map.sequence() != page.sequence {
        return None; // (the counters' pages were read behind the counters)
    }
    let pace = if clock.scale == 0 { tsc } else { clock.zero.enabled.wrapping_add(ns) };
    Some(Snapshot { registers, sequence: page.sequence, clock, ns, pace, beside })
}

/// At this snapshot of the leader's page. None: something came between.
pub(crate) fn undisturbed<'a, M: Mapping + 'a>(
    leader: &M,
    page: &PageSnapshot,
    pages: impl Iterator<Item = &'a M>,
    _: *mut u64,
    entry: &Entry,
    out: &mut CountersSnapshot,
) -> Option<()> {
    out.sequence = page.sequence;
    out.clock = clock_of(page, Times::default());
    out.ns = clock_now(&out.clock).1;
    let mut same = u64::from(page.sequence) == entry.raw.sequence;
    for (place, map) in pages.enumerate() {
        // SAFETY: pages of plain events, which are mapped as long as the group is.
        let counter = unsafe { plain_base(map.page(), entry.raw.counter[place]) }?;
        same &= counter.number == entry.numbers[place];
        out.counter[place] = counter;
    }
    out.goes_with_entry = same;
    (leader.sequence() == page.sequence).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_turns_cycles_into_nanoseconds_as_the_kernel_does() {
        for (mult, shift) in [(2_147_485_795u32, 31u16), (1 << 31, 31), (0x6aaa_aaab, 31), (699_050, 21)] {
            let scale = tsc_scale(mult, shift).unwrap();
            for tsc in [0u64, 12_345, 1 << 40, 0x000f_ffff_ffff_ffff] {
                let kernel = ((tsc as u128 * mult as u128) >> shift) as u64;
                assert_eq!(((tsc as u128 * scale as u128) >> 63) as u64, kernel, "{mult} {shift} {tsc}");
            }
        }
        assert_eq!(tsc_scale(u32::MAX, 16), None);
        assert_eq!(tsc_scale(1, 64), None);
    }
}
