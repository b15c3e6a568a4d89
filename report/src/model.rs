//! What all reports show: figures of regions, threads and processes, merged from the sums in their table files.
#![forbid(unsafe_code)]

use crate::account::{Account, Level1, Level2};
use crate::nodes::{self, Kind};
use crate::{sum, verdict};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use topdown_table::{EXECED, EXITED, Entry, Header, THREAD, Table, text};

/// Version of the JSON report's schema (docs/report.md): another one has other names or meanings.
pub const SCHEMA: u32 = 1;

/// A report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `SCHEMA`.
    pub schema: u32,
    /// Version of this library.
    pub version: &'static str,
    /// What was measured with; more than one if the processes had different ones.
    pub machines: Vec<Machine>,
    /// All processes together; exclusive is what ran in no region.
    pub whole: Item,
    /// All regions, over contexts, threads and processes; the largest first.
    pub regions: Vec<Region>,
    /// In the order in which they began.
    pub processes: Vec<Process>,
    /// The nodes of the tree of metrics that any of the figures has, parents before their children.
    pub nodes: Vec<Kind>,
}

/// What a process was measured with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Brand string of the CPU.
    pub cpu: String,
    /// Name of the core.
    pub core: String,
    /// Name of the PMU.
    pub pmu: String,
    /// "rdpmc", "read" or "simulated".
    pub path: &'static str,
    /// Deepest level.
    pub level: u32,
    /// Pipeline slots per cycle; 0 if not known.
    pub slots_per_cycle: u32,
    /// Wanted bound on each share's error.
    pub max_error: f64,
    /// Part of the time that may go into windows.
    pub max_overhead: f64,
    /// Why readings are not RDPMC.
    pub note: String,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// By exit or a relative, or the return from main.
    Exited,
    /// By exec.
    Execed,
    /// By a signal, or it still runs.
    Killed,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// The command.
    pub command: String,
    /// Nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How it ended.
    pub ended: Ended,
    /// Why nothing was measured; empty if something was.
    pub trouble: String,
    /// Regions that found no room.
    pub refused: u64,
    /// Records that cannot be what the library wrote.
    pub damaged: u64,
    /// Which of the report's machines; none if nothing was measured.
    pub machine: Option<usize>,
    /// All threads together.
    #[serde(flatten)]
    pub item: Item,
    /// Its threads.
    pub threads: Vec<Thread>,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// Its id.
    pub tid: i32,
    /// How many threads were before it, whose figures these are, too.
    pub before: u64,
    /// Its name.
    pub name: String,
    /// Whether it ended, or its process did, in an orderly way or by exec; if not, regions are what they were when their last execution
    /// ended.
    pub ended: bool,
    /// The thread; exclusive is what ran in no region.
    #[serde(flatten)]
    pub item: Item,
    /// The tree of its regions: each after the one in which it began.
    pub tree: Vec<Node>,
}

/// A region in one place of a thread's tree.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Which of the tree it began in; none: directly in the thread.
    pub parent: Option<usize>,
    /// In how many regions.
    pub depth: usize,
    /// Its figures.
    #[serde(flatten)]
    pub item: Item,
}

/// A region, wherever it was executed.
#[derive(Clone, Debug, Serialize)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Whether other regions began in it, so that exclusive is another thing than inclusive.
    pub nests: bool,
    /// Its figures.
    #[serde(flatten)]
    pub item: Item,
    /// The same for each thread that executed it.
    pub threads: Vec<RegionOfThread>,
}

/// A region in one thread.
#[derive(Clone, Debug, Serialize)]
pub struct RegionOfThread {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// Where in `Report::processes`, and in its threads.
    #[serde(skip)]
    pub place: (usize, usize),
    /// Its figures.
    #[serde(flatten)]
    pub item: Item,
}

