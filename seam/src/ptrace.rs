//! Threads that are stopped and looked at by ptrace(2), which needs no events. The thread that seizes is the one that calls all the rest.

use libc::{c_int, c_void, pid_t};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

/// New threads and processes are seized, too; executed programs and ends are stops.
const OPTIONS: c_int = libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;
/// Stops of a thread that was told to, that begins, or that was stopped as a whole process (ptrace(2), PTRACE_EVENT_STOP).
const EVENT_STOP: c_int = 128;
/// Its registers (elf.h).
const NT_PRSTATUS: c_int = 1;
/// The system call in which it is (elf.h).
#[cfg(target_arch = "aarch64")]
const NT_ARM_SYSTEM_CALL: c_int = 0x404;

/// What a thread of others has come to. It waits, but where it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was told to stop, or begins.
    Told,
    /// Its process was stopped by a signal, and goes on by another.
    Group,
    /// A signal is about to be delivered.
    Signal(c_int),
    /// It has begun a thread or a process.
    Began,
    /// It has executed a program.
    Executed,
    /// It is about to end.
    Ending,
    /// It has ended.
    Ended,
}

/// Registers of user mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoppedRegisters {
    /// The next instruction.
    pub instruction: u64,
    /// Where its stack ends.
    pub stack_pointer: u64,
    /// Where the innermost function's frame is, if it keeps one.
    pub frame_pointer: u64,
    /// The link register of arm64; else nothing.
    pub link: u64,
    /// It is in a system call.
    pub in_system_call: bool,
}

/// A request without data, or with a number. (C libraries have other types for it)
fn request(request: i64, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: of these requests the kernel reads and writes no memory of this process.
    match unsafe { libc::ptrace(request as _, tid, null_mut::<c_void>(), data as *mut c_void) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Has this thread, and all that it starts, stop for the calling thread.
///
/// # Errors
/// ptrace(2)'s; EPERM: it is another user's, or others trace it.
pub fn seize(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE.into(), tid, OPTIONS as usize)
}

/// Has it stop soon.
///
/// # Errors
/// It has ended.
pub fn interrupt(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT.into(), tid, 0)
}

/// It goes on after its stop, with the signal that was about to be delivered. (One that has been killed since has nothing to go on with.)
pub fn resume(tid: i32, stop: Stop) {
    let _ = match stop {
        Stop::Group => request(libc::PTRACE_LISTEN.into(), tid, 0),
        Stop::Signal(signal) => request(libc::PTRACE_CONT.into(), tid, signal as usize),
        _ => request(libc::PTRACE_CONT.into(), tid, 0),
    };
}

/// It goes on, and stops no more.
pub fn let_go(tid: i32, stop: Stop) {
    let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
    let _ = request(libc::PTRACE_DETACH.into(), tid, signal as usize);
}

/// Of one that has `Began`, the thread or process that it has begun, which is traced, too, and stops before it does anything; of one that has
/// `Executed` a program, the number of the thread that it was until then.
#[must_use]
pub fn told(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes a live number.
    let told = unsafe {
        libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, null_mut::<c_void>(), (&raw mut message).cast::<c_void>())
    };
    i32::try_from(message).ok().filter(|_| told == 0)
}

/// The next thread that has stopped or ended, if one has. What has ended is waited for by this, but for the process `own`.
#[must_use]
pub fn next_stop(own: i32) -> Option<(i32, Stop)> {
    waited(libc::P_ALL, 0, own).ok().flatten()
}

/// How this one has stopped or ended, if it has.
///
/// # Errors
/// It is not traced any more: another one of its process has executed a program.
pub fn stop_of(tid: i32, own: i32) -> io::Result<Option<Stop>> {
    Ok(waited(libc::P_PID, tid, own)?.map(|(_, stop)| stop))
}

fn waited(of: libc::idtype_t, id: i32, own: i32) -> io::Result<Option<(i32, Stop)>> {
    // (somebody else asks how the own one has ended)
    let Some((tid, code, status)) = waitid(of, id, libc::WNOWAIT)? else { return Ok(None) };
    let has_ended = matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    if !(has_ended && tid == own) {
        waitid(libc::P_PID, tid, 0)?;
    }
    let stop = match (status & 0xff, status >> 8) {
        _ if has_ended => Stop::Ended,
        (libc::SIGTRAP, EVENT_STOP) => Stop::Told,
        (_, EVENT_STOP) => Stop::Group,
        (_, libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK) => Stop::Began,
        (_, libc::PTRACE_EVENT_EXEC) => Stop::Executed,
        (_, libc::PTRACE_EVENT_EXIT) => Stop::Ending,
        (signal, _) => Stop::Signal(signal),
    };
    Ok(Some((tid, stop)))
}

