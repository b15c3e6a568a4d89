//! What can be measured here, and what keeps the rest from being measured: a table of probes, each of which tries what it
//! reports. None compares kernel versions.
#![forbid(unsafe_code)]

mod counting;
mod general;
mod hardware;
mod permission;

use crate::decode::decode_l1;
use crate::detect::{self, Pmu};
use crate::error::{Error, Reason, Result};
use crate::handle::{Info, TopDown};
use crate::options::Options;
use crate::sys::cpu::{self, Identity};
use crate::sys::{Kernel, Linux, rseq};
use general::General;
use std::time::Duration;

/// What a finding means for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It does not keep anybody from measuring, but is worth knowing.
    Note,
    /// It keeps the default measurement from working.
    Blocker,
    /// It could not be found out, or an earlier blocker leaves nothing to find out.
    Unknown,
}

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the probe; names stay as they are.
    pub name: &'static str,
    /// What was found, for people.
    pub found: String,
    /// What it means.
    pub verdict: Verdict,
    /// What to do about it; empty where nothing is to be done.
    pub remedy: String,
}

/// What can be measured here.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What was found, in the order in which a measurement meets it.
    pub findings: Vec<Finding>,
    /// What an open with the default options gave.
    pub open: Result<Info>,
}

/// Looks at this machine, this process and this thread. Opens a handle, and counts with it, and with groups of
/// general-purpose counters, for up to 20 ms and 6 ms for each general-purpose counter of the calling thread's time.
pub fn probe() -> Survey {
    let linux = Linux::default();
    let open = |_: &Linux| open_and_count();
    Surroundings::new(&linux, cpu::identify(), rseq::descriptor().is_some(), open, general::count).survey()
}

/// CPU time for which the counters are watched: several rotations of the kernel, if they are multiplexed.
const WATCHED: Duration = Duration::from_millis(20);

/// The default open, and the part of the time that its counters counted.
fn open_and_count() -> Result<OpenHandle> {
    let td = TopDown::open(&Options::default())?;
    let before = td.read()?;
    let end = Linux::default().cpu_time() + WATCHED;
    while Linux::default().cpu_time() < end {}
    let after = td.read()?;
    Ok(OpenHandle { info: td.info()?, running: decode_l1(Some(&before), &after).map(|l1| l1.running) })
}

/// A handle that was opened and watched.
struct OpenHandle {
    info: Info,
    running: Result<f64>,
}

/// What the probes look at.
struct Surroundings<'k, K: Kernel> {
    kernel: &'k K,
    cpu: Identity,
    pmu: Result<Pmu>,
    /// This thread is registered for restartable sequences.
    rseq: bool,
    open: Result<OpenHandle>,
    general: Result<General>,
}

/// One row of the table.
struct Probe<K: Kernel> {
    name: &'static str,
    /// Earlier probes that must not have found a blocker, or there is nothing to look at.
    needs: &'static [&'static str],
    probe: fn(&Surroundings<K>) -> Outcome,
}

/// What a probe has to say.
struct Outcome {
    found: String,
    verdict: Verdict,
    remedy: String,
}

impl<'k, K: Kernel> Surroundings<'k, K> {
    /// The table, in the order in which a measurement meets these things.
    const PROBES: [Probe<K>; 15] = [
        Probe { name: "cpu", needs: &[], probe: hardware::cpu },
        Probe { name: "hypervisor", needs: &[], probe: hardware::hypervisor },
        Probe { name: "container", needs: &[], probe: permission::container },
        Probe { name: "pmu", needs: &[], probe: hardware::pmu },
        Probe { name: "topdown_events", needs: &["cpu", "pmu"], probe: hardware::topdown_events },
        Probe { name: "hybrid", needs: &["pmu"], probe: hardware::hybrid },
        Probe { name: "perf_event_open", needs: &[], probe: permission::perf_event_open },
        Probe {
            name: "perf_event_paranoid",
            needs: &["perf_event_open"],
            probe: permission::perf_event_paranoid,
        },
        Probe { name: "locked_memory", needs: &["perf_event_paranoid"], probe: permission::locked_memory },
        Probe { name: "rseq", needs: &[], probe: counting::rseq },
        Probe { name: "rdpmc", needs: &["topdown_events", "locked_memory"], probe: counting::rdpmc },
        Probe { name: "nmi_watchdog", needs: &[], probe: counting::nmi_watchdog },
        Probe {
            name: "other_users",
            needs: &["topdown_events", "locked_memory"],
            probe: counting::other_users,
        },
        Probe { name: "general_counters", needs: &["perf_event_paranoid"], probe: general::general_counters },
        Probe { name: "td_open", needs: &[], probe: counting::td_open },
    ];

    fn new(
        kernel: &'k K,
        cpu: Identity,
        rseq: bool,
        open: impl FnOnce(&K) -> Result<OpenHandle>,
        count: impl FnOnce(&K) -> Result<General>,
    ) -> Self {
        let pmu = detect::find(kernel, &cpu);
        Surroundings { kernel, pmu, cpu, rseq, open: open(kernel), general: count(kernel) }
    }

    fn survey(self) -> Survey {
        let mut findings: Vec<Finding> = Vec::with_capacity(Self::PROBES.len());
        for Probe { name, needs, probe } in Self::PROBES {
            let stops = |f: &&Finding| {
                needs.contains(&f.name) && matches!(f.verdict, Verdict::Blocker | Verdict::Unknown)
            };
            let Outcome { found, verdict, remedy } = match findings.iter().find(stops) {
                Some(blocker) => Outcome::unknown(format!("not looked at: {} comes first", blocker.name)),
                None => probe(&self),
            };
            findings.push(Finding { name, found, verdict, remedy });
        }
        Survey { findings, open: self.open.map(|opened| opened.info) }
    }

    /// The text of a file without what surrounds it.
    fn text(&self, path: &str) -> Option<String> {
        self.kernel.text(path).ok().map(|text| text.trim().to_string())
    }

    /// A field of /proc/thread-self/status.
    fn status(&self, field: &str) -> Option<String> {
        let status = self.text("/proc/thread-self/status")?;
        status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(|v| v.trim().into())
    }
}

impl Outcome {
    fn new(verdict: Verdict, found: impl Into<String>, remedy: impl Into<String>) -> Outcome {
        Outcome { found: found.into(), verdict, remedy: remedy.into() }
    }

    fn good(found: impl Into<String>) -> Outcome {
        Outcome::new(Verdict::Good, found, "")
    }

    fn note(found: impl Into<String>, remedy: impl Into<String>) -> Outcome {
        Outcome::new(Verdict::Note, found, remedy)
    }

    fn unknown(found: impl Into<String>) -> Outcome {
        Outcome::new(Verdict::Unknown, found, "")
    }

    /// What the library gives as a reason.
    fn because(verdict: Verdict, reason: &Reason) -> Outcome {
        Outcome::new(verdict, reason.cause(), reason.remedy.clone())
    }

    fn blocker(error: &Error) -> Outcome {
        Outcome::because(Verdict::Blocker, error.reason())
    }
}

#[cfg(test)]
mod tests;
