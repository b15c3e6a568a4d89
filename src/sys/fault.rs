//! RDPMC that is taken away while handles are open: who writes 0 to the PMU's `rdpmc` file in sysfs makes it fault in every
//! program. The page does not tell (its capability is that of the moment of the mapping), and between any question and the
//! instruction it may change, so the fault itself has to be survived.
//!
//! The kernel sends a thread that faults in a restartable sequence to the abort handler, before it delivers the
//! signal. Ours begin with an instruction that does nothing and bears a mark; so does what follows an RDPMC outside of a
//! sequence. The handler of SIGSEGV here looks for the mark where the thread goes on, and passes everything else on as
//! if it were not there. docs/failures.md weighs the alternatives.

use libc::{c_int, c_void, sigaction, siginfo_t, ucontext_t};
use std::mem::{MaybeUninit, zeroed};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The marked instruction is `nop dword ptr [rax + MARK]`.
pub(crate) const MARK: u32 = 0x4e57_4454;
const NOP: [u8; 3] = [0x0f, 0x1f, 0x80];
const RDPMC: [u8; 2] = [0x0f, 0x33];

/// General protection, as the CPU numbers its exceptions.
const GENERAL_PROTECTION: i64 = 13;
/// `si_code` of signals that the kernel sends for no better reason.
const SI_KERNEL: c_int = 0x80;

static FAULTS: AtomicU64 = AtomicU64::new(0);
static PREVIOUS: OnceLock<sigaction> = OnceLock::new();

/// How often RDPMC of ours has faulted in this process.
pub(crate) fn count() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

/// From now on RDPMC of ours may fault. The handler is installed once: a program that puts its own in its place wants to
/// have the last word.
pub(crate) fn survive() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: plain data, of which zeros are values; what is installed is a handler of that type.
    unsafe {
        let mut previous: sigaction = zeroed();
        if libc::sigaction(libc::SIGSEGV, null(), &mut previous) != 0 {
            return;
        }
        let mut ours: sigaction = zeroed();
        // as the previous one asked for, so that what is passed on to it finds what it expects
        if is_handler(&previous) {
            ours.sa_mask = previous.sa_mask;
            ours.sa_flags = previous.sa_flags & !libc::SA_RESETHAND;
        } else {
            ours.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        }
        ours.sa_flags |= libc::SA_SIGINFO;
        ours.sa_sigaction = on_fault as *const () as usize;
        if PREVIOUS.set(previous).is_ok() {
            libc::sigaction(libc::SIGSEGV, &ours, null_mut());
        }
    }
}

fn is_handler(action: &sigaction) -> bool {
    ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO both.
    unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let general = registers[libc::REG_TRAPNO as usize] == GENERAL_PROTECTION;
        if general && (*info).si_code == SI_KERNEL && goes_on(registers) {
            FAULTS.fetch_add(1, Ordering::Relaxed);
        } else {
            pass_on(signal, info, context);
        }
    }
}

/// Whether the thread can go on, since the fault was an RDPMC of ours: at the abort handler of its sequence, or behind the
/// instruction, which has read 0 then.
///
/// # Safety
/// The registers are those of a thread that was executing there.
unsafe fn goes_on(registers: &mut [i64; 23]) -> bool {
    let at = registers[libc::REG_RIP as usize] as *const u8;
    // SAFETY: an instruction is there, and no byte is looked at unless those before it make one that goes on.
    unsafe {
        if begins_with(at, &NOP) && begins_with(at.add(NOP.len()), &MARK.to_le_bytes()) {
            return true;
        }
        let next = at.add(RDPMC.len());
        let ours = begins_with(at, &RDPMC)
            && begins_with(next, &NOP)
            && begins_with(next.add(NOP.len()), &MARK.to_le_bytes());
        if ours {
            registers[libc::REG_RIP as usize] = next as i64;
            registers[libc::REG_RAX as usize] = 0;
            registers[libc::REG_RDX as usize] = 0;
        }
        ours
    }
}

/// # Safety
/// The first byte can be read, and each further one if those before it are as expected.
unsafe fn begins_with(at: *const u8, bytes: &[u8]) -> bool {
    // SAFETY: by the caller's word; `all` stops at the first difference.
    bytes.iter().enumerate().all(|(i, byte)| unsafe { at.add(i).read_volatile() } == *byte)
}

/// Does what would have been done without this handler.
///
/// # Safety
/// As the kernel calls a handler.
unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(previous) = PREVIOUS.get() else { return };
    // SAFETY: the previous handler gets what the kernel gave us, and is of the type that its flags say; the rest is plain
    // system calls, after which errno is as it was.
    unsafe {
        let sent = (*info).si_code <= 0;
        if is_handler(previous) {
            if previous.sa_flags & libc::SA_RESETHAND != 0 {
                by_default(signal);
            }
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                std::mem::transmute::<usize, Handler>(previous.sa_sigaction)(signal, info, context);
            } else {
                type Handler = unsafe extern "C" fn(c_int);
                std::mem::transmute::<usize, Handler>(previous.sa_sigaction)(signal);
            }
        } else if previous.sa_sigaction == libc::SIG_DFL || !sent {
            // the same signal once more, which ends the process as this handler returns
            let errno = *libc::__errno_location();
            by_default(signal);
            let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info);
            *libc::__errno_location() = errno;
        }
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
