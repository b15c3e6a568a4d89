//! Opening events and closing them.

use super::layout::{Event, List};
use super::parse::is_hidden_original;
use crate::say::{reason, say};
use crate::sys;
use libc::{c_int, pid_t};
use perf_event_open_sys::bindings::{PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING};
use perf_event_open_sys::ioctls;
use std::collections::{HashMap, HashSet};
use std::io;
use topdown_seam::numbers::ranges;
use topdown_seam::sysfs::Sysfs;

/// SE_ENABLE_ON_EXEC: counts begin when the process calls exec.
pub const ENABLE_ON_EXEC: c_int = 1;
/// SE_MEASURE_ALL: whatever runs on the CPU is counted.
pub const MEASURE_ALL: c_int = 2;

/// The open descriptor of an event on a CPU. Programs make events by calloc and open some of them: the others have
/// descriptor 0, which is then the program's standard input and not to be read or closed.
pub(super) fn descriptor(event: Event, cpu: usize) -> Option<c_int> {
    let fd = event.efd(cpu).fd;
    let mut id = 0;
    // SAFETY: this request writes a number, and is refused by whatever is no perf event.
    (fd > 0 || fd == 0 && unsafe { ioctls::ID(fd, &mut id) } == 0).then_some(fd)
}

/// `setup_event_flags`: opens the event on one CPU, in the group of `leader`. Err: errno says why, and a line on standard
/// error. What a CPU that is offline refuses with EINVAL is no error; the descriptor then is -1.
pub fn setup_event_flags(
    sysfs: &Sysfs,
    event: Event,
    cpu: usize,
    leader: Option<Event>,
    pid: pid_t,
    flags: c_int,
) -> Result<(), ()> {
    let mut attr = event.attr();
    attr.set_inherit(1);
    attr.read_format |= u64::from(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    if flags & ENABLE_ON_EXEC != 0 {
        attr.set_disabled(1);
        attr.set_enable_on_exec(1);
    }
    event.set_attr(&attr);

    let pid = if flags & MEASURE_ALL != 0 { -1 } else { pid };
    let group = leader.and_then(|leader| descriptor(leader, cpu));
    // SAFETY: the kernel reads attr.size bytes, for whose room the program answers.
    let fd =
        unsafe { sys::perf_event_open(event.attr_in_place(), pid, cpu as c_int, group.unwrap_or(-1), 0) };
    let error = io::Error::last_os_error();
    event.efd(cpu).fd = fd;
    event.efd(cpu).of_process = (pid != -1).into();
    if fd < 0 {
        if error.raw_os_error() == Some(libc::EINVAL) && offline(sysfs, cpu) {
            return Ok(());
        }
        say!("Cannot open perf event for {}/{cpu}: {}", event.text(), reason(&error));
        // SAFETY: errno is this thread's.
        unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(0) };
        return Err(());
    }
    match (leader, group) {
        (Some(leader), Some(group)) if leader.attr().disabled() == 0 => restart(group),
        _ => {}
    }
    Ok(())
}

/// Lets a group that is already counting take in a new member: the kernel does not schedule it in before the group is
/// scheduled anew, and on another PMU than the leader's that may be never.
fn restart(leader: c_int) {
    // SAFETY: these requests take no memory.
    unsafe {
        ioctls::DISABLE(leader, 0);
        ioctls::ENABLE(leader, 0);
    }
}

/// Whether this CPU is not running. One without an `online` file cannot be taken offline; where the kernel says nothing
/// of CPUs, none is known to be.
fn offline(sysfs: &Sysfs, cpu: usize) -> bool {
    let directory = sysfs.cpus.join(format!("cpu{cpu}"));
    if directory.join("online").exists() {
        !sysfs.online(cpu as i32)
    } else {
        sysfs.cpus.exists() && !directory.exists()
    }
}

/// `setup_events_cpumask`: opens all events on these CPUs, all for None. Err: the list of CPUs is none, or nothing could
/// be opened of what was tried.
pub fn setup_events_cpumask(
    sysfs: &Sysfs,
    list: List,
    pid: pid_t,
    mask: Option<&str>,
    flags: c_int,
) -> Result<(), ()> {
    let cpus = match mask {
        None => (0..list.cpus()).collect(),
        Some(mask) => cpus(mask, list.cpus()).ok_or_else(|| say!("Not a list of CPUs: {mask}"))?,
    };
    let mut leader = None;
    let (mut tried, mut opened) = (false, false);
    for event in list.events() {
        let place = event.flags();
        // of a hybrid CPU, the cores of its kind
        let with_pmu = sysfs.cpus_with(event.attr().type_).and_then(|with| self::cpus(&with, list.cpus()));
        let has_pmu = |cpu| with_pmu.as_ref().is_none_or(|with| with.contains(cpu));
        for &cpu in cpus.iter().filter(|cpu| has_pmu(cpu) && (!place.uncore || list.is_socket_cpu(**cpu))) {
            tried = true;
            opened |= setup_event_flags(sysfs, event, cpu, leader, pid, flags).is_ok();
        }
        if place.leader {
            leader = Some(event);
        }
        if place.end {
            leader = None;
        }
    }
    if opened || !tried { Ok(()) } else { Err(()) }
}

