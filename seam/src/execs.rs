//! Whether all programs that a process and its children execute keep the events that they have inherited.
//!
//! The kernel takes a task's events away at two points: when it ends, and, of a program that the user may not look into (setuid, setgid,
//! with file capabilities, not readable), while it is executed. Of the second nothing tells directly. But a program that keeps its
//! events is told of twice, when it takes its name and when its vDSO is mapped, and one that loses them in between, once. So is one that is
//! killed between the two; but where its executable was mapped before, its events were still there: they are taken away before that.
//!
//! A process whose parent ended before it is waited for by none of the others, and its CPU time is in that of none: its end tells.
#![forbid(unsafe_code)]

use super::attr::dummy;
use super::linux::page_size;
use super::records;
use super::ring::RecordRing;
use super::{Kernel, Linux};
use perf_event_open_sys::bindings::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_MISC_COMM_EXEC,
    PERF_RECORD_MMAP, PERF_SAMPLE_TIME,
};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Pages for the records of each CPU: an eighth of the 516 KiB that it gives a user.
const PAGES: usize = 16;
/// No record is longer: one of a mapping has a path.
const LONGEST: usize = 8192;

/// An event for each CPU, which counts nothing, and what its records have said.
#[derive(Debug)]
pub struct Execs {
    rings: Vec<(<Linux as Kernel>::Fd, RecordRing)>,
    tally: ExecTally,
}

/// What is known of the events of all programs that were executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecEvents {
    /// All programs have kept them.
    All,
    /// A program has lost them.
    NotAll,
    /// Neither is known: a record may be missing.
    Unknown,
}

#[derive(Debug, Default)]
struct ExecTally {
    processes: HashMap<u32, Programs>,
    /// Processes of which a program has not kept its events, as far as the records have come.
    lost: HashSet<u32>,
    /// All that were started, and the parents of those that ended.
    started: HashSet<u32>,
    parents: HashSet<u32>,
    /// A record may be missing.
    gaps: bool,
}

/// What is known of the programs of one process id; times are the kernel's, in nanoseconds.
#[derive(Debug, Default)]
struct Programs {
    executed: u64,
    /// Those that were told of twice.
    kept: u64,
    /// When the last was executed, when the last was told of again, and when the last of anything executable was mapped.
    last_executed: u64,
    last_kept: u64,
    last_mapped: u64,
}

/// Nobody can have used up all other process ids since.
const SOON: u64 = 100_000_000;

impl Execs {
    /// Of a process that is about to execute a program, on these CPUs.
    ///
    /// # Errors
    /// EPERM: kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK are used up; the kernel's others.
    pub fn of(pid: i32, cpus: impl Iterator<Item = u32>) -> io::Result<Execs> {
        let mut attr = dummy();
        attr.set_inherit(1);
        attr.set_exclude_kernel(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_mmap(1);
        attr.set_task(1);
        attr.sample_type = PERF_SAMPLE_TIME.into();
        attr.set_sample_id_all(1);
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = (PAGES * page_size() / 4) as u32;
        let ring = |cpu: u32| {
            let event = Linux::default().open(&attr, pid, cpu as i32)?;
            let ring = RecordRing::map(&event, PAGES)?;
            Ok((event, ring))
        };
        let started = HashSet::from([pid as u32, std::process::id()]); // (who waits for the command itself)
        let tally = ExecTally { started, ..ExecTally::default() };
        Ok(Execs { rings: cpus.map(ring).collect::<io::Result<_>>()?, tally })
    }

    /// Of each buffer; poll(2) wakes when a quarter is full.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.rings.iter().map(|(event, _)| event.as_raw_fd())
    }

    /// Makes room for records.
    pub fn take(&mut self) {
        let (Execs { rings, tally }, mut words) = (self, Vec::new());
        for (_, ring) in rings {
            ring.take(&mut words, |words| tally.add(words));
            tally.gaps |= !ring.had_room(LONGEST);
        }
    }

    /// Whether all programs that were executed so far have kept their events, on a kernel that maps vDSOs.
    pub fn kept(&mut self) -> ExecEvents {
        self.take();
        self.tally.kept()
    }

    /// Whether processes have ended whose parents had ended before: nobody of the command waited for them.
    pub fn has_orphans(&self) -> bool {
        self.tally.has_orphans()
    }
}

impl ExecTally {
    fn add(&mut self, words: &[u64]) {
        // (process and thread, then what is the kind's own, then the time)
        let &[header, process, ref body @ .., time] = words else { return };
        let ((kind, misc), pid) = (records::header(header), process as u32);
        if kind == PERF_RECORD_LOST {
            self.gaps = true;
        } else if kind == PERF_RECORD_COMM && misc & PERF_RECORD_MISC_COMM_EXEC != 0 {
            self.learn(pid, |programs| {
                programs.executed += 1;
                programs.last_executed = programs.last_executed.max(time);
            });
        } else if kind == PERF_RECORD_FORK {
            self.started.insert(pid);
        } else if kind == PERF_RECORD_EXIT {
            // (the process, then its parent; both have the thread in the upper half)
            self.parents.insert((process >> 32) as u32);
        } else if kind == PERF_RECORD_MMAP {
            // (address, length, offset, name)
            let name = body.get(3).map(|word| word.to_ne_bytes());
            self.learn(pid, |programs| {
                programs.last_mapped = programs.last_mapped.max(time);
                if name.is_some_and(|name| name.starts_with(b"[vdso]\0")) {
                    programs.kept += 1;
                    programs.last_kept = programs.last_kept.max(time);
                }
            });
        }
    }

