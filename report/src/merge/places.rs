//! Where regions are: the trees of a table's threads, with what was counted of each place.
#![forbid(unsafe_code)]

use crate::account::Account;
use crate::model::{Counts, Figures, Item};
use crate::sum::{self, RecordSource};
use std::collections::HashMap;
use topdown_table::{NONE, THREAD, Table, TableEntry};

/// All that a report is of, of which figures have their shares.
#[derive(Clone, Copy)]
pub(super) struct All {
    pub(super) slots: u64,
    /// Elapsed nanoseconds of threads of which clocks alone tell.
    pub(super) wall_ns: u64,
}

/// An item on the way: what adds up.
#[derive(Clone)]
pub(super) struct ItemTally {
    pub(super) counts: Counts,
    pub(super) inclusive: Account,
    pub(super) exclusive: Account,
}

impl ItemTally {
    pub(super) const NONE: ItemTally = ItemTally {
        counts: Counts {
            executions: 0,
            measured: 0,
            nested: 0,
            unended: 0,
            unbalanced: 0,
            missed: 0,
            split: 0,
            few_turns: false,
        },
        inclusive: Account::NONE,
        exclusive: Account::NONE,
    };

    pub(super) fn add(&mut self, other: &ItemTally) {
        self.counts.add(&other.counts);
        self.inclusive.add(&other.inclusive);
        self.exclusive.add(&other.exclusive);
    }

    /// Without its parts of all.
    pub(super) fn item(&self) -> Item {
        Item {
            counts: Counts { few_turns: self.inclusive.has_few_turns(), ..self.counts },
            inclusive: Figures::new(&self.inclusive),
            exclusive: Figures::new(&self.exclusive),
        }
    }

    /// With its parts of this.
    pub(super) fn item_of(&self, all: All) -> Item {
        let mut item = self.item();
        item.put_into(all);
        item
    }
}

pub(super) fn total(tallies: impl Iterator<Item = ItemTally>) -> ItemTally {
    tallies.fold(ItemTally::NONE, |mut all, tally| {
        all.add(&tally);
        all
    })
}

/// A place in a thread's tree, on the way.
pub(super) struct RegionPlace<'t> {
    pub(super) entry: &'t TableEntry,
    /// Of a thread: it has ended.
    pub(super) ended: bool,
    pub(super) parent: Option<usize>,
    pub(super) depth: usize,
    /// Not in another of the same name that has ended executions.
    pub(super) outermost: bool,
    pub(super) nests: bool,
    /// Executions of regions are in no region's figures, so what it did itself is not known.
    pub(super) lacks: bool,
    pub(super) tally: ItemTally,
}

impl RegionPlace<'_> {
    /// Whether clocks alone tell of it.
    pub(super) fn is_by_clocks(&self) -> bool {
        self.tally.inclusive.elapsed.is_some()
    }
}

/// A thread's tree in order, its root first. `damaged` counts sums that cannot be.
/// `roots`: several, if groups of counters took turns. What each has counted of a region is of one place. `by_clocks`: clocks alone tell.
pub(super) fn tree<'t>(
    roots: Vec<&'t TableEntry>,
    below: &HashMap<u32, Vec<&'t TableEntry>>,
    by_clocks: bool,
    damaged: &mut u64,
) -> Vec<RegionPlace<'t>> {
    let mut places: Vec<RegionPlace<'t>> = Vec::new();
    let mut path: Vec<usize> = Vec::new();
    let mut open: HashMap<&str, u32> = HashMap::new();
    let in_turns = roots.len() > 1;
    let source = match in_turns {
        _ if by_clocks => RecordSource::Clocks,
        true => RecordSource::Turns,
        false => RecordSource::Group,
    };
    let mut turns = Account::NONE;
    for root in roots.iter().filter(|_| in_turns) {
        turns.add(&Account::of_group(&root.core));
    }
    let mut todo = vec![(roots, 0)];
    while let Some((entries, depth)) = todo.pop() {
        let entry = entries[0];
        for left in path.drain(depth..) {
            if places[left].tally.counts.executions > 0 {
                open.entry(places[left].entry.name.as_str()).and_modify(|count| *count -= 1);
            }
        }
        let region = entry.kind != THREAD;
        let outermost = !region || open.get(entry.name.as_str()).is_none_or(|count| *count == 0);
        let mut tally = ItemTally { inclusive: turns.clone(), ..ItemTally::NONE };
        for entry in &entries {
            match tally_of(entry, source) {
                Some(one) => tally.add(&one),
                None => *damaged += 1,
            }
        }
        let children = children_of(&entries, below);
        places.push(RegionPlace {
            entry,
            ended: entries.iter().any(|entry| entry.ended),
            parent: path.last().copied(),
            depth,
            outermost,
            nests: !children.is_empty(),
            lacks: false,
            tally,
        });
        path.push(places.len() - 1);
        // (of one in which no execution ended, as after a longjmp, there is nothing that others could be part of)
        if region && places[places.len() - 1].tally.counts.executions > 0 {
            *open.entry(&entry.name).or_default() += 1;
        }
        todo.extend(children.into_iter().rev().map(|children| (children, depth + 1)));
    }
    places
}

