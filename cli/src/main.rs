//! The command `topdown`.
#![deny(unsafe_code)] // allowed in sys and its modules, preload and two modules of selftest

mod check;
mod compare;
mod describe;
mod list;
mod metrics;
#[allow(unsafe_code)]
mod preload;
mod record;
mod report;
mod run;
#[cfg(target_arch = "x86_64")]
mod selftest;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_selftest.rs"]
mod selftest;
mod stat;
mod sys;
mod top;
mod unmeasured;

use clap::{Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;
use topdown_report::{clean, print};

/// Where the CPU's pipeline slots go.
#[derive(Parser)]
#[command(name = "topdown", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What can be measured here, and what stands in the way
    #[command(after_help = check::HELP)]
    Check(check::Arguments),
    /// Which CPUs can be measured, and how
    #[command(after_help = list::HELP)]
    List(list::Arguments),
    /// Count from outside where slots go: of a command, whatever it is and does, of processes, threads or CPUs
    #[command(after_help = stat::HELP)]
    Stat(stat::Arguments),
    /// Sample which functions waste slots: of a command or of processes, as they are
    #[command(after_help = record::HELP)]
    Record(record::Arguments),
    /// Show on a terminal where slots go now: of all CPUs, of processes, threads, or a command
    #[command(after_help = top::HELP)]
    Top(top::Arguments),
    /// Run a command, and report where its slots went: all of it, each thread, and regions
    #[command(after_help = run::HELP)]
    Run(run::Arguments),
    /// Report what table files of measured processes say
    #[command(after_help = report::HELP)]
    Report(report::Arguments),
    /// What has changed from one report or recording to another, and whether it is more than their bounds leave open
    #[command(after_help = compare::HELP)]
    Compare(compare::Arguments),
}

/// A line for the user, who may have no standard error.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "topdown: {}", clean(line));
}

fn main() -> ExitCode {
    sys::let_files_be_too_large();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            // it quotes what was given
            let text: Vec<String> = error.render().to_string().lines().map(clean).collect();
            let _ = writeln!(io::stderr(), "{}", text.join("\n"));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    match arguments.command {
        Command::Check(arguments) => check::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Stat(arguments) => stat::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
    }
}
