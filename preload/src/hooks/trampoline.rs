//! The way into a hooked function and back out of it.
//!
//! A caller jumps to a stub, which brings its number here. `enter` takes an `OpenCall` that keeps the caller's return
//! address and its rbx; the function is then entered as the caller meant it, but with `td_return` as its return
//! address and rbx pointing at the entry. rbx is one of the registers that a function gives back as it found it, so
//! when `td_return` is reached it points at the entry, on whatever stack or thread that is and however many functions
//! were tail-called in between. The unwind information of `td_return` says the same: return address and rbx are in
//! what rbx points at, so exceptions, cancellation, backtraces and debuggers go through it (`unwinding`).
//!
//! All registers but x87's, which nobody here uses, are as they were: the vector registers hold arguments and results, and
//! who calls a function of its own program may know which registers that leaves alone (GCC's -fipa-ra).

use super::entries::{self, OpenCall, ThreadOfCalls};
use super::stubs::{STUB_SIZE, STUBS};
use super::unwinding;
use std::arch::x86_64::_xgetbv;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use topdown_seam::cpu::cpuid;

/// SSE, AVX, and AVX-512's three.
const STATE: u32 = 0xe6;
/// What FXSAVE, and the header of XSAVE's area, take.
const LEGACY: usize = 512;
const HEADER: usize = 64;

/// How the vector registers are saved: 0 FXSAVE, 1 XSAVE, 2 XSAVEC.
static SAVING: AtomicU32 = AtomicU32::new(0);
/// Bytes that saving them takes, a multiple of 64.
static SAVED: AtomicUsize = AtomicUsize::new(LEGACY);

