//! One reading, as it travels from the reader to the decoder, and what a decoder makes of two of them.
#![forbid(unsafe_code)]

use crate::model;
use crate::model::tree::Tree;
pub(crate) use crate::registers::CATEGORIES;
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sys::page::Times;

/// No bound: `error` is as large as it can be (docs/error-bound.md).
pub const TD_SAMPLE_UNBOUNDED: u32 = 1;
/// The times are of an earlier look at the clock than the reading.
pub const TD_SAMPLE_COARSE_TIME: u32 = 2;
/// Library work after the reading was counted; `error` has its most.
pub const TD_SAMPLE_WORK_AFTER: u32 = 32;
/// The same, of work before the reading.
pub const TD_SAMPLE_WORK_BEFORE: u32 = 64;
/// No counter was left for a correction; the intervals have it.
pub const TD_SAMPLE_UNCORRECTED: u32 = 128;
/// Of a mark taken by a call: `error` has what the call executed.
pub const TD_SAMPLE_WORK_COUNTED: u32 = 256;
/// Both, of one reading.
pub(crate) const OF_READINGS: u32 = TD_SAMPLE_WORK_AFTER | TD_SAMPLE_WORK_BEFORE;
/// Made by the simulated PMU (TD_FLAG_SIMULATE).
pub const TD_SAMPLE_SIMULATED: u32 = 4;

/// Where the totals stood when the present window of the hardware registers began. The library's own:
/// callers need not look at it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// Sequence number of the control page under which the registers are read.
    pub sequence: u32,
    /// Number of the window: `first_window` of the period, and on from there.
    pub window: u32,
    /// Lower 20 bits: `model::mark` of the row that `model` stands for, not 0. Upper 12: a random number of the handle. They and
    /// `period` together are those of no other handle, in whatever process.
    pub handle: u32,
    /// Number of the period: random when the handle is opened, and counted on by `td_reset`.
    pub period: u32,
    /// How often the registers were saved and restored since the window began; 65535 for that often or more. Of general-purpose counters: how many
    /// stretches there were in the period in which level 1 alone was counted.
    pub switches: u16,
    /// Row of this version's table of CPU models; another version's is told by `handle`.
    pub model: u8,
    /// Deepest level that was counted.
    pub level: u8,
    /// When the registers were last known not to have been reset by somebody else: milliseconds of
    /// `time_enabled_ns`, modulo 2^32.
    pub checked_ms: u32,
    /// Bound on the rounding error of each of `category`, in slots; it only grows.
    pub error: u64,
    /// Slots before the window of retiring, bad speculation, frontend bound, heavy operations, branch
    /// mispredicts, fetch latency, memory bound; backend bound has the rest. Of general-purpose counters with TD_SAMPLE_WORK_COUNTED: what was
    /// counted, at the first place.
    pub category: [i64; 7],
}

/// Milliseconds, as `checked_ms` keeps them.
pub(crate) fn ms(ns: u64) -> u32 {
    (ns / 1_000_000) as u32
}

impl Head {
    /// Level 1 alone is counted, and nothing that corrects it.
    pub(crate) fn is_of_few(&mut self) {
        self.base.level = 1;
        self.flags |= if model::is_corrected(self.base.model) { TD_SAMPLE_UNCORRECTED } else { 0 };
    }
}

impl Base {
    /// Of a handle with this identity, which no other has, that counts by the row at this place, down to this level. The lower half of
    /// the identity is where the periods begin: samples of two handles pass for those of one period only if 44 bits of it agree.
    pub(crate) fn of_handle(identity: u64, model: u8, level: u8) -> Base {
        let random = (identity >> 32) as u32 & !model::MARK;
        let handle = random | model::mark(model);
        Base { handle, period: identity as u32, model, level, ..Base::default() }
    }

    /// Whether the row at its place is what it was counted by.
    #[inline(always)]
    pub(crate) fn is_of_this_table(&self) -> bool {
        self.handle & model::MARK == model::mark(self.model)
    }

    /// Whether the other is of the same handle, of whichever period: periods are counted on from a random number. Those of two handles
    /// are taken for periods of one only once in 8 million pairs.
    pub(crate) fn is_of_the_handle(&self, handle: u32, period: u32) -> bool {
        const MOST_PERIODS: u32 = 1 << 20;
        let apart = self.period.wrapping_sub(period) as i32;
        self.handle == handle && apart.unsigned_abs() < MOST_PERIODS
    }

