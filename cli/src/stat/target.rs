//! Which threads, processes or CPUs are counted.
#![forbid(unsafe_code)]

use super::group::{Group, GroupTarget};
use super::groups::Groups;
use super::ipc::Kind;
use crate::sys::{self, Family};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::str;
use std::sync::OnceLock;
use topdown::{Error, Options};
use topdown_seam::numbers;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Whose slots are counted, if not those of a command alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatTarget {
    Processes(BTreeSet<i32>),
    Threads(BTreeSet<i32>),
    /// These; or all that are online.
    Cpus(Option<BTreeSet<u32>>),
}

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

/// What comes to its end when a thread or process does.
pub enum Ending {
    Process(OwnedFd),
    Thread(Family),
}

impl Ending {
    pub fn descriptor(&self) -> i32 {
        match self {
            Ending::Process(process) => process.as_raw_fd(),
            Ending::Thread(thread) => thread.descriptor(),
        }
    }
}

impl StatTarget {
    /// Opens the groups.
    ///
    /// # Errors
    /// Those of `td_open`; what is said of one is of which.
    pub fn open(&self, options: &Options, kinds: &[Kind]) -> Result<Groups, Error> {
        match self {
            StatTarget::Processes(ids) => of_processes(ids, options, kinds),
            StatTarget::Threads(ids) => Groups::of_threads(ids.iter().copied(), options, kinds),
            StatTarget::Cpus(Some(cpus)) => Groups::of_cpus(cpus.iter().copied(), options, kinds),
            StatTarget::Cpus(None) => Groups::of_cpus(online().into_iter(), options, kinds),
        }
    }

    /// The CPUs among them that are online now.
    pub fn online(&self) -> Option<BTreeSet<u32>> {
        match self {
            StatTarget::Cpus(None) => Some(online()),
            StatTarget::Cpus(Some(cpus)) => Some(online().intersection(cpus).copied().collect()),
            _ => None,
        }
    }

    /// What ends with them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn endings(&self) -> io::Result<Vec<Ending>> {
        let ended = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        let all: Vec<io::Result<Ending>> = match self {
            StatTarget::Processes(ids) => {
                ids.iter().map(|id| sys::process(*id).map(Ending::Process)).collect()
            }
            StatTarget::Threads(ids) => ids.iter().map(|id| Family::alone(*id).map(Ending::Thread)).collect(),
            StatTarget::Cpus(_) => Vec::new(),
        };
        all.into_iter().filter(|one| !one.as_ref().is_err_and(ended)).collect()
    }

    /// For the report: what was counted.
    pub fn title(&self) -> String {
        let list = |ids: &BTreeSet<i32>| {
            let named = |id: &i32| format!("{id} ({})", name_of(*id));
            ids.iter().map(named).collect::<Vec<_>>().join(", ")
        };
        match self {
            StatTarget::Processes(ids) => format!("process {}", list(ids)),
            StatTarget::Threads(ids) => format!("thread {}", list(ids)),
            StatTarget::Cpus(None) => "all CPUs".into(),
            StatTarget::Cpus(Some(cpus)) => {
                let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
                format!("CPU {}", cpus.join(","))
            }
        }
    }
}

/// What a process or thread calls itself.
pub fn name_of(id: i32) -> String {
    fs::read_to_string(format!("/proc/{id}/comm")).map_or("ended".into(), |name| name.trim_end().into())
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

/// A thread that is started while those before are opened is counted by its parent's group if that was open already; to be sure,
/// nothing is kept of a try in which the threads were others in the end than in the beginning.
fn of_processes(ids: &BTreeSet<i32>, options: &Options, kinds: &[Kind]) -> Result<Groups, Error> {
    const TRIES: u32 = 20;
    let threads = || -> Result<BTreeSet<i32>, Error> {
        let mut all = BTreeSet::new();
        for id in ids {
            let tasks = fs::read_dir(format!("/proc/{id}/task"))
                .map_err(|_| Error::new(-libc::ESRCH, format!("there is no process {id}")))?;
            let number =
                |task: io::Result<fs::DirEntry>| task.ok()?.file_name().to_str()?.parse::<i32>().ok();
            all.extend(tasks.filter_map(number));
        }
        Ok(all)
    };
    let mut before = threads()?;
    for _ in 0..TRIES {
        let groups = Groups::of_threads(before.iter().copied(), options, kinds)?;
        let after = threads()?;
        if after.is_subset(&before) {
            return Ok(groups);
        }
        before = after;
    }
    Err(Error::new(
        -libc::EAGAIN,
        "the process starts threads all the time, so it is not known which are counted twice",
    )
    .remedy("start it by `topdown stat`, or count CPUs: -a"))
}

/// What rows are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsPer {
    Core,
    Socket,
    Thread,
    Process,
}

impl RowsPer {
    pub fn name(self) -> &'static str {
        match self {
            RowsPer::Core => "core",
            RowsPer::Socket => "socket",
            RowsPer::Thread => "thread",
            RowsPer::Process => "process",
        }
    }

    /// Of what a group is, in perf's words.
    pub fn label(self, group: &Group) -> String {
        let topology = |cpu: u32, what: &str| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
            fs::read_to_string(path).map_or("?".into(), |text| text.trim().to_string())
        };
        match (self, &group.of) {
            (RowsPer::Core, GroupTarget::Cpu(cpu)) => {
                format!("S{}-C{}", topology(*cpu, "physical_package_id"), topology(*cpu, "core_id"))
            }
            (RowsPer::Socket, GroupTarget::Cpu(cpu)) => format!("S{}", topology(*cpu, "physical_package_id")),
            (_, GroupTarget::Thread(id)) => format!("{id} {}", name_of(*id)),
            _ => String::new(),
        }
    }
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
