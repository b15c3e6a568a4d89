//! Signals: which this process was given, ignores and takes, and those that are the command's.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use topdown_report::Wait;

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

/// Whether SIGPIPE was ignored when this process began: Rust's runtime ignores it, and has it at its default in children.
pub(super) static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// What Rust's runtime changes before main.
extern "C" fn look_at_sigpipe() {
    PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Relaxed);
    // SAFETY: a system call without pointers.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0 {
        topdown_report::stdout_was_closed();
    }
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

/// Whoever ignores SIGCHLD gets no exit status: no more from here on. Whether it was ignored when this was called first.
pub(super) fn wait_for_children() -> bool {
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

/// Signals to this process go on to the command, as if it had this process's id. They come to one thread alone, and wait while
/// there is no command yet.
pub(super) struct Relay {
    /// What was blocked before.
    pub(super) mask: libc::sigset_t,
}

/// The command's process id; 0: there is none, or it has ended.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// Whether signals are relayed, or would be if there were a command.
static RELAYS: AtomicBool = AtomicBool::new(false);

/// Those by which users end something.
pub(super) const ENDERS: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// So many of these came, if not from the command.
static INTERRUPTIONS: AtomicU32 = AtomicU32::new(0);
/// One of these came while there was no command.
pub(super) static INTERRUPTED_AFTER: AtomicBool = AtomicBool::new(false);

/// Whether the user wants no more runs.
pub fn interrupted() -> bool {
    INTERRUPTIONS.load(Relaxed) > 0
}

/// Signals that this process ignored when it was started, as bits: so does the command, unless it says otherwise itself.
static IGNORED: OnceLock<u64> = OnceLock::new();

fn was_ignored(signal: i32) -> bool {
    let bit = |signal: i32| 1_u64 << (signal - 1);
    let all = IGNORED.get_or_init(|| (1..=64).filter(|signal| is_ignored(*signal)).map(bit).sum());
    all & bit(signal) != 0
}

/// Those that are sent to end a process, or tell it something.
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
    NAMED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

extern "C" fn relay(signal: i32, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: what the kernel gives a handler; system calls that handlers may make.
    unsafe {
        let errno = *libc::__errno_location();
        let command = COMMAND.load(Relaxed);
        // what the terminal sends, it sends to the command, too
        let of_terminal = (*about).si_code == libc::SI_KERNEL
            && matches!(signal, libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGWINCH);
        let ends = ENDERS.contains(&signal) && !was_ignored(signal);
        if ends && (command == 0 || (*about).si_pid() != command) {
            INTERRUPTIONS.fetch_add(1, Relaxed);
            if command == 0 {
                INTERRUPTED_AFTER.store(true, Relaxed);
                // a second one, whichever, ends what is done after the command
                ENDERS
                    .iter()
                    .filter(|ender| !was_ignored(**ender))
                    .for_each(|ender| _ = libc::signal(*ender, libc::SIG_DFL));
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
    pub(super) fn begin() -> Relay {
        // SAFETY: plain data; the handler calls what handlers may, and unlike SIG_IGN does not last over exec.
        unsafe {
            let (mut all, mut mask): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            was_ignored(libc::SIGHUP); // while it can be seen
            RELAYS.store(true, Relaxed);
            libc::sigemptyset(&raw mut all);
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = relay as *const () as usize;
            ours.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            relayed().for_each(|signal| _ = libc::sigaddset(&raw mut all, signal));
            // One after the other, in the order in which the kernel delivers them.
            ours.sa_mask = all;
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut mask);
            relayed().for_each(|signal| _ = libc::sigaction(signal, &raw const ours, null_mut()));
            Relay { mask }
        }
    }

    /// Those that waited, and that come, are for this process.
    pub(super) fn relay_to(&self, pid: i32) {
        COMMAND.store(pid, Relaxed);
        // SAFETY: plain data.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, null_mut()) };
    }

    /// In the command's process, before it is executed: as they were, so that it misses none.
    pub(super) fn end_in_child(mask: &libc::sigset_t) {
        // SAFETY: plain data.
        unsafe {
            for signal in relayed() {
                libc::signal(signal, if was_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL });
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, mask, null_mut());
        }
    }
}

/// Threads that begin in it take no signal, whatever comes.
pub fn with_signals_blocked<T>(begin: impl FnOnce() -> T) -> T {
    // SAFETY: plain data.
    unsafe {
        let (mut all, mut mask): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut mask);
        let begun = begin();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, null_mut());
        begun
    }
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
            // Those that came have done what they were sent for, unless somebody else had taken them before, and waits for them, too.
            let taken = ENDERS.iter().any(|signal| libc::sigismember(&raw const self.mask, *signal) == 1);
            while !taken && libc::read(self.descriptor(), about.as_mut_ptr().cast(), about.len()) > 0 {}
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
            if !was_ignored(signal) {
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

/// A wait for the reader of a FIFO, until a signal that ends comes. A command gets the signal all the same. After a second it is
/// said what is waited for.
pub fn wait_for_reader(path: &Path) -> Wait {
    let (path, start, mut said) = (path.to_path_buf(), Instant::now(), false);
    let interruptions = INTERRUPTIONS.load(Relaxed);
    let relays = RELAYS.load(Relaxed);
    let interrupts = if relays { None } else { interrupts().ok() };
    Box::new(move |time| {
        let came = match &interrupts {
            Some(interrupts) => super::wait_for(&[interrupts.descriptor()], Some(Instant::now() + time))[0],
            None => {
                std::thread::sleep(time);
                relays && (INTERRUPTED_AFTER.load(Relaxed) || INTERRUPTIONS.load(Relaxed) != interruptions)
            }
        };
        if !came && !said && start.elapsed() > Duration::from_secs(1) {
            said = true;
            crate::say(&format!("{}: waiting for somebody to read this FIFO", path.display()));
        }
        !came
    })
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
