//! Handles by general-purpose counters.
#![forbid(unsafe_code)]

use super::any_source::AnySource;
use super::info::{Info, Path, check_target, info_of, level_of};
use super::{Handle, State, second};
use crate::detect::Pmu;
use crate::error::{Reason, Result};
use crate::group::{PlainGroup, RelievedGroup, SpareEvents};
use crate::model::perf_metrics::SLOTS_P;
use crate::options::{Options, Target};
use crate::plan::Plan;
use crate::source::plain::Plain;
use crate::sys::Linux;
use crate::sys::cpu::Identity;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The plans that were proved in this process, by the PMU's row: a proof beside open groups of the same plan might get no turn.
static PROVED: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];

/// Of a row a plan is known by what leads it and by how many follow.
fn bit_of(plan: &Plan) -> u32 {
    1 << (plan.members.len() % 16 + if plan.leader.event == SLOTS_P { 16 } else { 0 })
}

fn is_proved(pmu: &Pmu, plan: &Plan) -> bool {
    PROVED[pmu.row as usize % PROVED.len()].load(Ordering::Relaxed) & bit_of(plan) != 0
}

fn proved(pmu: &Pmu, plan: &Plan) {
    PROVED[pmu.row as usize % PROVED.len()].fetch_or(bit_of(plan), Ordering::Relaxed);
}

/// By general-purpose counters.
#[inline(never)]
pub(super) fn measure_by_counters(
    options: &Options,
    linux: Linux,
    cpu: Identity,
    (pmu, plan): (&Pmu, &Plan),
    handle: Handle,
    patience: Duration,
) -> Result<Box<State>> {
    let level = level_of(options, pmu.level, &cpu, plan.no_deeper)?;
    check_target(&linux, pmu, &cpu, options)?;
    let shows_itself = options.target == Target::This && !options.inherit && !options.no_rdpmc;
    if (plan.leader.event == SLOTS_P || plan.unproven) && !shows_itself && !is_proved(pmu, plan) {
        // that group shows nothing of itself: another one is proved in its place
        let plain = Options { descriptors_from: options.descriptors_from, ..Options::default() };
        let linux = Linux { descriptors_from: options.descriptors_from };
        PlainGroup::open(linux, pmu, plan, &plain, Some(handle.control()), patience)?.0.stop();
        proved(pmu, plan);
    }
    let (group, why) = PlainGroup::open(linux, pmu, plan, options, Some(handle.control()), patience)?;
    let mut info = Info { counters: plan.general_counters(), ..info_of(options, cpu, pmu, level, why) };
    if plan.leader.by_cycle {
        info.slots_per_cycle = plan.slots_each as u32; // which on arm64 the kernel may tell alone
    }
    if options.on_exec {
        (info.note, info.notes_path) = (Reason::default(), false); // nobody expects that another way
    }
    let head = info.head(pmu.row);
    let wanted = SpareEvents::of(pmu, plan, options);
    let second = if wanted.is_some() && info.path == Path::Rdpmc { second::take(handle).ok() } else { None };
    let place = second.map(|second| (second.shared_for_ever(), second.control()));
    let group = RelievedGroup::new(group, wanted, place);
    let source = Plain::new(group, handle.shared(), head).inspect_err(|_| {
        second.into_iter().for_each(second::give_back);
    })?;
    let source = AnySource::Counters(source, second);
    Ok(Box::new(State { info, row: pmu.row as u8, source }))
}
