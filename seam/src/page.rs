//! The control page of an event: what the kernel tells a reader in user space without a system call.

use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::ptr::{addr_of, read_volatile};
use std::sync::atomic::{Ordering, compiler_fence};

/// struct perf_event_mmap_page of include/uapi/linux/perf_event.h.
pub type Page = perf_event_mmap_page;

/// What the control page of SLOTS shows while it counts: its RDPMC number plus one.
pub const SLOTS_INDEX: u32 = 0x4000_0004;
/// The same of every event of PERF_METRICS.
pub const METRICS_INDEX: u32 = 0x2000_0001;

/// The width of general-purpose counters: of all that Intel and AMD make now.
pub const PLAIN_WIDTH: u16 = 48;

/// What the total of a plain event is made of, for as long as its counter stays with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainCounter {
    /// The counter's number for RDPMC.
    pub number: u32,
    /// What the counter said.
    pub raw: u64,
    /// The total less the counter.
    pub base: u64,
    /// How much it can still count before the kernel, told by an interrupt, changes it.
    pub left: u64,
}

const CAP_BIT0_IS_DEPRECATED: u64 = 1 << 1;
const CAP_USER_RDPMC: u64 = 1 << 2;
const CAP_USER_TIME: u64 = 1 << 3;
const CAP_USER_TIME_SHORT: u64 = 1 << 5;

/// Nanoseconds that a group was enabled, and of those that it was counting.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// While which it was enabled.
    pub enabled: u64,
    /// While which it was counting.
    pub running: u64,
}

impl Times {
    /// What has passed since; nothing, if that was later.
    pub fn since(self, begun: Times) -> Times {
        let passed = |now: u64, begun: u64| (now.wrapping_sub(begun) as i64).max(0) as u64;
        Times { enabled: passed(self.enabled, begun.enabled), running: passed(self.running, begun.running) }
    }

    /// The later of each.
    pub fn latest(self, other: Times) -> Times {
        Times { enabled: self.enabled.max(other.enabled), running: self.running.max(other.running) }
    }
}

/// What a page says, taken at one sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageSnapshot {
    /// The page's sequence number.
    pub sequence: u32,
    /// Counter number for RDPMC plus one; 0 while the event is not on this CPU.
    pub index: u32,
    /// When the kernel wrote the page.
    pub time: Times,
    /// Whether the following three turn the time-stamp counter into what has passed since.
    pub clock: bool,
    /// Factor.
    pub time_mult: u32,
    /// The product is shifted right by so many bits.
    pub time_shift: u16,
    /// Nanoseconds that are added.
    pub time_offset: u64,
}

/// Reads a page under its sequence lock; None if it moved each time.
///
/// # Safety
/// `page` points to a mapped control page.
#[inline(always)]
pub unsafe fn snapshot(page: *const Page) -> Option<PageSnapshot> {
    let mut tries = 0;
    loop {
        // SAFETY: the caller vouches for the page.
        if let Some(snapshot) = unsafe { snapshot_once(page) } {
            return Some(snapshot);
        }
        tries = moved(tries)?;
    }
}

/// How often it has moved by now; None if that is enough. Twice in a row is rare, unless the thread is single-stepped: then a
/// page moves at each instruction. (Out of line, or the compiler unrolls the loop.)
#[cold]
#[inline(never)]
fn moved(tries: u32) -> Option<u32> {
    (tries < 3).then_some(tries + 1)
}

#[inline(always)]
unsafe fn snapshot_once(page: *const Page) -> Option<PageSnapshot> {
    // SAFETY: the caller vouches for the page; the kernel changes it at any time, hence volatile.
    unsafe {
        let lock = sequence(page);
        compiler_fence(Ordering::Acquire);
        let capabilities = read_volatile(addr_of!((*page).__bindgen_anon_1.capabilities));
        let told = capabilities & CAP_BIT0_IS_DEPRECATED != 0;
        let snapshot = PageSnapshot {
            index: index(page),
            sequence: lock,
            time: Times {
                enabled: read_volatile(addr_of!((*page).time_enabled)),
                running: read_volatile(addr_of!((*page).time_running)),
            },
            clock: told && capabilities & CAP_USER_TIME != 0,
            time_mult: read_volatile(addr_of!((*page).time_mult)),
            time_shift: read_volatile(addr_of!((*page).time_shift)),
            time_offset: read_volatile(addr_of!((*page).time_offset)),
        };
        compiler_fence(Ordering::Acquire);
        (sequence(page) == lock).then_some(snapshot)
    }
}

