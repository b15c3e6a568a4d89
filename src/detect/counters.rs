//! General-purpose counters: which events of a core are to be counted, and whether they fit.
#![forbid(unsafe_code)]

use super::{
    ANOTHER_CPU, DEVICES, MOUNT_SYS, Pmu, SEND, config, driver, has_none, hidden_events, kind_and_cpus,
    no_topdown_counters, none, shows_cycles, text,
};
use crate::error::{Error, Result, TD_ENOTCOUNTING};
use crate::model::Variant;
use crate::model::perf_metrics::SLOTS_P;
use crate::model::{self, Counting, Event, Model};
use crate::options::{Options, WantedNodes, names};
use crate::plan::{self, Plan};
use crate::sys::cpu::{self, ARM64, Identity};
use crate::sys::numbers::whole;
use crate::sys::sysfs::{config_of_arm64, first_line};
use crate::sys::{Kernel, Linux};

/// Finds the general-purpose counters of the CPU, or of its P-cores, with what is to be counted in them down to a level (0: the deepest),
/// or says why there are none. None of it needs PERF_METRICS, so virtual machines have it, too.
pub(crate) fn counters(kernel: &impl Kernel, cpu: &Identity, level: u32) -> Result<(Pmu, Plan)> {
    let Some(row) = model::by_counters(cpu) else {
        return Err(match model::of_cpu(cpu) {
            Some((_, Model { core, counting: Counting::None(why), .. })) => {
                no_topdown_counters(cpu, has_none(core, why))
            }
            _ => Error::errno(libc::ENODEV, format!("no general counters of slots on {cpu}"))
                .why("this version knows no such events of its core")
                .remedy(ANOTHER_CPU),
        });
    };
    by_row(kernel, cpu, row, level)
}

/// As `counters`, once for each set of events by which the published metrics correct the others that `options` permits, the most first;
/// on AMD then level 1 without SMT contention, where each core runs one thread. (Each is looked for when it is asked for.)
pub(crate) fn ways<'a>(
    kernel: &'a impl Kernel,
    cpu: &'a Identity,
    options: &Options,
    level: u32,
) -> impl ExactSizeIterator<Item = Result<(Pmu, Plan)>> + 'a {
    let own = model::of_cpu(cpu);
    let variant_of = |variant| model::another(own?.1, variant);
    let one_thread =
        variant_of(Variant::OneThread).is_some_and(|(_, row)| runs_one_thread(kernel, cpu, row).is_ok());
    let rows = plan::variants(|variant| variant_of(variant).is_some(), options.corrections, one_thread);
    let rows: Vec<_> = rows.into_iter().map(|way| way.and_then(variant_of)).collect();
    rows.into_iter().map(move |row| match row {
        Some(row) => by_row(kernel, cpu, row, level),
        None => counters(kernel, cpu, level),
    })
}

/// As `counters`, with what is below this node.
pub(crate) fn subtree(kernel: &impl Kernel, cpu: &Identity, node: u32, level: u32) -> Result<(Pmu, Plan)> {
    let row = match model::of_cpu(cpu) {
        Some((_, row)) if !matches!(row.counting, Counting::None(_)) => row,
        // (what has no counters of slots has none without the subtree either)
        _ => {
            counters(kernel, cpu, level)?;
            return Err(no_subtree(&cpu.name, None));
        }
    };
    all_of_it(by_row(kernel, cpu, row_of_subtree(row, node, level)?, level)?, level)
}

/// As `counters`, by a group of the CPU's tree of deeper levels.
pub(crate) fn deep_group(kernel: &impl Kernel, cpu: &Identity, group: u32) -> Result<(Pmu, Plan)> {
    all_of_it(by_row(kernel, cpu, row_of_deep_group(cpu, group)?, 0)?, 0)
}

/// As `counters`, with these nodes, and what is below them.
pub(crate) fn nodes(kernel: &impl Kernel, cpu: &Identity, wanted: &WantedNodes) -> Result<(Pmu, Plan)> {
    // (what has no counters of slots has no nodes either)
    counters(kernel, cpu, 0)?;
    let row = model::row_of_nodes(cpu, wanted).map_err(|why| {
        Error::errno(
            libc::ENOTSUP,
            format!("{cpu} does not count the nodes of td_options.nodes in one group"),
        )
        .why(why)
        .remedy("`topdown list --nodes` has this CPU's nodes; those of several groups take a handle for each")
    })?;
    all_of_it(by_row(kernel, cpu, row, 0)?, 0)
}

