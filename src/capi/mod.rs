//! The C interface: the only place with exported names. Each function checks its pointers, calls the room
//! that does the work, and turns what went wrong into a code and this thread's last-error text.

mod decoders;
mod last_error;
mod options;
mod texts;

use crate::error::{Error, Result};
use crate::handle::{self, Handle};
use crate::read::simulated::Mix;
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::{L1, L2, Mark, Sample};
use crate::sum::Sum;
use crate::sys::signals::Blocked;
use crate::tree::{self, Node};
pub use options::{
    COptions, TD_FLAG_E_CORES, TD_FLAG_INHERIT, TD_FLAG_KERNEL, TD_FLAG_NO_RDPMC, TD_FLAG_SIMULATE,
    TD_TARGET_CPU, TD_TARGET_SELF, TD_TARGET_TASK,
};
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
pub use texts::{CInfo, TD_PATH_RDPMC, TD_PATH_READ, TD_PATH_SIMULATED};

/// The opaque handle of C: where a `Handle` points.
#[allow(non_camel_case_types)]
pub struct td {
    _private: (),
}

/// The one border: errors become codes and texts, and no panic passes.
fn guard(work: impl FnOnce() -> Result<c_int>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str);
        let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(Error::errno(libc::EFAULT, "the library failed in itself, please report it").why(why.to_string()))
    });
    result.unwrap_or_else(|error| {
        last_error::set(error.reason());
        error.code()
    })
}

/// Refuses what cannot point to a T.
#[inline(always)]
fn check<T>(pointer: *const T, what: &str) -> Result<()> {
    #[cold]
    #[inline(never)]
    fn refused(pointer: *const (), what: &str) -> Error {
        if pointer.is_null() {
            return Error::invalid(format!("`{what}` is NULL"));
        }
        Error::invalid(format!("`{what}` is misaligned"))
            .why(format!("no such structure begins at {pointer:p}"))
    }
    if pointer.is_null() || !pointer.is_aligned() { Err(refused(pointer.cast(), what)) } else { Ok(()) }
}

/// What a pointer of C's points to.
///
/// # Safety
/// `pointer` is NULL or points to a T.
unsafe fn at<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    check(pointer, what)?;
    // SAFETY: by the caller's word.
    Ok(unsafe { &*pointer })
}

/// What it points to, to be changed.
///
/// # Safety
/// As `at`, and nobody else looks at it.
unsafe fn at_mut<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T> {
    check(pointer, what)?;
    // SAFETY: by the caller's word.
    Ok(unsafe { &mut *pointer })
}

/// The handle behind a pointer of C's.
///
/// # Safety
/// `td` is NULL or came from `td_open`.
unsafe fn handle(td: *const td) -> Result<Handle> {
    check(td, "td")?;
    let td = NonNull::new(td.cast_mut()).expect("not NULL");
    // SAFETY: by the caller's word; a handle's memory outlives its td_close.
    unsafe { Handle::from_raw(td) }
        .ok_or_else(|| Error::invalid("`td` is no handle").why(format!("none begins at {td:p}")))
}

/// Writes a result where C wants it.
///
/// # Safety
/// `out` is NULL or points to memory for a T.
#[inline(always)]
unsafe fn put<T>(out: *mut T, what: &str, value: impl FnOnce() -> Result<T>) -> Result<c_int> {
    check(out, what)?;
    let value = value()?;
    // SAFETY: by the caller's word. `write` does not read what was there.
    unsafe { out.write(value) };
    Ok(0)
}

