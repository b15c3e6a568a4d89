//! The read path: no lock, no allocation, no system call.
//!
//! The control page's sequence number moves whenever the kernel takes the counters away or gives them
//! back. As long as it is the one at which `Hot::follow` last looked, the counters are this thread's on this
//! CPU and the clock runs from where it was; if it is the same before and after the registers are read,
//! both readings are of one stretch. Otherwise the slow path looks again. The page's `offset` is never
//! used: the driver does not keep it for these events (kernel-facts C.3).

use super::{Head, SLOTS_INDEX, Snapshot};
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::{Base, Sample};
use crate::sys::Mapping;
use crate::sys::page::{self, Look, Page};
use crate::sys::rdpmc::{METRICS, SLOTS, rdpmc, rdtsc};
use crate::sys::slot::Zeroable;
use crate::sys::thread;
use crate::window::Times;
use std::arch::asm;
use std::arch::x86_64::{_mm_add_epi64, _mm_load_si128, _mm_set_epi64x, _mm_set1_epi64x, _mm_storeu_si128};
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr::addr_of_mut;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// A sequence number that no page has at rest, when it is even: the counters were away.
const AWAY: u32 = u32::MAX;

/// What a reading needs. It lives in memory that a forked child finds zeroed.
#[repr(C)]
pub(crate) struct Hot {
    /// The thread whose readings may come straight from the registers; 0 while nobody's may.
    pub owner: AtomicU64,
    /// Not 0: the memory is as the parent left it.
    pub present: AtomicU64,
    page: Cell<*const Page>,
    /// The page's sequence number when it was last looked at, or `AWAY`.
    sequence: Cell<u32>,
    /// See `tsc_scale`.
    scale: Cell<u64>,
    /// SLOTS at the last reading of this window: if it goes back, somebody else reset the registers.
    pub last: Cell<u64>,
    pub head: Cell<Head>,
    /// Times of this period at clock zero, were the counters running since.
    time: Cell<Times>,
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

/// Nanoseconds of the clock.
#[inline(always)]
fn clock(scale: &Cell<u64>) -> u64 {
    let cycles = rdtsc();
    ((u128::from(cycles) * u128::from(scale.get())) >> 63) as u64
}

/// The multiplier for a page, 0 if it gives no clock.
fn scale_of(page: &Look) -> u64 {
    if page.clock { tsc_scale(page.time_mult, page.time_shift).unwrap_or(0) } else { 0 }
}

/// Times at clock zero, were the counters running since.
fn time_of(page: &Look) -> Times {
    Times {
        enabled: page.time.enabled.wrapping_add(page.time_offset),
        running: page.time.running.wrapping_add(page.time_offset),
    }
}

/// A snapshot for the paths that can take their time. `map` is of a SLOTS event, with PERF_METRICS, of the
/// calling thread. None if the counters are not on this CPU, or were taken away meanwhile.
pub(crate) fn snapshot(map: &impl Mapping) -> Option<Snapshot> {
    let page = map.look();
    if !page.rdpmc || page.index != SLOTS_INDEX {
        return None;
    }
    let now = clock(&Cell::new(scale_of(&page)));
    // SAFETY: RDPMC was granted, and the index says that both registers exist on this CPU and count for
    // this thread.
    let (slots, metrics) = unsafe { (rdpmc(SLOTS), rdpmc(METRICS)) };
    let time = time_of(&page);
    (map.sequence() == page.sequence).then_some(Snapshot {
        registers: Registers { slots: RawSlots(slots), metrics: RawMetrics(metrics) },
        sequence: page.sequence,
        time: Times { enabled: time.enabled.wrapping_add(now), running: time.running.wrapping_add(now) },
    })
}

impl Hot {
    /// Lets `owner` read under `page` from now on, in a period that began at `begun`. Returns whether the
    /// page gives a clock.
    pub fn attach(&self, page: *const Page, begun: Times, owner: u64) -> bool {
        self.page.set(page);
        let clock = self.follow(begun);
        self.owner.store(owner, Ordering::Relaxed);
        clock
    }

    /// Sends all readings to the slow path.
    pub fn detach(&self) {
        self.owner.store(0, Ordering::Relaxed);
        self.page.set(std::ptr::null());
    }

    /// Looks at the page after its sequence number has moved. Returns whether it gives a clock.
    pub fn follow(&self, begun: Times) -> bool {
        if self.page.get().is_null() {
            return true;
        }
        // SAFETY: `attach` was given the page, which is mapped until after `detach`.
        let page = unsafe { page::look(self.page.get()) };
        let away = page.index != SLOTS_INDEX;
        // a signal handler that reads meanwhile must not take the one without the other
        self.sequence.set(AWAY);
        compiler_fence(Ordering::SeqCst);
        self.scale.set(scale_of(&page));
        self.time.set(time_of(&page).since(begun));
        compiler_fence(Ordering::SeqCst);
        self.sequence.set(if away { AWAY } else { page.sequence });
        page.clock
    }

    /// The steady state: fills in `out` if this thread owns the registers and they count now.
    #[inline(always)]
    pub fn read(&self, out: &mut Sample) -> bool {
        if self.owner.load(Ordering::Relaxed) != thread::current() {
            return false;
        }
        let page = self.page.get();
        let sequence = self.sequence.get();
        // SAFETY: `attach` was given the page with this owner, and `detach` comes before its end. The kernel
        // changes it at any time, so the number is loaded anew: an assembler block in between could have
        // changed it, for all that the compiler knows.
        unsafe {
            if (*page).lock != sequence {
                return false;
            }
            let clock = _mm_set1_epi64x(clock(&self.scale) as i64);
            let mut time = _mm_add_epi64(clock, _mm_load_si128(self.time.as_ptr().cast()));
            // have it in its register now: RDPMC needs the others
            asm!("/* {0} */", inout(xmm_reg) time, options(nostack, preserves_flags));
            let slots = rdpmc(SLOTS);
            let metrics = rdpmc(METRICS);
            if (*page).lock != sequence || slots < self.last.get() {
                return false;
            }
            self.last.set(slots);

            let out: *mut Sample = out;
            let head = _mm_load_si128(self.head.as_ptr().cast());
            _mm_storeu_si128(out.cast(), _mm_add_epi64(head, _mm_set_epi64x(slots as i64, 0)));
            _mm_storeu_si128(addr_of_mut!((*out).time_enabled_ns).cast(), time);
            (*out).raw_slots = slots;
            (*out).raw_metrics = metrics;
            addr_of_mut!((*out).sequence).cast::<u64>().write_unaligned(sequence.into());
            (*out).base = self.base.get();
        }
        true
    }
}

/// `read` writes these in pairs.
const _: () = {
    assert!(offset_of!(Sample, slots) == offset_of!(Head, slots) && size_of::<Head>() == 16);
    assert!(offset_of!(Sample, time_running_ns) == offset_of!(Sample, time_enabled_ns) + 8);
    assert!(offset_of!(Sample, reserved) == offset_of!(Sample, sequence) + 4);
    assert!(offset_of!(Times, running) == 8 && offset_of!(Hot, time) % 16 == 0);
};

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