/// What a record adds. None: it cannot be what the library wrote.
pub(super) fn tally_of(entry: &TableEntry, source: RecordSource) -> Option<ItemTally> {
    let mut inclusive = sum::account_of(entry, source)?;
    // (an execution that went on in the next turn is one of that, too; and a thread has a record for each group)
    let of_other_group = entry.kind == THREAD && entry.parent != NONE;
    let pieces = if of_other_group { u64::MAX } else { entry.pieces };
    let whole = |executions: u64| executions.saturating_sub(pieces);
    let counts = Counts {
        executions: whole(inclusive.executions),
        measured: whole(inclusive.measured),
        nested: entry.nested,
        unended: entry.unended,
        unbalanced: entry.unbalanced,
        missed: entry.missed,
        split: entry.split,
        few_turns: false,
    };
    if entry.kind == THREAD && source != RecordSource::Clocks {
        inclusive.reaches(entry.seen_slots, entry.seen_ns);
    }
    Some(ItemTally { counts, inclusive, ..ItemTally::NONE })
}

/// The places below a place: records of one name, if those of the place are of several groups.
pub(super) fn children_of<'t>(
    entries: &[&'t TableEntry],
    below: &HashMap<u32, Vec<&'t TableEntry>>,
) -> Vec<Vec<&'t TableEntry>> {
    let mut children: Vec<Vec<&TableEntry>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (k, entry) in entries.iter().enumerate() {
        for child in below.get(&entry.number).into_iter().flatten().copied() {
            match places.get(child.name.as_str()).filter(|_| k > 0) {
                Some(place) => children[*place].push(child),
                None => {
                    places.insert(&child.name, children.len());
                    children.push(vec![child]);
                }
            }
        }
    }
    children
}

/// Takes from each place what its regions had. `ended`: the thread has, so what was in flight is known.
pub(super) fn exclude(places: &mut [RegionPlace], ended: bool) {
    let mut inside = vec![Account::NONE; places.len()];
    let has_regions = places.len() > 1;
    for k in (0..places.len()).rev() {
        let place = &mut places[k];
        let within = std::mem::replace(&mut inside[k], Account::NONE);
        let has_lost = place.tally.counts.unended > 0 || place.tally.counts.missed > 0;
        // an execution that did not end is not in this region's sum, but regions that it executed are in theirs
        place.lacks |= match place.parent {
            Some(_) => within.is_some() && (has_lost || !ended),
            None => has_regions && !ended,
        };
        let tally = &mut place.tally;
        let all =
            if tally.inclusive.is_less_than(&within) { within.clone() } else { tally.inclusive.clone() };
        let rest = all.minus(&within);
        tally.exclusive = if place.lacks { rest.unknown() } else { rest };
        match place.parent {
            Some(parent) => {
                inside[parent].add(&all);
                places[parent].lacks |= has_lost; // (it is in what that did itself)
            }
            None => tally.inclusive = all,
        }
    }
}

/// The trees of a process's threads.
pub(super) fn trees<'t>(table: &'t Table, damaged: &mut u64) -> Vec<Vec<RegionPlace<'t>>> {
    let known: HashMap<u32, &TableEntry> = table.entries.iter().map(|entry| (entry.number, entry)).collect();
    let mut below: HashMap<u32, Vec<&TableEntry>> = HashMap::new();
    for entry in table.entries.iter().filter(|entry| entry.kind != THREAD) {
        // a region is taken into use after the one in which it begins, so there are no circles
        let parent = known.get(&entry.parent).filter(|parent| {
            let of_thread = if parent.kind == THREAD { parent.number } else { parent.thread };
            parent.number < entry.number && of_thread == entry.thread
        });
        match parent {
            Some(parent) => below.entry(parent.number).or_default().push(entry),
            None => *damaged += 1,
        }
    }
    let roots = || table.entries.iter().filter(|entry| entry.kind == THREAD);
    // (a group's root is taken into use after that of the thread's first group)
    let first = |root: &TableEntry| {
        let is_first = |other: &&&TableEntry| other.kind == THREAD && other.number < root.number;
        known.get(&root.parent).filter(is_first).map(|other| other.number)
    };
    let mut others: HashMap<u32, Vec<&TableEntry>> = HashMap::new();
    for root in roots() {
        if let Some(number) = first(root) {
            others.entry(number).or_default().push(root);
        }
    }
    roots()
        .filter(|root| first(root).is_none())
        .map(|root| {
            let turns = others.remove(&root.number).unwrap_or_default();
            let by_clocks = table.header.time_alone != 0;
            let mut places = tree([vec![root], turns].concat(), &below, by_clocks, damaged);
            let ended = places[0].ended;
            exclude(&mut places, ended);
            places
        })
        .collect()
}
