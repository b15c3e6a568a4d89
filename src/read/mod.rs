//! From counters to one snapshot: by RDPMC (`rdpmc`), by read(2) (`crate::group`), or simulated.

#[cfg(target_arch = "x86_64")]
mod rdpmc;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_rdpmc.rs"]
mod rdpmc;
pub(crate) mod simulated;

use crate::error::Result;
use crate::registers::Registers;
use crate::sample::{Base, Sample};
use crate::sys::page::Page;
use crate::window::{Counts, Times};
pub(crate) use rdpmc::{Hot, snapshot};

/// What the control page of SLOTS shows while it counts: its RDPMC number plus one.
pub(crate) const SLOTS_INDEX: u32 = 0x4000_0004;
/// The same of every metric event.
pub(crate) const METRICS_INDEX: u32 = 0x2000_0001;

/// One reading of the registers by their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub registers: Registers,
    pub sequence: u32,
    pub time: Times,
}

/// How samples begin: what they are, and the slots before the present window.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub size: u32,
    pub flags: u32,
    pub slots: u64,
}

impl Head {
    /// The sample of a reading.
    pub fn sample(self, registers: Registers, sequence: u32, time: Times, base: Base) -> Sample {
        Sample {
            size: self.size,
            flags: self.flags,
            slots: self.slots + registers.slots.0,
            time_enabled_ns: time.enabled,
            time_running_ns: time.running,
            raw_slots: registers.slots.0,
            raw_metrics: registers.metrics.0,
            sequence,
            base,
            ..Sample::default()
        }
    }
}

/// A group of counters, real or simulated.
pub(crate) trait Counters {
    /// read(2) of the group: what the kernel has counted since it was opened. If it is running, this
    /// zeroes the registers.
    fn counts(&mut self) -> Result<Counts>;
    /// The registers, if they can be seen and count for this thread now. `known`: the times at the last
    /// read(2).
    fn registers(&mut self, known: Times) -> Option<Snapshot>;
    /// Whether the group is counting right now, as its sequence number; none if it is not, or if that
    /// cannot be seen.
    fn counting(&mut self) -> Option<u32>;
    /// Whether the group counts whenever it is enabled at all, unless others took its turn.
    fn never_rests(&self) -> bool;
    /// A number that moves by four or more each time that the registers are saved and restored; none
    /// where that cannot be known.
    fn sequence(&mut self) -> Option<u32>;
    /// Whether readings are to be those of the registers.
    fn by_registers(&self) -> bool;
    /// What the steady state needs, if it is to be had.
    fn steady(&self) -> Option<Steady> {
        None
    }
    /// In a forked child: the mappings are not there any more.
    fn forget_mappings(&mut self) {}
}

/// The page under which RDPMC reads the registers, and its reader's descriptor of restartable sequences.
#[derive(Clone, Copy)]
pub(crate) struct Steady {
    pub page: *const Page,
    pub rseq: *mut u64,
}