    /// The same, as far as it is seen at first sight: not of rows that are not in the table.
    #[inline(always)]
    pub(crate) fn is_of_the_table(&self) -> bool {
        self.handle & model::MARK == model::mark_of_table(self.model)
    }

    /// The tree of metrics that it was counted by. None: this version does not have it.
    pub(crate) fn tree(&self) -> Option<&'static Tree> {
        model::tree_of(self.model).filter(|_| self.is_of_this_table())
    }

    /// Number of the first window of this period. Windows of two periods or handles hardly ever have the same.
    pub(crate) fn first_window(&self) -> u32 {
        self.handle.wrapping_mul(0x9e37_79b1).wrapping_add(self.period.wrapping_mul(0x85eb_ca77))
    }

    /// All categories in the order of the fields of PERF_METRICS, of the slots before the window.
    pub(crate) fn categories(&self, slots: u64) -> [i64; CATEGORIES] {
        let [retiring, bad, frontend, heavy, mispredicts, latency, memory] = self.category;
        let backend = (slots as i64).wrapping_sub(retiring).wrapping_sub(bad).wrapping_sub(frontend);
        [retiring, bad, frontend, backend, heavy, mispredicts, latency, memory]
    }

    /// What to keep of all categories.
    pub(crate) fn keep(category: &[i64; CATEGORIES]) -> [i64; 7] {
        let [retiring, bad, frontend, _, heavy, mispredicts, latency, memory] = *category;
        [retiring, bad, frontend, heavy, mispredicts, latency, memory]
    }
}

/// Totals since td_open or the last td_reset. Two of one handle and period decode to the shares of what ran between
/// them. Plain data: copy, send or write it. Another version of the library decodes it as this one, or refuses it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// sizeof(struct td_sample), set by the library.
    pub size: u32,
    /// TD_SAMPLE_* bits.
    pub flags: u32,
    /// Pipeline slots counted in this period.
    pub slots: u64,
    /// Nanoseconds of this period in which the thread (or CPU) ran.
    pub time_enabled_ns: u64,
    /// Nanoseconds of those in which the counters counted: not while others had them, or on cores of another kind.
    pub time_running_ns: u64,
    /// Slots of this period before the present window of the registers: `slots` less this is what the SLOTS
    /// register said.
    pub slots_before: u64,
    /// The totals at the start of the window.
    pub base: Base,
    /// The PERF_METRICS register: eight 8-bit shares of the slots since the window began.
    pub raw_metrics: u64,
    /// Totals of general-purpose counters. Where PERF_METRICS gives the shares td_read writes those alone that correct it.
    pub counter: [u64; 15],
}

/// What a sample is before its registers: what samples of a window are made from, were registers and clock at zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub size: u32,
    pub flags: u32,
    pub slots: u64,
    pub time_enabled_ns: u64,
    pub time_running_ns: u64,
    pub slots_before: u64,
    pub base: Base,
}

impl Head {
    /// As `Sample::skip`.
    pub fn skip(&mut self, slots: RawSlots, parts: &[i64; CATEGORIES]) {
        self.slots = self.slots.wrapping_sub(slots.0);
        self.slots_before = self.slots_before.wrapping_sub(slots.0);
        for (kept, part) in self.base.category.iter_mut().zip(Base::keep(parts)) {
            *kept = kept.wrapping_sub(part);
        }
    }

    /// Its times, and the clock's nanoseconds at which they are looked at.
    pub fn time_is(&mut self, zero: Times, ns: u64) {
        self.time_enabled_ns = zero.enabled;
        self.time_running_ns = zero.running;
        self.base.checked_ms = ms(zero.enabled.wrapping_add(ns));
    }

    /// The sample with these registers, at this time of the clock.
    #[inline]
    pub fn sample(&self, registers: Registers, ns: u64) -> Sample {
        let Head { size, flags, slots, time_enabled_ns, time_running_ns, slots_before, base } = *self;
        Sample {
            size,
            flags,
            slots: slots.wrapping_add(registers.slots.0),
            time_enabled_ns: time_enabled_ns.wrapping_add(ns),
            time_running_ns: time_running_ns.wrapping_add(ns),
            slots_before,
            base,
            raw_metrics: registers.metrics.0,
            counter: [0; 15],
        }
    }
}

/// Counters of a mark.
pub(crate) const MARKED_COUNTERS: usize = 7;

/// An inline reading: registers, or general-purpose counters, as they are. td_mark_sample makes a sample of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The SLOTS register; of a handle that counts general-purpose counters, the one that counts slots or cycles.
    pub slots: u64,
    /// The PERF_METRICS register.
    pub metrics: u64,
    /// The library's own.
    pub sequence: u32,
    /// The library's own.
    pub window: u32,
    /// The other general-purpose counters.
    pub counter: [u64; 7],
}

