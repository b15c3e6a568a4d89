//! Readings at the ends of executions, each in one restartable sequence: of slots and times alone, or of the counters that tell all of an
//! execution.

use super::super::shared::{SEQUENCE, Shared, TD_CONTROL_PAGE};
use super::super::{HoldsSample, SLOTS_INDEX};
use super::STARTED;
use crate::sample::{Increments, Sample, SlotsOnly};
use crate::sys::fault::MARK;
use crate::sys::page::Page;
use crate::sys::rdpmc::SLOTS;
use crate::sys::rseq::SIGNATURE;
use crate::sys::{restartable, scaled_clock};
use std::arch::asm;
use std::mem::{MaybeUninit, offset_of};

/// A restartable sequence that leaves SLOTS and the nanoseconds of the clock, does this with them, and leaves period and
/// handle in rax; 0: it was disturbed.
macro_rules! slots_only {
    ($($then:literal),*; $($operand:tt)*) => {
        asm!(concat!(
            "mov rax, qword ptr fs:[0]\n",
            "cmp qword ptr [{shared} + {READER}], rax\n",
            "jne 23f\n",
            "mov rcx, qword ptr [{shared} + {RSEQ}]\n", // (no counter's number: the handler of a fault goes by rcx)
            restartable!(whole "rcx", "rax",
                "cmp dword ptr [{shared} + {INDEX}], {SLOTS_INDEX}",
                "jne 23f",
                scaled_clock!("{enabled}", "{shared} + {SCALE}"),
                "mov ecx, {SLOTS}\n rdpmc\n shl rdx, 32\n lea {slots}, [rax + rdx]",
                $($then,)*
                "mov eax, dword ptr [{shared} + {SEQUENCE}]",
                "cmp dword ptr [{shared} + {LOCK}], eax",
                "jne 23f",
                "mov rax, qword ptr [{shared} + {START} + {OF}]";
                aborted "xor eax, eax")
        ),
        $($operand)*
        out("rcx") _,
        out("rdx") _,
        READER = const offset_of!(Shared, reader),
        RSEQ = const offset_of!(Shared, rseq),
        LOCK = const TD_CONTROL_PAGE + offset_of!(Page, lock),
        INDEX = const TD_CONTROL_PAGE + offset_of!(Page, index),
        SLOTS_INDEX = const SLOTS_INDEX,
        SEQUENCE = const SEQUENCE,
        SCALE = const offset_of!(Shared, scale),
        START = const offset_of!(Shared, start),
        TOTAL = const offset_of!(Sample, slots),
        ENABLED = const offset_of!(Sample, time_enabled_ns),
        RUNNING = const offset_of!(Sample, time_running_ns),
        OF = const offset_of!(Sample, base.handle),
        SLOTS = const SLOTS,
        MARK = const MARK,
        SIGNATURE = const SIGNATURE,
        options(nostack))
    };
}

