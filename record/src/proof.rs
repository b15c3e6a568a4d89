//! Whether what two samples differ by was counted by one thread in one stretch, of which nothing is missing.
#![forbid(unsafe_code)]

use crate::records::RawSample;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use topdown::SampledEvents;

/// By so many cycles one interrupt may come later than the one before it.
const SKID_CYCLES: u64 = 256;
/// In so many cycles slots may be counted in one event and not yet in another.
const EDGE_CYCLES: u64 = 8;

/// By so much more than the time that a thread ran has passed between two samples of it, though it was not switched out: the one is
/// told before its callers are looked for, the other behind that.
const CALLERS_NS: u64 = 2_000;

/// What the samples of a burst have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strobe {
    /// The thread; None: of whichever a CPU runs.
    pub tid: Option<i32>,
    /// Of the event that samples, in its own events.
    pub period: u64,
    /// How many of its events are in a cycle.
    pub per_cycle: u64,
}

/// What tells whether a function that runs at two samples of a burst ran all the while. What runs in between, and is another's, was
/// called and has returned, or was returned to and has called; or it was called, has called the same function again, and none
/// has returned: then the stack is deeper.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Calls {
    /// Of each window that is proved, how many returns there were; empty if they were not counted.
    pub returns: Vec<Option<u64>>,
    /// How far the stack pointer was from where it was at first, at each sample; empty if it is not known.
    pub stack: Vec<i64>,
}

impl Calls {
    pub fn are_unknown(&self) -> bool {
        self.returns.is_empty() && self.stack.is_empty()
    }

    /// None returned in a window.
    pub fn none_returned(&self, window: usize) -> bool {
        self.returns.get(window) == Some(&Some(0))
    }

    /// The same, and at a later sample (numbered as the window that it begins) no more functions have been called than at an earlier.
    fn is_one_activation(&self, windows: Range<usize>) -> bool {
        let no_deeper = match (self.stack.get(windows.start), self.stack.get(windows.end)) {
            (Some(from), Some(to)) => to >= from,
            _ => false,
        };
        no_deeper && windows.clone().all(|window| self.none_returned(window))
    }

    /// What runs at both ends of a window ran all the while.
    pub fn one_ran(&self, window: usize) -> bool {
        self.is_one_activation(window..window + 1)
    }

    /// The same of a whole burst.
    pub fn one_ran_throughout(&self) -> bool {
        !self.returns.is_empty() && self.is_one_activation(0..self.returns.len())
    }
}

/// The windows of a burst, none where it is not proved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProvedWindows {
    pub windows: Vec<Option<Vec<u64>>>,
    pub calls: Calls,
    /// So many were interrupted: by a lost record, by throttling, by others that took the counters.
    pub parted: u64,
    /// In so many the CPU ran another thread, too.
    pub switched: u64,
    /// An event counted more than there were slots.
    pub impossible: bool,
}

/// The windows of a burst. Of a reading that is wrong two windows have a part each, one too much and the other too little: one that
/// is impossible leaves none.
pub(crate) fn proved(events: &SampledEvents, strobe: Strobe, samples: &[RawSample]) -> ProvedWindows {
    let mut all = ProvedWindows::default();
    let counted = events.events.len() + usize::from(events.returns.is_some());
    for pair in samples.windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        let counts: Option<Vec<u64>> =
            from.counts.iter().zip(&to.counts).map(|(from, to)| to.checked_sub(*from)).collect();
        let mut counts = counts.filter(|counts| to.counts.len() == counted && counts.len() == counted);
        let returns = events.returns.and(counts.as_mut()).and_then(Vec::pop);
        let whole = is_one_stretch(strobe, from, to)
            && (events.rounding == 0.0 || was_not_switched_out(from, to))
            && counts.as_ref().is_none_or(|counts| is_a_period(strobe, counts[events.sampler]));
        all.impossible |= counts.as_ref().is_none_or(|counts| whole && !is_possible(events, counts));
        all.parted += u64::from(!whole && !to.switched);
        all.switched += u64::from(to.switched);
        all.windows.push(counts.filter(|_| whole));
        if events.returns.is_some() {
            all.calls.returns.push(returns.filter(|_| whole));
        }
    }
    if all.impossible {
        all.windows.iter_mut().for_each(|window| *window = None);
        all.calls.returns.iter_mut().for_each(|returns| *returns = None);
    }
    if events.returns.is_some() {
        all.calls.stack = stack_of(samples);
    }
    all
}

