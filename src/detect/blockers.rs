//! What keeps the library from measuring when the kernel refuses a call, and what to do about it.
#![forbid(unsafe_code)]

use super::remedies::Obstacle;
use crate::error::Error;
use crate::options::{Options, Target};
use crate::sys::Kernel;
use std::io;

/// The setting that says who may measure what.
pub(crate) const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The call that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedCall<'a> {
    /// perf_event_open of the event of this name.
    Open(&'a str),
    /// The same of a member of a group of general-purpose counters.
    OpenMember(&'a str),
    /// mmap of a control page.
    Map,
    /// clone of the thread that opens the events.
    Clone,
    /// Anything else, by the system call's name.
    Other(&'a str),
}

/// A file of sysfs that exists but cannot be read.
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
    Error::errno(errno, format!("{path} cannot be read ({refusal})")).remedy(remedy)
}

/// Turns the kernel's refusal into an error that names the blocker and the remedy.
pub(crate) fn explain(
    kernel: &impl Kernel,
    options: &Options,
    attempt: RefusedCall,
    refusal: &io::Error,
) -> Error {
    let errno = refusal.raw_os_error().unwrap_or(libc::EIO);
    match attempt {
        RefusedCall::Open(event) => not_opened(kernel, options, event, errno, refusal),
        RefusedCall::OpenMember(event) if errno == libc::EINVAL => {
            Error::errno(libc::ENODEV, format!("'{event}' does not fit into the group"))
                .why("this PMU has too few general counters for all of its events at once")
                .remedy("measure level 1")
        }
        RefusedCall::OpenMember(event) => not_opened(kernel, options, event, errno, refusal),
        RefusedCall::Map => not_mapped(kernel, errno, refusal),
        RefusedCall::Clone => not_cloned(errno, refusal),
        RefusedCall::Other(call) => match errno {
            libc::EPERM | libc::EACCES | libc::ENOSYS => withheld(call, errno, refusal),
            libc::EBADF => Error::errno(errno, format!("{call} on the counters failed"))
                .why("the program has closed the descriptors of the handle's events, as by close_range(2)")
                .remedy("td_close the handle and open another"),
            _ => Error::errno(errno, format!("{call} on the counters failed")).why(refusal.to_string()),
        },
    }
}

fn number(kernel: &impl Kernel, path: &str) -> Option<i64> {
    kernel.text(path).ok()?.trim().parse().ok()
}

fn not_opened(
    kernel: &impl Kernel,
    options: &Options,
    event: &str,
    errno: i32,
    refusal: &io::Error,
) -> Error {
    let shown = || {
        let what = format!("the kernel shows '{event}' but does not open it ({refusal})");
        Error::errno(libc::ENODEV, what)
    };
    match errno {
        libc::EACCES => denied(event, number(kernel, PARANOID), options),
        libc::EPERM => filtered(event, kernel),
        libc::ENOSYS => Error::errno(errno, format!("perf_event_open of '{event}' does not exist"))
            .why("the kernel was built without perf events, or a seccomp filter of a container hides them")
            .remedy("allow perf_event_open in its profile"),
        libc::EMFILE => {
            Error::errno(errno, format!("no file descriptor left for '{event}' (a handle takes up to 12)"))
                .why("this process is at its limit")
                .remedy("close some, or raise it with `ulimit -n`")
        }
        libc::ENFILE => Error::errno(errno, format!("no file descriptor left for '{event}'"))
            .why("the system is at its limit")
            .remedy("raise fs.file-max"),
        libc::ESRCH => {
            Error::errno(errno, format!("there is no thread {} to measure (any more)", options.target_id()))
        }
        libc::EBUSY => {
            shown().why("another driver has reserved the PMU, or part of it").remedy("unload it")
        }
        libc::EINVAL | libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV => shown().why(
            "a virtual machine that advertises counters it does not have (measure on the host), or a seccomp filter \
             that answers so (allow perf_event_open in its profile)",
        ),
        _ => Error::errno(errno, format!("perf_event_open of '{event}' failed")).why(refusal.to_string()),
    }
}

fn not_mapped(kernel: &impl Kernel, errno: i32, refusal: &io::Error) -> Error {
    match errno {
        libc::EPERM => {
            let limit = number(kernel, "/proc/sys/kernel/perf_event_mlock_kb");
            let limit = limit.map_or("unknown".into(), |kb| kb.to_string());
            Error::errno(libc::ENOMEM, "no memory left that may be locked for the counters' control page")
                .why(format!(
                    "kernel.perf_event_mlock_kb is {limit} KiB per CPU and user, then RLIMIT_MEMLOCK (`ulimit -l`) counts"
                ))
                .remedy(
                    "raise one, or open with TD_FLAG_NO_RDPMC (or else a seccomp filter refuses to map it)",
                )
        }
        // perf_event_open alone checks permissions: a later EACCES is not the kernel's own
        libc::EACCES | libc::ENOSYS => withheld("mmap", errno, refusal),
        _ => Error::errno(errno, "mmap of the counters' control page failed").why(refusal.to_string()),
    }
}

fn not_cloned(errno: i32, refusal: &io::Error) -> Error {
    match errno {
        libc::EAGAIN => Error::errno(errno, "no thread can be made to open the counters")
            .why("this user, or the container, is at its limit")
            .remedy("raise `ulimit -u`, or the cgroup's pids.max"),
        libc::EPERM | libc::EACCES | libc::ENOSYS => Error::errno(
            errno,
            format!(
                "the counters are opened by a thread of their own, and clone of one is refused ({refusal}), by a seccomp \
                 filter or a security module (LSM)"
            ),
        )
        .remedy("allow it in the profile that allows perf_event_open"),
        _ => Error::errno(errno, "clone of the thread that opens the counters failed")
            .why(refusal.to_string()),
    }
}

/// The highest perf_event_paranoid that permits these options (kernel-facts A.5, H).
fn needed(options: &Options) -> i64 {
    match options.target {
        Target::Cpu(_) => 0,
        _ if options.kernel => 1,
        _ => 2,
    }
}

fn withheld(call: &str, errno: i32, refusal: &io::Error) -> Error {
    Error::errno(
        errno,
        format!(
            "the counters were opened, but {call} on them is refused ({refusal}), by a seccomp filter or a security \
             module (LSM)"
        ),
    )
    .remedy("allow it in the profile that allows perf_event_open")
}

fn denied(event: &str, paranoid: Option<i64>, options: &Options) -> Error {
    let refused = |what: String| Error::errno(libc::EACCES, what);
    let needed = needed(options);
    match (paranoid, options.target) {
        (Some(found), target) if found > needed => refused(format!("access to '{event}' denied"))
            .why(format!(
                "kernel.perf_event_paranoid is {found}, and {} needs {needed} or less",
                match target {
                    Target::Cpu(_) => "measuring a CPU",
                    _ if options.kernel => "counting kernel mode",
                    _ => "user-mode measurement",
                }
            ))
            .remedy(Obstacle::Paranoid { found: Some(found), needed }.short()),
        (_, Target::Task(id) | Target::TaskOn(id, _)) => refused(format!("access to '{event}' of thread {id} denied"))
            .why("it belongs to another user, or a security module (LSM) or seccomp filter forbids it")
            .remedy("run as its user, or with CAP_PERFMON and CAP_SYS_PTRACE"),
        (Some(found), _) => refused(format!(
            "access to '{event}' denied although kernel.perf_event_paranoid ({found}) permits it"
        ))
        .why("a security module (LSM) or a seccomp filter forbids it")
        .remedy("see the module's log and the container's profile"),
        (None, _) => refused(format!("access to '{event}' denied"))
            .why(format!(
                "kernel.perf_event_paranoid cannot be read here ({PARANOID} is hidden), and has to be {needed} or less; or a \
                 security module (LSM) or a seccomp filter forbids it"
            )),
    }
}

fn filtered(event: &str, kernel: &impl Kernel) -> Error {
    // (a filter can be this thread's alone)
    let status = kernel.text("/proc/thread-self/status").unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim);
    let refused =
        |by: &str| Error::errno(libc::EPERM, format!("perf_event_open of '{event}' is not permitted{by}"));
    if mode == Some("0") {
        return refused(", and no seccomp filter is in force")
            .why("a security module forbids it, or the event needs a privilege")
            .remedy("see that module's log, or give the program CAP_PERFMON");
    }
    refused(match mode {
        None => ", most likely by the seccomp filter of this container",
        Some(_) => " by the seccomp filter of this container",
    })
    .remedy(Obstacle::Seccomp.short())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::scripted::ScriptedKernel;

    fn refused(
        kernel: &ScriptedKernel,
        options: &Options,
        attempt: RefusedCall,
        errno: i32,
    ) -> (i32, String) {
        let error = explain(kernel, options, attempt, &io::Error::from_raw_os_error(errno));
        (error.code(), error.to_string())
    }

    #[test]
    fn paranoid_names_what_was_found_and_what_is_needed() {
        let kernel = ScriptedKernel::default();
        let open = RefusedCall::Open("slots");
        for (found, options, needed) in [
            ("3", Options::default(), "needs 2"),
            ("2", Options { kernel: true, ..Options::default() }, "needs 1"),
            ("2", Options { target: Target::Cpu(1), ..Options::default() }, "needs 0"),
        ] {
            kernel.add(PARANOID, found);
            let (code, text) = refused(&kernel, &options, open, libc::EACCES);
            assert_eq!(code, -libc::EACCES);
            assert!(text.contains(&format!("is {found}")) && text.contains(needed), "{text}");
        }
        kernel.add(PARANOID, "2");
        assert!(refused(&kernel, &Options::default(), open, libc::EACCES).1.contains("LSM"));
        let hidden = ScriptedKernel::default();
        let text = refused(&hidden, &Options::default(), open, libc::EACCES).1;
        assert!(text.contains("cannot be read") && text.contains("2 or less"), "{text}");
    }

    #[test]
    fn every_refusal_has_its_code() {
        let kernel = ScriptedKernel::default();
        let options = Options { target: Target::Task(77), ..Options::default() };
        for (attempt, errno, code, word) in [
            (RefusedCall::Open("slots"), libc::EPERM, libc::EPERM, "seccomp"),
            (RefusedCall::Open("slots"), libc::ENOSYS, libc::ENOSYS, "without perf events"),
            (RefusedCall::Open("slots"), libc::EMFILE, libc::EMFILE, "ulimit -n"),
            (RefusedCall::Open("slots"), libc::ENFILE, libc::ENFILE, "fs.file-max"),
            (RefusedCall::Open("slots"), libc::ESRCH, libc::ESRCH, "thread 77"),
            (RefusedCall::Open("slots"), libc::EINVAL, libc::ENODEV, "advertises"),
            (RefusedCall::Open("slots"), libc::EBUSY, libc::ENODEV, "reserved"),
            (RefusedCall::Open("slots"), libc::EACCES, libc::EACCES, "another user"),
            (RefusedCall::Map, libc::EPERM, libc::ENOMEM, "ulimit -l"),
            (RefusedCall::Map, libc::EACCES, libc::EACCES, "mmap on them is refused"),
            (RefusedCall::Other("read"), libc::EPERM, libc::EPERM, "seccomp"),
            (RefusedCall::Other("read"), libc::EIO, libc::EIO, "read on"),
        ] {
            let (found, text) = refused(&kernel, &options, attempt, errno);
            assert_eq!(found, -code, "{attempt:?} {errno}");
            assert!(text.contains(word), "{text}");
        }
        kernel.add("/proc/thread-self/status", "Name:\tx\nSeccomp:\t0\n");
        assert!(
            refused(&kernel, &options, RefusedCall::Open("slots"), libc::EPERM)
                .1
                .contains("no seccomp filter")
        );
    }
}
