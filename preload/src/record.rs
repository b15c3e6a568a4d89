//! A record of the table file, as the thread that writes to it sees it: safe for whoever has one.

use crate::arena;
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use topdown_table::{MOST_NODES_IN_TURNS, Measurement, NodeInTurns, Record, RecordedCounts, TableCore};

/// A record that a thread took, or one of its own in no table. Other threads read it only when the process ends, other processes as
/// the layout says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OwnRecord(NonNull<Record>);

/// Fields that the thread alone writes to, and that are no atomics.
macro_rules! cells {
    ($($field:ident: $kind:ty),* $(,)?) => {
        impl OwnRecord {
            $(
                #[doc = concat!("`Record::", stringify!($field), "`.")]
                #[inline(always)]
                pub fn $field(self) -> &'static Cell<$kind> {
                    // SAFETY: the record is mapped as long as the process is this one, and the field is of this type.
                    unsafe { &*(&raw mut (*self.0.as_ptr()).$field).cast() }
                }
            )*
        }
    };
}

cells! {
    parent: u32,
    thread: u32,
    tid: i32,
    before: u64,
    nested: u64,
    unended: u64,
    unbalanced: u64,
    missed: u64,
    split: u64,
    split_by: u32,
    seen_slots: u64,
    seen_ns: u64,
    core: TableCore,
    measurement: [Measurement; 2],
    counted: [RecordedCounts; 2],
}

impl OwnRecord {
    /// A record that nobody else writes to.
    ///
    /// # Safety
    /// The record stays as long as the process is this one.
    pub unsafe fn new(record: NonNull<Record>) -> OwnRecord {
        OwnRecord(record)
    }

    /// A record in no table; None: there is no memory.
    pub fn apart() -> Option<OwnRecord> {
        let words = arena::words(size_of::<Record>() / size_of::<usize>())?;
        Some(OwnRecord(NonNull::from(words).cast()))
    }

    #[inline(always)]
    fn shared(self) -> &'static Record {
        // SAFETY: as `cells!`. What is read by this reference is atomic, or not written to after `new`.
        unsafe { self.0.as_ref() }
    }

    /// `Record::kind`.
    pub fn kind(self) -> &'static AtomicU32 {
        &self.shared().kind
    }

    /// `Record::ended`.
    pub fn ended(self) -> &'static AtomicU32 {
        &self.shared().ended
    }

    /// `Record::current`.
    pub fn current(self) -> &'static AtomicU32 {
        &self.shared().current
    }

    /// `Record::counted_executions`.
    #[inline(always)]
    pub fn counted_executions(self) -> &'static AtomicU64 {
        &self.shared().counted_executions
    }

    /// `Record::counted_next`.
    #[inline(always)]
    pub fn counted_next(self) -> &'static AtomicU64 {
        &self.shared().counted_next
    }

    /// `Record::name`.
    pub fn name(self) -> &'static CStr {
        CStr::from_bytes_until_nul(&self.shared().name).unwrap_or_default()
    }

    /// `RecordedTurns::turns`, and `next`.
    pub fn turns(self) -> [&'static AtomicU64; 2] {
        let turns = &self.shared().turns;
        [&turns.turns, &turns.next]
    }

    /// `RecordedTurns::slots`.
    pub fn slots_in_turns(self) -> &'static Cell<f64> {
        // SAFETY: as `cells!`.
        unsafe { &*(&raw mut (*self.0.as_ptr()).turns.slots).cast() }
    }

    /// `RecordedTurns::pieces`.
    pub fn pieces_in_turns(self) -> &'static Cell<u64> {
        // SAFETY: as `cells!`.
        unsafe { &*(&raw mut (*self.0.as_ptr()).turns.pieces).cast() }
    }

    /// `RecordedTurns::node`.
    pub fn nodes_in_turns(self) -> &'static [Cell<NodeInTurns>] {
        // SAFETY: as `cells!`: a cell is laid out as what is in it.
        unsafe {
            &*(&raw mut (*self.0.as_ptr()).turns.node).cast::<[Cell<NodeInTurns>; MOST_NODES_IN_TURNS]>()
        }
    }

    /// Adds to a count.
    pub fn add(self, count: fn(OwnRecord) -> &'static Cell<u64>, more: u64) {
        let count = count(self);
        count.set(count.get().wrapping_add(more));
    }

    /// So many executions within others of their region will not end. (Some may have been the parent process's.)
    pub fn leave_nested(self, times: u64) {
        self.nested().set(self.nested().get().saturating_sub(times));
        self.add(OwnRecord::unended, times);
    }
}
