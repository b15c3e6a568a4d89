//! Running a command as time(1) does: signals from the terminal are for it, and its end is ours.
#![allow(unsafe_code)]

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use perf_event_open_sys::perf_event_open;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How a command ended.
pub enum End {
    /// By this exit status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

extern "C" fn leave_it_to_the_command(_: libc::c_int) {}

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
    /// How it ended.
    pub end: End,
    /// From its start to its end.
    pub wall: Duration,
    /// CPU time since it was executed, of it and of those that it waited for.
    pub cpu: Duration,
    /// Context switches of the same.
    pub switches: u64,
}

/// Runs a command to its end. What the terminal sends meanwhile (SIGINT, SIGQUIT) is for the command. `watch` is called before it is
/// executed, with its process id.
///
/// # Errors
/// It cannot be executed.
pub fn run_to_end<T>(command: &mut Command, watch: impl FnOnce(i32) -> T) -> io::Result<(Ran, T)> {
    leave_signals_to_the_command();
    let ignored = wait_for_children();
    let (mut ours, theirs) = UnixStream::pair()?;
    let (ours_fd, theirs_fd) = (ours.as_raw_fd(), theirs.as_raw_fd());
    // SAFETY: it calls what a child of a process with threads may.
    unsafe {
        command.pre_exec(move || {
            if ignored {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            // (until it is executed it is not to miss what the terminal sends)
            for signal in [libc::SIGINT, libc::SIGQUIT] {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut before);
                if before.sa_sigaction != libc::SIG_IGN {
                    libc::signal(signal, libc::SIG_DFL);
                }
            }
            libc::close(ours_fd); // its end of file is then that of this process
            stop(theirs_fd)
        });
    }
    thread::scope(|scope| {
        let (give, take) = mpsc::channel();
        let (_done, until_done) = mpsc::channel::<()>();
        // (it stays until all is done: its end would be that of the command's parent, as PR_SET_PDEATHSIG has it)
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
        let watched = waits.is_ok().then(|| watch(number(pid) as i32));
        let start = Instant::now();
        let _ = ours.write_all(&[0]); // to nobody, if there is no command
        let child = take.recv().unwrap_or_else(|_| Err(io::Error::other("no thread started it")))?;
        let (status, usage) = end_of(child.id() as i32)?;
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
        let watched = watched.ok_or_else(|| io::Error::other("it did not wait to be watched"))?;
        Ok((Ran { end, wall, cpu, switches }, watched))
    })
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

/// Whoever ignores SIGCHLD gets no exit status: no more from here on. Whether it was ignored.
fn wait_for_children() -> bool {
    // SAFETY: plain data.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut before);
        let ignored = before.sa_sigaction == libc::SIG_IGN;
        if ignored {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
        ignored
    }
}

/// Waits for a child.
fn end_of(pid: i32) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: plain data.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both are live.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A process, and all that it starts: an event that counts nothing, but goes from each to its children.
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
        let mut attr = perf_event_attr {
            type_: PERF_TYPE_SOFTWARE,
            size: size_of::<perf_event_attr>() as u32,
            config: PERF_COUNT_SW_DUMMY.into(),
            ..perf_event_attr::default()
        };
        attr.set_inherit(1);
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

    /// Whether any of them goes on. `wait`: until there is none, or a signal comes.
    pub fn goes_on(&self, wait: bool) -> bool {
        let mut of = libc::pollfd { fd: self.event.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one live pollfd.
        unsafe { libc::poll(&raw mut of, 1, if wait { -1 } else { 0 }) == 0 || of.revents == 0 }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // SAFETY: it was mapped, and is given up once.
        unsafe { libc::munmap(self.page, PAGE) };
    }
}

fn leave_signals_to_the_command() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // a handler, unlike SIG_IGN, does not last over exec; whoever ignored it for the command goes on to
        // SAFETY: plain data; the handler does nothing.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut before);
            if before.sa_sigaction != libc::SIG_IGN {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = leave_it_to_the_command as *const () as usize;
                ours.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const ours, std::ptr::null_mut());
            }
        }
    }
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
