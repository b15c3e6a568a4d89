//! At a terminal: what a user types is the command's (Ctrl-Z, fg, the window's size, lines, Ctrl-C), and what is written is as wide.

mod running;

use running::{Scratch, ran, table, with_default_signals};
use std::process::{Command, Stdio};
use topdown_report::terminal::columns;

const SESSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal/session.py");
const SHOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal/shown.py");

/// The session without `topdown` in front (it has to be right itself), and with it.
#[test]
fn the_terminal_is_the_commands() {
    let scratch = std::env::temp_dir().join(format!("topdown-terminal-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let report = scratch.join("r.csv");
    let under =
        |subcommand| [env!("CARGO_BIN_EXE_topdown"), subcommand, "-o", report.to_str().unwrap(), "--"];
    let (run, stat) = (under("run"), under("stat"));
    for under in [&[][..], &run, &stat] {
        let mut command = Command::new("python3");
        // (a shell has jobs in the background ignore SIGINT, and all that these start)
        with_default_signals(command.arg(SESSION).args(under).stdin(Stdio::null()));
        // (any library that is loaded anyway stands for the one that measures)
        command.env("TOPDOWN_PRELOAD", libc()).env("TOPDOWN_SIMULATE", "1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{under:?}: {said}");
    }
    assert!(report.exists());
    std::fs::remove_dir_all(scratch).unwrap();
}

fn libc() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().last());
    paths
        .filter(|path| path.contains("/libc."))
        .map(String::from)
        .next()
        .expect("this test is linked to libc")
}

/// What `topdown` writes to a terminal of 80 columns.
fn shown(scratch: &Scratch, words: &[&str], variables: &[(&str, &str)]) -> String {
    let of_topdown = scratch.topdown(words);
    let mut command = Command::new("python3");
    command.args([SHOWN, "80"]).arg(of_topdown.get_program()).args(words).stdin(Stdio::null());
    let set = of_topdown.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(set).env("TERM", "xterm").env_remove("LD_PRELOAD").env_remove("NO_COLOR");
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const PLAIN: [(&str, &str); 1] = [("NO_COLOR", "1")];

/// Without colours; no line is wider than the terminal, unless it is a word, or a command, whose words a line's end would part.
fn fitting(scratch: &Scratch, words: &[&str]) -> String {
    let text = shown(scratch, words, &PLAIN);
    assert!(!text.is_empty() && !text.contains('\x1b'), "{words:?}: {text:?}");
    for line in text.lines() {
        let is_one = !line.trim().contains(' ') || line.starts_with("  TOPDOWN_SIMULATE=1 topdown ");
        assert!(columns(line) <= 80 || is_one, "{words:?}: {line}");
    }
    text
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let scratch = Scratch::new("width");
    let subcommands = ["check", "list", "stat", "record", "top", "run", "report", "compare", "demo"];
    for subcommand in subcommands {
        let help = fitting(&scratch, &[subcommand, "--help"]);
        assert!(help.contains("Usage: topdown"), "{help}");
    }
    for words in [
        &["--help"][..],
        &["list"],
        &["list", "--nodes"],
        &["list", "--metrics"],
        &["check"],
        &["stat", "-e", "cycles", "true"],
        &["stat", "-p", "2147483647"],
        &["record", "-F", "4000", "true"],
        &["record", "-o", "/nowhere/at/all/in/a/directory/that/is/not/there/profile.json", "true"],
    ] {
        fitting(&scratch, words);
    }
}

#[test]
fn a_report_is_as_wide_as_the_terminal() {
    let scratch = Scratch::new("report-width");
    let mut made = table();
    let root = made.thread("a worker with a name", ran(900, [10, 20, 30, 40], [5, 10, 15, 20], 10).sum());
    let name =
        |of: &str| format!("llvm::InlineFunctionImpl(llvm::CallBase&, llvm::{of}&, bool, llvm::Function*)");
    for of in ["InlineFunctionInfo", "InlineFunctionOver"] {
        made.region(&name(of), root, ran(300, [10, 5, 5, 80], [5, 5, 5, 70], 6).sum());
    }
    let file = made.write(&scratch.0);
    let file = file.to_str().unwrap();
    let text = fitting(&scratch, &["report", file]);
    // (rows have their columns apart)
    assert!(text.contains("retiring    bad speculation  frontend bound  backend bound  within\n"), "{text}");
    // (both regions, told apart in the overview)
    let overview: Vec<&str> =
        text.lines().filter(|line| line.starts_with("llvm::") && line.contains('…')).collect();
    assert!(overview.len() == 2 && overview[0].split(' ').next() != overview[1].split(' ').next(), "{text}");
    let scratch_file = scratch.0.join("r.csv");
    let file_name = scratch_file.to_str().unwrap();
    let script = scratch.leaving("");
    let text = fitting(&scratch, &["run", "--", "sh", "-c", &script]);
    assert!(text.contains("inner loop"), "{text}");
    // (which file was written, with its name as it is)
    let pattern = scratch.0.join("%n.json");
    let said = fitting(&scratch, &["run", "-o", pattern.to_str().unwrap(), "--", "sh", "-c", &script]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said, format!("topdown: report written to {}", scratch.0.join("sh.json").display()));
    for (output, words) in [("x.csv", &["report"][..]), ("y.csv", &["compare", file])] {
        let output = scratch.0.join(output);
        let words: Vec<&str> =
            [&words[..1], &["-o", output.to_str().unwrap()], &words[1..], &[file]].concat();
        let said = fitting(&scratch, &words).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.ends_with(&format!("written to {}", output.display())), "{said}");
    }
    fitting(&scratch, &["compare", file, file]);
    let rows = fitting(&scratch, &["stat", "-x", ",", "-o", file_name, "true"]);
    assert!(rows.contains("written to") || rows.contains("nothing is measured"), "{rows}");
}

