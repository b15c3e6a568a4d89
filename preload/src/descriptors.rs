//! Descriptors where the program does not come upon them.

/// Opens descriptors where the program does not come upon them: above its own limit, which is raised meanwhile; if
/// that is as high as it can be, in its upper half.
pub fn with_high_descriptors<T>(open: impl FnOnce(i32) -> T) -> T {
    let (mut own, mut then) =
        (libc::rlimit { rlim_cur: 0, rlim_max: 0 }, libc::rlimit { rlim_cur: 0, rlim_max: 0 });
    // SAFETY: live rlimits.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut own);
        let raised = libc::rlimit { rlim_cur: own.rlim_max, ..own };
        let room = own.rlim_max > own.rlim_cur && libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0;
        let from = if room { own.rlim_cur } else { own.rlim_cur / 2 };
        let result = open(from.min(HIGH_ENOUGH) as i32);
        if room && libc::prlimit(0, libc::RLIMIT_NOFILE, &own, &mut then) == 0 {
            // the program has set another one meanwhile
            if (then.rlim_cur, then.rlim_max) != (raised.rlim_cur, raised.rlim_max) {
                libc::setrlimit(libc::RLIMIT_NOFILE, &then);
            }
        }
        result
    }
}

/// Descriptors need not be higher than this: the kernel's table of them is as long as the highest, and copied by each
/// fork.
const HIGH_ENOUGH: libc::rlim_t = 1 << 14;
