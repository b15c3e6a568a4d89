//! The read path: no lock, no allocation, no system call.
//!
//! The control page's sequence number moves whenever the kernel takes the counters away or gives them
//! back. As long as it is the one at which `Hot::follow` last looked, the counters are this thread's on this
//! CPU and the clock runs from where it was. The page's `offset` is never used: the driver does not keep
//! it for these events (kernel-facts C.3).
//!
//! Both registers and all that goes with them are read in one restartable sequence: if the thread is preempted,
//! migrated or interrupted by a signal meanwhile, nothing of it counts. So SLOTS and PERF_METRICS are of one
//! stretch of the program, a handler that reads or resets the same handle is seen, and on a hybrid CPU RDPMC
//! is not executed on an E-core, where it would fault.

use super::{Head, SLOTS_INDEX, Snapshot};
use crate::registers::{EDGE_SLOTS, RawMetrics, RawSlots, Registers};
use crate::sample::{Base, Sample};
use crate::sys::Mapping;
use crate::sys::page::{self, Look, Page};
use crate::sys::rdpmc::{METRICS, SLOTS, rdtsc};
use crate::sys::rseq::SIGNATURE;
use crate::sys::slot::Zeroable;
use crate::sys::thread;
use crate::window::Times;
use std::arch::asm;
use std::arch::x86_64::{__m128i, _mm_storeu_si128};
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr::{addr_of_mut, null_mut};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// A sequence number that no page has at rest, when it is even: the counters were away.
const AWAY: u32 = u32::MAX;

/// What a reading needs. It lives in memory that a forked child finds zeroed.
#[repr(C)]
pub(crate) struct Hot {
    /// The thread whose readings may come straight from the registers; 0 while nobody's may.
    pub owner: AtomicU64,
    /// Not 0: the memory is as the parent left it.
    pub present: AtomicU64,
    page: Cell<*const Page>,
    /// Where the owner tells the kernel of its restartable sequence.
    rseq: Cell<*mut u64>,
    /// The page's sequence number when it was last looked at, or `AWAY`.
    sequence: Cell<u32>,
    /// See `tsc_scale`.
    scale: Cell<u64>,
    /// SLOTS at the last reading of this window: if it goes back, somebody else reset the registers. A
    /// sequence that did not run to its end gives 0, which is never more.
    pub last: Cell<u64>,
    pub head: Cell<Head>,
    /// Times of this period at clock zero, were the counters running since.
    time: Cell<Times>,
    pub base: Cell<Base>,
}

// SAFETY: numbers, and raw pointers.
unsafe impl Zeroable for Hot {}

/// A multiplier that turns the time-stamp counter into nanoseconds in the upper 65 bits of the product,
/// one more than a register's: so that a clock of down to half a gigahertz fits.
fn tsc_scale(mult: u32, shift: u16) -> Option<u64> {
    let up = 63u32.checked_sub(shift.into())?;
    u64::try_from(u128::from(mult) << up).ok()
}

/// The end of a restartable sequence that begins at label 20 and ends at 21: its descriptor, and the abort
/// handler, which clears the register that is named and goes to the end.
macro_rules! descriptor {
    ($slots:literal) => {
        concat!(
            ".pushsection .data.rel.ro.topdown_rseq, \"aw\", @progbits\n",
            ".balign 32\n",
            "22: .long 0, 0\n",
            ".quad 20b, 21b - 20b, 23f\n",
            ".popsection\n",
            ".pushsection .text.unlikely.topdown_rseq, \"ax\", @progbits\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long {SIGNATURE}\n",
            "23: xor ",
            $slots,
            ", ",
            $slots,
            "\n",
            "jmp 21b\n",
            ".popsection"
        )
    };
}

/// Nanoseconds of the clock.
fn clock(scale: u64) -> u64 {
    ((u128::from(rdtsc()) * u128::from(scale)) >> 63) as u64
}

