//! The kernel that runs this process.

use super::clocks;
use super::helper_thread::on_helper_thread;
use super::lasting::LastingFiles;
use super::memory::ReservedPage;
use super::page::{self, Page, PageSnapshot};
use super::signals::SignalBlock;
use super::{Kernel, Mapping, Refusal};
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings::{
    PERF_FLAG_FD_CLOEXEC, PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_TOTAL_TIME_ENABLED,
    PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_SAMPLE_READ, perf_event_attr,
};
use std::fs::File;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

/// Events that a group may have that takes no memory.
const MOST_IN_A_GROUP: usize = 16;
/// Words that a reading of a group may have.
const MOST_SAID: usize = 64;

/// What sysfs has said that does not change.
static FILES: LastingFiles = LastingFiles::new();

/// The real thing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux {
    /// Events get descriptors from this number up, or none.
    pub descriptors_from: i32,
}

/// An event's descriptor. The program may close it (close_range(2), daemons), and open something of its own in its place: then it is
/// not touched.
#[derive(Debug)]
pub struct PerfEvent {
    file: ManuallyDrop<File>,
    /// The kernel's number of the event.
    id: u64,
    /// As it was opened.
    read_format: u64,
}

impl PerfEvent {
    fn new(file: File, read_format: u64) -> io::Result<PerfEvent> {
        let id = id(file.as_raw_fd())?;
        Ok(PerfEvent { file: ManuallyDrop::new(file), id, read_format })
    }

    /// What read(2) said, without the numbers of events, in few instructions: they count. None: the event's own is not among them.
    fn without_ids(&self, said: &[u64], words: &mut [u64]) -> Option<usize> {
        if said.is_empty() || !self.has(PERF_FORMAT_ID) {
            let all = said.len().min(words.len()); // (nothing: the kernel has given it up)
            words[..all].copy_from_slice(&said[..all]);
            return Some(all);
        }
        let times = [PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING];
        let head = 1 + times.iter().filter(|flag| self.has(**flag)).count();
        // (number of events or value, times)
        let (told, rest) = said.split_at_checked(head)?;
        let (kept, values) = words.split_at_mut_checked(head)?;
        kept.copy_from_slice(told);
        if !self.has(PERF_FORMAT_GROUP) {
            return (rest == [self.id]).then_some(head);
        }
        // (value and number of each)
        let (mut count, mut is_own) = (head, false);
        for (value, member) in values.iter_mut().zip(rest.chunks_exact(2)) {
            *value = member[0];
            is_own |= member[1] == self.id;
            count += 1;
        }
        is_own.then_some(count)
    }

    fn has(&self, flag: u32) -> bool {
        self.read_format & u64::from(flag) != 0
    }

