//! The processed profile format of the Firefox Profiler (docs-developer in the repository firefox-devtools/profiler). Version 60 is
//! the first in which threads share the tables of stacks; profiler.firefox.com brings it to its own.
//!
//! Each thread has its samples at their times, each with the CPU time for which it stands. A sample has one weight there. So each value
//! that a stack has is a "thread" besides: CPU time, and as `parts` has it; their rows are sums of stacks, and their times are no real
//! ones. The category of a frame, which gives it its colour, is the one that has most of the function's own slots, as in a flame graph.
//!
//! A function has one source file there: the one in which most of its time was seen. Frames have lines of that file alone (a function
//! has lines of others where a compiler expanded what they include).
#![forbid(unsafe_code)]

mod tables;

use super::parts::Parts;
use super::{Heading, in_words, remarks};
use crate::profile::{Profile, ProfiledSample, ProfiledThread};
use serde_json::{Value, json};
use std::collections::HashMap;
use tables::{ColumnTable, SharedTables};
use topdown::LEVEL_1;
use topdown_report::SIMULATED;

const VERSION: u32 = 60;
/// Of LEVEL_1, by the names that the profiler has for them: of those that it draws on light and on dark pages, the four that eyes of
/// all kinds tell apart best, and from grey.
const COLOURS: [&str; LEVEL_1.len()] = ["lightblue", "brown", "blue", "orange"];
/// Of more threads than these none is drawn until somebody asks for it there.
const MOST_SHOWN: usize = 50;

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The process that a "thread" stands below. Numbers of processes are not recorded: names stand for them.
#[derive(Clone, Copy)]
struct TrackProcess<'a> {
    pid: &'a str,
    name: &'a str,
}

/// A row of a "thread": a stack, when it was, and what it has of the value.
type TrackSample = (usize, u64, i64);

/// A "thread". `end`: of the last row, which has no stack. `counts`: values are no times, but counts.
fn track(
    (name, tid): (&str, &str),
    process: TrackProcess,
    samples: impl Iterator<Item = TrackSample>,
    end: u64,
    counts: bool,
) -> Value {
    let mut table = ColumnTable::new(["stack", "time", "weight", "threadCPUDelta"]);
    for (stack, at, part) in samples.filter(|(_, _, part)| *part != 0) {
        let weight = if counts { json!(part) } else { json!(part as f64 / 1e6) };
        table.push([json!(stack), json!(milliseconds(at)), weight, json!(part)]);
    }
    table.push([Value::Null, json!(milliseconds(end)), json!(0), json!(0)]);
    let mut samples = table.object();
    samples["weightType"] = json!(if counts { "samples" } else { "tracing-ms" });
    if counts {
        samples.as_object_mut().and_then(|columns| columns.remove("threadCPUDelta"));
    }
    json!({
        "name": name,
        "isMainThread": false,
        "processType": "default",
        "processName": process.name,
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "pid": process.pid,
        "tid": tid,
        "samples": samples,
        "markers": ColumnTable::new(["data", "name", "startTime", "endTime", "phase", "category"]).object(),
    })
}

/// What each of the threads did at its time, those of most time first. (On a hybrid CPU a thread is one, whatever it ran on.)
fn of_threads(profile: &Profile, heading: &Heading, numbers: &[usize]) -> Vec<Value> {
    let mut samples: HashMap<i32, Vec<TrackSample>> = HashMap::new();
    for ProfiledSample { at_ns, thread, weight_ns, stack } in &profile.samples {
        samples.entry(*thread).or_default().push((numbers[*stack], *at_ns, *weight_ns as i64));
    }
    let end = profile.samples.last().map_or(0, |sample| sample.at_ns) + interval(profile);
    let of_thread = |thread: &ProfiledThread| {
        let samples = samples.remove(&thread.tid)?;
        let process = Some(&*thread.process).filter(|name| !name.is_empty()).unwrap_or(heading.command);
        let process = TrackProcess { pid: process, name: process };
        let tid = thread.tid.to_string();
        let name = format!("thread {tid}");
        Some(track((&name, &tid), process, samples.into_iter(), end, !profile.is_of_time()))
    };
    profile.by_thread.iter().filter_map(of_thread).collect()
}