#[test]
fn the_screen_of_made_up_figures_says_so() {
    let scratch = Scratch::new("top-simulated");
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
    let screen = shown(&scratch, &["top", "-I", "50", "--", "sh", "-c", busy], &PLAIN);
    assert!(screen.contains("SIMULATED: the figures are made up"), "{screen:?}");
    assert!(screen.contains("all of it"), "{screen:?}");
}

/// What is recorded of nothing.
const RECORDING: &str = r#"{"recording":{"version":3,"command":"COMMAND","occasion":"","settings":{"frequency":500,"gap":1000,"budget":0.01,"kernel":false,"callers":"frame_pointers"},"cores":[]}}
"#;

#[test]
fn what_takes_a_while_says_so_until_it_is_done() {
    let scratch = Scratch::new("progress");
    let file = scratch.0.join("a.recording");
    std::fs::write(&file, RECORDING).unwrap();
    let words = ["record", "--from", file.to_str().unwrap()];
    let text = shown(&scratch, &words, &PLAIN);
    let (line, rest) = text.split_once("\x1b8\x1b[J").expect("it is erased");
    assert_eq!(line, "\x1b7topdown: making the profile...");
    assert!(rest.starts_with("topdown: COMMAND") && !rest.contains('\x1b'), "{text:?}");
    assert_eq!(shown(&scratch, &words, &[("TERM", "dumb")]), rest);
}

#[test]
fn headings_are_bold_unless_nobody_wants_that() {
    let scratch = Scratch::new("colours");
    let file = table().write(&scratch.0);
    let words = ["report", file.to_str().unwrap()];
    let bold = shown(&scratch, &words, &[]);
    assert!(bold.starts_with("\x1b[1mtopdown: "), "{bold:?}");
    let plain = shown(&scratch, &words, &PLAIN);
    assert!(plain.starts_with("topdown: ") && !plain.contains('\x1b'), "{plain:?}");
    assert_eq!(shown(&scratch, &words, &[("TERM", "dumb")]), plain);
    let mut piped = scratch.topdown(&words);
    let piped = String::from_utf8(piped.output().unwrap().stdout).unwrap();
    assert!(!piped.contains('\x1b') && piped.lines().any(|line| columns(line) > 80), "{piped}");
}
