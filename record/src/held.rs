//! What samples of an event are, and how much of all that ran they stand for.
#![forbid(unsafe_code)]

use crate::event_sampling::{EventSampling, SamplesOf, Tally};
use serde::Serialize;
use topdown_report::ShareInterval;

/// What samples of an event are, and what part of all they make.
#[derive(Clone, Debug, Serialize)]
pub struct EventShare {
    /// What they are of.
    #[serde(flatten)]
    pub of: SamplesOf,
    /// The event that samples.
    pub event: String,
    /// What it counts from one sample to the next.
    pub period: u64,
    /// Samples: of a condition, stretches in which it held.
    pub samples: u64,
    /// Samples that are not among them: there was no room, or of a condition, the thread was descheduled within the stretch.
    #[serde(rename = "samples_left_out")]
    pub left_out: u64,
    /// What the event counted in all.
    #[serde(rename = "events_in_all")]
    pub all: u64,
    /// That is all of it: where one counter alone counts the event, it is what came while the kernel did not throttle it.
    #[serde(rename = "all_counted")]
    pub is_counted: bool,
    /// The part of these that samples stand for; None: not all were counted, or none, or it contradicts the samples.
    pub part: Option<ShareInterval>,
    /// The part of the time for which the counters were not others' (0 to 1).
    #[serde(rename = "time_counted")]
    pub counted: f64,
    /// PMUs that were sampled; none, if time was.
    pub pmus: Vec<&'static str>,
    /// PMUs of cores of which nothing is in this.
    #[serde(rename = "pmus_without")]
    pub without: Vec<&'static str>,
}

impl EventShare {
    pub(crate) fn of(sampling: &EventSampling, tally: &Tally) -> EventShare {
        let (of, event, period) = (sampling.of(), sampling.event(), sampling.period());
        let left_out = tally.parted + tally.lost;
        EventShare {
            of: of.clone(),
            event: event.into(),
            period,
            samples: tally.held,
            left_out,
            all: tally.all.count,
            is_counted: tally.uncounted == 0,
            // (a CPU's clock goes on while that is idle)
            part: part(tally, period).filter(|_| sampling.knows_all()),
            counted: if tally.all.enabled > 0 {
                tally.all.running as f64 / tally.all.enabled as f64
            } else {
                1.0
            },
            pmus: if of.is_time() { Vec::new() } else { sampling.pmus() },
            without: sampling.without().to_vec(),
        }
    }
}

/// Of what was counted, how much was in stretches in which the condition held, or has samples. Those of which it is not known may be or not:
/// samples that are left out, and on each thread what came after the last one.
fn part(tally: &Tally, period: u64) -> Option<ShareInterval> {
    let all = tally.all.count as f64;
    let part = |events: u64| (events as f64 / all).min(1.0);
    let unknown = (tally.parted + tally.lost + tally.threads) * period;
    let (low, high) = (part(tally.sampled), part(tally.sampled + unknown));
    // (the three events are not read at one instant)
    let is_known = all > 0.0 && tally.sampled as f64 / all < 1.01 && tally.uncounted == 0;
    is_known.then_some(ShareInterval { value: low, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventTimes;

    fn tally(held: u64, parted: u64, count: u64) -> Tally {
        let all = EventTimes { count, enabled: 10, running: 10 };
        Tally { held, sampled: 100 * held, parted, threads: 1, all, ..Tally::default() }
    }

    #[test]
    fn what_is_left_out_is_in_the_interval() {
        let of = |tally: &Tally| part(tally, 100).map(|part| [part.low, part.value, part.high]);
        assert_eq!(of(&tally(40, 0, 10_000)), Some([0.4, 0.4, 0.41]));
        assert_eq!(of(&tally(40, 9, 10_000)), Some([0.4, 0.4, 0.5]));
        assert_eq!(of(&tally(0, 0, 10_000)), Some([0.0, 0.0, 0.01]));
        assert_eq!(of(&tally(100, 0, 9_990)), Some([1.0, 1.0, 1.0]));
        assert_eq!(of(&tally(0, 0, 0)), None);
        // more than there were: no mask was heeded, say
        assert_eq!(of(&tally(150, 0, 10_000)), None);
        assert_eq!(of(&Tally { uncounted: 1, ..tally(40, 0, 10_000) }), None);
    }
}
