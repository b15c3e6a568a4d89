//! Companion figures, published or given: each has the value that its formula has of the same counts, or a reason.

use super::*;
use crate::cpu::deep::DeepEvent;
use crate::model::deep::{
    CompanionMetric, CountPlace, GivenMetric, GivenMetrics, PlannedFigures, planned_companions,
    planned_companions_of_cpu, planned_given_of_cpu,
};
use crate::sys::cpu::Identity;

#[test]
fn each_companion_figure_is_what_its_published_formula_says_or_has_a_reason() {
    let (mut random, mut compared) = (Random::new(3), 0);
    for (name, width) in TEXTS.into_iter().chain([("srf", 6.0)]) {
        for facts in
            [FACTS, DeepFacts { smt: true, tsc_ghz: Some(3.1), ..FACTS }, DeepFacts { counters: 4, ..FACTS }]
        {
            let planned = planned_companions(name, &GivenMetrics::default(), usize::MAX, &facts);
            // (where cycles lead, they are slots)
            let cycles = ["skx", "skl", "clx", "srf"].contains(&name).then_some(0x3c);
            let timed = planned.text.timed_events().count();
            assert!(planned.text.companions.len() > 40, "{name}");
            assert!(planned.figures.len() >= planned.text.companions.len() + timed, "{name}");
            assert_eq!(timed > 10, ["gnr", "mtl-p", "lnl-p", "arl-p"].contains(&name), "{name} {timed}");
            let (told, untold) = compare_companions(name, (width, cycles), &facts, &planned, &mut random);
            assert!(untold == 0 || facts.counters == 4, "{name}: {untold}");
            compared += told;
        }
    }
    assert!(compared > 2_000, "{compared}");
    let mut compared = 0;
    for (midr, name, width, figures) in ARM_CPUS {
        for counters in [20, 8, 7, 6, 5] {
            let facts = DeepFacts { counters, tsc_ghz: None, shows_slots: false, ..FACTS };
            let (text, _, planned) = planned_companions_of_cpu(&Identity::of_midr(midr), &facts).unwrap();
            assert_eq!((text, planned.text.companions.len()), (name, figures), "{midr:#x}");
            let cpu = (width, Some(0x11));
            let (told, untold) = compare_companions(name, cpu, &facts, &planned, &mut random);
            // (level 1 takes five)
            let expected = if counters == 5 { (0, figures) } else { (figures, 0) };
            assert_eq!((told, untold), expected, "{name} {counters}");
            compared += told;
        }
    }
    assert!(compared > 800, "{compared}");
}

/// How many were as their formulas say, and how many have a reason why they are not told.
fn compare_companions(
    name: &str,
    (width, cycles): (f64, Option<u64>),
    facts: &DeepFacts,
    PlannedFigures { text, groups, figures, .. }: &PlannedFigures,
    random: &mut Random,
) -> (usize, usize) {
    let mut counts = std::collections::BTreeMap::new();
    for event in &text.events {
        counts.entry((event.config, event.config1)).or_insert_with(|| 1.0 + random.below(4_000_000) as f64);
    }
    let slots = 60e6;
    let event = |config: u64, config1: u64| match cycles {
        Some(cycles) if cycles == config => slots / width,
        _ => counts[&(config, config1)],
    };
    let worth = Worth { text, facts, slots, event: &event, own: &|_| None };
    let mut untold = 0;
    for (of_text, companion) in figures {
        if !companion.untold.is_empty() {
            untold += 1;
            continue;
        }
        let counted = companion.places().map(|(group, place)| {
            let (counters, timed) = &groups[group as usize];
            // (samples stand for a part of the events)
            let sampled = |k: usize| 1000.0 * (1 + k) as f64;
            match place {
                CountPlace::Counter(k) => counts[&(counters.events[k].config, counters.events[k].config1)],
                CountPlace::Latencies(k) => latency_of(&text.events[timed[k]].name) * sampled(k),
                CountPlace::Timed(k) => sampled(k),
            }
        });
        let seconds = 0.25;
        let value = companion.value(slots, seconds, &counted.collect::<Vec<_>>());
        // (a rate is per second)
        let per = if of_text.unit.ends_with("/s") { seconds } else { 1.0 };
        let expected = worth.of(&of_text.value) / per;
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{name} {companion:?} {value} {expected}");
    }
    (figures.len() - untold, untold)
}

