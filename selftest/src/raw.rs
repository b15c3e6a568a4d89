//! perf_event_open, RDPMC and the scheduler with no library between: what is assumed of them is tried with these.
#![allow(unsafe_code)]

use super::machine::SlotsPmu;
use perf_event_open_sys::bindings::{
    PERF_FORMAT_GROUP, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, perf_event_attr,
    perf_event_mmap_page,
};
use perf_event_open_sys::ioctls;
use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{addr_of, null_mut, read_volatile};
use std::sync::atomic::{Ordering, compiler_fence};
use topdown::Sample;
use topdown::capi::{COptions, TD_SOURCE_REGISTERS, td, td_close, td_open};
use topdown_seam::open_event;

/// `config` of the leader, and of the first metric event; the others follow in steps of 0x100.
pub const SLOTS: u64 = 0x400;
/// See [`SLOTS`].
pub const METRICS: u64 = 0x8000;
/// What the control page of SLOTS shows while it counts.
pub const SLOTS_INDEX: u32 = 0x4000_0004;
/// What that of each metric event shows.
pub const METRICS_INDEX: u32 = 0x2000_0001;

const PAGE: usize = 4096;
const CAP_BIT0_IS_DEPRECATED: u64 = 1 << 1;
const CAP_USER_RDPMC: u64 = 1 << 2;
/// Flag of ioctls: the whole group.
const GROUP: u32 = 1;

/// Whose slots an event counts.
#[derive(Clone, Copy)]
pub enum EventTarget {
    /// A thread's, by its id; 0 is this one's.
    Thread(i32),
    /// All of a CPU.
    Cpu(usize),
}

/// How the leader is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// As the library does.
    Disabled,
    /// As the example in the kernel's topdown.txt does.
    Running,
}

/// What a control page says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlPage {
    pub sequence: u32,
    pub index: u32,
    pub offset: i64,
    pub rdpmc: bool,
    pub width: u16,
}

/// SLOTS and PERF_METRICS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterPair {
    pub slots: u64,
    pub metrics: u64,
}

impl RegisterPair {
    /// A field of PERF_METRICS.
    pub fn field(self, k: usize) -> u64 {
        self.metrics >> (8 * k) & 0xff
    }
}

/// What read(2) of a group, or of an event alone, says.
pub struct ReadCount {
    pub enabled: u64,
    pub running: u64,
    /// What the leader counted.
    pub slots: u64,
}

/// An open event, and its control page.
pub struct MappedEvent {
    fd: OwnedFd,
    page: *const perf_event_mmap_page,
}

