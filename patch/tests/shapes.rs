//! Functions of each shape, in this program's own code: which of them can be patched, why the others cannot, and that what is moved
//! does the same at another place.
#![cfg(target_arch = "x86_64")]

use std::arch::global_asm;
use std::fs;
use topdown_patch::{Entry, Moved, Plan, Refusal, Unfit, plan};

// A shape has a name, and what is between its first and last instruction.
global_asm!(
    ".macro shape name",
    "  .balign 32",
    "  .globl shape_\\name",
    "  .type shape_\\name, @function",
    "  shape_\\name:",
    "  .cfi_startproc",
    ".endm",
    ".macro end name",
    "  .cfi_endproc",
    "  .size shape_\\name, . - shape_\\name",
    ".endm",
    // What can be moved. Each returns something of its argument.
    "shape plain",
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  ret",
    "end plain",
    "shape endbr",
    "  endbr64",
    "  mov rax, rdi",
    "  add rax, 7",
    "  ret",
    "end endbr",
    "shape data",
    "  mov eax, dword ptr [rip + shape_word]",
    "  add rax, rdi",
    "  ret",
    "end data",
    "shape compare", // an immediate follows the distance
    "  cmp dword ptr [rip + shape_word], 4242",
    "  sete al",
    "  movzx eax, al",
    "  add rax, rdi",
    "  ret",
    "end compare",
    "shape branch",
    "  test rdi, rdi",
    "  jle 2f",
    "  mov rax, rdi",
    "  ret",
    "2:",
    "  mov rax, -1",
    "  ret",
    "end branch",
    "shape far_branch",
    "  cmp edi, 3",
    "  ja 2f",
    "  mov rax, rdi",
    "  ret",
    "  .skip 300, 0x90",
    "2:",
    "  mov rax, -2",
    "  ret",
    "end far_branch",
    "shape calls",
    "  sub rsp, 8",
    "  .cfi_def_cfa_offset 16",
    "  call shape_plain",
    "  add rsp, 8",
    "  .cfi_def_cfa_offset 8",
    "  inc rax",
    "  ret",
    "end calls",
    "shape calls_by_memory",
    "  sub rsp, 8",
    "  .cfi_def_cfa_offset 16",
    "  call qword ptr [rip + shape_pointer]",
    "  add rsp, 8",
    "  .cfi_def_cfa_offset 8",
    "  inc rax",
    "  ret",
    "end calls_by_memory",
    "shape calls_by_register",
    "  push r8",
    "  .cfi_def_cfa_offset 16",
    "  mov r8, qword ptr [rip + shape_pointer]",
    "  call r8",
    "  pop r8",
    "  .cfi_def_cfa_offset 8",
    "  inc rax",
    "  ret",
    "end calls_by_register",
    "shape calls_at_once",
    "  push rsi",
    "  .cfi_def_cfa_offset 16",
    "  nop",
    "  call r9",
    "  pop rsi",
    "  .cfi_def_cfa_offset 8",
    "  inc rax",
    "  ret",
    "end calls_at_once",
    "shape tail",
    "  add rdi, 1",
    "  jmp shape_plain",
    "end tail",
    "shape tail_by_memory",
    "  jmp qword ptr [rip + shape_pointer]",
    "end tail_by_memory",
    "shape saves",
    "  push rbx",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbx, -16",
    "  mov rbx, rdi",
    "  call shape_plain",
    "  add rax, rbx",
    "  pop rbx",
    "  .cfi_def_cfa_offset 8",
    "  ret",
    "end saves",
    "shape switch_with_frame", // the stack is another at the jump than where it begins
    "  push rdi",
    "  .cfi_def_cfa_offset 16",
    "  sub rsp, 16",
    "  .cfi_def_cfa_offset 32",
    "  and edi, 1",
    "  lea rax, [rip + 2f]",
    "  lea rcx, [rip + 3f]",
    "  test edi, edi",
    "  cmovz rax, rcx",
    "  jmp rax",
    "2:",
    "  mov eax, 11",
    "  add rsp, 24",
    "  .cfi_remember_state",
    "  .cfi_def_cfa_offset 8",
    "  ret",
    "3:",
    "  .cfi_restore_state",
    "  mov eax, 12",
    "  add rsp, 24",
    "  .cfi_def_cfa_offset 8",
    "  ret",
    "end switch_with_frame",
    "shape switch_with_pointer", // the frame pointer is the same, but the stack grows in between
    "  push rbp",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbp, -16",
    "  mov rbp, rsp",
    "  .cfi_def_cfa_register rbp",
    "  sub rsp, 16",
    "  and edi, 1",
    "  lea rcx, [rip + shape_with_pointer]",
    "  movsxd rax, dword ptr [rcx + rdi * 4]",
    "  add rax, rcx",
    "  jmp rax",
    "shape_12:",
    "  mov eax, 12",
    "  leave",
    "  .cfi_remember_state",
    "  .cfi_def_cfa rsp, 8",
    "  ret",
    "shape_11:",
    "  .cfi_restore_state",
    "  mov eax, 11",
    "  leave",
    "  .cfi_def_cfa rsp, 8",
    "  ret",
    "end switch_with_pointer",
    "shape tail_by_register", // as a call of a virtual function at the end
    "  push rdi",
    "  .cfi_def_cfa_offset 16",
    "  call shape_plain",
    "  pop rdi",
    "  .cfi_def_cfa_offset 8",
    "  lea rax, [rip + shape_plain]",
    "  jmp rax",
    "end tail_by_register",
    "shape recursive",
    "  mov eax, 1",
    "  test rdi, rdi",
    "  jle 2f",
    "  push rdi",
    "  .cfi_def_cfa_offset 16",
    "  dec rdi",
    "  call shape_recursive",
    "  pop rdi",
    "  .cfi_def_cfa_offset 8",
    "  add rax, rdi",
    "2:",
    "  ret",
    "end recursive",
    "shape switch_of_leaf", // none of its cases is its beginning
    "  mov edx, 5",
    "  and edi, 1",
    "  lea rcx, [rip + shape_of_leaf]",
    "  movsxd rax, dword ptr [rcx + rdi * 4]",
    "  add rax, rcx",
    "  jmp rax",
    "shape_21:",
    "  mov eax, 21",
    "  ret",
    "shape_22:",
    "  mov eax, 22",
    "  ret",
    "end switch_of_leaf",
    // What cannot.
    "shape short",
    "  mov eax, edi",
    "  ret",
    "end short",
    "shape loop",
    "  dec rdi",
    "  jns shape_loop",
    "  mov rax, rdi",
    "  ret",
    "end loop",
    "shape loop_behind_endbr",
    "  endbr64",
    "2:",
    "  dec rdi",
    "  jns 2b",
    "  mov rax, rdi",
    "  ret",
    "end loop_behind_endbr",
    "shape loop_within",
    "  mov eax, edi",
    "2:",
    "  add rax, 2",
    "  dec rdi",
    "  jns 2b",
    "  ret",
    "end loop_within",
    "shape jumped_into",
    "  xor eax, eax",
    "shape_inside:",
    "  add rax, rdi",
    "  ret",
    "end jumped_into",
    "shape jumps_into",
    "  mov eax, 1000",
    "  jmp shape_inside",
    "end jumps_into",
    "shape switch_at_once", // a case might begin with the second instruction
    "  sub rsp, 24",
    "  .cfi_def_cfa_offset 32",
    "  and edi, 1",
    "  lea rax, [rip + 2f]",
    "  lea rcx, [rip + 3f]",
    "  test edi, edi",
    "  cmovz rax, rcx",
    "  jmp rax",
    "2:",
    "  mov eax, 11",
    "  add rsp, 24",
    "  .cfi_remember_state",
    "  .cfi_def_cfa_offset 8",
    "  ret",
    "3:",
    "  .cfi_restore_state",
    "  mov eax, 12",
    "  add rsp, 24",
    "  .cfi_def_cfa_offset 8",
    "  ret",
    "end switch_at_once",
    "shape switch_in_leaf", // as large at its jump as at its third instruction
    "  push rbp",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbp, -16",
    "  mov rbp, rsp",
    "  .cfi_def_cfa_register rbp",
    "  and edi, 1",
    "  lea rax, [rip + 2f]",
    "  jmp rax",
    "2:",
    "  mov eax, 11",
    "  pop rbp",
    "  .cfi_def_cfa rsp, 8",
    "  ret",
    "end switch_in_leaf",
    "shape switch",
    "  mov eax, edi",
    "  and edi, 1",
    "  lea rcx, [rip + 2f]",
    "  jmp rcx",
    "2:",
    "  ret",
    "end switch",
    "shape call_by_stack",
    "  sub rsp, 8",
    "  .cfi_def_cfa_offset 16",
    "  call qword ptr [rsp]",
    "  add rsp, 8",
    "  .cfi_def_cfa_offset 8",
    "  ret",
    "end call_by_stack",
    "shape calls_too_early", // it would return to what has made way
    "  push rsi",
    "  .cfi_def_cfa_offset 16",
    "  call r9",
    "  pop rsi",
    "  .cfi_def_cfa_offset 8",
    "  ret",
    "end calls_too_early",
    "shape counted",
    "  mov rcx, rdi",
    "  jrcxz 2f",
    "  inc rcx",
    "2:",
    "  mov rax, rcx",
    "  ret",
    "end counted",
    "shape uses_rbx", // as a function of another language
    "  lea rax, [rbx + rdi + 100]",
    "  ret",
    "end uses_rbx",
    "shape changes_r14",
    "  lea rax, [rdi + rdi * 2]",
    "  mov r14, rax",
    "  ret",
    "end changes_r14",
    "shape not_called",
    "  .cfi_def_cfa_offset 48",
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  ret",
    "end not_called",
    "shape no_return",
    "  .cfi_undefined rip",
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  ret",
    "end no_return",
    "shape data_within",
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  ret",
    "  .byte 0x06, 0x06, 0x06",
    "end data_within",
    "shape cold_loop", // goes on elsewhere, and from there to its beginning
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  dec rdi",
    "  jns shape_cold_part",
    "  ret",
    "end cold_loop",
    "shape cold_part",
    "  mov eax, 100",
    "  sub rdi, 1",
    "  jmp shape_cold_loop",
    "end cold_part",
    "shape table", // with an entry for its second instruction, behind which the stack grows for a call
    "  push rbp",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbp, -16",
    "  mov rbp, rsp",
    "  .cfi_def_cfa_register rbp",
    "2:",
    "  push 8",
    "  call shape_plain",
    "  add rsp, 8",
    "  and eax, 1",
    "  lea rcx, [rip + 4f]",
    "  movsxd rax, dword ptr [rcx + rax * 4]",
    "  add rax, rcx",
    "  jmp rax",
    "3:",
    "  leave",
    "  .cfi_def_cfa rsp, 8",
    "  ret",
    "end table",
    ".pushsection .rodata",
    "  .balign 4",
    "4: .long 2b - 4b, 3b - 4b",
    ".popsection",
    "shape labels", // as above, by addresses
    "  push rbp",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbp, -16",
    "  mov rbp, rsp",
    "  .cfi_def_cfa_register rbp",
    "2:",
    "  push 8",
    "  call shape_plain",
    "  add rsp, 8",
    "  and eax, 1",
    "  lea rcx, [rip + 4f]",
    "  jmp qword ptr [rcx + rax * 8]",
    "3:",
    "  leave",
    "  .cfi_def_cfa rsp, 8",
    "  ret",
    "end labels",
    ".pushsection .data.rel.ro, \"aw\"",
    "  .balign 8",
    "4: .quad 2b, 3b",
    ".popsection",
    "shape offsets", // as above, by distances from one of its instructions
    "  push rbp",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbp, -16",
    "  mov rbp, rsp",
    "  .cfi_def_cfa_register rbp",
    "2:",
    "  push 8",
    "  call shape_plain",
    "  add rsp, 8",
    "  and eax, 1",
    "  lea rcx, [rip + 3f]",
    "  lea rdx, [rip + 4f]",
    "  movsxd rax, dword ptr [rdx + rax * 4]",
    "  add rax, rcx",
    "  jmp rax",
    "3:",
    "  leave",
    "  .cfi_def_cfa rsp, 8",
    "  ret",
    "end offsets",
    ".pushsection .rodata",
    "  .balign 4",
    "4: .long 2b - 3b, 0",
    ".popsection",
    "shape turns", // a case of its is its beginning
    "2:",
    "  movzx eax, byte ptr [rdi + 1000]",
    "  inc rdi",
    "  lea rcx, [rip + 4f]",
    "  jmp qword ptr [rcx + rax * 8]",
    "3:",
    "  ret",
    "end turns",
    ".pushsection .data.rel.ro, \"aw\"",
    "  .balign 8",
    "4: .quad 2b, 3b",
    ".popsection",
    "shape turns_by_table",
    "2:",
    "  movzx eax, byte ptr [rdi + 1000]",
    "  inc rdi",
    "  lea rcx, [rip + 4f]",
    "  movsxd rax, dword ptr [rcx + rax * 4]",
    "  add rax, rcx",
    "  jmp rax",
    "3:",
    "  ret",
    "end turns_by_table",
    ".pushsection .rodata",
    "  .balign 4",
    "4: .long 2b - 4b, 3b - 4b",
    ".popsection",
    "shape by_thunk", // as its second instruction's stack is that of its indirect jump
    "  xor eax, eax",
    "2:",
    "  add rax, [rdi]",
    "  mov rcx, [rdi + 8]",
    "  add rdi, 16",
    "  jmp shape_thunk",
    "end by_thunk",
    "shape thunk",
    "  call 3f",
    "2: pause",
    "  lfence",
    "  jmp 2b",
    "3:",
    "  mov [rsp], rcx",
    "  ret",
    "end thunk",
    "shape by_fence",
    "  xor eax, eax",
    "2:",
    "  add rax, [rdi]",
    "  mov rcx, [rdi + 8]",
    "  add rdi, 16",
    "  jmp shape_fence",
    "end by_fence",
    "shape fence",
    "  lfence",
    "  jmp rcx",
    "end fence",
    "shape by_return",
    "  xor eax, eax",
    "2:",
    "  add rax, [rdi]",
    "  mov rcx, [rdi + 8]",
    "  add rdi, 16",
    "  call 3f",
    "2: pause",
    "  jmp 2b",
    "3:",
    "  mov [rsp], rcx",
    "  ret",
    "end by_return",
    "shape second_entry",
    "  xor esi, esi",
    "  .globl shape_second",
    "shape_second:",
    "  lea rax, [rdi + rsi]",
    "  ret",
    "end second_entry",
    "shape address_within",
    "  xor eax, eax",
    "2:",
    "  add rax, rdi",
    "  ret",
    "end address_within",
    "shape knows_within",
    "  lea rax, [rip + 2b]",
    "  ret",
    "end knows_within",
    "shape jumped_into_by_others",
    "  xor eax, eax",
    "2:",
    "  add rax, rdi",
    "  ret",
    "end jumped_into_by_others",
    "shape continues", // jumped to with something else than a return address on top of the stack
    "  pop rcx",
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  ret",
    "end continues",
    "shape continued",
    "  lea rax, [rdi + rdi * 4 + 100]",
    "  ret",
    "end continued",
    "shape continues_there",
    "  push rdi",
    "  .cfi_def_cfa_offset 16",
    "  test edi, edi",
    "  jmp shape_continued",
    "end continues_there",
    "shape coroutine", // is somebody else with the same rbx
    "  mov [rdi], rsp",
    "  mov rsp, rsi",
    "  ret",
    "end coroutine",
    "shape exchanges",
    "  xchg rsp, [rdi]",
    "  nop dword ptr [rax]",
    "  ret",
    "end exchanges",
    "shape looks_back",
    "  mov rax, [rsp]",
    "  sub rax, rdi",
    "  ret",
    "end looks_back",
    "shape looks_back_with_pointer",
    "  push rbp",
    "  .cfi_def_cfa_offset 16",
    "  .cfi_offset rbp, -16",
    "  mov rbp, rsp",
    "  .cfi_def_cfa_register rbp",
    "  lea rax, [rbp + 8]",
    "  pop rbp",
    "  .cfi_def_cfa rsp, 8",
    "  ret",
    "end looks_back_with_pointer",
    "shape takes_back",
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  pop rdx",
    "  jmp rdx",
    "end takes_back",
    "  .balign 32",
    "shape_other:", // no function at all
    "  mov eax, 1000",
    "  jmp shape_jumped_into_by_others + 2",
    "  .balign 32",
    "  .type shape_no_frame, @function",
    "shape_no_frame:",
    "  lea rax, [rdi + rdi * 2 + 100]",
    "  ret",
    "  .size shape_no_frame, . - shape_no_frame",
    ".data",
    "  .balign 8",
    "shape_word: .long 4242",
    "  .balign 8",
    "shape_pointer: .quad shape_plain",
    ".section .rodata",
    "  .balign 4",
    "shape_with_pointer: .long shape_12 - shape_with_pointer, shape_11 - shape_with_pointer",
    "shape_of_leaf: .long shape_21 - shape_of_leaf, shape_22 - shape_of_leaf",
    ".text",
);

