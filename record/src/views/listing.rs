//! The lines of a function that are shown: the hottest ones with those beside them.
#![forbid(unsafe_code)]

use super::remarks;
use crate::profile::{Profile, ProfiledFunction, ProfiledLine};
use crate::sources::{CONTEXT, MissingText, SourcePlace, SourceText, Sources};
use std::collections::BTreeMap;

/// So many lines of a function are shown, at most, and those beside them.
const MOST_LINES: usize = 12;

/// Lines of a function in one file.
pub(super) struct InFile<'a> {
    /// As the compiler knew it.
    pub file: &'a str,
    pub text: Option<&'a Result<SourceText, MissingText>>,
    /// In the file's order, each with what was seen in it. Where numbers are missing others are not shown.
    pub rows: Vec<(u32, Option<&'a ProfiledLine>)>,
}

/// The hottest lines of a function, those of most time first.
pub(super) fn hottest(function: &ProfiledFunction) -> &[ProfiledLine] {
    let listed = function.lines.iter().take_while(|line| line.time.value >= remarks::LEAST_TIME);
    // (at least one: a function is listed that has so much time in many lines)
    &function.lines[..listed.count().max(1).min(function.lines.len()).min(MOST_LINES)]
}

/// It may have as much time as the hottest one, and has half as much at least.
pub(super) fn is_hottest(function: &ProfiledFunction, line: &ProfiledLine) -> bool {
    let first = function.lines.first();
    first.is_some_and(|first| line.time.high >= first.time.low && 2 * line.time_ns >= first.time_ns)
}

/// By file; the one with the hottest line first.
pub(super) fn of<'a>(profile: &'a Profile, function: &'a ProfiledFunction) -> Vec<InFile<'a>> {
    let mut files: Vec<&str> = Vec::new();
    for line in hottest(function) {
        if !files.contains(&&*line.file) {
            files.push(&line.file);
        }
    }
    files.into_iter().map(|file| in_file(profile, function, file)).collect()
}

fn in_file<'a>(profile: &'a Profile, function: &'a ProfiledFunction, file: &'a str) -> InFile<'a> {
    let text = profile.sources.of(&function.path, file);
    let seen: BTreeMap<u32, &ProfiledLine> =
        function.lines.iter().filter(|line| line.file == file).map(|line| (line.line, line)).collect();
    let mut rows = BTreeMap::new();
    for line in hottest(function).iter().filter(|line| line.file == file) {
        rows.insert(line.line, Some(line));
        if let Some(Ok(text)) = text {
            let beside = line.line.saturating_sub(CONTEXT)..=line.line.saturating_add(CONTEXT);
            rows.extend(text.lines.range(beside).map(|(number, _)| (*number, seen.get(number).copied())));
        }
    }
    InFile { file, text, rows: rows.into_iter().collect() }
}

/// Of all that people are shown.
pub(super) fn sources(profile: &Profile, places: &[SourcePlace]) -> Sources {
    let functions = (0..profile.cores.len()).flat_map(|place| remarks::listed(profile, place));
    let wanted = functions
        .flat_map(|function| hottest(function).iter().map(|line| (&*function.path, &*line.file, line.line)));
    Sources::read(wanted, places)
}
