//! Sixteen bytes at once, as SSE2 has them.

use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8};
use std::ffi::c_char;

/// Sixteen bytes.
pub type Bytes = __m128i;

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
        std::arch::asm!("movdqu {}, xmmword ptr [{}]", out(xmm_reg) bytes, in(reg) name,
            options(nostack, preserves_flags, readonly, pure));
        bytes
    }
}

/// 0xff in each byte that is the same in both, else 0.
#[inline(always)]
pub fn equal(one: Bytes, other: Bytes) -> Bytes {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_cmpeq_epi8(one, other) }
}

/// A bit for each byte.
#[inline(always)]
pub fn ones(bytes: Bytes) -> u32 {
    // SAFETY: as above.
    unsafe { _mm_movemask_epi8(bytes) as u32 }
}
