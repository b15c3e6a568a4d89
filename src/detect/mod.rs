//! Which CPU, which PMU, how deep: from CPUID, sysfs and the kernel's answers, never from a raw event
//! that happened to open (kernel-facts, rule 1).
#![forbid(unsafe_code)]

pub(crate) mod blockers;

use crate::error::{Error, Result};
use crate::model::p_counters::SLOTS_P;
use crate::model::perf_metrics::{CYCLES, METRICS, SLOTS, metrics_of};
use crate::model::{self, Counting, Event, Events, Model};
use crate::sys::Kernel;
use crate::sys::cpu::Identity;
use crate::sys::format::TermFormat;
use crate::sys::numbers::{contains, whole};
pub(crate) use crate::sys::sysfs::DEVICES;
use crate::sys::sysfs::first_line;
use std::borrow::Cow;
use std::io;

/// The remedy of blockers that have no nearer one.
pub(crate) const ANOTHER_CPU: &str = "measure on an Intel P-core from Ice Lake on";

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
    pub leader: Event,
    /// Slots for each that the leader counts.
    pub slots_each: u64,
    /// The inputs of the row's tree, in their order.
    pub members: Vec<Event>,
    /// It is not believed that they count until they do.
    pub unproven: bool,
}

impl Plan {
    /// How many general counters it takes: all but fixed ones, which SLOTS and cycles have.
    pub fn general_counters(&self) -> u32 {
        self.members.len() as u32 + u32::from(self.leader == SLOTS_P)
    }
}

