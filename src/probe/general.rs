//! How many general-purpose counters there are, how many of them a group of this thread gets at once, and who has perf events open.
#![forbid(unsafe_code)]

use super::{Outcome, Surroundings};
use crate::detect::DEVICES;
use crate::error::{Error, Result};
use crate::sys::group_read;
use crate::sys::{Kernel, Refusal};
use perf_event_open_sys::bindings::{PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERF_TYPE_HARDWARE, perf_event_attr};
use std::fs;
use std::hint::spin_loop;
use std::time::Duration;

/// More than any core has.
const MOST: usize = 16;
/// CPU time in which a group is on the counters all the time if they are free: the kernel rotates groups every 4 ms.
const WATCHED: Duration = Duration::from_millis(6);
/// How often a group is tried if the thread comes to another CPU meanwhile.
const TRIES: usize = 3;
/// So many processes are named.
const NAMED: usize = 4;

/// The general-purpose counters of this CPU.
#[derive(Clone, Debug)]
pub(super) struct General {
    /// As many events fit into one group.
    pub there: usize,
    /// So many were on the counters at once, and all the time.
    pub free: usize,
    /// Other processes that have perf events open, as far as this user may see.
    pub others: Vec<String>,
}

/// Opens groups of events that any general-purpose counter can count, the largest first.
pub(super) fn count<K: Kernel>(kernel: &K) -> Result<General> {
    let there = match kernel.open_group(&group(kernel, MOST), 0, -1, None) {
        Ok(_) => MOST,
        Err(Refusal { event: Some(event @ 1..), error }) if error.raw_os_error() == Some(libc::EINVAL) => {
            event
        }
        Err(Refusal { error, .. }) => {
            return Err(Error::errno(
                error.raw_os_error().unwrap_or(libc::EIO),
                format!("branches: {error}"),
            ));
        }
    };
    let refused = |what: &str, error: &std::io::Error| {
        Error::errno(error.raw_os_error().unwrap_or(libc::EIO), format!("{what}: {error}"))
    };
    let (mut free, mut tries) = (there, 0);
    while free > 0 {
        let cpu = kernel.cpu();
        let events = kernel.open_group(&group(kernel, free), 0, -1, None);
        let events = events.map_err(|refusal| refused("perf_event_open", &refusal.error))?;
        kernel.enable(&events[0]).map_err(|error| refused("ioctl ENABLE", &error))?;
        let end = kernel.cpu_time() + WATCHED;
        while kernel.cpu_time() < end {
            spin_loop();
        }
        let mut words = [0; group_read::GROUP_HEAD + MOST];
        let got =
            kernel.read(&events[0], &mut words).map_err(|error| refused("read(2) of the group", &error))?;
        let time = group_read::group(&words[..got], free).map(|(time, _)| time);
        if time.is_some_and(|time| time.running > 0 && time.running == time.enabled) {
            break;
        }
        // on a hybrid CPU a group of the other kind of core does not count
        tries += 1;
        if kernel.cpu() == cpu || tries == TRIES {
            (free, tries) = (free - 1, 0);
        }
    }
    Ok(General { there, free, others: others() })
}

/// So many events that no fixed counter counts, of this CPU's kind of core.
fn group<K: Kernel>(kernel: &K, events: usize) -> Vec<perf_event_attr> {
    // on a hybrid CPU the upper half says which PMU; what is not hybrid takes a 0
    let kind = ["cpu_core", "cpu_atom"].into_iter().find_map(|name| {
        let cpus = kernel.text(&format!("{DEVICES}/{name}/cpus")).ok()?;
        let here = crate::sys::numbers::contains(cpus.trim(), kernel.cpu());
        let kind = kernel.text(&format!("{DEVICES}/{name}/type")).ok()?;
        kind.trim().parse::<u64>().ok().filter(|_| here)
    });
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_HARDWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: kind.unwrap_or(0) << 32 | u64::from(PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
        read_format: group_read::GROUP,
        ..perf_event_attr::default()
    };
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let member = attr;
    attr.set_disabled(1);
    (0..events).map(|event| if event == 0 { attr } else { member }).collect()
}

/// "perf (12)".
fn others() -> Vec<String> {
    let has_events = |id: u32| {
        let descriptors = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
            .any(|target| target.to_str() == Some("anon_inode:[perf_event]"))
    };
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let name = |id: u32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        format!("{} ({id})", name.trim_end())
    };
    ids.filter(|id| *id != std::process::id() && has_events(*id)).map(name).collect()
}

pub(super) fn general_counters<K: Kernel>(m: &Surroundings<K>) -> Outcome {
    let General { there, free, others } = match &m.general {
        Ok(general) => general,
        Err(error) => return Outcome::unknown(format!("cannot be counted: {}", error.reason())),
    };
    let here = format!("{there} on CPU {}", m.kernel.cpu());
    if free == there {
        return Outcome::good(format!("{here}, all of them free"));
    }
    let mut holders = others.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if others.len() > NAMED {
        holders += &format!(" and {} more", others.len() - NAMED);
    }
    let who = match holders.as_str() {
        "" => "no other process that this user may look into has perf events open".into(),
        holders => format!("perf events are open in {holders}"),
    };
    let watchdog = match m.text("/proc/sys/kernel/nmi_watchdog").as_deref() {
        None | Some("0") => "",
        Some(_) => "; the kernel's NMI watchdog may hold one",
    };
    Outcome::note(
        format!("{here}, {free} of them free; {who}{watchdog}"),
        "what needs more of them than that takes turns with those, or counts registers (td_info.note says which)",
    )
}
