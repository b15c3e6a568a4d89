//! `topdown record`: what it refuses, and where its profile goes, whatever can be counted.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn record(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    command.arg("record").args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn options_that_clash_are_errors() {
    for arguments in [
        "",
        "-p 1 true",
        "-p 0",
        "-F 0 true",
        "-F 2001 true",
        "--gap 299 true",
        "--budget 0 true",
        "--budget 51 true",
        "--budget nan true",
        "--duration 0 true",
        "--td-level 3 true",
        "--unknown true",
        "--where ipc<1 -F 100 true",
        "--where ipc<1 --gap 1000 true",
        "--where ipc<1 --budget 2 true",
        "--where ipc<1 --td-level 1 true",
        "--where ipc<1 --period 0 true",
        "--period 1000 true",
    ] {
        let output = record(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", said(&output));
        assert!(said(&output).starts_with("error: "), "{arguments}: {}", said(&output));
    }
}

#[test]
fn endings_and_processes_are_looked_at_before_anything_runs() {
    for (arguments, why) in [
        ("-o profile.pdf echo ran", "'.pdf' is no ending of a profile: .html, .svg,"),
        ("--lines -o profile.csv echo ran", "only texts and .json have lines"),
        ("-o /nowhere/profile.json echo ran", "/nowhere/profile.json"),
        ("-p 2147483647", "there is no process 2147483647"),
        ("--where ipc echo ran", "--where 'ipc': no condition: ipc<0.5,"),
        ("--where ipc<0 echo ran", "--where 'ipc<0': '0' is no ratio: a number above 0"),
        ("--where a,b/ratio-to-prev=0/ echo ran", "'0' is no ratio"),
        ("--where ipc<1 --period 10 echo ran", "too short"),
    ] {
        let output = record(arguments);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]), "{arguments}");
        assert!(said(&output).contains(why), "{arguments}: {}", said(&output));
    }
}

/// Where no counters reload each other nothing runs: a profile of all would be taken for one of the condition.
#[test]
fn a_condition_needs_counters_that_reload_each_other() {
    let output = record("--where ipc<0.5 echo ran");
    if output.status.code() == Some(0) {
        eprintln!("there is auto counter reload here: nothing is tested");
        return;
    }
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]), "{}", said(&output));
    for word in ["--where needs auto counter reload", "Linux 6.16", "Diamond Rapids", "without --where"] {
        assert!(said(&output).contains(word), "{word}: {}", said(&output));
    }
}

/// With `-o -` the profile follows what the program writes; where nothing can be sampled it is said why, and the program runs all
/// the same.
#[test]
fn a_dash_is_standard_output() {
    let output = record("-o - echo ran");
    assert!(!Path::new("-").exists());
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(stdout.starts_with("ran\n"), "{stdout}");
    match said(&output) {
        text if text.is_empty() => assert!(stdout.contains("topdown: echo ran ("), "{stdout}"),
        text => assert!(stdout == "ran\n" && text.contains("nothing is recorded: "), "{stdout}{text}"),
    }
}
