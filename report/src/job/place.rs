//! Which rank of which job a process is, by its environment.
#![forbid(unsafe_code)]

use crate::output::is_stdout;
use crate::pattern::{has_any, rank_among};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use topdown_table::run;

/// How many ranks there are. (Of Slurm the variable of a step: in a batch script, which is no rank, SLURM_NTASKS is set, too)
const SIZES: [&str; 5] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE", "SLURM_STEP_NUM_TASKS"];
/// What is the same in all ranks of a job, and in no other job; of the first that is set all are.
const JOBS: [&[&str]; 7] = [
    &["PMIX_NAMESPACE"],
    &["OMPI_MCA_ess_base_jobid"],
    &["OMPI_MCA_orte_ess_jobid"],
    &["PALS_APID"],
    &["ALPS_APP_ID"],
    &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    &["PMI_JOBID"],
];
/// Longest name of a job or a host that is part of a file's name.
const LONGEST: usize = 80;

/// A rank's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlace {
    /// The job, as part of a file's name.
    pub job: String,
    /// Which of its ranks.
    pub rank: u32,
    /// How many there are: more than one.
    pub size: u32,
}

impl JobPlace {
    /// The place that an environment tells; None: it is of no job, or of one with a single rank. `launcher`: what started this process
    /// (used where no variable names the job).
    pub fn among(
        environment: impl Iterator<Item = (OsString, OsString)>,
        launcher: impl FnOnce() -> String,
    ) -> Option<JobPlace> {
        let told: HashMap<OsString, OsString> = environment.filter(|(_, value)| !value.is_empty()).collect();
        let value = |name: &str| told.get(OsStr::new(name)).and_then(|value| value.to_str());
        let rank = rank_among(told.iter().map(|(name, value)| (name.clone(), value.clone())))?;
        let rank = rank.to_str()?.parse().ok()?;
        let size = SIZES.iter().find_map(|name| value(name))?.parse().ok()?;
        if size < 2 || rank >= size {
            return None;
        }
        let named = JOBS.iter().find_map(|names| {
            let parts: Option<Vec<&str>> = names.iter().map(|name| value(name)).collect();
            parts.map(|parts| parts.join("-"))
        });
        let job = named.unwrap_or_else(launcher);
        Some(JobPlace { job: plain(&job), rank, size })
    }

    /// That of a process of this environment, if a report of this name is one of all ranks: it tells no ranks, processes or hosts apart,
    /// and is a file.
    pub fn of_report(
        (pattern, output): (&Path, &Path),
        (pid, host): (u32, &str),
        environment: Vec<(OsString, OsString)>,
    ) -> Option<JobPlace> {
        let is_file = fs::metadata(output).map_or(true, |about| about.is_file());
        let is_one = !has_any(pattern, b"rph") && is_file && !is_stdout(output);
        if is_one { JobPlace::among(environment.into_iter(), || launcher(pid as i32, host)) } else { None }
    }
}

/// A text as part of a file's name.
pub fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    text.chars().map(plain).take(LONGEST).collect()
}

/// What started a process: MPICH's proxies have the address of their mpiexec among their arguments, which all hosts' have; of others
/// the parent.
fn launcher(pid: i32, host: &str) -> String {
    const FARTHEST: usize = 8;
    let parent = run::stat(pid).map_or(0, |(parent, _)| parent);
    let mut ancestors = std::iter::successors(Some(parent), |pid| Some(run::stat(*pid)?.0)).take(FARTHEST);
    ancestors.find_map(control_port).unwrap_or_else(|| format!("{host}-{parent}"))
}

fn control_port(pid: i32) -> Option<String> {
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = command.split(|byte| *byte == 0);
    words.find(|word| *word == b"--control-port")?;
    Some(String::from_utf8_lossy(words.next()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::JobPlace;

    fn place(told: &[(&str, &str)]) -> Option<(String, u32, u32)> {
        let told = told.iter().map(|(name, value)| (name.into(), value.into()));
        JobPlace::among(told, || "node:1234".into()).map(|place| (place.job, place.rank, place.size))
    }

    #[test]
    fn environments_tell_the_place() {
        let open_mpi =
            [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_NAMESPACE", "prte@1/a")];
        assert_eq!(place(&open_mpi), Some(("prte_1_a".into(), 3, 4)));
        assert_eq!(place(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]), Some(("node_1234".into(), 0, 2)));
        let step = [("SLURM_PROCID", "1"), ("SLURM_JOB_ID", "77"), ("SLURM_STEP_ID", "0")];
        let sized = [&step[..], &[("SLURM_STEP_NUM_TASKS", "8")]].concat();
        assert_eq!(place(&sized), Some(("77-0".into(), 1, 8)));
        // (a batch script)
        assert_eq!(place(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8"), ("SLURM_JOB_ID", "77")]), None);
        // one process alone, a rank that is none, and no job
        assert_eq!(place(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        assert_eq!(place(&[("PMI_RANK", "2"), ("PMI_SIZE", "2")]), None);
        assert_eq!(place(&[("HOME", "2")]), None);
    }
}