std::arch::global_asm!(
    // A thread's own; always in the block that is there from the thread's start, so finding it takes no call.
    ".section .tbss.td_thread, \"awT\", @nobits",
    ".balign 64",

    ".type td_thread, @tls_object",
    ".size td_thread, {thread_size}",
    "td_thread: .zero {thread_size}",
    ".section .text.td_hooks, \"ax\", @progbits",
    ".macro td_save",
    "  and rsp, -64",
    "  sub rsp, qword ptr [rip + {saved}]",
    "  mov eax, {state}",
    "  mov edx, 0",
    "  cmp dword ptr [rip + {saving}], 1",
    "  jb 2f",
    "  mov qword ptr [rsp + 512], rdx", // XSAVE leaves the rest of its header as it finds it
    "  mov qword ptr [rsp + 520], rdx",
    "  mov qword ptr [rsp + 528], rdx",
    "  mov qword ptr [rsp + 536], rdx",
    "  mov qword ptr [rsp + 544], rdx",
    "  mov qword ptr [rsp + 552], rdx",
    "  mov qword ptr [rsp + 560], rdx",
    "  mov qword ptr [rsp + 568], rdx",
    "  ja 3f",
    "  xsave [rsp]",
    "  jmp 4f",
    "2: fxsave [rsp]",
    "  jmp 4f",
    "3: xsavec [rsp]",
    "4:",
    ".endm",
    ".macro td_restore",
    "  mov eax, {state}",
    "  mov edx, 0",
    "  cmp dword ptr [rip + {saving}], 1",
    "  jb 2f",
    "  xrstor [rsp]",
    "  jmp 4f",
    "2: fxrstor [rsp]",
    "4:",
    ".endm",
    // Each stub says which it is by a number that it pushes: from the tenth byte on its caller's stack pointer is 8 bytes further up.
    ".balign 64",
    ".globl td_stubs",
    ".hidden td_stubs",
    ".type td_stubs, @function",
    ".cfi_startproc",
    "  .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22",
    "td_stubs:",
    ".set td_number, 0",
    ".rept {stubs}",
    "  endbr64",
    "  .byte 0x68", // push, which the assembler would make shorter for small numbers
    "  .long td_number",
    "  jmp td_enter",
    "  .balign {stub_size}",
    "  .set td_number, td_number + 1",
    ".endr",
    ".cfi_endproc",
    ".size td_stubs, . - td_stubs",
    ".type td_enter, @function",
    "td_enter:",
    ".cfi_startproc",
    "  .cfi_def_cfa_offset 16",
    "  push rbx",
    "  .cfi_adjust_cfa_offset 8",
    "  .cfi_rel_offset rbx, 0",
    "  mov ebx, dword ptr [rsp + 8]",
    "  pop qword ptr [rsp]", // what was rbx is where the number was, beside the return address
    "  .cfi_adjust_cfa_offset -8",
    "  .cfi_rel_offset rbx, 0",
    "  push rsi", // (room for where to go on)
    "  .cfi_adjust_cfa_offset 8",
    "  push rsi",
    "  .cfi_adjust_cfa_offset 8",
    "  mov esi, ebx",
    "  lea rbx, [rsp + 16]",
    "  .cfi_def_cfa rbx, 16",
    "  push rax", // how many vector registers hold variable arguments
    "  push rcx",
    "  push rdx",
    "  push rdi",
    "  push r8",
    "  push r9",
    "  push r10",
    "  push r11",
    "  td_save",
    "  mov rdi, qword ptr [rip + td_thread@GOTTPOFF]",
    "  add rdi, qword ptr fs:[0]",
    "  lea rdx, [rbx + 8]",
    "  mov rcx, qword ptr [rbx]",
    "  call {enter}",
    "  mov qword ptr [rbx - 8], rax",
    "  test rdx, rdx",
    "  jz 5f",
    "  lea rcx, [rip + td_return]",
    "  movq xmm0, rdx", // both at once: a cancellation may come between any two instructions
    "  movq xmm1, rcx",
    "  punpcklqdq xmm0, xmm1",
    "  movups xmmword ptr [rbx], xmm0",
    "5: td_restore",
    "  lea rsp, [rbx - 80]",
    "  pop r11",
    "  pop r10",
    "  pop r9",
    "  pop r8",
    "  pop rdi",
    "  pop rdx",
    "  pop rcx",
    "  pop rax",
    "  pop rsi",
    "  lea rsp, [rsp + 8]",
    "  .cfi_def_cfa rsp, 16",
    "  pop rbx",
    "  .cfi_adjust_cfa_offset -8",
    "  .cfi_same_value rbx",
    "  jmp qword ptr [rsp - 16]", // (signal handlers leave 128 bytes below the stack pointer alone)
    ".cfi_endproc",
    ".size td_enter, . - td_enter",
    // A function has returned to its caller, it thinks: rax, rdx, st0, st1 and vector registers hold its result.
    // Backtraces show the name of the byte before.
    ".type topdown_region, @function",
    ".globl td_return",
    ".hidden td_return",
    ".cfi_startproc",
    "  .cfi_escape 0x0f, 3, 0x73, {frame}, 6", // its caller's stack pointer is `frame`, says the unwinder,
    "  .cfi_escape 0x10, 16, 2, 0x73, {pass}", // and its caller is td_pass
    "topdown_region:",
    "  nop", // unwinders look up the byte before a return address
    "td_return:",
    "  push qword ptr [rbx + {return_address}]",
    "  .cfi_def_cfa rsp, 8",
    "  .cfi_offset rip, -8",
    "  .cfi_escape 0x10, 3, 2, 0x73, {kept}",
    "  push qword ptr [rbx + {kept}]",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbx, -16",
    "  push rsi",
    "  .cfi_def_cfa_offset 24",
    "  mov rsi, rbx",
    "  lea rbx, [rsp + 8]",
    "  .cfi_def_cfa rbx, 16",
    "  push rax",
    "  push rcx",
    "  push rdx",
    "  push rdi",
    "  push r8",
    "  push r9",
    "  push r10",
    "  push r11",
    "  td_save",
    "  mov rdi, qword ptr [rip + td_thread@GOTTPOFF]",
    "  add rdi, qword ptr fs:[0]",
    "  call {leave}",
    "  td_restore",
    "  lea rsp, [rbx - 72]",
    "  pop r11",
    "  pop r10",
    "  pop r9",
    "  pop r8",
    "  pop rdi",
    "  pop rdx",
    "  pop rcx",
    "  pop rax",
    "  pop rsi",
    "  .cfi_def_cfa rsp, 16",
    "  pop rbx",
    "  .cfi_adjust_cfa_offset -8",
    "  .cfi_same_value rbx",
    // not by ret: the function's own has used up the CPU's prediction for this call, the next is our caller's
    "  lea rsp, [rsp + 8]",
    "  .cfi_adjust_cfa_offset -8",
    "  jmp qword ptr [rsp - 8]",
    ".cfi_endproc",
    ".size topdown_region, . - topdown_region",
    // Nobody comes here but unwinders, from td_return, on their way to its caller: rbx points at the entry, which has the rest.
    ".type topdown_region_end, @function",
    ".globl td_pass",
    ".hidden td_pass",
    ".cfi_startproc",
    "  .cfi_personality 0x1b, {personality}",
    "  .cfi_escape 0x0f, 5, 0x73, {frame}, 6, 0x23, 1", // the frame ends one byte above td_return's
    "  .cfi_escape 0x16, 7, 5, 0x73, {slot}, 6, 0x23, 8", // the caller's rsp is slot + 8
    "  .cfi_escape 0x10, 16, 2, 0x73, {return_address}", // the return address is at rbx + ...
    "  .cfi_escape 0x10, 3, 2, 0x73, {kept}",            // rbx is at rbx + ...
    "topdown_region_end:",
    "  nop",
    "td_pass:",
    "  ud2",
    ".cfi_endproc",
    ".size topdown_region_end, . - topdown_region_end",
    ".type td_own_thread, @function",
    ".globl td_own_thread",
    ".hidden td_own_thread",
    "td_own_thread:",
    ".cfi_startproc",
    "  mov rax, qword ptr [rip + td_thread@GOTTPOFF]",
    "  add rax, qword ptr fs:[0]",
    "  ret",
    ".cfi_endproc",
    ".size td_own_thread, . - td_own_thread",
    ".text",
    thread_size = const size_of::<ThreadOfCalls>(),
    saved = sym SAVED,
    saving = sym SAVING,
    state = const STATE,
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

/// Finds out how this CPU saves its vector registers.
pub fn prepare() {
    let features = cpuid(1, 0);
    if features.ecx & 1 << 27 == 0 {
        return; // the system does not use XSAVE
    }
    // SAFETY: OSXSAVE says that there is XGETBV.
    let enabled = unsafe { _xgetbv(0) } as u32 & STATE;
    // components of this area are where XSAVE has them; XSAVEC moves them closer together
    let end = (2..32)
        .filter(|component| enabled & 1 << component != 0)
        .map(|component| {
            let area = cpuid(0xd, component);
            (area.eax + area.ebx) as usize
        })
        .fold(LEGACY + HEADER, usize::max);
    SAVED.store(end.next_multiple_of(64), Relaxed);
    SAVING.store(if cpuid(0xd, 1).eax & 1 << 1 != 0 { 2 } else { 1 }, Relaxed);
}

/// Whether the CPU compares return addresses with a stack of its own, which no other may be put in front of.
pub fn has_shadow_stack() -> bool {
    let pointer: u64;
    // SAFETY: reads a register where there is one, and does nothing elsewhere.
    unsafe { std::arch::asm!("rdsspq {}", inout(reg) 0u64 => pointer, options(nomem, nostack)) };
    pointer != 0
}
