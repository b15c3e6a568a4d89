//! Which thread is this? A number that no other thread of the process has or had, for two instructions.
//!
//! A thread id costs a system call, and the thread pointer is handed on when a thread ends. This is a
//! thread-local slot of the initial-exec kind, which Rust cannot ask for in a shared library otherwise.

use super::numbers::contains;
use std::sync::atomic::{AtomicU64, Ordering};

/// CPUs on which a thread (0: the calling one) may run; none, if that cannot be told.
pub fn may_run_on(thread: i32) -> Vec<u32> {
    // SAFETY: zeros are a set; it is as long as the call is told; numbers below its size are looked up.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(thread, size_of_val(&set), &raw mut set) != 0 {
            return Vec::new();
        }
        let all = 0..libc::CPU_SETSIZE as usize;
        all.filter(|cpu| libc::CPU_ISSET(*cpu, &set)).map(|cpu| cpu as u32).collect()
    }
}

/// Whether a thread (0: the calling one) may run on no other CPUs than those of a list of sysfs; not, if that cannot be told.
pub fn runs_on_these_alone(thread: i32, cpus: &str) -> bool {
    let allowed = may_run_on(thread);
    !allowed.is_empty() && allowed.into_iter().all(|cpu| contains(cpus, cpu))
}

/// Moves the calling thread to CPUs of a list such as `0-3,8`; false: it may run on none of them.
pub fn move_to(cpus: &str) -> bool {
    // SAFETY: zeros are a set; CPU_SET is given numbers that the set has.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in (0..libc::CPU_SETSIZE as usize).filter(|cpu| contains(cpus, *cpu as u32)) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
    }
}

/// Asks for short slices of CPU time (0.1 ms) for the calling thread: it then takes a CPU soon when it wakes up (Linux 6.12,
/// kernel/sched/fair.c, `PREEMPT_SHORT`). Earlier kernels do not heed it.
pub fn short_slices() {
    const NS: u64 = 100_000;
    // SAFETY: zeros are such a structure, which is as long as the calls are told.
    unsafe {
        let mut attr: libc::sched_attr = std::mem::zeroed();
        let size = size_of_val(&attr) as libc::c_uint;
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) == 0
            && attr.sched_policy == libc::SCHED_OTHER as u32
        {
            attr.sched_runtime = NS;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0);
        }
    }
}

/// Does something on CPUs of a list, by a thread of its own; without a list in the calling thread. None: it may run on none of them, no
/// thread may be started, or it panicked.
pub fn on_cpus<T: Send>(cpus: Option<&str>, does: impl FnOnce() -> T + Send) -> Option<T> {
    let Some(cpus) = cpus else { return Some(does()) };
    std::thread::scope(|scope| {
        let there = || move_to(cpus).then(does);
        std::thread::Builder::new().spawn_scoped(scope, there).ok()?.join().ok()?
    })
}

/// What the slot holds in a thread that has not asked for a number. Not 0, which marks a handle
/// without an owner, so that the two never compare equal.
const NONE: u64 = 1;

/// A 64-bit slot of each thread, which is read in two instructions: its functions `get` and `set`. `$symbol` is its name
/// in the object, which shows it to nobody; `first` is what it holds at first.
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! thread_local_slot {
    ($symbol:literal, first $first:literal) => {
        std::arch::global_asm!(
            concat!(".section .tdata.", $symbol, ",\"awT\",@progbits"),
            ".p2align 3",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ",8"),
            concat!($symbol, ": .quad ", $first),
            ".previous",
        );

        /// What this thread's slot holds.
        #[inline(always)]
        pub fn get() -> u64 {
            let value: u64;
            // SAFETY: the assembler block above defines the slot; every thread has its own.
            unsafe {
                std::arch::asm!(
                    concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    "mov {0}, qword ptr fs:[{0}]",
                    out(reg) value,
                    options(nostack, preserves_flags, readonly),
                );
            }
            value
        }

        /// From now on it holds this.
        pub fn set(value: u64) {
            // SAFETY: the assembler block above defines the slot; every thread has its own, which nothing else writes.
            unsafe {
                std::arch::asm!(
                    concat!("mov {1}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    "mov qword ptr fs:[{1}], {0}",
                    in(reg) value,
                    out(reg) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

/// A 64-bit slot of each thread, which is read in four instructions: its functions `get` and `set`. `$symbol` is its name
/// in the object, which shows it to nobody; `first` is what it holds at first.
#[cfg(target_arch = "aarch64")]
#[macro_export]
macro_rules! thread_local_slot {
    ($symbol:literal, first $first:literal) => {
        std::arch::global_asm!(
            concat!(".section .tdata.", $symbol, ",\"awT\",@progbits"),
            ".p2align 3",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ",8"),
            concat!($symbol, ": .quad ", $first),
            ".previous",
        );

        /// What this thread's slot holds.
        #[inline(always)]
        pub fn get() -> u64 {
            let value: u64;
            // SAFETY: the assembler block above defines the slot; every thread has its own.
            unsafe {
                std::arch::asm!(
                    concat!("adrp {0}, :gottprel:", $symbol),
                    concat!("ldr {0}, [{0}, :gottprel_lo12:", $symbol, "]"),
                    "mrs {1}, tpidr_el0",
                    "ldr {0}, [{1}, {0}]",
                    out(reg) value,
                    out(reg) _,
                    options(nostack, preserves_flags, readonly),
                );
            }
            value
        }

        /// From now on it holds this.
        pub fn set(value: u64) {
            // SAFETY: the assembler block above defines the slot; every thread has its own, which nothing else writes.
            unsafe {
                std::arch::asm!(
                    concat!("adrp {1}, :gottprel:", $symbol),
                    concat!("ldr {1}, [{1}, :gottprel_lo12:", $symbol, "]"),
                    "mrs {2}, tpidr_el0",
                    "str {0}, [{2}, {1}]",
                    in(reg) value,
                    out(reg) _,
                    out(reg) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod slot {
    crate::thread_local_slot!("topdown_thread", first 1);
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod slot {
    use std::cell::Cell;

    thread_local! { static SLOT: Cell<u64> = const { Cell::new(super::NONE) }; }

    pub fn get() -> u64 {
        SLOT.get()
    }

    pub fn set(value: u64) {
        SLOT.set(value);
    }
}

/// This thread's number, or one that equals no handle's owner.
#[inline(always)]
pub fn current() -> u64 {
    slot::get()
}

/// This thread's pointer to its control block: it tells the threads that run now from each other.
#[cfg(target_arch = "x86_64")]
pub fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the word at fs:0 is the pointer itself, on every x86-64 system (the psABI's TLS).
    unsafe {
        std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    pointer
}

/// This thread's pointer to its control block, without the tag that user space may put into its upper byte.
#[cfg(target_arch = "aarch64")]
pub fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: user space may read its thread pointer on every arm64 system.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    pointer & (u64::MAX >> 8)
}

/// This thread's number, given now if it has none.
pub fn enroll() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(NONE + 1);
    if slot::get() == NONE {
        slot::set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    slot::get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_no_number_until_it_enrolls_and_then_keeps_it() {
        let first = std::thread::spawn(|| (current(), enroll(), current())).join().unwrap();
        let second = std::thread::spawn(|| (current(), enroll(), current())).join().unwrap();
        assert_eq!((first.0, second.0), (NONE, NONE));
        assert_eq!((first.1, second.1), (first.2, second.2));
        assert_ne!(first.1, second.1, "the second thread may stand where the first stood");
        assert!(first.1 > NONE && second.1 > NONE);
    }
}
