//! `topdown record`: what it refuses, and where its profile goes, whatever can be counted.

mod running;

use running::Scratch;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn record(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    command.arg("record").args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn options_that_clash_are_errors() {
    for arguments in [
        "",
        "-p 1 true",
        "-p 0",
        "-a -p 1",
        "-C 0 -p 1",
        "-C x true",
        "--from a.recording -a",
        "-F 0 true",
        "-F -1 true",
        "-F many true",
        "--gap 299 true",
        "--budget 0 true",
        "--budget 51 true",
        "--budget nan true",
        "--duration 0 true",
        "--td-level 3 true",
        "--call-graph lbr,8 true",
        "--call-graph dwarf, true",
        "--call-graph dwarf,1001 true",
        "--call-graph dwarf,65536 true",
        "--call-graph fp,8192 true",
        "--unknown true",
        "--from a.recording true",
        "--from a.recording -F 10",
        "--source /nowhere/src --lines true",
        "--source /build=/etc/passwd --lines true",
        "--where ipc<1 -F 100 true",
        "--where ipc<1 --gap 1000 true",
        "--where ipc<1 --budget 2 true",
        "--where ipc<1 --td-level 1 true",
        "--where ipc<1 --period 0 true",
        "--period 1000 true",
        "--locate l1_bound -F 100 true",
        "--locate l1_bound --call-graph dwarf true",
        "--locate l1_bound --kernel true",
        "--locate l1_bound --where ipc<1 true",
        "--locate l1_bound --from a.recording",
        "--drill -F 100 true",
        "--drill --locate l1_bound true",
        "--drill --where ipc<1 true",
        "--drill --kernel true",
        "--drill --period 1000 true",
        "--drill --from a.recording",
    ] {
        let output = record(arguments);
        assert_eq!(output.status.code(), Some(125), "{arguments}: {}", said(&output));
        assert!(said(&output).starts_with("error: "), "{arguments}: {}", said(&output));
    }
}

#[test]
fn what_can_be_given_instead_of_a_command_is_in_the_usage() {
    let said = said(&record(""));
    for words in [
        "Usage: topdown record [OPTIONS] COMMAND...",
        "record [OPTIONS] -p PID,...",
        "record [OPTIONS] -a [COMMAND...]",
        "record [OPTIONS] -C CPUS [COMMAND...]",
        "--from FILE.recording",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(self::said(&record("--duration 0 true")).contains("not a number of seconds above 0"));
}

#[test]
fn what_perfs_users_type_is_taken() {
    let output = record("-g -F 4000 true");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).starts_with("topdown: -F 4000: no more than 2000 bursts a second"),
        "{}",
        said(&output)
    );
    let output = record("-g --call-graph dwarf -F max true");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!said(&output).contains("2000 bursts a second can"), "{}", said(&output));
    let output = record("-e cycles true");
    assert_eq!(output.status.code(), Some(125));
    let said = said(&output);
    assert!(
        said.starts_with("error: -e is an option of perf; of topdown record: ") && said.contains("--locate"),
        "{said}"
    );
}

/// As by `topdown record -o - | head -n 1`.
#[test]
fn a_reader_that_has_gone_is_no_error() {
    let file = std::env::temp_dir().join(format!("topdown-cli-gone-{}.recording", std::process::id()));
    std::fs::write(&file, kept()).unwrap();
    for output in ["-o -", ""] {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(ours);
        let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
        command.arg("record").arg("--from").arg(&file).args(output.split_whitespace());
        let output = command.stdout(Stdio::from(std::os::fd::OwnedFd::from(theirs))).output().unwrap();
        assert_eq!((output.status.code(), &*said(&output)), (Some(0), ""));
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn endings_and_processes_are_looked_at_before_anything_runs() {
    for (arguments, why) in [
        ("-o profile.pdf echo ran", "'.pdf' is no ending of a profile: .html, .svg,"),
        ("--lines -o profile.csv echo ran", "only texts, .html, .json, .pprof and .firefox.json have lines"),
        ("--source / echo ran", "--source: only texts with --lines and .html"),
        ("--source / -o profile.csv echo ran", "--source: only texts with --lines and .html"),
        ("--source / -o a.recording echo ran", "--source: only texts with --lines and .html"),
        ("-o /nowhere/profile.json echo ran", "/nowhere/profile.json"),
        ("-p 2147483647", "there is no process 2147483647"),
        ("--from /nowhere/a.recording", "/nowhere/a.recording: cannot read it: No such file"),
        ("--from /etc/passwd -o -", "/etc/passwd: not a recording of topdown record"),
        ("--from /nowhere/a.recording -o b.recording", "choose another ending"),
        ("--drill -o a.html echo ran", "--drill writes a text or .json"),
        ("--drill -o a.recording echo ran", "--drill writes a text or .json"),
        ("--where ipc echo ran", "--where 'ipc': no condition: ipc<0.5,"),
        ("--where ipc<0 echo ran", "--where 'ipc<0': '0' is no ratio: a number above 0"),
        ("--where a,b/ratio-to-prev=0/ echo ran", "'0' is no ratio"),
        ("--where ipc<1 --period 10 echo ran", "too short"),
    ] {
        let output = record(arguments);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]), "{arguments}");
        assert!(said(&output).contains(why), "{arguments}: {}", said(&output));
    }
}

