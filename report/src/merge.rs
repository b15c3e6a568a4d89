//! The sums in table files, merged into the model that all reports show.
#![forbid(unsafe_code)]

mod job;
mod places;

use crate::RankPart;
use crate::account::{Account, Gaps};
use crate::cpu_time::{CountedTime, CpuUse};
use crate::model::{
    Cores, CountedCommand, Counts, Figures, Item, Machine, OutsideProcess, Overlap, Process, ProcessEnd,
    Rank, Region, RegionOfThread, Report, Run, SCHEMA, Thread, TimeAlone, TimeFigures, TreeRegion, Whole,
};
use crate::steps::{KERNEL, Means, Step, steps};
use crate::timeline::{Timeline, TimelineInterval};
use crate::{nodes, sum, verdict, words};
use places::{All, ItemTally, RegionPlace, total, trees};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use std::sync::atomic::Ordering::Relaxed;
use topdown::{MovedSlots, Path, Sum, TD_UNIT_SLOTS};
use topdown_table::{EXECED, EXITED, Header, THREAD, Table, text};

impl Figures {
    /// Without their parts of all, which is not known before all is merged.
    fn new(account: &Account) -> Figures {
        let (level_1, level_2, mut tree) = (account.level_1(), account.level_2(), account.tree());
        tree.shrink_to_fit(); // (there may be many of them)
        let tree = nodes::NodeTree(tree);
        Figures {
            time_alone: account.elapsed.map(|elapsed| TimeFigures { elapsed, wall_share: None }),
            lacks: account.lacks,
            slots: account.slots,
            share: None,
            time_ns: account.time_ns,
            running: account.running(),
            bottleneck: verdict::words(&tree, level_1.as_ref(), level_2.as_ref()),
            level_1,
            level_2,
            tree,
        }
    }

    /// What part of all they are.
    fn put_into(&mut self, all: All) {
        let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        match &mut self.time_alone {
            Some(TimeFigures { elapsed, wall_share }) => {
                *wall_share = elapsed.wall_ns.and_then(|wall_ns| part(wall_ns, all.wall_ns));
            }
            None => self.share = part(self.slots, all.slots),
        }
    }
}

impl Item {
    fn put_into(&mut self, all: All) {
        self.inclusive.put_into(all);
        self.exclusive.put_into(all);
    }
}

