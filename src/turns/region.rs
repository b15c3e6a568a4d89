//! A region of a thread whose groups take turns: each execution is of one group, and a turn ends where an execution does. Which group is next
//! is any of them, or what drilling down is worth. Groups are opened when their first turn comes.
#![forbid(unsafe_code)]

use super::drill::DrillDown;
use super::lengths::TurnLengths;
use super::stretches::Stretches;
use crate::error::{Error, Result};
use crate::handle::TopDown;
use crate::model::metrics::TD_NODE_NONE;
use crate::model::{DEEPEST_PUBLISHED, DeepTree, deep_tree, metric, slots_per_ns, subtrees_of_level};
use crate::options::{Options, SourceKind, Target, TurnPart, WantedNodes};
use crate::rotation::Rotation;
use crate::sum::Sum;
use crate::sys::{identity, short};
use crate::tree::{self, Node};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A turn is no shorter on average: 200 executions of a millisecond tell nodes of four groups.
const FIRST: Duration = Duration::from_millis(2);

thread_local! {
    /// A region of this thread is open: another one's groups would share the counters with its.
    static IS_OPEN: Arc<AtomicBool> = Arc::default();
}

/// The thread's only region, as long as it is open, whichever thread closes it.
struct OnlyOne(Arc<AtomicBool>);

impl OnlyOne {
    fn new() -> Result<OnlyOne> {
        let is_open = IS_OPEN.with(Arc::clone);
        if is_open.swap(true, Relaxed) {
            return Err(Error::errno(
                libc::EBUSY,
                "another region of this thread has groups that take turns",
            )
            .why("both would have half of the counters")
            .remedy("close it first (td_turns_close)"));
        }
        Ok(OnlyOne(is_open))
    }
}

impl Drop for OnlyOne {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// A group, opened or not.
struct GroupInTurns {
    /// None: whole levels.
    part: Option<TurnPart>,
    td: Option<TopDown>,
    is_refused: bool,
    /// What it has counted in executions, and what it had at the end of its last turn.
    sum: Sum,
    then: Sum,
}

/// Which group is next.
enum Choice {
    /// Each as often as the others.
    Round,
    /// What is worth it.
    Drill(Box<DrillDown>),
}

/// A region of the calling thread.
pub struct RegionTurns {
    options: Options,
    groups: Vec<GroupInTurns>,
    now: usize,
    /// An execution has begun.
    is_begun: bool,
    choice: Choice,
    /// How likely each was to be the turn that is now; empty: each as the others.
    odds: Vec<f64>,
    rotation: Rotation,
    lengths: TurnLengths,
    /// When this turn began, by its group's clock, and how long it lasts.
    begun_ns: u64,
    length_ns: u64,
    over: Stretches,
    tree: &'static DeepTree,
    /// Nodes that were named.
    named: Vec<u32>,
    slots_per_cycle: u32,
    _only: OnlyOne,
}

fn unsupported(what: impl Into<Cow<'static, str>>) -> Error {
    Error::errno(libc::ENOTSUP, what)
}

/// Groups could not be switched.
fn stopped() -> Error {
    Error::errno(libc::EBADF, "the region is counted no more, as its events could not be switched on again")
        .remedy("decode what was counted (td_turns_decode_tree), and open it anew")
}

/// Options of the group of whole levels. (The registers could not be switched off)
fn whole_levels(options: &Options) -> Options {
    let (nodes, source) = (WantedNodes::default(), SourceKind::Counters);
    Options { level: 0, nodes, in_turns: true, source, ..*options }
}

/// Nodes that a group measures.
fn measured(nodes: impl IntoIterator<Item = Node>) -> Vec<Node> {
    nodes.into_iter().filter(|node| node.measured != 0).collect()
}

impl GroupInTurns {
    fn new(part: Option<TurnPart>) -> GroupInTurns {
        GroupInTurns { part, td: None, is_refused: false, sum: Sum::default(), then: Sum::default() }
    }

    /// Opens it, if it is not open, and counts by it.
    fn begin(&mut self, options: &Options) -> Result<()> {
        if let Some(td) = &self.td {
            return td.switch(true);
        }
        let whole = whole_levels(options);
        self.td = Some(TopDown::open(&self.part.map_or(whole, |part| part.options(&whole)))?);
        Ok(())
    }

    fn stop(&self) -> Result<()> {
        self.td.as_ref().map_or(Ok(()), |td| td.switch(false))
    }

