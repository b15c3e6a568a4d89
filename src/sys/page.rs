//! The control page of an event: what the kernel tells a reader in user space without a system call.

use crate::window::Times;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::ptr::{addr_of, read_volatile};
use std::sync::atomic::{Ordering, compiler_fence};

/// struct perf_event_mmap_page of include/uapi/linux/perf_event.h.
pub(crate) type Page = perf_event_mmap_page;

const CAP_BIT0_IS_DEPRECATED: u64 = 1 << 1;
const CAP_USER_RDPMC: u64 = 1 << 2;
const CAP_USER_TIME: u64 = 1 << 3;

/// What a page says, taken at one sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub sequence: u32,
    /// Counter number for RDPMC plus one; 0 while the event is not on this CPU.
    pub index: u32,
    /// RDPMC was granted when the event was opened.
    pub rdpmc: bool,
    /// When the kernel wrote the page.
    pub time: Times,
    /// The following three turn the time-stamp counter into what has passed since.
    pub clock: bool,
    pub time_mult: u32,
    pub time_shift: u16,
    pub time_offset: u64,
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
