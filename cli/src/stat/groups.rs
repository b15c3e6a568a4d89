//! Groups that are read together, and what they counted from one reading to the next.
#![forbid(unsafe_code)]

use super::clock::TaskClock;
use super::cpus::online;
use super::group::{GroupCount, GroupTarget, Reading, StatGroup};
use super::ipc::IpcPmu;
use super::rows_per::RowsPer;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use topdown::{CoreKind, Corrections, Error, Options, Sample, SourceKind, TD_ENOTCOUNTING, Target};
use topdown_seam::numbers;
use topdown_seam::records::TaskRecord;

/// Slots of a thread from one record to the next: about a millisecond, and less than a per cent of its time.
pub const RECORD_SLOTS: u32 = 4_000_000;

/// Until when records are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RecordsUpTo {
    /// Until now.
    Now,
    /// Until they were read the last time before.
    LastTime,
}

/// Groups that are read together.
#[derive(Default)]
pub struct Groups {
    pub all: Vec<StatGroup>,
    /// Options of each, but for its target.
    options: Options,
    /// PMUs on which instructions and cycles are counted, too.
    kinds: Vec<IpcPmu>,
    /// How long the command's threads ran, where each CPU has a group.
    clock: Option<TaskClock>,
    /// Records that were read, in the order of time: ones of an earlier time may still come.
    pending: Vec<(usize, TaskRecord)>,
    /// CPUs that came online and could not be opened.
    refused: BTreeSet<u32>,
    /// Which CPUs were online when that was seen last, and when.
    looked: Option<(Instant, BTreeSet<u32>)>,
    /// Since when programs of the command are not counted, and how many CPUs they may run on.
    losing: Option<(Instant, u64)>,
}