/// Opens the topdown counters and proves that they count.
///
/// `out`: gets the handle, to be ended with td_close. `options`: NULL or all zeros for the defaults: the
/// calling thread, user mode, the deepest level, by RDPMC where that is possible and by read(2) where not
/// (td_get_info tells which, and why).
///
/// The handle belongs to the thread that opens it: that thread alone reads, resets and asks it. It is
/// not inherited by what the thread starts, and its descriptors are close-on-exec.
///
/// A thread that lasts as long as the call opens the events, so they belong to no thread of the program's, and
/// prctl(PR_TASK_PERF_EVENTS_DISABLE) does not switch them off. Signals are blocked meanwhile, as in
/// td_close and td_get_info; a handler may leave any td_ call by siglongjmp.
///
/// Returns 0, or: -ENODEV no topdown counters on this CPU or VM; -EACCES perf_event_paranoid or a security
/// module; -EPERM a seccomp filter; -ENOSYS no perf_event_open; -ENOTSUP level or target that this CPU
/// cannot give; -EINVAL bad argument; -E2BIG options of a later version; -ESRCH no such thread;
/// -EMFILE, -ENFILE no descriptors left (a handle takes up to 10); -ENOMEM no memory, or none left that
/// may be locked; -EAGAIN no thread left to this user or container; TD_ENOTCOUNTING others hold the counters. td_last_error tells which wall it was and
/// what to do. A failed open leaves nothing behind.
///
/// # Safety
/// `out` and `options` are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_open(out: *mut *mut td, options: *const COptions) -> c_int {
    let signals = Blocked::new(); // until the caller has the handle, lest it be lost
    decoders::prepare();
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || Ok(handle::open(&options::read(options)?, &signals)?.into_raw())) })
}

/// Takes the totals since td_open or the last td_reset.
///
/// In the steady state on the RDPMC path: 43 instructions, no system call, no lock, no allocation. When the
/// registers hold so many slots that the next region could not be told to within td_options.max_error_ppm, it opens a
/// new window of them with a read(2) of the leader, some 5,100 instructions, as long as td_options.max_overhead_ppm
/// is not exceeded: a pair of readings around a region is right whatever ran before.
///
/// It may be called in a signal handler of the thread, even one that interrupts another td_ call on the same handle or
/// leaves it by siglongjmp. A child of vfork, which shares the memory, must not call it.
///
/// If somebody writes 0 to the PMU's `rdpmc` file in sysfs while handles are open, RDPMC faults from then on. td_open of
/// such a handle installs a handler of SIGSEGV, once in a process, that survives this fault and passes all others on to
/// what was there before: the reading returns TD_ENORDPMC. A program whose own handler replaces that one, or a thread that
/// has SIGSEGV blocked, ends with SIGSEGV there; where that may happen, open with TD_FLAG_NO_RDPMC.
///
/// Returns 0, or: -EINVAL td or out is NULL; TD_EWRONGTHREAD called by another thread than the one that
/// opened, or in a forked child; TD_ENORDPMC see above; -EBADF the handle is closed; -EBUSY signal handlers used the handle again and again
/// meanwhile; -EIO the kernel
/// has given the counters up (a CPU that went offline); else -errno of read(2). Totals stay intact whatever it returns.
///
/// # Safety
/// `td` is NULL or from td_open, `out` NULL or a sample to be filled in.
#[cfg(not(target_arch = "x86_64"))] // there it is src/read/rdpmc.rs
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_read(td: *mut td, out: *mut Sample) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { read_slowly(td, out, 0, 0) }
}

/// Where td_read goes if the steady state does not serve, with what it had read of the registers.
#[cold]
pub(crate) unsafe extern "C" fn read_slowly(
    td: *mut td,
    out: *mut Sample,
    slots: u64,
    metrics: u64,
) -> c_int {
    let seen = Registers { slots: RawSlots(slots), metrics: RawMetrics(metrics) };
    // SAFETY: as td_read; any bits make a sample.
    guard(|| unsafe { handle::read(handle(td)?, seen, at_mut(out, "out")?).map(|()| 0) })
}

/// What td_read_mark of topdown_inline.h calls where the steady state does not serve; works everywhere.
///
/// Returns as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `out` NULL or a mark to be filled in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_read_mark_slowly(td: *mut td, out: *mut Mark) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || Ok(handle::any_read(handle(td)?)?.mark())) })
}

/// Makes a sample of a mark that td_read_mark (topdown_inline.h) took of the same handle.
///
/// The sample decodes with others of its period, however they were taken. Its times are those of the last look at the
/// clock (TD_SAMPLE_COARSE_TIME). The handle remembers the last 64 looks, one for each context switch and each
/// window: a mark that is older is stale.
///
/// Returns 0, or: -EINVAL NULL, or not a mark; TD_ESTALE too old, or of another handle; else as td_read.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_mark_sample(td: *mut td, mark: *const Mark, out: *mut Sample) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || handle::sample_of(handle(td)?, at(mark, "mark")?)) })
}

