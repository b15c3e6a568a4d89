//! Samples of an event: where a condition holds, or what locates a node.

use super::*;

/// The profile of the other tests, of stretches in which a condition held.
pub(super) fn conditional() -> Profile {
    let mut profile = profile();
    profile.held = Some(held());
    for figures in profile.functions.iter_mut().flat_map(|f| [&mut f.own, &mut f.inclusive]) {
        figures.shares = Err(NoShares::Conditional);
    }
    profile.by_thread.iter_mut().for_each(|thread| thread.figures.shares = Err(NoShares::Conditional));
    let core = &mut profile.cores[0];
    (core.name, core.nodes, core.all.shares) = ("cpu_atom", Vec::new(), Err(NoShares::Conditional));
    profile
}

pub(super) fn held() -> crate::held::EventShare {
    use crate::event_sampling::SamplesOf;
    crate::held::EventShare {
        of: SamplesOf::Condition { condition: "ipc < 0.5".into() },
        is_counted: true,
        event: "cycles".into(),
        period: 2_000_000,
        samples: 2000,
        left_out: 12,
        all: 10_000_000_000,
        part: Some(ShareInterval { value: 0.4, low: 0.4, high: 0.41 }),
        counted: 0.9,
        pmus: vec!["cpu_atom"],
        without: vec!["cpu_core"],
    }
}

