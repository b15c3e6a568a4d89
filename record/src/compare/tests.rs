use super::*;
use crate::symbols::tests::Scratch;
use crate::views::View;
use crate::views::tests::{HEADING, profile};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use topdown_report::Format;

fn file(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.0.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn read(scratch: &Scratch, name: &str, document: &Value) -> RecordedFile {
    RecordedFile::read(&file(scratch, name, &document.to_string())).unwrap().unwrap()
}

fn part(value: f64, half: f64) -> Value {
    json!({ "value": value, "low": value - half, "high": (value + half).min(1.0) })
}

/// Of so many milliseconds of 1,000; retiring and memory bound, each ± `half`.
fn figures(ms: u64, shares: Option<[f64; 2]>, half: f64) -> Value {
    let mut figures = json!({ "time_ns": ms * 1_000_000, "time": part(ms as f64 / 1000.0, 0.05), "shares": {}, "bursts": 9 });
    match shares {
        Some([retiring, memory]) => {
            figures["shares"] =
                json!({ "tma_memory_bound": part(memory, half), "tma_retiring": part(retiring, half) });
        }
        None => figures["cannot_be_told"] = json!("too few bursts have a window in the function: 3"),
    }
    figures
}

fn function(core: &str, name: &str, figures: &Value) -> Value {
    json!({ "name": name, "module": "a.out", "path": "/bin/a.out", "core": core, "own": figures, "inclusive": figures, "lines": [] })
}

fn recording(functions: &[Value]) -> Value {
    let core = |name: &str| json!({ "name": name, "all": figures(1000, Some([0.5, 0.2]), 0.01) });
    json!({ "format": "topdown-record-1", "command": "./a.out", "cores": [core("P"), core("E")], "functions": functions })
}

/// f has changed in one of two shares, on P alone; g cannot be told after; h is new.
fn comparison(scratch: &Scratch) -> RecordingComparison {
    let before = recording(&[
        function("P", "f", &figures(500, Some([0.5, 0.2]), 0.04)),
        function("E", "f", &figures(100, Some([0.5, 0.2]), 0.04)),
        function("P", "g", &figures(200, Some([0.1, 0.1]), 0.01)),
    ]);
    let after = recording(&[
        function("P", "f", &figures(650, Some([0.42, 0.30]), 0.05)),
        function("E", "f", &figures(100, Some([0.5, 0.2]), 0.04)),
        function("P", "g", &figures(200, None, 0.0)),
        function("P", "h", &figures(50, Some([0.1, 0.1]), 0.01)),
    ]);
    RecordingComparison::new(&read(scratch, "before.json", &before), &read(scratch, "after.json", &after))
}

fn share<'c>(comparison: &'c RecordingComparison, core: &str, name: &str, share: &str) -> &'c PartChange {
    let is = |function: &&ComparedFunction| function.core == core && function.name == name;
    let function = comparison.functions.iter().find(is).unwrap();
    &function.own.shares.iter().find(|(name, _)| name == share).unwrap().1
}

#[test]
fn a_difference_outside_of_both_intervals_together_is_significant() {
    let comparison = comparison(&Scratch::new("significant"));
    let memory = share(&comparison, "P", "f", "tma_memory_bound");
    let difference = memory.difference.unwrap();
    // (0.30 ± 0.05 less 0.20 ± 0.04)
    assert!((difference.value - 0.10).abs() < 1e-9, "{difference:?}");
    assert!((difference.low - 0.01).abs() < 1e-9 && (difference.high - 0.19).abs() < 1e-9, "{difference:?}");
    assert_eq!(memory.significant, Some(true));
    // (0.08 apart, and the intervals are 0.09 together)
    assert_eq!(share(&comparison, "P", "f", "tma_retiring").significant, Some(false));
    assert_eq!(share(&comparison, "E", "f", "tma_memory_bound").significant, Some(false));
    let f =
        comparison.functions.iter().find(|function| function.name == "f" && function.core == "P").unwrap();
    assert_eq!(f.own.time.significant, Some(true));
    assert_eq!(f.own.time_ns.difference, Some(150_000_000));
    let names: Vec<&str> = f.own.shares.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["tma_retiring", "tma_memory_bound"]); // (level 1 first)
}

