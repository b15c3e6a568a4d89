//! `topdown compare`: two reports or two recordings, before and after.

use crate::{print, say};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use topdown_record::{RecordedFile, RecordingComparison};
use topdown_report::terminal::{Layout, Stream, say_written};
use topdown_report::{Condition, ConditionState, Format, compare, save};

/// (clap would take a list of lists for one of arguments)
type Conditions = Vec<Condition>;

/// Options of `topdown compare`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the comparison to FILE, in the format of its ending: .csv, .json, .txt; `-` is standard output [default: a text to
    /// standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write comma-separated values, whatever the ending
    #[arg(long)]
    csv: bool,
    /// End with exit status 3 if a share of the whole, or of a region, has certainly changed so, in points: retiring<-1 (it has fallen by
    /// more than one), memory_bound>2, solve:core_bound>5. What the bounds of both reports leave open does not fail
    #[arg(long, value_name = "CONDITION,...", value_parser = Condition::list)]
    fail_if: Vec<Conditions>,
    /// The report before: CSV, JSON, or a table file; results of Google Benchmark (JSON); or a recording: JSON of `topdown record`
    before: PathBuf,
    /// The one after, of the same kind
    after: PathBuf,
}

/// What `topdown compare --help` says of the rest.
pub const HELP: &str = "\
Of two reports regions of the same name are compared, of two recordings functions of the same name and module on the same kind of core.
A share has changed significantly if it differs by more than the bounds of both reports together, or the intervals of both recordings:
then it has truly changed, in this direction (of recordings: each interval has the truth with a probability of 95 %). Of two runs of the
same program shares may differ truly, too: compare those first.

Exit status: 0; 1 if a file is neither, or the files are of two kinds, or the comparison cannot be written, or what --fail-if names was not
measured in both, also if a condition holds; 2 for wrong arguments; 3 if a condition of --fail-if holds.";

/// Exit status if a condition of --fail-if holds.
const HOLDS: u8 = 3;

/// Exit status 0 if the comparison was written, and no condition holds.
pub fn run(arguments: &Arguments) -> ExitCode {
    match compared(arguments) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(HOLDS),
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// The comparison, written and laid out so, and what it says of conditions; None: there is no such format of it.
type Rendered = (Option<String>, Vec<ConditionState>);

fn rendered(arguments: &Arguments, format: Format, layout: &Layout) -> io::Result<Rendered> {
    let Arguments { before, after, fail_if, .. } = arguments;
    let of_two_kinds = |recording: &Path, other: &Path| {
        Err(io::Error::other(format!(
            "{} is a recording of topdown record, {} is none: compare two recordings, or two reports",
            recording.display(),
            other.display()
        )))
    };
    match (RecordedFile::read(before)?, RecordedFile::read(after)?) {
        (Some(_), Some(_)) if !fail_if.is_empty() => Err(io::Error::other(
            "--fail-if is of reports, and these are recordings: compare those of topdown stat or topdown run",
        )),
        (Some(one), Some(two)) => {
            Ok((RecordingComparison::new(&one, &two).render_for(format, layout), Vec::new()))
        }
        (None, None) => {
            let comparison = compare(before, after)?;
            let states = fail_if.iter().flatten().map(|condition| comparison.state_of(condition)).collect();
            Ok((comparison.render_for(format, layout), states))
        }
        (Some(_), None) => of_two_kinds(before, after),
        (None, Some(_)) => of_two_kinds(after, before),
    }
}

/// Whether a condition holds.
fn compared(arguments: &Arguments) -> io::Result<bool> {
    let output = arguments.output.as_deref();
    let format = if arguments.csv { Format::Csv } else { Format::of(output)? };
    let no_page = || io::Error::other("a comparison is no HTML page; choose .csv, .json or .txt");
    let layout = Layout::of_output(output, Stream::Output);
    let (text, states) = rendered(arguments, format, &layout)?;
    let text = text.ok_or_else(no_page)?;
    match output {
        None => print(&text)?,
        Some(path) => {
            save(text.as_bytes(), path)?;
            say_written("comparison", path);
        }
    }
    let mut holds = false;
    let mut unknown = Vec::new();
    for state in states {
        match state {
            ConditionState::Holds(what) => {
                say(&what);
                holds = true;
            }
            ConditionState::Unknown(why) => unknown.push(why),
            ConditionState::DoesNot => {}
        }
    }
    if unknown.is_empty() { Ok(holds) } else { Err(io::Error::other(unknown.join("; "))) }
}
