//! Which CPU, which PMU, how deep: from CPUID, sysfs and the kernel's answers, never from a raw event
//! that happened to open (kernel-facts, rule 1).
#![forbid(unsafe_code)]

pub(crate) mod blockers;
mod counters;
mod hybrid;
pub(crate) mod remedies;

use crate::error::{Error, Result};
use crate::model::perf_metrics::{METRICS, SLOTS, metrics_of};
use crate::model::{self, Counting, Event, Model};
use crate::sys::Kernel;
use crate::sys::cpu::Identity;
use crate::sys::numbers::{contains, whole};
use crate::sys::sysfs::first_line;
pub(crate) use crate::sys::sysfs::{DEVICES, device};
pub use counters::withheld_by_watchdog;
pub(crate) use counters::{
    counters, deep_group, nodes, row_of_deep_group, row_of_subtree, runs_one_thread, subtree, ways,
    with_smt_off,
};
pub(crate) use hybrid::{e_cores, hybrid};
use std::borrow::Cow;
use std::io;

/// The remedy of blockers that have no nearer one.
pub(crate) const ANOTHER_CPU: &str = "measure on a CPU that `topdown list` names";

/// The remedy of a CPU that this version does not know.
pub(crate) const SEND: &str =
    "send us the output of `topdown check` and `topdown check --describe`, so that a later version knows it";

/// A PMU that counts slots.
#[derive(Debug)]
pub(crate) struct Pmu {
    /// Its name in sysfs.
    pub name: &'static str,
    /// Its number for `perf_event_attr.type`.
    pub kind: u32,
    pub model: &'static Model,
    /// The model's row in the table.
    pub row: u32,
    /// Deepest level of its metric events.
    pub level: u32,
    /// On a hybrid CPU, the CPUs that it is in; else none named.
    pub cpus: Option<String>,
}

impl Pmu {
    /// Whether a CPU of the machine has this PMU.
    pub fn covers(&self, cpu: u32) -> bool {
        self.cpus.as_deref().is_none_or(|list| contains(list, cpu))
    }
}

/// Finds the PMU, or says why there is none.
pub(crate) fn pmu(kernel: &impl Kernel, cpu: &Identity) -> Result<Pmu> {
    find(kernel, cpu).map_err(|error| no_topdown_counters(cpu, error))
}

/// Of a core that has nothing to be counted.
fn has_none(core: &str, why: &'static str) -> Error {
    none(format!("it is a {core}")).why(why).remedy(ANOTHER_CPU)
}

/// The error of a machine that has none, for this reason.
fn no_topdown_counters(cpu: &Identity, error: Error) -> Error {
    if error.code() != -libc::ENODEV {
        return error;
    }
    let reason = error.reason();
    Error::new(error.code(), format!("no topdown counters on {cpu}"))
        .why(reason.cause())
        .remedy(reason.remedy.clone())
}

/// As `device`, or why the kernel shows none.
fn driver(kernel: &impl Kernel, cpu: &Identity) -> Result<&'static str> {
    device(kernel).ok_or_else(|| match &cpu.hypervisor {
        _ if !kernel.exists(DEVICES) => none(format!("{DEVICES} is missing"))
            .remedy("mount /sys (a container may hide it), or use a kernel with perf events"),
        Some(name) => none(format!("this virtual machine ({name}) has no PMU"))
            .remedy("measure on the host, or in a machine that passes its PMU through"),
        None => none("the kernel has no driver for its PMU").remedy("a newer kernel may"),
    })
}

