//! The command `topdown`.
#![deny(unsafe_code)] // allowed in sys and its modules, and in preload

mod check;
mod compare;
mod demo;
mod describe;
mod list;
mod means;
mod metrics;
mod outcome;
mod perf;
#[allow(unsafe_code)]
mod preload;
mod record;
mod report;
mod require;
mod run;
mod share;
#[cfg(test)]
mod shown;
mod simulation;
mod sources;
mod stat;
mod sys;
mod top;
mod unmeasured;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;
use topdown::OptionNames;
use topdown_report::terminal::{Layout, Stream, say};
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
    #[command(after_help = stat::HELP, override_usage = stat::USAGE)]
    Stat(stat::Arguments),
    /// Sample which functions waste slots: of a command or of processes, as they are
    #[command(after_help = record::HELP, override_usage = record::USAGE)]
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
    /// Show what each view looks like, of a small program and of counters that are made up: on any machine
    #[command(after_help = demo::HELP)]
    Demo(demo::Arguments),
    /// Write man pages and completions of shells
    #[command(hide = true)]
    ShareFiles(share::Arguments),
}

/// How the command's user writes options that texts of the library name.
const OPTIONS: OptionNames = OptionNames {
    level: "--td-level",
    subtree: "--subtree",
    in_parts: "`topdown stat --subtree` counts a part of it",
};

/// Subcommands whose exit status is that of the command that they run: a failure of their own has another one.
const RUN_COMMANDS: [&str; 4] = ["stat", "record", "top", "run"];
/// Exit status for wrong arguments of the others.
const WRONG_ARGUMENTS: u8 = 2;

/// The command line, with help that is laid out so.
fn command(layout: &Layout) -> clap::Command {
    let colours = if layout.has_colours { ColorChoice::Always } else { ColorChoice::Never };
    let command = Arguments::command().term_width(layout.columns).color(colours);
    command.mut_subcommands(|one| {
        let help = one.get_after_help().map(|help| layout.paragraphs(&help.to_string()));
        one.after_help(help.unwrap_or_default())
    })
}

/// Why the arguments are wrong.
fn say_wrong(error: &clap::Error, subcommand: &str) {
    let text = perf::explained(subcommand, error).unwrap_or_else(|| error.render().to_string());
    let layout = Layout::of(Stream::Error);
    // (it quotes what was given)
    let lines: Vec<String> = text.lines().map(|line| layout.sentence(&clean(line))).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

fn main() -> ExitCode {
    topdown::name_options(OPTIONS);
    sys::let_files_be_too_large();
    topdown_report::wait_for_readers_by(sys::wait_for_reader);
    topdown_report::write_parquet_by(topdown_lake::write);
    let given = command(&Layout::of(Stream::Output)).try_get_matches();
    let arguments = match given.and_then(|given| Arguments::from_arg_matches(&given)) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            let subcommand = std::env::args_os().nth(1).unwrap_or_default();
            let subcommand = subcommand.to_string_lossy();
            say_wrong(&error, &subcommand);
            let runs = RUN_COMMANDS.contains(&&*subcommand);
            return ExitCode::from(if runs { outcome::FAILED } else { WRONG_ARGUMENTS });
        }
        Err(help) => help.exit(),
    };
    match arguments.command {
        Command::Check(arguments) => check::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Stat(arguments) => stat::run(arguments),
        Command::Record(arguments) => record::run(arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::ShareFiles(arguments) => share::run(&arguments, Arguments::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn subcommands_that_run_commands_take_one() {
        let all = Arguments::command();
        let takes = |name: &str| {
            let of_name = all.find_subcommand(name).expect("it is one");
            of_name.get_arguments().any(|argument| argument.is_trailing_var_arg_set())
        };
        assert!(
            all.get_subcommands().all(|one| takes(one.get_name()) == RUN_COMMANDS.contains(&one.get_name()))
        );
    }
}
