//! Handles by SLOTS and PERF_METRICS.
#![forbid(unsafe_code)]

use super::any_source::AnySource;
use super::info::{check_target, info_of};
use super::ways::{AT_ONCE, others_count, shows_turns, unless_it_took_turns};
use super::{Handle, State};
use crate::detect::Pmu;
use crate::error::{Error, Reason, Result, TD_ENOTCOUNTING};
use crate::group::{Group, PATIENCE};
use crate::model;
use crate::options::{Corrections, Options};
use crate::source::windowed::WindowedSource;
use crate::sys::cpu::Identity;
use crate::sys::{Kernel, Linux};
use std::time::Duration;

/// By SLOTS and PERF_METRICS, with counters beside them for what the published metrics take elsewhere, if such are free.
#[inline(never)]
pub(super) fn measure_by_registers(
    options: &Options,
    linux: Linux,
    cpu: Identity,
    (pmu, level): (Pmu, u32),
    handle: Handle,
) -> Result<Box<State>> {
    check_target(&linux, &pmu, &cpu, options)?;
    let alone = |pmu: Pmu| {
        let bare = options.corrections == Corrections::Bare;
        let (row, model) = model::registers_alone((pmu.row, pmu.model), bare);
        Pmu { row, model, ..pmu }
    };
    if options.corrections == Corrections::Bare || pmu.model.moved().is_empty() {
        return measure_by_group(options, linux, cpu, (&alone(pmu), level), handle, PATIENCE);
    }
    let again = Linux { descriptors_from: options.descriptors_from };
    let beside = match options.corrections {
        Corrections::Counted => beside_are_free(options, &pmu, level),
        _ => Err(Error::new(TD_ENOTCOUNTING, "general counters are left to others")),
    };
    let beside = beside
        .and_then(|()| measure_by_group(options, linux, cpu.clone(), (&pmu, level), handle, AT_ONCE))
        .and_then(|state| unless_it_took_turns(state, handle));
    beside.or_else(|why| {
        if why.code() != TD_ENOTCOUNTING {
            return Err(why);
        }
        let mut state = measure_by_group(options, again, cpu, (&alone(pmu), level), handle, PATIENCE)?;
        if state.info.note == Reason::default() {
            let what = "the intervals have slots that no counter is left for (INT_MISC.UOP_DROPPING)";
            state.info.note = Reason::new(what).why(why.to_string());
        }
        Ok(state)
    })
}

/// As `are_free`, of what counts beside the registers: of a group on others.
fn beside_are_free(options: &Options, pmu: &Pmu, level: u32) -> Result<()> {
    let linux = Linux { descriptors_from: options.descriptors_from };
    if shows_turns(options) || !pmu.covers(linux.cpu()) {
        return Ok(());
    }
    let own = Options { no_rdpmc: true, ..Options::default() };
    let (group, _) = Group::open(linux, pmu, level, &own, None, AT_ONCE)?;
    let always = group.had_its_turn_always();
    group.stop();
    if always? { Ok(()) } else { Err(others_count()) }
}

fn measure_by_group(
    options: &Options,
    linux: Linux,
    cpu: Identity,
    (pmu, level): (&Pmu, u32),
    handle: Handle,
    patience: Duration,
) -> Result<Box<State>> {
    let (group, why) = Group::open(linux, pmu, level, options, Some(handle.control()), patience)?;
    let info = info_of(options, cpu, pmu, level, why);
    let (head, settings) = (info.head(pmu.row), info.budget_settings());
    let source = AnySource::Registers(WindowedSource::new(group, handle.shared(), head, settings)?);
    Ok(Box::new(State { info, row: pmu.row as u8, source }))
}
