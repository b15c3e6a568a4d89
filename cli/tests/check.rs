//! What scripts may rely on of `topdown check`, whatever can be measured here.

use serde_json::Value;
use std::process::{Command, Output};

fn check(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_topdown")).arg("check").args(arguments).output().expect("it runs")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn json_is_as_the_help_says() {
    let output = check(&["--json"]);
    let json = object(&output);
    let findings = json["findings"].as_array().expect("a list");
    assert!(findings[0]["name"] == "cpu" && findings.last().expect("some")["name"] == "td_open");
    for finding in findings {
        let keys: Vec<_> = finding.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["found", "name", "remedy", "verdict"]);
        assert!(finding["remedy"].is_string() && !finding["found"].as_str().expect("a text").is_empty());
        assert!(["good", "note", "wall", "unknown"].contains(&finding["verdict"].as_str().expect("a word")));
    }
    let abilities = json["abilities"].as_array().expect("a list");
    let names = [
        "stat",
        "run",
        "regions",
        "record",
        "record_ptrace",
        "drill",
        "record_tpebs",
        "kernel",
        "all_cpus",
        "record_all_cpus",
    ];
    assert_eq!(abilities.iter().map(|one| one["name"].as_str().expect("a name")).collect::<Vec<_>>(), names);
    for ability in abilities {
        let keys: Vec<_> = ability.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["can", "how", "level", "name", "remedies", "why"]);
        assert!(ability["can"] == true || !ability["why"].as_str().expect("a text").is_empty(), "{ability}");
        for remedy in ability["remedies"].as_array().expect("a list") {
            assert!(
                ["once", "for good", "one command", "container"]
                    .contains(&remedy["reach"].as_str().expect("a word"))
            );
        }
    }
    let overall = json["overall"].as_object().expect("an object");
    let works = overall["works"].as_bool().expect("yes or no");
    assert_eq!(overall["code"] == 0, works);
    for key in ["path", "level", "slots_per_cycle", "core", "cpu"] {
        assert_eq!(overall[key].is_null(), !works, "{key}");
    }
    assert_eq!(findings.last().expect("td_open")["verdict"] == "wall", !works);
}

#[test]
fn the_exit_status_says_whether_the_default_open_works() {
    for arguments in [&["--json"][..], &[]] {
        let works = object(&check(&["--json"]))["overall"]["works"] == true;
        assert_eq!(check(arguments).status.code(), Some(if works { 0 } else { 1 }));
    }
}

#[test]
fn people_read_the_same_in_lines_that_fit() {
    let text = text(&check(&[]));
    let (summary, text) = text.split_once("\n\n").expect("a summary, and an empty line");
    assert!(
        summary.starts_with("you can: ") && summary.lines().all(|line| line.chars().count() <= 100),
        "{summary}"
    );
    let json = object(&check(&["--json"]));
    let names: Vec<_> =
        text.lines().filter_map(|line| line.split(' ').next()).filter(|n| !n.is_empty()).collect();
    let findings = json["findings"].as_array().expect("a list");
    assert_eq!(names, findings.iter().map(|f| f["name"].as_str().expect("a name")).collect::<Vec<_>>());
    for line in text.lines() {
        let (head, words) = (&line[..30], &line[30..]);
        assert!(["good", "note", "BLOCKER", "unknown", ""].contains(&head[21..].trim()), "{line}");
        assert!(words.len() <= 70 || !words.trim().contains(' '), "{line}");
    }
}

#[test]
fn wrong_arguments_are_another_matter() {
    let output = check(&["--yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}
