//! `-o FIFO`: its reader is waited for, until a signal that ends comes.

mod running;

use running::*;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

const REPORT: &str = "region,pid,executions,slots,time_ns,retiring,error_1\n,,1,2,3,0.5,0.1\n";

const RECORDING: &str = r#"{"recording":{"version":3,"command":"COMMAND","occasion":"","settings":{"frequency":500,"gap":1000,"budget":0.01,"kernel":false,"callers":"frame_pointers"},"cores":[]}}
"#;

/// In a directory with these files and FIFOs of several endings.
fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::write(scratch.0.join("a.csv"), REPORT).unwrap();
    fs::write(scratch.0.join("a.recording"), RECORDING.replace("COMMAND", &"a".repeat(200_000))).unwrap();
    for fifo in ["fifo.txt", "fifo.html"] {
        assert!(Command::new("mkfifo").arg(scratch.0.join(fifo)).status().unwrap().success());
    }
    scratch
}

/// Begins a command that is to write there.
fn begin(scratch: &Scratch, arguments: &str) -> (Child, BufReader<ChildStderr>) {
    let mut command = scratch.topdown(&arguments.split_whitespace().collect::<Vec<_>>());
    let mut child =
        command.current_dir(&scratch.0).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    (child, said)
}

const WAITS: &str = ": waiting for somebody to read this FIFO";

/// What it says after it has been told to end while it waits.
fn ended_by(signal: i32, (mut child, mut said): (Child, BufReader<ChildStderr>)) -> String {
    let mut line = String::new();
    while !line.contains(WAITS) {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it did not wait");
    }
    let asked = Instant::now();
    // SAFETY: it sends a signal to a child that is not waited for yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    while child.try_wait().unwrap().is_none() {
        if asked.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(asked.elapsed() < Duration::from_secs(10), "signal {signal} did not end it: {rest}");
    rest
}

const COMMANDS: [&str; 5] = [
    "record --from a.recording -o fifo.txt",
    "stat -o fifo.txt -- true",
    "stat -I 100 -o fifo.txt -- true",
    "run -o fifo.txt -- true",
    "compare -o fifo.txt a.csv a.csv",
];

#[test]
fn a_signal_ends_the_wait_for_a_reader_and_the_file_is_named() {
    let scratch = scratch("unread");
    for arguments in COMMANDS {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let said = ended_by(signal, begin(&scratch, arguments));
            let why = "fifo.txt: cannot write the report: nobody reads this FIFO";
            assert!(said.contains(why), "{arguments}, signal {signal}: {said}");
        }
    }
}

#[test]
fn a_reader_may_come_late() {
    let scratch = scratch("late");
    for arguments in COMMANDS {
        let (mut child, mut said) = begin(&scratch, arguments);
        let mut line = String::new();
        while !line.contains(WAITS) {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "{arguments}: it did not wait");
        }
        let read = fs::read_to_string(scratch.0.join("fifo.txt")).unwrap();
        assert!(child.wait().unwrap().success(), "{arguments}");
        assert!(read.ends_with('\n'), "{arguments}: {read}");
    }
}

/// A FIFO has room for 64 KiB.
#[test]
fn a_signal_ends_the_wait_for_one_who_reads_no_more() {
    let scratch = scratch("stalled");
    let fifo = scratch.0.join("fifo.html");
    let mut reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&fifo).unwrap();
    let said = ended_by(libc::SIGTERM, begin(&scratch, "record --from a.recording -o fifo.html"));
    assert!(said.contains("fifo.html: cannot write the report: nobody reads this FIFO"), "{said}");
    reader.read_to_end(&mut Vec::new()).unwrap();
    drop(reader);
    // one who reads slowly has all
    let (mut child, _said) = begin(&scratch, "record --from a.recording -o fifo.html");
    let mut reader = File::open(&fifo).unwrap();
    let (mut all, mut part) = (Vec::new(), vec![0; 10_000]);
    loop {
        match reader.read(&mut part).unwrap() {
            0 => break,
            read => all.extend_from_slice(&part[..read]),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(child.wait().unwrap().success());
    assert!(all.len() > 200_000 && text(&all).trim_end().ends_with("</html>"), "{}", all.len());
}
