//! What the planning of groups has to know of a machine.
#![forbid(unsafe_code)]

use super::super::{Counting, MOST_INPUTS, Model};
use crate::sys::cpu::ARM64;
use crate::sys::sysfs::{DEVICES, config_of_arm64, device};
use crate::sys::{Attr, Kernel, Linux, Mapping, attr, cpu, open_event};
use std::os::fd::{AsRawFd, OwnedFd};

/// General-purpose counters of a core of which CPUID does not tell.
const COUNTERS: usize = 8;
/// Events of arm64 of which the CPU says whether it has them (PMCEID), and the kernel then shows them.
pub(super) const TOLD_OF_ARM64: u64 = 0x40;
/// Of arm64: cycles, which have a counter of their own, and any other event.
const CYCLES_OF_ARM64: u64 = 0x11;
const OTHER_OF_ARM64: u64 = 0x10;

/// A machine, as far as the groups of a deeper tree follow from it.
#[derive(Clone, Debug)]
pub(crate) struct DeepFacts {
    /// General-purpose counters of a thread.
    pub counters: usize,
    /// Each core runs two threads.
    pub smt: bool,
    /// Cycles per nanosecond of the time-stamp counter.
    pub tsc_ghz: Option<f64>,
    /// The NMI watchdog has the counter of cycles.
    pub watchdog: bool,
    /// The kernel shows the event SLOTS, which has a counter of its own.
    pub shows_slots: bool,
    /// Of arm64 a bit for each event below `TOLD_OF_ARM64` that the kernel shows; else all of them.
    pub shown: u64,
}

impl DeepFacts {
    /// Those of the machine that runs this, by whose general-purpose counters this is its core.
    pub fn of_this_machine(own: &Model) -> DeepFacts {
        let linux = Linux { descriptors_from: 0 };
        let is = |file: &str| linux.text(file).is_ok_and(|text| text.trim() == "1");
        let pmus = ["cpu", "cpu_core"].iter();
        let mut slots = pmus.map(|pmu| format!("/sys/bus/event_source/devices/{pmu}/events/slots"));
        let is_arm64 = own.family == ARM64;
        let pmu = if cfg!(target_arch = "aarch64") { device(&linux).filter(|_| is_arm64) } else { None };
        // (that of arm64 takes no counter that a group would need, as in plan::meets_watchdog; where CPUID tells of no counters, there is no
        // fixed one for it)
        let watchdog = !is_arm64 && is("/proc/sys/kernel/nmi_watchdog");
        let of_text = match own.counting {
            Counting::Counters(counters) if counters.general > 0 => counters.general - usize::from(watchdog),
            _ => COUNTERS,
        };
        DeepFacts {
            counters: match pmu {
                Some(pmu) => tried_counters(&linux, pmu).unwrap_or(of_text),
                None => cpu::general_counters().unwrap_or(of_text),
            },
            smt: is("/sys/devices/system/cpu/smt/active"),
            tsc_ghz: tsc_of_kernel(&linux).or_else(cpu::tsc_ghz),
            watchdog,
            shows_slots: slots.any(|file| linux.exists(&file)),
            shown: pmu.map_or(u64::MAX, shown_by),
        }
    }

    /// Whether the CPU has said that it does not count this event.
    pub fn lacks(&self, config: u64) -> bool {
        config < TOLD_OF_ARM64 && self.shown >> config & 1 == 0
    }
}

/// How many general-purpose counters the kernel finds for a group, up to the most that a group here takes: no register that user space may
/// read tells it. None: it opens no group of this PMU.
fn tried_counters(linux: &Linux, pmu: &str) -> Option<usize> {
    let kind = linux.text(&format!("{DEVICES}/{pmu}/type")).ok()?.trim().parse().ok()?;
    let event = |config| {
        let mut attr = Attr { type_: kind, config, ..attr::dummy() };
        attr.set_exclude_kernel(1);
        attr.set_exclude_hv(1);
        attr
    };
    let mut leader = event(CYCLES_OF_ARM64);
    leader.set_disabled(1);
    let leader = open_event(&leader, 0, -1, -1).ok()?;
    let other = event(OTHER_OF_ARM64);
    // (each until the last is closed: the kernel looks whether all of them fit)
    let open = |_| open_event(&other, 0, -1, leader.as_raw_fd());
    let mut refused = None;
    let members: Vec<OwnedFd> = (0..MOST_INPUTS)
        .map_while(|place| open(place).map_err(|error| refused = error.raw_os_error()).ok())
        .collect();
    (!members.is_empty() && matches!(refused, None | Some(libc::EINVAL))).then_some(members.len())
}

/// A bit for each event of arm64 that this PMU shows; all, if it shows not even cycles.
fn shown_by(pmu: &str) -> u64 {
    let files = std::fs::read_dir(format!("{DEVICES}/{pmu}/events"));
    let config = |file: std::path::PathBuf| config_of_arm64(&std::fs::read_to_string(file).ok()?);
    let configs = files.into_iter().flatten().filter_map(|file| config(file.ok()?.path()));
    let shown = configs.filter(|config| *config < TOLD_OF_ARM64).fold(0, |all, config| all | 1 << config);
    if shown >> CYCLES_OF_ARM64 & 1 == 1 { shown } else { u64::MAX }
}

/// The rate of the time-stamp counter as the kernel turns it into time, on the control page of any event.
fn tsc_of_kernel(linux: &Linux) -> Option<f64> {
    let mut attr = attr::dummy();
    attr.set_disabled(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let event = linux.open(&attr, 0, -1).ok()?;
    let page = linux.map(&event, None).ok()?.snapshot()?;
    let scaled = f64::from(2u32).powi(page.time_shift.into());
    (page.clock && page.time_mult > 0).then(|| scaled / f64::from(page.time_mult))
}
