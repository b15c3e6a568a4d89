//! What the kernel and the CPU offer, for all libraries and commands here. Nothing in it knows of any of them.
//!
//! - `Kernel`: one method for each system call on events, so that tests can put `scripted` in the place of `Linux`.
//!   Descriptors and mappings release themselves: an open that fails half way leaves nothing behind.
//! - `page`, `rdpmc`, `mrs`, `rseq`, `group_read`: a control page, counters read in user space, what read(2) says.
//! - `fault`, `chained`, `signals`, `cancellation`: RDPMC or MRS that was forbidden, handlers before others', signals blocked, and
//!   threads that are cancelled when the library is done.
//! - `at_once`: additions that no signal handler comes between.
//! - `clocks`: elapsed time, and CPU time of threads.
//! - `floating`: the program's floating-point environment, kept.
//! - `thread`, `thread_text`, `identity`, `memory`, `guarded`, `kept`: which thread, which handle, and memory that handlers of signals,
//!   other threads and forked children meet.
//! - `ring`, `records`, `execs`: an event's ring buffer, its records, and what programs lose their events.
//! - `ptrace`: threads of others that are stopped and looked at.
//! - `seccomp`: how many filters this process has.
//! - `cpu`, `sysfs`, `lasting`, `terms`, `format`, `attr`, `numbers`: CPUID, what /sys tells, and its texts as `perf_event_attr`.

pub mod at_once;
pub mod attr;
pub mod cancellation;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod chained;
pub mod clocks;
pub mod cpu;
pub mod execs;
#[cfg_attr(target_arch = "aarch64", path = "fault_arm64.rs")]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod fault;
pub mod floating;
pub mod format;
pub mod group_read;
pub mod guarded;
mod helper_thread;
pub mod identity;
pub mod kept;
mod lasting;
pub mod late;
mod linux;
pub mod memory;
#[cfg(target_arch = "aarch64")]
pub mod mrs;
pub mod numbers;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod once;
pub mod page;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod ptrace;
pub mod random;
#[cfg(target_arch = "x86_64")]
pub mod rdpmc;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_rdpmc.rs"]
pub mod rdpmc;
pub mod records;
pub mod ring;
pub mod rseq;
#[cfg(any(test, fuzzing, feature = "scripted"))]
pub mod scripted;
pub mod seccomp;
pub mod short;
pub mod signals;
pub mod sysfs;
pub mod terms;
pub mod thread;
pub mod thread_text;

/// No counter is read in user space, so nothing faults.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod fault {
    /// How often RDPMC has faulted.
    pub fn count() -> u64 {
        0
    }

    /// Whether RDPMC that faults is survived.
    pub fn survive() -> bool {
        false
    }

    /// The same.
    pub fn survive_marked(_: u32) -> bool {
        false
    }
}

/// The instruction by which user space reads counters here.
pub const READ_INSTRUCTION: &str = if cfg!(target_arch = "aarch64") { "MRS" } else { "RDPMC" };

pub use linux::{Linux, open_event};
use memory::ReservedPage;
use page::{Page, PageSnapshot};
use perf_event_open_sys::bindings::perf_event_attr;
pub use perf_event_open_sys::bindings::perf_event_attr as Attr;
use std::io;
use std::time::Duration;

/// Why events of a group were not opened.
#[derive(Debug)]
pub struct Refusal {
    /// Which of them; none: the thread that opens them could not be made.
    pub event: Option<usize>,
    /// The kernel's refusal.
    pub error: io::Error,
}

/// What the library asks of the kernel.
pub trait Kernel {
    /// An open event; dropping it closes it.
    type Fd;
    /// An event's mapped control page; dropping it unmaps it.
    type Map: Mapping;

    /// perf_event_open(2) of an event of this thread's, close-on-exec.
    fn open(&self, attr: &perf_event_attr, pid: i32, cpu: i32) -> io::Result<Self::Fd>;
    /// The same of several in a group (the first of them leads if there is no leader yet), which belong to no thread: no
    /// prctl(2) switches them off.
    fn open_group(
        &self,
        attrs: &[perf_event_attr],
        pid: i32,
        cpu: i32,
        leader: Option<&Self::Fd>,
    ) -> Result<Vec<Self::Fd>, Refusal>;
    /// As `open_group` for the calling thread, in these places; it takes no memory.
    fn open_own_group(&self, attrs: &[perf_event_attr], places: &mut [Option<Self::Fd>]) -> io::Result<()>;
    /// PERF_EVENT_IOC_ENABLE on a leader, with which its siblings, which are never disabled, begin to count. (PERF_IOC_FLAG_GROUP enables
    /// one after the other, with a call to each CPU that counts: meanwhile the leader counts alone.)
    fn enable(&self, leader: &Self::Fd) -> io::Result<()>;
    /// PERF_EVENT_IOC_DISABLE on a leader, with which its siblings cease to count.
    fn disable(&self, leader: &Self::Fd) -> io::Result<()>;
    /// PERF_EVENT_IOC_RESET on one event.
    fn reset(&self, event: &Self::Fd) -> io::Result<()>;
    /// read(2) of 64-bit words; how many there were.
    fn read(&self, event: &Self::Fd, words: &mut [u64]) -> io::Result<usize>;
    /// mmap(2) of an event's first page, read-only, at this place if there is one.
    fn map(&self, event: &Self::Fd, place: Option<ReservedPage>) -> io::Result<Self::Map>;
    /// The text of a file of /sys or /proc.
    fn text(&self, path: &str) -> io::Result<String>;
    /// Whether a file or directory exists.
    fn exists(&self, path: &str) -> bool;
    /// The CPU that runs this.
    fn cpu(&self) -> u32;
    /// CPU time that this thread has used.
    fn cpu_time(&self) -> Duration;
}

/// A mapped control page.
pub trait Mapping {
    /// Where it is; valid as long as the mapping lives.
    fn page(&self) -> *const Page;
    /// What it says, consistently; None if it moves too fast.
    fn snapshot(&self) -> Option<PageSnapshot>;
    /// Whether RDPMC was granted when the event was opened.
    fn grants_rdpmc(&self) -> bool;
    /// Its counter's number for RDPMC plus one; 0 while it is not on this CPU.
    fn index(&self) -> u32;
    /// Its sequence number. It moves by two whenever the kernel rewrites the page, which it does at
    /// least twice (out, in) for each time that the event leaves the CPU and comes back.
    fn sequence(&self) -> u32;
    /// Give it up without unmapping: in a forked child it is not mapped.
    fn forget(self);
    /// Give it up, and leave a page of zeros in its place for good.
    fn leave_zeros(self);
}
