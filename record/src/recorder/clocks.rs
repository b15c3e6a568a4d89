//! Clocks that tell the time, of threads or of CPUs. Where a thread has none the first samples of bursts do.
#![forbid(unsafe_code)]

use super::{Recorder, has_ended};
use crate::budget::{Limit, Pace};
use crate::chances::ChanceRate;
use crate::cpu_clock::{ClockSample, ClockTime, CpuClock};
use crate::recording::Burst;
use crate::sampler::{SampledTarget, Sampler};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

const NS: f64 = 1e9;
/// A ring of a thread has room for more, if stacks are no deeper than 100.
const SAMPLES_A_CHANCE: f64 = 8.0;

impl Recorder {
    /// Nanoseconds until the next sample, at random: no program keeps pace with it.
    pub(super) fn clock_period(&mut self) -> f64 {
        let Pace { asked, frequency, limit, .. } = self.budget.pace();
        let frequency = match self.cpus {
            // (what a burst takes, a sample of the clock does not)
            Some(_) if limit != Limit::Kernel => f64::from(asked),
            Some(_) => frequency,
            // (the ring is looked at when the thread has a chance)
            None => {
                self.chances.frequency_of_time(self.budget.rate(), self.beginnings.cpus(), SAMPLES_A_CHANCE)
            }
        };
        // (a clock that takes turns with the group counts half of the time)
        let frequency = if self.in_turns { 2.0 * frequency } else { frequency };
        (0.5 + self.chances.random()) * NS / frequency.max(1.0)
    }

    /// How often there are chances: where each second one is a clock's turn, bursts are as often as elsewhere.
    pub(super) fn rate(&self) -> ChanceRate {
        let rate = self.budget.rate();
        let frequency = if self.in_turns { 2.0 * rate.frequency } else { rate.frequency };
        ChanceRate { frequency, ..rate }
    }

    /// Whether a chance is the turn of a clock, which takes turns with the group: no burst is asked for.
    pub(super) fn goes_to_clock(&mut self, of: i32, samplers: &mut [Sampler]) -> bool {
        if !self.in_turns || !self.is_clocked(of) {
            return false;
        }
        samplers.iter_mut().for_each(|sampler| self.end(sampler));
        let clocks = self.clocks.get_mut(&of).into_iter().flatten();
        clocks.map(CpuClock::changes_turn).filter(|is_clocks| *is_clocks).count() > 0
    }

    /// Opens clocks on a thread, one for each kind of core. A timer tells no kinds.
    pub(super) fn clock_thread(&mut self, tid: i32, counted: SampledTarget) {
        let period_ns = self.clock_period();
        let (kinds, settings) = (self.events.len(), self.settings);
        let by = self.cycles.iter().enumerate();
        let clock = |(kind, by): (usize, &Option<_>)| {
            CpuClock::open(counted, (kind, kinds, *by), period_ns, settings)
        };
        let clocks: io::Result<Vec<CpuClock>> = by.map(clock).collect();
        match clocks.map(|clocks| (clocks.iter().any(|clock| clock.by_timer), clocks)) {
            Ok((by_timer, clocks)) if !by_timer || clocks.len() == 1 => {
                self.by_timer += usize::from(by_timer);
                self.clocks.insert(tid, clocks);
            }
            Err(error) if has_ended(&error) => {}
            _ => self.unclocked += 1,
        }
    }

    /// Closes the clocks of a thread, whose time bursts tell from now on; whether there was one.
    pub(super) fn give_up_a_clock(&mut self) -> bool {
        let last = self.clocks.keys().next_back().copied();
        last.into_iter().for_each(|tid| {
            self.end_clocks(tid);
            self.unclocked += 1;
        });
        last.is_some()
    }

    /// Whether a clock tells the time of a thread or CPU.
    pub(super) fn is_clocked(&self, of: i32) -> bool {
        self.clocks.contains_key(&of)
    }

    /// At a chance of a thread or CPU, keeps what its clocks have seen.
    pub(super) fn tell_time_at_chance(&mut self, of: i32) {
        if !self.is_clocked(of) {
            return;
        }
        self.tell_time(of);
        let period_ns = self.clock_period();
        self.clocks.get_mut(&of).into_iter().flatten().for_each(|clock| clock.draw_period(period_ns));
    }

    /// Keeps what a clock has seen on a kind of core.
    fn keep_time(&mut self, kind: usize, seen: ClockTime) {
        self.fate.lost += seen.lost;
        self.fate.throttled += seen.throttled;
        self.beginnings.untold(seen.untold_ns);
        for ClockSample { ran, weight_ns } in seen.samples {
            if let Some(cpus) = &mut self.cpus {
                if ran.tid == cpus.recorder {
                    continue;
                }
                cpus.threads.insert(ran.tid);
            }
            let (thread, at, stacks) = (ran.tid, ran.time, vec![self.stack(&ran)]);
            self.bursts.push(Burst { kind, thread, at, weight_ns, stacks, ..Burst::default() });
        }
    }

    /// Keeps what the clocks of a thread or CPU have seen.
    fn tell_time(&mut self, of: i32) {
        let Some(mut clocks) = self.clocks.remove(&of) else { return };
        clocks.iter_mut().for_each(|clock| self.keep_time(clock.kind, clock.drain()));
        self.clocks.insert(of, clocks);
    }

    /// The last that they have seen.
    pub(super) fn end_clocks(&mut self, of: i32) {
        for clock in self.clocks.remove(&of).into_iter().flatten() {
            self.keep_time(clock.kind, clock.end());
        }
    }

    /// What all clocks have seen.
    pub(super) fn tell_all_time(&mut self) {
        let all: Vec<i32> = self.clocks.keys().copied().collect();
        all.into_iter().for_each(|of| self.tell_time(of));
    }

    /// The last that all have seen.
    pub(super) fn end_all_clocks(&mut self) {
        let all: Vec<i32> = self.clocks.keys().copied().collect();
        all.into_iter().for_each(|of| self.end_clocks(of));
    }

    /// Can be read when a clock of a CPU has seen much. (Clocks of threads are looked at when the thread has a chance)
    pub(super) fn clock_descriptors(&self) -> Vec<RawFd> {
        let of_cpus = self.clocks.values().filter(|_| self.cpus.is_some());
        of_cpus.flatten().map(AsRawFd::as_raw_fd).collect()
    }
}
