//! What all that is tried needs of the process and of the system, whatever counts: descriptors, and /proc.
#![forbid(unsafe_code)]

use crate::record::NO_PROC;
use topdown::{Finding, Verdict};

/// Trials and what records by timers have some ten descriptors, and some more for each CPU: with fewer than this they may fail for want of them.
const ENOUGH: u64 = 64;

/// What needs no counters, and so is not there for want of something else.
const WITHOUT_COUNTERS: [&str; 5] = ["run", "regions", "record", "record_ptrace", "record_all_cpus"];
/// What finds threads in /proc.
const BY_THREADS: [&str; 2] = ["record", "record_ptrace"];

/// Where this process runs.
pub struct Surroundings {
    /// So many descriptors may be open.
    pub descriptors: u64,
    /// Whether /proc is mounted.
    pub has_proc: bool,
}

impl Surroundings {
    /// Why an ability of this name may not be there, whatever counts; None: for another reason.
    pub fn lack(&self, name: &str) -> Option<String> {
        if !WITHOUT_COUNTERS.contains(&name) {
            return None;
        }
        if !self.has_proc && BY_THREADS.contains(&name) {
            return Some(NO_PROC.into());
        }
        (self.descriptors < ENOUGH).then(|| {
            format!(
                "no more than {} descriptors may be open (RLIMIT_NOFILE), too few to try it: ulimit -n 1024",
                self.descriptors
            )
        })
    }

    /// As lines of probes.
    pub fn findings(&self) -> [Finding; 2] {
        let finding = |name, (found, verdict, remedy): (String, Verdict, &str)| Finding {
            name,
            found,
            verdict,
            remedy: remedy.into(),
        };
        let descriptors = match self.descriptors {
            few if few < ENOUGH => (
                format!("{few} may be open (RLIMIT_NOFILE), too few to record and to try what can be done"),
                Verdict::Note,
                "ulimit -n 1024 (above a hard limit as root)",
            ),
            libc::RLIM_INFINITY => ("any number may be open".into(), Verdict::Good, ""),
            enough => (format!("{enough} may be open"), Verdict::Good, ""),
        };
        let proc = match self.has_proc {
            true => ("mounted".into(), Verdict::Good, ""),
            false => (
                "not mounted: threads are not found, so record has none but with -a and -C".into(),
                Verdict::Note,
                "mount -t proc proc /proc",
            ),
        };
        [finding("descriptors", descriptors), finding("proc", proc)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_and_a_missing_proc_are_said_with_what_mends_them() {
        let few = Surroundings { descriptors: 10, has_proc: false };
        assert!(few.lack("record_all_cpus").unwrap().contains("10 descriptors"));
        assert_eq!((few.lack("record").as_deref(), few.lack("stat")), (Some(NO_PROC), None));
        let [descriptors, proc] = few.findings();
        assert!(descriptors.remedy.starts_with("ulimit -n ") && descriptors.verdict == Verdict::Note);
        assert!(proc.remedy.starts_with("mount ") && proc.verdict == Verdict::Note);
        let all = Surroundings { descriptors: ENOUGH, has_proc: true };
        assert!(all.lack("record").is_none());
        assert!(all.findings().iter().all(|one| one.verdict == Verdict::Good && one.remedy.is_empty()));
    }
}
