//! `topdown check`: what can be measured here.

mod abilities;
mod summary;
mod surroundings;

use crate::{describe, print, say, sys};
use abilities::{Ability, abilities};
use serde::Serialize;
use std::process::ExitCode;
use surroundings::Surroundings;
use topdown::{Finding, Info, Path, Survey, Verdict, probe};
use topdown_report::clean;
use topdown_report::terminal::{Layout, Stream};

/// Columns before what was found.
const INDENT: usize = 30;
/// Before what to do about it.
const ARROW: &str = "-> ";

/// Options of `topdown check`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON object, for scripts (see below)
    #[arg(long)]
    json: bool,
    /// Print instead what this machine says of its CPU and PMUs: what the project needs to know of a CPU that it does not know
    #[arg(long, conflicts_with_all = ["json", "selftest"])]
    describe: bool,
    /// Try on this machine what could only be tried on an emulated one, and report it (some 30 seconds)
    #[arg(long)]
    selftest: bool,
    /// Write the report of --selftest to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "selftest")]
    output: Option<std::path::PathBuf>,
}

/// What `topdown check --help` says of the rest.
pub const HELP: &str = "\
First comes what can be done here, what goes no further (no more) and what cannot be done, each with the reason, and what
permits it, where that is a setting. Each thing was tried.

Below that each line is a probe, in the order in which a measurement meets these things: its name, a verdict,
what was found, and behind an arrow what to do about it. Verdicts:
  good     as it should be
  note     does not keep anybody from measuring, but is worth knowing
  BLOCKER  keeps the default td_open from measuring
  unknown  could not be found out, or an earlier BLOCKER leaves nothing to find out

The counters are opened as td_open opens them by default, and watched for 20 ms; then it is tried how many
general counters are free. Nothing is changed.

With --json:
  {\"abilities\": [{\"name\": \"stat\", \"can\": true, \"level\": 6, \"how\": null, \"why\": \"\",
                  \"remedies\": [{\"reach\": \"once\", \"what\": \"...\"}, ...]}, ...],
   \"findings\": [{\"name\": \"rdpmc\", \"found\": \"...\", \"verdict\": \"good\", \"remedy\": \"\"}, ...],
   \"overall\": {\"works\": true, \"code\": 0, \"path\": \"rdpmc\", \"level\": 2, \"slots_per_cycle\": 6,
               \"core\": \"...\", \"cpu\": \"...\"}}
Abilities are \"stat\", \"run\", \"regions\", \"record\", \"record_ptrace\", \"drill\", \"record_tpebs\", \"kernel\", \"all_cpus\" and
\"record_all_cpus\"; `how` is \"rdpmc\", \"read\" or \"time\" of regions, \"slots\" or \"time\" of what records, \"time\" of run without counters; `why` is why it cannot be done, or goes no further, and `reach`
\"once\", \"for good\", \"one command\" or \"container\".
Verdicts are \"good\", \"note\", \"wall\" (a BLOCKER) and \"unknown\"; a remedy may be empty. `overall` is the default
open: `code` is what td_open returns, `path` is \"rdpmc\" or \"read\", `slots_per_cycle` is 0 if not
known; where the open does not work, all but `works` and `code` are null. Names and values stay as
they are; new ones may come. Texts are for people and may change.

With --selftest --json:
  {\"machine\": [{\"name\": \"CPU\", \"value\": \"...\"}, ...], \"notes\": [\"...\"],
   \"checks\": [{\"name\": \"retiring\", \"verdict\": \"holds\", \"expected\": \"...\", \"facts\": \"...\", \"found\": \"...\"}, ...],
   \"sources\": [{\"workload\": \"retiring\", \"dropped\": 0.01, \"nodes\": [
                {\"node\": \"tma_retiring\", \"registers\": {\"value\": 0.75, \"bound\": 0.004},
                 \"counters\": {\"value\": 0.75, \"bound\": 0.001}, \"difference\": 0.0, \"verdict\": \"agree\"}, ...]}, ...],
   \"hold\": 20, \"do_not\": 0, \"not_tried\": 4}
Verdicts of checks are \"holds\", \"fails\" and \"untried\"; of nodes \"agree\" and \"differ\".

Exit status: 0 if the default td_open works, 1 if not, 2 for wrong arguments.";

/// Exit status 0 if the default open works, 1 if not.
pub fn run(arguments: &Arguments) -> ExitCode {
    if arguments.selftest {
        return selftest(arguments);
    }
    if arguments.describe {
        return match print(&describe::block(std::path::Path::new("/"))) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&error.to_string());
                ExitCode::FAILURE
            }
        };
    }
    let surroundings = Surroundings { descriptors: sys::raise_descriptors(), has_proc: sys::has_proc() };
    let (mut survey, abilities) = (probe(), abilities(&surroundings));
    // (the last is the default open, which decides)
    let last = survey.findings.len().saturating_sub(1);
    survey.findings.splice(last..last, surroundings.findings());
    let in_container = survey.findings.iter().any(|f| f.name == "container" && f.verdict != Verdict::Good);
    let text = match arguments.json {
        true => json(&survey, &abilities, in_container),
        false => {
            let layout = Layout::of(Stream::Output);
            summary::text(&abilities, in_container, &layout) + &table(&survey.findings, &layout)
        }
    };
    match print(&text) {
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
        _ if survey.open.is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The word in JSON. Scripts compare it, so a blocker keeps the word of the first version.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Note => "note",
        Verdict::Blocker => "wall",
        Verdict::Unknown => "unknown",
    }
}

