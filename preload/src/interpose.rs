//! Functions of the C library that pass through here: those that start threads, and those that end the process or its
//! program without its destructors being run, or may forbid it the system calls that are needed then.

use crate::at_work::{self, AtWork};
use crate::{elsewhere, end, memory, process, sandbox, threads};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a function means to us.
#[derive(Clone, Copy)]
enum ProcessEffect {
    /// The process ends.
    End,
    /// The process ends, after the program's functions for that (atexit).
    Exit,
    /// Another program takes its place, if that works.
    Exec,
    /// The process may end.
    Perhaps,
    /// What the process may do from now on may be restricted.
    Prctl,
    Syscall,
}

/// The next definition of a function of this name after ours.
pub fn real(name: &CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let mut at = known.load(Ordering::Relaxed);
    if at.is_null() {
        // SAFETY: a C string.
        at = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        known.store(at, Ordering::Relaxed);
    }
    at
}

/// The way of a function here to what it means, with its number; its arguments stay.
#[cfg(target_arch = "x86_64")]
macro_rules! pass {
    ($number:literal) => {
        concat!("push rax\n", "mov eax, ", $number, "\n", "jmp topdown_pass")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! pass {
    ($number:literal) => {
        concat!("hint #34\n", "mov w16, #", $number, "\n", "b topdown_pass") // (BTI C)
    };
}

/// Functions that keep their arguments, whatever these are: registers are saved, `before` says where to go on.
macro_rules! pass_through {
    ($($number:literal $name:literal $means:ident,)*) => {
        const FUNCTIONS: &[(&CStr, ProcessEffect)] = &[
            $((match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) { Ok(name) => name, Err(_) => panic!() },
               ProcessEffect::$means),)*
        ];
        $(std::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            ".cfi_startproc",
            pass!($number),
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
        );)*
    };
}

pass_through! {
    0 "_exit" End,
    1 "_Exit" End,
    2 "quick_exit" End,
    3 "abort" Perhaps,
    4 "execve" Exec,
    5 "execv" Exec,
    6 "execvp" Exec,
    7 "execvpe" Exec,
    8 "execl" Exec,
    9 "execlp" Exec,
    10 "execle" Exec,
    11 "fexecve" Exec,
    12 "execveat" Exec,
    13 "prctl" Prctl,
    14 "syscall" Syscall,
    15 "exit" Exit,
}

// With a function's number in eax, and rax on the stack.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".hidden topdown_pass",
    ".globl topdown_pass",
    "topdown_pass:",
    "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
    "mov r8, rcx", "mov rcx, rdx", "mov rdx, rsi", "mov rsi, rdi", "mov edi, eax",
    "call {before}",
    "mov r11, rax",
    "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi", "pop rax",
    "jmp r11",
    before = sym before,
);

// With a function's number in w16. (No function of these has a vector register for an argument.)
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".hidden topdown_pass",
    ".globl topdown_pass",
    "topdown_pass:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-80]!",
    ".cfi_def_cfa_offset 80",
    ".cfi_offset 29, -80",
    ".cfi_offset 30, -72",
    "mov x29, sp",
    "stp x0, x1, [sp, #16]",
    "stp x2, x3, [sp, #32]",
    "stp x4, x5, [sp, #48]",
    "stp x6, x7, [sp, #64]",
    "mov x4, x3", "mov x3, x2", "mov x2, x1", "mov x1, x0", "mov w0, w16",
    "bl {before}",
    "mov x16, x0",
    "ldp x0, x1, [sp, #16]",
    "ldp x2, x3, [sp, #32]",
    "ldp x4, x5, [sp, #48]",
    "ldp x6, x7, [sp, #64]",
    "ldp x29, x30, [sp], #80",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore 29",
    ".cfi_restore 30",
    "br x16",
    ".cfi_endproc",
    before = sym before,
);

static REAL: [AtomicPtr<c_void>; FUNCTIONS.len()] = [const { AtomicPtr::new(null_mut()) }; FUNCTIONS.len()];

/// Looks them all up, before anybody calls one in a signal handler, where dlsym may not be called.
pub fn prepare() {
    FUNCTIONS.iter().zip(&REAL).for_each(|((name, _), known)| _ = real(name, known));
}

/// Returns the function itself, which is about to be called with these first arguments.
unsafe extern "C" fn before(number: u32, a: usize, b: usize, c: usize, d: usize) -> *mut c_void {
    let _work = AtWork::new();
    let (name, means) = FUNCTIONS[number as usize];
    match means {
        ProcessEffect::End => end::finish(),
        ProcessEffect::Exit => end::exits(),
        ProcessEffect::Exec => {
            end::update(true);
            elsewhere::leave_out();
        }
        ProcessEffect::Perhaps => end::update(false),
        ProcessEffect::Prctl => sandbox::prctl([a, b, c]),
        ProcessEffect::Syscall => sandbox::syscall([a, b, c, d]),
    }
    real(name, &REAL[number as usize])
}

/// What a new thread is to run.
struct ThreadStart {
    run: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
}

/// A thread begins. (Of C11's threads, too: they return a number, which is the lower half of a pointer's register.)
unsafe extern "C-unwind" fn thread(start: *mut c_void) -> *mut c_void {
    // SAFETY: made by `launch`, for this call.
    let ThreadStart { run, argument } = *unsafe { Box::from_raw(start.cast::<ThreadStart>()) };
    at_work::begin(threads::measure);
    // SAFETY: the program's own function and argument.
    unsafe { run(argument) }
}

/// Starts a thread by `create`, by way of `thread`; the result is that function's, 0 if it did.
unsafe fn launch(
    run: *const c_void,
    argument: *mut c_void,
    create: impl FnOnce(*mut c_void, *mut c_void) -> c_int,
) -> c_int {
    let work = AtWork::new();
    // (without memory the thread begins as it would, and is not measured unless it comes to a region)
    if !process::active() || !memory::secure(size_of::<ThreadStart>()) {
        drop(work);
        return create(run.cast_mut(), argument);
    }
    // SAFETY: the program's word: a function of a thread.
    let run =
        unsafe { transmute::<*const c_void, unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void>(run) };
    let start = Box::into_raw(Box::new(ThreadStart { run, argument }));
    drop(work); // what it starts a thread with is the program's
    let code = create(thread as *mut c_void, start.cast());
    if code != 0 {
        // SAFETY: no thread got it.
        drop(unsafe { Box::from_raw(start) });
    }
    code
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    id: *mut c_void,
    attributes: *const c_void,
    run: *const c_void,
    argument: *mut c_void,
) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    type Create = unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, *mut c_void) -> c_int;
    // SAFETY: the C library's function of this type; the arguments are the program's.
    unsafe {
        let create: Create = transmute(real(c"pthread_create", &REAL));
        launch(run, argument, |run, argument| create(id, attributes, run, argument))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_create(id: *mut c_void, run: *const c_void, argument: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    type Create = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int;
    // SAFETY: as above.
    unsafe {
        let create: Create = transmute(real(c"thrd_create", &REAL));
        launch(run, argument, |run, argument| create(id, run, argument))
    }
}
