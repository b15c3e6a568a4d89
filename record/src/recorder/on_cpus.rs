//! CPUs instead of threads: whatever runs there.
#![forbid(unsafe_code)]

use super::{Recorder, ThreadCounters, sideband_refusal};
use crate::cpu_clock::CpuClock;
use crate::cpus::{RecordedCpus, of_this_cpu};
use crate::event::now;
use crate::event_sampling::EventSampling;
use crate::sampler::Sampler;
use crate::settings::Settings;
use crate::whom::{RecordedProcesses, online, processes};
use std::collections::BTreeSet;
use std::io;
use topdown::{Error, Obstacle, SampledEvents};
use topdown_seam::clocks::own_cpu_ns;

/// Of processes that have ended longer ago than this no samples come any more.
const FORGET_NS: u64 = 2_000_000_000;

/// The first event on a CPU is one that tells of new threads.
fn refused(error: io::Error) -> Error {
    let refusal = sideband_refusal(error);
    if refusal.code() != -libc::EACCES {
        return refusal;
    }
    Error::new(refusal.code(), "perf_event_open on a CPU is denied")
        .why("kernel.perf_event_paranoid is above 0, or a security module (LSM) forbids it")
        .remedy(Obstacle::Paranoid { found: None, needed: 0 }.short())
}

impl Recorder {
    /// On these CPUs (None: all), of whatever runs there but the thread that calls, which records.
    ///
    /// # Errors
    /// The kernel's, and what was refused.
    pub fn of_cpus(
        events: Vec<SampledEvents>,
        cpus: Option<BTreeSet<u32>>,
        settings: Settings,
    ) -> Result<Recorder, Error> {
        Recorder::on_cpus(events, Vec::new(), cpus, settings)
    }

    /// The same, of samples of events.
    ///
    /// # Errors
    /// The kernel's, and what was refused.
    pub fn of_events_on_cpus(
        samplings: Vec<EventSampling>,
        cpus: Option<BTreeSet<u32>>,
    ) -> Result<Recorder, Error> {
        let settings = samplings.first().map_or(Settings::default(), EventSampling::settings);
        Recorder::on_cpus(Vec::new(), samplings, cpus, settings)
    }

    fn on_cpus(
        events: Vec<SampledEvents>,
        samplings: Vec<EventSampling>,
        cpus: Option<BTreeSet<u32>>,
        settings: Settings,
    ) -> Result<Recorder, Error> {
        let cpus = RecordedCpus::new(cpus);
        let chosen = cpus.online();
        if let Some(cpu) = cpus.missing() {
            return Err(Error::new(-libc::ENODEV, format!("CPU {cpu} is not online")));
        }
        let first =
            chosen.first().ok_or_else(|| Error::new(-libc::ENODEV, "none of these CPUs is online"))?;
        if let Some(refusal) = RecordedCpus::refusal(*first, settings.kernel) {
            return Err(refusal);
        }
        let mut recorder = Recorder::empty(RecordedProcesses::OnCpus, events, samplings, settings);
        recorder.cpus = Some(cpus);
        // (processes start anywhere)
        online().into_iter().try_for_each(|cpu| recorder.sideband.watch(cpu)).map_err(refused)?;
        let hidden = processes().into_iter().filter(|pid| recorder.spaces.look_at(*pid).is_err()).count();
        chosen.into_iter().for_each(|cpu| recorder.follow_cpu(cpu));
        recorder.cpus.as_mut().expect("CPUs").hidden = hidden;
        recorder.spent_ns = own_cpu_ns(); // (all processes were looked at)
        recorder.has_samplers("there is no CPU to record")?;
        Ok(recorder)
    }

    /// Opens counters on a CPU, and a clock or what samples an event.
    fn follow_cpu(&mut self, cpu: u32) {
        let Some(cpus) = &mut self.cpus else { return };
        let (counted, Settings { kernel, callers, .. }) = (cpus.counted(cpu), self.settings);
        if self.events.is_empty() {
            match self.samplings.of_cpu(counted) {
                Ok(samplers) if samplers.is_empty() => {}
                Ok(samplers) => {
                    cpus.all.insert(cpu);
                    self.samplers.insert(cpu as i32, ThreadCounters::Events(samplers));
                }
                Err(error) => self.refuse(&error),
            }
            return;
        }
        let opened =
            of_this_cpu(&self.events, |events, kind| Sampler::open(events, kind, counted, kernel, callers));
        let opened = opened.and_then(|samplers| {
            let kind = samplers.first().map_or(0, Sampler::kind);
            let period_ns = self.clock_period();
            let clock = (kind, self.events.len(), self.cycles[kind]);
            let clock = CpuClock::open(counted, clock, period_ns, self.settings)?;
            Ok((samplers, clock))
        });
        match opened {
            Ok((samplers, clock)) => {
                if let Some(cpus) = &mut self.cpus {
                    cpus.all.insert(cpu);
                    cpus.by_timer |= clock.by_timer;
                }
                self.clocks.insert(cpu as i32, vec![clock]);
                self.samplers.insert(cpu as i32, ThreadCounters::Bursts(samplers));
                self.chances.joins(cpu as i32, now(), self.rate());
            }
            Err(error) => self.refuse(&error),
        }
    }

    /// Takes notice of CPUs that came or went. (Events of a CPU that goes do not come back with it)
    pub(super) fn look_at_cpus(&mut self) {
        let Some((before, wanted)) = self.cpus.as_mut().and_then(RecordedCpus::look) else { return };
        self.spaces.forget(now().saturating_sub(FORGET_NS));
        let everywhere: BTreeSet<u32> = online().into_iter().collect();
        let followed: BTreeSet<u32> = self.sideband.cpus().collect();
        let stays = |cpu: &u32| everywhere.contains(cpu);
        let gone: Vec<u32> =
            followed.iter().copied().filter(|cpu| !self.sideband.was_there(*cpu) || !stays(cpu)).collect();
        for cpu in &gone {
            self.attend();
            self.sideband.leave(*cpu);
            self.end_clocks(*cpu as i32);
            if let Some(counters) = self.samplers.remove(&(*cpu as i32)) {
                self.chances.leaves(*cpu as i32);
                self.close(*cpu as i32, counters);
                self.cpus.iter_mut().for_each(|cpus| cpus.has_changed(*cpu, false));
            }
        }
        for cpu in everywhere.into_iter().filter(|cpu| !followed.contains(cpu) || gone.contains(cpu)) {
            if self.sideband.watch(cpu).is_ok() && wanted.contains(&cpu) {
                self.follow_cpu(cpu);
                // (it may have come then)
                self.beginnings.unsampled(before, now());
                self.cpus.iter_mut().for_each(|cpus| cpus.has_changed(cpu, true));
            }
        }
    }
}
