//! Which CPU, which PMU, how deep: from CPUID, sysfs and the kernel's answers, never from a raw event
//! that happened to open (kernel-facts, rule 1).
#![forbid(unsafe_code)]

pub(crate) mod blockers;

use crate::error::{Error, Result};
use crate::model::p_counters::SLOTS_P;
use crate::model::perf_metrics::{METRICS, SLOTS, metrics_of};
use crate::model::{self, Counting, Event, Leader, Model};
use crate::sys::Kernel;
use crate::sys::cpu::Identity;
use crate::sys::format::TermFormat;
use crate::sys::numbers::{contains, whole};
pub(crate) use crate::sys::sysfs::DEVICES;
use crate::sys::sysfs::first_line;
use std::borrow::Cow;
use std::io;

/// The remedy of blockers that have no nearer one.
pub(crate) const ANOTHER_CPU: &str = "measure on a CPU that `topdown list` names";

/// The remedy of a CPU that this version does not know.
pub(crate) const SEND: &str = "send us the output of `topdown check`, `head -26 /proc/cpuinfo` and `grep -r . \
    /sys/bus/event_source/devices/cpu*`, so that a later version knows it";

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
    find(kernel, cpu).map_err(|error| match error.code() {
        code if code == -libc::ENODEV => {
            let reason = error.reason();
            Error::new(code, format!("no topdown counters on {cpu}"))
                .why(reason.cause())
                .remedy(reason.remedy.clone())
        }
        _ => error,
    })
}

/// Name of the PMU of the CPU, or of its P-cores, whatever it counts.
pub(crate) fn device(kernel: &impl Kernel) -> Option<&'static str> {
    ["cpu", "cpu_core"].into_iter().find(|name| kernel.exists(&format!("{DEVICES}/{name}")))
}

fn none(what: impl Into<Cow<'static, str>>) -> Error {
    Error::errno(libc::ENODEV, what)
}

/// For files of sysfs that every PMU has.
const MOUNT_SYS: &str = "mount /sys (a container may hide it)";

