//! Running a command as time(1) does: signals are for it, and its end is ours.
#![allow(unsafe_code)]

mod cpu_clock;
mod cpu_time;
mod family;
mod hotplug;
mod opened;
mod signals;

use crate::means;
pub use cpu_clock::{process_ns, thread_ns, waited_for_ns};
pub use cpu_time::{CpuTimeOf, LOOK};
pub use family::Family;
pub use hotplug::Hotplug;
pub use opened::OpenedWatch;
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};
pub use signals::{
    Interrupts, interrupted, interrupts, let_files_be_too_large, raise, wait_for_reader, with_signals_blocked,
};
use signals::{PIPE_WAS_IGNORED, Relay, wait_for_children};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use topdown::Error;
use topdown_report::model::Run;
use topdown_report::{CpuTime, CpuUse, pattern};
use topdown_seam::open_event;

/// What is in a file, which may be large.
///
/// # Errors
/// It cannot be read.
pub fn mapped(path: &Path) -> io::Result<memmap2::Mmap> {
    let file = File::open(path)?;
    // SAFETY: who shortens a program that is about to run ends that, too.
    unsafe { memmap2::Mmap::map(&file) }
}

/// Whether a name is as a glob says.
pub fn matches(glob: &str, name: &str) -> bool {
    let (Ok(glob), Ok(name)) = (CString::new(glob), CString::new(name)) else { return false };
    // SAFETY: C strings.
    unsafe { libc::fnmatch(glob.as_ptr(), name.as_ptr(), 0) == 0 }
}