/// Finds the general counters of the CPU's P-cores, with what is to be counted in them down to a level (0: the deepest), or
/// says why there are none. `beside`: they are to leave the registers, which there have to be, to others. None of it needs PERF_METRICS, so virtual machines have it, too.
pub(crate) fn p_counters(
    kernel: &impl Kernel,
    cpu: &Identity,
    level: u32,
    beside: bool,
) -> Result<(Pmu, Plan)> {
    let none = |why: &'static str| {
        Error::errno(libc::ENODEV, format!("no general counters of slots on {cpu}"))
            .why(why)
            .remedy(ANOTHER_CPU)
    };
    let Some((row, model)) = model::by_counters(cpu) else {
        return Err(none("this version knows no such events of its core"));
    };
    let name = device(kernel).ok_or_else(|| none("the kernel has no driver for its PMU"))?;
    if text(kernel, name, "events/cpu-cycles")?.is_none() {
        return Err(hidden_events(name));
    }
    let slots = text(kernel, name, &format!("events/{}", SLOTS.name))?.and_then(|text| config(&text));
    let leader = if slots == Some(SLOTS.config) { SLOTS } else { SLOTS_P };
    if leader == SLOTS_P && name == "cpu" && model::of_e_cores(cpu).is_some() {
        return Err(none("its kernel does not tell P-cores from E-cores, on which the events are others"));
    }
    if leader == SLOTS_P && beside {
        return Err(none("its kernel shows no SLOTS, so others take these counters, too"));
    }
    let leader = if beside { SLOTS_P } else { leader };
    let (kind, cpus) = kind_and_cpus(kernel, name)?;
    let Counting::Counters(counters) = model.counting else { unreachable!("a row of counters") };
    let Events::Encoded(events) = counters.events else { unreachable!("sysfs has no names for them") };
    let deepest = counters.tree.depth();
    let level = if level == 0 { deepest } else { level.min(deepest) };
    let members = events[..counters.tree.inputs_of(level)].to_vec();
    // (a hypervisor may withhold events, which then count nothing)
    let plan = Plan { leader, slots_each: 1, members, unproven: cpu.hypervisor.is_some() };
    Ok((Pmu { name, kind, model, row, level: deepest, cpus }, plan))
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
            "the kernel shows no event '{}' in {DEVICES}/{pmu}/events, so it has no PERF_METRICS, or the kernel is too \
             old to know this CPU",
            SLOTS.name
        ))
        .remedy(format!("{ANOTHER_CPU}, or with a newer kernel")),
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
pub(crate) fn e_cores(kernel: &impl Kernel, cpu: &Identity) -> Result<(Pmu, Plan)> {
    let name = "cpu_atom";
    let none =
        |why: &'static str| Error::errno(libc::ENOTSUP, format!("no E-cores to measure on {cpu}")).why(why);
    let file = |path: &str| text(kernel, name, path);
    let Some((row, model)) = model::of_e_cores(cpu) else {
        return Err(none("it is no hybrid CPU that this version knows").remedy("leave TD_FLAG_E_CORES out"));
    };
    let kind = file("type")?.and_then(|text| text.trim().parse().ok());
    let kind = kind.ok_or_else(|| {
        none("the kernel shows no PMU 'cpu_atom': they may be off, or /sys hidden (as in a container)")
    })?;
    let Counting::Counters(counters) = model.counting else { unreachable!("a row of counters") };
    let Events::Named(names) = counters.events else { unreachable!("sysfs has their names") };
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        let encoding = file(&format!("events/{name}"))?.and_then(|text| config(&text)).ok_or_else(|| {
            none("the kernel shows no events/topdown-* of 'cpu_atom'").remedy("a newer one does")
        })?;
        members.push(Event::new(name, encoding));
    }
    let cpus = file("cpus")?.ok_or_else(|| none("cpu_atom/cpus is missing").remedy(MOUNT_SYS))?;
    let cpus = Some(cpus.trim().to_string());
    let slots_each = model.slots_per_cycle.into();
    let plan = Plan { leader: CYCLES, slots_each, members, unproven: false };
    Ok((Pmu { name, kind, model, row, level: 1, cpus }, plan))
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
            |kernel: &Scripted, model| p_counters(kernel, &cpu(model), 0, false).map(|(_, plan)| plan.leader);
        let kernel = Scripted::sapphire_rapids();
        assert_eq!(leader(&kernel, 0x8f).unwrap(), SLOTS);
        kernel.remove(&format!("{EVENTS}/slots"));
        assert_eq!(leader(&kernel, 0x8f).unwrap(), SLOTS_P, "a virtual machine, or an old kernel");
        assert!(leader(&kernel, 0xbd).is_err(), "one PMU for all cores of a hybrid CPU");
        assert!(leader(&kernel, 0xfe).is_err(), "unknown");
        kernel.rename("/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core");
        kernel.add("/sys/bus/event_source/devices/cpu_core/cpus", "0-2\n");
        assert_eq!(leader(&kernel, 0xbd).unwrap(), SLOTS_P);
        assert_eq!(p_counters(&kernel, &cpu(0xbd), 1, false).unwrap().1.members.len(), 3);
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
        assert!(refused(&tremont, &cpu(0x86)).contains("Tremont"));
        tremont.add(&format!("{EVENTS}/topdown-retiring"), "event=0xc2,umask=0x0\n");
        assert!(refused(&tremont, &cpu(0xfe)).contains("general counters"));

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
            let error = e_cores(&kernel, cpu).unwrap_err();
            assert_eq!(error.code(), -libc::ENOTSUP);
            error.to_string()
        };
        assert!(refused(&cpu(0x8f)).contains("no hybrid CPU"));
        assert!(refused(&cpu(0x97)).contains("cpu_atom"));
        let atom = "/sys/bus/event_source/devices/cpu_atom";
        kernel.add(&format!("{atom}/type"), "10\n");
        assert!(refused(&cpu(0x97)).contains("events/topdown-*"));
        for (event, text) in ["topdown-retiring", "topdown-fe-bound", "topdown-be-bound"].iter().zip([
            "event=0xc2,umask=0x0",
            "event=0x71,umask=0x0",
            "event=0x74,umask=0x0\0",
        ]) {
            kernel.add(&format!("{atom}/events/{event}"), text);
        }
        kernel.add(&format!("{atom}/cpus"), "4-7\n");
        let (found, plan) = e_cores(&kernel, &cpu(0x97)).unwrap();
        assert!(plan.members.iter().map(|event| event.config).eq([0xc2, 0x71, 0x74]));
        assert_eq!((plan.leader, plan.slots_each), (CYCLES, 5));
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
