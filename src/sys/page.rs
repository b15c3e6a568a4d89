//! The control page of an event: what the kernel tells a reader in user space without a system call.

use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::ptr::{addr_of, read_volatile};
use std::sync::atomic::{Ordering, compiler_fence};

/// struct perf_event_mmap_page of include/uapi/linux/perf_event.h.
pub(crate) type Page = perf_event_mmap_page;

const CAP_BIT0_IS_DEPRECATED: u64 = 1 << 1;
const CAP_USER_RDPMC: u64 = 1 << 2;
const CAP_USER_TIME: u64 = 1 << 3;

/// The parts of a page that do not matter for a single reading, taken consistently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Counter number for RDPMC plus one; 0 while the event is not on this CPU.
    pub index: u32,
    /// RDPMC was granted when the event was opened.
    pub rdpmc: bool,
    /// The fields that turn the time-stamp counter into times are valid.
    pub time: bool,
    pub time_mult: u32,
    pub time_shift: u16,
}

/// Reads a page under its sequence lock.
///
/// # Safety
/// `page` points to a mapped control page.
pub(crate) unsafe fn look(page: *const Page) -> Look {
    loop {
        // SAFETY: the caller vouches for the page; the kernel changes it at any time, hence volatile.
        let (lock, look) = unsafe {
            let lock = read_volatile(addr_of!((*page).lock));
            compiler_fence(Ordering::Acquire);
            let capabilities = read_volatile(addr_of!((*page).__bindgen_anon_1.capabilities));
            let told = capabilities & CAP_BIT0_IS_DEPRECATED != 0;
            let look = Look {
                index: read_volatile(addr_of!((*page).index)),
                rdpmc: told && capabilities & CAP_USER_RDPMC != 0,
                time: told && capabilities & CAP_USER_TIME != 0,
                time_mult: read_volatile(addr_of!((*page).time_mult)),
                time_shift: read_volatile(addr_of!((*page).time_shift)),
            };
            compiler_fence(Ordering::Acquire);
            (lock, look)
        };
        // SAFETY: as above.
        if unsafe { sequence(page) } == lock {
            return look;
        }
    }
}

/// The page's sequence number.
///
/// # Safety
/// `page` points to a mapped control page.
pub(crate) unsafe fn sequence(page: *const Page) -> u32 {
    // SAFETY: the caller vouches for the page.
    unsafe { read_volatile(addr_of!((*page).lock)) }
}
