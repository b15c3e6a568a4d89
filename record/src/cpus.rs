//! The CPUs that are recorded, of which some come and go.
#![forbid(unsafe_code)]

use crate::event::{now, own_tid, run_on};
use crate::sampler::SampledTarget;
use crate::whom::online;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use topdown::{Error, Options, SourceKind, Target, TopDown};
use topdown_seam::thread::may_run_on;

/// How often it is looked at which are online, in nanoseconds.
const LOOK_NS: u64 = 500_000_000;

/// Of CPUs that were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTotals {
    /// How many there were.
    pub cpus: usize,
    /// Those that went offline, or came online.
    pub changed: Vec<u32>,
    /// Which did so when.
    #[serde(default)]
    pub changes: Vec<CpuChange>,
    /// Windows in which another thread ran, too.
    pub switched: u64,
    /// Processes of which it could not be seen what they have mapped.
    pub hidden: usize,
    /// A timer told the time, of one at least.
    #[serde(default)]
    pub by_timer: bool,
}

/// A CPU went offline, or came online.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuChange {
    /// Its number.
    pub cpu: u32,
    /// It came.
    pub online: bool,
    /// It was seen so many nanoseconds after the start, and half a second before it was not.
    pub seen_ns: u64,
}

/// CPUs, and what is known of them.
#[derive(Debug)]
pub(crate) struct RecordedCpus {
    /// None: all.
    chosen: Option<BTreeSet<u32>>,
    /// The thread that records, and where it may run.
    pub recorder: i32,
    allowed: Vec<u32>,
    /// Where it does not run now.
    avoided: Option<u32>,
    looked: u64,
    /// Those that went away or came since the start.
    pub changed: BTreeSet<u32>,
    changes: Vec<CpuChange>,
    began: u64,
    /// How many were recorded.
    pub all: BTreeSet<u32>,
    /// Threads that were seen.
    pub threads: BTreeSet<i32>,
    /// Windows in which another thread ran, too.
    pub switched: u64,
    /// Processes of which it cannot be seen what they have mapped.
    pub hidden: usize,
    /// The clock of one was a timer.
    pub by_timer: bool,
}

impl RecordedCpus {
    /// These, or all.
    pub fn new(chosen: Option<BTreeSet<u32>>) -> RecordedCpus {
        RecordedCpus {
            chosen,
            recorder: own_tid(),
            allowed: may_run_on(0),
            avoided: None,
            looked: now(),
            changed: BTreeSet::new(),
            changes: Vec::new(),
            began: now(),
            all: BTreeSet::new(),
            threads: BTreeSet::new(),
            switched: 0,
            hidden: 0,
            by_timer: false,
        }
    }

    /// Those that are online now.
    pub fn online(&self) -> BTreeSet<u32> {
        let wanted = |cpu: &u32| self.chosen.as_ref().is_none_or(|chosen| chosen.contains(cpu));
        online().into_iter().filter(wanted).collect()
    }

    /// The first that is chosen and not online.
    pub fn missing(&self) -> Option<u32> {
        let online = self.online();
        self.chosen.iter().flatten().find(|cpu| !online.contains(cpu)).copied()
    }

    /// The same, now and then, and when it was looked at before.
    pub fn look(&mut self) -> Option<(u64, BTreeSet<u32>)> {
        let now = now();
        (now >= self.looked + LOOK_NS).then(|| (std::mem::replace(&mut self.looked, now), self.online()))
    }

    /// One went or came.
    pub fn has_changed(&mut self, cpu: u32, online: bool) {
        self.changed.insert(cpu);
        self.changes.push(CpuChange { cpu, online, seen_ns: now() - self.began });
    }

    /// What is told of them.
    pub fn totals(&self) -> CpuTotals {
        CpuTotals {
            cpus: self.all.len(),
            changed: self.changed.iter().copied().collect(),
            changes: self.changes.clone(),
            switched: self.switched,
            hidden: self.hidden,
            by_timer: self.by_timer,
        }
    }

    /// What a group on this one counts.
    pub fn counted(&self, cpu: u32) -> SampledTarget {
        let beside = self.allowed.iter().any(|other| *other != cpu);
        SampledTarget::Cpu { cpu, recorder: self.recorder, beside }
    }

    /// Makes room on a CPU before a burst there: what is sampled is what ran there, not the thread that asks for it.
    pub fn make_room(&mut self, cpu: u32) {
        if self.avoided != Some(cpu) && self.allowed.iter().any(|other| *other != cpu) {
            run_on(self.allowed.iter().copied().filter(|other| *other != cpu));
            self.avoided = Some(cpu);
        }
    }

    /// Why nothing can be counted on a CPU, if that is so, as it is said of other measurements of CPUs.
    pub fn refusal(cpu: u32, kernel: bool) -> Option<Error> {
        let target = Target::Cpu(cpu);
        let p_cores =
            Options { target, kernel, no_rdpmc: true, source: SourceKind::Counters, ..Options::default() };
        TopDown::open(&p_cores).err().filter(|error| [-libc::EACCES, -libc::EPERM].contains(&error.code()))
    }
}

/// The kinds of cores whose events a CPU has.
pub(crate) fn of_this_cpu<E, T>(
    events: &[E],
    open: impl Fn(&E, usize) -> std::io::Result<T>,
) -> std::io::Result<Vec<T>> {
    let (mut opened, mut other) = (Vec::new(), None);
    for (kind, events) in events.iter().enumerate() {
        match open(events, kind) {
            Ok(one) => opened.push(one),
            // (a PMU of other CPUs)
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => other = Some(error),
            Err(error) => return Err(error),
        }
    }
    match other {
        Some(error) if opened.is_empty() => Err(error),
        _ => Ok(opened),
    }
}
