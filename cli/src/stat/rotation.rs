//! A level that no group of counters holds whole: groups of its subtrees take turns, a stretch of time each, in a random order, and each
//! counts level 1 beside. Level 1 is so of all stretches. What is below is of a part of them, as a share of its parent there: its bound
//! has four standard errors of such a sample more (docs/error-bound-sums.md). To rows and reports they are as one group: a reading ends the
//! stretch, and has what all before it counted.
#![forbid(unsafe_code)]

use super::clock::{TaskClock, TimeOf};
use super::companions;
use super::drill::{self, LatencyMode, TurnPlan};
use super::figures::{StatFigures, by_pmu};
use super::group::GroupCount;
use super::group::{GroupTarget, Reading, StatGroup};
use super::groups::Groups;
use super::stretches::CountedStretches;
use super::target::StatTarget;
use super::timed::{self, TimedTurn};
use crate::say;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use topdown::{
    DrillDown, Error, FIRST_STRETCH, Node, Options, Rotation, STRETCH, Sample, Stretches, TimedEvent,
    TurnLengths, TurnPart,
};
use topdown_record::TimedStart;
use topdown_report::model::Finding;
use topdown_seam::identity;

/// The first one. (Processes are short at first)
pub const FIRST: Duration = Duration::from_millis(10);
/// A turn of more groups (CPUs, threads) is not to be over in less time: to switch them takes some of it.
const MOST_OFTEN: usize = 4;
/// A timeline has no shorter intervals at first.
pub const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Groups that take turns.
pub struct GroupsInTurns {
    /// The last is of whole levels.
    turns: Vec<Groups>,
    /// What the others are of.
    parts: Vec<TurnPart>,
    /// Of each turn what is sampled beside it.
    timed: Vec<TimedTurn>,
    /// If not all of them have turns.
    drill: Option<DrillDown>,
    now: usize,
    /// How likely each turn was when that one was chosen; empty: each as the others.
    odds: Vec<f64>,
    rotation: Rotation,
    lengths: TurnLengths,
    /// When this turn began, and when the next one begins.
    since: Instant,
    due: Instant,
    times: Vec<TimeOf>,
    over: CountedStretches,
    /// The last of them that counted a slot.
    sample: Sample,
    /// What was counted last, and when that was.
    last: (Reading, Duration),
}

impl GroupsInTurns {
    /// What `open` opens with the options of each turn; where one cannot be, a line says so.
    fn open(
        options: &Options,
        plan: &TurnPlan,
        mut open: impl FnMut(&Options) -> Result<Groups, Error>,
    ) -> Result<GroupsInTurns, Error> {
        let whole = Options { level: 0, ..*options };
        let parts = plan.parts.iter().map(|part| (Some(*part), part.options(options)));
        let (mut turns, mut opened, mut refused) = (Vec::new(), Vec::new(), Vec::<Error>::new());
        for (part, of_part) in parts.chain([(None, whole)]) {
            match open(&Options { off: !turns.is_empty(), ..of_part }) {
                Ok(groups) => {
                    turns.push(groups);
                    opened.extend(part);
                }
                Err(why) => refused.push(why),
            }
        }
        let lines = parts_refused(&refused);
        // (one reason why nothing is counted is the error)
        let is_said = !turns.is_empty() || lines.len() > 1;
        lines.iter().filter(|_| is_said).for_each(|line| say(line));
        let has_whole = opened.len() + 1 == turns.len();
        if plan.drills && !has_whole && !turns.is_empty() {
            say("no drilling down without levels 1 and 2: all groups take turns");
        }
        let told = || turns.iter().map(told_by).collect();
        let drill =
            if plan.drills && has_whole { DrillDown::new(&opened, told(), identity::unique()) } else { None };
        let of_turns = opened.iter().map(|part| part.group).chain([0]).take(turns.len());
        let is_published = plan.latencies == LatencyMode::Published && !plan.timed.is_empty();
        let wanted = companions::wanted_of(&plan.metrics, of_turns, is_published);
        let over = drill.as_ref().map_or(Stretches::of_turns(turns.len()), DrillDown::none_yet);
        let rotation = Rotation::new(turns.len(), identity::unique());
        match refused.pop() {
            Some(why) if turns.is_empty() => Err(why),
            _ => Ok(GroupsInTurns {
                over: CountedStretches::new(over, wanted),
                // (the first to be opened counts from then on)
                odds: drill.as_ref().map_or(Vec::new(), DrillDown::first_odds),
                lengths: TurnLengths::new(turns.len(), FIRST_STRETCH),
                timed: turns.iter().map(|_| TimedTurn::default()).collect(),
                parts: opened,
                turns,
                drill,
                now: 0,
                rotation,
                since: Instant::now(),
                due: Instant::now() + FIRST,
                times: Vec::new(),
                sample: Sample::default(),
                last: (Reading::default(), Duration::ZERO),
            }),
        }
    }

