//! What came of a recording: one, or one for each event that was sampled.
#![forbid(unsafe_code)]

use super::Recorder;
use crate::budget::Pace;
use crate::cpus::RecordedCpus;
use crate::event_sampling::{EventSampling, Tally};
use crate::file_proof::boot_id;
use crate::journal::Journal;
use crate::recording::{Burst, Recording, Totals};
use crate::whom::smt_is_on;
use std::sync::Arc;
use std::time::Duration;

impl Recorder {
    pub(super) fn totals(&self, elapsed: Duration) -> Totals {
        let pace = match self.events[..] {
            [] => Pace::NONE,
            _ => self.budget.pace(),
        };
        Totals {
            elapsed,
            threads: self.cpus.as_ref().map_or(self.threads, |cpus| cpus.threads.len()),
            refused: (
                self.refused.0,
                self.refused.1.as_ref().map_or_else(String::new, |why| why.to_string()),
            ),
            unseen: self.beginnings.unseen(),
            unclocked: self.unclocked,
            by_timer: self.by_timer,
            left_running: self.left_running,
            unnamed: self.unnamed.clone(),
            boot: boot_id().into(),
            lost: self.fate.lost,
            throttled: self.fate.throttled,
            parted: self.parted,
            impossible: self.impossible,
            pace,
            cpus: self.cpus.as_ref().map(RecordedCpus::totals),
        }
    }

    /// What was recorded in so much time, and the file in which it was kept.
    #[must_use]
    pub fn finish(self, elapsed: Duration) -> (Recording, Option<Journal>) {
        let (mut each, journal) = self.finished(elapsed);
        (each.swap_remove(0), journal)
    }

    /// What was recorded in so much time of each event that is sampled.
    #[must_use]
    pub fn finish_each(self, elapsed: Duration) -> Vec<Recording> {
        self.finished(elapsed).0
    }

    /// One recording, or one for each event.
    fn finished(mut self, elapsed: Duration) -> (Vec<Recording>, Option<Journal>) {
        self.attend();
        self.end_all_clocks();
        let samples = std::mem::take(&mut self.unplaced);
        self.keep_samples(samples);
        std::mem::take(&mut self.samplers).into_iter().for_each(|(of, counters)| self.close(of, counters));
        let (made, refused) = self.spaces.made();
        let missing = |why| format!("Names of code that a JIT compiler made are missing: {why}.");
        self.unnamed = refused.into_iter().map(missing).collect();
        if self.events.iter().any(|events| events.silent.is_some()) && smt_is_on() {
            self.unnamed.push(
                "SMT was switched on meanwhile: what another thread of a core took then is in backend bound."
                    .into(),
            );
        }
        if let Some(journal) = &mut self.journal {
            journal.write_made(&self.spaces.modules, &made);
        }
        self.write_down(true);
        let bursts = std::mem::take(&mut self.bursts);
        let common = Recording {
            totals: self.totals(elapsed),
            events: self.events,
            settings: self.settings,
            bursts: Vec::new(),
            stacks: self.stacks.all,
            modules: self.spaces.modules,
            files: Arc::new(self.spaces.open),
            made: Arc::new(made),
            sampling: None,
            simulated: None,
        };
        if self.samplings.is_empty() {
            return (vec![Recording { bursts, ..common }], self.journal);
        }
        let of_event = |(sampling, tally, bursts): (EventSampling, Tally, Vec<Burst>)| {
            let mut one = Recording { bursts, ..common.clone() };
            one.totals.lost += tally.lost;
            one.totals.throttled += tally.throttled;
            one.sampling = Some((sampling, tally));
            one
        };
        (self.samplings.apart(&bursts).into_iter().map(of_event).collect(), self.journal)
    }
}
