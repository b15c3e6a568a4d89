//! Groups of events: opened for a target, started, and proved to count before anyone believes them.
#![forbid(unsafe_code)]

pub(crate) mod metrics;
pub(crate) mod plain;

use crate::detect::Pmu;
use crate::detect::blockers::{Attempt, explain};
use crate::error::{Error, Result, TD_ENOTCOUNTING};
use crate::options::Options;
use crate::sys::Kernel;
use crate::sys::group_read;
use crate::sys::page::Times;
pub(crate) use metrics::Group;
use perf_event_open_sys::bindings::perf_event_attr;
pub(crate) use plain::PlainGroup;
use std::time::Duration;

/// CPU time after which a group that has not counted is given up.
const PATIENCE: Duration = Duration::from_millis(50);

/// A group's events but the leader, in place: dropping a copy of a group closes them, and the original, which a signal handler
/// may have interrupted, has no memory of which it could be robbed.
#[derive(Debug)]
struct Siblings<Fd>([Option<Fd>; MOST_SIBLINGS]);

const MOST_SIBLINGS: usize = 15;

impl<Fd> Siblings<Fd> {
    fn new(events: Vec<Fd>) -> Siblings<Fd> {
        assert!(events.len() <= MOST_SIBLINGS);
        let mut events = events.into_iter();
        Siblings(std::array::from_fn(|_| events.next()))
    }

    fn iter(&self) -> impl Iterator<Item = &Fd> {
        self.0.iter().flatten()
    }
}

/// The leader of a group, which waits to be enabled.
fn leader(pmu: &Pmu, config: u64, options: &Options) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: pmu.kind,
        size: size_of::<perf_event_attr>() as u32,
        config,
        read_format: group_read::TIMES,
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_inherit(options.inherit.into());
    attr.set_exclude_kernel((!options.kernel).into());
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    attr
}

/// Opens events for the target of these options, and says which of them could not be, and why.
fn open_named<K: Kernel>(
    kernel: &K,
    options: &Options,
    events: &[(&str, perf_event_attr)],
    leader: Option<&K::Fd>,
) -> Result<Vec<K::Fd>> {
    let (pid, cpu) = options.target.pid_and_cpu();
    let attrs: Vec<perf_event_attr> = events.iter().map(|(_, attr)| *attr).collect();
    kernel.open_group(&attrs, pid, cpu, leader).map_err(|refusal| {
        let attempt = refusal.event.map_or(Attempt::Clone, |event| Attempt::Open(events[event].0));
        explain(kernel, options, attempt, &refusal.error)
    })
}

/// Whether the leader counted no slot of the instructions between two read(2) although it was scheduled all the while. (Time
/// running alone does not tell: of a short turn beside competing groups all may have been in the kernel.)
fn stood_still(from: (u64, Times), to: (u64, Times)) -> bool {
    let time = to.1.since(from.1);
    time.running > 0 && time.running == time.enabled && to.0 == from.0
}

fn no_counters() -> Error {
    Error::errno(libc::ENODEV, "the leader stands still although it is scheduled")
        .why("a virtual machine that advertises counters it does not have")
        .remedy("measure on the host")
}

fn starved() -> Error {
    Error::new(TD_ENOTCOUNTING, "the group was opened but got no turn on the counters")
        .why(
            "others hold them (further handles of this thread, or a pinned or system-wide measurement such as perf stat -a)",
        )
        .remedy("end those and open again")
}

/// (A text that takes no memory: this may be in a signal handler.)
pub(crate) fn given_up() -> Error {
    Error::errno(libc::EIO, "read of the group gave fewer words than it has events")
        .why("the kernel has given the counters up, as it does when their CPU goes offline")
        .remedy("close the handle and open it again")
}

/// Some instructions in user mode, so that there is something to count.
fn spin() {
    for i in 0..2000 {
        std::hint::black_box(i);
    }
}
