//! What a user types at a terminal is the command's: Ctrl-Z, fg, the window's size, lines, Ctrl-C.

use std::process::{Command, Stdio};

const SESSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal/session.py");

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
        command.arg(SESSION).args(under).stdin(Stdio::null());
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
