//! Running a command as time(1) does: signals are for it, and its end is ours.
#![allow(unsafe_code)]

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use perf_event_open_sys::perf_event_open;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use topdown_report::model::Run;
use topdown_seam::numbers::contains;

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

/// A file that would be longer than it may be (`ulimit -f`) is an error of write(2), not the end of this process.
pub fn let_files_be_too_large() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: plain data; the handler does nothing, and unlike SIG_IGN does not last over exec.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &raw mut before);
        if before.sa_sigaction == libc::SIG_DFL {
            libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t);
        }
    }
}

/// A command that ran.
pub struct Ran {
    /// When it began, in local time.
    started: String,
    /// How it ended.
    pub end: End,
    /// From its start to its end.
    pub wall: Duration,
    /// CPU time since it was executed, of it and of those that it waited for.
    pub cpu: Duration,
    /// Context switches of the same.
    pub switches: u64,
}

/// Runs a command to its end. Signals that come meanwhile are for the command. `watch` is called before it is executed, with its
/// process id.
///
/// # Errors
/// It cannot be executed.
pub fn run_to_end<T>(command: &mut Command, watch: impl FnOnce(i32) -> T) -> io::Result<(Ran, T)> {
    run_attended(command, watch, |_, _, _| {})
}

/// The same. `attend` is called while it runs, with what `watch` returned, its process id, and when it started.
///
/// # Errors
/// It cannot be executed.
pub fn run_attended<T>(
    command: &mut Command,
    watch: impl FnOnce(i32) -> T,
    attend: impl FnOnce(&mut T, i32, Instant),
) -> io::Result<(Ran, T)> {
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
    thread::scope(|scope| {
        let (give, take) = mpsc::channel();
        let (_done, until_done) = mpsc::channel::<()>();
        // (it stays until all is done: its end would be that of the command's parent, as PR_SET_PDEATHSIG has it. Signals stay blocked
        // there, so that the main thread relays them)
        thread::Builder::new().spawn_scoped(scope, move || {
            let spawned = command.spawn(); // returns once the command is executed
            drop(theirs);
            let _ = give.send(spawned);
            let _ = until_done.recv();
        })?;
        let mut said = [0; 16];
        let waits = ours.read_exact(&mut said);
        let (pid, before) = said.split_at(8);
        let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight"));
        let pid = number(pid) as i32;
        signals.relay_to(pid);
        let watched = if waits.is_ok() { Ok(watch(pid)) } else { Err(watch) };
        let (start, started) = (Instant::now(), local_time());
        let _ = ours.write_all(&[0]); // to nobody, if there is no command
        let child = take.recv().unwrap_or_else(|_| Err(io::Error::other("no thread started it")));
        let child = child.inspect_err(|_| signals.relay_to(0))?;
        // (a signal may have ended it before it could say who it is)
        let mut watched = watched.unwrap_or_else(|watch| watch(child.id() as i32));
        attend(&mut watched, child.id() as i32, start);
        let (status, usage) = end_of(child.id() as i32, &signals)?;
        let wall = start.elapsed();
        let end = if libc::WIFSIGNALED(status) {
            End::Signal(libc::WTERMSIG(status))
        } else {
            End::Status(libc::WEXITSTATUS(status) as u8)
        };
        let time = |of: libc::timeval| Duration::new(of.tv_sec as u64, of.tv_usec as u32 * 1000);
        let cpu = time(usage.ru_utime) + time(usage.ru_stime);
        let cpu = cpu.saturating_sub(Duration::from_nanos(number(before)));
        let switches = (usage.ru_nvcsw + usage.ru_nivcsw) as u64;
        Ok((Ran { started, end, wall, cpu, switches }, watched))
    })
}

impl Ran {
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
            status,
            signal,
            wall_ns: self.wall.as_nanos() as u64,
            cpu_ns: self.cpu.as_nanos() as u64,
            lost_ns: 0,
            outlived: None,
            ipc: None,
        }
    }
}

