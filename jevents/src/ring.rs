//! Records of a perf ring buffer: the control page, and behind it 2^n pages of data, in which the kernel writes and the
//! program reads round and round.

use crate::Attr;
use crate::rdpmc::{PAGE_SIZE, Page};
use crate::sys::perf_event_open;
use libc::{c_char, c_int, c_void, pid_t};
use parking_lot::Mutex;
use perf_event_open_sys::bindings::perf_event_header;
use std::io;
use std::ptr::{NonNull, addr_of_mut, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// struct perf_event_header.
pub type RecordHeader = perf_event_header;

/// struct perf_fd.
#[repr(C)]
#[derive(Debug)]
pub struct Fd {
    /// -1: not open.
    pub pfd: c_int,
    /// NULL: not open.
    pub mpage: *mut Page,
    /// 2^this pages of data.
    pub buf_size_shift: c_int,
}

/// Where each that is open was mapped, its descriptor, and by which process: a forked child has the descriptor alone.
static OPENED: Mutex<Vec<(usize, c_int, u32)>> = Mutex::new(Vec::new());

/// struct perf_iter: what was in the buffer at one moment.
#[repr(C)]
#[derive(Debug)]
pub struct Iter {
    /// `bufsize` - 1.
    pub ring_buffer_mask: u64,
    /// Where in the data it ends.
    pub head: u64,
    /// Where in the data the next record is.
    pub cur: u64,
    /// Where it ends, as the kernel counts.
    pub raw_head: u64,
    /// Bytes of data.
    pub bufsize: u64,
    /// Bytes of it that were not read yet.
    pub avail: i64,
    /// The first byte of the data.
    pub data: *mut c_char,
    /// The control page.
    pub mpage: *mut Page,
}

/// struct perf_aux_map.
#[repr(C)]
#[derive(Debug)]
pub struct AuxMap {
    /// MAP_FAILED if it is not mapped.
    pub aux_map: *mut c_void,
}

/// 2^shift pages in bytes.
fn pages(shift: c_int) -> Option<usize> {
    let pages = 1usize.checked_shl(shift.try_into().ok()?)?;
    pages.checked_mul(PAGE_SIZE).filter(|bytes| isize::try_from(*bytes).is_ok())
}

/// Bytes of control page and data; None if they are more than `perf_mmap_size` can say.
pub fn mapping_size(shift: c_int) -> Option<u32> {
    pages(shift)?.checked_add(PAGE_SIZE)?.try_into().ok()
}

fn fails(errno: c_int) -> io::Error {
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = errno };
    io::Error::from_raw_os_error(errno)
}

fn map(bytes: usize, access: c_int, fd: c_int, offset: u64) -> io::Result<*mut c_void> {
    let offset = offset.try_into().map_err(|_| fails(libc::EINVAL))?;
    // SAFETY: a new mapping, where the kernel likes.
    let map = unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, fd, offset) };
    if map == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(map) }
}

impl Fd {
    /// What did not open.
    pub const CLOSED: Fd = Fd { pfd: -1, mpage: null_mut(), buf_size_shift: 0 };

    /// Opens an event, and maps its buffer. On failure errno says why.
    ///
    /// # Safety
    /// `attr` is as large as its `size` says.
    pub unsafe fn open(attr: *mut Attr, shift: c_int, pid: pid_t, cpu: c_int) -> io::Result<Fd> {
        let bytes = mapping_size(shift).ok_or_else(|| fails(libc::EINVAL))?;
        // SAFETY: the caller's word.
        let pfd = unsafe { perf_event_open(attr, pid, cpu, -1, 0) };
        if pfd < 0 {
            return Err(io::Error::last_os_error());
        }
        match map(bytes as usize, libc::PROT_READ | libc::PROT_WRITE, pfd, 0) {
            Ok(mpage) => {
                OPENED.lock().push((mpage.addr(), pfd, std::process::id()));
                Ok(Fd { pfd, mpage: mpage.cast(), buf_size_shift: shift })
            }
            Err(error) => {
                // SAFETY: nobody else has the descriptor.
                unsafe { libc::close(pfd) };
                Err(fails(error.raw_os_error().unwrap_or(0)))
            }
        }
    }

    /// Closes it; what is not open stays closed.
    ///
    /// # Safety
    /// As `open` made it, or with an `mpage` of NULL; nobody uses the mapping any more.
    pub unsafe fn close(&mut self) {
        if let (false, Some(bytes)) = (self.mpage.is_null(), mapping_size(self.buf_size_shift)) {
            // SAFETY: the caller's word. In a forked child something else may be where the buffer was.
            unsafe {
                if !self.is_of_the_parent() {
                    libc::munmap(self.mpage.cast(), bytes as usize);
                }
                libc::close(self.pfd);
            }
            *self = Fd { buf_size_shift: self.buf_size_shift, ..Fd::CLOSED };
        }
    }

    /// Whether it was opened before this process was forked; what is known of it is forgotten. A program may have made it
    /// itself: then it is this process's.
    fn is_of_the_parent(&self) -> bool {
        let mut opened = OPENED.lock();
        let place = opened.iter().rposition(|(at, fd, _)| (*at, *fd) == (self.mpage.addr(), self.pfd));
        place.is_some_and(|place| opened.remove(place).2 != std::process::id())
    }

