//! Each blocker, with a kernel that does as it is told.

use super::*;
use crate::error::TD_ENOTCOUNTING;
use crate::group::{Group, PATIENCE};
use crate::handle::Path;
use crate::sys::scripted::ScriptedKernel;

const PMU: &str = "/sys/bus/event_source/devices/cpu";
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

fn spr() -> Identity {
    Identity {
        vendor: "GenuineIntel".into(),
        family: 6,
        model: 0x8f,
        name: "a Xeon".into(),
        ..Identity::default()
    }
}

/// A Sapphire Rapids that stands open.
fn machine() -> ScriptedKernel {
    let kernel = ScriptedKernel::sapphire_rapids();
    kernel.grant_rdpmc();
    kernel.add(&format!("{PMU}/rdpmc"), "1\n");
    kernel.add("/proc/sys/kernel/nmi_watchdog", "0\n");
    kernel.add("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
    kernel.add(PARANOID, "-1\n");
    kernel.add(
        "/proc/self/limits",
        "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  65536  65536  bytes\n",
    );
    kernel.add(
        "/proc/thread-self/status",
        "Name:\tx\nCapEff:\t0000000000000000\nSeccomp:\t0\nCpus_allowed_list:\t0-3\n",
    );
    kernel
}

/// A machine with P-cores 0 and 1 and E-cores 2 and 3.
fn hybrid() -> ScriptedKernel {
    let kernel = machine();
    kernel.rename(PMU, &format!("{PMU}_core"));
    kernel.add(&format!("{PMU}_core/cpus"), "0-1\n");
    kernel.add(&format!("{PMU}_atom/cpus"), "2-3\n");
    kernel
}

/// As the library opens, on that kernel.
fn opened(kernel: &ScriptedKernel, cpu: &Identity) -> Result<OpenHandle> {
    let pmu = detect::pmu(kernel, cpu)?;
    let (_, why) = Group::open(kernel.clone(), &pmu, pmu.level, &Options::default(), None, PATIENCE)?;
    let info = Info {
        path: if why.is_none() { Path::Rdpmc } else { Path::Read },
        level: pmu.level,
        counters: 0,
        slots_per_cycle: pmu.model.slots_per_cycle,
        cpu: cpu.name.clone(),
        pmu: pmu.name.into(),
        of_both_kinds: false,
        core: pmu.model.core.into(),
        notes_path: why.is_some(),
        note: why.unwrap_or_default(),
        max_error_ppm: 0,
        max_overhead_ppm: 0,
        windows: 0,
        windows_ns: 0,
    };
    let starved = Error::new(TD_ENOTCOUNTING, "no slot was counted");
    Ok(OpenHandle { info, running: if pmu.covers(kernel.cpu()) { Ok(1.0) } else { Err(starved) } })
}

fn all_free(_: &ScriptedKernel) -> Result<General> {
    Ok(General { there: 8, free: 8, others: Vec::new() })
}

fn report_on(kernel: &ScriptedKernel, cpu: Identity) -> Survey {
    let open = |kernel: &ScriptedKernel| opened(kernel, &cpu);
    let report = Surroundings::new(kernel, cpu.clone(), true, open, all_free).survey();
    assert_eq!(kernel.open_things(), 0);
    assert_eq!(finding(&report, "td_open").verdict == Verdict::Blocker, report.open.is_err());
    for Finding { name, found, verdict, remedy } in &report.findings {
        assert!(!found.is_empty() && !found.contains('\n'), "{name}");
        assert!(
            *verdict != Verdict::Blocker || !remedy.is_empty(),
            "{name}: {found}: and what is to be done?"
        );
    }
    report
}

fn report(kernel: &ScriptedKernel) -> Survey {
    report_on(kernel, spr())
}

fn finding<'r>(report: &'r Survey, name: &str) -> &'r Finding {
    report.findings.iter().find(|finding| finding.name == name).unwrap()
}

