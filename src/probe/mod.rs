//! What can be measured here, and what stands in the way: a table of probes, each of which tries what it tells of.
//! None compares kernel versions.
#![forbid(unsafe_code)]

mod counting;
mod hardware;
mod permission;

use crate::decode::decode_l1;
use crate::detect::{self, Pmu};
use crate::error::{Error, Result};
use crate::handle::{Info, TopDown};
use crate::options::Options;
use crate::sys::cpu::{self, Identity};
use crate::sys::{Kernel, Linux, rseq};
use std::time::Duration;

/// What a finding means for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It does not keep anybody from measuring, but is worth knowing.
    Note,
    /// It stands in the way.
    Wall,
    /// It could not be found out, or there was nothing to find out behind an earlier wall.
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
pub struct Report {
    /// What was found, in the order in which a measurement meets it.
    pub findings: Vec<Finding>,
    /// What an open with the default options gave.
    pub open: Result<Info>,
}

/// Looks at this machine, this process and this thread. Opens a handle, and counts with it for some 20 ms of the calling
/// thread's time.
pub fn probe() -> Report {
    Machine::new(&Linux::default(), cpu::identify(), rseq::descriptor().is_some(), |_| open_and_count())
        .report()
}

/// CPU time for which the counters are watched: some turns of those who share them.
const WATCHED: Duration = Duration::from_millis(20);

/// The default open, and the part of the time that its counters counted.
fn open_and_count() -> Result<Opened> {
    let td = TopDown::open(&Options::default())?;
    let before = td.read()?;
    let end = Linux::default().cpu_time() + WATCHED;
    while Linux::default().cpu_time() < end {}
    let after = td.read()?;
    Ok(Opened { info: td.info()?, running: decode_l1(Some(&before), &after).map(|l1| l1.running) })
}

/// A handle that was opened and watched.
struct Opened {
    info: Info,
    running: Result<f64>,
}

/// What the probes look at.
struct Machine<'k, K: Kernel> {
    kernel: &'k K,
    cpu: Identity,
    pmu: Result<Pmu>,
    /// This thread is registered for restartable sequences.
    rseq: bool,
    open: Result<Opened>,
}

/// One row of the table.
struct Probe<K: Kernel> {
    name: &'static str,
    /// Earlier probes that must not have met a wall, or there is nothing to look at.
    needs: &'static [&'static str],
    probe: fn(&Machine<K>) -> Found,
}

/// What a probe has to say.
struct Found {
    found: String,
    verdict: Verdict,
    remedy: String,
}

impl<'k, K: Kernel> Machine<'k, K> {
    /// The table, in the order in which a measurement meets these things.
    const PROBES: [Probe<K>; 14] = [
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
        Probe { name: "td_open", needs: &[], probe: counting::td_open },
    ];

    fn new(kernel: &'k K, cpu: Identity, rseq: bool, open: impl FnOnce(&K) -> Result<Opened>) -> Self {
        Machine { kernel, pmu: detect::find(kernel, &cpu), cpu, rseq, open: open(kernel) }
    }

    fn report(self) -> Report {
        let mut findings: Vec<Finding> = Vec::with_capacity(Self::PROBES.len());
        for Probe { name, needs, probe } in Self::PROBES {
            let stops = |f: &&Finding| {
                needs.contains(&f.name) && matches!(f.verdict, Verdict::Wall | Verdict::Unknown)
            };
            let Found { found, verdict, remedy } = match findings.iter().find(stops) {
                Some(wall) => Found::unknown(format!("not looked at: {} comes first", wall.name)),
                None => probe(&self),
            };
            findings.push(Finding { name, found, verdict, remedy });
        }
        Report { findings, open: self.open.map(|opened| opened.info) }
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

impl Found {
    fn new(verdict: Verdict, found: impl Into<String>, remedy: impl Into<String>) -> Found {
        Found { found: found.into(), verdict, remedy: remedy.into() }
    }

    fn good(found: impl Into<String>) -> Found {
        Found::new(Verdict::Good, found, "")
    }

    fn note(found: impl Into<String>, remedy: impl Into<String>) -> Found {
        Found::new(Verdict::Note, found, remedy)
    }

    fn unknown(found: impl Into<String>) -> Found {
        Found::new(Verdict::Unknown, found, "")
    }

    /// What an error or a note of the library says: behind the first semicolon stands what to do about it.
    fn said(verdict: Verdict, text: &str) -> Found {
        let (found, remedy) = text.split_once("; ").unwrap_or((text, ""));
        Found::new(verdict, found, remedy)
    }

    fn wall(error: &Error) -> Found {
        Found::said(Verdict::Wall, error.text())
    }
}

#[cfg(test)]
mod tests;
