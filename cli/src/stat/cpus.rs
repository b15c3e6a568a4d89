//! Numbers of CPUs: those of a list, and those that are online.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::str;
use std::sync::OnceLock;
use topdown_seam::numbers;

/// The PMUs of a hybrid CPU's two kinds of cores.
pub const P_CORES: &str = "cpu_core";
pub const E_CORES: &str = "cpu_atom";
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// CPUs of a list such as `0-3,7`.
pub fn cpu_list(list: &str) -> Result<BTreeSet<u32>, String> {
    const MOST: u64 = 1 << 16; // more than Linux has
    let mut cpus = BTreeSet::new();
    for range in numbers::ranges(list) {
        match range {
            Some(range) if *range.end() < MOST => cpus.extend(range.map(|cpu| cpu as u32)),
            _ => return Err("not a list of CPUs such as 0-3,7".into()),
        }
    }
    if cpus.is_empty() { Err("no CPU".into()) } else { Ok(cpus) }
}

/// CPUs that are online. (The file stays open, since this is asked in each interval)
pub fn online() -> BTreeSet<u32> {
    const PAGE: usize = 4096; // no longer than that is a file of sysfs
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let mut bytes = [0; PAGE];
    let file = FILE.get_or_init(|| File::open(ONLINE).ok()).as_ref();
    let length = file.and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
    str::from_utf8(&bytes[..length]).ok().and_then(|list| cpu_list(list.trim()).ok()).unwrap_or_default()
}

/// CPUs of a PMU; None: there is no such PMU.
pub fn cpus_of(pmu: &str) -> Option<BTreeSet<u32>> {
    let cpus = fs::read_to_string(format!("/sys/bus/event_source/devices/{pmu}/cpus")).ok()?;
    cpu_list(cpus.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_perfs() {
        assert_eq!(cpu_list("0-3,7").unwrap().into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 7]);
        for wrong in ["", ",", "x", "3-1", "1-", "0-99999999", "-1"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
