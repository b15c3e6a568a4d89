//! Waiting for the end of what is counted, interval by interval.
#![forbid(unsafe_code)]

use crate::sys;
use std::time::{Duration, Instant};

/// What ends the count.
pub struct StopCondition {
    pub start: Instant,
    /// It ends when all of these have come to their ends, if there are any...
    pub ends: Vec<i32>,
    /// ...or this can be read...
    pub interrupt: Option<i32>,
    /// When this can be read `tick` is called at once, which reads it.
    pub events: Option<i32>,
    /// ...or so much time has passed.
    pub timeout: Option<Duration>,
}

/// What has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    Ended,
    Interrupted,
    TimedOut,
}

/// When `tick` is called next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTick {
    /// At the next multiple of this since the start. (Intervals that are over meanwhile are in the next)
    Multiple(Duration),
    /// So long after the start.
    At(Duration),
}

impl NextTick {
    /// When that is, so long after the start.
    pub fn after(self, passed: Duration) -> Duration {
        match self {
            NextTick::At(at) => at,
            NextTick::Multiple(interval) => {
                let interval_ns = (interval.as_nanos() as u64).max(1);
                let multiple = passed.as_nanos() as u64 / interval_ns + 1;
                Duration::from_nanos(multiple.saturating_mul(interval_ns))
            }
        }
    }
}

/// Waits for the end, and calls `tick` when the first interval is over, with the time since the start. It returns when it is to be
/// called next; None: it wants no more.
pub fn watch(
    mut until: StopCondition,
    interval: Option<Duration>,
    mut tick: impl FnMut(Duration) -> Option<NextTick>,
) -> StopReason {
    let deadline = until.timeout.map(|timeout| until.start + timeout);
    let mut next = interval.map(|interval| until.start + interval);
    let waits_for_ends = !until.ends.is_empty();
    loop {
        if waits_for_ends && until.ends.is_empty() {
            return StopReason::Ended;
        }
        let soonest = [next, deadline].into_iter().flatten().min();
        let others = until.interrupt.into_iter().chain(until.events);
        let descriptors: Vec<i32> = others.chain(until.ends.iter().copied()).collect();
        let come = sys::wait_for(&descriptors, soonest);
        let (interrupt, come) = come.split_at(until.interrupt.iter().len());
        let (events, ends) = come.split_at(until.events.iter().len());
        if interrupt.contains(&true) {
            return StopReason::Interrupted;
        }
        let mut ended = ends.iter();
        until.ends.retain(|_| ended.next() != Some(&true));
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return StopReason::TimedOut;
        }
        let over = next.is_some_and(|next| now >= next) || events.contains(&true);
        if over && !(waits_for_ends && until.ends.is_empty()) {
            let Some(then) = tick(now - until.start) else { return StopReason::Ended };
            next = Some(until.start + then.after(until.start.elapsed()));
        }
    }
}
