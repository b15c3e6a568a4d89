//! Retire latencies of events, sampled beside the groups that take turns (docs/metrics.md, Retire latency).
#![forbid(unsafe_code)]

use super::cpus::{cpus_of, online};
use super::group::GroupTarget;
use perf_event_open_sys::bindings::PERF_TYPE_RAW;
use std::collections::BTreeSet;
use std::io;
use topdown::{Error, TimedEvent};
use topdown_record::{FEWEST_LATENCIES, TimedSamplers, TimedSamples, TimedStart, TimedTarget};
use topdown_seam::sysfs::Sysfs;

/// The PMUs whose cores have them.
const PMUS: [&str; 2] = ["cpu_core", "cpu"];

/// What is sampled beside a turn.
#[derive(Debug)]
pub enum TimedTurn {
    /// Events.
    Sampled(TimedSamplers),
    /// So many events cannot be.
    Refused(usize),
    /// None is: of these events this is published.
    Published(Vec<TimedSamples>),
}

impl Default for TimedTurn {
    fn default() -> TimedTurn {
        TimedTurn::Refused(0)
    }
}

impl TimedTurn {
    /// Of published latencies.
    pub fn published(events: &[TimedEvent]) -> TimedTurn {
        let samples = |latency| TimedSamples {
            samples: FEWEST_LATENCIES,
            events: 1.0,
            counted: 1.0,
            latencies: latency,
            ..TimedSamples::default()
        };
        let told = events.iter().map(|event| event.latency.map_or(TimedSamples::default(), samples));
        TimedTurn::Published(told.collect())
    }

    /// Whether they sample from now on.
    pub fn switch(&self, on: bool) {
        if let TimedTurn::Sampled(samplers) = self {
            samplers.switch(on);
        }
    }

    /// What the samples since the last time told of each.
    pub fn take(&mut self) -> Vec<TimedSamples> {
        match self {
            TimedTurn::Sampled(samplers) => samplers.take(),
            TimedTurn::Refused(events) => vec![TimedSamples::default(); *events],
            TimedTurn::Published(told) => told.clone(),
        }
    }
}

/// Threads and CPUs on which events are to be opened: each CPU of the PMU has a ring for those of a command, or of threads.
pub fn places<'g>(command: &[i32], groups: impl Iterator<Item = &'g GroupTarget>) -> Vec<(i32, i32)> {
    let all = online();
    let cpus = PMUS.iter().find_map(|pmu| cpus_of(pmu)).map_or(all.clone(), |own| &own & &all);
    let on_each = |id: i32| cpus.iter().map(move |cpu| (id, *cpu as i32));
    let places = groups.flat_map(|group| match group {
        GroupTarget::Cpu(cpu) => vec![(-1, *cpu as i32)],
        GroupTarget::Thread(id) => on_each(*id).collect(),
        GroupTarget::Command | GroupTarget::CommandOn(_) => Vec::new(),
    });
    places.chain(command.iter().flat_map(|pid| on_each(*pid))).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Opens them.
///
/// # Errors
/// They cannot be sampled here.
pub fn open(
    events: &[TimedEvent],
    places: Vec<(i32, i32)>,
    kernel: bool,
    start: TimedStart,
) -> Result<TimedSamplers, Error> {
    // (the PMU of the cores, or of the P-cores, has this number, too, where /sys does not show it)
    let pmu = Sysfs::real().core().and_then(|pmu| pmu.kind()).unwrap_or(PERF_TYPE_RAW);
    let inherit = places.iter().any(|(id, _)| *id >= 0);
    let target = TimedTarget { places, inherit, kernel, pmu };
    TimedSamplers::open(events, &target, start).map_err(refused)
}

fn refused(error: io::Error) -> Error {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    let what = Error::new(-errno, format!("retire latencies cannot be sampled: perf_event_open(2): {error}"));
    match errno {
        libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT => what
            .why("this PMU takes no precise samples (PEBS), as in most virtual machines")
            .remedy("leave out --record-tpebs, and EVENT:R in --metrics"),
        libc::EPERM | libc::ENOMEM => what
            .why("no more memory may be locked for samples")
            .remedy("raise kernel.perf_event_mlock_kb, or name fewer events (--metrics EVENT:R)"),
        libc::EMFILE => what.why("each event takes a descriptor for each CPU").remedy("raise ulimit -n"),
        _ => what,
    }
}
