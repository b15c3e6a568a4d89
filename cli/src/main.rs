//! The command `topdown`.
#![deny(unsafe_code)] // allowed in sys and its modules, and in preload

mod check;
mod compare;
mod describe;
mod list;
mod means;
mod metrics;
mod outcome;
#[allow(unsafe_code)]
mod preload;
mod record;
mod report;
mod require;
mod run;
mod sources;
mod stat;
mod sys;
mod top;
mod unmeasured;

use clap::{Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;
use topdown::OptionNames;
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
}

/// How the command's user writes options that texts of the library name.
const OPTIONS: OptionNames = OptionNames {
    level: "--td-level",
    subtree: "--subtree",
    in_parts: "`topdown stat --subtree` counts a part of it",
};

/// A line for the user, who may have no standard error.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "topdown: {}", clean(line));
}

/// Subcommands whose exit status is that of the command that they run: a failure of their own has another one.
const RUN_COMMANDS: [&str; 4] = ["stat", "record", "top", "run"];
/// Exit status for wrong arguments of the others.
const WRONG_ARGUMENTS: u8 = 2;

fn main() -> ExitCode {
    topdown::name_options(OPTIONS);
    sys::let_files_be_too_large();
    topdown_report::wait_for_readers_by(sys::wait_for_reader);
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            // it quotes what was given
            let text: Vec<String> = error.render().to_string().lines().map(clean).collect();
            let _ = writeln!(io::stderr(), "{}", text.join("\n"));
            let runs = std::env::args().nth(1).is_some_and(|name| RUN_COMMANDS.contains(&&*name));
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
