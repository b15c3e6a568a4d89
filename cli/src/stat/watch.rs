//! Waiting for the end of what is counted, interval by interval.
#![forbid(unsafe_code)]

use crate::sys;
use std::time::{Duration, Instant};

/// What ends the count.
pub struct Until {
    pub start: Instant,
    /// It ends when all of these have come to their ends, if there are any...
    pub ends: Vec<i32>,
    /// ...or this can be read...
    pub interrupt: Option<i32>,
    /// ...or so much time has passed.
    pub timeout: Option<Duration>,
}

/// What has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Ended,
    Interrupted,
    TimedOut,
}

/// Waits for the end, and calls `tick` at each multiple of the interval, with the time since the start. It returns the interval from
/// then on; None: it wants no more.
pub fn watch(
    mut until: Until,
    interval: Option<Duration>,
    mut tick: impl FnMut(Duration) -> Option<Duration>,
) -> Why {
    let deadline = until.timeout.map(|timeout| until.start + timeout);
    let mut next = interval.map(|interval| until.start + interval);
    let waits_for_ends = !until.ends.is_empty();
    loop {
        if waits_for_ends && until.ends.is_empty() {
            return Why::Ended;
        }
        let soonest = [next, deadline].into_iter().flatten().min();
        let descriptors: Vec<i32> = until.interrupt.into_iter().chain(until.ends.iter().copied()).collect();
        let come = sys::wait_for(&descriptors, soonest);
        let (interrupt, ends) = come.split_at(until.interrupt.iter().len());
        if interrupt.contains(&true) {
            return Why::Interrupted;
        }
        let mut ended = ends.iter();
        until.ends.retain(|_| ended.next() != Some(&true));
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Why::TimedOut;
        }
        let over = next.is_some_and(|next| now >= next) && !(waits_for_ends && until.ends.is_empty());
        if over {
            let Some(interval) = tick(now - until.start) else { return Why::Ended };
            let interval_ns = (interval.as_nanos() as u64).max(1);
            // (intervals that are over meanwhile are in the next)
            let passed = until.start.elapsed().as_nanos() as u64;
            next = Some(
                until.start + Duration::from_nanos((passed / interval_ns + 1).saturating_mul(interval_ns)),
            );
        }
    }
}
