//! What to count and how often, and what it means if that is refused.
#![forbid(unsafe_code)]

use crate::records::CallGraph;
use crate::spare_counters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use topdown::{Error, Info, Options, SampledEvents, SourceKind, TopDown, sampled_events};
use topdown_seam::thread;

/// Chooses what is counted.
const SOURCE: &str = "TOPDOWN_SOURCE";

/// Hybrid CPUs have these.
const E_CORES: &str = "/sys/bus/event_source/devices/cpu_atom";

/// What TOPDOWN_SOURCE says.
fn source() -> Result<SourceKind, Error> {
    match std::env::var(SOURCE).unwrap_or_default().as_str() {
        "" => Ok(SourceKind::Automatic),
        "registers" => Ok(SourceKind::Registers),
        "counters" => Ok(SourceKind::Counters),
        other => {
            let what = format!("{SOURCE} is '{other}', neither registers nor counters");
            Err(Error::new(-libc::EINVAL, what))
        }
    }
}

/// What counts on each of these CPUs, by threads of its own; of none, on the CPU of the calling thread. Others may hold counters of some of
/// them alone: the way that takes the fewest counters works on all. CPUs on which nothing counts are left out, unless there is no other.
fn found_on(cpus: &BTreeSet<u32>, options: &Options) -> Result<Info, Error> {
    let here = || TopDown::open(options)?.info();
    // (of a hybrid CPU, one tells of its own kind of core)
    if cpus.is_empty() || Path::new(E_CORES).exists() {
        return here();
    }
    let on = |cpu: &u32| thread::on_cpus(Some(&cpu.to_string()), here);
    let (found, refused): (Vec<_>, Vec<_>) = cpus.iter().filter_map(on).partition(Result::is_ok);
    let takes =
        |info: &Info| (info.counters > 0, info.level, !topdown::is_bounded(&info.core), info.counters);
    match found.into_iter().flatten().min_by_key(takes) {
        Some(found) => Ok(found),
        None => refused.into_iter().next().unwrap_or_else(here),
    }
}

/// The events to record, down to a level (0: the deepest), of the kernel, too, or not, once it was seen that they count on these CPUs (of
/// none: on that of the calling thread): general-purpose counters if they are free, else registers, or what TOPDOWN_SOURCE says. A clock and returns
/// of functions are among them where counters are left.
///
/// # Errors
/// They do not, and why.
pub fn counted_events(level: u32, kernel: bool, cpus: &BTreeSet<u32>) -> Result<Vec<SampledEvents>, Error> {
    let info =
        |source| found_on(cpus, &Options { source, level, kernel, no_rdpmc: true, ..Options::default() });
    let (source, why) = match source()? {
        SourceKind::Automatic => match info(SourceKind::Automatic)? {
            found if found.counters > 0 => (SourceKind::Counters, String::new()),
            found => (SourceKind::Registers, found.note.to_string()),
        },
        told => (told, format!("{SOURCE} says what is counted")),
    };
    let found = info(source)?;
    let mut events = sampled_events(found.level, source, &found.core)?;
    if source == SourceKind::Registers {
        events[0].note = format!(
            "{why}. SLOTS and PERF_METRICS are rounded to 1/255 of each window, which is within the bounds"
        );
    }
    if kernel {
        // (an interrupt is no call, and what the kernel does has returns of its own)
        events.iter_mut().for_each(|events| events.returns = None);
    }
    Ok(events.into_iter().map(spare_counters::proved).collect())
}

/// How to record.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Bursts per second and thread.
    pub frequency: u32,
    /// Cycles between two samples of a burst, on average; of half of the bursts four times as many.
    pub gap: u64,
    /// The part of a thread's time that bursts may take (0 to 1): more are not begun.
    pub budget: f64,
    /// What the kernel does, too.
    pub kernel: bool,
    /// How callers are told.
    pub callers: CallGraph,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { frequency: 500, gap: 1000, budget: 0.01, kernel: false, callers: CallGraph::FramePointers }
    }
}

/// What an error of opening counters on a thread means.
pub(crate) fn refusal(error: &io::Error) -> Error {
    let why = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "no descriptor is left (ulimit -n)",
        Some(libc::EPERM) => {
            "no more memory may be locked (sysctl kernel.perf_event_mlock_kb, ulimit -l; --call-graph dwarf takes more), or a container forbids perf_event_open"
        }
        Some(libc::EACCES) => "kernel.perf_event_paranoid, or the process is another user's",
        Some(libc::EOPNOTSUPP) => {
            "the CPU shows no branch records that follow calls, which --call-graph lbr needs: Intel's cores from Haswell on have them, virtual machines as a rule not. --call-graph fp and dwarf do without"
        }
        Some(libc::EBUSY) => {
            "others have the CPU's branch records, or they are off while Intel PT traces: end that, or do without (--call-graph fp or dwarf)"
        }
        Some(libc::EINVAL) => "the counters have no room for the group",
        _ => "",
    };
    Error::new(-error.raw_os_error().unwrap_or(libc::EIO), error.to_string()).why(why)
}