    /// Maps the AUX area behind the buffer. On failure errno says why.
    ///
    /// # Safety
    /// As `open` made it.
    pub unsafe fn map_aux(&self, shift: c_int, snapshot: bool) -> io::Result<*mut c_void> {
        let behind = mapping_size(self.buf_size_shift).filter(|_| !self.mpage.is_null());
        let (Some(behind), Some(bytes)) = (behind, pages(shift)) else { return Err(fails(libc::EINVAL)) };
        let tell = |offset, size| {
            // SAFETY: the caller's word: a page that both sides write to, each its part.
            unsafe {
                addr_of_mut!((*self.mpage).aux_offset).write_volatile(offset);
                addr_of_mut!((*self.mpage).aux_size).write_volatile(size);
            }
        };
        // SAFETY: as above.
        let (offset, size) = unsafe {
            (
                addr_of_mut!((*self.mpage).aux_offset).read_volatile(),
                addr_of_mut!((*self.mpage).aux_size).read_volatile(),
            )
        };
        tell(behind.into(), bytes as u64);
        let access = if snapshot { libc::PROT_READ } else { libc::PROT_READ | libc::PROT_WRITE };
        // an area that is mapped already stays what it is
        map(bytes, access, self.pfd, behind.into()).inspect_err(|_| tell(offset, size))
    }

    /// Unmaps the AUX area.
    ///
    /// # Safety
    /// As `map_aux` made it, of a buffer that is still mapped, or one of these is NULL or MAP_FAILED.
    pub unsafe fn unmap_aux(&self, aux: &mut AuxMap) {
        let map = std::mem::replace(&mut aux.aux_map, libc::MAP_FAILED);
        if map != libc::MAP_FAILED && !map.is_null() && !self.mpage.is_null() {
            // SAFETY: the caller's word.
            unsafe { libc::munmap(map, addr_of_mut!((*self.mpage).aux_size).read_volatile() as usize) };
        }
    }
}

impl Iter {
    /// Nothing to read.
    pub const EMPTY: Iter = Iter {
        ring_buffer_mask: 0,
        head: 0,
        cur: 0,
        raw_head: 0,
        bufsize: 0,
        avail: 0,
        data: null_mut(),
        mpage: null_mut(),
    };

    /// What is in the buffer now.
    ///
    /// # Safety
    /// `fd` is open.
    pub unsafe fn of(fd: &Fd) -> Iter {
        let Some(bufsize) = pages(fd.buf_size_shift).filter(|_| !fd.mpage.is_null()) else {
            return Iter::EMPTY;
        };
        // SAFETY: the caller's word. Only this side writes the tail; the kernel has written the data before the head.
        let (raw_head, tail) = unsafe {
            (position(addr_of_mut!((*fd.mpage).data_head)), position(addr_of_mut!((*fd.mpage).data_tail)))
        };
        let (raw_head, tail) = (raw_head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let (bufsize, mask) = (bufsize as u64, bufsize as u64 - 1);
        let unread = raw_head.wrapping_sub(tail);
        Iter {
            ring_buffer_mask: mask,
            head: raw_head & mask,
            cur: tail & mask,
            raw_head,
            bufsize,
            // more than there is room for is nothing that the kernel wrote
            avail: if unread <= bufsize { unread as i64 } else { 0 },
            data: fd.mpage.wrapping_byte_add(PAGE_SIZE).cast(),
            mpage: fd.mpage,
        }
    }

    /// The next record: where it is, or in `buffer` if it begins at the end of the data and goes on at its start. None: there
    /// is no more, or the record has no room in `buffer` and is skipped, or it is none, and what follows it is lost.
    ///
    /// # Safety
    /// As `of` made it, of what is still open; `buffer` has room for so many bytes.
    pub unsafe fn next(&mut self, buffer: *mut u8, room: usize) -> Option<NonNull<RecordHeader>> {
        const HEADER: usize = size_of::<RecordHeader>();
        let mut header = RecordHeader::default();
        let left = usize::try_from(self.avail).unwrap_or(0);
        if left >= HEADER {
            // SAFETY: the header is as long as is copied, and the data is longer.
            unsafe { self.copy((&raw mut header).cast(), HEADER) };
        }
        let size = usize::from(header.size);
        if size < HEADER || size > left {
            self.avail = 0;
            return None;
        }
        let (start, whole) = (self.cur, self.cur + size as u64 <= self.bufsize);
        let record = if whole {
            NonNull::new(self.data.wrapping_add(start as usize).cast())
        } else {
            // SAFETY: the caller's word; what is copied is less than the data is.
            NonNull::new(buffer).filter(|_| size <= room).map(|to| unsafe {
                self.copy(to.as_ptr(), size);
                to.cast()
            })
        };
        self.cur = (start + size as u64) & self.ring_buffer_mask;
        self.avail -= size as i64;
        record
    }

    /// Copies what begins at `cur`.
    ///
    /// # Safety
    /// The data has as many bytes, and so has `to`.
    unsafe fn copy(&self, to: *mut u8, bytes: usize) {
        let first = bytes.min((self.bufsize - self.cur) as usize);
        let data: *const u8 = self.data.cast();
        // SAFETY: the caller's word: `first` is what there is up to the end of the data.
        unsafe {
            data.add(self.cur as usize).copy_to_nonoverlapping(to, first);
            data.copy_to_nonoverlapping(to.add(first), bytes - first);
        }
    }

    /// Gives the kernel all that was there at `of`, read or not.
    ///
    /// # Safety
    /// As `next`.
    pub unsafe fn release(&self) {
        if !self.mpage.is_null() {
            // SAFETY: the caller's word. What was read was read before.
            unsafe { position(addr_of_mut!((*self.mpage).data_tail)) }
                .store(self.raw_head, Ordering::Release);
        }
    }
}

/// # Safety
/// Points into a mapped page, and is only accessed like this.
unsafe fn position<'a>(word: *mut u64) -> &'a AtomicU64 {
    // SAFETY: the caller's word.
    unsafe { AtomicU64::from_ptr(word) }
}

#[cfg(test)]
#[path = "ring/tests.rs"]
mod tests;
