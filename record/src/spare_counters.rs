//! Whether counters are left beside a group's for a clock and for returns of functions, and count: a thread calls a function so often, and looks.
#![forbid(unsafe_code)]

use crate::event::{EventTimes, TaskEvent};
use crate::sampler::attr;
use std::hint::black_box;
use std::io;
use topdown::SampledEvents;
use topdown_seam::group_read;
use topdown_seam::thread;

/// Calls, and what else may return between two readings.
const CALLS: u64 = 1000;
const OTHERS: u64 = 100;

#[inline(never)]
fn called(n: u64) -> u64 {
    black_box(n) + 1
}

/// What each event counted while a function was called so often, in one stretch.
#[derive(Debug, Default, PartialEq, Eq)]
struct TrialCounts {
    clock: Option<u64>,
    returns: Option<u64>,
}

/// Counts with the group; None: one of all got no counter.
fn tried(events: &SampledEvents) -> io::Result<Option<TrialCounts>> {
    let open = |config, leader: Option<&TaskEvent>| {
        let mut attr = attr(events, config, false);
        attr.read_format = group_read::TIMES;
        TaskEvent::open(attr, 0, -1, leader)
    };
    let all = events.opened();
    let leader = open(all[0], None)?;
    let members = all[1..].iter().map(|config| open(*config, Some(&leader)));
    let mut members = members.collect::<io::Result<Vec<_>>>()?;
    let returns = events.returns.and_then(|_| members.pop());
    let clock = events.clock.map(|(_, config)| open(config, None)).transpose()?;
    let read = || -> io::Result<[Option<EventTimes>; 3]> {
        let times = |event: Option<&TaskEvent>| event.map(TaskEvent::times).transpose();
        Ok([times(Some(&leader))?, times(clock.as_ref())?, times(returns.as_ref())?])
    };
    let before = read()?;
    let sum = (0..CALLS).fold(0, |sum: u64, n| sum ^ called(n));
    black_box(sum);
    let after = read()?;
    let counted = |place: usize| {
        let (before, after) = (before[place]?, after[place]?);
        let (enabled, running) = (after.enabled - before.enabled, after.running - before.running);
        Some((running > 0 && enabled == running).then_some(after.count - before.count))
    };
    let [leader, clock, returns] = [0, 1, 2].map(counted);
    let all = [leader, clock, returns].iter().all(|counted| *counted != Some(None));
    Ok(all.then_some(TrialCounts { clock: clock.flatten(), returns: returns.flatten() }))
}

/// Everything that was asked for counts as it should.
fn is_believed(events: &SampledEvents, tried: io::Result<Option<TrialCounts>>) -> bool {
    let Ok(Some(TrialCounts { clock, returns })) = tried else { return false };
    (events.clock.is_none() || clock.is_some_and(|cycles| cycles >= CALLS))
        && (events.returns.is_none() || returns.is_some_and(|n| (CALLS..=CALLS + OTHERS).contains(&n)))
}

/// Whether the clock counts where the group does not.
fn counts_alone(events: &SampledEvents) -> bool {
    let counted = || -> io::Result<EventTimes> {
        let config = events.clock.ok_or(io::ErrorKind::NotFound)?.1;
        let mut attr = attr(events, config, false);
        attr.read_format = group_read::TIMES;
        let clock = TaskEvent::open(attr, 0, -1, None)?;
        black_box((0..CALLS).fold(0, |sum: u64, n| sum ^ called(n)));
        clock.times()
    };
    counted().is_ok_and(|all| all.count >= CALLS && all.enabled == all.running)
}

/// The same events; with the clock and returns as far as they count on a thread of this process on such a core. Where a counter is left for one of
/// them it is the clock's: without returns intervals are wider, without it times are less certain than their intervals say. An event that counts nothing
/// gives its counter to the clock; where there is none, the clock takes turns with the group.
pub(crate) fn proved(events: SampledEvents) -> SampledEvents {
    // (now and then others have the counters for a moment)
    let counts = |events: &SampledEvents| (0..3).any(|_| is_believed(events, tried(events)));
    let here = || {
        let found = ways(&events).into_iter().find(counts);
        let mut found = found.unwrap_or_else(|| with(&events, false, false, false));
        if found.clock.is_none() && (0..3).any(|_| counts_alone(&events)) {
            (found.clock, found.clock_in_turns) = (events.clock, true);
        }
        Some(found)
    };
    let found = thread::on_cpus(events.cpus.as_deref(), here).flatten();
    found.unwrap_or_else(|| with(&events, false, false, false))
}

fn with(events: &SampledEvents, clock: bool, returns: bool, silent: bool) -> SampledEvents {
    let mut with = events.clone();
    with.clock = with.clock.filter(|_| clock);
    with.returns = with.returns.filter(|_| returns);
    with.silent = with.silent.filter(|_| silent);
    with
}

/// What is tried, the best first.
fn ways(events: &SampledEvents) -> Vec<SampledEvents> {
    let with = |clock, returns, silent| with(events, clock, returns, silent);
    let mut ways = vec![with(true, true, false), with(true, false, false)];
    if events.clock.is_some() && events.silent.is_some() {
        ways.extend([with(true, true, true), with(true, false, true)]);
    }
    ways.push(with(false, true, false));
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_counts_nothing_gives_its_counter_to_the_clock_alone() {
        let mut events = SampledEvents::of_core("Zen 4").unwrap();
        (events.clock, events.returns, events.silent) = (Some(("clock", 1)), Some(("returns", 2)), Some(4));
        let tried = |events: &SampledEvents| -> Vec<_> {
            let of = |way: SampledEvents| (way.clock.is_some(), way.returns.is_some(), way.opened().len());
            ways(events).into_iter().map(of).collect()
        };
        let all = [(true, true, 6), (true, false, 5), (true, true, 5), (true, false, 4), (false, true, 6)];
        assert_eq!(tried(&events), all);
        events.silent = None;
        assert_eq!(tried(&events), [(true, true, 6), (true, false, 5), (false, true, 6)]);
    }

    #[test]
    fn what_does_not_count_as_it_should_is_not_believed() {
        let of_core = SampledEvents::of_core("Zen 4").unwrap();
        let events = |clock: bool, returns: bool| {
            let mut events = of_core.clone();
            events.clock = clock.then_some(("clock", 1));
            events.returns = returns.then_some(("returns", 2));
            events
        };
        let believed = |events: &SampledEvents, clock, returns| {
            is_believed(events, Ok(Some(TrialCounts { clock, returns })))
        };
        let counts = [(0, false), (999, false), (1000, true), (1003, true), (1200, false), (31_000, false)];
        for (returns, right) in counts {
            assert_eq!(believed(&events(false, true), None, Some(returns)), right, "{returns}");
            assert_eq!(believed(&events(true, true), Some(5000), Some(returns)), right, "{returns}");
        }
        for (cycles, right) in [(0, false), (10, false), (5000, true)] {
            assert_eq!(believed(&events(true, false), Some(cycles), None), right, "{cycles}");
        }
        let both = events(true, true);
        assert!(
            !is_believed(&both, Ok(None)) && !is_believed(&both, Err(io::ErrorKind::InvalidInput.into()))
        );
    }
}
