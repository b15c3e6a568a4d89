//! Samples only where a condition holds, by auto counter reload: the ratio of two events, over stretches that one of them measures.

mod owners;
mod resolved;
mod sampler;
mod selftest;
mod written;

pub(crate) use sampler::{ConditionalSampler, Tally};

use crate::budget::max_sample_rate;
use crate::cpus::of_this_cpu;
use crate::sampler::SampledTarget;
use resolved::{ConditionEvents, MachineFacts, PmuCondition};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use topdown_seam::sysfs::Sysfs;
use topdown_seam::{cpu, numbers};

/// CPUs of a PMU, if not all are.
fn cpus_of(pmu: &str, sysfs: &Sysfs) -> Option<Vec<u32>> {
    sysfs.cpus_with(sysfs.pmu(pmu)?.kind()?).map(|cpus| numbers::listed(&cpus))
}

/// What is to hold where samples are taken: a ratio of two events.
#[derive(Clone, Debug)]
pub struct Condition(ConditionEvents);

impl Condition {
    /// As it was written: `ipc<0.5`, `cache-misses/instructions>0.01`, or `instructions/period=20000/,cycles/ratio-to-prev=0.5/`.
    /// `period`: what the event that samples counts in a stretch. It has been tried on this machine.
    ///
    /// # Errors
    /// What is wrong with it, what the machine has not, or what was seen when it was tried, and what to do.
    pub fn new(text: &str, period: Option<u64>) -> Result<Condition, String> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let machine = MachineFacts {
            sysfs: &Sysfs::real(),
            kernel: kernel.trim(),
            cpu: &cpu::identify().to_string(),
            max_sample_rate: max_sample_rate(),
        };
        let resolved = ConditionEvents::of(text, period, &machine)?;
        selftest::tried(&resolved)?;
        Ok(Condition(resolved))
    }

    /// One of no PMU, which no machine need have.
    #[cfg(test)]
    pub(crate) fn made_up() -> Condition {
        let periods = written::Periods { sampled: 2_000_000, other: 1_000_000 };
        let (text, event) = ("ipc < 0.5".into(), "cycles".into());
        Condition(ConditionEvents { text, event, periods, pmus: Vec::new(), without: Vec::new() })
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
    pub(crate) fn of_thread(&self, pid: i32, tid: i32) -> io::Result<Vec<ConditionalSampler>> {
        let counted = SampledTarget::Thread { pid, tid };
        let pmus = self.0.pmus.iter().enumerate();
        pmus.map(|(kind, pmu)| ConditionalSampler::open(pmu, kind, self.0.periods, counted)).collect()
    }

    /// Samplers of a CPU; none: it is of a kind of which the condition tells nothing.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn of_cpu(&self, counted: SampledTarget) -> io::Result<Vec<ConditionalSampler>> {
        let open = |pmu: &PmuCondition, kind| ConditionalSampler::open(pmu, kind, self.0.periods, counted);
        match of_this_cpu(&self.0.pmus, open) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Vec::new()),
            opened => opened,
        }
    }

    /// On these CPUs alone, if it is of any: what is on others is not missed.
    ///
    /// # Errors
    /// None of them is of a kind whose counters are reloaded.
    pub fn only_on(mut self, cpus: &BTreeSet<u32>) -> Result<Condition, String> {
        let sysfs = Sysfs::real();
        let has = |pmu: &str| cpus_of(pmu, &sysfs).is_none_or(|of| cpus.iter().any(|cpu| of.contains(cpu)));
        if !self.0.pmus.iter().any(|pmu| has(pmu.name)) {
            let kind = |pmu: &PmuCondition| {
                format!("{} (CPUs {})", pmu.name, pmu.cpus.as_deref().unwrap_or_default())
            };
            let kinds: Vec<String> = self.0.pmus.iter().map(kind).collect();
            return Err(format!(
                "--where: none of these CPUs is of {}, and counters of others are not reloaded",
                kinds.join(" or ")
            ));
        }
        self.0.without.retain(|pmu| has(pmu));
        Ok(self)
    }
}
