//! Processes and threads that are recorded, and CPUs that they may run on.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use topdown_seam::numbers;

/// Of which processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedProcesses {
    /// Those that were named, and what they start.
    AllStarted,
    /// One process without its children, and without the thread that records.
    Only { pid: i32, but: i32 },
    /// All that run on the CPUs that are recorded.
    OnCpus,
}

impl RecordedProcesses {
    /// Whether this is the thread that records.
    pub fn leaves_out(self, tid: i32) -> bool {
        matches!(self, RecordedProcesses::Only { but, .. } if but == tid)
    }

    /// Whether this process is recorded.
    pub fn records(self, pid: i32) -> bool {
        !matches!(self, RecordedProcesses::Only { pid: only, .. } if only != pid)
    }
}

/// CPUs that are online.
pub(crate) fn online() -> Vec<u32> {
    numbers::listed(&fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default())
}

/// All processes, by /proc.
pub(crate) fn processes() -> Vec<i32> {
    let all = fs::read_dir("/proc").into_iter().flatten();
    all.filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The processes of these threads, if they are there, by /proc.
pub(crate) fn running(threads: impl Iterator<Item = i32>) -> BTreeSet<i32> {
    threads.filter_map(process_of).collect()
}

/// The process of a thread, if it is there, by /proc.
pub(crate) fn process_of(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")).and_then(|pid| pid.trim().parse().ok())
}

/// Threads of a process, by /proc.
pub(crate) fn threads_of(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Whether cores run two threads now.
pub(crate) fn smt_is_on() -> bool {
    fs::read_to_string("/sys/devices/system/cpu/smt/active").is_ok_and(|active| active.trim() == "1")
}