/// The multiplier for a page, 0 if it gives no clock.
fn scale_of(page: &Look) -> u64 {
    if page.clock { tsc_scale(page.time_mult, page.time_shift).unwrap_or(0) } else { 0 }
}

/// What to add to the clock for the time of a period: the times of the page, or of the last read(2) if they
/// are later, which they are where there is no clock.
fn time_of(page: &Look, scale: u64, known: Times, begun: Times) -> Times {
    if scale == 0 {
        return page.time.latest(known).since(begun);
    }
    Times {
        enabled: page.time.enabled.wrapping_add(page.time_offset).wrapping_sub(begun.enabled),
        running: page.time.running.wrapping_add(page.time_offset).wrapping_sub(begun.running),
    }
}

/// Both registers, of one stretch of the thread, if the page's sequence number is this one before and after.
///
/// # Safety
/// `page` is the mapped control page of a SLOTS event of a group with PERF_METRICS, for which RDPMC was granted,
/// of the thread that calls, and `rseq` is that thread's descriptor, or NULL on a machine that has the
/// registers on each of its CPUs.
unsafe fn pair(page: *const Page, rseq: *mut u64, sequence: u32) -> Option<Registers> {
    let mut unused = 0;
    let undisturbed = !rseq.is_null();
    let rseq = if undisturbed { rseq } else { &raw mut unused };
    let (slots, metrics, again): (u64, u64, u64);
    // SAFETY: the caller vouches for page and rseq; the abort handler follows its signature, and goes where
    // the sequence ends.
    unsafe {
        asm!(
            "lea {scratch}, [rip + 22f]",
            "mov qword ptr [{rseq}], {scratch}",
            "20:",
            "cmp dword ptr [{page} + {LOCK}], {sequence:e}",
            "jne 23f",
            "cmp dword ptr [{page} + {INDEX}], {SLOTS_INDEX}",
            "jne 23f",
            "mov ecx, {SLOTS}", "rdpmc", "shl rdx, 32", "or rax, rdx", "mov {slots}, rax",
            "mov ecx, {METRICS}", "rdpmc", "shl rdx, 32", "or rax, rdx", "mov {metrics}, rax",
            "mov ecx, {SLOTS}", "rdpmc", "shl rdx, 32", "or rax, rdx",
            "cmp dword ptr [{page} + {LOCK}], {sequence:e}",
            "jne 23f",
            "21:",
            descriptor!("{slots:e}"),
            page = in(reg) page,
            rseq = in(reg) rseq,
            sequence = in(reg) sequence,
            scratch = out(reg) _,
            slots = out(reg) slots,
            metrics = out(reg) metrics,
            out("rax") again,
            out("rcx") _,
            out("rdx") _,
            LOCK = const offset_of!(Page, lock),
            INDEX = const offset_of!(Page, index),
            SLOTS_INDEX = const SLOTS_INDEX,
            SLOTS = const SLOTS,
            METRICS = const METRICS,
            SIGNATURE = const SIGNATURE,
            options(nostack),
        );
    }
    // without a descriptor a signal handler may have run in between: then SLOTS has moved on
    let together = undisturbed || again.wrapping_sub(slots) <= EDGE_SLOTS;
    (slots != 0 && together).then_some(Registers { slots: RawSlots(slots), metrics: RawMetrics(metrics) })
}

/// A snapshot for the paths that can take their time. `map` is of a SLOTS event, with PERF_METRICS, of the
/// calling thread. None if the counters are not on this CPU, or were taken away meanwhile.
pub(crate) fn snapshot(map: &impl Mapping, rseq: Option<*mut u64>, known: Times) -> Option<Snapshot> {
    let page = map.look();
    if !page.rdpmc || page.index != SLOTS_INDEX {
        return None;
    }
    let scale = scale_of(&page);
    let now = clock(scale);
    // SAFETY: the page is mapped and RDPMC was granted; groups on hybrid CPUs come with a descriptor.
    let registers = unsafe { pair(map.page(), rseq.unwrap_or(null_mut()), page.sequence) }?;
    let time = time_of(&page, scale, known, Times::default());
    let time = Times { enabled: time.enabled.wrapping_add(now), running: time.running.wrapping_add(now) };
    Some(Snapshot { registers, sequence: page.sequence, time })
}

