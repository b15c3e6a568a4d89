//! docs/failures.md has each failure with its code and text, made here by running into it.
#![forbid(unsafe_code)]

use crate::detect::blockers::{RefusedCall, explain};
use crate::detect::{self, Pmu};
use crate::error::{Error, Result};
use crate::group::{self, Group};
use crate::handle::{self, check_target, level_of};
use crate::model::NoDeeper;
use crate::model::metrics::{TD_NODE_BACKEND_BOUND, TD_NODE_IFETCH_LATENCY, TD_NODE_RETIRING};
use crate::options::{Options, Target};
use crate::sample::Sample;
use crate::sys::cpu::Identity;
use crate::sys::scripted::ScriptedKernel;
use crate::{TopDown, decode_l1, decode_l2, decode_raw_l1};
use std::io;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// A situation, and the error that the library makes of it.
type Situation = (&'static str, Error);

fn cpu(model: u32) -> Identity {
    let name = "a CPU".into();
    Identity { vendor: "GenuineIntel".into(), family: 6, model, name, ..Identity::default() }
}

fn none<T>(result: Result<T>) -> Error {
    result.err().expect("a failure")
}

/// Sapphire Rapids, but for what is done to it.
fn machine(change: impl FnOnce(&ScriptedKernel)) -> ScriptedKernel {
    let kernel = ScriptedKernel::sapphire_rapids();
    kernel.add("/sys/devices/system/cpu/online", "0-7\n");
    kernel.add("/proc/sys/kernel/perf_event_paranoid", "2\n");
    change(&kernel);
    kernel
}

fn no_pmu() -> Vec<Situation> {
    let found = |change: &dyn Fn(&ScriptedKernel), cpu: &Identity| none(detect::pmu(&machine(change), cpu));
    let slots = format!("{DEVICES}/cpu/events/slots");
    let gone = |kernel: &ScriptedKernel| kernel.rename(DEVICES, "/elsewhere");
    let renamed =
        |kernel: &ScriptedKernel| kernel.rename(&format!("{DEVICES}/cpu/"), &format!("{DEVICES}/uncore/"));
    let old = |kernel: &ScriptedKernel| kernel.remove(&slots);
    let guest = Identity { hypervisor: Some("KVM".into()), ..cpu(0x8f) };
    let amd = Identity { vendor: "AuthenticAMD".into(), family: 0x17, ..cpu(0x31) };
    vec![
        ("no sysfs (a container without /sys)", found(&gone, &cpu(0x8f))),
        ("a virtual machine without a PMU", found(&renamed, &guest)),
        ("a kernel without a driver for the PMU", found(&renamed, &cpu(0x8f))),
        ("a virtual machine whose PMU has no PERF_METRICS", found(&old, &guest)),
        ("a CPU of another kind", found(&|_| {}, &amd)),
        ("a kernel that does not know the CPU", found(&old, &cpu(0xad))),
        ("a CPU that the library does not know, without SLOTS", found(&old, &cpu(0xfe))),
        (
            "topdown-* names that mean general counters",
            found(&|k| k.add(&format!("{DEVICES}/cpu/events/topdown-retiring"), "event=0xc2"), &cpu(0xfe)),
        ),
        (
            "a masked events directory",
            found(
                &|kernel| {
                    kernel.remove(&slots);
                    kernel.remove(&format!("{DEVICES}/cpu/events/cpu-cycles"));
                },
                &cpu(0x8f),
            ),
        ),
        ("a file of sysfs that may not be read", found(&|k| k.hide(&slots, libc::EACCES), &cpu(0x8f))),
        ("no descriptor left to read sysfs", found(&|k| k.hide(&slots, libc::EMFILE), &cpu(0x8f))),
        ("TD_SOURCE_COUNTERS, a CPU of another kind", none(detect::counters(&machine(|_| {}), &amd, 0))),
        ("TD_CORES_E, not a hybrid CPU", none(detect::e_cores(&machine(|_| {}), &cpu(0x8f), 0, 0))),
        ("TD_CORES_E, E-cores off or hidden", none(detect::e_cores(&machine(|_| {}), &cpu(0x97), 0, 0))),
    ]
}

fn options() -> Vec<Situation> {
    let kernel = machine(|kernel| {
        kernel.rename(&format!("{DEVICES}/cpu/"), &format!("{DEVICES}/cpu_core/"));
        kernel.add(&format!("{DEVICES}/cpu_core/cpus"), "0-3\n");
    });
    let pmu = detect::pmu(&kernel, &cpu(0x97)).unwrap();
    let on = |target| Options { target, ..Options::default() };
    let target = |target| none(check_target(&kernel, &pmu, &cpu(0x97), &on(target)));
    // (else it is the core of this machine, which may have groups that take turns)
    let level_2 = Options { level: 2, core: "Sunny, Willow or Cypress Cove", ..Options::default() };
    let counters = ScriptedKernel::default();
    counters.add(&format!("{DEVICES}/cpu/type"), "4\n");
    counters.add(&format!("{DEVICES}/cpu/events/cpu-cycles"), "event=0x3c\n");
    counters.add("/proc/sys/kernel/nmi_watchdog", "1\n");
    let subtree_to = |model, node, level| none(detect::subtree(&counters, &cpu(model), node, level));
    let subtree = |model, node| subtree_to(model, node, 0);
    vec![
        ("level 2 of a CPU that has level 1", none(level_of(&level_2, 1, &cpu(0x6a), NoDeeper::default()))),
        ("a subtree that a core cannot count", subtree(0x55, TD_NODE_BACKEND_BOUND)),
        ("a subtree of all counters beside the NMI watchdog", subtree(0xaf, TD_NODE_IFETCH_LATENCY)),
        ("a level above a subtree's nodes", subtree_to(0x55, TD_NODE_RETIRING, 1)),
        ("a CPU that is not there", target(Target::Cpu(9))),
        ("an E-core as target", target(Target::Cpu(5))),
    ]
}

fn refusals() -> Vec<Situation> {
    let says = |options: &Options, attempt, errno, change: &dyn Fn(&ScriptedKernel)| {
        explain(&machine(change), options, attempt, &io::Error::from_raw_os_error(errno))
    };
    let (this, open) = (Options::default(), RefusedCall::Open("slots"));
    let of = |target| Options { target, ..this };
    let paranoid = |level: &'static str| {
        move |kernel: &ScriptedKernel| kernel.add("/proc/sys/kernel/perf_event_paranoid", level)
    };
    let filter = |kernel: &ScriptedKernel| kernel.add("/proc/thread-self/status", "Seccomp:\t2\n");
    vec![
        ("perf_event_paranoid 3 (Debian), 4 (Ubuntu)", says(&this, open, libc::EACCES, &paranoid("3"))),
        ("kernel mode at paranoid 2", says(&Options { kernel: true, ..this }, open, libc::EACCES, &|_| {})),
        ("a whole CPU at paranoid 2", says(&of(Target::Cpu(1)), open, libc::EACCES, &|_| {})),
        ("another user's thread", says(&of(Target::Task(77)), open, libc::EACCES, &|_| {})),
        ("a security module", says(&this, open, libc::EACCES, &|_| {})),
        ("a seccomp filter (containers)", says(&this, open, libc::EPERM, &filter)),
        ("no perf_event_open", says(&this, open, libc::ENOSYS, &|_| {})),
        ("no descriptor left in the process", says(&this, open, libc::EMFILE, &|_| {})),
        ("no descriptor left in the system", says(&this, open, libc::ENFILE, &|_| {})),
        ("no such thread", says(&of(Target::Task(77)), open, libc::ESRCH, &|_| {})),
        ("no thread left to the user or container", says(&this, RefusedCall::Clone, libc::EAGAIN, &|_| {})),
        ("a seccomp filter that forbids clone", says(&this, RefusedCall::Clone, libc::EPERM, &filter)),
        ("the PMU is reserved", says(&this, open, libc::EBUSY, &|_| {})),
        (
            "more events than the PMU has general counters",
            says(&this, RefusedCall::OpenMember("TOPDOWN.MEMORY_BOUND_SLOTS"), libc::EINVAL, &|_| {}),
        ),
        ("events that are shown but do not open", says(&this, open, libc::EINVAL, &|_| {})),
        ("no memory left that may be locked", says(&this, RefusedCall::Map, libc::EPERM, &|_| {})),
        (
            "another call of the open sequence fails",
            says(&this, RefusedCall::Other("ioctl ENABLE"), libc::EACCES, &|_| {}),
        ),
    ]
}

