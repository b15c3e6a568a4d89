//! `topdown run`, with table files that nobody measured, and `topdown stat` whatever can be counted.

mod running;

use running::*;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_report_is_on_standard_error_and_the_commands_output_and_status_are_its_own() {
    let scratch = Scratch::new("status");
    let script = scratch.leaving("cat; echo out; echo err >&2; exit 7");
    let output = done(&mut scratch.topdown(&["run", "--", "sh", "-c", &script]));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), "out\n".into()));
    let said = text(&output.stderr);
    assert!(said.starts_with("err\ntopdown: sh -c cp ") && said.contains("memory bound: 70 %"), "{said}");
    assert!(scratch.is_clean());
}

#[test]
fn options_after_the_command_are_the_commands() {
    let scratch = Scratch::new("options");
    let output = done(&mut scratch.topdown(&["run", "echo", "-o", "--regions", "--"]));
    assert_eq!(text(&output.stdout), "-o --regions --\n");
}

#[test]
fn the_library_is_preloaded_before_others_and_patterns_are_handed_on() {
    let scratch = Scratch::new("environment");
    let show = "echo \"$LD_PRELOAD|$TOPDOWN_OUTPUT|$TOPDOWN_REGIONS\"";
    let mut command = scratch.topdown(&["run", "--regions", "libm.so.6:exp", "--", "sh", "-c", show]);
    let output = done(command.env("LD_PRELOAD", "libm.so.6"));
    let shown = text(&output.stdout);
    let [preload, file, regions] = shown.trim().split('|').collect::<Vec<_>>()[..] else { panic!("{shown}") };
    // (behind a path that only the GNU C library's loader expands)
    assert!(preload.ends_with(&format!("{}:libm.so.6", harmless().display())), "{preload}");
    assert_eq!(regions, "libm.so.6:exp");
    let file = Path::new(file);
    assert!(file.starts_with(scratch.0.join("tmp")) && file.ends_with("run.topdown"), "{shown}");
}

#[test]
fn the_ending_chooses_the_format() {
    let scratch = Scratch::new("formats");
    for (ending, begins) in
        [("csv", "region,pid,"), ("json", "{"), ("html", "<!DOCTYPE html>"), ("txt", "topdown: ")]
    {
        let file = scratch.0.join(format!("report.{ending}"));
        let name = file.to_str().unwrap();
        let output = done(&mut scratch.topdown(&["run", "-o", name, "--", "sh", "-c", &scratch.leaving("")]));
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        let report = fs::read_to_string(&file).unwrap();
        assert!(report.starts_with(begins) && report.contains("inner loop"), "{report}");
    }
    for name in ["x.topdown", "report.pdf", "report.cvs"] {
        let output = done(&mut scratch.topdown(&["run", "-o", name, "--", "echo"]));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
        let said = text(&output.stderr);
        assert!(said.contains(".csv, .json, .html") && said.lines().count() == 1, "{said}");
        assert!(!Path::new(name).exists());
    }
    // standard output, after the command's own
    let script = scratch.leaving("echo own");
    let output = done(&mut scratch.topdown(&["run", "-o", "-", "--", "sh", "-c", &script]));
    let shown = text(&output.stdout);
    assert!(shown.starts_with("own\ntopdown: ") && shown.contains("inner loop"), "{shown}");
    assert!(output.stderr.is_empty() && !Path::new("-").exists());
    let table = table().write(&scratch.0);
    let output = done(&mut scratch.topdown(&["report", "-o", "-", table.to_str().unwrap()]));
    assert!(text(&output.stdout).starts_with("topdown: leaving a table"));
    let output = done(&mut scratch.topdown(&["report", "-o", "x.odt", table.to_str().unwrap()]));
    assert!(text(&output.stderr).contains("x.odt: no report has this ending"));
}

