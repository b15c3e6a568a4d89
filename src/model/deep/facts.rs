//! What the planning of groups has to know of a machine.
#![forbid(unsafe_code)]

use crate::sys::{Kernel, Linux, Mapping, attr, cpu};

/// General-purpose counters of a core of which CPUID does not tell.
const COUNTERS: usize = 8;

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
}

impl DeepFacts {
    /// Those of the machine that runs this.
    pub fn of_this_machine() -> DeepFacts {
        let linux = Linux { descriptors_from: 0 };
        let is = |file: &str| linux.text(file).is_ok_and(|text| text.trim() == "1");
        let pmus = ["cpu", "cpu_core"].iter();
        let mut slots = pmus.map(|pmu| format!("/sys/bus/event_source/devices/{pmu}/events/slots"));
        DeepFacts {
            counters: cpu::general_counters().unwrap_or(COUNTERS),
            smt: is("/sys/devices/system/cpu/smt/active"),
            tsc_ghz: tsc_of_kernel(&linux).or_else(cpu::tsc_ghz),
            watchdog: is("/proc/sys/kernel/nmi_watchdog"),
            shows_slots: slots.any(|file| linux.exists(&file)),
        }
    }
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
