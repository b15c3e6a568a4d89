//! Two recordings, before and after: what has changed of each function, and whether it is more than their intervals leave open.
//!
//! The interval of a difference reaches from where the one's ends are nearest to each other to where they are farthest apart: the
//! distances are added, not their squares, since what windows are off by (returns, their start) is no random error.
#![forbid(unsafe_code)]

mod file;
mod render;

pub use file::RecordedFile;

use file::{RecordedFigures, RecordedFunction};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use topdown::{LEVEL_1, LEVEL_2};
use topdown_report::model::SIMULATED_PATH;
use topdown_report::{ShareInterval, pairs};

/// What has changed of a part of the time, or of a share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartChange {
    /// None: not known there.
    pub before: Option<ShareInterval>,
    /// The same.
    pub after: Option<ShareInterval>,
    /// None: not known of both.
    pub difference: Option<ShareInterval>,
    /// Whether the difference's interval is above 0, or below.
    pub significant: Option<bool>,
}

impl PartChange {
    fn new(before: Option<ShareInterval>, after: Option<ShareInterval>) -> PartChange {
        let difference = before.zip(after).map(|(before, after)| ShareInterval {
            value: after.value - before.value,
            low: after.low - before.high,
            high: after.high - before.low,
        });
        let significant = difference.map(|difference| difference.low > 0.0 || difference.high < 0.0);
        PartChange { before, after, difference, significant }
    }
}

/// What has changed of a time in nanoseconds, which has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeChange {
    /// None: not seen there.
    pub before: Option<u64>,
    /// The same.
    pub after: Option<u64>,
    /// None: not seen in both.
    pub difference: Option<i128>,
}

/// What has changed of a function, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FiguresChange {
    /// CPU time in user mode.
    pub time_ns: TimeChange,
    /// Its part of all.
    pub time: PartChange,
    /// By perf's names, in the order of the tree's levels.
    #[serde(serialize_with = "topdown_report::by_name")]
    pub shares: Vec<(String, PartChange)>,
    /// Why there are no shares before, and after.
    pub cannot_be_told: [Option<String>; 2],
}

/// Levels 1 and 2, then what is deeper.
fn order(name: &str) -> usize {
    let known = LEVEL_1.iter().chain(&LEVEL_2);
    known.into_iter().position(|metric| metric.name.to_str() == Ok(name)).unwrap_or(usize::MAX)
}

impl FiguresChange {
    fn new(both: [Option<&RecordedFigures>; 2]) -> FiguresChange {
        let [before, after] = both;
        let shares = pairs(both.map(|figures| figures.into_iter().flat_map(|figures| &figures.shares)));
        let change = |(name, [before, after]): (&String, [Option<&ShareInterval>; 2])| {
            (name.clone(), PartChange::new(before.copied(), after.copied()))
        };
        let mut shares: Vec<_> = shares.into_iter().map(change).collect();
        shares.sort_by_cached_key(|(name, _)| (order(name), name.clone()));
        let [ns_before, ns_after] = both.map(|figures| figures.map(|figures| figures.time_ns));
        let difference =
            ns_before.zip(ns_after).map(|(before, after)| i128::from(after) - i128::from(before));
        FiguresChange {
            time_ns: TimeChange { before: ns_before, after: ns_after, difference },
            time: PartChange::new(before.map(|figures| figures.time), after.map(|figures| figures.time)),
            shares,
            cannot_be_told: both.map(|figures| figures?.untold()),
        }
    }
}

/// A kind of core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCore {
    /// Its name.
    pub name: String,
    /// Of all functions together.
    pub all: FiguresChange,
}

/// A function on a kind of core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFunction {
    /// Its name.
    pub name: String,
    /// Name of the program or library; its path, if a recording has a function of this name in two modules of this name.
    pub module: String,
    /// Name of the kind of core.
    pub core: String,
    /// Of the function alone.
    pub own: FiguresChange,
    /// With what it calls.
    pub inclusive: FiguresChange,
}

/// Two recordings, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordingComparison {
    /// `topdown_report::SCHEMA`.
    pub schema: u32,
    /// Names of the files.
    pub files: [String; 2],
    /// What was recorded.
    pub commands: [String; 2],
    /// "simulated": figures of either are made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'static str>,
    /// Time of either is of samples alone: what has none is in no function.
    #[serde(skip)]
    pub of_samples: bool,
    /// Kinds of cores of either.
    pub cores: Vec<ComparedCore>,
    /// Functions of either, those with the most time first.
    pub functions: Vec<ComparedFunction>,
}

/// Names of core, function and module.
type FunctionNames<'a> = (&'a str, &'a str, &'a str);

/// Functions whose names tell them apart by their modules' paths alone.
fn ambiguous<'a>(files: [&'a RecordedFile; 2]) -> BTreeSet<FunctionNames<'a>> {
    let twice = |file: &'a RecordedFile| {
        let mut seen: HashMap<FunctionNames, usize> = HashMap::new();
        file.functions.iter().for_each(|function| *seen.entry(function.name_in_module()).or_default() += 1);
        seen.into_iter().filter(|(_, times)| *times > 1).map(|(name, _)| name)
    };
    files.into_iter().flat_map(twice).collect()
}

impl RecordingComparison {
    /// Of what two files say.
    #[must_use]
    pub fn new<'f>(before: &'f RecordedFile, after: &'f RecordedFile) -> RecordingComparison {
        let files = [before, after];
        let ambiguous = ambiguous(files);
        let named = |function: &'f RecordedFunction| {
            let (core, name, module) = function.name_in_module();
            let module = if ambiguous.contains(&(core, name, module)) { &function.path } else { module };
            ((core, name, module), function)
        };
        let cores = pairs(files.map(|file| file.cores.iter().map(|core| (&core.name, &core.all))));
        let mut functions = pairs(files.map(|file| file.functions.iter().map(named)));
        functions.sort_by_key(|(name, _)| *name);
        let all =
            |(name, all): (&String, _)| ComparedCore { name: name.clone(), all: FiguresChange::new(all) };
        let function = |((core, name, module), both): (FunctionNames, [Option<&RecordedFunction>; 2])| {
            ComparedFunction {
                name: name.into(),
                module: module.into(),
                core: core.into(),
                own: FiguresChange::new(both.map(|function| function.map(|function| &function.own))),
                inclusive: FiguresChange::new(
                    both.map(|function| function.map(|function| &function.inclusive)),
                ),
            }
        };
        let mut functions: Vec<_> = functions.into_iter().map(function).collect();
        let most = |time: &TimeChange| time.before.max(time.after);
        functions.sort_by_key(|function| {
            Reverse([&function.own, &function.inclusive].map(|of| most(&of.time_ns)))
        });
        RecordingComparison {
            schema: topdown_report::SCHEMA,
            files: files.map(|file| file.name.clone()),
            commands: files.map(|file| file.command.clone()),
            path: files
                .iter()
                .any(|file| file.path.as_deref() == Some(SIMULATED_PATH))
                .then_some(SIMULATED_PATH),
            of_samples: files.iter().any(|file| file.time_alone.as_ref().is_some_and(|of| !of.is_null())),
            cores: cores.into_iter().map(all).collect(),
            functions,
        }
    }
}

#[cfg(test)]
mod tests;
