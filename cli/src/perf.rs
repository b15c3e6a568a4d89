//! Options of Linux perf that are called otherwise here, for who has them in the fingers.
#![forbid(unsafe_code)]

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options of perf's subcommand of the same name, and what does here what they do there.
struct PerfOptions {
    subcommand: &'static str,
    options: &'static [&'static str],
    here: &'static str,
}

const fn of(subcommand: &'static str, options: &'static [&'static str], here: &'static str) -> PerfOptions {
    PerfOptions { subcommand, options, here }
}

/// (Words that begin with a hyphen are options of the subcommand, and those in backquotes of the one that is named there)
const ALL: &[PerfOptions] = &[
    of(
        "stat",
        &["-e", "--event"],
        "--nodes NAME,... counts nodes of the tree, and --metrics NAME,... other figures (`topdown list --metrics`)",
    ),
    of(
        "stat",
        &["-M"],
        "TopdownL1 to TopdownL6 are --td-level 1 to --td-level 6; nodes are --nodes NAME,..., and other metrics --metrics NAME,...",
    ),
    of("stat", &["--topdown"], "slots are counted in any case; --td-level LEVEL says how deep"),
    of("stat", &["-d", "--detailed"], "--metrics NAME,... has such figures: memory, branches, tlb, or all"),
    of(
        "stat",
        &["-A", "--no-aggr", "--per-die", "--per-cache", "--per-cluster", "--per-node"],
        "--per-core and --per-socket, with -a or -C",
    ),
    of(
        "stat",
        &["-i", "--no-inherit"],
        "what is started is counted, too; --per-process and --per-thread tell it apart",
    ),
    of("stat", &["--for-each-cgroup"], "-G CGROUP,... and --per-cgroup count cgroups, all at once"),
    of("stat", &["-u", "--uid"], "-p PID,... counts processes"),
    of(
        "stat",
        &["--all-user", "--all-kernel"],
        "user mode is counted, and with --kernel what the kernel does, too",
    ),
    of("stat", &["--log-fd"], "-o /dev/fd/N writes to a descriptor"),
    of(
        "record",
        &["-e", "--event"],
        "slots are sampled without; --locate NODE samples the event that locates a node, and --where CONDITION where two events have a ratio",
    ),
    of("record", &["-c", "--count"], "--period N, with --locate or --where; of slots -F N"),
    of("record", &["--freq"], "-F N"),
    of(
        "record",
        &["-b", "--branch-any", "-j", "--branch-filter"],
        "--call-graph lbr tells callers by branch records",
    ),
    of(
        "record",
        &["-d", "--data", "-W", "--weight"],
        "--locate NODE tells which functions and lines wait for data, and how long where the CPU tells",
    ),
    of("record", &["-t", "--tid"], "-p PID,... records all threads of processes"),
    of("record", &["-u", "--uid"], "-p PID,... records processes"),
    of(
        "record",
        &["--all-user", "--all-kernel"],
        "user mode is sampled, and with --kernel what the kernel does, too",
    ),
    of(
        "report",
        &["-i", "--input"],
        "table files stand behind the options; `topdown record --from FILE` reads what was recorded",
    ),
    of("report", &["--stdio"], "a text is written without any option"),
    of(
        "report",
        &["-g", "--call-graph", "--children", "--no-children", "-s", "--sort"],
        "`topdown record` tells functions and their callers",
    ),
    of("top", &["-d", "--delay"], "-I MS"),
    of(
        "top",
        &["-e", "--event", "-F", "--freq", "-g", "--call-graph"],
        "`topdown record -a` tells functions",
    ),
];

/// What to give instead of an option that perf's subcommand of this name has.
fn instead(subcommand: &str, option: &str) -> Option<&'static str> {
    let is_it = |one: &&PerfOptions| one.subcommand == subcommand && one.options.contains(&option);
    ALL.iter().find(is_it).map(|one| one.here)
}

/// What to say of wrong arguments, if these are options of perf.
pub fn explained(subcommand: &str, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let option = option.split('=').next().filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let here = instead(subcommand, option)?;
    Some(format!("error: {option} is an option of perf; of topdown {subcommand}: {here}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The options that a text names, each with the subcommand that has it.
    fn named<'t>(subcommand: &'t str, text: &'t str) -> Vec<(&'t str, &'t str)> {
        let mut all = Vec::new();
        for (k, part) in text.split('`').enumerate() {
            let mut words = part.split([' ', ',', ';', ':']).filter(|word| !word.is_empty());
            let of = if k % 2 == 0 { subcommand } else { words.nth(1).expect("topdown and a subcommand") };
            all.extend(words.filter(|word| word.starts_with('-')).map(|word| (of, word)));
        }
        all
    }

    #[test]
    fn what_is_named_is_there_and_what_is_perfs_is_not() {
        let command = crate::Arguments::command();
        let has = |subcommand: &str, option: &str| {
            let of_name = command.find_subcommand(subcommand).expect("a subcommand");
            let is_it = |one: &clap::Arg| match option.strip_prefix("--") {
                Some(long) => one.get_long() == Some(long),
                None => one.get_short() == option.chars().nth(1),
            };
            of_name.get_arguments().any(is_it)
        };
        for PerfOptions { subcommand, options, here } in ALL {
            for option in *options {
                assert!(!has(subcommand, option), "{subcommand} {option}");
                assert_eq!(instead(subcommand, option), Some(*here), "{subcommand} {option} is there twice");
            }
            for (subcommand, option) in named(subcommand, here) {
                assert!(has(subcommand, option), "{here}: {subcommand} {option}");
            }
        }
    }

    #[test]
    fn only_unknown_options_of_perf_are_explained() {
        let said = |words: &str| {
            let error = crate::Arguments::command().try_get_matches_from(words.split(' ')).unwrap_err();
            explained(words.split(' ').nth(1).unwrap(), &error)
        };
        for words in
            ["topdown record -e cycles true", "topdown record --event=cycles true", "topdown record -gb true"]
        {
            assert!(said(words).is_some_and(|text| text.contains("--")), "{words}");
        }
        for words in ["topdown record --eventual true", "topdown record -F none true", "topdown check -e x"] {
            assert_eq!(said(words), None, "{words}");
        }
    }
}
