//! What a caller wants measured.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

/// Whose slots are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The thread that opens.
    #[default]
    This,
    /// Another thread, by its id.
    Task(i32),
    /// Another thread, by its id, as long as it runs on this CPU.
    TaskOn(i32, u32),
    /// Everything on one CPU.
    Cpu(u32),
}

impl Target {
    /// As perf_event_open(2) wants it.
    pub(crate) fn pid_and_cpu(self) -> (i32, i32) {
        match self {
            Target::This => (0, -1),
            Target::Task(id) => (id, -1),
            Target::TaskOn(id, cpu) => (id, cpu as i32),
            Target::Cpu(cpu) => (-1, cpu as i32),
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// General-purpose counters if they are free when the handle opens, or there are no registers; else registers.
    #[default]
    Automatic,
    /// SLOTS and PERF_METRICS.
    Registers,
    /// General-purpose counters of each category's slots.
    Counters,
}

/// How the user of a process writes the options that errors and notes name.
#[derive(Clone, Copy, Debug)]
pub struct OptionNames {
    /// [`Options::level`].
    pub level: &'static str,
    /// [`Options::subtree`].
    pub subtree: &'static str,
    /// What counts a level, or a part of it, that one group does not hold: a clause.
    pub in_parts: &'static str,
}

static NAMES: OnceLock<OptionNames> = OnceLock::new();

/// Errors and notes of this process name options so from now on; until then as C does (`struct td_options`). The first call counts.
pub fn name_options(names: OptionNames) {
    let _ = NAMES.set(names);
}

pub(crate) fn names() -> OptionNames {
    let of_c = OptionNames {
        level: "td_options.level",
        subtree: "td_options.subtree",
        in_parts: "td_options.subtree counts a part of it",
    };
    NAMES.get().copied().unwrap_or(of_c)
}

/// Which kind of core of a hybrid CPU is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoreKind {
    /// Both for a thread that may run on both, if nothing else of the options is for one kind alone; else the P-cores.
    #[default]
    Automatic,
    /// P-cores alone.
    Performance,
    /// E-cores alone.
    Efficiency,
}

/// What becomes of events by which the published metrics correct registers and counters (INT_MISC.UOP_DROPPING and the like).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corrections {
    /// They are counted if general-purpose counters are left for them; else the intervals have their slots.
    #[default]
    Counted,
    /// The intervals have their slots.
    Bounded,
    /// None: nodes are as their sources count them.
    Bare,
}

/// How to open. The default measures the calling thread in user mode, as deep as the CPU counts, by RDPMC
/// where that is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whose slots are counted.
    pub target: Target,
    /// Deepest level: 1, 2, 3, or 0 for the deepest that the CPU counts in one group.
    pub level: u32,
    /// On cores whose counters cannot hold all of a level: the node whose children are counted beside level 1; TD_NODE_NONE for
    /// none.
    pub subtree: u32,
    /// Which group of the CPU's tree of deeper levels ([`deep_tree`](crate::deep_tree)) is counted, by general-purpose counters; 0: none.
    pub group: u32,
    /// Nodes that are counted in one group, by general-purpose counters, with as many below them as it has room for.
    pub nodes: WantedNodes,
    /// Count kernel mode too.
    pub kernel: bool,
    /// Count threads and processes that the target starts, too. They are read by read(2).
    pub inherit: bool,
    /// Count from when the target, another thread, executes a program, not from here on. For general-purpose counters alone.
    pub on_exec: bool,
    /// Count nothing until [`TopDown::switch`](crate::TopDown::switch). For general-purpose counters of others than this thread alone.
    pub off: bool,
    /// It takes turns with other groups: beside others' events no smaller group counts in its place, whose level 1 alone would be no random
    /// sample of its turns.
    pub in_turns: bool,
    /// After each so many slots of a thread the kernel writes a record of what it has counted for that thread so far
    /// ([`TopDown::records`](crate::TopDown::records)); 0: none. With `inherit`, `Target::TaskOn` and general-purpose counters alone, and from
    /// Linux 6.12 on.
    pub record_slots: u32,
    /// With `record_slots` and [`Target::Cpu`]: records say which cgroup runs, and there is one more whenever the CPU changes to a
    /// task of another cgroup, with what was counted until then. General-purpose counters alone, from Linux 5.13 on.
    pub record_cgroups: bool,
    /// What is counted.
    pub source: SourceKind,
    /// What becomes of events by which the published metrics correct their sources.
    pub corrections: Corrections,
    /// With `SourceKind::Counters`: general-purpose counters that leave the registers to others, who count the same: SLOTS, too, is in a general one.
    pub beside_registers: bool,
    /// Read by read(2) even where RDPMC is possible.
    pub no_rdpmc: bool,
    /// Which kind of core of a hybrid CPU is measured.
    pub cores: CoreKind,
    /// Use the simulated PMU instead of a real one.
    pub simulate: bool,
    /// Which core is simulated: a name that [`core_named`](crate::core_named) gave; empty for a core with PERF_METRICS that
    /// there is not.
    pub core: &'static str,
    /// Wanted bound on each share's error, in parts per million; 0 for 10,000 (one point).
    pub max_error_ppm: u32,
    /// Time that may go into new windows of the registers, in parts per million of the time that the thread runs; 0
    /// for 10,000 (1 %).
    pub max_overhead_ppm: u32,
    /// Descriptors have this number at least, to stay out of the program's way; 0 for the lowest.
    pub descriptors_from: i32,
}

/// No list of nodes has more.
pub const MOST_WANTED: usize = 8;

/// Nodes that are asked for by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedNodes {
    /// Their numbers; behind them TD_NODE_NONE.
    pub ids: [u32; MOST_WANTED],
    /// Down to which level those below them come with them; 0: their own children.
    pub level: u32,
}

impl WantedNodes {
    /// Their numbers.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.ids.iter().copied().filter(|id| *id != 0)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids().next().is_none()
    }
}

/// What a group that takes turns with others counts beside level 1; neither: whole levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnPart {
    /// [`Options::subtree`].
    pub subtree: u32,
    /// [`Options::group`].
    pub group: u32,
}

impl TurnPart {
    /// The options that open the group.
    #[must_use]
    pub fn options(&self, all: &Options) -> Options {
        Options { level: 0, subtree: self.subtree, group: self.group, ..*all }
    }
}

impl Options {
    /// Whether a part of the tree is counted, and not whole levels.
    #[must_use]
    pub fn of_part(&self) -> bool {
        self.subtree != 0 || self.group != 0 || !self.nodes.is_empty()
    }

    /// Whether the E-cores of a hybrid CPU alone are measured.
    #[must_use]
    pub fn of_e_cores(&self) -> bool {
        self.cores == CoreKind::Efficiency
    }

    /// The thread id or CPU number of the target, 0 for this thread.
    #[must_use]
    pub fn target_id(&self) -> i32 {
        match self.target {
            Target::This => 0,
            Target::Task(id) | Target::TaskOn(id, _) => id,
            Target::Cpu(cpu) => cpu as i32,
        }
    }
}
