//! Clocks that tell the time: of CPUs, and of threads where the kernel is sampled, too. Elsewhere the first samples of bursts do.
#![forbid(unsafe_code)]

use super::Recorder;
use crate::budget::{Limit, Pace};
use crate::cpu_clock::{ClockSample, CpuClock};
use crate::proof::Calls;
use crate::recording::Burst;
use crate::sampler::Counted;
use std::os::fd::{AsRawFd, RawFd};

const NS: f64 = 1e9;

impl Recorder {
    /// Nanoseconds until the next sample, at random: no program keeps pace with it.
    pub(super) fn clock_period(&mut self) -> f64 {
        // (what a burst takes, a sample of the clock does not)
        let Pace { asked, frequency, limit, .. } = self.budget.pace();
        let frequency = if limit == Limit::Kernel { frequency } else { f64::from(asked) };
        (0.5 + self.turns.random()) * NS / frequency.max(1.0)
    }

    /// Opens clocks on a thread, one for each kind of core. A timer tells no kinds.
    pub(super) fn clock_thread(&mut self, tid: i32, counted: Counted) {
        if !self.settings.kernel {
            return;
        }
        let period_ns = self.clock_period();
        let clock = |of: (usize, _)| CpuClock::open(counted, of, period_ns, self.settings);
        let clocks: Option<Vec<CpuClock>> = self.events.iter().enumerate().map(|of| clock(of).ok()).collect();
        match clocks.map(|clocks| (clocks.iter().any(|clock| clock.by_timer), clocks)) {
            Some((by_timer, clocks)) if !by_timer || clocks.len() == 1 => {
                self.by_timer += usize::from(by_timer);
                self.clocks.insert(tid, clocks);
            }
            _ => self.unclocked += 1,
        }
    }

    /// Whether a clock tells the time of a thread or CPU.
    pub(super) fn is_clocked(&self, of: i32) -> bool {
        self.clocks.contains_key(&of)
    }

    /// A turn of a thread or CPU that has clocks.
    pub(super) fn turn_clocks(&mut self, of: i32) {
        if !self.is_clocked(of) {
            return;
        }
        let period_ns = self.clock_period();
        self.clocks.get_mut(&of).into_iter().flatten().for_each(|clock| clock.turn(period_ns));
        self.tell_time(of);
    }

    /// Keeps what the clocks of a thread or CPU have seen.
    fn tell_time(&mut self, of: i32) {
        let Some(mut clocks) = self.clocks.remove(&of) else { return };
        for clock in &mut clocks {
            let (samples, lost) = clock.drain();
            self.fate.lost += lost;
            for ClockSample { ran, weight_ns } in samples {
                if let Some(cpus) = &mut self.cpus {
                    if ran.tid == cpus.recorder {
                        continue;
                    }
                    cpus.threads.insert(ran.tid);
                }
                let (kind, stacks) = (clock.kind, vec![self.stack(&ran)]);
                let (windows, calls) = (Vec::new(), Calls::default());
                self.bursts.push(Burst { kind, long: false, weight_ns, stacks, windows, calls });
            }
        }
        self.clocks.insert(of, clocks);
    }

    /// The last that they have seen.
    pub(super) fn end_clocks(&mut self, of: i32) {
        self.tell_time(of);
        self.clocks.remove(&of);
    }

    /// What all clocks have seen.
    pub(super) fn tell_all_time(&mut self) {
        let all: Vec<i32> = self.clocks.keys().copied().collect();
        all.into_iter().for_each(|of| self.tell_time(of));
    }

    /// Can be read when a clock of a CPU has seen much. (Of threads they are looked at when it is their turn)
    pub(super) fn clock_descriptors(&self) -> Vec<RawFd> {
        let of_cpus = self.clocks.values().filter(|_| self.cpus.is_some());
        of_cpus.flatten().map(AsRawFd::as_raw_fd).collect()
    }
}
