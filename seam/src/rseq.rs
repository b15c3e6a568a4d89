//! Restartable sequences: a stretch of instructions that the kernel either lets a thread run without being
//! preempted, migrated or interrupted by a signal, or sends to its abort handler (rseq(2); glibc 2.35
//! registers each thread). It is what makes "look at the page, then execute RDPMC" one step.

/// Marks abort handlers of x86, as glibc registers it.
#[cfg(target_arch = "x86_64")]
pub const SIGNATURE: u32 = 0x5305_3053;

/// Where this thread tells the kernel of the sequence it is in; none if the thread is not registered.
#[cfg(target_arch = "x86_64")]
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

#[cfg(not(target_arch = "x86_64"))]
pub fn descriptor() -> Option<*mut u64> {
    None
}
