//! The read path: no lock, no allocation, no system call.
//!
//! The control page's sequence number moves whenever the kernel takes the counters away or gives them
//! back. As long as it is the one at which the library last looked, the counters are this thread's on this
//! CPU and the clock runs from where it was. The page's `offset` is never used: the driver does not keep
//! it for these events (kernel-facts C.3).
//!
//! Both registers and all that goes with them are read in one restartable sequence: if the thread is preempted,
//! migrated or interrupted by a signal meanwhile, nothing of it counts. So SLOTS and PERF_METRICS are of one
//! stretch of the program, a handler that reads or resets the same handle is seen, and on a hybrid CPU RDPMC
//! is not executed on an E-core, where it would fault.

mod executions;
mod snapshot;

use super::shared::{Shared, TD_CONTROL_PAGE};
use super::{CountersSnapshot, MOST_COUNTERS, RawCounters, SeenRegisters};
use crate::model::perf_metrics::MOST_MOVED;
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::Sample;
use crate::sys::fault::MARK;
use crate::sys::page::{PLAIN_WIDTH, Page};
use crate::sys::restartable;
use crate::sys::rseq::SIGNATURE;
pub(crate) use snapshot::{snapshot, undisturbed};
use std::arch::asm;
use std::ffi::c_int;
use std::mem::offset_of;

/// Whether this CPU has the instructions of td_read's fast path besides RDPMC; all that have PERF_METRICS do,
/// unless they were turned off.
pub(crate) const FAST: fn() -> bool =
    || std::arch::is_x86_feature_detected!("avx") && std::arch::is_x86_feature_detected!("bmi2");

/// Of so many counts that a counter has left, those that remain when a reading is to look at the pages, so that none is late; some
/// virtual machines' counters begin 2^31 before the end.
pub(crate) fn margin(left: u64) -> u64 {
    (left / 4).min(1 << 32)
}

/// `Shared::limit` is one of the leader's counter, in slots.
pub(crate) const LIMITS_TOTALS: bool = false;

/// General-purpose counters of these numbers, with what they start from, into the sample. The last first, so that one place to enter serves each
/// number of them.
macro_rules! counters_into {
    ($name:expr, $place:literal, $numbers:literal) => {
        concat!(
            ".irp k, ",
            $numbers,
            "\n",
            ".L",
            $name,
            $place,
            "\\k:\n",
            "mov ecx, dword ptr [rdi + {NUMBERS} + 4 + 4 * \\k]\n",
            "rdpmc\n",
            "shl rdx, 32\n",
            "or rax, rdx\n",
            "add rax, qword ptr [rdi + {START} + {COUNTER} + 8 * \\k]\n",
            "mov qword ptr [rsi + {COUNTER} + 8 * \\k], rax\n",
            ".endr"
        )
    };
}
pub(crate) use counters_into;

