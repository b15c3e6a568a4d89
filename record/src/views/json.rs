//! The whole profile as JSON.
#![forbid(unsafe_code)]

use super::name;
use crate::estimate::{Confidence, Untold};
use crate::profile::{FunctionFigures, Profile, ProfiledCore, ProfiledLine};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the file says that it is.
pub(crate) const FORMAT: &str = "topdown-record-1";

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    command: &'a str,
    elapsed_ns: u64,
    threads: usize,
    threads_refused: usize,
    bursts: usize,
    lost_records: u64,
    bursts_left_out: u64,
    windows_left_out: u64,
    times_throttled: u64,
    bursts_per_second_asked: u32,
    bursts_per_second: f64,
    burst_ns: f64,
    cores: Vec<CoreRow<'a>>,
    functions: Vec<FunctionRow<'a>>,
}

#[derive(Serialize)]
struct CoreRow<'a> {
    name: &'a str,
    windows: usize,
    excess_at_start: f64,
    all: FiguresRow<'a>,
}

#[derive(Serialize)]
struct FunctionRow<'a> {
    name: &'a str,
    module: &'a str,
    path: &'a str,
    core: &'a str,
    own: FiguresRow<'a>,
    inclusive: FiguresRow<'a>,
    lines: Vec<LineRow<'a>>,
}

#[derive(Serialize)]
struct LineRow<'a> {
    file: &'a str,
    line: u32,
    time_ns: u64,
    time: Confidence,
    bursts: usize,
}

#[derive(Serialize)]
struct FiguresRow<'a> {
    time_ns: u64,
    time: Confidence,
    bursts: usize,
    windows: usize,
    /// By perf's names; none that cannot be told.
    shares: BTreeMap<&'a str, Confidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cannot_be_told: Option<String>,
}

fn figures<'a>(core: &ProfiledCore, figures: &FunctionFigures) -> FiguresRow<'a> {
    let (shares, windows, why) = match &figures.shares {
        Ok(told) => (core.nodes.iter().map(name).zip(told.shares.clone()).collect(), told.windows, None),
        Err(Untold::Few(bursts)) => {
            (BTreeMap::new(), 0, Some(format!("{bursts} bursts have a window in the function, too few")))
        }
    };
    let FunctionFigures { time, time_ns, bursts, .. } = *figures;
    FiguresRow { time_ns, time, bursts, windows, shares, cannot_be_told: why }
}

fn line(line: &ProfiledLine) -> LineRow<'_> {
    let ProfiledLine { ref file, line, time, time_ns, bursts } = *line;
    LineRow { file, line, time_ns, time, bursts }
}

pub(super) fn json(profile: &Profile, command: &str) -> String {
    let core = |core: &'_ ProfiledCore| CoreRow {
        name: core.name,
        windows: core.windows,
        excess_at_start: core.excess,
        all: figures(core, &core.all),
    };
    let functions = profile.functions.iter().map(|function| {
        let core = &profile.cores[function.core];
        FunctionRow {
            name: &function.name,
            module: &function.module,
            path: &function.path,
            core: core.name,
            own: figures(core, &function.own),
            inclusive: figures(core, &function.inclusive),
            lines: function.lines.iter().map(line).collect(),
        }
    });
    let document = Document {
        format: FORMAT,
        command,
        elapsed_ns: profile.elapsed.as_nanos() as u64,
        threads: profile.threads,
        threads_refused: profile.refused.0,
        bursts: profile.bursts,
        lost_records: profile.lost,
        bursts_left_out: profile.impossible,
        windows_left_out: profile.parted,
        times_throttled: profile.throttled.div_ceil(2),
        bursts_per_second_asked: profile.pace.asked,
        bursts_per_second: profile.pace.frequency,
        burst_ns: profile.pace.burst_ns,
        cores: profile.cores.iter().map(core).collect(),
        functions: functions.collect(),
    };
    serde_json::to_string_pretty(&document).expect("finite numbers and text") + "\n"
}
