//! A process begins to be measured: its table is there, and says of what and how.
#![forbid(unsafe_code)]

use crate::engine::{GONE, ThreadState};
use crate::output::Destination;
use crate::process::{MeasuredProcess, Threads};
use crate::tables::{TableFile, put};
use crate::threads::begin_thread;
use crate::{fault, private, say};
use std::ffi::CString;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use topdown::{Corrections, Info, OptionNames, Options, RegionTurn, SourceKind};
use topdown_table::run::stat;
use topdown_table::{Header, RANKS};

/// `open`: regions of the calling thread that began in the parent process.
pub fn begin_process(tables: TableFile, output: Destination, open: &[(CString, u32)]) {
    topdown::name_options(OptionNames {
        level: "TOPDOWN_LEVEL",
        subtree: "the subtree",
        in_parts: "TOPDOWN_LEVEL has groups of its parts take turns",
    });
    let simulated = private::setting("TOPDOWN_SIMULATE");
    let simulation = topdown::simulation(&simulated);
    let is_real = matches!(simulation, Ok(None));
    let core = simulation.as_ref().ok().copied().flatten();
    let (source, corrections) = source(&private::setting("TOPDOWN_SOURCE"));
    let options = Options {
        source,
        corrections,
        simulate: core.is_some(),
        core: core.unwrap_or_default(),
        ..Options::default()
    };
    let (options, groups) = match of_nodes(options, &private::setting("TOPDOWN_NODES")) {
        groups if groups.is_empty() => deeper(options, &private::setting("TOPDOWN_LEVEL")),
        // (each group is of general-purpose counters)
        groups => (Options { source: SourceKind::Counters, ..options }, groups),
    };
    let pid = std::process::id() as libc::pid_t;
    let run = output.run_of(pid);
    let process: &'static MeasuredProcess = Box::leak(Box::new(MeasuredProcess {
        pid,
        run,
        tables,
        options,
        groups,
        output,
        measured: AtomicBool::new(false),
        by_clocks: AtomicBool::new(false),
        threads: Mutex::<Threads>::default(),
    }));
    process.tables.describe(|header| describe_process(header, process));
    let begun = match simulation {
        Ok(_) => begin_thread(process, open).map_err(|error| error.to_string()),
        Err(error) => Err(format!("TOPDOWN_SIMULATE: {error}")),
    };
    match begun {
        Ok(refused) => {
            process.measured.store(true, Ordering::Relaxed);
            let first = process
                .threads()
                .live
                .first()
                .and_then(|first| first.td.as_ref().map(|td| (td.info(), first.others.is_empty())));
            if let Some((Ok(info), alone)) = first {
                process.tables.describe(|header| {
                    describe_counters(header, &info);
                    if !process.groups.is_empty() {
                        describe_turns(header, &info, alone, refused);
                    }
                });
            }
        }
        Err(why) => {
            // (what is to be made up has no time that is true)
            let by_clocks = is_real && begin_by_clocks(process, open);
            if !by_clocks {
                ThreadState::set_current(GONE);
            }
            process.tables.describe(|header| {
                header.time_alone = by_clocks.into();
                put(&mut header.trouble, why.as_bytes());
            });
        }
    }
    MeasuredProcess::set(Some(process));
    fault::survive(|address| MeasuredProcess::get().is_some_and(|process| process.tables.has(address)));
}

/// Whether time alone is measured, where counters cannot be opened.
fn begin_by_clocks(process: &'static MeasuredProcess, open: &[(CString, u32)]) -> bool {
    process.by_clocks.store(true, Ordering::Relaxed);
    let begun = begin_thread(process, open).is_ok();
    process.measured.store(begun, Ordering::Relaxed);
    begun
}

/// What TOPDOWN_SOURCE says.
fn source(name: &str) -> (SourceKind, Corrections) {
    let source = match name {
        "" => SourceKind::Automatic,
        "registers" => SourceKind::Registers,
        // (of `topdown run`, which has general-purpose counters)
        "registers alone" => return (SourceKind::Registers, Corrections::Bounded),
        "counters" => SourceKind::Counters,
        "counters alone" => return (SourceKind::Counters, Corrections::Bounded),
        _ => {
            say::say(&format!("TOPDOWN_SOURCE is '{name}', neither registers nor counters: ignored"));
            SourceKind::Automatic
        }
    };
    (source, Corrections::Counted)
}