/// The row of a group of the CPU's tree of deeper levels.
pub(crate) fn row_of_deep_group(cpu: &Identity, group: u32) -> Result<(u32, &'static Model)> {
    model::row_of_group(cpu, group).ok_or_else(|| {
        Error::errno(libc::ENOTSUP, format!("{cpu} has no group {group} of deeper levels"))
            .why("none is published, or it has fewer")
            .remedy("name one of those that deep_tree() has")
    })
}

/// The row of the same core that counts what is below this node, down to this level; 0: as deep as it goes.
pub(crate) fn row_of_subtree(row: &Model, node: u32, level: u32) -> Result<(u32, &'static Model)> {
    let found = model::with_subtree(row, node).ok_or_else(|| no_subtree(row.core, Some(row)))?;
    match model::level_below(found.1, node) {
        Some(below) if (1..below).contains(&level) => Err(Error::invalid(format!(
            "{} is {level}, and the nodes below {} are of level {below}",
            names().level,
            names().subtree
        ))
        .remedy(format!("leave it out, or set it to {below}"))),
        _ => Ok(found),
    }
}

/// Of a subtree there is to be every level, unless fewer are asked for.
pub(super) fn all_of_it((pmu, plan): (Pmu, Plan), level: u32) -> Result<(Pmu, Plan)> {
    let (core, all) = (pmu.model.core, pmu.model.levels());
    if level == 0 && pmu.level < all {
        return Err(Error::errno(libc::ENOTSUP, format!("no counter is left for level {all} of '{core}'"))
            .why(plan.no_deeper.to_string()));
    }
    Ok((pmu, plan))
}

fn no_subtree(core: &str, row: Option<&Model>) -> Error {
    let option = names().subtree;
    let error = Error::errno(libc::ENOTSUP, format!("this subtree alone cannot be counted on {core}"));
    match row.map(|row| (model::names_of_subtrees(row), row.no_deeper())) {
        Some((names, no_deeper)) if !names.is_empty() => error
            .why(if no_deeper.is_empty() { "another group holds it".into() } else { no_deeper.to_string() })
            .remedy(format!("name one of these in {option}, or leave it out: {names}")),
        _ => error
            .why("it counts level 2 whole, as much of it as fits, or not at all")
            .remedy(format!("leave {option} out")),
    }
}

/// `counters` of this row.
fn by_row(
    kernel: &impl Kernel,
    cpu: &Identity,
    (row, model): (u32, &'static Model),
    level: u32,
) -> Result<(Pmu, Plan)> {
    let none = |why: &'static str| {
        Error::errno(libc::ENODEV, format!("no general counters of slots on {cpu}"))
            .why(why)
            .remedy(ANOTHER_CPU)
    };
    let name = driver(kernel, cpu).map_err(|error| no_topdown_counters(cpu, error))?;
    if !shows_cycles(kernel, name)? {
        return Err(hidden_events(name));
    }
    let pmu = kind_and_cpus(kernel, name)?;
    let (pmu, mut plan) = plan_of_row(kernel, name, pmu, (row, model), level)?;
    if matches!(model.counting, Counting::Counters(counters) if counters.alone) {
        runs_one_thread(kernel, cpu, model)?;
    }
    if plan.leader.event == SLOTS_P && name == "cpu" && model::of_e_cores(cpu).is_some() {
        return Err(none("its kernel does not tell P-cores from E-cores, on which the events are others"));
    }
    // (a hypervisor may withhold events, which then count nothing; an arm64 CPU does not tell whether there is one)
    plan.unproven = cpu.hypervisor.is_some() || model.family == ARM64;
    Ok((pmu, plan))
}

/// Whether each core of the CPU runs one thread alone, as far as can be known.
pub(crate) fn runs_one_thread(kernel: &impl Kernel, cpu: &Identity, model: &Model) -> Result<()> {
    const SMT: &str = "/sys/devices/system/cpu/smt";
    let why = format!(
        "two threads share the slots of a {}, and its counters do not tell whose they are",
        model.core
    );
    if let Some(hypervisor) = &cpu.hypervisor {
        let what =
            format!("this virtual machine ({hypervisor}) does not show whether its cores run another thread");
        return Err(none(what).why(why).remedy("measure on the host"));
    }
    match kernel.text(&format!("{SMT}/active")) {
        Ok(active) if active.trim() == "0" => Ok(()),
        Ok(_) => Err(none("SMT is on").why(why).remedy(format!("switch it off: echo off > {SMT}/control"))),
        Err(refusal) => {
            Err(none(format!("{SMT}/active cannot be read ({refusal})")).why(why).remedy(MOUNT_SYS))
        }
    }
}

