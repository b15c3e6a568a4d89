//! A level that no group of counters holds whole: groups of its subtrees take turns, a stretch of time each, in a random order, and each
//! counts level 1 beside. Level 1 is so of all stretches. What is below is of a part of them, as a share of its parent there: its bound
//! has four standard errors of such a sample more (docs/error-bound.md).
#![forbid(unsafe_code)]

use super::clock::TaskClock;
use super::group::{Counted, Groups, by_pmu};
use super::table::{Columns, Row, Style};
use super::watch::{Until, watch};
use super::whom::{Ending, Whom};
use super::{Arguments, Counting, Show, failed};
use crate::run::Failure;
use crate::say;
use crate::stat::outside::Loss;
use crate::sys::{self, End, Interrupts};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::{Duration, Instant};
use topdown::{Error, Node, Options, Sum, TD_NODE_NONE};
use topdown_report::Format;
use topdown_report::model::Run;

/// A stretch is shorter than twice this; how long is left to chance, as what is counted may have a period.
const STRETCH: Duration = Duration::from_millis(20);
/// Of fewer stretches a node is not measured: their spread tells nothing.
const FEWEST: u64 = 8;

/// What was counted of a node, and of its parent, in the stretches in which both were: sums, squares and products, in slots.
#[derive(Clone, Copy, Default)]
struct NodeTally {
    stretches: u64,
    own: f64,
    parent: f64,
    own_own: f64,
    own_parent: f64,
    parent_parent: f64,
    /// How far a bound is from the figure.
    far: f64,
    slots: f64,
}

/// A share, with its bound.
#[derive(Clone, Copy)]
struct NodeShare {
    value: f64,
    low: f64,
    high: f64,
}

impl NodeShare {
    const ALL: NodeShare = NodeShare { value: 1.0, low: 1.0, high: 1.0 };

    fn far(&self) -> f64 {
        (self.value - self.low).max(self.high - self.value)
    }
}

impl NodeTally {
    fn add(&mut self, node: &Node, parent: f64, slots: f64) {
        let own = node.value * slots;
        self.stretches += 1;
        self.own += own;
        self.parent += parent;
        self.own_own += own * own;
        self.own_parent += own * parent;
        self.parent_parent += parent * parent;
        self.far += slots * (node.value - node.low).max(node.high - node.value);
        self.slots += slots;
    }

    /// The share of all slots, where the parent has this one. `stretches` and `slots`: of all.
    fn share(&self, parent: &NodeShare, stretches: u64, slots: f64) -> Option<NodeShare> {
        if self.parent <= 0.0 || self.stretches < stretches.min(FEWEST) {
            return None;
        }
        let ratio = self.own / self.parent;
        let sampled = if self.stretches == stretches {
            0.0
        } else {
            let n = self.stretches as f64;
            let squares = self.own_own - 2.0 * ratio * self.own_parent + ratio * ratio * self.parent_parent;
            let left_out = (1.0 - self.slots / slots).max(0.0);
            4.0 * (squares.max(0.0) * n / (n - 1.0) * left_out).sqrt() / self.parent
        };
        let bound = parent.value * (self.far / self.parent + sampled) + ratio * parent.far();
        let value = ratio * parent.value;
        Some(NodeShare { value, low: (value - bound).max(0.0), high: (value + bound).min(1.0) })
    }
}

/// Stretches that are over.
#[derive(Default)]
struct Stretches {
    /// The last of them.
    last: Sum,
    count: u64,
    slots: u64,
    running_ns: u64,
    /// Nodes, parents before children, each with its parent.
    nodes: Vec<(u32, u32, u32, NodeTally)>,
}

impl Stretches {
    /// What was counted in one.
    fn add_sum(&mut self, sum: &Sum) {
        self.running_ns += sum.time_running_ns;
        self.add(&sum.decode_tree().unwrap_or_default(), sum.slots);
        if sum.slots > 0 {
            self.last = *sum;
        }
    }

    /// The part of all slots that may have passed uncounted, if the groups were to count for so long.
    fn uncounted(&self, enabled: u64) -> f64 {
        let (slots, time_running_ns) = (self.slots, self.running_ns);
        let all = Sum { slots, time_enabled_ns: enabled, time_running_ns, ..self.last };
        let uncounted = all.uncounted_slots();
        if uncounted > 0.0 { uncounted / (uncounted + slots as f64) } else { 0.0 }
    }

