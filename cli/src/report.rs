//! `topdown report`: table files to one report.

use crate::run::TABLE;
use crate::{print, say, sys};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use topdown_report::model::Run;
use topdown_report::terminal::{Layout, Progress, Stream, say_written};
use topdown_report::{
    Claim, Format, JobDirectory, JobPlace, Joined, Left, OutsideCount, Report, merge_telling, render_for,
};
use topdown_table::run;

/// Options of `topdown report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the report to FILE, in the format of its ending: .csv, .json, .html, .parquet, .txt; `-` is standard output [default: a text to
    /// standard output]. In the name, %p stands for the id of the process that was measured, %h for the host, %n for its program, %t for the time
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// FILE before patterns in it were replaced
    #[arg(skip)]
    named: Option<PathBuf>,
    /// What that file was when the program began
    #[arg(long, hide = true, requires = "run")]
    output_was: Option<String>,
    /// How the library asks for a report when a program ends: of the run with this number, of which FILE is a table, and whose
    /// tables are removed then
    #[arg(long, value_name = "NUMBER", hide = true)]
    run: Option<String>,
    /// Table files (*.topdown), one of each process; directories: all table files in them; or the directory NAME.ranks-JOB in which ranks of a
    /// job have left theirs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What `topdown report --help` says of the rest.
pub const HELP: &str = "\
A program that runs with LD_PRELOAD=libtopdown-preload.so and TOPDOWN_OUTPUT=DIRECTORY/NAME.topdown leaves a table file
DIRECTORY/NAME.PID.N.topdown for each process, however it ends. docs/report.md says what the figures mean.

Exit status: 0; 1 if a file is no table file or the report cannot be written; 2 for wrong arguments.";

/// Exit status 0 if the report was written.
pub fn run(mut arguments: Arguments) -> ExitCode {
    arguments.named = arguments.output.clone();
    let named = arguments.take_directories().and_then(|()| {
        arguments.leave_out_empty();
        arguments.name_output()
    });
    let written = named.and_then(|()| match &arguments.run {
        Some(token) => of_run(&arguments, token),
        None => of_files(&arguments),
    });
    match written {
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

impl Arguments {
    /// In place of each directory the table files in it. (Of more than some ten thousand, a shell cannot hand on all names.)
    fn take_directories(&mut self) -> io::Result<()> {
        if self.run.is_some() || !self.files.iter().any(|file| file.is_dir()) {
            return Ok(());
        }
        let mut files = Vec::new();
        for file in std::mem::take(&mut self.files) {
            if !file.is_dir() || topdown_report::is_job(&file) {
                files.push(file);
                continue;
            }
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: cannot read it: {error}", file.display()))
            };
            let first = files.len();
            for entry in fs::read_dir(&file).map_err(named)? {
                let path = entry.map_err(named)?.path();
                files.extend(Some(path).filter(|path| path.extension() == Some(OsStr::new(TABLE))));
            }
            if files.len() == first {
                return Err(io::Error::other(format!(
                    "{}: no table file (*.{TABLE}) is in this directory",
                    file.display()
                )));
            }
            files[first..].sort();
        }
        self.files = files;
        Ok(())
    }

    /// A process that ended in its first moments, or has just begun, has a table file that is empty, or zeros: the others have a report all the same.
    fn leave_out_empty(&mut self) {
        let (begun, empty): (Vec<_>, Vec<_>) =
            self.files.iter().cloned().partition(|file| run::has_begun(file));
        if begun.is_empty() {
            return; // (an error of their own)
        }
        for file in empty {
            say(&format!(
                "{} is empty: its process was not measured yet, or the file was truncated; it is left out",
                file.display()
            ));
        }
        self.files = begun;
    }

    /// What the patterns in the name of the file stand for: the process of the first table, which is the one that reports.
    fn name_output(&mut self) -> io::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let Ok(header) = run::header(&self.files[0]) else { return Ok(()) }; // (an error of its own)
        let command = topdown_table::text(&header.command);
        let program = command.split(' ').next().map(OsString::from);
        *output = sys::named_for(output, header.pid as u32, program.as_ref())?;
        Ok(())
    }
}

fn of_files(arguments: &Arguments) -> io::Result<()> {
    if let ([directory], None) = (&arguments.files[..], &arguments.run) {
        if topdown_report::is_job(directory) {
            let report = topdown_report::report_of(directory)?;
            let format = Format::of(arguments.output.as_deref())?;
            written(&report, arguments.output.as_deref(), format)?;
            arguments.output.iter().for_each(|path| say_written("report", path));
            return Ok(());
        }
    }
    match &arguments.output {
        // -o *.topdown: the first of them would be replaced
        Some(path) if path.extension() == Some(OsStr::new(TABLE)) => Err(io::Error::other(format!(
            "-o {}: this is how table files end, and a report is none; give -o a FILE of its own, .csv, .json, .html or a \
             text",
            path.display()
        ))),
        output => {
            write(&arguments.files, output.as_deref(), Format::of(output.as_deref())?)?;
            output.iter().for_each(|path| say_written("report", path));
            Ok(())
        }
    }
}

