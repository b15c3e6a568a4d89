//! RDPMC and RDTSC.
//!
//! RDPMC can be taken away while handles are open, and then faults (`fault`). By the instruction behind it, which bears a mark
//! and does nothing, the handler of SIGSEGV knows whose it is. Each library has a mark of its own.

use super::page::{self, METRICS_INDEX, PLAIN_WIDTH, Page, PlainCounter, SLOTS_INDEX};
use super::rseq::SIGNATURE;
use crate::restartable;
use std::arch::asm;
use std::mem::offset_of;

/// In a template with the operand MARK, the instruction that bears it: where a thread goes on whose RDPMC has faulted.
#[macro_export]
macro_rules! marked_nop {
    () => {
        ".byte 0x0f, 0x1f, 0x80\n.long {MARK}\n"
    };
}

/// In a template with the operand MARK, an RDPMC that is survived outside of restartable sequences: RCX is negative if it
/// has faulted.
#[macro_export]
macro_rules! marked_rdpmc {
    () => {
        concat!("rdpmc\n", $crate::marked_nop!())
    };
}

/// In a template, what such an RDPMC of the counter `number` says, in the operand `to`. Takes RAX, RCX and RDX.
macro_rules! marked_read {
    ($number:literal, $to:literal) => {
        concat!(
            "mov ecx, ",
            $number,
            "\n",
            marked_rdpmc!(),
            "\n shl rdx, 32\n or rax, rdx\n mov ",
            $to,
            ", rax"
        )
    };
}

/// In a template, the time-stamp counter times the memory operand SCALE, in 2^64ths: twice the counter, whose top bit is 0,
/// makes room for a bit more of the scale. Takes RAX and RDX.
#[macro_export]
macro_rules! scaled_clock {
    ($out:literal, $scale:literal) => {
        concat!(
            "rdtsc\n shl rdx, 33\n lea rdx, [rdx + 2 * rax]\n",
            "mulx ",
            $out,
            ", rax, qword ptr [",
            $scale,
            "]\n"
        )
    };
}

/// RDPMC number of fixed counter 0.
pub const FIXED: u32 = 0x4000_0000;
/// RDPMC number of SLOTS, fixed counter 3 (kernel-facts C.1).
pub const SLOTS: u32 = SLOTS_INDEX - 1;
/// RDPMC number of PERF_METRICS.
pub const METRICS: u32 = METRICS_INDEX - 1;

