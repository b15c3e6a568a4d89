//! What all reports show: figures of regions, threads and processes.
#![forbid(unsafe_code)]

use crate::account::{Level1, Level2};
use crate::cpu_time::{CountedTime, CpuUse};
use crate::elapsed::Elapsed;
use crate::nodes::{self, NodeKind, ShareInterval};
use crate::steps::{Means, Step};
use crate::timeline::Timeline;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::ops::Deref;
use topdown::Path;

/// Version of the JSON report's schema (docs/report-formats.md): another one has other names or meanings.
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
    pub whole: Whole,
    /// What to do next about the whole.
    pub next: String,
    /// Commands that tell more of it here.
    pub steps: Vec<Step>,
    /// Regions that were open when another one ended, those that were so most often first.
    pub overlaps: Vec<Overlap>,
    /// All regions, over contexts, threads and processes; the largest first.
    #[serde(serialize_with = "crate::extent::regions")]
    pub regions: Vec<Region>,
    /// In the order in which they began.
    #[serde(flatten, serialize_with = "crate::extent::processes")]
    pub processes: Vec<Process>,
    /// The nodes of the tree of metrics that any of the figures has, parents before their children.
    pub nodes: Vec<NodeKind>,
    /// The command, if it was counted from outside: then the figures of the whole are that count.
    pub outside: Option<CountedCommand>,
    /// The command, if `topdown` has run it.
    pub run: Option<Run>,
    /// What was counted from outside in each interval, if that was kept.
    pub timeline: Option<Timeline>,
    /// Why nothing was measured, if there is no process that says so; else empty.
    pub trouble: String,
    /// Of some processes, or all, clocks alone tell.
    pub time_alone: Option<TimeAlone>,
    /// How many ranks the job has whose report this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks_of: Option<u32>,
    /// The ranks of the job, in their order, as far as any is known to have begun; empty: it is the report of no job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Rank>,
    /// The same by host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostOfRanks>,
    /// The symbols that regions were called by whose names are shown as the source has them.
    #[serde(skip)]
    pub symbols: BTreeSet<String>,
}

/// A rank of a job.
#[derive(Clone, Debug, Serialize)]
pub struct Rank {
    /// Which.
    pub rank: u32,
    /// Where it ran.
    pub host: String,
    /// How it ended, in words: "exited", "killed", "runs", "lost" (its `topdown run` was killed).
    pub ended: &'static str,
    /// Its exit status; none if it has none.
    pub status: Option<u8>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Nanoseconds from start to end; none if it has none.
    pub wall_ns: Option<u64>,
    /// Nanoseconds of CPU time.
    pub cpu_ns: Option<u64>,
    /// How many of the report's processes are of it.
    pub processes: usize,
    /// All of it.
    #[serde(flatten)]
    pub item: Item,
}

/// What the ranks on a host did.
#[derive(Clone, Debug, Serialize)]
pub struct HostOfRanks {
    /// Its name.
    pub host: String,
    /// Which ranks.
    pub ranks: Vec<u32>,
    /// All of them.
    #[serde(flatten)]
    pub item: Item,
}

/// How a rank ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankEnd {
    /// With this exit status.
    Status(u8),
    /// In an orderly way, with a status that nobody has seen.
    Exited,
    /// By this signal.
    Signal(i32),
    /// Not yet.
    Runs,
    /// Nobody knows: its `topdown run` was killed.
    Lost,
}

/// How the time of a region divides among ranks.
#[derive(Clone, Debug, Serialize)]
pub struct OverRanks {
    /// Ranks that executed it.
    pub ranks: usize,
    /// Nanoseconds of threads' time in all ranks (elapsed, where clocks alone tell).
    pub sum_ns: u64,
    /// Least of any rank; 0 if one never executed it.
    pub min_ns: u64,
    /// Over all ranks.
    pub mean_ns: u64,
    /// Most of any rank.
    pub max_ns: u64,
    /// The rank that had the most.
    pub slowest: u32,
    /// The rank that had the least.
    pub fastest: u32,
    /// Part of the slowest one's time that the mean is less by: 0 if all have the same.
    pub imbalance: f64,
    /// Figures of the slowest rank.
    pub of_slowest: Figures,
}