fn table(findings: &[Finding], layout: &Layout) -> String {
    let indent = " ".repeat(INDENT);
    let mut out = String::new();
    for Finding { name, found, verdict, remedy } in findings {
        let is_blocker = *verdict == Verdict::Blocker;
        let (verdict, paint): (_, fn(&Layout, &str) -> String) =
            if is_blocker { ("BLOCKER", Layout::alarm) } else { (word(*verdict), |_, text| text.into()) };
        let found = layout.lines(&indent, &indent, &clean(found)).join("\n");
        let found = found.trim_start();
        out += &format!("{name:19}  {}{:2$}{found}\n", paint(layout, verdict), "", 9 - verdict.len());
        if !remedy.is_empty() {
            let (first, rest) = (format!("{indent}{ARROW}"), format!("{indent}   "));
            out += &(layout.lines(&first, &rest, &clean(remedy)).join("\n") + "\n");
        }
    }
    out
}

#[derive(Serialize)]
struct CheckJson<'r> {
    abilities: Vec<summary::AbilityJson>,
    findings: Vec<JsonFinding<'r>>,
    overall: Overall<'r>,
}

#[derive(Serialize)]
struct JsonFinding<'r> {
    name: &'r str,
    found: &'r str,
    verdict: &'static str,
    remedy: &'r str,
}

#[derive(Serialize)]
struct Overall<'r> {
    works: bool,
    code: i32,
    path: Option<&'static str>,
    level: Option<u32>,
    slots_per_cycle: Option<u32>,
    core: Option<&'r str>,
    cpu: Option<&'r str>,
}

fn json(survey: &Survey, abilities: &[Ability], in_container: bool) -> String {
    let info = survey.open.as_ref().ok();
    let findings = survey.findings.iter();
    let json = CheckJson {
        abilities: summary::json(abilities, in_container),
        findings: findings
            .map(|Finding { name, found, verdict, remedy }| JsonFinding {
                name,
                found,
                verdict: word(*verdict),
                remedy,
            })
            .collect(),
        overall: Overall {
            works: info.is_some(),
            code: survey.open.as_ref().err().map_or(0, topdown::Error::code),
            path: info.map(path),
            level: info.map(|info| info.level),
            slots_per_cycle: info.map(|info| info.slots_per_cycle),
            core: info.map(|info| info.core.as_str()),
            cpu: info.map(|info| info.cpu.as_str()),
        },
    };
    topdown_report::json(&json)
}

fn path(info: &Info) -> &'static str {
    match info.path {
        Path::Rdpmc => "rdpmc",
        Path::Read => "read",
        Path::Simulated => "simulated",
    }
}

/// What is assumed of the machine, tried on it.
// (elsewhere it asks nothing)
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn selftest(arguments: &Arguments) -> ExitCode {
    #[cfg(target_arch = "x86_64")]
    let done = topdown_selftest::run(arguments.output.as_deref(), arguments.json);
    #[cfg(not(target_arch = "x86_64"))]
    let done = Err(std::io::Error::other(
        "check --selftest tries what is assumed of x86-64; on this CPU `topdown check` alone tells what can be measured",
    ));
    done.unwrap_or_else(|error| {
        say(&error.to_string());
        ExitCode::FAILURE
    })
}
