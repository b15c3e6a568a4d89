//! One counter, read from user space.
//!
//! An ordinary counter's total is the page's `offset` plus what RDPMC says, and so is read(2)'s: readings of either kind
//! can be taken from each other. That of SLOTS and PERF_METRICS is not: the kernel keeps no offset for them
//! (kernel-facts C.3). Their total comes from read(2), and so does that of what is not on this CPU now, or must
//! not be read from user space.

use crate::Attr;
use crate::say::{reason, say};
use crate::sys::perf_event_open;
use libc::{c_int, pid_t};
use parking_lot::Mutex;
use perf_event_open_sys::bindings::{PERF_SAMPLE_READ, PERF_TYPE_HARDWARE, PERF_TYPE_RAW};
use std::collections::BTreeMap;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{addr_of, addr_of_mut, null_mut};
use topdown_seam::fault::survive_marked;
use topdown_seam::group_read::ReadLayout;
pub use topdown_seam::page::Page;
use topdown_seam::page::{METRICS_INDEX, PLAIN_WIDTH, grants_rdpmc};
use topdown_seam::rdpmc::{Total, is_plain, plain_total, total};

/// Bytes in a page of memory of this architecture.
pub(crate) const PAGE_SIZE: usize = 4096;

/// Borne by an instruction behind RDPMC that does nothing, `nop dword ptr [rax + MARK]`: by it the handler of SIGSEGV knows
/// that RDPMC is this library's.
const MARK: u32 = 0x4a57_4454;

/// The last event of PERF_TYPE_HARDWARE that `rdpmc_open` takes a number for; above are raw ones.
const LAST_GENERIC: u32 = 10;
/// PERF_ATTR_SIZE_VER0.
const ATTR_SIZE: u32 = 64;

/// struct rdpmc_ctx. `buf` is the control page, and behind it a page of ours.
#[repr(C)]
#[derive(Debug)]
pub struct Ctx {
    /// -1: not open.
    pub fd: c_int,
    /// NULL: not open.
    pub buf: *mut Page,
}

impl Ctx {
    /// What did not open.
    pub const CLOSED: Ctx = Ctx { fd: -1, buf: null_mut() };
}

/// Those that C has: where the control page is, and the descriptor. A `Ctx` that is not among them is a copy of one that was
/// closed.
static GIVEN: Mutex<BTreeMap<usize, c_int>> = Mutex::new(BTreeMap::new());

/// What is kept in the page behind the control page.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct PageTail {
    /// Not 0: `plain_total` serves. A forked child finds 0.
    plain: u64,
    layout: ReadLayout,
    /// Who opened it. A forked child, which has no control page, finds 0.
    process: pid_t,
}

/// What read(2) says of an event alone: the total, and what else a read_format can ask for.
const ALONE: usize = 5;
/// And of its group. One that is larger is not read.
const GROUP: usize = 512;

/// read(2) of an event; the words that there were.
fn words(fd: c_int, words: &mut [MaybeUninit<u64>]) -> &[u64] {
    // SAFETY: a buffer with room for so many bytes, any of which make words. Not the C library's read: that is a
    // cancellation point.
    let got = unsafe { libc::syscall(libc::SYS_read, fd, words.as_mut_ptr(), size_of_val(words)) };
    let got = usize::try_from(got).unwrap_or(0) / size_of::<u64>();
    // SAFETY: so many were written, which is no more than there is room for.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), got.min(words.len())) }
}

/// An open counter of this thread.
#[derive(Debug)]
pub struct Counter(Ctx);

