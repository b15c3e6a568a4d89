//! What each CPU can count, as data. Adding a CPU is adding a row.
#![forbid(unsafe_code)]

pub(crate) mod e_cores;
mod others;
pub(crate) mod perf_metrics;
pub(crate) mod tree;

use crate::sys::cpu::{self, Identity};
use std::sync::OnceLock;

/// One row: CPUs that count alike.
#[derive(Debug)]
pub(crate) struct Model {
    /// The core's name, for people.
    pub core: &'static str,
    /// Vendor string of CPUID, or "" for rows that are not looked up.
    pub vendor: &'static str,
    pub family: u32,
    /// Model numbers; empty for the whole family.
    pub models: &'static [u32],
    /// Pipeline slots per cycle; 0 where no document tells.
    pub slots_per_cycle: u32,
    pub counting: Counting,
}

/// How a CPU's shares are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// SLOTS and PERF_METRICS, with fields down to this level.
    PerfMetrics { level: u32 },
    /// General counters: cycles, and what became of the slots; level 1.
    Events,
    /// Not by this version; why.
    None(&'static str),
}

/// Cycles per nanosecond that no core exceeds.
const MOST_CYCLES_PER_NS: f64 = 8.0;

/// Slots per nanosecond that no core of this width (0: not known) exceeds.
pub(crate) fn slots_per_ns(slots_per_cycle: u32) -> f64 {
    let width =
        if slots_per_cycle == 0 { perf_metrics::MOST_SLOTS_PER_CYCLE } else { slots_per_cycle.into() };
    width as f64 * MOST_CYCLES_PER_NS
}

/// The whole table; a sample names its row by the place in it.
const TABLE: [&[Model]; 3] = [perf_metrics::ROWS, others::ROWS, e_cores::ROWS];

fn rows() -> impl Iterator<Item = &'static Model> {
    TABLE.into_iter().flatten()
}

/// The row of a CPU, with its place.
pub(crate) fn of_cpu(cpu: &Identity) -> Option<(u32, &'static Model)> {
    (0..).zip(rows()).find(|(_, row)| {
        row.vendor == cpu.vendor
            && row.family == cpu.family
            && (row.models.is_empty() || row.models.contains(&cpu.model))
    })
}

/// The row of a hybrid CPU's E-cores, with its place.
pub(crate) fn of_e_cores(cpu: &Identity) -> Option<(u32, &'static Model)> {
    let (_, p_cores) = of_cpu(cpu)?;
    (0..).zip(rows()).find(|(_, row)| {
        row.counting == Counting::Events && p_cores.family == row.family && row.models.contains(&cpu.model)
    })
}

/// The row of the CPU that runs this.
pub(crate) fn of_this_cpu() -> Option<&'static Model> {
    static ROW: OnceLock<Option<&'static Model>> = OnceLock::new();
    *ROW.get_or_init(|| of_cpu(&cpu::identify()).map(|(_, row)| row))
}

/// The row at a place.
pub(crate) fn at(place: u32) -> Option<&'static Model> {
    rows().nth(place as usize)
}

/// The tree of metrics of the row at a place.
pub(crate) fn tree_of(place: u32) -> Option<&'static tree::Tree> {
    match at(place)?.counting {
        Counting::PerfMetrics { .. } => Some(&tree::PERF_METRICS),
        Counting::Events => Some(&tree::E_CORES),
        Counting::None(_) => None,
    }
}

/// Whether there is a row at a place, of a CPU that can be counted.
#[inline(always)]
pub(crate) fn counts(place: u8) -> bool {
    COUNTS[usize::from(place)]
}

static COUNTS: [bool; 256] = {
    let (mut counts, mut place, mut part) = ([false; 256], 0, 0);
    while part < TABLE.len() {
        let mut row = 0;
        while row < TABLE[part].len() {
            counts[place] = !matches!(TABLE[part][row].counting, Counting::None(_));
            (row, place) = (row + 1, place + 1);
        }
        part += 1;
    }
    counts
};

/// Place of the row for a CPU that the table does not know but whose kernel shows PERF_METRICS.
pub(crate) const UNKNOWN: u32 = 0;
/// Place of the row of the simulated PMU.
pub(crate) const SIMULATED: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn intel(family: u32, model: u32) -> Option<&'static Model> {
        of_cpu(&Identity { vendor: "GenuineIntel".into(), family, model, ..Identity::default() }).map(|m| m.1)
    }

    #[test]
    fn cpus_have_the_width_and_levels_of_kernel_facts_a_1() {
        for (model, level, width) in
            [(0x6a, 1, 5), (0x8d, 1, 5), (0x8f, 2, 6), (0x97, 2, 6), (0xad, 2, 6), (0xbd, 2, 8), (0xcc, 2, 8)]
        {
            let row = intel(6, model).unwrap();
            assert_eq!(row.counting, Counting::PerfMetrics { level }, "{model:#x}");
            assert_eq!(row.slots_per_cycle, width, "{model:#x}");
        }
        assert!(matches!(intel(6, 0x86).unwrap().counting, Counting::None(_)), "Tremont");
        assert!(intel(6, 0xfe).is_none());
    }

    #[test]
    fn no_cpu_stands_in_two_rows_and_fixed_places_hold() {
        let all: Vec<_> = rows().collect();
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                let same_family = a.vendor == b.vendor && a.family == b.family && !a.vendor.is_empty();
                assert!(
                    !same_family || a.models.iter().all(|m| !b.models.contains(m)),
                    "{} {}",
                    a.core,
                    b.core
                );
            }
        }
        assert_eq!(at(UNKNOWN).unwrap().core, "unknown core");
        assert_eq!(at(SIMULATED).unwrap().core, "simulated core");
        assert!(at(all.len() as u32).is_none());
        for place in 0..=u8::MAX {
            let row = at(place.into()).filter(|row| !matches!(row.counting, Counting::None(_)));
            assert_eq!(counts(place), row.is_some(), "{place}");
            assert_eq!(tree_of(place.into()).is_some(), row.is_some(), "{place}");
        }
    }
}
