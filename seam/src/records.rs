//! The records that the kernel writes into an event's ring buffer: what a group has counted for a thread so far, and which
//! threads begin, end and change their names.

use super::linux::PerfEvent;
use super::page::{Page, Times};
use perf_event_open_sys::bindings::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_MISC_COMM_EXEC,
    PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE, PERF_SAMPLE_READ, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// `sample_type` of events whose records are read here. All records end with, or begin with, their thread and time.
pub const SAMPLE_TYPE: u64 = (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ) as u64;

/// A thread, as a record names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// Its process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Nanoseconds of the kernel's clock.
    pub time: u64,
    /// What it says.
    pub says: Says,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// What the group has counted for this thread since it began: the leader's value first.
    Counted(TaskId, Times, Vec<u64>),
    /// A thread has this name from now on. True: since it has executed a program.
    Named(TaskId, String, bool),
    /// The first was started by the second.
    Began(TaskId, TaskId),
    /// It ends.
    Ends(TaskId),
    /// So many records found no room.
    Lost(u64),
    /// The kernel takes no more samples of the event for the rest of a tick, and from Linux 6.16 on counts none of its group.
    Throttled,
}

/// An event's ring buffer.
#[derive(Debug)]
pub struct Records {
    ring: *mut libc::c_void,
    /// Bytes for records.
    room: usize,
}

const PAGE: usize = 4096;
/// Pages for records: fewer than the 516 KiB that each CPU gives a user (kernel.perf_event_mlock_kb).
const PAGES: usize = 64;

impl Records {
    /// Maps the buffer of an event. Records are dropped while it is full.
    ///
    /// # Errors
    /// EPERM: kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK are used up; the kernel's others.
    pub fn map(event: &PerfEvent) -> io::Result<Records> {
        Records::of_pages(event, PAGES)
    }

    /// The same, with room for records in so many pages: a power of two.
    pub(crate) fn of_pages(event: &PerfEvent, pages: usize) -> io::Result<Records> {
        let (room, length) = (pages * PAGE, (1 + pages) * PAGE);
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, event.as_raw_fd());
        // SAFETY: a new mapping, where the kernel likes.
        let ring = unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, fd, 0) };
        if ring == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Records { ring, room }) }
    }

    /// All records that are there, the oldest first; those of kinds that [`Says`] does not have are left out.
    pub fn take(&mut self) -> Vec<TaskRecord> {
        let mut all = Vec::new();
        self.take_words(|words| all.extend(record(words)));
        all
    }

    /// The words of each record that is there, the oldest first. Returns how many bytes were left when they came: if a record may not
    /// have found room, fewer than it has.
    pub(crate) fn take_words(&mut self, mut each: impl FnMut(&[u64])) -> usize {
        let page = self.ring.cast::<Page>();
        // SAFETY: the first page of the mapping; the kernel writes `data_head`, and this process alone `data_tail`.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head).load(Ordering::Acquire),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        let mut at = tail.load(Ordering::Relaxed);
        let left = self.room.saturating_sub(head.wrapping_sub(at) as usize);
        while at < head {
            let word = self.words(at, 1)[0];
            let bytes = (word >> 48) as usize;
            if bytes < 8 {
                break; // (the kernel writes none so short)
            }
            each(&self.words(at, bytes / 8));
            at += bytes as u64;
        }
        tail.store(head, Ordering::Release);
        left
    }

    fn words(&self, at: u64, count: usize) -> Vec<u64> {
        let data = self.ring.cast::<u8>().wrapping_add(PAGE);
        let place = |k: usize| (at as usize + 8 * k) % self.room;
        // SAFETY: within the mapping; records begin and end at multiples of eight bytes, and the kernel does not write where
        // `data_tail` has not been yet.
        (0..count).map(|k| unsafe { data.add(place(k)).cast::<u64>().read_volatile() }).collect()
    }
}

// SAFETY: the mapping is this value's alone, and a process's mappings are all its threads'.
unsafe impl Send for Records {}