/// Defines int NAME(struct td *td, struct td_sample *out), a whole reading, in assembler. `visibility` is a directive for the
/// symbol: .globl, or .hidden.
///
/// The fast path: if the calling thread is the reader and the counters are on this CPU, a sample is the handle's `start`
/// plus the registers and the clock, and 0 is returned. All else is for `slowly`, which gets what was seen of the registers,
/// too: it counts if the page's sequence number turns out to be the handle's. What was disturbed begins anew there.
macro_rules! fast_read {
    ($name:literal, $visibility:literal, $slowly:path, $entry:literal) => {
        ::std::arch::global_asm!(
            concat!(".pushsection .text.", $name, ", \"ax\", @progbits"),
            concat!(".globl ", $name),
            concat!($visibility, " ", $name),
            concat!(".type ", $name, ", @function"),
            ".p2align 5",
            concat!($name, ":"),
            ".cfi_startproc",
            "test rdi, rdi",
            "je 24f",
            "mov rax, qword ptr fs:[0]", // the thread pointer
            "cmp rsi, 1",                // sets carry if it is NULL: the difference is odd then, and 0 for no reader
            "sbb rax, qword ptr [rdi + {READER}]",
            "jne 26f",
            "mov rcx, qword ptr [rdi + {RSEQ}]",
            $crate::sys::restartable!(enter "rcx", "rax"), // what is between here and 21 runs undisturbed, or 23 follows
            "cmp dword ptr [rdi + {INDEX}], {SLOTS_INDEX}",
            "jne 24f", // not on this CPU, where RDPMC may fault
            $crate::sys::scaled_clock!("r9", "rdi + {SCALE}"), // nanoseconds
            "mov ecx, {SLOTS}",
            "rdpmc",
            "shl rdx, 32",
            "lea r10, [rax + rdx]",
            "mov ecx, {METRICS}",
            "rdpmc",
            "mov dword ptr [rsi + {RAW_METRICS}], eax",
            "mov dword ptr [rsi + {RAW_METRICS} + 4], edx",
            // (of counters beside the registers there are none, one or two)
            concat!("jmp qword ptr [rdi + {MEMBERS} + 8 * ", $entry, "]"),
            $crate::read::counters_into!($name, "_beside_", "1, 0"),
            concat!(".L", $name, "_alone:"),
            "vmovdqu ymm0, ymmword ptr [rdi + {START}]",
            "vmovdqu ymm1, ymmword ptr [rdi + {START} + 32]",
            "vmovdqu ymm2, ymmword ptr [rdi + {START} + 64]",
            "vmovdqu ymm3, ymmword ptr [rdi + {START} + 96]",
            // start.sequence - the page's lock - (slots > limit): both are even at rest, so it is 0, which is what is returned,
            // only if they are the same and the limit is not exceeded
            "mov eax, dword ptr [rdi + {SEQUENCE}]",
            "cmp qword ptr [rdi + {LIMIT}], r10",
            "sbb eax, dword ptr [rdi + {LOCK}]",
            "jne 25f",
            "21:",
            "vmovdqu ymmword ptr [rsi], ymm0",
            "vmovdqu ymmword ptr [rsi + 32], ymm1",
            "vmovdqu ymmword ptr [rsi + 64], ymm2",
            "vmovdqu ymmword ptr [rsi + 96], ymm3",
            "vzeroupper",
            "add qword ptr [rsi + {TOTAL}], r10",
            "add qword ptr [rsi + {ENABLED}], r9",
            "add qword ptr [rsi + {RUNNING}], r9",
            "ret",
            $crate::sys::restartable!(abort "vzeroupper"),
            "24: xor edx, edx", // nothing was seen
            "jmp {slowly}",
            // (the page's lock, which is even at rest: of what was compared, with or without a borrow)
            "25: vzeroupper",
            "mov r8d, dword ptr [rdi + {SEQUENCE}]",
            "sub r8d, eax",
            "and r8d, -2",
            "mov rcx, qword ptr [rsi + {RAW_METRICS}]",
            "mov rdx, r10",
            "jmp {slowly}",
            $crate::sys::restartable!(descriptor "23b"),
            // The same of general-purpose counters. They were with these events as long as the page's sequence number is the handle's; on
            // an E-core, where it is not, none of them is read. A handle with a group for each kind of core has another page for
            // the second one, behind another part of the same kind, which `slowly` does not hear of.
            "26: cmp rax, {BY_COUNTERS}",
            "je 27f",
            "cmp rax, {BY_SECOND}",
            "jne 24b",
            "mov rdi, qword ptr [rdi + {SECOND}]",
            "27: mov rcx, qword ptr [rdi + {RSEQ}]",
            $crate::sys::restartable!(enter "rcx", "rax"),
            "mov r8d, dword ptr [rdi + {SEQUENCE}]",
            "cmp r8d, dword ptr [rdi + {LOCK}]",
            "jne 24f",
            $crate::sys::scaled_clock!("r9", "rdi + {SCALE}"),
            "mov ecx, dword ptr [rdi + {NUMBERS}]",
            "rdpmc",
            "test edx, {STARTED}",
            "je 24f", // the kernel has zeroed it
            "shl rdx, 32",
            "lea r10, [rax + rdx]",
            concat!("jmp qword ptr [rdi + {ENTRIES} + 8 * ", $entry, "]"),
            concat!(".L", $name, "_each:"),
            "imul r10, qword ptr [rdi + {EACH}]",
            concat!("jmp qword ptr [rdi + {MEMBERS} + 8 * ", $entry, "]"),
            $crate::read::counters_into!($name, "_", "14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0"),
            "cmp qword ptr [rdi + {LIMIT}], r10",
            "sbb r8d, dword ptr [rdi + {LOCK}]",
            "jne 24f",
            "vmovdqu ymm0, ymmword ptr [rdi + {START}]",
            "vmovdqu ymm1, ymmword ptr [rdi + {START} + 32]",
            "mov rax, qword ptr [rdi + {START} + {ERROR}]",
            "21:",
            "vmovdqu ymmword ptr [rsi], ymm0",
            "vmovdqu ymmword ptr [rsi + 32], ymm1",
            "mov qword ptr [rsi + {ERROR}], rax",
            "vzeroupper",
            "add qword ptr [rsi + {TOTAL}], r10",
            "add qword ptr [rsi + {BEFORE}], r10", // no register holds any
            "add qword ptr [rsi + {ENABLED}], r9",
            "add qword ptr [rsi + {RUNNING}], r9",
            "xor eax, eax",
            "ret",
            $crate::sys::restartable!(abort "vzeroupper"),
            "24: xor edx, edx",
            "mov rdi, qword ptr [rdi + {MAIN}]",
            "jmp {slowly}",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            $crate::sys::restartable!(descriptor "23b"),
            concat!(".pushsection .data.rel.ro.", $name, ", \"aw\", @progbits"),
            ".balign 8",
            concat!(".globl ", $name, "_entries"),
            concat!(".hidden ", $name, "_entries"),
            concat!($name, "_entries:"),
            ".irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14",
            concat!(".quad .L", $name, "_\\k"),
            ".endr",
            concat!(".quad .L", $name, "_each"),
            concat!(".quad .L", $name, "_alone"),
            concat!(".quad .L", $name, "_beside_0"),
            concat!(".quad .L", $name, "_beside_1"),
            ".popsection",
            slowly = sym $slowly,
            READER = const ::std::mem::offset_of!($crate::read::Shared, reader),
            RSEQ = const ::std::mem::offset_of!($crate::read::Shared, rseq),
            LOCK = const $crate::read::TD_CONTROL_PAGE + ::std::mem::offset_of!($crate::sys::page::Page, lock),
            INDEX = const $crate::read::TD_CONTROL_PAGE + ::std::mem::offset_of!($crate::sys::page::Page, index),
            SLOTS_INDEX = const $crate::read::SLOTS_INDEX,
            SEQUENCE = const $crate::read::SEQUENCE,
            SCALE = const ::std::mem::offset_of!($crate::read::Shared, scale),
            LIMIT = const ::std::mem::offset_of!($crate::read::Shared, limit),
            START = const ::std::mem::offset_of!($crate::read::Shared, start),
            NUMBERS = const ::std::mem::offset_of!($crate::read::Shared, numbers),
            ENTRIES = const ::std::mem::offset_of!($crate::read::Shared, entries),
            MEMBERS = const ::std::mem::offset_of!($crate::read::Shared, members),
            EACH = const ::std::mem::offset_of!($crate::read::Shared, slots_each),
            COUNTER = const ::std::mem::offset_of!($crate::sample::Sample, counter),
            ERROR = const ::std::mem::offset_of!($crate::sample::Sample, base.error),
            BEFORE = const ::std::mem::offset_of!($crate::sample::Sample, slots_before),
            BY_COUNTERS = const $crate::read::BY_COUNTERS,
            BY_SECOND = const $crate::read::BY_SECOND,
            SECOND = const ::std::mem::offset_of!($crate::read::Shared, second),
            MAIN = const ::std::mem::offset_of!($crate::read::Shared, main),
            RAW_METRICS = const ::std::mem::offset_of!($crate::sample::Sample, raw_metrics),
            TOTAL = const ::std::mem::offset_of!($crate::sample::Sample, slots),
            ENABLED = const ::std::mem::offset_of!($crate::sample::Sample, time_enabled_ns),
            RUNNING = const ::std::mem::offset_of!($crate::sample::Sample, time_running_ns),
            STARTED = const $crate::read::STARTED >> 32,
            SLOTS = const $crate::sys::rdpmc::SLOTS,
            METRICS = const $crate::sys::rdpmc::METRICS,
            MARK = const $crate::sys::fault::MARK,
            SIGNATURE = const $crate::sys::rseq::SIGNATURE,
        );
    };
}
pub(crate) use fast_read;