fn machine(header: &Header) -> Option<Machine> {
    let path =
        [Path::Rdpmc, Path::Read, Path::Simulated].into_iter().find(|path| *path as u32 == header.path)?;
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

struct MergedRegion {
    nests: bool,
    tally: ItemTally,
    threads: Vec<RegionOfThread>,
    /// Of a job, of each rank by its place.
    of_ranks: BTreeMap<usize, ItemTally>,
}

/// What was counted from outside: by a sum for each kind of core, those of the P-cores first.
#[derive(Clone, Default)]
pub struct OutsideCount {
    /// The command.
    pub run: Run,
    /// What counted it; empty: nothing did.
    pub parts: Vec<(Machine, Sum)>,
    /// Nodes of the first of them, where groups took turns: its sum has slots and times alone. (What passed uncounted is not in their bounds)
    pub nodes: Option<Vec<topdown::Node>>,
    /// Of the first of them likewise: between the turns of its groups.
    pub gaps: Gaps,
    /// The parts are of CPUs, each with a time of its own. (Those of threads have one time, in which they are on either kind of core)
    pub of_cpus: bool,
    /// What was counted in intervals, if that was kept.
    pub timeline: Option<Timeline>,
    /// Processes, if they were told apart, the largest first, and then the rest; each with a sum for each kind of core.
    pub processes: Vec<ProcessSums>,
    /// The whole has the level 2 that threads have measured, if it has none of its own.
    pub level_2_of_threads: bool,
}

/// A process's id (none: the rest), its name, and a sum for each kind of core.
pub type ProcessSums = (Option<i32>, String, Vec<Sum>);

impl TimelineInterval {
    /// From what was counted in it; None: it cannot be.
    pub fn new(begin_ns: u64, end_ns: u64, counted: &OutsideCount) -> Option<TimelineInterval> {
        let (_, all) = counted.accounts(&[])?;
        let mut nodes = all.tree();
        nodes.retain(|node| node.kind.level <= 2 && node.kind.unit == TD_UNIT_SLOTS);
        Some(TimelineInterval {
            begin_ns,
            end_ns,
            slots: all.slots,
            time_ns: all.time_ns,
            running: all.running(),
            nodes,
        })
    }
}

impl OutsideCount {
    /// Each kind of core, and all of it; None: they are not sums of this version's. Time in which the program ran and none of the
    /// groups counted may have been on either; of CPUs, each part's is its own. `inside`: of the threads in it, what [`Sum::moved`] says.
    pub(crate) fn accounts(&self, inside: &[(MovedSlots, u64)]) -> Option<(Vec<Account>, Account)> {
        let sums = || self.parts.iter().map(|(_, sum)| sum);
        let running = |sum: &Sum| sum.time_running_ns.min(sum.time_enabled_ns);
        let enabled = sums().map(|sum| sum.time_enabled_ns).max().unwrap_or(0);
        let of_none = enabled.saturating_sub(sums().map(running).sum()).saturating_add(self.run.lost_ns);
        let missing = |sum: &Sum| if self.of_cpus { sum.time_enabled_ns - running(sum) } else { of_none };
        let with = |sum: &Sum, missing: u64| {
            let time_running_ns = running(sum);
            Sum { time_running_ns, time_enabled_ns: time_running_ns + missing, ..*sum }
        };
        // (of what threads lack, the first: those that do the most)
        let of_all =
            |(k, sum): (usize, &Sum)| with(sum, if k == 0 || self.of_cpus { missing(sum) } else { 0 });
        let moved = self.moved(inside, sums().enumerate().map(of_all).map(|sum| sum.uncounted_slots()).sum());
        let account = |(k, sum): (usize, Sum)| match self.nodes.as_ref().filter(|_| k == 0) {
            Some(nodes) => Some(Account::of_nodes(&sum, nodes).with_gaps(&sum, self.gaps)),
            None => Account::of_sum(&sum, &moved),
        };
        let cores: Option<Vec<Account>> =
            sums().map(|sum| with(sum, missing(sum))).enumerate().map(account).collect();
        let mut all = Account::NONE;
        for one in sums().enumerate().map(of_all).enumerate().map(account) {
            all.add(&one?);
        }
        Some((cores?, all))
    }

    /// What threads have counted themselves of what the published metrics correct the parts by. `uncounted`: slots that may be
    /// in theirs alone.
    fn moved(&self, inside: &[(MovedSlots, u64)], uncounted: f64) -> MovedSlots {
        let (mut moved, mut seen) = (MovedSlots { off: uncounted, ..MovedSlots::UNSEEN }, 0u64);
        for (one, slots) in inside {
            moved.add(one);
            seen = seen.saturating_add(*slots);
        }
        let slots: u64 = self.parts.iter().map(|(_, sum)| sum.slots).sum();
        match slots.checked_sub(seen) {
            Some(rest) => MovedSlots { rest: rest as f64, ..moved },
            None => MovedSlots::UNSEEN,
        }
    }
}

/// The sum of accounts.
fn total_of(accounts: &[Account]) -> Account {
    let mut all = Account::NONE;
    accounts.iter().for_each(|account| all.add(account));
    all
}

/// Whether executions of a thread's regions are in no region's figures of slots.
fn lacks(tree: &[RegionPlace]) -> bool {
    tree.first().is_some_and(|root| root.lacks || tree.len() > 1 && root.is_by_clocks())
}

/// So many parts in a thousand are not worth a word.
const FEW: u64 = 10;

/// What the table files of one command, or of one rank of a job, have in all.
struct PartTables {
    /// Of processes that counted slots, and of those of which clocks alone tell.
    wholes: [ItemTally; 2],
    /// Regions that began in no other.
    outermost: Account,
    /// Executions of some thread's regions are in no region's figures of slots.
    lacks: bool,
    /// What threads have counted of what the published metrics correct by.
    moved: Vec<(MovedSlots, u64)>,
    processes: usize,
    /// Clocks alone tell of all of these.
    is_all_time: bool,
}

impl PartTables {
    const NONE: PartTables = PartTables {
        wholes: [ItemTally::NONE, ItemTally::NONE],
        outermost: Account::NONE,
        lacks: false,
        moved: Vec::new(),
        processes: 0,
        is_all_time: true,
    };

    fn add(&mut self, table: &Table, threads: &[Vec<RegionPlace>]) {
        let by_clocks = is_time_alone(&table.header);
        self.wholes[usize::from(by_clocks)].add(&sum_of(threads));
        for place in threads.iter().flatten().filter(|place| place.depth == 1) {
            self.outermost.add(&place.tally.inclusive);
        }
        self.lacks |= threads.iter().any(|tree| lacks(tree));
        let roots = table.entries.iter().filter(|entry| entry.kind == THREAD);
        self.moved.extend(roots.filter_map(|entry| sum::of(entry)?.moved()));
        self.processes += 1;
        self.is_all_time &= by_clocks;
    }
}

/// Table files on the way into a report. What is kept of each are the report's figures: ten thousand files have room.
pub struct Merging {
    parts: Vec<PartTables>,
    /// Of a job, each part's rank and host.
    ranks: Vec<(u32, String)>,
    /// Regions by name: of processes that counted slots, and of those of which clocks alone tell.
    regions: [HashMap<String, MergedRegion>; 2],
    /// Why clocks alone tell.
    reasons: BTreeSet<String>,
    machines: Vec<Machine>,
    processes: Vec<Process>,
    /// Which regions were open when which others ended.
    overlaps: BTreeMap<(String, String), u64>,
}

impl Default for Merging {
    fn default() -> Merging {
        Merging {
            parts: vec![PartTables::NONE],
            ranks: Vec::new(),
            regions: Default::default(),
            reasons: BTreeSet::new(),
            machines: Vec::new(),
            processes: Vec::new(),
            overlaps: BTreeMap::new(),
        }
    }
}

impl Merging {
    /// Of ranks of a job, each a part.
    pub(crate) fn of_ranks(ranks: &[RankPart]) -> Merging {
        Merging {
            parts: ranks.iter().map(|_| PartTables::NONE).collect(),
            ranks: ranks.iter().map(|part| (part.rank, part.host.clone())).collect(),
            ..Merging::default()
        }
    }

    /// Adds a table. They come in the order in which their processes began.
    pub fn add(&mut self, table: &Table) {
        self.add_to(0, table);
    }

    /// The same, to this part.
    pub(crate) fn add_to(&mut self, part: usize, table: &Table) {
        let by_clocks = is_time_alone(&table.header);
        let mut damaged = table.damaged;
        let threads = trees(table, &mut damaged);
        self.parts[part].add(table, &threads);
        if by_clocks {
            self.reasons.insert(text(&table.header.trouble));
        }
        let machine = machine(&table.header).map(|machine| {
            self.machines.iter().position(|known| *known == machine).unwrap_or_else(|| {
                self.machines.push(machine);
                self.machines.len() - 1
            })
        });
        let mut process = Process { damaged, machine, ..Process::new(&table.header, &threads) };
        if let Some((rank, host)) = self.ranks.get(part) {
            (process.rank, process.host) = (Some(*rank), Some(host.clone()));
        }
        for (t, thread) in threads.iter().enumerate() {
            let place = (self.processes.len(), t);
            let rank = self.ranks.get(part).map(|_| part);
            add_regions(&mut self.regions[usize::from(by_clocks)], thread, (process.pid, place), rank);
        }
        self.processes.push(process);
        add_overlaps(&mut self.overlaps, table);
    }

    /// The report of them, and of what was counted from outside: of the whole those figures are taken, unless processes that measured
    /// themselves have seen more of it.
    pub fn report(self, outside: Option<OutsideCount>) -> Report {
        let run = outside.as_ref().map(|outside| outside.run.clone());
        let timeline = outside.as_ref().and_then(|outside| outside.timeline.clone());
        let report = self.report_of_parts(vec![outside], run, &[]);
        Report { timeline: timeline.filter(|_| report.outside.is_some()), ..report }
    }

    /// The same of ranks of a job of `size`.
    pub(crate) fn report_of_ranks(self, mut ranks: Vec<RankPart>, (size, means): (u32, &Means)) -> Report {
        let outside: Vec<_> = ranks.iter_mut().map(|part| part.outside.take()).collect();
        // (what the library alone has measured nobody ran)
        let was_run = |run: &Run| !run.started.is_empty();
        let run = Some(job::run_of(&ranks, &outside, means)).filter(was_run);
        let times = |run: &Run| (run.wall_ns, run.cpu_ns);
        let time_of = |one: &Option<OutsideCount>| {
            one.as_ref().map(|one| &one.run).filter(|run| was_run(run)).map(times)
        };
        let ended: Vec<_> = outside.iter().map(time_of).collect();
        let report = self.report_of_parts(outside, run, &ranks);
        let times = |(rank, ended): (Rank, &Option<(u64, u64)>)| Rank {
            wall_ns: ended.map(|(wall_ns, _)| wall_ns),
            cpu_ns: ended.map(|(_, cpu_ns)| cpu_ns),
            ..rank
        };
        let ranks_with_times = report.ranks.into_iter().zip(&ended).map(times).collect();
        let troubles: BTreeSet<String> =
            ranks.into_iter().map(|part| part.trouble).filter(|trouble| !trouble.is_empty()).collect();
        let trouble = match report.machines.is_empty() && report.trouble.is_empty() {
            true => troubles.into_iter().collect::<Vec<_>>().join("; "),
            false => report.trouble,
        };
        Report { ranks: ranks_with_times, ranks_of: Some(size), trouble, ..report }
    }

    /// `outside`: of each part what was counted from outside. `ranks`: which rank each is; empty: there is one part, of no job.
    fn report_of_parts(
        self,
        outside: Vec<Option<OutsideCount>>,
        run: Option<Run>,
        ranks: &[RankPart],
    ) -> Report {
        let Merging { parts, regions, reasons, mut machines, mut processes, overlaps, .. } = self;
        let parts: Vec<CountedPart> = parts
            .into_iter()
            .zip(outside)
            .map(|(tables, outside)| CountedPart::new(tables, outside))
            .collect();
        let mut whole = total(parts.iter().map(|part| part.slots.clone()));
        let time_alone = total(parts.iter().map(|part| part.time_alone.clone()));
        let is_all_time = parts.iter().all(|part| part.counted.is_none())
            && processes.iter().all(|process| process.time_alone);
        if is_all_time && !processes.is_empty() {
            whole = time_alone.clone();
        }
        let wall_ns = time_alone.inclusive.elapsed.and_then(|elapsed| elapsed.wall_ns).unwrap_or(0);
        let all = All { slots: whole.inclusive.slots, wall_ns };
        let time_alone = (!reasons.is_empty()).then(|| TimeAlone {
            no_slots: reasons.into_iter().collect::<Vec<_>>().join("; "),
            clock: "CLOCK_MONOTONIC",
            whole: (!is_all_time).then(|| time_alone.item_of(all)),
        });

        let mut regions = largest_first(regions, ranks);
        let of_processes = processes.iter_mut().flat_map(Process::items);
        of_processes.chain(regions.iter_mut().flat_map(Region::items)).for_each(|item| item.put_into(all));
        regions
            .iter_mut()
            .filter_map(|region| region.over_ranks.as_mut())
            .for_each(|over| over.of_slowest.put_into(all));
        let (of_ranks, hosts) = job::ranks_of(ranks, &parts, all);
        let outside =
            counted_command(parts, &processes, (&mut machines, run.as_ref()), !ranks.is_empty(), all);
        let is_real = machines.iter().all(|machine| machine.path != Path::Simulated);
        let (whole, next, steps) = whole_of(whole.item_of(all), run.as_ref(), !regions.is_empty(), is_real);
        let counted_nothing = outside.is_some() && all.slots == 0 && processes.is_empty();
        Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            machines,
            nodes: whole.inclusive.tree.0.iter().map(|node| node.kind).collect(),
            next,
            steps,
            whole,
            overlaps: most_frequent_first(overlaps),
            regions,
            processes,
            timeline: None,
            outside,
            run,
            ranks_of: None,
            ranks: of_ranks,
            hosts,
            trouble: if counted_nothing { words::UNCOUNTED.into() } else { String::new() },
            time_alone,
            symbols: BTreeSet::new(),
        }
    }
}