/// What TOPDOWN_LEVEL says: down to which level regions are measured, and the groups that take turns if none holds all of it.
fn deeper(options: Options, level: &str) -> (Options, Vec<RegionTurn>) {
    if level.is_empty() {
        return (options, Vec::new());
    }
    let deepest = topdown::deepest_level();
    let Some(level) = level.parse().ok().filter(|level| (1..=deepest).contains(level)) else {
        say::say(&format!("TOPDOWN_LEVEL is '{level}', no level from 1 to {deepest}: ignored"));
        return (options, Vec::new());
    };
    let is_of_no_cpu = options.simulate && options.core.is_empty();
    let groups = if is_of_no_cpu { Vec::new() } else { topdown::groups_of_level(level, options.core) };
    let groups: Vec<_> = groups.into_iter().map(RegionTurn::of_subtree).collect();
    (Options { level: if groups.is_empty() { level } else { 0 }, ..options }, groups)
}

/// What TOPDOWN_NODES says: the nodes of levels 3 to 6 that regions have, by the groups that take turns; none: there are no others than
/// those of TOPDOWN_LEVEL.
fn of_nodes(options: Options, names: &str) -> Vec<RegionTurn> {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut names = names.peekable();
    if names.peek().is_none() {
        return Vec::new();
    }
    let turns = match options.simulate {
        true => Err("a simulated PMU counts none".into()),
        false => topdown::region_turns(names),
    };
    turns.unwrap_or_else(|why| {
        say::say(&format!("TOPDOWN_NODES: {why}: ignored"));
        Vec::new()
    })
}

/// What the header says of the process.
fn describe_process(header: &mut Header, process: &MeasuredProcess) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    header.started_unix_ns = now.as_nanos() as u64;
    header.pid = process.pid;
    header.parent = std::os::unix::process::parent_id() as libc::pid_t;
    (header.root, header.run) = (process.run.root, process.run.token);
    header.birth = stat(process.pid).map_or(0, |(_, birth)| birth);
    command(&mut header.command);
    host(&mut header.host);
    let mut ranks = RANKS.iter().filter_map(|name| private::variable(name));
    if let Some(rank) = ranks.find(|rank| !rank.is_empty()) {
        put(&mut header.rank, rank.to_bytes());
    }
}

/// What the header says of the counters.
fn describe_counters(header: &mut Header, info: &Info) {
    header.path = info.path as u32;
    header.level = info.level;
    header.slots_per_cycle = info.slots_per_cycle;
    header.max_error_ppm = info.max_error_ppm;
    header.max_overhead_ppm = info.max_overhead_ppm;
    put(&mut header.cpu, info.cpu.as_bytes());
    put(&mut header.pmu, info.pmu.as_bytes());
    put(&mut header.core, info.core.as_bytes());
    put(&mut header.note, info.note.to_string().as_bytes());
}

/// What the header says where groups are to take turns: the first of them is one of the core's. `alone`: there is no other.
fn describe_turns(header: &mut Header, info: &Info, alone: bool, refused: Option<topdown::Error>) {
    put(&mut header.core, topdown::core_of_subtree(&info.core).as_bytes());
    let mut note = String::from(if alone {
        "groups of counters were to take turns, and there is one alone"
    } else {
        "groups of counters take turns: what is below level 1 is of a part of the executions"
    });
    if let Some(why) = refused {
        note += &format!("; one is not there: {why}");
    }
    put(&mut header.note, note.as_bytes());
}

/// The host's name. (From a file, as the command is: no system call is made that is not made anyway.)
fn host(field: &mut [u8; 64]) {
    let mut bytes = [0; 64];
    let open = std::fs::File::open("/proc/sys/kernel/hostname");
    let length = open.and_then(|mut file| file.read(&mut bytes)).unwrap_or(0);
    put(field, bytes[..length].trim_ascii_end());
}

/// The command, as far as there is room for it, its NULs made spaces.
fn command(field: &mut [u8; 512]) {
    let mut bytes = [0; 512];
    let open = std::fs::File::open("/proc/self/cmdline");
    let length = open.and_then(|mut file| file.read(&mut bytes)).unwrap_or(0);
    bytes[..length].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    put(field, bytes[..length].trim_ascii_end());
}