    fn learn(&mut self, pid: u32, more: impl FnOnce(&mut Programs)) {
        let programs = self.processes.entry(pid).or_default();
        more(programs);
        if programs.all_kept() {
            self.lost.remove(&pid);
        } else {
            self.lost.insert(pid);
        }
    }

    fn has_orphans(&self) -> bool {
        !self.parents.is_subset(&self.started)
    }

    fn kept(&self) -> ExecEvents {
        let executed = self.processes.values().any(|programs| programs.executed > 0);
        match (executed && !self.gaps, self.lost.is_empty()) {
            (true, true) => ExecEvents::All,
            (true, false) => ExecEvents::NotAll,
            (false, _) => ExecEvents::Unknown,
        }
    }
}

impl Programs {
    fn all_kept(&self) -> bool {
        let killed_since = self.last_kept < self.last_executed
            && self.last_executed < self.last_mapped
            && self.last_mapped - self.last_executed < SOON;
        // (one that is killed before anything is mapped cannot be told from one that has lost its events: to lose them is to tell of an end)
        self.executed == self.kept || self.executed == self.kept + 1 && killed_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process 7 executes a program.
    fn named(time: u64) -> [u64; 4] {
        [PERF_RECORD_COMM as u64 | (PERF_RECORD_MISC_COMM_EXEC as u64) << 32, 7, 0, time]
    }

    fn mapped(name: &[u8; 8], time: u64) -> [u64; 7] {
        [PERF_RECORD_MMAP.into(), 7, 0x1000, 0x1000, 0, u64::from_ne_bytes(*name), time]
    }

    fn tally(records: &[&[u64]]) -> ExecTally {
        let mut tally = ExecTally::default();
        records.iter().for_each(|words| tally.add(words));
        tally
    }

    fn all_kept(records: &[&[u64]]) -> bool {
        tally(records).kept() == ExecEvents::All
    }

    #[test]
    fn a_program_without_its_vdso_has_lost_its_events() {
        let (vdso, before) = (mapped(b"[vdso]\0\0", 3), mapped(b"/lib/x.\0", 1));
        let renamed = [PERF_RECORD_COMM.into(), 7, 0, 2];
        let lost = [PERF_RECORD_LOST.into(), 1, 1, 9];
        assert!(all_kept(&[&named(2), &before, &vdso]));
        assert!(all_kept(&[&vdso, &named(5), &renamed, &named(2), &mapped(b"[vdso]\0\0", 6)])); // other CPUs' come in any order
        let none: [&[&[u64]]; 7] = [
            &[],
            &[&named(2)],
            &[&before, &named(2)],
            &[&named(2), &vdso, &named(4)],
            &[&named(2), &vdso, &lost],
            &[&named(2), &named(2), &before],
            &[&[named(2)[0], 8, 0, 2], &named(2), &vdso], // another process
        ];
        for records in none {
            assert!(!all_kept(records), "{records:?}");
        }
    }

    #[test]
    fn a_loss_is_one_that_was_seen() {
        let (vdso, lost) = (mapped(b"[vdso]\0\0", 3), [PERF_RECORD_LOST.into(), 1, 1, 9]);
        assert_eq!(tally(&[&named(2), &vdso, &named(4)]).kept(), ExecEvents::NotAll);
        assert_eq!(tally(&[&named(2)]).kept(), ExecEvents::NotAll);
        assert_eq!(tally(&[]).kept(), ExecEvents::Unknown);
        assert_eq!(tally(&[&named(2), &vdso, &named(4), &lost]).kept(), ExecEvents::Unknown);
    }

    #[test]
    fn whose_parent_is_of_the_command_is_no_orphan() {
        let [fork, exit] = [PERF_RECORD_FORK, PERF_RECORD_EXIT].map(u64::from);
        let task = |kind: u64, pid: u64, parent: u64| [kind, pid | parent << 32, pid | parent << 32, 5, 6];
        let orphans = |records: &[&[u64]]| {
            let mut tally = ExecTally { started: HashSet::from([7]), ..ExecTally::default() };
            records.iter().for_each(|words| tally.add(words));
            tally.has_orphans()
        };
        assert!(!orphans(&[&task(fork, 8, 7), &task(exit, 9, 8), &task(exit, 8, 7), &task(fork, 9, 8)]));
        assert!(orphans(&[&task(fork, 8, 7), &task(fork, 9, 8), &task(exit, 8, 7), &task(exit, 9, 1)]));
    }

    #[test]
    fn one_that_is_killed_once_it_is_mapped_has_kept_them() {
        let (vdso, program) = (mapped(b"[vdso]\0\0", 3), mapped(b"/bin/sh\0", 6));
        assert!(all_kept(&[&named(2), &vdso, &named(5), &program]));
        // it takes longer to use up all process ids, and one that lost them may have been the last of its id before
        assert!(!all_kept(&[&named(2), &vdso, &named(5), &mapped(b"/lib/x.\0", 5 + SOON)]));
        assert!(!all_kept(&[&named(1), &named(2), &vdso]));
        assert!(!all_kept(&[&named(2), &named(5), &program]));
    }
}
