//! The command `topdown`.
#![deny(unsafe_code)] // allowed in sys and in two modules of selftest

mod check;
mod report;
mod run;
mod selftest;
mod sys;
mod unmeasured;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

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
    /// Run a command, and report where its slots went: all of it, each thread, and regions
    #[command(after_help = run::HELP)]
    Run(run::Arguments),
    /// Report what table files of measured processes say
    #[command(after_help = report::HELP)]
    Report(report::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
    }
}
