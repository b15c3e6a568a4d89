//! `topdown check --selftest`, where it is not: its microkernels and what it tries are of x86.

use crate::say;
use std::path::Path;
use std::process::ExitCode;

/// Exit status 1.
pub fn run(_: Option<&Path>, _: bool) -> ExitCode {
    say(
        "check --selftest tries what is assumed of x86-64; on this CPU `topdown check` alone tells what can be measured",
    );
    ExitCode::FAILURE
}