impl Drop for Records {
    fn drop(&mut self) {
        // SAFETY: it was mapped, and is given up once.
        unsafe { libc::munmap(self.ring, PAGE + self.room) };
    }
}

/// Two 32-bit numbers in a word.
fn pair(word: u64) -> (i32, i32) {
    (word as u32 as i32, (word >> 32) as u32 as i32)
}

fn task(word: u64) -> TaskId {
    let (pid, tid) = pair(word);
    TaskId { pid, tid }
}

/// The record of these words; None: of another kind, or not as the kernel writes them.
fn record(words: &[u64]) -> Option<TaskRecord> {
    let &[header, ref body @ ..] = words else { return None };
    let (kind, misc) = (header as u32, (header >> 32) as u32 & 0xffff);
    let &[.., last] = body else { return None };
    let said = |says| Some(TaskRecord { time: last, says }); // (each but a sample ends with thread and time)
    match kind {
        PERF_RECORD_SAMPLE => {
            let &[id, time, events, enabled, running, ref values @ ..] = body else { return None };
            let counted = Says::Counted(task(id), Times { enabled, running }, values.to_vec());
            (events == values.len() as u64).then_some(TaskRecord { time, says: counted })
        }
        PERF_RECORD_COMM => {
            let &[id, ref name @ .., _, _] = body else { return None };
            let name: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            said(Says::Named(task(id), name, misc & PERF_RECORD_MISC_COMM_EXEC != 0))
        }
        PERF_RECORD_FORK | PERF_RECORD_EXIT => {
            let &[processes, threads, ..] = body else { return None };
            let ((pid, parent), (tid, by)) = (pair(processes), pair(threads));
            let task = TaskId { pid, tid };
            let begun = Says::Began(task, TaskId { pid: parent, tid: by });
            said(if kind == PERF_RECORD_FORK { begun } else { Says::Ends(task) })
        }
        PERF_RECORD_LOST => said(Says::Lost(*body.get(1)?)),
        PERF_RECORD_THROTTLE => said(Says::Throttled),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u32, misc: u32, words: usize) -> u64 {
        u64::from(kind) | u64::from(misc) << 32 | (8 * words as u64) << 48
    }

    #[test]
    fn records_say_what_the_kernel_wrote() {
        let id = 20_u64 | 21 << 32;
        let task = TaskId { pid: 20, tid: 21 };
        let sample = [header(PERF_RECORD_SAMPLE, 2, 8), id, 99, 2, 7, 6, 1000, 400];
        let counted = Says::Counted(task, Times { enabled: 7, running: 6 }, vec![1000, 400]);
        assert_eq!(record(&sample), Some(TaskRecord { time: 99, says: counted }));
        let name = u64::from_ne_bytes(*b"cc1plus\0");
        let comm = [header(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 5), id, name, id, 98];
        assert_eq!(
            record(&comm),
            Some(TaskRecord { time: 98, says: Says::Named(task, "cc1plus".into(), true) })
        );
        let fork = [header(PERF_RECORD_FORK, 0, 6), 30 | 20 << 32, 31 | 21 << 32, 5, id, 97];
        let began = Says::Began(TaskId { pid: 30, tid: 31 }, task);
        assert_eq!(record(&fork), Some(TaskRecord { time: 97, says: began }));
        let exit = [header(PERF_RECORD_EXIT, 0, 6), 30 | 20 << 32, 31 | 21 << 32, 5, id, 96];
        assert_eq!(
            record(&exit),
            Some(TaskRecord { time: 96, says: Says::Ends(TaskId { pid: 30, tid: 31 }) })
        );
        let lost = [header(PERF_RECORD_LOST, 0, 5), 4, 12, id, 95];
        assert_eq!(record(&lost), Some(TaskRecord { time: 95, says: Says::Lost(12) }));
        // another group's, cut short, of another kind, empty
        assert_eq!(record(&sample[..7]), None);
        assert_eq!(record(&[header(PERF_RECORD_SAMPLE, 2, 2), id]), None);
        assert_eq!(record(&[header(77, 0, 2), id]), None);
        assert_eq!(record(&[]), None);
    }
}
