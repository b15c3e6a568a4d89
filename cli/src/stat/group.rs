//! Counters on a thread, a CPU or a command, by one kind of its cores, and what they showed last.
#![forbid(unsafe_code)]

use super::ipc::{Ipc, IpcCounts, IpcPmu};
use super::simulated::SimulatedClock;
use super::stretches::CountedStretches;
use crate::{say, simulation};
use std::rc::Rc;
use std::time::{Duration, Instant};
use topdown::{Error, Info, Node, Options, Sample, Target, TopDown};
use topdown_seam::page::Times;
use topdown_seam::records::Records;

/// Whose slots a group counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupTarget {
    /// A command, with all that it starts.
    Command,
    /// A command, with all that it starts, on one CPU: one group of a set that counts each thread apart.
    CommandOn(u32),
    /// A thread, with all that it starts, by its id.
    Thread(i32),
    /// Whatever runs on a CPU.
    Cpu(u32),
}

/// An open group, with its last reading.
pub struct StatGroup {
    pub of: GroupTarget,
    /// What its row is of.
    pub label: String,
    pub info: Info,
    /// None: the CPU's counters could not be opened, and the group has the time in which the CPU was online.
    pub(super) td: Option<TopDown>,
    /// Its counts are made up, by the time that this tells.
    simulated: Option<SimulatedClock>,
    /// What the kernel says of threads, if it was asked to.
    pub(super) records: Option<Records>,
    ipc: Option<Ipc>,
    /// What it showed when it was opened.
    pub(super) opened: Reading,
    /// When that was, at the earliest.
    opened_at: Instant,
    pub(super) last: Reading,
    /// When that was, from the start.
    pub(super) last_at: Duration,
    /// What was seen last, in between, too.
    seen: Reading,
    /// When that was.
    seen_at: Instant,
    /// The last reading of all: its CPU went offline.
    pub(super) end: Option<Reading>,
    /// Of a CPU that came online: nanoseconds in which it may have been there, and was not counted yet.
    pub(super) missed_ns: u64,
}

/// What a group showed at one time.
#[derive(Clone, Default)]
pub struct Reading {
    pub(super) sample: Sample,
    pub(super) ipc: Option<IpcCounts>,
    /// Of groups that take turns: all stretches until then. (The sample has slots and times alone)
    pub(super) stretches: Option<Rc<CountedStretches>>,
}

impl Reading {
    /// Of groups that take turns.
    pub fn in_turns(sample: Sample, stretches: Rc<CountedStretches>) -> Reading {
        Reading { sample, ipc: None, stretches: Some(stretches) }
    }
}

impl StatGroup {
    pub(super) fn open(of: GroupTarget, options: &Options, kinds: &[IpcPmu]) -> Result<StatGroup, Error> {
        let target = match of {
            GroupTarget::Command => options.target,
            GroupTarget::CommandOn(cpu) => Target::TaskOn(options.target_id(), cpu),
            GroupTarget::Thread(id) => Target::Task(id),
            GroupTarget::Cpu(cpu) => Target::Cpu(cpu),
        };
        let options = Options { target, ..*options };
        let opened_at = Instant::now();
        let simulated = match options.simulate {
            true => Some(SimulatedClock::of(&of, options.target_id())?),
            false => None,
        };
        let options = if options.simulate { simulation::options(&options) } else { options };
        // (what a CPU did before the buffer was there would be taken for the first record's cgroup's)
        let waits = options.record_cgroups;
        let td = TopDown::open(&Options { off: options.off || waits, ..options })?;
        let info = td.info()?;
        let records = if options.record_slots > 0 { Some(td.records()?) } else { None };
        if waits && !options.off {
            td.switch(true)?;
        }
        let kind = kinds.iter().find(|kind| kind.pmu == info.pmu);
        let ipc = kind.and_then(|kind| kind.open(&options));
        let group = StatGroup {
            of,
            label: String::new(),
            info,
            td: Some(td),
            simulated,
            records,
            ipc,
            opened: Reading::default(),
            opened_at,
            last: Reading::default(),
            last_at: Duration::ZERO,
            seen: Reading::default(),
            seen_at: Instant::now(),
            end: None,
            missed_ns: 0,
        };
        let first = group.read()?;
        Ok(StatGroup { opened: first.clone(), last: first.clone(), seen: first, ..group })
    }

    /// A group without counters, for a CPU that cannot be counted. `other`: a group of the same kind of core. `missed`: how long the CPU may
    /// have been online before.
    pub(super) fn uncounted(cpu: u32, other: &StatGroup, missed: Duration) -> StatGroup {
        let none = Sample { time_enabled_ns: 0, time_running_ns: 0, ..other.opened.sample };
        let opened = Reading { sample: none, ..Reading::default() };
        StatGroup {
            of: GroupTarget::Cpu(cpu),
            label: String::new(),
            info: other.info.clone(),
            td: None,
            simulated: None,
            records: None,
            ipc: None,
            opened: opened.clone(),
            opened_at: Instant::now(),
            last: opened.clone(),
            last_at: Duration::ZERO,
            seen: opened,
            seen_at: Instant::now(),
            end: None,
            missed_ns: missed.as_nanos() as u64,
        }
    }

