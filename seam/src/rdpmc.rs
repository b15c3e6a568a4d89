//! Instructions that ask the CPU directly.

use std::arch::asm;

/// RDPMC number of SLOTS, fixed counter 3 (kernel-facts C.1).
pub const SLOTS: u32 = 0x4000_0003;
/// RDPMC number of PERF_METRICS.
pub const METRICS: u32 = 0x2000_0000;

/// The time-stamp counter.
#[inline(always)]
pub fn rdtsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: RDTSC is permitted to every Linux program that has not asked for the contrary.
    unsafe {
        asm!("rdtsc", lateout("rax") low, lateout("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}
