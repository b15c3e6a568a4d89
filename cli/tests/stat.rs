//! `topdown stat`: what it refuses, whatever can be counted.

use std::process::{Command, Output, Stdio};

fn stat(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    command.arg("stat").args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn options_that_clash_are_errors() {
    for arguments in [
        "",
        "-p 1 -t 2",
        "-p 1 -a",
        "-t 1 -C 0",
        "-p 0",
        "-p x",
        "-C 3-1 true",
        "-C -1 true",
        "--per-core true",
        "--per-socket -p 1",
        "--per-core --per-socket -a",
        "--per-thread -a",
        "--per-thread true",
        "-r 2 -a",
        "-r 2 -p 1",
        "-r 2 -I 100 true",
        "-r 2",
        "-r 0 true",
        "-I 9 true",
        "-I 18446744073709551615 true",
        "--timeout 0 true",
        "-x , -j true",
        "-I 100 --json true",
        "-x , --csv true",
        "--wait -a",
        "--td-level 3 true",
        "--unknown true",
        "-z true",
    ] {
        let output = stat(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", said(&output));
        assert!(said(&output).starts_with("error: "), "{arguments}: {}", said(&output));
    }
}

#[test]
fn what_follows_the_command_is_its_own() {
    let output = stat("echo -p 1 --unknown -a");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"-p 1 --unknown -a\n"[..]));
}

#[test]
fn unknown_endings_and_targets_are_refused_before_anything_runs() {
    for (arguments, says) in [
        ("-o report.xml echo ran", "-o report.xml: no report has this ending"),
        ("-I 100 -o report.html echo ran", "rows are a text, .csv or .json, not .html"),
        ("-I 100 -o /none/rows.csv echo ran", "/none/rows.csv: cannot write the report"),
        ("-p 2147483647 echo ran", "there is no process 2147483647"),
    ] {
        let output = stat(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{arguments}");
        assert!(said(&output).contains(says) && said(&output).lines().count() == 1, "{}", said(&output));
    }
}
