//! Events that the kernel knows by number on every machine, by perf's names: software events, generic events of cores and
//! caches, and tracepoints.

use perf_event_open_sys::bindings::{
    PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT,
};
use topdown_seam::sysfs::Sysfs;
use topdown_seam::terms::Unresolved;

/// PERF_COUNT_SW_*, in the order of their numbers; none has an empty name.
const SOFTWARE: [&[&str]; 12] = [
    &["cpu-clock"],
    &["task-clock"],
    &["page-faults", "faults"],
    &["context-switches", "cs"],
    &["cpu-migrations", "migrations"],
    &["minor-faults"],
    &["major-faults"],
    &["alignment-faults"],
    &["emulation-faults"],
    &["dummy"],
    &["bpf-output"],
    &["cgroup-switches"],
];

/// PERF_COUNT_HW_*.
const HARDWARE: [&[&str]; 10] = [
    &["cpu-cycles", "cycles"],
    &["instructions"],
    &["cache-references"],
    &["cache-misses"],
    &["branch-instructions", "branches"],
    &["branch-misses"],
    &["bus-cycles"],
    &["stalled-cycles-frontend", "idle-cycles-frontend"],
    &["stalled-cycles-backend", "idle-cycles-backend"],
    &["ref-cycles"],
];

/// PERF_COUNT_HW_CACHE_*, and the operations that each has (bit 0: read, 1: write, 2: prefetch).
const CACHES: [(&[&str], u64); 7] = [
    (&["L1-dcache", "l1-d", "l1d", "L1-data"], 0b111),
    (&["L1-icache", "l1-i", "l1i", "L1-instruction"], 0b101),
    (&["LLC", "L2"], 0b111),
    (&["dTLB", "d-tlb", "Data-TLB"], 0b111),
    (&["iTLB", "i-tlb", "Instruction-TLB"], 0b001),
    (&["branch", "branches", "bpu", "btb", "bpc"], 0b001),
    (&["node"], 0b111),
];

/// PERF_COUNT_HW_CACHE_OP_*.
const OPERATIONS: [&[&str]; 3] = [
    &["load", "loads", "read"],
    &["store", "stores", "write"],
    &["prefetch", "prefetches", "speculative-read", "speculative-load"],
];

/// PERF_COUNT_HW_CACHE_RESULT_*.
const RESULTS: [&[&str]; 2] = [&["refs", "Reference", "ops", "access"], &["misses", "miss"]];

/// Type and config of a name without qualifiers.
pub fn numbers(name: &str) -> Option<(u32, u64)> {
    let exactly = |known: &str| known == name;
    let of = |kind, names: &[&[&str]]| Some((kind, place(names, exactly)?));
    of(PERF_TYPE_SOFTWARE, &SOFTWARE)
        .or_else(|| of(PERF_TYPE_HARDWARE, &HARDWARE))
        .or_else(|| Some((PERF_TYPE_HW_CACHE, cache(name)?)))
}

fn place(names: &[&[&str]], is_it: impl Fn(&str) -> bool) -> Option<u64> {
    let place = names.iter().position(|names| names.iter().any(|known| is_it(known)));
    place.map(|place| place as u64)
}

/// Words of caches may be written in any case.
fn number(names: &[&[&str]], name: &str) -> Option<u64> {
    place(names, |known| known.eq_ignore_ascii_case(name))
}

/// CACHE, CACHE-OPERATION, CACHE-RESULT or both, in either order: reads and accesses, if it does not say.
fn cache(name: &str) -> Option<u64> {
    CACHES.iter().zip(0..).find_map(|((names, operations), cache)| {
        names.iter().find_map(|known| {
            let (start, rest) = name.split_at_checked(known.len())?;
            let (operation, result) = start.eq_ignore_ascii_case(known).then(|| access(rest))??;
            (operations >> operation & 1 != 0).then_some(cache | operation << 8 | result << 16)
        })
    })
}

/// What follows a cache: "", "-loads", "-misses", "-load-misses".
fn access(text: &str) -> Option<(u64, u64)> {
    if text.is_empty() {
        return Some((0, 0));
    }
    let text = text.strip_prefix('-')?;
    let both = || {
        text.match_indices('-').find_map(|(at, _)| {
            let (first, second) = (&text[..at], &text[at + 1..]);
            let pair = |operation, result| Some((number(&OPERATIONS, operation)?, number(&RESULTS, result)?));
            pair(first, second).or_else(|| pair(second, first))
        })
    };
    let operation = number(&OPERATIONS, text).map(|operation| (operation, 0));
    operation.or_else(|| Some((0, number(&RESULTS, text)?))).or_else(both)
}

/// A tracepoint, SYSTEM:NAME, and the qualifiers behind a second colon: type, config, qualifiers.
pub fn tracepoint<'a>(sysfs: &Sysfs, name: &'a str) -> Result<(u32, u64, &'a str), Unresolved> {
    let (system, rest) = name.split_once(':').ok_or(Unresolved::UNKNOWN)?;
    let (event, qualifiers) = rest.split_once(':').unwrap_or((rest, ""));
    match sysfs.tracepoint(system, event) {
        Ok(number) => Ok((PERF_TYPE_TRACEPOINT, number, qualifiers)),
        // modifiers of an unknown name have no underscore, and most tracepoints have
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && event.contains('_') => {
            Err(Unresolved::because(format!(
                "{name}: tracefs (/sys/kernel/tracing) may not be read: run as root, or mount it with a group of yours (-o gid=)"
            )))
        }
        Err(_) => Err(Unresolved::UNKNOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_perfs() {
        for (name, expected) in [
            ("cs", Some((1, 3))),
            ("context-switches", Some((1, 3))),
            ("page-faults", Some((1, 2))),
            ("faults", Some((1, 2))),
            ("cpu-clock", Some((1, 0))),
            ("cgroup-switches", Some((1, 11))),
            ("branches", Some((0, 4))),
            ("branch-misses", Some((0, 5))),
            ("ref-cycles", Some((0, 9))),
            ("L1-dcache-loads", Some((3, 0))),
            ("L1-dcache-load-misses", Some((3, 0x1_0000))),
            ("l1-dcache-stores", Some((3, 0x100))),
            ("L1-dcache-prefetch-misses", Some((3, 0x1_0200))),
            ("L1-icache-load-misses", Some((3, 0x1_0001))),
            ("LLC", Some((3, 2))),
            ("LLC-misses", Some((3, 0x1_0002))),
            ("LLC-speculative-load-miss", Some((3, 0x1_0202))),
            ("dTLB-store-misses", Some((3, 0x1_0103))),
            ("iTLB-loads", Some((3, 4))),
            ("branch-loads", Some((3, 5))),
            ("branch-load-misses", Some((3, 0x1_0005))),
            ("node-misses-load", Some((3, 0x1_0006))),
            ("CS", None),
            ("Instructions", None),
            ("iTLB-stores", None),
            ("L1-icache-store-misses", None),
            ("LLC-", None),
            ("LLC-load-", None),
            ("LLC-load-load", None),
            ("LLCs", None),
            ("", None),
            ("c", None),
            ("sched", None),
        ] {
            assert_eq!(numbers(name), expected, "{name}");
        }
    }
}