impl Report {
    /// Merges table files, and what was counted from outside.
    pub fn new(tables: &[Table], outside: Option<OutsideCount>) -> Report {
        let mut order: Vec<&Table> = tables.iter().collect();
        order.sort_by_key(|table| (table.header.started_unix_ns, table.header.pid));
        let mut merging = Merging::default();
        order.into_iter().for_each(|table| merging.add(table));
        merging.report(outside)
    }
}

/// What is known of one command, or of one rank of a job.
struct CountedPart {
    /// What was counted from outside, each kind of core, and all of it, if it is no less than what its processes have seen.
    counted: Option<(OutsideCount, Vec<Account>, Account)>,
    /// All of it, as far as slots were counted.
    slots: ItemTally,
    /// Processes of which clocks alone tell.
    time_alone: ItemTally,
    /// They are all that there is of it.
    is_all_time: bool,
    /// Slots that its processes have counted themselves.
    inside: u64,
    processes: usize,
}

impl CountedPart {
    fn new(tables: PartTables, outside: Option<OutsideCount>) -> CountedPart {
        let PartTables { wholes, outermost, lacks, moved, processes, is_all_time } = tables;
        let [mut slots, time_alone] = wholes;
        let inside = slots.inclusive.slots;
        let counted = outside.filter(|outside| !outside.parts.is_empty()).and_then(|outside| {
            let (cores, all) = outside.accounts(&moved)?;
            let more = all.slots >= inside - inside / 1000 * FEW;
            (processes == 0 || more).then_some((outside, cores, all))
        });
        if let Some((count, _, all)) = &counted {
            let mut all = all.clone();
            if count.level_2_of_threads {
                all.take_level_2(&slots.inclusive);
            }
            let rest = all.without(&outermost);
            let rest = if lacks { rest.unknown() } else { rest };
            slots = ItemTally { exclusive: rest, inclusive: all, ..slots };
        }
        let is_all_time = counted.is_none() && processes > 0 && is_all_time;
        CountedPart { counted, slots, time_alone, is_all_time, inside, processes }
    }

