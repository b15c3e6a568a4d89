//! A profile as text, and in the formats of other tools.
#![forbid(unsafe_code)]

mod csv;
mod firefox;
mod flame;
mod folded;
mod html;
mod index;
mod json;
mod listing;
mod next;
mod parts;
mod pprof;
mod remarks;
mod text;
mod timeline;

pub(crate) use csv::{BEGINNING as CSV_BEGINNING, with_ends};
pub(crate) use json::FORMAT;
pub(crate) use remarks::LEAST_TIME;
pub use remarks::{says_no_callers, says_nothing};

use crate::profile::Profile;
use crate::sources::SourcePlace;
use std::path::Path;
use topdown_report::steps::Means;
use topdown_report::terminal::Layout;

/// What was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// The command, or the processes.
    pub command: &'a str,
    /// When and where, or nothing.
    pub occasion: &'a str,
    /// What else can be measured of it here; none: nothing that is known.
    pub means: Option<&'a Means>,
}

/// How a profile is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A table for people.
    Text,
    /// The same with the hottest lines of each function.
    Lines,
    /// Comma-separated values, a row for each function.
    Csv,
    /// All of it.
    Json,
    /// A page with tables and flame graphs.
    Html,
    /// A flame graph.
    Svg,
    /// Folded stacks, for other flame graphs.
    Folded,
    /// The protocol buffer of pprof.
    Pprof,
    /// What profiler.firefox.com loads.
    Firefox,
}

/// File endings; of those that are true of a file the first counts.
const ENDINGS: [(&str, View); 11] = [
    ("firefox.json", View::Firefox),
    ("", View::Text),
    ("txt", View::Text),
    ("csv", View::Csv),
    ("json", View::Json),
    ("html", View::Html),
    ("svg", View::Svg),
    ("folded", View::Folded),
    ("collapsed", View::Folded),
    ("pprof", View::Pprof),
    ("pb", View::Pprof),
];

impl View {
    /// That of a file's ending.
    ///
    /// # Errors
    /// It is none of them.
    pub fn of(file: &Path) -> Result<View, String> {
        let ending = file.extension().map_or(String::new(), |ending| ending.to_string_lossy().into_owned());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let ends =
            |known: &str| known == ending || known.contains('.') && name.ends_with(&format!(".{known}"));
        let known = ENDINGS.iter().find(|(known, _)| ends(known));
        known.map(|(_, view)| *view).ok_or_else(|| {
            format!(
                "'.{ending}' is no ending of a profile: .html, .svg, .txt, .csv, .json, .folded, .pprof or .firefox.json"
            )
        })
    }

    /// The same with lines of functions.
    ///
    /// # Errors
    /// It has none.
    pub fn with_lines(self) -> Result<View, String> {
        match self {
            View::Text | View::Lines => Ok(View::Lines),
            View::Json | View::Html | View::Pprof | View::Firefox => Ok(self),
            View::Csv | View::Svg | View::Folded => {
                Err("--lines: only texts, .html, .json, .pprof and .firefox.json have lines".into())
            }
        }
    }

    /// Whether it shows lines of source files.
    #[must_use]
    pub fn shows_sources(self) -> bool {
        matches!(self, View::Lines | View::Html)
    }

    /// Reads the lines of source files that it shows, if it does.
    pub fn read_sources(self, profile: &mut Profile, places: &[SourcePlace]) {
        if self.shows_sources() {
            profile.sources = listing::sources(profile, places);
        }
    }

    /// The profile, written so into a file.
    #[must_use]
    pub fn write(self, profile: &Profile, heading: &Heading) -> Vec<u8> {
        self.write_for(profile, heading, &Layout::FILE)
    }

    /// The same, where a text is laid out so.
    #[must_use]
    pub fn write_for(self, profile: &Profile, heading: &Heading, layout: &Layout) -> Vec<u8> {
        let command = heading.command;
        match self {
            View::Text => text::text(profile, heading, false, layout).into_bytes(),
            View::Lines => text::text(profile, heading, true, layout).into_bytes(),
            View::Csv => csv::csv(profile).into_bytes(),
            View::Json => json::json(profile, command).into_bytes(),
            View::Html => html::html(profile, heading).into_bytes(),
            View::Svg => flame::svg(profile, command).into_bytes(),
            View::Folded => folded::folded(profile).into_bytes(),
            View::Pprof => pprof::pprof(profile, command),
            View::Firefox => firefox::firefox(profile, heading).into_bytes(),
        }
    }
}

/// A function's name, with its module if that is known.
pub(crate) fn in_module(name: &str, module: &str) -> String {
    if module.is_empty() { name.into() } else { format!("{name} ({module})") }
}

/// perf's name of a node, without its prefix, in words.
fn title(node: &topdown::SampledNode) -> String {
    in_words(name(node))
}

/// Such a name without its prefix.
pub(crate) fn in_words(name: &str) -> String {
    name.trim_start_matches("tma_").replace('_', " ")
}

/// perf's name of a node.
fn name(node: &topdown::SampledNode) -> &'static str {
    node.metric.name.to_str().unwrap_or("")
}

#[cfg(test)]
pub(crate) mod tests;