/// The CPUs below `count` that `a,b-c,d-` names, in order; None if it is written otherwise. Numbers are as in C.
fn cpus(mask: &str, count: usize) -> Option<Vec<usize>> {
    let ranges = ranges(mask).collect::<Option<Vec<_>>>()?;
    Some((0..count).filter(|&cpu| ranges.iter().any(|range| range.contains(&(cpu as u64)))).collect())
}

/// Closes an event on every CPU. It may be set up again.
fn close(list: List, event: Event) {
    for cpu in 0..list.cpus() {
        if let Some(fd) = descriptor(event, cpu) {
            // SAFETY: the descriptor is this event's.
            unsafe { libc::close(fd) };
        }
        event.efd(cpu).fd = -1;
    }
}

/// The originals that no list has but all of whose clones are these events'. A program may have put one of the clones into
/// another list: that one still has its original when this list is freed.
fn hidden_originals(events: &[Event]) -> Vec<Event> {
    let listed: HashSet<_> = events.iter().map(|event| event.pointer()).collect();
    let mut clones: HashMap<_, (Event, Vec<Event>)> = HashMap::new();
    for event in events {
        if let Some(original) = event.orig().filter(|original| !listed.contains(&original.pointer())) {
            clones.entry(original.pointer()).or_insert((original, Vec::new())).1.push(*event);
        }
    }
    let whole = |(original, clones): &(Event, Vec<Event>)| {
        clones.iter().any(|clone| is_hidden_original(*original, *clone))
            && clones.len() >= original.num_clones() as usize
    };
    clones.into_values().filter(whole).map(|(original, _)| original).collect()
}

/// `free_eventlist`: closes and frees all events, those that a program linked in, and the hidden originals of clones.
pub fn free(list: List) {
    let events: Vec<Event> = list.events().collect();
    let hidden = hidden_originals(&events);
    for event in events {
        close(list, event);
        event.free();
    }
    hidden.into_iter().for_each(Event::free);
    list.free();
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown_seam::sysfs::tree::SysfsTree;

    #[test]
    fn an_original_goes_with_the_last_of_its_clones() {
        let [original, first, second, own] = [0; 4].map(|_| Event::new(128, 1).unwrap());
        [first, second].iter().for_each(|clone| clone.set_orig(original));
        original.set_next(Some(first));
        assert_eq!(hidden_originals(&[first, second, own]), [original]);
        assert_eq!(hidden_originals(&[first, own]), [], "the second is in another list");
        assert_eq!(hidden_originals(&[second]), []);
        assert_eq!(hidden_originals(&[original, first, second]), [], "it is not hidden");
        [original, first, second, own].into_iter().for_each(Event::free);
    }

    #[test]
    fn lists_of_cpus() {
        let all = |mask| cpus(mask, 20);
        assert_eq!(all("0,2-4,18-"), Some(vec![0, 2, 3, 4, 18, 19]));
        assert_eq!(all("0x10,010"), Some(vec![8, 16]));
        assert_eq!(all("4,2, 2-3,"), Some(vec![2, 3, 4]));
        assert_eq!(all("500,30-40,19-99999"), Some(vec![19]));
        assert_eq!(all("20-"), Some(vec![]));
        assert_eq!(all("99-"), Some(vec![]));
        assert_eq!(all(""), Some(vec![]));
        for bad in ["x", "1,x", "-3", "1-x", "7-5", "40-30", "1-2-3", "0-0x", "+1", "99999999999999999999"] {
            assert_eq!(all(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_cpu_is_offline_if_the_kernel_says_so() {
        assert!(!offline(&SysfsTree::new(&[]).sysfs, 7), "nothing is said of CPUs");
        let tree = SysfsTree::new(&[
            ("cpus/cpu0/topology/x", ""),
            ("cpus/cpu1/online", "1"),
            ("cpus/cpu2/online", "0"),
        ]);
        assert_eq!([0, 1, 2, 3].map(|cpu| offline(&tree.sysfs, cpu)), [false, false, true, true]);
    }
}