/// How far the stack pointer is from where it was at first.
fn stack_of(samples: &[RawSample]) -> Vec<i64> {
    let all: Option<Vec<u64>> = samples.iter().map(|sample| sample.stack_pointer).collect();
    let Some(all) = all else { return Vec::new() };
    all.iter().map(|one| one.wrapping_sub(all[0]) as i64).collect()
}

/// Of one thread, no record was lost in between, and the group counted all the while.
fn is_one_stretch(strobe: Strobe, from: &RawSample, to: &RawSample) -> bool {
    let times = |sample: &RawSample, earlier: &RawSample| {
        let enabled = sample.enabled.checked_sub(earlier.enabled)?;
        Some((enabled, sample.running.checked_sub(earlier.running)?))
    };
    let counted = times(to, from).is_some_and(|(enabled, running)| enabled == running);
    let of_one = from.tid == to.tid && strobe.tid.is_none_or(|tid| tid == from.tid) && !to.switched;
    of_one && !to.after_gap && from.time <= to.time && counted
}

/// The thread ran all the while: each time that registers are saved and restored rounds them once more.
fn was_not_switched_out(from: &RawSample, to: &RawSample) -> bool {
    to.time.saturating_sub(from.time) <= to.enabled.saturating_sub(from.enabled) + CALLERS_NS
}

/// The event that samples counted one period, but for the delay of interrupts.
fn is_a_period(strobe: Strobe, counted: u64) -> bool {
    let Strobe { period, per_cycle, .. } = strobe;
    let skid = (SKID_CYCLES * per_cycle).max(period / 2).min(period.saturating_sub(1));
    counted.abs_diff(period) <= skid
}