/// As `pmu`, but the error does not repeat that there are no topdown counters.
pub(crate) fn find(kernel: &impl Kernel, cpu: &Identity) -> Result<Pmu> {
    if !kernel.exists(DEVICES) {
        return Err(none(format!("{DEVICES} is missing"))
            .remedy("mount /sys (a container may hide it), or use a kernel with perf events"));
    }
    let name = device(kernel).ok_or_else(|| match &cpu.hypervisor {
        Some(name) => none(format!("this virtual machine ({name}) has no PMU"))
            .remedy("measure on the host, or in a machine that passes PERF_METRICS through"),
        None => none("the kernel has no driver for its PMU").remedy("a newer kernel may"),
    })?;
    let file = |path: &str| text(kernel, name, path);
    let encoding = |event: &Event| {
        file(&format!("events/{}", event.name)).map(|text| text.and_then(|text| config(&text)))
    };

    let row = model::of_cpu(cpu);
    if let Some((_, Model { core, counting: Counting::None(why), .. })) = row {
        return Err(none(format!("it is a {core}")).why(*why).remedy(ANOTHER_CPU));
    }
    if let Some((_, Model { core, counting: Counting::Counters(_), .. })) = row {
        return Err(none(format!("it is a {core}, which has no PERF_METRICS"))
            .remedy("measure it by its general counters: leave TD_FLAG_REGISTERS out"));
    }
    let Some(slots) = encoding(&SLOTS)? else {
        let hidden = file("events/cpu-cycles")?.is_none();
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
    let Counting::PerfMetrics { level: most } = model.counting else { unreachable!("a row of PERF_METRICS") };
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

/// The events of a group of plain counters.
#[derive(Debug)]
pub(crate) struct Plan {
    pub leader: Leader,
    /// Slots for each that the leader counts.
    pub slots_each: u64,
    /// The inputs of the row's tree, in their order.
    pub members: Vec<Event>,
    /// It is not believed that they count until they do.
    pub unproven: bool,
    /// Why there is no deeper level, if there might be.
    pub no_deeper: &'static str,
}

/// Why fewer general counters are left than the core has.
const WATCHDOG: &str = "the NMI watchdog counts cycles, too, which leaves the core one general counter less \
    (sysctl kernel.nmi_watchdog=0)";

impl Plan {
    /// How many general counters it takes.
    pub fn general_counters(&self) -> u32 {
        self.members.len() as u32 + u32::from(self.leader.general)
    }
}

/// Finds the general counters of the CPU, or of its P-cores, with what is to be counted in them down to a level (0: the deepest),
/// or says why there are none. None of it needs PERF_METRICS, so virtual machines have it, too.
pub(crate) fn counters(kernel: &impl Kernel, cpu: &Identity, level: u32) -> Result<(Pmu, Plan)> {
    let none = |why: &'static str| {
        Error::errno(libc::ENODEV, format!("no general counters of slots on {cpu}"))
            .why(why)
            .remedy(ANOTHER_CPU)
    };
    let Some(row) = model::by_counters(cpu) else {
        return Err(none("this version knows no such events of its core"));
    };
    by_row(kernel, cpu, row, level)
}

/// As `counters`, with level 2 of this root.
pub(crate) fn subtree(kernel: &impl Kernel, cpu: &Identity, root: u32, level: u32) -> Result<(Pmu, Plan)> {
    let (_, row) = model::of_cpu(cpu).ok_or_else(|| no_subtree(&cpu.name))?;
    let subtree = model::with_subtree(row, root).ok_or_else(|| no_subtree(row.core))?;
    let (pmu, plan) = by_row(kernel, cpu, subtree, level)?;
    if pmu.level == 1 {
        return Err(Error::errno(libc::ENOTSUP, format!("a {} has no counter left for level 2", row.core))
            .why(plan.no_deeper));
    }
    Ok((pmu, plan))
}

pub(crate) fn no_subtree(core: &str) -> Error {
    Error::errno(libc::ENOTSUP, format!("a subtree alone cannot be counted on {core}"))
        .why("it counts level 2 whole, as much of it as fits, or not at all")
        .remedy("leave td_options.subtree out")
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
    let name = device(kernel).ok_or_else(|| none("the kernel has no driver for its PMU"))?;
    if text(kernel, name, "events/cpu-cycles")?.is_none() {
        return Err(hidden_events(name));
    }
    let pmu = kind_and_cpus(kernel, name)?;
    let (pmu, mut plan) = plan(kernel, name, pmu, (row, model), level)?;
    if matches!(model.counting, Counting::Counters(counters) if counters.alone) {
        runs_one_thread(kernel, cpu, model)?;
    }
    if plan.leader.event == SLOTS_P && name == "cpu" && model::of_e_cores(cpu).is_some() {
        return Err(none("its kernel does not tell P-cores from E-cores, on which the events are others"));
    }
    // (a hypervisor may withhold events, which then count nothing)
    plan.unproven = cpu.hypervisor.is_some();
    Ok((pmu, plan))
}

/// Whether each core of the CPU runs one thread alone, as far as can be known.
fn runs_one_thread(kernel: &impl Kernel, cpu: &Identity, model: &Model) -> Result<()> {
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

/// What is to be counted on a core of this row, down to a level. Events that the kernel shows are those of the row, or it is
/// another core.
fn plan(
    kernel: &impl Kernel,
    name: &'static str,
    (kind, cpus): (u32, Option<String>),
    (row, model): (u32, &'static Model),
    level: u32,
) -> Result<(Pmu, Plan)> {
    let Counting::Counters(counters) = model.counting else { unreachable!("a row of counters") };
    let shown = |event: &Event| text(kernel, name, &format!("events/{}", event.name));
    let (last, others) = counters.leaders.split_last().expect("a row of a CPU that there is");
    let mut leader = last;
    for other in others {
        if shown(&other.event)?.and_then(|text| config(&text)) == Some(other.event.config) {
            leader = other;
            break;
        }
    }
    // both the watchdog and a leader of cycles take a general counter, where there is no fixed one or but one of them
    let watchdog = leader.by_cycle && nmi_watchdog(kernel);
    let others = usize::from(leader.general) + usize::from(watchdog);
    let fits =
        |level: &u32| counters.general == 0 || counters.tree.inputs_of(*level) + others <= counters.general;
    let most = counters.tree.depth();
    let deepest = (1..=most).rev().find(fits).unwrap_or(1);
    let no_deeper = if deepest < most { WATCHDOG } else { counters.no_deeper };
    let level = if level == 0 { deepest } else { level.min(deepest) };
    let members = counters.events[..counters.tree.inputs_of(level)].to_vec();
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
    let slots_each = if leader.by_cycle { model.slots_per_cycle.into() } else { 1 };
    let plan = Plan { leader: *leader, slots_each, members, unproven: false, no_deeper };
    Ok((Pmu { name, kind, model, row, level: deepest, cpus }, plan))
}

/// Whether the kernel's watchdog counts cycles of each CPU.
fn nmi_watchdog(kernel: &impl Kernel) -> bool {
    kernel.text("/proc/sys/kernel/nmi_watchdog").is_ok_and(|text| text.trim() == "1")
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

/// Finds the PMU of a hybrid CPU's E-cores, with what is to be counted, or says why there is none.
pub(crate) fn e_cores(kernel: &impl Kernel, cpu: &Identity, level: u32) -> Result<(Pmu, Plan)> {
    let name = "cpu_atom";
    let none =
        |why: &'static str| Error::errno(libc::ENOTSUP, format!("no E-cores to measure on {cpu}")).why(why);
    let file = |path: &str| text(kernel, name, path);
    let Some(row) = model::of_e_cores(cpu) else {
        return Err(none("it is no hybrid CPU that this version knows").remedy("leave TD_FLAG_E_CORES out"));
    };
    let kind = file("type")?.and_then(|text| text.trim().parse().ok());
    let kind = kind.ok_or_else(|| {
        none("the kernel shows no PMU 'cpu_atom': they may be off, or /sys hidden (as in a container)")
    })?;
    let cpus = file("cpus")?.ok_or_else(|| none("cpu_atom/cpus is missing").remedy(MOUNT_SYS))?;
    plan(kernel, name, (kind, Some(cpus.trim().to_string())), row, level)
}

/// `event=0x00,umask=0x4` to a config. Formats are those of every Intel core PMU; any other term is not of PERF_METRICS.
fn config(text: &str) -> Option<u64> {
    first_line(text).split(',').try_fold(0, |config, term| {
        let (name, value) = term.split_once('=')?;
        let format = match name {
            "event" => "config:0-7",
            "umask" => "config:8-15",
            _ => return None,
        };
        Some(config | TermFormat::parse(format)?.place(whole(value)?)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::INTEL_CYCLES;
    use crate::sys::scripted::Scripted;

    const EVENTS: &str = "/sys/bus/event_source/devices/cpu/events";

    fn cpu(model: u32) -> Identity {
        Identity {
            vendor: "GenuineIntel".into(),
            family: 6,
            model,
            name: "a CPU".into(),
            ..Identity::default()
        }
    }

    fn refused(kernel: &Scripted, cpu: &Identity) -> String {
        let error = pmu(kernel, cpu).unwrap_err();
        assert_eq!(error.code(), -libc::ENODEV);
        error.to_string()
    }

    #[test]
    fn sapphire_rapids_has_two_levels_and_ice_lake_one_whatever_opens() {
        let kernel = Scripted::sapphire_rapids();
        assert_eq!(pmu(&kernel, &cpu(0x8f)).unwrap().level, 2);
        assert_eq!(pmu(&kernel, &cpu(0x6a)).unwrap().level, 1);
        kernel.remove(&format!("{EVENTS}/topdown-heavy-ops"));
        assert_eq!(pmu(&kernel, &cpu(0x8f)).unwrap().level, 1);
    }

    #[test]
    fn a_hybrid_cpu_is_measured_on_its_p_cores() {
        let kernel = Scripted::sapphire_rapids();
        kernel.rename("/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core");
        kernel.add("/sys/bus/event_source/devices/cpu_core/cpus", "0-2,4\n");
        let found = pmu(&kernel, &cpu(0x97)).unwrap();
        assert_eq!(found.name, "cpu_core");
        assert!(found.covers(2) && found.covers(4) && !found.covers(3));
    }

    #[test]
    fn general_counters_need_a_core_that_is_known_and_told_apart() {
        let leader =
            |kernel: &Scripted, model| counters(kernel, &cpu(model), 0).map(|(_, plan)| plan.leader.event);
        let kernel = Scripted::sapphire_rapids();
        assert_eq!(leader(&kernel, 0x8f).unwrap(), SLOTS);
        kernel.remove(&format!("{EVENTS}/slots"));
        assert_eq!(leader(&kernel, 0x8f).unwrap(), SLOTS_P, "a virtual machine, or an old kernel");
        assert!(leader(&kernel, 0xbd).is_err(), "one PMU for all cores of a hybrid CPU");
        assert!(leader(&kernel, 0xfe).is_err(), "unknown");
        kernel.rename("/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core");
        kernel.add("/sys/bus/event_source/devices/cpu_core/cpus", "0-2\n");
        assert_eq!(leader(&kernel, 0xbd).unwrap(), SLOTS_P);
        assert_eq!(counters(&kernel, &cpu(0xbd), 1).unwrap().1.members.len(), 3);
    }

    #[test]
    fn a_skylake_is_counted_only_where_each_core_runs_one_thread() {
        const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
        let kernel = Scripted::sapphire_rapids();
        let plan = |cpu: &Identity| counters(&kernel, cpu, 0).map(|(_, plan)| plan);
        let refused = |cpu: &Identity, word: &str| {
            let error = plan(cpu).unwrap_err();
            assert!(error.code() == -libc::ENODEV && error.to_string().contains(word), "{error}");
        };
        refused(&cpu(0x55), "cannot be read");
        kernel.add(ACTIVE, "1\n");
        refused(&cpu(0x55), "SMT is on");
        kernel.add(ACTIVE, "0\n");
        let skylake = plan(&cpu(0x55)).unwrap();
        assert_eq!((skylake.leader, skylake.slots_each, skylake.general_counters()), (INTEL_CYCLES, 4, 7));
        let seven = [0x2c2, 0x10e, 0x19c, 0x100_010d, 0x400_019c, 0xc5, 0x104_01c3];
        assert!(skylake.members.iter().map(|event| event.config).eq(seven));
        refused(&Identity { hypervisor: Some("KVM".into()), ..cpu(0x55) }, "on the host");
        kernel.add(&format!("{EVENTS}/topdown-slots-issued"), "event=0xe,umask=0x2\n");
        refused(&cpu(0x55), "takes this CPU for another");
    }

    #[test]
    fn e_cores_give_level_2_where_their_counters_hold_it_beside_the_watchdog() {
        const WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";
        const LEVEL_2: [u64; 4] = [0x7271, 0x0174, 0x0473, 0x0373];
        let kernel = Scripted::default();
        kernel.add("/sys/bus/event_source/devices/cpu/type", "4\n");
        kernel.add(&format!("{EVENTS}/cpu-cycles"), "event=0x3c\n");
        let level = |model, level| {
            let (pmu, plan) = counters(&kernel, &cpu(model), level).unwrap();
            let configs: Vec<_> = plan.members.iter().map(|event| event.config).collect();
            (pmu.level, configs, plan.no_deeper)
        };
        for (watchdog, gracemont, crestmont) in [("0\n", 2, 2), ("1\n", 1, 2)] {
            kernel.add(WATCHDOG, watchdog);
            let (deepest, configs, no_deeper) = level(0xbe, 0);
            let why = if gracemont == 1 { "watchdog" } else { "machine clears" };
            assert!(deepest == gracemont && no_deeper.contains(why), "{no_deeper}");
            let six = [0xc2, 0x71, 0x74, 0x7271, 0x0174, 0x0473]; // all that Gracemont has
            assert_eq!(configs, six[..if gracemont == 1 { 3 } else { 6 }]);
            let (deepest, configs, no_deeper) = level(0xaf, 0);
            assert_eq!((deepest, no_deeper), (crestmont, ""));
            assert_eq!((&configs[..3], &configs[3..]), (&[0x72, 0x71, 0x74][..], &LEVEL_2[..]));
            assert_eq!(level(0xdd, 0).1[..3], [0x2c2, 0x19c, 0x2a4], "Darkmont");
            assert_eq!(level(0xaf, 1).1, [0x72, 0x71, 0x74]);
            assert_eq!(level(0x86, 0), (1, vec![0xc2, 0x71, 0x74], ""), "Tremont has four counters");
        }
    }

    #[test]
    fn a_subtree_of_zen_is_counted_where_six_counters_hold_it() {
        use crate::model::metrics::*;
        const WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";
        const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
        let kernel = Scripted::default();
        kernel.add("/sys/bus/event_source/devices/cpu/type", "4\n");
        kernel.add(&format!("{EVENTS}/cpu-cycles"), "event=0x76\n");
        kernel.add(ACTIVE, "0\n");
        let zen = |family, model| Identity { vendor: "AuthenticAMD".into(), family, ..cpu(model) };
        let fifths = |cpu: &Identity| {
            [TD_NODE_RETIRING, TD_NODE_FRONTEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_BACKEND_BOUND].map(
                |root| {
                    let (pmu, plan) = subtree(&kernel, cpu, root, 0).unwrap();
                    assert_eq!((pmu.level, plan.general_counters()), (2, 6));
                    let [.., fourth, fifth] = plan.members[..] else { unreachable!() };
                    (fourth.config, fifth.config)
                },
            )
        };
        const CONTENTION: u64 = 0x1_0000_60a0;
        let [retiring, backend] = [(CONTENTION, 0x1_0000_00c2), (0x2d6, 0xa2d6)];
        kernel.add(WATCHDOG, "0\n");
        let zen_4 = [retiring, (CONTENTION, 0x1_0600_01a0), (0xc3, 0x96), backend];
        let zen_5 = [retiring, (CONTENTION, 0x1_0800_01a0), (0xc3, 0x19f), backend];
        assert_eq!(fifths(&zen(0x19, 0x11)), zen_4);
        assert_eq!((fifths(&zen(0x1a, 0x02)), fifths(&zen(0x1a, 0x50))), (zen_5, zen_5));
        assert_eq!(counters(&kernel, &zen(0x19, 0x11), 0).unwrap().1.members.len(), 4, "level 1 by default");
        let refused = |cpu: &Identity, root, code: i32, word: &str| {
            let error = subtree(&kernel, cpu, root, 0).unwrap_err();
            assert!(error.code() == -code && error.to_string().contains(word), "{error}");
        };
        kernel.add(ACTIVE, "1\n"); // whose slots are the other thread's?
        refused(&zen(0x19, 0x11), TD_NODE_BACKEND_BOUND, libc::ENODEV, "SMT is on");
        refused(&zen(0x19, 0x11), TD_NODE_BAD_SPECULATION, libc::ENODEV, "SMT is on");
        assert!(subtree(&kernel, &zen(0x19, 0x11), TD_NODE_RETIRING, 0).is_ok());
        kernel.add(WATCHDOG, "1\n");
        refused(&zen(0x19, 0x11), TD_NODE_RETIRING, libc::ENOTSUP, "nmi_watchdog=0");
        refused(&cpu(0xaf), TD_NODE_RETIRING, libc::ENOTSUP, "leave td_options.subtree out");
        refused(&zen(0x19, 0x01), TD_NODE_RETIRING, libc::ENOTSUP, "leave td_options.subtree out");
    }

    #[test]
    fn encodings_are_read_as_the_kernel_writes_them() {
        for (text, encoding) in [
            ("event=0x00,umask=0x4\n", Some(0x400)),
            ("event=0xa4,umask=0x02\0\0\0", Some(0x2a4)), // of a hybrid PMU
            ("event=60", Some(60)),
            ("event=0x100", None),
            ("event=0x3c,umask", None),
            ("event=0x3c,inv=1", None),
            ("event=", None),
            ("event=0x3c junk", None),
        ] {
            assert_eq!(config(text), encoding, "{text:?}");
        }
    }

    #[test]
    fn each_blocker_is_named() {
        let old = Scripted::sapphire_rapids();
        old.remove(&format!("{EVENTS}/slots"));
        assert!(refused(&old, &cpu(0xad)).contains("newer kernel"));
        let guest = Identity { hypervisor: Some("KVM".into()), ..cpu(0x8f) };
        assert!(refused(&old, &guest).contains("virtual machine (KVM)"));

        let tremont = Scripted::sapphire_rapids();
        assert!(refused(&tremont, &cpu(0x86)).contains("a Tremont, which has no PERF_METRICS"));
        tremont.add(&format!("{EVENTS}/topdown-retiring"), "event=0xc2,umask=0x0\n");
        assert!(refused(&tremont, &cpu(0xfe)).contains("general counters"));
        assert!(refused(&tremont, &cpu(0x3f)).contains("Haswell"));

        let bare = Scripted::default();
        assert!(refused(&bare, &cpu(0x8f)).contains("/sys"));
        bare.add("/sys/bus/event_source/devices/software/type", "1\n");
        assert!(refused(&bare, &cpu(0x8f)).contains("no driver"));
        assert!(refused(&bare, &guest).contains("has no PMU"));

        let amd = Identity { vendor: "AuthenticAMD".into(), family: 0x19, ..Identity::default() };
        assert!(refused(&old, &amd).contains("Zen"));
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_missing() {
        let hidden = Scripted::sapphire_rapids();
        for (file, errno, word) in [
            ("slots", libc::EMFILE, "ulimit -n"),
            ("slots", libc::ENFILE, "fs.file-max"),
            ("topdown-heavy-ops", libc::EACCES, "make it readable"),
        ] {
            hidden.hide(&format!("{EVENTS}/{file}"), errno);
            let error = pmu(&hidden, &cpu(0x8f)).unwrap_err();
            assert_eq!(error.code(), -errno);
            assert!(error.to_string().contains(word) && error.to_string().contains(file), "{error}");
            hidden.add(&format!("{EVENTS}/slots"), "event=0x00,umask=0x4\n");
        }
        let masked = Scripted::default();
        masked.add("/sys/bus/event_source/devices/cpu/type", "4\n");
        assert!(refused(&masked, &cpu(0x8f)).contains("mount /sys"));
        let hybrid = Scripted::sapphire_rapids();
        hybrid.rename("/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core");
        assert!(refused(&hybrid, &cpu(0x97)).contains("cpu_core/cpus is missing"), "or E-cores were P-cores");
    }

    #[test]
    fn e_cores_are_those_of_a_hybrid_cpu_with_their_events() {
        let kernel = Scripted::sapphire_rapids();
        let refused = |cpu: &Identity| {
            let error = e_cores(&kernel, cpu, 0).unwrap_err();
            assert_eq!(error.code(), -libc::ENOTSUP);
            error.to_string()
        };
        assert!(refused(&cpu(0x8f)).contains("no hybrid CPU"));
        assert!(refused(&cpu(0x97)).contains("cpu_atom"));
        let atom = "/sys/bus/event_source/devices/cpu_atom";
        kernel.add(&format!("{atom}/type"), "10\n");
        assert!(refused(&cpu(0x97)).contains("cpus is missing"));
        kernel.add(&format!("{atom}/cpus"), "4-7\n");
        for (event, text) in ["topdown-retiring", "topdown-fe-bound", "topdown-be-bound"].iter().zip([
            "event=0xc2,umask=0x0",
            "event=0x71,umask=0x0",
            "event=0x74,umask=0x0\0",
        ]) {
            kernel.add(&format!("{atom}/events/{event}"), text);
        }
        let (found, plan) = e_cores(&kernel, &cpu(0x97), 0).unwrap();
        assert!(plan.members.iter().map(|event| event.config).eq([0xc2, 0x71, 0x74, 0x7271, 0x0174, 0x0473]));
        assert_eq!((plan.leader, plan.slots_each, plan.general_counters()), (INTEL_CYCLES, 5, 6));
        let error = e_cores(&kernel, &cpu(0xbd), 0).unwrap_err();
        assert_eq!(error.code(), -libc::ENODEV);
        assert!(error.to_string().contains("on a Skymont it is 0x2c2"), "{error}");
        assert_eq!((found.kind, found.model.core, found.model.slots_per_cycle), (10, "Gracemont", 5));
        assert!(found.covers(4) && !found.covers(3));
    }

    #[test]
    fn only_event_and_umask_make_a_config() {
        assert_eq!(config("event=0x00,umask=0x4\n"), Some(0x400));
        assert_eq!(config("event=0x0,umask=0x80"), Some(0x8000));
        assert_eq!(config("event=0xc2,umask=0x2\0\0\0"), Some(0x2c2));
        assert_eq!(config("event=0x9c,umask=0x1,cmask=0x1"), None);
        assert_eq!(config("event=0x100"), None);
        assert_eq!(config(""), None);
    }
}
