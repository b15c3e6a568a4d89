//! docs/guide.md: its commands run, on its own programs, and find what it says that they find. (Those on a machine with counters are tested by
//! what tests their options; here each is to end as the program does.)

mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const GUIDE: &str = include_str!("../../docs/guide.md");
/// Lines of the guide that are to be typed begin with this.
const PROMPT: &str = "    $ ";
/// Of each program, the function in which its trouble is, or where in user mode it waits for the kernel.
const TROUBLE: [(&str, &str); 5] = [
    ("mispredicts", "count_large"),
    ("memory", "sum_matrix"),
    ("core", "divide_often"),
    ("sharing", "count_alone"),
    ("kernel", "(libc.so.6)"),
];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/guide")
}

fn commands() -> Vec<&'static str> {
    GUIDE.lines().filter_map(|line| line.strip_prefix(PROMPT)).collect()
}

/// A directory with the examples in it, and `topdown` before all other programs.
struct Workshop(PathBuf);

impl Workshop {
    fn new() -> Workshop {
        let place = env::temp_dir().join(format!("topdown-guide-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        for file in fs::read_dir(examples()).unwrap().map(|file| file.unwrap().path()) {
            fs::copy(&file, place.join(file.file_name().unwrap())).unwrap();
        }
        Workshop(place)
    }

    /// A line of a shell that goes on where the last one ended.
    fn typed(&self, line: &str) -> Output {
        let own = Path::new(env!("CARGO_BIN_EXE_topdown")).parent().unwrap().to_path_buf();
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([own].into_iter().chain(env::split_paths(&others))).unwrap();
        let mut shell = Command::new("sh");
        // (the library need not be built for this: what it would measure is made up)
        shell.env("TOPDOWN_PRELOAD", running::harmless());
        shell.args(["-ec", line]).current_dir(&self.0).env("PATH", path).stdin(Stdio::null());
        shell.output().unwrap()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Whether anything can be sampled here: a container may have no perf_event_open.
fn can_sample(workshop: &Workshop) -> bool {
    let text = said(
        &workshop.typed("topdown record -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'"),
    );
    let can = !text.contains("nothing is recorded");
    if !can {
        eprintln!("nothing can be sampled here, and nothing is tested: {text}");
    }
    can
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn without_remark(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim_end()
}

/// The commands whose output is compared here, as the table says.
fn compared() -> BTreeSet<String> {
    let table = fs::read_to_string(root().join("c-tests/pages")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    let is_here = |pair: &&[&str]| pair[0].starts_with("docs/guide.md cli/tests/guide.rs");
    let command = |pair: &[&str]| pair[1].strip_prefix("  $ ").unwrap().to_string();
    lines.windows(2).filter(is_here).map(command).collect()
}

/// What the guide shows of this command is what it wrote (tools/shown compares them); where time alone can be told, as on the guide's machine.
fn is_as_shown(line: &str, text: &str) {
    let of = without_remark(line);
    if !compared().contains(of) {
        return;
    }
    let tool = root().join("c-tests/tools/shown");
    let mut command = Command::new("python3");
    command.arg(tool).args(["compare", "docs/guide.md", of]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return eprintln!("SKIP: python3 is not installed") };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// The first function below "(all)" of a profile.
fn first_function(text: &str) -> Option<&str> {
    let mut lines = text.lines().skip_while(|line| !line.ends_with("(all)"));
    lines.nth(1)?.split("   ").last()
}

#[test]
fn each_program_has_a_command_and_each_command_is_of_a_program() {
    let files: Vec<PathBuf> = fs::read_dir(examples()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), TROUBLE.len());
    let typed: BTreeSet<String> = commands().into_iter().map(|line| without_remark(line).into()).collect();
    assert!(!compared().is_empty() && compared().is_subset(&typed), "{:?}", compared().difference(&typed));
    for (name, _) in TROUBLE {
        let source = fs::read_to_string(examples().join(name).with_extension("c")).unwrap();
        assert!(source.contains("#ifdef FIXED"), "{name}");
        assert!(
            commands()
                .iter()
                .any(|line| line.contains("topdown record") && line.contains(&format!("./{name}"))),
            "{name}"
        );
    }
}

#[test]
fn the_commands_of_the_guide_run_and_find_what_it_says() {
    let workshop = Workshop::new();
    if !can_sample(&workshop) {
        return;
    }
    let trouble = BTreeMap::from(TROUBLE);
    let is_as_the_guides = said(&workshop.typed("topdown check")).contains("has no PMU");
    for line in commands() {
        let output = workshop.typed(line);
        let text = said(&output);
        // (where there are no counters, that is what it says)
        let is_check = line.starts_with("topdown check");
        assert!(is_check || output.status.success(), "{line}: {}\n{text}", output.status);
        if is_as_the_guides {
            is_as_shown(line, &text);
        }
        let is_of_before =
            line.starts_with("topdown record -- ") || line.starts_with("topdown record --lines -- ");
        let of = line.rsplit("./").next().and_then(|name| trouble.get(name)).filter(|_| is_of_before);
        if let Some(function) = of {
            assert!(
                first_function(&text).is_some_and(|first| first.contains(function)),
                "{line}: not {function}\n{text}"
            );
        }
    }
}
