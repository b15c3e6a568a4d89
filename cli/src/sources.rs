//! Who counts what of `topdown run`: the whole from outside, and regions by the library inside, of counters that both want.
#![forbid(unsafe_code)]

use crate::stat::{E_CORES, P_CORES};
use crate::{sys, unmeasured};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::time::{Duration, Instant};
use topdown::{CoreKind, Corrections, Options, SourceKind, TopDown};
use topdown_seam::thread::on_cpus;

/// What a program has in it that marks regions: a function of `topdown_region.h`, one of LIKWID's markers, and the variable that names a
/// collector to programs with Intel's ITT API.
const MARKS: [&[u8]; 3] = [b"td_region_begin", b"likwid_marker", b"INTEL_LIBITTNOTIFY"];
/// Patterns of functions that are regions.
const PATTERNS: [&str; 2] = ["TOPDOWN_REGIONS", "TOPDOWN_FUNCTIONS"];
/// No more of a file is looked at.
const MOST: usize = 32 << 20;

/// Whether a command marks regions itself, as far as that can be seen in the program, and in programs that its arguments name.
pub fn has_marks(command: &[OsString]) -> bool {
    let marks = |word: &OsString| {
        let path = unmeasured::find(word).filter(|path| path.is_file())?;
        let file = sys::mapped(&path).ok().filter(|file| unmeasured::is_reached(file))?;
        let file = &file[..file.len().min(MOST)];
        Some(MARKS.iter().any(|mark| file.windows(mark.len()).any(|part| part == *mark)))
    };
    command.iter().any(|word| marks(word) == Some(true))
}

/// Whether functions are regions by a variable of the environment.
pub fn has_patterns() -> bool {
    PATTERNS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Groups of level 1 from outside that the library's own groups of general-purpose counters fit beside, and what the library is to be told.
pub struct SharedCounters {
    pub outside: Options,
    pub inside: Vec<(&'static str, &'static str)>,
}

/// None: they do not fit on each kind of core.
pub fn shared() -> Option<SharedCounters> {
    // (both fit if the whole has no event more: regions count what the published metrics correct it by)
    let outside = Options {
        level: 1,
        source: SourceKind::Counters,
        beside_registers: true,
        corrections: Corrections::Bounded,
        ..Options::default()
    };
    let kinds = [P_CORES, E_CORES].map(|pmu| {
        let cpus = fs::read_to_string(format!("/sys/bus/event_source/devices/{pmu}/cpus")).ok()?;
        Some((cpus.trim().to_string(), pmu == E_CORES))
    });
    let kinds: Vec<(String, bool)> = kinds.into_iter().flatten().collect();
    let (source, fits) = match &kinds[..] {
        [] => {
            // (else each thread would try, and take turns with the outside meanwhile)
            let inside = Options { level: 1, source: SourceKind::Counters, ..Options::default() };
            let bounded = is_bounded_beside(&outside, &inside) == Some(true);
            let source = if bounded { "counters alone" } else { "counters" };
            (source, both_count(&outside, SourceKind::Counters))
        }
        // (it takes both kinds of core of its own accord, if general-purpose counters are free)
        kinds => (
            "",
            kinds.iter().all(|(cpus, e_cores)| {
                let of_e_cores = Options { cores: CoreKind::Efficiency, level: 1, ..Options::default() };
                let outside = if *e_cores { of_e_cores } else { outside };
                on_cpus(Some(cpus), || both_count(&outside, SourceKind::Automatic)).unwrap_or(false)
            }),
        ),
    };
    let inside = [("TOPDOWN_SOURCE", source), ("TOPDOWN_LEVEL", "1")];
    fits.then(|| SharedCounters {
        outside,
        inside: inside.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
    })
}

/// Whether no counter is left for what corrects such a group; None: it does not open.
pub fn is_bounded(options: &Options) -> Option<bool> {
    let info = TopDown::open(options).ok()?.info().ok()?;
    Some(topdown::is_bounded(&info.core))
}

/// The same of one that opens beside another.
fn is_bounded_beside(outside: &Options, inside: &Options) -> Option<bool> {
    let _outside = TopDown::open(outside).ok()?;
    is_bounded(inside)
}

/// Whether a group leaves the library, which counts registers beside it, the counters for what corrects these.
pub fn leaves_what_corrects_registers(outside: &Options) -> bool {
    let inside = Options { source: SourceKind::Registers, ..Options::default() };
    is_bounded_beside(outside, &inside) == Some(false)
}

/// Whether a group and one of the library's count all the time beside each other, in the calling thread.
fn both_count(outside: &Options, source: SourceKind) -> bool {
    const WHILE: Duration = Duration::from_millis(5); // longer than a tick, at which the kernel lets groups take turns
    let open = || {
        Some([
            TopDown::open(outside).ok()?,
            TopDown::open(&Options { level: 1, source, ..Options::default() }).ok()?,
        ])
    };
    let Some(both) = open() else { return false };
    let is_hybrid = both[1].info().is_ok_and(|info| info.of_both_kinds);
    if source == SourceKind::Automatic && !is_hybrid {
        return false; // registers, of P-cores alone
    }
    let times = || {
        let times = both.each_ref().map(|one| one.read().ok());
        times.map(|sample| sample.map(|sample| (sample.time_enabled_ns, sample.time_running_ns)))
    };
    let (before, began) = (times(), Instant::now());
    while began.elapsed() < WHILE {
        std::hint::spin_loop();
    }
    before.iter().zip(times()).all(|(before, after)| match (before, after) {
        (Some((enabled, running)), Some((enabled_then, running_then))) => {
            // (of both kinds of core time enabled is known within two system calls at first)
            let missing = (enabled_then - enabled).saturating_sub(running_then - running);
            enabled_then > *enabled && missing <= if is_hybrid { 100_000 } else { 0 }
        }
        _ => false,
    })
}

/// For the report, of a program with regions: what was counted by what.
pub fn note(shared: Option<&SharedCounters>) -> &'static str {
    match shared {
        Some(_) => {
            "the whole and the regions share the general counters, and have level 1 each (--inside: both levels of regions; \
             --td-level 2: both levels of the whole, and regions by registers)"
        }
        None => {
            "the general counters are the regions', so the whole is what processes counted themselves: without static programs, and what a \
             killed one did last (--outside: all of the whole, and no regions)"
        }
    }
}

/// Whether somebody has chosen what the library counts.
pub fn is_chosen() -> bool {
    ["TOPDOWN_SOURCE", "TOPDOWN_LEVEL", "TOPDOWN_NODES"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| value != OsStr::new("")))
}