#[test]
fn a_level_of_the_whole_that_is_not_counted_from_outside_is_told() {
    let scratch = Scratch::new("level");
    let output = done(&mut scratch.topdown(&["run", "--td-level", "1", "--", "true"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let why = "topdown: --td-level 1: the whole is not counted from outside: ";
    assert_eq!(said.lines().filter(|line| line.starts_with(why)).count(), 1, "{said}");
    let output = done(&mut scratch.topdown(&["run", "--td-level", "7", "true"]));
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn the_library_is_told_the_level_that_is_wanted_inside() {
    let scratch = Scratch::new("inside-level");
    let level = |options: &[&str]| {
        let arguments = [&["run"], options, &["--", "sh", "-c", "echo \"level $TOPDOWN_LEVEL\""]].concat();
        let output = done(&mut scratch.topdown(&arguments));
        (text(&output.stdout), text(&output.stderr).contains("--td-level"))
    };
    assert_eq!(level(&["--inside", "--td-level", "2"]), ("level 2\n".into(), false));
    assert_eq!(level(&["--td-level", "2"]), ("level \n".into(), true));
}

#[test]
fn an_option_that_there_is_not_is_no_command() {
    let scratch = Scratch::new("unknown");
    for arguments in
        [&["run", "--jsno", "true"][..], &["stat", "-Q", "true"], &["run", "-o", "x.csv", "--wiat", "true"]]
    {
        let output = done(&mut scratch.topdown(arguments));
        assert_eq!(output.status.code(), Some(125));
        assert!(text(&output.stderr).contains("unexpected argument '-"), "{}", text(&output.stderr));
    }
    let output = done(&mut scratch.topdown(&["run", "--", "--jsno"]));
    assert_eq!(output.status.code(), Some(127), "a command of that name");
}

#[test]
fn patterns_that_no_function_has_are_named() {
    let scratch = Scratch::new("patterns");
    let script = scratch.leaving("true");
    let run =
        ["run", "--functions", "inner*, outer ,inn?r loop", "--regions", "lib:f", "--", "sh", "-c", &script];
    let said = text(&done(&mut scratch.topdown(&run)).stderr);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("no such function")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].starts_with("topdown: --functions outer: "), "{said}");
    let said = text(&done(&mut scratch.topdown(&["run", "--regions", "lib:f,cos", "--", "true"])).stderr);
    assert!(
        said.contains("topdown: --regions lib:f: ") && said.contains("topdown: --regions cos: "),
        "{said}"
    );
}

#[test]
fn a_core_that_cannot_be_simulated_is_refused_and_those_that_can_are_named() {
    let scratch = Scratch::new("simulate");
    let mut command = scratch.topdown(&["run", "--", "sh", "-c", "echo it ran"]);
    let output = done(command.env("TOPDOWN_SIMULATE", "Gracemnt"));
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{said}");
    for expected in ["TOPDOWN_SIMULATE", "'Gracemnt'", "Gracemont", "Zen 4", "made-up core"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(scratch.is_clean());
}

/// A process of which clocks alone tell: the report says so first, a line does if that is a file, and no slots are there.
#[test]
fn times_are_no_slots() {
    let scratch = Scratch::new("times");
    let mut made = running::made::TableContent::by_clocks(10, "timed", "no PMU at all");
    let root = made.thread("main", running::made::timed(1, 1, 10_000, 8_000));
    made.region("solve", root, running::made::timed(2, 2, 4_000, 4_000));
    let table = made.write(&scratch.0);
    let script = format!("cp {} \"${{TOPDOWN_OUTPUT%.topdown}}.10.0.topdown\"", table.display());
    let sentence = "How slots divide cannot be told here, and this is time alone: no PMU at all.";
    let output = done(&mut scratch.topdown(&["run", "--require", "slots", "--", "sh", "-c", &script]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(123), "{said}");
    assert!(said.contains(&format!(", time alone (1 process, 1 thread)\n{sentence}\n")), "{said}");
    assert!(said.contains("--require: no slots of the whole are measured: no PMU at all"), "{said}");
    let report = scratch.0.join("r.csv");
    let arguments =
        ["run", "--functions", "solve,other", "-o", report.to_str().unwrap(), "--", "sh", "-c", &script];
    let output = done(&mut scratch.topdown(&arguments));
    let said = text(&output.stderr);
    assert_eq!(
        (output.status.code(), said.lines().next()),
        (Some(0), Some(&*format!("topdown: {sentence}")))
    );
    assert!(!said.contains("nothing is measured"), "{said}");
    assert!(
        said.contains("--functions other: no such function") && !said.contains("solve: no such"),
        "{said}"
    );
    let output = done(&mut scratch.topdown(&["report", table.to_str().unwrap()]));
    assert_eq!(text(&output.stdout).lines().nth(1), Some(sentence));
    assert!(scratch.is_clean());
}

/// A process that was killed as it began has left an empty table.
#[test]
fn a_table_that_has_not_begun_keeps_no_report_away() {
    let scratch = Scratch::new("begun");
    let begun = "for n in 11 12; do : > \"${TOPDOWN_OUTPUT%.topdown}.$n.0.topdown\"; done; \
                 head -c 4096 /dev/zero > \"${TOPDOWN_OUTPUT%.topdown}.12.0.topdown\"; exit 3";
    let output = done(&mut scratch.topdown(&["run", "--", "sh", "-c", &scratch.leaving(begun)]));
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("memory bound: 70 %") && !said.contains("no report"), "{said}");
    // and nothing but such tables is as none
    let output = done(&mut scratch.topdown(&["run", "--", "sh", "-c", begun]));
    let said = text(&output.stderr);
    assert!(said.contains("nothing is measured") && !said.contains("no report"), "{said}");
    assert!(scratch.is_clean());
}

#[test]
fn what_is_ignored_blocked_and_open_is_the_commands_own() {
    let scratch = Scratch::new("inherited");
    // (of signals that threads use among themselves another may be ignored)
    let shows = "grep -E '^Sig(Ign|Blk)' /proc/self/status | grep -o '.\\{8\\}$'; ls /proc/self/fd";
    let under =
        format!("'{}' run --preload {} -- sh -c", env!("CARGO_BIN_EXE_topdown"), harmless().display());
    for before in ["", "trap '' PIPE INT USR1 CHLD; "] {
        let shown = |around: &str| {
            let line = format!("{before}{around} \"$0\"");
            let mut command = Command::new("env");
            command.args(["--default-signal", "bash", "-c", &line, shows]).env("TMPDIR", &scratch.0);
            text(&done(command.stdin(Stdio::null())).stdout)
        };
        let plain = shown("sh -c");
        assert!(plain.lines().count() > 4, "{plain}");
        assert_eq!(shown(&under), plain, "{before}");
    }
}

#[test]
fn wherever_standard_error_leads_the_status_is_the_commands() {
    let scratch = Scratch::new("stderr");
    let own = format!("'{}' run --preload {} -- sh -c", env!("CARGO_BIN_EXE_topdown"), harmless().display());
    for around in [
        "RUN 'exit 7' 2> /dev/full",
        "RUN 'exit 7' 2>&-",
        "{ { RUN 'sleep 0.1; exit 7'; echo $? >&3; } 2>&1 > /dev/null | true; } 3>&1 | { read -r code; exit $code; }",
    ] {
        let line = around.replace("RUN", &own);
        let output = done(Command::new("bash").args(["-c", &line]).env("TMPDIR", &scratch.0));
        assert_eq!(output.status.code(), Some(7), "{around}");
    }
}

/// A program that needs `libasan`, or whose interpreter is musl's, is executed without the library.
#[test]
fn programs_that_refuse_the_library_run_without_it() {
    let scratch = Scratch::new("refuses");
    let says = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"LD_PRELOAD\") ? \"with\" : \"without\"); return 3; }\n";
    fs::write(scratch.0.join("says.c"), says).unwrap();
    let musl = scratch.0.join("ld-musl-x86_64.so.1");
    std::os::unix::fs::symlink("/lib64/ld-linux-x86-64.so.2", &musl).unwrap();
    for (name, option, why) in [
        ("plain", "-O1".to_owned(), None),
        ("sanitized", "-fsanitize=address".to_owned(), Some("AddressSanitizer is to be the first library")),
        ("musl", format!("-Wl,--dynamic-linker={}", musl.display()), Some("linked with musl")),
    ] {
        let program = scratch.0.join(name);
        let mut gcc = Command::new("gcc");
        gcc.args(["-w", &option, "-o"]).arg(&program).arg(scratch.0.join("says.c"));
        assert!(gcc.status().unwrap().success(), "{name}");
        let output = done(&mut scratch.topdown(&["run", "--", program.to_str().unwrap()]));
        let said = text(&output.stderr);
        let with = if why.is_some() { "without\n" } else { "with\n" };
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), with.into()), "{name}: {said}");
        let (first, more) = said.split_once('\n').unwrap();
        assert!(first.contains(why.unwrap_or("left no table file")), "{said}");
        assert!(more.ends_with(" # what would have to change for slots\n"), "{said}");
        // one that another program starts is not ours to look at
        if name == "sanitized" {
            let line = format!(
                "ASAN_OPTIONS=detect_leaks=0 exec \"$0\" run -- sh -c '{}; exit $?'",
                program.display()
            );
            let mut shell = Command::new("sh");
            shell.args(["-c", &line, env!("CARGO_BIN_EXE_topdown")]).env("TMPDIR", &scratch.0);
            let output = done(shell.env("TOPDOWN_PRELOAD", harmless()));
            assert_eq!(
                (output.status.code(), text(&output.stdout)),
                (Some(3), "with\n".into()),
                "{output:?}"
            );
        }
    }
}