/// What is known of a region, a thread, a process, or all.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// How often.
    #[serde(flatten)]
    pub counts: Counts,
    /// With all regions in it.
    pub inclusive: Figures,
    /// Without those.
    pub exclusive: Figures,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Executions that ended, and were not part of another of the same region.
    pub executions: u64,
    /// Those of which it was measured how their slots divide; if fewer, the bound is that of a random sample.
    pub measured: u64,
    /// Executions that were part of another of the same region.
    pub nested: u64,
    /// Executions that began and never ended.
    pub unended: u64,
    /// Ends without a beginning.
    pub unbalanced: u64,
    /// Executions that could not be read.
    pub missed: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        for (all, more) in [
            (&mut self.executions, other.executions),
            (&mut self.measured, other.measured),
            (&mut self.nested, other.nested),
            (&mut self.unended, other.unended),
            (&mut self.unbalanced, other.unbalanced),
            (&mut self.missed, other.missed),
        ] {
            *all = all.saturating_add(more);
        }
    }
}

/// Slots, and where they went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Pipeline slots.
    pub slots: u64,
    /// Their part of all slots of the report; none if there are none.
    pub share: Option<f64>,
    /// Nanoseconds.
    pub time_ns: u64,
    /// Part of the time that the counters were counting; none if there was no time.
    pub running: Option<f64>,
    /// None: nothing was measured.
    pub level_1: Option<Level1>,
    /// None: nothing was measured, or level 1 only.
    pub level_2: Option<Level2>,
    /// The dominant bottleneck in words.
    pub bottleneck: String,
    /// The tree of metrics, as far as it was measured.
    pub tree: nodes::Tree,
}

impl Figures {
    fn new(account: &Account, all: u64) -> Figures {
        let (level_1, level_2, tree) = (account.level_1(), account.level_2(), nodes::Tree(account.tree()));
        Figures {
            slots: account.slots,
            share: (all > 0).then(|| account.slots as f64 / all as f64),
            time_ns: account.time_ns,
            running: account.running(),
            bottleneck: verdict::words(&tree, level_1.as_ref(), level_2.as_ref()),
            level_1,
            level_2,
            tree,
        }
    }
}

/// An item on the way: what adds up.
#[derive(Clone)]
struct Tally {
    counts: Counts,
    inclusive: Account,
    exclusive: Account,
}

impl Tally {
    const NONE: Tally = Tally {
        counts: Counts { executions: 0, measured: 0, nested: 0, unended: 0, unbalanced: 0, missed: 0 },
        inclusive: Account::NONE,
        exclusive: Account::NONE,
    };

    fn add(&mut self, other: &Tally) {
        self.counts.add(&other.counts);
        self.inclusive.add(&other.inclusive);
        self.exclusive.add(&other.exclusive);
    }

    fn item(&self, all: u64) -> Item {
        Item {
            counts: self.counts,
            inclusive: Figures::new(&self.inclusive, all),
            exclusive: Figures::new(&self.exclusive, all),
        }
    }
}

fn total(tallies: impl Iterator<Item = Tally>) -> Tally {
    tallies.fold(Tally::NONE, |mut all, tally| {
        all.add(&tally);
        all
    })
}

/// A place in a thread's tree, on the way.
struct Place<'t> {
    entry: &'t Entry,
    parent: Option<usize>,
    depth: usize,
    /// Not in another of the same name.
    outermost: bool,
    nests: bool,
    tally: Tally,
}

