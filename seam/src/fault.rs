//! RDPMC that is taken away while handles are open: who writes 0 to the PMU's `rdpmc` file in sysfs makes it fault in every
//! program. The page does not tell (its capability is that of the moment of the open), and between any question and the
//! instruction it may change, so the fault itself has to be survived.
//!
//! The kernel sends a thread that faults in a restartable sequence to the abort handler, before it delivers the
//! signal. Ours begin with an instruction that does nothing and bears a mark; so does what follows an RDPMC outside of a
//! sequence. The handler of SIGSEGV here looks for the mark where the thread goes on, if signal and registers are those of an
//! RDPMC that faulted and there is memory that can be read; all else is for the handler that was there before, which gets
//! the stack frame that the kernel made. docs/failures.md weighs the alternatives.

use super::rdpmc::{METRICS, SLOTS};
use libc::{c_int, c_void, sigaction, siginfo_t, sigset_t, ucontext_t};
use std::arch::{asm, global_asm};
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, transmute, zeroed};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The marked instruction is `nop dword ptr [rax + MARK]`.
pub const MARK: u32 = 0x4e57_4454;
const NOP: [u8; 3] = [0x0f, 0x1f, 0x80];
/// Bytes of it.
const MARKED: usize = NOP.len() + size_of::<u32>();
const RDPMC: [u8; 2] = [0x0f, 0x33];

/// General protection, as the CPU numbers its exceptions.
const GENERAL_PROTECTION: i64 = 13;
/// `si_code` of signals that the kernel sends for no better reason.
const SI_KERNEL: c_int = 0x80;

type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

static FAULTS: AtomicU64 = AtomicU64::new(0);

/// How often RDPMC of ours has faulted in this process.
pub fn count() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

/// What was there before. Written once, before the handler is installed, and read by it.
struct Previous(UnsafeCell<MaybeUninit<sigaction>>);
// SAFETY: whoever is at `STATE` alone writes it, and none reads it before that is done.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::uninit()));
/// It was to be called once (SA_RESETHAND), and was.
static SPENT: AtomicBool = AtomicBool::new(false);

/// The process that is installing the handler; 0 for none, `DONE` when it is done.
static STATE: AtomicU32 = AtomicU32::new(0);
const DONE: u32 = u32::MAX;

/// The mark that this library's RDPMC bear. Another library with this code in it has a handler and a mark of its own: the
/// handlers pass each other's faults on.
static OWN_MARK: AtomicU32 = AtomicU32::new(MARK);

/// From now on RDPMC of ours may fault; false if nothing can be done about that. The handler is installed once: a
/// program that puts its own in its place wants to have the last word.
pub fn survive() -> bool {
    survive_marked(MARK)
}

/// As `survive`, for a library whose RDPMC bear another mark.
pub fn survive_marked(mark: u32) -> bool {
    OWN_MARK.store(mark, Ordering::Relaxed);
    let process = std::process::id();
    for _ in 0..1000 {
        match STATE.compare_exchange(0, process, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => return install(),
            Err(DONE) => return true,
            // a thread of the parent's, which this forked child does not have
            Err(holder) if holder != process => {
                let taken = STATE.compare_exchange(holder, process, Ordering::Acquire, Ordering::Acquire);
                if taken.is_ok() {
                    return install();
                }
            }
            Err(_) => std::thread::yield_now(),
        }
    }
    false
}

fn install() -> bool {
    let marked = topdown_on_fault as *const () as usize;
    let handler = if OWN_MARK.load(Ordering::Relaxed) == MARK { marked } else { marked + MARKED };
    // SAFETY: plain data, of which zeros are values; what is installed is a handler of that type; nobody else is here.
    let done = unsafe {
        let mut previous: sigaction = zeroed();
        let asked = libc::sigaction(libc::SIGSEGV, null(), &mut previous) == 0;
        if asked && previous.sa_sigaction != handler {
            let mut ours: sigaction = zeroed();
            if is_handler(&previous) {
                ours.sa_flags = previous.sa_flags & !libc::SA_RESETHAND;
            } else {
                ours.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
            }
            ours.sa_flags |= libc::SA_SIGINFO;
            // nothing that could read comes between: with SIGSEGV blocked a fault is the end
            libc::sigfillset(&mut ours.sa_mask);
            ours.sa_sigaction = handler;
            (*PREVIOUS.0.get()).write(previous);
            stay_loaded(handler);
            libc::sigaction(libc::SIGSEGV, &ours, null_mut()) == 0
        } else {
            asked
        }
    };
    STATE.store(if done { DONE } else { 0 }, Ordering::Release);
    done
}

