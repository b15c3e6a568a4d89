//! The table of CPUs: who stands where in it, and that each tree can be evaluated.

use super::*;
use std::collections::BTreeSet;

fn intel(family: u32, model: u32) -> Option<&'static Model> {
    of_cpu(&Identity { vendor: "GenuineIntel".into(), family, model, ..Identity::default() }).map(|m| m.1)
}

#[test]
fn cpus_have_the_width_and_levels_of_kernel_facts_a_1() {
    for (model, level, width) in
        [(0x6a, 1, 5), (0x8d, 1, 5), (0x8f, 2, 6), (0x97, 2, 6), (0xad, 2, 6), (0xbd, 2, 8), (0xcc, 2, 8)]
    {
        let row = intel(6, model).unwrap();
        assert!(
            matches!(row.counting, Counting::PerfMetrics { level: most, .. } if most == level),
            "{model:#x}"
        );
        assert_eq!(row.slots_per_cycle, width, "{model:#x}");
    }
    assert!(matches!(intel(6, 0x3f).unwrap().counting, Counting::None(_)), "Haswell");
    assert!(intel(6, 0xfe).is_none());
}

#[test]
fn amd_cpus_are_told_apart_as_the_kernel_does() {
    for (family, model, core, width) in [
        (0x17, 0x31, "Zen 1 or 2", 0),
        (0x19, 0x01, "Zen 3", 0),
        (0x19, 0x5f, "Zen 3", 0),
        (0x19, 0x11, "Zen 4", 6),
        (0x19, 0xaf, "Zen 4", 6),
        (0x1a, 0x02, "Zen 5", 8),
        (0x1a, 0x7f, "Zen 5", 8),
        (0x1a, 0x50, "Zen 6", 8),
        (0x1a, 0xcf, "Zen 6", 8),
    ] {
        let cpu = Identity { vendor: "AuthenticAMD".into(), family, model, ..Identity::default() };
        let (_, row) = of_cpu(&cpu).unwrap();
        assert_eq!((row.core, row.slots_per_cycle), (core, width), "{family:#x} {model:#x}");
        assert_eq!(by_counters(&cpu).is_some(), width > 0, "{core}");
    }
    let unknown =
        Identity { vendor: "AuthenticAMD".into(), family: 0x1a, model: 0x30, ..Identity::default() };
    assert!(of_cpu(&unknown).is_none());
}

#[test]
fn arm64_cpus_are_told_apart_by_their_midr() {
    for (midr, core, width, inputs) in [
        (0x481f_d010, "hip08", 4, 9),
        (0x411f_d401, "Neoverse V1", 8, 5),
        (0x410f_d490, "Neoverse N2 before r0p3", 5, 6),
        (0x410f_d492, "Neoverse N2 before r0p3", 5, 6),
        (0x410f_d493, "Neoverse N2", 5, 5),
        (0x411f_d490, "Neoverse N2", 5, 5),
        (0x410f_d4f0, "Neoverse V2", 8, 5),
        (0x410f_d8e0, "Neoverse N3", 5, 5),
        (0x410f_d830, "Neoverse V3", 10, 5),
        (0xc00f_ac30, "AmpereOne", 0, 3),
        (0xc00f_ac31, "AmpereOne", 0, 3),
        (0xc00f_ac40, "AmpereOneX", 0, 3),
        (0x4e0f_0100, "T410", 0, 5),
    ] {
        let (place, row) = of_cpu(&Identity::of_midr(midr)).unwrap();
        assert_eq!((row.core, row.slots_per_cycle), (core, width), "{midr:#x}");
        assert_eq!(counters_down_to(place as u8, row.levels() as u8), inputs, "{core}");
    }
    let n1 = of_cpu(&Identity::of_midr(0x413f_d0c1)).unwrap().1;
    assert!(n1.core == "Neoverse N1" && matches!(n1.counting, Counting::None(_)));
    for other in [0x480f_d020, 0x410f_d080, 0x460f_0010, 0xc00f_ac50] {
        assert!(of_cpu(&Identity::of_midr(other)).is_none(), "{other:#x}");
    }
}

