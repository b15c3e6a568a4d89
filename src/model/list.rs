//! The table of CPUs, for people.
#![forbid(unsafe_code)]

use super::perf_metrics::INTEL;
use super::{Counting, Model, general_counters, rows};

/// A kind of core that can be measured, in one of the ways in which it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    /// The core's name, as `Info::core` tells it.
    pub core: &'static str,
    /// Vendor string of CPUID; of arm64 the implementer.
    pub vendor: &'static str,
    /// CPU family; 0 for arm64.
    pub family: u32,
    /// Model numbers; of arm64 part numbers of MIDR_EL1.
    pub models: &'static [u32],
    /// Pipeline slots per cycle; 0 if not known.
    pub slots_per_cycle: u32,
    /// General counters that are taken for all levels; 0: SLOTS and PERF_METRICS, which take none.
    pub general_counters: usize,
    /// Deepest level.
    pub level: u32,
    /// What the emulated machine has shown; "" if it did not run this core.
    pub proved: &'static str,
    /// Why there is no deeper level, where the core's maker publishes one; else "".
    pub no_deeper: &'static str,
}

/// Every kind of core that can be measured.
pub fn cores() -> impl Iterator<Item = Core> {
    rows().filter(|row| !row.models.is_empty()).filter_map(|row| {
        let (general_counters, no_deeper) = match row.counting {
            Counting::None(_) => return None,
            Counting::PerfMetrics { .. } => (0, ""),
            Counting::Counters(counters) => {
                (general_counters(counters.leaders.first()?, counters.events), counters.no_deeper)
            }
        };
        Some(Core {
            core: row.core,
            vendor: vendor_of(row),
            family: row.family,
            models: row.models,
            slots_per_cycle: row.slots_per_cycle,
            general_counters,
            level: row.levels(),
            proved: row.proved,
            no_deeper,
        })
    })
}

/// That of the row of the same CPUs which has it. (Rows of parts of hybrid CPUs have none like them.)
fn vendor_of(row: &Model) -> &'static str {
    let same = |other: &&Model| (other.family, other.models) == (row.family, row.models);
    rows().filter(same).map(|other| other.vendor).find(|vendor| !vendor.is_empty()).unwrap_or(INTEL)
}

/// Kinds of core that are known, and why they cannot be measured.
pub fn not_measured() -> impl Iterator<Item = (&'static str, &'static str)> {
    rows().filter_map(|row| match row.counting {
        Counting::None(why) => Some((row.core, why)),
        _ => None,
    })
}
