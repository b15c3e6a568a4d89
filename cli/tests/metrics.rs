//! `--open-metrics`, with table files that nobody measured, as a client sees it.

#[path = "../../report/tests/made/mod.rs"]
mod made;

use made::{Scratch, TableContent, ran, timed};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const OPEN: &str = "application/openmetrics-text; version=1.0.0";
/// No connection lasts longer.
const LONGEST: Duration = Duration::from_secs(10);

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
        self.ask_for(request, OPEN)
    }

    fn ask_for(&self, request: &str, accept: &str) -> String {
        let mut stream = self
            .send(format!("{request} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n").as_bytes());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// As far as it is taken.
    fn send(&self, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
        let _ = stream.write_all(request);
        stream
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

fn table(slots: u64, name: &str) -> TableContent {
    let mut made = TableContent::new(10, "./server");
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
    let asked = Instant::now();
    let grown = std::iter::repeat_with(|| samples(&scraped.ask("GET /metrics?again")))
        .take_while(|_| asked.elapsed() < Duration::from_secs(60))
        .find(|now| now[&region("retiring")] > 10_000.0);
    let second = grown.expect("counters grow");
    assert!(first.iter().all(|(name, value)| second[name] >= *value), "{first:?} {second:?}");
    assert_eq!(second["topdown_slots_total{category=\"retiring\"}"], 150_000.0);
    assert_eq!(scraped.end(), (Some(3), true));
}

#[test]
fn regions_of_which_clocks_alone_tell_have_times_apart_from_slots() {
    let scratch = Scratch::new("metrics-times");
    let mut by_clocks = TableContent::by_clocks(11, "./server", "no \"PMU\"");
    let root = by_clocks.thread("main", timed(1, 1, 9_000_000_000, 8_000_000_000));
    by_clocks.region("solve", root, timed(4, 4, 3_000_000_000, 2_000_000_000));
    by_clocks.region("short", root, timed(100, 16, 500_000_000, 1_000));
    let mut script = String::new();
    for made in [&by_clocks, &table(100_000, "solve")] {
        let file = made.write(&scratch.0);
        script += &format!(
            "mv {} \"${{TOPDOWN_OUTPUT%.topdown}}.{}.0.topdown\"; ",
            file.display(),
            made.header.pid
        );
    }
    let scraped = Scraped::run(&scratch, "--open-metrics=0", &(script + "echo; read a"));
    let all = samples(&scraped.ask("GET /metrics"));
    let of = |name: &str, region: &str| {
        all.get(&format!("topdown_region_{name}_total{{region=\"{region}\",time_alone=\"yes\"}}")).copied()
    };
    assert_eq!(
        [of("wall_seconds", "solve"), of("time_seconds", "solve"), of("executions", "solve")],
        [Some(3.0), Some(2.0), Some(4.0)]
    );
    assert_eq!([of("wall_seconds", "short"), of("time_seconds", "short")], [Some(0.5), None]);
    assert_eq!((of("counted_seconds", "solve"), of("slots", "solve")), (None, None));
    assert_eq!(all["topdown_region_executions_total{region=\"solve\"}"], 1.0);
    assert_eq!(all["topdown_time_alone_info{no_slots=\"no \\\"PMU\\\"\"}"], 1.0);
    assert_eq!(all["topdown_slots_total{category=\"retiring\"}"], 50_000.0);
    assert_eq!(scraped.end(), (Some(0), true));
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
fn the_older_format_has_its_own_types() {
    let scratch = Scratch::new("format");
    std::fs::write(scratch.0.join("one"), table(100_000, "solve").bytes()).unwrap();
    let file = scratch.0.join("one");
    let script = format!("mv {} \"${{TOPDOWN_OUTPUT%.topdown}}.10.0.topdown\"; echo; read a", file.display());
    let scraped = Scraped::run(&scratch, "--open-metrics=0", &script);
    for accept in ["text/plain", "*/*"] {
        let answer = scraped.ask_for("GET /metrics", accept);
        assert!(
            answer.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            "{answer}"
        );
        let (_, text) = answer.split_once("\r\n\r\n").unwrap();
        let mut types = BTreeMap::new();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["#", "TYPE", name, kind] => assert!(types.insert(name, kind).is_none(), "{line}"),
                ["#", "HELP", ..] => {}
                _ => {
                    let name = line.split(['{', ' ']).next().unwrap();
                    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
                    assert_eq!(types.get(name), Some(&kind), "{line}");
                }
            }
        }
        assert_eq!((types["topdown_info"], types["topdown_slots_total"]), ("gauge", "counter"));
    }
    assert_eq!(scraped.end(), (Some(0), true));
}

#[test]
fn hostile_requests_are_refused_and_stalled_clients_hold_nothing_up() {
    let scratch = Scratch::new("hostile");
    let scraped = Scraped::run(&scratch, "--open-metrics=:0", "echo; read a; exit 3");
    assert!(scraped.address.starts_with("127.0.0.1:"), "{}", scraped.address);
    let with =
        |header: &str| format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n").into_bytes();
    let gets = with("Accept: */*").repeat(20_000);
    let endless = [&with("a: b")[..40], &vec![b'a'; 1 << 24]].concat();
    for (request, status) in [
        (with("Content-Length: 999999999999999"), "413"),
        (with("Content-Length: 18446744073709551615"), "413"),
        (with("Content-Length: 99999999999999999999999999"), "413"),
        (with("Content-Length: -1"), "400"),
        (with("Transfer-Encoding: chunked"), "413"),
        (with("Expect: 100-continue\r\nContent-Length: 5"), "413"),
        (with("Host: localhost"), "400"),
        (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(), "421"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), "400"),
        (endless.clone(), "431"),
        (gets.clone(), "200"),
    ] {
        let mut answer = [0; 12];
        scraped.send(&request).read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
        assert!(scraped.ask("GET /metrics").starts_with("HTTP/1.1 200 "));
    }
    let stalls = [vec![], b"GET".to_vec(), with("Content-Length: 5"), endless, gets];
    let stalled: Vec<_> = stalls.iter().cycle().take(50).map(|request| scraped.send(request)).collect();
    let asked = Instant::now();
    assert!(scraped.ask("GET /metrics").starts_with("HTTP/1.1 200 "));
    assert_eq!(scraped.end(), (Some(3), true));
    assert!(asked.elapsed() < LONGEST, "{:?}", asked.elapsed());
    assert!(scratch.0.join("r.json").exists());
    drop(stalled);
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