#[test]
fn no_cpu_stands_in_two_rows_and_fixed_places_hold() {
    let all: Vec<_> = rows().collect();
    for (i, a) in all.iter().enumerate() {
        for b in &all[i + 1..] {
            let same_family = a.vendor == b.vendor
                && a.family == b.family
                && !a.vendor.is_empty()
                && a.subtree() == b.subtree()
                && a.variant == b.variant
                && a.before == b.before;
            assert!(!same_family || a.models.iter().all(|m| !b.models.contains(m)), "{} {}", a.core, b.core);
        }
    }
    assert_eq!(at(UNKNOWN).unwrap().core, "unknown core");
    assert_eq!(at(SIMULATED).unwrap().core, "simulated core");
    for (place, row) in (0..).zip(&all).filter(|(_, row)| tree_of_row(row).is_some()) {
        assert_eq!(of_core(row.core), Some(place), "another row has this name, too");
    }
    assert_eq!(of_core(""), None);
    for (place, row) in (0..).zip(&all) {
        assert_eq!(tree_of(place).is_some(), !matches!(row.counting, Counting::None(_)), "{place}");
        let by_category = tree_of(place).filter(|tree| !tree.takes_counters());
        assert_eq!(u32::from(levels_by_category(place)), by_category.map_or(0, Tree::depth), "{place}");
    }
}

#[test]
fn cores_that_can_be_counted_have_names_of_their_own() {
    let counted = || rows().filter(|row| row.levels() > 0);
    for row in counted() {
        assert_eq!(counted().filter(|other| other.core == row.core).count(), 1, "{}", row.core);
        assert!(std::ptr::eq(named(row.core).unwrap().1, row), "{}", row.core);
    }
    assert_eq!(named("made-up core").unwrap().1.levels(), 3);
    assert!(named("Zen 2").is_none() && named("").is_none());
}

#[test]
fn each_tree_can_be_evaluated_in_one_pass() {
    trees().for_each(tree::tests::check);
    assert_eq!((MOST_NODES, MOST_INPUTS, DEEPEST), (18, 11, 3));
}

#[test]
fn a_name_and_an_id_go_together_in_all_trees() {
    let metrics = || trees().flat_map(|tree| tree.nodes).map(|row| *row.metric());
    for a in metrics() {
        assert!(a.name.to_str().unwrap().starts_with("tma_"), "{a:?}");
        for b in metrics() {
            assert_eq!(a.id == b.id, a == b, "{a:?} {b:?}");
            assert_eq!(a.id == b.id, a.name == b.name, "{a:?} {b:?}");
        }
        assert_eq!(metric(a.id), Some(&a));
        assert!(a.verdict.is_empty() || a.verdict.matches('%').count() == 1, "{a:?}");
    }
    assert_eq!((metric(metrics::TD_NODE_NONE), metric(u32::MAX)), (None, None));
    assert_eq!(metrics::MEMORY_BOUND.title(), "memory bound");
    let all = metrics::LEVEL_1.iter().chain(&metrics::LEVEL_2);
    assert!(all.map(|metric| metric.id).eq(perf_metrics::TREE.nodes.iter().map(|row| row.id)));
}

#[test]
fn nodes_of_a_core_without_a_deeper_tree_are_counted_by_the_row_that_has_them_and_most_below_them() {
    let row = |core: &str, names: &[&str]| {
        let nodes: Vec<Metric> = names.iter().map(|name| metric_of_name(name).unwrap()).collect();
        row_with(named(core).unwrap().1, &nodes).map(|(place, row)| {
            assert_eq!(at(place).map(|row| row.core), Some(row.core));
            row.core
        })
    };
    assert_eq!(row("Zen 4", &["frontend_bound"]), Ok("Zen 4, frontend bound"));
    assert_eq!(row("Zen 4", &["fetch_latency"]), Ok("Zen 4, frontend bound"));
    assert_eq!(row("Zen 4", &["retiring", "memory_bound"]), Ok("Zen 4, backend bound"));
    assert_eq!(row("Skymont", &["branch_detect"]), Ok("Skymont, ifetch latency"));
    assert_eq!(
        row("Zen 4", &["fetch_latency", "memory_bound"]),
        Err("no group counts all of these nodes".into())
    );
    assert_eq!(row("Zen 4", &["fetch_latency", "l1_bound"]), Err("its groups do not tell l1 bound".into()));
}