impl Hot {
    /// Lets `owner` read under `page` from now on, in a period that began at `begun`, with the owner's
    /// descriptor. Returns whether the page gives a clock.
    pub fn attach(&self, page: *const Page, rseq: *mut u64, known: Times, begun: Times, owner: u64) -> bool {
        self.page.set(page);
        self.rseq.set(rseq);
        let clock = self.follow(known, begun);
        self.owner.store(owner, Ordering::Relaxed);
        clock
    }

    /// Sends all readings to the slow path.
    pub fn detach(&self) {
        self.sequence.set(AWAY);
        self.owner.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.page.set(std::ptr::null());
    }

    /// Lets the calling thread, the owner, point the kernel to its restartable sequence no longer.
    pub fn leave(&self) {
        let rseq = self.rseq.replace(null_mut());
        if !rseq.is_null() {
            // SAFETY: the descriptor is the calling thread's, as it was when `attach` was given it.
            unsafe { rseq.write(0) };
        }
    }

    /// Looks at the page after its sequence number has moved. Returns whether it gives a clock. `known`: the
    /// times at the last read(2).
    pub fn follow(&self, known: Times, begun: Times) -> bool {
        if self.page.get().is_null() {
            return true;
        }
        // SAFETY: `attach` was given the page, which is mapped until after `detach`.
        let page = unsafe { page::look(self.page.get()) };
        let away = page.index != SLOTS_INDEX;
        let scale = scale_of(&page);
        // a signal handler that reads meanwhile must not take the one without the other
        self.sequence.set(AWAY);
        compiler_fence(Ordering::SeqCst);
        self.scale.set(scale);
        self.time.set(time_of(&page, scale, known, begun));
        compiler_fence(Ordering::SeqCst);
        self.sequence.set(if away { AWAY } else { page.sequence });
        scale != 0
    }