const N2_R0P0: u32 = 0x410f_d490;

/// MIDR_EL1, the text, slots in a cycle, and figures of that.
const ARM_CPUS: [(u32, &str, f64, usize); 7] = [
    (N2_R0P0, "arm-neoverse-n2", 5.0, 32),
    (0x410f_d493, "arm-neoverse-n2", 5.0, 32),
    (0x410f_d8e0, "arm-neoverse-n3", 5.0, 59),
    (0x411f_d401, "arm-neoverse-v1", 8.0, 32),
    (0x410f_d4f1, "arm-neoverse-v2", 8.0, 43),
    (0x410f_d830, "arm-neoverse-v3", 10.0, 59),
    (0x410f_d840, "arm-neoverse-v3", 10.0, 59),
];

#[test]
fn a_text_of_arm64_is_of_its_cores_and_of_no_others() {
    let of_midr = |midr| planned_companions_of_cpu(&Identity::of_midr(midr), &FACTS);
    for (midr, name, ..) in ARM_CPUS {
        let (text, core, _) = of_midr(midr).unwrap();
        let wanted = format!("Neoverse {}", name.rsplit('-').next().unwrap().to_uppercase());
        assert!(text == name && core.starts_with(&wanted), "{midr:#x} {text} {core}");
        assert_eq!(core.ends_with("before r0p3"), midr == N2_R0P0, "{core}");
        // (another implementer's, and parts beside it)
        assert!(of_midr(midr ^ 0x0900_0000).is_none(), "{midr:#x}");
    }
    // Neoverse E1, V3's neighbours, hip08, AmpereOne, T410, and an x86 CPU
    for midr in [0x410f_d4a0, 0x410f_d820, 0x410f_d850, 0x481f_d010, 0xc00f_ac30, 0x4e0f_0100, 0x0008_06f8] {
        assert!(of_midr(midr).is_none(), "{midr:#x}");
    }
    // (Neoverse N1 has no level 1 beside which they could be counted: each says so)
    let (text, core, PlannedFigures { groups, figures, .. }) = of_midr(0x413f_d0c1).unwrap();
    let says = |(_, one): &(_, CompanionMetric)| {
        one.untold.starts_with("its events count stalled cycles, not slots")
    };
    assert!(text == "arm-neoverse-n1" && core == "Neoverse N1" && groups.is_empty(), "{text} {core}");
    assert!(figures.len() == 31 && figures.iter().all(says), "{:?}", figures[0]);
    let spr = Identity::of("GenuineIntel", 0x0008_06f8);
    assert_eq!(planned_companions_of_cpu(&spr, &FACTS).map(|(text, ..)| text), Some("spr"));
}

#[test]
fn figures_of_arm64_share_the_counters_that_level_1_leaves() {
    let of = |counters| {
        let facts = DeepFacts { counters, tsc_ghz: None, shows_slots: false, ..FACTS };
        planned_companions_of_cpu(&Identity::of_midr(0x410f_d4f1), &facts).unwrap().2
    };
    let place = |figures: &[(_, CompanionMetric)], name: &str| {
        let (_, figure) = figures.iter().find(|(_, one)| one.name == name).unwrap();
        figure.places().map(|(group, _)| group).collect::<Vec<u32>>()
    };
    let mut groups_before = usize::MAX;
    for counters in 6..=14 {
        let PlannedFigures { groups, figures, .. } = of(counters);
        for (group, _) in &groups {
            crate::model::tree::tests::check(group.tree);
            assert!(model::general_counters(&group.leaders[0], group.events) <= counters, "{group:?}");
            assert!(group.events.len() <= MOST_INPUTS && group.tree.depth() == 1, "{group:?}");
        }
        assert!(groups.len() <= groups_before, "{counters}");
        groups_before = groups.len();
        // cycles lead: they take no counter
        assert_eq!(place(&figures, "ipc").len(), 1);
        let mpki = place(&figures, "branch_mpki");
        assert!(mpki.len() == 2 && (mpki[0] == mpki[1]) == (counters >= 7), "{counters} {mpki:?}");
    }
    let PlannedFigures { groups, figures, .. } = of(5);
    let why = "with level 1 it takes 6 general-purpose counters, and 5 are here";
    assert!(groups.is_empty() && figures.iter().all(|(_, one)| one.untold == why), "{:?}", figures[0]);
}