#[test]
fn a_metric_is_found_by_its_number_and_by_its_name() {
    for metric in trees().flat_map(|tree| tree.nodes).map(|row| *row.metric()) {
        assert_eq!(metric_of_name(metric.name.to_str().unwrap()), Some(metric));
        assert_eq!(metric_of_name(metric.field()), Some(metric));
    }
    for name in ["", "tma_", "tma_tma_retiring", "Retiring", "retiring ", "backend bound"] {
        assert_eq!(metric_of_name(name), None, "{name}");
    }
}

/// Programs are built with these numbers.
#[test]
fn the_header_has_a_constant_of_each_node_down_to_level_2_and_of_no_other() {
    let header = include_str!("../../include/topdown.h");
    let constants = header.lines().filter_map(|line| line.strip_prefix("#define TD_NODE_")).skip(1);
    let written: BTreeSet<(u32, &str)> = constants
        .map(|line| {
            let [_, number, _, name, _] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            (number.parse().unwrap(), name)
        })
        .collect();
    let rows = trees().flat_map(|tree| tree.nodes).filter(|row| row.level <= 2);
    let wanted = rows.map(|row| (row.id, row.metric().name.to_str().unwrap())).collect();
    assert_eq!(written, wanted);
}

#[test]
fn a_subtree_has_perfs_name_of_its_root() {
    assert_eq!(super::subtree_of_name("frontend_bound"), Some(metrics::TD_NODE_FRONTEND_BOUND));
    assert_eq!(super::subtree_of_name("tma_ifetch_latency"), Some(metrics::TD_NODE_IFETCH_LATENCY));
    for name in ["tma_lcp", "frontend bound", "Frontend_bound", "tma_", ""] {
        assert_eq!(super::subtree_of_name(name), None, "{name}");
    }
}

/// A hybrid CPU's two kinds of core count each node by the event by which each counts it alone; what only one of them corrects counts nothing on
/// the other.
#[test]
fn both_kinds_of_core_count_the_same_nodes_by_the_events_of_each() {
    use tree::{CorrectionInputs, Formula};
    let mut compared = 0;
    for whole in rows().filter(|row| row.variant == Variant::Hybrid) {
        let e_cores = texts::E_CORES.iter().find(|e_cores| e_cores.base == whole.base).unwrap();
        assert_eq!((whole.models, whole.vendor), (e_cores.models, e_cores.vendor), "{}", whole.core);
        let (p, e) = whole.core.split_once(" and ").unwrap();
        assert_eq!((e, whole.base), (e_cores.core, whole.core));
        let counters = |row: &Model| match row.counting {
            Counting::Counters(counters) => counters,
            _ => panic!("{}", row.core),
        };
        for (both, name) in [(whole, format!("{p}, by counters")), (e_cores, e.to_string())] {
            let alone = named(&name).unwrap().1;
            let (here, there) = (counters(both), counters(alone));
            assert_eq!(
                (both.slots_per_cycle, here.general),
                (alone.slots_per_cycle, there.general),
                "{name}"
            );
            assert_eq!(here.leaders, there.leaders, "{name}");
            assert_eq!(here.tree.nodes.len(), 5, "level 1, and mispredicts: {name}");
            for node in here.tree.nodes {
                let same = &there.tree.nodes[there.tree.place(node.id).unwrap()];
                match (node.formula, same.formula) {
                    (Formula::Rest, Formula::Rest) => {}
                    (Formula::Slots(a), Formula::Slots(b)) => {
                        assert_eq!(here.events[a], there.events[b], "{name}")
                    }
                    (
                        Formula::Corrected(&CorrectionInputs { slots, less: [a], more: [] }),
                        Formula::Slots(b),
                    ) => {
                        assert_eq!(here.events[slots], there.events[b], "{name}");
                        assert!(here.events[*a].never, "{name}");
                    }
                    (
                        Formula::Corrected(&CorrectionInputs { slots, less: [a], more: [] }),
                        Formula::Corrected(&CorrectionInputs { slots: b, less: [c], .. }),
                    ) => {
                        assert_eq!(
                            (here.events[slots], here.events[*a]),
                            (there.events[b], there.events[*c])
                        );
                    }
                    other => panic!("{name}: {other:?}"),
                }
                compared += 1;
            }
            let never = here.events.iter().filter(|event| event.never).count();
            let corrects = counters(whole).events.len() - 4;
            assert_eq!(never, if std::ptr::eq(both, whole) { 0 } else { corrects }, "{name}");
        }
    }
    assert_eq!(compared, 4 * 2 * 5);
}
