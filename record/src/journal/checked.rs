//! What a recording that was read says and none can have: it is damaged then, and no profile of it would be true.
#![forbid(unsafe_code)]

use crate::proof::is_possible;
use crate::recording::{Burst, Recording, Totals};
use crate::settings::Settings;
use crate::spaces::Module;
use crate::stacks::CodePlace;
use std::time::Duration;
use topdown::SampledEvents;

/// A gap of so many cycles, and a weight of so many nanoseconds, is none that was recorded.
const NO_GAP: u64 = 1 << 32;
const NO_WEIGHT: u64 = 1 << 40;
/// Nor were so many of anything, or for so long.
const NO_NUMBER: u64 = 1 << 48;
const NO_TIME: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
/// A window of the longest gap is shorter than so many of the shorter gaps, whatever was drawn and however late interrupts came; and than the
/// stretch until the first gap was set.
const GAPS: u64 = 16;
const BEFORE_GAPS: u64 = 2_000_000;
/// Of so many windows of each length the longer are longer on average, whatever gaps were drawn.
const SURELY_LONGER: usize = 10;

pub(super) fn settings(settings: Settings) -> Result<(), String> {
    let Settings { gap, frequency, budget, .. } = settings;
    if gap == 0 || gap >= NO_GAP {
        return Err(format!("a gap of {gap} cycles"));
    }
    if frequency == 0 || !(budget > 0.0 && budget <= 1.0) {
        return Err(format!("{frequency} bursts a second that may take {budget} of the time"));
    }
    Ok(())
}

/// Modules, of which a process is the outermost frame alone, at 0 (`Module::Process`).
pub(super) fn stack(stack: &[CodePlace], recording: &Recording) -> Result<(), String> {
    let mut inner = stack.len();
    for CodePlace { module, address } in stack {
        inner -= 1;
        let Some(module) = module else { continue };
        match recording.modules.get(*module as usize) {
            None => return Err("a stack of modules that are not in it".into()),
            Some(Module::Process(_)) if inner > 0 || *address != 0 => {
                return Err("a stack in which a process was called".into());
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A place in code of no file.
pub(super) fn made(place: CodePlace, recording: &Recording) -> Result<(), String> {
    match place.module.and_then(|module| recording.modules.get(module as usize)) {
        Some(Module::Anonymous { .. }) => Ok(()),
        _ => Err("the name of a place that is no memory of a process's".into()),
    }
}

/// What was counted in each window, and where: as was proved of each when it was recorded (`proof`).
pub(super) fn burst(burst: &Burst, recording: &Recording) -> Result<(), String> {
    let Burst { kind, weight_ns, stacks, windows, calls, .. } = burst;
    let of_each = |some: usize, all: usize| some == 0 || some == all;
    let Some(events) = recording.events.get(*kind) else { return Err("a burst that cannot be".into()) };
    let pairs = windows.len() + 1 == stacks.len()
        && of_each(calls.returns.len(), windows.len())
        && of_each(calls.stack.len(), stacks.len());
    if !pairs || *weight_ns >= NO_WEIGHT {
        return Err("a burst that cannot be".into());
    }
    let known = |stack: &u32| (*stack as usize) < recording.stacks.len();
    let mut counted = windows.iter().flatten();
    if !stacks.iter().all(known) || !counted.all(|counts| counts.len() == events.events.len()) {
        return Err("a burst of stacks or events that are not in it".into());
    }
    let longest = events.sampled_per_cycle * recording.settings.gap * GAPS + BEFORE_GAPS;
    let proved =
        |counts: &Vec<u64>| (1..=longest).contains(&counts[events.sampler]) && is_possible(events, counts);
    if !windows.iter().flatten().all(proved) {
        return Err("a window in which more was counted than there can have been, or nothing".into());
    }
    Ok(())
}

pub(super) fn totals(totals: &Totals) -> Result<(), String> {
    let Totals { elapsed, threads, refused, unseen, unclocked, by_timer, left_running, .. } = totals;
    if *elapsed >= NO_TIME {
        return Err("totals that cannot be".into());
    }
    let Totals { lost, throttled, parted, impossible, pace, cpus, .. } = totals;
    let of_cpus = cpus.iter().flat_map(|cpus| [cpus.cpus as u64, cpus.switched, cpus.hidden as u64]);
    let mut numbers = [*threads, refused.0, unseen.threads, *unclocked, *by_timer, *left_running]
        .into_iter()
        .map(|number| number as u64)
        .chain([*lost, *throttled, *parted, *impossible])
        .chain(of_cpus);
    // (all CPUs together may have been unseen)
    let most = (*elapsed + Duration::from_secs(1)).as_nanos() * u128::from(u16::MAX);
    let paces = [pace.frequency, pace.burst_ns].iter().all(|number| (0.0..NO_NUMBER as f64).contains(number));
    let budget = pace.budget > 0.0 && pace.budget <= 1.0;
    if !numbers.all(|number| number < NO_NUMBER) || u128::from(unseen.ns) > most || !paces || !budget {
        return Err("totals that cannot be".into());
    }
    Ok(())
}

/// What is in no line alone.
pub(super) fn whole(recording: &Recording) -> Result<(), String> {
    let mut weights = recording.bursts.iter().map(|burst| burst.weight_ns);
    if weights.try_fold(0_u64, u64::checked_add).is_none_or(|sum| sum >= 1 << 63) {
        return Err("all bursts together stand for more time than there can have been".into());
    }
    for (kind, events) in recording.events.iter().enumerate() {
        let [short, long] = [false, true].map(|long| mean_window(recording, kind, events, long));
        if short.zip(long).is_some_and(|(short, long)| long <= short) {
            return Err(format!("the longer windows of {} are no longer than the shorter", events.core));
        }
    }
    Ok(())
}

/// What the sampling event has counted in the windows of one length on average; None: in too few to tell.
fn mean_window(recording: &Recording, kind: usize, events: &SampledEvents, long: bool) -> Option<f64> {
    let of = recording.bursts.iter().filter(|burst| burst.kind == kind && burst.long == long);
    let windows: Vec<u64> =
        of.flat_map(|burst| burst.windows.iter().flatten()).map(|window| window[events.sampler]).collect();
    (windows.len() >= SURELY_LONGER)
        .then(|| windows.iter().map(|n| *n as f64).sum::<f64>() / windows.len() as f64)
}