/// Whether a PMU shows the event that every PMU has.
fn shows_cycles(kernel: &impl Kernel, pmu: &str) -> Result<bool> {
    for event in ["cpu-cycles", "cpu_cycles"] {
        if text(kernel, pmu, &format!("events/{event}"))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn none(what: impl Into<Cow<'static, str>>) -> Error {
    Error::errno(libc::ENODEV, what)
}

/// For files of sysfs that every PMU has.
const MOUNT_SYS: &str = "mount /sys (a container may hide it)";

/// As `pmu`, but the error does not repeat that there are no topdown counters.
pub(crate) fn find(kernel: &impl Kernel, cpu: &Identity) -> Result<Pmu> {
    let row = model::of_cpu(cpu);
    // (of such a core neither another machine nor another kernel has them: that comes before what these lack)
    if let Some((_, Model { core, counting: Counting::None(why), .. })) = row {
        return Err(has_none(core, why));
    }
    let name = driver(kernel, cpu)?;
    let file = |path: &str| text(kernel, name, path);
    let encoding = |event: &Event| {
        file(&format!("events/{}", event.name)).map(|text| text.and_then(|text| config(&text)))
    };

    if let Some((_, Model { core, counting: Counting::Counters(_), .. })) = row {
        return Err(none(format!("it is a {core}, which has no PERF_METRICS"))
            .remedy("measure it by its general counters: leave TD_SOURCE_REGISTERS out"));
    }
    let Some(slots) = encoding(&SLOTS)? else {
        let hidden = !shows_cycles(kernel, name)?;
        return Err(without_slots(name, hidden, row.map(|(_, model)| model), cpu));
    };
    let mut metrics = 0;
    for event in &METRICS {
        if encoding(event)? != Some(event.config) {
            break;
        }
        metrics += 1;
    }
    if slots != SLOTS.config || metrics < metrics_of(1).len() {
        return Err(none(format!(
            "events/slots and events/topdown-* of {DEVICES}/{name} are not those of PERF_METRICS but mean general \
             counters"
        ))
        .remedy(ANOTHER_CPU));
    }
    let (row, model) = row.unwrap_or((model::UNKNOWN, model::at(model::UNKNOWN).expect("a fixed row")));
    let Counting::PerfMetrics { level: most, .. } = model.counting else {
        unreachable!("a row of PERF_METRICS")
    };
    let level = if metrics >= metrics_of(2).len() { most } else { 1 };
    let (kind, cpus) = kind_and_cpus(kernel, name)?;
    Ok(Pmu { name, kind, model, row, level, cpus })
}

/// A PMU's number, and on a hybrid CPU the CPUs that it is in.
fn kind_and_cpus(kernel: &impl Kernel, pmu: &str) -> Result<(u32, Option<String>)> {
    let file = |path: &str| text(kernel, pmu, path);
    let missing = |path: &str| none(format!("{DEVICES}/{pmu}/{path} is missing")).remedy(MOUNT_SYS);
    let kind = file("type")?.and_then(|text| text.trim().parse().ok()).ok_or_else(|| missing("type"))?;
    let cpus = file("cpus")?.map(|list| list.trim().to_string());
    // without it E-cores would be taken for P-cores
    if cpus.is_none() && pmu == "cpu_core" {
        return Err(missing("cpus"));
    }
    Ok((kind, cpus))
}

fn hidden_events(pmu: &str) -> Error {
    none(format!("{DEVICES}/{pmu}/events, which every PMU has, is empty")).remedy(MOUNT_SYS)
}

/// Why a PMU has no event of SLOTS. `hidden`: nor has it the events that every PMU has.
fn without_slots(pmu: &str, hidden: bool, model: Option<&Model>, cpu: &Identity) -> Error {
    if hidden {
        return hidden_events(pmu);
    }
    match (model, &cpu.hypervisor) {
        (_, Some(hypervisor)) => none(format!(
            "the PMU of this virtual machine ({hypervisor}) has no PERF_METRICS (KVM gives it to no guest)"
        ))
        .remedy("measure on the host"),
        (Some(model), None) => none(format!(
            "it has PERF_METRICS ({}), but this kernel shows no event '{}' in {DEVICES}/{pmu}/events and would count \
             junk",
            model.core, SLOTS.name
        ))
        .remedy("a newer kernel knows this CPU"),
        (None, None) => none(format!(
            "this version does not know it, and the kernel shows no event '{}' in {DEVICES}/{pmu}/events, so it has no \
             PERF_METRICS, or the kernel is too old to know it",
            SLOTS.name
        ))
        .remedy(SEND),
    }
}

/// The text of a PMU's file; none if there is no such file.
fn text(kernel: &impl Kernel, pmu: &str, path: &str) -> Result<Option<String>> {
    let path = format!("{DEVICES}/{pmu}/{path}");
    match kernel.text(&path) {
        Ok(text) => Ok(Some(text)),
        Err(refusal) if refusal.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(refusal) => Err(blockers::unreadable(&path, &refusal)),
    }
}

/// `event=0x00,umask=0x4` to a config. Formats are those of every Intel core PMU; any other term is not of PERF_METRICS.
fn config(text: &str) -> Option<u64> {
    first_line(text).split(',').try_fold(0, |config, term| {
        let (name, value) = term.split_once('=')?;
        let value = u64::from(u8::try_from(whole(value)?).ok()?);
        match name {
            "event" => Some(config | value),
            "umask" => Some(config | value << 8),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests;
