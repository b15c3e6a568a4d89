//! `topdown compare`: two reports or two recordings, before and after.

use crate::{print, say};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use topdown_record::{RecordedFile, RecordingComparison};
use topdown_report::terminal::{Layout, Stream, say_written};
use topdown_report::{Format, compare, save};

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
    /// The report before: CSV, JSON, or a table file; or a recording: JSON of `topdown record`
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

Exit status: 0; 1 if a file is neither, or the files are of two kinds, or the comparison cannot be written; 2 for wrong arguments.";

/// Exit status 0 if the comparison was written.
pub fn run(arguments: &Arguments) -> ExitCode {
    match compared(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// The comparison, written and laid out so; None: there is no such format of it.
fn rendered(before: &Path, after: &Path, format: Format, layout: &Layout) -> io::Result<Option<String>> {
    let of_two_kinds = |recording: &Path, other: &Path| {
        Err(io::Error::other(format!(
            "{} is a recording of topdown record, {} is none: compare two recordings, or two reports",
            recording.display(),
            other.display()
        )))
    };
    match (RecordedFile::read(before)?, RecordedFile::read(after)?) {
        (Some(one), Some(two)) => Ok(RecordingComparison::new(&one, &two).render_for(format, layout)),
        (None, None) => Ok(compare(before, after)?.render_for(format, layout)),
        (Some(_), None) => of_two_kinds(before, after),
        (None, Some(_)) => of_two_kinds(after, before),
    }
}

fn compared(arguments: &Arguments) -> io::Result<()> {
    let output = arguments.output.as_deref();
    let format = if arguments.csv { Format::Csv } else { Format::of(output)? };
    let no_page = || io::Error::other("a comparison is no HTML page; choose .csv, .json or .txt");
    let layout = Layout::of_output(output, Stream::Output);
    let text = rendered(&arguments.before, &arguments.after, format, &layout)?.ok_or_else(no_page)?;
    let Some(path) = output else { return print(&text) };
    save(text.as_bytes(), path)?;
    say_written("comparison", path);
    Ok(())
}
