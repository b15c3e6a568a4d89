//! Sixteen bytes at once, as NEON has them.

use std::arch::aarch64::{uint8x16_t, vaddv_u8, vandq_u8, vceqq_u8, vget_high_u8, vget_low_u8, vld1q_u8};
use std::ffi::c_char;

/// Sixteen bytes.
pub type Bytes = uint8x16_t;

/// What is beyond the end of a string is of the same page, and does not count; read by assembler, for which that is no
/// fault.
///
/// # Safety
/// Sixteen bytes from there on can be read.
#[inline(always)]
pub unsafe fn bytes_at(name: *const c_char) -> Bytes {
    // SAFETY: the caller's word.
    unsafe {
        let bytes: Bytes;
        std::arch::asm!("ldr {:q}, [{}]", out(vreg) bytes, in(reg) name,
            options(nostack, preserves_flags, readonly, pure));
        bytes
    }
}

/// 0xff in each byte that is the same in both, else 0.
#[inline(always)]
pub fn equal(one: Bytes, other: Bytes) -> Bytes {
    // SAFETY: NEON is part of AArch64 as Linux's programs have it.
    unsafe { vceqq_u8(one, other) }
}

/// A bit for each byte, of bytes that are 0xff or 0.
#[inline(always)]
pub fn ones(bytes: Bytes) -> u32 {
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: as above; sixteen bytes are read of sixteen.
    unsafe {
        let bits = vandq_u8(bytes, vld1q_u8(BITS.as_ptr()));
        let half = |eight| u32::from(vaddv_u8(eight));
        half(vget_low_u8(bits)) | half(vget_high_u8(bits)) << 8
    }
}
