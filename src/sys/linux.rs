//! The kernel that runs this process.

use super::page::{self, Look, Page};
use super::{Kernel, Mapping};
use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, PERF_IOC_FLAG_GROUP, perf_event_attr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::time::Duration;

/// The real thing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Linux;

impl Kernel for Linux {
    type Fd = File;
    type Map = MmapRaw;

    fn open(&self, attr: &perf_event_attr, pid: i32, cpu: i32, leader: Option<&File>) -> io::Result<File> {
        let group = leader.map_or(-1, AsRawFd::as_raw_fd);
        let mut attr = *attr; // the kernel writes its own size into it when it refuses ours
        // SAFETY: attr is a live perf_event_attr whose size field says how long it is.
        let fd = unsafe { perf::perf_event_open(&mut attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC.into()) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
        Ok(unsafe { File::from_raw_fd(fd) })
    }

    fn enable(&self, leader: &File) -> io::Result<()> {
        // SAFETY: an ioctl on a live descriptor, with a flag as its argument.
        check(unsafe { perf::ioctls::ENABLE(leader.as_raw_fd(), PERF_IOC_FLAG_GROUP) })
    }

    fn reset(&self, event: &File) -> io::Result<()> {
        // SAFETY: as above.
        check(unsafe { perf::ioctls::RESET(event.as_raw_fd(), 0) })
    }

    fn read(&self, mut event: &File, words: &mut [u64]) -> io::Result<usize> {
        let mut bytes = [0u8; 8 * 32];
        let wanted = &mut bytes[..8 * words.len().min(32)];
        let got = event.read(wanted)? / 8;
        for (word, bytes) in words.iter_mut().zip(wanted.chunks_exact(8)).take(got) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"));
        }
        Ok(got)
    }

    fn map(&self, event: &File) -> io::Result<MmapRaw> {
        MmapOptions::new().len(page_size()).map_raw_read_only(event)
    }

    fn text(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn cpu(&self) -> u32 {
        // SAFETY: sched_getcpu has no preconditions. It cannot fail where perf events exist.
        unsafe { libc::sched_getcpu() }.max(0) as u32
    }

    fn cpu_time(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: time is a live timespec.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

impl Mapping for MmapRaw {
    fn page(&self) -> *const Page {
        self.as_ptr().cast()
    }

    fn look(&self) -> Look {
        // SAFETY: the page is mapped as long as self lives.
        unsafe { page::look(self.page()) }
    }

    fn sequence(&self) -> u32 {
        // SAFETY: as above.
        unsafe { page::sequence(self.page()) }
    }

    fn forget(self) {
        std::mem::forget(self);
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes in a page of memory.
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