fn host() -> String {
    let mut name = [0; 256];
    // SAFETY: a buffer, of which the last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    topdown_table::text(&name)
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

/// Whether SIGPIPE was ignored when this process began: Rust's runtime ignores it, and has it at its default in children.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn look_at_sigpipe() {
    PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Relaxed);
}

// SAFETY: called before main, and needs nothing of the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_SIGPIPE: extern "C" fn() = look_at_sigpipe;

fn is_ignored(signal: i32) -> bool {
    // SAFETY: plain data.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now);
        now.sa_sigaction == libc::SIG_IGN
    }
}

/// What this process is sent when its parent dies (`setpriv --pdeathsig`); 0: nothing.
fn parent_death_signal() -> i32 {
    let mut signal = 0;
    // SAFETY: it stores an int.
    unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal) };
    signal
}

/// Signals to this process go on to the command, as if it had this process's id. They come to one thread alone, and wait while
/// there is no command yet.
struct Relay {
    /// What was blocked before.
    mask: libc::sigset_t,
}

/// The command's process id; 0: there is none, or it has ended.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// Those by which users end something.
const ENDERS: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// One of these came, if not from the command.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// One of these came while there was no command.
static INTERRUPTED_AFTER: AtomicBool = AtomicBool::new(false);

/// Whether the user wants no more runs.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Relaxed)
}

/// Those that are sent to end a process, or tell it something. Whoever ignores one ignores it for the command.
fn relayed() -> impl Iterator<Item = i32> {
    const NAMED: [i32; 12] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGWINCH,
        libc::SIGIO,
        libc::SIGPWR,
    ];
    NAMED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).filter(|signal| !is_ignored(*signal))
}

extern "C" fn relay(signal: i32, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: what the kernel gives a handler; system calls that handlers may make.
    unsafe {
        let errno = *libc::__errno_location();
        let command = COMMAND.load(Relaxed);
        // what the terminal sends, it sends to the command, too
        let of_terminal = (*about).si_code == libc::SI_KERNEL
            && matches!(signal, libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGWINCH);
        if ENDERS.contains(&signal) && (command == 0 || (*about).si_pid() != command) {
            INTERRUPTED.store(true, Relaxed);
            if command == 0 {
                INTERRUPTED_AFTER.store(true, Relaxed);
                libc::signal(signal, libc::SIG_DFL); // a second one ends what is done after the command
            }
        }
        if command == 0 {
            // (there is nobody to tell)
        } else if (*about).si_code == libc::SI_QUEUE {
            libc::sigqueue(command, signal, (*about).si_value());
        } else if !of_terminal && ((*about).si_code == libc::SI_KERNEL || (*about).si_pid() != command) {
            libc::kill(command, signal);
        }
        *libc::__errno_location() = errno;
    }
}

impl Relay {
    /// From here on they wait for a command.
    fn begin() -> Relay {
        // SAFETY: plain data; the handler calls what handlers may, and unlike SIG_IGN does not last over exec.
        unsafe {
            let (mut all, mut mask): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigemptyset(&raw mut all);
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = relay as *const () as usize;
            ours.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            relayed().for_each(|signal| _ = libc::sigaddset(&raw mut all, signal));
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut mask);
            relayed().for_each(|signal| _ = libc::sigaction(signal, &raw const ours, null_mut()));
            Relay { mask }
        }
    }

    /// Those that waited, and that come, are for this process.
    fn relay_to(&self, pid: i32) {
        COMMAND.store(pid, Relaxed);
        // SAFETY: plain data.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, null_mut()) };
    }

    /// In the command's process, before it is executed: as they were, so that it misses none.
    fn end_in_child(mask: &libc::sigset_t) {
        // SAFETY: plain data.
        unsafe {
            relayed().for_each(|signal| _ = libc::signal(signal, libc::SIG_DFL));
            libc::pthread_sigmask(libc::SIG_SETMASK, mask, null_mut());
        }
    }
}

