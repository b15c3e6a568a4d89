//! Two reports, before and after, with changes that are worked out by hand.

mod made;

use made::{Scratch, TableContent, ran};
use std::fs;
use std::path::PathBuf;
use topdown_report::{Comparison, ConditionState, Format, compare, merge, render};

/// 1,000 slots; "=a, b" has 600 of them, within 12 of its slots, and "c" 200.
fn before() -> TableContent {
    let mut made = TableContent::new(10, "before");
    let root = made.thread("main", ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    made.region("=a, b", root, ran(600, [70, 5, 5, 20], [10, 5, 5, 10], 12).sum());
    made.region("c", root, ran(200, [10, 5, 5, 80], [5, 5, 5, 70], 4).sum());
    made
}

/// "=a, b" has 400, of which it waits for memory 30 % instead of 10, within 8 of them; there is no "c", but a "d".
fn after() -> TableContent {
    let mut made = TableContent::new(11, "after");
    let root = made.thread("main", ran(800, [50, 10, 10, 30], [10, 5, 5, 20], 8).sum());
    made.region("=a, b", root, ran(400, [47, 6, 5, 42], [10, 5, 5, 30], 8).sum());
    made.region("d", root, ran(100, [10, 5, 5, 80], [5, 5, 5, 70], 4).sum());
    made
}

/// Files of a process in all formats that can be compared.
fn files(scratch: &Scratch, made: &TableContent) -> Vec<PathBuf> {
    let table = made.write(&scratch.0);
    let report = merge(std::slice::from_ref(&table), None).unwrap();
    let mut files: Vec<PathBuf> = [("csv", Format::Csv), ("json", Format::Json)]
        .map(|(ending, format)| {
            let file = table.with_extension(ending);
            fs::write(&file, render(&report, format)).unwrap();
            file
        })
        .into();
    files.push(table);
    files
}

fn near(found: Option<f64>, expected: f64) {
    assert!((found.unwrap() - expected).abs() < 1e-6, "{found:?}, not {expected}");
}

fn check(comparison: &Comparison) {
    let names: Vec<&str> = comparison.regions.iter().map(|region| region.region.as_str()).collect();
    assert_eq!(names, ["", "=a, b", "c", "d"]);
    let figure = |region: usize, name: &str| {
        let figures = &comparison.regions[region].figures;
        figures.iter().find(|(figure, _)| *figure == name).unwrap().1
    };
    let slots = figure(1, "slots");
    assert_eq!((slots.before, slots.after, slots.significant), (Some(600.0), Some(400.0), None));
    let retiring = figure(1, "retiring");
    near(retiring.difference, -0.23);
    near(retiring.bound, 0.04);
    assert_eq!(retiring.significant, Some(true));
    let bad = figure(1, "bad_speculation"); // one point more, within four
    near(bad.difference, 0.01);
    assert_eq!(bad.significant, Some(false));
    let memory = figure(1, "memory_bound"); // the bound of level 2 is twice that of level 1
    near(memory.difference, 0.2);
    near(memory.bound, 0.08);
    assert_eq!(memory.significant, Some(true));
    assert_eq!(figure(0, "retiring").significant, Some(false));
    let gone = figure(2, "memory_bound");
    near(gone.before, 0.7);
    assert_eq!((gone.after, gone.difference, gone.significant), (None, None, None));
}

#[test]
fn what_has_changed_is_told_from_what_the_bounds_leave_open() {
    let scratch = Scratch::new("compare");
    let (before, after) = (files(&scratch, &before()), files(&scratch, &after()));
    for one in &before {
        for two in &after {
            check(&compare(one, two).unwrap());
        }
    }
    let comparison = compare(&before[0], &after[1]).unwrap();
    let text = comparison.render(Format::Text).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "slots 600 400 -33.3 %",
        "retiring 70.0 % 47.0 % -23.0 points, within 4.0",
        "memory bound 10.0 % 30.0 % +20.0 points, within 8.0",
        "c: only before",
        "d: only after",
        "12 shares not known to have changed",
    ] {
        assert!(words.contains(said), "{said} is not in:\n{text}");
    }
    assert!(!text.contains("bad speculation"), "{text}");
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 100), "{text}");
    let csv = comparison.render(Format::Csv).unwrap();
    let line = csv.lines().find(|line| line.contains("b\",memory_bound")).unwrap();
    assert!(line.starts_with("\"'=a, b\",memory_bound,0.1,0.3,") && line.ends_with(",yes"), "{line}");
    let json: serde_json::Value = serde_json::from_str(&comparison.render(Format::Json).unwrap()).unwrap();
    assert_eq!(json["regions"][1]["figures"]["retiring"]["significant"], true);
    assert_eq!(comparison.render(Format::Html), None);
}

