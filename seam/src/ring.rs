//! The ring buffer into which the kernel writes an event's records.

use super::linux::page_size;
use super::page::Page;
use perf_event_open_sys::ioctls;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{null_mut, read_volatile};
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU64, Ordering};

/// Has an event write its records into another's ring, which is mapped.
///
/// # Errors
/// The kernel's, of ioctl(2).
pub fn write_into(event: &impl AsRawFd, other: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: no pointers.
    match unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), other.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A mapped ring.
#[derive(Debug)]
pub struct RecordRing {
    page: *mut Page,
    data: *const u64,
    /// Bytes for records.
    size: usize,
    /// The most that was in the ring since the last look.
    fullest: u64,
}

impl RecordRing {
    /// Maps a ring of so many pages (a power of two) for an event. Records are dropped while the ring is full.
    ///
    /// # Errors
    /// EPERM: kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK are used up; the kernel's others.
    pub fn map(event: &impl AsRawFd, pages: usize) -> io::Result<RecordRing> {
        assert!(pages.is_power_of_two());
        let (size, access) = (pages * page_size(), libc::PROT_READ | libc::PROT_WRITE);
        let (whole, fd) = (page_size() + size, event.as_raw_fd());
        // SAFETY: a new mapping, where the kernel has room.
        let page = unsafe { libc::mmap(null_mut(), whole, access, libc::MAP_SHARED, fd, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the data follow the first page of the mapping.
        let data = unsafe { page.byte_add(page_size()).cast() };
        Ok(RecordRing { page: page.cast(), data, size, fullest: 0 })
    }

    /// Up to where the kernel has written, and up to where this process has read.
    fn ends(&self) -> (u64, &AtomicU64) {
        // SAFETY: the page is mapped as long as the ring is there; the kernel writes data_head, and the ring alone data_tail.
        unsafe {
            let head = AtomicU64::from_ptr(&raw mut (*self.page).data_head);
            (head.load(Ordering::Acquire), AtomicU64::from_ptr(&raw mut (*self.page).data_tail))
        }
    }

    /// Whether there is no record to take. (It takes no system call.)
    pub fn is_empty(&self) -> bool {
        let (head, tail) = self.ends();
        head == tail.load(Ordering::Relaxed)
    }

    /// Another number whenever the event has had a counter since, or lost it. (It takes no system call.)
    pub fn changes(&self) -> u32 {
        // SAFETY: the page is mapped as long as the ring is there; the kernel alone writes the number, which is aligned.
        unsafe { read_volatile(&raw const (*self.page).lock) }
    }

    /// Takes the next record, if there is one: its words, of which the first is the header.
    pub fn next<'w>(&mut self, words: &'w mut Vec<u64>) -> Option<&'w [u64]> {
        let (head, tail) = self.ends();
        let at = tail.load(Ordering::Relaxed);
        if head.wrapping_sub(at) < 8 {
            return None;
        }
        words.clear();
        self.copy(at, 1, words);
        let length = ((words[0] >> 48) / 8).clamp(1, self.size as u64 / 8); // (as any is that the kernel writes)
        self.copy(at + 8, length as usize - 1, words);
        let (head, tail) = self.ends();
        tail.store(at + 8 * length, Ordering::Release);
        // (whatever found no room before that did so beside no more than this)
        self.fullest = self.fullest.max(head.wrapping_sub(at));
        Some(words)
    }

    /// Takes the records that are there now. (Not those that the kernel writes meanwhile: there might be no end of them.)
    pub fn take(&mut self, words: &mut Vec<u64>, mut each: impl FnMut(&[u64])) {
        let (end, _) = self.ends();
        while end.wrapping_sub(self.ends().1.load(Ordering::Relaxed)) as i64 > 0 {
            let Some(record) = self.next(words) else { break };
            each(record);
        }
    }

    /// Whether there was always room for a record of so many bytes, since the last look: if there was, none was lost.
    pub fn had_room(&mut self, bytes: usize) -> bool {
        std::mem::take(&mut self.fullest) + bytes as u64 <= self.size as u64
    }

    /// Nanoseconds for each that the CPU's time stamp counter counts, if the kernel tells.
    pub fn ns_per_time_stamp(&self) -> Option<f64> {
        // SAFETY: the page is mapped as long as the ring is there; these fields are numbers, whatever the kernel writes meanwhile.
        let (capabilities, multiplier, shift) = unsafe {
            let page = &raw const *self.page;
            (
                read_volatile(&raw const (*page).__bindgen_anon_1.__bindgen_anon_1),
                read_volatile(&raw const (*page).time_mult),
                read_volatile(&raw const (*page).time_shift),
            )
        };
        let ns = f64::from(multiplier) / 2_f64.powi(shift.into());
        (capabilities.cap_user_time() == 1 && ns > 0.0).then_some(ns)
    }

    fn copy(&self, at: u64, count: usize, words: &mut Vec<u64>) {
        let (start, all) = ((at % self.size as u64) as usize / 8, self.size / 8);
        let first = count.min(all - start);
        // SAFETY: both parts are within the ring, whose records before data_head the kernel does not change; records begin and end at
        // multiples of eight bytes.
        unsafe {
            words.extend_from_slice(from_raw_parts(self.data.add(start), first));
            words.extend_from_slice(from_raw_parts(self.data, count - first));
        }
    }
}

// SAFETY: the mapping is the ring's alone, and a process's mappings are all its threads'.
unsafe impl Send for RecordRing {}

impl Drop for RecordRing {
    fn drop(&mut self) {
        // SAFETY: it was mapped, and is given up once.
        unsafe { libc::munmap(self.page.cast(), page_size() + self.size) };
    }
}
