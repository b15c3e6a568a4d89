//! The table file: one for each process, mapped by it while it runs.
//!
//! A header of one page and records of one size, in the order in which they were taken into use. A record is a node of
//! a thread's tree of regions: the root is the thread itself, from its start to its end; below it regions, each below
//! the one in which it began. One region has a record for each such place. Only the thread that owns a record writes
//! to it, but for the thread that ends the process.
//!
//! What was counted is kept for each input of the CPU's tree of metrics, in the tree's order, so that the format is the
//! same for all CPUs: `Record::core` says whose tree it is.

mod clean;
mod file;
pub mod run;

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64};

pub use clean::{clean, cleaned, is_hostile};
pub use file::{Table, TableEntry, TablePlace, began, read, text};

/// `Header::magic`.
pub const MAGIC: [u8; 8] = *b"topdown\n";
/// `Header::version`: another one is another layout.
pub const VERSION: u32 = 12;
/// Ends the name of a file that is opened, and nothing else, by a program that does not measure itself, since it was executed under a
/// seccomp filter: what else would tell of it might be killed for.
pub const SANDBOXED: &str = ".sandboxed";
/// Bytes before the first record.
pub const HEADER_SIZE: usize = 4096;
/// Records that a process may have: of 2,000 regions in 64 threads, or of 65,536, each in one place, and some thousand threads.
pub const MOST_RECORDS: u32 = 160 << 10;
/// No table file is longer.
pub const MOST_BYTES: u64 = offset_of_record(MOST_RECORDS) as u64;
/// The longest name of a region, in bytes.
pub const NAME: usize = 511;
/// No tree has more inputs.
pub const MOST_INPUTS: usize = 32;
/// No group that takes turns with others measures more nodes below level 1.
pub const MOST_NODES_IN_TURNS: usize = 10;
/// `Record::parent` of a thread.
pub const NONE: u32 = u32::MAX;

/// In the environment: what starts many processes of one program says to each which it is. The first of them that is there counts.
pub const RANKS: [&str; 7] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "SLURM_PROCID",
];

/// `Record::kind`: not in use, or not yet.
pub const FREE: u32 = 0;
/// `Record::kind`: the root of a thread's tree. Its measurement has one execution for each thread that it is of: from the
/// thread's start to its last reading (`Record::ended` tells whether that was its end).
pub const THREAD: u32 = 1;
/// `Record::kind`: a region.
pub const REGION: u32 = 2;

/// `Header::ended`: it runs, or was killed.
pub const RUNS: u32 = 0;
/// `Header::ended`: by exit, _exit, quick_exit or the return from main.
pub const EXITED: u32 = 1;
/// `Header::ended`: by exec: another program went on under this process id.
pub const EXECED: u32 = 2;

/// The first page. Texts end in NUL or at their array's end.
#[repr(C)]
pub struct Header {
    /// `MAGIC`.
    pub magic: [u8; 8],
    /// `VERSION`.
    pub version: u32,
    /// sizeof(Record).
    pub record_size: u32,
    /// The process.
    pub pid: i32,
    /// Its parent when it began.
    pub parent: i32,
    /// When it began to be measured, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// `RUNS`, `EXITED` or `EXECED`.
    pub ended: AtomicU32,
    /// Regions that found no room in the file, so nothing is known of them.
    pub refused: AtomicU32,
    /// What `topdown::Info` says of the first thread's handle; path is TD_PATH_*; 0 if nothing is measured.
    pub path: u32,
    /// Deepest level that is counted.
    pub level: u32,
    /// Pipeline slots per cycle.
    pub slots_per_cycle: u32,
    /// Wanted bound on each share's error, in parts per million.
    pub max_error_ppm: u32,
    /// Time that may go into windows, in parts per million.
    pub max_overhead_ppm: u32,
    /// The measured process that this one descends from and that reports for all of them; `pid` if it is that one.
    pub root: i32,
    /// Brand string of the CPU.
    pub cpu: [u8; 64],
    /// Name of the PMU.
    pub pmu: [u8; 32],
    /// Name of the core.
    pub core: [u8; 48],
    /// Why readings are not RDPMC.
    pub note: [u8; 512],
    /// Why no slots are measured, and nothing else unless `time_alone` says so; empty if they are.
    pub trouble: [u8; 512],
    /// Why the first of the threads that are not measured is not.
    pub refusal: [u8; 512],
    /// Threads that are not measured.
    pub unmeasured: AtomicU32,
    /// Not 0: clocks alone tell of executions (`Measurement::enabled_ns`).
    pub time_alone: u32,
    /// The command, as /proc/self/cmdline has it, its NULs made spaces.
    pub command: [u8; 512],
    /// When the process began, in clock ticks since the machine did (/proc/PID/stat): another one of this pid has another.
    /// 0: not known.
    pub birth: u64,
    /// Random; the same in all processes that `root` reports for.
    pub run: [u8; 16],
    /// The host's name. (Files of this version from before that was kept have zeros here, as in what follows.)
    pub host: [u8; 64],
    /// The process's rank among those of one program, by what started them (`RANKS`); empty: it is none of many.
    pub rank: [u8; 32],
}