    /// Of one without a slot nothing is known.
    fn add(&mut self, nodes: &[Node], slots: u64) {
        if slots == 0 || nodes.is_empty() {
            return;
        }
        self.count += 1;
        self.slots += slots;
        let value = |id: u32| match id {
            TD_NODE_NONE => Some(1.0),
            _ => nodes.iter().find(|node| node.id == id && node.measured != 0).map(|node| node.value),
        };
        for node in nodes.iter().filter(|node| node.measured != 0) {
            let Some(parent) = value(node.parent) else { continue };
            let place = self.nodes.iter().position(|(id, ..)| *id == node.id).unwrap_or_else(|| {
                self.nodes.push((node.id, node.parent, node.level, NodeTally::default()));
                self.nodes.sort_by_key(|(_, _, level, _)| *level);
                self.nodes.iter().position(|(id, ..)| *id == node.id).expect("it was put there")
            });
            self.nodes[place].3.add(node, parent * slots as f64, slots as f64);
        }
    }

    /// The share of each node, where so much of the slots was not counted.
    fn shares(&self, uncounted: f64) -> Vec<(u32, u32, NodeShare)> {
        let mut shares: Vec<(u32, u32, NodeShare)> = Vec::new();
        for (id, parent, level, tally) in &self.nodes {
            let of_parent = match *parent {
                TD_NODE_NONE => Some(NodeShare::ALL),
                parent => shares.iter().find(|(id, ..)| *id == parent).map(|(.., share)| *share),
            };
            let share = of_parent.and_then(|of| tally.share(&of, self.count, self.slots as f64));
            shares.extend(share.map(|share| (*id, *level, share)));
        }
        let counted = 1.0 - uncounted;
        for (.., share) in &mut shares {
            share.low *= counted;
            share.high = (share.high * counted + uncounted).min(1.0);
        }
        shares
    }
}

/// Groups that take turns.
struct Rotation {
    turns: Vec<Groups>,
    now: usize,
    /// Who has not yet had a turn in this round.
    to_come: Vec<usize>,
    clocks: Vec<TaskClock>,
    over: Stretches,
}

impl Rotation {
    /// What `open` opens with the options of each turn; where one cannot be, a line says so.
    fn open(
        options: &Options,
        subtrees: &[u32],
        mut open: impl FnMut(&Options) -> Result<Groups, Error>,
    ) -> Result<Rotation, Error> {
        let whole = Options { level: 0, ..*options };
        let parts = subtrees.iter().map(|subtree| Options { level: 0, subtree: *subtree, ..*options });
        let (mut turns, mut refused) = (Vec::new(), None);
        for part in parts.chain([whole]) {
            match open(&Options { off: !turns.is_empty(), ..part }) {
                Ok(groups) => turns.push(groups),
                Err(why) => {
                    say(&format!("a part of level {} is not counted: {why}", options.level));
                    refused = Some(why);
                }
            }
        }
        match refused {
            Some(why) if turns.is_empty() => Err(why),
            _ => Ok(Rotation {
                turns,
                now: 0,
                to_come: Vec::new(),
                clocks: Vec::new(),
                over: Stretches::default(),
            }),
        }
    }

    fn of_command(pid: i32, options: &Options, subtrees: &[u32]) -> Result<Rotation, Error> {
        let mut rotation =
            Rotation::open(options, subtrees, |options| Groups::of_command(pid, options, &[]))?;
        rotation.clocks.push(TaskClock::of_command(pid).map_err(no_clock)?);
        Ok(rotation)
    }

    fn of(whom: &Whom, options: &Options, subtrees: &[u32]) -> Result<Rotation, Error> {
        let mut rotation = Rotation::open(options, subtrees, |options| whom.open(options, &[]))?;
        let clocks = rotation.turns[0].all.iter().filter_map(|group| TaskClock::of(&group.of).transpose());
        rotation.clocks = clocks.collect::<io::Result<_>>().map_err(no_clock)?;
        rotation.turns[0].count(true, Duration::ZERO); // what was counted before a clock went
        Ok(rotation)
    }

    /// The next group's turn.
    fn next(&mut self, at: Duration) {
        if self.to_come.is_empty() {
            self.to_come = (0..self.turns.len()).collect();
        }
        let any = RandomState::new().hash_one(()) as usize % self.to_come.len();
        let next = self.to_come.swap_remove(any);
        let last = std::mem::replace(&mut self.now, next);
        if next != last {
            self.turns[last].switch(false);
            self.turns[next].switch(true);
        }
        self.count(last, true, at);
    }