    /// All of it.
    fn tally(&self) -> &ItemTally {
        if self.is_all_time { &self.time_alone } else { &self.slots }
    }
}

/// What was counted from outside, of all parts.
fn counted_command(
    parts: Vec<CountedPart>,
    processes: &[Process],
    (machines, run): (&mut Vec<Machine>, Option<&Run>),
    is_job: bool,
    all: All,
) -> Option<CountedCommand> {
    let run = run.filter(|_| parts.iter().any(|part| part.counted.is_some()))?.clone();
    let first = machines.len();
    let (mut sums, mut apart, mut alone) = (Vec::<Account>::new(), Vec::new(), 0);
    for CountedPart { counted, inside, slots, processes, .. } in parts {
        let Some((count, cores, _)) = counted else { continue };
        let own = slots.inclusive.slots;
        if processes > 0 && inside < own - own / 1000 * FEW {
            alone += own.saturating_sub(inside);
        }
        for ((machine, _), account) in count.parts.into_iter().zip(cores) {
            // (the two kinds of core of one command are two, whatever they are called)
            match machines[first..].iter().position(|known| is_job && *known == machine) {
                Some(at) => sums[at].add(&account),
                None => {
                    machines.push(machine);
                    sums.push(account);
                }
            }
        }
        apart.extend(count.processes);
    }
    let cores = sums.iter().zip(first..);
    let of_core = |(account, machine): (&Account, usize)| {
        let mut figures = Figures::new(account);
        figures.put_into(all);
        Cores { machine, figures }
    };
    let cores = cores.map(of_core).collect();
    let inside = |pid: Option<i32>| {
        let own = processes.iter().filter(|process| Some(process.pid) == pid);
        own.map(|process| process.item.inclusive.slots).sum()
    };
    let process = |(pid, name, sums): ProcessSums| {
        let sums: Option<Vec<Account>> = sums.iter().map(Account::new).collect();
        let all_of_it = total_of(&sums?);
        let tally =
            ItemTally { inclusive: all_of_it.clone(), exclusive: all_of_it, counts: ItemTally::NONE.counts };
        Some(OutsideProcess { pid, name, inside: inside(pid), item: tally.item_of(all) })
    };
    Some(CountedCommand {
        run,
        cores,
        alone: (alone > 0).then_some(alone),
        processes: apart.into_iter().filter_map(process).collect(),
    })
}

