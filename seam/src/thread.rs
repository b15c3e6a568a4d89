//! Which thread is this? A number that no other thread of the process has or had, for two instructions.
//!
//! A thread id costs a system call, and the thread pointer is handed on when a thread ends. This is a
//! thread-local word of the initial-exec kind, which Rust cannot ask for in a shared library otherwise.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the word holds in a thread that has not asked for a number. Not 0, which marks a handle
/// without an owner, so that the two never compare equal.
const NONE: u64 = 1;

#[cfg(target_arch = "x86_64")]
mod word {
    std::arch::global_asm!(
        ".section .tdata.topdown_thread,\"awT\",@progbits",
        ".p2align 3",
        ".hidden topdown_thread",
        ".globl topdown_thread",
        ".type topdown_thread,@object",
        ".size topdown_thread,8",
        "topdown_thread: .quad 1",
        ".previous",
    );

    #[inline(always)]
    pub fn get() -> u64 {
        let value: u64;
        // SAFETY: the assembler block above defines the word; every thread has its own.
        unsafe {
            std::arch::asm!(
                "mov {0}, qword ptr [rip + topdown_thread@GOTTPOFF]",
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) value,
                options(nostack, preserves_flags, readonly),
            );
        }
        value
    }

    pub fn set(value: u64) {
        // SAFETY: as in `get`.
        unsafe {
            std::arch::asm!(
                "mov {1}, qword ptr [rip + topdown_thread@GOTTPOFF]",
                "mov qword ptr fs:[{1}], {0}",
                in(reg) value,
                out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod word {
    use std::cell::Cell;

    thread_local! { static WORD: Cell<u64> = const { Cell::new(super::NONE) }; }

    pub fn get() -> u64 {
        WORD.get()
    }

    pub fn set(value: u64) {
        WORD.set(value);
    }
}

/// This thread's number, or one that equals no handle's owner.
#[inline(always)]
pub fn current() -> u64 {
    word::get()
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

#[cfg(not(target_arch = "x86_64"))]
pub fn pointer() -> u64 {
    0
}

/// This thread's number, given now if it has none.
pub fn enroll() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(NONE + 1);
    if word::get() == NONE {
        word::set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    word::get()
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