    /// The stretch of this turn is over. What cannot be read is in its next one.
    fn count(&mut self, turn: usize, at_work: bool, at: Duration) {
        let counted: Result<Vec<Counted>, Error> = self.turns[turn].count(at_work, at).into_iter().collect();
        let Ok(kinds) = counted.and_then(|counted| {
            by_pmu(&counted)
                .map(|kinds| kinds.into_iter().map(|(_, figures)| figures.sum).collect::<Vec<_>>())
        }) else {
            return;
        };
        for sum in kinds {
            self.over.add_sum(&sum);
        }
    }

    /// All is over, but for what goes on.
    fn end(&mut self, at: Duration) {
        self.turns[self.now].switch(false);
        self.count(self.now, true, at);
    }

    fn columns(&self, of_cpus: bool) -> Columns {
        let mut columns = Columns { cpus: !of_cpus, ..Columns::default() };
        for group in self.turns.iter().flat_map(|groups| &groups.all) {
            columns.add(&group.nodes().unwrap_or_default());
        }
        columns
    }

    /// Nanoseconds of all that the groups were to count. None: not known, as a CPU has gone offline.
    fn enabled_ns(&self) -> Option<u64> {
        let enabled: Option<u64> = self.clocks.iter().map(TaskClock::enabled_ns).sum();
        enabled.map(|enabled| enabled.max(self.over.running_ns))
    }

    /// `enabled`: nanoseconds in which the groups were to count.
    fn row(&self, columns: &Columns, wall: Duration, enabled: u64) -> Row {
        let running = self.over.running_ns as f64 / enabled.max(1) as f64;
        let shares = self.over.shares(self.over.uncounted(enabled));
        let find = |id: u32| shares.iter().find(|(node, ..)| *node == id).map(|(.., share)| share.value);
        let error = |level: u32| {
            let far = shares.iter().filter(|(_, of, _)| *of == level).map(|(.., share)| share.far());
            far.reduce(f64::max)
        };
        Row {
            time: wall.as_secs_f64(),
            slots: self.over.slots,
            shares: columns.nodes.iter().map(|(id, _)| find(*id)).collect(),
            error: [error(1), error(2), error(3)],
            running: (enabled > 0).then_some(running.min(1.0)),
            cpus: (!wall.is_zero()).then(|| enabled as f64 / wall.as_nanos() as f64),
            seconds: wall.as_secs_f64(),
            ..Row::default()
        }
    }
}

fn no_clock(error: io::Error) -> Error {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    Error::new(
        -errno,
        format!("no event tells how long the groups were to count: perf_event_open(2): {error}"),
    )
}

/// How long the next stretch is.
fn stretch() -> Duration {
    let part = (RandomState::new().hash_one(()) % 1000) as u32;
    STRETCH / 2 + STRETCH * part / 1000
}

impl Arguments {
    /// The subtrees that take turns; none: one group holds the level, or none does.
    pub(super) fn turns(&self) -> Vec<u32> {
        self.what.td_level.map_or(Vec::new(), topdown::subtrees_of_level)
    }
}

