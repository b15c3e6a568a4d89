//! Seccomp: a program may forbid itself the system calls that this library makes, and be killed for them. It is then measured up to
//! that moment.

use crate::at_work::WorkGuard;
use crate::engine::{GONE, ThreadState};
use crate::process::MeasuredProcess;
use crate::tables::put;
use crate::{elsewhere, end, hooks, instrument, private, stack};
use std::ffi::{CStr, OsStr, c_void};
use std::io::Error;
use topdown_seam::seccomp;

/// How many filters the command has that is measured, or the first program that is: whoever has more was put into a sandbox since.
const FILTERS: &str = "TOPDOWN_SECCOMP_FILTERS";

/// Whether this program was executed under a filter that came after `FILTERS` was set. Such a filter may kill for a system call of this
/// library's, and cannot be asked. Nothing is to be done then; whoever watches the file that is opened learns of it.
pub fn is_inherited() -> bool {
    let before = private::variable(FILTERS).and_then(|value| value.to_str().ok()?.parse().ok());
    let inherited = before.is_some_and(|before: u32| seccomp::filters().is_none_or(|now| now > before));
    if inherited {
        private::variable("TOPDOWN_OUTPUT").into_iter().for_each(tell);
    }
    inherited
}

/// Opens OUTPUT.sandboxed, if it is there.
fn tell(output: &CStr) {
    let mut path = [0; libc::PATH_MAX as usize];
    let bytes = output.to_bytes().iter().chain(topdown_table::SANDBOXED.as_bytes());
    // (the last byte stays 0)
    let last = path.len() - 1;
    path[..last].iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    // SAFETY: a C string.
    let file =
        unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) };
    if file >= 0 {
        // SAFETY: opened above.
        unsafe { libc::close(file) };
    }
}

/// Tells programs that are executed how many filters this one has, if nobody has told it; whether nobody has: it is the first that is
/// measured, and `topdown run` does not watch over it.
pub fn announce() -> bool {
    let is_first = private::variable(FILTERS).is_none();
    if let Some(filters) = seccomp::filters().filter(|_| is_first) {
        private::announce(FILTERS, OsStr::new(&filters.to_string()));
    }
    is_first
}

/// What the library may call until a process ends.
const CALLS: [libc::c_long; 36] = [
    libc::SYS_capget,
    libc::SYS_clock_gettime,
    libc::SYS_clone,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_fallocate,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_ioctl,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_perf_event_open,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_process_vm_readv,
    libc::SYS_read,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sched_yield,
    libc::SYS_statx,
    libc::SYS_tgkill,
    libc::SYS_wait4,
    libc::SYS_write,
];

/// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64: of filters the name of this architecture.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// The most steps that the kernel takes (BPF_MAXINSNS).
const MOST_STEPS: usize = 4096;

/// The program is about to call prctl(2). (Of an `int` only the lower half of its register is defined.)
pub fn prctl([option, mode, filter]: [usize; 3]) {
    if option as libc::c_int == libc::PR_SET_SECCOMP {
        match mode as libc::c_uint {
            libc::SECCOMP_MODE_STRICT => restrict(may_be_strict),
            libc::SECCOMP_MODE_FILTER => restrict(|| is_deadly(filter)),
            _ => {}
        }
    }
}

/// The program is about to call syscall(2).
pub fn syscall([call, first, second, third]: [usize; 4]) {
    match call as libc::c_long {
        libc::SYS_prctl => prctl([first, second, third]),
        libc::SYS_seccomp => match first as libc::c_uint {
            libc::SECCOMP_SET_MODE_STRICT => {
                restrict(|| second as libc::c_uint == 0 && third == 0 && may_be_strict());
            }
            libc::SECCOMP_SET_MODE_FILTER => restrict(|| is_deadly(third)),
            _ => {}
        },
        _ => {}
    }
}

