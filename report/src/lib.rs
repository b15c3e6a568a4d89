//! From the table file of a measured process to a report.
//!
//! The file is the memory in which the process kept its figures (the crate topdown-table), so it holds what was there when
//! the process ended, however it ended. The modules in the order in which the figures pass them: names of functions are made
//! readable (`demangle`), what a record measured becomes a sum (`sum`) or times (`elapsed`), sums are merged (`account`, `nodes`, `merge`) into the
//! one model that all reports show (`model`), of which each format has its own view (`text`, `csv`, `html`; of `time_alone` those have a table; `json` is the model,
//! of a large one as much as `extent` says; `compare` is of two reports). `verdict` says what a figure means, `words` has the texts that views share, `terminal` how
//! wide they are, `output` writes the file.

mod demangle;
mod elapsed;
mod sum;

mod account;
mod advice;
mod bottlenecks;
mod companions;
mod cpu_time;
mod merge;
pub mod model;
pub mod nodes;
pub mod steps;
pub mod timeline;
mod verdict;

mod input;
mod job;
mod output;
pub mod pattern;
mod ranks;
pub mod terminal;
mod words;

mod extent;
mod time_alone;

mod compare;
mod csv;
mod html;
mod json;
pub mod proto;
mod text;
mod trace;

pub use account::Gaps;
pub use advice::{advice, meaning};
pub use compare::{
    Comparison, Condition, ConditionState, by_name, compare, pairs, path_column, simulated_line, unsure,
};
pub use cpu_time::{CountedTime, CpuTime, CpuUse};
pub use csv::{cell, number, quoted, separated, yes_or_no};
pub use demangle::function as function_name;
pub use html::{chart, page};
pub use input::{open_regular, read_whole, unreadable};
pub use job::{JobDirectory, JobPlace, JobReport, Joined, Left, is_job, report_of};
pub use merge::{Merging, OutsideCount, ProcessSums};
pub use model::{RankEnd, Report, SCHEMA};
pub use nodes::{NodeKind, ShareInterval};
pub use output::{Claim, Output, Wait, is_stdout, stdout_was_closed, wait_for_readers_by};
pub use topdown_table::clean;
pub use verdict::{names_of_tree as verdict_names, of_tree as verdict};
pub use words::{SANDBOXED, SIMULATED, UNCOUNTED, count, occasion_of, percent, simulated, thousands, time};

use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use terminal::{Layout, Stream};
use topdown_table::{Table, TablePlace};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people; as wide as the terminal, and in files 100 columns.
    Text,
    /// One line for each region and thread.
    Csv,
    /// The whole model (docs/report.md).
    Json,
    /// One page that needs nothing else.
    Html,
    /// The timeline alone, for ui.perfetto.dev: bytes, not a text.
    Trace,
    /// Rows for a data lake (docs/lake.md): bytes, which another crate makes ([`write_parquet_by`]).
    Parquet,
}

impl Format {
    /// Whether reports of this format have a timeline.
    pub fn has_timeline(self) -> bool {
        matches!(self, Format::Json | Format::Html | Format::Trace | Format::Parquet)
    }

    /// What the ending of a file's name asks for; without one, a text.
    ///
    /// # Errors
    /// No format has this ending; the text names those that there are.
    pub fn of(output: Option<&Path>) -> io::Result<Format> {
        const ENDINGS: [(&str, Format); 9] = [
            ("parquet", Format::Parquet),
            ("csv", Format::Csv),
            ("json", Format::Json),
            ("html", Format::Html),
            ("htm", Format::Html),
            ("txt", Format::Text),
            ("text", Format::Text),
            ("pftrace", Format::Trace),
            ("perfetto-trace", Format::Trace),
        ];
        let Some(path) = output else { return Ok(Format::Text) };
        let ending = path.extension().unwrap_or_default();
        let known = ENDINGS.iter().find(|(name, _)| ending.eq_ignore_ascii_case(name));
        match known {
            Some((_, format)) => Ok(*format),
            None if ending.is_empty() => Ok(Format::Text),
            None => Err(io::Error::other(format!(
                "-o {}: no report has this ending; choose .csv, .json, .html, .parquet, .pftrace, or .txt or none for a text",
                path.display()
            ))),
        }
    }
}

