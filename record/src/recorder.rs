//! Bursts at random instants over all threads, or samples of an event, and what came of them.
#![forbid(unsafe_code)]

use crate::budget::BurstBudget;
use crate::chances::{Chance, Chances};
use crate::clock_event::ClockEvent;
use crate::cpu_clock::CpuClock;
use crate::cpus::RecordedCpus;
use crate::event::{now, wait};
use crate::event_sampling::{EventSampler, EventSampling, EventSamplings};
use crate::journal::Journal;
use crate::proof::{ProvedWindows, proved};
use crate::recording::Burst;
use crate::records::RawSample;
use crate::sampler::{Fate, RawBurst, Sampler};
use crate::settings::{Settings, refusal};
use crate::sideband::Sideband;
use crate::spaces::Spaces;
use crate::stacks::Stacks;
use crate::unseen::Beginnings;
use crate::unwind::StackUnwinder;
use crate::whom::{RecordedProcesses, online, running};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use topdown::{Error, SampledEvents};
use topdown_seam::clocks::own_cpu_ns;
use topdown_seam::records::{RecordContent, TaskId, TaskRecord};

mod clocks;
mod finish;
mod on_cpus;
mod on_threads;

/// Bursts with one gap, before the next is drawn: to change it takes a system call.
const BLOCK: u64 = 8;
/// The longer gaps are so many times the shorter.
const LONGER: u64 = 4;
/// No burst stands for more nanoseconds: a recorder that was stopped for longer knows nothing of that time, and one burst would have
/// all of it.
const MOST_WEIGHT: f64 = 2e9;

/// How often [`RecordUntil::stop`] is looked at, or more often.
const STOP_LOOK: Duration = Duration::from_millis(20);
/// Where no thread has a chance, it is looked for new threads so often.
const NOBODY: Duration = Duration::from_millis(500);
/// Samples of an event are taken from the rings so often.
const DRAINS: Duration = Duration::from_millis(4);

/// What ends a recording.
#[derive(Clone, Debug, Default)]
pub struct RecordUntil {
    /// All of these have come to their ends (descriptors of pidfd_open).
    pub ends: Vec<RawFd>,
    /// This can be read.
    pub interrupt: Option<RawFd>,
    /// So much time has passed.
    pub timeout: Option<Duration>,
    /// This has become true.
    pub stop: Option<Arc<AtomicBool>>,
}

/// What has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// The processes.
    Processes,
    /// The descriptor, or `stop`.
    Interrupted,
    /// The time.
    TimedOut,
}

/// What is open on a thread, or on a CPU.
#[derive(Debug)]
enum ThreadCounters {
    /// One for each kind of core.
    Bursts(Vec<Sampler>),
    /// One for each PMU.
    Events(Vec<EventSampler>),
    /// None yet: the thread of this process is followed.
    None { pid: i32 },
}

impl ThreadCounters {
    /// Since when the thread is sampled.
    fn since(&self) -> u64 {
        match self {
            ThreadCounters::Bursts(samplers) => samplers.iter().map(Sampler::since).max().unwrap_or(0),
            ThreadCounters::Events(_) | ThreadCounters::None { .. } => u64::MAX, // (it misses nothing)
        }
    }

    /// The thread did not run since a burst was asked for.
    fn waits(&self) -> bool {
        matches!(self, ThreadCounters::Bursts(samplers) if samplers.iter().all(Sampler::waits))
    }
}

fn sideband_refusal(error: io::Error) -> Error {
    let what = "perf_event_open or mmap of the events that tell of new threads and mappings";
    let refusal = refusal(&error);
    Error::new(refusal.code(), what).why(refusal.to_string())
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    whom: RecordedProcesses,
    events: Vec<SampledEvents>,
    samplings: EventSamplings,
    /// Samples of events, each of its kind, whose places are not yet looked up: mappings that came before them may not have been seen.
    unplaced: Vec<(usize, RawSample)>,
    settings: Settings,
    sideband: Sideband,
    /// By thread, or by CPU.
    samplers: BTreeMap<i32, ThreadCounters>,
    cpus: Option<RecordedCpus>,
    /// What tells the time, of threads or CPUs that have it.
    clocks: BTreeMap<i32, Vec<CpuClock>>,
    /// The event of each kind of core that counts time.
    cycles: Vec<Option<ClockEvent>>,
    /// Clocks take turns with the groups.
    in_turns: bool,
    /// Threads that have none.
    unclocked: usize,
    /// Threads whose time a timer tells.
    by_timer: usize,
    /// Processes that still ran when those that were waited for had ended.
    left_running: usize,
    chances: Chances,
    /// CPU time of this thread at the last chance.
    spent_ns: u64,
    spaces: Spaces,
    /// Sentences on names that are missing, and on what was not counted.
    unnamed: Vec<String>,
    unwinder: StackUnwinder,
    stacks: Stacks,
    bursts: Vec<Burst>,
    fate: Fate,
    parted: u64,
    impossible: u64,
    budget: BurstBudget,
    threads: usize,
    /// How many threads are not sampled, and why the first is not.
    refused: (usize, Option<Error>),
    beginnings: Beginnings,
    started: Instant,
    journal: Option<Journal>,
}

