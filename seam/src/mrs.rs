//! Counters of arm64, which user space reads by MRS where the sysctl kernel.perf_user_access is 1 and the event asks for it
//! (config1 of the armv8_pmuv3 PMUs: drivers/perf/arm_pmuv3.c).
//!
//! The name of the register is a part of the instruction, so there is a table of them. It is in a restartable sequence: what is
//! read in one is of one stretch of the thread on one CPU, and an MRS that is forbidden meanwhile is survived (`fault`), as the kernel
//! sends the thread to the abort handler before it delivers the signal.

use super::page::{self, Page, PlainCounter};
use super::rseq::SIGNATURE;
use crate::restartable;
use std::arch::global_asm;
use std::mem::offset_of;
use std::ptr::null;

/// Counters of a group.
pub const MOST: usize = 16;
/// Number of PMCCNTR_EL0, the cycle counter; below it are those of PMEVCNTR0_EL0 and on.
const CYCLES: u32 = 31;

/// What to read in one stretch.
#[repr(C)]
#[derive(Debug)]
pub struct Request {
    /// The thread's descriptor of restartable sequences.
    pub rseq: *mut u64,
    /// The sequence number of the leader's page.
    pub lock: *const u32,
    /// What it must be, before and after.
    pub expected: *const u32,
    /// Numbers of counters, each at most 31.
    pub numbers: *const u32,
    /// How many of them: 1 to `MOST`.
    pub count: usize,
    /// Where they go.
    pub raw: *mut u64,
    /// What else is to be of the same stretch: it is copied from here...
    pub from: *const u8,
    /// ...to here...
    pub to: *mut u8,
    /// ...so many bytes, a multiple of 32.
    pub bytes: usize,
    /// Where two numbers are that are to be of the same stretch, too.
    pub two: *const [u64; 2],
    /// They.
    pub copied: [u64; 2],
    /// What the clock that user space sees (CNTVCT_EL0) said.
    pub clock: u64,
}

unsafe extern "C" {
    fn topdown_mrs(request: *mut Request) -> u32;
    static topdown_mrs_table: [u32; 64];
    static topdown_mrs_aborted: u32;
}

global_asm!(
    ".pushsection .text.topdown_mrs, \"ax\", @progbits",
    ".globl topdown_mrs, topdown_mrs_table, topdown_mrs_aborted",
    ".hidden topdown_mrs, topdown_mrs_table, topdown_mrs_aborted",
    ".type topdown_mrs, @function",
    ".p2align 4",
    "topdown_mrs:",
    ".cfi_startproc",
    "ldp x1, x2, [x0, {RSEQ}]",
    "ldp x3, x4, [x0, {EXPECTED}]",
    "ldp x5, x6, [x0, {COUNT}]",
    "ldp x7, x8, [x0, {FROM}]",
    "ldp x9, x14, [x0, {BYTES}]",
    "adr x10, topdown_mrs_table",
    "mov x11, #0",
    "adrp x12, 22f",
    "add x12, x12, :lo12:22f",
    "str x12, [x1]",
    "20:", // what is between here and 21 runs undisturbed, or 23 follows
    "ldr w13, [x3]",
    "ldr w12, [x2]",
    "cmp w12, w13",
    "b.ne 23f",
    "cbz x9, 25f",
    "24: ldp q0, q1, [x7], #32",
    "stp q0, q1, [x8], #32",
    "subs x9, x9, #32",
    "b.ne 24b",
    "25: ldp x12, x13, [x14]",
    "stp x12, x13, [x0, {COPIED}]",
    "ldr w13, [x3]",
    "mrs x12, cntvct_el0",
    "str x12, [x0, {CLOCK}]",
    "26: ldr w12, [x4, x11, lsl #2]",
    "add x12, x10, x12, lsl #3",
    "br x12",
    "27: str x12, [x6, x11, lsl #3]",
    "add x11, x11, #1",
    "cmp x11, x5",
    "b.lo 26b",
    "ldr w12, [x2]",
    "cmp w12, w13",
    "b.ne 23f",
    "mov w0, #1",
    "b 21f",
    ".p2align 3",
    "topdown_mrs_table:",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30",
    "mrs x12, pmevcntr\\n\\()_el0",
    "b 27b",
    ".endr",
    "mrs x12, pmccntr_el0",
    "b 27b",
    "21: ret",
    ".inst {SIGNATURE}",
    "topdown_mrs_aborted:",
    "23: mov w0, #0",
    "ret",
    ".cfi_endproc",
    ".size topdown_mrs, . - topdown_mrs",
    ".popsection",
    restartable!(descriptor "23b"),
    RSEQ = const offset_of!(Request, rseq),
    EXPECTED = const offset_of!(Request, expected),
    COUNT = const offset_of!(Request, count),
    FROM = const offset_of!(Request, from),
    BYTES = const offset_of!(Request, bytes),
    COPIED = const offset_of!(Request, copied),
    CLOCK = const offset_of!(Request, clock),
    SIGNATURE = const SIGNATURE,
);

