//! `topdown list`: which CPUs can be measured.

use crate::{in_words_of_the_command, print, say};
use serde::Serialize;
use std::process::ExitCode;
use topdown::{Core, cores, not_measured};

/// The family of cores that MIDR_EL1 identifies; their models are its part numbers.
const ARM64: u32 = 0;

/// Options of `topdown list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON array, for scripts
    #[arg(long)]
    json: bool,
    /// Print the table of docs/cpus.md
    #[arg(long, hide = true, conflicts_with = "json")]
    markdown: bool,
}

/// What `topdown list --help` says of the rest.
pub const HELP: &str = "\
For each kind of core: what is counted, how many general counters that takes, down to which level, and how it was proved. A core
stands twice if it can be measured in two ways. Below, those that cannot be, and why. `topdown check` tells which of them this machine has.";

/// Exit status 0, unless nothing can be written.
pub fn run(arguments: &Arguments) -> ExitCode {
    let text = if arguments.json {
        topdown_report::json(&cores().map(Json::new).collect::<Vec<_>>())
    } else if arguments.markdown {
        markdown()
    } else {
        table()
    };
    match print(&text) {
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

#[derive(Serialize)]
struct Json {
    core: &'static str,
    vendor: &'static str,
    family: u32,
    models: &'static [u32],
    slots_per_cycle: u32,
    general_counters: usize,
    level: u32,
    proved: &'static str,
    no_deeper: String,
}

impl Json {
    fn new(core: Core) -> Json {
        let Core {
            core,
            vendor,
            family,
            models,
            slots_per_cycle,
            general_counters,
            level,
            proved,
            no_deeper,
        } = core;
        let no_deeper = in_words_of_the_command(no_deeper);
        Json { core, vendor, family, models, slots_per_cycle, general_counters, level, proved, no_deeper }
    }
}

fn source(core: &Core) -> String {
    match core.general_counters {
        0 => "SLOTS and PERF_METRICS".into(),
        counters => format!("{counters} general counters"),
    }
}

fn table() -> String {
    let mut out = String::new();
    for core in cores() {
        out += &format!(
            "{:40} {:23} level {}  {}\n",
            core.core,
            source(&core),
            core.level,
            if core.proved.is_empty() { "not run" } else { core.proved }
        );
    }
    out += "\nKnown, and not measured:\n";
    for (core, why) in not_measured() {
        out += &format!("{core:40} {why}\n");
    }
    out
}

/// "0x6a, 0x6c", and of many in a row the first and the last.
fn models(models: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for model in models {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *model => *last = *model,
            _ => ranges.push((*model, *model)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { format!("{first:#x}") } else { format!("{first:#x}-{last:#x}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// What counts a part of a level, as the library's texts call it; and in a document for users of the library and of the command.
const SUBTREE: &str = "td_options.subtree";
const BY_BOTH: &str = "td_options.subtree or `topdown stat --subtree`";

fn markdown() -> String {
    let mut out = String::from(
        "| core | family | models | slots per cycle | counted by | level | proved |\n|---|---|---|---|---|---|---|\n",
    );
    for core in cores() {
        out += &format!(
            "| {} | {} {} | {} | {} | {} | {} | {} |\n",
            core.core,
            core.vendor,
            if core.family == ARM64 { "arm64".into() } else { core.family.to_string() },
            models(core.models),
            if core.slots_per_cycle == 0 { "not known".into() } else { core.slots_per_cycle.to_string() },
            source(&core),
            if core.no_deeper.is_empty() {
                core.level.to_string()
            } else {
                let both = core.no_deeper.replace(SUBTREE, BY_BOTH);
                format!("{} ({both})", core.level)
            },
            if core.proved.is_empty() {
                "not run; formula tested by hand-derived vectors"
            } else {
                core.proved
            },
        );
    }
    out
}
