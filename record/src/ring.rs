//! The ring into which the kernel writes an event's records.
#![allow(unsafe_code)]

use crate::event::TaskEvent;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{null_mut, read_volatile};
use std::sync::atomic::{AtomicU64, Ordering};

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct RecordRing {
    page: *mut perf_event_mmap_page,
    data: *const u8,
    size: usize,
    /// The most that was in it since the last look.
    fullest: u64,
    whole: usize,
}

impl RecordRing {
    /// Maps a ring of so many pages (a power of two) for an event.
    ///
    /// # Errors
    /// EPERM: no more memory may be locked.
    pub fn map(event: &TaskEvent, pages: usize) -> io::Result<RecordRing> {
        assert!(pages.is_power_of_two());
        // SAFETY: a system call without pointers.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let whole = (pages + 1) * page_size;
        // SAFETY: a new mapping, where the kernel has room.
        let page = unsafe {
            libc::mmap(
                null_mut(),
                whole,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the data follow the first page of the mapping.
        let data = unsafe { page.cast::<u8>().add(page_size) };
        Ok(RecordRing { page: page.cast(), data, size: pages * page_size, fullest: 0, whole })
    }

    /// Up to where the kernel has written, and up to where this has read.
    fn ends(&self) -> (u64, &AtomicU64) {
        // SAFETY: the page is mapped as long as this is there; the kernel writes data_head, and this alone data_tail.
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
        // SAFETY: the page is mapped as long as this is there; the kernel alone writes the number, which is aligned.
        unsafe { read_volatile(&raw const (*self.page).lock) }
    }

    /// Takes the next record, if there is one: its type, its misc bits, and what follows the header.
    pub fn next(&mut self, into: &mut Vec<u8>) -> Option<(u32, u16)> {
        let (head, tail) = self.ends();
        let at = tail.load(Ordering::Relaxed);
        if head.wrapping_sub(at) < 8 {
            return None;
        }
        let mut header = Vec::with_capacity(8);
        self.copy(at, 8, &mut header);
        let kind = u32::from_ne_bytes(header[..4].try_into().expect("four"));
        let misc = u16::from_ne_bytes(header[4..6].try_into().expect("two"));
        let size = u16::from_ne_bytes(header[6..8].try_into().expect("two"));
        into.clear();
        self.copy(at + 8, usize::from(size).saturating_sub(8), into);
        let (head, tail) = self.ends();
        tail.store(at + u64::from(size.max(8)), Ordering::Release);
        // (whatever found no room before that did so beside no more than this)
        self.fullest = self.fullest.max(head.wrapping_sub(at));
        Some((kind, misc))
    }

    /// Whether there was always room for a record of so many bytes, since the last look: if there was, none was lost.
    pub fn had_room(&mut self, bytes: usize) -> bool {
        std::mem::take(&mut self.fullest) + bytes as u64 <= self.size as u64
    }

    /// Nanoseconds for each that the CPU's time stamp counter counts, if the kernel tells.
    pub fn ns_per_time_stamp(&self) -> Option<f64> {
        // SAFETY: the page is mapped as long as this is there; these fields are numbers, whatever the kernel writes meanwhile.
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

    fn copy(&self, at: u64, len: usize, into: &mut Vec<u8>) {
        let start = (at % self.size as u64) as usize;
        let first = len.min(self.size - start);
        // SAFETY: both parts are within the ring, whose records before data_head the kernel does not change.
        unsafe {
            into.extend_from_slice(std::slice::from_raw_parts(self.data.add(start), first));
            into.extend_from_slice(std::slice::from_raw_parts(self.data, len - first));
        }
    }
}

impl Drop for RecordRing {
    fn drop(&mut self) {
        // SAFETY: it was mapped, and is given up once.
        unsafe { libc::munmap(self.page.cast(), self.whole) };
    }
}
