//! A line on stderr that does the program no harm: not into what it has opened in stderr's place, and no SIGPIPE if
//! nobody reads.

use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The device and inode that stderr was at the start.
static STDERR: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// To be called when the program begins.
pub fn prepare() {
    let [device, inode] = identity();
    STDERR[0].store(device, Relaxed);
    STDERR[1].store(inode, Relaxed);
}

pub fn say(line: &str) {
    if identity() != [STDERR[0].load(Relaxed), STDERR[1].load(Relaxed)] {
        return;
    }
    let line = format!("topdown: {line}\n");
    // SAFETY: signal sets of this function, and the text's own bytes.
    unsafe {
        let (mut pipe, mut before, mut pending) = (zeroed(), zeroed(), zeroed());
        libc::sigemptyset(&mut pipe);
        libc::sigaddset(&mut pipe, libc::SIGPIPE);
        libc::sigpending(&mut pending);
        libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, &mut before);
        if libc::write(2, line.as_ptr().cast(), line.len()) < 0
            && libc::sigismember(&pending, libc::SIGPIPE) == 0
        {
            // this one is ours, if there is one
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&pipe, ptr::null_mut(), &at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
    }
}

fn identity() -> [u64; 2] {
    // SAFETY: fstat fills in the variable, or it stays zero.
    unsafe {
        let mut status: libc::stat = zeroed();
        libc::fstat(2, &mut status);
        [status.st_dev, status.st_ino]
    }
}
