//! Which threads, processes or CPUs are counted.
#![forbid(unsafe_code)]

use super::cpus::online;
use super::groups::Groups;
use super::ipc::IpcPmu;
use super::rows_per::name_of;
use crate::sys::{self, CpuTimeOf, Family};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use topdown::{Error, Options};

/// Whose slots are counted, if not those of a command alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatTarget {
    Processes(BTreeSet<i32>),
    Threads(BTreeSet<i32>),
    /// These; or all that are online.
    Cpus(Option<BTreeSet<u32>>),
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
    pub fn open(&self, options: &Options, kinds: &[IpcPmu]) -> Result<Groups, Error> {
        match self {
            StatTarget::Processes(ids) => of_processes(ids, options, kinds),
            StatTarget::Threads(ids) => Groups::of_threads(ids.iter().copied(), options, kinds),
            StatTarget::Cpus(Some(cpus)) => Groups::of_cpus(cpus.iter().copied(), options, kinds),
            StatTarget::Cpus(None) => Groups::of_cpus(online().into_iter(), options, kinds),
        }
    }

    /// Processes that are among them by their ids.
    pub fn pids(&self) -> Vec<i32> {
        match self {
            StatTarget::Processes(ids) => ids.iter().copied().collect(),
            _ => Vec::new(),
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

    /// Their CPU time from now on.
    pub fn cpu_time(&self) -> CpuTimeOf {
        match self {
            StatTarget::Processes(ids) => CpuTimeOf::processes(ids.iter().copied()),
            StatTarget::Threads(ids) => CpuTimeOf::threads(ids.iter().copied()),
            StatTarget::Cpus(Some(cpus)) => CpuTimeOf::cpus(cpus.iter().map(|cpu| format!("cpu{cpu}"))),
            StatTarget::Cpus(None) => CpuTimeOf::cpus(["cpu".into()].into_iter()),
        }
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

/// A thread that is started while those before are opened is counted by its parent's group if that was open already; to be sure,
/// nothing is kept of a try in which the threads were others in the end than in the beginning.
fn of_processes(ids: &BTreeSet<i32>, options: &Options, kinds: &[IpcPmu]) -> Result<Groups, Error> {
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
