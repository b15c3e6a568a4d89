use super::*;
use topdown_seam::attr::Word;
use topdown_seam::sysfs::tree::SysfsTree;

fn tree() -> SysfsTree {
    SysfsTree::new(&[
        ("cpu/type", "4"),
        ("cpu/format/event", "config:0-7"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/any", "config:21"),
        ("cpu/events/cpu-cycles", "event=0x3c"),
        ("cpu/events/branch-instructions", "event=0xc4"),
        ("msr/type", "9"),
        ("msr/format/event", "config:0-63"),
        ("msr/events/tsc", "event=0x00"),
        ("uncore_cbox_1/type", "21"),
        ("uncore_cbox_0/type", "20"),
        ("uncore_cbox_0/format/event", "config:0-7"),
        ("typeless/format/event", "config:0-7"),
    ])
}

/// One event of a list.
fn listed(name: &str, terms: &str, pmu: &str) -> impl Fn(&str) -> Option<Arc<ListedEvent>> + use<> {
    let event = ListedEvent { name: name.into(), terms: terms.into(), desc: String::new(), pmu: pmu.into() };
    move |name| event.name.eq_ignore_ascii_case(name).then(|| Arc::new(event.clone()))
}

fn none(_: &str) -> Option<Arc<ListedEvent>> {
    None
}

/// decoded, type, config
fn short(resolved: Result<ResolvedEvent, Unresolved>) -> Result<(String, u32, u64), Option<String>> {
    match resolved {
        Ok(found) => Ok((found.decoded, found.attr.type_, found.attr.config)),
        Err(why) => Err(why.reason().map(String::from)),
    }
}

#[test]
fn names_of_the_kernel() {
    let tree = tree();
    for (name, kind, config) in [
        ("cycles", 4, 0x3c),
        ("cycles:u", 4, 0x3c),
        ("branches", 4, 0xc4),
        ("cpu-cycles", 4, 0x3c),
        ("/cpu-cycles", 4, 0x3c),
        ("cpu-cycles:k:u", 4, 0x3c),
        ("r1b7", 4, 0x1b7),
        ("read", 4, 0xead),
        ("rffffffffffffffff:p", 4, u64::MAX),
        ("msr/tsc/", 9, 0),
        ("msr/tsc", 9, 0),
        ("msr/event=2/:k", 9, 2),
        ("msr/event=2/k", 9, 2),
        ("cbox/event=7/", 20, 7),
        ("cbox_1/config=7/", 21, 7),
    ] {
        assert_eq!(short(kernel_name(&tree.sysfs, name)), Ok((name.into(), kind, config)), "{name}");
        assert_eq!(short(event(&tree.sysfs, none, name)), Ok((name.into(), kind, config)), "{name}");
    }
    let user = kernel_name(&tree.sysfs, "cycles:u").unwrap().attr;
    assert_eq!((user.exclude_kernel(), user.exclude_user(), user.size), (1, 0, 64));
}

#[test]
fn tracepoints_and_what_the_kernel_brings() {
    let tree = SysfsTree::new(&[
        ("tracing/events/sched/sched_switch/id", "326"),
        ("tracing/events/sched/enable", "0"),
        ("software/type", "1"),
        ("tracepoint/type", "2"),
    ]);
    for (name, kind, config) in [
        ("sched:sched_switch", 2, 326),
        ("sched:sched_switch:k", 2, 326),
        ("cs:u", 1, 3),
        ("L1-dcache-load-misses", 3, 0x1_0000),
        ("cycles", 0, 0), // no PMU of cores says it otherwise
        ("branches:u", 0, 4),
    ] {
        assert_eq!(short(kernel_name(&tree.sysfs, name)), Ok((name.into(), kind, config)), "{name}");
    }
    let found = kernel_name(&tree.sysfs, "sched:sched_switch:k").unwrap();
    assert_eq!((found.attr.exclude_user(), found.attr.exclude_kernel()), (1, 0));
    assert_eq!(found.pmus, [tree.sysfs.devices.join("tracepoint").to_str().unwrap()]);
    for name in [
        "sched:",
        ":sched_switch",
        "sched:..",
        "..:sched",
        "sched:sched_switch/id",
        "sched:nothing",
        "sched:enable",
    ] {
        assert_eq!(short(kernel_name(&tree.sysfs, name)), Err(None), "{name}");
    }
    assert!(short(kernel_name(&tree.sysfs, "sched:sched_switch:x")).is_err_and(|why| why.is_some()));
}

#[test]
fn what_fails() {
    let tree = tree();
    for name in [
        "",
        "/",
        "//",
        ":",
        ":u",
        "nothing",
        "nothing/x/",
        "cbox_7/event=1/",
        "r",
        "uncore_cbox/event=1/",
        "tsc",
    ] {
        assert_eq!(short(kernel_name(&tree.sysfs, name)), Err(None), "{name}");
        assert_eq!(short(event(&tree.sysfs, none, name)), Err(None), "{name}");
    }
    for (name, said) in [
        ("cpu//", "Empty term"),
        ("cpu/", "Empty term"),
        ("cpu/event=0x100/", "too big"),
        ("cpu/event=1/x", "Unknown modifier x for cpu/event=1/x"),
        ("cpu/event=1/u/", "Unknown modifier /"),
        ("cycles:z", "Unknown modifier z"),
        ("r1:z", "Unknown modifier z"),
        ("r10000000000000000", "larger than 64"),
        ("typeless/event=1/", "type of typeless"),
    ] {
        for resolved in [kernel_name(&tree.sysfs, name), event(&tree.sysfs, none, name)] {
            let why = resolved.expect_err(name);
            assert!(why.reason().is_some_and(|reason| reason.contains(said)), "{name}: {why:?}");
        }
    }
}

#[test]
fn bare_terms() {
    let tree = tree();
    assert_eq!(
        short(event(&tree.sysfs, none, "event=0x3c,umask=1")),
        Ok(("cpu/event=0x3c,umask=1/".into(), 4, 0x13c))
    );
    let user = event(&tree.sysfs, none, "event=0x3c:u").unwrap();
    assert_eq!((user.decoded.as_str(), user.attr.exclude_kernel()), ("cpu/event=0x3c/u", 1));
    assert_eq!(short(kernel_name(&tree.sysfs, "event=0x3c")), Err(None));
}

#[test]
fn lists_come_first() {
    let tree = tree();
    let list = listed("cpu-cycles", "umask=0x02,event=0x24", "cpu");
    assert_eq!(
        short(event(&tree.sysfs, &list, "CPU-Cycles:u")),
        Ok(("cpu/umask=0x02,event=0x24/u".into(), 4, 0x224))
    );
    assert_eq!(short(event(&tree.sysfs, &list, "cycles")), Ok(("cycles".into(), 4, 0x3c)));
    let several = event(&tree.sysfs, &list, "cpu-cycles:config1=1:u:k").unwrap().attr;
    assert_eq!((Word::Config1.of(&several), several.exclude_kernel(), several.exclude_hv()), (1, 0, 1));
    let broken = listed("x", "nothing=1,event=1", "cpu");
    assert_eq!(
        short(event(&tree.sysfs, broken, "x")),
        Err(Some("Cannot open kernel format nothing of cpu".into()))
    );
    // one of the kernel's is what remains
    let elsewhere = listed("cpu-cycles", "event=1", "no_such_pmu");
    assert_eq!(short(event(&tree.sysfs, elsewhere, "cpu-cycles")), Ok(("cpu-cycles".into(), 4, 0x3c)));
}

#[test]
fn a_umask_without_room_is_what_there_is_room_for() {
    let tree = tree();
    let wide = listed("far.event", "umask=0x1ff20,event=0x2a", "cpu");
    assert_eq!(
        short(event(&tree.sysfs, wide, "far.event")),
        Ok(("cpu/umask=0x20,event=0x2a/".into(), 4, 0x202a))
    );
    // SAFETY: a C string of this thread's.
    let said = unsafe { std::ffi::CStr::from_ptr(say::kept()) }.to_str().unwrap();
    assert!(
        said.starts_with("far.event: ") && said.contains("0x1ff20") && said.contains("umask=0x20"),
        "{said}"
    );
}

#[test]
fn fixed_events_count_anywhere() {
    let tree = tree();
    for (name, terms, config) in [
        ("inst_retired.any", "event=0xc0", 0xc0),
        ("cpu_clk_unhalted.thread", "event=0x3c", 0x3c),
        ("cpu_clk_unhalted.thread_any", "event=0x3c,any=1", 0x20003c),
    ] {
        let resolved = event(&tree.sysfs, listed(name, "umask=0x01,period=2000003,event=0x00", "cpu"), name);
        assert_eq!(short(resolved), Ok((format!("cpu/{terms}/"), 4, config)));
    }
    assert_eq!(short(event(&tree.sysfs, none, "inst_retired.any")), Err(None));
}

#[test]
fn pmus() {
    let tree = tree();
    let resolved = |name: &str| {
        let found = event(&tree.sysfs, none, name).unwrap();
        let names: Vec<_> =
            found.pmus.iter().map(|path| path.rsplit_once('/').unwrap().1.to_string()).collect();
        assert!(found.pmus.iter().all(|path| Path::new(path).is_dir()), "{name}");
        (found.multi_pmu, names.join(" "))
    };
    assert_eq!(resolved("cbox/event=1/"), (true, "uncore_cbox_0 uncore_cbox_1".into()));
    assert_eq!(resolved("cbox_1/config=1/"), (false, "uncore_cbox_1".into()));
    for name in ["r3c", "cycles", "cpu-cycles", "event=1", "cpu/event=1/"] {
        assert_eq!(resolved(name), (false, "cpu".into()), "{name}");
    }
    let bare = SysfsTree::new(&[("software/type", "1")]);
    assert!(kernel_name(&bare.sysfs, "r3c").unwrap().pmus[0].ends_with("/cpu"));
}

#[test]
fn two_kinds_of_cores() {
    let tree = SysfsTree::new(&[
        ("cpu_atom/type", "10"),
        ("cpu_core/type", "4"),
        ("cpu_core/format/event", "config:0-7"),
        ("cpu_core/events/cpu-cycles", "event=0x3c"),
    ]);
    for name in ["cycles", "cpu-cycles", "cpu/event=0x3c/", "event=0x3c", "r3c"] {
        let found = event(&tree.sysfs, none, name).unwrap();
        assert_eq!((found.attr.type_, found.attr.config), (4, 0x3c), "{name}");
        assert!(found.pmus[0].ends_with("/cpu_core"), "{name}");
    }
}