#[test]
fn a_thread_is_no_process() {
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let id = std::fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_owned();
        tell.send(id.into_string().unwrap()).unwrap();
        let _ = ended.recv();
    });
    let id = told.recv().unwrap();
    let output = record(&format!("-p {id}"));
    assert_eq!(output.status.code(), Some(125));
    assert!(said(&output).contains(&format!("{id} is a thread, not a process")), "{}", said(&output));
    drop(end);
    thread.join().unwrap();
}

/// What was recorded, into all views; whether or not it was ended.
#[test]
fn a_recording_becomes_any_profile() {
    let file = std::env::temp_dir().join(format!("topdown-cli-{}.recording", std::process::id()));
    std::fs::write(&file, kept()).unwrap();
    let from = |output: &str| {
        let output = record(&format!("--from {} {output}", file.display()));
        (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), said(&output))
    };
    let (status, text, said) = from("");
    assert_eq!((status, &*said), (Some(0), ""));
    assert!(text.starts_with("topdown: a b (1.5 s, 2 threads, 1 burst)"), "{text}");
    assert!(text.contains("[unknown in a: the file that ran was not found]"), "{text}");
    let csv = file.with_extension("csv");
    let (status, _, said) = from(&format!("-o {}", csv.display()));
    assert!(
        status == Some(0)
            && std::fs::read_to_string(&csv)
                .unwrap()
                .contains("[unknown in a: the file that ran was not found]")
    );
    assert!(said.contains(".csv: How slots divide cannot be told of any function, from 1 burst"), "{said}");
    std::fs::remove_file(&csv).unwrap();
    std::fs::write(&file, &kept()[..kept().len() - 20]).unwrap();
    let (status, text, _) = from("-o -");
    assert_eq!(status, Some(0));
    assert!(text.starts_with("topdown: a b (0.0 s, 0 threads, 1 burst)"), "{text}");
    assert!(text.contains("Line 5 of the recording, its last, is cut and left out"), "{text}");
    std::fs::remove_file(&file).unwrap();
}

/// A recording of this version's.
fn kept() -> String {
    let fingerprint = topdown::fingerprint("Golden or Raptor Cove, bare counters").unwrap();
    KEPT.replace("FINGERPRINT", &fingerprint.to_string())
}

const KEPT: &str = r#"{"recording":{"version":3,"command":"a b","occasion":"","settings":{"frequency":500,"gap":1000,"budget":0.01,"kernel":false,"callers":"frame_pointers"},"cores":[{"core":"Golden or Raptor Cove, bare counters","fingerprint":FINGERPRINT,"level":1,"slots_each":1,"events":["SLOTS","UOPS_RETIRED.SLOTS","TOPDOWN.BACKEND_BOUND_SLOTS","IDQ_BUBBLES.CORE"],"note":""}]}}
{"module":{"file":{"path":"/nowhere/a","proof":"unseen"}}}
{"stack":[{"module":0,"address":16}]}
{"burst":{"kind":0,"long":false,"weight_ns":2000000,"stacks":[0,0,0],"windows":[null,[6000,3000,1200,600]]}}
{"totals":{"elapsed":{"secs":1,"nanos":500000000},"threads":2,"refused":[0,""],"lost":0,"throttled":0,"parted":0,"impossible":0,"pace":{"asked":500,"frequency":500.0,"burst_ns":20000.0,"budget":0.01,"limit":"asked"}}}
"#;

/// Where no counters reload each other nothing runs: a profile of all would be taken for one of the condition.
#[test]
fn a_condition_needs_counters_that_reload_each_other() {
    let output = record("--where ipc<0.5 echo ran");
    if output.status.code() == Some(0) {
        eprintln!("there is auto counter reload here: nothing is tested");
        return;
    }
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]), "{}", said(&output));
    for word in ["--where needs auto counter reload", "Linux 6.16", "Diamond Rapids", "without --where"] {
        assert!(said(&output).contains(word), "{word}: {}", said(&output));
    }
}

/// With `-o -` the profile follows what the program writes; where nothing can be sampled it is said why, and the program runs all
/// the same.
#[test]
fn a_dash_is_standard_output() {
    let output = record("-o - echo ran");
    assert!(!Path::new("-").exists());
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(stdout.starts_with("ran\n"), "{stdout}");
    match said(&output) {
        text if text.is_empty() => assert!(stdout.contains("topdown: echo ran"), "{stdout}"),
        text => assert!(stdout == "ran\n" && text.contains("nothing is recorded: "), "{stdout}{text}"),
    }
}