/// The time-stamp counter.
#[inline(always)]
pub fn rdtsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: RDTSC is permitted to every Linux program that has not asked for the contrary.
    unsafe {
        asm!("rdtsc", lateout("rax") low, lateout("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// SLOTS and PERF_METRICS, read in one stretch of a thread.
#[derive(Clone, Copy, Debug)]
pub struct SlotsAndMetrics {
    /// SLOTS, before PERF_METRICS.
    pub slots: u64,
    /// PERF_METRICS.
    pub metrics: u64,
    /// Two other counters, behind it.
    pub counter: [u64; 2],
    /// SLOTS, behind these.
    pub again: u64,
}

/// SLOTS, PERF_METRICS, two counters of these numbers (SLOTS is one, too), and SLOTS again, one after the other, if the page's sequence
/// number is this one before and after. Without a descriptor something of the thread may have come between them (a signal handler):
/// then SLOTS has moved on. SLOTS is never 0.
///
/// # Safety
/// `page` is the mapped control page of a SLOTS event of a group with PERF_METRICS, for which RDPMC was granted, of the thread that
/// calls, and `rseq` is that thread's descriptor, or none on a machine that has the registers on each of its CPUs. While the page's
/// sequence number is this one, this CPU has these counters. RDPMC with this mark is survived.
pub unsafe fn slots_and_metrics<const MARK: u32>(
    page: *const Page,
    rseq: Option<*mut u64>,
    sequence: u32,
    numbers: [u32; 2],
) -> Option<SlotsAndMetrics> {
    let (mut unused, mut counter) = (0, [0u64; 3]);
    let (slots, metrics): (u64, u64);
    // SAFETY: the caller vouches for page, numbers and rseq; the abort handler follows its signature, and goes where the sequence ends.
    unsafe {
        asm!(
            restartable!(whole "{rseq}", "{slots}",
                "cmp dword ptr [{page} + {LOCK}], {sequence:e}",
                "jne 23f",
                "cmp dword ptr [{page} + {INDEX}], {SLOTS_INDEX}",
                "jne 23f",
                marked_read!("{SLOTS}", "{slots}"),
                marked_read!("{METRICS}", "{metrics}"),
                marked_read!("dword ptr [{numbers}]", "qword ptr [{counter}]"),
                marked_read!("dword ptr [{numbers} + 4]", "qword ptr [{counter} + 8]"),
                marked_read!("{SLOTS}", "qword ptr [{counter} + 16]"),
                "cmp dword ptr [{page} + {LOCK}], {sequence:e}",
                "jne 23f";
                aborted "xor {slots:e}, {slots:e}"),
            page = in(reg) page,
            rseq = in(reg) rseq.unwrap_or(&raw mut unused),
            sequence = in(reg) sequence,
            numbers = in(reg) numbers.as_ptr(),
            counter = in(reg) counter.as_mut_ptr(),
            slots = out(reg) slots,
            metrics = out(reg) metrics,
            out("rax") _,
            out("rcx") _,
            out("rdx") _,
            LOCK = const offset_of!(Page, lock),
            INDEX = const offset_of!(Page, index),
            SLOTS_INDEX = const SLOTS_INDEX,
            SLOTS = const SLOTS,
            METRICS = const METRICS,
            MARK = const MARK,
            SIGNATURE = const SIGNATURE,
            options(nostack),
        );
    }
    let [first, second, again] = counter;
    (slots != 0).then_some(SlotsAndMetrics { slots, metrics, counter: [first, second], again })
}

/// One general or fixed counter; None if RDPMC faulted: it was forbidden after the event was opened, or the thread has come
/// to a CPU without this counter since it was looked for.
///
/// # Safety
/// RDPMC with this mark is survived.
#[inline(always)]
pub unsafe fn counter<const MARK: u32>(number: u32) -> Option<u64> {
    let (low, high): (u64, u64);
    let mut number = u64::from(number);
    // SAFETY: the caller's word. It is taken to touch memory, so what is read before and after it stays there.
    unsafe {
        asm!(
            marked_rdpmc!(),
            MARK = const MARK,
            inlateout("rcx") number,
            lateout("rax") low,
            lateout("rdx") high,
            options(nostack, preserves_flags),
        );
    }
    (number as i64 >= 0).then_some(high << 32 | low)
}

/// The total of a plain event that counts, in a counter of PLAIN_WIDTH bits; negative if it does not count now, the page
/// changed meanwhile, RDPMC faulted, or the total is not the plain sum of offset and counter.
///
/// # Safety
/// The mapped control page of an event that is plain ([`is_plain`]). RDPMC with this mark is survived.
#[inline(always)]
pub unsafe fn plain_total<const MARK: u32>(page: *const Page) -> i64 {
    let (total, failed): (i64, i64);
    // SAFETY: the caller's word. It reads the page and nothing else, and is taken to touch memory, so what the program reads
    // and writes before and after it stays there.
    unsafe {
        asm!(
            "mov {lock:e}, [{page} + {LOCK}]",
            "mov ecx, [{page} + {INDEX}]",
            "sub rcx, 1",
            "js 2f", // it has no counter
            marked_rdpmc!(),
            "movsx rdx, dx", // of PLAIN_WIDTH bits, brought to 64 with its sign
            "shl rdx, 32",
            "or rax, rdx",
            "add rax, [{page} + {OFFSET}]",
            "cmp {lock:e}, [{page} + {LOCK}]",
            "je 2f",
            "mov rcx, -1", // the page changed meanwhile
            "2:",
            "sar rcx, 63",
            page = in(reg) page,
            lock = out(reg) _,
            LOCK = const offset_of!(Page, lock),
            INDEX = const offset_of!(Page, index),
            OFFSET = const offset_of!(Page, offset),
            MARK = const MARK,
            out("rcx") failed, // all ones or 0: RCX is negative without a counter, and after a fault
            out("rax") total,
            out("rdx") _,
            options(nostack),
        );
    }
    total | failed
}

/// The total of a plain event, less its counter, which said `raw`, and the counter's number; None: it has none, or the page moved.
///
/// # Safety
/// `page` is the mapped control page of a plain event.
pub unsafe fn plain_base(page: *const Page, raw: u64) -> Option<PlainCounter> {
    // SAFETY: the caller vouches for the page, which the kernel changes at any time, hence volatile.
    unsafe {
        let lock = page::sequence(page);
        let number = page::index(page).checked_sub(1)?;
        let (offset, width) = (page::offset(page), page::width(page));
        let base = page::total(offset, raw, width).wrapping_sub(raw);
        let counter = || PlainCounter { number, raw, base, left: (1u64 << PLAIN_WIDTH).saturating_sub(raw) };
        (page::sequence(page) == lock && width == PLAIN_WIDTH).then(counter)
    }
}

/// Whether an event is none of SLOTS and PERF_METRICS, whose pages have no offset (kernel-facts C.3): by the counter that it
/// has (it never gets one of these later), or, as it has none now, by its code.
pub fn is_plain(index: u32, config: u64) -> bool {
    match index {
        0 => config & 0xff != 0 || config >> 8 & 0xff < 4,
        _ => index != SLOTS_INDEX && index != METRICS_INDEX,
    }
}

/// What [`total`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// The event's total.
    Known(u64),
    /// RDPMC faulted.
    Faulted,
    /// The event has no counter now, one without an offset, or RDPMC was not granted; or the page does not stand still.
    Unknown,
}

/// How often a page that changes is read again. Who steps through the program instruction by instruction (a debugger) makes it
/// change each time.
const TRIES: u32 = 8;

/// The total of any event, by its page's offset and its counter.
///
/// # Safety
/// A mapped control page. RDPMC with this mark is survived.
pub unsafe fn total<const MARK: u32>(page: *const Page) -> Total {
    // SAFETY: the caller vouches for the page, which the kernel changes at any time, hence volatile.
    unsafe {
        for _ in 0..TRIES {
            let lock = page::sequence(page);
            let index = page::index(page);
            if matches!(index, 0 | SLOTS_INDEX | METRICS_INDEX) || !page::grants_rdpmc(page) {
                return Total::Unknown;
            }
            let (offset, width) = (page::offset(page), page::width(page));
            let Some(raw) = counter::<MARK>(index - 1) else { return Total::Faulted };
            if page::sequence(page) == lock {
                return Total::Known(page::total(offset, raw, width));
            }
        }
        Total::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_metrics_are_not_plain() {
        for (index, config, plain) in [
            (SLOTS_INDEX, 0x400, false),
            (METRICS_INDEX, 0x8000, false),
            // not counting now
            (0, 0x400, false),
            (0, 0x8700, false),
            (0, 0, true), // PERF_COUNT_HW_CPU_CYCLES
            (0, 0x300, true),
            (0, 0x4c0, true),
            (1, 0x1ff_0f00, true), // another maker's event 0
            (0x4000_0001, 0xc0, true),
        ] {
            assert_eq!(is_plain(index, config), plain, "{index:#x} {config:#x}");
        }
    }
}
