//! CPU, hypervisor, PMU.
#![forbid(unsafe_code)]

use super::{Outcome, Surroundings, Verdict};
use crate::detect::{ANOTHER_CPU, DEVICES, SEND, device};
use crate::model::{self, Counting, Model};
use crate::sys::Kernel;
use crate::sys::numbers::{contains, ranges};

pub(super) fn cpu<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    match model::of_cpu(&m.cpu) {
        Some((_, Model { core, counting: Counting::None(why), .. })) => {
            Outcome::new(Verdict::Blocker, format!("{}: {core}: {why}", m.cpu), ANOTHER_CPU)
        }
        Some((_, Model { core, slots_per_cycle: width, .. })) => {
            let width = if *width == 0 { "an unknown number of".into() } else { width.to_string() };
            Outcome::good(format!("{}: {core}, {width} slots per cycle", m.cpu))
        }
        None => Outcome::note(
            format!("{}: not in the library's table, so its kernel's events decide", m.cpu),
            SEND,
        ),
    }
}

pub(super) fn hypervisor<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    match &m.cpu.hypervisor {
        None => Outcome::good("none"),
        Some(name) => {
            Outcome::note(format!("{name}: this virtual machine has the PMU that it was given, if any"), "")
        }
    }
}

pub(super) fn pmu<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    match (device(m.kernel), &m.pmu) {
        (None, Err(why)) => Outcome::blocker(why),
        (name, _) => Outcome::good(format!("{DEVICES}/{}", name.unwrap_or_default())),
    }
}

pub(super) fn topdown_events<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    let by_counters = model::of_cpu(&m.cpu).filter(|(_, row)| matches!(row.counting, Counting::Counters(_)));
    match (&m.pmu, &m.open) {
        _ if by_counters.is_some() => {
            let levels = by_counters.map_or(0, |(_, row)| row.levels());
            Outcome::good(format!("general counters of slots, down to level {levels}"))
        }
        (Ok(pmu), _) => Outcome::good(format!("SLOTS and PERF_METRICS, down to level {}", pmu.level)),
        (Err(why), Ok(_)) => {
            Outcome::note(format!("{}, but general counters count the slots", why.reason().cause()), "")
        }
        (Err(why), Err(_)) => Outcome::blocker(why),
    }
}

pub(super) fn hybrid<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    let cpus = |pmu: &str| m.text(&format!("{DEVICES}/{pmu}/cpus"));
    let Some(p_cores) = cpus("cpu_core") else {
        return Outcome::good("no: all CPUs are alike");
    };
    let e_cores: Vec<String> = ["cpu_atom", "cpu_lowpower"].into_iter().filter_map(cpus).collect();
    let e_cores = if e_cores.is_empty() { "none".into() } else { e_cores.join(",") };
    let here = m.kernel.cpu();
    let kind = if contains(&p_cores, here) { "a P-core" } else { "an E-core" };
    let layout = format!("P-cores: CPUs {p_cores}, E-cores: {e_cores}; this ran on CPU {here}, {kind}");
    if m.open.as_ref().is_ok_and(|opened| opened.info.pmu.contains(',')) {
        return Outcome::good(format!("{layout}; both kinds are counted"));
    }
    if m.open.is_err() {
        return Outcome::unknown(format!(
            "{layout}; which of them count is not known, as td_open does not work"
        ));
    }
    let pin = format!("keep the thread on P-cores: taskset -c {p_cores}");
    match m.status("Cpus_allowed_list") {
        Some(allowed) if !numbers(&p_cores).any(|cpu| contains(&allowed, cpu)) => Outcome::new(
            Verdict::Blocker,
            format!(
                "{layout}; this process may run on CPUs {allowed} alone, where the default counts nothing"
            ),
            format!("{pin}, or measure with TD_CORES_E"),
        ),
        Some(allowed) if numbers(&allowed).all(|cpu| contains(&p_cores, cpu)) => {
            Outcome::good(format!("{layout}; this process stays on P-cores"))
        }
        _ => Outcome::note(
            format!("{layout}; nothing is counted while a thread is on an E-core: `running` falls below 1"),
            format!("{pin}, or add a handle with TD_CORES_E"),
        ),
    }
}

/// The numbers of a list such as `0-3,8`.
fn numbers(list: &str) -> impl Iterator<Item = u32> {
    ranges(list).flatten().flatten().map_while(|number| number.try_into().ok())
}