/// What the sums stand below.
const SUMS: &str = "sums of all threads: stacks one after the other, at no real times";

/// Each value that stacks have: stacks one after the other, each for as long as its CPU time.
fn of_values(profile: &Profile, parts: &Parts, numbers: &[usize]) -> Vec<Value> {
    // (of a condition, what its event counted)
    let all = profile.event().map_or("CPU time", |held| &*held.event).to_string();
    let names = [all].into_iter().chain(parts.names.iter().map(|name| in_words(name)));
    let unknown = parts.has_unknown().then(|| "unknown".into());
    let names: Vec<String> = names.chain(unknown).collect();
    let (mut values, mut end) = (vec![Vec::new(); names.len()], 0);
    for ((stack, ns), number) in profile.stacks.iter().zip(numbers) {
        for (samples, part) in values.iter_mut().zip(parts.of(stack, *ns)) {
            samples.push((*number, end, part));
        }
        end += ns;
    }
    let sums = TrackProcess { pid: "sums", name: SUMS };
    let one = |(name, samples): (String, Vec<_>)| {
        track((&name, &name), sums, samples.into_iter(), end, !profile.is_of_time())
    };
    names.into_iter().zip(values).map(one).collect()
}

/// From one sample to the next, on average, in nanoseconds.
fn interval(profile: &Profile) -> u64 {
    profile.elapsed.as_nanos() as u64 / profile.bursts.max(1) as u64
}

fn categories() -> Value {
    let names = LEVEL_1.iter().map(|metric| metric.title()).zip(COLOURS);
    let all = names.chain([("cannot be told".to_string(), "grey")]);
    all.map(|(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] })).collect()
}

fn meta(profile: &Profile, heading: &Heading, visible: Vec<usize>) -> Value {
    let occasion = Some(heading.occasion.to_string()).filter(|occasion| !occasion.is_empty());
    let nothing = remarks::of_nothing(profile).map(String::from);
    let said =
        [remarks::amount(profile)].into_iter().chain(occasion).chain(nothing).chain(remarks::of_all(profile));
    let cores = profile.cores.iter().enumerate();
    let of_cores = cores.flat_map(|(place, core)| remarks::of_core(profile, place, core));
    let entry = |text: String| json!({ "label": "recorded", "format": "string", "value": text });
    let last = profile.samples.last().map_or(0, |sample| sample.at_ns + interval(profile));
    let end = profile.stacks.values().sum::<u64>().max(last);
    json!({
        "preprocessedProfileVersion": VERSION,
        "version": 0,
        "interval": milliseconds(interval(profile)),
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
        "startTime": 0,
        "profilingStartTime": 0,
        "profilingEndTime": milliseconds(end),
        "processType": 0,
        "stackwalk": 1,
        "product": if profile.simulated.is_some() { format!("{SIMULATED}: {}", heading.command) } else { heading.command.into() },
        "importedFrom": "topdown record",
        "symbolicated": true,
        "symbolicationNotSupported": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "keepProfileThreadOrder": true,
        "initialVisibleThreads": visible,
        "initialSelectedThreads": [0],
        "markerSchema": [],
        "categories": categories(),
        "extra": [{ "label": "Recording", "entries": said.chain(of_cores).map(entry).collect::<Vec<_>>() }],
    })
}

pub(super) fn firefox(profile: &Profile, heading: &Heading) -> String {
    let (parts, mut shared) = (Parts::new(profile), SharedTables::new(profile));
    let numbers: Vec<usize> =
        profile.stacks.keys().map(|stack| shared.call_stack(&parts, profile, stack)).collect();
    let threads = of_threads(profile, heading, &numbers);
    let shown = threads.len().min(MOST_SHOWN);
    let sums = of_values(profile, &parts, &numbers);
    let visible = (0..shown).chain(threads.len()..threads.len() + sums.len()).collect();
    let document = json!({
        "meta": meta(profile, heading, visible),
        "libs": shared.libraries(),
        "shared": shared.object(),
        "threads": threads.into_iter().chain(sums).collect::<Vec<_>>(),
    });
    document.to_string() + "\n"
}
