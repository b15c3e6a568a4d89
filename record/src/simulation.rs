//! Made-up counts: what a recording of time would have been with counters, to see what its views look like on a machine that has none. Samples
//! of time, and the stacks of these, are what they are; the windows between samples are made up, and each function has a mix of its own, which
//! follows from its name. All views say so.
#![forbid(unsafe_code)]

use crate::budget::Pace;
use crate::event_sampling::EventSampling;
use crate::recording::{Burst, Recording};
use std::collections::HashMap;
use topdown::SampledEvents;
use topdown_seam::random::Random;

/// What told the time.
pub(crate) const BY_TIMER: &str = "timer";
pub(crate) const BY_STOPS: &str = "stops";
/// Levels that the events of real cores tell.
const DEEPEST: u32 = 2;
/// How far a counter of a function may be from what the simulated PMU counts, as a power of e.
const FARTHEST: f64 = 2.0;
/// So many mixes are tried for one in which the wanted node is the largest.
const TRIES: u32 = 500;
/// No share of a mix is smaller.
const LEAST: f64 = 0.01;
/// So many cycles of a function are looked at.
const MANY_CYCLES: f64 = 1e6;
/// The part of a burst's counts that is not its function's.
const SCATTER: f64 = 0.3;

impl Recording {
    /// Whether slots of the core of this name can be simulated.
    #[must_use]
    pub fn can_simulate(core: &str) -> bool {
        SampledEvents::of_core(core).is_some_and(|events| events.simulated(1.0).is_some())
    }

    /// A recording of time, as if slots had been counted with it down to this level (0: the deepest) by the core of this name; None: that cannot be
    /// simulated.
    #[must_use]
    pub fn simulated(self, core: &str, level: u32) -> Option<Recording> {
        let mut events = SampledEvents::of_core(core)?;
        let level = if level == 0 { DEEPEST } else { level.min(DEEPEST) };
        events.level = events.level.min(level);
        events.simulated(1.0)?;
        let mut totals = self.totals;
        totals.pace = Pace::NONE;
        let is_by_stops = |(sampling, _): &(EventSampling, _)| sampling.of().is_by_stops();
        let by = if self.sampling.as_ref().is_some_and(is_by_stops) { BY_STOPS } else { BY_TIMER };
        Some(Recording { events: vec![events], sampling: None, simulated: Some(by), totals, ..self })
    }
}

/// A text's number, which is the same everywhere (FNV-1a).
fn number_of(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Mixes of functions, by their names.
pub(crate) struct SimulatedMixes<'e> {
    events: &'e SampledEvents,
    /// What the simulated PMU counts in a cycle.
    base: Vec<f64>,
    known: HashMap<String, Vec<f64>>,
}

impl<'e> SimulatedMixes<'e> {
    pub fn new(events: &'e SampledEvents) -> SimulatedMixes<'e> {
        SimulatedMixes { events, base: events.simulated(1.0).unwrap_or_default(), known: HashMap::new() }
    }

    /// What each event counts in a cycle of a function.
    fn of(&mut self, name: &str) -> &[f64] {
        if !self.known.contains_key(name) {
            let mix = self.made(name);
            self.known.insert(name.into(), mix);
        }
        &self.known[name]
    }

    fn made(&self, name: &str) -> Vec<f64> {
        let mut random = Random::new(number_of(name));
        let roots = self.events.nodes().iter().filter(|node| node.level == 1).count() as u64;
        let wanted = random.below(roots) as usize;
        let mut first = None;
        for _ in 0..TRIES {
            let mut factor = || (FARTHEST * (2.0 * random.part() - 1.0)).exp();
            let (leader, counters) = self.base.split_at(1);
            let mix: Vec<f64> =
                leader.iter().copied().chain(counters.iter().map(|each| each * factor())).collect();
            match self.largest(&mix) {
                Some(largest) if largest == wanted => return mix,
                Some(_) => _ = first.get_or_insert(mix),
                None => {}
            }
        }
        first.unwrap_or_else(|| self.base.clone())
    }

    /// Which node of level 1 is the largest of such counts, by its place; None: no core counts such.
    fn largest(&self, mix: &[f64]) -> Option<usize> {
        // (formulas are of counts, of which less than one is none)
        let counts: Vec<f64> = mix.iter().map(|each| MANY_CYCLES * each).collect();
        let (nodes, shares) = (self.events.nodes(), self.events.shares(&counts)?);
        let with_shares = || nodes.iter().zip(&shares);
        let is_divided = |(parent, share): (u32, f64)| {
            let parts = || with_shares().filter(|(node, _)| node.parent == parent).map(|(_, share)| *share);
            let sum: f64 = parts().sum();
            parts().next().is_none()
                || (parts().all(|part| part >= LEAST * share) && (1.0 - sum / share).abs() < LEAST)
        };
        let whole = [(topdown::TD_NODE_NONE, 1.0)];
        let parents = with_shares().map(|(node, share)| (node.metric.id, *share));
        if !whole.into_iter().chain(parents).all(is_divided) {
            return None;
        }
        let roots = with_shares().filter(|(node, _)| node.level == 1).enumerate();
        roots.max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b)).map(|(place, _)| place)
    }

    /// The burst that would have come with a sample of time, in the function of this name: three samples in it, and what was counted between them.
    pub fn burst(&mut self, sample: &Burst, number: usize, name: &str, gap: u64) -> Option<Burst> {
        let stack = *sample.stacks.first()?;
        let long = number % 2 == 1;
        let cycles = if long { 4 * gap } else { gap } as f64;
        let part = SCATTER * Random::new(number as u64 + 1).part();
        let base = self.base.clone();
        let mix = self.of(name).iter().zip(base);
        // (between what two mixes count is what a mix counts)
        let counts: Vec<u64> =
            mix.map(|(own, other)| (cycles * ((1.0 - part) * own + part * other)) as u64).collect();
        Some(Burst {
            long,
            weight_ns: 0,
            stacks: vec![stack; 3],
            windows: vec![Some(counts.clone()), Some(counts)],
            ..sample.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_a_mix_that_its_core_may_count_and_that_follows_from_its_name() {
        for core in topdown::cores().filter(|core| core.is_default).map(|core| core.core) {
            let Some(recorded) = topdown::simulated_by_counters(core)
                .ok()
                .and_then(|core| Recording::none(Vec::new(), Default::default()).simulated(core, 0))
            else {
                continue;
            };
            let mut largest = std::collections::BTreeSet::new();
            for name in (0..40).map(|number| format!("function {number}")) {
                let mut mixes = SimulatedMixes::new(&recorded.events[0]);
                let mix = mixes.of(&name).to_vec();
                assert_eq!(mix, SimulatedMixes::new(&recorded.events[0]).of(&name), "{core}");
                largest.extend(mixes.largest(&mix));
            }
            assert!(largest.len() > 1, "{core}: {largest:?}");
        }
    }
}