/// A restartable sequence that reads clock, slots and counters, and puts what each says, less what is at the first place of a
/// pair, to the second. It leaves 0 in rax; else it was disturbed, or the sample in `whole` is not of what samples start from now.
/// What passes from one counter to the next does not depend on the places, so the counts of two such readings are of one
/// stretch.
macro_rules! counted {
    ([$ns_less:literal, $ns:literal], [$slots_less:literal, $slots:literal], [$less:literal, $each:literal];
     $($operand:tt)*) => {
        asm!(concat!(
            "mov rcx, qword ptr [{shared} + {RSEQ}]\n",
            restartable!(whole "{shared} + rcx", "rax",
                "mov rax, qword ptr [{shared} + {START} + {OF}]",
                "cmp rax, qword ptr [{whole} + {AT} + {OF}]",
                "jne 23f",
                "cmp dword ptr [{shared} + {LOCK}], eax",
                "jne 23f", // not on this CPU, where RDPMC may fault
                scaled_clock!("rdx", "{shared} + {SCALE}"),
                concat!("sub rdx, qword ptr [", $ns_less, "]\n mov qword ptr [", $ns, "], rdx"),
                "mov ecx, dword ptr [{shared} + {NUMBERS}]\n rdpmc\n test edx, {STARTED}\n je 23f",
                "shl rdx, 32\n or rax, rdx",
                concat!("sub rax, qword ptr [", $slots_less, "]\n mov qword ptr [", $slots, "], rax"),
                "mov ecx, dword ptr [{shared} + {PLACE}]\n lea rdx, [rip + 33f]\n jmp qword ptr [rdx + 8 * rcx]",
                // (a leader that counts cycles)
                concat!("40: add rax, qword ptr [", $slots_less, "]\n imul rax, qword ptr [{shared} + {EACH}]"),
                concat!("sub rax, qword ptr [", $slots_less, "]\n mov qword ptr [", $slots, "], rax"),
                "mov ecx, dword ptr [{shared} + {COUNT}]\n jmp qword ptr [rdx + 8 * rcx]",
                    ".irp k, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0",
                "30\\k:",
                "mov ecx, dword ptr [{shared} + {NUMBERS} + 4 + 4 * \\k]\n rdpmc\n shl rdx, 32\n or rax, rdx",
                concat!("sub rax, qword ptr [", $less, " + 8 * \\k]\n mov qword ptr [", $each, " + 8 * \\k], rax"),
                ".endr",
                "mov eax, dword ptr [{shared} + {START} + {OF}]",
                "sub eax, dword ptr [{shared} + {LOCK}]";
                aborted "mov eax, 1"),
            "\n.pushsection .data.rel.ro.topdown_counted, \"aw\", @progbits\n",
            ".balign 8\n33:\n.quad 40b\n",
            ".irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14\n",
            ".quad 30\\k\\()b\n",
            ".endr\n",
            ".popsection"
        ),
        $($operand)*
        out("rcx") _,
        out("rdx") _,
        RSEQ = const offset_of!(Shared, rseq_from_here),
        LOCK = const TD_CONTROL_PAGE + offset_of!(Page, lock),
        SCALE = const offset_of!(Shared, scale),
        START = const offset_of!(Shared, start),
        NUMBERS = const offset_of!(Shared, numbers),
        PLACE = const offset_of!(Shared, place),
        COUNT = const offset_of!(Shared, count),
        EACH = const offset_of!(Shared, slots_each),
        AT = const T::AT,
        OF = const offset_of!(Sample, base.sequence), // and the window, which is of this period of this handle
        STARTED = const STARTED >> 32,
        FROM_NS = const offset_of!(Sample, time_enabled_ns),
        FROM_SLOTS = const offset_of!(Sample, slots),
        FROM = const offset_of!(Sample, counter),
        NS = const offset_of!(Increments, ns),
        SLOTS = const offset_of!(Increments, slots),
        COUNTER = const offset_of!(Increments, counter),
        MARK = const MARK,
        SIGNATURE = const SIGNATURE,
        options(nostack))
    };
}

/// By general-purpose counters of the calling thread's, as `Shared::may_count` says.
impl Shared {
    /// What clock, slots and counters say, less what is in `before`, goes into the sample in a larger thing. False: it has not the
    /// head of what samples start from now, and what was written means nothing.
    #[inline(always)]
    pub fn count_from<T: HoldsSample>(&self, whole: &mut T, before: &Increments) -> bool {
        let failed: u32;
        // SAFETY: descriptor and page are the calling thread's, as its counters are; there is a sample at AT of `whole`, which is
        // borrowed. The abort handler follows its signature, and goes where the sequence ends.
        unsafe {
            counted!(["{before} + {NS}", "{whole} + {AT} + {FROM_NS}"],
                ["{before} + {SLOTS}", "{whole} + {AT} + {FROM_SLOTS}"],
                ["{before} + {COUNTER}", "{whole} + {AT} + {FROM}"];
                shared = in(reg) self,
                whole = in(reg) &raw mut *whole,
                before = in(reg) before,
                out("eax") failed,
            );
        }
        failed == 0
    }

    /// What they have counted since that, and what is in its `before`, goes into `after`. False: they were away since, and what
    /// was written means nothing.
    #[inline(always)]
    pub fn count_to<T: HoldsSample>(&self, whole: &T, after: &mut Increments) -> bool {
        // SAFETY: it is borrowed.
        unsafe { self.count_into(whole, after) }
    }

    /// As `count_to`, of what was begun with `Increments::NONE`, for a function that is called with what was counted. None: it was not.
    #[inline(always)]
    pub fn count_one<T: HoldsSample, R>(
        &self,
        whole: &mut T,
        then: impl FnOnce(&mut T, &Increments) -> R,
    ) -> Option<R> {
        let mut one = MaybeUninit::uninit();
        // SAFETY: it is ours; for all that the compiler knows, what is in assembler writes to all of it.
        unsafe { self.count_into(whole, one.as_mut_ptr()).then(|| then(whole, one.assume_init_ref())) }
    }

