//! Samples only where a condition holds, by auto counter reload: the ratio of two events, over stretches that one of them measures.

mod resolved;
mod sampler;
mod selftest;
mod written;

pub(crate) use sampler::{ConditionalSampler, Tally};

use crate::budget::max_sample_rate;
use resolved::{Machine, Resolved};
use std::fs;
use std::io;
use topdown_seam::cpu;
use topdown_seam::sysfs::Sysfs;

/// What is to hold where samples are taken: a ratio of two events.
#[derive(Clone, Debug)]
pub struct Condition(Resolved);

impl Condition {
    /// As it was written: `ipc<0.5`, `cache-misses/instructions>0.01`, or `instructions/period=20000/,cycles/ratio-to-prev=0.5/`.
    /// `period`: what the event that samples counts in a stretch. It has been tried on this machine.
    ///
    /// # Errors
    /// What is wrong with it, what the machine has not, or what was seen when it was tried, and what to do.
    pub fn new(text: &str, period: Option<u64>) -> Result<Condition, String> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let machine = Machine {
            sysfs: &Sysfs::real(),
            kernel: kernel.trim(),
            cpu: &cpu::identify().to_string(),
            max_sample_rate: max_sample_rate(),
        };
        let resolved = Resolved::of(text, period, &machine)?;
        selftest::tried(&resolved)?;
        Ok(Condition(resolved))
    }

    /// One of no PMU, which no machine need have.
    #[cfg(test)]
    pub(crate) fn made_up() -> Condition {
        let periods = written::Periods { sampled: 2_000_000, other: 1_000_000 };
        let (text, event) = ("ipc < 0.5".into(), "cycles".into());
        Condition(Resolved { text, event, periods, pmus: Vec::new(), without: Vec::new() })
    }

    /// What the samples are of: in words, the event that samples, and what it counts from one to the next.
    pub(crate) fn described(&self) -> (&str, &str, u64) {
        (&self.0.text, &self.0.event, self.0.periods.sampled)
    }

    /// PMUs that are sampled, by name.
    pub(crate) fn pmus(&self) -> Vec<&'static str> {
        self.0.pmus.iter().map(|pmu| pmu.name).collect()
    }

    /// PMUs of cores that are not, since they have no auto counter reload, or the condition names another.
    pub(crate) fn without(&self) -> &[&'static str] {
        &self.0.without
    }

    /// Samplers of a thread, one for each PMU.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended.
    pub(crate) fn open(&self, pid: i32, tid: i32) -> io::Result<Vec<ConditionalSampler>> {
        let pmus = self.0.pmus.iter().enumerate();
        pmus.map(|(kind, pmu)| ConditionalSampler::open(pmu, kind, self.0.periods, pid, tid)).collect()
    }
}
