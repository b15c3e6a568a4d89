//! The dynamic linker's functions as the program calls them.
//!
//! dlopen and dlsym are exported, so that what a program loads while it runs is found: whatever it does with a library
//! that it has loaded begins with a call of one of them. They end in a jump to the real ones, which look at their
//! return address to know whose RUNPATH or RTLD_NEXT is meant.

use super::{loader, rescan, stub_of};
use std::ffi::{CStr, c_char, c_void};

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".section .text.td_loader, \"ax\", @progbits",
    // Calls `first` before the arguments are looked at, which stay as they are.
    ".macro td_ask first",
    "  endbr64",
    "  push rdi",
    "  .cfi_adjust_cfa_offset 8",
    "  push rsi",
    "  .cfi_adjust_cfa_offset 8",
    "  sub rsp, 8",
    "  .cfi_adjust_cfa_offset 8",
    "  call \\first",
    "  add rsp, 8",
    "  .cfi_adjust_cfa_offset -8",
    "  pop rsi",
    "  .cfi_adjust_cfa_offset -8",
    "  pop rdi",
    "  .cfi_adjust_cfa_offset -8",
    ".endm",
    ".globl dlopen",
    ".type dlopen, @function",
    "dlopen:",
    ".cfi_startproc",
    "  td_ask {before_dlopen}",
    "  jmp rax",
    ".cfi_endproc",
    ".size dlopen, . - dlopen",
    ".globl dlsym",
    ".type dlsym, @function",
    "dlsym:",
    ".cfi_startproc",
    "  td_ask {before_dlsym}",
    "  test rax, rax",
    "  jz 2f",
    "  jmp rax",
    "2: mov rax, rdx",
    "  ret",
    ".cfi_endproc",
    ".size dlsym, . - dlsym",
    ".text",
    before_dlopen = sym before_dlopen,
    before_dlsym = sym before_dlsym,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".section .text.td_loader, \"ax\", @progbits",
    // Calls `first` before the arguments are looked at, which stay as they are; what it returns is in x16 and x17.
    ".macro td_ask first",
    "  hint #34", // BTI C
    "  stp x29, x30, [sp, #-32]!",
    "  .cfi_def_cfa_offset 32",
    "  .cfi_offset 29, -32",
    "  .cfi_offset 30, -24",
    "  stp x0, x1, [sp, #16]",
    "  bl \\first",
    "  mov x16, x0",
    "  mov x17, x1",
    "  ldp x0, x1, [sp, #16]",
    "  ldp x29, x30, [sp], #32",
    "  .cfi_def_cfa_offset 0",
    "  .cfi_restore 29",
    "  .cfi_restore 30",
    ".endm",
    ".globl dlopen",
    ".type dlopen, @function",
    "dlopen:",
    ".cfi_startproc",
    "  td_ask {before_dlopen}",
    "  br x16",
    ".cfi_endproc",
    ".size dlopen, . - dlopen",
    ".globl dlsym",
    ".type dlsym, @function",
    "dlsym:",
    ".cfi_startproc",
    "  td_ask {before_dlsym}",
    "  cbz x16, 2f",
    "  br x16",
    "2: mov x0, x17",
    "  ret",
    ".cfi_endproc",
    ".size dlsym, . - dlsym",
    ".text",
    before_dlopen = sym before_dlopen,
    before_dlsym = sym before_dlsym,
);

extern "C" fn before_dlopen() -> usize {
    rescan();
    loader::real_dlopen()
}

/// The real function, or 0 and the answer.
#[repr(C)]
struct DlsymAnswer {
    function: usize,
    address: usize,
}

unsafe extern "C" fn before_dlsym(handle: *mut c_void, name: *const c_char) -> DlsymAnswer {
    let function = loader::real_dlsym();
    // these two depend on who asks
    if !rescan() || handle == libc::RTLD_NEXT || handle == libc::RTLD_DEFAULT || name.is_null() {
        return DlsymAnswer { function, address: 0 };
    }
    // SAFETY: the caller's arguments, passed on.
    let (address, name) = unsafe { (loader::dlsym(handle, name) as usize, CStr::from_ptr(name)) };
    DlsymAnswer { function: 0, address: stub_of(name, address).unwrap_or(address) }
}
