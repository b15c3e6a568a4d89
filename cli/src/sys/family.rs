//! Threads and processes with all that they start: whether any of them goes on.

use super::signals::{ENDERS, INTERRUPTED_AFTER};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use topdown_seam::open_event;

/// A thread or process, and all that it starts: an event that counts nothing, but goes from each to its children.
pub struct Family {
    event: OwnedFd,
    page: *mut libc::c_void,
}

const PAGE: usize = 4096;

impl Family {
    /// Of the process with this id, before it is executed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(pid: i32) -> io::Result<Family> {
        Family::open(pid, true)
    }

    /// Of a thread alone.
    ///
    /// # Errors
    /// The kernel's.
    pub fn alone(tid: i32) -> io::Result<Family> {
        Family::open(tid, false)
    }

    fn open(pid: i32, inherit: bool) -> io::Result<Family> {
        let mut attr = perf_event_attr {
            type_: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_DUMMY.into(),
            ..perf_event_attr::default()
        };
        attr.set_inherit(inherit.into());
        attr.set_exclude_kernel(1);
        // SAFETY: what is mapped of a new descriptor is new.
        unsafe {
            // (what is inherited can be mapped on one CPU alone, whichever: it is inherited on all)
            let cpu = libc::sched_getcpu().max(0);
            let event = open_event(&attr, pid, cpu, -1)?;
            // (without a page poll(2) takes it for one that has ended)
            let page = libc::mmap(null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, event.as_raw_fd(), 0);
            if page == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Family { event, page })
        }
    }

    /// A descriptor that comes to its end with them.
    pub fn descriptor(&self) -> i32 {
        self.event.as_raw_fd()
    }

    /// Whether any of them goes on. `wait`: until there is none, or a signal that ends came since the command has ended.
    pub fn goes_on(&self, wait: bool) -> bool {
        if wait {
            self.wait();
        }
        let mut of = libc::pollfd { fd: self.event.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one live pollfd.
        unsafe { libc::poll(&raw mut of, 1, 0) == 0 || of.revents == 0 }
    }

    fn wait(&self) {
        let mut of = libc::pollfd { fd: self.event.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: plain data, and one live pollfd.
        unsafe {
            let (mut enders, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigemptyset(&raw mut enders);
            ENDERS.iter().for_each(|signal| _ = libc::sigaddset(&raw mut enders, *signal));
            // (they come in ppoll alone, so none is missed before)
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const enders, &raw mut before);
            while !INTERRUPTED_AFTER.load(Relaxed) {
                let come = libc::ppoll(&raw mut of, 1, std::ptr::null(), &raw const before);
                if come >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                    break;
                }
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // SAFETY: it was mapped, and is given up once.
        unsafe { libc::munmap(self.page, PAGE) };
    }
}
