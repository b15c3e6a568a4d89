//! CPU time of a process and all that it starts, or of a thread, to the nanosecond while it runs: where no event of the kernel's counts it.

use std::fs;
use topdown_seam::clocks::{cpu_ns_of_process, scheduled};

/// Of the processes that this one has waited for.
pub fn waited_for_ns() -> u64 {
    // SAFETY: plain data, which the call fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// Of a process and those below it: those that run, and those that it has waited for.
pub fn process_ns(pid: i32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let tasks = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    let below: u64 = tasks.map(|tid| children(pid, tid).map(process_ns).sum::<u64>()).sum();
    cpu_ns_of_process(pid).unwrap_or(0) + of_waited(pid) + below
}

/// Of a thread, and the processes that it has started; of a process's first thread also of those for which that has waited.
pub fn thread_ns(tid: i32) -> u64 {
    let own = scheduled(tid).map_or(0, |time| time.ran); // (clocks of other processes' threads are not told)
    let waited = if fs::exists(format!("/proc/{tid}/task/{tid}")).is_ok_and(|leads| leads) {
        of_waited(tid)
    } else {
        0
    };
    own + waited + children(tid, tid).map(process_ns).sum::<u64>()
}

/// Processes that a thread has started (proc_tid_children(5)); none, where the kernel does not tell them.
fn children(pid: i32, tid: i32) -> impl Iterator<Item = i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>().into_iter()
}

/// Of those for which a process has waited, in ticks (proc_pid_stat(5)).
fn of_waited(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let numbers = text.rsplit_once(')').map_or("", |(_, numbers)| numbers);
    let ticks = numbers.split_whitespace().skip(13).take(2);
    ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * super::cpu_time::TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_a_process_and_its_children_use_is_told_while_they_run_and_once_they_have_ended() {
        let own = std::process::id() as i32;
        let before = process_ns(own);
        let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done";
        let mut child = Command::new("sh")
            .args(["-c", &format!("({busy}); {busy}; read line")])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let mut last = 0;
        while of_waited(pid) == 0 {
            let now = process_ns(pid);
            // (of what is waited for user and system time are told in whole ticks each)
            assert!(now + 2 * super::super::cpu_time::TICK_NS >= last, "{now} {last}");
            last = now.max(last);
        }
        assert!(process_ns(own) >= before + process_ns(pid));
        let (of_tree, of_waited) = (thread_ns(pid), waited_for_ns());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(waited_for_ns() + super::super::cpu_time::TICK_NS >= of_waited + of_tree);
        assert_eq!((process_ns(pid), thread_ns(pid)), (0, 0));
    }
}