/// The report as a text for a file; of `Format::Trace`, which is none, the timeline as JSON, and of `Format::Parquet` the same as of `Format::Csv`.
pub fn render(report: &Report, format: Format) -> String {
    render_for(report, format, &Layout::FILE)
}

/// The same, where it is laid out so.
pub fn render_for(report: &Report, format: Format, layout: &Layout) -> String {
    match format {
        Format::Text => text::render(report, layout),
        Format::Csv | Format::Parquet => csv::render(report),
        Format::Json => json(report),
        Format::Html => html::render(report),
        Format::Trace => json(&report.timeline),
    }
}

/// The report as it is written to a file.
///
/// # Errors
/// A trace is wanted, and no intervals were kept.
pub fn encode(report: &Report, format: Format) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_to(report, format, &Layout::FILE, &mut bytes)?;
    Ok(bytes)
}

/// Writes the report as it is in a file, a text laid out so.
///
/// # Errors
/// It cannot be written, or a trace is wanted, and no intervals were kept.
pub fn write_to(report: &Report, format: Format, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    match (format, &report.timeline) {
        (Format::Trace, Some(timeline)) => out.write_all(&trace::encode(timeline, &trace_title(report))),
        // (of a run the file is there, as that of any other format, and says why it shows nothing)
        (Format::Trace, None) if report.run.is_some() => {
            let title = format!("{}: no timeline: {NO_TIMELINE}", trace_title(report));
            out.write_all(&trace::encode(&timeline::Timeline::default(), &title))
        }
        (Format::Trace, None) => Err(io::Error::other(NO_TIMELINE)),
        // (these may be large)
        (Format::Csv, _) => csv::write(report, out),
        (Format::Json, _) => json::write(report, out),
        (Format::Parquet, _) => match PARQUET.get() {
            Some(write) => write(report, out),
            None => Err(io::Error::other("this program writes no .parquet; `topdown` does")),
        },
        _ => out.write_all(render_for(report, format, layout).as_bytes()),
    }
}

/// What writes a report as Parquet.
type ParquetWriter = fn(&Report, &mut dyn Write) -> io::Result<()>;

static PARQUET: OnceLock<ParquetWriter> = OnceLock::new();

/// How this process writes reports as Parquet. (Libraries that have reports shall not grow by it.)
pub fn write_parquet_by(write: ParquetWriter) {
    let _ = PARQUET.set(write);
}

fn trace_title(report: &Report) -> String {
    let (command, _) = words::title(report);
    if simulated(report) { format!("{SIMULATED}: {command}") } else { command }
}

/// A timeline for JSON, which says how it was counted if that was not on a PMU.
#[derive(Serialize)]
struct TimelineFile<'t> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'static str>,
    /// Why there are no intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<&'static str>,
    #[serde(flatten)]
    timeline: &'t timeline::Timeline,
}

/// Why a report has no timeline.
pub const NO_TIMELINE: &str = "nothing was counted from outside, and that is what a timeline shows";

/// Writes the timeline alone: .csv, .json, .pftrace or .perfetto-trace. If there is none it is empty, and all but .csv say why.
///
/// # Errors
/// It cannot be written, or no such file has this ending; the text names it.
pub fn write_timeline(report: &Report, path: &Path) -> io::Result<()> {
    let format = timeline_format(path)?;
    let (none, trouble) = (timeline::Timeline::default(), report.timeline.is_none().then_some(NO_TIMELINE));
    let timeline = report.timeline.as_ref().unwrap_or(&none);
    let bytes = match format {
        Format::Csv => csv::timeline(timeline, simulated(report)).into_bytes(),
        Format::Json => {
            let path = simulated(report).then_some(model::SIMULATED_PATH);
            json(&TimelineFile { path, trouble, timeline }).into_bytes()
        }
        format => encode(report, format)?,
    };
    save(&bytes, path)
}