impl Header {
    /// Whether this version of the library wrote it.
    pub fn is_ours(&self) -> bool {
        self.magic == MAGIC && self.version == VERSION && self.record_size as usize == size_of::<Record>()
    }
}

/// A thread or a region. A page each, so that the file can be mapped in parts.
#[repr(C, align(4096))]
pub struct Record {
    /// `FREE`, `THREAD` or `REGION`; written last.
    pub kind: AtomicU32,
    /// Which of `measurement` holds; the other one is being worked on.
    pub current: AtomicU32,
    /// Number of the record of the region in which this one began, or of the thread; `NONE` for a thread. Where groups of counters take
    /// turns, a thread has a record for each, and below it those of what the group has counted of its regions: all but the first
    /// have the first's number here.
    pub parent: u32,
    /// Number of the thread's record; its own for a thread.
    pub thread: u32,
    /// The thread's id.
    pub tid: i32,
    /// Of a thread: not 0, it has ended, or the process did in an orderly way.
    pub ended: AtomicU32,
    /// Of a thread: how many were before it, whose figures these are, too. (Of programs with many threads, some have a
    /// record together.)
    pub before: u64,
    /// Executions that were part of another of the same region (recursion): neither counted in `measurement` nor measured.
    pub nested: u64,
    /// Executions that began and never ended: the thread or the process ended, or a longjmp left them.
    pub unended: u64,
    /// Ends without a beginning.
    pub unbalanced: u64,
    /// Executions that could not be read (td_read's errors).
    pub missed: u64,
    /// Executions that ended, and began again at once, since another region ended in which they were open.
    pub split: u64,
    /// One more than the number of the record of the last such region; 0: it has none.
    pub split_by: u32,
    /// Zero.
    pub reserved: u32,
    /// Of a thread: slots, and nanoseconds of its time, when one of its regions last ended, if that is more than what
    /// `measurement` has.
    pub seen_slots: u64,
    /// See `seen_slots`.
    pub seen_ns: u64,
    /// The region's name, or the thread's; ends in NUL.
    pub name: [u8; NAME + 1],
    /// The core that counted; its tree of metrics has the inputs of `measurement`.
    pub core: TableCore,
    /// What was measured; `current` tells which one holds.
    pub measurement: [Measurement; 2],
    /// Executions besides those of `measurement`; the lowest bit tells which of `counted` holds.
    pub counted_executions: AtomicU64,
    /// What was counted in them.
    pub counted: [RecordedCounts; 2],
    /// `counted_executions`, or one more while the other of `counted` is being worked on. Who reads a record while the process runs,
    /// from its beginning to its end, has what holds if this is no more than one ahead.
    pub counted_next: AtomicU64,
    /// Where groups of counters take turns: what this one's tell.
    pub turns: RecordedTurns,
}

/// A core, and its tree of metrics as the version that wrote the file had it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableCore {
    /// Its name (`topdown::Info::core`).
    pub name: [u8; 48],
    /// `topdown::fingerprint` of it; 0: it has none.
    pub fingerprint: u64,
}