/// How a command ended.
pub enum End {
    /// By this exit status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

/// A command that ran.
pub struct CommandEnd {
    /// When it began, in local time.
    started: String,
    /// Its process id.
    pid: i32,
    /// How it ended.
    pub end: End,
    /// From its start to its end.
    pub wall: Duration,
    /// CPU time since it was executed, of it and of those that it waited for.
    pub cpu: CpuTime,
    /// Context switches of the same.
    pub switches: u64,
}

/// Runs a command to its end. Signals that come meanwhile are for the command. `watch` is called before it is executed, with its
/// process id; `attend` while it runs, with what `watch` returned, its process id, and when it started.
///
/// # Errors
/// It cannot be executed.
pub fn run_attended<T>(
    command: &mut Command,
    watch: impl FnOnce(i32) -> T,
    attend: impl FnOnce(&mut T, i32, Instant),
) -> io::Result<(CommandEnd, T)> {
    let ignored = wait_for_children();
    let (mut ours, theirs) = UnixStream::pair()?;
    let (ours_fd, theirs_fd) = (ours.as_raw_fd(), theirs.as_raw_fd());
    let signals = Relay::begin();
    let (mask, parent_dies) = (signals.mask, parent_death_signal());
    // SAFETY: it calls what a child of a process with threads may.
    unsafe {
        command.pre_exec(move || {
            if ignored {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            if PIPE_WAS_IGNORED.load(Relaxed) {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
            // (a process that is forked has none of its parent's)
            libc::prctl(libc::PR_SET_PDEATHSIG, parent_dies);
            Relay::end_in_child(&mask);
            libc::close(ours_fd); // its end of file is then that of this process
            restore_descriptors();
            stop(theirs_fd)
        });
    }
    // (not by a thread that waits for `Command::spawn`: where no more processes may be started, one is left for the command itself)
    let pid = match fork() {
        Err(error) => {
            signals.relay_to(0);
            return Err(error);
        }
        Ok(0) => not_executed(&command.exec(), theirs_fd),
        Ok(pid) => pid,
    };
    drop(theirs);
    let mut said = [0; 8];
    let waits = ours.read_exact(&mut said);
    signals.relay_to(pid);
    let watched = if waits.is_ok() { Ok(watch(pid)) } else { Err(watch) };
    let (start, started) = (Instant::now(), local_time());
    if let Err(error) = wake(ours) {
        end_of(pid, &signals)?;
        return Err(error);
    }
    // (a signal may have ended it before it could say that it waits)
    let mut watched = watched.unwrap_or_else(|watch| watch(pid));
    attend(&mut watched, pid, start);
    let (status, usage) = end_of(pid, &signals)?;
    let wall = start.elapsed();
    let end = if libc::WIFSIGNALED(status) {
        End::Signal(libc::WTERMSIG(status))
    } else {
        End::Status(libc::WEXITSTATUS(status) as u8)
    };
    let cpu = since_exec(&usage, u64::from_ne_bytes(said));
    let switches = (usage.ru_nvcsw + usage.ru_nivcsw) as u64;
    Ok((CommandEnd { started, pid, end, wall, cpu, switches }, watched))
}

/// What a process used without the first nanoseconds, which are taken to divide as the rest: the kernel tells the mode of its ticks alone.
fn since_exec(usage: &libc::rusage, before_ns: u64) -> CpuTime {
    let ns = |of: libc::timeval| of.tv_sec as u64 * 1_000_000_000 + of.tv_usec as u64 * 1000;
    let all = CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) };
    all.scaled_to(all.total_ns().saturating_sub(before_ns)).unwrap_or_default()
}

/// A copy of this process, which is to execute a program or to end; 0: this is the copy.
fn fork() -> io::Result<i32> {
    const TRIES: u32 = 100;
    let mut tries = 0;
    loop {
        // SAFETY: of what other threads may hold the copy needs memory alone, which the C library keeps whole over fork(2).
        match unsafe { libc::fork() } {
            -1 => match io::Error::last_os_error() {
                // (threads of this process that have ended count as processes of the user for a moment longer)
                error if error.kind() == io::ErrorKind::WouldBlock && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                error => return Err(error),
            },
            pid => return Ok(pid),
        }
    }
}

/// Lets the child execute the command, which it waits for; the error, if it cannot be executed or is not to be reached.
fn wake(mut child: UnixStream) -> io::Result<()> {
    const TRIES: u32 = 3;
    let woken = (0..TRIES).map(|_| child.write_all(&[0])).find(|woken| {
        // (to nobody, if a signal has ended it)
        woken.as_ref().err().is_none_or(|error| error.kind() == io::ErrorKind::BrokenPipe)
    });
    if woken.is_none() {
        // (it sees the end of file, and executes nothing)
        return Err(io::Error::other("the process that was to execute it could not be woken"));
    }
    let mut errno = [0; 4];
    match child.read_exact(&mut errno) {
        Ok(()) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno))),
        Err(_) => Ok(()), // the end: it is executed
    }
}

/// In the child: says why the command is not executed, and ends.
fn not_executed(error: &io::Error, parent: i32) -> ! {
    let errno = error.raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes();
    // SAFETY: system calls on a live buffer.
    unsafe {
        libc::send(parent, errno.as_ptr().cast(), errno.len(), libc::MSG_NOSIGNAL);
        libc::_exit(127)
    }
}

impl CommandEnd {
    /// Its CPU time, of which the kernel's is not counted.
    pub fn cpu_use(&self) -> CpuUse {
        CpuUse {
            total_ns: Some(self.cpu.total_ns()),
            time: Some(self.cpu),
            counts_kernel: false,
            refused: kernel_is_refused(),
        }
    }

    /// What a report says of it; of what was counted, nothing.
    pub fn run(&self, command: &[OsString]) -> Run {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let (status, signal) = match self.end {
            End::Status(status) => (Some(status), None),
            End::Signal(signal) => (None, Some(signal)),
        };
        Run {
            command: words.join(" "),
            host: host(),
            started: self.started.clone(),
            pid: Some(self.pid),
            status,
            signal,
            wall_ns: self.wall.as_nanos() as u64,
            cpu_ns: self.cpu.total_ns(),
            cpu: self.cpu_use(),
            means: means::of_command(command),
            ..Run::default()
        }
    }
}

