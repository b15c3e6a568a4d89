//! The whole profile as JSON.
#![forbid(unsafe_code)]

use super::{name, remarks};
use crate::cpus::{CpuChange, CpuTotals};
use crate::estimate::NoShares;
use crate::held::EventShare;
use crate::mean_latency::MeanLatency;
use crate::profile::{FunctionFigures, Profile, ProfiledCore, ProfiledLine, ProfiledThread};
use serde::Serialize;
use std::collections::BTreeMap;
use topdown_report::ShareInterval;
use topdown_report::model::SIMULATED_PATH;

/// What the file says that it is.
pub(crate) const FORMAT: &str = "topdown-record-1";

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    command: &'a str,
    /// "simulated": shares are made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'static str>,
    elapsed_ns: u64,
    threads: usize,
    #[serde(flatten)]
    cpus: Option<CpusRow>,
    threads_refused: usize,
    threads_not_sampled: usize,
    time_not_sampled_ns: u64,
    threads_timed_by_bursts: usize,
    threads_timed_by_timer: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_by: Option<&'static str>,
    processes_left_running: usize,
    bursts: usize,
    lost_records: u64,
    bursts_left_out: u64,
    windows_left_out: u64,
    times_throttled: u64,
    bursts_per_second_asked: u32,
    bursts_per_second: f64,
    burst_ns: f64,
    notes: &'a [String],
    remarks: Vec<String>,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    condition: Option<&'a EventShare>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locate: Option<&'a EventShare>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_alone: Option<&'a EventShare>,
    cores: Vec<CoreRow<'a>>,
    functions: Vec<FunctionRow<'a>>,
    /// Those of most time first.
    by_thread: Vec<ThreadRow<'a>>,
}

/// Where CPUs were recorded, not threads.
#[derive(Serialize)]
struct CpusRow {
    cpus: usize,
    cpus_changed: Vec<u32>,
    cpu_changes: Vec<CpuChange>,
    windows_of_several_threads: u64,
    processes_without_names: usize,
    time_by_timer: bool,
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
struct ThreadRow<'a> {
    tid: i32,
    #[serde(skip_serializing_if = "str::is_empty")]
    process: &'a str,
    core: &'a str,
    #[serde(flatten)]
    figures: FiguresRow<'a>,
}

#[derive(Serialize)]
struct LineRow<'a> {
    file: &'a str,
    line: u32,
    #[serde(flatten)]
    time: TimeRow,
    bursts: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    retire_latency: Option<MeanLatency>,
}

/// Of all time; or of all events that samples stand for.
#[derive(Serialize)]
#[serde(untagged)]
enum TimeRow {
    Time { time_ns: u64, time: ShareInterval },
    Events { events: u64, part: ShareInterval },
}

impl TimeRow {
    fn of(profile: &Profile, ns: u64, part: ShareInterval) -> TimeRow {
        match profile.is_of_time() {
            true => TimeRow::Time { time_ns: ns, time: part },
            false => TimeRow::Events { events: ns, part },
        }
    }
}

#[derive(Serialize)]
struct FiguresRow<'a> {
    #[serde(flatten)]
    time: TimeRow,
    bursts: usize,
    windows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    retire_latency: Option<MeanLatency>,
    /// By perf's names; none that cannot be told.
    shares: BTreeMap<&'a str, ShareInterval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cannot_be_told: Option<String>,
}

fn cpus(totals: &CpuTotals) -> CpusRow {
    CpusRow {
        cpus: totals.cpus,
        cpus_changed: totals.changed.clone(),
        cpu_changes: totals.changes.clone(),
        windows_of_several_threads: totals.switched,
        processes_without_names: totals.hidden,
        time_by_timer: totals.by_timer,
    }
}

/// `what`: whose they are.
fn figures<'a>(
    profile: &Profile,
    core: &ProfiledCore,
    figures: &FunctionFigures,
    what: &str,
) -> FiguresRow<'a> {
    let (shares, windows, why) = match &figures.shares {
        Ok(told) => (core.nodes.iter().map(name).zip(told.shares.clone()).collect(), told.windows, None),
        Err(NoShares::Conditional | NoShares::Little) => (BTreeMap::new(), 0, None),
        Err(NoShares::Few(bursts)) => {
            (BTreeMap::new(), 0, Some(format!("too few bursts have a window in {what}: {bursts}")))
        }
    };
    let FunctionFigures { time, time_ns, bursts, latency: retire_latency, .. } = *figures;
    let time = TimeRow::of(profile, time_ns, time);
    FiguresRow { time, bursts, windows, retire_latency, shares, cannot_be_told: why }
}

fn thread<'a>(profile: &'a Profile, thread: &'a ProfiledThread) -> ThreadRow<'a> {
    let core = &profile.cores[thread.core];
    let figures = figures(profile, core, &thread.figures, "the thread");
    ThreadRow { tid: thread.tid, process: &thread.process, core: core.name, figures }
}

fn line<'a>(profile: &Profile, line: &'a ProfiledLine) -> LineRow<'a> {
    let ProfiledLine { ref file, line, time, time_ns, bursts, latency: retire_latency } = *line;
    LineRow { file, line, time: TimeRow::of(profile, time_ns, time), bursts, retire_latency }
}

pub(super) fn json(profile: &Profile, command: &str) -> String {
    let core = |core: &'_ ProfiledCore| CoreRow {
        name: core.name,
        windows: core.windows,
        excess_at_start: core.excess,
        all: figures(profile, core, &core.all, "the function"),
    };
    let functions = profile.functions.iter().map(|function| {
        let core = &profile.cores[function.core];
        FunctionRow {
            name: &function.name,
            module: &function.module,
            path: &function.path,
            core: core.name,
            own: figures(profile, core, &function.own, "the function"),
            inclusive: figures(profile, core, &function.inclusive, "the function"),
            lines: function.lines.iter().map(|one| line(profile, one)).collect(),
        }
    });
    let document = Document {
        format: FORMAT,
        command,
        path: profile.simulated.map(|_| SIMULATED_PATH),
        elapsed_ns: profile.elapsed.as_nanos() as u64,
        threads: profile.threads,
        cpus: profile.cpus.as_ref().map(cpus),
        threads_refused: profile.refused.0,
        threads_not_sampled: profile.unseen.threads,
        time_not_sampled_ns: profile.unseen.ns,
        threads_timed_by_bursts: profile.unclocked,
        threads_timed_by_timer: profile.by_timer,
        time_by: profile.is_of_time().then(|| profile.time_by()),
        processes_left_running: profile.left_running,
        bursts: profile.bursts,
        lost_records: profile.lost,
        bursts_left_out: profile.impossible,
        windows_left_out: profile.parted,
        times_throttled: profile.throttled.div_ceil(2),
        bursts_per_second_asked: profile.pace.asked,
        bursts_per_second: profile.pace.frequency,
        burst_ns: profile.pace.burst_ns,
        notes: &profile.notes,
        remarks: remarks::of_all(profile),
        condition: profile.held.as_ref().filter(|held| held.of.is_condition()),
        locate: profile.event().filter(|held| !held.of.is_condition()),
        time_alone: profile.held.as_ref().filter(|held| held.of.is_time()),
        cores: profile.cores.iter().map(core).collect(),
        functions: functions.collect(),
        by_thread: profile.by_thread.iter().map(|one| thread(profile, one)).collect(),
    };
    serde_json::to_string_pretty(&document).expect("finite numbers and text") + "\n"
}