    fn td(&self) -> Result<&TopDown> {
        self.td.as_ref().ok_or_else(stopped)
    }
}

impl RegionTurns {
    /// Of the calling thread. `options` name nodes, or a level down to which all are counted (0: the last); `drills`: of these those that are worth
    /// it.
    ///
    /// # Errors
    /// Those of `td_open`; -ENOTSUP: this CPU has no tree of deeper levels, or none of the nodes is counted; -EBUSY: the thread has another
    /// region.
    pub fn open(options: &Options, drills: bool) -> Result<RegionTurns> {
        if options.target != Target::This || options.simulate || options.inherit {
            return Err(Error::invalid("groups take turns in the calling thread alone, by real counters"));
        }
        if options.source == SourceKind::Registers {
            return Err(Error::invalid(
                "groups that take turns are of general-purpose counters, not of registers",
            ));
        }
        let only = OnlyOne::new()?;
        let no_tree = "no tree of deeper levels is published for this CPU, or its core is not counted";
        let Some(tree) = deep_tree() else {
            TopDown::open(&whole_levels(options))?; // (where there are no counters that is the reason)
            return Err(unsupported(no_tree));
        };
        let level = if options.level == 0 { DEEPEST_PUBLISHED } else { options.level };
        if level > DEEPEST_PUBLISHED {
            return Err(Error::invalid(format!("level {level} is none: 0, or 1 to {DEEPEST_PUBLISHED}")));
        }
        let named: Vec<u32> = options.nodes.ids().collect();
        for id in &named {
            let name = metric(*id).map_or_else(|| format!("node {id}"), |metric| metric.field().into());
            tree.node_of_name(&name).map_err(unsupported)?;
        }
        let deep = tree.groups_of(level, &named);
        // (levels 1 and 2 are there in any case)
        let deepest = named.iter().map(|id| tree.level(*id)).max().unwrap_or(level);
        if deep.is_empty() && deepest > 2 {
            return Err(unsupported("none of these nodes fits into the counters here beside level 1"));
        }
        let of_level_2 = subtrees_of_level(2).into_iter().map(|subtree| TurnPart { subtree, group: 0 });
        let of_deep = deep.iter().map(|group| TurnPart { subtree: TD_NODE_NONE, group: group.number });
        let parts: Vec<TurnPart> = of_level_2.chain(of_deep).collect();
        if parts.len() >= Rotation::most_groups() {
            return Err(unsupported(format!("these nodes take {} groups: name fewer", parts.len())));
        }
        let mut groups: Vec<GroupInTurns> = parts
            .iter()
            .map(|part| GroupInTurns::new(Some(*part)))
            .chain([GroupInTurns::new(None)])
            .collect();
        let whole = groups.len() - 1;
        // (what parts of level 2 tell only their handles say)
        let mut told = Vec::new();
        for group in &mut groups {
            let row = deep.iter().find(|one| group.part.is_some_and(|part| part.group == one.number));
            told.push(match row {
                Some(group) => measured(tree::list(group.place(), group.level)?),
                None => {
                    group.begin(options)?;
                    let nodes = measured(group.td()?.nodes()?);
                    group.stop()?;
                    nodes
                }
            });
        }
        let is_told = |id: &u32| told.iter().flatten().any(|node| node.id == *id);
        if let Some(id) = named.iter().find(|id| !is_told(id)) {
            let name = metric(*id).map_or("", |metric| metric.field());
            return Err(unsupported(format!("{name} is in no group that takes turns"))
                .remedy("count it by a handle of its own (td_options.nodes)"));
        }
        let seed = identity::unique();
        // (the first turn is that of whole levels)
        let only_whole = || (0..=whole).map(|turn| f64::from(u8::from(turn == whole))).collect();
        let drill = if drills { DrillDown::new(&parts, told, seed) } else { None };
        let (choice, over, odds) = match drill {
            Some(drill) => {
                let over = drill.none_yet();
                (Choice::Drill(Box::new(drill)), over, only_whole())
            }
            None => (Choice::Round, Stretches::of_turns(groups.len()), Vec::new()),
        };
        groups[whole].begin(options)?;
        let slots_per_cycle = groups[whole].td()?.info()?.slots_per_cycle;
        let mut region = RegionTurns {
            options: *options,
            rotation: Rotation::new(groups.len(), seed),
            lengths: TurnLengths::new(groups.len(), FIRST),
            now: whole,
            is_begun: false,
            choice,
            odds,
            begun_ns: 0,
            length_ns: 0,
            over,
            tree,
            named,
            slots_per_cycle,
            groups,
            _only: only,
        };
        region.begin_turn()?;
        Ok(region)
    }

