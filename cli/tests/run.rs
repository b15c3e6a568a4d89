//! `topdown run` and `topdown report`, with table files that nobody measured, and `topdown stat` whatever can be counted.

#[path = "../../report/tests/made/mod.rs"]
mod made;

use made::{Made, Scratch, ran};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A shell that runs us in the background has us ignore SIGINT and SIGQUIT; nohup(1), SIGHUP.
fn with_default_signals(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    let reset = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: a system call.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: it does what a forked child may.
    unsafe { command.pre_exec(reset) }
}

impl Scratch {
    fn topdown(&self, arguments: &[&str]) -> Command {
        let tmp = self.0.join("tmp");
        fs::create_dir_all(&tmp).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
        with_default_signals(&mut command);
        command
            .args(arguments)
            .env("TMPDIR", tmp)
            .env("TOPDOWN_PRELOAD", harmless())
            .env("TOPDOWN_SIMULATE", "1"); // nothing is counted from outside, whatever can be
        command.env_remove("LD_PRELOAD").stdin(Stdio::null());
        command
    }

    /// Nothing is left behind.
    fn is_clean(&self) -> bool {
        fs::read_dir(self.0.join("tmp")).unwrap().next().is_none()
    }

    /// A shell script that leaves the table of a process that ran.
    fn leaving(&self, then: &str) -> String {
        let table = table().write(&self.0);
        format!("cp {} \"${{TOPDOWN_OUTPUT%.topdown}}.10.0.topdown\"; {then}", table.display())
    }
}

/// A library that is loaded anyway: here it stands for the one that measures.
fn harmless() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libc =
        maps.lines().find_map(|line| line.split_whitespace().last().filter(|path| path.contains("/libc.")));
    libc.expect("this test is linked to libc").into()
}