/// The object that this code is in is not to be unloaded: libtopdown.so is linked so, but the static library may be in
/// another.
fn stay_loaded(code: usize) {
    // SAFETY: an address of ours, and the name that the dynamic linker has for its object.
    unsafe {
        let mut here: libc::Dl_info = zeroed();
        if libc::dladdr(code as *const c_void, &mut here) != 0 {
            libc::dlopen(here.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

fn is_handler(action: &sigaction) -> bool {
    ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
}

unsafe extern "C" {
    /// The handler. Its code begins with the mark: so other copies of this library know it.
    fn topdown_on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void);
}

// What comes next runs in the place of this handler: in the kernel's frame, which it may leave in any way, as by an exception.
global_asm!(
    ".globl topdown_on_fault",
    ".hidden topdown_on_fault",
    ".type topdown_on_fault, @function",
    "topdown_on_fault:",
    ".cfi_startproc",
    ".byte 0x0f, 0x1f, 0x80",
    ".long {MARK}",
    "push rdi",
    ".cfi_adjust_cfa_offset 8",
    "push rsi",
    ".cfi_adjust_cfa_offset 8",
    "push rdx",
    ".cfi_adjust_cfa_offset 8",
    "call {next}",
    "pop rdx",
    ".cfi_adjust_cfa_offset -8",
    "pop rsi",
    ".cfi_adjust_cfa_offset -8",
    "pop rdi",
    ".cfi_adjust_cfa_offset -8",
    "mov r11, rax",
    "xor eax, eax", // as the kernel has it
    "jmp r11",
    ".cfi_endproc",
    ".size topdown_on_fault, . - topdown_on_fault",
    MARK = const MARK,
    next = sym next,
);

/// What is to be done about the signal.
unsafe extern "C" fn next(signal: c_int, info: *mut siginfo_t, context: *mut c_void) -> Handler {
    // SAFETY: the kernel gives a handler with SA_SIGINFO both.
    unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let Some(way_on) = way_on(&*info, registers) else { return previous(signal, info, context) };
        FAULTS.fetch_add(1, Ordering::Relaxed);
        if previous_is_a_copy() {
            return previous(signal, info, context); // it is to know, too: the RDPMC may be its own
        }
        go_on(registers, way_on);
        nothing
    }
}

unsafe extern "C" fn nothing(_: c_int, _: *mut siginfo_t, _: *mut c_void) {}

/// Whether the handler before this one is that of another copy of this library, which has the same mark.
///
/// # Safety
/// `install` has written what was there before.
unsafe fn previous_is_a_copy() -> bool {
    // SAFETY: the caller's word.
    let previous = unsafe { (*PREVIOUS.0.get()).assume_init_ref() };
    OWN_MARK.load(Ordering::Relaxed) == MARK && is_handler(previous) && bears(previous.sa_sigaction, MARK)
}

/// Where the thread can go on, if the fault was an RDPMC of ours: at the abort handler of its sequence, where it is, or
/// behind the instruction.
fn way_on(info: &siginfo_t, registers: &[i64; 23]) -> Option<usize> {
    let register = |number: c_int| registers[number as usize];
    // SAFETY: any bits make an address.
    let nowhere = unsafe { info.si_addr() }.is_null();
    let refused = register(libc::REG_TRAPNO) == GENERAL_PROTECTION && register(libc::REG_ERR) == 0;
    let Ok(counter) = u32::try_from(register(libc::REG_RCX)) else { return None };
    if info.si_code != SI_KERNEL || !nowhere || !refused {
        return None;
    }
    // this can be anywhere: the numbers in the registers may be those of an earlier fault, and a jump to where no address
    // is faults so on some CPUs
    let at = register(libc::REG_RIP) as usize;
    let mark = OWN_MARK.load(Ordering::Relaxed);
    if bears(at, mark) {
        // a sequence may fault elsewhere, as in RDTSC where that is forbidden
        return [SLOTS, METRICS].contains(&counter).then_some(at);
    }
    let next = at.wrapping_add(RDPMC.len());
    (code(at)?.starts_with(&RDPMC) && bears(next, mark)).then_some(next)
}

/// Behind the instruction, it has read 0, and left -1 where the counter's number was.
fn go_on(registers: &mut [i64; 23], next: usize) {
    if registers[libc::REG_RIP as usize] != next as i64 {
        registers[libc::REG_RIP as usize] = next as i64;
        registers[libc::REG_RAX as usize] = 0;
        registers[libc::REG_RDX as usize] = 0;
        registers[libc::REG_RCX as usize] = -1;
    }
}

/// Whether the instruction is the one that does nothing and bears this mark.
fn bears(at: usize, mark: u32) -> bool {
    code(at).is_some_and(|code| code.starts_with(&NOP) && code[NOP.len()..MARKED] == mark.to_le_bytes())
}

/// The bytes at an address, if they can be read: the kernel looks at them first, as at a set of signals for an operation
/// that does not exist. (More than a marked instruction has: another one follows each.)
fn code(at: usize) -> Option<[u8; 8]> {
    const NO_OPERATION: c_int = -1;
    // SAFETY: the kernel changes nothing, and says EFAULT of what cannot be read; any bytes are bytes.
    unsafe {
        let can_be_read = sigprocmask(NO_OPERATION, at as *const u64) == -i64::from(libc::EINVAL);
        can_be_read.then(|| (at as *const [u8; 8]).read_volatile())
    }
}

/// rt_sigprocmask(2) without the C library: errno stays, and no signal is taken out of the set.
///
/// # Safety
/// The set is one to be blocked here, or `how` is no operation.
unsafe fn sigprocmask(how: c_int, set: *const u64) -> i64 {
    let mut result = libc::SYS_rt_sigprocmask;
    // SAFETY: a system call, which changes these registers and the mask that the caller vouches for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") i64::from(how),
            in("rsi") set,
            in("rdx") 0,
            in("r10") size_of::<u64>(),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// What would be done without this handler.
///
/// # Safety
/// As the kernel calls a handler.
unsafe fn previous(signal: c_int, info: *mut siginfo_t, context: *mut c_void) -> Handler {
    // SAFETY: `install` wrote it before this could be called. The previous handler finds in its registers what the kernel
    // gives one with SA_SIGINFO, which is enough for others, too; the rest is plain system calls, after which errno is as
    // it was.
    unsafe {
        let previous = (*PREVIOUS.0.get()).assume_init_ref();
        let once = previous.sa_flags & libc::SA_RESETHAND != 0;
        let sent = (*info).si_code <= 0;
        if is_handler(previous) && !(once && SPENT.swap(true, Ordering::Relaxed)) {
            mask_for(previous, context);
            return transmute::<usize, Handler>(previous.sa_sigaction);
        }
        if previous.sa_sigaction != libc::SIG_IGN || !sent {
            // the same signal once more, which ends the process as this handler returns
            let errno = *libc::__errno_location();
            by_default(signal);
            let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info);
            *libc::__errno_location() = errno;
        }
        nothing
    }
}

/// Blocks what would be blocked in the previous handler, and no more.
///
/// # Safety
/// `context` is the kernel's, of a handler that is running.
unsafe fn mask_for(previous: &sigaction, context: *mut c_void) {
    // SAFETY: the kernel's sets are 64 bits, the first of those that the C library has room for.
    unsafe {
        let bits = |set: *const sigset_t| set.cast::<u64>().read();
        let mut blocked =
            bits(&raw const (*context.cast::<ucontext_t>()).uc_sigmask) | bits(&previous.sa_mask);
        if previous.sa_flags & libc::SA_NODEFER == 0 {
            blocked |= 1 << (libc::SIGSEGV - 1);
        }
        sigprocmask(libc::SIG_SETMASK, &blocked);
    }
}

/// # Safety
/// None.
unsafe fn by_default(signal: c_int) {
    // SAFETY: zeros are the default action.
    unsafe {
        let default: MaybeUninit<sigaction> = MaybeUninit::zeroed();
        libc::sigaction(signal, default.as_ptr(), null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages, and none behind them.
    fn pages(protection: c_int) -> usize {
        // SAFETY: new memory.
        let at = unsafe {
            libc::mmap(null_mut(), 8192, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: the second page is ours, and nobody knows it yet.
        unsafe { libc::munmap(at.wrapping_byte_add(4096), 4096) };
        at as usize
    }

    #[test]
    fn code_is_read_where_there_is_some() {
        let page = pages(libc::PROT_READ | libc::PROT_WRITE);
        let end = page + 4096;
        // SAFETY: eight bytes of the page.
        unsafe { ((end - 8) as *mut [u8; 8]).write(*b"mnopqrst") };
        assert_eq!(code(end - 8), Some(*b"mnopqrst"));
        for at in [end - 7, end - 1, end, pages(libc::PROT_NONE), 0, 8, usize::MAX, usize::MAX - 7] {
            assert_eq!(code(at), None, "{at:#x}");
        }
        // of the kernel, the vsyscall page, no addresses at all
        for at in [0xffff_ffff_8100_0000, 0xffff_ffff_ff60_0000, 1 << 62, (1 << 47) - 4, 1 << 47] {
            assert_eq!(code(at), None, "{at:#x}");
        }
    }

    #[test]
    fn only_a_fault_of_ours_goes_on() {
        // SAFETY: zeros are a siginfo_t.
        let mut info: siginfo_t = unsafe { zeroed() };
        info.si_code = SI_KERNEL;
        let mut text = [0x90u8; 24];
        text[1..3].copy_from_slice(&RDPMC);
        text[3..6].copy_from_slice(&NOP);
        text[6..10].copy_from_slice(&MARK.to_le_bytes());
        let rdpmc = text.as_ptr() as usize + 1;
        let of = |rip: usize, trap: i64, error: i64, counter: i64| {
            let mut registers = [0; 23];
            registers[libc::REG_RIP as usize] = rip as i64;
            registers[libc::REG_TRAPNO as usize] = trap;
            registers[libc::REG_ERR as usize] = error;
            registers[libc::REG_RCX as usize] = counter;
            registers
        };
        let slots = i64::from(SLOTS);
        assert_eq!(way_on(&info, &of(rdpmc, 13, 0, slots)), Some(rdpmc + 2));
        assert_eq!(way_on(&info, &of(rdpmc + 2, 13, 0, slots)), Some(rdpmc + 2), "an abort handler");
        assert_eq!(way_on(&info, &of(rdpmc + 2, 13, 0, 7)), None, "which RDPMC did not lead to");
        for elsewhere in [rdpmc - 1, rdpmc + 1, rdpmc + 9, 0, 8, 1 << 62, 0xffff_ffff_ff60_0000] {
            assert_eq!(way_on(&info, &of(elsewhere, 13, 0, slots)), None, "{elsewhere:#x}");
        }
        assert_eq!(way_on(&info, &of(rdpmc, 14, 0, slots)), None, "a page fault");
        assert_eq!(way_on(&info, &of(rdpmc, 13, 8, slots)), None, "of a selector");
        assert_eq!(way_on(&info, &of(rdpmc, 13, 0, -1)), None, "of no counter");
        for sent in [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL, 1, 2] {
            info.si_code = sent;
            assert_eq!(way_on(&info, &of(rdpmc, 13, 0, slots)), None);
        }
    }
}
