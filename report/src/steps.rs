//! Commands to run next, of those that work here (`steps.list`).
#![forbid(unsafe_code)]

use crate::terminal::{Layout, columns};
use crate::words::clean;
use serde::Serialize;
use std::collections::BTreeSet;

const LIST: &str = include_str!("steps.list");
/// So many are shown.
const MOST: usize = 4;
/// What the list calls any node but retiring.
const LOST: &str = "lost";
/// What it calls most of the time in the kernel.
pub const KERNEL: &str = "kernel";
/// Parts of nodes' names by which they are no loss.
const KEPT: [&str; 3] = ["retiring", "light_operations", "heavy_operations"];

/// A command to run next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What to type.
    pub command: String,
    /// What it tells.
    pub why: String,
}

impl Step {
    /// For a shell, which takes the reason for a comment. A command is never wrapped, since a line's end would end it or stand in a word:
    /// where the two do not fit a terminal's line, the reason stands below.
    #[must_use]
    pub fn lines(&self, indent: usize, layout: &Layout) -> Vec<String> {
        let indent = " ".repeat(indent);
        let command = format!("{indent}{}", clean(&self.command));
        let whole = format!("{command} # {}", self.why);
        if !layout.is_terminal || columns(&whole) <= layout.columns {
            return vec![whole];
        }
        let comment = format!("{indent}  # ");
        [command].into_iter().chain(layout.lines(&comment, &comment, &self.why)).collect()
    }
}

/// What works on this CPU and for this user, and of whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Means {
    /// What is measured, as options and arguments: "-- ./program", "-p 12"; empty: no command would measure that again.
    pub whom: String,
    /// Options by which the same is recorded, in the same way: "--kernel"; empty: those that `topdown record` has without any.
    pub options: String,
    /// Assignments before a command that measures that again: "TOPDOWN_SIMULATE=1"; empty: none.
    pub environment: String,
    /// What is there, in the list's words.
    pub has: BTreeSet<&'static str>,
    /// The node that is located.
    pub node: String,
    /// The function that is hooked: "libm.so.6:exp".
    pub call: String,
}

/// What needs counters.
const COUNTED: [&str; 3] = ["deep", "perf", "perf-mem"];
/// What the list calls the command, the processes or the CPUs.
const WHOM: &str = "WHOM";
/// In `Means::has`: the command is too long to be repeated.
pub const ABRIDGED: &str = "abridged";
/// What stands for it then.
pub const SOME_COMMAND: &str = "-- COMMAND";
/// And what that is.
const ABRIDGED_IS: &str = "; COMMAND: the same as above";

impl Means {
    /// The same with one thing more, if that is there.
    #[must_use]
    pub fn and(mut self, what: &'static str, is_there: bool) -> Means {
        if is_there {
            self.has.insert(what);
        }
        self
    }

    /// The same where nothing is counted.
    #[must_use]
    pub fn without_counters(mut self) -> Means {
        self.has.retain(|what| !COUNTED.contains(what));
        self
    }

    fn are(&self, needs: &str) -> bool {
        needs.split_whitespace().all(|need| match need.strip_prefix('!') {
            Some(need) => !self.has.contains(need),
            None => self.has.contains(need),
        })
    }

