//! Restartable sequences: a stretch of instructions that the kernel either lets a thread run without being
//! preempted, migrated or interrupted by a signal, or sends to its abort handler (rseq(2); glibc 2.35
//! registers each thread). It is what makes "look at the page, then execute RDPMC" one step.

/// The text of a restartable sequence, for templates of `asm!` and `global_asm!` that have the operands SIGNATURE
/// ([`SIGNATURE`]) and MARK (of the library's RDPMC: [`crate::marked_nop`]).
///
/// `restartable!(whole AREA, SCRATCH, BODY..., aborted TEXT)` is all of it. BODY runs undisturbed, or the thread does TEXT
/// and goes on behind the sequence; so it does where BODY jumps to `23f`. AREA is a register with what [`descriptor`] gave,
/// SCRATCH one that is overwritten. Labels 20 to 23 are taken. `enter`, `descriptor` and `abort` are its parts, for a
/// function whose abort handler is to be among its own instructions.
#[macro_export]
macro_rules! restartable {
    (whole $area:literal, $scratch:literal, $($body:expr),*; aborted $text:literal) => {
        concat!(
            $crate::restartable!(enter $area, $scratch),
            $($body, "\n",)*
            "21:\n",
            $crate::restartable!(descriptor "23f"),
            ".pushsection .text.unlikely.topdown_rseq, \"ax\", @progbits\n",
            $crate::restartable!(abort $text),
            "jmp 21b\n",
            ".popsection"
        )
    };
    (enter $area:literal, $scratch:literal) => {
        concat!("lea ", $scratch, ", [rip + 22f]\n", "mov qword ptr [", $area, "], ", $scratch, "\n", "20:\n")
    };
    (descriptor $abort:literal) => {
        concat!(
            ".pushsection .data.rel.ro.topdown_rseq, \"aw\", @progbits\n",
            ".balign 32\n",
            "22: .long 0, 0\n",
            ".quad 20b, 21b - 20b, ",
            $abort,
            "\n.popsection\n"
        )
    };
    (abort $text:literal) => {
        concat!(".byte 0x0f, 0xb9, 0x3d\n", ".long {SIGNATURE}\n", "23: ", $crate::marked_nop!(), $text, "\n")
    };
}

/// Marks abort handlers of x86, as glibc registers it.
#[cfg(target_arch = "x86_64")]
pub const SIGNATURE: u32 = 0x5305_3053;

/// The same of arm64, where it is a BRK.
#[cfg(target_arch = "aarch64")]
pub const SIGNATURE: u32 = 0xd428_bc00;

/// Where this thread tells the kernel of the sequence it is in; none if the thread is not registered.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn descriptor() -> Option<*mut u64> {
    const CPU_ID: usize = 4;
    const RSEQ_CS: usize = 8;
    // SAFETY: both are names of data of glibc's; their types are those of sys/rseq.h. Below the offset lies
    // struct rseq, as long as the size is not 0.
    unsafe {
        let offset: *const isize = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast();
        let size: *const u32 = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast();
        if offset.is_null() || size.is_null() || *size == 0 {
            return None;
        }
        let area = (super::thread::pointer() as *mut u8).offset(*offset);
        // negative: the registration failed
        let registered = area.add(CPU_ID).cast::<i32>().read_volatile() >= 0;
        registered.then(|| area.add(RSEQ_CS).cast())
    }
}

/// No sequence is written for other machines.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn descriptor() -> Option<*mut u64> {
    None
}
