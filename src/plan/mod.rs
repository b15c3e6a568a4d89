//! What is to be counted by general-purpose counters, as far as that follows from the core, from what is wanted, and from what is free:
//! without a kernel. `detect` finds out what the kernel shows, `group` opens what a plan says and proves that it counts.
#![forbid(unsafe_code)]

mod attempts;

use crate::model::{self, Counters, Counting, Event, Leader, Model, NoDeeper, Variant};
use crate::options::Corrections;
use crate::sys::cpu::ARM64;
pub(crate) use attempts::{CoreCounters, Means, attempts};

/// The events of a group of general-purpose counters.
#[derive(Debug)]
pub(crate) struct Plan {
    pub leader: Leader,
    /// Slots for each that the leader counts.
    pub slots_each: u64,
    /// The inputs of the row's tree, in their order.
    pub members: Vec<Event>,
    /// It is not believed that they count until they do.
    pub unproven: bool,
    pub no_deeper: NoDeeper,
}

/// Why fewer general-purpose counters are left than the core has.
const WATCHDOG: NoDeeper = NoDeeper {
    why: "the NMI watchdog counts cycles, too, which leaves the core one general counter less (sysctl kernel.nmi_watchdog=0)",
    besides_subtrees: None,
};

/// Why not even groups of parts of deeper levels fit.
pub(crate) const NO_PARTS_BESIDE_WATCHDOG: NoDeeper = NoDeeper {
    why: "level 2 takes more general counters than the core has, and of the groups of its parts each takes all, of which the NMI watchdog has \
          one (sysctl kernel.nmi_watchdog=0)",
    besides_subtrees: None,
};

impl Plan {
    /// How many general-purpose counters it takes.
    pub fn general_counters(&self) -> u32 {
        model::general_counters(&self.leader, &self.members) as u32
    }
}

/// What a row's group counts.
#[derive(Debug)]
pub(crate) struct Choice {
    pub members: &'static [Event],
    /// Deepest level that fits.
    pub deepest: u32,
    pub no_deeper: NoDeeper,
}

/// What leads a core's group, if this is the place of the first of its leaders that the kernel shows as it is.
pub(crate) fn leader(counters: &Counters, shown: Option<usize>) -> Leader {
    let last = counters.leaders.last().expect("a row of a CPU that there is");
    *shown.and_then(|place| counters.leaders.get(place)).unwrap_or(last)
}

/// Whether the NMI watchdog, where it is on, has a general-purpose counter that the group of this leader may need: both count cycles, for which
/// there is no fixed counter, or but one. (On arm64 the watchdog is most often another CPU's timer, which counts nothing, and the kernel does not
/// tell.)
pub(crate) fn meets_watchdog(model: &Model, leader: &Leader) -> bool {
    leader.by_cycle && model.family != ARM64
}

/// What counts a row down to a level (0: the deepest that fits), led so, if so many general-purpose counters are taken by others.
pub(crate) fn choose(counters: &'static Counters, leader: Leader, taken: usize, level: u32) -> Choice {
    let fits = |level: &u32| {
        let events = &counters.events[..counters.tree.inputs_of(*level)];
        counters.general == 0 || model::general_counters(&leader, events) + taken <= counters.general
    };
    let most = counters.tree.depth();
    let deepest = (1..=most).rev().find(fits).unwrap_or(1);
    let level = if level == 0 { deepest } else { level.min(deepest) };
    Choice {
        members: &counters.events[..counters.tree.inputs_of(level)],
        deepest,
        no_deeper: if deepest < most { WATCHDOG } else { counters.no_deeper },
    }
}

/// The level that a core's counters have, in one group or in parts, but not beside the NMI watchdog.
pub(crate) fn withheld_by_watchdog(model: &'static Model) -> Option<u32> {
    let Counting::Counters(counters) = model.counting else { return None };
    let leader = leader(counters, None);
    let deepest = |taken| {
        let of_parts = model::level_of_parts(model, &leader, taken);
        of_parts.max(choose(counters, leader, taken, 0).deepest)
    };
    (meets_watchdog(model, &leader) && deepest(1) < deepest(0)).then(|| deepest(0))
}

/// The variants in which a core may be counted by general-purpose counters, the one that tells most first; None: its own, or its P-cores' by
/// counters. With each set of events by which the published metrics correct the others that is permitted; on AMD then level 1 without
/// SMT contention, if each core runs one thread.
pub(crate) fn variants(
    has: impl Fn(Variant) -> bool,
    corrections: Corrections,
    one_thread: bool,
) -> Vec<Option<Variant>> {
    let other = match corrections {
        Corrections::Bare => Variant::BareCounters,
        Corrections::Counted | Corrections::Bounded => Variant::FewerCounters,
    };
    let alone = Some(Variant::OneThread).filter(|variant| one_thread && has(*variant));
    match (has(other), corrections) {
        (true, Corrections::Counted) => vec![None, Some(other)],
        (true, _) => vec![Some(other)],
        (false, Corrections::Bounded) => vec![alone],
        (false, _) => [None].into_iter().chain(alone.map(Some)).collect(),
    }
}

#[cfg(test)]
mod tests;
