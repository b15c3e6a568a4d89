//! How many bursts a second: as many as are asked for, but no more than their own cost and the kernel permit.
#![forbid(unsafe_code)]

use crate::chances::ChanceRate;
use crate::sampler::SAMPLES;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, Instant};

/// The kernel's limit on samples per second and CPU, which it lowers itself where interrupts take long.
const MAX_SAMPLE_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
/// It is looked at so often.
const LOOK: Duration = Duration::from_millis(500);
/// Ticks per second, at the most: the kernel counts samples by tick.
const MOST_TICKS: f64 = 1000.0;
/// Samples of a burst.
const EACH: f64 = SAMPLES as f64;
/// What a burst is taken to cost before it is measured, and of how many bursts that is worth.
const BEFORE_NS: f64 = 20_000.0;
const BEFORE_WEIGHT: f64 = 8.0;
const NS_PER_SECOND: f64 = 1e9;
/// Fewer are not asked for, whatever the limit.
const LEAST: f64 = 10.0;

/// What limits the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Nothing but what was asked for.
    Asked,
    /// The part of the time that bursts may take.
    Cost,
    /// kernel.perf_event_max_sample_rate.
    Kernel,
}

/// What was wanted, and what of it was asked of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Bursts per second and thread that were wanted.
    pub asked: u32,
    /// The most that were asked of a thread in the end. (Fewer come: a burst counts if its thread runs then.)
    pub frequency: f64,
    /// Time that one takes, of the thread and of the recorder together, in nanoseconds.
    pub burst_ns: f64,
    /// The part of the time that they may take (0 to 1).
    pub budget: f64,
    /// Why not more.
    pub limit: Limit,
}

impl Pace {
    /// There are no bursts.
    pub(crate) const NONE: Pace =
        Pace { asked: 0, frequency: 0.0, burst_ns: 0.0, budget: 0.0, limit: Limit::Asked };
}

/// The costs so far.
#[derive(Debug)]
pub(crate) struct BurstBudget {
    asked: u32,
    part: f64,
    /// Sum of what bursts took of threads, and how many bursts that are.
    threads: (f64, f64),
    /// The same of the recorder.
    recorder: (f64, f64),
    by_kernel: f64,
    /// Bursts of a thread in one tick.
    permitted: f64,
    look: Instant,
}

/// The kernel's limit now.
pub(crate) fn max_sample_rate() -> Option<f64> {
    fs::read_to_string(MAX_SAMPLE_RATE).ok()?.trim().parse().ok()
}

/// Bursts per second and thread below the kernel's limit: of those in one tick half as many samples as it permits.
fn below_throttling(max_sample_rate: f64) -> f64 {
    ((max_sample_rate / EACH - MOST_TICKS) / 2.0).max(LEAST)
}

impl BurstBudget {
    /// `part` of the time may be taken.
    pub fn new(asked: u32, part: f64) -> BurstBudget {
        let before = (BEFORE_NS * BEFORE_WEIGHT, BEFORE_WEIGHT);
        let (threads, recorder) = (before, (0.0, BEFORE_WEIGHT));
        BurstBudget {
            asked,
            part,
            threads,
            recorder,
            by_kernel: f64::INFINITY,
            permitted: f64::INFINITY,
            look: Instant::now(),
        }
    }

    /// A burst took so much time of its thread.
    pub fn thread_paid(&mut self, ns: f64) {
        self.threads = (self.threads.0 + ns, self.threads.1 + 1.0);
    }

    /// So much CPU time of the recorder went into so many bursts.
    pub fn recorder_paid(&mut self, ns: f64, bursts: f64) {
        self.recorder = (self.recorder.0 + ns, self.recorder.1 + bursts);
    }

    /// Looks at the kernel's limit, if it has not been looked at for long.
    pub fn look(&mut self) {
        if Instant::now() >= self.look {
            let rate = max_sample_rate().unwrap_or(f64::INFINITY);
            (self.by_kernel, self.permitted) = (below_throttling(rate), rate / MOST_TICKS / EACH);
            self.look = Instant::now() + LOOK;
        }
    }

    /// How often a thread may have chances. In a tick there may be two more of them than on average, and one that comes late: where that are too
    /// many they are apart.
    pub fn rate(&self) -> ChanceRate {
        let frequency = self.pace().frequency;
        let many = frequency / MOST_TICKS + 3.0 > self.permitted;
        ChanceRate { frequency, apart_ns: if many { NS_PER_SECOND / MOST_TICKS } else { 0.0 } }
    }

    /// As things stand.
    pub fn pace(&self) -> Pace {
        let burst_ns = self.threads.0 / self.threads.1 + self.recorder.0 / self.recorder.1;
        let by_cost = (self.part * 1e9 / burst_ns).max(LEAST);
        let asked = f64::from(self.asked);
        let frequency = asked.min(by_cost).min(self.by_kernel);
        let limit = match frequency {
            all if all >= asked => Limit::Asked,
            all if all >= by_cost => Limit::Cost,
            _ => Limit::Kernel,
        };
        Pace { asked: self.asked, frequency, burst_ns, budget: self.part, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_take_no_more_than_their_part_of_the_time() {
        let mut budget = BurstBudget::new(500, 0.01);
        assert_eq!((budget.pace().frequency, budget.pace().limit), (500.0, Limit::Asked));
        for _ in 0..10_000 {
            budget.thread_paid(30_000.0);
            budget.recorder_paid(10_000.0, 1.0);
        }
        let pace = budget.pace();
        assert!((pace.frequency * pace.burst_ns / 1e9 - 0.01).abs() < 1e-9 && pace.limit == Limit::Cost);
        assert!((pace.frequency - 250.0).abs() < 1.0, "{pace:?}");
        budget.by_kernel = below_throttling(3600.0);
        assert_eq!((budget.pace().frequency, budget.pace().limit), (100.0, Limit::Kernel));
        assert_eq!(budget.rate().apart_ns, 0.0);
        budget.permitted = 2.0;
        assert_eq!((budget.rate().frequency, budget.rate().apart_ns), (100.0, 1e6));
    }

    #[test]
    fn a_tick_has_fewer_samples_than_the_kernel_permits() {
        for rate in [4000.0, 25_000.0, 100_000.0] {
            let ticks = MOST_TICKS;
            // (instants are half an interval apart at the least)
            let bursts = 1.0 + 2.0 * below_throttling(rate) / ticks;
            assert!(bursts * EACH <= rate / ticks + 1e-9, "{rate}");
        }
        assert_eq!(below_throttling(1.0), LEAST);
    }
}