    /// The steady state: fills in `out` if this thread owns the registers and they count now.
    #[inline(always)]
    pub fn read(&self, out: &mut Sample) -> bool {
        let (slots, metrics, sequence): (u64, u64, u64);
        let (head, base): (__m128i, [__m128i; 5]);
        // SAFETY: page and descriptor are used only if the owner is this thread: `attach` was given them with it,
        // and `detach` comes before the page's end. The abort handler follows its signature, and goes where the
        // sequence ends. If the page's number is not the one that is kept, nothing that was read counts.
        unsafe {
            let time: __m128i;
            let (b0, b1, b2, b3, b4): (__m128i, __m128i, __m128i, __m128i, __m128i);
            asm!(
                "cmp qword ptr [{hot} + {OWNER}], {sequence}", // where the thread still is
                "jne 23f",
                "lea rcx, [rip + 22f]",
                "mov qword ptr [{rseq}], rcx",
                "20:",
                "mov {sequence:e}, dword ptr [{hot} + {SEQUENCE}]",
                "cmp dword ptr [{page} + {LOCK}], {sequence:e}",
                "jne 23f",
                "rdtsc", "shl rdx, 32", "or rax, rdx",
                "mul qword ptr [{hot} + {SCALE}]", "shld rdx, rax, 1",
                "movq {time}, rdx", "punpcklqdq {time}, {time}",
                "mov ecx, {SLOTS}", "rdpmc", "shl rdx, 32", "or rax, rdx", "mov {slots}, rax",
                "mov ecx, {METRICS}", "rdpmc", "shl rdx, 32", "or rax, rdx",
                "paddq {time}, xmmword ptr [{hot} + {TIME}]",
                "movq {head}, {slots}",
                "pslldq {head}, 8",
                "paddq {head}, xmmword ptr [{hot} + {HEAD}]",
                "movdqu {b0}, xmmword ptr [{hot} + {BASE}]",
                "movdqu {b1}, xmmword ptr [{hot} + {BASE} + 16]",
                "movdqu {b2}, xmmword ptr [{hot} + {BASE} + 32]",
                "movdqu {b3}, xmmword ptr [{hot} + {BASE} + 48]",
                "movdqu {b4}, xmmword ptr [{hot} + {BASE} + 64]",
                "cmp dword ptr [{page} + {LOCK}], {sequence:e}",
                "jne 23f",
                "21:",
                descriptor!("{slots:e}"),
                hot = in(reg) self,
                page = in(reg) self.page.get(),
                rseq = in(reg) self.rseq.get(),
                sequence = inout(reg) thread::current() => sequence,
                slots = out(reg) slots,
                time = out(xmm_reg) time,
                head = out(xmm_reg) head,
                b0 = out(xmm_reg) b0,
                b1 = out(xmm_reg) b1,
                b2 = out(xmm_reg) b2,
                b3 = out(xmm_reg) b3,
                b4 = out(xmm_reg) b4,
                out("rax") metrics,
                out("rcx") _,
                out("rdx") _,
                OWNER = const offset_of!(Hot, owner),
                LOCK = const offset_of!(Page, lock),
                SEQUENCE = const offset_of!(Hot, sequence),
                SCALE = const offset_of!(Hot, scale),
                TIME = const offset_of!(Hot, time),
                HEAD = const offset_of!(Hot, head),
                BASE = const offset_of!(Hot, base),
                SLOTS = const SLOTS,
                METRICS = const METRICS,
                SIGNATURE = const SIGNATURE,
                options(nostack),
            );
            base = [b0, b1, b2, b3, b4];
            if slots <= self.last.get() {
                return false;
            }
            self.last.set(slots);

            let out: *mut Sample = out;
            _mm_storeu_si128(out.cast(), head);
            _mm_storeu_si128(addr_of_mut!((*out).time_enabled_ns).cast(), time);
            (*out).raw_slots = slots;
            (*out).raw_metrics = metrics;
            addr_of_mut!((*out).sequence).cast::<u64>().write_unaligned(sequence);
            addr_of_mut!((*out).base).cast::<[__m128i; 5]>().write_unaligned(base);
        }
        true
    }
}

/// `read` writes these in pairs.
const _: () = {
    assert!(offset_of!(Sample, slots) == offset_of!(Head, slots) && size_of::<Head>() == 16);
    assert!(offset_of!(Sample, time_running_ns) == offset_of!(Sample, time_enabled_ns) + 8);
    assert!(offset_of!(Sample, reserved) == offset_of!(Sample, sequence) + 4);
    assert!(size_of::<Base>() == 5 * 16 && offset_of!(Hot, head) % 16 == 0);
    assert!(offset_of!(Times, running) == 8 && offset_of!(Hot, time) % 16 == 0);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_turns_cycles_into_nanoseconds_as_the_kernel_does() {
        for (mult, shift) in [(2_147_485_795u32, 31u16), (1 << 31, 31), (0x6aaa_aaab, 31), (699_050, 21)] {
            let scale = tsc_scale(mult, shift).unwrap();
            for tsc in [0u64, 12_345, 1 << 40, 0x000f_ffff_ffff_ffff] {
                let kernel = ((tsc as u128 * mult as u128) >> shift) as u64;
                assert_eq!(((tsc as u128 * scale as u128) >> 63) as u64, kernel, "{mult} {shift} {tsc}");
            }
        }
        assert_eq!(tsc_scale(u32::MAX, 16), None);
        assert_eq!(tsc_scale(1, 64), None);
    }
}