/// In `Mark::slots` of registers, above what they hold: a call took it on the fast path, on the way to which and back there is more than
/// an inlined reading has.
pub(crate) const CALLED: u64 = 1 << 63;

impl Mark {
    /// Of registers.
    pub(crate) fn called(self) -> Mark {
        Mark { slots: self.slots | CALLED, ..self }
    }
}

impl Sample {
    /// What a program that inlines its readings would have noted instead.
    pub(crate) fn mark(&self) -> Mark {
        let Registers { slots, metrics } = self.registers();
        let Base { sequence, window, .. } = self.base;
        Mark { slots: slots.0, metrics: metrics.0, sequence, window, ..Mark::default() }
    }

    /// In a window, so many slots of the registers, so divided, do not count.
    pub(crate) fn skip(&mut self, slots: RawSlots, parts: &[i64; CATEGORIES]) {
        self.slots = self.slots.wrapping_sub(slots.0);
        self.slots_before = self.slots_before.wrapping_sub(slots.0);
        for (kept, part) in self.base.category.iter_mut().zip(Base::keep(parts)) {
            *kept = kept.wrapping_sub(part);
        }
    }

    /// Without the categories.
    pub(crate) fn slots_only(&self) -> SlotsOnly {
        SlotsOnly {
            slots: self.slots,
            enabled: self.time_enabled_ns,
            running: self.time_running_ns,
            handle: self.base.handle,
            period: self.base.period,
        }
    }

    /// Makes what a sample would be were registers and clock at zero, into the sample of a reading.
    pub(crate) fn add(&mut self, registers: Registers, ns: u64) {
        self.slots = self.slots.wrapping_add(registers.slots.0);
        self.time_enabled_ns = self.time_enabled_ns.wrapping_add(ns);
        self.time_running_ns = self.time_running_ns.wrapping_add(ns);
        self.raw_metrics = registers.metrics.0;
    }

    /// Milliseconds for which nobody has looked whether the registers were reset, at that enabled time.
    pub(crate) fn unchecked_ms(&self, enabled_ns: u64) -> u32 {
        ms(enabled_ns).wrapping_sub(self.base.checked_ms)
    }

    /// What the registers said.
    pub(crate) fn registers(&self) -> Registers {
        Registers {
            slots: RawSlots(self.slots.wrapping_sub(self.slots_before)),
            metrics: RawMetrics(self.raw_metrics),
        }
    }
}

/// By how much general-purpose counters grew in executions of a region.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Increments {
    /// Slots in them.
    pub slots: u64,
    /// Nanoseconds of them, in all of which the counters counted.
    pub ns: u64,
    /// In them, what `Sample::counter` has totals of.
    pub counter: [u64; 15],
}

impl Increments {
    /// Of no execution.
    pub(crate) const NONE: &Increments = &Increments { slots: 0, ns: 0, counter: [0; 15] };
}

/// Totals of a period, without the categories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotsOnly {
    pub slots: u64,
    pub enabled: u64,
    pub running: u64,
    pub handle: u32,
    pub period: u32,
}

impl SlotsOnly {
    /// Slots and times with the word that has the handle, and above it the period.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn of([slots, enabled, running]: [u64; 3], word: u64) -> SlotsOnly {
        SlotsOnly { slots, enabled, running, handle: word as u32, period: (word >> 32) as u32 }
    }
}

/// Level 1: shares of the slots between two samples (docs/sources.md). The four and `smt_contention` add up to 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct L1 {
    /// sizeof(struct td_l1), set by the library.
    pub size: u32,
    /// TD_SAMPLE_* bits of both samples.
    pub flags: u32,
    /// Slots between the two samples.
    pub slots: u64,
    /// Slots whose operation retired.
    pub retiring: f64,
    /// Slots lost to wrong paths, and to recovery from them.
    pub bad_speculation: f64,
    /// Slots that the frontend left empty.
    pub frontend_bound: f64,
    /// Slots that the backend could not accept.
    pub backend_bound: f64,
    /// Bound, 0 to 1: no share is further than this from the truth.
    pub error: f64,
    /// Part of the time between the samples in which the counters counted, 0 to 1.
    pub running: f64,
    /// Slots that went to the core's other thread; 0 on CPUs that do not tell them apart.
    pub smt_contention: f64,
    /// Zero.
    pub reserved: [u64; 1],
}