unsafe extern "C" {
    safe static shape_plain: u8;
}

fn shapes() -> Plan {
    let file = fs::read("/proc/self/exe").unwrap();
    plan(&file, |name| name.starts_with("shape_")).unwrap()
}

fn entry<'a>(plan: &'a Plan, name: &str) -> &'a Entry {
    plan.entries
        .iter()
        .find(|entry| entry.name == format!("shape_{name}"))
        .unwrap_or_else(|| panic!("{name}: {plan:?}"))
}

/// What this program's addresses are relative to.
fn base(plan: &Plan) -> u64 {
    (&raw const shape_plain as u64) - entry(plan, "plain").address
}

/// Code that can be executed, near this program's own.
fn place(moved: &Moved, base: u64) -> extern "C" fn(i64) -> i64 {
    let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    for step in 1..1000 {
        let at = (base & !0xfff) - step * 0x10000;
        // SAFETY: a new mapping, of a page, where nothing is.
        let page = unsafe { libc::mmap(at as *mut libc::c_void, 4096, access, flags, -1, 0) };
        if page != libc::MAP_FAILED {
            let code = moved.placed(page as u64, base).unwrap();
            // SAFETY: the page is this function's, and the code is a function's.
            unsafe {
                std::ptr::copy_nonoverlapping(code.as_ptr(), page.cast(), code.len());
                return std::mem::transmute::<*mut libc::c_void, extern "C" fn(i64) -> i64>(page);
            }
        }
    }
    panic!("no room");
}

