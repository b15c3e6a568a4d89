//! Where counters are not read in user space: totals come from read(2).

use super::page::Page;

/// What [`total`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// The event's total.
    Known(u64),
    /// The instruction faulted.
    Faulted,
    /// It is not known here.
    Unknown,
}

/// Negative: not known.
///
/// # Safety
/// None.
#[inline(always)]
pub unsafe fn plain_total<const MARK: u32>(_: *const Page) -> i64 {
    -1
}

/// Not known.
///
/// # Safety
/// None.
pub unsafe fn total<const MARK: u32>(_: *const Page) -> Total {
    Total::Unknown
}

/// No event's counter is read.
pub fn is_plain(_: u32, _: u64) -> bool {
    false
}