/// The format of a timeline, by its ending.
///
/// # Errors
/// It has none of them; the text names those that there are.
pub fn timeline_format(path: &Path) -> io::Result<Format> {
    match Format::of(Some(path)) {
        Ok(format @ (Format::Csv | Format::Json | Format::Trace)) => Ok(format),
        _ => Err(io::Error::other(format!(
            "--timeline {}: no timeline has this ending; choose .csv, .json or .pftrace",
            path.display()
        ))),
    }
}

/// As JSON, in which nothing is obeyed by a terminal, or ends the script that it may be put into.
pub fn json(what: &impl Serialize) -> String {
    json::text(what)
}

/// Merges table files, and what was counted from outside, into a report.
///
/// # Errors
/// A file cannot be read, is no table file, or was counted by a tree of metrics that this version does not have; the text names it.
pub fn merge(files: &[PathBuf], outside: Option<OutsideCount>) -> io::Result<Report> {
    merge_telling(files, outside, |_| ())
}

/// The same; `tell` is told how many of the files were read.
///
/// # Errors
/// The same.
pub fn merge_telling(
    files: &[PathBuf],
    outside: Option<OutsideCount>,
    mut tell: impl FnMut(usize),
) -> io::Result<Report> {
    let (mut merging, mut symbols) = (Merging::default(), BTreeSet::new());
    for (done, (place, _)) in in_order(files.iter().map(|path| (path.into(), 0))).into_iter().enumerate() {
        tell(done);
        merging.add(&read_demangled(&place, &mut symbols)?);
    }
    Ok(Report { symbols, ..merging.report(outside) })
}

/// A rank of a job, and where what it measured is.
pub(crate) struct RankPart {
    pub rank: u32,
    pub host: String,
    pub command: String,
    pub end: RankEnd,
    pub tables: Vec<TablePlace>,
    /// None: it left nothing.
    pub outside: Option<OutsideCount>,
    /// Why nothing in it was measured; empty: something was.
    pub trouble: String,
}

/// Merges ranks of a job of so many. `means`: what else can be measured of it here.
///
/// # Errors
/// Those of [`merge`].
pub(crate) fn merge_ranks(size: u32, parts: Vec<RankPart>, means: &steps::Means) -> io::Result<Report> {
    let (mut merging, mut symbols) = (Merging::of_ranks(&parts), BTreeSet::new());
    let tables = parts.iter().enumerate();
    let tables = tables.flat_map(|(k, part)| part.tables.iter().map(move |place| (place.clone(), k)));
    for (place, part) in in_order(tables) {
        merging.add_to(part, &read_demangled(&place, &mut symbols)?);
    }
    Ok(Report { symbols, ..merging.report_of_ranks(parts, (size, means)) })
}

/// Tables in the order in which their processes began, in which a report lists them. (Floating point sums depend on their order.)
fn in_order(tables: impl Iterator<Item = (TablePlace, usize)>) -> Vec<(TablePlace, usize)> {
    let mut files: Vec<_> = tables.map(|table| (topdown_table::began(&table.0), table)).collect();
    files.sort_by_key(|(began, _)| *began);
    // (a copy or a link, or a file and its directory)
    files.dedup_by(|(began, (path, _)), (first, (kept, _))| {
        let is_same = began.is_some() && began == first;
        if is_same {
            let (path, kept) =
                (clean(&path.path.display().to_string()), clean(&kept.path.display().to_string()));
            terminal::say(&format!("{path} is of the same process as {kept}: it is left out"));
        }
        is_same
    });
    files.into_iter().map(|(_, file)| file).collect()
}