/// What has come of a thread (its number, si_code and si_status of waitid(2)), if something has.
fn waitid(of: libc::idtype_t, id: i32, more: c_int) -> io::Result<Option<(i32, c_int, c_int)>> {
    // (other threads have children of their own)
    let own_alone = libc::__WALL | libc::__WNOTHREAD;
    let options = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | own_alone | more;
    // SAFETY: plain data, and a live siginfo, whose fields of a child are read.
    unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(of, id as libc::id_t, &raw mut about, options) {
            0 if about.si_pid() == 0 => Ok(None),
            0 => Ok(Some((about.si_pid(), about.si_code, about.si_status()))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn register_set(tid: i32, kind: c_int, into: &mut libc::iovec) -> io::Result<()> {
    // SAFETY: the vector says how much memory there is at its base.
    match unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, kind as usize as *mut c_void, &raw mut *into) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Memory that a register set is read into.
fn memory_of<T>(value: &mut T) -> libc::iovec {
    libc::iovec { iov_base: (&raw mut *value).cast(), iov_len: size_of::<T>() }
}

/// Those of a stopped thread.
///
/// # Errors
/// It has been killed; EOPNOTSUPP: it runs a program of 32 bits.
pub fn registers(tid: i32) -> io::Result<StoppedRegisters> {
    // SAFETY: plain numbers.
    let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let mut into = memory_of(&mut all);
    register_set(tid, NT_PRSTATUS, &mut into)?;
    if into.iov_len < size_of_val(&all) {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    registers_of(tid, &all)
}

#[cfg(target_arch = "x86_64")]
fn registers_of(_: i32, all: &libc::user_regs_struct) -> io::Result<StoppedRegisters> {
    Ok(StoppedRegisters {
        instruction: all.rip,
        stack_pointer: all.rsp,
        frame_pointer: all.rbp,
        link: 0,
        // (an interrupt has a negative number there)
        in_system_call: (all.orig_rax as i64) >= 0,
    })
}

#[cfg(target_arch = "aarch64")]
fn registers_of(tid: i32, all: &libc::user_regs_struct) -> io::Result<StoppedRegisters> {
    let mut number: c_int = -1;
    register_set(tid, NT_ARM_SYSTEM_CALL, &mut memory_of(&mut number))?;
    Ok(StoppedRegisters {
        instruction: all.pc,
        stack_pointer: all.sp,
        frame_pointer: all.regs[29],
        link: all.regs[30],
        in_system_call: number >= 0,
    })
}

/// Reads memory of a process from this address on; how much of it could be.
pub fn read_memory(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: into.len() };
    // SAFETY: the local vector is `into`; of the remote one the kernel checks each page.
    let read = unsafe { libc::process_vm_readv(pid as pid_t, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// Tells that threads have stopped or children ended, as long as it lives.
#[derive(Debug)]
pub struct StopDescriptor {
    descriptor: OwnedFd,
    /// What was blocked before.
    mask: libc::sigset_t,
}

impl StopDescriptor {
    /// From now on, in the calling thread.
    ///
    /// # Errors
    /// signalfd(2)'s.
    pub fn new() -> io::Result<StopDescriptor> {
        // SAFETY: plain data; the descriptor is new.
        unsafe {
            let (mut set, mut mask): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut mask);
            Ok(StopDescriptor { descriptor: OwnedFd::from_raw_fd(descriptor), mask })
        }
    }

    /// What it has told is known: it can be read again when there is more.
    pub fn clear(&self) {
        let mut about = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: as much memory as it is told.
        while unsafe { libc::read(self.as_raw_fd(), about.as_mut_ptr().cast(), about.len()) } > 0 {}
    }
}

impl AsRawFd for StopDescriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl Drop for StopDescriptor {
    fn drop(&mut self) {
        // SAFETY: a live set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// The next stop, which is to come.
    fn awaited(own: i32) -> (i32, Stop) {
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            match next_stop(own) {
                Some(stop) => return stop,
                None => assert!(Instant::now() < patience, "nothing stops"),
            }
            std::thread::yield_now();
        }
    }

    /// A child that computes, with one that it has started, is stopped, looked at, and let go; how it ends its parent alone learns.
    #[test]
    fn a_process_is_looked_at_and_goes_on() {
        // (it starts the other one when it is traced, and is told to)
        let mut child = Command::new("sh")
            .args(["-c", "read word; while [ ! -e /nowhere ]; do :; done & wait"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        if let Err(why) = seize(pid) {
            eprintln!("ptrace is forbidden here: nothing is tested: {why}");
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        interrupt(pid).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut tids = vec![pid];
        let (mut looked_at, mut asked) = (0, false);
        while looked_at < 20 {
            let (tid, stop) = awaited(pid);
            if !tids.contains(&tid) {
                tids.push(tid);
            }
            if stop == Stop::Told && tid != pid {
                let registers = registers(tid).unwrap();
                let mut word = [0; 8];
                assert_eq!(read_memory(tid, registers.stack_pointer, &mut word), 8);
                assert!(registers.instruction > 0x1000);
                looked_at += 1;
                asked = false;
            }
            resume(tid, stop);
            if let (Some(other), false) = (tids.get(1), asked) {
                asked = interrupt(*other).is_ok();
            }
        }
        assert_eq!(tids.len(), 2);
        let other = tids[1];
        child.kill().unwrap();
        // SAFETY: a system call without pointers, of the process that the child has started.
        unsafe { libc::kill(other, libc::SIGKILL) };
        let mut ended = Vec::new();
        while !(ended.contains(&other) && ended.contains(&pid)) {
            match awaited(if ended.contains(&pid) { 0 } else { pid }) {
                (tid, Stop::Ended) => ended.push(tid),
                (tid, stop) => resume(tid, stop),
            }
            if ended.last() == Some(&pid) {
                assert!(!child.wait().unwrap().success());
            }
        }
        child.wait().unwrap(); // (it is known already)
        assert_eq!(read_memory(other, 0, &mut [0; 8]), 0);
    }
}