    fn filled(&self, command: &str) -> String {
        let word = |word: &str| match word {
            WHOM => self.whom.clone(),
            "SAME" => self.options.clone(),
            "NODE" => self.node.clone(),
            "CALL" => quoted(&self.call),
            word => word.into(),
        };
        let measures = command.split_whitespace().any(|word| word == WHOM);
        let environment = self.environment.clone();
        let words = command.split_whitespace().map(word);
        let words = Some(environment).filter(|_| measures).into_iter().chain(words);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// As a shell has to be told.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What to run after a count, one that came to nothing, a profile or one of time, where these nodes are named.
#[must_use]
pub fn steps(after: &str, named: &[String], means: &Means) -> Vec<Step> {
    if means.whom.is_empty() {
        return Vec::new();
    }
    let is_named = |of: &str| match of {
        "*" => true,
        LOST => named.iter().any(|name| !KEPT.contains(&&**name) && name != KERNEL),
        of => named.iter().any(|name| name == of),
    };
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        Some([fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?])
    });
    let mut steps: Vec<Step> = Vec::new();
    for [of_what, of, needs, command, why] in rows {
        let step = Step { command: means.filled(command), why: why.into() };
        if of_what == after && is_named(of) && means.are(needs) && !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps.truncate(MOST);
    if means.has.contains(ABRIDGED) {
        let first = steps.iter_mut().find(|step| step.command.ends_with(SOME_COMMAND));
        first.into_iter().for_each(|step| step.why += ABRIDGED_IS);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(has: &[&'static str]) -> Means {
        let whom = "-- ./a.out".into();
        Means {
            whom,
            has: has.iter().copied().collect(),
            node: "dram_bound".into(),
            call: "libm.so.6:exp".into(),
            ..Means::default()
        }
    }

    fn commands(after: &str, named: &[&str], has: &[&'static str]) -> Vec<String> {
        let named: Vec<String> = named.iter().map(|name| (*name).into()).collect();
        steps(after, &named, &means(has)).into_iter().map(|step| step.command).collect()
    }

    #[test]
    fn ours_are_first_and_perfs_are_there_where_they_work() {
        let all = commands("count", &["memory_bound", "backend_bound"], &["deep", "perf", "perf-mem"]);
        assert_eq!(
            all,
            [
                "topdown record --lines -- ./a.out",
                "topdown stat --drill -- ./a.out",
                "topdown record --drill --lines -- ./a.out",
                "perf mem record -- ./a.out"
            ]
        );
        assert_eq!(commands("count", &["memory_bound"], &["perf"]), ["topdown record --lines -- ./a.out"]);
        for line in LIST.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            assert!(fields.len() == 5 && fields[4].len() <= 50 && !fields[4].is_empty(), "{line}");
            assert_eq!(fields[3].starts_with("perf "), fields[2].contains("perf"), "{line}");
        }
    }

    #[test]
    fn what_was_drilled_is_located_and_not_drilled_again() {
        let all = commands("count", &["memory_bound"], &["deep", "drilled", "locates"]);
        assert_eq!(all, ["topdown record --locate dram_bound --lines -- ./a.out"]);
        assert_eq!(commands("count", &["retiring"], &["deep"]), ["topdown record --lines -- ./a.out"]);
    }

    #[test]
    fn time_alone_has_steps_and_what_cannot_be_measured_again_none() {
        let all = commands("time", &[], &["dwarf", "no-callers", "deep"]);
        let (lines, callers) =
            ("topdown record --lines -- ./a.out", "topdown record --call-graph dwarf -- ./a.out");
        assert_eq!(all, [lines, callers, "topdown check"]);
        assert!(steps("count", &["memory_bound".into()], &Means::default()).is_empty());
        assert!(
            commands("profile", &[], &["hooked"])
                .contains(&"topdown run --regions libm.so.6:exp -- ./a.out".into())
        );
    }

    #[test]
    fn of_a_32_bit_program_no_stops_are_named() {
        let [timer, none] = [&["32-bit", "timer"][..], &["32-bit"]].map(|has| commands("nothing", &[], has));
        assert_eq!(timer, ["topdown record --lines -- ./a.out", "topdown check"]);
        assert_eq!(none, ["topdown check"]);
        let why = |has| steps("nothing", &[], &means(has)).pop().unwrap().why;
        assert!(why(&["32-bit"]).contains("32-bit") && !why(&[]).contains("32-bit"));
    }

    #[test]
    fn options_that_decide_what_is_recorded_are_kept_and_the_simulated_core() {
        let kernel = Means { options: "--kernel".into(), ..means(&["dwarf"]) };
        let of_kernel = steps("time", &[], &kernel);
        assert_eq!(of_kernel[0].command, "topdown record --kernel --lines -- ./a.out");
        let simulated = Means { environment: "TOPDOWN_SIMULATE='Zen 5'".into(), ..means(&["deep", "perf"]) };
        let of_nodes = steps("count", &["core_bound".into()], &simulated.without_counters());
        let commands: Vec<_> = of_nodes.into_iter().map(|step| step.command).collect();
        assert_eq!(commands, ["TOPDOWN_SIMULATE='Zen 5' topdown record --lines -- ./a.out"]);
    }

    #[test]
    fn a_command_is_not_wrapped_and_what_is_not_repeated_is_said_once() {
        let whom = "-- sh -c 'cd /tmp;  ./a.out \"a b\" | tail -n 1000000 # and more'".to_string();
        let long = Means { whom: whom.clone(), ..means(&[]) };
        let narrow = Layout { is_terminal: true, columns: 60, ..Layout::FILE };
        let step = &steps("count", &["retiring".into()], &long)[0];
        let lines = step.lines(2, &narrow);
        assert_eq!(lines[0], format!("  topdown record --lines {whom}"));
        assert_eq!(lines[1..], ["    # functions and lines that waste them"]);
        assert_eq!(
            step.lines(2, &Layout { columns: 200, ..narrow }),
            [format!("{} # {}", lines[0], step.why)]
        );
        let abridged = Means { whom: SOME_COMMAND.into(), ..means(&["deep", ABRIDGED]) };
        let whys: Vec<_> = steps("count", &["memory_bound".into()], &abridged)
            .into_iter()
            .map(|step| step.why.contains("COMMAND"))
            .collect();
        assert_eq!(whys, [true, false, false]);
    }

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(
            ["./a.out", "a b", "it's", "*", ""].map(quoted),
            ["./a.out", "'a b'", r"'it'\''s'", "'*'", "''"]
        );
    }
}
