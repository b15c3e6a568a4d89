//! The floating-point environment of the thread is the program's: its flags, which exceptions trap, how results are rounded.

/// As long as it lives the calling thread has the environment that programs begin with; afterwards its own is as it was.
pub struct Floating(FloatingControl);

#[cfg(target_arch = "x86_64")]
type FloatingControl = u32;
#[cfg(target_arch = "aarch64")]
type FloatingControl = (u64, u64);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type FloatingControl = ();

impl Floating {
    /// From now on.
    #[allow(clippy::new_without_default)] // it does something
    #[inline]
    pub fn new() -> Floating {
        let own = environment();
        set(&FIRST);
        Floating(own)
    }
}

impl Drop for Floating {
    #[inline]
    fn drop(&mut self) {
        set(&self.0);
    }
}

/// What a program begins with: nothing is flagged, nothing traps, and what is rounded is rounded to the nearest.
#[cfg(target_arch = "x86_64")]
const FIRST: FloatingControl = 0x1f80;
#[cfg(target_arch = "aarch64")]
const FIRST: FloatingControl = (0, 0);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const FIRST: FloatingControl = ();

/// MXCSR (what x87's registers have is used by nobody here).
#[cfg(target_arch = "x86_64")]
#[inline]
fn environment() -> FloatingControl {
    let mut own = 0;
    // SAFETY: it stores four bytes in the variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut own, options(nostack, preserves_flags)) };
    own
}
#[cfg(target_arch = "x86_64")]
#[inline]
fn set(to: &FloatingControl) {
    // SAFETY: a value that MXCSR had, or begins with. (Not `pure`: nothing is moved from one side of it to the other.)
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) to, options(nostack, preserves_flags)) };
}

/// FPCR and FPSR.
#[cfg(target_arch = "aarch64")]
#[inline]
fn environment() -> FloatingControl {
    let (control, status): (u64, u64);
    // SAFETY: it reads two registers.
    unsafe {
        std::arch::asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) status, options(nostack, preserves_flags))
    };
    (control, status)
}
#[cfg(target_arch = "aarch64")]
#[inline]
fn set((control, status): &FloatingControl) {
    // SAFETY: values that the registers had, or begin with.
    unsafe {
        std::arch::asm!("msr fpcr, {}", "msr fpsr, {}", in(reg) *control, in(reg) *status, options(nostack, preserves_flags))
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn environment() -> FloatingControl {}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set(_: &FloatingControl) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn what_is_computed_meanwhile_leaves_no_flag() {
        let third = || black_box(1.0_f64) / black_box(3.0);
        let before = environment();
        let floating = Floating::new();
        assert_eq!(environment(), FIRST);
        black_box(third());
        assert_ne!(environment(), FIRST, "one third is inexact");
        drop(floating);
        assert_eq!(environment(), before);
    }
}