/// Reports whose groups took turns have nodes of the tree with intervals of their own, and level 2 among them.
#[test]
fn nodes_of_the_tree_have_changed_if_their_intervals_are_apart() {
    let scratch = Scratch::new("nodes");
    let row = "region,pid,tid,executions,slots,time_ns,retiring,bad_speculation,frontend_bound,backend_bound,error_1,\
               tma_memory_bound,tma_memory_bound_low,tma_memory_bound_high,tma_l1_bound,tma_l1_bound_low,tma_l1_bound_high,\
               tma_of_a_later_version,tma_of_a_later_version_low,tma_of_a_later_version_high";
    let write = |name: &str, memory: &str, l1: &str| {
        let file = scratch.0.join(name);
        fs::write(&file, format!("{row}\n,,,1,1000,3,0.4,0.1,0.2,0.3,0.01,{memory},{l1},0.1,0.1,0.1\n"))
            .unwrap();
        file
    };
    let before = write("a.csv", "0.1,0.08,0.12", "0.05,0.04,0.2");
    let after = write("b.csv", "0.2,0.13,0.22", "0.3,0.15,0.31");
    let comparison = compare(&before, &after).unwrap();
    let figures = &comparison.regions[0].figures;
    let figure = |name: &str| figures.iter().find(|(figure, _)| *figure == name).unwrap().1;
    let memory = figure("memory_bound");
    near(memory.difference, 0.1);
    near(memory.bound, 0.09);
    assert_eq!(memory.significant, Some(true));
    let l1 = figure("l1_bound");
    near(l1.difference, 0.25);
    near(l1.bound, 0.3);
    assert_eq!(l1.significant, Some(false));
    assert_eq!(figures.iter().filter(|(name, _)| *name == "memory_bound").count(), 1);
    assert!(figures.iter().all(|(name, _)| !name.contains("later")));
    let text = comparison.render(Format::Text).unwrap();
    assert!(text.contains("memory bound") && !text.contains("l1 bound"), "{text}");
    let back = compare(&after, &before).unwrap();
    let back = &back.regions[0].figures.iter().find(|(name, _)| *name == "memory_bound").unwrap().1;
    near(back.difference, -0.1);
    near(back.bound, 0.09);
}

#[test]
fn what_is_no_report_is_told() {
    let scratch = Scratch::new("no-report");
    let files = files(&scratch, &before());
    for text in ["", "{}", "{\"schema\": 2}", "region,pid,tid\n", "rubbish", "{", "region,pid\n\"a,b"] {
        let other = scratch.0.join("other");
        fs::write(&other, text).unwrap();
        let error = compare(&files[0], &other).unwrap_err().to_string();
        assert!(error.contains("/other: "), "{text}: {error}");
        assert!(compare(&other, &files[1]).is_err());
    }
    // numbers that are none
    let whole = "region,pid,executions,slots,time_ns,retiring,error_1\n,,1,2,3,";
    for (share, is) in [("0.5,0.1", true), ("nan,0.1", false), ("0.5,inf", false)] {
        let other = scratch.0.join("other");
        fs::write(&other, format!("{whole}{share}\n")).unwrap();
        assert_eq!(compare(&files[0], &other).is_ok(), is, "{share}");
    }
    // of another schema
    let json = fs::read_to_string(&files[1]).unwrap().replacen("\"schema\": 1", "\"schema\": 2", 1);
    fs::write(&files[1], json).unwrap();
    assert!(compare(&files[0], &files[1]).is_err());
}