    /// On a process from its exec on, with all that it starts.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of_command(pid: i32, options: &Options, plan: &TurnPlan) -> Result<GroupsInTurns, Error> {
        let open = |options: &Options| Groups::of_command(pid, options, &[]);
        let mut rotation = GroupsInTurns::open(options, plan, open)?;
        rotation.sample(plan, &[pid], options.kernel);
        rotation.times.push(TimeOf::command(TaskClock::of_command(pid).map_err(no_clock)?));
        Ok(rotation)
    }

    /// On others.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of(whom: &StatTarget, options: &Options, plan: &TurnPlan) -> Result<GroupsInTurns, Error> {
        let mut rotation = GroupsInTurns::open(options, plan, |options| whom.open(options, &[]))?;
        rotation.sample(plan, &[], options.kernel);
        let times = rotation.turns[0].all.iter().filter_map(|group| TimeOf::of(&group.of).transpose());
        rotation.times = times.collect::<io::Result<_>>().map_err(no_clock)?;
        rotation.turns[0].count(true, Duration::ZERO); // what was counted before a clock went
        Ok(rotation)
    }

    /// Opens what is sampled beside the turns, on a command's process, or on whom the groups are.
    fn sample(&mut self, plan: &TurnPlan, command: &[i32], kernel: bool) {
        let mut refused = None::<String>;
        for (turn, part) in self.parts.iter().enumerate() {
            let events: Vec<TimedEvent> =
                plan.timed.iter().filter(|event| event.group == part.group).cloned().collect();
            if events.is_empty() {
                continue;
            }
            if plan.latencies == LatencyMode::Published {
                self.timed[turn] = TimedTurn::published(&events);
                continue;
            }
            let start = match turn {
                0 if command.is_empty() => TimedStart::Now,
                0 => TimedStart::OnExec,
                _ => TimedStart::Switched,
            };
            let places = timed::places(command, self.turns[turn].all.iter().map(|group| &group.of));
            let samplers = timed::open(&events, places, kernel, start);
            // (what is counted is told all the same)
            let samplers = samplers.inspect_err(|why| refused = Some(why.to_string()));
            self.timed[turn] = samplers.map_or(TimedTurn::Refused(events.len()), TimedTurn::Sampled);
        }
        refused.into_iter().for_each(|why| say(&why));
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = &StatGroup> {
        self.turns.iter().flat_map(|groups| &groups.all)
    }

    /// The group that stands for all.
    pub fn group(&self) -> Option<&StatGroup> {
        self.turns.iter().rev().flat_map(|groups| &groups.all).next()
    }

    /// Begins the next turn, if it is time; how long that takes from now on.
    pub fn turn(&mut self) -> Duration {
        if Instant::now() >= self.due {
            self.next(true);
        }
        self.due.saturating_duration_since(Instant::now())
    }

    /// What drilling down has found, once it has looked at all that is worth it.
    pub fn settled(&self) -> Option<Vec<Finding>> {
        let is_settled = self.drill.as_ref()?.is_settled();
        is_settled.then(|| drill::found(&drill::of_tree(self.over.as_seen()), true))
    }

    /// The next group's turn.
    fn next(&mut self, at_work: bool) {
        let (next, odds) = match &mut self.drill {
            Some(drill) => drill.choose(&self.over),
            None => (self.rotation.choose(), Vec::new()),
        };
        let odds = std::mem::replace(&mut self.odds, odds);
        let last = std::mem::replace(&mut self.now, next);
        if next != last {
            self.turns[last].switch(false);
            self.timed[last].switch(false);
            self.turns[next].switch(true);
            self.timed[next].switch(true);
        }
        self.add(last, at_work, &odds);
        let stretch = match self.turns.iter().any(|groups| groups.all.len() > MOST_OFTEN) {
            true => STRETCH,
            false => self.lengths.next(&self.odds),
        };
        let length = self.rotation.length(stretch.as_nanos() as u64);
        self.since = Instant::now();
        self.due = self.since + Duration::from_nanos(length);
    }

    /// Has those of these CPUs that came online counted in each turn from now on, and of those that went offline no more time. Which
    /// cannot be counted, and could before, and why.
    pub fn follow(&mut self, online: &BTreeSet<u32>, looked_at: Instant) -> Vec<(u32, Error)> {
        let open: Vec<BTreeSet<u32>> = self.turns.iter().map(Groups::counted_cpus).collect();
        self.turns.iter_mut().for_each(Groups::look); // (of a CPU that was away the counters do not come back)
        self.times.iter().for_each(|time| _ = time.ns()); // (what one shows before its CPU goes; Linux 6.1 shows none after)
        let now: Vec<BTreeSet<u32>> = self.turns.iter().map(Groups::counted_cpus).collect();
        let went = |cpu: &u32| {
            !online.contains(cpu)
                || open.iter().zip(&now).any(|(open, now)| open.contains(cpu) && !now.contains(cpu))
        };
        let ended = |time: &&mut TimeOf| matches!(&time.of, GroupTarget::Cpu(cpu) if went(cpu));
        self.times.iter_mut().filter(ended).for_each(TimeOf::end);
        let absent_at: Vec<_> = online.iter().map(|cpu| self.turns[0].absent_at(*cpu)).collect();
        let mut refused = Vec::new();
        for (k, turn) in self.turns.iter_mut().enumerate() {
            turn.start_off(k != self.now);
            refused.extend(turn.open_new(online, looked_at));
        }
        for (cpu, absent_at) in online.iter().zip(absent_at) {
            let of = GroupTarget::Cpu(*cpu);
            // (its clock has it, whether it can be counted or not)
            self.turns.iter_mut().for_each(|turn| turn.forget_missed(*cpu));
            let missed_ns = absent_at.map_or(0, |absent_at| absent_at.elapsed().as_nanos() as u64);
            if !self.times.iter().any(|time| time.of == of && time.goes_on()) {
                match TimeOf::of(&of) {
                    Ok(time) => self.times.extend(time.map(|time| time.since_before(missed_ns))),
                    Err(error) => refused.push((*cpu, no_clock(error))),
                }
            }
        }
        refused.sort_by_key(|(cpu, _)| *cpu);
        refused.dedup_by_key(|(cpu, _)| *cpu);
        refused
    }

    /// The stretch of this turn is over. What cannot be read is in its next one.
    fn add(&mut self, turn: usize, at_work: bool, odds: &[f64]) {
        let counted = self.turns[turn].count(at_work, Duration::ZERO);
        let counted: Result<Vec<GroupCount>, Error> = counted.into_iter().collect();
        let Ok(kinds) = counted.as_ref().map_err(Clone::clone).and_then(by_pmu) else { return };
        let timed = self.timed[turn].take();
        let mut running_ns = 0;
        for (_, StatFigures { sum, .. }) in kinds {
            running_ns += sum.time_running_ns;
            let nodes = sum.decode_tree().unwrap_or_default();
            self.over.add(turn, &nodes, sum.slots, (sum.time_enabled_ns, sum.time_running_ns), odds);
            self.over.add_counts(turn, &sum, &timed, odds);
            if sum.slots > 0 {
                self.sample = sum.last;
            }
        }
        // (several threads run at a time, or none does for a while)
        let ns = running_ns.min(self.since.elapsed().as_nanos() as u64);
        self.lengths.add(turn, ns, odds);
    }

    /// What was counted so far: the stretch is over.
    pub fn read(&mut self, at_work: bool) -> Reading {
        self.next(at_work);
        let enabled: u64 = self.times.iter().map(TimeOf::ns).sum();
        // (A CPU is online all the time, idle or busy, counted or refused: how much of that is between turns cannot be told.)
        if !self.times.iter().any(|time| matches!(time.of, GroupTarget::Cpu(_))) {
            self.over.gap_ns = enabled.saturating_sub(self.over.enabled_ns.max(self.over.running_ns));
        }
        let sample = Sample {
            slots: self.over.slots,
            time_enabled_ns: enabled.max(self.over.running_ns),
            time_running_ns: self.over.running_ns,
            ..self.sample
        };
        Reading::in_turns(sample, Rc::new(self.over.clone()))
    }

    /// What was counted last.
    pub fn last(&self) -> &Reading {
        &self.last.0
    }

    /// What was counted since the last time, `at` this time from the start.
    pub fn count(&mut self, at_work: bool, at: Duration) -> Option<GroupCount<'_>> {
        let to = self.read(at_work);
        let (from, since) = std::mem::replace(&mut self.last, (to.clone(), at));
        Some(GroupCount { group: self.group()?, since, from, to })
    }
}

/// What groups are not counted, and each reason once: of dozens it may be the same.
fn parts_refused(refused: &[Error]) -> Vec<String> {
    let common = |why: &Error| match &*why.reason().why {
        "" => why.to_string(),
        why => why.into(),
    };
    let mut lines: Vec<(String, String, usize)> = Vec::new();
    for why in refused {
        match lines.iter_mut().find(|(reason, ..)| *reason == common(why)) {
            Some((.., more)) => *more += 1,
            None => lines.push((common(why), why.to_string(), 0)),
        }
    }
    let line = |(_, first, more)| match more {
        0 => format!("a part of the tree is not counted: {first}"),
        more => format!("parts of the tree are not counted: {first}; nor {more} more, for the same reason"),
    };
    lines.into_iter().map(line).collect()
}

/// What groups measure, each of its kind of core.
fn told_by(groups: &Groups) -> Vec<Node> {
    groups.all.iter().flat_map(|group| group.nodes().unwrap_or_default()).collect()
}

fn no_clock(error: io::Error) -> Error {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    Error::new(
        -errno,
        format!("no event tells how long the groups were to count: perf_event_open(2): {error}"),
    )
}