/// Whether it was found so, with that word, and a remedy with that one.
#[track_caller]
fn is(report: &Survey, name: &str, verdict: Verdict, found: &str, remedy: &str) {
    let finding = finding(report, name);
    assert_eq!(finding.verdict, verdict, "{finding:?}");
    assert!(finding.found.contains(found) && finding.remedy.contains(remedy), "{finding:?}");
}

/// The first blocker.
fn first_blocker(report: &Survey) -> &'static str {
    report
        .findings
        .iter()
        .find(|finding| finding.verdict == Verdict::Blocker)
        .map_or("none", |blocker| blocker.name)
}

#[test]
fn on_an_open_machine_all_is_good_and_nothing_is_to_be_done() {
    let report = report(&machine());
    for finding in &report.findings {
        assert!(finding.verdict == Verdict::Good && finding.remedy.is_empty(), "{finding:?}");
    }
    is(&report, "cpu", Verdict::Good, "Golden or Raptor Cove, 6 slots per cycle", "");
    is(&report, "topdown_events", Verdict::Good, "level 2", "");
    is(&report, "locked_memory", Verdict::Good, "516 KiB per CPU and user, then `ulimit -l`: 64 KiB", "");
    is(&report, "rdpmc", Verdict::Good, "rdpmc is 1", "");
    is(&report, "td_open", Verdict::Good, "RDPMC, level 2", "");

    let kernel = machine();
    kernel.remove(&format!("{PMU}/rdpmc")); // which only root may read
    assert_eq!(finding(&self::report(&kernel), "rdpmc").found, "granted");
}

#[test]
fn names_differ_and_needs_are_earlier_names() {
    let names: Vec<_> = Surroundings::<ScriptedKernel>::PROBES.iter().map(|probe| probe.name).collect();
    for (i, probe) in Surroundings::<ScriptedKernel>::PROBES.iter().enumerate() {
        assert!(!names[..i].contains(&probe.name), "{}", probe.name);
        assert!(probe.needs.iter().all(|need| names[..i].contains(need)), "{}", probe.name);
    }
}

#[test]
fn a_virtual_machine_without_a_pmu() {
    let kernel = machine();
    kernel.rename(PMU, "/sys/bus/event_source/devices/software");
    let report = report_on(&kernel, Identity { hypervisor: Some("KVM".into()), ..spr() });
    is(&report, "hypervisor", Verdict::Note, "KVM", "");
    is(&report, "pmu", Verdict::Blocker, "virtual machine (KVM) has no PMU", "on the host");
    is(&report, "topdown_events", Verdict::Unknown, "pmu comes first", "");
    is(&report, "rdpmc", Verdict::Unknown, "topdown_events comes first", "");
    is(&report, "perf_event_paranoid", Verdict::Good, "whole CPUs", "");
    is(&report, "td_open", Verdict::Blocker, "no topdown counters on a Xeon", "on the host");
}

#[test]
fn a_virtual_machine_whose_pmu_has_no_perf_metrics() {
    let kernel = machine();
    kernel.remove(&format!("{PMU}/events/slots"));
    let report = report_on(&kernel, Identity { hypervisor: Some("KVM".into()), ..spr() });
    is(&report, "pmu", Verdict::Good, PMU, "");
    is(&report, "topdown_events", Verdict::Blocker, "has no PERF_METRICS", "on the host");
}

