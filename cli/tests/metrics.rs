//! `--open-metrics`, with table files that nobody measured, as a client sees it.

#[path = "../../report/tests/made/mod.rs"]
mod made;

use made::{Made, Scratch, ran};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A command under `topdown run` that waits for a line of input, and its metrics' address.
struct Scraped {
    child: Child,
    input: ChildStdin,
    address: String,
}

impl Scraped {
    fn run(scratch: &Scratch, option: &str, script: &str) -> Scraped {
        let libc = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc =
            libc.lines().find_map(|line| line.split(' ').next_back().filter(|path| path.contains("/libc.")));
        let mut child = Command::new(env!("CARGO_BIN_EXE_topdown"))
            .args(["run", option, "-o"])
            .arg(scratch.0.join("r.json"))
            .args(["sh", "-c", script])
            .env("TOPDOWN_PRELOAD", libc.unwrap()) // a library that is loaded anyway
            .env("TOPDOWN_SIMULATE", "1") // nothing is counted from outside, whatever can be
            .env("TMPDIR", &scratch.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let address =
            said.trim().strip_prefix("topdown: metrics are at http://").unwrap_or_else(|| panic!("{said}"));
        let address = address.strip_suffix("/metrics").unwrap().to_string();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let input = child.stdin.take().unwrap();
        Scraped { child, input, address }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn go_on(&mut self) {
        writeln!(self.input).unwrap();
    }

    fn end(mut self) -> (Option<i32>, bool) {
        self.go_on();
        let status = self.child.wait().unwrap();
        (status.code(), TcpStream::connect(&self.address).is_err())
    }
}

/// Samples by name and labels.
fn samples(answer: &str) -> BTreeMap<String, f64> {
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(
        head.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    assert!(text.ends_with("# EOF\n"), "{text}");
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_string(), value.parse().unwrap())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(sample).collect()
}

fn table(slots: u64, name: &str) -> Made {
    let mut made = Made::new(10, "./server");
    let root = made.thread("main", ran(slots, [50, 10, 10, 30], [10, 5, 5, 20], 100).sum());
    made.region(name, root, ran(slots / 2, [20, 10, 10, 60], [10, 5, 5, 50], 100).sum());
    made
}

#[test]
fn slots_of_regions_and_processes_are_scraped_while_the_command_runs() {
    let scratch = Scratch::new("metrics");
    for (name, slots) in [("one", 100_000), ("two", 300_000)] {
        std::fs::write(scratch.0.join(name), table(slots, "solve \"x\"\\").bytes()).unwrap();
    }
    // (at once: who scrapes does not find half of it)
    let leaves = |name: &str| {
        let file = scratch.0.join(name);
        format!("mv {} \"${{TOPDOWN_OUTPUT%.topdown}}.10.0.topdown\"", file.display())
    };
    let script = format!("{}; echo; read a; {}; read a; exit 3", leaves("one"), leaves("two"));
    let mut scraped = Scraped::run(&scratch, "--open-metrics=0", &script);
    assert!(scraped.address.starts_with("127.0.0.1:"), "{}", scraped.address);
    let answer = scraped.ask("GET /metrics");
    let first = samples(&answer);
    for line in
        ["# TYPE topdown_slots counter", "# UNIT topdown_slots slots", "# TYPE topdown_bound_slots gauge"]
    {
        assert!(answer.contains(line), "{line}: {answer}");
    }
    let region = |category: &str| {
        format!("topdown_region_slots_total{{region=\"solve \\\"x\\\"\\\\\",category=\"{category}\"}}")
    };
    assert_eq!(
        (first[&region("retiring")], first[&region("backend_bound")]),
        (10_000.0, 30_000.0),
        "{answer}"
    );
    assert_eq!(first["topdown_slots_total{category=\"retiring\"}"], 50_000.0);
    assert_eq!(
        first["topdown_process_slots_total{pid=\"10\",process=\"./server\",category=\"backend_bound\"}"],
        30_000.0
    );
    let bound = first["topdown_bound_slots{level=\"1\"}"];
    assert!((100.0..=200.0).contains(&bound), "{answer}");
    scraped.go_on();
    let grown = (0..500)
        .map(|_| samples(&scraped.ask("GET /metrics?again")))
        .find(|now| now[&region("retiring")] > 10_000.0);
    let second = grown.expect("counters grow");
    assert!(first.iter().all(|(name, value)| second[name] >= *value), "{first:?} {second:?}");
    assert_eq!(second["topdown_slots_total{category=\"retiring\"}"], 150_000.0);
    assert_eq!(scraped.end(), (Some(3), true));
}

#[test]
fn only_metrics_are_answered() {
    let scratch = Scratch::new("answers");
    let scraped = Scraped::run(&scratch, "--open-metrics=127.0.0.1:0", "echo; read a");
    for (request, status) in
        [("GET /", 404), ("GET /metricsx", 404), ("POST /metrics", 405), ("HEAD /metrics", 200)]
    {
        let answer = scraped.ask(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    // nothing was counted yet
    assert!(samples(&scraped.ask("GET /metrics")).keys().all(|name| name.starts_with("topdown_info")));
    assert_eq!(scraped.end(), (Some(0), true));
}

#[test]
fn who_cannot_listen_runs_nothing() {
    for address in ["127.0.0.1:99999", "nowhere", "-1"] {
        for subcommand in ["run", "stat"] {
            let output = Command::new(env!("CARGO_BIN_EXE_topdown"))
                .args([subcommand, &format!("--open-metrics={address}"), "--", "echo", "ran"])
                .env("TOPDOWN_PRELOAD", env!("CARGO_BIN_EXE_topdown"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{said}");
            assert!(said.contains("cannot listen there"), "{said}");
        }
    }
}
