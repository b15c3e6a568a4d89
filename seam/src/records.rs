//! The records that the kernel writes into an event's ring buffer: what a group has counted so far for a thread or on a CPU, what processes map,
//! which threads begin, end and change their names, and which cgroups are created.
#![forbid(unsafe_code)]

use super::page::Times;
use super::ring::RecordRing;
use perf_event_open_sys::bindings::{
    PERF_RECORD_CGROUP, PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST,
    PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MMAP2, PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE,
    PERF_SAMPLE_CGROUP, PERF_SAMPLE_READ, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};
use std::io;
use std::os::fd::AsRawFd;

/// `sample_type` of events whose records are read here. Samples begin with their thread and time, all other records end with them.
pub const SAMPLE_TYPE: u64 = (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ) as u64;
/// The same of events whose samples say which cgroup runs.
pub const SAMPLE_TYPE_OF_CGROUPS: u64 = SAMPLE_TYPE | PERF_SAMPLE_CGROUP as u64;

/// A thread, as a record names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// Its process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
}

impl TaskId {
    /// Of a record's word.
    pub fn of(word: u64) -> TaskId {
        let (pid, tid) = pair(word);
        TaskId { pid, tid }
    }
}

/// What the kernel says of a mapped file, in records and in /proc/PID/maps: device and inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inode {
    /// The device.
    pub major: u32,
    /// The same.
    pub minor: u32,
    /// The inode.
    pub number: u64,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Nanoseconds of the kernel's clock.
    pub time: u64,
    /// What it says.
    pub says: RecordContent,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordContent {
    /// What the group has counted for this thread since it began: the leader's value first.
    Counted(TaskId, Times, Vec<u64>),
    /// What the group has counted on its CPU since it began: the thread that ran there, the id of that thread's cgroup, and values as above.
    CountedIn(TaskId, u64, Times, Vec<u64>),
    /// A cgroup was created: its id, and its path from the root of its hierarchy.
    Made(u64, String),
    /// A thread has this name from now on. True: since it has executed a program.
    Named(TaskId, String, bool),
    /// The first was started by the second.
    Began(TaskId, TaskId),
    /// It ends.
    Ends(TaskId),
    /// A process has mapped a file from this offset on, at so many addresses from `start` on.
    Mapped {
        /// The process.
        pid: i32,
        /// The first address.
        start: u64,
        /// How many there are.
        len: u64,
        /// In the file.
        offset: u64,
        /// The file's path in the process's root directory.
        file: String,
        /// Which file it is.
        inode: Inode,
    },
    /// So many records found no room.
    Lost(u64),
    /// The kernel takes no more samples of the event for the rest of a tick, and from Linux 6.16 on counts none of its group.
    Throttled,
}

/// An event's ring buffer, and the record that is taken of it.
#[derive(Debug)]
pub struct Records {
    ring: RecordRing,
    words: Vec<u64>,
}

/// Pages for records: with the ring's own all of the 516 KiB that each CPU gives a user (kernel.perf_event_mlock_kb), or where others have
/// some of these less.
const PAGES: [usize; 2] = [128, 64];

impl Records {
    /// Maps the buffer of an event, as large as each CPU lets a user have.
    ///
    /// # Errors
    /// Those of [`RecordRing::map`].
    pub fn map(event: &impl AsRawFd) -> io::Result<Records> {
        let [most, less] = PAGES;
        match Records::of_pages(event, most) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Records::of_pages(event, less),
            mapped => mapped,
        }
    }

    /// The same, with room for records in so many pages: a power of two.
    ///
    /// # Errors
    /// Those of [`RecordRing::map`].
    pub fn of_pages(event: &impl AsRawFd, pages: usize) -> io::Result<Records> {
        Ok(Records { ring: RecordRing::map(event, pages)?, words: Vec::new() })
    }

    /// All records that are there, the oldest first; those of kinds that [`RecordContent`] does not have are left out.
    pub fn take(&mut self) -> Vec<TaskRecord> {
        let mut all = Vec::new();
        self.ring.take(&mut self.words, |words| all.extend(record(words)));
        all
    }
}

/// Kind and misc bits of a record that begins with this word.
pub fn header(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32 & 0xffff)
}

/// Two 32-bit numbers in a word.
fn pair(word: u64) -> (i32, i32) {
    (word as u32 as i32, (word >> 32) as u32 as i32)
}