fast_read!("topdown_fast_read", ".hidden", leave_it, "0");

/// Where `topdown_fast_read` and `td_read` begin to read so many general-purpose counters; one more than there can be: where they turn the
/// leader's count into slots.
pub(crate) fn entries(count: usize) -> [usize; 2] {
    places(count - 1)
}

/// Where they go on from registers that have so many counters beside them.
pub(crate) fn entries_beside(count: usize) -> [usize; 2] {
    places(MOST_COUNTERS + 1 + count)
}

fn places(k: usize) -> [usize; 2] {
    const ALL: usize = MOST_COUNTERS + 2 + MOST_MOVED;
    unsafe extern "C" {
        static topdown_fast_read_entries: [usize; ALL];
        static td_read_entries: [usize; ALL];
    }
    // SAFETY: tables that nobody changes.
    unsafe { [topdown_fast_read_entries[k], td_read_entries[k]] }
}

/// Where `topdown_fast_read` goes if the fast path does not serve: its caller finds what was seen in the sample.
///
/// # Safety
/// `out` points to a sample that nobody else uses.
unsafe extern "C" fn leave_it(
    _: *const Shared,
    out: *mut Sample,
    slots: u64,
    metrics: u64,
    sequence: u32,
) -> c_int {
    // SAFETY: `Shared::read`, the only caller of topdown_fast_read, has a reference to it.
    unsafe {
        (*out).slots = slots;
        (*out).raw_metrics = metrics;
        (*out).base.sequence = sequence;
    }
    1
}