/// Results of Google Benchmark as topdown_benchmark.h has them: iterations, slots of one, retiring and its bound.
fn benchmarks(runs: &[(&str, u64, f64, f64, f64)]) -> String {
    let run = |(name, iterations, slots, retiring, error): &(&str, u64, f64, f64, f64)| {
        serde_json::json!({
            "name": name, "run_name": name, "run_type": "iteration", "iterations": iterations, "real_time": 2.0, "time_unit": "us",
            "slots": slots, "retiring": retiring, "bad_speculation": 0.1, "frontend_bound": 0.1, "backend_bound": 0.8 - retiring,
            "error": error,
        })
    };
    let mut all: Vec<_> = runs.iter().map(run).collect();
    // (as with repetitions: no runs, and of unlike meaning)
    all.push(serde_json::json!({
        "name": "sort_stddev", "run_name": "sort", "run_type": "aggregate", "aggregate_name": "stddev", "iterations": 2,
        "real_time": 0.1, "time_unit": "us", "slots": 3.0, "retiring": 0.001, "error": 0.0
    }));
    all.push(serde_json::json!({
        "name": "times", "run_name": "times", "run_type": "iteration", "iterations": 7, "real_time": 2.0, "time_unit": "ms"
    }));
    serde_json::json!({ "context": { "num_cpus": 2 }, "benchmarks": all }).to_string()
}

#[test]
fn results_of_benchmarks_are_compared_one_by_one_by_the_slots_of_their_repetitions() {
    let scratch = Scratch::new("compare-benchmarks");
    let (before, after) = (scratch.0.join("before.json"), scratch.0.join("after.json"));
    let old =
        [("sort", 10, 1000.0, 0.20, 0.01), ("sort", 30, 1000.0, 0.24, 0.02), ("gone", 1, 10.0, 0.5, 0.0)];
    std::fs::write(&before, benchmarks(&old)).unwrap();
    std::fs::write(
        &after,
        benchmarks(&[("sort", 20, 1100.0, 0.31, 0.01), ("sum/threads:2", 3, 10.0, 0.5, 0.01)]),
    )
    .unwrap();
    let comparison = compare(&before, &after).unwrap();
    let names: Vec<&str> = comparison.regions.iter().map(|one| &*one.region).collect();
    assert_eq!(names, ["sort", "gone", "sum/threads:2", "times"]);
    let figure = |k: usize, name: &str| {
        comparison.regions[k].figures.iter().find(|(other, _)| *other == name).unwrap().1
    };
    let retiring = figure(0, "retiring");
    // (0.2 x 10,000 + 0.24 x 30,000) / 40,000, and so the bound
    assert!((retiring.before.unwrap() - 0.23).abs() < 1e-12 && retiring.after == Some(0.31));
    assert!((retiring.bound.unwrap() - 0.0275).abs() < 1e-12 && retiring.significant == Some(true));
    assert_eq!(
        (figure(0, "slots").before, figure(0, "executions").before),
        (Some(1_000_000.0), Some(1000.0))
    );
    assert_eq!(figure(0, "time_ns").after, Some(2_000_000.0));
    assert_eq!((figure(3, "wall_ns").before, figure(3, "slots").before), (Some(2_000_000_000.0), None));
    assert_eq!((figure(1, "retiring").difference, figure(2, "retiring").difference), (None, None));
    // a condition without a name is one of each benchmark that both have
    let state = |text: &str| comparison.state_of(&text.parse().unwrap());
    assert!(matches!(state("retiring>5"), ConditionState::Holds(what) if what.contains("retiring of sort")));
    assert!(matches!(state("sort:retiring>5"), ConditionState::Holds(_)));
    assert!(matches!(state("sort:retiring>5.3"), ConditionState::DoesNot));
    assert!(matches!(state("retiring>5.3"), ConditionState::DoesNot));
    assert!(
        matches!(state("memory_bound>1"), ConditionState::Unknown(why) if why.contains("no benchmark of both"))
    );
    assert!(matches!(state("gone:retiring>5"), ConditionState::Unknown(_)));
}

#[test]
fn what_google_benchmark_would_not_write_is_refused() {
    let scratch = Scratch::new("compare-no-benchmarks");
    let file = scratch.0.join("file.json");
    for text in [
        r#"{"benchmarks": []}"#,
        r#"{"context": {}, "benchmarks": [{"name": "a", "iterations": 1, "real_time": 1, "time_unit": "fortnights"}]}"#,
        r#"{"context": {}, "benchmarks": [{"name": "a", "real_time": 1, "time_unit": "ns"}]}"#,
    ] {
        std::fs::write(&file, text).unwrap();
        let error = compare(&file, &file).unwrap_err().to_string();
        assert!(error.contains("file.json: no report") && error.contains("Google Benchmark"), "{error}");
    }
}