/// Ends what is measured, if the kernel will take what the program is about to install, and a call of the library would
/// then end the process. Afterwards it is too late: what there is to write is written now.
fn restrict(kills: impl FnOnce() -> bool) {
    // SAFETY: this thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    match MeasuredProcess::get() {
        Some(process) if process.is_here() => {
            if kills() {
                elsewhere::leave_out_for_good();
                stop(process);
            }
        }
        // bwrap(1), say: a child of clone(2), which measures nothing, is about to restrict itself and to execute a program; this keeps
        // it from asking who it is. (A child of vfork shares its parent's memory.)
        Some(process) if !process.tables.is_unmapped() => {}
        _ => {
            elsewhere::leave_out_for_good();
            MeasuredProcess::set(None);
            ThreadState::set_current(GONE);
        }
    }
    // SAFETY: as above.
    unsafe { *errno = kept };
}

fn stop(process: &MeasuredProcess) {
    const WHY: &str = "a seccomp filter of the program's kills who makes the library's system calls: its threads and regions are \
                       measured up to then";
    if !process.has_ended() {
        process.tables.describe(|header| put(&mut header.note, WHY.as_bytes()));
    }
    hooks::finish();
    instrument::stop();
    end::finish();
    MeasuredProcess::set(None);
    ThreadState::set_current(GONE);
}

/// Whether the kernel takes strict mode: not beside a filter.
fn may_be_strict() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) == 0 }
}

/// Whether the kernel takes a filter of this process: with no_new_privs, or CAP_SYS_ADMIN.
fn may_filter() -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_SYS_ADMIN: u32 = 21;
    let (mut header, mut sets) = ([VERSION_3, 0], [[0_u32; 3]; 2]); // effective, permitted, inheritable
    // SAFETY: writes to the variables.
    unsafe {
        libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
            || (libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) == 0
                && sets[0][0] & 1 << CAP_SYS_ADMIN != 0)
    }
}

/// Whether there is a filter (`sock_fprog`) at this address that the kernel takes, and that kills for a call of the library's.
fn is_deadly(filter: usize) -> bool {
    let mut program = libc::sock_fprog { len: 0, filter: std::ptr::null_mut() };
    // SAFETY: of integers and a pointer.
    match unsafe { copy(filter, &raw mut program, 1) } {
        CopyOutcome::All if program.len == 0 || usize::from(program.len) > MOST_STEPS || !may_filter() => {
            false
        }
        CopyOutcome::All => {
            let _alone = WorkGuard::new();
            stack::call(&stack::lock(), || {
                let mut steps = [libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; MOST_STEPS];
                let steps = &mut steps[..program.len.into()];
                // SAFETY: of integers.
                match unsafe { copy(program.filter as usize, steps.as_mut_ptr(), steps.len()) } {
                    CopyOutcome::All => CALLS.iter().any(|call| kills(steps, *call as u32)),
                    CopyOutcome::Nothing => false,
                    CopyOutcome::Unknown => true,
                }
            })
        }
        CopyOutcome::Nothing => false,
        CopyOutcome::Unknown => true,
    }
}

enum CopyOutcome {
    All,
    /// There is no memory that can be read: the kernel will say EFAULT.
    Nothing,
    /// Whether there is such memory may not be found out.
    Unknown,
}

/// Copies from memory that need not be there.
///
/// # Safety
/// Any bytes are a T, and `to` has room.
unsafe fn copy<T>(from: usize, to: *mut T, count: usize) -> CopyOutcome {
    let size = count * size_of::<T>();
    let local = libc::iovec { iov_base: to.cast(), iov_len: size };
    let remote = libc::iovec { iov_base: from as *mut c_void, iov_len: size };
    // SAFETY: writes where the caller says.
    match unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) } {
        -1 if Error::last_os_error().raw_os_error() != Some(libc::EFAULT) => CopyOutcome::Unknown,
        read if read == size as isize => CopyOutcome::All,
        _ => CopyOutcome::Nothing,
    }
}