impl MappedEvent {
    /// Opens an event; user mode only.
    pub fn open(
        pmu: &SlotsPmu,
        config: u64,
        of: EventTarget,
        start: Start,
        leader: Option<&MappedEvent>,
    ) -> io::Result<MappedEvent> {
        let format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        let mut attr = perf_event_attr {
            type_: pmu.kind,
            config,
            read_format: format as u64,
            ..perf_event_attr::default()
        };
        attr.set_disabled((leader.is_none() && start != Start::Running).into());
        attr.set_exclude_kernel(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_guest(1);
        let (thread, cpu) = match of {
            EventTarget::Thread(id) => (id, -1),
            EventTarget::Cpu(cpu) => (-1, cpu as i32),
        };
        let leader = leader.map_or(-1, |event| event.fd.as_raw_fd());
        let fd = open_event(&attr, thread, cpu, leader)?;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let page =
            unsafe { libc::mmap(null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(MappedEvent { fd, page: page.cast_const().cast() })
    }

    /// read(2): of its group, if it leads one.
    pub fn count(&self) -> io::Result<ReadCount> {
        let mut words = [0u64; 3 + 9];
        // SAFETY: the kernel writes no more than it is told.
        let length =
            unsafe { libc::read(self.fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
        match length {
            ..0 => Err(io::Error::last_os_error()),
            0..32 => Err(io::Error::other("read(2) of the group gave too little")),
            _ => Ok(ReadCount { enabled: words[1], running: words[2], slots: words[3] }),
        }
    }

    /// What the control page says, all at one sequence number.
    pub fn page(&self) -> ControlPage {
        loop {
            // SAFETY: mapped as long as the event is; the kernel writes there at any time, hence volatile.
            let (page, after) = unsafe {
                let sequence = read_volatile(addr_of!((*self.page).lock));
                compiler_fence(Ordering::Acquire);
                let capabilities = read_volatile(addr_of!((*self.page).__bindgen_anon_1.capabilities));
                let page = ControlPage {
                    sequence,
                    index: read_volatile(addr_of!((*self.page).index)),
                    offset: read_volatile(addr_of!((*self.page).offset)),
                    rdpmc: capabilities & CAP_BIT0_IS_DEPRECATED != 0 && capabilities & CAP_USER_RDPMC != 0,
                    width: read_volatile(addr_of!((*self.page).pmc_width)),
                };
                compiler_fence(Ordering::Acquire);
                (page, read_volatile(addr_of!((*self.page).lock)))
            };
            if after == page.sequence {
                return page;
            }
        }
    }
}

impl Drop for MappedEvent {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `open`, and is used no more.
        unsafe { libc::munmap(self.page.cast_mut().cast(), PAGE) };
    }
}

/// SLOTS and all metric events.
pub struct SlotsGroup {
    leader: MappedEvent,
    members: Vec<MappedEvent>,
}

impl SlotsGroup {
    /// Opens a group of SLOTS and so many metric events. RDPMC where there is none would end the program: so the caller
    /// is pinned to CPUs of the PMU.
    pub fn open(pmu: &SlotsPmu, metrics: usize, of: EventTarget, start: Start) -> io::Result<SlotsGroup> {
        let leader = MappedEvent::open(pmu, SLOTS, of, start, None)?;
        let members = (0..metrics as u64)
            .map(|k| MappedEvent::open(pmu, METRICS + 0x100 * k, of, start, Some(&leader)))
            .collect::<io::Result<_>>()?;
        Ok(SlotsGroup { leader, members })
    }

    /// Opens the calling thread's, starts it, and resets it while it runs.
    pub fn start(pmu: &SlotsPmu) -> io::Result<SlotsGroup> {
        let group = SlotsGroup::open(pmu, pmu.metrics, EventTarget::Thread(0), Start::Disabled)?;
        group.enable()?;
        group.reset()?;
        Ok(group)
    }

    fn ioctl(&self, call: unsafe fn(i32, u32) -> i32) -> io::Result<()> {
        // SAFETY: `call` is one of those below, which take a flag and touch no memory of ours.
        match unsafe { call(self.leader.fd.as_raw_fd(), GROUP) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// PERF_EVENT_IOC_ENABLE.
    pub fn enable(&self) -> io::Result<()> {
        self.ioctl(ioctls::ENABLE)
    }

    /// PERF_EVENT_IOC_DISABLE.
    pub fn disable(&self) -> io::Result<()> {
        self.ioctl(ioctls::DISABLE)
    }

    /// PERF_EVENT_IOC_RESET.
    pub fn reset(&self) -> io::Result<()> {
        self.ioctl(ioctls::RESET)
    }

    /// read(2) of the group.
    pub fn count(&self) -> io::Result<ReadCount> {
        self.leader.count()
    }

    /// The leader's control page.
    pub fn page(&self) -> ControlPage {
        self.leader.page()
    }

    /// Those of the metric events.
    pub fn member_pages(&self) -> Vec<ControlPage> {
        self.members.iter().map(MappedEvent::page).collect()
    }

    fn is_here(page: ControlPage) -> bool {
        page.rdpmc && page.index == SLOTS_INDEX
    }

    /// Both registers, of one turn; none while others have them.
    pub fn registers(&self) -> Option<RegisterPair> {
        loop {
            let page = self.page();
            if !SlotsGroup::is_here(page) {
                return None;
            }
            // SAFETY: RDPMC was granted, and the thread is pinned to CPUs that have these counters.
            let registers = unsafe { RegisterPair { slots: rdpmc_slots(), metrics: rdpmc_metrics() } };
            if self.page().sequence == page.sequence {
                return Some(registers);
            }
        }
    }

    /// SLOTS twice, one RDPMC right after the other.
    pub fn slots_twice(&self) -> Option<(u64, u64)> {
        let page = self.page();
        if !SlotsGroup::is_here(page) {
            return None;
        }
        // SAFETY: as in `registers`.
        let pair = unsafe { (rdpmc_slots(), rdpmc_slots()) };
        (self.page().sequence == page.sequence).then_some(pair)
    }

    /// The pair that a reading takes, with nothing around it: what the rest is measured against.
    pub fn bare_pairs(&self, n: u32) -> u64 {
        let mut sum = 0u64;
        if SlotsGroup::is_here(self.page()) {
            for _ in 0..n {
                // SAFETY: as in `registers`.
                sum = sum.wrapping_add(unsafe { rdpmc_slots() ^ rdpmc_metrics() });
            }
        }
        sum
    }
}

/// # Safety
/// RDPMC is permitted, and the CPU has the counter: else it faults.
#[inline(always)]
unsafe fn rdpmc(counter: u32) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "rdpmc", ".byte 0x0f, 0x1f, 0x80", ".long 0x4e574454", // if it is taken away it reads 0: the library's seam/src/fault.rs
            in("ecx") counter, lateout("rax") low, lateout("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// # Safety
/// As `rdpmc`.
#[inline(always)]
unsafe fn rdpmc_slots() -> u64 {
    // SAFETY: the caller's.
    unsafe { rdpmc(SLOTS_INDEX - 1) }
}

/// # Safety
/// As `rdpmc`.
#[inline(always)]
unsafe fn rdpmc_metrics() -> u64 {
    // SAFETY: the caller's.
    unsafe { rdpmc(METRICS_INDEX - 1) }
}

/// The time-stamp counter, after all that came before.
#[inline(always)]
pub fn tsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a clock.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", lateout("rax") low, lateout("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// A handle as C programs have it: what `td_read` costs them.
pub struct CHandle(*mut td);

impl CHandle {
    /// td_open, of registers; readings open no windows, and clear nothing.
    pub fn open() -> io::Result<CHandle> {
        let mut handle = null_mut();
        let options =
            COptions { source: TD_SOURCE_REGISTERS, max_error_ppm: 1_000_000, ..COptions::default() };
        // SAFETY: a place for the handle, and options.
        match unsafe { td_open(&mut handle, &options) } {
            0 => Ok(CHandle(handle)),
            code => Err(io::Error::other(format!("td_open: {code}"))),
        }
    }

    /// td_read, so many times.
    pub fn read(&self, times: u32) -> Sample {
        unsafe extern "C" {
            fn td_read(handle: *mut c_void, out: *mut Sample) -> c_int;
        }
        let mut sample = Sample::default();
        for _ in 0..times {
            // SAFETY: the handle is open.
            unsafe { td_read(self.0.cast(), &mut sample) };
        }
        sample
    }
}

impl Drop for CHandle {
    fn drop(&mut self) {
        // SAFETY: it is used no more.
        unsafe { td_close(self.0) };
    }
}

/// From now on this thread runs on that CPU only.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: a set of bits, all zero is one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: below the set's size; the kernel reads no more than it is told.
    let result = unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// This thread's id.
pub fn thread_id() -> i32 {
    // SAFETY: always succeeds.
    unsafe { libc::gettid() }
}

/// How often this thread was switched out.
pub fn switches() -> i64 {
    // SAFETY: numbers, all zero is such a structure; the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    usage.ru_nvcsw + usage.ru_nivcsw
}
