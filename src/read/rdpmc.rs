//! The read path: no lock, no allocation, no system call.
//!
//! The control page's sequence number tells when the kernel took the counters away or gave them back
//! between the first load and the last; its index tells whether they count for this thread on this CPU.
//! Its `offset` is never used: the driver does not keep it for these events (kernel-facts C.3).

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
use std::arch::x86_64::{
    __m128i, _mm_add_epi64, _mm_load_si128, _mm_loadu_si128, _mm_set_epi64x, _mm_set1_epi64x,
    _mm_storeu_si128, _mm_sub_epi64,
};
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr::{addr_of, addr_of_mut, read_volatile};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// What a reading needs. It lives in memory that a forked child finds zeroed.
#[repr(C)]
pub(crate) struct Hot {
    /// The thread whose readings may come straight from the registers; 0 while nobody's may.
    pub owner: AtomicU64,
    /// Not 0: the memory is as the parent left it.
    pub present: AtomicU64,
    pub page: Cell<*const Page>,
    /// See `tsc_scale`.
    pub scale: Cell<u64>,
    pub head: Cell<Head>,
    /// When the period began.
    pub begun: Cell<Times>,
    pub base: Cell<Base>,
    /// SLOTS at the last reading of this window: if it goes back, somebody else reset the registers.
    pub last: Cell<u64>,
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

/// What one look at the registers saw, at one moment.
struct Seen {
    slots: u64,
    metrics: u64,
    sequence: u32,
    /// Times enabled and running.
    time: __m128i,
}

/// Looks at the registers under the page's sequence lock. None if they do not count for this thread on
/// this CPU, or were taken away meanwhile.
///
/// # Safety
/// `page` is the mapped control page of a SLOTS event of a group with PERF_METRICS, for which RDPMC was
/// granted, of the thread that calls.
#[inline(always)]
unsafe fn look(page: *const Page, scale: &Cell<u64>) -> Option<Seen> {
    // SAFETY: the page is mapped. The kernel changes it at any time, so each field is loaded once, at its
    // place: the assembler blocks in between could have changed it, for all that the compiler knows. The
    // index says that both registers exist on this CPU and count for this thread.
    unsafe {
        let sequence = read_volatile(addr_of!((*page).lock));
        compiler_fence(Ordering::SeqCst);
        if (*page).index != SLOTS_INDEX {
            return None;
        }
        // both times stand side by side in the page, and both move with the clock while the group counts
        let now = ((u128::from(rdtsc()) * u128::from(scale.get())) >> 63) as u64;
        let now = now.wrapping_add((*page).time_offset);
        let before = _mm_loadu_si128(addr_of!((*page).time_enabled).cast());
        let mut time = _mm_add_epi64(before, _mm_set1_epi64x(now as i64));
        // have it in its register now: RDPMC needs the others
        asm!("/* {0} */", inout(xmm_reg) time, options(nostack, preserves_flags));
        let slots = rdpmc(SLOTS);
        let metrics = rdpmc(METRICS);
        ((*page).lock == sequence).then_some(Seen { slots, metrics, sequence, time })
    }
}

/// The same times, as the rest of the library has them.
fn times(pair: __m128i) -> Times {
    // SAFETY: both are two words without padding.
    unsafe { std::mem::transmute::<__m128i, Times>(pair) }
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
    let seen = unsafe { look(map.page(), &Cell::new(scale_of(told))) }?;
    let registers = Registers { slots: RawSlots(seen.slots), metrics: RawMetrics(seen.metrics) };
    Some(Snapshot { registers, sequence: seen.sequence, time: times(seen.time) })
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
        let Some(seen) = (unsafe { look(self.page.get(), &self.scale) }) else {
            return false;
        };
        if seen.slots < self.last.get() {
            return false;
        }
        self.last.set(seen.slots);
        let out: *mut Sample = out;
        // SAFETY: out is a live sample; the pairs of words lie in it side by side, as checked below.
        unsafe {
            let head = _mm_load_si128(self.head.as_ptr().cast());
            _mm_storeu_si128(out.cast(), _mm_add_epi64(head, _mm_set_epi64x(seen.slots as i64, 0)));
            let begun = _mm_loadu_si128(self.begun.as_ptr().cast());
            _mm_storeu_si128(addr_of_mut!((*out).time_enabled_ns).cast(), _mm_sub_epi64(seen.time, begun));
            (*out).raw_slots = seen.slots;
            (*out).raw_metrics = seen.metrics;
            addr_of_mut!((*out).sequence).cast::<u64>().write_unaligned(seen.sequence.into());
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
    assert!(offset_of!(Page, time_running) == offset_of!(Page, time_enabled) + 8);
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
