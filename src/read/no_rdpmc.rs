//! Where there is no RDPMC: every reading takes the slow path.

use super::{Head, Snapshot};
use crate::sample::{Base, Sample};
use crate::sys::Mapping;
use crate::sys::page::Page;
use crate::window::Times;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;

/// As in `rdpmc.rs`, without an owner.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Hot {
    pub present: AtomicU64,
    pub last: Cell<u64>,
    pub head: Cell<Head>,
    pub base: Cell<Base>,
}

// SAFETY: numbers only.
unsafe impl crate::sys::slot::Zeroable for Hot {}

impl Hot {
    pub fn attach(&self, _: *const Page, _: *mut u64, _: Times, _: Times, _: u64) -> bool {
        true
    }

    pub fn detach(&self) {}

    pub fn leave(&self) {}

    pub fn follow(&self, _: Times, _: Times) -> bool {
        true
    }

    pub fn read(&self, _: &mut Sample) -> bool {
        false
    }
}

/// None.
pub(crate) fn snapshot(_: &impl Mapping, _: Option<*mut u64>, _: Times) -> Option<Snapshot> {
    None
}