#[test]
fn what_cannot_run_and_what_cannot_be_measured_is_told() {
    let scratch = Scratch::new("errors");
    let failed = |arguments: &[&str], code: i32, says: &str| {
        let output = done(&mut scratch.topdown(arguments));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        let (first, more) = said.split_once('\n').unwrap();
        assert!(first.contains(says), "{said}");
        assert!(more.is_empty() || more.ends_with(" # what would have to change for slots\n"), "{said}");
    };
    failed(&["run", "--", "/nowhere/at/all"], 127, "cannot run /nowhere/at/all: No such file");
    failed(&["run", "--", "/etc/passwd"], 126, "cannot run /etc/passwd: Permission denied");
    failed(
        &["run", "--preload", "/none.so", "--", "true"],
        125,
        "/none.so: no such library; name libtopdown-preload.so",
    );
    failed(
        &["run", "-o", "/none/x.csv", "--", "true"],
        125,
        "/none/x.csv: cannot write the report: No such file",
    );
    failed(&["run", "--", "true"], 0, "topdown: true: nothing is measured: ");
    let output =
        done(scratch.topdown(&["run", "true"]).env_remove("TOPDOWN_PRELOAD").env("TMPDIR", "/nowhere"));
    assert_eq!(output.status.code(), Some(125), "neither the library nor a directory");
    let report = scratch.0.join("report.csv");
    // a report that has no slots, not an earlier one
    fs::write(&report, "an earlier one").unwrap();
    failed(&["run", "-o", report.to_str().unwrap(), "--", "true"], 0, "topdown: nothing is measured: ");
    let lines = fs::read_to_string(&report).unwrap();
    let whole: Vec<&str> = lines.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((lines.lines().count(), whole[11]), (2, "0"), "{lines}");
    let json = scratch.0.join("report.json");
    failed(&["run", "-o", json.to_str().unwrap(), "--", "sh", "-c", "exit 4"], 4, "nothing is measured: ");
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(json["whole"]["inclusive"]["slots"], 0);
    assert!(json["trouble"].as_str().unwrap().contains("left no table file"), "{json}");
    assert_eq!((&json["run"]["status"], &json["run"]["command"]), (&4.into(), &"sh -c exit 4".into()));
    fs::write(&report, "an earlier one").unwrap();
    failed(&["run", "-o", report.to_str().unwrap(), "--", "/nowhere/at/all"], 127, "cannot run");
    assert_eq!(fs::read_to_string(&report).unwrap(), "an earlier one");
    let script = scratch.0.join("setuid");
    fs::write(&script, "#!/bin/sh\nexit 5\n").unwrap();
    let mut mode = fs::metadata(&script).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o2755);
    fs::set_permissions(&script, mode).unwrap();
    failed(&["run", script.to_str().unwrap()], 5, "setuid or setgid");
    assert!(scratch.is_clean());
}

