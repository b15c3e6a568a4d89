//! Whether a counter is left for returns of functions, and counts them: a thread calls a function so often, and looks.
#![forbid(unsafe_code)]

use crate::event::TaskEvent;
use crate::records::READ_TIMES;
use crate::sampler::attr;
use std::hint::black_box;
use std::io;
use topdown::SampledEvents;
use topdown_seam::thread;

/// Calls, and what else may return between two readings.
const CALLS: u64 = 1000;
const OTHERS: u64 = 100;

#[inline(never)]
fn called(n: u64) -> u64 {
    black_box(n) + 1
}

/// Returns that were counted while a function was called so often, in one stretch; None: there was no room.
fn counted(events: &SampledEvents, config: u64) -> io::Result<Option<u64>> {
    let open = |config, leader: Option<&TaskEvent>| {
        let mut attr = attr(events, config, false);
        attr.read_format = READ_TIMES;
        TaskEvent::open(attr, 0, -1, leader)
    };
    let leader = open(events.events[0].1, None)?;
    let members = events.events[1..].iter().map(|(_, config)| open(*config, Some(&leader)));
    let _members = members.collect::<io::Result<Vec<_>>>()?;
    let returns = open(config, Some(&leader))?;
    let before = returns.times()?;
    let sum = (0..CALLS).fold(0, |sum: u64, n| sum ^ called(n));
    black_box(sum);
    let after = returns.times()?;
    let (enabled, running) = (after.enabled - before.enabled, after.running - before.running);
    Ok((running > 0 && enabled == running).then_some(after.count - before.count))
}

fn is_believed(counted: io::Result<Option<u64>>) -> bool {
    matches!(counted, Ok(Some(returns)) if (CALLS..=CALLS + OTHERS).contains(&returns))
}

/// The same events; with returns if these are counted on a thread of this process on such a core.
pub(crate) fn proved(mut events: SampledEvents) -> SampledEvents {
    let Some((_, config)) = events.returns else { return events };
    // (now and then others have the counters for a moment)
    let here = || (0..3).any(|_| is_believed(counted(&events, config)));
    let believed = match &events.cpus {
        None => here(),
        // (a thread of its own: where it runs is its own)
        Some(cpus) => std::thread::scope(|scope| {
            scope.spawn(|| thread::move_to(cpus) && here()).join().unwrap_or(false)
        }),
    };
    events.returns = events.returns.filter(|_| believed);
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_returns_is_not_believed() {
        let counts = [(0, false), (999, false), (1000, true), (1003, true), (1200, false), (31_000, false)];
        for (returns, believed) in counts {
            assert_eq!(is_believed(Ok(Some(returns))), believed, "{returns}");
        }
        assert!(!is_believed(Ok(None)) && !is_believed(Err(io::ErrorKind::InvalidInput.into())));
    }
}