impl Shared {
    /// A reading, if the fast path serves; else what was seen of the registers, and `out` means nothing.
    #[inline]
    #[allow(clippy::result_large_err)] // what was seen is looked at where it is
    pub fn read(&self, out: &mut Sample) -> Result<(), SeenRegisters> {
        unsafe extern "C" {
            fn topdown_fast_read(td: *const Shared, out: *mut Sample) -> c_int;
        }
        // SAFETY: a handle is where its Shared is, and its control page follows; both are there as long as the handle's memory.
        if unsafe { topdown_fast_read(self, out) } == 0 {
            return Ok(());
        }
        let registers = Registers { slots: RawSlots(out.slots), metrics: RawMetrics(out.raw_metrics) };
        Err(SeenRegisters { registers, sequence: out.base.sequence, ..SeenRegisters::default() })
    }

    /// What general-purpose counters say, by the numbers that they had when they were last looked at. None: the group is not on this CPU, it was
    /// never looked at, or the thread was disturbed.
    #[inline(never)]
    pub fn raw_counters(&self) -> Option<RawCounters> {
        if self.count.get() == 0 || self.rseq.get().is_null() {
            return None;
        }
        let mut raw = RawCounters::default();
        let done: u32;
        // SAFETY: descriptor and page are the calling thread's, which looked at its counters before; while the group is on this CPU,
        // each of its PMU's counters can be read. `raw` has room for all. The abort handler follows its signature, and goes where the
        // sequence ends.
        unsafe {
            asm!(concat!(
                "mov rcx, qword ptr [{shared} + {RSEQ}]\n lea rax, [rip + 22f]\n mov qword ptr [{raw} + {MINE}], rax\n",
                "xchg qword ptr [{shared} + rcx], rax\n", // what it held, and undisturbed from here on, in one instruction
                "20:\n mov qword ptr [{raw} + {BEFORE}], rax\n",
                "inc qword ptr [{shared} + {LOOKS}]\n mov rax, qword ptr [{shared} + {LOOKS}]\n mov qword ptr [{raw} + {LOOK}], rax\n",
                "cmp dword ptr [{shared} + {INDEX}], 0\n",
                "je 23f\n",
                "mov eax, dword ptr [{shared} + {LOCK}]\n mov dword ptr [{raw} + {AT}], eax\n",
                "mov ecx, dword ptr [{shared} + {NUMBERS}]\n rdpmc\n shl rdx, 32\n or rax, rdx\n",
                "mov qword ptr [{raw} + {COUNTER}], rax\n",
                "mov ecx, dword ptr [{shared} + {COUNT}]\n lea rax, [rip + 33f]\n jmp qword ptr [rax + 8 * rcx - 8]\n",
                // (as in `counted`)
                ".irp k, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0\n",
                "30\\k:\n",
                "mov ecx, dword ptr [{shared} + {NUMBERS} + 4 + 4 * \\k]\n rdpmc\n shl rdx, 32\n or rax, rdx\n",
                "mov qword ptr [{raw} + {COUNTER} + 8 + 8 * \\k], rax\n",
                ".endr\n",
                // (the kernel gives counters to others without preempting the thread, too)
                "mov eax, dword ptr [{raw} + {AT}]\n cmp eax, dword ptr [{shared} + {LOCK}]\n",
                "jne 23f\n",
                "mov eax, 1\n",
                "21:\n",
                restartable!(descriptor "23f"),
                ".pushsection .text.unlikely.topdown_rseq, \"ax\", @progbits\n",
                restartable!(abort "xor eax, eax"),
                "jmp 21b\n.popsection\n",
                ".pushsection .data.rel.ro.topdown_raw, \"aw\", @progbits\n",
                ".balign 8\n33:\n",
                ".irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14\n",
                ".quad 30\\k\\()b\n",
                ".endr\n",
                ".popsection"
            ),
            shared = in(reg) self,
            raw = in(reg) &raw mut raw,
            out("eax") done,
            out("rcx") _,
            out("rdx") _,
            RSEQ = const offset_of!(Shared, rseq_from_here),
            LOOKS = const offset_of!(Shared, looks),
            LOCK = const TD_CONTROL_PAGE + offset_of!(Page, lock),
            INDEX = const TD_CONTROL_PAGE + offset_of!(Page, index),
            NUMBERS = const offset_of!(Shared, numbers),
            COUNT = const offset_of!(Shared, count),
            AT = const offset_of!(RawCounters, sequence),
            LOOK = const offset_of!(RawCounters, look),
            MINE = const offset_of!(RawCounters, descriptor),
            BEFORE = const offset_of!(RawCounters, before),
            COUNTER = const offset_of!(RawCounters, counter),
            MARK = const MARK,
            SIGNATURE = const SIGNATURE,
            options(nostack));
        }
        (done != 0).then_some(raw)
    }
}

/// The uppermost bit of a general-purpose counter, which is set while it counts: the kernel starts each half its way, and again when it
/// overflows. It is clear after an overflow of PERF_METRICS, where the kernel zeroes SLOTS, whoever has it, and says so to nobody
/// (kernel-facts I). Then read(2) alone tells, until the group is next switched in.
pub(crate) const STARTED: u64 = 1 << (PLAIN_WIDTH - 1);

/// Whether the counters say what was counted.
pub(crate) fn tells(snapshot: &CountersSnapshot) -> bool {
    snapshot.counter[0].raw & STARTED != 0
}

/// Programs inline readings, and executions are read by general-purpose counters alone (`Shared::count_from`).
pub(crate) const HAS_RDPMC: bool = true;

/// A look at the pages counts itself.
pub(crate) const MEASURES_ITSELF: bool = true;