fn proofs() -> Vec<Situation> {
    let open = |kernel: &ScriptedKernel| {
        let pmu: Pmu = detect::pmu(kernel, &cpu(0x8f)).unwrap();
        none(Group::open(
            kernel.clone(),
            &pmu,
            2,
            &Options { no_rdpmc: true, ..Options::default() },
            None,
            crate::group::PATIENCE,
        ))
    };
    vec![
        ("SLOTS opens and stands still", open(&machine(ScriptedKernel::stand_still))),
        ("others hold the counters", open(&machine(ScriptedKernel::starve))),
        ("an event opens in another counter", group::metrics::junk("topdown-retiring", 3)),
        (
            "a general event opens in a counter that cannot count it",
            group::plain::misplaced("TOPDOWN.BR_MISPREDICT_SLOTS", 5),
        ),
        ("a hypervisor withholds an event", group::plain::withheld("UOPS_RETIRED.HEAVY")),
    ]
}

fn later() -> Vec<Situation> {
    let open = || TopDown::open(&Options { simulate: true, ..Options::default() }).unwrap();
    let (td, other) = (open(), open());
    let read = |td: &TopDown| {
        (0..1000).for_each(|i| {
            std::hint::black_box(i);
        });
        td.read().unwrap()
    };
    let (a, b, c) = (read(&td), read(&td), read(&other));
    td.reset().unwrap();
    let fresh = read(&td);
    let shallow = TopDown::open(&Options { simulate: true, level: 1, ..Options::default() }).unwrap();
    vec![
        ("another thread's handle", handle::wrong_thread()),
        ("the parent's handle in a forked child", handle::forked()),
        (
            "signal handlers that interrupt a call 64 times in a row, each using the handle",
            crate::source::interrupted(),
        ),
        ("a closed handle", handle::closed()),
        ("rdpmc set to 0 while the handle is open", handle::rdpmc_taken("cpu")),
        ("the CPU of the counters goes offline", group::given_up()),
        ("nothing ran between the samples", none(decode_l1(Some(&a), &a))),
        ("samples of two handles", none(decode_l1(Some(&c), &b))),
        ("samples in the wrong order", none(decode_l1(Some(&b), &a))),
        ("a sample from before td_reset", none(decode_l1(Some(&a), &fresh))),
        ("bytes that are no sample", none(decode_l1(None, &Sample::default()))),
        ("level 2 of samples without it", none(decode_l2(None, &read(&shallow)))),
        ("raw registers that were reset in between", none(decode_raw_l1(2, 0xff, 1, 0xff))),
    ]
}

