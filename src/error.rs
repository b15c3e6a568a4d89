//! What went wrong, as a code for programs and a text for people.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt;

/// Called by a thread that did not open the handle, or in a forked child.
pub const TD_EWRONGTHREAD: i32 = -4097;
/// No slot was counted: nothing ran, or elsewhere, or others held the counters.
pub const TD_ENOTCOUNTING: i32 = -4098;
/// Samples from before and after a td_reset were mixed, or a mark is too old.
pub const TD_ESTALE: i32 = -4099;
/// RDPMC was taken away while the handle was open (td_read).
pub const TD_ENORDPMC: i32 = -4100;

/// What happened, why, and what to do about it, for people. Printed as "what: why; remedy", without what is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// What happened. A text that is always the same needs no memory: a signal handler may have interrupted malloc.
    pub what: Cow<'static, str>,
    /// Why; empty if `what` says it, or if it is not known.
    pub why: Cow<'static, str>,
    /// What to do about it; empty if nothing is to be done, or if `why` says it.
    pub remedy: Cow<'static, str>,
}

impl Reason {
    /// What happened; `why` and `remedy` say the rest.
    pub fn new(what: impl Into<Cow<'static, str>>) -> Reason {
        Reason { what: what.into(), ..Reason::default() }
    }

    /// And why.
    pub fn why(self, why: impl Into<Cow<'static, str>>) -> Reason {
        Reason { why: why.into(), ..self }
    }

    /// And what to do about it.
    pub fn remedy(self, remedy: impl Into<Cow<'static, str>>) -> Reason {
        Reason { remedy: remedy.into(), ..self }
    }

    /// What happened and why: all but the remedy.
    pub(crate) fn cause(&self) -> String {
        self.clone().remedy("").to_string()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (before, part) in [(": ", &self.why), ("; ", &self.remedy)] {
            if !part.is_empty() {
                f.write_str(before)?;
                f.write_str(part)?;
            }
        }
        Ok(())
    }
}

/// A failure: the code that C callers get, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: i32,
    reason: Reason,
}

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with one of the library's own codes, or a negative errno.
    pub fn new(code: i32, what: impl Into<Cow<'static, str>>) -> Error {
        Error { code, reason: Reason::new(what) }
    }

    /// An error from an errno value, as positive as `libc` has it.
    pub(crate) fn errno(errno: i32, what: impl Into<Cow<'static, str>>) -> Error {
        Error::new(-errno, what)
    }

    pub(crate) fn invalid(what: impl Into<Cow<'static, str>>) -> Error {
        Error::errno(libc::EINVAL, what)
    }

    /// Says why.
    pub fn why(self, why: impl Into<Cow<'static, str>>) -> Error {
        Error { reason: self.reason.why(why), ..self }
    }

    /// Says what to do about it.
    pub fn remedy(self, remedy: impl Into<Cow<'static, str>>) -> Error {
        Error { reason: self.reason.remedy(remedy), ..self }
    }

    /// The code: `-errno`, or `TD_E*` below -4096.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// What, why, and what to do about it.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for Error {}

/// Every code that the library returns, with its short text (NUL-terminated: C gets it as it is).
const CODES: &[(i32, &str)] = &[
    (0, "success\0"),
    (TD_EWRONGTHREAD, "handle used by another thread or by a forked child\0"),
    (TD_ENOTCOUNTING, "nothing was counted between the samples\0"),
    (TD_ESTALE, "sample from before a reset, or mark too old\0"),
    (TD_ENORDPMC, "RDPMC was taken away while the handle was open\0"),
    (-libc::ENODEV, "no topdown counters on this CPU or virtual machine\0"),
    (-libc::EACCES, "denied by perf_event_paranoid or a security module\0"),
    (-libc::EPERM, "denied by a seccomp filter (container)\0"),
    (-libc::ENOSYS, "no perf_event_open system call\0"),
    (-libc::ENOTSUP, "level or target that this CPU cannot give\0"),
    (-libc::EINVAL, "bad argument\0"),
    (-libc::E2BIG, "options that this version does not know\0"),
    (-libc::EMFILE, "this process has no file descriptors left\0"),
    (-libc::ENFILE, "the system has no file descriptors left\0"),
    (-libc::ENOMEM, "out of memory, or of memory that may be locked\0"),
    (-libc::ESRCH, "no such thread\0"),
    (-libc::EAGAIN, "no thread can be made to open the counters\0"),
    (-libc::EBUSY, "the counters, or the handle, are in use\0"),
    (-libc::EBADF, "the handle, or a descriptor of its events, is closed\0"),
    (-libc::EFAULT, "the library failed in itself\0"),
];

/// Short static text of a code, NUL-terminated.
pub(crate) fn text_of(code: i32) -> &'static str {
    let known = CODES.iter().find(|(c, _)| *c == code).map(|(_, text)| *text);
    known.unwrap_or(if (-4095..0).contains(&code) {
        "error of the operating system\0"
    } else {
        "no code of this library\0"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_always_the_same_is_not_copied() {
        let text = "the handle is in use";
        let error = Error::errno(libc::EBUSY, text).why(text).remedy(text);
        for part in [&error.reason.what, &error.reason.why, &error.reason.remedy] {
            assert!(matches!(part, Cow::Borrowed(_)) && part.as_ptr() == text.as_ptr());
        }
    }

    #[test]
    fn a_reason_is_printed_without_its_empty_parts() {
        let what = Reason::new("it stopped");
        assert_eq!(Reason::default().to_string(), "");
        assert_eq!(what.to_string(), "it stopped");
        assert_eq!(what.clone().why("no fuel").to_string(), "it stopped: no fuel");
        assert_eq!(what.clone().remedy("fill it up").to_string(), "it stopped; fill it up");
        let full = what.why("no fuel").remedy("fill it up");
        assert_eq!(full.to_string(), "it stopped: no fuel; fill it up");
        assert_eq!(full.cause(), "it stopped: no fuel");
    }

    #[test]
    fn every_text_ends_for_c_and_no_code_stands_twice() {
        for (i, (code, text)) in CODES.iter().enumerate() {
            assert_eq!(text.find('\0'), Some(text.len() - 1), "{code}");
            assert!(CODES[i + 1..].iter().all(|(c, _)| c != code), "{code} stands twice");
        }
        assert_eq!(text_of(-libc::ENODEV), "no topdown counters on this CPU or virtual machine\0");
        assert_eq!(text_of(-libc::EIO), "error of the operating system\0");
        assert_eq!(text_of(12345), "no code of this library\0");
    }
}
