//! Where the report of `topdown run` goes: a file of its own, or, of a rank of a job, that of all ranks.
#![forbid(unsafe_code)]

use super::{Arguments, Directory, came_to_nothing};
use crate::outcome::write_timeline;
use crate::{say, sys};
use topdown_report::{Claim, Format, JobDirectory, JobPlace, Joined, Left, OutsideCount};

/// Where a report goes.
pub(super) enum Destination {
    /// Standard error.
    Terminal,
    /// A file of its own.
    File(Claim),
    /// The file of a job, of which this is a rank.
    Job(Box<JobDirectory>),
}

impl Arguments {
    /// Where the report goes: as a rank of a job into that of all, unless its name tells ranks, processes or hosts apart.
    pub(super) fn destination(&self, format: Format, directory: &Directory) -> Destination {
        let (Some(output), Some(named)) = (&self.output, &self.named) else { return Destination::Terminal };
        let pid = std::process::id();
        let has_report = format != Format::Trace;
        let place = JobPlace::of_report((named, output), (pid, &sys::host()), sys::environment_of(pid))
            .filter(|_| has_report);
        if let Some(place) = place {
            let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
            let about = (sys::host(), words.join(" "), directory.path.clone());
            let is_first = place.rank == 0;
            match JobDirectory::join((named, output, None), place, about) {
                Joined::Job(job) => {
                    if is_first && (self.deep.drill || self.deep.has_figures() || self.per_process) {
                        say(
                            "the report of all ranks has their levels and nodes; what --drill, --metrics and --per-process add is of one rank: \
                             -o with %r in the name",
                        );
                    }
                    return Destination::Job(job);
                }
                Joined::Alone(why) => why.iter().for_each(|why| say(why)),
            }
        }
        Destination::File(Claim::of(output))
    }
}

/// Leaves what a rank of a job has measured for the report of all, and writes that, if it is the last. What the rank's own report lacks
/// of what is required.
pub(super) fn leave_job(
    arguments: &Arguments,
    directory: &mut Directory,
    (outside, trouble): (OutsideCount, &str),
    (format, job): (Format, JobDirectory),
) -> Option<String> {
    let tables = directory.tables().unwrap_or_default();
    let mut lacks = None;
    if arguments.require.is_some() || arguments.timeline.is_some() {
        lacks = arguments.require.map(|_| "there is no report".into());
        match topdown_report::merge(&tables, Some(outside.clone())) {
            Ok(report) => {
                lacks = arguments.require.and_then(|require| require.lacks(&report));
                write_timeline(&report, arguments.timeline.as_deref());
            }
            Err(error) => say(&format!("no report of this rank: {error}")),
        }
    }
    let path = job.path().to_path_buf();
    let left = job.leave(&tables, &outside, (trouble, false), |report, path| {
        topdown_report::write(report, Some(path), format)?;
        came_to_nothing(arguments, report).for_each(|line| say(&line));
        Ok(())
    });
    match left {
        Ok(Left::Others) => {}
        Ok(Left::Report(made)) => say(&made.text()),
        Err(error) => {
            let figures = if tables.iter().any(|table| table.exists()) { directory.keep() } else { &path };
            say(&format!("no report: {error}; the figures are in {}", figures.display()));
        }
    }
    lacks
}
