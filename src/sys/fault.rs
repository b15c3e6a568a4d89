//! RDPMC that is taken away while handles are open: who writes 0 to the PMU's `rdpmc` file in sysfs makes it fault in every
//! program. The page does not tell (its capability is that of the moment of the open), and between any question and the
//! instruction it may change, so the fault itself has to be survived.
//!
//! The kernel sends a thread that faults in a restartable sequence to the abort handler, before it delivers the
//! signal. Ours begin with an instruction that does nothing and bears a mark; so does what follows an RDPMC outside of a
//! sequence. The handler of SIGSEGV here looks for the mark where the thread goes on, and passes everything else on as
//! if it were not there. docs/failures.md weighs the alternatives.

use super::rdpmc::{METRICS, SLOTS};
use libc::{c_int, c_void, sigaction, siginfo_t, sigset_t, ucontext_t};
use std::arch::global_asm;
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, zeroed};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The marked instruction is `nop dword ptr [rax + MARK]`.
pub(crate) const MARK: u32 = 0x4e57_4454;
const NOP: [u8; 3] = [0x0f, 0x1f, 0x80];
const RDPMC: [u8; 2] = [0x0f, 0x33];

/// General protection, as the CPU numbers its exceptions.
const GENERAL_PROTECTION: i64 = 13;
/// `si_code` of signals that the kernel sends for no better reason.
const SI_KERNEL: c_int = 0x80;

static FAULTS: AtomicU64 = AtomicU64::new(0);

/// How often RDPMC of ours has faulted in this process.
pub(crate) fn count() -> u64 {
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
pub(crate) fn survive() -> bool {
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
    let handler = match OWN_MARK.load(Ordering::Relaxed) {
        MARK => topdown_on_fault as *const () as usize,
        _ => on_fault as *const () as usize,
    };
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

#[allow(unused_doc_comments)] // it is for cbindgen
/// cbindgen:ignore
unsafe extern "C" {
    /// `on_fault`, by a name whose code begins with the mark: so other copies of this library know it.
    fn topdown_on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void);
}

global_asm!(
    ".globl topdown_on_fault",
    ".hidden topdown_on_fault",
    ".type topdown_on_fault, @function",
    "topdown_on_fault:",
    ".byte 0x0f, 0x1f, 0x80",
    ".long {MARK}",
    "jmp {on_fault}",
    ".size topdown_on_fault, . - topdown_on_fault",
    MARK = const MARK,
    on_fault = sym on_fault,
);

unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO both.
    unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let general =
            registers[libc::REG_TRAPNO as usize] == GENERAL_PROTECTION && (*info).si_code == SI_KERNEL;
        match way_on(registers).filter(|_| general) {
            None => pass_on(signal, info, context),
            Some(next) => {
                FAULTS.fetch_add(1, Ordering::Relaxed);
                if previous_is_a_copy() {
                    pass_on(signal, info, context); // it is to know, too: the RDPMC may be its own
                } else {
                    go_on(registers, next);
                }
            }
        }
    }
}

/// Whether the handler before this one is that of another copy of this library, which has the same mark.
///
/// # Safety
/// There is a handler.
unsafe fn previous_is_a_copy() -> bool {
    // SAFETY: `install` wrote it before a handler could be called; where a handler begins there is code.
    unsafe {
        let previous = (*PREVIOUS.0.get()).assume_init_ref();
        OWN_MARK.load(Ordering::Relaxed) == MARK
            && is_handler(previous)
            && bears(previous.sa_sigaction as *const u8, MARK)
    }
}

/// Where the thread can go on, if the fault was an RDPMC of ours: at the abort handler of its sequence, where it is, or
/// behind the instruction.
///
/// # Safety
/// The registers are those of a thread that was executing there.
unsafe fn way_on(registers: &[i64; 23]) -> Option<*const u8> {
    let at = registers[libc::REG_RIP as usize] as *const u8;
    let mark = OWN_MARK.load(Ordering::Relaxed);
    // a sequence may fault elsewhere, as in RDTSC where that is forbidden; at RDPMC this has the counter's number
    let counter = [SLOTS, METRICS].map(i64::from).contains(&registers[libc::REG_RCX as usize]);
    // SAFETY: an instruction is there, and no byte is looked at unless those before it make one that goes on.
    unsafe {
        if bears(at, mark) {
            return counter.then_some(at);
        }
        let next = at.wrapping_add(RDPMC.len());
        (begins_with(at, &RDPMC) && bears(next, mark)).then_some(next)
    }
}

/// Behind the instruction, it has read 0, and left -1 where the counter's number was.
fn go_on(registers: &mut [i64; 23], next: *const u8) {
    if registers[libc::REG_RIP as usize] != next as i64 {
        registers[libc::REG_RIP as usize] = next as i64;
        registers[libc::REG_RAX as usize] = 0;
        registers[libc::REG_RDX as usize] = 0;
        registers[libc::REG_RCX as usize] = -1;
    }
}

/// Whether the instruction is the one that does nothing and bears this mark.
///
/// # Safety
/// An instruction is there.
unsafe fn bears(at: *const u8, mark: u32) -> bool {
    // SAFETY: no byte is looked at unless those before it begin such an instruction.
    unsafe { begins_with(at, &NOP) && begins_with(at.wrapping_add(NOP.len()), &mark.to_le_bytes()) }
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
    // SAFETY: `install` wrote it before this could be called. The previous handler gets what the kernel gave us, and is of
    // the type that its flags say; the rest is plain system calls, after which errno is as it was.
    unsafe {
        let previous = (*PREVIOUS.0.get()).assume_init_ref();
        let once = previous.sa_flags & libc::SA_RESETHAND != 0;
        let sent = (*info).si_code <= 0;
        if is_handler(previous) && !(once && SPENT.swap(true, Ordering::Relaxed)) {
            mask_for(previous, context);
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                std::mem::transmute::<usize, Handler>(previous.sa_sigaction)(signal, info, context);
            } else {
                type Handler = unsafe extern "C" fn(c_int);
                std::mem::transmute::<usize, Handler>(previous.sa_sigaction)(signal);
            }
        } else if previous.sa_sigaction != libc::SIG_IGN || !sent {
            // the same signal once more, which ends the process as this handler returns
            let errno = *libc::__errno_location();
            by_default(signal);
            let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info);
            *libc::__errno_location() = errno;
        }
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
        let mut set: sigset_t = zeroed();
        (&raw mut set).cast::<u64>().write(blocked);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, null_mut());
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
