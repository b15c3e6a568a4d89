//! What tests of `topdown run` and `topdown report` share: tables that nobody measured, and a command whose surroundings are known.
#![allow(dead_code)] // each test takes a part of it

#[path = "../../../report/tests/made/mod.rs"]
pub mod made;

pub use made::{Scratch, TableContent, ran};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A shell that runs us in the background has us ignore SIGINT and SIGQUIT; nohup(1), SIGHUP.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
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
    pub fn topdown(&self, arguments: &[&str]) -> Command {
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
    pub fn is_clean(&self) -> bool {
        fs::read_dir(self.0.join("tmp")).unwrap().next().is_none()
    }

    /// A shell script that leaves the table of a process that ran.
    pub fn leaving(&self, then: &str) -> String {
        let table = table().write(&self.0);
        format!("cp {} \"${{TOPDOWN_OUTPUT%.topdown}}.10.0.topdown\"; {then}", table.display())
    }
}

/// A library that is loaded anyway: here it stands for the one that measures.
pub fn harmless() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libc =
        maps.lines().find_map(|line| line.split_whitespace().last().filter(|path| path.contains("/libc.")));
    libc.expect("this test is linked to libc").into()
}

pub fn table() -> TableContent {
    let mut made = TableContent::new(10, "leaving a table");
    let root = made.thread("main", ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    made.region("inner loop", root, ran(600, [10, 5, 5, 80], [5, 5, 5, 70], 6).sum());
    made
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn done(command: &mut Command) -> Output {
    command.output().unwrap()
}