    /// An execution begins.
    ///
    /// # Errors
    /// Those of `td_sum_begin`.
    #[inline]
    pub fn begin(&mut self) -> Result<()> {
        let group = &mut self.groups[self.now];
        let Some(td) = &group.td else { return Err(stopped()) };
        td.begin_execution(&mut group.sum)?;
        self.is_begun = true;
        Ok(())
    }

    /// It ends; so does the turn, if it has lasted long enough.
    ///
    /// # Errors
    /// Those of `td_sum_end`.
    #[inline]
    pub fn end(&mut self) -> Result<()> {
        let group = &mut self.groups[self.now];
        let Some(td) = &group.td else { return Err(stopped()) };
        self.is_begun = false;
        let ended = td.end_execution(&mut group.sum)?;
        if ended.ns.wrapping_sub(self.begun_ns) < self.length_ns {
            return Ok(());
        }
        self.next()
    }

    /// The nodes over all executions that have ended: those that were measured, and those that were named.
    ///
    /// # Errors
    /// Those of `td_sum_decode_tree`; -EINVAL: an execution has not ended.
    pub fn nodes(&mut self) -> Result<Vec<Node>> {
        if self.is_begun {
            return Err(Error::invalid("an execution of the region has not ended"));
        }
        let group = &self.groups[self.now];
        if group.td.is_some() && group.sum.executions > group.then.executions {
            self.next()?;
        }
        // (in parts of executions in which others held the counters any clock and all slots may have been)
        let (enabled, running) = (self.over.enabled_ns, self.over.running_ns);
        let uncounted = enabled.saturating_sub(running) as f64 * slots_per_ns(self.slots_per_cycle);
        let part = if uncounted > 0.0 { uncounted / (uncounted + self.over.slots as f64) } else { 0.0 };
        let mut nodes = self.over.nodes(part);
        nodes.retain(|node| !self.tree.is_part(node.id));
        nodes.iter_mut().for_each(|node| node.running = running as f64 / enabled.max(1) as f64);
        let is_missing = |id: &&u32| !nodes.iter().any(|node| node.id == **id);
        let missing: Vec<Node> =
            self.named.iter().filter(is_missing).map(|id| self.unmeasured(*id)).collect();
        nodes.extend(missing);
        short::sort_by_key(&mut nodes, |node| (node.level, node.parent, node.id));
        Ok(nodes)
    }

    /// A node of which nothing is known.
    fn unmeasured(&self, id: u32) -> Node {
        Node {
            size: size_of::<Node>() as u32,
            id,
            parent: self.tree.parent(id),
            level: self.tree.level(id),
            unit: self.tree.unit(id),
            value: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
            ..Node::default()
        }
    }

    /// The turn is over, and the next begins. (Where its group cannot be opened another's does.)
    #[cold]
    #[inline(never)]
    fn next(&mut self) -> Result<()> {
        let group = &mut self.groups[self.now];
        let in_turn = group.sum.since(&group.then);
        // (of one in which nothing was counted nothing is known)
        let nodes = in_turn.decode_tree().unwrap_or_default();
        group.then = group.sum;
        let times = (in_turn.time_enabled_ns, in_turn.time_running_ns);
        self.over.add(self.now, &nodes, in_turn.slots, times, &self.odds);
        self.lengths.add(self.now, in_turn.time_enabled_ns, &self.odds);
        loop {
            let (next, odds) = self.choose();
            if next == self.now {
                self.odds = odds;
                break;
            }
            self.groups[self.now].stop()?;
            match self.groups[next].begin(&self.options) {
                Ok(()) => {
                    (self.now, self.odds) = (next, odds);
                    break;
                }
                Err(_) => {
                    self.groups[next].is_refused = true;
                    if let Choice::Drill(drill) = &mut self.choice {
                        drill.exclude(next);
                    }
                    let group = &mut self.groups[self.now];
                    if let Err(why) = group.begin(&self.options) {
                        group.td = None; // (what it does not count is not to look like nothing)
                        return Err(why);
                    }
                }
            }
        }
        self.begin_turn()
    }

    /// The next turn, of those that can come, and how likely each was.
    fn choose(&mut self) -> (usize, Vec<f64>) {
        match &mut self.choice {
            Choice::Drill(drill) => drill.choose(&self.over),
            Choice::Round => loop {
                let next = self.rotation.choose();
                if !self.groups[next].is_refused {
                    return (next, Vec::new());
                }
            },
        }
    }

    /// The turn that is now begins.
    fn begin_turn(&mut self) -> Result<()> {
        self.begun_ns = self.groups[self.now].td()?.read()?.time_enabled_ns;
        let mean = self.lengths.next(&self.odds);
        self.length_ns = self.rotation.length(mean.as_nanos() as u64);
        Ok(())
    }
}
