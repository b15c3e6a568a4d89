//! Bursts at random instants over all threads, and what came of them.
#![forbid(unsafe_code)]

use crate::budget::{BurstBudget, Pace};
use crate::event::{now, own_cpu_time, wait};
use crate::proof::{ProvedWindows, proved};
use crate::records::{Happened, RawSample};
use crate::sampler::{Fate, RawBurst, Sampler};
use crate::sideband::Sideband;
use crate::spaces::{Module, Spaces};
use crate::stacks::{CodePlace, Stacks};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use topdown::SampledEvents;

/// How to record.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bursts per second and thread.
    pub frequency: u32,
    /// Cycles between two samples of a burst, on average; of half of the bursts four times as many.
    pub gap: u64,
    /// The part of a thread's time that bursts may take (0 to 1): more are not begun.
    pub budget: f64,
    /// What the kernel does, too.
    pub kernel: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { frequency: 500, gap: 1000, budget: 0.01, kernel: false }
    }
}

/// Bursts with one gap, before the next is drawn: to change it takes a system call.
const BLOCK: u64 = 8;
/// The longer gaps are so many times the shorter.
const LONGER: u64 = 4;
/// No more bursts are asked for in a second, of all threads together.
const MOST_PER_SECOND: f64 = 5000.0;

/// What ends a recording.
#[derive(Clone, Debug)]
pub struct RecordUntil {
    /// All of these have come to their ends (descriptors of pidfd_open).
    pub ends: Vec<RawFd>,
    /// This can be read.
    pub interrupt: Option<RawFd>,
    /// So much time has passed.
    pub timeout: Option<Duration>,
}

/// What has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// The processes.
    Processes,
    /// The descriptor.
    Interrupted,
    /// The time.
    TimedOut,
}

/// Two neighbouring samples of a burst, or three, each in a stack.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    pub kind: usize,
    pub long: bool,
    pub weight_ns: u64,
    pub stacks: Vec<u32>,
    /// What was counted between each two; none where that is not proved.
    pub windows: Vec<Option<Vec<u64>>>,
}

/// All that was seen.
#[derive(Debug)]
pub struct Recording {
    pub(crate) events: Vec<SampledEvents>,
    pub(crate) settings: Settings,
    pub(crate) bursts: Vec<Burst>,
    pub(crate) stacks: Vec<Vec<CodePlace>>,
    pub(crate) modules: Vec<Module>,
    pub(crate) elapsed: Duration,
    pub(crate) threads: usize,
    /// Threads on which no counters could be opened, and why the first could not.
    pub(crate) refused: (usize, String),
    pub(crate) lost: u64,
    /// The kernel throttled samples, or let them go on.
    pub(crate) throttled: u64,
    /// Windows in which others took the counters, samples were throttled, or a record was lost.
    pub(crate) parted: u64,
    /// Bursts in which an event counted more than there were slots.
    pub(crate) impossible: u64,
    pub(crate) pace: Pace,
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    events: Vec<SampledEvents>,
    settings: Settings,
    sideband: Sideband,
    samplers: BTreeMap<i32, Vec<Sampler>>,
    /// Whose turn it is, in a random order.
    turns: Vec<i32>,
    /// CPU time of this thread at the last turn.
    spent_ns: u64,
    spaces: Spaces,
    stacks: Stacks,
    bursts: Vec<Burst>,
    fate: Fate,
    parted: u64,
    impossible: u64,
    budget: BurstBudget,
    threads: usize,
    refused: (usize, String),
    random: u64,
}

/// CPUs that are online.
fn online() -> Vec<u32> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

