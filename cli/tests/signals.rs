//! Signals while `topdown run` or `topdown stat` runs a command.

mod running;

use running::*;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

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
    // (of two that come at once the handlers may run in either order)
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: it sends a signal to a child that is not waited for yet.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        assert_eq!(lines.next(), Some(signal.to_string()));
    }
    assert_eq!(lines.next(), None);
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
