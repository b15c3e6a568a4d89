//! Opening a handle of a hybrid CPU as a whole: a thread that may run on P-cores and E-cores has a group for each.
#![forbid(unsafe_code)]

use super::info::{info_of, level_of};
use super::ways::AT_ONCE;
use super::{AnySource, Handle, Path, State, second};
use crate::detect::{self, Pmu};
use crate::error::{Error, Result, TD_ENOTCOUNTING};
use crate::group::{HybridGroup, PATIENCE, PlainGroup};
use crate::model;
use crate::options::{CoreKind, Corrections, Options, SourceKind, Target, names};
use crate::plan::Plan;
use crate::source::plain::Plain;
use crate::sys::cpu::Identity;
use crate::sys::{Kernel, Linux, rseq, thread};

/// Both PMUs, as `td_info.pmu` tells them.
const BOTH: &str = "cpu_core,cpu_atom";

/// Whether a thread is to be measured on both kinds of core of this CPU: if nothing says on which, and it may run on both.
pub(super) fn is_wanted(options: &Options, cpu: &Identity) -> bool {
    let thread = match options.target {
        Target::This => 0,
        Target::Task(id) => id,
        Target::TaskOn(..) | Target::Cpu(_) => return false,
    };
    // (of children that run at the same time on cores of both kinds, no two groups tell one time)
    let whole = options.cores == CoreKind::Automatic && !options.inherit && !options.of_part();
    // (bare sources are those of P-cores alone where there is something to correct)
    let published = match options.corrections {
        Corrections::Counted => true,
        Corrections::Bare => model::variant_of(cpu, model::Variant::BareCounters).is_none(),
        Corrections::Bounded => false,
    };
    whole
        && options.source == SourceKind::Automatic
        && published
        && !options.on_exec
        && model::of_hybrid(cpu).is_some()
        && !p_cores(&Linux { descriptors_from: 0 })
            .is_some_and(|cpus| thread::runs_on_these_alone(thread, &cpus))
}

/// The P-cores' CPUs, as sysfs lists them.
fn p_cores(linux: &Linux) -> Option<String> {
    linux.text(&format!("{}/cpu_core/cpus", detect::DEVICES)).ok()
}

/// By general-purpose counters of both kinds of core, if they give what was asked for and nobody else needs them now.
#[inline(never)]
pub(super) fn measure(
    options: &Options,
    linux: &Linux,
    cpu: &Identity,
    handle: Handle,
) -> Result<Box<State>> {
    if options.level > 1 {
        return Err(Error::new(-libc::ENOTSUP, "level 2 is wanted")
            .why("of level 2 both kinds of core count branch mispredicts alone")
            .remedy(format!("for both kinds leave {} out", names().level)));
    }
    let plans = detect::hybrid(linux, cpu, options.level)?;
    let own = options.target == Target::This && !options.no_rdpmc && rseq::descriptor().is_some();
    if !own {
        return open(options, cpu.clone(), &plans, handle, None);
    }
    let second = second::take(handle)?;
    let state = open(options, cpu.clone(), &plans, handle, Some(second));
    if state.is_err() {
        handle.shared().detach();
        second::give_back(second);
    }
    state
}

fn open(
    options: &Options,
    cpu: Identity,
    plans: &[(Pmu, Plan); 2],
    handle: Handle,
    second: Option<Handle>,
) -> Result<Box<State>> {
    let [(pmu, plan), _] = plans;
    let level = level_of(options, pmu.level, &cpu, plan.no_deeper)?;
    let options = Options { level, ..*options };
    let patience = if options.target == Target::This { AT_ONCE } else { PATIENCE };
    let group = |at: usize, place: Option<Handle>| {
        let (pmu, plan) = &plans[at];
        let linux = Linux { descriptors_from: options.descriptors_from };
        PlainGroup::open(linux, pmu, plan, &options, place.map(|place| place.control()), patience)
    };
    let (p_cores, why) = group(0, second.and(Some(handle)))?;
    let (e_cores, why_e) = group(1, second).inspect_err(|_| p_cores.stop())?;
    let groups = HybridGroup::new([p_cores, e_cores], second.map(Handle::shared_for_ever))?;
    if options.target == Target::This && !groups.had_their_turns_always()? {
        groups.stop();
        return Err(
            Error::new(TD_ENOTCOUNTING, "others use general counters").why("a group took turns with theirs")
        );
    }
    let counters = plans.iter().map(|(_, plan)| plan.general_counters()).max().unwrap_or(0);
    let mut info = super::Info { counters, ..info_of(&options, cpu, pmu, level, why.or(why_e)) };
    (info.pmu, info.of_both_kinds) = (BOTH.into(), true);
    if second.is_none() {
        info.path = Path::Read;
    }
    let source = Plain::new(groups, handle.shared(), info.head(pmu.row))?;
    Ok(Box::new(State { info, row: pmu.row as u8, source: AnySource::Hybrid(source, second) }))
}
