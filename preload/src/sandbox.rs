//! Seccomp: a program may forbid itself the system calls that this library makes, and be killed for them. It is then measured up to
//! that moment.

use crate::engine::GONE;
use crate::engine::ThreadState;
use crate::process::MeasuredProcess;
use crate::tables::put;
use crate::{end, hooks};
use std::slice;

/// What the library may call until a process ends.
const CALLS: [libc::c_long; 18] = [
    libc::SYS_clone,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_ioctl,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_openat,
    libc::SYS_perf_event_open,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_read,
    libc::SYS_rt_sigprocmask,
    libc::SYS_wait4,
    libc::SYS_write,
];

/// The program is about to call prctl(2).
///
/// # Safety
/// Its arguments.
pub unsafe fn prctl([option, mode, filter]: [usize; 3]) {
    if option == libc::PR_SET_SECCOMP as usize {
        // SAFETY: the caller's word.
        unsafe { restrict(mode == libc::SECCOMP_MODE_STRICT as usize, filter) };
    }
}

/// The program is about to call syscall(2).
///
/// # Safety
/// Its arguments.
pub unsafe fn syscall([call, first, second, third]: [usize; 4]) {
    // SAFETY: the caller's word.
    unsafe {
        match call as libc::c_long {
            libc::SYS_prctl => prctl([first, second, third]),
            libc::SYS_seccomp if first <= libc::SECCOMP_SET_MODE_FILTER as usize => {
                restrict(first == libc::SECCOMP_SET_MODE_STRICT as usize, third);
            }
            _ => {}
        }
    }
}

/// Ends what is measured, if a call of the library would end the process.
unsafe fn restrict(strict: bool, filter: usize) {
    let filter = filter as *const libc::sock_fprog;
    // SAFETY: NULL (a program that asks whether there are filters), or a filter for the kernel.
    let kills = strict
        || unsafe { filter.as_ref() }.is_some_and(|filter| {
            // SAFETY: as above.
            let steps = (!filter.filter.is_null())
                .then(|| unsafe { slice::from_raw_parts(filter.filter, filter.len.into()) });
            steps.is_some_and(|steps| CALLS.iter().any(|call| kills(steps, *call as u32)))
        });
    let Some(process) = MeasuredProcess::here().filter(|_| kills) else { return };
    const WHY: &str = "a seccomp filter of the program's kills who makes the library's system calls: its threads and regions are \
                       measured up to then";
    if !process.has_ended() {
        // SAFETY: the header is mapped as long as the process is this one.
        unsafe { put(&mut (*process.tables.header()).note, WHY.as_bytes()) };
    }
    hooks::finish();
    end::finish();
    MeasuredProcess::set(None);
    ThreadState::set_current(GONE);
}

/// Whether a filter ends a process for this call, or sends a signal. (Its arguments are taken to be 0.)
fn kills(steps: &[libc::sock_filter], call: u32) -> bool {
    matches!(
        answer(steps, call).unwrap_or(libc::SECCOMP_RET_KILL_THREAD) & libc::SECCOMP_RET_ACTION_FULL,
        libc::SECCOMP_RET_KILL_PROCESS | libc::SECCOMP_RET_KILL_THREAD | libc::SECCOMP_RET_TRAP
    )
}

/// What a filter answers; None: the kernel would not take it.
fn answer(steps: &[libc::sock_filter], call: u32) -> Option<u32> {
    const X86_64: u32 = 0xc000_003e;
    let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [0_u32; 16], 0_usize);
    loop {
        let libc::sock_filter { code, jt, jf, k } = *steps.get(at)?;
        at += 1;
        let source = if code & 0x08 == 0 { k } else { x };
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            0x20 => a = [call, X86_64].get(k as usize / 4).copied().unwrap_or(0), // a word of the call
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
            0x34 | 0x3c => a = a.checked_div(source).unwrap_or(0),
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
                step(0x15, 1, 0, 0xc000_003e),
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
