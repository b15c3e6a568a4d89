//! What threads did while nobody sampled them: before their counters were open; and at their ends, if bursts tell their time and a chance was overdue then.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Threads that began or ended during the recording, as far as nobody sampled them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Those that had ended before their counters were open.
    pub threads: usize,
    /// Until the counters of each thread were open, or it had ended, no more than this ran, in nanoseconds; with what threads did that
    /// ended while a chance was overdue, and with time of which samples were lost.
    pub ns: u64,
}

/// The same, as it comes. Times are of the clock of all records.
#[derive(Debug)]
pub(crate) struct Beginnings {
    /// No more threads run at once.
    cpus: u64,
    /// Threads without counters whose ends were not told yet, and when they began.
    waiting: HashMap<i32, u64>,
    /// From when until when a thread was not sampled.
    stretches: Vec<(u64, u64)>,
    threads: usize,
    /// Of earlier stretches.
    ns: u64,
}

/// So many stretches are added up at once. (Of each batch by itself no less comes out than of all together.)
const BATCH: usize = 4096;

impl Beginnings {
    /// On so many CPUs.
    pub fn new(cpus: usize) -> Beginnings {
        let (waiting, stretches) = (HashMap::new(), Vec::new());
        Beginnings { cpus: cpus.max(1) as u64, waiting, stretches, threads: 0, ns: 0 }
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> u64 {
        self.cpus
    }

    /// The counters of a thread that began then are open now.
    pub fn opened(&mut self, began: u64, now: u64) {
        self.unsampled(began, now);
    }

    /// From then until then a thread was not sampled, or there is nothing between.
    pub fn unsampled(&mut self, from: u64, to: u64) {
        if from < to {
            self.stretches.push((from, to));
        }
        if self.stretches.len() >= BATCH {
            self.ns += most(&self.stretches, self.cpus);
            self.stretches.clear();
        }
    }

    /// So many nanoseconds ran of which nothing is known.
    pub fn untold(&mut self, ns: u64) {
        self.ns += ns;
    }

    /// A thread that began then had ended before they were.
    pub fn missed(&mut self, tid: i32, began: u64) {
        self.threads += 1;
        self.waiting.insert(tid, began);
    }

    /// A thread's end was told.
    pub fn ended(&mut self, tid: i32, at: u64) {
        if let Some(began) = self.waiting.remove(&tid) {
            self.unsampled(began, at);
        }
    }

    /// All so far.
    pub fn unseen(&self) -> Unseen {
        Unseen { threads: self.threads, ns: self.ns + most(&self.stretches, self.cpus) }
    }
}

/// For how long threads can have run in these stretches, on so many CPUs.
fn most(stretches: &[(u64, u64)], cpus: u64) -> u64 {
    let ends = stretches.iter().flat_map(|(from, to)| [(*from, true), (*to, false)]);
    let mut ends: Vec<(u64, bool)> = ends.collect();
    ends.sort_unstable();
    let (mut sum, mut at_once, mut last) = (0, 0_u64, 0);
    for (time, begins) in ends {
        sum += at_once.min(cpus) * (time - last);
        last = time;
        at_once = if begins { at_once + 1 } else { at_once.saturating_sub(1) };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_unseen_until_its_counters_are_open_or_it_has_ended() {
        let mut beginnings = Beginnings::new(2);
        beginnings.opened(100, 350);
        assert_eq!(beginnings.unseen(), Unseen { threads: 0, ns: 250 });
        beginnings.missed(7, 400);
        beginnings.ended(8, 450); // (one that was seen)
        beginnings.ended(7, 500);
        beginnings.ended(7, 900);
        assert_eq!(beginnings.unseen(), Unseen { threads: 1, ns: 350 });
        // what ran while samples were lost comes on top, whoever ran
        beginnings.untold(4000);
        beginnings.untold(30);
        assert_eq!(beginnings.unseen(), Unseen { threads: 1, ns: 4380 });
    }

    #[test]
    fn no_more_threads_run_at_once_than_there_are_cpus() {
        let mut beginnings = Beginnings::new(2);
        (0..10).for_each(|k| beginnings.opened(1000 + k, 2000));
        assert_eq!(beginnings.unseen().ns, 2 * 1000 - 1);
        // (and with one at a time there is nothing to share)
        (0..BATCH as u64).for_each(|k| beginnings.opened(3000 + 10 * k, 3005 + 10 * k));
        assert_eq!(beginnings.unseen().ns, 2 * 1000 - 1 + 5 * BATCH as u64);
    }
}
