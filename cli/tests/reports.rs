//! `topdown report`, with table files that nobody measured, and where reports are written.

mod running;

use running::*;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

/// (What is kept of each is some 25 KB, where its table and sums have ten times as much; and JSON tells of those with the most time.)
#[test]
fn thousands_of_files_in_a_directory_are_merged_in_little_memory() {
    const FILES: usize = 2000;
    let scratch = Scratch::new("many");
    let tables = scratch.0.join("tables");
    fs::create_dir(&tables).unwrap();
    for pid in 10..10 + FILES as i32 {
        let mut table = TableContent::new(pid, "rank");
        let thread = table.thread("rank", ran(5000, [50, 10, 10, 30], [10, 5, 5, 20], 0).sum());
        for region in 0..5 {
            let name = format!("region {region}");
            table.region(&name, thread, ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 0).sum());
        }
        table.write(&tables);
    }
    let report = |ending: &str| {
        let file = scratch.0.join(format!("report.{ending}"));
        let topdown = env!("CARGO_BIN_EXE_topdown");
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 200000; exec \"$0\" report -o \"$1\" \"$2\"", topdown]);
        let output = done(command.args([&file, &tables]));
        assert_eq!(output.status.code(), Some(0), "{ending}: {output:?}");
        fs::read_to_string(&file).unwrap()
    };
    let json = report("json");
    assert!(json.len() < 40_000_000, "{} bytes", json.len());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["whole"]["inclusive"]["slots"], 5000 * FILES);
    let told = json["processes"].as_array().unwrap().len();
    assert_eq!((told, json["processes_left_out"].as_u64().unwrap()), (1500, FILES as u64 - 1500));
    let threads = |region: &serde_json::Value| region["threads"].as_array().unwrap().len();
    assert_eq!(json["regions"].as_array().unwrap().iter().map(threads).sum::<usize>(), 3000 - 5);
    assert_eq!(report("csv").lines().count(), 1 + 1 + FILES * 7 + 5);
    assert!(report("html").len() < 3_000_000 && report("txt").contains("(2000 processes"));
    let output = done(&mut scratch.topdown(&["report", "/sys/kernel"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/sys/kernel: no table file (*.topdown) is in this directory"));
}

#[test]
fn a_process_counts_once_whatever_names_its_table_has() {
    let scratch = Scratch::new("once");
    let tables = scratch.0.join("tables");
    fs::create_dir(&tables).unwrap();
    for pid in [10, 11] {
        let mut table = TableContent::new(pid, "solve");
        let thread = table.thread("solve", ran(5000, [50, 10, 10, 30], [10, 5, 5, 20], 0).sum());
        table.region(" ", thread, ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 0).sum());
        table.write(&tables);
    }
    let first = fs::read_dir(&tables).unwrap().next().unwrap().unwrap().path();
    let copy = scratch.0.join("copy.topdown");
    fs::copy(&first, &copy).unwrap();
    std::os::unix::fs::symlink(&first, scratch.0.join("link.topdown")).unwrap();
    let mut command = scratch.topdown(&["report", "-o", "r.json", "copy.topdown", "link.topdown", "tables"]);
    let output = done(command.current_dir(&scratch.0));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.matches("is of the same process as").count(), 2, "{said}");
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(scratch.0.join("r.json")).unwrap()).unwrap();
    assert_eq!(json["whole"]["inclusive"]["slots"], 10_000);
    assert_eq!(json["processes"].as_array().unwrap().len(), 2);
    // (no name would mean all that ran)
    assert_eq!(json["regions"][0]["name"], "(blank)");
}

#[test]
fn processes_that_ended_in_their_first_moments_do_not_keep_the_others_from_a_report() {
    let scratch = Scratch::new("begun");
    let good = table().write(&scratch.0);
    let [empty, zeros] = ["empty.topdown", "zeros.topdown"].map(|name| scratch.0.join(name));
    fs::write(&empty, "").unwrap();
    fs::write(&zeros, [0; 8192]).unwrap();
    for file in [&empty, &zeros] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let [good, empty, zeros] = [&good, &empty, &zeros].map(|path| path.to_str().unwrap());
    let output = done(&mut scratch.topdown(&["report", empty, good, zeros]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("inner loop"), "{output:?}");
    let said = text(&output.stderr);
    for file in [empty, zeros] {
        assert!(said.contains(&format!("{file} is empty")), "{said}");
    }
    assert_eq!(said.lines().count(), 2, "{said}");
    let output = done(&mut scratch.topdown(&["report", empty, zeros]));
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("no table file"), "{output:?}");
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
    let mut made = TableContent::new(10, "hostile");
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

/// All have begun before one of them ends, and name one file.
#[test]
fn sixty_four_commands_with_one_name_leave_as_many_reports() {
    const COMMANDS: usize = 64;
    for (subcommand, old) in [("stat", true), ("run", false), ("record", false)] {
        let scratch = Scratch::new("collisions");
        let reports = scratch.0.join("reports");
        fs::create_dir(&reports).unwrap();
        let file = reports.join("same.json");
        if old {
            fs::write(&file, "the old one").unwrap();
        }
        let words = [subcommand, "-o", file.to_str().unwrap(), "--", "sh", "-c", "echo; read line"];
        let mut begun: Vec<Child> = Vec::new();
        for _ in 0..COMMANDS {
            let mut command = scratch.topdown(&words);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            begun.push(command.spawn().unwrap());
        }
        for child in &mut begun {
            let mut byte = [0];
            child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        }
        begun.iter_mut().for_each(|child| drop(child.stdin.take()));
        let said: Vec<String> =
            begun.into_iter().map(|child| text(&child.wait_with_output().unwrap().stderr)).collect();
        let written = fs::read_dir(&reports).unwrap().count();
        assert_eq!(written, COMMANDS, "{subcommand}: {said:?}");
        let others = said.iter().filter(|said| said.contains("was written by another command meanwhile"));
        assert_eq!(others.count(), COMMANDS - 1, "{subcommand}: {said:?}");
    }
}