#[test]
fn a_core_is_the_same_whatever_its_metrics_were_counted_by() {
    let scratch = Scratch::new("ways");
    let of = |name: &str, cores: &[&str]| {
        let mut document = recording(&[function(cores[0], "f", &figures(500, Some([0.5, 0.2]), 0.04))]);
        let core = |name: &&str| json!({ "name": name, "all": figures(1000, Some([0.5, 0.2]), 0.01) });
        document["cores"] = cores.iter().map(core).collect();
        read(&scratch, name, &document)
    };
    let cores_of = |before: &[&str], after: &[&str]| {
        let both = RecordingComparison::new(&of("before.json", before), &of("after.json", after));
        both.cores
            .iter()
            .map(|core| (core.name.clone(), core.all.time_ns.difference.is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        cores_of(&["Redwood Cove, by counters"], &["Redwood Cove, registers alone"]),
        [("Redwood Cove".to_string(), true)]
    );
    assert_eq!(
        cores_of(&["Redwood Cove, fewer counters"], &["Redwood Cove"]),
        [("Redwood Cove".to_string(), true)]
    );
    // (another definition)
    let apart = cores_of(&["Redwood Cove, bare counters"], &["Redwood Cove"]);
    assert!(apart.len() == 2 && apart.iter().all(|(_, in_both)| !in_both), "{apart:?}");
    let both_ways = ["Redwood Cove, by counters", "Redwood Cove, registers alone"];
    assert_eq!(cores_of(&both_ways, &both_ways), both_ways.map(|name| (name.to_string(), true)));
}

#[test]
fn what_cannot_be_told_has_no_difference() {
    let comparison = comparison(&Scratch::new("untold"));
    let change = share(&comparison, "P", "g", "tma_retiring");
    assert!(change.before.is_some() && change.after.is_none() && change.difference.is_none());
    assert_eq!(change.significant, None);
    let g = comparison.functions.iter().find(|function| function.name == "g").unwrap();
    assert!(g.own.cannot_be_told[0].is_none());
    assert!(g.own.cannot_be_told[1].as_deref().unwrap().ends_with("function: 3"), "{g:?}");
    let h = comparison.functions.iter().find(|function| function.name == "h").unwrap();
    assert_eq!((h.own.time_ns.before, h.own.time_ns.difference), (None, None));
    assert_eq!(h.own.cannot_be_told, [None, None]);
}

#[test]
fn the_text_has_what_is_known_to_have_changed() {
    let text = comparison(&Scratch::new("text")).render(Format::Text).unwrap();
    let of =
        |head: &str| text.split("\n\n").find(|part| part.trim_start().starts_with(head)).unwrap().to_string();
    let f = of("f (a.out)");
    let row = |name: &str| {
        let line = f.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("time"), "time 50.0 % 65.0 % +15.0 points (+5.0 to +25.0)");
    assert_eq!(row("CPU time"), "CPU time 500 ms 650 ms +30.0 %");
    assert_eq!(row("memory bound"), "memory bound 20.0 % 30.0 % +10.0 points (+1.0 to +19.0)");
    assert_eq!(row("1 share"), "1 share not known to have changed: the intervals overlap");
    assert!(!f.contains("retiring"), "{f}");
    assert!(of("g (a.out)").contains("  shares cannot be told after: too few bursts"), "{text}");
    assert_eq!(of("h (a.out)").trim(), "h (a.out): seen only after: 5.0 ± 5.0 % of the time");
    let of_e = text.split("\nE: all\n").nth(1).unwrap();
    assert!(
        of_e.contains("f (a.out)") && of_e.contains("(-10.0 to +10.0), not known to have changed"),
        "{text}"
    );
    assert!(!text.contains("before: "), "{text}"); // (one command)
}

#[test]
fn csv_and_json_have_all() {
    let comparison = comparison(&Scratch::new("formats"));
    let csv = comparison.render(Format::Csv).unwrap();
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
    assert!(csv.contains(
        "\n\"P\",\"f\",\"a.out\",\"own\",\"tma_memory_bound\",0.200000,0.160000,0.240000,0.300000,0.250000,0.350000,0.100000,0.010000,0.190000,yes\n"
    ), "{csv}");
    assert!(csv.contains("\n\"P\",\"h\",\"a.out\",\"own\",\"time_ns\",,,,50000000,,,,,,\n"), "{csv}");
    let json: Value = serde_json::from_str(&comparison.render(Format::Json).unwrap()).unwrap();
    assert_eq!(json["functions"][0]["name"], "f");
    assert_eq!(json["functions"][0]["own"]["shares"]["tma_memory_bound"]["significant"], true);
    assert_eq!(json["functions"][0]["inclusive"]["time_ns"]["difference"], 150_000_000);
    assert_eq!(json["cores"][1]["name"], "E");
    assert_eq!(comparison.render(Format::Html), None);
}

/// Two modules of one name, each with a function of one name.
#[test]
fn functions_of_two_modules_of_one_name_are_told_apart_by_path() {
    let scratch = Scratch::new("modules");
    let at = |path: &str, ms: u64| {
        let mut function = function("P", "f", &figures(ms, None, 0.0));
        function["path"] = json!(path);
        function
    };
    let before = read(&scratch, "before.json", &recording(&[at("/a/x.so", 500), at("/b/x.so", 100)]));
    let after = read(&scratch, "after.json", &recording(&[at("/b/x.so", 100), at("/a/x.so", 500)]));
    let comparison = RecordingComparison::new(&before, &after);
    let modules: Vec<_> =
        comparison.functions.iter().map(|f| (&*f.module, f.own.time_ns.difference)).collect();
    assert_eq!(modules, [("/a/x.so", Some(0)), ("/b/x.so", Some(0))]);
}

#[test]
fn a_hostile_file_is_an_error_that_names_it() {
    let scratch = Scratch::new("hostile");
    let whole = recording(&[function("P", "f", &figures(500, Some([0.5, 0.2]), 0.04))]);
    let with = |pointer: &str, value: Value| {
        let mut document = whole.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        document.to_string()
    };
    for (text, why) in [
        ("{\"format\": ".to_string(), "no JSON: EOF while parsing"),
        (
            "{\"format\": \"topdown-record-1\", \"where\": {}}".to_string(),
            "in which a condition held (--where)",
        ),
        (
            with("/format", json!("topdown-record-2")),
            "its format is \"topdown-record-2\", and \"topdown-record-1\"",
        ),
        ("{\"format\": \"topdown-record-1\"}".to_string(), "a damaged recording: missing field `command`"),
        (
            with("/functions/0/own/time/value", json!("much")),
            "a damaged recording: invalid type: string \"much\"",
        ),
        (with("/functions/0/own/time_ns", json!(-1)), "a damaged recording: invalid value: integer `-1`"),
        (with("/functions/0/own/time/low", json!(1e300)), "time of \"f\" is no interval from 0 to 1"),
        (
            with("/functions/0/own/shares/tma_retiring/low", json!(0.9)),
            "tma_retiring of \"f\" is no interval",
        ),
        (with("/functions/0/core", json!("Q")), "\"f\" is of the core \"Q\", which is not in it"),
        (whole.to_string().replacen("0.5", "1e999", 1), "number out of range"),
        (with("/functions", json!({})), "a damaged recording: invalid type: map, expected a sequence"),
        (format!("{{\"format\": {}", "[".repeat(100_000)), "no JSON: "),
    ] {
        let path = file(&scratch, "hostile.json", &text);
        let error = RecordedFile::read(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", path.display())) && error.contains(why), "{why}: {error}");
    }
    assert!(
        RecordedFile::read(Path::new("/nowhere/x.json"))
            .unwrap_err()
            .to_string()
            .contains("/nowhere/x.json: ")
    );
    for other in ["region,pid\n", "{}", "{\"schema\": 1}", "{\"format\": 1}", "[1]"] {
        assert!(RecordedFile::read(&file(&scratch, "other", other)).unwrap().is_none(), "{other}");
    }
}

/// What `topdown record` writes can be compared.
#[test]
fn the_view_is_read() {
    let scratch = Scratch::new("view");
    let view = String::from_utf8(View::Json.write(&profile(), &HEADING)).unwrap();
    let same = RecordedFile::read(&file(&scratch, "a.json", &view)).unwrap().unwrap();
    let comparison = RecordingComparison::new(&same, &same);
    assert_eq!(comparison.functions.len(), 2);
    let changed = |change: &PartChange| change.difference.is_some_and(|difference| difference.value != 0.0);
    assert!(comparison.functions.iter().all(|function| !changed(&function.own.time)));
    assert_eq!(comparison.functions[0].own.shares[0].0, "tma_retiring");
}

#[test]
fn time_of_samples_is_not_told_as_all_cpu_time() {
    let scratch = Scratch::new("compare-time");
    let of = |name: &str, time_alone: bool| {
        let mut document = recording(&[function("P", "f", &figures(100, None, 0.0))]);
        if time_alone {
            document["time_alone"] = json!({ "why": "no PMU" });
        }
        read(&scratch, name, &document)
    };
    let (timed, sampled) = (of("a.json", false), of("b.json", true));
    for (both, label, other) in [
        ([&timed, &timed], "CPU time", "sampled time"),
        ([&timed, &sampled], "sampled time", "  CPU time"),
        ([&sampled, &sampled], "sampled time", "  CPU time"),
    ] {
        let text = RecordingComparison::new(both[0], both[1]).render(Format::Text).unwrap();
        assert!(text.contains(label) && !text.contains(other), "{text}");
    }
}
