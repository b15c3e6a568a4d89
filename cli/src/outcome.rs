//! How `topdown run`, `stat`, `record` and `top` end: exit status and text, and where the report is.
#![forbid(unsafe_code)]

use crate::say;
use crate::sys::{self, End};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use topdown_report::terminal::say_written;
use topdown_report::{Format, NO_TIMELINE, Report};

/// `topdown` itself failed.
pub const FAILED: u8 = 125;

/// Exit status of the command, by the same signal if one ended it.
pub fn ended(end: Result<End, Failure>) -> ExitCode {
    match end {
        Ok(End::Status(status)) => ExitCode::from(status),
        Ok(End::Signal(signal)) => {
            sys::raise(signal);
            ExitCode::from(128 + signal as u8) // a signal that does not kill
        }
        Err((status, text)) => {
            say(&text);
            ExitCode::from(status)
        }
    }
}

/// The exit status of `topdown` itself, and why.
pub type Failure = (u8, String);

/// This error, before anything was measured.
pub fn failed(error: impl ToString) -> Failure {
    (FAILED, error.to_string())
}

/// As shells have it.
pub fn not_run(program: &OsStr, error: &io::Error) -> Failure {
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (status, format!("cannot run {}: {error}", program.to_string_lossy()))
}

/// Writes the timeline of a report, if one is wanted, or says why there is none.
pub fn write_timeline(report: &Report, to: Option<&Path>) {
    let Some(path) = to else { return };
    match topdown_report::write_timeline(report, path) {
        Ok(()) if report.timeline.is_none() => say(&format!("{} is empty: {NO_TIMELINE}", path.display())),
        Ok(()) => say_written("timeline", path),
        Err(why) => say(&format!("no timeline: {why}")),
    }
}

/// That a report was written; and if it shows a timeline alone, and there is none, why.
pub fn say_report(report: &Report, path: &Path, format: Format) {
    match format {
        Format::Trace if report.timeline.is_none() => {
            say(&format!("{} is empty: {NO_TIMELINE}", path.display()));
        }
        _ => say_written("report", path),
    }
}
