//! Events that are sampled at once, and what became of the samples of each.
#![forbid(unsafe_code)]

use super::{EventSampler, EventSampling, Tally};
use crate::recording::Burst;
use crate::sampler::SampledTarget;
use std::io;
use std::ops::Range;

/// An event among others.
#[derive(Debug)]
struct EventOfSeveral {
    sampling: EventSampling,
    tally: Tally,
    /// Kinds of its samplers: their places among the PMUs of all events.
    kinds: Range<usize>,
}

/// Events.
#[derive(Debug, Default)]
pub(crate) struct EventSamplings(Vec<EventOfSeveral>);

impl EventSamplings {
    /// Of these; nothing was sampled yet.
    pub fn of(all: Vec<EventSampling>) -> EventSamplings {
        let mut end = 0;
        let one = |sampling: EventSampling| {
            let first = end;
            end += sampling.pmus().len();
            EventOfSeveral { sampling, tally: Tally::default(), kinds: first..end }
        };
        EventSamplings(all.into_iter().map(one).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Samplers of a thread, those of each event.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended.
    pub fn of_thread(&self, pid: i32, tid: i32) -> io::Result<Vec<EventSampler>> {
        let opened = self.0.iter().map(|one| one.sampling.of_thread(one.kinds.start, pid, tid));
        Ok(opened.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Samplers of a CPU; none: it is of a kind that is not sampled.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_cpu(&self, counted: SampledTarget) -> io::Result<Vec<EventSampler>> {
        let opened = self.0.iter().map(|one| one.sampling.of_cpu(one.kinds.start, counted));
        Ok(opened.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Adds what became of the samples of this kind.
    pub fn add(&mut self, kind: usize, more: Tally) {
        self.0.iter_mut().filter(|one| one.kinds.contains(&kind)).for_each(|one| one.tally.add(more));
    }

    /// Each with its samples, of these of all.
    pub fn apart(self, bursts: &[Burst]) -> Vec<(EventSampling, Tally, Vec<Burst>)> {
        let apart = |EventOfSeveral { sampling, tally, kinds }| {
            let own = bursts.iter().filter(|burst| kinds.contains(&burst.kind));
            let own = own.map(|burst| Burst { kind: burst.kind - kinds.start, ..burst.clone() });
            (sampling, tally, own.collect())
        };
        self.0.into_iter().map(apart).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_its_own_samples_and_what_became_of_them() {
        let (one, two) = (EventSampling::made_up(&[]), EventSampling::made_up(&["cpu_core", "cpu_atom"]));
        let mut all = EventSamplings::of(vec![two.clone(), one, two]);
        let held = |held| Tally { held, threads: 1, ..Tally::default() };
        (0..4).for_each(|kind| all.add(kind, held(1 << kind)));
        let burst = |kind| Burst { kind, stacks: vec![kind as u32], ..Burst::default() };
        let bursts = [3, 0, 2, 1, 3].map(burst);
        let apart = all.apart(&bursts).into_iter();
        let told: Vec<_> = apart
            .map(|(_, tally, own)| {
                let own: Vec<_> = own.iter().map(|burst| (burst.kind, burst.stacks[0])).collect();
                (tally.held, tally.threads, own)
            })
            .collect();
        // (the made-up one has no PMU, and so no samples)
        assert_eq!(told[0], (0b11, 2, vec![(0, 0), (1, 1)]));
        assert_eq!(told[1], (0, 0, Vec::new()));
        assert_eq!(told[2], (0b1100, 2, vec![(1, 3), (0, 2), (1, 3)]));
    }
}