fn table() -> Made {
    let mut made = Made::new(10, "leaving a table");
    let root = made.thread("main", ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    made.region("inner loop", root, ran(600, [10, 5, 5, 80], [5, 5, 5, 70], 6).sum());
    made
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn done(command: &mut Command) -> Output {
    command.output().unwrap()
}

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
    let output = done(&mut scratch.topdown(&["run", "--td-level", "4", "true"]));
    assert_eq!(output.status.code(), Some(2));
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
        assert_eq!(output.status.code(), Some(2));
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
fn a_signal_that_kills_the_command_kills_us_after_the_report() {
    let scratch = Scratch::new("signal");
    let output = done(&mut scratch.topdown(&["run", "--", "sh", "-c", &scratch.leaving("kill -TERM $$")]));
    assert_eq!(output.status.signal(), Some(libc::SIGTERM));
    assert!(text(&output.stderr).contains("memory bound: 70 %"));
    assert!(scratch.is_clean());
}

#[test]
fn an_interrupt_is_for_the_command() {
    let scratch = Scratch::new("interrupt");
    // to both, as the terminal does; the command ends in its own way
    let script = scratch.leaving("trap 'exit 3' INT; kill -INT $PPID; kill -INT $$; exit 4");
    let output = done(&mut scratch.topdown(&["run", "--", "sh", "-c", &script]));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("memory bound: 70 %"));
    // without a trap it dies of it: the handler that keeps us is not inherited
    let output = done(&mut scratch.topdown(&["run", "--", "sh", "-c", "kill -INT $$; exit 4"]));
    assert_eq!(output.status.signal(), Some(libc::SIGINT));
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

/// A program that writes how it got each of some signals, and ends at SIGTERM.
const TELLS: &str = "import os, signal, sys
come, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup) # (one that comes just before pause() would be handled after the next)
def got(number, frame):
    os.write(1, b'%d\\n' % number)
    if number == signal.SIGTERM: sys.exit(9)
for number in (1, 2, 3, 10, 12, 14, 15, 28, 40): signal.signal(number, got)
os.write(1, b'ready\\n')
while True: os.read(come, 1)";

#[test]
fn signals_to_this_process_alone_are_for_the_command() {
    let scratch = Scratch::new("relay");
    for subcommand in ["run", "stat"] {
        let script = scratch.leaving("exec python3 -c \"$TELLS\"");
        let mut command = scratch.topdown(&[subcommand, "--", "sh", "-c", &script]);
        command.env("TELLS", TELLS).env("TOPDOWN_OUTPUT", scratch.0.join("x.topdown"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "ready");
        for signal in [1, 2, 3, 10, 12, 14, 28, 40, 15] {
            // SAFETY: it sends a signal to a child that is not waited for yet.
            assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
            assert_eq!(lines.next().unwrap(), signal.to_string());
        }
        assert_eq!(lines.next(), None);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(9), "its own end");
        let said = text(&output.stderr);
        assert!(said.contains("memory bound: 70 %") || subcommand == "stat", "{said}");
        // and whoever does not handle it dies of it, as we do
        let mut command = scratch.topdown(&[subcommand, "--", "sh", "-c", "echo ready; exec sleep 60"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert!(lines.next().is_none(), "nobody has the pipe");
    }
    assert!(scratch.is_clean());
}

/// A shell that runs a job in the background has it ignore SIGINT; many a server handles it all the same.
#[test]
fn a_signal_that_is_ignored_reaches_a_command_that_handles_it() {
    let scratch = Scratch::new("handles");
    let mut command = scratch.topdown(&["run", "--", "python3", "-c", TELLS]);
    let ignore = || {
        // SAFETY: a system call.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: it does what a forked child may.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, ignore) };
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "ready");
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: it sends a signal to a child that is not waited for yet.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    }
    assert_eq!(lines.collect::<Vec<_>>(), ["2", "15"]);
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

/// Whenever it comes: before the command is executed, too.
#[test]
fn an_interrupt_at_any_moment_ends_the_command() {
    use std::os::unix::process::CommandExt;
    let scratch = Scratch::new("moments");
    for moment in 0..60 {
        for group in [true, false] {
            let mut command = scratch.topdown(&["run", "--", "sleep", "60"]);
            let mut child = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_micros(200 * moment));
            let pid = child.id() as i32;
            // SAFETY: it sends a signal to a child that is not waited for yet, or to its group.
            assert_eq!(unsafe { libc::kill(if group { -pid } else { pid }, libc::SIGINT) }, 0);
            // (whoever is left has the pipe, for a minute)
            let mut said = String::new();
            let started = std::time::Instant::now();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT), "{moment}, {group}: {said}");
            assert!(started.elapsed().as_secs() < 50, "{moment}, {group}: the command slept on");
        }
    }
}

#[test]
fn the_command_dies_with_the_parent_that_it_would_die_with() {
    let scratch = Scratch::new("parent");
    let own = env!("CARGO_BIN_EXE_topdown");
    let line = format!("'{own}' run --preload {} -- sh -c 'echo ready; exec sleep 60'", harmless().display());
    // the shell between is what dies
    let script = format!("setpriv --pdeathsig KILL {line} & wait");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).env("TMPDIR", &scratch.0).stdin(Stdio::null()).stderr(Stdio::null());
    let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    shell.kill().unwrap();
    shell.wait().unwrap();
    let started = std::time::Instant::now();
    assert!(lines.next().is_none());
    assert!(started.elapsed().as_secs() < 50, "nobody is left who would have written more");
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
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(why.unwrap_or("left no table file")), "{said}");
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
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
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

