//! Files of metrics and events: Intel's perfmon, Linux perf's pmu-events and Arm's telemetry JSON. Each is read to one form (`file`), its formulas to
//! expressions (`formula`), its events to what perf_event_open(2) takes (`event`), and all names to what they stand for (`resolve`). Nothing
//! here reads or writes anything; whatever the bytes are, memory and stack are bounded by the limits below.
#![forbid(unsafe_code)]

mod event;
mod file;
mod formula;
#[doc(hidden)]
pub mod fuzz;
mod resolve;
#[cfg(test)]
mod tests;

pub use event::EventLayout;
pub use file::{MetricFile, Product, read};
pub use resolve::{FileMetrics, Machine, resolve};

/// Bytes of a file. (The largest that are published have half a megabyte of metrics, or two of events.)
pub const MOST_BYTES: u64 = 4 << 20;
/// Files of one `--metrics`.
pub const MOST_FILES: usize = 32;
/// Metrics of a file, and of all files of one `--metrics`. (Of the published ones 340.)
pub const MOST_METRICS: usize = 1_000;
/// Events of a file, and aliases of a metric.
pub const MOST_EVENTS: usize = 10_000;
/// Events of a metric that can be told.
pub const MOST_EVENTS_OF_METRIC: usize = 100;
/// Bytes of a formula.
pub const MOST_FORMULA: usize = 32 << 10;
/// Bytes of a name or unit.
pub const MOST_NAME: usize = 200;
/// Brackets, minus signs and `else` within one another.
pub const MOST_BRACKETS: usize = 100;
/// Operators within one another, with those of the metrics that a formula takes.
pub const MOST_DEPTH: usize = 500;
/// Metrics that follow from one another.
pub const MOST_REFERENCES: usize = 40;
/// Words of a formula, with those of the metrics that it takes.
pub const MOST_WORDS: usize = 20_000;
/// Words of all formulas of one `--metrics`.
pub const MOST_WORDS_OF_ALL: usize = 300_000;
