//! In which of several ways a handle counts, as others hold counters.
#![forbid(unsafe_code)]

use super::by_counters::measure_by_counters;
use super::{Handle, State, second};
use crate::detect::Pmu;
use crate::error::{Error, Result, TD_ENOTCOUNTING};
use crate::group::{PATIENCE, PlainGroup};
use crate::options::{Options, Target};
use crate::plan::Plan;
use crate::sys::cpu::Identity;
use crate::sys::{Kernel, Linux};
use std::time::Duration;

/// CPU time in which a group of general-purpose counters that are free has counted.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);

/// In the first of these ways in which a group is on the counters all the while, or in the last. `always`: so is the last, or it fails.
pub(super) fn measure_in_a_way(
    options: &Options,
    cpu: &Identity,
    mut ways: impl ExactSizeIterator<Item = Result<(Pmu, Plan)>>,
    handle: Handle,
    always: bool,
) -> Result<Box<State>> {
    let mut opened = Err(others_count());
    while let Some(way) = ways.next() {
        let (pmu, plan) = &way?;
        let is_last = ways.len() == 0;
        let (always, patience) = if is_last { (always, PATIENCE) } else { (true, AT_ONCE) };
        let free = if always && !shows_turns(options) { are_free(options, pmu, plan) } else { Ok(()) };
        let linux = Linux { descriptors_from: options.descriptors_from };
        opened = free
            .and_then(|()| measure_by_counters(options, linux, cpu.clone(), (pmu, plan), handle, patience))
            .and_then(|state| match always && shows_turns(options) {
                true => unless_it_took_turns(state, handle),
                false => Ok(state),
            });
        if opened.is_ok() {
            break;
        }
    }
    opened
}

/// A group that was on the counters all the while since it was opened.
pub(super) fn unless_it_took_turns(mut state: Box<State>, handle: Handle) -> Result<Box<State>> {
    if state.source.had_its_turn_always()? {
        state.source.source().reset(handle.shared())?; // what has told that is not the program's
        return Ok(state);
    }
    state.source.stop();
    state.source.free();
    let second = state.source.second();
    drop(state);
    second.into_iter().for_each(second::give_back);
    Err(others_count())
}

pub(super) fn others_count() -> Error {
    Error::new(TD_ENOTCOUNTING, "others use general counters").why("this group took turns with theirs")
}

/// Whether a group shows while it is opened that others need its counters: on this thread, or on a CPU. One on another thread, or on a
/// command that is yet to be executed, does not: a group of this thread's tells in its place, if it runs on such a core. (Who opens
/// groups on other threads may have some on this one, which take nothing from those.)
pub(super) fn shows_turns(options: &Options) -> bool {
    !matches!(options.target, Target::Task(_) | Target::TaskOn(..))
}

/// Whether nobody else needs the counters of this plan now.
fn are_free(options: &Options, pmu: &Pmu, plan: &Plan) -> Result<()> {
    let linux = Linux { descriptors_from: options.descriptors_from };
    if !pmu.covers(linux.cpu()) {
        return Ok(());
    }
    let (group, _) = PlainGroup::open(linux, pmu, plan, &Options::default(), None, AT_ONCE)?;
    let always = group.had_its_turn_always();
    group.stop();
    if always? { Ok(()) } else { Err(others_count()) }
}