    /// What a record of this group says that a thread has counted.
    ///
    /// # Errors
    /// -EINVAL: the record is of another group.
    pub fn sample_of_record(&self, time: Times, values: &[u64]) -> Result<Sample, Error> {
        self.td.as_ref().ok_or_else(no_counters)?.sample_of_record(time, values)
    }

    pub(super) fn read(&self) -> Result<Reading, Error> {
        let uncounted = || {
            let time_enabled_ns = self.opened_at.elapsed().as_nanos() as u64;
            Ok(Sample { time_enabled_ns, ..self.opened.sample })
        };
        let sample = match (&self.td, &self.simulated) {
            (Some(td), Some(clock)) => {
                let (busy_ns, time) = clock.read();
                td.simulated_sample(busy_ns, time)?
            }
            (Some(td), None) => td.read()?,
            (None, _) => uncounted()?,
        };
        let sample = self.with_missed(sample);
        Ok(Reading { sample, ipc: self.ipc.as_ref().and_then(Ipc::read), stretches: None })
    }

    fn with_missed(&self, sample: Sample) -> Sample {
        Sample { time_enabled_ns: sample.time_enabled_ns + self.missed_ns, ..sample }
    }

    /// When its CPU went offline, at the earliest: it was counted until then.
    pub(super) fn counted_until(&self) -> Instant {
        let last = self.end.as_ref().unwrap_or(&self.seen).sample;
        self.opened_at + Duration::from_nanos(last.time_enabled_ns.saturating_sub(self.missed_ns))
    }

    /// Of a CPU, which may have gone offline.
    pub(super) fn read_or_last(&mut self) -> Result<Reading, Error> {
        if let Some(end) = &self.end {
            return Ok(end.clone());
        }
        let read = match (self.read(), &self.of) {
            (Err(error), GroupTarget::Cpu(cpu)) if error.code() == -libc::EIO => {
                // (Linux 6.1 shows no counts while the CPU is away)
                let last = self.td.as_ref().ok_or_else(no_counters).and_then(TopDown::read_last);
                let last = last.map(|last| self.with_missed(last)).unwrap_or_else(|_| {
                    say(&format!(
                        "CPU {cpu} went offline, and the last of what ran there is lost (the bound has room for it)"
                    ));
                    let since_ns = self.seen_at.elapsed().as_nanos() as u64;
                    let seen = self.seen.sample;
                    Sample { time_enabled_ns: seen.time_enabled_ns + since_ns, ..seen }
                });
                let end = Reading { sample: last, ..Reading::default() };
                self.end = Some(end.clone());
                end
            }
            (read, _) => read?,
        };
        (self.seen, self.seen_at) = (read.clone(), Instant::now());
        Ok(read)
    }

    /// The nodes that it counts: id and name.
    pub fn nodes(&self) -> Result<Vec<Node>, Error> {
        let Some(td) = &self.td else { return Ok(Vec::new()) };
        Ok(td.nodes()?.into_iter().filter(|node| node.measured != 0).collect())
    }

    pub(super) fn counts(&self, cpu: u32) -> bool {
        self.of == GroupTarget::Cpu(cpu) && self.end.is_none() && self.td.is_some()
    }

    pub(super) fn is_uncounted(&self, cpu: u32) -> bool {
        self.of == GroupTarget::Cpu(cpu) && self.end.is_none() && self.td.is_none()
    }
}

fn no_counters() -> Error {
    Error::new(-libc::ENODEV, "the CPU cannot be counted")
}

/// What a group counted since the reading before.
pub struct GroupCount<'g> {
    pub group: &'g StatGroup,
    /// When the reading before was, from the start.
    pub since: Duration,
    pub(super) from: Reading,
    pub(super) to: Reading,
}

impl<'g> GroupCount<'g> {
    /// A part of what this group and others of its kind of core counted: from one sample to another.
    pub fn of(group: &'g StatGroup, from: &Sample, to: &Sample) -> GroupCount<'g> {
        let reading = |sample: &Sample| Reading { sample: *sample, ..Reading::default() };
        GroupCount { group, since: Duration::ZERO, from: reading(from), to: reading(to) }
    }

    /// Where the counters stand.
    pub fn sample(&self) -> Sample {
        self.to.sample
    }

    /// Nanoseconds in which the counters were to count, since they were opened.
    pub fn enabled_ns(&self) -> u64 {
        self.to.sample.time_enabled_ns
    }

    /// The same, since the reading before.
    pub fn enabled_since_ns(&self) -> u64 {
        self.to.sample.time_enabled_ns - self.from.sample.time_enabled_ns
    }
}
