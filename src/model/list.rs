//! The table of CPUs, for people.
#![forbid(unsafe_code)]

use super::{Counting, Model, NoDeeper, Variant, general_counters, metric, rows};

/// A kind of core that can be measured, in one of the ways in which it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    /// The core's name and what of it is counted, as `Info::core` tells them.
    pub core: &'static str,
    /// The core's name alone.
    pub base: &'static str,
    /// It is counted so unless it is told otherwise.
    pub is_default: bool,
    /// The node whose deeper levels are counted, by perf's name without "tma_"; "": whole levels.
    pub subtree: &'static str,
    /// Vendor string of CPUID; of arm64 the implementer.
    pub vendor: &'static str,
    /// CPU family; 0 for arm64.
    pub family: u32,
    /// Model numbers; of arm64 part numbers of MIDR_EL1.
    pub models: &'static [u32],
    /// Pipeline slots per cycle; 0 if not known.
    pub slots_per_cycle: u32,
    /// General-purpose counters that are taken for all levels; 0: SLOTS and PERF_METRICS, which take none.
    pub general_counters: usize,
    /// Deepest level.
    pub level: u32,
    /// What the emulated machine has shown; "" if it did not run this core.
    pub proved: &'static str,
    /// Why there is no deeper level, where the core's maker publishes one.
    pub no_deeper: NoDeeper,
    /// Nodes of the core's tree that no group tells, for want of counters; without "tma_".
    pub untold: &'static [&'static str],
}

/// Every kind of core that can be measured.
pub fn cores() -> impl Iterator<Item = Core> {
    rows().filter(|row| !row.models.is_empty()).filter_map(|row| {
        let (general_counters, no_deeper) = match row.counting {
            Counting::None(_) => return None,
            Counting::PerfMetrics { .. } => (0, NoDeeper::default()),
            Counting::Counters(counters) => {
                (general_counters(counters.leaders.first()?, counters.events), counters.no_deeper)
            }
        };
        Some(Core {
            core: row.core,
            base: row.base,
            is_default: matches!(row.variant, Variant::Own | Variant::ECores | Variant::Hybrid),
            subtree: metric(row.subtree()).map_or("", |node| node.field()),
            vendor: row.vendor,
            family: row.family,
            models: row.models,
            slots_per_cycle: row.slots_per_cycle,
            general_counters,
            level: row.levels(),
            proved: row.proved,
            no_deeper,
            untold: row.untold,
        })
    })
}

/// Names of the cores themselves, of none in another variant than its own.
pub(crate) fn names_of_cores() -> impl Iterator<Item = &'static str> {
    let is_own = |row: &&Model| matches!(row.variant, Variant::Own | Variant::ECores);
    rows().filter(|row| !row.models.is_empty() && row.levels() > 0).filter(is_own).map(|row| row.core)
}

/// Kinds of core that are known, and why they cannot be measured.
pub fn not_measured() -> impl Iterator<Item = (&'static str, &'static str)> {
    rows().filter_map(|row| match row.counting {
        Counting::None(why) => Some((row.core, why)),
        _ => None,
    })
}
