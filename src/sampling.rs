//! The events that a sampling profiler counts between two samples, and the shares that follow from such counts.
#![forbid(unsafe_code)]

use crate::detect::{self, Plan, Pmu};
use crate::error::{Error, Result};
use crate::model::metrics::{Metric, TD_NODE_NONE};
use crate::model::tree::Tree;
use crate::model::{self, MOST_INPUTS};
use crate::sys::Linux;
use crate::sys::cpu;
use crate::tree::{Count, Counted, evaluate};

/// Plain counters of one kind of this machine's cores. The first counts all slots, or cycles; each other one the slots of a
/// category. They make a perf group of which the first is the leader.
#[derive(Clone, Debug)]
pub struct SampledEvents {
    /// The core's name.
    pub core: &'static str,
    /// The PMU's name in sysfs.
    pub pmu: &'static str,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// Name and `perf_event_attr.config` of each.
    pub events: Vec<(&'static str, u64)>,
    /// Slots for each that the first counts.
    pub slots_each: u64,
    /// Pipeline slots per cycle.
    pub slots_per_cycle: u32,
    /// Deepest level that they tell.
    pub level: u32,
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

/// The events of each kind of core, that of P-cores first, down to a level (0: the deepest).
///
/// # Errors
/// -ENODEV: this machine has no general counters of slots.
pub fn sampled_events(level: u32) -> Result<Vec<SampledEvents>> {
    let (kernel, cpu) = (Linux::default(), cpu::identify());
    let first = detect::counters(&kernel, &cpu, level)?;
    let second = detect::e_cores(&kernel, &cpu, TD_NODE_NONE, level).ok();
    [Some(first), second]
        .into_iter()
        .flatten()
        .map(|(pmu, plan)| SampledEvents::of(&pmu, &plan, level))
        .collect()
}

impl SampledEvents {
    fn of(pmu: &Pmu, plan: &Plan, level: u32) -> Result<SampledEvents> {
        let tree = u8::try_from(pmu.row).ok().and_then(model::tree_of);
        let tree = tree.ok_or_else(|| Error::errno(libc::ENODEV, "the core has no tree of metrics"))?;
        let events = [plan.leader.event].into_iter().chain(plan.members.iter().copied());
        Ok(SampledEvents {
            core: pmu.model.core,
            pmu: pmu.name,
            kind: pmu.kind,
            events: events.map(|event| (event.name, event.config)).collect(),
            slots_each: plan.slots_each,
            slots_per_cycle: pmu.model.slots_per_cycle,
            level: if level == 0 { pmu.level } else { level.min(pmu.level) },
            tree,
        })
    }

    /// The nodes that are told, parents before their children.
    #[must_use]
    pub fn nodes(&self) -> Vec<SampledNode> {
        let measured = self.tree.nodes.iter().filter(|row| row.is_measured(self.level));
        measured.map(|row| SampledNode { metric: row.metric, parent: row.parent, level: row.level }).collect()
    }

    /// Slots of counts in the order of `events`.
    #[must_use]
    pub fn slots(&self, counts: &[f64]) -> f64 {
        counts.first().map_or(0.0, |n| n * self.slots_each as f64)
    }

    /// The share of each of `nodes` (0 to 1), of counts in the order of `events`. None: nothing was counted.
    #[must_use]
    pub fn shares(&self, counts: &[f64]) -> Option<Vec<f64>> {
        let slots = self.slots(counts);
        if counts.len() != self.events.len() || slots <= 0.0 {
            return None;
        }
        let measured = &self.tree.inputs[..self.tree.inputs_of(self.level)];
        let input = |place: usize| {
            let (counter, each) = measured.get(place)?.counter()?;
            let n = counts.get(1 + counter)? * f64::from(each);
            Some(Count { n, rounding: 0.0, edges: 0.0, sampled: 0.0 })
        };
        let inputs: [Option<Count>; MOST_INPUTS] = std::array::from_fn(input);
        let counted = Counted { inputs, slots, uncounted: 0.0, unknown: 0.0 };
        let shares = evaluate::evaluate(self.tree, self.level, &counted);
        let rows = self.tree.nodes.iter().zip(shares).filter(|(row, _)| row.is_measured(self.level));
        rows.map(|(_, share)| share.map(|share| share.value)).collect()
    }

    /// Those of the core of this name, for tests and simulations on any machine.
    #[must_use]
    pub fn of_core(core: &str) -> Option<SampledEvents> {
        let (row, model) = model::named(core)?;
        let model::Counting::Counters(counters) = model.counting else { return None };
        let leader = counters.leaders.first()?;
        let events = [leader.event].into_iter().chain(counters.events.iter().copied());
        Some(SampledEvents {
            core: model.core,
            pmu: "cpu",
            kind: 4,
            events: events.map(|event| (event.name, event.config)).collect(),
            slots_each: if leader.by_cycle { model.slots_per_cycle.into() } else { 1 },
            slots_per_cycle: model.slots_per_cycle,
            level: model.levels(),
            tree: u8::try_from(row).ok().and_then(model::tree_of)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_counts() {
        let events = SampledEvents::of_core("Golden or Raptor Cove, by counters").unwrap();
        // slots, retiring, backend, frontend, heavy, mispredicts, empty cycles of 6, memory
        let shares = events.shares(&[6000.0, 3000.0, 1200.0, 600.0, 300.0, 900.0, 50.0, 600.0]).unwrap();
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
        assert!(events.shares(&[0.0; 8]).is_none() && events.shares(&[1.0; 3]).is_none());
    }
}
