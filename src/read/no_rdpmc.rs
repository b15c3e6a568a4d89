//! Where there is no RDPMC: every reading takes the slow path.

use super::{CountersSnapshot, Snapshot};
use crate::sys::Mapping;
use crate::sys::page::PageSnapshot;
use crate::sys::page::Times;

/// Whether td_read has a fast path here.
pub(crate) const FAST: fn() -> bool = || false;

impl super::Shared {
    pub fn slots_only(&self) -> Option<crate::sample::SlotsOnly> {
        None
    }

    pub fn slots_only_or_zero(&self) -> crate::sample::SlotsOnly {
        crate::sample::SlotsOnly::default()
    }

    pub fn slots_only_into<T: super::HoldsSample>(&self, _: &mut T) -> bool {
        false
    }

    pub fn count_from<T: super::HoldsSample>(&self, _: &mut T, _: &crate::sample::Increments) -> bool {
        false
    }

    pub fn count_one<T: super::HoldsSample, R>(
        &self,
        _: &mut T,
        _: impl FnOnce(&mut T, &crate::sample::Increments) -> R,
    ) -> Option<R> {
        None
    }

    pub fn count_to<T: super::HoldsSample>(&self, _: &T, _: &mut crate::sample::Increments) -> bool {
        false
    }

    pub fn read(&self, _: &mut crate::sample::Sample) -> Result<(), crate::registers::Registers> {
        Err(Default::default())
    }
}

/// No counter is read.
pub(crate) fn entries(_: usize) -> [usize; 2] {
    [0; 2]
}

/// None.
pub(crate) fn counters_snapshot<'a, M: Mapping + 'a>(
    _: &'a M,
    _: impl Iterator<Item = &'a M>,
    _: *mut u64,
) -> Option<CountersSnapshot> {
    None
}

/// None.
pub(crate) fn snapshot(
    _: &impl Mapping,
    _: &PageSnapshot,
    _: Option<*mut u64>,
    _: Times,
) -> Option<Snapshot> {
    None
}
