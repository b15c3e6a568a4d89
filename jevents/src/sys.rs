//! perf_event_open(2), by a weak symbol: a program that has its own `perf_event_open` is asked instead, by this library
//! too, as libjevents allows.

use crate::Attr;
use libc::{c_int, c_long, c_ulong, pid_t};

unsafe extern "C" {
    /// The program's, or the one below. Returns a descriptor, or -1 and errno.
    pub(crate) fn perf_event_open(
        attr: *mut Attr,
        pid: pid_t,
        cpu: c_int,
        group_fd: c_int,
        flags: c_ulong,
    ) -> c_int;
}

/// A jump to the operand `system_call`.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "    jmp {system_call}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "    b {system_call}"
    };
}

// Written out, since a weak definition cannot be said in Rust: `extern` above keeps every call on the symbol.
std::arch::global_asm!(
    ".weak perf_event_open",
    ".type perf_event_open, %function",
    "perf_event_open:",
    jump!(),
    ".size perf_event_open, . - perf_event_open",
    system_call = sym system_call,
);

extern "C" fn system_call(attr: *mut Attr, pid: pid_t, cpu: c_int, group_fd: c_int, flags: c_ulong) -> c_int {
    // SAFETY: the kernel checks what it is given.
    let fd: c_long = unsafe { libc::syscall(libc::SYS_perf_event_open, attr, pid, cpu, group_fd, flags) };
    fd as c_int
}
