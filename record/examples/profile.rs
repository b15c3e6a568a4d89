//! Writes a profile of a program that never ran, in the format of the file's ending, to look at.
//!
//!     cargo run -p topdown-record --example profile -- FILE.html

use std::path::PathBuf;
use std::time::Duration;
use topdown::SampledEvents;
use topdown_record::views::{Heading, View};
use topdown_record::{
    CallGraph, CallStack, EstimatedShares, FunctionFigures, Limit, NoShares, Pace, Profile, ProfiledCore,
    ProfiledFunction, ProfiledLine, ProfiledSample, ProfiledThread, SourceLine, Sources, StackFrame, Unseen,
};
use topdown_report::ShareInterval;

/// Long, and with what would do harm in a page or a picture.
const HOSTILE: &str =
    "void solver::<lambda(const std::vector<double>&)>::operator()(\"quoted\"); <script>alert(1)</script>";
const SECOND: u64 = 1_000_000_000;

/// Stacks, seconds of each, and of the innermost function retiring, bad speculation, frontend bound and how far they may be off,
/// all in %.
type SimulatedRow = (&'static [&'static str], u64, Option<([u32; 3], u32)>);
const STACKS: [SimulatedRow; 8] = [
    (&["_start", "main", "read_input", "parse"], 9, Some(([30, 35, 20], 3))),
    (&["_start", "main", "solve", "lookup"], 24, Some(([12, 3, 5], 4))),
    (&["_start", "main", "solve", HOSTILE], 14, Some(([55, 5, 15], 2))),
    (&["_start", "main", "solve", HOSTILE, "memcpy"], 6, Some(([20, 0, 5], 6))),
    (&["_start", "main", "render"], 12, Some(([20, 12, 55], 5))),
    (&["_start", "main", "render", "memcpy"], 3, Some(([20, 0, 5], 6))),
    (&["_start", "main", "log"], 2, None),
    (&["_start", "main", "garbage collection"], 5, Some(([25, 10, 30], 18))),
];

/// Level 2 as parts of level 1, by whatever tree.
fn told(events: &SampledEvents, [retiring, bad, frontend]: [u32; 3], error: u32) -> EstimatedShares {
    let nodes = events.nodes();
    let one =
        [retiring, bad, frontend, 100 - retiring - bad - frontend].map(|share| f64::from(share) / 100.0);
    let roots: Vec<u32> = nodes.iter().filter(|node| node.level == 1).map(|node| node.metric.id).collect();
    let of = |id: u32| roots.iter().position(|root| *root == id).map_or(0.0, |place| one[place]);
    let error = f64::from(error) / 100.0;
    let shares = nodes.iter().enumerate().map(|(k, node)| {
        let parts = nodes.iter().filter(|other| other.parent == node.parent).count() as f64;
        let value = match node.level {
            1 => of(node.metric.id),
            // (the larger part first or last)
            _ => of(node.parent) * if parts == 1.0 { 1.0 } else { [0.3, 0.7][k % 2] },
        };
        ShareInterval::around(value, error)
    });
    EstimatedShares { shares: shares.collect(), windows: 412, sampling: 0.8 * error }
}

fn figures(seconds: u64, all: u64, shares: Result<EstimatedShares, NoShares>) -> FunctionFigures {
    let value = seconds as f64 / all as f64;
    let time = ShareInterval::around(value, 0.02);
    FunctionFigures { time, time_ns: seconds * SECOND, bursts: 100 * seconds as usize, shares, latency: None }
}

/// Lines of this file, and of one that is nowhere.
fn lines(name: &str, seconds: u64, all: u64) -> Vec<ProfiledLine> {
    let file = match name {
        "log" => "/nowhere/log.c",
        _ => concat!(env!("CARGO_MANIFEST_DIR"), "/examples/profile.rs"),
    };
    let (parts, first) = ([40, 20, 15, 10, 5, 1], name.len() as u32);
    let line = |(part, line): (u64, u32)| {
        let value = (part * seconds) as f64 / (100 * all) as f64;
        let time = ShareInterval::around(value, 0.02);
        let file = file.into();
        ProfiledLine {
            file,
            line,
            time,
            time_ns: part * seconds * SECOND / 100,
            bursts: (part * seconds) as usize,
            latency: None,
        }
    };
    let numbers = [first + 11, first + 12, first + 9, first + 2, first + 30, first + 60];
    // (a page of all would be long)
    let of = |name: &&str| seconds > 0 && ["lookup", "log", "memcpy"].contains(name);
    Some(name).filter(of).map_or(Vec::new(), |_| parts.into_iter().zip(numbers).map(line).collect())
}

const THREADS: u64 = 4;
const SAMPLE_NS: u64 = SECOND / 4;