/// Where nothing is mounted at /proc the command runs as ever, with the library.
#[test]
fn without_proc_the_command_runs() {
    let scratch = Scratch::new("no-proc");
    let beside = scratch.0.join("libtopdown-preload.so");
    let (own, program) = (scratch.0.join("topdown"), "echo $LD_PRELOAD; exit 3");
    fs::copy(env!("CARGO_BIN_EXE_topdown"), &own).unwrap();
    fs::copy(harmless(), &beside).unwrap();
    let run = |arguments: &[&str]| {
        let mount = "mount -t tmpfs none /proc && exec \"$@\"";
        let mut shell = Command::new("unshare");
        shell.args(["-rm", "sh", "-c", mount, "sh"]).args(arguments).env("TMPDIR", &scratch.0);
        done(shell.env_remove("TOPDOWN_PRELOAD"))
    };
    if !run(&["true"]).status.success() {
        eprintln!("skipped: no mount namespace can be made here");
        return;
    }
    for options in [&["run"][..], &["run", "--inside"]] {
        let output = run(&[&[own.to_str().unwrap()], options, &["sh", "-c", program]].concat());
        let preloaded = text(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(preloaded.trim_end().ends_with(beside.to_str().unwrap()), "{output:?}");
    }
}

#[test]
fn what_is_counted_from_outside_runs_as_ever() {
    let scratch = Scratch::new("stat");
    let shell = |options: &str, script: &str, around: &str| {
        let own = env!("CARGO_BIN_EXE_topdown");
        let line = around.replace("STAT", &format!("'{own}' stat {options} -- sh -c '{script}'"));
        done(with_default_signals(&mut Command::new("bash")).args(["-c", &line]).stdin(Stdio::null()))
    };
    let output = shell("", "cat; echo out; exit 7", "echo in | STAT 2> /dev/null");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), "in\nout\n".into()));
    // wherever the report goes, or cannot go
    for around in
        ["STAT 2> /dev/full", "STAT 2>&-", "STAT > /dev/full", "STAT < /dev/null", "trap \"\" CHLD; STAT"]
    {
        assert_eq!(shell("", "exit 7", around).status.code(), Some(7), "{around}");
    }
    let output = shell("", "sleep 0.1; exit 7", "{ { STAT; echo $? >&3; } 2>&1 > /dev/null | true; } 3>&1");
    assert_eq!(text(&output.stdout), "7\n", "standard error is a pipe that nobody reads");
    for signal in ["KILL", "TERM", "INT", "SEGV"] {
        let output = shell("", &format!("kill -{signal} $$"), "exec STAT");
        let number = Command::new("bash").args(["-c", "kill -l \"$1\"", "-", signal]).output().unwrap();
        let number: i32 = text(&number.stdout).trim().parse().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{}", text(&output.stderr));
    }
    // an interrupt is for the command
    let output = shell("", "trap \"exit 3\" INT; kill -INT $PPID; kill -INT $$; exit 4", "STAT");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    // (of signals that threads use among themselves another may be ignored)
    let signals = "grep -E \"^Sig(Ign|Blk)\" /proc/self/status | grep -o \".\\{8\\}\\$\"; ls /proc/self/fd";
    let counted = text(&shell("", signals, "STAT").stdout);
    assert!(counted.lines().count() > 4, "{counted}");
    assert_eq!(
        counted,
        text(
            &done(
                with_default_signals(&mut Command::new("sh"))
                    .args(["-c", &signals.replace("\\\"", "\"")])
                    .stdin(Stdio::null())
            )
            .stdout
        )
    );
    let failed = |arguments: &[&str], code: i32, says: &str| {
        let output = done(&mut scratch.topdown(arguments));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        let (first, more) = said.split_once('\n').unwrap();
        assert!(first.contains(says), "{said}");
        assert!(more.is_empty() || more.ends_with(" # what would have to change for slots\n"), "{said}");
    };
    failed(&["stat", "--", "/nowhere/at/all"], 127, "cannot run /nowhere/at/all: No such file");
    failed(&["stat", "--", "/etc/passwd"], 126, "cannot run /etc/passwd: Permission denied");
    failed(
        &["stat", "-o", "/none/x.csv", "--", "true"],
        125,
        "/none/x.csv: cannot write the report: No such file",
    );
}
