use super::tree::SysfsTree;

#[test]
fn pmus_are_found_exactly_then_with_uncore_then_all() {
    let tree = SysfsTree::new(&[
        ("imc/type", "1"),
        ("uncore_imc/type", "2"),
        ("uncore_imc_0/type", "3"),
        ("uncore_arb/type", "4"),
        ("uncore_arb_0/type", "5"),
        ("uncore_cbox_2/type", "12"),
        ("uncore_cbox_10/type", "11"),
        ("uncore_cbox_0/type", "10"),
        ("uncore_cbox_1/type", "13"),
        ("uncore_cbox_free_running/type", "13"),
        ("uncore_cbox_/type", "13"),
        ("uncore_cbox_1a/type", "13"),
        ("uncore_qpi_0/type", "14"),
    ]);
    let pmu = |name: &str| tree.sysfs.pmu(name).map(|pmu| pmu.paths);
    assert_eq!(pmu("imc"), Some(tree.paths(&["imc"])));
    assert_eq!(pmu("arb"), Some(tree.paths(&["uncore_arb"])));
    let boxes = ["uncore_cbox_0", "uncore_cbox_1", "uncore_cbox_10", "uncore_cbox_2"];
    assert_eq!(pmu("cbox"), Some(tree.paths(&boxes)));
    assert_eq!(pmu("cbox_1"), Some(tree.paths(&["uncore_cbox_1"])));
    assert_eq!(pmu("qpi"), Some(tree.paths(&["uncore_qpi_0"])));
    assert_eq!(pmu("uncore_qpi"), None);
    assert_eq!(pmu("cpu"), None);
    assert_eq!(tree.sysfs.pmu("cbox").unwrap().kind(), Some(10));
}

#[test]
fn nothing_outside_is_read() {
    let tree = SysfsTree::new(&[
        ("cpu/type", "4"),
        ("cpu/events/x", "a"),
        ("cpu/format/f", "config:0"),
        ("secret", "b"),
    ]);
    for name in ["", ".", "..", "../devices/cpu", "cpu/events", "/", "cpu\0", "../../../etc"] {
        assert_eq!(tree.sysfs.pmu(name), None, "{name:?}");
    }
    let cpu = tree.sysfs.pmu("cpu").unwrap();
    for name in ["", ".", "..", "../type", "../events/x", "/etc/passwd", "x\0"] {
        assert_eq!((cpu.event(name), cpu.format(name)), (None, None), "{name:?}");
    }
    assert_eq!((cpu.event("x").as_deref(), cpu.format("f").as_deref()), (Some("a"), Some("config:0")));
    assert_eq!((tree.sysfs.is_uncore("../x/"), tree.sysfs.is_uncore("/x/")), (false, false));
    assert_eq!(tree.sysfs.pmu("secret"), None);
}

#[test]
fn cpus_with_two_kinds_of_cores() {
    let tree = SysfsTree::new(&[
        ("cpu_atom/type", "10"),
        ("cpu_core/type", "4"),
        ("cpu_core/caps/max_precise", "3"),
    ]);
    assert_eq!(tree.sysfs.core().unwrap().paths, tree.paths(&["cpu_core"]));
    assert_eq!(
        (tree.sysfs.max_precise(4), tree.sysfs.max_precise(10), tree.sysfs.max_precise(99)),
        (3, 0, 0)
    );
    assert_eq!(SysfsTree::new(&[]).sysfs.core(), None);
}

#[test]
fn uncore_is_what_counts_on_cpu_0_first() {
    let tree = SysfsTree::new(&[
        ("power/cpumask", "0"),
        ("uncore_imc_0/cpumask", "0,18"),
        ("uncore_cha_1/cpumask", "0-1"),
        ("uncore_arb/cpumask", "1"),
        ("uncore_ten/cpumask", "10"),
        ("uncore_none/cpumask", ""),
        ("cpu/type", "4"),
    ]);
    for (event, uncore) in [
        ("power/energy-pkg/", true),
        ("imc/x/", true),
        ("imc_0/x/", true),
        ("uncore_imc_0/x", true),
        ("cha/x/", true),
        ("power", false),
        ("arb/x/", false),
        ("ten/x/", false),
        ("none/x/", false),
        ("cpu/x/", false),
        ("", false),
        ("/", false),
    ] {
        assert_eq!(tree.sysfs.is_uncore(event), uncore, "{event}");
    }
}

#[test]
fn sockets_with_gaps() {
    let package = |cpu, id| (format!("cpus/cpu{cpu}/topology/physical_package_id"), id);
    let files = [package(0, "5"), package(1, "5"), package(2, "0"), package(10, "0"), package(11, "-1")];
    let mut files: Vec<_> = files.iter().map(|(path, id)| (path.as_str(), *id)).collect();
    files.extend([("cpus/cpufreq/x", "1"), ("cpus/cpu3/online", "0")]);
    assert_eq!(SysfsTree::new(&files).sysfs.socket_cpus(), Some(vec![11, 2, 0]));
    assert_eq!(SysfsTree::new(&[]).sysfs.socket_cpus(), None);
}

#[test]
fn types_and_events() {
    let tree = SysfsTree::new(&[
        ("b/type", "4"),
        ("a_b/type", "7"),
        ("a/type", "7"),
        ("a/events/z", "event=1"),
        ("a/events/y", "event=2,umask=3"),
        ("a/events/y.unit", "Joules"),
        ("a_b/events/x", "event=4"),
        ("a_b/events/zeros", "event=5\0\0\0"),
        ("c/type", "x"),
    ]);
    assert_eq!(tree.sysfs.pmu_of_type(7).as_deref(), Some("a"));
    assert_eq!(tree.sysfs.pmu_of_type(8), None);
    let events: Vec<_> = tree
        .sysfs
        .events()
        .into_iter()
        .map(|event| format!("{}/{}/{}", event.pmu, event.name, event.terms))
        .collect();
    assert_eq!(events, ["a/y/event=2,umask=3", "a/z/event=1", "a_b/x/event=4", "a_b/zeros/event=5"]);
    assert_eq!(SysfsTree::new(&[("a/type", "1")]).sysfs.events(), []);
}
