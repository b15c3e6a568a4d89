//! `struct td_options`.

use super::caller_struct::{CallerStruct, read_by_size};
use crate::error::{Error, Result};
use crate::model;
use crate::model::metrics::TD_NODE_NONE;
use crate::options::{CoreKind, Corrections, MOST_WANTED, Options, SourceKind, Target, WantedNodes};
use std::mem::offset_of;

/// The calling thread; td_options.id is 0.
pub const TD_TARGET_SELF: u32 = 0;
/// The thread whose id is td_options.id.
pub const TD_TARGET_TASK: u32 = 1;
/// Everything that runs on the CPU whose number is td_options.id.
pub const TD_TARGET_CPU: u32 = 2;

/// Count kernel mode, too. Read by read(2).
pub const TD_FLAG_KERNEL: u32 = 1;
/// Count threads and processes that the target starts, too: by read(2), no bound.
pub const TD_FLAG_INHERIT: u32 = 2;
/// Read by read(2) even where RDPMC is possible; no RDPMC is ever executed.
pub const TD_FLAG_NO_RDPMC: u32 = 4;
/// Use a simulated PMU (td_simulate_mix). Only this flag chooses it.
pub const TD_FLAG_SIMULATE: u32 = 8;
/// As td_options.source TD_SOURCE_REGISTERS.
pub const TD_FLAG_REGISTERS: u32 = 16;
/// As td_options.source TD_SOURCE_COUNTERS.
pub const TD_FLAG_COUNTERS: u32 = 32;
/// As td_options.core_type TD_CORES_E.
pub const TD_FLAG_E_CORES: u32 = 256;
/// Nodes without the corrections of the published metrics (docs/sources.md).
pub const TD_FLAG_BARE: u32 = 512;

/// Counters where they are free or alone, else registers; td_info.note says why.
pub const TD_SOURCE_AUTO: u32 = 0;
/// SLOTS and PERF_METRICS, rounded. General counters are left to others.
pub const TD_SOURCE_REGISTERS: u32 = 1;
/// General counters of each category's slots, exact. Others go without them.
pub const TD_SOURCE_COUNTERS: u32 = 2;

/// Both kinds for a thread that may run on both: level 1 and branch mispredicts, by general counters. P-cores alone
/// with level 2, a source, a subtree, TD_FLAG_BARE or _INHERIT, a CPU as target, or if others count.
pub const TD_CORES_AUTO: u32 = 0;
/// P-cores alone. `running` is the part of the time there.
pub const TD_CORES_P: u32 = 1;
/// E-cores alone, by general counters. -ENOTSUP if the CPU is not hybrid.
pub const TD_CORES_E: u32 = 2;

/// What to measure. All zeros, like NULL: the calling thread, in user mode, as deep and as fast as possible.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct COptions {
    /// sizeof(struct td_options), set by the caller; 0 means 64.
    pub size: u32,
    /// TD_FLAG_* bits.
    pub flags: u32,
    /// TD_TARGET_*.
    pub target: u32,
    /// Thread id or CPU number of the target; 0 for TD_TARGET_SELF.
    pub id: i32,
    /// 1, 2, 3, or 0 for the deepest that the CPU counts in one group. Deeper ones: `nodes`.
    pub level: u32,
    /// Wanted bound on each share's error, in parts per million, up to 1000000; 0 means 10000 (1 percentage point).
    /// Registers are reset so often that regions of a million slots or more reach it; 1000000: never for exactness.
    pub max_error_ppm: u32,
    /// Part of the thread's time that resets may take, in parts per million, up to 1000000; 0 means 10000 (1 %).
    pub max_overhead_ppm: u32,
    /// A node (TD_NODE_*, or td_node_id) of which others are parts, or 0: where the counters cannot hold all of a level
    /// in one group, count level 1 and what is below this node. `topdown list` has the nodes of each core that are
    /// counted so, td_list_nodes what a handle measures. -EINVAL: no core has a node below it, or `level` is above all of
    /// these. -ENOTSUP: this core does not count it alone (td_last_error has those that it does), or a counter is taken.
    pub subtree: u32,
    /// TD_SOURCE_*: what is counted.
    pub source: u32,
    /// TD_CORES_*: which cores of a hybrid CPU.
    pub core_type: u32,
    /// How many nodes `nodes` has, up to 8; 0: none is asked for.
    pub node_count: u32,
    /// Nodes (TD_NODE_*, or td_node_id) that general counters count beside level 1, all in one group: with each its
    /// children (`level` 0), or all below it down to `level` (up to 6), as far as there are counters. td_list_nodes has what
    /// is counted. -EINVAL: one is no node. -ENOTSUP: one cannot be counted here, or no group has room for all; td_last_error
    /// says why, and which go together.
    pub nodes: [u32; 8],
    /// Zeros.
    pub reserved: [u32; 5],
}