#[test]
fn cpus_that_cannot_and_cpus_that_nobody_knows() {
    let haswell = report_on(&machine(), Identity { model: 0x3f, ..spr() });
    is(&haswell, "cpu", Verdict::Blocker, "Haswell", "topdown list");
    is(&haswell, "topdown_events", Verdict::Unknown, "cpu comes first", "");
    let unknown = report_on(&machine(), Identity { model: 0xfe, ..spr() });
    is(&unknown, "cpu", Verdict::Note, "not in the library's table", "send us the output of `topdown check`");
    assert_eq!(first_blocker(&unknown), "none");
    // one without the event that decides, of Intel, AMD and Arm: what is in the way says what to send, too
    let bare = machine();
    bare.remove(&format!("{PMU}/events/slots"));
    for (cpu, names) in [
        (Identity { model: 0xfe, ..spr() }, "model 0xfe"),
        (
            Identity { vendor: "AuthenticAMD".into(), family: 27, model: 0x10, ..spr() },
            "AuthenticAMD family 27",
        ),
        (Identity::of_midr(0x41_0f_ff_f0), "Arm part 0xfff"),
    ] {
        let report = report_on(&bare, cpu);
        is(&report, "cpu", Verdict::Note, names, "`topdown check --describe`");
        is(
            &report,
            "topdown_events",
            Verdict::Blocker,
            "this version does not know it",
            "`topdown check --describe`",
        );
    }
    let old = machine();
    old.remove(&format!("{PMU}/events/slots"));
    is(&report(&old), "topdown_events", Verdict::Blocker, "'slots'", "newer kernel");
}

#[test]
fn masked_sys_and_masked_proc_sys() {
    let kernel = machine();
    kernel.rename("/sys/", "/hidden/");
    is(&report(&kernel), "pmu", Verdict::Blocker, "devices is missing", "mount /sys");

    let kernel = machine();
    kernel.rename("/proc/sys/", "/hidden/");
    let report = report(&kernel);
    is(&report, "perf_event_paranoid", Verdict::Good, "unreadable", "");
    is(&report, "nmi_watchdog", Verdict::Unknown, "cannot be read", "");
    is(&report, "locked_memory", Verdict::Good, "unknown KiB", "");
    assert_eq!(first_blocker(&report), "none");
}

#[test]
fn paranoid_says_what_it_permits_by_trying() {
    let kernel = machine();
    for (level, permitted, not) in [
        ("0", "user mode, kernel mode, whole CPUs", ""),
        ("1", "user mode, kernel mode", ", not whole CPUs"),
        ("2", "user mode", ", not kernel mode, whole CPUs"),
    ] {
        kernel.add(PARANOID, level);
        let report = report(&kernel);
        let verdict = if not.is_empty() { Verdict::Good } else { Verdict::Note };
        is(
            &report,
            "perf_event_paranoid",
            verdict,
            &format!("{level} without CAP_PERFMON permits {permitted}"),
            "",
        );
        is(&report, "perf_event_paranoid", verdict, not, "");
        assert!(report.open.is_ok());
    }
    kernel.add(PARANOID, "4");
    let report = report(&kernel);
    is(&report, "perf_event_open", Verdict::Good, "exists", "");
    is(&report, "perf_event_paranoid", Verdict::Blocker, "perf_event_paranoid is 4", "CAP_SYS_ADMIN");
    is(&report, "locked_memory", Verdict::Unknown, "perf_event_paranoid comes first", "");
    is(&report, "td_open", Verdict::Blocker, "perf_event_paranoid is 4", "CAP_SYS_ADMIN");
    assert_eq!(first_blocker(&report), "perf_event_paranoid");
}

#[test]
fn capabilities_are_told_by_name() {
    let kernel = machine();
    for (set, text) in [
        ("0000004000000000", "with CAP_PERFMON permits"),
        ("0000000000200000", "with CAP_SYS_ADMIN permits"),
        ("000001ffffffffff", "with CAP_PERFMON and CAP_SYS_ADMIN permits"),
        ("00000000a80425fb", "without CAP_PERFMON permits"),
        ("?", "with unknown capabilities permits"),
    ] {
        kernel.add("/proc/thread-self/status", &format!("CapPrm:\tffffffffffffffff\nCapEff:\t{set}\n"));
        is(&report(&kernel), "perf_event_paranoid", Verdict::Good, text, "");
    }
}