impl Groups {
    /// On a process from its exec on, with all that it starts.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of_command(pid: i32, options: &Options, kinds: &[IpcPmu]) -> Result<Groups, Error> {
        let options = Options { target: Target::Task(pid), inherit: true, on_exec: true, ..*options };
        let mut groups = Groups::new(&options, kinds);
        groups.open(&GroupTarget::Command)?;
        Ok(groups)
    }

    /// The same, by a group for each of these CPUs, whose records tell threads apart.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of_command_by_task(
        pid: i32,
        cpus: impl Iterator<Item = u32>,
        options: &Options,
    ) -> Result<Groups, Error> {
        let options = Options {
            target: Target::Task(pid),
            inherit: true,
            on_exec: true,
            record_slots: RECORD_SLOTS,
            ..*options
        };
        let mut groups = Groups { clock: TaskClock::of_command(pid).ok(), ..Groups::new(&options, &[]) };
        groups.open_each(&cpus.map(GroupTarget::CommandOn).collect::<Vec<_>>())?;
        Ok(groups)
    }

    /// From now on programs of the command run that are not counted.
    pub fn lose(&mut self) {
        self.losing.get_or_insert_with(|| (Instant::now(), online().len() as u64));
    }

    /// Nanoseconds that all CPUs had so far since programs run that are not counted. What these have used of an interval is no more than
    /// its part of this, less the time in which counted ones ran.
    pub fn room_ns(&self) -> u64 {
        self.losing.map_or(0, |(since, cpus)| since.elapsed().as_nanos() as u64 * cpus)
    }

    /// Whether what they count is made up.
    pub fn are_simulated(&self) -> bool {
        self.options.simulate
    }

    /// Whether the kernel's slots are counted, too.
    pub fn counts_kernel(&self) -> bool {
        self.options.kernel
    }

    /// Whether those that are opened from now on wait for `switch`.
    pub fn start_off(&mut self, off: bool) {
        self.options.off = off;
    }

    /// Whether they count from now on (`Options::off`).
    pub fn switch(&self, on: bool) {
        for group in &self.all {
            // (one that goes on beside another shares the counters with it, which both their times tell)
            let _ = group.td.as_ref().map(|td| td.switch(on));
        }
    }

    /// How long the command's threads ran, if that is told apart from how long a group was enabled.
    pub fn enabled_ns(&self) -> Option<u64> {
        self.clock.as_ref()?.enabled_ns()
    }

    /// Records in the order of time, each with the place of its group in `all`: those of which no record of an earlier time can still come. (Of
    /// two CPUs' buffers one is read first; what its CPU writes afterwards may be earlier than what is read of the other.)
    pub fn records(&mut self, up_to: RecordsUpTo) -> Vec<(usize, TaskRecord)> {
        if up_to == RecordsUpTo::Now {
            self.fetch_records();
        }
        let settled = self.pending.iter().map(|(_, record)| record.time).max();
        self.fetch_records();
        let ready = self.pending.partition_point(|(_, record)| Some(record.time) <= settled);
        self.pending.drain(..ready).collect()
    }

    fn fetch_records(&mut self) {
        let groups = self.all.iter_mut().enumerate();
        let records = groups.filter_map(|(k, group)| Some((k, group.records.as_mut()?.take())));
        let records = records.flat_map(|(k, records)| records.into_iter().map(move |record| (k, record)));
        self.pending.extend(records);
        self.pending.sort_by_key(|(_, record)| record.time);
    }

    /// On threads, with all that they start.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of_threads(
        ids: impl Iterator<Item = i32>,
        options: &Options,
        kinds: &[IpcPmu],
    ) -> Result<Groups, Error> {
        let mut groups = Groups::new(&Options { inherit: true, ..*options }, kinds);
        let ended = groups.open_each(&ids.map(GroupTarget::Thread).collect::<Vec<_>>())?;
        match ended {
            Some(error) if groups.all.is_empty() => Err(error),
            _ => Ok(groups),
        }
    }

    /// On CPUs.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of_cpus(
        cpus: impl Iterator<Item = u32>,
        options: &Options,
        kinds: &[IpcPmu],
    ) -> Result<Groups, Error> {
        let (looked_at, cpus) = (Instant::now(), cpus.collect::<BTreeSet<u32>>());
        let mut groups = Groups::new(options, kinds);
        groups.open_each(&cpus.iter().copied().map(GroupTarget::Cpu).collect::<Vec<_>>())?;
        groups.looked = Some((looked_at, cpus));
        Ok(groups)
    }

    /// On each of these, all of one kind of core in one way: counts by other counters are not added up, and others may hold some of one
    /// CPU. A thread may have ended, as others of its process may, at any time: why.
    fn open_each(&mut self, each: &[GroupTarget]) -> Result<Option<Error>, Error> {
        let mut ended = None;
        for of in each {
            match self.open(of) {
                Err(error) if matches!(of, GroupTarget::Thread(_)) && error.code() == -libc::ESRCH => {
                    ended = Some(error)
                }
                opened => opened?,
            }
        }
        if self.options.corrections == Corrections::Counted && self.are_of_several_kinds() {
            self.all.clear();
            self.options.corrections = Corrections::Bounded;
            return self.open_each(each);
        }
        Ok(ended)
    }

    /// A group on a CPU that came online, by as many counters as the others, or by as few.
    fn open_as_the_others(&mut self, cpu: u32) -> Result<(), Error> {
        let open =
            |groups: &mut Groups| groups.open(&GroupTarget::Cpu(cpu)).and_then(|()| groups.of_one_kind());
        match (open(self), self.options.corrections) {
            (Err(why), Corrections::Counted) => {
                self.options.corrections = Corrections::Bounded;
                open(self).inspect_err(|_| self.options.corrections = Corrections::Counted).map_err(|_| why)
            }
            (opened, _) => opened,
        }
    }

    /// Whether the last one is counted as the others are; it is closed if not.
    fn of_one_kind(&mut self) -> Result<(), Error> {
        if !self.are_of_several_kinds() {
            return Ok(());
        }
        self.all.pop();
        Err(Error::new(TD_ENOTCOUNTING, "others hold counters of it")
            .why("the other CPUs are counted by more, and such counts are not added up")
            .remedy("end those (perf stat -a, the NMI watchdog), or begin again"))
    }

    fn are_of_several_kinds(&self) -> bool {
        let mut core_of = HashMap::new();
        self.all
            .iter()
            .any(|group| *core_of.entry(&group.info.pmu).or_insert(&group.info.core) != &group.info.core)
    }

    /// None, to which others come.
    pub fn new(options: &Options, kinds: &[IpcPmu]) -> Groups {
        Groups { options: *options, kinds: kinds.to_vec(), ..Groups::default() }
    }

    /// A group for each kind of core, the P-cores' first; on a CPU one of its kind.
    fn open(&mut self, of: &GroupTarget) -> Result<(), Error> {
        let p_cores = Options { source: SourceKind::Counters, ..self.options };
        let level = if p_cores.level == 1 { 1 } else { 0 }; // what fits, and its note says why it is no more
        let e_cores =
            Options { cores: CoreKind::Efficiency, level, source: SourceKind::Automatic, ..p_cores };
        let first = StatGroup::open(of.clone(), &p_cores, &self.kinds);
        match (of, first) {
            (GroupTarget::Cpu(_) | GroupTarget::CommandOn(_), Err(error))
                if error.code() == -libc::ENOTSUP =>
            {
                self.all.push(StatGroup::open(of.clone(), &e_cores, &self.kinds).map_err(|_| error)?);
            }
            (GroupTarget::Cpu(_) | GroupTarget::CommandOn(_), first) => self.all.push(first?),
            (_, first) if self.options.simulate => self.all.push(first?), // (one kind of core is simulated)
            (_, first) => {
                self.all.push(first?);
                // (where there are none, or they cannot be counted, time on them is seen not to be counted)
                self.all.extend(StatGroup::open(of.clone(), &e_cores, &self.kinds));
            }
        }
        Ok(())
    }

    /// Says what rows are of, while it is still there.
    pub fn label(&mut self, by: Option<RowsPer>) {
        let Some(by) = by else { return };
        for group in self.all.iter_mut().filter(|group| group.label.is_empty()) {
            group.label = by.label(group);
        }
    }

    /// What was counted last of each group: where the next row or report begins.
    pub fn last(&self) -> Vec<Reading> {
        self.all.iter().map(|group| group.last.clone()).collect()
    }

    /// What each group shows now.
    pub fn readings(&mut self, at_work: bool) -> Vec<Result<Reading, Error>> {
        if self.options.inherit {
            settled(&self.all, at_work)
        } else {
            self.all.iter_mut().map(StatGroup::read_or_last).collect()
        }
    }

    /// What each has counted since the last time, `at` this time from the start; what cannot be read now is in the next reading, with
    /// all of its label. `at_work`: what is counted may be ending meanwhile.
    pub fn count(&mut self, at_work: bool, at: Duration) -> Vec<Result<GroupCount<'_>, Error>> {
        let readings = self.readings(at_work);
        let failed = self.all.iter().zip(&readings);
        let failed = failed
            .filter_map(|(group, reading)| Some((group.label.clone(), reading.as_ref().err()?.clone())));
        let failed: HashMap<String, Error> = failed.collect();
        let all = self.all.iter_mut().zip(readings).map(|(group, reading)| {
            let to = match failed.get(&group.label) {
                Some(error) => return Err(error.clone()),
                None => reading?,
            };
            let from = std::mem::replace(&mut group.last, to.clone());
            let since = std::mem::replace(&mut group.last_at, at);
            Ok(GroupCount { group, since, from, to })
        });
        all.collect()
    }

    /// Looks which CPUs have gone offline since they were read last.
    pub fn look(&mut self) {
        for group in &mut self.all {
            let _ = group.read_or_last(); // (one that went and came back has no counters any more)
        }
    }

    /// CPUs that are counted now.
    pub fn counted_cpus(&self) -> BTreeSet<u32> {
        let open = self.all.iter().filter(|group| group.end.is_none() && group.td.is_some());
        open.filter_map(|group| if let GroupTarget::Cpu(cpu) = group.of { Some(cpu) } else { None }).collect()
    }

    /// Opens groups on those of these CPUs that came online, once those that went offline were seen by a reading; they were online at
    /// some time after `looked_at`. Which cannot be, and could before, and why: their time is in the bound.
    pub fn follow(
        &mut self,
        online: &BTreeSet<u32>,
        looked_at: Instant,
        by: Option<RowsPer>,
    ) -> Vec<(u32, Error)> {
        let since: Vec<_> = online.iter().map(|cpu| (*cpu, self.absent_at(*cpu))).collect();
        let refused = self.open_new(online, looked_at);
        for (cpu, absent_at) in since {
            self.keep_uncounted_time(cpu, absent_at);
        }
        for group in self.all.iter_mut().filter(|group| group.td.is_none() && group.end.is_none()) {
            if !matches!(&group.of, GroupTarget::Cpu(cpu) if online.contains(cpu)) {
                group.end = group.read().ok();
            }
        }
        self.label(by);
        refused
    }

    /// A CPU that is refused has a group without counters until it is counted.
    fn keep_uncounted_time(&mut self, cpu: u32, absent_at: Option<Instant>) {
        let is_refused = self.refused.contains(&cpu);
        let is_uncounted = |group: &&mut StatGroup| group.is_uncounted(cpu);
        match self.all.iter_mut().find(is_uncounted) {
            Some(_) if is_refused => {}
            Some(uncounted) => uncounted.end = uncounted.read().ok(),
            None if is_refused => {
                let missed = absent_at.map_or(Duration::ZERO, |absent_at| absent_at.elapsed());
                let other = self.all.iter().find(|group| is_of(&group.info.pmu, cpu));
                let uncounted = other.map(|other| StatGroup::uncounted(cpu, other, missed));
                self.all.extend(uncounted);
            }
            None => {}
        }
    }

    /// Opens groups on CPUs that came online. Returns those that cannot be opened for the first time, and why.
    pub fn open_new(&mut self, online: &BTreeSet<u32>, looked_at: Instant) -> Vec<(u32, Error)> {
        let counts = |cpu: u32| self.all.iter().any(|group| group.counts(cpu));
        let new: Vec<u32> = online.iter().copied().filter(|cpu| !counts(*cpu)).collect();
        self.refused.retain(|cpu| new.contains(cpu));
        let mut refused = Vec::new();
        for cpu in &new {
            let absent_at = self.absent_at(*cpu);
            match self.open_as_the_others(*cpu) {
                Err(why) if self.refused.insert(*cpu) => refused.push((*cpu, why)),
                Err(_) => {}
                Ok(()) => {
                    self.refused.remove(cpu);
                    let has_uncounted = self.all.iter().any(|group| group.is_uncounted(*cpu));
                    let absent_at = absent_at.filter(|_| !has_uncounted); // (which has the time until now)
                    let missed = absent_at.map_or(Duration::ZERO, |absent_at| absent_at.elapsed());
                    let opened = self.all.last_mut();
                    opened.into_iter().for_each(|group| group.missed_ns = missed.as_nanos() as u64);
                }
            }
        }
        self.looked = Some((looked_at, online.clone()));
        refused
    }

    /// When a CPU that is not counted was not online, as far as that is known.
    pub fn absent_at(&self, cpu: u32) -> Option<Instant> {
        let (looked_at, online) = self.looked.as_ref()?;
        let unseen = (!online.contains(&cpu)).then_some(*looked_at);
        let ended = self
            .all
            .iter()
            .filter(|group| group.of == GroupTarget::Cpu(cpu))
            .map(StatGroup::counted_until)
            .max();
        unseen.max(ended).or(Some(*looked_at))
    }

    /// How long a CPU may have been online before it was counted is not in its readings.
    pub fn forget_missed(&mut self, cpu: u32) {
        self.all.iter_mut().filter(|group| group.counts(cpu)).for_each(|group| group.missed_ns = 0);
    }
}