impl Counter {
    /// Opens an event of the calling thread on any CPU, in a leader's group; None: said on standard error, and errno
    /// is the kernel's.
    ///
    /// # Safety
    /// `attr` is as large as its `size` says.
    pub unsafe fn open(attr: *mut Attr, leader: c_int) -> Option<Counter> {
        // SAFETY: the caller's word.
        let fd = unsafe { perf_event_open(attr, 0, -1, leader, 0) };
        if fd < 0 {
            say!("perf_event_open: {}", reason(&io::Error::last_os_error()));
            return None;
        }
        let Some(buf) = map(fd) else {
            let error = io::Error::last_os_error();
            say!("mmap on perf fd: {}", reason(&error));
            // SAFETY: nobody else has the descriptor. errno stays that of the mapping.
            unsafe {
                libc::close(fd);
                *libc::__errno_location() = error.raw_os_error().unwrap_or(0);
            }
            return None;
        };
        // SAFETY: `map` made both pages, and nobody else knows of the second; the oldest and shortest attr has a
        // read_format; getpid has no preconditions.
        let (index, granted) = unsafe {
            let layout = layout_of(fd, addr_of!((*attr).read_format).read_unaligned());
            let config = addr_of!((*attr).config).read_unaligned();
            let index = addr_of!((*buf).index).read_volatile();
            let granted = grants_rdpmc(buf);
            let width = addr_of!((*buf).pmc_width).read_volatile();
            let plain = granted && width == PLAIN_WIDTH && is_plain(index, config);
            behind(buf).write(PageTail { plain: plain.into(), layout, process: libc::getpid() });
            (index, granted)
        };
        if granted {
            // without it RDPMC is what it is in every other program
            survive_marked(MARK);
        }
        if index == METRICS_INDEX {
            // a member that comes to SLOTS while they run makes the kernel lose what it counts from here to the next
            // read(2) (kernel-facts B.6): so that is now
            words(leader, &mut [MaybeUninit::uninit(); GROUP]);
        }
        Some(Counter(Ctx { fd, buf }))
    }

    /// The event that `rdpmc_open` knows by this number, in user mode.
    pub fn open_number(counter: u32) -> Option<Counter> {
        let kind = if counter <= LAST_GENERIC { PERF_TYPE_HARDWARE } else { PERF_TYPE_RAW };
        let mut attr = user_mode(kind, counter.into());
        attr.size = ATTR_SIZE;
        // SAFETY: an attr that is larger than its size.
        unsafe { Counter::open(&mut attr, -1) }
    }

    /// A raw event in user mode, in the group of a leader.
    pub fn open_raw(config: u64, leader: Option<&Counter>) -> Option<Counter> {
        let mut attr = user_mode(PERF_TYPE_RAW, config);
        // SAFETY: a whole attr.
        unsafe { Counter::open(&mut attr, leader.map_or(-1, |leader| leader.0.fd)) }
    }

    /// Its total since it was opened.
    pub fn read(&self) -> u64 {
        // SAFETY: it is open.
        unsafe { read(&self.0) }
    }

    /// Gives it to C.
    pub fn into_ctx(self) -> Ctx {
        let ctx = Ctx { ..ManuallyDrop::new(self).0 };
        GIVEN.lock().insert(ctx.buf.addr(), ctx.fd);
        ctx
    }

    /// Takes it from C; None if it is not open.
    pub fn from_ctx(ctx: Ctx) -> Option<Counter> {
        let mut given = GIVEN.lock();
        let open = given.get(&ctx.buf.addr()) == Some(&ctx.fd);
        open.then(|| {
            given.remove(&ctx.buf.addr());
            Counter(ctx)
        })
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let Ctx { fd, buf } = self.0;
        // SAFETY: both pages are ours, and nobody looks at them any more. In a forked child something else may be where
        // the control page was.
        unsafe {
            let ours = (*behind(buf)).process == libc::getpid();
            libc::munmap(behind(buf).cast(), PAGE_SIZE);
            if ours {
                libc::munmap(buf.cast(), PAGE_SIZE);
            }
            libc::close(fd);
        }
    }
}

fn user_mode(kind: u32, config: u64) -> Attr {
    let mut attr = Attr { type_: kind, size: size_of::<Attr>() as u32, config, ..Attr::default() };
    attr.sample_type = PERF_SAMPLE_READ.into();
    attr.set_exclude_kernel(1);
    attr
}

fn layout_of(fd: c_int, read_format: u64) -> ReadLayout {
    let mut layout = ReadLayout { read_format, ..ReadLayout::default() };
    if layout.is_group() {
        let members = words(fd, &mut [MaybeUninit::uninit(); GROUP]).first().copied().unwrap_or(0);
        layout.position = (members as usize).saturating_sub(1);
        // SAFETY: the kernel writes a word. Without it nothing bears this id.
        unsafe { perf_event_open_sys::ioctls::ID(fd, &mut layout.id) };
    }
    layout
}

