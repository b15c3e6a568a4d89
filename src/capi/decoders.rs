//! Decoding where it is compiled twice: for any x86-64, and for one with AVX2, as all have that have PERF_METRICS: fewer
//! instructions. No instruction rounds differently (none is fused), so the results are the same to the last bit.

use crate::decode::{l1_between, l2_between};
use crate::error::Result;
use crate::sample::{L1, L2, Sample};
use std::ffi::c_int;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

macro_rules! decoder {
    ($name:ident, $result:ty, $decode:ident, $with_avx2:ident) => {
        /// What is between two samples, written to `out`.
        ///
        /// # Safety
        /// `out` points to memory for it.
        #[inline(always)]
        pub unsafe fn $name(from: &Sample, to: &Sample, out: *mut $result) -> Result<c_int> {
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the CPU has AVX2; `out` is by the caller's word.
                return unsafe { $with_avx2(from, to, out) };
            }
            let result = $decode(from, to)?;
            // SAFETY: by the caller's word. `write` does not read what was there.
            unsafe { out.write(result) };
            Ok(0)
        }

        /// # Safety
        /// As above, on a CPU with AVX2.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn $with_avx2(from: &Sample, to: &Sample, out: *mut $result) -> Result<c_int> {
            let result = $decode(from, to)?;
            // SAFETY: by the caller's word. `write` does not read what was there.
            unsafe { out.write(result) };
            Ok(0)
        }
    };
}

decoder!(l1, L1, l1_between, l1_with_avx2);
decoder!(l2, L2, l2_between, l2_with_avx2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::{bits_1, bits_2, pairs};

    #[test]
    fn wider_registers_give_the_same_bits() {
        for (from, to) in pairs() {
            let (mut out_1, mut out_2) = (L1::default(), L2::default());
            // SAFETY: both are live.
            let codes = unsafe { (l1(&from, &to, &mut out_1), l2(&from, &to, &mut out_2)) };
            assert_eq!(
                codes.0.err(),
                l1_between(&from, &to).map(|l1| assert_eq!(bits_1(&l1), bits_1(&out_1))).err()
            );
            assert_eq!(
                codes.1.err(),
                l2_between(&from, &to).map(|l2| assert_eq!(bits_2(&l2), bits_2(&out_2))).err()
            );
        }
    }
}