/// A table whose names are as the source has them; the symbols that they were.
fn read_demangled(place: &TablePlace, symbols: &mut BTreeSet<String>) -> io::Result<Table> {
    let mut table = read(place)?;
    for entry in &mut table.entries {
        if let Some(function) = demangle::function(&entry.name) {
            symbols.insert(std::mem::replace(&mut entry.name, function));
        }
    }
    Ok(table)
}

/// A table file, of records that were counted by trees of metrics that this version has. (Of some that were not the file is damaged.)
fn read(place: &TablePlace) -> io::Result<Table> {
    let mut table = topdown_table::read(place)?;
    let mut known = HashMap::new();
    let (own, others): (Vec<_>, Vec<_>) = table.entries.into_iter().partition(|entry| {
        let known = known.entry(entry.core.clone()).or_insert_with(|| topdown::fingerprint(&entry.core));
        known.is_none_or(|known| known == entry.fingerprint)
    });
    if let (true, Some(entry)) = (own.is_empty(), others.first()) {
        return Err(io::Error::other(format!(
            "{}: counted on {} by a tree of metrics that this version of libtopdown does not have; read it with the `topdown` of \
             the version that wrote it",
            place.path.display(),
            clean(&entry.core)
        )));
    }
    table.entries = own;
    table.damaged += others.len() as u64;
    Ok(table)
}

/// Writes a report in this format; without `output` to standard error, and if that is "-" to standard output.
///
/// # Errors
/// It cannot be written; the text names the file.
pub fn write(report: &Report, output: Option<&Path>, format: Format) -> io::Result<()> {
    // (of a text on standard error it is the only line)
    if output.is_some() {
        time_alone::sentence(report).iter().for_each(|why| terminal::say(why));
    }
    if output.is_some() && report.machines.is_empty() {
        for trouble in words::troubles(report).keys() {
            terminal::say(&format!("nothing is measured: {trouble}"));
        }
    }
    let layout = Layout::of_output(output, Stream::Error);
    let write = |out: &mut dyn Write| write_to(report, format, &layout, out);
    match output {
        None => {
            let mut rendered = Vec::new();
            write(&mut rendered)?;
            io::stderr().write_all(&rendered)
        }
        Some(path) => save_as_made(path, write),
    }
}

/// Writes a report to a file, or to standard output if that is "-".
///
/// # Errors
/// It cannot be written; the text names the file.
pub fn save(rendered: &[u8], path: &Path) -> io::Result<()> {
    save_as_made(path, |out| out.write_all(rendered))
}

/// The same of what is written as it is made.
fn save_as_made(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if output::is_stdout(path) {
        return to_stdout(|out| {
            let mut out = io::BufWriter::with_capacity(1 << 16, out);
            write(&mut out)?;
            out.flush()
        });
    }
    let mut out = LateOutput { path, made: Vec::new(), file: None };
    write(&mut out)?;
    out.begin()?.finish()
}

/// A file that is begun when there is much to write, or all: what another command writes there meanwhile is told from what was there.
struct LateOutput<'p> {
    path: &'p Path,
    /// What is not written yet.
    made: Vec<u8>,
    file: Option<Output>,
}

impl LateOutput<'_> {
    /// The file, with all that was made.
    fn begin(&mut self) -> io::Result<Output> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => Output::create(self.path)?,
        };
        file.write_all(&self.made)?;
        self.made.clear();
        Ok(file)
    }
}

impl Write for LateOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const MUCH: usize = 32 << 20;
        self.made.extend(bytes);
        if self.made.len() > MUCH {
            self.file = Some(self.begin()?);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to standard output. Whoever closes the pipe has read enough.
///
/// # Errors
/// It cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// The same of bytes.
///
/// # Errors
/// They cannot be written.
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    to_stdout(|out| out.write_all(bytes))
}

fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    output::stdout_is_open()?;
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