/// The whole of a run, and what to do next about it. Where it is mostly the kernel's, which was not counted, that comes first. (Regions tell
/// of what runs in none of them how much that is.)
fn whole_of(
    mut item: Item,
    run: Option<&Run>,
    has_regions: bool,
    is_real: bool,
) -> (Whole, String, Vec<Step>) {
    let (mut next, mut named) = (verdict::next(&item.inclusive), verdict::names_of(&item.inclusive));
    let time = run.map(|run| CountedTime::new(run, &item.inclusive)).unwrap_or_default();
    // (figures that are made up leave nothing out, and time alone is the kernel's, too)
    let is_time = item.inclusive.time_alone.is_some();
    let cpu = run.map(|run| &run.cpu).filter(|_| is_real && !is_time);
    let kernel_note = cpu.and_then(CpuUse::remark).unwrap_or_default();
    if let Some(kernel) = cpu.and_then(CpuUse::leads) {
        let figures = [Some(&mut item.inclusive), Some(&mut item.exclusive).filter(|_| !has_regions)];
        for figures in figures.into_iter().flatten() {
            figures.bottleneck = kernel.before(&figures.bottleneck);
        }
        next = kernel.next;
        named.push(KERNEL.into());
    }
    let steps = run.map_or(Vec::new(), |run| match item.inclusive.tree.0.is_empty() {
        true => steps("nothing", &[], &run.means),
        false => steps_of(run, &named, is_real),
    });
    (Whole { item, time, kernel_note }, next, steps)
}

