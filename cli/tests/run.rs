//! `topdown run` and `topdown report`, with table files that nobody measured.

#[path = "../../report/tests/made/mod.rs"]
mod made;

use made::{Made, ran};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of the test's own, in which temporary files are made, too.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("topdown-cli-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("tmp")).unwrap();
        Scratch(path)
    }

    fn topdown(&self, arguments: &[&str]) -> Command {
        // A shell that runs us in the background has us ignore SIGINT.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_topdown")])
            .args(arguments)
            .env("TMPDIR", self.0.join("tmp"))
            .env("TOPDOWN_PRELOAD", harmless());
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

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
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
    assert!(
        said.starts_with("err\ntopdown: leaving a table") && said.contains("memory bound: 70 %"),
        "{said}"
    );
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
    assert_eq!(preload, format!("{}:libm.so.6", harmless().display()));
    assert_eq!(regions, "libm.so.6:exp");
    let file = Path::new(file);
    assert!(file.starts_with(scratch.0.join("tmp")) && file.ends_with("run.topdown"), "{shown}");
}

#[test]
fn the_ending_chooses_the_format() {
    let scratch = Scratch::new("formats");
    for (ending, begins) in
        [("csv", "region,pid,"), ("json", "{"), ("html", "<!doctype html>"), ("txt", "topdown: ")]
    {
        let file = scratch.0.join(format!("report.{ending}"));
        let name = file.to_str().unwrap();
        let output = done(&mut scratch.topdown(&["run", "-o", name, "--", "sh", "-c", &scratch.leaving("")]));
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        let report = fs::read_to_string(&file).unwrap();
        assert!(report.starts_with(begins) && report.contains("inner loop"), "{report}");
    }
    let output = done(&mut scratch.topdown(&["run", "-o", "x.topdown", "--", "echo"]));
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
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
    failed(&["run", "-o", "/none/x.csv", "--", "true"], 125, "cannot write /none/x.csv");
    failed(&["run", "--", "true"], 0, "nothing was measured: ");
    let output =
        done(scratch.topdown(&["run", "true"]).env_remove("TOPDOWN_PRELOAD").env("TMPDIR", "/nowhere"));
    assert_eq!(output.status.code(), Some(125), "neither the library nor a directory");
    let report = scratch.0.join("report.csv");
    failed(&["run", "-o", report.to_str().unwrap(), "--", "true"], 0, "nothing was measured: ");
    assert!(!report.exists(), "an empty report is none");
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
