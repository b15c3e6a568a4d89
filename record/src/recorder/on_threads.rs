//! Threads, and those that they start.
#![forbid(unsafe_code)]

use super::{Recorder, ThreadCounters, has_ended, sideband_refusal};
use crate::event::{now, own_tid};
use crate::event_sampling::{EventSampling, EventSamplings};
use crate::sampler::{SampledTarget, Sampler};
use crate::settings::Settings;
use crate::unseen::Beginnings;
use crate::whom::{RecordedProcesses, online, threads_of};
use std::collections::BTreeSet;
use std::io;
use topdown::{Error, SampledEvents};

/// Threads are listed so often, until no new one is there: one may start others before its own events are open.
const LISTINGS: usize = 4;
/// Why there is nothing to record, where nothing was refused.
const NOBODY_LEFT: &str =
    "no thread is left to record, by /proc: the process has ended (a zombie was not waited for)";

/// What mmap says where no more memory may be locked, and perf_event_open where a container forbids it.
fn has_no_room<T>(opened: &io::Result<T>) -> bool {
    matches!(opened, Err(error) if error.raw_os_error() == Some(libc::EPERM))
}

impl Recorder {
    /// On processes with their threads, and on whatever those start. `there`: they run already, and what they have mapped is to be
    /// looked up; else they are about to execute a program.
    ///
    /// # Errors
    /// The kernel's, and what was refused.
    pub fn new(
        events: Vec<SampledEvents>,
        pids: &[i32],
        there: bool,
        settings: Settings,
    ) -> Result<Recorder, Error> {
        Recorder::open(RecordedProcesses::AllStarted, events, Vec::new(), pids, there, settings)
    }

    /// The same, of samples of events; if there are none they are followed alone, until [`Recorder::sample`] names some.
    ///
    /// # Errors
    /// The kernel's, and what was refused.
    pub fn of_events(samplings: Vec<EventSampling>, pids: &[i32], there: bool) -> Result<Recorder, Error> {
        let whom = RecordedProcesses::AllStarted;
        let settings = samplings.first().map_or(Settings::default(), EventSampling::settings);
        Recorder::open(whom, Vec::new(), samplings, pids, there, settings)
    }

    /// Samples these events from now on, on the threads that were followed, and on what they start.
    ///
    /// # Errors
    /// The kernel's, and what was refused: no thread is sampled.
    pub fn sample(&mut self, samplings: Vec<EventSampling>) -> Result<(), Error> {
        self.attend();
        self.samplings = EventSamplings::of(samplings);
        // (what was missed before is not of these)
        (self.threads, self.refused, self.beginnings) = (0, (0, None), Beginnings::new(online().len()));
        for (tid, counters) in std::mem::take(&mut self.samplers) {
            if let ThreadCounters::None { pid } = counters {
                self.follow(pid, tid, None);
            }
        }
        self.has_samplers(NOBODY_LEFT)
    }

    /// On all threads of this process but the one that calls, which records.
    ///
    /// # Errors
    /// The kernel's, and what was refused.
    pub fn of_this_process(events: Vec<SampledEvents>, settings: Settings) -> Result<Recorder, Error> {
        let pid = std::process::id() as i32;
        Recorder::open(
            RecordedProcesses::Only { pid, but: own_tid() },
            events,
            Vec::new(),
            &[pid],
            true,
            settings,
        )
    }

    fn open(
        whom: RecordedProcesses,
        events: Vec<SampledEvents>,
        samplings: Vec<EventSampling>,
        pids: &[i32],
        there: bool,
        settings: Settings,
    ) -> Result<Recorder, Error> {
        let mut recorder = Recorder::empty(whom, events, samplings, settings);
        let mut all = BTreeSet::new();
        for _ in 0..LISTINGS {
            let listed = pids.iter().flat_map(|pid| threads_of(*pid).into_iter().map(|tid| (*pid, tid)));
            let new: Vec<(i32, i32)> =
                listed.filter(|(_, tid)| !whom.leaves_out(*tid)).filter(|one| all.insert(*one)).collect();
            let tids: Vec<i32> = new.iter().map(|(_, tid)| *tid).collect();
            recorder.sideband.follow(&tids).map_err(sideband_refusal)?;
            if new.is_empty() {
                break;
            }
        }
        if there {
            // (what may not be seen has no names)
            pids.iter().for_each(|pid| _ = recorder.spaces.look_at(*pid));
        }
        for (pid, tid) in all {
            recorder.follow(pid, tid, None);
        }
        recorder.has_samplers(NOBODY_LEFT)?;
        Ok(recorder)
    }

    /// Counters on a thread.
    fn counters(&self, pid: i32, tid: i32) -> io::Result<ThreadCounters> {
        if self.events.is_empty() && self.samplings.is_empty() {
            return Ok(ThreadCounters::None { pid });
        }
        if self.events.is_empty() {
            return self.samplings.of_thread(pid, tid).map(ThreadCounters::Events);
        }
        let Settings { kernel, callers, .. } = self.settings;
        let opened = self.events.iter().enumerate().map(|(kind, events)| {
            Sampler::open(events, kind, SampledTarget::Thread { pid, tid }, kernel, callers)
        });
        opened.collect::<io::Result<_>>().map(ThreadCounters::Bursts)
    }

    /// Opens counters on a thread, which began then if that was told.
    pub(super) fn follow(&mut self, pid: i32, tid: i32, began: Option<u64>) {
        if self.samplers.contains_key(&tid) {
            return;
        }
        self.threads += 1;
        let mut opened = self.counters(pid, tid);
        // (no more memory may be locked: how slots divide comes first)
        while has_no_room(&opened) && self.give_up_a_clock() {
            opened = self.counters(pid, tid);
        }
        match opened {
            Ok(counters) => {
                self.samplers.insert(tid, counters);
                if !self.events.is_empty() {
                    self.clock_thread(tid, SampledTarget::Thread { pid, tid });
                }
                self.chances.joins(tid, now(), self.rate());
                began.into_iter().for_each(|began| self.beginnings.opened(began, now()));
            }
            Err(error) if has_ended(&error) => {
                began.into_iter().for_each(|began| self.beginnings.missed(tid, began));
            }
            Err(error) => self.refuse(&error),
        }
    }
}