impl Counting<'_> {
    /// Counts a level in turns: one row.
    pub(super) fn in_turns(&mut self, subtrees: &[u32]) -> Result<End, Failure> {
        let arguments = self.arguments;
        let several =
            arguments.by().is_some() || arguments.repeat.is_some() || arguments.interval_print.is_some();
        if several || self.endpoint.is_some() || arguments.timeline.is_some() {
            return Err(failed(
                "--td-level: groups take turns for this level here, which gives one row of all; --subtree counts a part of it all the time",
            ));
        }
        if let Show::Report(format) = self.show {
            self.show = Show::Rows(match format {
                Format::Text => Style::Text,
                Format::Csv => Style::Separated(",".into()),
                Format::Json => Style::JsonLines,
                _ => {
                    return Err(failed(
                        "--td-level: this level is counted in turns here; its row is a text, .csv or .json",
                    ));
                }
            });
        }
        self.in_turns = true;
        let options = arguments.options(&self.show);
        match arguments.whom() {
            None => self.command_in_turns(&options, subtrees),
            Some(whom) => self.others_in_turns(&whom, &options, subtrees),
        }
    }

    fn command_in_turns(&mut self, options: &Options, subtrees: &[u32]) -> Result<End, Failure> {
        let watched = |pid| Rotation::of_command(pid, options, subtrees);
        let (ran, rotation) = self.run(watched, |_, rotation, at| {
            rotation.as_mut().ok()?.next(at);
            Some(stretch())
        })?;
        match rotation {
            Err(why) => self.nothing(&why.to_string(), Run::default()),
            Ok(mut rotation) => {
                rotation.end(ran.wall);
                let loss = Loss::of_unwatched(&ran);
                let enabled = rotation.enabled_ns().map(|enabled| enabled + loss.of(enabled));
                self.show_turns(&rotation, ran.wall, enabled, false);
            }
        }
        Ok(ran.end)
    }

    fn others_in_turns(&mut self, whom: &Whom, options: &Options, subtrees: &[u32]) -> Result<End, Failure> {
        sys::raise_descriptors();
        let endings = whom.endings().map_err(failed)?;
        let mut rotation = Rotation::of(whom, options, subtrees).map_err(failed)?;
        let (end, wall) = if self.arguments.command.is_empty() {
            let interrupts = sys::interrupts().map_err(failed)?;
            let start = Instant::now();
            let ends = endings.iter().map(Ending::descriptor).collect();
            let interrupt = Some(Interrupts::descriptor(&interrupts));
            let until = Until { start, ends, interrupt, timeout: self.arguments.timeout() };
            watch(until, Some(STRETCH), |at| {
                rotation.next(at);
                Some(stretch())
            });
            (End::Status(0), start.elapsed())
        } else {
            let (ran, ()) = self.run(
                |_| (),
                |_, (), at| {
                    rotation.next(at);
                    Some(stretch())
                },
            )?;
            (ran.end, ran.wall)
        };
        rotation.end(wall);
        self.show_turns(&rotation, wall, rotation.enabled_ns(), matches!(whom, Whom::Cpus(_)));
        Ok(end)
    }

    fn show_turns(&mut self, rotation: &Rotation, wall: Duration, enabled: Option<u64>, of_cpus: bool) {
        let columns = rotation.columns(of_cpus);
        let row = enabled.map(|enabled| rotation.row(&columns, wall, enabled));
        self.columns = Some(columns);
        let Some(row) = row else {
            say(
                "nothing is shown: how long the groups were to count is not known, as a CPU has gone offline",
            );
            return self.empty();
        };
        self.write(&[row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u32, parent: u32, level: u32, value: f64) -> Node {
        Node {
            id,
            parent,
            level,
            measured: 1,
            value,
            low: value - 0.001,
            high: value + 0.001,
            ..Node::default()
        }
    }

    /// Stretches of a program that starves in one half of the time, and of that by latency in every second part.
    fn starving(stretches: u32) -> Stretches {
        let mut over = Stretches::default();
        for k in 0..stretches {
            let starved = f64::from(k / 2 % 2) * 0.8;
            let of_part = node(2, 1, 2, starved * 0.25);
            let nodes = [node(1, TD_NODE_NONE, 1, starved), of_part];
            over.add(&nodes[..1 + k as usize % 2], 1000);
        }
        over
    }

    #[test]
    fn a_node_that_was_counted_in_turns_has_the_share_of_its_parent_and_a_wider_bound() {
        let shares = starving(64).shares(0.0);
        let [(1, 1, all), (2, 2, part)] = shares[..] else { panic!("{}", shares.len()) };
        assert!(
            (all.value - 0.4).abs() < 1e-9 && (all.far() - 0.001).abs() < 1e-9,
            "{} {}",
            all.value,
            all.far()
        );
        assert!((part.value - 0.1).abs() < 1e-9 && part.far() > 0.001 && part.far() < 0.01, "{}", part.far());
        assert!(part.low >= 0.0 && part.high <= 1.0);
    }

    #[test]
    fn what_varies_has_a_wider_bound_and_of_a_few_stretches_nothing_is_told() {
        let mut over = Stretches::default();
        for k in 0..64 {
            let root = node(1, TD_NODE_NONE, 1, 0.4);
            let part = node(2, 1, 2, f64::from(k / 2 % 2) * 0.4);
            over.add(&[root, part][..1 + k as usize % 2], 1000);
        }
        let varying = over.shares(0.0)[1].2;
        assert!(
            (varying.value - 0.2).abs() < 0.01 && varying.far() > 0.08 && varying.far() < 0.16,
            "{}",
            varying.far()
        );
        assert_eq!(starving(14).shares(0.0).len(), 1);
        assert_eq!(Stretches::default().shares(0.0).len(), 0);
    }

    #[test]
    fn time_that_was_not_counted_is_in_every_bound() {
        let share = starving(64).shares(0.1)[0].2;
        assert!((share.low - 0.9 * 0.399).abs() < 1e-9 && (share.high - (0.9 * 0.401 + 0.1)).abs() < 1e-9);
    }
}