/// Commands that tell more of a run of which the verdict names these nodes.
fn steps_of(run: &Run, named: &[String], is_real: bool) -> Vec<Step> {
    let located = run.findings.iter().find(|finding| !finding.locate.is_empty());
    let node = located.map_or("", |finding| finding.node.trim_start_matches("tma_"));
    let means = Means { node: node.into(), ..run.means.clone() };
    let means = if is_real { means } else { means.without_counters() };
    let means = means.and("drilled", !run.tree.is_empty()).and("locates", located.is_some());
    let means = means.and("threads", run.cpu_ns > run.wall_ns + run.wall_ns / 10);
    steps("count", named, &means)
}

/// Whether clocks alone tell of the process.
fn is_time_alone(header: &Header) -> bool {
    header.time_alone != 0
}

/// Adds the regions of a thread: of the process with this id, and where it is in the report.
fn add_regions(
    merged: &mut HashMap<String, MergedRegion>,
    thread: &[RegionPlace],
    (pid, place): (i32, (usize, usize)),
    rank: Option<usize>,
) {
    let mut own: HashMap<&str, (bool, ItemTally)> = HashMap::new();
    for region in &thread[1..] {
        let (nests, tally) = own.entry(&region.entry.name).or_insert((false, ItemTally::NONE));
        *nests |= region.nests;
        tally.add(&region.flat());
    }
    for (name, (nests, tally)) in own {
        // (most are there, so that a name is seldom copied)
        if !merged.contains_key(name) {
            let new = MergedRegion {
                nests: false,
                tally: ItemTally::NONE,
                threads: Vec::new(),
                of_ranks: BTreeMap::new(),
            };
            merged.insert(name.into(), new);
        }
        let Some(region) = merged.get_mut(name) else { continue };
        region.nests |= nests;
        region.tally.add(&tally);
        if let Some(rank) = rank {
            region.of_ranks.entry(rank).or_insert(ItemTally::NONE).add(&tally);
        }
        region.threads.push(RegionOfThread { pid, tid: thread[0].entry.tid, place, item: tally.item() });
    }
}

/// All regions, of those that counted slots and of those of which clocks alone tell, the largest first.
fn largest_first(merged: [HashMap<String, MergedRegion>; 2], ranks: &[RankPart]) -> Vec<Region> {
    // (of a region that some ranks have slots of, and others time alone, no row has all ranks)
    let [slots, times] = &merged;
    let of_both: BTreeSet<String> = slots.keys().filter(|name| times.contains_key(*name)).cloned().collect();
    let all = merged.into_iter().zip([false, true]);
    let all = all.flat_map(|(regions, by_clocks)| regions.into_iter().map(move |one| (one, by_clocks)));
    let mut regions: Vec<Region> = all
        .map(|((name, MergedRegion { nests, tally, threads, of_ranks }), time_alone)| {
            let item = tally.item();
            Region {
                over_ranks: job::over_ranks(&of_ranks, ranks).filter(|_| !of_both.contains(&name)),
                name,
                time_alone,
                wasted: item.exclusive.wasted(),
                next: verdict::next(&item.exclusive),
                nests,
                item,
                threads,
            }
        })
        .collect();
    regions.sort_by(|region, other| {
        let size = |region: &Region| (region.item.inclusive.slots, region.item.inclusive.wall_ns());
        size(other).cmp(&size(region)).then_with(|| region.name.cmp(&other.name))
    });
    regions
}

