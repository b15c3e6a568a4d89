//! A recording, read from the .json of `topdown record`.
#![forbid(unsafe_code)]

use crate::journal;
use crate::views::{CSV_BEGINNING, FORMAT};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use topdown_report::ShareInterval;
use topdown_report::read_whole;

/// What a file in JSON says of itself.
#[derive(Deserialize)]
struct FileFormat {
    format: Option<serde_json::Value>,
    #[serde(rename = "where")]
    condition: Option<serde_json::Value>,
    locate: Option<serde_json::Value>,
}

/// What is compared of a file.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordedFile {
    #[serde(skip)]
    pub(super) name: String,
    pub(super) command: String,
    /// "simulated": its figures are made up.
    #[serde(default)]
    pub(super) path: Option<String>,
    /// There, if samples alone tell the time.
    #[serde(default)]
    pub(super) time_alone: Option<serde_json::Value>,
    pub(super) cores: Vec<RecordedCore>,
    pub(super) functions: Vec<RecordedFunction>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RecordedCore {
    pub name: String,
    pub all: RecordedFigures,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RecordedFunction {
    pub name: String,
    pub module: String,
    pub path: String,
    pub core: String,
    pub own: RecordedFigures,
    pub inclusive: RecordedFigures,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RecordedFigures {
    pub time_ns: u64,
    pub time: ShareInterval,
    pub shares: BTreeMap<String, ShareInterval>,
    cannot_be_told: Option<String>,
}

/// A file of `topdown record` that is not compared.
#[derive(Clone, Copy)]
enum OtherKind {
    Recording,
    Csv,
    /// A page or a text.
    ForPeople,
}

impl OtherKind {
    fn of(bytes: &[u8]) -> Option<OtherKind> {
        match bytes {
            _ if bytes.starts_with(journal::BEGINNING) => Some(OtherKind::Recording),
            _ if bytes.starts_with(CSV_BEGINNING.as_bytes()) => Some(OtherKind::Csv),
            _ if bytes.starts_with(b"<!DOCTYPE html>") || bytes.starts_with(b"topdown: ") => {
                Some(OtherKind::ForPeople)
            }
            _ => None,
        }
    }

    /// What it is, and what to compare instead.
    fn refusal(self, path: &Path) -> String {
        let json = path.with_extension("json");
        match self {
            OtherKind::Recording => format!(
                "it is a .recording, of which profiles are made: `topdown record --from {} -o {}`, and compare the JSON",
                path.display(),
                json.display()
            ),
            OtherKind::Csv => "it is a profile in CSV, which is not compared: write the profile as JSON (`topdown record -o FILE.json`, \
                 or `topdown record --from FILE.recording -o FILE.json`), and compare that"
                .into(),
            OtherKind::ForPeople => "a page or text for people to read is not compared: write the same as JSON (-o FILE.json), and compare that".into(),
        }
    }
}

/// Where parts and shares may lie: from 0 to 1, but for rounding.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = -0.01..=1.01;

impl RecordedFigures {
    /// Why there are no shares.
    pub fn untold(&self) -> Option<String> {
        let why = || self.cannot_be_told.clone().unwrap_or_else(|| "it has no shares".into());
        self.shares.is_empty().then(why)
    }

    /// What of it is no interval of a part.
    fn wrong(&self) -> Option<&str> {
        let shares = self.shares.iter().map(|(name, share)| (&**name, share));
        let mut all = [("time", &self.time)].into_iter().chain(shares);
        let is_wrong = |part: &ShareInterval| {
            ![part.value, part.low, part.high].iter().all(|end| PLAUSIBLE.contains(end))
                || part.low > part.high
        };
        all.find(|(_, part)| is_wrong(part)).map(|(name, _)| name)
    }
}

impl RecordedFunction {
    /// Core, function, and module.
    pub fn name_in_module(&self) -> (&str, &str, &str) {
        (&self.core, &self.name, &self.module)
    }
}

impl RecordedFile {
    /// None: it does not say that it is a recording.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or is of another version; the text names it.
    pub fn read(path: &Path) -> io::Result<Option<RecordedFile>> {
        let failed = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        let bytes = read_whole(path)?;
        if let Some(other) = OtherKind::of(&bytes) {
            return Err(failed(other.refusal(path)));
        }
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Ok(None);
        }
        let claim: FileFormat =
            serde_json::from_slice(&bytes).map_err(|error| failed(format!("no JSON: {error}")))?;
        match claim.format.as_ref().and_then(|format| format.as_str()) {
            Some(FORMAT) if claim.condition.is_some() => {
                return Err(failed(
                    "of stretches in which a condition held (--where), which are not compared".into(),
                ));
            }
            Some(FORMAT) if claim.locate.is_some() => {
                return Err(failed("of samples of an event (--locate), which are not compared".into()));
            }
            Some(FORMAT) => {}
            Some(other) if other.starts_with("topdown-record-") => {
                return Err(failed(format!(
                    "its format is {other:?}, and {FORMAT:?} is the one that is known"
                )));
            }
            _ => return Ok(None),
        }
        let damaged = |why: String| failed(format!("a damaged recording: {why}"));
        let mut file: RecordedFile =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        file.check().map_err(damaged)?;
        file.name_cores();
        file.name = path.display().to_string();
        Ok(Some(file))
    }

    /// Takes what counted a core's published metrics off its name, if it has no other of that name: files that were counted in different
    /// ways are of one core, and have their intervals.
    fn name_cores(&mut self) {
        let short = |name: &str| topdown::core_as_published(name).to_string();
        let names: BTreeSet<String> = self.cores.iter().map(|core| short(&core.name)).collect();
        if names.len() == self.cores.len() {
            self.cores.iter_mut().for_each(|core| core.name = short(&core.name));
            self.functions.iter_mut().for_each(|function| function.core = short(&function.core));
        }
    }

    fn check(&self) -> Result<(), String> {
        let is_of_no_core =
            |function: &&RecordedFunction| self.cores.iter().all(|core| core.name != function.core);
        if let Some(function) = self.functions.iter().find(is_of_no_core) {
            return Err(format!(
                "{:?} is of the core {:?}, which is not in it",
                function.name, function.core
            ));
        }
        let cores = self.cores.iter().map(|core| (&core.name, &core.all));
        let functions = self
            .functions
            .iter()
            .flat_map(|function| [(&function.name, &function.own), (&function.name, &function.inclusive)]);
        for (name, figures) in cores.chain(functions) {
            if let Some(part) = figures.wrong() {
                return Err(format!("{part} of {name:?} is no interval from 0 to 1"));
            }
        }
        Ok(())
    }
}