/// Of Neoverse N2 before r0p3, whose own row counts cycles twice, and all others: level 1 beside figures is what it is alone.
#[test]
fn level_1_beside_figures_of_arm64_is_that_of_the_core_alone() {
    let (mut random, mut compared) = (Random::new(5), 0);
    let span = Span { level: 1, ..SPAN };
    for (midr, name, width, _) in ARM_CPUS {
        let cpu = Identity::of_midr(midr);
        let (_, own) = model::by_counters(&cpu).unwrap();
        let model::Counting::Counters(own) = own.counting else { unreachable!() };
        let facts = DeepFacts { counters: 6, shows_slots: false, ..FACTS };
        let PlannedFigures { groups, .. } = planned_companions_of_cpu(&cpu, &facts).unwrap().2;
        for (group, _) in &groups {
            assert!(
                group.events.len() == 6 && group.events.iter().all(|event| event.config != 0x11),
                "{name}"
            );
            let share = |config: u64, random: &mut Random| {
                let [least, most] = match config {
                    0x11 => return 1.0 / width,
                    0x3e => [0.25, 0.3],
                    0x3d => [0.2, 0.3],
                    0x10 | 0x8162 => [0.0, 0.008],
                    0x3a => [0.2, 0.3],
                    0x3b => [0.3, 0.4],
                    _ => [0.0, 1.0],
                };
                least + (most - least) * random.below(1000) as f64 / 1000.0
            };
            let mut counts = std::collections::BTreeMap::new();
            let all = own.events.iter().chain(group.events);
            all.for_each(|event| {
                _ = counts.entry(event.config).or_insert_with(|| share(event.config, &mut random))
            });
            let nodes_of = |counters: &model::Counters| {
                let mut counted = CountedInputs::new(model::of_core("made-up core").unwrap(), &span);
                (counted.rounding, counted.edges) = (0.0, 0.0);
                for (place, input) in counters.tree.inputs.iter().enumerate() {
                    let count = counts[&counters.events[place].config] * 60e6;
                    counted.set(place, count * f64::from(input.each()));
                }
                nodes(counters.tree, 1, &counted, &span, |nodes| nodes.collect::<Vec<Node>>())
            };
            let (alone, beside) = (nodes_of(own), nodes_of(group));
            for node in alone.iter().filter(|node| node.level == 1) {
                let other = beside.iter().find(|other| other.id == node.id).unwrap();
                assert!(node.measured == 1 && node.value > 0.01, "{name} {node:?}");
                assert!(
                    other.measured == 1 && (other.value - node.value).abs() < 1e-9,
                    "{name} {node:?} {other:?}"
                );
                assert!(
                    other.low <= node.value + 1e-9 && node.value <= other.high + 1e-9,
                    "{name} {other:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 4 * 100, "{compared}");
}

#[test]
fn what_an_arm64_cpu_does_not_count_is_not_told() {
    let lacks = |event: u64| {
        let facts = DeepFacts { shown: u64::MAX ^ 1 << event, shows_slots: false, ..FACTS };
        let (_, _, PlannedFigures { figures, .. }) =
            planned_companions_of_cpu(&Identity::of_midr(0x410f_d4f1), &facts).unwrap();
        let untold: Vec<CompanionMetric> =
            figures.into_iter().map(|(_, one)| one).filter(|one| !one.untold.is_empty()).collect();
        let why = "this CPU, or the hypervisor, says that it does not count ";
        assert!(untold.iter().all(|one| one.untold.starts_with(why)), "{untold:?}");
        untold.into_iter().map(|one| one.name).collect::<Vec<_>>()
    };
    assert_eq!(lacks(0x36), ["ll_cache_read_hit_ratio", "ll_cache_read_miss_ratio"]);
    assert_eq!(lacks(0x34), ["dtlb_mpki", "dtlb_walk_ratio"]);
    assert_eq!(lacks(0x11), [""; 0]);
    // (an event of another CPU that has the number)
    let facts = DeepFacts { shown: 0, ..FACTS };
    let PlannedFigures { figures, .. } =
        planned_companions("spr", &GivenMetrics::default(), usize::MAX, &facts);
    assert!(figures.iter().all(|(_, one)| one.untold.is_empty()));
}

#[test]
fn given_metrics_are_counted_or_have_a_reason() {
    let event = |name: &str, config, counters| DeepEvent {
        name: name.into(),
        config,
        counters,
        ..DeepEvent::default()
    };
    let metric = |name: &str, formula: &str| {
        let value = Ok(Expression::read(formula).unwrap());
        GivenMetric { name: name.into(), unit: "per event".into(), value }
    };
    let one_of_four: Vec<DeepEvent> = (0..4).map(|k| event(&format!("FIRST{k}"), 0x1234 + k, 1)).collect();
    // (the second is in the place of the text's own)
    let mut events = vec![event("OWN", 0x77, 0), event("INST_RETIRED.ANY", 0x88, 0)];
    events.extend(one_of_four);
    let metrics = vec![
        metric("rate", "64 * OWN / duration_time"),
        metric("replaced", "OWN / INST_RETIRED.ANY"),
        metric("of_figure", "OWN / info_thread_clks"),
        metric("by_nothing", "max( 3 , 1 / ( OWN / 0 ) )"),
        metric("of_nothing", "max( OWN / 0 , 3 )"),
        metric("of_node", "OWN * memory_bound"),
        metric("of_figures_per_second", "info_memory_l2_cache_fill_bw"),
        metric("spread", "FIRST0 + FIRST1 + FIRST2 + FIRST3"),
        metric("of_none", "NO.SUCH / 2"),
        GivenMetric { value: Err("for a reason".into()), ..metric("untold", "1") },
        metric("of_slots", "TOPDOWN.SLOTS / OWN"),
    ];
    let all = metrics.len();
    let of_files = GivenMetrics { events, metrics };
    let PlannedFigures { groups, figures, given, .. } =
        planned_companions("spr", &of_files, usize::MAX, &FACTS);
    assert_eq!(given.len(), all);
    let find = |name: &str| given.iter().find(|one| one.name == name).unwrap();
    let count = |config: u64| match config {
        0x77 => 10.0,
        0x88 => 5.0,
        0x3c => 40.0,
        _ => config as f64,
    };
    let value = |one: &CompanionMetric| {
        let counted = one.places().map(|(group, place)| match place {
            CountPlace::Counter(place) => count(groups[group as usize].0.events[place].config),
            other => panic!("{other:?}"),
        });
        let counts: Vec<f64> = counted.collect();
        one.value(1000.0, 4.0, &counts)
    };
    let told = |name: &str| {
        assert_eq!(find(name).untold, "");
        value(find(name))
    };
    assert_eq!((told("rate"), told("replaced"), told("of_figure")), (160.0, 2.0, 0.25));
    assert!(told("by_nothing").is_nan() && told("of_nothing") == 3.0, "as perf has them");
    assert_eq!(told("of_slots"), 100.0);
    // (one counter counts all four: each has a group)
    assert_eq!(told("spread"), f64::from(4 * 0x1234 + 6));
    let apart: std::collections::BTreeSet<u32> = find("spread").places().map(|(group, _)| group).collect();
    assert_eq!(apart.len(), 4);
    let (_, of_text) =
        figures.iter().find(|(of_text, _)| of_text.name == "info_memory_l2_cache_fill_bw").unwrap();
    assert_eq!(told("of_figures_per_second"), value(of_text));
    let most = groups.len() - 1;
    let fewer = planned_companions("spr", &of_files, most, &FACTS);
    let all = fewer.figures.iter().map(|(_, one)| one).chain(&fewer.given);
    let untold = all.filter(|one| one.untold.contains("no more groups can take turns")).count();
    assert!(fewer.groups.len() <= most && untold > 0, "{} {untold}", fewer.groups.len());
    for (name, why) in [
        ("of_node", "it takes nodes of the tree"),
        ("of_none", "NO.SUCH is not counted"),
        ("untold", "for a reason"),
    ] {
        assert!(find(name).untold.contains(why) && find(name).places().count() == 0, "{:?}", find(name));
    }
}

/// Of published formulas with retire latencies: given metrics that take them say so, given events are not sampled in place of the text's, and
/// groups beside which events are sampled are groups like all others.
#[test]
fn given_metrics_have_no_retire_latencies() {
    let timed = "MEM_LOAD_RETIRED.L2_HIT";
    let event = DeepEvent { name: timed.into(), config: 0x77, ..DeepEvent::default() };
    let metric = |name: &str, formula: &str| {
        let value = Ok(Expression::read(formula).unwrap());
        GivenMetric { name: name.into(), unit: "cycles".into(), value }
    };
    let latency = format!("{timed}{RETIRE_LATENCY}");
    let metrics = vec![metric("latency", &latency), metric("count", &format!("{timed} / TOPDOWN.SLOTS"))];
    let of_files = GivenMetrics { events: vec![event], metrics };
    let of_most = |most: usize| planned_companions("gnr", &of_files, most, &FACTS);
    let PlannedFigures { text, groups, figures, given } = of_most(usize::MAX);
    assert_eq!(given[0].untold, format!("the retire latency of {timed} is not measured"));
    assert!(given[1].untold.is_empty(), "{given:?}");
    let [(_, sampled)] =
        &figures.iter().filter(|(one, _)| one.name == format!("{timed}:R")).collect::<Vec<_>>()[..]
    else {
        panic!("{timed}:R is not there once")
    };
    let Some((group, CountPlace::Latencies(place))) = sampled.places().next() else { panic!("{sampled:?}") };
    let of_place = &text.events[groups[group as usize].1[place]];
    assert!(of_place.name == timed && of_place.config != 0x77, "{of_place:?}");

    let counted = groups.iter().filter(|(_, timed)| timed.is_empty()).count();
    assert!(counted < groups.len(), "{counted}");
    for most in [counted, groups.len() - 1] {
        let fewer = of_most(most);
        assert!(fewer.groups.len() <= most, "{} {most}", fewer.groups.len());
        let why = "no more groups can take turns: name fewer figures or levels";
        assert!(fewer.figures.iter().any(|(_, one)| one.untold == why), "{most}");
    }
}

#[test]
fn given_metrics_are_counted_where_nothing_is_published() {
    let event = |name: &str, config| DeepEvent { name: name.into(), config, ..DeepEvent::default() };
    let value = Ok(Expression::read("OWN / CYCLES").unwrap());
    let metric = GivenMetric { name: "own".into(), unit: "per cycle".into(), value };
    let events = |cycles| vec![event("OWN", 0x77), event("CYCLES", cycles)];
    let amd = Identity { vendor: "AuthenticAMD".into(), family: 0x19, model: 0x11, ..Identity::default() };
    for (cpu, cycles) in [(amd, 0x76), (Identity::of_midr(0xc00f_ac30), 0x11)] {
        let given = GivenMetrics { events: events(cycles), metrics: vec![metric.clone()] };
        let planned = planned_given_of_cpu(&cpu, &given, &DeepFacts { shows_slots: false, ..FACTS }).unwrap();
        assert!(planned.len() == 1 && planned[0].untold.is_empty(), "{cpu:?} {planned:?}");
        // (cycles lead)
        assert_eq!(planned[0].places().count(), 1, "{cpu:?} {planned:?}");
    }
    // (level 1 of Neoverse N1 is not counted)
    let given = GivenMetrics { events: events(0x11), metrics: vec![metric] };
    let planned = planned_given_of_cpu(&Identity::of_midr(0x413f_d0c1), &given, &FACTS).unwrap();
    assert!(planned.len() == 1 && !planned[0].untold.is_empty(), "{planned:?}");
}
