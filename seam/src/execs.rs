//! Whether all programs that a process and its children execute keep the events that they have inherited.
//!
//! The kernel takes a task's events away at two points: when it ends, and, of a program that the user may not look into (setuid, setgid,
//! with file capabilities, not readable), while it is executed. Of the second nothing tells directly. But a program that keeps its
//! events is told of twice, when it takes its name and when its vDSO is mapped, and one that loses them in between, once.
#![forbid(unsafe_code)]

use super::records::Records;
use super::{Attr, Kernel, Linux};
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_RECORD_COMM, PERF_RECORD_LOST, PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MMAP,
    PERF_TYPE_SOFTWARE,
};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Pages for the records of each CPU: an eighth of the 516 KiB that it gives a user.
const PAGES: usize = 16;
/// No record is longer: one of a mapping has a path.
const LONGEST: usize = 8192;

/// An event for each CPU, which counts nothing, and what its records have said.
#[derive(Debug)]
pub struct Execs {
    rings: Vec<(<Linux as Kernel>::Fd, Records)>,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    executed: u64,
    kept: u64,
    /// A record may be missing.
    gaps: bool,
}

impl Execs {
    /// Of a process that is about to execute a program, on these CPUs.
    ///
    /// # Errors
    /// EPERM: kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK are used up; the kernel's others.
    pub fn of(pid: i32, cpus: impl Iterator<Item = u32>) -> io::Result<Execs> {
        let mut attr = Attr {
            type_: PERF_TYPE_SOFTWARE,
            size: size_of::<Attr>() as u32,
            config: PERF_COUNT_SW_DUMMY.into(),
            ..Attr::default()
        };
        attr.set_inherit(1);
        attr.set_exclude_kernel(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_mmap(1);
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = (PAGES * 4096 / 4) as u32;
        let ring = |cpu: u32| {
            let event = Linux::default().open(&attr, pid, cpu as i32)?;
            let records = Records::of_pages(&event, PAGES)?;
            Ok((event, records))
        };
        Ok(Execs { rings: cpus.map(ring).collect::<io::Result<_>>()?, tally: Tally::default() })
    }

    /// Of each buffer; poll(2) wakes when a quarter is full.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.rings.iter().map(|(event, _)| event.as_raw_fd())
    }

    /// Makes room for records.
    pub fn take(&mut self) {
        let Execs { rings, tally } = self;
        for (_, records) in rings {
            let left = records.take_words(|words| tally.add(words));
            tally.gaps |= left < LONGEST;
        }
    }

    /// Whether all programs that were executed so far have kept their events. False: that is not known, or they have not.
    pub fn all_kept(&mut self) -> bool {
        self.take();
        self.tally.all_kept()
    }
}

impl Tally {
    fn add(&mut self, words: &[u64]) {
        let &[header, ref body @ ..] = words else { return };
        let (kind, misc) = (header as u32, (header >> 32) as u32 & 0xffff);
        match kind {
            PERF_RECORD_COMM => self.executed += u64::from(misc & PERF_RECORD_MISC_COMM_EXEC != 0),
            PERF_RECORD_MMAP => {
                // (process and thread, address, length, offset, name)
                let name = body.get(4).map(|word| word.to_ne_bytes());
                self.kept += u64::from(name.is_some_and(|name| name.starts_with(b"[vdso]\0")));
            }
            PERF_RECORD_LOST => self.gaps = true,
            _ => {}
        }
    }

    fn all_kept(&self) -> bool {
        // (without a program there are no records, and without a vDSO too few)
        self.executed > 0 && self.executed == self.kept && !self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMED: [u64; 3] = [PERF_RECORD_COMM as u64 | (PERF_RECORD_MISC_COMM_EXEC as u64) << 32, 7, 0];

    fn mapped(name: &[u8; 8]) -> [u64; 6] {
        [PERF_RECORD_MMAP.into(), 7, 0x1000, 0x1000, 0, u64::from_ne_bytes(*name)]
    }

    fn all_kept(records: &[&[u64]]) -> bool {
        let mut tally = Tally::default();
        records.iter().for_each(|words| tally.add(words));
        tally.all_kept()
    }

    #[test]
    fn a_program_without_its_vdso_has_lost_its_events() {
        let (vdso, other) = (mapped(b"[vdso]\0\0"), mapped(b"/bin/sh\0"));
        let renamed = [PERF_RECORD_COMM.into(), 7, 0];
        let lost = [PERF_RECORD_LOST.into(), 1, 1];
        assert!(all_kept(&[&NAMED, &other, &vdso]));
        assert!(all_kept(&[&vdso, &NAMED, &renamed, &NAMED, &vdso])); // other CPUs' records come in any order
        let none: [&[&[u64]]; 6] = [
            &[],
            &[&NAMED],
            &[&NAMED, &other],
            &[&NAMED, &vdso, &NAMED],
            &[&NAMED, &vdso, &lost],
            &[&NAMED, &vdso[..5]],
        ];
        for records in none {
            assert!(!all_kept(records), "{records:?}");
        }
    }
}