#[test]
fn what_is_moved_does_the_same() {
    let plan = shapes();
    let base = base(&plan);
    let results = |name: &str| {
        let function = place(&entry(&plan, name).moved, base);
        [-3, 0, 1, 9].map(|argument| function(argument))
    };
    assert_eq!(results("plain"), [91, 100, 103, 127]);
    assert_eq!(results("endbr"), [4, 7, 8, 16]);
    assert_eq!(results("data"), [4239, 4242, 4243, 4251]);
    assert_eq!(results("compare"), [-2, 1, 2, 10]);
    assert_eq!(results("branch"), [-1, -1, 1, 9]);
    assert_eq!(results("far_branch"), [-2, 0, 1, -2]);
    assert_eq!(results("calls"), [92, 101, 104, 128]);
    assert_eq!(results("calls_by_memory"), [92, 101, 104, 128]);
    assert_eq!(results("calls_by_register"), [92, 101, 104, 128]);
    assert_eq!(results("tail"), [94, 103, 106, 130]);
    assert_eq!(results("tail_by_memory"), [91, 100, 103, 127]);
    assert_eq!(results("saves"), [88, 100, 104, 136]);
    assert_eq!(results("switch_with_frame"), [11, 12, 11, 11]);
    assert_eq!(results("switch_with_pointer"), [11, 12, 11, 11]);
    assert_eq!(results("switch_of_leaf"), [22, 21, 22, 22]);
    assert_eq!(results("tail_by_register"), [91, 100, 103, 127]);
    assert_eq!(results("recursive"), [1, 1, 2, 46]);
}

