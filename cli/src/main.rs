//! The command `topdown`.
#![deny(unsafe_code)] // allowed in two modules of selftest

mod check;
mod selftest;

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
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Check(arguments) => check::run(&arguments),
    }
}
