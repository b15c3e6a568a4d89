//! Hybrid CPUs: the PMU of the E-cores, alone or beside that of the P-cores.
#![forbid(unsafe_code)]

use super::counters::{all_of_it, plan_of_row, row_of_subtree};
use super::{MOUNT_SYS, Pmu, device, kind_and_cpus, text};
use crate::error::{Error, Result};
use crate::model;
use crate::model::metrics::TD_NODE_NONE;
use crate::plan::Plan;
use crate::sys::Kernel;
use crate::sys::cpu::Identity;

/// Finds the PMU of a hybrid CPU's E-cores, with what is to be counted, or says why there is none.
pub(crate) fn e_cores(kernel: &impl Kernel, cpu: &Identity, subtree: u32, level: u32) -> Result<(Pmu, Plan)> {
    let none =
        |why: &'static str| Error::errno(libc::ENOTSUP, format!("no E-cores to measure on {cpu}")).why(why);
    let Some(row) = model::of_e_cores(cpu) else {
        return Err(none("it is no hybrid CPU that this version knows").remedy("leave TD_CORES_E out"));
    };
    let pmu = e_cores_pmu(kernel, none)?;
    if subtree == TD_NODE_NONE {
        return plan_of_row(kernel, E_CORES, pmu, row, level);
    }
    let (_, model) = row;
    let row = row_of_subtree(model, subtree, level)?;
    all_of_it(plan_of_row(kernel, E_CORES, pmu, row, level)?, level)
}

/// The PMU of the E-cores in sysfs.
const E_CORES: &str = "cpu_atom";

/// Its number, and the CPUs that it is in. `none`: what an error begins with.
fn e_cores_pmu(kernel: &impl Kernel, none: impl Fn(&'static str) -> Error) -> Result<(u32, Option<String>)> {
    let file = |path: &str| text(kernel, E_CORES, path);
    let kind = file("type")?.and_then(|text| text.trim().parse().ok());
    let kind = kind.ok_or_else(|| {
        none("the kernel shows no PMU 'cpu_atom': they may be off, or /sys hidden (as in a container)")
    })?;
    let cpus = file("cpus")?.ok_or_else(|| none("cpu_atom/cpus is missing").remedy(MOUNT_SYS))?;
    Ok((kind, Some(cpus.trim().to_string())))
}

/// Finds the PMUs of both kinds of core of a hybrid CPU, the P-cores' first, with what is to be counted in each down to a level
/// (0: the deepest that both give), or says why not. The plans have the same inputs in the same order.
pub(crate) fn hybrid(kernel: &impl Kernel, cpu: &Identity, level: u32) -> Result<[(Pmu, Plan); 2]> {
    let none = |why: &'static str| {
        Error::errno(libc::ENOTSUP, format!("P-cores and E-cores cannot be measured together on {cpu}"))
            .why(why)
    };
    let (row, p_cores, e_cores) =
        model::of_hybrid(cpu).ok_or_else(|| none("it is no hybrid CPU that this version knows"))?;
    if device(kernel) != Some("cpu_core") {
        return Err(none("the kernel shows no PMU 'cpu_core'"));
    }
    let pmus = [("cpu_core", kind_and_cpus(kernel, "cpu_core")?), (E_CORES, e_cores_pmu(kernel, none)?)];
    let both = |level: u32| -> Result<[(Pmu, Plan); 2]> {
        let [p, e] = pmus.clone();
        Ok([
            plan_of_row(kernel, p.0, p.1, (row, p_cores), level)?,
            plan_of_row(kernel, e.0, e.1, (row, e_cores), level)?,
        ])
    };
    let found = both(level)?;
    let deepest = found.iter().map(|(pmu, _)| pmu.level).min().unwrap_or(1);
    let mut found = if level == 0 || level > deepest { both(deepest)? } else { found };
    found.iter_mut().for_each(|(pmu, _)| pmu.level = deepest);
    Ok(found)
}
