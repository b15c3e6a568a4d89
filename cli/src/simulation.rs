//! TOPDOWN_SIMULATE: counters that are made up, on a machine without any, to see what is shown on one that has them. Each view says so.
#![forbid(unsafe_code)]

use crate::stat::levels::{ReachedLevel, cause, deepest};
use topdown::{CoreKind, Options, SourceKind, Target, TopDown};
use topdown_report::steps::quoted;

/// The environment variable: 1, or the name of a core.
pub const VARIABLE: &str = "TOPDOWN_SIMULATE";

/// It as a shell has to be told.
pub fn assignment() -> String {
    let value = std::env::var_os(VARIABLE).unwrap_or_default();
    format!("{VARIABLE}={}", quoted(&value.to_string_lossy()))
}

/// What it asks for: a simulated core, whose name is empty for 1; None: what the machine counts.
///
/// # Errors
/// No core has the name, and the text lists those that there are.
pub fn core() -> Result<Option<&'static str>, String> {
    let value = std::env::var_os(VARIABLE).unwrap_or_default();
    topdown::simulation(&value.to_string_lossy()).map_err(|error| format!("{VARIABLE}: {error}"))
}

/// The same, where general-purpose counters alone can count: from outside, or between samples.
///
/// # Errors
/// The same; or the core has none that count slots.
pub fn core_by_counters() -> Result<Option<&'static str>, String> {
    let by_counters =
        |core| topdown::simulated_by_counters(core).map_err(|error| format!("{VARIABLE}: {error}"));
    core()?.map(by_counters).transpose()
}

/// That an option takes what no simulated PMU has, and what to do.
pub fn refused(option: &str, what: &str) -> String {
    format!(
        "{option}: a simulated PMU {what} ({VARIABLE}): leave the option out, or the variable on a machine with counters"
    )
}

/// Options of a simulated group that stands for one of these, whoever is counted.
pub fn options(options: &Options) -> Options {
    Options {
        target: Target::This,
        kernel: false,
        inherit: false,
        on_exec: false,
        off: false,
        in_turns: false,
        record_slots: 0,
        record_cgroups: false,
        source: SourceKind::Automatic,
        cores: CoreKind::Automatic,
        simulate: true,
        ..*options
    }
}

/// The deepest level down to this one that the core's counters tell.
///
/// # Errors
/// None is told, and why.
pub fn reached(core: &'static str, asked: u32) -> Result<ReachedLevel, String> {
    let open = |level| TopDown::open(&Options { simulate: true, core, level, ..Options::default() });
    deepest(asked, |level| open(level).map(|_| level).map_err(|why| cause(&why)))
}