/// In the child: says its process id and the CPU time that it has used, and waits.
fn stop(parent: i32) -> io::Result<()> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: system calls on live buffers.
    let answered = unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        let used = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        let say = [libc::getpid() as u64, used];
        let mut answer = 0_u8;
        libc::write(parent, (&raw const say).cast(), size_of_val(&say)) == size_of_val(&say) as isize
            && loop {
                match libc::read(parent, (&raw mut answer).cast(), 1) {
                    -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                    got => break got == 1,
                }
            }
    };
    if answered { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPIPE)) }
}

/// Whoever ignores SIGCHLD gets no exit status: no more from here on. Whether it was ignored when this was called first.
fn wait_for_children() -> bool {
    static WAS_IGNORED: OnceLock<bool> = OnceLock::new();
    *WAS_IGNORED.get_or_init(|| {
        let ignored = is_ignored(libc::SIGCHLD);
        if ignored {
            // SAFETY: plain data.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        }
        ignored
    })
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
            size: size_of::<perf_event_attr>() as u32,
            config: PERF_COUNT_SW_DUMMY.into(),
            ..perf_event_attr::default()
        };
        attr.set_inherit(inherit.into());
        attr.set_exclude_kernel(1);
        // SAFETY: a valid attr; what is mapped of a new descriptor is new.
        unsafe {
            // (what is inherited can be mapped on one CPU alone, whichever: it is inherited on all)
            let cpu = libc::sched_getcpu().max(0);
            let fd = perf_event_open(&raw mut attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC.into());
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let event = OwnedFd::from_raw_fd(fd);
            // (without a page poll(2) takes it for one that has ended)
            let page = libc::mmap(null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
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

/// The limit of descriptors that this process was given, if it was raised.
static GIVEN_DESCRIPTORS: AtomicU64 = AtomicU64::new(0);

/// Takes as many descriptors as this process may have.
pub fn raise_descriptors() {
    // SAFETY: plain data.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            let given = limit.rlim_cur;
            limit.rlim_cur = limit.rlim_max;
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 {
                GIVEN_DESCRIPTORS.store(given, Relaxed);
            }
        }
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

/// Moves the calling thread to CPUs of a list such as `0-3,8`, if it may run there.
pub fn move_to(cpus: Option<&str>) {
    let Some(cpus) = cpus else { return };
    // SAFETY: plain data; CPU_SET is given numbers that the set has.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in 0..libc::CPU_SETSIZE as u32 {
            if contains(cpus, cpu) {
                libc::CPU_SET(cpu as usize, &mut set);
            }
        }
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
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

/// As long as this is there, SIGINT, SIGTERM and SIGHUP end nothing, unless they are ignored.
pub struct Interrupts {
    event: OwnedFd,
    /// What was blocked before.
    mask: libc::sigset_t,
}

impl Interrupts {
    /// A descriptor that can be read when one came.
    pub fn descriptor(&self) -> i32 {
        self.event.as_raw_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let mut about = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: a buffer, and plain data.
        unsafe {
            // (those that came have done what they were sent for)
            while libc::read(self.descriptor(), about.as_mut_ptr().cast(), about.len()) > 0 {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, null_mut());
        }
    }
}

/// Takes them.
///
/// # Errors
/// The kernel's.
pub fn interrupts() -> io::Result<Interrupts> {
    // SAFETY: plain data; what signalfd returns is a new descriptor.
    unsafe {
        let (mut set, mut mask): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if action.sa_sigaction != libc::SIG_IGN {
                libc::sigaddset(&raw mut set, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut mask);
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            fd @ 0.. => Ok(Interrupts { event: OwnedFd::from_raw_fd(fd), mask }),
            _ => Err(io::Error::last_os_error()),
        }
    }
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

/// Ends as the command did, but for the core that it left already.
pub fn raise(signal: i32) {
    // SAFETY: plain data; what is changed is this process's end.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
