//! `topdown demo`: each view is shown and says that its figures are made up, and docs/demo.md shows what it writes.

mod running;

use running::{Scratch, text};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../docs/demo.md");
const MARK: &str = "SIMULATED: the figures are made up";
/// The program's functions, and the node of level 1 that each has most of.
const FUNCTIONS: [(&str, &str); 3] =
    [("follow_links", "tma_backend_bound"), ("count_odd", "tma_bad_speculation"), ("sum", "tma_retiring")];

/// What it writes, without the library of `topdown run`.
fn demo(arguments: &[&str]) -> String {
    let output = without_library(arguments).output().unwrap();
    let shown = text(&output.stdout);
    assert!(output.status.success() || shown.contains("nothing is recorded"), "{}", text(&output.stderr));
    shown
}

fn without_library(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    command.arg("demo").args(arguments).stdin(Stdio::null());
    command.env("TOPDOWN_PRELOAD", "/nowhere").env_remove("TOPDOWN_SIMULATE");
    command
}

/// Units, and what stands before a time that is too short to be told.
const OF_NUMBERS: [&str; 8] = ["G", "M", "s", "ms", "us", "s,", "ms,", "under"];

/// What of a line is the same whenever it is written: its words, and the shares of the whole, which are the core's.
fn words(line: &str) -> String {
    let all = line.split_whitespace();
    if line.trim_start().starts_with("level ") {
        return all.collect::<Vec<_>>().join(" ");
    }
    let is_word = |word: &&str| {
        let name = word.trim_matches(['(', ')']);
        !OF_NUMBERS.contains(&name) && word.chars().all(|c| c.is_alphabetic() || "_-:,()".contains(c))
    };
    all.filter(is_word).collect::<Vec<_>>().join(" ")
}

/// Parts of a text, each with the command that made it.
fn parts(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut parts: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), parts.last_mut()) {
            (Some(command), _) => parts.push((command.into(), Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    parts
}

#[test]
fn the_page_shows_what_the_command_writes() {
    let scratch = Scratch::new("demo");
    let directory = scratch.0.join("views");
    let shown = demo(&[directory.to_str().unwrap()]);
    assert!(shown.matches(MARK).count() >= 2, "{shown}");
    if shown.contains("nothing is recorded") {
        return eprintln!("nothing can be sampled here, and nothing is tested: {shown}");
    }
    // (code is indented, and of what is shown a part left out)
    let page: Vec<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let page = page.join("\n");
    let (written, shown_parts) = (parts(&page), parts(&shown));
    let of = |command: &str| shown_parts.iter().find(|(other, _)| other == command);
    // (the library of `topdown run` need not be built for this)
    let is_shown =
        |command: &str| ["topdown stat", "topdown record"].iter().any(|of| command.starts_with(of));
    for (command, lines) in written.iter().filter(|(command, _)| is_shown(command)) {
        let (_, own) = of(command).unwrap_or_else(|| panic!("{command:?} is not shown: {shown}"));
        let own: BTreeSet<String> = own.iter().map(|line| words(line)).collect();
        // (of a recording, what is sampled differs from run to run: the functions and what is made up of them do not)
        let is_of_record = command.starts_with("topdown record");
        let is_of_machine = |line: &str| line.starts_with("20"); // when it was, and where
        let is_told = |line: &&&str| {
            !is_of_record && !is_of_machine(line)
                || FUNCTIONS.iter().any(|(name, _)| line.ends_with(&format!("work::{name} (topdown)")))
        };
        for line in lines.iter().filter(is_told).filter(|line| !words(line).is_empty()) {
            assert!(own.contains(&words(line)), "{command}: {line:?} is not among {own:#?}");
        }
    }
    for (command, _) in &shown_parts {
        assert!(written.iter().any(|(other, _)| other == command), "{command:?} is not on the page");
    }
    let files: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 12);
    for name in &files {
        let bytes = fs::read(directory.join(name)).unwrap();
        let content = String::from_utf8_lossy(&bytes);
        let flat = content.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(MARK) || flat.contains("simulated"), "{name}");
        assert!(shown.contains(&format!("{name}: ")) && PAGE.contains(&format!("`{name}`")), "{name}");
    }
    let profile: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.join("record.json")).unwrap()).unwrap();
    for (name, most) in FUNCTIONS {
        let functions = profile["functions"].as_array().unwrap();
        let function =
            functions.iter().find(|one| one["name"] == format!("topdown::demo::work::{name}")).unwrap();
        let share = |node: &str| function["own"]["shares"][node]["value"].as_f64().unwrap();
        for node in ["tma_retiring", "tma_bad_speculation", "tma_frontend_bound", "tma_backend_bound"] {
            assert!(share(node) <= share(most), "{name}: {function}");
        }
    }
}

#[test]
fn where_it_cannot_write_it_says_so() {
    let scratch = Scratch::new("demo-refused");
    let file = scratch.0.join("file");
    fs::write(&file, "").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    let output = command.arg("demo").arg(&file).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(text(&output.stderr).starts_with("topdown: demo: "), "{}", text(&output.stderr));
    // (what stands where a file is to be cannot be replaced by one)
    let taken = scratch.0.join("views/stat.json/is");
    fs::create_dir_all(&taken).unwrap();
    let output = without_library(&[scratch.0.join("views").to_str().unwrap()]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("stat.json (") && !said.contains("stat.csv ("), "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    let output = command.arg("demo").env("TOPDOWN_SIMULATE", "Gracemnt").output().unwrap();
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("'Gracemnt'"));
}
