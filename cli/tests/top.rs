//! `topdown top` where there is no terminal.

use std::process::{Command, Stdio};

#[test]
fn without_a_terminal_it_names_what_writes_rows() {
    for arguments in [&["top"][..], &["top", "-a"], &["top", "--", "echo", "ran"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{said}");
        assert!(said.contains("not a terminal") && said.contains("topdown stat -I"), "{said}");
    }
}