/// Whether RDPMC was granted when the event was opened: that does not change.
///
/// # Safety
/// `page` points to a mapped control page.
#[inline]
pub unsafe fn grants_rdpmc(page: *const Page) -> bool {
    const GRANTED: u64 = CAP_BIT0_IS_DEPRECATED | CAP_USER_RDPMC;
    // SAFETY: the caller vouches for the page.
    unsafe { read_volatile(addr_of!((*page).__bindgen_anon_1.capabilities)) & GRANTED == GRANTED }
}

/// Counter number for RDPMC plus one, of this moment; 0 while the event is not on this CPU.
///
/// # Safety
/// `page` points to a mapped control page.
#[inline]
pub unsafe fn index(page: *const Page) -> u32 {
    // SAFETY: the caller vouches for the page.
    unsafe { read_volatile(addr_of!((*page).index)) }
}

/// The page's sequence number.
///
/// # Safety
/// `page` points to a mapped control page.
#[inline]
pub unsafe fn sequence(page: *const Page) -> u32 {
    // SAFETY: the caller vouches for the page.
    unsafe { read_volatile(addr_of!((*page).lock)) }
}

/// The total of a page's offset and a counter of so many bits (1 to 64), which the kernel starts below zero.
///
/// As the kernel's header has it, the counter is brought to 64 bits with its sign. That is what the offset is made for
/// when counting starts; when the page is written anew while counting goes on (PERF_EVENT_IOC_RESET), it is made for a
/// counter without sign.
#[inline]
pub fn total(offset: u64, raw: u64, width: u16) -> u64 {
    let unused = 64u32.wrapping_sub(width.into());
    let signed = (raw.wrapping_shl(unused) as i64).wrapping_shr(unused) as u64;
    let total = offset.wrapping_add(signed);
    if (total as i64) < 0 { total.wrapping_add(1u64.checked_shl(width.into()).unwrap_or(0)) } else { total }
}

/// How the counter in which user space sees the time becomes nanoseconds, where it is narrower than 64 bits (cap_user_time_short):
/// it is what this says at the moment of `cycles`, and from there on counts within `mask`.
///
/// # Safety
/// `page` points to a mapped control page.
#[inline]
pub unsafe fn short_clock(page: *const Page) -> Option<(u64, u64)> {
    // SAFETY: the caller vouches for the page, which the kernel changes at any time, hence volatile.
    unsafe {
        let capabilities = read_volatile(addr_of!((*page).__bindgen_anon_1.capabilities));
        let clock =
            (read_volatile(addr_of!((*page).time_cycles)), read_volatile(addr_of!((*page).time_mask)));
        (capabilities & CAP_USER_TIME_SHORT != 0).then_some(clock)
    }
}

/// How many bits counters have.
///
/// # Safety
/// `page` points to a mapped control page.
#[inline]
pub unsafe fn width(page: *const Page) -> u16 {
    // SAFETY: the caller vouches for the page.
    unsafe { read_volatile(addr_of!((*page).pmc_width)) }
}

/// What the event has counted, less its counter.
///
/// # Safety
/// `page` points to a mapped control page.
#[inline]
pub unsafe fn offset(page: *const Page) -> u64 {
    // SAFETY: the caller vouches for the page.
    unsafe { read_volatile(addr_of!((*page).offset)) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_and_counter_make_the_total() {
        for width in [32, 40, 48, 64] {
            let mask = u64::MAX >> (64 - width);
            let half = 1u64 << (width - 1);
            // started at minus half, after 7 had been counted before
            let at = |counted: u64| total(7 + half, half.wrapping_neg().wrapping_add(counted) & mask, width);
            for counted in [0, 1, 1 << 20, half - 1, half, half + 5] {
                assert_eq!(at(counted), 7 + counted);
            }
        }
        // more than a counter holds
        assert_eq!(total((1 << 60) + 10, 0xffff_ffff_fffe, 48), (1 << 60) + 8);
        // reset to 3 while it stood there
        let stood = 0x8000_0000_1234;
        let offset = 3u64.wrapping_sub(stood);
        for counted in [0, 1, 1 << 40] {
            assert_eq!(total(offset, stood + counted, 48), 3 + counted);
        }
    }
}