/// Where nothing tells how slots divide there is a profile of time, which says why, in each format.
#[test]
fn without_counters_each_format_has_time_alone() {
    let text = said(&record("seq 10"));
    if !text.contains(", time alone (") {
        eprintln!("there are counters here, or no timers: nothing is tested: {text}");
        return;
    }
    assert_eq!(
        text.lines().nth(1).unwrap().find("How slots divide cannot be told here, and this is time alone: "),
        Some(0)
    );
    let file =
        |ending: &str| std::env::temp_dir().join(format!("topdown-time-{}.{ending}", std::process::id()));
    let written = |ending: &str| {
        let output = record(&format!("-o {} seq 3000000", file(ending).display()));
        assert_eq!((output.status.code(), &*said(&output)), (Some(0), ""), "{ending}");
        let bytes = std::fs::read(file(ending)).unwrap();
        std::fs::remove_file(file(ending)).unwrap();
        bytes
    };
    for (ending, has) in [
        ("txt", ", time alone ("),
        ("csv", "core,function,module,scope,time_ns,time,time_low,time_high,windows,time_by"),
        ("json", "\"time_alone\": {"),
        ("html", "this is time alone: "),
        ("svg", "CPU time"),
        ("firefox.json", "\"name\":\"CPU time\""),
    ] {
        let text = String::from_utf8(written(ending)).unwrap();
        assert!(text.contains(has), "{ending}: {text}");
    }
    assert!(!written("pprof").is_empty());
    let refused = record(&format!("-o {} echo ran", file("recording").display()));
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(125), &b""[..]));
    assert!(said(&refused).contains("of time alone there is no .recording"), "{}", said(&refused));
}

/// A command whose threads are stopped runs as it does otherwise: signals, processes that it stops, starts, and waits for, and how it ends.
#[test]
fn a_command_that_is_looked_at_by_stops_runs_as_ever() {
    const SCRIPT: &str = "trap 'echo got' USR1; kill -USR1 $$; sleep 100 & kill -STOP $!; sleep 0.1; kill -CONT $!; kill -TERM $!; wait $!; echo $?; \
                          for i in 1 2 3 4 5; do (exit $i); echo $?; done; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; ";
    let run = |end: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
        let script = SCRIPT.to_string() + end;
        command.args(["record", "--ptrace", "--", "sh", "-c", &script]).stdin(Stdio::null()).output().unwrap()
    };
    let output = run("exit 9");
    if said(&output).contains("nothing is recorded: ptrace: ") {
        eprintln!("ptrace is forbidden here: nothing is tested");
        return;
    }
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!((output.status.code(), &*stdout), (Some(9), "got\n143\n1\n2\n3\n4\n5\n"), "{}", said(&output));
    assert!(
        said(&output).contains(", time alone (")
            && said(&output).contains("CPU time in user mode and page faults"),
        "{}",
        said(&output)
    );
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(run("kill -9 $$").status.signal(), Some(9));
}

/// A thread that waits for its vfork(2) stops when that has ended, and no earlier: what records waits for it.
#[test]
fn a_command_is_let_go_while_it_waits_for_a_vfork() {
    const PROGRAM: &str = "#include <unistd.h>\n#include <sys/wait.h>\n\
                           int main() { int status; pid_t child = vfork(); if (child == 0) { sleep(1); _exit(5); } \
                           waitpid(child, &status, 0); return WEXITSTATUS(status) + 2; }";
    let scratch = Scratch::new("vfork");
    let program = scratch.0.join("waits");
    let mut cc = Command::new("cc");
    cc.args(["-x", "c", "-o"]).arg(&program).arg("-").stdin(Stdio::piped());
    let mut cc = cc.spawn().unwrap();
    cc.stdin.take().unwrap().write_all(PROGRAM.as_bytes()).unwrap();
    assert!(cc.wait().unwrap().success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
    command.args(["record", "--ptrace", "--duration", "0.2", "--"]).arg(&program);
    let output = command.stdin(Stdio::null()).output().unwrap();
    if said(&output).contains("nothing is recorded: ptrace: ") {
        eprintln!("ptrace is forbidden here: nothing is tested");
        return;
    }
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
}

#[test]
fn a_device_is_no_recording() {
    let output = record("--from /dev/zero");
    assert!(
        !output.status.success() && said(&output).contains("/dev/zero: no regular file"),
        "{}",
        said(&output)
    );
    let mut compare = Command::new(env!("CARGO_BIN_EXE_topdown"));
    let output = compare.args(["compare", "/dev/zero", "/dev/zero"]).output().unwrap();
    assert!(
        !output.status.success() && said(&output).contains("/dev/zero: no regular file"),
        "{}",
        said(&output)
    );
}