#[test]
fn a_call_through_a_register_returns_to_the_function() {
    let plan = shapes();
    let function = place(&entry(&plan, "calls_at_once").moved, base(&plan));
    // SAFETY: the shape's ninth register is what it calls.
    let function = unsafe {
        std::mem::transmute::<
            extern "C" fn(i64) -> i64,
            extern "C" fn(i64, i64, i64, i64, i64, *const u8) -> i64,
        >(function)
    };
    assert_eq!(function(5, 0, 0, 0, 0, &raw const shape_plain), 116);
}

#[test]
fn only_what_makes_way_is_replaced() {
    let plan = shapes();
    let file = fs::read("/proc/self/exe").unwrap();
    for entry in &plan.entries {
        assert!(entry.replaced.len() >= topdown_patch::JUMP, "{}", entry.name);
        assert!(file.windows(entry.replaced.len()).any(|bytes| bytes == entry.replaced), "{}", entry.name);
    }
    assert_eq!(entry(&plan, "calls").replaced.len(), 9); // whole instructions
    assert_eq!(entry(&plan, "endbr").replaced, [0x48, 0x89, 0xf8, 0x48, 0x83, 0xc0, 0x07]); // behind endbr64
}

#[test]
fn a_function_that_a_jump_could_break_is_refused() {
    let plan = shapes();
    let refused = |name: &str| {
        let name = format!("shape_{name}");
        plan.refused.iter().find(|(other, _)| *other == name).map(|(_, why)| *why)
    };
    for (name, why) in [
        ("short", Refusal::Short),
        ("loop", Refusal::Loop),
        ("loop_behind_endbr", Refusal::Loop),
        ("loop_within", Refusal::JumpedInto),
        ("jumped_into", Refusal::JumpedInto),
        ("switch", Refusal::JumpedInto),
        ("switch_in_leaf", Refusal::JumpedInto),
        ("switch_at_once", Refusal::JumpedInto),
        ("call_by_stack", Refusal::Fixed),
        ("calls_too_early", Refusal::Fixed),
        ("counted", Refusal::Fixed),
        ("uses_rbx", Refusal::Registers),
        ("changes_r14", Refusal::Registers),
        ("not_called", Refusal::NotCalled),
        ("no_return", Refusal::NotCalled),
        ("data_within", Refusal::NotCode),
        ("cold_loop", Refusal::Loop),
        ("table", Refusal::JumpedInto),
        ("labels", Refusal::JumpedInto),
        ("offsets", Refusal::JumpedInto),
        ("turns", Refusal::Loop),
        ("turns_by_table", Refusal::Loop),
        ("by_thunk", Refusal::JumpedInto),
        ("by_fence", Refusal::JumpedInto),
        ("by_return", Refusal::JumpedInto),
        ("second_entry", Refusal::JumpedInto),
        ("address_within", Refusal::JumpedInto),
        ("jumped_into_by_others", Refusal::JumpedInto),
        ("continues", Refusal::ReturnAddress),
        ("continued", Refusal::NotCalled),
        ("coroutine", Refusal::Registers),
        ("exchanges", Refusal::Registers),
        ("looks_back", Refusal::ReturnAddress),
        ("looks_back_with_pointer", Refusal::ReturnAddress),
        ("takes_back", Refusal::ReturnAddress),
        ("no_frame", Refusal::NoFrame),
    ] {
        assert_eq!(refused(name), Some(why), "{name}");
    }
    assert_eq!(refused("jumps_into"), None);
    entry(&plan, "jumps_into");
}

#[test]
fn a_place_too_far_away_is_none() {
    let plan = shapes();
    let moved = &entry(&plan, "plain").moved;
    assert_eq!(moved.placed(1 << 40, 0), None);
    assert!(moved.placed(1 << 30, 0).is_some());
}

#[test]
fn what_is_no_program_is_refused() {
    assert_eq!(plan(b"#!/bin/sh\n", |_| true).err(), Some(Unfit::NotX86));
    assert_eq!(plan(&[], |_| true).err(), Some(Unfit::NotX86));
    let file = fs::read("/proc/self/exe").unwrap();
    // cut or damaged anywhere, it ends with a plan or a reason
    for length in (0..file.len()).step_by(file.len() / 50) {
        let _ = plan(&file[..length], |name| name.starts_with("shape_"));
    }
}
