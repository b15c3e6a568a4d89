//! td_decode_l1 and td_decode_l2, each compiled twice: for any x86-64, and for CPUs with AVX2, where it takes fewer
//! instructions; all that have PERF_METRICS have AVX2. Neither fuses multiplications and additions, so the results are the same
//! to the last bit.

use super::border::{at, check, guard, put};
use super::decode::earlier;
use crate::decode::{self, by_counters};
use crate::model;
use crate::sample::{L1, L2, Sample};
use crate::sys::floating::Floating;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the CPU has AVX2, as far as anybody has asked.
static AVX2: AtomicBool = AtomicBool::new(false);

/// Asks the CPU. td_open calls this, so that decoding samples of this process writes to no memory that threads share.
#[cfg(target_arch = "x86_64")]
pub fn prepare() {
    if std::arch::is_x86_feature_detected!("avx2") {
        AVX2.store(true, Ordering::Relaxed);
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn prepare() {}

/// Whether one of three pointers is NULL or misaligned, or where no program has memory: in one comparison.
#[inline(always)]
fn doubtful(one: usize, two: usize, three: usize) -> bool {
    const ALIGN: usize = align_of::<Sample>();
    const SIGN: usize = !(usize::MAX >> 1);
    let below = one.wrapping_sub(ALIGN) | two.wrapping_sub(ALIGN) | three.wrapping_sub(ALIGN);
    below & (SIGN | (ALIGN - 1)) != 0
}

/// A decoder of samples that go together at first sight: nothing in it can fail or panic.
macro_rules! twice {
    ($name:ident, $result:ty, $anyhow:ident, $decode:expr) => {
        mod $name {
            use super::*;

            /// # Safety
            /// The pointers point to what their types say, which are aligned.
            #[inline(always)]
            pub unsafe fn at_sight(from: *const Sample, to: *const Sample, out: *mut $result) -> c_int {
                #[cfg(target_arch = "x86_64")]
                if AVX2.load(Ordering::Relaxed) {
                    // SAFETY: `prepare` has seen that the CPU has AVX2; the pointers are the caller's.
                    return unsafe { with_avx2(from, to, out) };
                }
                // SAFETY: the caller's pointers.
                unsafe { without(from, to, out) }
            }

            /// # Safety
            /// The CPU has AVX2. As `at_sight`.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe extern "C" fn with_avx2(
                from: *const Sample,
                to: *const Sample,
                out: *mut $result,
            ) -> c_int {
                // SAFETY: the caller's pointers.
                unsafe { decode(from, to, out) }
            }

            /// # Safety
            /// As `at_sight`.
            #[inline(never)]
            unsafe extern "C" fn without(from: *const Sample, to: *const Sample, out: *mut $result) -> c_int {
                if !AVX2.load(Ordering::Relaxed) {
                    prepare();
                }
                // SAFETY: the caller's pointers.
                unsafe { decode(from, to, out) }
            }

            /// # Safety
            /// As `at_sight`.
            #[inline(always)]
            unsafe fn decode(from: *const Sample, to: *const Sample, out: *mut $result) -> c_int {
                let _floating = Floating::new();
                // SAFETY: what they point to is what the caller promises. `write` does not read what was there.
                unsafe {
                    match $decode(&*from, &*to) {
                        Some(result) => {
                            out.write(result);
                            0
                        }
                        None => $anyhow(from, to, out),
                    }
                }
            }
        }
    };
}

macro_rules! decoder {
    ($name:ident, $result:ty, $decode:ident, $anyhow:ident, $registers:ident: $of_registers:expr, $counters:ident: $of_counters:expr) => {
        /// What is between two samples, written to `out`.
        ///
        /// # Safety
        /// The pointers are NULL or point to what their types say.
        #[inline(always)]
        pub unsafe fn $name(from: *const Sample, to: *const Sample, out: *mut $result) -> c_int {
            if doubtful(from.addr(), to.addr(), out.addr()) {
                // SAFETY: the C caller's pointers.
                return unsafe { $anyhow(from, to, out) };
            }
            // SAFETY: none is NULL or misaligned, as checked; what they point to is what the C caller promises.
            unsafe {
                match model::has_sums((*to).base.model) {
                    false => $registers::at_sight(from, to, out),
                    true => $counters::at_sight(from, to, out),
                }
            }
        }

        twice!($registers, $result, $anyhow, $of_registers);
        twice!($counters, $result, $anyhow, $of_counters);

        /// Whatever the arguments are.
        ///
        /// # Safety
        /// The pointers are NULL or point to what their types say.
        #[inline(never)]
        unsafe extern "C" fn $anyhow(from: *const Sample, to: *const Sample, out: *mut $result) -> c_int {
            // SAFETY: the C caller's pointers, which are checked first.
            guard(|| unsafe {
                check(out, "out")?;
                let (from, to) = (earlier(from)?, at(to, "to")?);
                put(out, "out", || decode::$decode(from, to))
            })
        }
    };
}

decoder!(l1, L1, decode_l1, l1_anyhow, l1_of_registers: decode::l1_at_sight, l1_of_counters: by_counters::l1_at_sight);
decoder!(l2, L2, decode_l2, l2_anyhow, l2_of_registers: decode::l2_at_sight, l2_of_counters: by_counters::l2_at_sight);

const _: () = assert!(align_of::<Sample>() == 8 && align_of::<L1>() == 8 && align_of::<L2>() == 8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::{bits_1, bits_2, pairs};
    use crate::decode::{decode_l1, decode_l2};

    #[test]
    fn wider_registers_give_the_same_bits() {
        for (from, to) in pairs() {
            let (mut out_1, mut out_2) = (L1::default(), L2::default());
            // SAFETY: all four are live variables of their types.
            let codes = unsafe { (l1(&from, &to, &mut out_1), l2(&from, &to, &mut out_2)) };
            match decode_l1(Some(&from), &to) {
                Ok(l1) => assert_eq!((codes.0, bits_1(&out_1)), (0, bits_1(&l1))),
                Err(error) => assert_eq!((codes.0, bits_1(&out_1)), (error.code(), [0; 8])),
            }
            match decode_l2(Some(&from), &to) {
                Ok(l2) => assert_eq!((codes.1, bits_2(&out_2)), (0, bits_2(&l2))),
                Err(error) => assert_eq!((codes.1, bits_2(&out_2)), (error.code(), [0; 12])),
            }
        }
    }
}
