//! Whether what is to be sampled can be, and whether a condition is one: the kernel ignores masks of which it knows nothing, and samples everywhere.
//!
//! Instructions are compared with instructions, on this thread: there are never more than twice as many as there are, and always
//! more than half as many.
#![forbid(unsafe_code)]

use super::resolved::{PmuSampling, Reload, SamplingRule};
use super::sampler::{EventSampler, Tally};
use super::samples_of::SamplesOf;
use super::written::Periods;
use crate::sampler::SampledTarget;
use std::hint::black_box;
use std::io;
use topdown_seam::thread;

/// Instructions of a stretch, and how many stretches there are at the least; no more than 20, which no kernel throttles.
const STRETCH: u64 = 100_000;
const STRETCHES: u64 = 4;

fn refused(pmu: &PmuSampling, error: &io::Error) -> String {
    let why = match error.raw_os_error() {
        Some(libc::ENXIO) => ": its extra register cannot be written here: a hypervisor hides it",
        Some(libc::EINVAL) if pmu.reload.is_none() => ": the kernel, or a hypervisor, does not have it",
        Some(libc::EINVAL) => {
            ": the kernel takes no such group. One of its events cannot be reloaded (metric events and slots cannot), or the counters \
             have no room for three events"
        }
        Some(libc::EACCES) if pmu.kernel => ": kernel.perf_event_paranoid is above 1",
        Some(libc::EACCES) => ": kernel.perf_event_paranoid is above 2, or the program may not count others",
        Some(libc::EPERM) => {
            ": no more memory may be locked (sysctl kernel.perf_event_mlock_kb, ulimit -l), or a container forbids it"
        }
        _ => "",
    };
    let what = if pmu.reload.is_some() { "condition" } else { "event" };
    format!("perf_event_open of the {what} on {}: {error}{why}", pmu.name)
}

/// On this thread.
fn tally(pmu: &PmuSampling, periods: Periods) -> io::Result<Tally> {
    let sampler = EventSampler::open(pmu, 0, periods, SampledTarget::Thread { pid: 0, tid: 0 })?;
    (0..STRETCH * STRETCHES).for_each(|n| _ = black_box(n)); // (an instruction each, at least)
    let (_, tally) = sampler.end();
    Ok(tally)
}

fn on_this_thread(pmu: &PmuSampling, resolved: &SamplingRule) -> Result<(), String> {
    tally(pmu, resolved.periods).map_err(|error| refused(pmu, &error))?;
    let Some(reload) = pmu.reload else { return Ok(()) };
    let reload = Reload { other: reload.instructions, ..reload };
    let instructions = PmuSampling { sampled: reload.instructions, reload: Some(reload), ..pmu.clone() };
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

/// On a CPU of the PMU.
fn on_its_cpus(
    option: &str,
    pmu: &PmuSampling,
    tried: impl FnOnce() -> Result<(), String> + Send,
) -> Result<(), String> {
    let cpus = pmu.cpus.as_deref();
    thread::on_cpus(cpus, tried).unwrap_or_else(|| {
        Err(format!(
            "{option} is to be tried on a CPU of {} ({}), and this process may run on none, or start no thread",
            pmu.name,
            cpus.unwrap_or_default()
        ))
    })
}

/// The CPU samples the instruction itself from this `precise_ip` on.
const ITSELF: u64 = 2;

/// Opens an event that samples by itself on this thread, as precisely as the CPU can.
///
/// # Errors
/// What was refused.
pub(super) fn opened(rule: &mut SamplingRule) -> Result<(), String> {
    let periods = rule.periods;
    for pmu in &mut rule.pmus {
        let own = pmu.clone();
        on_its_cpus("--locate", &own, || {
            let target = SampledTarget::Thread { pid: 0, tid: 0 };
            let open = |precise_ip| {
                // (an instruction after it has another latency)
                let is_timed = own.is_timed && precise_ip > 0;
                let as_precise = PmuSampling { precise_ip, is_timed, ..own.clone() };
                EventSampler::open(&as_precise, 0, periods, target).map(|_| as_precise)
            };
            // (less than is asked for is an error of its own; what is wrong else is wrong at 0, too)
            let levels = (0..=own.precise_ip).rev();
            let opened = levels.map(open).reduce(|best, next| best.or(next));
            *pmu = opened.expect("0 is a level").map_err(|error| refused(&own, &error))?;
            Ok(())
        })?;
    }
    if let SamplesOf::Node { precise, .. } = &mut rule.of {
        *precise = rule.pmus.iter().all(|pmu| pmu.precise_ip >= ITSELF);
    }
    Ok(())
}

/// Tries the condition's PMUs.
///
/// # Errors
/// What was refused, or seen to be wrong.
pub(super) fn tried(resolved: &SamplingRule) -> Result<(), String> {
    resolved.pmus.iter().try_for_each(|pmu| on_its_cpus("--where", pmu, || on_this_thread(pmu, resolved)))
}
