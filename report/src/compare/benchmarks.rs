//! Results of Google Benchmark (JSON) with the counters of topdown_benchmark.h: each benchmark is a region, of 1,000 iterations, since how often each
//! runs is the library's choice; so there is no whole.
#![forbid(unsafe_code)]

use super::{ReadRows, RegionRow, SHARES, clean, metrics};
use serde_json::Value;
use std::collections::BTreeMap;
use topdown::LEVEL_1;

/// Iterations that figures are of. (Of one there may be less than a nanosecond.)
const ITERATIONS: f64 = 1000.0;

/// What repetitions of a benchmark have in common.
#[derive(Default)]
struct Tally {
    iterations: f64,
    slots: f64,
    time_ns: f64,
    /// Of those that have them: shares and bounds, times slots, and these.
    shares: [(f64, f64, f64); SHARES],
}

/// None: this is no such file.
pub(super) fn of_json(text: &str) -> Option<ReadRows> {
    let results: Value = serde_json::from_str(text).ok()?;
    let benchmarks = results["benchmarks"].as_array()?;
    results["context"].as_object()?;
    // (with --benchmark_report_aggregates_only there is nothing but means)
    let is_run = |one: &&Value| one["run_type"] != "aggregate";
    let is_mean = |one: &&Value| one["aggregate_name"] == "mean";
    let has_runs = benchmarks.iter().any(|one| is_run(&one));
    let counted =
        |one: &&Value| (if has_runs { is_run(one) } else { is_mean(one) }) && one["error_occurred"] != true;
    let (mut names, mut tallies) = (Vec::new(), BTreeMap::<&str, Tally>::new());
    let mut is_simulated = false;
    for one in benchmarks.iter().filter(counted) {
        let name = one["run_name"].as_str().or_else(|| one["name"].as_str())?;
        if !tallies.contains_key(name) {
            names.push(name);
        }
        is_simulated |= one["simulated"].is_number();
        add(one, tallies.entry(name).or_default())?;
    }
    let row = |name: &str| (clean(name), tallies[name].row());
    Some((names.into_iter().map(row).collect(), is_simulated))
}

fn add(one: &Value, to: &mut Tally) -> Option<()> {
    let number = |name: &str| one[name].as_f64();
    let unit = match one["time_unit"].as_str()? {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let iterations = number("iterations")?;
    to.iterations += iterations;
    to.time_ns += iterations * unit * number("real_time")?;
    let Some(slots) = number("slots") else { return Some(()) };
    let slots = slots * iterations;
    to.slots += slots;
    let errors = [number("error"), number("error_level_2")];
    for (k, (metric, (share, error, of))) in metrics().zip(&mut to.shares).enumerate() {
        let bound = errors[usize::from(k >= LEVEL_1.len())];
        if let Some((value, bound)) = number(metric.field()).zip(bound) {
            *share += slots * value;
            *error += slots * bound;
            *of += slots;
        }
    }
    Some(())
}

impl Tally {
    /// (What was not measured each time is not known of all.)
    fn row(&self) -> RegionRow {
        let is_counted = self.slots > 0.0;
        let shares = self
            .shares
            .map(|(share, error, of)| (is_counted && of == self.slots).then(|| (share / of, error / of)));
        let each = |sum: f64| (sum * ITERATIONS / self.iterations.max(1.0)).round() as u64;
        let ns = each(self.time_ns);
        RegionRow {
            executions: ITERATIONS as u64,
            slots: is_counted.then_some(each(self.slots)),
            time_ns: is_counted.then_some(ns),
            wall_ns: (!is_counted).then_some(ns),
            shares,
            nodes: Vec::new(),
        }
    }
}
