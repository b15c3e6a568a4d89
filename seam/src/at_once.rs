//! Additions that a signal handler of the same thread cannot come between: a handler that adds to the same number, or leaves by
//! siglongjmp, finds each addition done or not begun (but that of a number that is full). No other thread is kept out.

/// Adds to a number, which wraps.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn add(all: &mut u64, more: u64) {
    // SAFETY: one instruction on a number that is borrowed.
    unsafe {
        std::arch::asm!("add qword ptr [{}], {}", in(reg) &raw mut *all, in(reg) more, options(nostack))
    };
}

/// Adds to a number, which wraps.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn add(all: &mut u64, more: u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    // SAFETY: a number that is borrowed, and aligned as an AtomicU64.
    unsafe { AtomicU64::from_ptr(all) }.fetch_add(more, Ordering::Relaxed);
}

/// Adds one to a number, which wraps.
#[inline(always)]
pub fn add_one(all: &mut u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as `add`.
    unsafe {
        std::arch::asm!("inc qword ptr [{}]", in(reg) &raw mut *all, options(nostack))
    };
    #[cfg(not(target_arch = "x86_64"))]
    add(all, 1);
}

/// Adds to a number that may hold anything: one that is full stays so.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn add_saturating(all: &mut u64, more: u64) {
    // SAFETY: as `add`.
    unsafe {
        std::arch::asm!(
            "add qword ptr [{all}], {more}",
            "jnc 2f",
            "mov qword ptr [{all}], -1",
            "2:",
            all = in(reg) &raw mut *all,
            more = in(reg) more,
            options(nostack)
        );
    }
}

/// Adds to a number that may hold anything: one that is full stays so.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn add_saturating(all: &mut u64, more: u64) {
    if all.checked_add(more).is_some() { add(all, more) } else { *all = u64::MAX }
}

/// Adds to a number with a fraction.
#[inline]
pub fn add_float(all: &mut f64, more: f64) {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    // SAFETY: a number of 8 bytes that is borrowed, and aligned as an AtomicU64.
    let all = unsafe { AtomicU64::from_ptr((&raw mut *all).cast()) };
    let added = |bits| Some((f64::from_bits(bits) + more).to_bits());
    let _ = all.fetch_update(Relaxed, Relaxed, added); // (never refused)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sums() {
        let (mut whole, mut part) = (u64::MAX - 1, 0.5);
        super::add(&mut whole, 4);
        super::add_one(&mut whole);
        super::add_float(&mut part, 0.25);
        assert_eq!((whole, part), (3, 0.75));
        super::add_saturating(&mut whole, 4);
        assert_eq!(whole, 7);
        super::add_saturating(&mut whole, u64::MAX - 6);
        assert_eq!(whole, u64::MAX);
    }
}
