//! Whether the condition is one: the kernel ignores masks of which it knows nothing, and samples everywhere.
//!
//! Instructions are compared with instructions, on this thread: there are never more than twice as many as there are, and always
//! more than half as many.
#![forbid(unsafe_code)]

use super::resolved::{ConditionEvents, PmuCondition};
use super::sampler::{ConditionalSampler, Tally};
use super::written::Periods;
use crate::sampler::SampledTarget;
use std::hint::black_box;
use std::io;
use topdown_seam::thread;

/// Instructions of a stretch, and how many stretches there are at the least; no more than 20, which no kernel throttles.
const STRETCH: u64 = 100_000;
const STRETCHES: u64 = 4;

fn refused(pmu: &PmuCondition, error: &io::Error) -> String {
    let why = match error.raw_os_error() {
        Some(libc::EINVAL) => {
            ": the kernel takes no such group. One of its events cannot be reloaded (metric events and slots cannot), or the counters \
             have no room for three events"
        }
        Some(libc::EACCES) => ": kernel.perf_event_paranoid is above 2, or the program may not count others",
        Some(libc::EPERM) => {
            ": no more memory may be locked (sysctl kernel.perf_event_mlock_kb, ulimit -l), or a container forbids it"
        }
        _ => "",
    };
    format!("perf_event_open of the condition on {}: {error}{why}", pmu.name)
}

/// On this thread.
fn tally(pmu: &PmuCondition, periods: Periods) -> io::Result<Tally> {
    let sampler = ConditionalSampler::open(pmu, 0, periods, SampledTarget::Thread { pid: 0, tid: 0 })?;
    (0..STRETCH * STRETCHES).for_each(|n| _ = black_box(n)); // (an instruction each, at least)
    let (_, tally) = sampler.end();
    Ok(tally)
}

fn on_this_thread(pmu: &PmuCondition, resolved: &ConditionEvents) -> Result<(), String> {
    tally(pmu, resolved.periods).map_err(|error| refused(pmu, &error))?;
    let instructions = PmuCondition { sampled: pmu.instructions, other: pmu.instructions, ..pmu.clone() };
    let seen = |other| {
        tally(&instructions, Periods { sampled: STRETCH, other }).map_err(|error| refused(pmu, &error))
    };
    let (never, always) = (seen(STRETCH / 2)?, seen(STRETCH * 2)?);
    if always.all.count < STRETCH * STRETCHES / 2 {
        return Err(format!(
            "{} counts nothing: others hold its counters, or they are switched off",
            pmu.name
        ));
    }
    // (a thread that is descheduled again and again has hardly a stretch in one piece)
    if never.held == 0 && always.held + always.parted >= STRETCHES / 2 {
        return Ok(());
    }
    Err(format!(
        "auto counter reload of {} does not work: {} samples where none could be, {} in {} stretches in which each had one",
        pmu.name,
        never.held,
        always.held + always.parted,
        always.all.count / STRETCH
    ))
}

/// Tries the condition's PMUs.
///
/// # Errors
/// What was refused, or seen to be wrong.
pub(super) fn tried(resolved: &ConditionEvents) -> Result<(), String> {
    resolved.pmus.iter().try_for_each(|pmu| {
        let cpus = pmu.cpus.as_deref();
        thread::on_cpus(cpus, || on_this_thread(pmu, resolved)).unwrap_or_else(|| {
            Err(format!(
                "--where is to be tried on a CPU of {} ({}), and this process may run on none, or start no thread",
                pmu.name,
                cpus.unwrap_or_default()
            ))
        })
    })
}