// SAFETY: it is numbers of four bytes.
unsafe impl CallerStruct for COptions {
    const NAME: &'static str = "td_options";
    const FIRST: usize = 64;
    const LEAST: usize = offset_of!(COptions, max_overhead_ppm);
    const KNOWN: usize = offset_of!(COptions, reserved);
}

const _: () = assert!(size_of::<COptions>() == 96 && COptions::LEAST == 24 && MOST_WANTED == 8);

/// Reads and checks options.
///
/// # Safety
/// `options` is NULL or points to as many bytes as its first field says (64 if that is 0).
pub(super) unsafe fn read(options: *const COptions) -> Result<Options> {
    if options.is_null() {
        return Ok(Options::default());
    }
    // SAFETY: the caller's word.
    interpret(&unsafe { read_by_size(options, "options") }?)
}

/// A field, and the flags that say the same as one of its values.
struct OptionField<const N: usize> {
    field: &'static str,
    /// By number; the first is the default.
    values: [&'static str; 3],
    /// A bit of `flags`, its name, and the value that it stands for.
    flags: [(u32, &'static str, u32); N],
}

const SOURCE: OptionField<2> = OptionField {
    field: "source",
    values: ["TD_SOURCE_AUTO", "TD_SOURCE_REGISTERS", "TD_SOURCE_COUNTERS"],
    flags: [
        (TD_FLAG_REGISTERS, "TD_FLAG_REGISTERS", TD_SOURCE_REGISTERS),
        (TD_FLAG_COUNTERS, "TD_FLAG_COUNTERS", TD_SOURCE_COUNTERS),
    ],
};
const CORE_TYPE: OptionField<1> = OptionField {
    field: "core_type",
    values: ["TD_CORES_AUTO", "TD_CORES_P", "TD_CORES_E"],
    flags: [(TD_FLAG_E_CORES, "TD_FLAG_E_CORES", TD_CORES_E)],
};

impl<const N: usize> OptionField<N> {
    /// The value that the field and the flags agree on.
    fn of(&self, field: u32, flags: u32) -> Result<u32> {
        let Some(&name) = self.values.get(field as usize) else {
            let (any, _) = self.values[0].rsplit_once('_').expect("a prefix");
            return Err(Error::invalid(format!("options->{} is {field}, which is no {any}_*", self.field)));
        };
        let given = self.flags.iter().filter(|(flag, ..)| flags & flag != 0);
        let mut chosen = (field, name);
        for &(_, name, value) in given {
            if chosen.0 != 0 && chosen.0 != value {
                let what = format!("options has both {} and {name}", chosen.1);
                return Err(Error::invalid(what).remedy(format!("set options->{} alone", self.field)));
            }
            chosen = (value, name);
        }
        Ok(chosen.0)
    }
}

/// The deepest level that a tree may have.
const MOST_LEVELS: u32 = 6;

/// What `nodes` asks for.
fn wanted_nodes(options: &COptions, source: SourceKind, cores: CoreKind) -> Result<WantedNodes> {
    let count = options.node_count as usize;
    let Some((wanted, rest)) = options.nodes.split_at_checked(count) else {
        return Err(Error::invalid(format!("options->node_count is {count}"))
            .remedy(format!("{MOST_WANTED} is the most")));
    };
    let in_first_size = (COptions::FIRST - offset_of!(COptions, nodes)) / size_of::<u32>();
    if options.size == 0 && count > in_first_size {
        return Err(Error::invalid(format!("options->size is 0, which has room for {in_first_size} nodes"))
            .remedy("set it to sizeof(struct td_options)"));
    }
    if let Some(node) = rest.iter().find(|node| **node != TD_NODE_NONE) {
        let what = format!("options->nodes has {node} behind the first {count}");
        return Err(Error::invalid(what).remedy("set options->node_count to the number of all"));
    }
    for (place, &node) in wanted.iter().enumerate() {
        if model::metric(node).is_none() {
            let what = format!("options->nodes[{place}] is {node}, which is no node");
            return Err(Error::invalid(what).remedy("use a TD_NODE_*, or what td_node_id says"));
        }
        if wanted[..place].contains(&node) {
            return Err(Error::invalid(format!("options->nodes has {} twice", td_node(node))));
        }
    }
    if wanted.is_empty() {
        return Ok(WantedNodes::default());
    }
    if options.level > MOST_LEVELS {
        let what = format!("level {} is none with options->nodes: 0, or 1 to {MOST_LEVELS}", options.level);
        return Err(Error::invalid(what));
    }
    let with =
        |what: &str, why: &'static str| Err(Error::invalid(format!("options->nodes with {what}")).why(why));
    if options.subtree != TD_NODE_NONE {
        return with("options->subtree", "each chooses the group");
    }
    if source == SourceKind::Registers {
        return with("TD_SOURCE_REGISTERS", "those have levels 1 and 2 alone");
    }
    if cores == CoreKind::Efficiency {
        return with("TD_CORES_E", "options->subtree has what E-cores count");
    }
    if options.flags & TD_FLAG_SIMULATE != 0 {
        return with("TD_FLAG_SIMULATE", "what is simulated has the nodes that its core's own levels have");
    }
    let mut ids = [TD_NODE_NONE; MOST_WANTED];
    ids[..count].copy_from_slice(wanted);
    Ok(WantedNodes { ids, level: options.level })
}

/// perf's name of a node.
fn td_node(node: u32) -> &'static str {
    model::metric(node).map_or("", |metric| metric.field())
}

fn interpret(options: &COptions) -> Result<Options> {
    let known = TD_FLAG_KERNEL
        | TD_FLAG_INHERIT
        | TD_FLAG_NO_RDPMC
        | TD_FLAG_SIMULATE
        | TD_FLAG_REGISTERS
        | TD_FLAG_COUNTERS
        | TD_FLAG_BARE
        | TD_FLAG_E_CORES;
    if options.flags & !known != 0 {
        return Err(Error::invalid(format!(
            "options->flags has unknown bits: {:#x}",
            options.flags & !known
        )));
    }
    let target = match (options.target, options.id) {
        (TD_TARGET_SELF, 0) => Target::This,
        (TD_TARGET_SELF, id) => {
            return Err(Error::invalid(format!("options->id is {id}, but TD_TARGET_SELF takes 0")));
        }
        (TD_TARGET_TASK, id) => Target::Task(id),
        (TD_TARGET_CPU, id) => Target::Cpu(
            u32::try_from(id).map_err(|_| Error::invalid(format!("options->id is {id}, which is no CPU")))?,
        ),
        (target, _) => {
            return Err(Error::invalid(format!("options->target is {target}, which is no TD_TARGET_*")));
        }
    };
    let source = match SOURCE.of(options.source, options.flags)? {
        TD_SOURCE_REGISTERS => SourceKind::Registers,
        TD_SOURCE_COUNTERS => SourceKind::Counters,
        _ => SourceKind::Automatic,
    };
    let cores = match CORE_TYPE.of(options.core_type, options.flags)? {
        TD_CORES_P => CoreKind::Performance,
        TD_CORES_E => CoreKind::Efficiency,
        _ => CoreKind::Automatic,
    };
    if source != SourceKind::Automatic && options.flags & TD_FLAG_SIMULATE != 0 {
        return Err(Error::invalid(
            "options->source, or a flag of it in options->flags, with TD_FLAG_SIMULATE",
        )
        .remedy("choose a simulated core by td_simulate"));
    }
    if source == SourceKind::Registers && cores == CoreKind::Efficiency {
        return Err(Error::invalid("options has TD_SOURCE_REGISTERS with TD_CORES_E")
            .why("E-cores have no PERF_METRICS"));
    }
    if options.subtree != TD_NODE_NONE && !model::has_children(options.subtree) {
        return Err(Error::invalid(format!(
            "options->subtree is {}, below which is no node",
            options.subtree
        ))
        .remedy("use the TD_NODE_* of a node that is the parent of others"));
    }
    if options.subtree != TD_NODE_NONE && source == SourceKind::Registers {
        return Err(
            Error::invalid("options->subtree with TD_SOURCE_REGISTERS").why("those count level 2 whole")
        );
    }
    for (name, ppm) in [("error", options.max_error_ppm), ("overhead", options.max_overhead_ppm)] {
        if ppm > 1_000_000 {
            return Err(
                Error::invalid(format!("options->max_{name}_ppm is {ppm}")).remedy("all there is is 1000000")
            );
        }
    }
    let nodes = wanted_nodes(options, source, cores)?;
    Ok(Options {
        record_slots: 0,
        record_cgroups: false,
        target,
        level: if nodes.is_empty() { options.level } else { 0 },
        subtree: options.subtree,
        group: 0,
        nodes,
        kernel: options.flags & TD_FLAG_KERNEL != 0,
        inherit: options.flags & TD_FLAG_INHERIT != 0,
        on_exec: false,
        off: false,
        in_turns: false,
        source,
        beside_registers: false,
        corrections: match options.flags & TD_FLAG_BARE {
            0 => Corrections::Counted,
            _ => Corrections::Bare,
        },
        no_rdpmc: options.flags & TD_FLAG_NO_RDPMC != 0,
        cores,
        simulate: options.flags & TD_FLAG_SIMULATE != 0,
        core: "",
        max_error_ppm: options.max_error_ppm,
        max_overhead_ppm: options.max_overhead_ppm,
        descriptors_from: 0,
    })
}
