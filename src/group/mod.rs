//! Groups of events: opened for a target, started, and proved to count before anyone believes them.
#![forbid(unsafe_code)]

pub(crate) mod hybrid;
mod jumps;
pub(crate) mod metrics;
pub(crate) mod plain;
pub(crate) mod relieved;
mod user_access;

use crate::detect::Pmu;
use crate::detect::blockers::{RefusedCall, explain};
use crate::error::{Error, Reason, Result, TD_ENOTCOUNTING};
use crate::options::{Options, Target};
use crate::read::Access;
use crate::sys::cpu::fill_by_microcode;
use crate::sys::group_read;
use crate::sys::page::Times;
use crate::sys::random::Random;
use crate::sys::{Kernel, Refusal, fault};
pub(crate) use hybrid::HybridGroup;
pub(crate) use metrics::Group;
use perf_event_open_sys::bindings::perf_event_attr;
pub(crate) use plain::PlainGroup;
pub(crate) use relieved::{RelievedGroup, SpareEvents};
use std::time::Duration;

/// CPU time after which a group that has not counted is given up.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

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

/// Whether a group with these times on this target was on the counters all the while: a thread need not have run yet, a CPU is there all
/// the time.
fn was_on_always(target: Target, time: Times) -> bool {
    let never = time.running == 0 && !matches!(target, Target::Cpu(_));
    never || time.running == time.enabled
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

/// A group of another thread is opened so often at the most.
const TRIES: usize = 5;

/// Whether the group may have been torn apart while it was half open. If the thread starts another one then, and the kernel switches from one to the
/// other, their inherited events change places (perf_event_context_sched_out in kernel/events/core.c): the leader is the other thread's
/// by now, and takes no members of this one.
fn may_be_torn(options: &Options, refusal: &Refusal) -> bool {
    options.inherit
        && options.target != Target::This
        && refusal.event.is_some_and(|event| event > 0)
        && refusal.error.raw_os_error() == Some(libc::EINVAL)
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
    let mut opened = kernel.open_group(&attrs, pid, cpu, leader);
    for _ in 1..TRIES {
        if !opened.as_ref().is_err_and(|refusal| may_be_torn(options, refusal)) {
            break;
        }
        opened = kernel.open_group(&attrs, pid, cpu, leader);
    }
    opened.map_err(|refusal| {
        let attempt = match refusal.event {
            None => RefusedCall::Clone,
            Some(event) if leader.is_none() && event > 0 => RefusedCall::OpenMember(events[event].0),
            Some(event) => RefusedCall::Open(events[event].0),
        };
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

/// Whether a group's counters can be read by RDPMC, and if not, why.
#[derive(Clone, Copy)]
struct Rdpmc {
    granted: bool,
    /// Without a restartable sequence RDPMC could be executed on an E-core, and fault.
    safe: bool,
    /// They are this thread's, and RDPMC was granted.
    visible: bool,
}

impl Rdpmc {
    /// `granted`: by the leader's page; `rseq`: this thread is registered for restartable sequences.
    fn new(options: &Options, pmu: &Pmu, granted: bool, rseq: bool) -> Rdpmc {
        let safe = pmu.cpus.is_none() || rseq;
        let visible =
            granted && safe && options.target == Target::This && !options.no_rdpmc && fault::survive();
        Rdpmc { granted, safe, visible }
    }

    /// Why readings take a system call, for people; none if they do not. `refusal`: why user space may not read these counters, and
    /// what to do about it.
    fn why_not(&self, options: &Options, refusal: impl FnOnce() -> (&'static str, String)) -> Option<Reason> {
        let by_read = Reason::new("read by read(2)");
        let why = match options.target {
            _ if options.no_rdpmc => "TD_FLAG_NO_RDPMC was given",
            _ if options.inherit => "the kernel maps no inherited events (TD_FLAG_INHERIT)",
            _ if options.kernel => {
                "an interrupt between two RDPMC would count in one register and not in the other (TD_FLAG_KERNEL)"
            }
            Target::Task(_) | Target::TaskOn(..) | Target::Cpu(_) => {
                "RDPMC reads the thread that executes it, not another thread or CPU"
            }
            Target::This if !self.granted => {
                let (why, remedy) = refusal();
                return Some(by_read.why(why).remedy(remedy));
            }
            Target::This if !self.safe => {
                let why = "on a hybrid CPU RDPMC needs restartable sequences, which this C library does not register";
                return Some(by_read.why(why).remedy("glibc 2.35 or later does"));
            }
            Target::This if !self.visible => {
                let why = "RDPMC can be taken away, and the handler of SIGSEGV that survives this cannot be installed here";
                return Some(by_read.why(why).remedy("permit rt_sigaction"));
            }
            Target::This => return None,
        };
        Some(by_read.why(why))
    }
}

impl Access {
    /// How slots of a target are read without RDPMC.
    fn by_read(options: &Options) -> Access {
        match options.target {
            Target::This if options.inherit => Access::OwnAndInherited,
            Target::This => Access::OwnByRead,
            Target::Cpu(_) if !options.inherit => Access::Cpu,
            Target::Cpu(_) | Target::Task(_) | Target::TaskOn(..) => Access::OtherThread,
        }
    }
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

/// Some instructions of which each counter of slots counts some: of several operations each and of microcode, with branches that nobody
/// can foresee and loads that miss the caches.
fn work_of_all_kinds() {
    const WORDS: usize = 1 << 17;
    let mut memory = vec![0u64; WORDS];
    let mut bytes = [0; 64];
    let mut numbers = Random::new(1);
    for turn in 1..2000 {
        let random = numbers.number();
        let word = &mut memory[random as usize % WORDS];
        *word = if random & 1 == 0 {
            std::hint::black_box(random / turn)
        } else {
            std::hint::black_box(*word ^ turn)
        };
        fill_by_microcode(&mut bytes, turn as u8);
    }
    std::hint::black_box(&memory);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::scripted::ScriptedKernel;

    #[test]
    fn a_group_that_was_torn_apart_while_it_opened_is_opened_again() {
        let (kernel, attr) = (ScriptedKernel::sapphire_rapids(), perf_event_attr::default());
        let events = [("LEADER", attr), ("MEMBER", attr)];
        let of_another = Options { target: Target::Task(7), inherit: true, ..Options::default() };
        let opened = |options: &Options, call, errno| {
            kernel.fail(call, errno);
            open_named(&kernel, options, &events, None).map(|events| events.len()).ok()
        };
        // (the first call makes the thread that opens them, the second opens the leader)
        assert_eq!(opened(&of_another, 2, libc::EINVAL), Some(2));
        assert_eq!(opened(&of_another, 1, libc::EINVAL), None);
        assert_eq!(opened(&of_another, 2, libc::EMFILE), None);
        let alone = Options { inherit: false, ..of_another };
        assert_eq!(opened(&alone, 2, libc::EINVAL), None);
        assert_eq!(kernel.open_things(), 0);
    }
}