#[test]
fn a_seccomp_filter_and_a_kernel_without_perf_events() {
    for (errno, mode, word, remedy) in [
        (libc::EPERM, "2", "seccomp filter of this container", "--cap-add PERFMON"),
        (libc::EPERM, "0", "no seccomp filter is in force", "CAP_PERFMON"),
        (libc::ENOSYS, "2", "does not exist", "allow perf_event_open"),
    ] {
        let kernel = machine();
        kernel.refuse_open(errno);
        kernel.add("/proc/thread-self/status", &format!("Seccomp:\t{mode}\n"));
        kernel.add("/.dockerenv", "");
        let report = report(&kernel);
        is(&report, "container", Verdict::Note, "Docker", "");
        is(&report, "perf_event_open", Verdict::Blocker, word, remedy);
        is(&report, "perf_event_paranoid", Verdict::Unknown, "perf_event_open comes first", "");
        is(&report, "td_open", Verdict::Blocker, "'slots'", remedy);
    }
    let kernel = machine();
    kernel.add("/proc/thread-self/status", "Seccomp:\t2\n");
    is(&report(&kernel), "perf_event_open", Verdict::Good, "no seccomp filter keeps it from", "");
}

#[test]
fn no_memory_left_to_lock() {
    let kernel = machine();
    kernel.refuse_map(libc::EPERM);
    let report = report(&kernel);
    is(&report, "locked_memory", Verdict::Blocker, "perf_event_mlock_kb is 516", "raise one");
    is(&report, "rdpmc", Verdict::Unknown, "locked_memory comes first", "");
}

#[test]
fn rdpmc_that_is_not_granted() {
    let kernel = ScriptedKernel::sapphire_rapids();
    kernel.add(&format!("{PMU}/rdpmc"), "0\n");
    let report = report(&kernel);
    is(&report, "rdpmc", Verdict::Note, "does not grant RDPMC", "write 1 to");
    is(&report, "td_open", Verdict::Note, "read(2), level 2", "");
    assert!(report.open.is_ok());
}

#[test]
fn restartable_sequences_that_are_not_registered() {
    let kernel = machine();
    let report = Surroundings::new(&kernel, spr(), false, |kernel| opened(kernel, &spr()), all_free).survey();
    is(&report, "rseq", Verdict::Note, "not registered", "glibc 2.35");
}

#[test]
fn the_watchdog_is_no_wall() {
    let kernel = machine();
    kernel.add("/proc/sys/kernel/nmi_watchdog", "1\n");
    let report = report(&kernel);
    is(&report, "nmi_watchdog", Verdict::Note, "holds one counter", "nmi_watchdog=0");
    is(&report, "nmi_watchdog", Verdict::Note, "but not SLOTS or PERF_METRICS", "");
    // the registers are those of some of Intel's cores
    let zen = Identity { vendor: "AuthenticAMD".into(), family: 0x19, model: 0x11, ..spr() };
    let of_zen = report_on(&kernel, zen);
    let told = finding(&of_zen, "nmi_watchdog");
    assert!(told.found.contains("holds one counter") && !told.found.contains("SLOTS"), "{}", told.found);
    assert!(
        told.found.ends_with("which level 2 needs") && told.remedy == "sysctl kernel.nmi_watchdog=0",
        "{told:?}"
    );
    assert_eq!(first_blocker(&report), "none");
}

#[test]
fn others_who_take_turns_and_others_who_leave_none() {
    let kernel = machine();
    let half = |kernel: &ScriptedKernel| {
        opened(kernel, &spr()).map(|opened| OpenHandle { running: Ok(0.493), ..opened })
    };
    let report = Surroundings::new(&kernel, spr(), true, half, all_free).survey();
    is(&report, "other_users", Verdict::Note, "counted 49 % of the time", "end those");
    assert_eq!(first_blocker(&report), "none");

    let kernel = ScriptedKernel::sapphire_rapids();
    kernel.starve();
    let report = self::report(&kernel);
    is(&report, "other_users", Verdict::Blocker, "no turn on the counters", "end those");
    is(&report, "td_open", Verdict::Blocker, "no turn on the counters", "end those");
}

