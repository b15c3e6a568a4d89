//! What is written when the program is at its end, and lines on stderr, do the program no harm: not into what it has
//! opened in stderr's place, and no signal if nobody reads, or the file would be longer than the program may make one.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use topdown_table::cleaned;

/// The device and inode that stderr was at the start.
static STDERR: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// To be called when the program begins.
pub fn prepare() {
    STDERR.iter().zip(identity()).for_each(|(known, now)| known.store(now, Relaxed));
}

/// Whether stderr is what it was then.
pub fn stderr_is_known() -> bool {
    identity() == [STDERR[0].load(Relaxed), STDERR[1].load(Relaxed)]
}

/// The longest line.
const LONGEST: usize = 4096;

/// A line for the user, of which a terminal obeys nothing, and which is wrapped there; it takes no memory.
pub fn say(line: &str) {
    if !stderr_is_known() {
        return;
    }
    let (mut text, length) = laid_out(line, columns());
    text[length] = b'\n';
    // SAFETY: a live text. (Whoever does not read it does not want it.)
    unharmed(|| unsafe { libc::write(2, text.as_ptr().cast(), length + 1) });
}

/// The line behind our name, in lines of so many columns, as far as words allow; how long it is.
fn laid_out(line: &str, width: usize) -> ([u8; LONGEST], usize) {
    let (mut text, mut length) = ([0; LONGEST], 0);
    let (mut column, mut space) = (0, None);
    let written = line.chars().flat_map(cleaned);
    for c in "topdown: ".chars().chain(written) {
        if length + c.len_utf8() >= LONGEST {
            break;
        }
        if c == ' ' {
            space = Some((length, column));
        }
        length += c.encode_utf8(&mut text[length..]).len();
        column += 1;
        // the line ends where its last space was
        if let Some((at, before)) = space.filter(|_| column > width) {
            text[at] = b'\n';
            column -= before + 1;
            space = None;
        }
    }
    (text, length)
}

/// Columns of the terminal that standard error is; elsewhere a line is as long as it is.
fn columns() -> usize {
    // SAFETY: the call writes to the variable, or fails.
    unsafe {
        let mut size: libc::winsize = zeroed();
        let is_terminal = libc::ioctl(2, libc::TIOCGWINSZ, &mut size) == 0;
        if is_terminal && size.ws_col > 0 { size.ws_col.max(40).into() } else { usize::MAX }
    }
}

/// Does this, which writes, without a signal for it.
pub fn unharmed<T>(write: impl FnOnce() -> T) -> T {
    let signals = [libc::SIGPIPE, libc::SIGXFSZ];
    // SAFETY: signal sets of this function.
    unsafe {
        let (mut ours, mut before, mut pending): (libc::sigset_t, libc::sigset_t, libc::sigset_t) =
            (zeroed(), zeroed(), zeroed());
        libc::sigemptyset(&mut ours);
        signals.iter().for_each(|signal| _ = libc::sigaddset(&mut ours, *signal));
        libc::sigpending(&mut pending);
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        let result = write();
        for signal in signals.into_iter().filter(|signal| libc::sigismember(&pending, *signal) == 0) {
            // this one is ours, if there is one
            let mut one: libc::sigset_t = zeroed();
            libc::sigemptyset(&mut one);
            libc::sigaddset(&mut one, signal);
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&one, null_mut(), &at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        result
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_between_words_where_the_terminal_does() {
        let said = "'solve*' names no function: nm shows_which_there_are_in_this_very_long_name_of_a_program, inlined ones are not";
        let lines = |width| {
            let (text, length) = laid_out(said, width);
            String::from_utf8(text[..length].to_vec()).unwrap()
        };
        assert_eq!(lines(usize::MAX), format!("topdown: {said}"));
        let wrapped = lines(40);
        assert_eq!(wrapped.replace('\n', " "), format!("topdown: {said}"));
        assert_eq!(wrapped.lines().filter(|line| line.len() > 40).count(), 1, "{wrapped}"); // the long name
        assert!(wrapped.lines().all(|line| line.len() <= 40 || !line.contains(' ')), "{wrapped}");
    }
}