/// A thread's tree in order, its root first. `damaged` counts sums that cannot be.
fn tree<'t>(root: &'t Entry, below: &HashMap<u32, Vec<&'t Entry>>, damaged: &mut u64) -> Vec<Place<'t>> {
    let mut places: Vec<Place<'t>> = Vec::new();
    let mut path: Vec<usize> = Vec::new();
    let mut open: HashMap<&str, u32> = HashMap::new();
    let mut todo = vec![(root, 0)];
    while let Some((entry, depth)) = todo.pop() {
        for left in path.drain(depth..) {
            if let Some(count) = open.get_mut(places[left].entry.name.as_str()) {
                *count -= 1;
            }
        }
        let region = entry.kind != THREAD;
        let outermost = !region || open.get(entry.name.as_str()).is_none_or(|count| *count == 0);
        let account = sum::of(entry).and_then(|sum| Account::new(&sum)).unwrap_or_else(|| {
            *damaged += 1;
            Account::NONE
        });
        let (executions, measured) = (account.executions, account.measured);
        let mut tally = Tally { inclusive: account, ..Tally::NONE };
        tally.counts = Counts {
            executions,
            measured,
            nested: entry.nested,
            unended: entry.unended,
            unbalanced: entry.unbalanced,
            missed: entry.missed,
        };
        if !region {
            tally.inclusive.reaches(entry.seen_slots, entry.seen_ns);
        }
        let children = below.get(&entry.number).map_or(&[][..], Vec::as_slice);
        places.push(Place {
            entry,
            parent: path.last().copied(),
            depth,
            outermost,
            nests: !children.is_empty(),
            tally,
        });
        path.push(places.len() - 1);
        if region {
            *open.entry(&entry.name).or_default() += 1;
        }
        todo.extend(children.iter().rev().map(|child| (*child, depth + 1)));
    }
    places
}

/// Takes from each place what its regions had.
fn exclude(places: &mut [Place], ended: bool) {
    let mut inside = vec![Account::NONE; places.len()];
    for k in (0..places.len()).rev() {
        let counts = places[k].tally.counts;
        // an execution that did not end is not in this region's sum, but regions that it executed are in theirs
        let lacking = places[k].parent.is_some() && (!ended || counts.unended > 0 || counts.missed > 0);
        let tally = &mut places[k].tally;
        let within = std::mem::replace(&mut inside[k], Account::NONE);
        let all = if within.slots > tally.inclusive.slots { within.clone() } else { tally.inclusive.clone() };
        let rest = all.minus(&within);
        tally.exclusive = if lacking && within.slots > 0 { rest.unknown() } else { rest };
        match places[k].parent {
            Some(parent) => inside[parent].add(&all),
            None => places[k].tally.inclusive = all,
        }
    }
}

/// The trees of a process's threads.
fn trees<'t>(table: &'t Table, damaged: &mut u64) -> Vec<Vec<Place<'t>>> {
    let known: HashMap<u32, &Entry> = table.entries.iter().map(|entry| (entry.number, entry)).collect();
    let mut below: HashMap<u32, Vec<&Entry>> = HashMap::new();
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
    let roots = table.entries.iter().filter(|entry| entry.kind == THREAD);
    roots
        .map(|root| {
            let mut places = tree(root, &below, damaged);
            exclude(&mut places, root.ended);
            places
        })
        .collect()
}

fn machine(header: &Header) -> Option<Machine> {
    let path = match header.path {
        1 => "rdpmc",
        2 => "read",
        3 => "simulated",
        _ => return None,
    };
    Some(Machine {
        cpu: text(&header.cpu),
        core: text(&header.core),
        pmu: text(&header.pmu),
        path,
        level: header.level,
        slots_per_cycle: header.slots_per_cycle,
        max_error: f64::from(header.max_error_ppm) / 1e6,
        max_overhead: f64::from(header.max_overhead_ppm) / 1e6,
        note: text(&header.note),
    })
}

#[derive(Default)]
struct Merged {
    nests: bool,
    threads: BTreeMap<(usize, usize), Tally>,
}