#[test]
fn counters_that_stand_still_are_told_by_the_open() {
    let kernel = ScriptedKernel::sapphire_rapids();
    kernel.stand_still();
    let report = report(&kernel);
    assert_eq!(first_blocker(&report), "td_open");
    is(&report, "rdpmc", Verdict::Unknown, "td_open", "");
    is(&report, "other_users", Verdict::Unknown, "td_open", "");
    is(&report, "td_open", Verdict::Blocker, "stands still", "on the host");
}

#[test]
fn hybrid_machines_say_where_things_are_counted() {
    let kernel = hybrid();
    kernel.run_on(1);
    let here = report(&kernel);
    is(
        &here,
        "hybrid",
        Verdict::Note,
        "P-cores: CPUs 0-1, E-cores: 2-3; this ran on CPU 1, a P-core",
        "taskset -c 0-1",
    );
    is(&here, "other_users", Verdict::Good, "none", "");

    let both = |kernel: &ScriptedKernel| {
        let mut both = opened(kernel, &spr())?;
        both.info.pmu = "cpu_core,cpu_atom".into();
        Ok(both)
    };
    let both = Surroundings::new(&kernel, spr(), true, both, all_free).survey();
    is(&both, "hybrid", Verdict::Good, "both kinds are counted", "");

    kernel.add("/proc/thread-self/status", "Cpus_allowed_list:\t1\n");
    is(&report(&kernel), "hybrid", Verdict::Good, "stays on P-cores", "");

    // (of what cannot be opened nobody knows what it would count)
    let refused = |_: &ScriptedKernel| Err(Error::errno(libc::EACCES, "refused"));
    let refused = Surroundings::new(&kernel, spr(), true, refused, all_free).survey();
    is(&refused, "hybrid", Verdict::Unknown, "P-cores: CPUs 0-1, E-cores: 2-3", "");
}

#[test]
fn a_thread_that_stays_on_e_cores_opens_and_counts_nothing() {
    let kernel = hybrid();
    kernel.run_on(3);
    kernel.starve();
    is(&report(&kernel), "hybrid", Verdict::Note, "CPU 3, an E-core", "taskset -c 0-1");
    kernel.add("/proc/thread-self/status", "Cpus_allowed_list:\t2-3\n");
    let report = report(&kernel);
    is(&report, "hybrid", Verdict::Blocker, "CPUs 2-3 alone", "taskset -c 0-1");
    is(&report, "other_users", Verdict::Unknown, "E-core", "");
    assert!(report.open.is_ok(), "it will count on a P-core");
}

#[test]
fn general_counters_that_others_hold_are_told_with_those_who_have_events() {
    let kernel = machine();
    is(&report(&kernel), "general_counters", Verdict::Good, "8 on CPU 0, all of them free", "");
    let held = |others: &[&str]| {
        let others = others.iter().map(ToString::to_string).collect();
        let held = General { there: 8, free: 3, others };
        Surroundings::new(&kernel, spr(), true, |kernel| opened(kernel, &spr()), |_| Ok(held)).survey()
    };
    let (turns, nobody) = ("takes turns", "no other process that this user may look into");
    is(
        &held(&["perf (12)"]),
        "general_counters",
        Verdict::Note,
        "3 of them free; perf events are open in perf (12)",
        turns,
    );
    is(&held(&["a (1)"; 6]), "general_counters", Verdict::Note, "a (1) and 2 more", turns);
    is(&held(&[]), "general_counters", Verdict::Note, nobody, turns);
    kernel.add("/proc/sys/kernel/nmi_watchdog", "1\n");
    is(&held(&[]), "general_counters", Verdict::Note, "NMI watchdog may hold one", turns);
    let refused = |_: &ScriptedKernel| Err(Error::errno(libc::EMFILE, "branches"));
    let refused = Surroundings::new(&kernel, spr(), true, |kernel| opened(kernel, &spr()), refused).survey();
    is(&refused, "general_counters", Verdict::Unknown, "cannot be counted: branches", "");
}
