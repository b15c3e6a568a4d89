//! The groups of counters of a thread: the one that counts, and those that take turns with it.
#![forbid(unsafe_code)]

use super::clocks;
use super::handle::ThreadHandle;
use super::node::RegionNode;
use super::turn_clock::TurnClock;
use crate::record::OwnRecord;
use std::cell::{Cell, RefCell};
use topdown::{MOST_TURNS, PeriodTotals, Rotation, Sample, Sum};

/// A group, and what it has in a thread.
#[derive(Clone, Copy)]
pub struct ThreadGroup {
    pub td: ThreadHandle,
    /// The thread's own node in the group's tree, and its record.
    pub root: &'static RegionNode,
    pub record: OwnRecord,
    pub start: Sample,
    /// What the handle said when the record's figures were zero, or would have.
    pub zero: PeriodTotals,
    /// What the threads before this one had, whose records it has.
    pub before: Sum,
    /// Nodes below level 1 that its turns tell; none: all.
    pub nodes: &'static [u32],
}

/// The groups of a thread.
pub struct ThreadGroups {
    td: Cell<ThreadHandle>,
    record: Cell<OwnRecord>,
    zero_slots: Cell<u64>,
    zero_ns: Cell<u64>,
    root: Cell<&'static RegionNode>,
    start: Cell<Sample>,
    before: Cell<Sum>,
    nodes: Cell<&'static [u32]>,
    turns: Cell<Option<&'static Turns>>,
}

/// Groups that take turns.
pub struct Turns {
    groups: [Cell<ThreadGroup>; MOST_TURNS],
    count: usize,
    pub rotation: RefCell<Rotation>,
    clock: Cell<TurnClock>,
}

impl Turns {
    /// Of these groups, at most `MOST_TURNS`; `random`: a seed.
    pub fn new(groups: &[Option<ThreadGroup>; MOST_TURNS], first: ThreadGroup, random: u64) -> Turns {
        let count = groups.iter().flatten().count();
        Turns {
            groups: groups.map(|group| Cell::new(group.unwrap_or(first))),
            count,
            rotation: RefCell::new(Rotation::new(count, random)),
            clock: Cell::default(),
        }
    }

    pub fn groups(&self) -> &[Cell<ThreadGroup>] {
        &self.groups[..self.count]
    }

    /// Changes the clock of the turn that is now.
    #[inline(always)]
    pub fn on_clock(&self, work: impl FnOnce(&mut TurnClock)) {
        let mut clock = self.clock.get();
        work(&mut clock);
        self.clock.set(clock);
    }

    /// Whether the turn that is now has lasted long enough.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        self.clock.get().is_due()
    }
}

impl ThreadGroups {
    /// One group alone.
    pub fn new(group: ThreadGroup) -> ThreadGroups {
        let ThreadGroup { td, root, record, start, zero, before, nodes } = group;
        ThreadGroups {
            td: Cell::new(td),
            record: Cell::new(record),
            zero_slots: Cell::new(zero.slots),
            zero_ns: Cell::new(zero.ns),
            root: Cell::new(root),
            start: Cell::new(start),
            before: Cell::new(before),
            nodes: Cell::new(nodes),
            turns: Cell::new(None),
        }
    }

    /// The handle of the group that is on.
    #[inline(always)]
    pub fn td(&self) -> ThreadHandle {
        self.td.get()
    }

    /// The thread's own node in that group's tree.
    pub fn root(&self) -> &'static RegionNode {
        self.root.get()
    }

    /// Nodes below level 1 that the turns of the group tell that is on; none: all.
    pub fn nodes(&self) -> &'static [u32] {
        self.nodes.get()
    }

    /// The group that is on.
    pub fn now(&self) -> ThreadGroup {
        ThreadGroup {
            td: self.td.get(),
            root: self.root.get(),
            record: self.record.get(),
            start: self.start.get(),
            zero: PeriodTotals { slots: self.zero_slots.get(), ns: self.zero_ns.get() },
            before: self.before.get(),
            nodes: self.nodes.get(),
        }
    }

    /// Another group is on.
    pub fn set(&self, group: &ThreadGroup) {
        let ThreadGroup { td, root, record, start, zero, before, nodes } = *group;
        self.td.set(td);
        self.root.set(root);
        self.record.set(record);
        self.start.set(start);
        self.zero_slots.set(zero.slots);
        self.zero_ns.set(zero.ns);
        self.before.set(before);
        self.nodes.set(nodes);
    }

    /// None: one group counts all the time.
    #[inline(always)]
    pub fn turns(&self) -> Option<&'static Turns> {
        self.turns.get()
    }

    pub fn take_turns(&self, turns: &'static Turns) {
        self.turns.set(Some(turns));
    }

    /// The thread's own nodes: one, or one for each group that takes turns.
    pub fn roots(&self) -> impl Iterator<Item = &'static RegionNode> {
        let turns = self.turns().map_or(&[] as &[_], Turns::groups);
        let alone = turns.is_empty().then(|| self.root());
        turns.iter().map(|group| group.get().root).chain(alone)
    }

    /// So far the thread has come.
    #[inline(always)]
    pub fn saw(&self, seen: PeriodTotals) {
        let record = self.record.get();
        record.seen_slots().set(seen.slots.wrapping_sub(self.zero_slots.get()));
        record.seen_ns().set(seen.ns.wrapping_sub(self.zero_ns.get()));
    }

    /// The thread's own figures, up to this reading, go to its record. (Not inlined: a reading needs the stack that it takes.)
    #[inline(never)]
    pub fn publish(&self, now: &Sample) {
        let (mut sum, start) = (self.before.get(), self.start.get());
        let added = match self.td().counters() {
            Some(_) => sum.add(&start, now).is_ok(),
            None => {
                clocks::add(&mut sum, &start, now);
                true
            }
        };
        if added {
            let root = self.root();
            root.set_sum(sum);
            root.store();
        }
    }

    /// The thread's figures up to now go to its record; it goes on.
    pub fn update(&self) {
        if let Ok(now) = self.td().read() {
            self.publish(&now);
        }
    }
}