/// What the kernel says of a thread that is not there any more; and (ENODEV) of a group whose leader was opened before the thread ended.
fn has_ended(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV))
}

/// One of these did not run since a burst was asked for, or since its last chance.
fn waits(samplers: &BTreeMap<i32, ThreadCounters>, clocks: &BTreeMap<i32, Vec<CpuClock>>, tid: i32) -> bool {
    let of_thread = || clocks.get(&tid).into_iter().flatten();
    match samplers.get(&tid) {
        Some(ThreadCounters::Bursts(samplers)) if of_thread().any(CpuClock::has_turns) => {
            of_thread().any(CpuClock::waits) || samplers.iter().all(Sampler::stands_still)
        }
        counters => counters.is_some_and(ThreadCounters::waits),
    }
}

impl Recorder {
    fn empty(
        whom: RecordedProcesses,
        events: Vec<SampledEvents>,
        samplings: Vec<EventSampling>,
        settings: Settings,
    ) -> Recorder {
        let cycles: Vec<Option<ClockEvent>> = events.iter().map(ClockEvent::cycles).collect();
        let in_turns = cycles.iter().flatten().any(|clock| clock.in_turns);
        Recorder {
            whom,
            events,
            samplings: EventSamplings::of(samplings),
            unplaced: Vec::new(),
            settings,
            sideband: Sideband::new(online()),
            samplers: BTreeMap::new(),
            cpus: None,
            clocks: BTreeMap::new(),
            cycles,
            in_turns,
            unclocked: 0,
            by_timer: 0,
            left_running: 0,
            chances: Chances::new(now()),
            spent_ns: own_cpu_ns(),
            spaces: Spaces::default(),
            unnamed: Vec::new(),
            unwinder: StackUnwinder::default(),
            stacks: Stacks::default(),
            bursts: Vec::new(),
            fate: Fate::default(),
            parted: 0,
            impossible: 0,
            budget: BurstBudget::new(settings.frequency, settings.budget),
            threads: 0,
            refused: (0, None),
            beginnings: Beginnings::new(online().len()),
            started: Instant::now(),
            journal: None,
        }
    }

    /// Whether anything is sampled.
    ///
    /// # Errors
    /// Nothing is: what was refused, or that there was nobody.
    fn has_samplers(&mut self, nobody: &'static str) -> Result<(), Error> {
        if self.samplers.is_empty() {
            let refused = self.refused.1.take();
            return Err(refused.unwrap_or_else(|| Error::new(-libc::ESRCH, nobody)));
        }
        Ok(())
    }

    /// A thread is not sampled, or no longer.
    fn refuse(&mut self, error: &io::Error) {
        if has_ended(error) {
            return;
        }
        self.refused.0 += 1;
        self.refused.1.get_or_insert_with(|| refusal(error));
    }

    /// Whether events are sampled, and no bursts begun.
    #[must_use]
    pub fn samples_events(&self) -> bool {
        self.events.is_empty()
    }

