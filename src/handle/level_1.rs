//! Handles of level 1 by general-purpose counters alone, because others hold what more would take.
#![forbid(unsafe_code)]

use super::ways::measure_in_a_way;
use super::{Handle, Info, State};
use crate::detect::{self, Pmu};
use crate::error::{Error, Reason, Result};
use crate::model::perf_metrics::SLOTS;
use crate::model::{Counting, Leader};
use crate::options::Options;
use crate::plan::Plan;
use crate::sys::Linux;
use crate::sys::cpu::Identity;

/// Level 1 by general-purpose counters alone, where others hold SLOTS or PERF_METRICS.
pub(super) fn measure_level_1(
    options: &Options,
    linux: &Linux,
    cpu: Identity,
    handle: Handle,
) -> Result<Box<State>> {
    let options = Options { level: 1, ..*options };
    let ways = detect::ways(linux, &cpu, &options, 1).map(beside_registers);
    measure_in_a_way(&options, &cpu, ways, handle, false)
}

/// The same with a leader that leaves SLOTS to others.
pub(super) fn beside_registers(way: Result<(Pmu, Plan)>) -> Result<(Pmu, Plan)> {
    let (pmu, plan) = way?;
    let leader = leader_beside_registers(&pmu, &plan)?;
    Ok((pmu, Plan { leader, ..plan }))
}

/// What leads a group that leaves SLOTS to others.
fn leader_beside_registers(pmu: &Pmu, plan: &Plan) -> Result<Leader> {
    let others = match pmu.model.counting {
        Counting::Counters(counters) if plan.leader.event == SLOTS => counters.leaders,
        _ => &[],
    };
    others.iter().find(|leader| leader.general).copied().ok_or_else(|| {
        Error::errno(libc::ENODEV, "no general counters beside registers")
            .why("the kernel shows no SLOTS here, so others take these counters, too")
    })
}

/// What is told of a handle while a smaller group counts for its own.
pub(super) fn relieved(info: Info, (counters, is_shallower): (u32, bool)) -> Info {
    let what = if is_shallower { "level 1 alone" } else { "other general counters" };
    let why = format!("others took counters since; {counters} general ones count until those are free again");
    let level = if is_shallower { 1 } else { info.level };
    Info { level, counters, note: Reason::new(what).why(why), notes_path: false, ..info }
}