/// Level 2: shares of the slots between two samples. The eight add up to 1, each pair to its share of level 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct L2 {
    /// sizeof(struct td_l2), set by the library.
    pub size: u32,
    /// TD_SAMPLE_* bits of both samples.
    pub flags: u32,
    /// Slots between the two samples.
    pub slots: u64,
    /// Of retiring: operations of instructions that need several, or microcode.
    pub heavy_operations: f64,
    /// Of retiring: the rest.
    pub light_operations: f64,
    /// Of bad speculation: mispredicted branches.
    pub branch_mispredicts: f64,
    /// Of bad speculation: machine clears.
    pub machine_clears: f64,
    /// Of frontend bound: nothing was delivered.
    pub fetch_latency: f64,
    /// Of frontend bound: too little was delivered.
    pub fetch_bandwidth: f64,
    /// Of backend bound: waiting for memory.
    pub memory_bound: f64,
    /// Of backend bound: waiting for execution units.
    pub core_bound: f64,
    /// Bound, 0 to 1: no share is further than this from the truth.
    pub error: f64,
    /// Part of the time between the samples in which the counters counted, 0 to 1.
    pub running: f64,
    /// Zeros.
    pub reserved: [u64; 2],
}

impl L1 {
    /// With these shares, in the order of [`LEVEL_1`](crate::LEVEL_1).
    #[inline(always)]
    pub(crate) fn new(flags: u32, slots: u64, shares: [f64; 4], error: f64, running: f64) -> L1 {
        let [retiring, bad_speculation, frontend_bound, backend_bound] = shares;
        L1 {
            size: size_of::<L1>() as u32,
            flags,
            slots,
            retiring,
            bad_speculation,
            frontend_bound,
            backend_bound,
            error,
            running,
            smt_contention: 0.0,
            reserved: [0],
        }
    }

    /// Its shares, in the order of [`LEVEL_1`](crate::LEVEL_1); `smt_contention` is apart.
    #[must_use]
    pub fn shares(&self) -> [f64; 4] {
        [self.retiring, self.bad_speculation, self.frontend_bound, self.backend_bound]
    }
}

impl L2 {
    /// With these shares, in the order of [`LEVEL_2`](crate::LEVEL_2).
    #[inline(always)]
    pub(crate) fn new(flags: u32, slots: u64, shares: [f64; 8], error: f64, running: f64) -> L2 {
        L2 {
            size: size_of::<L2>() as u32,
            flags,
            slots,
            heavy_operations: shares[0],
            light_operations: shares[1],
            branch_mispredicts: shares[2],
            machine_clears: shares[3],
            fetch_latency: shares[4],
            fetch_bandwidth: shares[5],
            memory_bound: shares[6],
            core_bound: shares[7],
            error,
            running,
            reserved: [0; 2],
        }
    }

    /// Its shares, in the order of [`LEVEL_2`](crate::LEVEL_2).
    #[must_use]
    pub fn shares(&self) -> [f64; 8] {
        [
            self.heavy_operations,
            self.light_operations,
            self.branch_mispredicts,
            self.machine_clears,
            self.fetch_latency,
            self.fetch_bandwidth,
            self.memory_bound,
            self.core_bound,
        ]
    }
}

const _: () = {
    assert!(size_of::<Base>() == 88 && size_of::<Mark>() == 24 + 8 * MARKED_COUNTERS);
    assert!(size_of::<Sample>() == 256 && std::mem::offset_of!(Sample, base) == 40);
    // and all before, in the same places
    assert!(size_of::<Head>() == 128 && std::mem::offset_of!(Head, base) == 40);
    assert!(std::mem::offset_of!(Sample, raw_metrics) == size_of::<Head>());
    assert!(size_of::<L1>() == 80);
    assert!(size_of::<L2>() == 112);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{DefaultHasher, Hash, Hasher};

    /// Of all pairs of 2,000 handles, some 2 million.
    #[test]
    fn handles_of_one_row_are_told_apart() {
        let identity = |k: u64| {
            let mut hasher = DefaultHasher::new();
            k.hash(&mut hasher);
            hasher.finish()
        };
        let bases: Vec<_> = (0..2_000).map(|k| Base::of_handle(identity(k), 0, 1)).collect();
        for (place, base) in bases.iter().enumerate() {
            assert!(base.is_of_the_handle(base.handle, base.period.wrapping_add(1_000_000)));
            assert!(!bases[..place].iter().any(|other| base.is_of_the_handle(other.handle, other.period)));
        }
    }
}
