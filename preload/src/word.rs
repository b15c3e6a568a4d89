//! A word of each thread, for two instructions: a thread-local of the initial-exec kind, which Rust cannot ask for in
//! a shared library.

use crate::engine::Thread;

std::arch::global_asm!(
    ".section .tbss.topdown_region_thread,\"awT\",@nobits",
    ".p2align 3",
    ".hidden topdown_region_thread",
    ".globl topdown_region_thread",
    ".type topdown_region_thread,@object",
    ".size topdown_region_thread,8",
    "topdown_region_thread: .zero 8",
    ".previous",
);

/// What this thread's word holds; NULL at first.
#[inline(always)]
pub fn get() -> *mut Thread {
    let value: *mut Thread;
    // SAFETY: the assembler block above defines the word; every thread has its own.
    unsafe {
        std::arch::asm!(
            "mov {0}, qword ptr [rip + topdown_region_thread@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) value,
            options(nostack, preserves_flags, readonly),
        );
    }
    value
}

/// From now on it holds this.
pub fn set(value: *mut Thread) {
    // SAFETY: as in `get`.
    unsafe {
        std::arch::asm!(
            "mov {1}, qword ptr [rip + topdown_region_thread@GOTTPOFF]",
            "mov qword ptr fs:[{1}], {0}",
            in(reg) value,
            out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}