/// A text of so many words, up to its first zero.
fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// The record of these words; None: of another kind, or not as the kernel writes them.
fn record(words: &[u64]) -> Option<TaskRecord> {
    let &[header, ref body @ ..] = words else { return None };
    let (kind, misc) = self::header(header);
    let &[.., last] = body else { return None };
    let said = |says| Some(TaskRecord { time: last, says }); // (each but a sample ends with thread and time)
    match kind {
        PERF_RECORD_SAMPLE => {
            let &[id, time, events, enabled, running, ref values @ ..] = body else { return None };
            let (times, events) = (Times { enabled, running }, usize::try_from(events).ok()?);
            let says = match values.split_at_checked(events)? {
                (counts, []) => RecordContent::Counted(TaskId::of(id), times, counts.to_vec()),
                (counts, [cgroup]) => {
                    RecordContent::CountedIn(TaskId::of(id), *cgroup, times, counts.to_vec())
                }
                _ => return None,
            };
            Some(TaskRecord { time, says })
        }
        PERF_RECORD_CGROUP => {
            let &[id, ref path @ .., _, _] = body else { return None };
            said(RecordContent::Made(id, text(path)))
        }
        PERF_RECORD_COMM => {
            let &[id, ref name @ .., _, _] = body else { return None };
            said(RecordContent::Named(TaskId::of(id), text(name), misc & PERF_RECORD_MISC_COMM_EXEC != 0))
        }
        PERF_RECORD_MMAP2 => {
            let &[id, start, len, offset, device, number, _generation, _flags, ref file @ .., _, _] = body
            else {
                return None;
            };
            let inode = Inode { major: device as u32, minor: (device >> 32) as u32, number };
            said(RecordContent::Mapped {
                pid: TaskId::of(id).pid,
                start,
                len,
                offset,
                file: text(file),
                inode,
            })
        }
        PERF_RECORD_FORK | PERF_RECORD_EXIT => {
            let &[processes, threads, ..] = body else { return None };
            let ((pid, parent), (tid, by)) = (pair(processes), pair(threads));
            let task = TaskId { pid, tid };
            let begun = RecordContent::Began(task, TaskId { pid: parent, tid: by });
            said(if kind == PERF_RECORD_FORK { begun } else { RecordContent::Ends(task) })
        }
        PERF_RECORD_LOST => said(RecordContent::Lost(*body.get(1)?)),
        PERF_RECORD_THROTTLE => said(RecordContent::Throttled),
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
        let counted = RecordContent::Counted(task, Times { enabled: 7, running: 6 }, vec![1000, 400]);
        assert_eq!(record(&sample), Some(TaskRecord { time: 99, says: counted }));
        let in_cgroup = [header(PERF_RECORD_SAMPLE, 2, 9), id, 99, 2, 7, 6, 1000, 400, 4242];
        let counted = RecordContent::CountedIn(task, 4242, Times { enabled: 7, running: 6 }, vec![1000, 400]);
        assert_eq!(record(&in_cgroup), Some(TaskRecord { time: 99, says: counted }));
        let path = u64::from_ne_bytes(*b"/a/b\0\0\0\0");
        let made = [header(PERF_RECORD_CGROUP, 0, 5), 4242, path, id, 94];
        assert_eq!(
            record(&made),
            Some(TaskRecord { time: 94, says: RecordContent::Made(4242, "/a/b".into()) })
        );
        let name = u64::from_ne_bytes(*b"cc1plus\0");
        for (misc, executed) in [(PERF_RECORD_MISC_COMM_EXEC, true), (0, false)] {
            let comm = [header(PERF_RECORD_COMM, misc, 5), id, name, id, 98];
            let named = RecordContent::Named(task, "cc1plus".into(), executed);
            assert_eq!(record(&comm), Some(TaskRecord { time: 98, says: named }));
        }
        let fork = [header(PERF_RECORD_FORK, 0, 6), 30 | 20 << 32, 31 | 21 << 32, 5, id, 97];
        let began = RecordContent::Began(TaskId { pid: 30, tid: 31 }, task);
        assert_eq!(record(&fork), Some(TaskRecord { time: 97, says: began }));
        let exit = [header(PERF_RECORD_EXIT, 0, 6), 30 | 20 << 32, 31 | 21 << 32, 5, id, 96];
        assert_eq!(
            record(&exit),
            Some(TaskRecord { time: 96, says: RecordContent::Ends(TaskId { pid: 30, tid: 31 }) })
        );
        let path = [*b"/bin/tru", *b"e\0\0\0\0\0\0\0"].map(u64::from_ne_bytes);
        let mapped = [header(PERF_RECORD_MMAP2, 0, 13), id, 0x1000, 0x2000, 0x3000, 8 | 1 << 32, 99, 0, 0];
        let mapped: Vec<u64> = mapped.into_iter().chain(path).chain([id, 77]).collect();
        let inode = Inode { major: 8, minor: 1, number: 99 };
        let (start, len, offset, file) = (0x1000, 0x2000, 0x3000, "/bin/true".to_string());
        let says = RecordContent::Mapped { pid: 20, start, len, offset, file, inode };
        assert_eq!(record(&mapped), Some(TaskRecord { time: 77, says }));
        assert_eq!(record(&mapped[..9]), None);
        let lost = [header(PERF_RECORD_LOST, 0, 5), 4, 12, id, 95];
        assert_eq!(record(&lost), Some(TaskRecord { time: 95, says: RecordContent::Lost(12) }));
        // another group's, cut short, of another kind, empty
        assert_eq!(record(&sample[..7]), None);
        assert_eq!(record(&[header(PERF_RECORD_SAMPLE, 2, 2), id]), None);
        assert_eq!(record(&[header(77, 0, 2), id]), None);
        assert_eq!(record(&[]), None);
    }
}
