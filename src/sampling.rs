//! The events that a sampling profiler counts between two samples, and the shares that follow from such counts.
#![forbid(unsafe_code)]

use crate::detect::{self, Pmu};
use crate::error::{Error, Result};
use crate::model::metrics::{Metric, TD_NODE_NONE, TD_NODE_SMT_CONTENTION};
use crate::model::perf_metrics::{CYCLES, SLOTS, metrics_of};
use crate::model::tree::{Formula, Input, NodeRow, Tree};
use crate::model::{self, Counting, Event, MOST_INPUTS};
use crate::options::{Options, SourceKind};
use crate::plan::Plan;
use crate::registers::FULL;
use crate::sys::Linux;
use crate::sys::cpu;
use crate::tree::evaluate::{self, NodeShares, Share};
use crate::tree::{CountedInputs, MovedSlots};

/// A perf group of one kind of this machine's cores, which tells how slots divide: of general-purpose counters, the first of which counts all
/// slots, or cycles, and samples; or of SLOTS, cycles that sample, and the metric events (a group with those may be led by SLOTS alone,
/// which may not sample then). Each other event counts the slots of a category.
#[derive(Clone, Debug)]
pub struct SampledEvents {
    /// The core's name.
    pub core: &'static str,
    /// The PMU's name in sysfs.
    pub pmu: &'static str,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// CPUs that have it, where others may have none.
    pub cpus: Option<String>,
    /// Name and `perf_event_attr.config` of each. The first is the leader.
    pub events: Vec<(&'static str, u64)>,
    /// The same of an event that counts returns of functions, beside these, if the core has one: whether a counter is left for it has
    /// to be seen. None of registers: these are for CPUs whose general-purpose counters others hold.
    pub returns: Option<(&'static str, u64)>,
    /// The same of one that counts cycles beside the group, to tell time, if the core has one and no fixed counter does: whether a counter is left for it
    /// has to be seen.
    pub clock: Option<(&'static str, u64)>,
    /// No counter is left for the clock beside the group: it has one of the group's while that does not count.
    pub clock_in_turns: bool,
    /// The place of the event that counts what a core's other thread takes, where each core runs one thread: it counts nothing, and need not be
    /// opened if no counter is left for the clock.
    pub silent: Option<usize>,
    /// Which of them samples, by its place.
    pub sampler: usize,
    /// How many of the sampler's events are in a cycle.
    pub sampled_per_cycle: u64,
    /// Slots for each that the first counts.
    pub slots_each: u64,
    /// Pipeline slots per cycle.
    pub slots_per_cycle: u32,
    /// Deepest level that they tell.
    pub level: u32,
    /// What a category's count of a window may be off by rounding, as a part of the window's slots.
    pub rounding: f64,
    /// Why these are counted, if that needs saying.
    pub note: String,
    tree: &'static Tree,
}

/// A node of the tree of metrics that such counts tell.
#[derive(Clone, Copy, Debug)]
pub struct SampledNode {
    /// Name and number.
    pub metric: Metric,
    /// TD_NODE_* of the node of which it is a part; TD_NODE_NONE for roots.
    pub parent: u32,
    /// 1 for roots.
    pub level: u32,
}

/// The events of each kind of core, that of P-cores first, down to a level (0: the deepest). By registers, if these are asked for,
/// are those of the CPU, or of its P-cores: E-cores have none. `core`: what a handle by general-purpose counters told ([`Info::core`](crate::Info)):
/// without events that no counter was left for.
///
/// # Errors
/// -ENODEV: this machine has no general-purpose counters of slots, or no such registers.
pub fn sampled_events(level: u32, source: SourceKind, core: &str) -> Result<Vec<SampledEvents>> {
    let (kernel, cpu) = (Linux::default(), cpu::identify());
    let first = if source == SourceKind::Registers {
        let pmu = detect::pmu(&kernel, &cpu)?;
        let (row, model) = model::registers_alone((pmu.row, pmu.model), false);
        SampledEvents::of_registers(&Pmu { row, model, ..pmu }, level)?
    } else {
        let ways = detect::ways(&kernel, &cpu, &Options::default(), level).collect::<Result<Vec<_>>>()?;
        let found = ways.iter().find(|(pmu, _)| pmu.model.core == core).or(ways.first());
        let (pmu, plan) = found.expect("an error, or a way");
        let events = SampledEvents::of(pmu, plan, level)?;
        let one_thread = detect::runs_one_thread(&kernel, &cpu, pmu.model).is_ok();
        SampledEvents { silent: events.contention().filter(|_| one_thread), ..events }
    };
    let second = detect::e_cores(&kernel, &cpu, TD_NODE_NONE, level).ok();
    let second = second.map(|(pmu, plan)| SampledEvents::of(&pmu, &plan, level)).transpose()?;
    Ok([Some(first), second].into_iter().flatten().collect())
}

fn named(events: impl IntoIterator<Item = Event>) -> Vec<(&'static str, u64)> {
    events.into_iter().map(|event| (event.name, event.config)).collect()
}

impl SampledEvents {
    fn of(pmu: &Pmu, plan: &Plan, level: u32) -> Result<SampledEvents> {
        let tree = u8::try_from(pmu.row).ok().and_then(model::tree_of);
        let tree = tree.ok_or_else(|| Error::errno(libc::ENODEV, "the core has no tree of metrics"))?;
        let width = pmu.model.slots_per_cycle;
        let counters = match pmu.model.counting {
            Counting::Counters(counters) => Some(counters),
            _ => None,
        };
        Ok(SampledEvents {
            core: pmu.model.core,
            pmu: pmu.name,
            kind: pmu.kind,
            cpus: pmu.cpus.clone(),
            events: named([plan.leader.event].into_iter().chain(plan.members.iter().copied())),
            returns: counters.and_then(|counters| counters.returns).map(|event| (event.name, event.config)),
            clock: counters.and_then(|counters| counters.clock).map(|event| (event.name, event.config)),
            clock_in_turns: false,
            silent: None,
            sampler: 0,
            sampled_per_cycle: if plan.slots_each == 1 { width.into() } else { 1 },
            slots_each: plan.slots_each,
            slots_per_cycle: width,
            level: if level == 0 { pmu.level } else { level.min(pmu.level) },
            rounding: 0.0,
            note: String::new(),
            tree,
        })
    }

    /// Of SLOTS and PERF_METRICS.
    fn of_registers(pmu: &Pmu, level: u32) -> Result<SampledEvents> {
        let unknown = |what| {
            let what = format!(
                "{what} of this CPU ({}) are not known, so its samples cannot be proved",
                pmu.model.core
            );
            Error::errno(libc::ENODEV, what).remedy(detect::ANOTHER_CPU)
        };
        let tree = u8::try_from(pmu.row).ok().and_then(model::tree_of);
        let tree = tree.ok_or_else(|| unknown("the metrics"))?;
        if pmu.model.slots_per_cycle == 0 {
            return Err(unknown("the slots per cycle"));
        }
        let level = if level == 0 { pmu.level } else { level.min(pmu.level) };
        Ok(SampledEvents {
            core: pmu.model.core,
            pmu: pmu.name,
            kind: pmu.kind,
            cpus: pmu.cpus.clone(),
            events: named([SLOTS, CYCLES].into_iter().chain(metrics_of(level).iter().copied())),
            returns: None,
            clock: None,
            clock_in_turns: false,
            silent: None,
            sampler: 1,
            sampled_per_cycle: 1,
            slots_each: 1,
            slots_per_cycle: pmu.model.slots_per_cycle,
            level,
            rounding: 1.0 / FULL as f64,
            note: String::new(),
            tree,
        })
    }

    /// Configurations of the events that are opened: all but the silent one, and returns of functions behind them.
    #[must_use]
    pub fn opened(&self) -> Vec<u64> {
        let counted = self.events.iter().enumerate().filter(|(place, _)| self.silent != Some(*place));
        counted.map(|(_, event)| event).chain(&self.returns).map(|(_, config)| *config).collect()
    }

    /// The nodes that are told, parents before their children.
    #[must_use]
    pub fn nodes(&self) -> Vec<SampledNode> {
        let measured = self.tree.nodes.iter().filter(|row| row.is_measured(self.level));
        measured
            .map(|row| SampledNode { metric: *row.metric(), parent: row.parent, level: row.level })
            .collect()
    }

    /// Slots of counts in the order of `events`.
    #[must_use]
    pub fn slots(&self, counts: &[f64]) -> f64 {
        counts.first().map_or(0.0, |n| n * self.slots_each as f64)
    }

    /// The place of the event that counts the slots of a core's other thread.
    fn contention(&self) -> Option<usize> {
        let of_node = |row: &NodeRow| match row.formula {
            Formula::Slots(input) if row.id == TD_NODE_SMT_CONTENTION => Some(self.tree.inputs[input]),
            _ => None,
        };
        match self.tree.nodes.iter().find_map(of_node)? {
            Input::Counter(place) => Some(1 + self.sampler + place),
            _ => None,
        }
    }

    /// Of such counts the slots of an input of the tree.
    fn slots_of(&self, input: Input, counts: &[f64]) -> Option<f64> {
        let (place, each) = match input {
            Input::Category(category) => (category, 1),
            Input::Counter(place) => (place, 1),
            Input::Cycles(place, slots) => (place, slots),
        };
        // (behind the leader and the sampler)
        Some(counts.get(1 + self.sampler + place)? * f64::from(each))
    }

    /// Whether all that tells the nodes down to `level` is among the events.
    #[must_use]
    pub fn are_enough(&self) -> bool {
        let counts = vec![1.0; self.events.len()];
        let measured = &self.tree.inputs[..self.tree.inputs_of(self.level)];
        measured.iter().all(|input| self.slots_of(*input, &counts).is_some())
    }

    /// Of such counts the slots of all categories of level 1, if each of them is counted: not if one is what the others leave.
    #[must_use]
    pub fn categories(&self, counts: &[f64]) -> Option<f64> {
        let slots = |formula| match formula {
            Formula::Slots(input) => self.slots_of(self.tree.inputs[input], counts),
            _ => None, // (of registers alone each is counted)
        };
        self.tree.nodes.iter().filter(|row| row.divides_all()).map(|row| slots(row.formula)).sum()
    }

    /// Shares of the nodes that are told. `off`: what each input may be off, in slots.
    fn evaluated(&self, counts: &[f64], off: f64) -> Option<Vec<Share>> {
        let slots = self.slots(counts);
        if counts.len() != self.events.len() || slots <= 0.0 {
            return None;
        }
        let measured = &self.tree.inputs[..self.tree.inputs_of(self.level)];
        let mut counted = CountedInputs {
            inputs: [0.0; MOST_INPUTS],
            measured: 0,
            rounding: off,
            edges: 0.0,
            sampled: None,
            slots,
            uncounted: 0.0,
            unknown: 0.0,
            bare: false,
            uncorrected: false,
            is_sure: self.tree.is_sure(),
            moved: MovedSlots::UNSEEN,
        };
        for (place, input) in measured.iter().enumerate() {
            if let Some(n) = self.slots_of(*input, counts) {
                counted.set(place, n);
            }
        }
        let mut shares = NodeShares::NONE;
        evaluate::evaluate(self.tree, self.level, &counted, &mut shares);
        let shares = (0..self.tree.nodes.len()).map(|place| shares.get(place).copied());
        let rows = self.tree.nodes.iter().zip(shares).filter(|(row, _)| row.is_measured(self.level));
        rows.map(|(_, share)| share).collect()
    }

    /// The share of each of `nodes` (0 to 1), of counts in the order of `events`. None: nothing was counted.
    #[must_use]
    pub fn shares(&self, counts: &[f64]) -> Option<Vec<f64>> {
        Some(self.evaluated(counts, 0.0)?.iter().map(|share| share.value).collect())
    }

    /// What each category may be off by rounding, of so many windows that have these slots together.
    #[must_use]
    pub fn rounding_of(&self, slots: f64, windows: f64) -> f64 {
        // (the kernel rounds each category of a window down to whole slots, too)
        if self.rounding == 0.0 { 0.0 } else { self.rounding * slots + windows }
    }

    /// How far each of these shares may be off if each category is, by so many slots. None: nothing was counted.
    #[must_use]
    pub fn rounded(&self, counts: &[f64], off: f64) -> Option<Vec<f64>> {
        if off == 0.0 && self.tree.is_sure() {
            return Some(vec![0.0; self.nodes().len()]);
        }
        let further = |share: &Share| (share.high - share.value).max(share.value - share.low);
        Some(self.evaluated(counts, off)?.iter().map(further).collect())
    }

    /// Those of the core of this name, for tests and simulations on any machine.
    #[must_use]
    pub fn of_core(core: &str) -> Option<SampledEvents> {
        let (row, model) = model::named(core)?;
        let pmu = Pmu { name: "cpu", kind: 4, model, row, level: model.levels(), cpus: None };
        let Counting::Counters(counters) = model.counting else {
            return SampledEvents::of_registers(&pmu, 0).ok();
        };
        let leader = *counters.leaders.first()?;
        let width = model::simulated_width(model.slots_per_cycle);
        let slots_each = if leader.by_cycle { width.into() } else { 1 };
        let members = counters.events.to_vec();
        let plan =
            Plan { leader, slots_each, members, unproven: false, no_deeper: model::NoDeeper::default() };
        let events = SampledEvents::of(&pmu, &plan, 0).ok()?;
        Some(SampledEvents { returns: None, clock: None, ..events })
    }
}

impl SampledEvents {
    /// What the simulated PMU counts of each of `events` in so many cycles; None: by registers, or not all of them are simulated.
    #[must_use]
    pub fn simulated(&self, cycles: f64) -> Option<Vec<f64>> {
        let width = f64::from(model::simulated_width(self.slots_per_cycle));
        let per_leader = if self.slots_each == 1 { width } else { 1.0 };
        let of_all = [per_leader].into_iter().chain(self.tree.per_cycle.iter().copied());
        let counts: Vec<f64> = of_all.take(self.events.len()).map(|each| cycles * each).collect();
        (self.sampler == 0 && counts.len() == self.events.len()).then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_core_runs_one_thread_zen_counts_no_contention() {
        let mut events = SampledEvents::of_core("Zen 4").unwrap();
        events.returns = Some(("returns", 0xc8));
        assert_eq!(events.opened(), [0x76, 0xc1, 0x7aa, 0x1_0000_01a0, 0x1_0000_60a0, 0xc8]);
        events.silent = events.contention();
        assert_eq!(events.opened(), [0x76, 0xc1, 0x7aa, 0x1_0000_01a0, 0xc8]);
        let of_intel = SampledEvents::of_core("Golden or Raptor Cove, by counters").unwrap();
        assert_eq!((of_intel.contention(), of_intel.opened().len()), (None, of_intel.events.len()));
    }

    #[test]
    fn shares_are_those_of_the_counts() {
        let events = SampledEvents::of_core("Golden or Raptor Cove, by counters").unwrap();
        // slots, retiring, backend, frontend, dropped, heavy, mispredicts, empty cycles of 6, memory
        let shares =
            events.shares(&[6000.0, 3000.0, 1200.0, 700.0, 100.0, 300.0, 900.0, 400.0 / 6.0, 600.0]).unwrap();
        let name = |node: &SampledNode| node.metric.name.to_str().unwrap().to_string();
        let of = |wanted: &str| shares[events.nodes().iter().position(|node| name(node) == wanted).unwrap()];
        let near = |name: &str, share: f64| assert!((of(name) - share).abs() < 1e-9, "{name}: {}", of(name));
        near("tma_retiring", 0.5);
        near("tma_bad_speculation", 0.2);
        near("tma_frontend_bound", 0.1);
        near("tma_backend_bound", 0.2);
        near("tma_light_operations", 0.45);
        near("tma_machine_clears", 0.05);
        near("tma_fetch_latency", 0.05);
        near("tma_core_bound", 0.1);
        assert!(events.shares(&[0.0; 9]).is_none() && events.shares(&[1.0; 3]).is_none());
    }

    /// SLOTS, cycles, and the metric events of half retiring, a fifth each of bad speculation and backend bound, and at level 2 a
    /// tenth, or a half, of each.
    const BY_REGISTERS: [f64; 10] =
        [6000.0, 1000.0, 3000.0, 1200.0, 600.0, 1200.0, 300.0, 900.0, 300.0, 600.0];

    #[test]
    fn registers_tell_the_same_shares_each_within_its_rounding() {
        let events = SampledEvents::of_core("Golden or Raptor Cove, bare").unwrap();
        assert_eq!((events.sampler, events.sampled_per_cycle, events.events.len()), (1, 1, 10));
        assert_eq!(events.events[..3], [("slots", 0x400), ("cycles", 0x3c), ("topdown-retiring", 0x8000)]);
        let counted = SampledEvents::of_core("Golden or Raptor Cove, bare counters").unwrap();
        let by_counters =
            counted.shares(&[6000.0, 3000.0, 1200.0, 600.0, 300.0, 900.0, 50.0, 600.0]).unwrap();
        let shares = events.shares(&BY_REGISTERS).unwrap();
        assert!(
            shares.iter().zip(&by_counters).all(|(a, b)| (a - b).abs() < 1e-9),
            "{shares:?} {by_counters:?}"
        );
        assert_eq!((events.categories(&BY_REGISTERS), counted.categories(&[1.0; 8])), (Some(6000.0), None));
        // one unit of 255, and of nodes that others leave of their parents that of both
        let rounded = events.rounded(&BY_REGISTERS, events.rounding_of(6000.0, 1.0)).unwrap();
        let unit = 1.0 / 255.0 + 1.0 / 6000.0;
        for (node, off) in events.nodes().iter().zip(rounded) {
            let units = if node.metric.name.to_str().unwrap().contains("light") { 2.0 } else { 1.0 };
            assert!(off >= units * unit - 1e-9 && off <= 2.0 * unit + 1e-9, "{node:?}: {off}");
        }
        assert!(
            counted.rounded(&[1.0; 8], counted.rounding_of(1.0, 1.0)).unwrap().iter().all(|off| *off == 0.0)
        );
    }

    #[test]
    fn the_true_share_is_within_the_rounding_whatever_the_registers_say() {
        let events = SampledEvents::of_core("Sunny, Willow or Cypress Cove, bare").unwrap();
        assert_eq!(events.events.len(), 6);
        // (each field a unit off at the most, in whichever directions)
        let truth = [0.4, 0.3, 0.2, 0.1];
        for directions in 0..81 {
            let off = |k: u32| f64::from(directions / 3_i32.pow(k) % 3 - 1) / 255.0;
            let count = |(k, share): (u32, f64)| (10_000.0 * (share + off(k))).floor();
            let counts: Vec<f64> =
                [10_000.0, 2_000.0].into_iter().chain((0..).zip(truth).map(count)).collect();
            let shares = events.shares(&counts).unwrap();
            let rounded = events.rounded(&counts, events.rounding_of(10_000.0, 1.0)).unwrap();
            for ((share, rounded), truth) in shares.iter().zip(rounded).zip(truth) {
                assert!((share - truth).abs() <= rounded + 1e-9, "{counts:?}: {share} {rounded} {truth}");
            }
        }
    }
}