/// Starts a new measurement period: totals start from zero, and earlier samples become stale.
///
/// Costs a read(2) of the group. In a signal handler it is as td_read.
///
/// Returns 0, or as td_read.
///
/// # Safety
/// `td` is NULL or from td_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_reset(td: *mut td) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { handle::reset(handle(td)?).map(|()| 0) })
}

/// Ends a handle and frees its descriptors; NULL is nothing to end. The only way to end one: in a forked
/// child, too, close what the parent opened. Another thread may close a handle that its owner does not use
/// any more; a signal handler may where it may call free(3).
///
/// The counters are free at once, also while a forked child has copies of the handle's descriptors.
///
/// The pointer means nothing afterwards. Calls with it say -EBADF for a while, until a later handle gets its
/// memory: do not close twice.
///
/// # Safety
/// `td` is NULL or from td_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_close(td: *mut td) {
    guard(|| {
        if !td.is_null() {
            // SAFETY: by the caller's word.
            handle::close(unsafe { handle(td)? });
        }
        Ok(0)
    });
}

/// The earlier sample; none for the start of the period.
///
/// # Safety
/// As `at`.
unsafe fn earlier<'a>(from: *const Sample) -> Result<Option<&'a Sample>> {
    // SAFETY: by the caller's word.
    if from.is_null() { Ok(None) } else { unsafe { at(from, "from") }.map(Some) }
}

/// Level 1 shares of the slots between two samples of one handle and period.
///
/// `from`: the earlier sample, or NULL for the start of the period. Any thread, any time, also after
/// td_close: samples are plain data.
///
/// The four shares add up to 1. They are what PERF_METRICS gives, over the sum of its four fields; perf's
/// metrics correct some of them with further events and can differ by a few points.
///
/// Returns 0, or: -EINVAL NULL, not a sample, of two handles, or in the wrong order; TD_ESTALE of two
/// periods; TD_ENOTCOUNTING no slot was counted between them.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_l1(from: *const Sample, to: *const Sample, out: *mut L1) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { decoders::l1(from, to, out) }
}

/// Level 2 shares of the slots between two samples of one handle and period, as td_decode_l1.
///
/// The eight shares add up to 1, none is negative, and each pair adds up to its level 1 share.
///
/// Returns as td_decode_l1, and -ENOTSUP if the samples have no level 2.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_l2(from: *const Sample, to: *const Sample, out: *mut L2) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { decoders::l2(from, to, out) }
}

/// Writes as many nodes as there is room for, and how many there are.
///
/// # Safety
/// `count` and, unless `capacity` is 0, `nodes` are NULL or point to memory for what their types say, `nodes` for
/// `capacity` of them.
unsafe fn put_nodes<N: ExactSizeIterator<Item = Node>>(
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
    make: impl FnOnce() -> Result<N>,
) -> Result<c_int> {
    if capacity > 0 {
        check(nodes, "nodes")?;
    }
    check(count, "count")?;
    let made = make()?;
    let all = made.len() as u32;
    for (place, node) in made.take(capacity as usize).enumerate() {
        // SAFETY: `place` is below `capacity`, for which there is room by the caller's word.
        unsafe { nodes.add(place).write(node) };
    }
    // SAFETY: by the caller's word. `write` does not read what was there.
    unsafe { count.write(all) };
    Ok(0)
}

/// Nodes of the CPU's tree of metrics between two samples of one handle and period, as td_decode_l1.
///
/// `nodes`: gets the first `capacity` nodes, parents before their children, in the order of td_list_nodes; NULL with
/// capacity 0 to ask for their number. `count`: gets the number of the tree's nodes.
///
/// For each node the truth lies between `low` and `high`, and `value` is what td_decode_l1 and td_decode_l2 say.
/// What the handle did not measure (level 2 with one of level 1) has measured = 0, and NaN for its figures. The samples are
/// enough, on any machine; the tree is that of the CPU on which they were taken.
///
/// Returns as td_decode_l1.
///
/// # Safety
/// The pointers are NULL or point to what their types say, `nodes` to `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_tree(
    from: *const Sample,
    to: *const Sample,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put_nodes(nodes, capacity, count, || tree::decode(earlier(from)?, at(to, "to")?)) })
}