#[test]
fn reports_merge_files() {
    let scratch = Scratch::new("merge");
    let first = table().write(&scratch.0);
    let mut other = table();
    other.header.pid = 11;
    let second = other.write(&scratch.0);
    let names = [first.to_str().unwrap(), second.to_str().unwrap()];
    let output = done(&mut scratch.topdown(&["report", names[0], names[1]]));
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("(2 processes, 2 threads)"), "{}", text(&output.stdout));
    let file = scratch.0.join("all.json");
    let output = done(&mut scratch.topdown(&["report", "-o", file.to_str().unwrap(), names[0], names[1]]));
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(json["regions"][0]["inclusive"]["slots"], 1200);
    let output = done(&mut scratch.topdown(&["report", "/etc/passwd"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/etc/passwd: no table file"));
}

#[test]
fn reports_are_compared() {
    let scratch = Scratch::new("compare");
    let table = table().write(&scratch.0);
    let (table, file) = (table.to_str().unwrap(), scratch.0.join("x.csv"));
    let file = file.to_str().unwrap();
    assert!(done(&mut scratch.topdown(&["report", "-o", file, table])).status.success());
    let output = done(&mut scratch.topdown(&["compare", table, file]));
    let shown = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert!(shown.contains("inner loop") && shown.contains("12 shares not known to have changed"), "{shown}");
    let output = done(&mut scratch.topdown(&["compare", "--csv", table, file]));
    assert!(text(&output.stdout).contains("\ninner loop,memory_bound,0.7,0.7,0,"), "{output:?}");
    for (arguments, says) in [
        (["compare", table, "/etc/passwd", "-o", "-"], "/etc/passwd: "),
        (["compare", table, file, "-o", "x.html"], "a comparison is no HTML page"),
    ] {
        let output = done(&mut scratch.topdown(&arguments));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}

#[test]
fn a_table_is_not_replaced_by_a_report() {
    let scratch = Scratch::new("table");
    let first = table().write(&scratch.0);
    let mut other = table();
    other.header.pid = 11;
    let before = fs::read(&first).unwrap();
    let (first, second) = (first.to_str().unwrap(), other.write(&scratch.0));
    let output = done(&mut scratch.topdown(&["report", "-o", first, second.to_str().unwrap()])); // -o *.topdown
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("give -o a FILE of its own"), "{}", text(&output.stderr));
    assert!(fs::read(first).unwrap() == before);
}

/// Whatever a terminal would obey.
fn steers(text: &str) -> Option<char> {
    text.chars().find(|c| *c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(c)))
}

#[test]
fn names_of_files_do_not_steer_the_terminal() {
    let scratch = Scratch::new("names");
    let hostile = "\x1b]0;title\x07\u{9b}31m\u{202e}gpj\r.topdown";
    let path = scratch.0.join(hostile);
    fs::write(&path, "no table").unwrap();
    let missing = format!("{}/missing", path.display());
    let script = scratch.0.join(format!("{hostile}.sh"));
    fs::write(&script, "no program").unwrap();
    let (name, script) = (path.to_str().unwrap(), script.to_str().unwrap());
    let option = format!("--{hostile}");
    for (arguments, code) in [
        (&["report", name][..], 1),
        (&["report", &missing], 1),
        (&["report", "-o", &missing, "/dev/null"], 1),
        (&["run", "-o", &missing, "--", "true"], 125),
        (&["run", "-o", name, "--", "true"], 125),
        (&["run", "--preload", &missing, "--", "true"], 125),
        (&["run", "--", script], 126),
        (&["run", "--", &missing], 126),
        (&["check", "--selftest", "-o", &missing], 1),
        (&["report", &option], 2),
        (&[hostile], 2),
    ] {
        let output = done(&mut scratch.topdown(arguments));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(steers(&said), None, "{arguments:?}: {said:?}");
        assert!(output.stdout.is_empty() && said.contains("topdown") || code == 2, "{arguments:?}: {said:?}");
    }
    // and bytes that are no UTF-8
    let mut command = scratch.topdown(&["report"]);
    let output = done(command.arg(std::ffi::OsStr::from_bytes(b"\x9b2J\xff")));
    assert!(text(&output.stderr).contains("2J"), "{}", text(&output.stderr));
    // what a measured process says of itself, too
    let mut made = Made::new(10, "hostile");
    made.header.path = 0;
    made.header.trouble[..7].copy_from_slice(b"\x1b[2J \xc2\x9b");
    let table = made.write(&scratch.0);
    let csv = scratch.0.join("x.csv");
    let output =
        done(&mut scratch.topdown(&["report", "-o", csv.to_str().unwrap(), table.to_str().unwrap()]));
    assert_eq!(text(&output.stderr), "topdown: nothing is measured: \\u{1b}[2J \\u{9b}\n");
}

#[test]
fn a_full_disk_leaves_the_old_report_and_nothing_beside_it() {
    let scratch = Scratch::new("full");
    let table = table().write(&scratch.0);
    let directory = scratch.0.join("out");
    fs::create_dir(&directory).unwrap();
    for name in ["report.json", "report.html"] {
        let old = directory.join(name);
        fs::write(&old, "the old one").unwrap();
        // no file may be longer than 512 or 1024 bytes
        let script = format!("ulimit -f 1; exec \"$0\" report -o {} {}", old.display(), table.display());
        let output = done(Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_topdown")]));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{:?}: {said}", output.status);
        assert_eq!(
            said,
            format!("topdown: {}: cannot write the report: File too large (os error 27)\n", old.display())
        );
        assert_eq!(fs::read_to_string(&old).unwrap(), "the old one");
    }
    let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    // standard output, too
    for arguments in [&["report", table.to_str().unwrap()][..], &["check"], &["check", "--selftest"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = done(scratch.topdown(arguments).stdout(full));
        assert_eq!(output.status.code(), Some(1));
        let said = "topdown: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!(text(&output.stderr), said, "{arguments:?}");
    }
    // with nowhere to say it, the command's status is still its own
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = scratch.topdown(&["run", "--", "sh", "-c", "exit 7"]).stderr(full).status().unwrap();
    assert_eq!(output.code(), Some(7));
}

#[test]
fn figures_whose_report_cannot_be_written_are_kept() {
    let scratch = Scratch::new("kept");
    let directory = scratch.0.join("out");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("x.csv");
    let script = scratch.leaving(&format!("ls -A {0}; rmdir {0}; exit 3", directory.display()));
    let output =
        done(&mut scratch.topdown(&["run", "-o", file.to_str().unwrap(), "--", "sh", "-c", &script]));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), String::new()));
    let said = text(&output.stderr);
    assert!(said.starts_with(&format!("topdown: no report: {}: cannot write", file.display())), "{said}");
    // the line ends in the command that makes it
    let again = said.split('`').nth(1).unwrap().replace("FILE", scratch.0.join("y.csv").to_str().unwrap());
    let again = again.replacen("topdown", env!("CARGO_BIN_EXE_topdown"), 1);
    assert!(Command::new("sh").args(["-c", &again]).status().unwrap().success());
    assert!(fs::read_to_string(scratch.0.join("y.csv")).unwrap().contains("inner loop"));
}

