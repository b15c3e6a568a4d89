//! A signal handler that is put before the one that was there: what is not for it is passed on as if it were not there.

use libc::{c_int, c_void, sigaction, siginfo_t, sigset_t, ucontext_t};
use std::arch::asm;
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, transmute, zeroed};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A handler with SA_SIGINFO.
pub type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// What was done about a signal before a handler was installed.
pub struct ChainedAction {
    signal: c_int,
    /// Written once, before the handler is installed, and read by it.
    previous: UnsafeCell<MaybeUninit<sigaction>>,
    /// The previous handler was to be called once (SA_RESETHAND), and was.
    spent: AtomicBool,
}

// SAFETY: `install` alone writes what was there before, whose callers come one at a time, and none reads it before that is
// done.
unsafe impl Sync for ChainedAction {}

/// What became of [`ChainedAction::install`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallOutcome {
    /// It is installed, now or before.
    Yes,
    /// The signal is ignored, and stays so.
    Ignored,
    /// The kernel refused.
    No,
}

impl ChainedAction {
    /// Nothing is installed yet.
    pub const fn new(signal: c_int) -> ChainedAction {
        ChainedAction {
            signal,
            previous: UnsafeCell::new(MaybeUninit::uninit()),
            spent: AtomicBool::new(false),
        }
    }

    /// Installs a handler (an address of code that is a [`Handler`]). `unless_ignored`: an ignored signal stays so over an exec,
    /// which a handler does not.
    ///
    /// # Safety
    /// The handler is one, and calls [`ChainedAction::next`] of this. Nobody else is here.
    pub unsafe fn install(&self, handler: usize, unless_ignored: bool) -> InstallOutcome {
        // SAFETY: plain data, of which zeros are values; the caller's word.
        unsafe {
            let mut previous: sigaction = zeroed();
            if libc::sigaction(self.signal, null(), &mut previous) != 0 {
                return InstallOutcome::No;
            }
            if previous.sa_sigaction == handler {
                return InstallOutcome::Yes;
            }
            if unless_ignored && previous.sa_sigaction == libc::SIG_IGN {
                return InstallOutcome::Ignored;
            }
            let mut ours: sigaction = zeroed();
            if is_handler(&previous) {
                ours.sa_flags = previous.sa_flags & !libc::SA_RESETHAND;
            } else {
                ours.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
            }
            ours.sa_flags |= libc::SA_SIGINFO;
            // no other handler comes between: what it does may raise the signal again, which is blocked here
            libc::sigfillset(&mut ours.sa_mask);
            ours.sa_sigaction = handler;
            (*self.previous.get()).write(previous);
            match libc::sigaction(self.signal, &ours, null_mut()) {
                0 => InstallOutcome::Yes,
                _ => InstallOutcome::No,
            }
        }
    }

    /// The handler that was there before, if there was one.
    ///
    /// # Safety
    /// [`ChainedAction::install`] was called and did not say No or Ignored.
    pub unsafe fn handler(&self) -> Option<usize> {
        // SAFETY: the caller's word.
        let previous = unsafe { (*self.previous.get()).assume_init_ref() };
        is_handler(previous).then_some(previous.sa_sigaction)
    }

    /// What is to be called in the place of this handler, with the same arguments, and with the signals blocked that would be.
    ///
    /// # Safety
    /// The handler that was installed calls it, with what the kernel gave.
    pub unsafe fn next(&self, info: *mut siginfo_t, context: *mut c_void) -> Handler {
        // SAFETY: `install` wrote it before this could be called. The previous handler finds in its registers what the
        // kernel gives one with SA_SIGINFO, which is enough for others, too; the rest is plain system calls, after which
        // errno is as it was.
        unsafe {
            let previous = (*self.previous.get()).assume_init_ref();
            let once = previous.sa_flags & libc::SA_RESETHAND != 0;
            let sent = (*info).si_code <= 0;
            if is_handler(previous) && !(once && self.spent.swap(true, Ordering::Relaxed)) {
                self.block_as(previous, context);
                return transmute::<usize, Handler>(previous.sa_sigaction);
            }
            if previous.sa_sigaction != libc::SIG_IGN || !sent {
                // the same signal once more, which ends the process as this handler returns
                let errno = *libc::__errno_location();
                let default: MaybeUninit<sigaction> = MaybeUninit::zeroed();
                libc::sigaction(self.signal, default.as_ptr(), null_mut());
                let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, self.signal, info);
                *libc::__errno_location() = errno;
            }
            nothing
        }
    }

    /// Blocks what would be blocked in the previous handler, and no more.
    ///
    /// # Safety
    /// `context` is the kernel's, of a handler that is running.
    unsafe fn block_as(&self, previous: &sigaction, context: *mut c_void) {
        // SAFETY: the kernel's sets are 64 bits, the first of those that the C library has room for.
        unsafe {
            let bits = |set: *const sigset_t| set.cast::<u64>().read();
            let mut blocked =
                bits(&raw const (*context.cast::<ucontext_t>()).uc_sigmask) | bits(&previous.sa_mask);
            if previous.sa_flags & libc::SA_NODEFER == 0 {
                blocked |= 1 << (self.signal - 1);
            }
            sigprocmask(libc::SIG_SETMASK, &blocked);
        }
    }
}

fn is_handler(action: &sigaction) -> bool {
    ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
}

/// A handler that does nothing.
///
/// # Safety
/// None.
pub unsafe extern "C" fn nothing(_: c_int, _: *mut siginfo_t, _: *mut c_void) {}

/// rt_sigprocmask(2) without the C library: errno stays, and no signal is taken out of the set.
///
/// # Safety
/// The set is one to be blocked here, or `how` is no operation.
pub(crate) unsafe fn sigprocmask(how: c_int, set: *const u64) -> i64 {
    #[cfg(target_arch = "x86_64")]
    let mut result = libc::SYS_rt_sigprocmask;
    // SAFETY: a system call, which changes these registers and the mask that the caller vouches for.
    #[cfg(target_arch = "x86_64")]
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
    #[cfg(target_arch = "aarch64")]
    let mut result = i64::from(how);
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc #0",
            in("x8") libc::SYS_rt_sigprocmask,
            inlateout("x0") result,
            in("x1") set,
            in("x2") 0,
            in("x3") size_of::<u64>(),
            options(nostack),
        );
    }
    result
}
