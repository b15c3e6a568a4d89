//! Why the kernel said no, and what to do about it.
#![forbid(unsafe_code)]

use crate::error::Error;
use crate::options::{Options, Target};
use crate::sys::Kernel;
use std::io;

/// The setting that says who may measure what.
pub(crate) const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// What the library was doing when it ran into the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt<'a> {
    /// perf_event_open of the event of this name.
    Open(&'a str),
    /// mmap of a control page.
    Map,
    /// clone of the thread that opens the events.
    Clone,
    /// Anything else, by the system call's name.
    Other(&'a str),
}

/// Why a file of sysfs that is there cannot be read.
pub(crate) fn unreadable(path: &str, refusal: &io::Error) -> Error {
    let errno = refusal.raw_os_error().unwrap_or(libc::EIO);
    let remedy = match errno {
        libc::EMFILE => {
            "this process is at its limit of file descriptors: close some, or raise it with `ulimit -n`"
        }
        libc::ENFILE => "the system is at its limit of file descriptors: raise fs.file-max",
        libc::EACCES | libc::EPERM => {
            "its mode, a container or a security module (LSM) hides it: make it readable"
        }
        _ => "mount /sys anew",
    };
    Error::errno(errno, format!("{path} cannot be read ({refusal}); {remedy}"))
}

/// Turns the kernel's refusal into an error that names the wall and the remedy.
pub(crate) fn explain(
    kernel: &impl Kernel,
    options: &Options,
    attempt: Attempt,
    refusal: &io::Error,
) -> Error {
    let errno = refusal.raw_os_error().unwrap_or(libc::EIO);
    let number = |path: &str| kernel.text(path).ok().and_then(|text| text.trim().parse::<i64>().ok());
    let (code, text) = match (attempt, errno) {
        (Attempt::Open(event), libc::EACCES) => (libc::EACCES, denied(event, number(PARANOID), options)),
        (Attempt::Open(event), libc::EPERM) => (libc::EPERM, filtered(event, kernel)),
        (Attempt::Open(event), libc::ENOSYS) => (
            libc::ENOSYS,
            format!(
                "perf_event_open of '{event}' does not exist: the kernel was built without perf events, or a seccomp \
                 filter of a container hides them; allow perf_event_open in its profile"
            ),
        ),
        (Attempt::Open(event), libc::EMFILE) => (
            libc::EMFILE,
            format!(
                "no file descriptor left for '{event}' (a handle takes up to 10): this process is at its limit; close \
                 some, or raise it with `ulimit -n`"
            ),
        ),
        (Attempt::Open(event), libc::ENFILE) => (
            libc::ENFILE,
            format!("no file descriptor left for '{event}': the system is at its limit; raise fs.file-max"),
        ),
        (Attempt::Open(_), libc::ESRCH) => {
            (libc::ESRCH, format!("there is no thread {} to measure (any more)", options.target_id()))
        }
        (Attempt::Open(event), libc::EBUSY) => (
            libc::ENODEV,
            format!(
                "the kernel shows '{event}' but does not open it ({refusal}): another driver has reserved the PMU, \
                 or part of it; unload it"
            ),
        ),
        (Attempt::Open(event), libc::EINVAL | libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => (
            libc::ENODEV,
            format!(
                "the kernel shows '{event}' but does not open it ({refusal}): a virtual machine that advertises \
                 counters it does not have (measure on the host), or a seccomp filter that answers so (allow \
                 perf_event_open in its profile)"
            ),
        ),
        (Attempt::Map, libc::EPERM) => (
            libc::ENOMEM,
            format!(
                "no memory left that may be locked for the counters' control page: kernel.perf_event_mlock_kb is {} \
                 KiB per CPU and user, then RLIMIT_MEMLOCK (`ulimit -l`) counts; raise one, or open with \
                 TD_FLAG_NO_RDPMC (or else a seccomp filter refuses to map it)",
                number("/proc/sys/kernel/perf_event_mlock_kb").map_or("unknown".into(), |kb| kb.to_string())
            ),
        ),
        (Attempt::Clone, libc::EAGAIN) => (
            errno,
            "no thread can be made to open the counters: this user, or the container, is at its limit; raise `ulimit -u`, or the \
             cgroup's pids.max"
                .into(),
        ),
        (Attempt::Clone, libc::EPERM | libc::EACCES | libc::ENOSYS) => (
            errno,
            format!(
                "the counters are opened by a thread of their own, and clone of one is refused ({refusal}), by a seccomp filter \
                 or a security module (LSM); allow it in the profile that allows perf_event_open"
            ),
        ),
        (Attempt::Clone, _) => (errno, format!("clone of the thread that opens the counters failed: {refusal}")),
        // the kernel asks for permission at perf_event_open, and not again
        (Attempt::Map, libc::EACCES | libc::ENOSYS) => (errno, withheld("mmap", refusal)),
        (Attempt::Other(call), libc::EPERM | libc::EACCES | libc::ENOSYS) => (errno, withheld(call, refusal)),
        (Attempt::Open(event), _) => (errno, format!("perf_event_open of '{event}' failed: {refusal}")),
        (Attempt::Map, _) => (errno, format!("mmap of the counters' control page failed: {refusal}")),
        (Attempt::Other(call), _) => (errno, format!("{call} on the counters failed: {refusal}")),
    };
    Error::errno(code, text)
}

/// The highest perf_event_paranoid that permits these options (kernel-facts A.5, H).
fn needed(options: &Options) -> i64 {
    match options.target {
        Target::Cpu(_) => 0,
        _ if options.kernel => 1,
        _ => 2,
    }
}

fn withheld(call: &str, refusal: &io::Error) -> String {
    format!(
        "the counters were opened, but {call} on them is refused ({refusal}), by a seccomp filter or a security module \
         (LSM); allow it in the profile that allows perf_event_open"
    )
}

fn denied(event: &str, paranoid: Option<i64>, options: &Options) -> String {
    let needed = needed(options);
    match paranoid {
        Some(found) if found > needed => format!(
            "access to '{event}' denied: kernel.perf_event_paranoid is {found}, and {} needs {needed} or less; set it \
             (`sysctl kernel.perf_event_paranoid={needed}`), or give the program {}",
            match options.target {
                Target::Cpu(_) => "measuring a CPU",
                _ if options.kernel => "counting kernel mode",
                _ => "user-mode measurement",
            },
            if found > 2 { "CAP_SYS_ADMIN (CAP_PERFMON is not enough above 2)" } else { "CAP_PERFMON" }
        ),
        _ => match options.target {
            Target::Task(id) => format!(
                "access to '{event}' of thread {id} denied: it belongs to another user, or a security module (LSM) or \
                 seccomp filter forbids it; run as its user, or with CAP_PERFMON and CAP_SYS_PTRACE"
            ),
            _ => match paranoid {
                Some(found) => format!(
                    "access to '{event}' denied although kernel.perf_event_paranoid ({found}) permits it: a security \
                     module (LSM) or a seccomp filter forbids it; see the module's log and the container's profile"
                ),
                None => format!(
                    "access to '{event}' denied: kernel.perf_event_paranoid cannot be read here ({PARANOID} is \
                     hidden), and has to be {needed} or less; or a security module (LSM) or a seccomp filter forbids it"
                ),
            },
        },
    }
}

fn filtered(event: &str, kernel: &impl Kernel) -> String {
    // (a filter can be this thread's alone)
    let status = kernel.text("/proc/thread-self/status").unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim);
    match mode {
        Some("0") => format!(
            "perf_event_open of '{event}' is not permitted, and no seccomp filter is in force: a security module \
             forbids it, or the event needs a privilege; see that module's log, or give the program CAP_PERFMON"
        ),
        mode => format!(
            "perf_event_open of '{event}' is not permitted{} by the seccomp filter of this container; run it with a \
             profile that allows perf_event_open (Docker, Podman: --cap-add PERFMON or --security-opt \
             seccomp=PROFILE)",
            if mode.is_none() { ", most likely" } else { "" }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::scripted::Scripted;

    fn wall(kernel: &Scripted, options: &Options, attempt: Attempt, errno: i32) -> (i32, String) {
        let error = explain(kernel, options, attempt, &io::Error::from_raw_os_error(errno));
        (error.code(), error.text().to_string())
    }

    #[test]
    fn paranoid_names_what_was_found_and_what_is_needed() {
        let kernel = Scripted::default();
        let open = Attempt::Open("slots");
        for (found, options, needed) in [
            ("3", Options::default(), "needs 2"),
            ("2", Options { kernel: true, ..Options::default() }, "needs 1"),
            ("2", Options { target: Target::Cpu(1), ..Options::default() }, "needs 0"),
        ] {
            kernel.add(PARANOID, found);
            let (code, text) = wall(&kernel, &options, open, libc::EACCES);
            assert_eq!(code, -libc::EACCES);
            assert!(text.contains(&format!("is {found}")) && text.contains(needed), "{text}");
        }
        kernel.add(PARANOID, "2");
        assert!(wall(&kernel, &Options::default(), open, libc::EACCES).1.contains("LSM"));
        let hidden = Scripted::default();
        let text = wall(&hidden, &Options::default(), open, libc::EACCES).1;
        assert!(text.contains("cannot be read") && text.contains("2 or less"), "{text}");
    }

    #[test]
    fn every_wall_has_its_code() {
        let kernel = Scripted::default();
        let options = Options { target: Target::Task(77), ..Options::default() };
        for (attempt, errno, code, word) in [
            (Attempt::Open("slots"), libc::EPERM, libc::EPERM, "seccomp"),
            (Attempt::Open("slots"), libc::ENOSYS, libc::ENOSYS, "without perf events"),
            (Attempt::Open("slots"), libc::EMFILE, libc::EMFILE, "ulimit -n"),
            (Attempt::Open("slots"), libc::ENFILE, libc::ENFILE, "fs.file-max"),
            (Attempt::Open("slots"), libc::ESRCH, libc::ESRCH, "thread 77"),
            (Attempt::Open("slots"), libc::EINVAL, libc::ENODEV, "advertises"),
            (Attempt::Open("slots"), libc::EBUSY, libc::ENODEV, "reserved"),
            (Attempt::Open("slots"), libc::EACCES, libc::EACCES, "another user"),
            (Attempt::Map, libc::EPERM, libc::ENOMEM, "ulimit -l"),
            (Attempt::Map, libc::EACCES, libc::EACCES, "mmap on them is refused"),
            (Attempt::Other("read"), libc::EPERM, libc::EPERM, "seccomp"),
            (Attempt::Other("read"), libc::EIO, libc::EIO, "read on"),
        ] {
            let (found, text) = wall(&kernel, &options, attempt, errno);
            assert_eq!(found, -code, "{attempt:?} {errno}");
            assert!(text.contains(word), "{text}");
        }
        kernel.add("/proc/thread-self/status", "Name:\tx\nSeccomp:\t0\n");
        assert!(wall(&kernel, &options, Attempt::Open("slots"), libc::EPERM).1.contains("no seccomp filter"));
    }
}