/// Why a group got no turn that would take a counter less if each core ran one thread.
pub(crate) fn with_smt_off(kernel: &impl Kernel, cpu: &Identity, taken: Error) -> Error {
    let one_thread = model::variant_of(cpu, Variant::OneThread).filter(|_| taken.code() == TD_ENOTCOUNTING);
    match one_thread.map(|(_, row)| runs_one_thread(kernel, cpu, row)) {
        Some(Err(smt)) => {
            let remedy = format!(
                "{}; or switch SMT off, which takes a counter less ({})",
                taken.reason().remedy,
                smt.reason().remedy
            );
            taken.remedy(remedy)
        }
        _ => taken,
    }
}

/// What is to be counted on a core of this row, down to a level. Events that the kernel shows are those of the row, or it is
/// another core.
pub(super) fn plan_of_row(
    kernel: &impl Kernel,
    name: &'static str,
    (kind, cpus): (u32, Option<String>),
    (row, model): (u32, &'static Model),
    level: u32,
) -> Result<(Pmu, Plan)> {
    let Counting::Counters(counters) = model.counting else { unreachable!("a row of counters") };
    let config = if model.family == ARM64 { config_of_arm64 } else { config };
    let shown = |event: &Event| text(kernel, name, &format!("events/{}", event.name));
    let (_, others) = counters.leaders.split_last().expect("a row of a CPU that there is");
    let mut first = None;
    for (place, leader) in others.iter().enumerate() {
        if shown(&leader.event)?.and_then(|text| config(&text)) == Some(leader.event.config) {
            first = Some(place);
            break;
        }
    }
    let leader = plan::leader(counters, first);
    let taken = usize::from(plan::meets_watchdog(model, &leader) && nmi_watchdog(kernel));
    let choice = plan::choose(counters, leader, taken, level);
    let members = choice.members;
    for event in members.iter().chain([&leader.event]) {
        let Some(text) = shown(event)? else { continue };
        if config(&text) != Some(event.config) {
            let what = format!("{DEVICES}/{name}/events/{} is {}", event.name, first_line(&text));
            return Err(none(what)
                .why(format!(
                    "on a {} it is {:#x}: the kernel takes this CPU for another",
                    model.core, event.config
                ))
                .remedy("a newer kernel may know it"));
        }
    }
    let slots_each = if leader.by_cycle { width(kernel, name, model)? } else { 1 };
    let counts_parts =
        choice.no_deeper.besides_subtrees.is_none() || model::level_of_parts(model, &leader, taken) > 0;
    let no_deeper =
        if taken == 0 || counts_parts { choice.no_deeper } else { plan::NO_PARTS_BESIDE_WATCHDOG };
    let members = members.to_vec();
    let plan = Plan { leader, slots_each, members, unproven: false, no_deeper };
    Ok((Pmu { name, kind, model, row, level: choice.deepest, cpus }, plan))
}

/// Slots per cycle: as the row says, and on arm64 the kernel, where it tells.
fn width(kernel: &impl Kernel, pmu: &str, model: &Model) -> Result<u64> {
    let table = u64::from(model.slots_per_cycle);
    if model.family != ARM64 {
        return Ok(table);
    }
    let told = text(kernel, pmu, "caps/slots")?.and_then(|text| whole(text.trim())).filter(|told| *told > 0);
    match told {
        Some(told) if table == 0 || told == table => Ok(told),
        None if table > 0 => Ok(table),
        Some(told) => Err(none(format!("{DEVICES}/{pmu}/caps/slots is {told}"))
            .why(format!("a {} has {table} slots per cycle", model.core))
            .remedy(SEND)),
        None => Err(none(format!("{DEVICES}/{pmu}/caps/slots does not tell the slots per cycle"))
            .why(format!("no document tells those of a {}", model.core))
            .remedy("a newer kernel may show it (Linux 5.11 or later)")),
    }
}

/// The level that this CPU's counters have, but not beside the NMI watchdog, which is on.
#[must_use]
pub fn withheld_by_watchdog() -> Option<u32> {
    let e_cores = model::of_e_cores(&cpu::identify()).map(|(_, row)| row);
    let mut kinds = model::of_this_cpu().into_iter().chain(e_cores);
    kinds.find_map(plan::withheld_by_watchdog).filter(|_| nmi_watchdog(&Linux::default()))
}

/// Whether the kernel's watchdog counts cycles of each CPU.
fn nmi_watchdog(kernel: &impl Kernel) -> bool {
    kernel.text("/proc/sys/kernel/nmi_watchdog").is_ok_and(|text| text.trim() == "1")
}
