//! Whether a CPU's branch records tell callers while several threads run on it.
//!
//! Up to Linux 6.14 the kernel empties them at each switch to another thread where an event of the CPU asks for them: callers from before
//! the switch would be missing, and the functions that are left look as if nobody had called them. From 6.15 on it saves and restores
//! them with each thread, as it does for events of threads ("perf/x86/lbr: Fix shorter LBRs call stacks for the system-wide mode").
#![forbid(unsafe_code)]

use std::fs;

/// The first such Linux. (Nothing in sysfs tells; some distributions may have it in an older one)
const SINCE: (u32, u32) = (6, 15);

/// Major and minor number of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// That `CallGraph::Lbr` tells callers where CPUs are recorded.
///
/// # Errors
/// Why it does not, and what does.
pub fn lbr_of_cpus() -> Result<(), String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    of(release.trim())
}

fn of(release: &str) -> Result<(), String> {
    if version(release).is_some_and(|version| version >= SINCE) {
        return Ok(());
    }
    Err(format!(
        "--call-graph lbr: with -a or -C this kernel (Linux {release}) empties the branch records whenever a CPU switches to another thread, \
         so callers would be missing; from Linux {}.{} on it keeps them. Record processes (-p), or choose fp or dwarf",
        SINCE.0, SINCE.1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_empty_branch_records_are_refused() {
        for release in ["6.15.0", "6.15-rc1", "6.16.3+deb13-amd64", "7.2.13-amd64", "10.0.0"] {
            assert_eq!(of(release), Ok(()), "{release}");
        }
        for release in ["6.14.11", "6.1.0-50-amd64", "6.2.0", "5.19.0", "", "6", "x.y"] {
            let why = of(release).unwrap_err();
            assert!(why.contains(release) && why.ends_with("choose fp or dwarf"), "{why}");
        }
    }
}