/// Level 1 shares between two readings of SLOTS and PERF_METRICS that the caller took by RDPMC, `a` first.
///
/// For callers with a perf group of their own. Both readings are of one thread, with nothing in between
/// that resets the registers (read(2), PERF_EVENT_IOC_RESET) and no context switch; otherwise `error` does
/// not hold. slots_a = metrics_a = 0 stands for the moment of the reset. Any thread.
///
/// Returns 0, or: -EINVAL out is NULL, or slots of more than 48 bits; TD_ESTALE SLOTS went back, so the
/// registers were reset in between; TD_ENOTCOUNTING SLOTS stood still, or PERF_METRICS is empty.
///
/// # Safety
/// `out` is NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_raw_l1(
    slots_a: u64,
    metrics_a: u64,
    slots_b: u64,
    metrics_b: u64,
    out: *mut L1,
) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || crate::decode_raw_l1(slots_a, metrics_a, slots_b, metrics_b)) })
}

/// Level 2 shares between two readings of SLOTS and PERF_METRICS, as td_decode_raw_l1.
///
/// The upper half of PERF_METRICS means something on Sapphire Rapids, Alder Lake and later P-cores only.
///
/// Returns as td_decode_raw_l1, and -ENOTSUP if the upper halves are empty and the CPU that runs this has
/// level 1 only.
///
/// # Safety
/// `out` is NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_decode_raw_l2(
    slots_a: u64,
    metrics_a: u64,
    slots_b: u64,
    metrics_b: u64,
    out: *mut L2,
) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || crate::decode_raw_l2(slots_a, metrics_a, slots_b, metrics_b)) })
}

/// Adds an execution to a sum, from a sample before it and one after it.
///
/// For every execution that is added the division is known, and `error` of the result is a bound that always holds: at
/// most the sum of each execution's own, and far less where they follow each other closely, as in a loop. Any thread,
/// one at a time. Clear the sum (memset) before the first.
///
/// Returns 0, or as td_decode_l1, and nothing is added; an execution in which no slot was counted is added and tells
/// nothing.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_add(sum: *mut Sum, from: *const Sample, to: *const Sample) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe {
        // copies: they may lie in the sum
        let (from, to) = (*at(from, "from")?, *at(to, "to")?);
        at_mut(sum, "sum")?.add(&from, &to).map(|()| 0)
    })
}

/// An execution of the sum's region begins.
///
/// For regions that are too short or too many to measure each: td_sum_begin opens a fresh window for as many of them,
/// chosen at random, as td_options.max_overhead_ppm allows; the others count their slots only. What is assumed: that what
/// an execution does has nothing to do with whether it was chosen. Clear the sum (memset) before the first; each
/// thread has sums of its own; different ones may nest, one may not (recursion): a begin after a begin starts the
/// execution anew. The budget is for the windows: an execution that is not measured costs some 210 instructions.
///
/// Returns 0, or as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `sum` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_begin(td: *mut td, sum: *mut Sum) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { handle::sum_begin(handle(td)?, at_mut(sum, "sum")?).map(|()| 0) })
}

/// The execution that began ends.
///
/// Returns 0, or as td_read; -EINVAL none had begun (td_sum.unbalanced counts these); TD_ESTALE a td_reset came between.
///
/// # Safety
/// As td_sum_begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_end(td: *mut td, sum: *mut Sum) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { handle::sum_end(handle(td)?, at_mut(sum, "sum")?).map(|_| 0) })
}

/// Level 1 shares of all executions in a sum.
///
/// `slots` are those of all executions. If each was measured, `error` bounds the shares' error. If not, flags has
/// TD_SAMPLE_SPARSE, and to the bound of the measured ones come four standard errors of the mean over a random
/// sample; with fewer than eight measured, the most that the others can have been.
///
/// Returns 0, or: -EINVAL NULL; TD_ENOTCOUNTING no execution was measured yet.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_l1(sum: *const Sum, out: *mut L1) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || at(sum, "sum")?.l1()) })
}