impl Report {
    /// Merges table files.
    pub fn new(tables: &[Table]) -> Report {
        let mut order: Vec<&Table> = tables.iter().collect();
        order.sort_by_key(|table| (table.header.started_unix_ns, table.header.pid));
        let mut damaged: Vec<u64> = order.iter().map(|table| table.damaged).collect();
        let trees: Vec<Vec<Vec<Place>>> =
            order.iter().zip(&mut damaged).map(|(table, damaged)| trees(table, damaged)).collect();

        let sum = |threads: &[Vec<Place>]| total(threads.iter().map(|tree| tree[0].tally.clone()));
        let whole = total(trees.iter().map(|threads| sum(threads)));
        let all = whole.inclusive.slots;

        let mut merged: HashMap<&str, Merged> = HashMap::new();
        for (p, threads) in trees.iter().enumerate() {
            for (t, thread) in threads.iter().enumerate() {
                for place in &thread[1..] {
                    let region = merged.entry(&place.entry.name).or_default();
                    region.nests |= place.nests;
                    region.threads.entry((p, t)).or_insert(Tally::NONE).add(&place.flat());
                }
            }
        }

        let mut machines: Vec<Machine> = Vec::new();
        let mut processes = Vec::new();
        for ((table, threads), damaged) in order.iter().zip(&trees).zip(damaged) {
            let header = &table.header;
            let machine = machine(header).map(|machine| {
                machines.iter().position(|known| *known == machine).unwrap_or_else(|| {
                    machines.push(machine);
                    machines.len() - 1
                })
            });
            processes.push(Process {
                pid: header.pid,
                parent: header.parent,
                command: text(&header.command),
                started_unix_ns: header.started_unix_ns,
                ended: match header.ended.load(Relaxed) {
                    EXITED => Ended::Exited,
                    EXECED => Ended::Execed,
                    _ => Ended::Killed,
                },
                trouble: text(&header.trouble),
                refused: header.refused.load(Relaxed).into(),
                damaged,
                machine,
                item: sum(threads).item(all),
                threads: threads.iter().map(|tree| Thread::new(tree, header, all)).collect(),
            });
        }
        let mut regions: Vec<(u64, Region)> = merged
            .into_iter()
            .map(|(name, merged)| {
                let total = total(merged.threads.values().cloned());
                let threads = merged.threads.iter().map(|(&(p, t), tally)| RegionOfThread {
                    pid: processes[p].pid,
                    tid: processes[p].threads[t].tid,
                    place: (p, t),
                    item: tally.item(all),
                });
                let region = Region {
                    name: name.into(),
                    nests: merged.nests,
                    item: total.item(all),
                    threads: threads.collect(),
                };
                (total.inclusive.slots, region)
            })
            .collect();
        regions.sort_by(|(slots, region), (others, other)| {
            others.cmp(slots).then_with(|| region.name.cmp(&other.name))
        });
        let whole = whole.item(all);
        Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            machines,
            nodes: whole.inclusive.tree.0.iter().map(|node| node.kind).collect(),
            whole,
            regions: regions.into_iter().map(|(_, region)| region).collect(),
            processes,
        }
    }
}

impl Place<'_> {
    /// What it adds to the region of its name: within another of that name only what it does itself.
    fn flat(&self) -> Tally {
        if self.outermost {
            return self.tally.clone();
        }
        let Counts { executions, nested, unended, unbalanced, missed, .. } = self.tally.counts;
        let nested = nested.saturating_add(executions);
        Tally {
            counts: Counts { nested, unended, unbalanced, missed, ..Counts::default() },
            inclusive: Account::NONE,
            exclusive: self.tally.exclusive.clone(),
        }
    }
}

impl Thread {
    fn new(tree: &[Place], header: &Header, all: u64) -> Thread {
        let (root, regions) = (&tree[0], &tree[1..]);
        let tree = regions.iter().map(|place| Node {
            name: place.entry.name.clone(),
            parent: place.parent.and_then(|parent| parent.checked_sub(1)),
            depth: place.depth - 1,
            item: place.tally.item(all),
        });
        Thread {
            tid: root.entry.tid,
            before: root.entry.before,
            name: root.entry.name.clone(),
            ended: root.entry.ended || header.ended.load(Relaxed) == EXECED,
            item: root.tally.item(all),
            tree: tree.collect(),
        }
    }
}
