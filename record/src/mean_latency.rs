//! Retire latencies of the samples of an event: their mean, with its interval.
#![forbid(unsafe_code)]

use crate::latency::{FEWEST_LATENCIES, LONGEST_LATENCY};
use crate::statistics::student;
use serde::Serialize;

/// The mean retire latency of an event, in cycles: how long an instruction waited to retire after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanLatency {
    /// Of the samples.
    pub value: f64,
    /// It is no less than this (95 %).
    pub low: f64,
    /// Nor more; None: a sample had more than its field holds.
    pub high: Option<f64>,
}

/// Latencies of samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LatencyTally {
    samples: u64,
    sum: f64,
    squares: f64,
    largest: u16,
}

impl LatencyTally {
    /// Adds that of a sample, if it tells one.
    pub fn add(&mut self, latency: Option<u16>) {
        let Some(latency) = latency else { return };
        self.samples += 1;
        self.sum += f64::from(latency);
        self.squares += f64::from(latency).powi(2);
        self.largest = self.largest.max(latency);
    }

    /// Samples told some, and all of them nothing: the kernel or the CPU gives none.
    pub fn is_always_nothing(&self) -> bool {
        self.samples >= FEWEST_LATENCIES && self.largest == 0
    }

    /// Their mean; None: too few tell it, or nothing in `all` does. What is seldom may not have been seen: of `n` draws nothing that is missing
    /// has more than a part of 3 / n (95 %). It may be nothing, or the largest of all samples of the event.
    pub fn mean(&self, all: &LatencyTally) -> Option<MeanLatency> {
        const MISSING: f64 = 3.0;
        if self.samples < FEWEST_LATENCIES || all.largest == 0 {
            return None;
        }
        let n = self.samples as f64;
        let value = self.sum / n;
        let variance = (self.squares - self.sum * value).max(0.0) / (n - 1.0);
        let half = student(self.samples as usize - 1) * (variance / n).sqrt();
        let missing = MISSING / n;
        let is_open = u64::from(self.largest) == LONGEST_LATENCY;
        let high = (!is_open).then_some(value + half + missing * (f64::from(all.largest) - value));
        Some(MeanLatency { value, low: (value - half - missing * value).max(0.0), high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::at_most;
    use topdown_seam::random::Random;

    fn of(latencies: &[u16]) -> LatencyTally {
        let mut tally = LatencyTally::default();
        latencies.iter().for_each(|latency| tally.add(Some(*latency)));
        tally
    }

    #[test]
    fn few_samples_and_those_without_latencies_tell_none() {
        let few = of(&[7; 31]);
        assert_eq!(few.mean(&few), None);
        let nothing = of(&[0; 40]);
        assert!(nothing.is_always_nothing() && nothing.mean(&nothing).is_none());
        // (of one function nothing may be the truth)
        let mean = nothing.mean(&of(&[9])).unwrap();
        assert_eq!((mean.value, mean.low, mean.high), (0.0, 0.0, Some(3.0 / 40.0 * 9.0)));
        assert!(!of(&[7; 40]).is_always_nothing() && !LatencyTally::default().is_always_nothing());
    }

    #[test]
    fn what_the_field_does_not_hold_has_no_upper_end() {
        let tally = of(&[&[50; 99][..], &[u16::MAX]].concat());
        let mean = tally.mean(&tally).unwrap();
        assert!(mean.high.is_none() && mean.low < 50.0 && mean.value > 700.0, "{mean:?}");
    }

    /// Two kinds of latency, one of them seldom, in one of many functions.
    #[test]
    fn the_truth_is_in_the_interval_as_often_as_promised() {
        const RUNS: u32 = 2000;
        let mut random = Random::new(5);
        for (samples, seldom) in
            [(32, 0.02), (32, 0.3), (32, 0.97), (100, 0.02), (100, 0.98), (1000, 0.005), (1000, 0.5)]
        {
            let (short, long, mut inside) = (12_u16, 400_u16, 0);
            let truth = f64::from(short) + seldom * f64::from(long - short);
            let all = of(&[long]);
            for _ in 0..RUNS {
                let mut tally = LatencyTally::default();
                for _ in 0..samples {
                    let is_long = (random.below(1 << 20) as f64) < seldom * f64::from(1 << 20);
                    tally.add(Some(if is_long { long } else { short }));
                }
                let mean = tally.mean(&all).unwrap();
                inside += u32::from(mean.low <= truth && truth <= mean.high.unwrap());
            }
            assert!(at_most(inside.into(), f64::from(RUNS)) >= 0.95, "{samples} {seldom}: {inside}");
        }
    }
}