    /// # Safety
    /// `after` can be written.
    #[inline(always)]
    unsafe fn count_into<T: HoldsSample>(&self, whole: &T, after: *mut Increments) -> bool {
        let failed: u32;
        // SAFETY: as `count_from`; the caller's word.
        unsafe {
            counted!(["{whole} + {AT} + {FROM_NS}", "{after} + {NS}"],
                ["{whole} + {AT} + {FROM_SLOTS}", "{after} + {SLOTS}"],
                ["{whole} + {AT} + {FROM}", "{after} + {COUNTER}"];
                shared = in(reg) self,
                whole = in(reg) &raw const *whole,
                after = in(reg) after,
                out("eax") failed,
            );
        }
        failed == 0
    }
}

/// By registers.
impl Shared {
    /// Totals of slots and time alone, by the fast path; no windows are opened for it.
    #[inline]
    pub fn slots_only(&self) -> Option<SlotsOnly> {
        Some(self.slots_only_or_zero()).filter(|read| read.handle != 0)
    }

    /// As `slots_only`; `handle` is 0 if that failed.
    #[inline(always)]
    pub fn slots_only_or_zero(&self) -> SlotsOnly {
        let (slots, enabled, running, of): (u64, u64, u64, u64);
        // SAFETY: the descriptor is used only if the reader is this thread: `attach` was given both, and `detach` comes
        // before the end of the control page, which is behind this. The abort handler follows its signature, and goes
        // where the sequence ends.
        unsafe {
            slots_only!("mov {running}, {enabled}",
                "add {slots}, qword ptr [{shared} + {START} + {TOTAL}]",
                "add {enabled}, qword ptr [{shared} + {START} + {ENABLED}]",
                "add {running}, qword ptr [{shared} + {START} + {RUNNING}]";
                shared = in(reg) self,
                slots = out(reg) slots,
                enabled = out(reg) enabled,
                running = out(reg) running,
                out("rax") of,
            );
        }
        SlotsOnly::of([slots, enabled, running], of)
    }

    /// What has been counted since the totals of the sample in a larger thing; `handle` and `period` are those of now, 0 if it failed.
    /// (The difference is taken in the sequence, in which no signal handler writes to the sample.)
    #[inline(always)]
    pub fn slots_since<T: HoldsSample>(&self, whole: &T) -> SlotsOnly {
        let (slots, enabled, running, of): (u64, u64, u64, u64);
        // SAFETY: the descriptor is used only if the reader is this thread: `attach` was given both, and `detach` comes
        // before the end of the control page, which is behind this. There is a sample at AT of `whole`, which is borrowed. The
        // abort handler follows its signature, and goes where the sequence ends.
        unsafe {
            slots_only!("mov {running}, {enabled}",
                "add {slots}, qword ptr [{shared} + {START} + {TOTAL}]",
                "add {enabled}, qword ptr [{shared} + {START} + {ENABLED}]",
                "add {running}, qword ptr [{shared} + {START} + {RUNNING}]",
                "sub {slots}, qword ptr [{whole} + {AT} + {TOTAL}]",
                "sub {enabled}, qword ptr [{whole} + {AT} + {ENABLED}]",
                "sub {running}, qword ptr [{whole} + {AT} + {RUNNING}]";
                shared = in(reg) self,
                whole = in(reg) &raw const *whole,
                AT = const T::AT,
                slots = out(reg) slots,
                enabled = out(reg) enabled,
                running = out(reg) running,
                out("rax") of,
            );
        }
        SlotsOnly::of([slots, enabled, running], of)
    }

    /// Totals into the sample in a larger thing, of which only these are written; false: what was written means nothing.
    #[inline(always)]
    pub fn slots_only_into<T: HoldsSample>(&self, whole: &mut T) -> bool {
        let of: u64;
        let whole: *mut u8 = (&raw mut *whole).cast();
        // SAFETY: descriptor and page are those of `slots_since`; there is a sample at AT of `whole`, which is borrowed.
        unsafe {
            slots_only!("mov rax, qword ptr [{shared} + {START} + {RUNNING}]",
                    "add rax, {enabled}",
                    "mov qword ptr [{out} + {OUT} + {RUNNING}], rax",
                    "add {enabled}, qword ptr [{shared} + {START} + {ENABLED}]",
                    "mov qword ptr [{out} + {OUT} + {ENABLED}], {enabled}",
                    "add {slots}, qword ptr [{shared} + {START} + {TOTAL}]",
                    "mov qword ptr [{out} + {OUT} + {TOTAL}], {slots}";
                shared = in(reg) self,
                out = in(reg) whole,
                OUT = const T::AT,
                slots = out(reg) _,
                enabled = out(reg) _,
                out("rax") of,
            );
            whole.add(T::AT + offset_of!(Sample, base.handle)).cast::<u64>().write(of);
        }
        of != 0
    }
}

/// `slots_only` reads both at once.
const _: () = assert!(offset_of!(Sample, base.period) == offset_of!(Sample, base.handle) + 4);
