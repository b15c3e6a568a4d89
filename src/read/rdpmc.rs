//! The read path: no lock, no allocation, no system call.
//!
//! The control page's sequence number tells when the kernel took the counters away or gave them back
//! between the first load and the last; its index tells whether they count for this thread on this CPU.
//! Its `offset` is never used: the driver does not keep it for these events (kernel-facts C.3).

use super::{SLOTS_INDEX, Snapshot};
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::{Base, Sample};
use crate::sys::Mapping;
use crate::sys::page::{self, Look, Page};
use crate::sys::rdpmc::{METRICS, SLOTS, rdpmc, rdtsc};
use crate::sys::slot::Zeroable;
use crate::sys::thread;
use std::cell::Cell;
use std::ptr::{addr_of, read_volatile};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a reading needs, in the order it needs it. It lives in memory that a forked child finds zeroed.
#[repr(C)]
pub(crate) struct Hot {
    /// The thread whose readings may come straight from the registers; 0 while nobody's may.
    pub owner: AtomicU64,
    /// Not 0: the memory is as the parent left it.
    pub present: AtomicU64,
    pub page: Cell<*const Page>,
    /// See `tsc_scale`.
    pub scale: Cell<u64>,
    /// SLOTS at the last reading of this window: if it goes back, somebody else reset the registers.
    pub last: Cell<u64>,
    /// Slots of the period before this window.
    pub slots: Cell<u64>,
    /// Times when the period began.
    pub enabled: Cell<u64>,
    pub running: Cell<u64>,
    /// `size` and `flags` of samples.
    pub head: Cell<[u32; 2]>,
    pub base: Cell<Base>,
}

impl Default for Hot {
    fn default() -> Hot {
        // SAFETY: see below.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: numbers, and a raw pointer.
unsafe impl Zeroable for Hot {}

/// A multiplier that turns the time-stamp counter into nanoseconds in the upper 65 bits of the product,
/// one more than a register's: so that a clock of down to half a gigahertz fits.
fn tsc_scale(mult: u32, shift: u16) -> Option<u64> {
    let up = 63u32.checked_sub(shift.into())?;
    u64::try_from(u128::from(mult) << up).ok()
}

/// One consistent look at the registers: the values, the sequence number under which they hold, and the
/// clock. None if the counters are not on this CPU, or were taken away meanwhile.
///
/// # Safety
/// `page` is the mapped control page of a SLOTS event of a group with PERF_METRICS, for which RDPMC was
/// granted, of the thread that calls.
#[inline(always)]
unsafe fn look(page: *const Page, scale: u64) -> Option<(u64, u64, u32, u64, u64)> {
    // SAFETY: the page is mapped; the kernel changes it at any time, hence volatile. The index says that
    // both registers exist on this CPU and count for this thread.
    unsafe {
        let sequence = read_volatile(addr_of!((*page).lock));
        if read_volatile(addr_of!((*page).index)) != SLOTS_INDEX {
            return None;
        }
        let slots = rdpmc(SLOTS);
        let metrics = rdpmc(METRICS);
        let since = ((u128::from(rdtsc()) * u128::from(scale)) >> 63) as u64;
        let since = since.wrapping_add(read_volatile(addr_of!((*page).time_offset)));
        let enabled = since.wrapping_add(read_volatile(addr_of!((*page).time_enabled)));
        let running = since.wrapping_add(read_volatile(addr_of!((*page).time_running)));
        (read_volatile(addr_of!((*page).lock)) == sequence)
            .then_some((slots, metrics, sequence, enabled, running))
    }
}

/// The multiplier for a page, 0 if it gives no clock.
fn scale_of(page: Look) -> u64 {
    if page.time { tsc_scale(page.time_mult, page.time_shift).unwrap_or(0) } else { 0 }
}

/// A snapshot for the paths that can take their time. `map` is of a SLOTS event of the calling thread.
pub(crate) fn snapshot(map: &impl Mapping) -> Option<Snapshot> {
    let told = map.look();
    if !told.rdpmc {
        return None;
    }
    // SAFETY: the page is mapped and RDPMC was granted for it.
    let (slots, metrics, sequence, time_enabled, time_running) = unsafe { look(map.page(), scale_of(told)) }?;
    let registers = Registers { slots: RawSlots(slots), metrics: RawMetrics(metrics) };
    Some(Snapshot { registers, sequence, time_enabled, time_running })
}

impl Hot {
    /// Lets `owner` read under `page` from now on. Returns whether the page gives a clock.
    pub fn attach(&self, page: *const Page, owner: u64) -> bool {
        // SAFETY: the page is that of the handle's group, which outlives its time in here.
        self.scale.set(scale_of(unsafe { page::look(page) }));
        self.page.set(page);
        self.owner.store(owner, Ordering::Relaxed);
        self.scale.get() != 0
    }

    /// Sends all readings to the slow path.
    pub fn detach(&self) {
        self.owner.store(0, Ordering::Relaxed);
    }

    /// The steady state: fills in `out` if this thread owns the registers and they count now.
    #[inline(always)]
    pub fn read(&self, out: &mut Sample) -> bool {
        if self.owner.load(Ordering::Relaxed) != thread::current() {
            return false;
        }
        // SAFETY: `attach` was given the page with this owner, and `detach` comes before its end.
        let Some((slots, metrics, sequence, enabled, running)) =
            (unsafe { look(self.page.get(), self.scale.get()) })
        else {
            return false;
        };
        if slots < self.last.get() {
            return false;
        }
        self.last.set(slots);
        [out.size, out.flags] = self.head.get();
        out.slots = self.slots.get().wrapping_add(slots);
        out.time_enabled_ns = enabled.wrapping_sub(self.enabled.get());
        out.time_running_ns = running.wrapping_sub(self.running.get());
        out.raw_slots = slots;
        out.raw_metrics = metrics;
        out.sequence = sequence;
        out.reserved = 0;
        out.base = self.base.get();
        true
    }
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
