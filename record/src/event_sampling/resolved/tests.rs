use super::*;
use topdown_seam::sysfs::tree::SysfsTree;

const EVENTS: [(&str, &str); 3] = [
    ("events/cpu-cycles", "event=0x3c"),
    ("events/instructions", "event=0xc0"),
    ("events/cache-misses", "event=0x2e,umask=0x41"),
];
const FORMAT: [(&str, &str); 2] = [("format/event", "config:0-7"), ("format/umask", "config:8-15")];
const RELOAD: (&str, &str) = ("format/acr_mask", "config2:0-63");

/// PMUs by name, type and whether they have auto counter reload.
fn tree(pmus: &[(&str, &str, bool)]) -> SysfsTree {
    let mut files: Vec<(String, &str)> = Vec::new();
    for (name, kind, reload) in pmus {
        files.push((format!("{name}/type"), kind));
        let all = EVENTS.iter().chain(&FORMAT).chain(reload.then_some(&RELOAD));
        files.extend(all.map(|(file, text)| (format!("{name}/{file}"), *text)));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (&**file, *text)).collect();
    SysfsTree::new(&files)
}

fn on(tree: &SysfsTree, text: &str, period: Option<u64>) -> Result<SamplingRule, String> {
    let machine =
        MachineFacts { sysfs: &tree.sysfs, kernel: "6.12.0", cpu: "a CPU", max_sample_rate: Some(100_000.0) };
    SamplingRule::of(text, period, &machine)
}

fn dmr() -> SysfsTree {
    tree(&[("cpu", "4", true)])
}

fn lnl() -> SysfsTree {
    tree(&[("cpu_core", "4", false), ("cpu_atom", "10", true)])
}

#[test]
fn events_and_masks_are_those_of_the_pmu() {
    let resolved = on(&dmr(), "ipc<0.5", None).unwrap();
    let [pmu] = &resolved.pmus[..] else { panic!("{resolved:?}") };
    assert_eq!((pmu.name, pmu.kind), ("cpu", 4));
    let reload = pmu.reload.unwrap();
    assert_eq!((pmu.sampled.config, reload.other.config), (0x3c, 0xc0));
    assert_eq!(reload.masks, [2, 3]);
    assert_eq!((&*resolved.event, resolved.without.len()), ("cycles", 0));
    assert_eq!(resolved.periods, Periods { sampled: 1_000_000, other: 500_000 });
    let misses = on(&dmr(), "cpu/event=0x2e,umask=0x41//instructions>0.01", Some(5000)).unwrap();
    assert_eq!((misses.pmus[0].sampled.config, misses.pmus[0].reload.unwrap().other.config), (0x412e, 0xc0));
    assert_eq!(misses.periods, Periods { sampled: 5000, other: 500_000 });
    let attr = attr_of(10, misses.pmus[0].sampled, 2);
    assert_eq!((attr.type_, attr.config, Word::Config2.of(&attr)), (10, 0x412e, 2));
}

/// Of instructions there may be eight in a cycle: half of 100,000 samples a second at 5 GHz.
#[test]
fn periods_that_nobody_gave_are_not_throttled() {
    assert_eq!(on(&dmr(), "ipc>0.25", None).unwrap().periods, Periods { sampled: 800_000, other: 3_200_000 });
    assert_eq!(
        on(&dmr(), "ipc>0.25", Some(20_000)).unwrap().periods,
        Periods { sampled: 20_000, other: 80_000 }
    );
}

#[test]
fn of_a_hybrid_cpu_those_are_sampled_that_can_be() {
    let resolved = on(&lnl(), "ipc<0.5", None).unwrap();
    assert_eq!((resolved.pmus.len(), resolved.pmus[0].name, resolved.pmus[0].kind), (1, "cpu_atom", 10));
    assert_eq!(resolved.without, ["cpu_core"]);
    assert!(on(&lnl(), "cpu_atom/instructions//cycles>2", None).is_ok());
    let said = on(&lnl(), "cpu_core/instructions//cycles>2", None).unwrap_err();
    assert!(said.contains("cpu_core has no auto counter reload") && said.contains("cpu_atom has"), "{said}");
    let said = on(&lnl(), "{cpu_core/instructions/,cpu_atom/cycles,ratio-to-prev=2/}", None).unwrap_err();
    assert!(said.contains("two PMUs"), "{said}");
}

#[test]
fn what_the_machine_has_not_is_named() {
    for (pmus, named) in [
        (&[("cpu", "4", false)][..], "cpu here has none"),
        (&[("cpu_core", "4", false), ("cpu_atom", "10", false)][..], "cpu_core, cpu_atom here has none"),
        (&[][..], "no PMU of cores"),
    ] {
        let said = on(&tree(pmus), "ipc<0.5", None).unwrap_err();
        for word in [named, "format/acr_mask", "a CPU, Linux 6.12.0", "Diamond Rapids", "6.16"] {
            assert!(said.contains(word), "{said}");
        }
    }
    let broken = SysfsTree::new(&[
        ("cpu/type", "4"),
        ("cpu/format/event", "config:0-7"),
        ("cpu/format/acr_mask", "config1:0-63"),
        ("cpu/events/cycles", "event=0x3c"),
        ("cpu/events/instructions", "event=0xc0"),
    ]);
    assert!(on(&broken, "ipc<0.5", None).unwrap_err().contains("not in config2"));
}

#[test]
fn what_is_wrong_with_events_is_named() {
    for (text, why) in [
        ("cycles/nothing<1", "nothing is no event of cpu"),
        ("task-clock/instructions>1", "task-clock is a software event"),
        ("software/task-clock//cycles>1", "is no ratio of two events"),
        ("cycles/cpu-cycles>1", "are one event"),
        ("cpu/event=0x2e,umask=zz//cycles>1", "'umask=zz' has no number"),
        ("cpu/event=0x12e//cycles>1", "too big"),
        ("cpu/event=0x2e,acr_mask=3//cycles>1", "does not select an event"),
        ("cpu/event=0x2e,period=3//cycles>1", "does not select an event"),
        ("cpu/event=0x2e,freq=3//cycles>1", "does not select an event"),
        ("cpu/edge=1//cycles>1", "edge"),
        ("ipc<0.5<", "no ratio"),
    ] {
        let said = on(&dmr(), text, None).expect_err(text);
        assert!(said.contains(why), "{text}: {said}");
    }
    let said = on(&dmr(), "instructions/period=2000/,cycles/ratio-to-prev=0.5/", Some(3000)).unwrap_err();
    assert!(said.contains("another period than --period"), "{said}");
    assert!(on(&dmr(), "ipc<0.5", Some(1 << 47)).unwrap_err().contains("too long"));
}

#[test]
fn an_extra_register_has_one_value_at_a_time() {
    let event = |config, config1| Config { config, config1 };
    let (dsb_miss, ms_flows) = (event(0x1c6, 0x11), event(0x1c6, 0x8));
    assert!(!dsb_miss.goes_with(&ms_flows) && dsb_miss.goes_with(&dsb_miss));
    // (those without take none, and off-core responses have two)
    assert!(dsb_miss.goes_with(&event(0x1c6, 0)) && dsb_miss.goes_with(&event(0x1cd, 3)));
    assert!(event(0x12a, 1).goes_with(&event(0x12a, 2)));
}