/// Whether no event counted more than there were slots, but for those that pass at a sample; and of slots that are counted beside
/// cycles, whether there were no more than the core has, and whether they add up.
pub(crate) fn is_possible(events: &SampledEvents, window: &[u64]) -> bool {
    let slots = window[0].saturating_mul(events.slots_each);
    let edge = u64::from(events.slots_per_cycle) * EDGE_CYCLES + slots / 100;
    let of_cycles =
        window[events.sampler].saturating_mul(events.slots_per_cycle.into()) / events.sampled_per_cycle;
    let counts: Vec<f64> = window.iter().map(|n| *n as f64).collect();
    // (each of the four may be rounded by one unit)
    let missing = |all: f64| (all - slots as f64).abs() - 4.0 * events.rounding * slots as f64;
    window.iter().all(|n| *n <= slots.saturating_add(edge))
        && (events.sampler == 0 || slots <= of_cycles.saturating_add(edge))
        && events.categories(&counts).is_none_or(|all| missing(all) <= edge as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STROBE: Strobe = Strobe { tid: Some(7), period: 6000, per_cycle: 6 };

    fn events() -> SampledEvents {
        SampledEvents::of_core("Golden or Raptor Cove, bare counters").unwrap()
    }

    /// Three samples, one period apart each: slots, retiring, backend, frontend, heavy, mispredicts, empty cycles of 6, memory.
    fn samples() -> Vec<RawSample> {
        let window = [6000, 3000, 1200, 600, 300, 900, 50, 600];
        let sample = |k: u64| RawSample {
            tid: 7,
            time: 100 * k,
            enabled: 100 * k,
            running: 90 + 100 * k,
            counts: window.iter().map(|n| 1000 + k * n).collect(),
            ..RawSample::default()
        };
        (1..4).map(sample).collect()
    }

    #[test]
    fn a_whole_burst_has_two_windows() {
        let all = proved(&events(), STROBE, &samples());
        assert_eq!((all.parted, all.impossible), (0, false));
        let window = Some(vec![6000, 3000, 1200, 600, 300, 900, 50, 600]);
        assert_eq!(all.windows, [window.clone(), window]);
    }

    /// The same with two returns, or none, in the second window, and stack pointers.
    fn with_returns(more: u64, stack: [u64; 3]) -> (SampledEvents, Vec<RawSample>) {
        let mut events = events();
        events.returns = Some(("RETURNS", 0x08c4));
        let mut samples = samples();
        for (sample, (returns, pointer)) in samples.iter_mut().zip([5, 5, 5 + more].into_iter().zip(stack)) {
            sample.counts.push(returns);
            sample.stack_pointer = Some(pointer);
        }
        (events, samples)
    }

    #[test]
    fn returns_are_no_part_of_the_window_and_tell_whether_one_function_ran() {
        let calls = |more, stack| {
            let (events, samples) = with_returns(more, stack);
            let all = proved(&events, STROBE, &samples);
            assert!(!all.impossible && all.windows.iter().all(|window| window.as_ref().unwrap().len() == 8));
            all.calls
        };
        let told = |calls: &Calls| [calls.one_ran(0), calls.one_ran(1), calls.one_ran_throughout()];
        let none = calls(0, [0x7000, 0x7000, 0x7010]);
        assert_eq!((&none.returns, &none.stack), (&vec![Some(0), Some(0)], &vec![0, 0, 0x10]));
        assert_eq!(told(&none), [true; 3]);
        let two = calls(2, [0x7000; 3]);
        assert_eq!((told(&two), two.none_returned(1)), ([true, false, false], false));
        // it was called again, by what it has called
        let deeper = calls(0, [0x7000, 0x7000, 0x6fc0]);
        assert_eq!((told(&deeper), deeper.none_returned(1)), ([true, false, false], true));
        // deeper in between alone: another one may have been jumped to and back
        assert_eq!(told(&calls(0, [0x7000, 0x6fc0, 0x7000])), [false, true, true]);
        let (events, mut samples) = with_returns(0, [0x7000; 3]);
        samples[1].stack_pointer = None;
        assert_eq!(told(&proved(&events, STROBE, &samples).calls), [false; 3]);
        samples[2].after_gap = true;
        let parted = proved(&events, STROBE, &samples).calls;
        assert_eq!((parted.none_returned(0), parted.none_returned(1)), (true, false));
        samples[1].counts[4] += 2900; // impossible
        assert_eq!(proved(&events, STROBE, &samples).calls.returns, [None, None]);
        samples[1].counts.pop(); // of another group
        assert_eq!(proved(&events, STROBE, &samples).windows, [None, None]);
        assert!(proved(&self::events(), STROBE, &self::samples()).calls.are_unknown());
    }

    #[test]
    fn a_window_that_was_interrupted_is_none() {
        let interruptions: [fn(&mut [RawSample]); 7] = [
            |samples| samples[2].after_gap = true,
            |samples| samples[2].tid = 8,
            |samples| samples[2].enabled += 1, // the group was not on the counters for a ns
            |samples| samples[2].running -= 95,
            |samples| samples[2].time = 0,
            |samples| samples[2].counts[0] += 6000,
            |samples| samples[2].counts[0] -= 3600,
        ];
        for (k, interrupt) in interruptions.iter().enumerate() {
            let mut samples = samples();
            interrupt(&mut samples);
            let all = proved(&events(), STROBE, &samples);
            assert_eq!((all.parted, all.impossible), (1, false), "{k}");
            assert!(all.windows[0].is_some() && all.windows[1].is_none(), "{k}: {all:?}");
        }
    }

    /// A CPU's counters go on counting whatever runs there.
    #[test]
    fn a_window_of_a_cpu_is_one_threads_alone() {
        let of_cpu = Strobe { tid: None, ..STROBE };
        assert_eq!(proved(&events(), of_cpu, &samples()).windows.iter().flatten().count(), 2);
        // away and back; to a thread that stays
        let switches: [fn(&mut [RawSample]); 2] = [
            |samples| samples[2].switched = true,
            |samples| (samples[2].switched, samples[2].tid) = (true, 8),
        ];
        for switch in switches {
            let mut samples = samples();
            switch(&mut samples);
            let all = proved(&events(), of_cpu, &samples);
            assert_eq!((all.switched, all.parted, all.impossible), (1, 0, false));
            assert!(all.windows[0].is_some() && all.windows[1].is_none(), "{all:?}");
        }
        // without a record of it, though one was asked for
        let mut samples = samples();
        samples[2].tid = 8;
        let all = proved(&events(), of_cpu, &samples);
        assert_eq!((all.switched, all.parted, all.windows.iter().flatten().count()), (0, 1, 1));
        // another thread from the first sample on
        let mut samples = self::samples();
        samples.iter_mut().for_each(|sample| sample.tid = 8);
        assert_eq!(proved(&events(), of_cpu, &samples).windows.iter().flatten().count(), 2);
        assert_eq!(proved(&events(), STROBE, &samples).windows.iter().flatten().count(), 0);
    }

    #[test]
    fn one_impossible_count_leaves_no_window() {
        let wrong: [fn(&mut [RawSample]); 5] = [
            |samples| samples[1].counts[4] += 2900, // too much before, and back again after
            |samples| samples[2].counts[7] += 6000, // memory above all slots
            |samples| samples[1].counts[1] += 4000, // more than all slots
            |samples| samples[2].counts[3] = 0,     // went back
            |samples| _ = samples[2].counts.pop(),
        ];
        for (k, wrong) in wrong.iter().enumerate() {
            let mut samples = samples();
            wrong(&mut samples);
            let all = proved(&events(), STROBE, &samples);
            assert!(all.impossible && all.windows == [None, None], "{k}: {all:?}");
        }
    }

    /// The same by registers: slots, cycles, and eight categories.
    fn by_registers() -> (SampledEvents, Strobe, Vec<RawSample>) {
        let window = [6000, 1000, 2988, 1200, 588, 1200, 300, 900, 300, 600];
        let mut samples = samples();
        for (k, sample) in (1..).zip(&mut samples) {
            sample.counts = window.iter().map(|n| 1000 + k * n).collect();
        }
        let strobe = Strobe { tid: Some(7), period: 1000, per_cycle: 1 };
        (SampledEvents::of_core("Golden or Raptor Cove").unwrap(), strobe, samples)
    }

    #[test]
    fn registers_are_believed_if_they_add_up_and_are_of_no_more_than_all_slots() {
        let (events, strobe, samples) = by_registers();
        let all = proved(&events, strobe, &samples);
        assert_eq!((all.parted, all.impossible, all.windows.iter().flatten().count()), (0, false, 2));
        let wrong: [fn(&mut [RawSample]); 3] = [
            |samples| samples[2].counts[2] -= 600, // retiring: the four are a tenth less than the slots
            |samples| samples[2].counts[5] += 600,
            // others' slots, as many of each category
            |samples| {
                samples[2]
                    .counts
                    .iter_mut()
                    .enumerate()
                    .for_each(|(k, n)| *n += u64::from(k != 1) * (*n - 1000) / 2)
            },
        ];
        for (k, wrong) in wrong.iter().enumerate() {
            let mut samples = samples.clone();
            wrong(&mut samples);
            let all = proved(&events, strobe, &samples);
            assert!(all.impossible && all.windows == [None, None], "{k}: {all:?}");
        }
    }

    #[test]
    fn registers_of_a_thread_that_was_switched_out_are_not_believed() {
        let (registers, strobe, mut samples) = by_registers();
        samples[2].time += 10_000;
        let all = proved(&registers, strobe, &samples);
        assert_eq!((all.parted, all.impossible), (1, false));
        assert!(all.windows[0].is_some() && all.windows[1].is_none());
        // (what counters have counted is not rounded)
        let mut samples = self::samples();
        samples[2].time += 10_000;
        assert_eq!(proved(&events(), STROBE, &samples).parted, 0);
    }
}
