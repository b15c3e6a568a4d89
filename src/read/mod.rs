//! From counters to one snapshot: by RDPMC (`rdpmc`), by read(2) (`crate::group`), or simulated.

mod hot;
#[cfg(target_arch = "x86_64")]
mod rdpmc;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_rdpmc.rs"]
mod rdpmc;
pub(crate) mod simulated;

use crate::error::Result;
use crate::registers::Registers;
pub(crate) use crate::sys::page::{METRICS_INDEX, SLOTS_INDEX};
use crate::window::{Counts, Times};
pub use hot::Hot;
pub(crate) use hot::Reader;
pub(crate) use rdpmc::{FAST, snapshot};

/// How the time-stamp counter becomes an event's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Nanoseconds are the upper 65 bits of the product of counter and scale; 0 if there is no clock.
    pub scale: u64,
    /// The event's times when the clock was zero; without a clock, the last that are known.
    pub zero: Times,
    /// They are those of the last time that the thread was scheduled.
    pub coarse: bool,
}

impl Clock {
    /// Times of a period that began at `begun`, at clock zero.
    pub fn zero_since(&self, begun: Times) -> Times {
        if self.scale == 0 {
            return self.zero.since(begun);
        }
        Times {
            enabled: self.zero.enabled.wrapping_sub(begun.enabled),
            running: self.zero.running.wrapping_sub(begun.running),
        }
    }
}

/// Totals of a period, without the categories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glance {
    pub slots: u64,
    pub enabled: u64,
    pub running: u64,
    pub handle: u32,
    pub period: u32,
}

/// One reading of the registers by their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub registers: Registers,
    pub sequence: u32,
    pub clock: Clock,
    /// Nanoseconds of the clock.
    pub ns: u64,
    /// A clock to pace by, which runs while the thread does: nanoseconds, or ticks where there are none.
    pub pace: u64,
}

impl Snapshot {
    /// The event's times.
    pub fn time(&self) -> Times {
        let Times { enabled, running } = self.clock.zero;
        Times { enabled: enabled.wrapping_add(self.ns), running: running.wrapping_add(self.ns) }
    }
}

/// A group of counters, real or simulated.
pub(crate) trait Counters {
    /// read(2) of the group: what the kernel has counted since it was opened. If it is running, this
    /// zeroes the registers.
    fn counts(&self) -> Result<Counts>;
    /// read(2) of SLOTS alone, for less: the same, without the categories.
    fn slots(&self) -> Result<(u64, Times)>;
    /// The registers, if they can be seen and count for this thread now. `known`: the times at the last
    /// read(2).
    fn registers(&self, known: Times) -> Option<Snapshot>;
    /// Whether the group is counting right now, as its sequence number; none if it is not, or if that
    /// cannot be seen.
    fn counting(&self) -> Option<u32>;
    /// Whether the group counts whenever it is enabled at all, unless others took its turn.
    fn never_rests(&self) -> bool;
    /// A number that moves by four or more each time that the registers are saved and restored; none
    /// where that cannot be known.
    fn sequence(&self) -> Option<u32>;
    /// Whether readings are to be those of the registers.
    fn by_registers(&self) -> bool;
    /// Whether what the library executes for a reading by read(2) is counted with the rest.
    fn counts_itself(&self) -> bool {
        false
    }
    /// Who can read by the steady state, if anybody can.
    fn reader(&self) -> Option<Reader> {
        None
    }
    /// Before it is closed: a forked child that has copies of the descriptors does not keep it on the counters.
    fn stop(&self) {}
}