/// Adds which regions were open when which others ended.
fn add_overlaps(all: &mut BTreeMap<(String, String), u64>, table: &Table) {
    let split = || table.entries.iter().filter(|entry| entry.split > 0);
    if split().next().is_none() {
        return;
    }
    let names: HashMap<u32, &str> =
        table.entries.iter().map(|entry| (entry.number, entry.name.as_str())).collect();
    for entry in split() {
        let Some(ended) = entry.split_by.checked_sub(1).and_then(|number| names.get(&number)) else {
            continue;
        };
        let times = all.entry((entry.name.clone(), (*ended).into())).or_default();
        *times = times.saturating_add(entry.split);
    }
}

fn most_frequent_first(times: BTreeMap<(String, String), u64>) -> Vec<Overlap> {
    let overlap = |((region, ended), times)| Overlap { region, ended, times };
    let mut all: Vec<Overlap> = times.into_iter().map(overlap).collect();
    all.sort_by_key(|one| Reverse(one.times));
    all
}

/// All threads together.
fn sum_of(threads: &[Vec<RegionPlace>]) -> ItemTally {
    total(threads.iter().map(|tree| tree[0].tally.clone()))
}

impl Process {
    /// Without what its table says of its machine.
    fn new(header: &Header, threads: &[Vec<RegionPlace>]) -> Process {
        Process {
            pid: header.pid,
            parent: header.parent,
            command: text(&header.command),
            host: Some(text(&header.host)).filter(|host| !host.is_empty()),
            rank: text(&header.rank).parse().ok(),
            started_unix_ns: header.started_unix_ns,
            ended: match header.ended.load(Relaxed) {
                EXITED => ProcessEnd::Exited,
                EXECED => ProcessEnd::Execed,
                _ => ProcessEnd::Killed,
            },
            trouble: text(&header.trouble),
            time_alone: is_time_alone(header),
            refused: header.refused.load(Relaxed).into(),
            unmeasured_threads: header.unmeasured.load(Relaxed).into(),
            unmeasured_why: text(&header.refusal),
            damaged: 0,
            machine: None,
            item: sum_of(threads).item(),
            threads: threads.iter().map(|tree| Thread::new(tree, header)).collect(),
        }
    }

    /// Its own, and all in it.
    fn items(&mut self) -> impl Iterator<Item = &mut Item> {
        iter::once(&mut self.item).chain(self.threads.iter_mut().flat_map(|thread| {
            iter::once(&mut thread.item).chain(thread.tree.iter_mut().map(|place| &mut place.item))
        }))
    }
}

impl RegionPlace<'_> {
    /// What it adds to the region of its name: within another of that name only what it does itself.
    fn flat(&self) -> ItemTally {
        if self.outermost {
            return self.tally.clone();
        }
        let Counts { executions, nested, unended, unbalanced, missed, split, .. } = self.tally.counts;
        let nested = nested.saturating_add(executions);
        ItemTally {
            counts: Counts { nested, unended, unbalanced, missed, split, ..Counts::default() },
            inclusive: Account::NONE,
            exclusive: self.tally.exclusive.clone(),
        }
    }
}

impl Region {
    /// Its own, and those of its threads.
    fn items(&mut self) -> impl Iterator<Item = &mut Item> {
        iter::once(&mut self.item).chain(self.threads.iter_mut().map(|one| &mut one.item))
    }
}

impl Thread {
    fn new(tree: &[RegionPlace], header: &Header) -> Thread {
        let (root, regions) = (&tree[0], &tree[1..]);
        let tree = regions.iter().map(|place| TreeRegion {
            name: place.entry.name.clone(),
            parent: place.parent.and_then(|parent| parent.checked_sub(1)),
            depth: place.depth - 1,
            item: place.tally.item(),
        });
        Thread {
            tid: root.entry.tid,
            before: root.entry.before,
            name: root.entry.name.clone(),
            ended: root.ended || header.ended.load(Relaxed) == EXECED,
            item: root.tally.item(),
            tree: tree.collect(),
        }
    }
}
