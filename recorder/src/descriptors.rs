//! A thread's own table of descriptors: what it opens is not among those of the program, which may close all of its own, and no
//! child of a fork inherits it.

use std::fs::File;

const CLOSE_RANGE_UNSHARE: libc::c_uint = 2;

/// Standard input, output and error of the thread, which hold nothing open.
pub struct OwnDescriptors {
    _standard: [Option<File>; 3],
}

impl OwnDescriptors {
    /// Gives the calling thread an empty table of its own. Where that is not possible (Linux before 5.9, a seccomp filter) it shares
    /// the program's as before.
    pub fn new() -> OwnDescriptors {
        // SAFETY: a system call without pointers, which closes descriptors in a table that this thread alone has by then, and
        // which has none opened yet.
        let own =
            unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE) == 0 };
        // (the first three are not to be events: a panic's text is written to one)
        let standard =
            || own.then(|| File::options().read(true).write(true).open("/dev/null").ok()).flatten();
        OwnDescriptors { _standard: [standard(), standard(), standard()] }
    }
}