/// The control page of an event, and a page behind it.
fn map(fd: c_int) -> Option<*mut Page> {
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let fixed = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: new memory, and a mapping over the first page of it.
    unsafe {
        let both =
            libc::mmap(null_mut(), 2 * PAGE_SIZE, libc::PROT_READ | libc::PROT_WRITE, anonymous, -1, 0);
        if both == libc::MAP_FAILED {
            return None;
        }
        if libc::mmap(both, PAGE_SIZE, libc::PROT_READ, fixed, fd, 0) == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            libc::munmap(both, 2 * PAGE_SIZE);
            *libc::__errno_location() = error.raw_os_error().unwrap_or(0);
            return None;
        }
        // (before Linux 4.14 a forked child that reads faults)
        libc::madvise(both.wrapping_byte_add(PAGE_SIZE), PAGE_SIZE, libc::MADV_WIPEONFORK);
        Some(both.cast())
    }
}

fn behind(page: *mut Page) -> *mut PageTail {
    page.wrapping_byte_add(PAGE_SIZE).cast()
}

/// The total of an open counter; 0 for one that is not open, and in a forked child. Nothing in it can panic.
///
/// What is decided when the event is opened is not asked again: whether RDPMC may be executed is of an event for its life (the
/// kernel computes `cap_user_rdpmc` from a flag of the event), and so are the width and whether it is plain. An RDPMC that was
/// forbidden later faults and is survived.
///
/// # Safety
/// NULL, a `Ctx` of `Counter::into_ctx`, or one with a `buf` of NULL.
#[inline(always)]
pub unsafe fn read(ctx: *const Ctx) -> u64 {
    // SAFETY: the caller vouches for ctx, and so for the page, which the kernel changes at any time, hence volatile.
    unsafe {
        if ctx.is_null() || (*ctx).buf.is_null() {
            return 0;
        }
        let page: *const Page = (*ctx).buf;
        if addr_of!((*behind((*ctx).buf)).plain).read_volatile() == 0 {
            return read_carefully(ctx);
        }
        match plain_total::<MARK>(page) {
            total @ 0.. => total as u64,
            _ => read_carefully(ctx),
        }
    }
}

/// The same of any event. (`extern "C"` says that it does not unwind, for the sake of who calls it.)
///
/// # Safety
/// As of `Counter::into_ctx`.
#[cold]
#[inline(never)]
unsafe extern "C" fn read_carefully(ctx: *const Ctx) -> u64 {
    // SAFETY: as of `read`.
    unsafe {
        let page: *const Page = (*ctx).buf;
        if addr_of!((*behind((*ctx).buf)).process).read_volatile() == 0 {
            return 0;
        }
        match total::<MARK>(page) {
            Total::Known(total) => return total,
            // one fault a reading is enough
            Total::Faulted => addr_of_mut!((*behind((*ctx).buf)).plain).write_volatile(0),
            Total::Unknown => {}
        }
        read_slowly(ctx)
    }
}

/// The total by read(2). (`extern "C"`: as above.)
///
/// # Safety
/// As of `Counter::into_ctx`.
#[cold]
#[inline(never)]
unsafe extern "C" fn read_slowly(ctx: *const Ctx) -> u64 {
    // SAFETY: the caller's word: there is a page behind the control page.
    unsafe {
        let layout = (*behind((*ctx).buf)).layout;
        let total = if layout.is_group() {
            layout.total(words((*ctx).fd, &mut [MaybeUninit::uninit(); GROUP]))
        } else {
            layout.total(words((*ctx).fd, &mut [MaybeUninit::uninit(); ALONE]))
        };
        // the kernel gives no more of an event whose group has lost its slots: its total is what it was
        total.unwrap_or_else(|| addr_of!((*(*ctx).buf).offset).read_volatile() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_open_reads_zero() {
        // SAFETY: NULL, and a buf of NULL.
        unsafe {
            assert_eq!(read(std::ptr::null()), 0);
            assert_eq!(read(&Ctx::CLOSED), 0);
        }
        assert!(Counter::from_ctx(Ctx::CLOSED).is_none());
    }
}