/// What of a report is time alone.
#[derive(Clone, Debug, Serialize)]
pub struct TimeAlone {
    /// Why nothing counted slots.
    pub no_slots: String,
    /// What elapsed time is of.
    pub clock: &'static str,
    /// All processes of which clocks alone tell, together; none: there are no others, so this is the report's whole.
    pub whole: Option<Item>,
}

/// All processes together.
#[derive(Clone, Debug, Serialize)]
pub struct Whole {
    /// Its figures.
    #[serde(flatten)]
    pub item: Item,
    /// How much of its CPU time they are of.
    #[serde(flatten)]
    pub time: CountedTime,
    /// That much of it is the kernel's and was not counted; empty: it is not.
    pub kernel_note: String,
}

impl Deref for Whole {
    type Target = Item;

    fn deref(&self) -> &Item {
        &self.item
    }
}

/// A command that was counted from outside, with all that it started.
#[derive(Clone, Debug, Serialize)]
pub struct CountedCommand {
    /// How it ended, and what was seen of it.
    #[serde(flatten)]
    pub run: Run,
    /// What was counted on each kind of core.
    pub cores: Vec<Cores>,
    /// Slots that no process has counted itself, if they are worth a word.
    pub alone: Option<u64>,
    /// What was counted of each process, if they were told apart, the largest first; and last the rest.
    pub processes: Vec<OutsideProcess>,
}

impl OutsideProcess {
    /// Whether more than a tenth of it is in no thread of the report: it may have executed a static program, closed all descriptors, or
    /// been killed early.
    pub fn is_unseen(&self) -> bool {
        let slots = self.item.inclusive.slots;
        self.inside < slots - slots / 10
    }
}

/// A process, as it was counted from outside.
#[derive(Clone, Debug, Serialize)]
pub struct OutsideProcess {
    /// Its id; none: the rest, of which it is not known whose it is.
    pub pid: Option<i32>,
    /// Its name in the end.
    pub name: String,
    /// Slots that it measured itself, by all programs that it executed.
    pub inside: u64,
    /// All of it ran in no region that is known.
    #[serde(flatten)]
    pub item: Item,
}

/// A node below level 2 that is flagged, and below which none is: it and the nodes above it are over their thresholds.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// perf's name of it.
    pub node: String,
    /// Its share.
    #[serde(flatten)]
    pub share: ShareInterval,
    /// What it is a share of.
    pub unit: &'static str,
    /// The share above which it is flagged.
    pub threshold: f64,
    /// All of its interval is above, and so are those of the nodes above it; else it may be.
    pub sure: bool,
    /// The nodes above it, the root first, with their shares if they were measured.
    pub above: Vec<(String, Option<f64>)>,
    /// What it means.
    pub meaning: String,
    /// What to do about it.
    pub advice: String,
    /// Events to sample, by which it is located.
    pub locate: Vec<String>,
}

/// A figure of the bottleneck view: slots by what would have to change, wherever in the tree they are.
#[derive(Clone, Debug, Serialize)]
pub struct BottleneckFigure {
    /// perf's name of it.
    pub name: String,
    /// Its share of slots; none, if it may be next to nothing and may be more.
    pub value: Option<f64>,
    /// No less than this.
    pub low: f64,
    /// Nor more.
    pub high: f64,
    /// The share above which it is flagged.
    pub threshold: f64,
    /// What it is.
    pub meaning: String,
    /// What to do about it.
    pub advice: String,
}

