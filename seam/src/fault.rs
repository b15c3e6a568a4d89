//! RDPMC that is taken away while handles are open: who writes 0 to the PMU's `rdpmc` file in sysfs makes it fault in every
//! program. The page does not tell (its capability is that of the moment of the open), and between any question and the
//! instruction it may change, so the fault itself has to be survived.
//!
//! The kernel sends a thread that faults in a restartable sequence to the abort handler, before it delivers the
//! signal. Ours begin with an instruction that does nothing and bears a mark; so does what follows an RDPMC outside of a
//! sequence. The handler of SIGSEGV here looks for the mark where the thread goes on, if signal and registers are those of an
//! RDPMC that faulted and there is memory that can be read; all else is for the handler that was there before, which gets
//! the stack frame that the kernel made. docs/failures.md has the alternatives.

use super::chained::{ChainedAction, Handler, InstallOutcome, nothing, sigprocmask};
use super::once::{ProcessOnce, stay_loaded};
use super::rdpmc::{FIXED, METRICS};
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use std::arch::global_asm;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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

static FAULTS: AtomicU64 = AtomicU64::new(0);

/// How often RDPMC of ours has faulted in this process.
pub fn count() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

static CHAINED: ChainedAction = ChainedAction::new(libc::SIGSEGV);

static INSTALLED: ProcessOnce = ProcessOnce::new();

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
    INSTALLED.run(install)
}

fn install() -> bool {
    let marked = topdown_on_fault as *const () as usize;
    let handler = if OWN_MARK.load(Ordering::Relaxed) == MARK { marked } else { marked + MARKED };
    stay_loaded(handler);
    // SAFETY: that is where the handler's code begins, or behind its mark; nobody else is here.
    unsafe { CHAINED.install(handler, false) == InstallOutcome::Yes }
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
unsafe extern "C" fn next(_: c_int, info: *mut siginfo_t, context: *mut c_void) -> Handler {
    // SAFETY: the kernel gives a handler with SA_SIGINFO both.
    unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let Some(way_on) = way_on(&*info, registers) else { return CHAINED.next(info, context) };
        FAULTS.fetch_add(1, Ordering::Relaxed);
        if previous_is_a_copy() {
            return CHAINED.next(info, context); // it is to know, too: the RDPMC may be its own
        }
        go_on(registers, way_on);
        nothing
    }
}

/// Whether the handler before this one is that of another copy of this library, which has the same mark.
///
/// # Safety
/// `install` has written what was there before.
unsafe fn previous_is_a_copy() -> bool {
    // SAFETY: the caller's word.
    let previous = unsafe { CHAINED.handler() };
    OWN_MARK.load(Ordering::Relaxed) == MARK && previous.is_some_and(|previous| bears(previous, MARK))
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
        return is_counter(counter).then_some(at);
    }
    let next = at.wrapping_add(RDPMC.len());
    (code(at)?.starts_with(&RDPMC) && bears(next, mark)).then_some(next)
}

/// Whether RDPMC has a counter of this number: general, fixed, or PERF_METRICS.
fn is_counter(number: u32) -> bool {
    const MOST: u32 = 64;
    number < MOST || (FIXED..FIXED + MOST).contains(&number) || number == METRICS
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::zeroed;
    use std::ptr::null_mut;

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
        let slots = i64::from(crate::rdpmc::SLOTS);
        assert_eq!(way_on(&info, &of(rdpmc, 13, 0, slots)), Some(rdpmc + 2));
        assert_eq!(way_on(&info, &of(rdpmc + 2, 13, 0, slots)), Some(rdpmc + 2), "an abort handler");
        for counter in [7, 0x4000_0001, i64::from(METRICS)] {
            assert_eq!(way_on(&info, &of(rdpmc + 2, 13, 0, counter)), Some(rdpmc + 2), "{counter:#x}");
        }
        for other in [64, 0x4000_0040, 0x7f12_3456] {
            assert_eq!(way_on(&info, &of(rdpmc + 2, 13, 0, other)), None, "which RDPMC did not lead to");
        }
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