/// Why no event may be opened at all, not even one without a PMU, on a thread or on a whole CPU; None: one may.
pub fn events_are_refused(on_cpu: bool) -> Option<Error> {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_DUMMY.into(),
        ..perf_event_attr::default()
    };
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let (pid, cpu) = if on_cpu { (-1, 0) } else { (0, -1) };
    let error = open_event(&attr, pid, cpu, -1).err()?;
    let code = error.raw_os_error().unwrap_or(libc::EIO);
    let what = if on_cpu { "perf_event_open on a CPU" } else { "perf_event_open" };
    Some(Error::new(-code, format!("{what}: {error}")))
}

/// Why the kernel's slots may not be counted here, and what permits it; empty: they may be.
pub fn kernel_is_refused() -> String {
    const PARANOID: &str = "kernel.perf_event_paranoid";
    let attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_DUMMY.into(),
        ..perf_event_attr::default()
    };
    let Err(error) = open_event(&attr, 0, -1, -1) else { return String::new() };
    let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    match setting.and_then(|text| text.trim().parse::<i64>().ok()) {
        Some(found) if found > 1 => format!("{PARANOID} is {found} (`sudo sysctl {PARANOID}=1`)"),
        _ => format!("perf_event_open(2): {error}"),
    }
}

/// This machine's name.
pub fn host() -> String {
    let mut name = [0; 256];
    // SAFETY: a buffer, of which the last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    topdown_table::text(&name)
}

/// Now and here: "2026-01-31 12:34:56 +0100 on HOST".
pub fn occasion() -> String {
    topdown_report::occasion_of(&local_time(), &host()).unwrap_or_default()
}

/// The file of this name, whose patterns stand for this process, and this program that it runs.
///
/// # Errors
/// Those of [`pattern::named`].
pub fn named(path: &Path, program: Option<&OsString>) -> io::Result<PathBuf> {
    named_for(path, std::process::id(), program)
}

/// The same for another process, whose rank its own environment tells as long as it is there.
pub fn named_for(path: &Path, pid: u32, program: Option<&OsString>) -> io::Result<PathBuf> {
    let digits: String = local_time().chars().take(19).filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    let names = pattern::PatternNames {
        pid,
        host: host(),
        program: program.cloned().unwrap_or_else(|| "topdown".into()),
        time: digits.replace('T', "-"),
        rank: pattern::rank_among(environment_of(pid).into_iter()),
    };
    pattern::named(path, &names)
}

/// The environment that a process was executed with, or where that cannot be read, this one's.
pub fn environment_of(pid: u32) -> Vec<(OsString, OsString)> {
    let environment = |bytes: Vec<u8>| -> Vec<(OsString, OsString)> {
        let owned = |text: &[u8]| OsStr::from_bytes(text).to_owned();
        let variable = |text: &[u8]| {
            let equals = text.iter().position(|byte| *byte == b'=')?;
            Some((owned(&text[..equals]), owned(&text[equals + 1..])))
        };
        bytes.split(|byte| *byte == 0).filter_map(variable).collect()
    };
    std::fs::read(format!("/proc/{pid}/environ")).map_or_else(|_| std::env::vars_os().collect(), environment)
}

/// Whether this kernel maps a vDSO into each program.
pub fn maps_vdso() -> bool {
    // SAFETY: it reads what the kernel put beside this program's arguments.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) != 0 }
}

/// Nanoseconds of the clock CLOCK_BOOTTIME.
pub fn boottime_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it stores a timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// "2026-01-31T12:34:56+0100".
fn local_time() -> String {
    let mut text = [0; 64];
    // SAFETY: plain data, and a buffer that is longer than such a time.
    unsafe {
        let (now, mut parts) = (libc::time(null_mut()), std::mem::zeroed());
        libc::localtime_r(&raw const now, &raw mut parts);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), c"%FT%T%z".as_ptr(), &raw const parts);
    }
    topdown_table::text(&text)
}

