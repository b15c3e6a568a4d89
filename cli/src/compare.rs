//! `topdown compare`: two reports, before and after.

use crate::{print, say};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
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
    /// The report before: CSV, JSON, or a table file
    before: PathBuf,
    /// The report after
    after: PathBuf,
}

/// What `topdown compare --help` says of the rest.
pub const HELP: &str = "\
Regions are those of the same name. A share has changed significantly if it differs by more than the bounds of both reports together:
then it has truly changed, in this direction. Of two runs of the same program shares may differ truly, too: compare those first.

Exit status: 0; 1 if a file is no report or the comparison cannot be written; 2 for wrong arguments.";

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

fn compared(arguments: &Arguments) -> io::Result<()> {
    let output = arguments.output.as_deref();
    let format = if arguments.csv { Format::Csv } else { Format::of(output)? };
    let comparison = compare(&arguments.before, &arguments.after)?;
    let no_page = || io::Error::other("a comparison is no HTML page; choose .csv, .json or .txt");
    let text = comparison.render(format).ok_or_else(no_page)?;
    output.map_or_else(|| print(&text), |path| save(text.as_bytes(), path))
}
