//! A stack of our own, since a thread may have as little as 16 KiB for what the program wants to do in it.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

const SIZE: usize = 1 << 18;
/// Below it, nothing is mapped.
const GUARD: usize = 1 << 12;

/// Where the stack ends; NULL: there is none.
static TOP: AtomicPtr<u8> = AtomicPtr::new(null_mut());

static IN_USE: Mutex<()> = Mutex::new(());
/// Whoever holds it may use the stack.
pub type StackGuard = MutexGuard<'static, ()>;

/// Waits until nobody uses the stack.
pub fn lock() -> StackGuard {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to use the stack, if nobody uses it now.
pub fn try_lock() -> Option<StackGuard> {
    match IN_USE.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Makes the stack, before anything else; whether there was memory.
pub fn prepare() -> bool {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel likes, of which the first page is made inaccessible.
    unsafe {
        let at = libc::mmap(null_mut(), SIZE, access, flags | libc::MAP_NORESERVE, -1, 0);
        if at == libc::MAP_FAILED || libc::mprotect(at, GUARD, libc::PROT_NONE) != 0 {
            return false;
        }
        TOP.store(at.cast::<u8>().add(SIZE), Ordering::Release);
    }
    true
}

/// Does the work on the stack, of which there must be one.
pub fn call<R>(_guard: &StackGuard, work: impl FnOnce() -> R) -> R {
    struct Call<W, R> {
        work: Option<W>,
        result: Option<R>,
    }
    // a panic ends here, as at every border to C
    unsafe extern "C" fn run<W: FnOnce() -> R, R>(call: *mut Call<W, R>) {
        // SAFETY: as `call` below passes it.
        let call = unsafe { &mut *call };
        call.result = call.work.take().map(|work| work());
    }
    fn run_of<W: FnOnce() -> R, R>(_: &Call<W, R>) -> unsafe extern "C" fn(*mut Call<W, R>) {
        run::<W, R>
    }
    let mut call = Call { work: Some(work), result: None };
    let run = run_of(&call);
    let top = TOP.load(Ordering::Acquire);
    assert!(!top.is_null());
    // SAFETY: the stack is nobody else's as long as the lock is held, and the old one is back afterwards: the function
    // neither unwinds nor is left by longjmp.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {run}",
            "mov rsp, r12",
            top = in(reg) top,
            run = in(reg) run,
            in("rdi") &raw mut call,
            out("r12") _,
            clobber_abi("C"),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "mov x20, sp",
            "mov sp, {top}",
            "blr {run}",
            "mov sp, x20",
            top = in(reg) top,
            run = in(reg) run,
            in("x0") &raw mut call,
            out("x20") _,
            clobber_abi("C"),
        );
    }
    call.result.expect("it has run")
}