/// What this process is sent when its parent dies (`setpriv --pdeathsig`); 0: nothing.
fn parent_death_signal() -> i32 {
    let mut signal = 0;
    // SAFETY: it stores an int.
    unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal) };
    signal
}

/// In the child: says how much CPU time it has used, and waits.
fn stop(parent: i32) -> io::Result<()> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: system calls on live buffers.
    let answered = unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        let used = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        let mut answer = 0_u8;
        libc::write(parent, (&raw const used).cast(), size_of_val(&used)) == size_of_val(&used) as isize
            && loop {
                match libc::read(parent, (&raw mut answer).cast(), 1) {
                    -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                    got => break got == 1,
                }
            }
    };
    if answered { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPIPE)) }
}

/// Waits for a child, to whom signals go as long as the id is its own.
fn end_of(pid: i32, signals: &Relay) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: plain data.
    let (mut usage, mut about): (libc::rusage, libc::siginfo_t) = unsafe { std::mem::zeroed() };
    let waited = |result: i32| match io::Error::last_os_error() {
        _ if result >= 0 => Some(Ok(())),
        error if error.kind() == io::ErrorKind::Interrupted => None,
        error => Some(Err(error)),
    };
    let until = |wait: &mut dyn FnMut() -> i32| loop {
        if let Some(result) = waited(wait()) {
            break result;
        }
    };
    // SAFETY: all are live.
    unsafe {
        until(&mut || libc::waitid(libc::P_PID, pid as u32, &raw mut about, libc::WEXITED | libc::WNOWAIT))?;
        signals.relay_to(0);
        until(&mut || libc::wait4(pid, &raw mut status, 0, &raw mut usage))?;
    }
    Ok((status, usage))
}

/// The limit of descriptors that this process was given, if it was raised.
static GIVEN_DESCRIPTORS: AtomicU64 = AtomicU64::new(0);

/// Whether /proc is mounted.
pub fn has_proc() -> bool {
    std::path::Path::new("/proc/self/task").is_dir()
}

/// Takes as many descriptors as this process may have: so many.
pub fn raise_descriptors() -> u64 {
    // SAFETY: plain data.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 0;
        }
        let given = limit.rlim_cur;
        if given == limit.rlim_max {
            return given;
        }
        limit.rlim_cur = limit.rlim_max;
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) != 0 {
            return given;
        }
        GIVEN_DESCRIPTORS.store(given, Relaxed);
        limit.rlim_max
    }
}

/// In the child: its limit is what this process was given.
fn restore_descriptors() {
    let given = GIVEN_DESCRIPTORS.load(Relaxed);
    if given > 0 {
        // SAFETY: plain data.
        unsafe {
            let mut limit: libc::rlimit = std::mem::zeroed();
            if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
                limit.rlim_cur = given;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            }
        }
    }
}

/// A process, whose descriptor can be read once it has ended.
///
/// # Errors
/// There is none; or the kernel's.
pub fn process(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: a system call without pointers; what it returns is a new descriptor.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, pid, 0) {
            fd @ 0.. => Ok(OwnedFd::from_raw_fd(fd as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Sends a signal to a process that has not been waited for.
pub fn signal(process: &OwnedFd, signal: i32) {
    // SAFETY: a system call; no siginfo.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal,
            null_mut::<libc::siginfo_t>(),
            0,
        )
    };
}

/// Waits until one of these can be read, or has come to its end, but not longer than until then. Which of them.
pub fn wait_for(descriptors: &[i32], until: Option<Instant>) -> Vec<bool> {
    let event = |fd: &i32| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
    let mut all: Vec<libc::pollfd> = descriptors.iter().map(event).collect();
    let time = until.map(|until| until.saturating_duration_since(Instant::now()));
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: as many pollfds as it is told, and a timespec or none.
    let come = unsafe { libc::ppoll(all.as_mut_ptr(), all.len() as libc::nfds_t, time, std::ptr::null()) };
    all.iter().map(|one| come > 0 && one.revents != 0).collect()
}
