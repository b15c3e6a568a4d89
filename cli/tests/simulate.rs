//! TOPDOWN_SIMULATE: `stat`, `record`, `top` and `run` show figures that are made up, and each view says so, whatever its format.

mod running;

use running::{Scratch, harmless, text};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MARK: &str = "SIMULATED: the figures are made up";
/// A program that runs for a while.
const BUSY: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done"];

fn simulated(core: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    command.args(words).env("TOPDOWN_SIMULATE", core).stdin(Stdio::null());
    command
}

/// A text for people, as if no line had an end.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shown(words: &[&str]) -> Output {
    simulated("1", words).output().unwrap()
}

fn of_busy(words: &[&str]) -> Output {
    let output = shown(&[words, &["--"], &BUSY].concat());
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
    output
}

/// Each row of a CSV, whatever separates its fields, ends with what says that it is made up.
fn has_marked_rows(csv: &str, separator: char) -> bool {
    let mut rows = csv.lines();
    let ends = |row: &str, with: &str| row.rsplit(separator).next() == Some(with);
    rows.next().is_some_and(|names| ends(names, "path"))
        && csv.lines().count() > 1
        && rows.all(|row| ends(row, "simulated"))
}

#[test]
fn each_format_of_a_count_says_that_it_is_made_up() {
    let scratch = Scratch::new("simulated-stat");
    let text_of = |words: &[&str]| text(&of_busy(&[&["stat"], words].concat()).stderr);
    for words in [&[][..], &["-I", "10"], &["-r", "2"], &["--td-level", "2"], &["--kernel"]] {
        let text = text_of(words);
        assert!(flat(&text).contains(MARK), "{words:?}: {text}");
    }
    // (rows say it each for itself)
    let rows = text_of(&["-r", "2"]);
    let of_rows: Vec<&str> = rows.lines().skip(2).collect();
    assert!(of_rows.len() == 4 && of_rows.iter().all(|row| row.ends_with("simulated")), "{rows}");
    assert!(text_of(&["-j", "-r", "2"]).lines().all(|row| row.contains(r#""path":"simulated""#)));
    assert!(has_marked_rows(&text_of(&["-x", ";", "-r", "2"]), ';'));
    assert!(has_marked_rows(&text_of(&["--csv"]), ','));
    assert!(text_of(&["--json"]).contains(r#""path": "simulated""#));
    let written = |name: &str, words: &[&str]| {
        let file = scratch.0.join(name);
        of_busy(&[&["stat"], words, &["-o", file.to_str().unwrap()]].concat());
        fs::read(file).unwrap()
    };
    for name in ["report.txt", "report.html", "report.pftrace"] {
        let bytes = written(name, &[]);
        assert!(flat(&String::from_utf8_lossy(&bytes)).contains(MARK), "{name}");
    }
    assert!(has_marked_rows(&text(&written("report.csv", &[])), ','));
    assert!(text(&written("report.json", &[])).contains(r#""path": "simulated""#));
    assert!(text(&written("rows.json", &["-r", "2"])).matches(r#""path":"simulated""#).count() == 4);
    for name in ["timeline.csv", "timeline.json", "timeline.pftrace"] {
        let timeline = scratch.0.join(name);
        written("report.txt", &["--timeline", timeline.to_str().unwrap()]);
        let bytes = fs::read(timeline).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let is_marked =
            text.contains(MARK) || text.contains(r#""path": "simulated""#) || has_marked_rows(&text, ',');
        assert!(is_marked, "{name}");
    }
    // a comparison of such files does, too
    let (csv, json) = (scratch.0.join("report.csv"), scratch.0.join("report.json"));
    let compared = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_topdown"))
            .args(["compare"])
            .args(words)
            .arg(&csv)
            .arg(&json)
            .output();
        text(&output.unwrap().stdout)
    };
    assert!(compared(&[]).contains(MARK) && has_marked_rows(&compared(&["--csv"]), ','));
    let output = scratch.0.join("compared.json");
    compared(&["-o", output.to_str().unwrap()]);
    assert!(fs::read_to_string(output).unwrap().contains(r#""path": "simulated""#));
}

#[test]
fn others_than_a_command_are_counted_too() {
    for whom in ["-p", "-t", "--per-thread -p"] {
        // (until it ends)
        let mut child = Command::new(BUSY[0]).args(&BUSY[1..]).spawn().unwrap();
        let pid = child.id().to_string();
        let words: Vec<&str> = whom.split(' ').chain([pid.as_str()]).collect();
        let output = shown(&[&["stat"], &words[..]].concat());
        child.wait().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success() && flat(&said).contains(MARK), "{whom:?}: {said}");
    }
    for whom in [&["-a"][..], &["-C", "0"], &["-a", "--per-core"]] {
        let said = text(&of_busy(&[&["stat"], whom].concat()).stderr);
        assert!(flat(&said).contains(MARK), "{whom:?}: {said}");
    }
}

#[test]
fn from_outside_a_run_is_made_up_too() {
    for words in [&["run", "--outside"][..], &["run", "--outside", "--td-level", "1"]] {
        let said = text(&of_busy(words).stderr);
        assert!(flat(&said).contains(MARK) && said.contains("counted from outside"), "{said}");
    }
    let scratch = Scratch::new("simulated-run");
    let file = scratch.0.join("run.csv");
    of_busy(&["run", "--outside", "-o", file.to_str().unwrap()]);
    assert!(has_marked_rows(&fs::read_to_string(file).unwrap(), ','));
}

#[test]
fn each_view_of_a_recording_says_that_it_is_made_up() {
    let scratch = Scratch::new("simulated-record");
    let written = |name: &str| {
        let file = scratch.0.join(name);
        of_busy(&["record", "-o", file.to_str().unwrap()]);
        fs::read(file).unwrap()
    };
    for name in ["p.txt", "p.html", "p.svg", "p.pprof", "p.firefox.json"] {
        let bytes = written(name);
        assert!(flat(&String::from_utf8_lossy(&bytes)).contains(MARK), "{name}");
    }
    let folded = text(&written("p.folded"));
    assert!(
        !folded.is_empty() && folded.lines().all(|line| line.starts_with(&format!("{MARK};"))),
        "{folded}"
    );
    assert!(has_marked_rows(&text(&written("p.csv")), ','));
    let json = scratch.0.join("p.json");
    let document: serde_json::Value = serde_json::from_slice(&written("p.json")).unwrap();
    assert_eq!(document["path"], "simulated");
    assert!(document["remarks"][0].as_str().unwrap().starts_with(MARK));
    for words in [
        &["record", "--ptrace", "--lines"][..],
        &["record", "--kernel"],
        &["record", "--td-level", "1"],
        &["record", "--call-graph", "dwarf"],
    ] {
        let said = text(&of_busy(words).stderr);
        assert!(flat(&said).contains(MARK), "{words:?}: {said}");
    }
    let json = json.to_str().unwrap();
    assert!(text(&shown(&["compare", json, json]).stdout).contains(MARK));
    assert!(has_marked_rows(&text(&shown(&["compare", "--csv", json, json]).stdout), ','));
}

#[test]
fn each_sample_that_is_scraped_says_that_it_is_made_up() {
    let words = ["stat", "--open-metrics", "0", "--", "sh", "-c", "while :; do :; done"];
    let mut child = simulated("1", &words).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_string();
    let page = loop {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        if page.contains("topdown_slots") {
            break page;
        }
    };
    // SAFETY: a system call.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    child.wait().unwrap();
    let (_, body) = page.split_once("\r\n\r\n").unwrap();
    let samples: Vec<&str> = body.lines().filter(|line| line.starts_with("topdown")).collect();
    assert!(samples.len() > 5 && body.contains(MARK));
    assert!(samples.iter().all(|sample| sample.contains("path=\"simulated\"")), "{body}");
}

#[test]
fn what_is_simulated_is_not_measured() {
    for words in [
        &["stat", "--require", "slots", "true"][..],
        &["stat", "--require", "1", "true"],
        &["record", "--require", "slots", "true"],
        &["run", "--outside", "--require", "slots", "true"],
    ] {
        let output = shown(words);
        assert_eq!(output.status.code(), Some(123), "{words:?}");
        assert!(
            text(&output.stderr).contains("--require: no slots are measured: they are simulated"),
            "{words:?}"
        );
    }
}

#[test]
fn what_no_simulated_pmu_has_is_refused_before_anything_runs() {
    let file = "-o/tmp/p.recording";
    for (words, option) in [
        (&["stat", "--drill"][..], "--drill"),
        (&["stat", "--nodes", "l1_bound"], "--nodes"),
        (&["stat", "--metrics", "ipc"], "--metrics"),
        (&["stat", "--record-tpebs"], "--record-tpebs"),
        (&["stat", "--per-thread"], "--per-thread"),
        (&["stat", "--per-process"], "--per-process"),
        (&["stat", "--subtree", "retiring"], "subtree"),
        (&["record", "--drill"], "--drill"),
        (&["record", "--where", "ipc<1"], "--where"),
        (&["record", "--locate", "l1_bound"], "--locate"),
        (&["record", file], ".recording"),
        (&["run", "--outside", "--drill"], "--drill"),
    ] {
        let output = shown(&[words, &["echo", "ran"]].concat());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{words:?}: {said}");
        assert!(said.contains(option) && said.lines().count() == 1, "{words:?}: {said}");
    }
    assert!(!Path::new("/tmp/p.recording").exists());
    for subcommand in ["stat", "record"] {
        let output = simulated("Gracemnt", &[subcommand, "echo", "ran"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{said}");
        assert!(
            ["TOPDOWN_SIMULATE", "'Gracemnt'", "Gracemont", "Zen 4", "made-up core"]
                .iter()
                .all(|word| said.contains(word)),
            "{said}"
        );
        // (it has registers alone)
        let said = text(&simulated("Panther Cove", &[subcommand, "echo", "ran"]).output().unwrap().stderr);
        assert!(said.contains("TOPDOWN_SIMULATE: no general-purpose counters of Panther Cove"), "{said}");
    }
}

#[test]
fn the_command_is_as_without() {
    for subcommand in ["stat", "record"] {
        let output = shown(&[subcommand, "sh", "-c", "echo out; exit 3"]);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"out\n"[..]), "{subcommand}");
        let sorted = |text: String| {
            let mut lines: Vec<String> = text.lines().map(String::from).collect();
            lines.sort();
            lines
        };
        let alone = Command::new("env").env("TOPDOWN_SIMULATE", "1").output().unwrap();
        assert_eq!(
            sorted(text(&shown(&[subcommand, "env"]).stdout)),
            sorted(text(&alone.stdout)),
            "{subcommand}"
        );
    }
    for off in ["", "0"] {
        let output = simulated(off, &["stat", "true"]).output().unwrap();
        assert!(!text(&output.stderr).contains("SIMULATED"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_core_is_simulated_by_its_name() {
    for core in ["Golden or Raptor Cove", "Zen 4", "Neoverse N3", "Golden or Raptor Cove and Gracemont"] {
        for subcommand in ["stat", "record"] {
            let words: Vec<&str> = [&[subcommand, "--"], &BUSY[..]].concat();
            let output = simulated(core, &words).output().unwrap();
            let said = text(&output.stderr);
            assert!(
                output.status.success() && flat(&said).contains(MARK) && flat(&said).contains(core),
                "{said}"
            );
        }
    }
}

/// A step of what is made up is made up, too; and a shell takes the command as it was given.
#[test]
fn what_to_run_next_is_simulated_and_quoted() {
    let output = simulated("Zen 5", &[&["stat", "--"], &BUSY[..]].concat()).output().unwrap();
    let said = text(&output.stderr);
    let step = said.lines().map(str::trim).find(|line| line.contains("topdown record --lines")).unwrap();
    assert!(step.starts_with("TOPDOWN_SIMULATE='Zen 5' topdown record --lines -- sh -c 'i=0;"), "{said}");
    let command = step.split_once(" #").map_or(step, |(command, _)| command);
    let script = format!("topdown() {{ printf '%s|' \"$@\"; }}; {command}");
    let words = text(&Command::new("sh").args(["-c", &script]).output().unwrap().stdout);
    assert_eq!(words, format!("record|--lines|--|{}|", BUSY.join("|")));
}

/// A file that was asked for is there, and says why it shows nothing.
#[test]
fn a_timeline_of_nothing_is_written_and_says_why() {
    let scratch = Scratch::new("no-timeline");
    for (name, option) in [("x.pftrace", "-o"), ("y.pftrace", "--timeline"), ("y.json", "--timeline")] {
        let file = scratch.0.join(name);
        let words = ["run", option, file.to_str().unwrap(), "--", "true"];
        let output = simulated("1", &words).env("TOPDOWN_PRELOAD", harmless()).output().unwrap();
        let (said, written) = (flat(&text(&output.stderr)), fs::read(&file).unwrap_or_default());
        assert!(output.status.success() && said.contains("is empty: nothing was counted"), "{said}");
        assert!(String::from_utf8_lossy(&written).contains("nothing was counted"), "{name}: {said}");
    }
}
