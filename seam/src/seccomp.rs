//! How many seccomp filters the calling thread has. A process that asks may be killed for a system call that programs rarely make;
//! those made here (openat, read, close) are those by which its own loader read its libraries.

use std::io::Error;

/// How many filters the first thread of this process has, as /proc/self/status says: `Seccomp_filters:`, from Linux 5.9 on;
/// before, whether it has any. None: that is not known.
pub fn filters() -> Option<u32> {
    // SAFETY: a C string.
    let file = unsafe { libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let (mut status, mut bytes) = (Status::default(), [0_u8; 1024]);
    loop {
        // SAFETY: a buffer of that length.
        let read = unsafe { libc::read(file, bytes.as_mut_ptr().cast(), bytes.len()) };
        if read < 0 && Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
            continue;
        }
        let Some(read) = bytes.get(..read.max(0) as usize).filter(|read| !read.is_empty()) else { break };
        read.iter().for_each(|byte| status.take(*byte));
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    status.filters.or(status.mode.map(|mode| u32::from(mode != 0)))
}

/// What the file has said so far, which is longer than any buffer where a user is in many groups.
#[derive(Default)]
struct Status {
    /// The beginning of the line, without blanks.
    line: [u8; 32],
    length: usize,
    mode: Option<u32>,
    filters: Option<u32>,
}

impl Status {
    fn take(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                let line = &self.line[..self.length];
                let number = |name: &str| {
                    let digits = line.strip_prefix(name.as_bytes())?;
                    std::str::from_utf8(digits).ok()?.parse().ok()
                };
                (self.mode, self.filters) =
                    (self.mode.or(number("Seccomp:")), self.filters.or(number("Seccomp_filters:")));
                self.length = 0;
            }
            b' ' | b'\t' => {}
            _ if self.length < self.line.len() => {
                self.line[self.length] = byte;
                self.length += 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> (Option<u32>, Option<u32>) {
        let mut status = Status::default();
        text.bytes().for_each(|byte| status.take(byte));
        (status.mode, status.filters)
    }

    #[test]
    fn filters_are_counted_as_the_kernel_says() {
        let many = "Groups:\t".to_owned() + &"65534 ".repeat(5000) + "\nNoNewPrivs:\t0\nSeccomp:\t2\n";
        assert_eq!(
            said(&(many.clone() + "Seccomp_filters:\t13\nSpeculation_Store_Bypass:\tvulnerable\n")),
            (Some(2), Some(13))
        );
        assert_eq!(said(&many), (Some(2), None));
        assert_eq!(said("Name:\tSeccomp:\n"), (None, None));
    }

    #[test]
    fn those_of_this_process_are_known() {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        assert_eq!(filters(), said(&text).1.or(said(&text).0));
    }
}