    /// Records until something ends it.
    pub fn run(&mut self, mut until: RecordUntil) -> RecordingEnd {
        self.started = Instant::now();
        let deadline = until.timeout.map(|timeout| self.started + timeout);
        let waits_for_ends = !until.ends.is_empty();
        let mut next = Instant::now();
        loop {
            let stop = until.stop.as_ref();
            if stop.is_some_and(|stop| stop.load(Ordering::Acquire)) {
                return RecordingEnd::Interrupted;
            }
            let mut wake = next;
            if stop.is_some() {
                wake = wake.min(Instant::now() + STOP_LOOK);
            }
            if let Some(deadline) = deadline {
                wake = wake.min(deadline);
            }
            let mut descriptors = until.ends.clone();
            descriptors.extend(until.interrupt);
            descriptors.extend(self.sideband.descriptors());
            let clocks = descriptors.len();
            descriptors.extend(self.clock_descriptors());
            let polled = wait(&descriptors, wake);
            descriptors.truncate(clocks);
            let (polled, clocks) = polled.split_at(clocks);
            if clocks.iter().any(|one| one.readable) {
                self.tell_all_time();
            }
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
                if self.cpus.is_none() {
                    self.attend(); // (of those that ended it is known)
                    self.left_running = running(self.samplers.keys().copied()).len();
                }
                return RecordingEnd::Processes;
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return RecordingEnd::TimedOut;
            }
            if now >= next {
                next = self.tick();
            }
        }
    }

    /// Takes notice of new threads and mappings.
    fn attend(&mut self) {
        for TaskRecord { time, says } in self.sideband.drain() {
            match says {
                RecordContent::Mapped { pid, start, len, offset, file, inode } if self.whom.records(pid) => {
                    self.spaces.mapped(time, pid, start, len, offset, (&file, inode));
                }
                RecordContent::Named(TaskId { pid, tid }, name, executed) if self.whom.records(pid) => {
                    if executed {
                        self.place_before(pid, time);
                        self.spaces.executed(time, pid);
                    }
                    if pid == tid {
                        self.spaces.named(pid, name);
                    }
                }
                RecordContent::Began(TaskId { pid, tid }, parent) if self.whom.records(pid) => {
                    if pid != parent.pid {
                        self.spaces.forked(parent.pid, pid);
                    }
                    if self.whom != RecordedProcesses::OnCpus {
                        self.follow(pid, tid, Some(time));
                    }
                }
                RecordContent::Ends(TaskId { pid, tid }) if self.whom == RecordedProcesses::OnCpus => {
                    if pid == tid {
                        self.spaces.exited(time, pid);
                    }
                }
                RecordContent::Ends(TaskId { tid, .. }) => {
                    self.beginnings.ended(tid, time);
                    if let Some(counters) = self.samplers.remove(&tid) {
                        let due = self.chances.leaves(tid);
                        if !self.is_clocked(tid) {
                            self.beginnings.unsampled(due.max(counters.since()), time);
                        }
                        self.end_clocks(tid);
                        self.close(tid, counters);
                    }
                }
                RecordContent::Lost(lost) => self.fate.lost += lost,
                // (of other processes; the sideband counts nothing)
                RecordContent::Mapped { .. }
                | RecordContent::Named(..)
                | RecordContent::Began(..)
                | RecordContent::Counted(..)
                | RecordContent::CountedIn(..)
                | RecordContent::Made(..)
                | RecordContent::Throttled => {}
            }
        }
    }

    /// Ends what is open on a thread or CPU, and keeps what it has shown.
    fn close(&mut self, of: i32, counters: ThreadCounters) {
        if let (ThreadCounters::Events(_), Some(cpus)) = (&counters, &mut self.cpus) {
            cpus.make_room(of as u32); // (what the recorder has counted up to its last switch is known)
        }
        match counters {
            ThreadCounters::Bursts(samplers) => {
                samplers.into_iter().for_each(|mut sampler| self.end(&mut sampler));
            }
            ThreadCounters::Events(samplers) => samplers.into_iter().for_each(|sampler| {
                let kind = sampler.kind;
                let (samples, tally) = sampler.end();
                self.keep_samples(samples.into_iter().map(|sample| (kind, sample)).collect());
                self.samplings.add(kind, tally);
            }),
            ThreadCounters::None { .. } => {}
        }
    }

    /// Ends a sampler's burst, and keeps what it has shown.
    fn end(&mut self, sampler: &mut Sampler) {
        if let Some(raw) = sampler.end(&mut self.fate) {
            self.keep(&raw);
        }
    }

    /// The number of the stack in which a sample was taken.
    fn stack(&mut self, sample: &RawSample) -> u32 {
        self.stacks.number_of(sample, &mut self.spaces, &mut self.unwinder)
    }

    /// Samples of events.
    fn keep_samples(&mut self, samples: Vec<(usize, RawSample)>) {
        if let Some(cpus) = &mut self.cpus {
            cpus.threads.extend(samples.iter().map(|(_, sample)| sample.tid));
        }
        for (kind, sample) in samples {
            let (thread, at, stacks) = (sample.tid, sample.time, vec![self.stack(&sample)]);
            let (weight_ns, latency) = (sample.stands_for, sample.latency);
            self.bursts.push(Burst { kind, thread, at, weight_ns, stacks, latency, ..Burst::default() });
        }
    }

    /// Takes all samples of events that are there.
    fn drain(&mut self) {
        for counters in self.samplers.values_mut() {
            if let ThreadCounters::Events(samplers) = counters {
                for sampler in samplers {
                    let samples = sampler.drain().into_iter().map(|sample| (sampler.kind, sample));
                    self.unplaced.extend(samples);
                }
            }
        }
    }

    /// Places the samples of a process that executes another program at this time: what they are of has been mapped until then.
    fn place_before(&mut self, pid: i32, time: u64) {
        self.drain();
        let all = std::mem::take(&mut self.unplaced).into_iter();
        let (before, rest) = all.partition(|(_, sample)| sample.pid == pid && sample.time < time);
        self.unplaced = rest;
        self.keep_samples(before);
    }

    fn keep(&mut self, raw: &RawBurst) {
        let stacks = raw.samples.iter().map(|sample| self.stack(sample)).collect();
        let (thread, at) = raw.samples.first().map_or((0, 0), |sample| (sample.tid, sample.time));
        let RawBurst { kind, long, weight_ns, strobe, .. } = *raw;
        let ProvedWindows { windows, calls, parted, switched, impossible } =
            proved(&self.events[kind], strobe, &raw.samples);
        self.parted += parted;
        if let Some(cpus) = &mut self.cpus {
            cpus.switched += switched;
            cpus.threads.extend(raw.samples.iter().map(|sample| sample.tid));
        }
        self.impossible += u64::from(impossible);
        if let Some(cost) = raw.cost_ns() {
            // (and a sample of the thread's clock)
            let clocked = strobe.tid.is_some_and(|tid| self.is_clocked(tid));
            let samples = raw.samples.len() as f64;
            self.budget.thread_paid(cost * (1.0 + f64::from(u8::from(clocked)) / samples));
        }
        let latency = None;
        self.bursts.push(Burst { kind, thread, at, long, weight_ns, stacks, windows, calls, latency });
    }

    /// The chances that are due. Returns when the next one is.
    fn tick(&mut self) -> Instant {
        self.drain(); // (of what is sampled now all that was mapped before is known then)
        self.attend();
        self.look_at_cpus();
        self.write_down(false);
        if self.events.is_empty() {
            let samples = std::mem::take(&mut self.unplaced);
            self.keep_samples(samples);
            // (no program keeps pace with these either)
            let drains = DRAINS.mul_f64(0.5 + self.chances.random());
            return Instant::now() + if self.samplings.is_empty() { NOBODY } else { drains };
        }
        self.budget.look();
        let rate = self.rate();
        let mut due = self.chances.take(now(), rate, |tid| waits(&self.samplers, &self.clocks, tid));
        let mut chances = 0;
        while !due.is_empty() {
            chances += due.len();
            due.iter().for_each(|chance| self.chance(*chance));
            due = self.chances.woken(now(), rate, |tid| waits(&self.samplers, &self.clocks, tid));
        }
        let spent = own_cpu_ns();
        // (what it costs to look at threads that do not run goes with the bursts)
        let bursts = chances.max(1) as f64 / if self.in_turns { 2.0 } else { 1.0 };
        self.budget.recorder_paid(spent.saturating_sub(self.spent_ns) as f64, bursts);
        self.spent_ns = spent;
        Instant::now() + Duration::from_nanos(self.chances.next().saturating_sub(now())).min(NOBODY)
    }

    /// A thread's chance.
    fn chance(&mut self, chance: Chance) {
        let Some(ThreadCounters::Bursts(mut samplers)) = self.samplers.remove(&chance.tid) else { return };
        self.cpus.iter_mut().for_each(|cpus| cpus.make_room(chance.tid as u32));
        self.tell_time_at_chance(chance.tid);
        if self.goes_to_clock(chance.tid, &mut samplers) {
            self.samplers.insert(chance.tid, ThreadCounters::Bursts(samplers));
            return;
        }
        // (or a clock tells the time)
        let weight_ns =
            if self.is_clocked(chance.tid) { 0 } else { (chance.weight_ns as f64).min(MOST_WEIGHT) as u64 };
        let burst = |sampler: &mut Sampler| self.burst(sampler, weight_ns);
        // (on all, whatever becomes of one)
        let begun: Vec<io::Result<()>> = samplers.iter_mut().map(burst).collect();
        match begun.into_iter().find_map(Result::err) {
            None => _ = self.samplers.insert(chance.tid, ThreadCounters::Bursts(samplers)),
            Some(error) => {
                self.chances.leaves(chance.tid);
                self.refuse(&error);
            }
        }
    }

    fn burst(&mut self, sampler: &mut Sampler, weight_ns: u64) -> io::Result<()> {
        self.end(sampler);
        if sampler.bursts() % BLOCK == 0 {
            let long = self.chances.random() < 0.5;
            let gap = self.settings.gap * if long { LONGER } else { 1 };
            // (no loop of the program keeps pace with random gaps)
            sampler.set_gap(((0.5 + self.chances.random()) * gap as f64) as u64, long)?;
        }
        sampler.begin(weight_ns)
    }

    /// Keeps what is recorded in a file, too, as it comes: of this command, on this occasion.
    pub fn keep_in(&mut self, mut journal: Journal, command: &str, occasion: &str) {
        journal.begin(command, occasion, self.settings, &self.events);
        self.journal = Some(journal);
    }

    /// Writes what is new into the journal.
    fn write_down(&mut self, last: bool) {
        let Some(mut journal) = self.journal.take() else { return };
        let elapsed = self.started.elapsed();
        let totals = (journal.wants_totals(elapsed) || last).then(|| self.totals(elapsed));
        journal.write(&self.spaces.modules, &self.stacks.all, &self.bursts, totals);
        self.journal = Some(journal);
    }
}
