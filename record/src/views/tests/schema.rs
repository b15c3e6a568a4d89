//! What is written in JSON is what docs/schema says, field by field.
#![forbid(unsafe_code)]

#[path = "../../../../report/tests/schemas/mod.rs"]
mod schemas;

use super::*;
use crate::compare::{RecordedFile, RecordingComparison};
use crate::cpus::{CpuChange, CpuTotals};
use crate::event_sampling::SamplesOf;
use crate::held::EventShare;
use crate::mean_latency::MeanLatency;
use crate::symbols::tests::Scratch;
use std::fs;
use std::path::PathBuf;
use topdown_report::Format;

/// Of CPUs.
fn of_cpus() -> Profile {
    let change = CpuChange { cpu: 1, online: true, seen_ns: 500_000_000 };
    let cpus = CpuTotals { cpus: 2, changed: vec![1], changes: vec![change], ..CpuTotals::default() };
    Profile { cpus: Some(cpus), ..profile() }
}

/// Samples are of events that locate a node, with latencies.
fn locating() -> Profile {
    let mut profile = conditional();
    let of = SamplesOf::Node {
        node: "tma_l1_bound".into(),
        precise: true,
        above: None,
        other_events: vec!["mem_load_retired.fb_hit".into()],
    };
    profile.held = Some(EventShare { of, part: None, ..held() });
    for function in &mut profile.functions {
        function.own.latency = Some(MeanLatency { value: 7.0, low: 5.0, high: None });
        function.lines[0].latency = Some(MeanLatency { value: 7.0, low: 5.0, high: Some(9.0) });
    }
    profile
}

fn of_time() -> Profile {
    let of = SamplesOf::Time { why: "no counters".into(), by_stops: false };
    Profile { held: Some(EventShare { of, ..held() }), ..conditional() }
}

#[test]
fn recordings_and_their_comparisons_obey_their_schemas() {
    let scratch = Scratch::new("schema");
    let profiles = [
        profile(),
        conditional(),
        locating(),
        of_time(),
        of_cpus(),
        Profile { simulated: Some("timer"), ..profile() },
    ];
    let written = |(number, profile): (usize, &Profile)| {
        let file = scratch.0.join(format!("{number}.json"));
        fs::write(&file, View::Json.write(profile, &HEADING)).unwrap();
        file
    };
    let recordings: Vec<PathBuf> = profiles.iter().enumerate().map(written).collect();
    schemas::have_all("recording.schema.json", &recordings);

    let read = |number: usize| RecordedFile::read(&recordings[number]).unwrap().unwrap();
    let compared = |(before, after)| {
        let file = scratch.0.join(format!("{before}-{after}.json"));
        let comparison = RecordingComparison::new(&read(before), &read(after));
        fs::write(&file, comparison.render(Format::Json).unwrap()).unwrap();
        file
    };
    schemas::have_all("recording-comparison.schema.json", &[(0, 4), (4, 5), (0, 3)].map(compared));
}