fn code(error: &Error) -> &'static str {
    [
        (crate::TD_EWRONGTHREAD, "TD_EWRONGTHREAD"),
        (crate::TD_ENOTCOUNTING, "TD_ENOTCOUNTING"),
        (crate::TD_ESTALE, "TD_ESTALE"),
        (crate::TD_ENORDPMC, "TD_ENORDPMC"),
        (-libc::ENODEV, "-ENODEV"),
        (-libc::EACCES, "-EACCES"),
        (-libc::EPERM, "-EPERM"),
        (-libc::ENOSYS, "-ENOSYS"),
        (-libc::ENOTSUP, "-ENOTSUP"),
        (-libc::EINVAL, "-EINVAL"),
        (-libc::EMFILE, "-EMFILE"),
        (-libc::ENFILE, "-ENFILE"),
        (-libc::ENOMEM, "-ENOMEM"),
        (-libc::ESRCH, "-ESRCH"),
        (-libc::EAGAIN, "-EAGAIN"),
        (-libc::EBUSY, "-EBUSY"),
        (-libc::EBADF, "-EBADF"),
        (-libc::EIO, "-EIO"),
    ]
    .into_iter()
    .find(|(code, _)| *code == error.code())
    .expect("a documented code")
    .1
}

fn table(situations: &[Situation]) -> String {
    let row = |(what, error): &Situation| format!("| {what} | {} | {error} |\n", code(error));
    format!(
        "\n| | code | td_last_error |\n|---|---|---|\n{}\n",
        situations.iter().map(row).collect::<String>()
    )
}

#[test]
fn the_document_has_every_failure_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/failures.md");
    let found = std::fs::read_to_string(path).unwrap();
    let mut made = found.clone();
    for (name, situations) in [
        ("pmu", no_pmu()),
        ("options", options()),
        ("refusals", refusals()),
        ("proofs", proofs()),
        ("later", later()),
    ] {
        assert!(situations.iter().all(|(_, error)| error.to_string().len() < 600), "td_last_error cuts it");
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = made.split_once(&begin).expect("the table's begin");
        let (_, after) = rest.split_once(&end).expect("the table's end");
        made = format!("{before}{begin}{}{end}{after}", table(&situations));
    }
    if std::env::var_os("TOPDOWN_WRITE_FAILURES").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert!(
        found == made || std::env::var_os("TOPDOWN_WRITE_FAILURES").is_some(),
        "run `make failures` and commit it"
    );
}
