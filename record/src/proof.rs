//! Whether what two samples differ by was counted by one thread in one stretch, of which nothing is missing.
#![forbid(unsafe_code)]

use crate::records::RawSample;
use topdown::SampledEvents;

/// By so many cycles one interrupt may come later than the one before it.
const SKID_CYCLES: u64 = 256;
/// In so many cycles slots may be counted in one event and not yet in another.
const EDGE_CYCLES: u64 = 8;

/// What the samples of a burst have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strobe {
    pub tid: i32,
    /// The leader's, in its own events.
    pub period: u64,
    /// Of the leader's events.
    pub per_cycle: u64,
}

/// The windows of a burst, none where it is not proved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProvedWindows {
    pub windows: Vec<Option<Vec<u64>>>,
    /// So many were interrupted: by a lost record, by throttling, by others that took the counters.
    pub parted: u64,
    /// An event counted more than there were slots.
    pub impossible: bool,
}

/// The windows of a burst. Of a reading that is wrong two windows have a part each, one too much and the other too little: one that
/// is impossible leaves none.
pub(crate) fn proved(events: &SampledEvents, strobe: Strobe, samples: &[RawSample]) -> ProvedWindows {
    let mut all = ProvedWindows::default();
    for pair in samples.windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        let counts: Option<Vec<u64>> =
            from.counts.iter().zip(&to.counts).map(|(from, to)| to.checked_sub(*from)).collect();
        let counts = counts
            .filter(|counts| to.counts.len() == events.events.len() && counts.len() == events.events.len());
        let whole = is_one_stretch(strobe, from, to)
            && counts.as_ref().is_none_or(|counts| is_a_period(strobe, counts[0]));
        all.impossible |= counts.as_ref().is_none_or(|counts| whole && !is_possible(events, counts));
        all.parted += u64::from(!whole);
        all.windows.push(counts.filter(|_| whole));
    }
    if all.impossible {
        all.windows.iter_mut().for_each(|window| *window = None);
    }
    all
}

/// Of one thread, no record was lost in between, and the group counted all the while.
fn is_one_stretch(strobe: Strobe, from: &RawSample, to: &RawSample) -> bool {
    let times = |sample: &RawSample, earlier: &RawSample| {
        let enabled = sample.enabled.checked_sub(earlier.enabled)?;
        Some((enabled, sample.running.checked_sub(earlier.running)?))
    };
    let counted = times(to, from).is_some_and(|(enabled, running)| enabled == running);
    from.tid == strobe.tid && to.tid == strobe.tid && !to.after_gap && from.time <= to.time && counted
}

/// The leader counted one period, but for the delay of interrupts.
fn is_a_period(strobe: Strobe, counted: u64) -> bool {
    let Strobe { period, per_cycle, .. } = strobe;
    let skid = (SKID_CYCLES * per_cycle).max(period / 2).min(period.saturating_sub(1));
    counted.abs_diff(period) <= skid
}

/// Whether no event counted more than there were slots, but for those that pass at a sample.
fn is_possible(events: &SampledEvents, window: &[u64]) -> bool {
    let slots = window[0].saturating_mul(events.slots_each);
    let edge = u64::from(events.slots_per_cycle) * EDGE_CYCLES + slots / 100;
    window.iter().all(|n| *n <= slots + edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STROBE: Strobe = Strobe { tid: 7, period: 6000, per_cycle: 6 };

    fn events() -> SampledEvents {
        SampledEvents::of_core("Golden or Raptor Cove, by counters").unwrap()
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
}
