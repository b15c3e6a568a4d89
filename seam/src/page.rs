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

/// The width of plain counters: of all that Intel and AMD make now.
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
}

const CAP_BIT0_IS_DEPRECATED: u64 = 1 << 1;
const CAP_USER_RDPMC: u64 = 1 << 2;
const CAP_USER_TIME: u64 = 1 << 3;

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