/// A directory in which nobody may make a file, and a file in it that they may write to.
#[test]
fn a_file_that_cannot_be_replaced_is_written_over() {
    use std::os::unix::process::CommandExt;
    let scratch = Scratch::new("over");
    let (table, directory) = (table().write(&scratch.0), scratch.0.join("out"));
    let program = scratch.0.join("topdown");
    // (what this process writes, a child of another test may have open when it is executed)
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_topdown")).arg(&program).status().unwrap().success());
    fs::create_dir(&directory).unwrap();
    let file = directory.join("x.csv");
    fs::write(&file, "the old one ".repeat(1000)).unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    mode(&file, 0o666);
    mode(&directory, 0o555);
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).env("TMPDIR", "/tmp").env("TOPDOWN_PRELOAD", harmless()).stdin(Stdio::null());
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        done(&mut command)
    };
    let name = file.to_str().unwrap();
    let output = as_nobody(&["run", "-o", name, "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let empty = fs::read_to_string(&file).unwrap();
    assert!(empty.lines().count() == 2 && !empty.contains("the old one"), "{empty}");
    fs::write(&file, "the old one ".repeat(1000)).unwrap();
    let output = as_nobody(&["report", "-o", name, table.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = fs::read_to_string(&file).unwrap();
    assert!(report.starts_with("region,pid,") && !report.contains("the old one"), "{report}");
    let none = directory.join("none.csv");
    let output = as_nobody(&["run", "-o", none.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("none.csv: cannot write the report: Permission denied"));
    mode(&directory, 0o755);
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
        let number = Command::new("kill").args(["-l", signal]).output().unwrap();
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
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    };
    failed(&["stat", "--", "/nowhere/at/all"], 127, "cannot run /nowhere/at/all: No such file");
    failed(&["stat", "--", "/etc/passwd"], 126, "cannot run /etc/passwd: Permission denied");
    failed(
        &["stat", "-o", "/none/x.csv", "--", "true"],
        125,
        "/none/x.csv: cannot write the report: No such file",
    );
}
