//! Samples of an event: of one that locates a node of the tree, of a timer, or only where a condition holds, by auto counter reload: the ratio of two
//! events, over stretches that one of them measures.

mod node;
mod owners;
mod resolved;
mod sampler;
mod samples_of;
mod selftest;
mod several;
mod time;
mod written;

pub(crate) use sampler::{EventSampler, Tally};
pub use samples_of::SamplesOf;
pub(crate) use several::EventSamplings;

use crate::budget::max_sample_rate;
use crate::cpus::of_this_cpu;
use crate::records::CallGraph;
use crate::sampler::SampledTarget;
use crate::settings::Settings;
use resolved::{MachineFacts, PmuSampling, SamplingRule};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use topdown_seam::sysfs::Sysfs;
use topdown_seam::{cpu, numbers};

/// CPUs of a PMU, if not all are.
fn cpus_of(pmu: &str, sysfs: &Sysfs) -> Option<Vec<u32>> {
    sysfs.cpus_with(sysfs.pmu(pmu)?.kind()?).map(|cpus| numbers::listed(&cpus))
}

/// What is sampled: an event, wherever it happens, or only where a ratio of two of them is above or below a limit.
#[derive(Clone, Debug)]
pub struct EventSampling(SamplingRule);

impl EventSampling {
    /// Where a condition holds, as it was written: `ipc<0.5`, `cache-misses/instructions>0.01`, or `instructions/period=20000/,cycles/ratio-to-prev=0.5/`.
    /// `period`: what the event that samples counts in a stretch. It has been tried on this machine.
    ///
    /// # Errors
    /// What is wrong with it, what the machine has not, or what was seen when it was tried, and what to do.
    pub fn where_holds(text: &str, period: Option<u64>) -> Result<EventSampling, String> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let machine = MachineFacts {
            sysfs: &Sysfs::real(),
            kernel: kernel.trim(),
            cpu: &cpu::identify().to_string(),
            max_sample_rate: max_sample_rate(),
        };
        let resolved = SamplingRule::of(text, period, &machine)?;
        selftest::tried(&resolved)?;
        Ok(EventSampling(resolved))
    }

    /// What locates a node of this CPU's tree: `dram_bound`, or `dram_bound=EVENT` where several events do. `period`: how many events from
    /// one sample to the next, if not as many as is published. It has been tried on this machine.
    ///
    /// # Errors
    /// There is no such node or event here, or what was refused.
    pub fn locating(text: &str, period: Option<u64>) -> Result<EventSampling, String> {
        let mut rule = node::located(text, period, &Sysfs::real())?;
        selftest::opened(&mut rule)?;
        Ok(EventSampling(rule))
    }

    /// Time alone, so many times in a second of it, of CPUs or of threads. `why`: no slots are told. It has been tried on this machine.
    ///
    /// # Errors
    /// What was refused.
    pub fn of_time(settings: Settings, of_cpus: bool, why: String) -> Result<EventSampling, String> {
        let mut rule = time::sampled(settings, of_cpus, why);
        selftest::opened(&mut rule)?;
        Ok(EventSampling(rule))
    }

    /// Time alone, of threads that were stopped and looked at, each after so much CPU time on average.
    pub(crate) fn of_stops(settings: Settings, mean_ns: u64, why: String) -> EventSampling {
        EventSampling(time::by_stops(settings, mean_ns, why))
    }

    /// One of these PMUs, which no machine need have.
    #[cfg(test)]
    pub(crate) fn made_up(pmus: &[&'static str]) -> EventSampling {
        let periods = written::Periods { sampled: 2_000_000, other: 1_000_000 };
        let of = SamplesOf::Condition { condition: "ipc < 0.5".into() };
        let pmu = |name: &&'static str| PmuSampling {
            name,
            kind: 0,
            cpus: None,
            sampled: resolved::Config { config: 0, config1: 0 },
            precise_ip: 0,
            is_timed: false,
            reload: None,
            is_random: false,
            is_counted_beside: true,
            kernel: false,
            callers: CallGraph::FramePointers,
        };
        let pmus = pmus.iter().map(pmu).collect();
        EventSampling(SamplingRule { of, event: "cycles".into(), periods, pmus, without: Vec::new() })
    }

    /// What the samples are of.
    pub(crate) fn of(&self) -> &SamplesOf {
        &self.0.of
    }

    /// The event that samples.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.0.event
    }

    /// Whether it can be sampled at the same time as another, if there are counters for both: an extra register has one value at a time.
    #[must_use]
    pub fn goes_with(&self, other: &EventSampling) -> bool {
        let all =
            |sampling: &EventSampling| sampling.0.pmus.iter().map(|pmu| pmu.sampled).collect::<Vec<_>>();
        all(self).iter().all(|own| all(other).iter().all(|other| own.goes_with(other)))
    }

    /// How many of these there are from one sample to the next.
    pub(crate) fn period(&self) -> u64 {
        self.0.periods.sampled
    }

    /// Samples are to tell retire latencies.
    pub(crate) fn is_timed(&self) -> bool {
        self.0.pmus.iter().any(|pmu| pmu.is_timed)
    }

    /// Whether it is known what there was to sample: of the time of a CPU it is not.
    pub(crate) fn knows_all(&self) -> bool {
        !self.of().is_time() || self.0.pmus.iter().all(|pmu| pmu.is_counted_beside)
    }

    /// What else is to be known of a recording of it.
    pub(crate) fn settings(&self) -> Settings {
        let pmus = &self.0.pmus;
        let callers = pmus.first().map_or(CallGraph::FramePointers, |pmu| pmu.callers);
        Settings { kernel: pmus.iter().any(|pmu| pmu.kernel), callers, ..Settings::default() }
    }

    /// How many events no sample stands for that could have one, where samples stand for so many; infinitely many, where not all were counted.
    pub(crate) fn unsampled(&self, tally: &Tally, sampled: f64) -> f64 {
        match self.of() {
            SamplesOf::Condition { .. } => 0.0, // (most of it has none)
            SamplesOf::Node { .. } if tally.uncounted > 0 => f64::INFINITY,
            SamplesOf::Time { .. } if tally.uncounted > 0 => f64::INFINITY,
            SamplesOf::Time { .. } if !self.knows_all() => 0.0,
            SamplesOf::Node { .. } | SamplesOf::Time { .. } => (tally.all.count as f64 - sampled).max(0.0),
        }
    }

    /// PMUs that are sampled, by name.
    pub(crate) fn pmus(&self) -> Vec<&'static str> {
        self.0.pmus.iter().map(|pmu| pmu.name).collect()
    }

    /// PMUs of cores that are not, since they have no auto counter reload or no such event, or the condition names another.
    pub(crate) fn without(&self) -> &[&'static str] {
        &self.0.without
    }

    /// Samplers of a thread, one for each PMU; their kinds are from this one on.
    ///
    /// # Errors
    /// The kernel's; ESRCH: the thread has ended.
    fn of_thread(&self, first: usize, pid: i32, tid: i32) -> io::Result<Vec<EventSampler>> {
        let counted = SampledTarget::Thread { pid, tid };
        let pmus = (first..).zip(&self.0.pmus);
        pmus.map(|(kind, pmu)| EventSampler::open(pmu, kind, self.0.periods, counted)).collect()
    }

    /// Samplers of a CPU, of kinds from this one on; none: it is of a kind of which the condition tells nothing.
    ///
    /// # Errors
    /// The kernel's.
    fn of_cpu(&self, first: usize, counted: SampledTarget) -> io::Result<Vec<EventSampler>> {
        let open = |pmu: &PmuSampling, kind| EventSampler::open(pmu, first + kind, self.0.periods, counted);
        match of_this_cpu(&self.0.pmus, open) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Vec::new()),
            opened => opened,
        }
    }

    /// On these CPUs alone, if it is of any: what is on others is not missed.
    ///
    /// # Errors
    /// None of them is of a kind that is sampled.
    pub fn only_on(mut self, cpus: &BTreeSet<u32>) -> Result<EventSampling, String> {
        let sysfs = Sysfs::real();
        let has = |pmu: &str| cpus_of(pmu, &sysfs).is_none_or(|of| cpus.iter().any(|cpu| of.contains(cpu)));
        if !self.0.pmus.iter().any(|pmu| has(pmu.name)) {
            let kind = |pmu: &PmuSampling| {
                format!("{} (CPUs {})", pmu.name, pmu.cpus.as_deref().unwrap_or_default())
            };
            let kinds: Vec<String> = self.0.pmus.iter().map(kind).collect();
            let kinds = kinds.join(" or ");
            return Err(match self.of() {
                SamplesOf::Condition { .. } => {
                    format!(
                        "--where: none of these CPUs is of {kinds}, and counters of others are not reloaded"
                    )
                }
                // (each CPU has timers)
                SamplesOf::Time { .. } => String::new(),
                SamplesOf::Node { node, .. } => {
                    format!("--locate {node}: none of these CPUs is of {kinds}, whose tree has it")
                }
            });
        }
        self.0.without.retain(|pmu| has(pmu));
        Ok(self)
    }
}