#[test]
fn a_condition_is_said_in_all_views() {
    let written = |view: View| String::from_utf8(view.write(&conditional(), &HEADING)).unwrap();
    let text = written(View::Text);
    for said in [
        "topdown: ./a.out where ipc < 0.5 (4.0 s, 1 thread, 2,000 samples)\n",
        " 75.0 ± 2.0          50   f(\"x\", int) (a.out)\n",
        "ipc < 0.5 held in 2,000 stretches of 2,000,000 cycles each: 40.0 to 41.0 % of all cycles that cpu_atom executed in user mode.\n",
        "One that runs for less than 2,000,000 cycles shares its stretches with what runs beside it.\n",
        "How slots divide cannot be told",
        "12 samples left out: the thread was descheduled",
        "The counters were others' for 10 % of the time",
        "What ran on cpu_core is not in this.\n",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!(!text.contains("wasted") && !text.contains("burst"), "{text}");
    let firefox: serde_json::Value = serde_json::from_str(&written(View::Firefox)).unwrap();
    let all = &firefox["threads"][2];
    assert_eq!((&all["name"], &all["samples"]["weightType"]), (&"cycles".into(), &"samples".into()));
    assert_eq!(firefox["threads"].as_array().unwrap().len(), 3, "all of it: no slots are unknown");
    let csv = written(View::Csv);
    assert!(csv.starts_with("core,function,module,scope,events,part,part_low,part_high,windows\n"), "{csv}");
    assert!(csv.contains("\"cpu_atom\",\"no;name\",\"\",own,1000000000,0.250000,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&written(View::Json)).unwrap();
    assert_eq!(
        (&json["where"]["condition"], &json["where"]["period"]),
        (&"ipc < 0.5".into(), &2_000_000.into())
    );
    assert_eq!(json["functions"][0]["own"]["events"], 3_000_000_000_u64);
    assert!(
        json["functions"][0]["own"]["time_ns"].is_null()
            && json["functions"][0]["lines"][0]["time"].is_null()
    );
    assert!(written(View::Folded).contains("main;no:name 1000000000\n"));
    let html = written(View::Html);
    assert!(
        html.contains("Which functions run where ipc &lt; 0.5") && !html.contains("Wasted slots"),
        "{html}"
    );
    assert!(written(View::Svg).contains("cycles in stretches where ipc &lt; 0.5"));
    let pprof = View::Pprof.write(&conditional(), &HEADING);
    let has = |text: &str| pprof.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("cycles") && has("count") && !has("nanoseconds") && !has("unknown"));
}

/// The same, of samples that locate a node.
fn located() -> Profile {
    let mut profile = conditional();
    profile.held = profile.held.map(|held| crate::held::EventShare {
        of: crate::event_sampling::SamplesOf::Node {
            node: "l3_bound".into(),
            precise: true,
            above: None,
            other_events: vec!["OTHER".into()],
        },
        event: "L3_HIT".into(),
        left_out: 0,
        ..held
    });
    profile
}

#[test]
fn what_locates_a_node_is_said_in_all_views() {
    let written = |view: View| String::from_utf8(view.write(&located(), &HEADING)).unwrap();
    let text = written(View::Text);
    for said in [
        " to locate l3_bound (",
        "2,000 samples of L3_HIT, one in 2,000,000, of ",
        "The CPU tells the instruction itself (PEBS).",
        "OTHER locates it, too (--locate NODE=EVENT).",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    for view in [View::Text, View::Html, View::Svg, View::Json, View::Firefox, View::Csv, View::Folded] {
        let text = written(view);
        let others = ["stretch", "condition", "slots went", "wasted", "-F", "\\u{a}"];
        assert!(others.iter().all(|other| !text.contains(other)), "{text}");
    }
    assert!(written(View::Html).contains("functions that have most of the events"));
    let json: serde_json::Value = serde_json::from_str(&written(View::Json)).unwrap();
    assert_eq!((&json["locate"]["node"], &json["locate"]["precise"]), (&"l3_bound".into(), &true.into()));
    assert!(!written(View::Lines).contains("latency") && json["cores"][0]["all"]["retire_latency"].is_null());
}

#[test]
fn retire_latencies_have_a_column() {
    let mut profile = located();
    let mean = |value, high| Some(crate::MeanLatency { value, low: value - 1.25, high });
    profile.cores[0].all.latency = mean(20.0, Some(21.0));
    profile.functions[0].own.latency = mean(57.25, None);
    profile.functions[0].lines[0].latency = mean(5.75, Some(6.25));
    let text = String::from_utf8(View::Lines.write(&profile, &HEADING)).unwrap();
    let line = |with: &str| text.lines().find(|line| line.contains(with)).unwrap_or_default();
    assert!(line("(all)").contains("20.0 (18.8 to 21.0)"), "{text}");
    assert!(line("57.2 (from 56.0)").ends_with(" (a.out)"), "{text}");
    assert!(line("5.8 (4.5 to 6.2)").contains("a.c:"), "{text}");
    let end = |with: &str| line(with).split_once(with).unwrap().0.chars().count() + with.len();
    let column = end("latency, cycles");
    assert!([end("57.2 (from 56.0)"), end("5.8 (4.5 to 6.2)")] == [column; 2], "{text}");
    let json: serde_json::Value = serde_json::from_slice(&View::Json.write(&profile, &HEADING)).unwrap();
    assert_eq!(json["functions"][0]["own"]["retire_latency"]["value"], 57.25);
    assert!(json["functions"][0]["own"]["retire_latency"]["high"].is_null());
    assert_eq!(json["functions"][0]["lines"][0]["retire_latency"]["high"], 6.25);
}

#[test]
fn events_without_samples_are_said() {
    let mut profile = located();
    let held = profile.held.as_mut().unwrap();
    (held.samples, held.period, held.all) = (100, 1000, 1_000_000);
    held.part = Some(topdown_report::ShareInterval { value: 0.1, low: 0.1, high: 0.15 });
    let remarks = crate::views::remarks::of_all(&profile).join("\n");
    assert!(remarks.contains("Samples stand for 10 % of these events: the kernel throttled"), "{remarks}");
    let held = profile.held.as_mut().unwrap();
    held.part = Some(topdown_report::ShareInterval { value: 0.1, low: 0.1, high: 1.0 });
    let remarks = crate::views::remarks::of_all(&profile).join("\n");
    assert!(!remarks.contains("Samples stand for") && !remarks.contains("With --period"), "{remarks}");
    profile.held.as_mut().unwrap().is_counted = false;
    let remarks = crate::views::remarks::of_all(&profile).join("\n");
    assert!(remarks.contains("How many of these events there were is not known"), "{remarks}");
}