/// What the turns of a group tell of the nodes below level 1.
#[repr(C)]
#[derive(Debug, Default)]
pub struct RecordedTurns {
    /// Turns in which slots were counted here.
    pub turns: AtomicU64,
    /// The same, or one more while the rest is being worked on: then nothing of it holds.
    pub next: AtomicU64,
    /// Slots in them.
    pub slots: f64,
    /// Executions, of those of `measurement`, that went on in the next turn: each is one of that, too.
    pub pieces: u64,
    /// The nodes; those that have no number are not in use.
    pub node: [NodeInTurns; MOST_NODES_IN_TURNS],
}

/// Sums over turns of the slots of a node and of one above it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeInTurns {
    /// TD_NODE_*, plus 1; 0: it is not in use.
    pub number: u32,
    /// The node of whose slots it had a part: the nearest one above it that the group measures, or retiring; TD_NODE_NONE: of all.
    pub above: u32,
    /// The node's.
    pub own: f64,
    /// Those of the node above it; of none, all slots.
    pub parent: f64,
    /// Squares of the node's.
    pub own_own: f64,
    /// Products of both.
    pub own_parent: f64,
    /// Squares of those of the node above.
    pub parent_parent: f64,
    /// How far the node's bound is from its figure.
    pub far: f64,
}

/// What general-purpose counters told of executions, all the time of which they counted; flags and level are those of the record's
/// measurement.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedCounts {
    /// Slots in them.
    pub slots: u64,
    /// Nanoseconds of them.
    pub ns: u64,
    /// What each counted, in the order of `td_sample.counter`.
    pub counter: [u64; 15],
}

/// Executions that have ended, and what their slots were.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measurement {
    /// All that ended.
    pub executions: u64,
    /// Those that were measured: flags, level and all from `counted` on is of these. Of time alone: those of which CPU time is known.
    pub measured: u64,
    /// Slots in all.
    pub slots: u64,
    /// Slots in those that were measured.
    pub measured_slots: u64,
    /// Nanoseconds in all, of the thread's time while it ran. Of time alone: of elapsed time, what the thread waited included.
    pub enabled_ns: u64,
    /// TD_SAMPLE_* bits of their readings.
    pub flags: u32,
    /// Deepest level that was counted; 0: nothing was measured.
    pub level: u32,
    /// Nanoseconds of `enabled_ns` in which the counters were counting. Of time alone: of CPU time, in those of which it is known.
    pub running_ns: u64,
    /// Bit k: input k was counted.
    pub counted: u32,
    /// Zero.
    pub reserved: u32,
    /// Bound on the slots of each input that were counted in or left out at the edges, the same for all inputs.
    pub edges: f64,
    /// Sum of the squares of the executions' slots.
    pub squares: f64,
    /// The tree's inputs, in its order.
    pub input: [TableInput; MOST_INPUTS],
    /// Of general-purpose counters: what executions of nothing counted.
    pub empties: RecordedEmpties,
}

/// Sums over executions of nothing, which measure what the library itself executes between two readings.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordedEmpties {
    /// Their weights.
    pub weight: f64,
    /// Their slots, times the weight; so are all below.
    pub slots: f64,
    /// The squares of the slots.
    pub slots_squares: f64,
    /// Slots by which the first of a pair and the second are apart.
    pub apart: f64,
    /// What each counter counted, in the order of `td_sample.counter`.
    pub counter: [f64; 8],
    /// The squares of what each counter counted.
    pub squares: [f64; 8],
}

/// What an input of a tree counted in the measured executions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TableInput {
    /// The sum of its counts.
    pub sum: f64,
    /// Bound on the error of the sum by rounding.
    pub rounding: f64,
    /// Sum of the products of its counts and the executions' slots.
    pub products: f64,
    /// Sum of the squares of its counts.
    pub squares: f64,
}

/// Where the record of this number is in the file.
pub const fn offset_of_record(number: u32) -> usize {
    HEADER_SIZE + number as usize * size_of::<Record>()
}

const _: () = {
    assert!(size_of::<Header>() <= HEADER_SIZE);
    assert!(size_of::<Record>() == HEADER_SIZE && offset_of!(Record, measurement) % 8 == 0);
    assert!(
        size_of::<Measurement>() == 80 + MOST_INPUTS * size_of::<TableInput>() + size_of::<RecordedEmpties>()
    );
};