/// A figure that is no share of slots.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CompanionFigure {
    /// perf's name of it, without "tma_".
    pub name: String,
    /// None: not measured.
    pub value: Option<f64>,
    /// No less than this; none: not known.
    pub low: Option<f64>,
    /// Nor more; none: there is no end.
    pub high: Option<f64>,
    /// What it is in; "share": of one.
    pub unit: String,
    /// Why it has no value; empty: it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// How a command ended, and what was seen of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// Of nodes below level 2 those that are flagged, the largest first: what each means, and what to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The bottleneck view, the largest first, where all was counted that it takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bottlenecks: Vec<BottleneckFigure>,
    /// Companion figures, as far as they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<CompanionFigure>,
    /// The published tree that these are of: "TMA 5.2, table of 2026-06-02".
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tree: String,
    /// The command and its arguments.
    pub command: String,
    /// Where it ran.
    pub host: String,
    /// When it began, in local time: "2026-01-31T12:34:56+0100".
    pub started: String,
    /// Its process id.
    pub pid: Option<i32>,
    /// Its exit status; none if a signal ended it.
    pub status: Option<u8>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Nanoseconds from start to end.
    pub wall_ns: u64,
    /// Nanoseconds of CPU time, of it and of those that it waited for.
    pub cpu_ns: u64,
    /// The same by mode, and what of it the counters count.
    #[serde(skip)]
    pub cpu: CpuUse,
    /// What else can be measured of it here.
    #[serde(skip)]
    pub means: Means,
    /// Instructions per cycle, where these were counted beside.
    pub ipc: Option<f64>,
    /// Of the CPU time, nanoseconds that belong to no process that was counted.
    pub lost_ns: u64,
    /// Whether it has left processes that go on: their figures are those up to its end. None: not known.
    pub outlived: Option<bool>,
    /// Of a program with regions: what counted them and the whole; empty: there were none, or that was chosen.
    pub sources: String,
    /// Programs were executed under a seccomp filter that came after the command began, and did not measure themselves.
    pub sandboxed: bool,
}

/// What was counted on one kind of core.
#[derive(Clone, Debug, Serialize)]
pub struct Cores {
    /// Which of the report's machines.
    pub machine: usize,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
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
    /// How its counters were read: in JSON "rdpmc", "read" or "simulated".
    #[serde(serialize_with = "path_name")]
    pub path: Path,
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

/// In JSON and CSV, under the key `path`, what says that figures are made up.
pub const SIMULATED_PATH: &str = "simulated";

fn path_name<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match path {
        Path::Rdpmc => "rdpmc",
        Path::Read => "read",
        Path::Simulated => SIMULATED_PATH,
    })
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessEnd {
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
    /// Where it ran; none: it is not known.
    pub host: Option<String>,
    /// Its rank; none: it is none of many.
    pub rank: Option<u32>,
    /// Nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How it ended.
    pub ended: ProcessEnd,
    /// Why no slots were measured, and nothing else unless it is `time_alone`; empty if they were.
    pub trouble: String,
    /// Clocks alone tell of it.
    pub time_alone: bool,
    /// Regions that found no room.
    pub refused: u64,
    /// Threads that are not measured.
    pub unmeasured_threads: u64,
    /// Why the first of them is not; empty if there are none.
    pub unmeasured_why: String,
    /// Records that cannot be what the library wrote.
    pub damaged: u64,
    /// Which of the report's machines; none if nothing was measured.
    pub machine: Option<usize>,
    /// All threads together.
    #[serde(flatten)]
    pub item: Item,
    /// Its threads.
    #[serde(skip)]
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
    #[serde(skip)]
    pub tree: Vec<TreeRegion>,
}

impl Thread {
    /// Whether it was to count slots: not clocks alone tell of it.
    pub(crate) fn counts_slots(&self) -> bool {
        self.item.inclusive.time_alone.is_none()
    }
}

