//! `topdown check --selftest` where there is no PMU: it says so, and proves nothing. (Where there is one, the emulated
//! machine's suite runs it.)

use std::fs::{exists, read_to_string, remove_file};
use std::process::{Command, Output};

fn selftest(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_topdown"))
        .args(["check", "--selftest"])
        .args(arguments)
        .output()
        .expect("the program that was built runs")
}

fn has_pmu() -> bool {
    ["cpu", "cpu_core"]
        .iter()
        .any(|name| exists(format!("/sys/bus/event_source/devices/{name}/events/slots")).unwrap_or(false))
}

fn says_that_there_is_none(report: &str) {
    assert!(report.starts_with("topdown selftest\nversion "), "{report}");
    assert_eq!(report.matches("NO PMU").count(), 1, "{report}");
    let last = report.lines().last().unwrap_or_default();
    assert!(last.starts_with("selftest: 0 hold, 0 do not, "), "{report}");
    assert!(!last.ends_with(" 0 could not be tried"), "{report}");
}

#[test]
fn without_a_pmu_the_report_says_so_and_fails() {
    if has_pmu() {
        return;
    }
    let output = selftest(&[]);
    assert_eq!(output.status.code(), Some(1));
    says_that_there_is_none(&String::from_utf8(output.stdout).unwrap());
}

#[test]
fn the_report_goes_into_a_file() {
    if has_pmu() {
        return;
    }
    let path = std::env::temp_dir().join(format!("topdown-selftest-{}", std::process::id()));
    let output = selftest(&["-o", path.to_str().unwrap()]);
    let report = read_to_string(&path).unwrap();
    remove_file(&path).unwrap();
    assert_eq!(output.status.code(), Some(1));
    says_that_there_is_none(&report);
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("selftest: 0 hold"));
}

#[test]
fn as_json_it_has_the_fields_that_the_help_names() {
    let output = selftest(&["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let keys: Vec<_> = json.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["checks", "do_not", "hold", "machine", "not_tried", "notes", "sources"]);
    assert_eq!(output.status.success(), json["hold"] != 0 && json["do_not"] == 0);
    assert!(has_pmu() || json["notes"][0].as_str().expect("a text").starts_with("NO PMU"));
    assert!(json["machine"].as_array().expect("a list").iter().any(|fact| fact["name"] == "kernel"));
}

#[test]
fn a_file_that_cannot_be_written_is_told() {
    let output = selftest(&["-o", "/nowhere/report"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("topdown: /nowhere/report: cannot write the report: No such file"), "{said}");
    let output = selftest(&["-o", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("topdown: /dev/full: cannot write the report: No space left"), "{said}");
}
