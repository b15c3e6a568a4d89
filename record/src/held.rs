//! How much of all that ran was where a condition held.
#![forbid(unsafe_code)]

use crate::conditional::{Condition, Tally};
use serde::Serialize;
use topdown_report::ShareInterval;

/// What samples of a condition are, and what part of all they make.
#[derive(Clone, Debug, Serialize)]
pub struct ConditionShare {
    /// The condition in words.
    pub condition: String,
    /// The event that samples.
    pub event: String,
    /// What it counts in a stretch.
    pub period: u64,
    /// Stretches in which the condition held, each a sample.
    pub samples: u64,
    /// Samples that are not among them: the thread was descheduled within the stretch, or there was no room.
    #[serde(rename = "samples_left_out")]
    pub left_out: u64,
    /// What the event counted in all.
    #[serde(rename = "events_in_all")]
    pub all: u64,
    /// The part of these that the condition held in; None: nothing was counted, or it contradicts the samples.
    pub part: Option<ShareInterval>,
    /// The part of the time for which the counters were not others' (0 to 1).
    #[serde(rename = "time_counted")]
    pub counted: f64,
    /// PMUs that were sampled.
    pub pmus: Vec<&'static str>,
    /// PMUs of cores of which nothing is in this.
    #[serde(rename = "pmus_without")]
    pub without: Vec<&'static str>,
}

impl ConditionShare {
    pub(crate) fn of(condition: &Condition, tally: &Tally) -> ConditionShare {
        let (text, event, period) = condition.described();
        let left_out = tally.parted + tally.lost;
        ConditionShare {
            condition: text.into(),
            event: event.into(),
            period,
            samples: tally.held,
            left_out,
            all: tally.all.count,
            part: part(tally, period),
            counted: if tally.all.enabled > 0 {
                tally.all.running as f64 / tally.all.enabled as f64
            } else {
                1.0
            },
            pmus: condition.pmus(),
            without: condition.without().to_vec(),
        }
    }
}

/// Of what was counted, how much was in stretches in which the condition held. Those of which it is not known may be or not: samples
/// that are left out, and on each thread a stretch that had not ended.
fn part(tally: &Tally, period: u64) -> Option<ShareInterval> {
    let all = tally.all.count as f64;
    let part = |stretches: u64| stretches as f64 * period as f64 / all;
    let low = part(tally.held);
    // (the three events are not read at one instant)
    (all > 0.0 && low < 1.01).then(|| {
        let low = low.min(1.0);
        ShareInterval {
            value: low,
            low,
            high: part(tally.held + tally.parted + tally.lost + tally.threads).min(1.0).max(low),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventTimes;

    fn tally(held: u64, parted: u64, count: u64) -> Tally {
        let all = EventTimes { count, enabled: 10, running: 10 };
        Tally { held, parted, threads: 1, all, ..Tally::default() }
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
    }
}
