//! The way into a hooked function and back out of it, on arm64; trampoline.rs has it for x86-64, and tells the rest.
//!
//! The return address is in x30, not on the stack. `enter` and `leave` find it where x86-64 has it, in the word below the caller's
//! stack pointer, but only while they run: the function's own frame goes there. x19 is to the function what rbx is there: it gives
//! it back as it found it, so that when `td_return` is reached it points at the entry.
//!
//! Arguments are in x0 to x8 and q0 to q7, and so are results. Functions that take more (SVE's registers) are not hooked
//! (`elf::DefinedFunction::all_registers`).

use super::entries::{self, OpenCall, ThreadOfCalls};
use super::stubs::{STUB_SIZE, STUBS};
use super::unwinding;
use std::mem::offset_of;

/// Where `td_save` puts them: x0 to x8, eight bytes of nothing, q0 to q7.
const SAVED: usize = 10 * 8 + 8 * 16;
/// What may be above the address in a pointer.
const ADDRESS: u64 = u64::MAX >> 8;

std::arch::global_asm!(
    ".section .tbss.td_thread, \"awT\", @nobits",
    ".balign 64",
    ".type td_thread, @tls_object",
    ".size td_thread, {thread_size}",
    "td_thread: .zero {thread_size}",
    ".section .text.td_hooks, \"ax\", @progbits",
    ".macro td_save",
    "  sub sp, sp, #{saved}",
    "  stp x0, x1, [sp, #0]",
    "  stp x2, x3, [sp, #16]",
    "  stp x4, x5, [sp, #32]",
    "  stp x6, x7, [sp, #48]",
    "  str x8, [sp, #64]",
    "  stp q0, q1, [sp, #80]",
    "  stp q2, q3, [sp, #112]",
    "  stp q4, q5, [sp, #144]",
    "  stp q6, q7, [sp, #176]",
    ".endm",
    ".macro td_restore",
    "  ldp x0, x1, [sp, #0]",
    "  ldp x2, x3, [sp, #16]",
    "  ldp x4, x5, [sp, #32]",
    "  ldp x6, x7, [sp, #48]",
    "  ldr x8, [sp, #64]",
    "  ldp q0, q1, [sp, #80]",
    "  ldp q2, q3, [sp, #112]",
    "  ldp q4, q5, [sp, #144]",
    "  ldp q6, q7, [sp, #176]",
    ".endm",
    // The thread's own goes to x0.
    ".macro td_own",
    "  adrp x9, :gottprel:td_thread",
    "  ldr x9, [x9, :gottprel_lo12:td_thread]",
    "  mrs x0, tpidr_el0",
    "  add x0, x0, x9",
    "  and x0, x0, #{address}",
    ".endm",
    // Each stub says which it is, in a register that linkers may use between a call and the function.
    ".balign 64",
    ".globl td_stubs",
    ".hidden td_stubs",
    ".type td_stubs, @function",
    ".cfi_startproc",
    "td_stubs:",
    ".set td_number, 0",
    ".rept {stubs}",
    "  hint #34", // BTI C
    "  mov w16, #td_number",
    "  b td_enter",
    "  .balign {stub_size}",
    "  .set td_number, td_number + 1",
    ".endr",
    ".cfi_endproc",
    ".size td_stubs, . - td_stubs",
    ".type td_enter, @function",
    "td_enter:",
    ".cfi_startproc",
    "  stp x19, x30, [sp, #-16]!",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset 19, -16",
    "  .cfi_offset 30, -8",
    "  mov x19, sp",
    "  .cfi_def_cfa_register x19",
    "  td_save",
    "  td_own",
    "  mov w1, w16",
    "  add x2, x19, #8",
    "  ldr x3, [x19]",
    "  bl {enter}",
    "  mov x16, x0",
    "  mov x17, x1",
    "  td_restore",
    "  mov sp, x19",
    "  .cfi_def_cfa sp, 16",
    "  ldp x19, x30, [sp], #16",
    "  .cfi_def_cfa_offset 0",
    "  .cfi_same_value x19",
    "  .cfi_same_value x30",
    "  cbz x17, 5f",
    "  adrp x14, td_return",
    "  add x14, x14, :lo12:td_return",
    "  mov x19, x17",
    "  mov x30, x14",
    "5: br x16",
    ".cfi_endproc",
    ".size td_enter, . - td_enter",
    // A function has returned to its caller, it thinks. Backtraces show the name of the byte before.
    ".type topdown_region, @function",
    ".globl td_return",
    ".hidden td_return",
    ".cfi_startproc",
    "  .cfi_escape 0x0f, 3, 0x83, {frame}, 6", // its caller's stack pointer is `frame`, says the unwinder,
    "  .cfi_escape 0x10, 30, 2, 0x83, {pass}", // and its caller is td_pass
    "topdown_region:",
    "  nop", // unwinders look up the byte before a return address
    "td_return:",
    "  ldr x16, [x19, #{return_address}]",
    "  ldr x17, [x19, #{kept}]",
    "  stp x17, x16, [sp, #-16]!",
    "  .cfi_def_cfa sp, 16",
    "  .cfi_offset 19, -16",
    "  .cfi_offset 30, -8",
    "  mov x17, x19",
    "  mov x19, sp",
    "  .cfi_def_cfa_register x19",
    "  td_save",
    "  mov x1, x17",
    "  td_own",
    "  bl {leave}",
    "  td_restore",
    "  mov sp, x19",
    "  .cfi_def_cfa sp, 16",
    "  ldp x19, x30, [sp], #16",
    "  .cfi_def_cfa_offset 0",
    "  .cfi_same_value x19",
    "  .cfi_same_value x30",
    "  ret", // (where a caller goes on there is no landing pad for any other branch)
    ".cfi_endproc",
    ".size topdown_region, . - topdown_region",
    // Nobody comes here but unwinders, from td_return, on their way to its caller: x19 points at the entry, which has the rest.
    ".type topdown_region_end, @function",
    ".globl td_pass",
    ".hidden td_pass",
    ".cfi_startproc",
    "  .cfi_personality 0x1b, {personality}",
    "  .cfi_escape 0x0f, 5, 0x83, {frame}, 6, 0x23, 1", // the frame ends one byte above td_return's
    "  .cfi_escape 0x16, 31, 5, 0x83, {slot}, 6, 0x23, 8", // the caller's sp is slot + 8
    "  .cfi_escape 0x10, 30, 2, 0x83, {return_address}", // the return address is at x19 + ...
    "  .cfi_escape 0x10, 19, 2, 0x83, {kept}",           // x19 is at x19 + ...
    "topdown_region_end:",
    "  nop",
    "td_pass:",
    "  udf #0",
    ".cfi_endproc",
    ".size topdown_region_end, . - topdown_region_end",
    ".type td_own_thread, @function",
    ".globl td_own_thread",
    ".hidden td_own_thread",
    "td_own_thread:",
    ".cfi_startproc",
    "  hint #34",
    "  td_own",
    "  ret",
    ".cfi_endproc",
    ".size td_own_thread, . - td_own_thread",
    ".text",
    thread_size = const size_of::<ThreadOfCalls>(),
    saved = const SAVED,
    address = const ADDRESS,
    stubs = const STUBS,
    stub_size = const STUB_SIZE,
    enter = sym entries::enter,
    leave = sym entries::leave,
    personality = sym unwinding::personality,
    return_address = const offset_of!(OpenCall, return_address),
    kept = const offset_of!(OpenCall, kept),
    pass = const offset_of!(OpenCall, pass),
    frame = const offset_of!(OpenCall, frame),
    slot = const offset_of!(OpenCall, slot),
);

/// All registers that are saved are those of every CPU.
pub fn prepare() {}

/// Whether the CPU compares return addresses with a stack of its own (GCS), which no other may be put in front of.
pub fn has_shadow_stack() -> bool {
    let off: u64;
    // SAFETY: CHKFEAT clears a bit of a register where there is such a stack in use, and does nothing elsewhere.
    unsafe {
        std::arch::asm!("hint #40", inout("x16") 1_u64 => off, options(nomem, nostack, preserves_flags));
    }
    off == 0
}