/// Level 2 shares of all executions in a sum, as td_sum_l1.
///
/// Returns as td_sum_l1, and -ENOTSUP if the samples have no level 2.
///
/// # Safety
/// The pointers are NULL or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_l2(sum: *const Sum, out: *mut L2) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || at(sum, "sum")?.l2()) })
}

/// Nodes of the CPU's tree of metrics, of all executions in a sum.
///
/// `nodes` and `count` as in td_decode_tree. For each node the truth lies between `low` and `high`; if not every execution was
/// measured, as in td_sum_l1, with the same four standard errors. `value` is what td_sum_l1 and td_sum_l2 say. A sum is of
/// one CPU: td_sum_add refuses samples of another tree.
///
/// Returns as td_sum_l1.
///
/// # Safety
/// The pointers are NULL or point to what their types say, `nodes` to `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_sum_decode_tree(
    sum: *const Sum,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put_nodes(nodes, capacity, count, || at(sum, "sum")?.nodes()) })
}

/// Tells what a handle measures, and how: CPU, PMU, level, path, and why the path is not RDPMC.
///
/// Returns 0, or as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `out` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_get_info(td: *const td, out: *mut CInfo) -> c_int {
    let _signals = Blocked::new(); // it takes memory, and a handler that leaves would lose it
    // SAFETY: by the caller's word.
    guard(|| unsafe { put(out, "out", || Ok(CInfo::from(&handle::info(handle(td)?)?))) })
}

/// Lists the nodes of the tree of metrics of the handle's CPU, and which of them the handle measures.
///
/// `nodes` and `count` as in td_decode_tree. The nodes' figures are NaN: td_decode_tree has them. The list is the same for
/// the life of the handle.
///
/// Returns 0, or as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `nodes` NULL or points to `capacity` nodes, `count` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_list_nodes(
    td: *const td,
    nodes: *mut Node,
    capacity: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe { put_nodes(nodes, capacity, count, || handle::nodes(handle(td)?)) })
}

/// perf's name of a node (td_node.id), "tma_retiring" for TD_NODE_RETIRING; "" if no tree of this version has it. Any
/// thread; never NULL, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn td_node_name(id: u32) -> *const c_char {
    crate::model::metric(id).map_or_else(Default::default, |metric| metric.name).as_ptr()
}

/// Sets how the slots of the simulated PMU divide from now on.
///
/// For programs that are developed and tested where there is no PMU. The simulated clock runs on the
/// time-stamp counter, also while the thread sleeps; the registers round and reset as real ones do. A handle starts
/// with retiring 0.4, bad speculation 0.1, frontend bound 0.2, backend bound 0.3.
///
/// Returns 0, or: -EINVAL NULL, wrong size (it must be set), or not a mix; -ENOTSUP the handle was not opened with
/// TD_FLAG_SIMULATE; else as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `mix` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_simulate_mix(td: *mut td, mix: *const Mix) -> c_int {
    // SAFETY: by the caller's word.
    guard(|| unsafe {
        let mix = at(mix, "mix")?;
        if mix.size as usize != size_of::<Mix>() || mix.reserved != 0 {
            return Err(Error::invalid("mix->size is not sizeof(struct td_mix), or mix->reserved is not 0"));
        }
        handle::set_mix(handle(td)?, mix).map(|()| 0)
    })
}

/// Short static text of a code that this library returned. Any thread; never NULL, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn td_strerror(code: c_int) -> *const c_char {
    crate::error::text_of(code).as_ptr().cast()
}

/// Copies this thread's last failure in full: what, why, what to do about it.
///
/// `buffer`: gets the text, cut to `length` - 1 bytes, with its final NUL; NULL with length 0 to ask for the
/// length. A success does not change the text.
///
/// Returns the length of the whole text without the NUL, 0 if nothing has failed yet; or -EINVAL: buffer
/// is NULL and length is not 0.
///
/// # Safety
/// `buffer` is NULL or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_last_error(buffer: *mut c_char, length: usize) -> c_int {
    if buffer.is_null() && length > 0 {
        return -libc::EINVAL;
    }
    // SAFETY: by the caller's word.
    last_error::with(|text| unsafe { texts::copy(text, buffer, length) })
}

/// The library's version, "MAJOR.MINOR.PATCH". Static text; any thread.
#[unsafe(no_mangle)]
pub extern "C" fn td_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