    /// The descriptor, if the event is behind it.
    fn descriptor(&self) -> io::Result<i32> {
        match id(self.as_raw_fd()) {
            Ok(id) if id == self.id => Ok(self.as_raw_fd()),
            Err(error) if is_forbidden(&error) => Err(error),
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }
}

/// Whether it is what a filter of system calls says.
fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// The number of the event behind a descriptor.
fn id(fd: i32) -> io::Result<u64> {
    let mut id = 0;
    // SAFETY: an ioctl that fails on what is no event, and a live number.
    check(unsafe { perf::ioctls::ID(fd, &mut id) }).map(|()| id)
}

impl AsRawFd for PerfEvent {
    fn as_raw_fd(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl Drop for PerfEvent {
    fn drop(&mut self) {
        if self.descriptor().is_ok() {
            // SAFETY: it is dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

impl Kernel for Linux {
    type Fd = PerfEvent;
    type Map = MappedPage;

    fn open(&self, attr: &perf_event_attr, pid: i32, cpu: i32) -> io::Result<PerfEvent> {
        self.owned(open_raw(attr, pid, cpu, -1)?, attr)
    }

    fn open_group(
        &self,
        attrs: &[perf_event_attr],
        pid: i32,
        cpu: i32,
        leader: Option<&PerfEvent>,
    ) -> Result<Vec<PerfEvent>, Refusal> {
        // SAFETY: gettid has no preconditions.
        let pid = if pid == 0 { unsafe { libc::gettid() } } else { pid };
        let mut group = leader.map_or(-1, AsRawFd::as_raw_fd);
        let mut opened = Vec::with_capacity(attrs.len());
        let mut refusal = None;
        let signals = SignalBlock::new();
        // (it takes no memory: the allocator may keep something for each thread)
        let made = on_helper_thread(&signals, || {
            for attr in attrs {
                match open_raw(attr, pid, cpu, group) {
                    Ok(fd) => opened.push(fd),
                    Err(error) => return refusal = Some(error),
                }
                group = if group < 0 { opened[0] } else { group };
            }
        });
        drop(signals);
        // each is owned, whatever becomes of the others
        let opened: Vec<io::Result<PerfEvent>> =
            opened.into_iter().zip(attrs).map(|(fd, attr)| self.owned(fd, attr)).collect();
        let opened: io::Result<Vec<PerfEvent>> = opened.into_iter().collect();
        let refused = |event| move |error| Refusal { event, error };
        made.map_err(refused(None))?;
        let opened = opened.map_err(refused(Some(0)))?;
        match refusal {
            Some(error) => Err(Refusal { event: Some(opened.len()), error }),
            None => Ok(opened),
        }
    }

    fn open_own_group(&self, attrs: &[perf_event_attr], places: &mut [Option<PerfEvent>]) -> io::Result<()> {
        // SAFETY: gettid has no preconditions.
        let thread = unsafe { libc::gettid() };
        let mut opened = [-1; MOST_IN_A_GROUP];
        let mut refusal = Ok(());
        let signals = SignalBlock::new();
        let made = on_helper_thread(&signals, || {
            let mut leader = -1;
            for (place, attr) in opened.iter_mut().zip(attrs) {
                match open_raw(attr, thread, -1, leader) {
                    Ok(fd) => *place = fd,
                    Err(error) => return refusal = Err(error),
                }
                leader = if leader < 0 { *place } else { leader };
            }
        });
        // each is owned, whatever becomes of the others
        for ((place, fd), attr) in places.iter_mut().zip(opened).zip(attrs).filter(|((_, fd), _)| *fd >= 0) {
            *place = self.owned(fd, attr).ok();
        }
        made.and(refusal)?;
        match places.iter().zip(attrs).all(|(place, _)| place.is_some()) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::EMFILE)),
        }
    }

    fn enable(&self, leader: &PerfEvent) -> io::Result<()> {
        let fd = leader.descriptor()?;
        // SAFETY: an ioctl on a live descriptor, with a number as its argument.
        check(unsafe { perf::ioctls::ENABLE(fd, 0) })
    }

    fn disable(&self, leader: &PerfEvent) -> io::Result<()> {
        let fd = leader.descriptor()?;
        // SAFETY: an ioctl on a live descriptor, with a number as its argument.
        check(unsafe { perf::ioctls::DISABLE(fd, 0) })
    }

    fn reset(&self, event: &PerfEvent) -> io::Result<()> {
        let fd = event.descriptor()?;
        // SAFETY: an ioctl on a live descriptor, without an argument.
        check(unsafe { perf::ioctls::RESET(fd, 0) })
    }

    fn read(&self, event: &PerfEvent, words: &mut [u64]) -> io::Result<usize> {
        let fd = event.as_raw_fd();
        // (not by the C library's, which is a cancellation point: td_read is none)
        // SAFETY: the caller's buffer has room for so many bytes, any of which make words.
        let read = |said: *mut u64, bytes: usize| unsafe { libc::syscall(libc::SYS_read, fd, said, bytes) };
        // An event says that so little is no room for it (kernel/events/core.c, __perf_read); a pipe, a file or a socket says 0, and keeps
        // what it has. (A sandbox that permits read(2) need not permit the ioctl(2) that would tell.) 0 is also said by an event that the
        // kernel has given up.
        let probed = read(null_mut(), 0);
        // SAFETY: this thread's own.
        if probed >= 0 || unsafe { *libc::__errno_location() } != libc::ENOSPC || !event.has(PERF_FORMAT_ID) {
            let error = io::Error::last_os_error();
            if probed < 0 && is_forbidden(&error) {
                return Err(error);
            }
            event.descriptor()?;
        }
        let mut said = [const { MaybeUninit::<u64>::uninit() }; MOST_SAID];
        let Ok(got) = usize::try_from(read(said.as_mut_ptr().cast(), size_of_val(&said))) else {
            return Err(io::Error::last_os_error());
        };
        // SAFETY: the kernel has written so many.
        let said = unsafe { std::slice::from_raw_parts(said.as_ptr().cast::<u64>(), got / 8) };
        event.without_ids(said, words).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    fn map(&self, event: &PerfEvent, place: Option<ReservedPage>) -> io::Result<MappedPage> {
        let (fixed, at) = match &place {
            Some(place) => (libc::MAP_FIXED, place.address()),
            None => (0, null_mut()),
        };
        let (access, flags) = (libc::PROT_READ, libc::MAP_SHARED | fixed);
        let fd = event.as_raw_fd(); // (it has just been opened)
        // SAFETY: a new mapping, where the kernel likes or in a place that is ours to map in.
        let page = unsafe { libc::mmap(at.cast(), page_size(), access, flags, fd, 0) };
        if page == libc::MAP_FAILED {
            let refusal = io::Error::last_os_error();
            // the kernel takes what was there away before it refuses
            place.iter().for_each(|place| place.reserve(page_size()));
            return Err(refusal);
        }
        Ok(MappedPage { page, place })
    }

    fn text(&self, path: &str) -> io::Result<String> {
        FILES.text(path, || std::fs::read_to_string(path))
    }

    fn exists(&self, path: &str) -> bool {
        FILES.exists(path, || Path::new(path).exists())
    }

    fn cpu(&self) -> u32 {
        // SAFETY: sched_getcpu has no preconditions. It cannot fail where perf events exist.
        unsafe { libc::sched_getcpu() }.max(0) as u32
    }

    fn cpu_time(&self) -> Duration {
        Duration::from_nanos(clocks::own_cpu_ns())
    }
}

/// A mapped control page.
#[derive(Debug)]
pub struct MappedPage {
    page: *mut libc::c_void,
    /// It is in a place of its holder's, which must not be left empty: others could get to be there.
    place: Option<ReservedPage>,
}

impl Drop for MappedPage {
    fn drop(&mut self) {
        match &self.place {
            // SAFETY: the mapping is ours, and nobody looks at it any more.
            None => unsafe {
                libc::munmap(self.page, page_size());
            },
            Some(place) => {
                if !self.become_zeros() {
                    place.reserve(page_size());
                }
            }
        }
    }
}

impl MappedPage {
    /// Puts a page of zeros in its place: a reading that is not finished, in a thread that was interrupted or against the rules,
    /// finds no counters and no fault.
    fn become_zeros(&self) -> bool {
        let fixed = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the mapping is ours, and zeros make a page that shows no counter.
        unsafe { libc::mmap(self.page, page_size(), libc::PROT_READ, fixed, -1, 0) != libc::MAP_FAILED }
    }
}

impl Mapping for MappedPage {
    fn page(&self) -> *const Page {
        self.page.cast()
    }

    #[inline]
    fn snapshot(&self) -> Option<PageSnapshot> {
        // SAFETY: the page is mapped as long as self lives.
        unsafe { page::snapshot(self.page()) }
    }

    fn grants_rdpmc(&self) -> bool {
        // SAFETY: the page is mapped as long as self lives.
        unsafe { page::grants_rdpmc(self.page()) }
    }

    fn index(&self) -> u32 {
        // SAFETY: the page is mapped as long as self lives.
        unsafe { page::index(self.page()) }
    }

    fn sequence(&self) -> u32 {
        // SAFETY: the page is mapped as long as self lives.
        unsafe { page::sequence(self.page()) }
    }

    fn forget(self) {
        std::mem::forget(self);
    }

    fn leave_zeros(self) {
        self.become_zeros();
        std::mem::forget(self);
    }
}

impl Linux {
    /// An event whose descriptor the kernel has just given.
    fn owned(&self, fd: i32, attr: &perf_event_attr) -> io::Result<PerfEvent> {
        // SAFETY: nobody else owns the descriptor.
        let event = unsafe { File::from_raw_fd(fd) };
        if fd >= self.descriptors_from {
            return PerfEvent::new(event, read_format(attr));
        }
        match copy_above(fd, self.descriptors_from) {
            ..0 => Err(io::Error::last_os_error()),
            // SAFETY: the kernel has just given it, and nobody else owns it.
            moved => PerfEvent::new(unsafe { File::from_raw_fd(moved) }, read_format(attr)),
        }
    }
}

/// A copy of a descriptor, at `from` or above; in the upper half where the limit is below `from`. (Who opened the first group had raised
/// it, and has set it back.)
fn copy_above(fd: i32, from: i32) -> i32 {
    // SAFETY: a number that is no descriptor is refused.
    let copy = |from: i32| unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, from) };
    match copy(from) {
        ..0 if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) => copy(upper_half()),
        copied => copied,
    }
}

/// Descriptors need not be higher: the kernel's table of them is as long as the highest.
const HIGH_ENOUGH: libc::rlim_t = 1 << 14;

/// Where the upper half of the descriptors begins that this process may have, if it may not have many.
fn upper_half() -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (limit.rlim_cur / 2).min(HIGH_ENOUGH) as i32
}

