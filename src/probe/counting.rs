//! How readings go, who else counts, and whether all of it works.
#![forbid(unsafe_code)]

use super::{Outcome, Surroundings, Verdict};
use crate::detect::remedies::Obstacle;
use crate::detect::{DEVICES, device};
use crate::error::TD_ENOTCOUNTING;
use crate::handle::{Info, Path};
use crate::model::{self, Counting};
use crate::plan;
use crate::sys::{Kernel, READ_INSTRUCTION};

/// Part of the time that a group counts if it is not multiplexed.
const ALONE: f64 = 0.99;

pub(super) fn rseq<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    if m.rseq {
        return Outcome::good("restartable sequences are registered");
    }
    let without = if cfg!(target_arch = "x86_64") {
        "a reading takes some hundred instructions more, and on a hybrid CPU a system call"
    } else {
        "a reading takes a system call"
    };
    Outcome::note(
        format!("restartable sequences are not registered: {without}"),
        "use glibc 2.35 or later, without glibc.pthread.rseq=0 in GLIBC_TUNABLES",
    )
}

pub(super) fn rdpmc<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    let file = if cfg!(target_arch = "aarch64") {
        "/proc/sys/kernel/perf_user_access".into()
    } else {
        format!("{DEVICES}/{}/rdpmc", device(m.kernel).unwrap_or_default())
    };
    // only root may read that of sysfs
    let setting = m.text(&file).map_or(String::new(), |value| format!("; {file} is {value}"));
    match &m.open {
        Ok(opened) if opened.info.path == Path::Rdpmc => Outcome::good(format!("granted{setting}")),
        Ok(opened) => Outcome::because(Verdict::Note, &opened.info.note),
        Err(_) => Outcome::unknown(format!("not tried, since td_open does not work{setting}")),
    }
}

pub(super) fn nmi_watchdog<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    match m.text("/proc/sys/kernel/nmi_watchdog").as_deref() {
        Some("0") => Outcome::good("off"),
        Some(_) => {
            let holds = "on: it holds one counter of each CPU, of cycles or a general one";
            let without = Obstacle::Watchdog.short();
            match model::of_cpu(&m.cpu).and_then(|(_, row)| plan::withheld_by_watchdog(row)) {
                Some(level) => Outcome::note(format!("{holds}, which level {level} needs"), without),
                None => Outcome::note(
                    format!("{holds}{}", registers_beside(m)),
                    format!("only if events that you count beside those take turns: {without}"),
                ),
            }
        }
        None => Outcome::unknown("/proc/sys/kernel/nmi_watchdog cannot be read"),
    }
}

/// What a CPU with PERF_METRICS keeps for itself, whoever holds other counters.
fn registers_beside<K: Kernel>(m: &Surroundings<K>) -> &'static str {
    let has_them = m.pmu.as_ref().is_ok_and(|pmu| matches!(pmu.model.counting, Counting::PerfMetrics { .. }));
    if has_them { ", but not SLOTS or PERF_METRICS" } else { "" }
}

pub(super) fn other_users<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    let on_e_core = m.pmu.as_ref().is_ok_and(|pmu| !pmu.covers(m.kernel.cpu()));
    match &m.open {
        Err(error) if error.code() == TD_ENOTCOUNTING => Outcome::blocker(error),
        Err(_) => Outcome::unknown("td_open does not work, so nobody could be seen"),
        Ok(opened) => match &opened.running {
            Ok(running) if *running >= ALONE => Outcome::good("none: the counters counted all the time"),
            _ if on_e_core => Outcome::unknown("this thread is on an E-core, where nothing counts"),
            running => Outcome::note(
                format!(
                    "the counters counted {:.0} % of the time: others have the rest (further handles, `perf stat \
                     --topdown`), or a hybrid CPU's E-cores",
                    100.0 * running.as_ref().unwrap_or(&0.0)
                ),
                "end those; until then `running` is below 1 and `error` larger",
            ),
        },
    }
}

pub(super) fn td_open<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    match &m.open {
        Err(error) => Outcome::blocker(error),
        Ok(opened) => {
            let (path, verdict) = match opened.info.path {
                Path::Rdpmc => (READ_INSTRUCTION, Verdict::Good),
                Path::Read => ("read(2)", Verdict::Note),
                Path::Simulated => ("a simulation", Verdict::Note),
            };
            let Info { level, counters, note, .. } = &opened.info;
            let of = if *counters > 0 { format!(" of {counters} general counters") } else { String::new() };
            let why = if *counters > 0 { note.cause() } else { String::new() };
            let why = if why.is_empty() { why } else { format!(" ({why})") };
            Outcome::new(verdict, format!("works by {path}{of}, level {level}{why}"), "")
        }
    }
}