/// A region in one place of a thread's tree.
#[derive(Clone, Debug, Serialize)]
pub struct TreeRegion {
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
    /// Clocks alone tell of it: of executions in other processes another one has the slots.
    pub time_alone: bool,
    /// Slots that did not retire, without the regions that began in it; none: not known, or not well enough.
    pub wasted: Option<u64>,
    /// What to do next about those; empty, if it is not known where most of them went.
    pub next: String,
    /// Whether other regions began in it, so that exclusive is another thing than inclusive.
    pub nests: bool,
    /// In a job: how its time divides among ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_ranks: Option<OverRanks>,
    /// Its figures.
    #[serde(flatten)]
    pub item: Item,
    /// The same for each thread that executed it.
    #[serde(skip)]
    pub threads: Vec<RegionOfThread>,
}

/// A region that was still open when another one ended, in which it had begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overlap {
    /// Its name.
    pub region: String,
    /// The other's.
    pub ended: String,
    /// How often it was split there.
    pub times: u64,
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

/// A bound, as a share, above which shares mean little: bars are hatched, and nothing is ranked.
pub const DOUBTFUL: f64 = 0.15;
/// A bound above which a text has no shares: they may be anything.
pub const UNTOLD: f64 = 0.5;

impl Figures {
    /// Slots; None: not measured.
    pub fn slots(&self) -> Option<u64> {
        self.time_alone.is_none().then_some(self.slots)
    }

    /// Nanoseconds in which threads ran; None: not known.
    pub fn time_ns(&self) -> Option<u64> {
        self.time_alone.map_or(Some(self.time_ns), |time| time.elapsed.cpu_ns)
    }

    /// Elapsed nanoseconds, where clocks alone tell; None: slots were counted, or it is not known.
    pub fn wall_ns(&self) -> Option<u64> {
        self.time_alone?.elapsed.wall_ns
    }

    /// Slots that did not retire.
    pub fn wasted(&self) -> Option<u64> {
        self.level_1
            .filter(|one| one.error <= DOUBTFUL)
            .map(|one| (self.slots as f64 * (1.0 - one.of[0]).max(0.0)) as u64)
    }
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
    /// Of the executions, those that ended only since another region did, and went on as the next one.
    pub split: u64,
    /// Whether a group of counters that took turns with others had so few turns here, or a few that were most of it, that nodes which it
    /// counts are not measured.
    pub few_turns: bool,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        for (all, more) in [
            (&mut self.executions, other.executions),
            (&mut self.measured, other.measured),
            (&mut self.nested, other.nested),
            (&mut self.unended, other.unended),
            (&mut self.unbalanced, other.unbalanced),
            (&mut self.missed, other.missed),
            (&mut self.split, other.split),
        ] {
            *all = all.saturating_add(more);
        }
    }
}

/// Elapsed time and CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeFigures {
    /// Each None if it is not known.
    pub elapsed: Elapsed,
    /// The part of all elapsed time of threads; None: not known.
    pub wall_share: Option<f64>,
}

/// Slots, and where they went; or time alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// What clocks tell, where nothing counted slots: then there are no other figures. None: slots were counted, or nothing was measured.
    pub time_alone: Option<TimeFigures>,
    /// What executions had that did not end is in no region's figures: of a thread and of the whole that is in what ran in none, which is
    /// no more than this then, and of a region not known.
    pub lacks: bool,
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
    pub tree: nodes::NodeTree,
}

/// Names of what clocks tell are there where they alone tell.
impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("slots", &self.slots())?;
        map.serialize_entry("share", &self.share)?;
        map.serialize_entry("time_ns", &self.time_ns())?;
        map.serialize_entry("running", &self.running)?;
        map.serialize_entry("level_1", &self.level_1)?;
        map.serialize_entry("level_2", &self.level_2)?;
        map.serialize_entry("bottleneck", &self.bottleneck)?;
        map.serialize_entry("tree", &self.tree)?;
        if let Some(TimeFigures { elapsed, wall_share }) = &self.time_alone {
            map.serialize_entry("wall_ns", &elapsed.wall_ns)?;
            map.serialize_entry("wall_share", wall_share)?;
        }
        map.end()
    }
}
