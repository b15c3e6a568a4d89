//! MRS of counters that is forbidden while handles are open: who writes 0 to kernel.perf_user_access has the kernel close the
//! counters to user space on all CPUs at once (armv8pmu_disable_user_access_ipi), and the next MRS is SIGILL. The page tells of it only
//! when its event comes onto a CPU again, so the signal has to be survived.
//!
//! All MRS are in one table, in a restartable sequence (`mrs`): the kernel sends a thread that is interrupted there to the abort handler
//! before it delivers the signal. The handler of SIGILL here looks whether the signal's address is in that table; all else is
//! for the handler that was there before, which gets the stack frame that the kernel made.

use super::chained::{ChainedAction, Handler, InstallOutcome, nothing};
use super::mrs;
use super::once::{ProcessOnce, stay_loaded};
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use std::arch::global_asm;
use std::sync::atomic::{AtomicU64, Ordering};

/// `si_code` of an instruction that is not permitted, as the kernel has it (force_signal_inject of arch/arm64/kernel/traps.c).
const ILL_ILLOPC: c_int = 1;

static FAULTS: AtomicU64 = AtomicU64::new(0);

/// How often an MRS of ours was refused in this process.
pub fn count() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

static CHAINED: ChainedAction = ChainedAction::new(libc::SIGILL);
static INSTALLED: ProcessOnce = ProcessOnce::new();

/// From now on MRS of ours may be refused; false if nothing can be done about that. The handler is installed once: a
/// program that puts its own in its place wants to have the last word.
pub fn survive() -> bool {
    INSTALLED.run(|| {
        let handler = topdown_on_fault as *const () as usize;
        stay_loaded(handler);
        // SAFETY: that is where the handler's code begins; nobody else is here.
        unsafe { CHAINED.install(handler, false) == InstallOutcome::Yes }
    })
}

/// Libraries with a mark of their own execute no MRS: nothing is done.
pub fn survive_marked(_: u32) -> bool {
    false
}

unsafe extern "C" {
    /// The handler.
    fn topdown_on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void);
}

// What comes next runs in the place of this handler: in the kernel's frame, which it may leave in any way, as by an exception.
global_asm!(
    ".pushsection .text.topdown_on_fault, \"ax\", @progbits",
    ".globl topdown_on_fault",
    ".hidden topdown_on_fault",
    ".type topdown_on_fault, @function",
    ".p2align 2",
    "topdown_on_fault:",
    ".cfi_startproc",
    "hint #34", // BTI c: it is called by its address
    "stp x29, x30, [sp, #-48]!",
    ".cfi_adjust_cfa_offset 48",
    ".cfi_offset x29, -48",
    ".cfi_offset x30, -40",
    "stp x0, x1, [sp, #16]",
    "str x2, [sp, #32]",
    "bl {next}",
    "mov x16, x0",
    "ldr x2, [sp, #32]",
    "ldp x0, x1, [sp, #16]",
    "ldp x29, x30, [sp], #48",
    ".cfi_restore x29",
    ".cfi_restore x30",
    ".cfi_adjust_cfa_offset -48",
    "br x16",
    ".cfi_endproc",
    ".size topdown_on_fault, . - topdown_on_fault",
    ".popsection",
    next = sym next,
);

/// What is to be done about the signal.
unsafe extern "C" fn next(_: c_int, info: *mut siginfo_t, context: *mut c_void) -> Handler {
    // SAFETY: the kernel gives a handler with SA_SIGINFO both.
    unsafe {
        let pc = &mut (*context.cast::<ucontext_t>()).uc_mcontext.pc;
        if !is_refusal(&*info, *pc as usize) {
            return CHAINED.next(info, context);
        }
        FAULTS.fetch_add(1, Ordering::Relaxed);
        *pc = mrs::aborted() as u64;
        nothing
    }
}

/// Whether it is of an MRS of ours: the thread goes on at the abort handler, or would at the instruction if its sequence were not
/// known to the kernel.
fn is_refusal(info: &siginfo_t, pc: usize) -> bool {
    // SAFETY: any bits make an address.
    let at = unsafe { info.si_addr() } as usize;
    info.si_code == ILL_ILLOPC && mrs::is_ours(at) && (pc == mrs::aborted() || pc == at)
}