fn threads_of(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

impl Recorder {
    /// On processes with their threads, and on whatever those start. `there`: they run already, and what they have mapped is to be
    /// looked up; else they are about to execute a program.
    ///
    /// # Errors
    /// The kernel's, and what was refused.
    pub fn new(
        events: Vec<SampledEvents>,
        pids: &[i32],
        there: bool,
        settings: Settings,
    ) -> io::Result<Recorder> {
        let all: Vec<(i32, i32)> =
            pids.iter().flat_map(|pid| threads_of(*pid).into_iter().map(|tid| (*pid, tid))).collect();
        let tids: Vec<i32> = all.iter().map(|(_, tid)| *tid).collect();
        let what = |what: &str| {
            let what = what.to_string();
            move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {}", refusal(&error)))
        };
        let sideband = Sideband::open(&tids, &online())
            .map_err(what("perf_event_open or mmap of the events that tell of new threads and mappings"))?;
        let mut recorder = Recorder {
            events,
            settings,
            sideband,
            samplers: BTreeMap::new(),
            turns: Vec::new(),
            spent_ns: own_cpu_time(),
            spaces: Spaces::default(),
            stacks: Stacks::default(),
            bursts: Vec::new(),
            fate: Fate::default(),
            parted: 0,
            impossible: 0,
            budget: BurstBudget::new(settings.frequency, settings.budget),
            threads: 0,
            refused: (0, String::new()),
            random: now() | 1,
        };
        if there {
            pids.iter().for_each(|pid| recorder.spaces.look_at(*pid));
        }
        for (pid, tid) in all {
            recorder.follow(pid, tid);
        }
        if recorder.samplers.is_empty() {
            let why = if recorder.threads == 0 { "there is no thread" } else { &*recorder.refused.1 };
            return Err(io::Error::other(why.to_string()));
        }
        Ok(recorder)
    }

    /// A number from 0 to 1 (exclusive).
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Opens counters on a thread.
    fn follow(&mut self, pid: i32, tid: i32) {
        if self.samplers.contains_key(&tid) {
            return;
        }
        self.threads += 1;
        let opened = self.events.iter().enumerate();
        let opened: io::Result<Vec<_>> = opened
            .map(|(kind, events)| Sampler::open(events, kind, (pid, tid), self.settings.kernel))
            .collect();
        match opened {
            Ok(samplers) => {
                self.samplers.insert(tid, samplers);
                self.turns.clear();
            }
            Err(error) => self.refuse(&error),
        }
    }

    /// A thread is not sampled, or no longer.
    fn refuse(&mut self, error: &io::Error) {
        if error.raw_os_error() == Some(libc::ESRCH) {
            return; // it has ended already
        }
        if self.refused.0 == 0 {
            self.refused.1 = refusal(error);
        }
        self.refused.0 += 1;
    }

    /// Records until something ends it.
    pub fn run(&mut self, mut until: RecordUntil) -> RecordingEnd {
        let start = Instant::now();
        let deadline = until.timeout.map(|timeout| start + timeout);
        let waits_for_ends = !until.ends.is_empty();
        let mut next = Instant::now();
        loop {
            let mut wake = next;
            if let Some(deadline) = deadline {
                wake = wake.min(deadline);
            }
            let mut descriptors = until.ends.clone();
            descriptors.extend(until.interrupt);
            descriptors.extend(self.sideband.descriptors());
            let polled = wait(&descriptors, wake);
            let (ends, rest) = polled.split_at(until.ends.len());
            let (interrupt, sideband) = rest.split_at(until.interrupt.iter().len());
            if interrupt.iter().any(|one| one.readable) {
                return RecordingEnd::Interrupted;
            }
            let mut ended = ends.iter();
            until.ends.retain(|_| !ended.next().is_some_and(|one| one.readable || one.ended));
            let of_sideband = &descriptors[descriptors.len() - sideband.len()..];
            for (descriptor, _) in of_sideband.iter().zip(sideband).filter(|(_, one)| one.ended) {
                self.sideband.end(*descriptor);
            }
            if sideband.iter().any(|one| one.readable || one.ended) {
                self.attend();
            }
            if waits_for_ends && until.ends.is_empty() {
                return RecordingEnd::Processes;
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return RecordingEnd::TimedOut;
            }
            if now >= next {
                next = now + self.tick();
            }
        }
    }

    /// Takes notice of new threads and mappings.
    fn attend(&mut self) {
        for (time, happened) in self.sideband.drain() {
            match happened {
                Happened::Mapped { pid, start, len, offset, file } => {
                    self.spaces.mapped(time, pid, start, len, offset, &file);
                }
                Happened::Executed { pid } => self.spaces.executed(time, pid),
                Happened::Forked { pid, parent, tid } => {
                    if pid != parent {
                        self.spaces.forked(parent, pid);
                    }
                    self.follow(pid, tid);
                }
                Happened::Exited { tid } => {
                    if let Some(samplers) = self.samplers.remove(&tid) {
                        self.turns.clear();
                        samplers.into_iter().for_each(|mut sampler| self.end(&mut sampler));
                    }
                }
                Happened::Lost(lost) => self.fate.lost += lost,
                Happened::Other => {}
            }
        }
    }

    /// Ends a sampler's burst, and keeps what it has shown.
    fn end(&mut self, sampler: &mut Sampler) {
        if let Some(raw) = sampler.end(&mut self.fate) {
            self.keep(&raw);
        }
    }

    fn keep(&mut self, raw: &RawBurst) {
        let kernel = self.settings.kernel.then(|| self.spaces.kernel());
        let spaces = &self.spaces;
        let place = |sample: &RawSample| {
            let frames = sample.chain.iter().enumerate().map(|(depth, address)| {
                // (a return address is behind the call)
                let address = address.saturating_sub(u64::from(depth > 0));
                if depth < sample.in_kernel {
                    return CodePlace { module: kernel, address };
                }
                spaces.place(raw.pid, sample.time, address)
            });
            frames.collect::<Vec<CodePlace>>()
        };
        let stacks = raw.samples.iter().map(|sample| self.stacks.number(place(sample))).collect();
        let RawBurst { kind, long, weight_ns, strobe, .. } = *raw;
        let ProvedWindows { windows, parted, impossible } = proved(&self.events[kind], strobe, &raw.samples);
        self.parted += parted;
        self.impossible += u64::from(impossible);
        if let Some(cost) = raw.cost_ns() {
            self.budget.thread_paid(cost);
        }
        self.bursts.push(Burst { kind, long, weight_ns, stacks, windows });
    }

    /// A thread's turn. Returns the time to the next.
    fn tick(&mut self) -> Duration {
        self.attend();
        if self.turns.is_empty() {
            self.turns = self.samplers.keys().copied().collect();
            for k in (1..self.turns.len()).rev() {
                let other = (self.random() * (k + 1) as f64) as usize;
                self.turns.swap(k, other);
            }
        }
        let threads = self.samplers.len().max(1) as f64;
        let spent = own_cpu_time();
        self.budget.recorder_paid(spent.saturating_sub(self.spent_ns) as f64, 1.0);
        self.spent_ns = spent;
        self.budget.look();
        let rate = (self.budget.pace().frequency * threads).min(MOST_PER_SECOND);
        let weight_ns = (threads / rate * 1e9) as u64;
        if let Some(tid) = self.turns.pop() {
            let mut samplers = self.samplers.remove(&tid).unwrap_or_default();
            let burst = |sampler: &mut Sampler| self.burst(sampler, weight_ns);
            // (on all, whatever becomes of one)
            let begun: Vec<io::Result<()>> = samplers.iter_mut().map(burst).collect();
            match begun.into_iter().find_map(Result::err) {
                None => _ = self.samplers.insert(tid, samplers),
                Some(error) => self.refuse(&error),
            }
        }
        Duration::from_secs_f64((0.5 + self.random()) / rate)
    }

    fn burst(&mut self, sampler: &mut Sampler, weight_ns: u64) -> io::Result<()> {
        self.end(sampler);
        if sampler.bursts() % BLOCK == 0 {
            let long = self.random() < 0.5;
            let gap = self.settings.gap * if long { LONGER } else { 1 };
            // (no loop of the program keeps pace with random gaps)
            sampler.set_gap(((0.5 + self.random()) * gap as f64) as u64, long)?;
        }
        sampler.begin(weight_ns)
    }

    /// What was recorded in so much time.
    #[must_use]
    pub fn finish(mut self, elapsed: Duration) -> Recording {
        self.attend();
        for samplers in std::mem::take(&mut self.samplers).into_values() {
            samplers.into_iter().for_each(|mut sampler| self.end(&mut sampler));
        }
        Recording {
            events: self.events,
            settings: self.settings,
            bursts: self.bursts,
            stacks: self.stacks.all,
            modules: self.spaces.modules,
            elapsed,
            threads: self.threads,
            refused: self.refused,
            lost: self.fate.lost,
            throttled: self.fate.throttled,
            parted: self.parted,
            impossible: self.impossible,
            pace: self.budget.pace(),
        }
    }
}

/// What an error of opening counters on a thread means.
fn refusal(error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => ": no descriptor is left (ulimit -n)",
        Some(libc::EPERM) => {
            ": no more memory may be locked (sysctl kernel.perf_event_mlock_kb, ulimit -l), or a container forbids perf_event_open"
        }
        Some(libc::EACCES) => ": kernel.perf_event_paranoid, or the process is another user's",
        Some(libc::EINVAL) => ": the counters have no room for the group",
        _ => "",
    };
    format!("{error}{remedy}")
}
