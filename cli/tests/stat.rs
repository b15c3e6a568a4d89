//! `topdown stat`: what it refuses, whatever can be counted.

mod running;

use running::with_default_signals;
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
        "--per-process -a",
        "--per-process -p 1",
        "--per-process --per-thread true",
        "--per-process --csv true",
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
        "--td-level 7 true",
        "--subtree lcp true",
        "--subtree retiring --td-level 1 true",
        "--unknown true",
        "-z true",
    ] {
        let output = stat(arguments);
        assert_eq!(output.status.code(), Some(125), "{arguments}: {}", said(&output));
        let is_named = ["error: ", "topdown: "].iter().any(|begin| said(&output).starts_with(begin));
        assert!(is_named, "{arguments}: {}", said(&output));
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
        ("-r 2 -o report.html echo ran", "rows are a text, .csv or .json, not .html"),
        ("-I 100 -o /none/rows.csv echo ran", "/none/rows.csv: cannot write the report"),
        ("--record-tpebs --tpebs-mode max echo ran", "--tpebs-mode: the smallest, the largest or the last"),
        ("-p 2147483647 echo ran", "there is no process 2147483647"),
        ("--per-thread -I 100 echo ran", "--per-thread of a command: not with --interval-print"),
        ("--per-thread -r 2 echo ran", "--per-thread of a command: not with --interval-print"),
    ] {
        let output = stat(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{arguments}");
        assert!(said(&output).contains(says) && said(&output).lines().count() == 1, "{}", said(&output));
    }
}

#[test]
fn rows_of_what_cannot_be_counted_leave_nothing_of_an_earlier_file() {
    let path = std::env::temp_dir().join(format!("topdown-stat-{}.csv", std::process::id()));
    for options in ["-x ;", "-r 2 -x ;"] {
        std::fs::write(&path, "earlier\n").unwrap();
        let output = stat(&format!("{options} -o {} true", path.display()));
        let rows = std::fs::read_to_string(&path).unwrap();
        assert!(output.status.success() && !rows.contains("earlier"), "{rows}");
        assert!(rows.contains("slots;") && rows.contains(";running;ipc"), "{rows}");
    }
    std::fs::remove_file(&path).unwrap();
    // a text says why
    let path = path.with_extension("txt");
    for options in ["-I 100", "-r 2"] {
        std::fs::write(&path, "earlier\n").unwrap();
        let output = stat(&format!("{options} -o {} true", path.display()));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(output.status.success() && !text.contains("earlier"), "{text}");
        if said(&output).contains("nothing is measured: ") {
            assert!(text.starts_with("nothing is measured: ") && text.lines().count() == 1, "{text}");
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_command_that_is_interrupted_is_the_last_run() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    // it ends by itself, with a status; whose signal it was is not seen there
    let script = "trap : INT; echo run; (kill -INT $PPID); exit 3";
    command.args(["stat", "-r", "5", "-x", ",", "sh", "-c", script]).stdin(Stdio::null());
    let output = with_default_signals(&mut command).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"run\n"[..]));
}

#[test]
fn what_a_full_disk_has_no_room_for_goes_to_standard_error() {
    let output = stat("-o /dev/full --csv -- true");
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let (why, report) = said.split_once("no report: ").unwrap().1.split_once('\n').unwrap();
    assert!(why.contains("No space left") && report.starts_with("topdown: true"), "{said}");
}

/// Where counters are refused to a process that can be recorded, the error names how.
#[test]
fn who_cannot_be_counted_may_be_recorded() {
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let target = format!("-p {}", other.id());
    let counted = stat(&format!("--timeout 50 {target}"));
    let mut record = Command::new(env!("CARGO_BIN_EXE_topdown"));
    let recorded = record.args(["record", "--duration", "0.05"]).args(target.split(' ')).output().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    if counted.status.success() || !recorded.status.success() {
        return eprintln!("both or neither can be had here, and nothing is tested");
    }
    assert!(
        said(&counted).replace("\n", " ").contains(&format!("`topdown record {target}`")),
        "{}",
        said(&counted)
    );
}
