//! What this process may do.
#![forbid(unsafe_code)]

use super::{Outcome, Surroundings};
use crate::detect::blockers::{PARANOID, RefusedCall, explain};
use crate::options::{Options, Target};
use crate::sys::{Kernel, attr};
use std::io;

/// A software event, which every kernel with perf events has: what becomes of it is a matter of permission alone.
const DUMMY: RefusedCall = RefusedCall::Open("dummy");

/// Files that runtimes leave in their containers.
const CONTAINERS: &[(&str, &str)] = &[
    ("/.dockerenv", "Docker"),
    ("/run/.containerenv", "Podman"),
    ("/run/host/container-manager", "systemd-nspawn"),
];

/// Capabilities that lift perf_event_paranoid, by their bits.
const CAPABILITIES: &[(u32, &str)] = &[(38, "CAP_PERFMON"), (21, "CAP_SYS_ADMIN")];

pub(super) fn container<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    match CONTAINERS.iter().find(|(file, _)| m.kernel.exists(file)) {
        Some((file, name)) => {
            Outcome::note(format!("{name} ({file} is there): it may hide what is missing below"), "")
        }
        None => Outcome::good("no sign of one"),
    }
}

/// Opens the dummy.
fn dummy<K: Kernel>(m: &Surroundings<K>, options: &Options) -> io::Result<K::Fd> {
    let (pid, cpu) = match options.target {
        Target::Cpu(cpu) => (-1, cpu as i32),
        _ => (0, -1),
    };
    let mut dummy = attr::dummy();
    dummy.set_disabled(1);
    dummy.set_exclude_kernel((!options.kernel).into());
    dummy.set_exclude_hv(1);
    m.kernel.open(&dummy, pid, cpu)
}

fn refused<K: Kernel>(m: &Surroundings<K>, attempt: RefusedCall, refusal: &io::Error) -> Outcome {
    Outcome::blocker(&explain(m.kernel, &Options::default(), attempt, refusal))
}

pub(super) fn perf_event_open<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    match dummy(m, &Options::default()) {
        Err(refusal) if refusal.raw_os_error() != Some(libc::EACCES) => refused(m, DUMMY, &refusal),
        // EACCES is a matter of the level
        _ => Outcome::good(match m.status("Seccomp").as_deref() {
            Some("0") => "exists; no seccomp filter",
            _ => "exists; no seccomp filter keeps it from this process",
        }),
    }
}

pub(super) fn perf_event_paranoid<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    let asked = [
        ("user mode", Options::default()),
        ("kernel mode", Options { kernel: true, ..Options::default() }),
        ("whole CPUs", Options { target: Target::Cpu(m.kernel.cpu()), ..Options::default() }),
    ];
    let answers = asked.map(|(what, options)| (what, dummy(m, &options).map(drop)));
    if let Err(refusal) = &answers[0].1 {
        return refused(m, DUMMY, refusal);
    }
    let names = |granted: bool| {
        let names = answers.iter().filter(|(_, answer)| answer.is_ok() == granted).map(|(what, _)| *what);
        names.collect::<Vec<_>>().join(", ")
    };
    let level = m.text(PARANOID).unwrap_or("unreadable (is /proc/sys hidden?)".into());
    let found = format!("{level} {} permits {}", capabilities(m), names(true));
    if answers.iter().all(|(_, answer)| answer.is_ok()) {
        return Outcome::good(found);
    }
    Outcome::note(
        format!("{found}, not {}", names(false)),
        "only for those: kernel.perf_event_paranoid=1 for kernel mode, 0 for CPUs, or CAP_PERFMON",
    )
}

/// Which of those that matter this process has.
fn capabilities<K: Kernel>(m: &Surroundings<K>) -> String {
    let Some(effective) = m.status("CapEff").and_then(|set| u64::from_str_radix(&set, 16).ok()) else {
        return "with unknown capabilities".into();
    };
    let had = CAPABILITIES.iter().filter(|(bit, _)| effective >> bit & 1 == 1).map(|(_, name)| *name);
    let had = had.collect::<Vec<_>>().join(" and ");
    if had.is_empty() { "without CAP_PERFMON".into() } else { format!("with {had}") }
}

pub(super) fn locked_memory<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    let event = match dummy(m, &Options::default()) {
        Ok(event) => event,
        Err(refusal) => return refused(m, DUMMY, &refusal),
    };
    if let Err(refusal) = m.kernel.map(&event, None) {
        return refused(m, RefusedCall::Map, &refusal);
    }
    let per_cpu = m.text("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or("unknown".into());
    let limits = m.text("/proc/self/limits").unwrap_or_default();
    let own =
        limits.lines().find_map(|line| line.strip_prefix("Max locked memory")?.split_whitespace().next());
    let own = match own.map(|own| (own, own.parse::<u64>())) {
        Some((_, Ok(bytes))) => format!("{} KiB", bytes / 1024),
        Some((word, Err(_))) => word.into(),
        None => "unknown".into(),
    };
    Outcome::good(format!("{per_cpu} KiB per CPU and user, then `ulimit -l`: {own}; mapping works"))
}