/// Whether a filter ends a process for this call, or sends a signal. (Its arguments are taken to be 0; what the kernel
/// will not take does nothing.)
fn kills(steps: &[libc::sock_filter], call: u32) -> bool {
    matches!(
        answer(steps, call).map(|answer| answer & libc::SECCOMP_RET_ACTION_FULL),
        Some(libc::SECCOMP_RET_KILL_PROCESS | libc::SECCOMP_RET_KILL_THREAD | libc::SECCOMP_RET_TRAP)
    )
}

/// What a filter answers; None: the kernel would not take it.
fn answer(steps: &[libc::sock_filter], call: u32) -> Option<u32> {
    let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [0_u32; 16], 0_usize);
    loop {
        let libc::sock_filter { code, jt, jf, k } = *steps.get(at)?;
        at += 1;
        let source = if code & 0x08 == 0 { k } else { x };
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            0x20 => a = [call, ARCHITECTURE].get(k as usize / 4).copied().unwrap_or(0), // a word of the call
            0x00 => a = k,
            0x01 => x = k,
            0x60 => a = *memory.get(k as usize)?,
            0x61 => x = *memory.get(k as usize)?,
            0x80 => a = 64, // their length
            0x81 => x = 64,
            0x02 => *memory.get_mut(k as usize)? = a,
            0x03 => *memory.get_mut(k as usize)? = x,
            0x04 | 0x0c => a = a.wrapping_add(source),
            0x14 | 0x1c => a = a.wrapping_sub(source),
            0x24 | 0x2c => a = a.wrapping_mul(source),
            0x3c if x == 0 => return Some(0),
            0x34 | 0x3c => a = a.checked_div(source)?,
            0x44 | 0x4c => a |= source,
            0x54 | 0x5c => a &= source,
            0x64 | 0x6c => a = a.checked_shl(source).unwrap_or(0),
            0x74 | 0x7c => a = a.checked_shr(source).unwrap_or(0),
            0x84 => a = a.wrapping_neg(),
            0xa4 | 0xac => a ^= source,
            0x05 => at += k as usize,
            0x15 | 0x1d => at += jump(a == source),
            0x25 | 0x2d => at += jump(a > source),
            0x35 | 0x3d => at += jump(a >= source),
            0x45 | 0x4d => at += jump(a & source != 0),
            0x06 => return Some(k),
            0x16 => return Some(a),
            0x07 => x = a,
            0x87 => a = x,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code, jt, jf, k }
    }

    #[test]
    fn a_filter_is_asked_what_it_does_to_a_call() {
        let (allow, errno) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ERRNO | 1);
        let of = |call: u32, others: u32| {
            [
                step(0x20, 0, 0, 4), // another architecture is killed, as libseccomp has it
                step(0x15, 1, 0, ARCHITECTURE),
                step(0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
                step(0x20, 0, 0, 0),
                step(0x35, 0, 1, 0x4000_0000),
                step(0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
                step(0x15, 0, 1, call),
                step(0x06, 0, 0, allow),
                step(0x06, 0, 0, others),
            ]
        };
        assert_eq!(answer(&of(39, errno), 39), Some(allow));
        assert_eq!(answer(&of(39, errno), 40), Some(errno));
        assert!(!kills(&of(39, errno), 40) && !kills(&of(39, libc::SECCOMP_RET_KILL_PROCESS), 39));
        for others in
            [libc::SECCOMP_RET_KILL_PROCESS, libc::SECCOMP_RET_KILL_THREAD, libc::SECCOMP_RET_TRAP | 5]
        {
            assert!(kills(&of(39, others), 40));
        }
        // it works with what it reads: (call & 0xf0) >> 4, kept in memory and in x
        let works = [
            step(0x20, 0, 0, 0),
            step(0x54, 0, 0, 0xf0),
            step(0x74, 0, 0, 4),
            step(0x02, 0, 0, 3),
            step(0x61, 0, 0, 3),
            step(0x87, 0, 0, 0),
            step(0x16, 0, 0, 0),
        ];
        assert_eq!(answer(&works, 0x123), Some(2));
        assert_eq!(answer(&[step(0x05, 0, 0, u32::MAX)], 0), None);
    }
}