/// The `read_format` that an event gets: with its number, unless its samples are readings, too ([`super::records`]).
fn read_format(attr: &perf_event_attr) -> u64 {
    let is_sampled = attr.sample_type & u64::from(PERF_SAMPLE_READ) != 0;
    attr.read_format | if is_sampled { 0 } else { u64::from(PERF_FORMAT_ID) }
}

/// perf_event_open(2), of an event whose descriptor exec closes. `group`: the descriptor of a leader, or -1.
///
/// # Errors
/// Those of perf_event_open(2), but EINTR.
pub fn open_event(attr: &perf_event_attr, pid: i32, cpu: i32, group: i32) -> io::Result<OwnedFd> {
    // (the kernel writes its own size into it when it refuses ours)
    let mut attr = perf_event_attr { size: size_of::<perf_event_attr>() as u32, ..*attr };
    let fd = again(|| {
        // SAFETY: attr is a live perf_event_attr whose size field says how long it is.
        unsafe { perf::perf_event_open(&mut attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC.into()) }
    })?;
    // SAFETY: a new descriptor, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `open_event` with the number of the event in what read(2) tells.
fn open_raw(attr: &perf_event_attr, pid: i32, cpu: i32, group: i32) -> io::Result<i32> {
    let attr = perf_event_attr { read_format: read_format(attr), ..*attr };
    open_event(&attr, pid, cpu, group).map(IntoRawFd::into_raw_fd)
}

/// Calls until no signal comes between (another thread's events are opened under a lock).
fn again(mut call: impl FnMut() -> i32) -> io::Result<i32> {
    loop {
        let result = call();
        if result >= 0 {
            return Ok(result);
        }
        let refusal = io::Error::last_os_error();
        if refusal.kind() != io::ErrorKind::Interrupted {
            return Err(refusal);
        }
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes in a page of memory.
pub fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_copied_above_the_limit_or_into_the_upper_half() {
        let file = File::open("/dev/null").unwrap();
        let from = |from: i32| {
            let copied = copy_above(file.as_raw_fd(), from);
            assert!(copied >= 0, "{from}: {}", io::Error::last_os_error());
            // SAFETY: the kernel has just given it, and nobody else owns it.
            drop(unsafe { File::from_raw_fd(copied) });
            copied
        };
        assert!(from(upper_half() - 5) >= upper_half() - 5);
        assert!(from(i32::MAX) >= upper_half());
    }

    #[test]
    fn a_reading_is_the_events_own() {
        let times = u64::from(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
        let said = |format: u32, said: &[u64]| {
            let file = ManuallyDrop::new(File::open("/dev/null").unwrap());
            let event = PerfEvent { file, id: 77, read_format: times | u64::from(format | PERF_FORMAT_ID) };
            let mut words = [0; 8];
            event.without_ids(said, &mut words).map(|count| words[..count].to_vec())
        };
        assert_eq!(said(0, &[5, 2, 1, 77]), Some(vec![5, 2, 1]));
        assert_eq!(said(0, &[5, 2, 1, 76]), None);
        assert_eq!(said(0, &[5, 2, 1]), None);
        let group = PERF_FORMAT_GROUP;
        assert_eq!(said(group, &[2, 9, 8, 5, 77, 6, 78]), Some(vec![2, 9, 8, 5, 6]));
        assert_eq!(said(group, &[2, 9, 8, 5, 76, 6, 77]), Some(vec![2, 9, 8, 5, 6]), "its group's");
        assert_eq!(said(group, &[2, 9, 8, 77, 5, 77, 6]), None, "a value is no number");
        assert_eq!(said(group, &[]), Some(vec![]), "given up");
        assert_eq!(said(group, &[2, 9]), None);
    }
}