/// Whether a CPU is of this PMU; each is, if sysfs does not say.
fn is_of(pmu: &str, cpu: u32) -> bool {
    let cpus = fs::read_to_string(format!("/sys/bus/event_source/devices/{pmu}/cpus"));
    cpus.map_or(true, |cpus| numbers::contains(cpus.trim(), cpu))
}

/// Readings of which no counter is ahead of another. While a process ends, the kernel adds its counts to the others' one after
/// the other: then a later reading has less of a category, or more than there were slots in between.
fn settled(groups: &[StatGroup], at_work: bool) -> Vec<Result<Reading, Error>> {
    const TRIES: u32 = 100;
    let restless =
        || Error::new(-libc::EAGAIN, "processes end all the time, so the counters do not come to rest");
    let mut readings: Vec<_> = groups.iter().map(|_| Err(restless())).collect();
    for tried in 0..TRIES {
        let unsettled: Vec<usize> = (0..groups.len()).filter(|k| readings[*k].is_err()).collect();
        if unsettled.is_empty() {
            break;
        }
        let first: Vec<_> = unsettled.iter().map(|k| groups[*k].read()).collect();
        if at_work || tried > 0 {
            thread::sleep(Duration::from_millis(1)); // longer than that takes
        }
        for (k, first) in unsettled.into_iter().zip(first) {
            readings[k] = match (first, groups[k].read()) {
                (Ok(reading), Ok(later)) if is_settled(&reading.sample, &later.sample) => Ok(reading),
                (Ok(_), Ok(_)) => Err(restless()),
                // (the kernel reads no group whose events are just being taken apart: ECHILD)
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
    }
    readings
}

fn is_settled(sample: &Sample, later: &Sample) -> bool {
    let slots = later.slots.checked_sub(sample.slots);
    let more = |(before, after): (&u64, &u64)| after.checked_sub(*before).zip(slots);
    let mut counters = sample.counter.iter().zip(&later.counter);
    counters.all(|counter| more(counter).is_some_and(|(more, slots)| more <= slots))
}
