//! The command `topdown`.
#![deny(unsafe_code)] // allowed in sys and in two modules of selftest

mod check;
mod compare;
mod list;
mod report;
mod run;
mod selftest;
mod stat;
mod sys;
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
    /// Run a command, and report where its slots went: all of it, each thread, and regions
    #[command(after_help = run::HELP)]
    Run(run::Arguments),
    /// Report what table files of measured processes say
    #[command(after_help = report::HELP)]
    Report(report::Arguments),
    /// What has changed from one report to another, and whether it is more than their bounds leave open
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
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
    }
}
