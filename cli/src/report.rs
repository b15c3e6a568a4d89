//! `topdown report`: table files to one report.

use crate::run::TABLE;
use crate::{print, say};
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use topdown_report::{Format, render};

/// Options of `topdown report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the report to FILE, in the format of its ending: .csv, .json, .html, else text [default: a text to standard
    /// output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Table files (*.topdown), one of each process
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What `topdown report --help` says of the rest.
pub const HELP: &str = "\
A program that runs with LD_PRELOAD=libtopdown-preload.so and TOPDOWN_OUTPUT=DIRECTORY/NAME.topdown leaves a table file
DIRECTORY/NAME.PID.N.topdown for each process, however it ends. docs/report.md says what the figures mean.

Exit status: 0; 1 if a file is no table file or the report cannot be written; 2 for wrong arguments.";

/// Exit status 0 if the report was written.
pub fn run(arguments: &Arguments) -> ExitCode {
    let written = match &arguments.output {
        // -o *.topdown: the first of them would be replaced
        Some(path) if path.extension() == Some(OsStr::new(TABLE)) => Err(io::Error::other(format!(
            "-o {}: this is how table files end, and a report is none; give -o a FILE of its own, .csv, .json, .html or a \
             text",
            path.display()
        ))),
        Some(_) => topdown_report::write(&arguments.files, arguments.output.as_deref()),
        None => {
            topdown_report::merge(&arguments.files).and_then(|report| print(&render(&report, Format::Text)))
        }
    };
    match written {
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}
