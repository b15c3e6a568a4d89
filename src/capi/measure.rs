//! Opening, reading, resetting and closing a handle.

use super::border::{at_mut, guard, handle, put, td};
use super::{COptions, decoders, options};
use crate::handle;
#[cfg(not(target_arch = "x86_64"))]
use crate::handle::Handle;
use crate::read::SeenRegisters;
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::Sample;
use crate::sys::cancelled_later;
use crate::sys::signals::SignalBlock;
use std::ffi::c_int;

/// Opens the topdown counters, proves that they count, and begins a measurement period.
///
/// `out` receives the handle; td_close ends it. `options` NULL or all zeros: the calling thread, user mode, the deepest
/// level that the CPU counts, by RDPMC where possible and by read(2) elsewhere (td_get_info tells which, and why).
///
/// Threads: the handle belongs to the thread that opened it, and that thread alone may read, reset and query it.
/// Threads and processes that it starts are not counted (but see TD_FLAG_INHERIT). Descriptors are close-on-exec.
/// Signals are blocked during the call. A helper thread, which ends with the call, opens the events.
///
/// Returns 0, or a code; td_last_error says what is in the way. A failed call leaves nothing open.
///  -ENODEV           this CPU or virtual machine has no topdown counters
///  -EACCES, -EPERM   denied by perf_event_paranoid or a security module; by a seccomp filter
///  -ENOSYS           no perf_event_open system call
///  -ENOTSUP          this CPU cannot give the level, the subtree, the cores or the target
///  -EINVAL, -E2BIG   bad argument; options of a later version
///  -ESRCH            no such thread
///  -EMFILE, -ENFILE  no file descriptors left: of this process (a handle takes up to 12); of the system
///  -ENOMEM           no memory, or none left that may be locked
///  -EAGAIN           this user or container may not start another thread
///  TD_ENOTCOUNTING   others hold the counters
///
/// # Safety
/// `out` and `options` are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_open(out: *mut *mut td, options: *const COptions) -> c_int {
    // SAFETY: the caller's word.
    unsafe { open(out, options) }
}

cancelled_later! {
/// # Safety
/// As td_open.
unsafe extern "C" fn open(out: *mut *mut td, options: *const COptions) -> c_int {
    let signals = SignalBlock::new(); // until the caller has the handle: a handler that leaves by siglongjmp would lose it
    decoders::prepare();
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || Ok(handle::open(&options::read(options)?, &signals)?.into_raw())) })
}

/// Where td_read goes if the fast path does not serve, with what it had read of the registers.
///
/// # Safety
/// As td_read.
#[cold]
unsafe extern "C" fn read_slowly(
    td: *mut td,
    out: *mut Sample,
    slots: u64,
    metrics: u64,
    sequence: u32,
) -> c_int {
    let registers = Registers { slots: RawSlots(slots), metrics: RawMetrics(metrics) };
    let seen = SeenRegisters { registers, sequence, ..SeenRegisters::default() };
    // SAFETY: td_read's pointers, which are its caller's; any bits make a sample.
    guard(|| unsafe { handle::read(handle(td)?, seen, at_mut(out, "out")?).map(|()| 0) })
}

/// # Safety
/// As td_reset.
unsafe extern "C" fn reset(td: *mut td) -> c_int {
    // SAFETY: the pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { handle::reset(handle(td)?).map(|()| 0) })
}

/// # Safety
/// As td_close.
unsafe extern "C" fn close(td: *mut td) {
    guard(|| {
        if !td.is_null() {
            // SAFETY: the pointer is NULL or what the header calls it, which the C caller promises.
            handle::close(unsafe { handle(td)? });
        }
        Ok(0)
    });
}
}

/// Reads the totals since td_open or the last td_reset into `out`.
///
/// By RDPMC without system call, lock or allocation (docs/cost.md), but for this: PERF_METRICS holds rounded shares of
/// all slots since the registers were last reset. When the next region could not be measured to within
/// td_options.max_error_ppm, td_read resets them by a read(2), as long as td_options.max_overhead_ppm allows. So the
/// accuracy of a pair of readings does not depend on what ran before.
///
/// Threads: the one that opened the handle, also in a signal handler, which may interrupt another td_ call on the same
/// handle, or leave that call by siglongjmp. A child of vfork(2), which shares the memory, must not call it.
///
/// Root can take RDPMC away (0 in the PMU's `rdpmc` file in sysfs; on arm64 in the sysctl kernel.perf_user_access). So
/// td_open of a handle that uses it installs, once per process, a handler of SIGSEGV (arm64: SIGILL), which passes on
/// all other faults. Then readings return TD_ENORDPMC (arm64: go on by read(2)). A program that later installs a
/// handler of its own, or a thread that has it blocked, is ended by this fault. TD_FLAG_NO_RDPMC avoids that.
///
/// Returns 0, or a code; then no totals have changed.
///  -EINVAL          an argument is NULL
///  TD_EWRONGTHREAD  called by another thread than the one that opened the handle, or in a forked child
///  TD_ENORDPMC      see above
///  -EBADF           the handle is closed, or the program has closed the descriptors of its events
///  -EBUSY           signal handlers interrupted the call again and again, and used the handle
///  -EIO             the kernel has given the counters up: their CPU went offline
///  another -errno   of read(2)
///
/// # Safety
/// `td` is NULL or from td_open, `out` NULL or a sample to be filled in.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_read(td: *mut td, out: *mut Sample) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises; any bits make a sample.
    unsafe {
        let is_read = |handle: Handle| Ok(handle.shared().read(at_mut(out, "out")?).is_ok());
        match handle(td).and_then(is_read) {
            Ok(true) => 0,
            _ => read_slowly(td, out, 0, 0, 0),
        }
    }
}

#[cfg(target_arch = "x86_64")]
crate::read::fast_read!("td_read", ".globl", read_slowly, "1");

/// Begins a new measurement period, by a read(2): totals start from zero, and samples from before do not decode with
/// later ones. Threads, signal handlers and returns as td_read.
///
/// # Safety
/// `td` is NULL or from td_open.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_reset(td: *mut td) -> c_int {
    // SAFETY: the caller's word.
    unsafe { reset(td) }
}

/// Ends a handle and closes its descriptors; NULL is ignored. Samples stay valid. The counters are free at once, even
/// while forked children have copies of the descriptors; in a child td_close frees its own copies alone.
///
/// Threads: the one that opened the handle, or another one when the owner does not use it any more. In a signal handler
/// only where free(3) may be called. Later calls with the pointer return -EBADF, until a later handle has its memory.
///
/// # Safety
/// `td` is NULL or from td_open.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_close(td: *mut td) {
    // SAFETY: the caller's word.
    unsafe { close(td) }
}