/// Of the first threads it is told what their slots did.
fn thread(number: u64, all: u64, events: &SampledEvents) -> ProfiledThread {
    let shares = if number < 2 { Ok(told(events, [30, 10, 20], 3)) } else { Err(NoShares::Few(4)) };
    let figures = figures(all / THREADS, all, shares);
    ProfiledThread { tid: 1000 + number as i32, process: "solver".into(), core: 0, figures }
}

/// Stacks in their order, each for as long as its time by four threads at once.
fn samples() -> Vec<ProfiledSample> {
    let mut order: Vec<(&[&str], u64)> =
        STACKS.iter().map(|(stack, seconds, _)| (*stack, *seconds)).collect();
    order.sort_unstable(); // (as those of a profile)
    let seconds =
        order.iter().enumerate().flat_map(|(stack, (_, n))| std::iter::repeat_n(stack, *n as usize));
    let quarters = seconds.flat_map(|stack| std::iter::repeat_n(stack, THREADS as usize));
    let sample = |(number, stack): (u64, usize)| ProfiledSample {
        at_ns: number / THREADS * SAMPLE_NS,
        thread: 1000 + (number % THREADS) as i32,
        weight_ns: SAMPLE_NS,
        stack,
    };
    (0..).zip(quarters).map(sample).collect()
}

fn profile() -> Profile {
    let events = SampledEvents::of_core("Golden or Raptor Cove, bare counters").expect("a core");
    let all: u64 = STACKS.iter().map(|(_, seconds, _)| seconds).sum();
    let module = |name: &str| if name == "memcpy" { "libc.so.6" } else { "solver" }.to_string();
    let mut names: Vec<&str> = STACKS.iter().flat_map(|(stack, ..)| *stack).copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut functions: Vec<ProfiledFunction> = Vec::new();
    for name in names {
        let own: Vec<_> = STACKS.iter().filter(|(stack, ..)| stack.last() == Some(&name)).collect();
        let within = STACKS.iter().filter(|(stack, ..)| stack.contains(&name));
        let shares = own.first().and_then(|(.., shares)| *shares);
        let shares = shares.map(|(shares, error)| told(&events, shares, error)).ok_or(NoShares::Few(4));
        functions.push(ProfiledFunction {
            lines: lines(name, own.iter().map(|(_, seconds, _)| seconds).sum(), all),
            name: name.into(),
            is_unnamed: false,
            module: module(name),
            path: format!("/usr/bin/{}", module(name)),
            core: 0,
            own: figures(own.iter().map(|(_, seconds, _)| seconds).sum(), all, shares),
            inclusive: figures(within.map(|(_, seconds, _)| seconds).sum(), all, Err(NoShares::Few(0))),
        });
    }
    let core = ProfiledCore {
        name: events.core,
        nodes: events.nodes(),
        all: figures(all, all, Ok(told(&events, [29, 9, 20], 1))),
        windows: 5321,
        excess: 0.012,
        note: String::new(),
    };
    let wasted = |function: &ProfiledFunction| function.own.wasted(&core.nodes).unwrap_or(0.0);
    functions.sort_by(|a, b| wasted(b).total_cmp(&wasted(a)));
    let line =
        |name: &str| SourceLine { file: format!("/nowhere/{}.c", module(name)), line: name.len() as u32 };
    let frame = |name: &&str| StackFrame {
        function: (name.to_string(), module(name)),
        line: (*name != "_start").then(|| line(name)),
        inlined: *name == "parse",
    };
    let named = |stack: &[&str]| stack.iter().map(frame).collect();
    Profile {
        stacks: STACKS
            .iter()
            .map(|(stack, seconds, _)| (CallStack { core: 0, frames: named(stack) }, seconds * SECOND))
            .collect(),
        cores: vec![core],
        functions,
        samples: samples(),
        by_thread: (0..THREADS).map(|number| thread(number, all, &events)).collect(),
        elapsed: Duration::from_secs(all),
        bursts: 100 * all as usize,
        threads: 4,
        cpus: None,
        refused: (0, String::new()),
        unseen: Unseen::default(),
        unclocked: 0,
        by_timer: 0,
        left_running: 0,
        lost: 0,
        throttled: 6,
        parted: 17,
        impossible: 0,
        pace: Pace { asked: 500, frequency: 100.0, burst_ns: 1e5, budget: 0.01, limit: Limit::Cost },
        held: None,
        simulated: None,
        callers: CallGraph::default(),
        without_callers: false,
        kernel_is_hidden: false,
        notes: Vec::new(),
        sources: Sources::default(),
    }
}

fn main() {
    let file = PathBuf::from(std::env::args_os().nth(1).expect("a file"));
    let view = View::of(&file).expect("an ending");
    let heading = Heading {
        command: "./solver --grid 4096 < \"input & more\"",
        occasion: "2026-01-31 12:34:56 +0100 on host",
        means: None,
    };
    let mut profile = profile();
    view.read_sources(&mut profile, &[]);
    std::fs::write(&file, view.write(&profile, &heading)).expect("a file that can be written");
}