/// Reads what is asked for; false: something came between, or MRS is forbidden, and nothing that was written means anything.
///
/// # Safety
/// The pointers are to memory of these sizes, `lock` to that of a mapped control page or zeros, `rseq` is the calling thread's.
/// MRS that is forbidden is survived.
#[inline]
pub unsafe fn read(request: &mut Request) -> bool {
    // SAFETY: the caller's word; a function of these arguments, above.
    unsafe { topdown_mrs(request) != 0 }
}

/// Where a thread goes on that was interrupted at one of the MRS.
pub(crate) fn aborted() -> usize {
    &raw const topdown_mrs_aborted as usize
}

/// Whether one of the MRS is there.
pub(crate) fn is_ours(at: usize) -> bool {
    let table = &raw const topdown_mrs_table as usize;
    (table..table + size_of::<[u32; 64]>()).contains(&at)
}

/// The counters of plain events in one group, leader first, whose page has this sequence number, and what the clock said. None: it has
/// not any more, one of them has no counter, or MRS is forbidden.
///
/// # Safety
/// The pages are mapped control pages of events in one group of the calling thread, which asked for user access; `rseq` is its
/// descriptor. MRS that is forbidden is survived.
pub unsafe fn plain_counters(
    pages: impl Iterator<Item = *const Page> + Clone,
    rseq: *mut u64,
    sequence: u32,
    counters: &mut [PlainCounter],
) -> Option<u64> {
    let (mut locks, mut numbers, mut raw) = ([0; MOST], [0; MOST], [0; MOST]);
    let mut count = 0;
    for page in pages.clone() {
        // SAFETY: the caller vouches for the pages.
        unsafe {
            *locks.get_mut(count)? = page::sequence(page);
            let number = page::index(page).checked_sub(1)?;
            let offset = page::offset(page);
            let width = page::width(page);
            if number > CYCLES || !page::grants_rdpmc(page) || !(1..=64).contains(&width) {
                return None;
            }
            numbers[count] = number;
            *counters.get_mut(count)? =
                PlainCounter { number, raw: 0, base: offset, left: u64::MAX >> (64 - width) };
        }
        count += 1;
    }
    const NOTHING: [u64; 2] = [0; 2];
    let mut request = Request {
        rseq,
        lock: &raw const sequence,
        expected: &raw const sequence,
        numbers: numbers.as_ptr(),
        count,
        raw: raw.as_mut_ptr(),
        from: null(),
        to: std::ptr::null_mut(),
        bytes: 0,
        two: &NOTHING,
        copied: NOTHING,
        clock: 0,
    };
    // SAFETY: a field of a page that the caller vouches for.
    request.lock = unsafe { &raw const (*pages.clone().next()?).lock };
    // SAFETY: arrays of ours with room for so many, and the caller's word.
    if !unsafe { read(&mut request) } {
        return None;
    }
    for (place, page) in pages.enumerate() {
        // SAFETY: as above.
        if unsafe { page::sequence(page) } != locks[place] {
            return None; // the kernel changed this counter: it had overflowed
        }
        let (counter, raw) = (&mut counters[place], raw[place]);
        let mask = counter.left;
        let total = page::total(counter.base, raw, mask.count_ones() as u16);
        *counter = PlainCounter { raw, base: total.wrapping_sub(raw), left: mask - (raw & mask), ..*counter };
    }
    Some(request.clock)
}