/// To the file, or as a text to standard output.
fn write(files: &[PathBuf], output: Option<&Path>, format: Format) -> io::Result<()> {
    let mut progress = Progress::of("reading table files");
    let report = merge_telling(files, None, |done| progress.at(done, files.len()))?;
    drop(progress);
    written(&report, output, format)
}

fn written(report: &Report, output: Option<&Path>, format: Format) -> io::Result<()> {
    match output {
        Some(_) => topdown_report::write(report, output, format),
        None => print(&render_for(report, format, &Layout::of(Stream::Output))),
    }
}

/// The report that the library asks for when a program ends: of the whole run, whose tables are removed then.
fn of_run(arguments: &Arguments, token: &str) -> io::Result<()> {
    let failed = |why: &dyn Display| {
        let output = arguments.output.as_deref().unwrap_or(Path::new("standard error")).display();
        let own = arguments.files[0].display();
        io::Error::other(format!(
            "no report in {output}: {why}; the figures are in {own}, for `topdown report`"
        ))
    };
    let token = u128::from_str_radix(token, 16).map_err(|error| failed(&error))?.to_be_bytes();
    let own = &arguments.files[0];
    let directory = own.parent().unwrap_or(Path::new("."));
    let files = run::tables(directory, &token);
    if files.is_empty() {
        let directory = directory.display();
        return Err(io::Error::other(format!("no report: no table file of this run is left in {directory}")));
    }
    if arguments.output.as_deref().is_some_and(leads_elsewhere) {
        return Err(failed(&"another user has put a link, a FIFO or a device there"));
    }
    if of_rank(arguments, &files).map_err(|error| failed(&error))? {
        let _ = fs::remove_dir(directory); // unless others have files in it
        return Ok(());
    }
    let place = arguments.output.as_deref().map(|path| {
        let claim = arguments.output_was.as_deref().and_then(|state| Claim::since(path, state));
        claim.map_or_else(|| path.to_path_buf(), |claim| claim.place())
    });
    let output = place.as_deref();
    // (the program has run: whatever the ending, it has a report)
    write(&files, output, Format::of(output).unwrap_or(Format::Text)).map_err(|error| failed(&error))?;
    for file in files {
        if file == *own || run::header(&file).ok().is_none_or(|header| !header.is_alive()) {
            let _ = fs::remove_file(file);
        }
    }
    let _ = fs::remove_dir(directory); // unless others have files in it
    Ok(())
}

/// Leaves the tables of a rank of a job for the report of all, and writes that, if it is for this one to do. Whether it is a rank.
fn of_rank(arguments: &Arguments, files: &[PathBuf]) -> io::Result<bool> {
    let (Some(output), Some(named)) = (&arguments.output, &arguments.named) else { return Ok(false) };
    let header = run::header(&arguments.files[0])?;
    let pid = header.pid as u32;
    let Some(place) = JobPlace::of_report((named, output), (pid, &sys::host()), sys::environment_of(pid))
    else {
        return Ok(false);
    };
    let command = topdown_table::text(&header.command);
    let own = arguments.files[0].parent().unwrap_or(Path::new(".")).to_path_buf();
    let was = arguments.output_was.as_deref();
    let about = (sys::host(), command.clone(), own);
    let job = match JobDirectory::join((named, output, was), place, about) {
        Joined::Job(job) => job,
        Joined::Alone(why) => {
            why.iter().for_each(|why| say(why));
            return Ok(false);
        }
    };
    let run = Run { command, host: sys::host(), ..Run::default() };
    let outside = OutsideCount { run, ..OutsideCount::default() };
    let format = Format::of(Some(output)).unwrap_or(Format::Text);
    let left = job.leave(files, &outside, ("", true), |report, path| {
        topdown_report::write(report, Some(path), format)
    })?;
    if let Left::Report(made) = left {
        // (of those before the last nobody needs to know)
        made.complete.then(|| say(&made.text()));
    }
    Ok(true)
}

/// Whether another user, who is not root, has a link, a FIFO or the like of this name: who writes to it writes where that
/// user likes, or waits for a reader that never comes.
fn leads_elsewhere(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|about| !about.is_file() && about.uid() != 0 && !run::is_own(&about, 0))
}
