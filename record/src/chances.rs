//! Which thread has a chance for a burst: threads that run are asked for bursts, threads that do not are looked at.
//!
//! A burst that was asked for while a thread slept comes when the thread runs again. Until then nothing is asked of the thread; whether the
//! burst has come a look at the ring tells, without a system call. So of 300 threads of which two run these two have the bursts. Time stays
//! true whatever threads do and how often they are asked, since at any instant it was random when they would be, as often as a burst's
//! weight says:
//! - a thread that runs has one chance in each interval, at an instant in it that is as likely as any other, and stands for the interval;
//! - the others are looked at together, at instants of a Poisson process. Between two of them as much time passes on average as from when
//!   a thread begins to run until the next: those that have run have a chance, which stands for this time, and from then on intervals.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use topdown_seam::random::Random;

/// No more bursts are asked for in a second, of all threads together.
pub(crate) const MOST_PER_SECOND: f64 = 5000.0;
/// No more threads that do not run are looked at in a second.
const MOST_LOOKS: f64 = 50_000.0;
const NS_PER_SECOND: f64 = 1e9;

/// How often there may be chances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChanceRate {
    /// Per second and thread.
    pub frequency: f64,
    /// One thread's are so many nanoseconds apart, or half of an interval.
    pub apart_ns: f64,
}

/// A burst is to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    pub tid: i32,
    /// For so many nanoseconds of the thread it stands.
    pub weight_ns: u64,
}

/// The interval of a thread in which it is now.
#[derive(Clone, Copy, Debug)]
struct ChanceInterval {
    /// The thread's chance, or (then `over`: there was none, since the thread had not run) the interval's end.
    due: u64,
    over: bool,
    start: u64,
    end: u64,
    /// The thread ran before.
    ran: bool,
}

/// All threads.
#[derive(Debug)]
pub(crate) struct Chances {
    random: Random,
    /// Those that have intervals.
    now_in: BTreeMap<i32, ChanceInterval>,
    order: BTreeSet<(u64, i32)>,
    /// How many of these ran.
    running: usize,
    /// The others, the next look at them, and how long before it another one would have been on average.
    asleep: BTreeSet<i32>,
    look: u64,
    look_interval_ns: f64,
    /// The others are looked at now, and a chance stands for so many nanoseconds.
    looked_ns: Option<u64>,
}

impl Chances {
    pub fn new(seed: u64) -> Chances {
        Chances {
            random: Random::new(seed),
            now_in: BTreeMap::new(),
            order: BTreeSet::new(),
            running: 0,
            asleep: BTreeSet::new(),
            look: u64::MAX,
            look_interval_ns: 0.0,
            looked_ns: None,
        }
    }

    /// A number from 0 to 1 (exclusive).
    pub fn random(&mut self) -> f64 {
        self.random.part()
    }

    fn set(&mut self, tid: i32, interval: ChanceInterval) {
        self.leaves(tid);
        self.running += usize::from(interval.ran);
        self.order.insert((interval.due, tid));
        self.now_in.insert(tid, interval);
    }

    /// As often in a second of its own time a thread may be sampled besides, of which no more than these run at once: so many samples are there on
    /// average when it has a chance.
    pub fn frequency_of_time(&self, rate: ChanceRate, at_once: u64, samples: f64) -> f64 {
        let at_once = at_once.min(self.running as u64).max(1);
        rate.frequency.min(samples * MOST_PER_SECOND / at_once as f64)
    }

    /// An interval of a thread begins; `last`: when the thread had its last chance.
    fn begins(&mut self, tid: i32, start: u64, rate: ChanceRate, last: Option<u64>) {
        let ran = last.is_some();
        let running = self.running.max(1) as f64;
        let frequency = if ran { rate.frequency.min(MOST_PER_SECOND / running) } else { rate.frequency };
        let length = (NS_PER_SECOND / frequency).max(1.0);
        let apart = rate.apart_ns.min(length / 2.0) as u64;
        let due = start + (length * self.random()) as u64;
        let due = due.max(last.map_or(0, |last| last + apart));
        self.set(tid, ChanceInterval { due, over: false, start, end: start + length as u64, ran });
    }

    /// A thread is there from now on, which may run.
    pub fn joins(&mut self, tid: i32, now: u64, rate: ChanceRate) {
        self.begins(tid, now, rate, None);
    }

    /// A thread is not there any more. When its next chance was to be.
    pub fn leaves(&mut self, tid: i32) -> u64 {
        if self.asleep.remove(&tid) {
            return self.look;
        }
        let Some(interval) = self.now_in.remove(&tid) else { return u64::MAX };
        self.order.remove(&(interval.due, tid));
        self.running -= usize::from(interval.ran);
        interval.due
    }

    /// When there is the next chance, or look.
    pub fn next(&self) -> u64 {
        let look = if self.asleep.is_empty() { u64::MAX } else { self.look };
        self.order.first().map_or(look, |(due, _)| look.min(*due))
    }

    /// Threads of which a burst is to be asked for now. `waits`: one that was asked for before has not come.
    pub fn take(&mut self, now: u64, rate: ChanceRate, waits: impl Fn(i32) -> bool) -> Vec<Chance> {
        let mut chances = Vec::new();
        self.looked_ns = None;
        if !self.asleep.is_empty() && self.look <= now {
            self.looked_ns = Some(self.look_interval_ns as u64 + (now - self.look));
            self.look_again(now, rate);
            chances = self.woken(now, rate, &waits);
        }
        while let Some((_, tid)) = self.order.first().copied().filter(|(due, _)| *due <= now) {
            let ChanceInterval { over, start, end, .. } = self.now_in[&tid];
            if !waits(tid) {
                // (it stands for the time by which it is late, too)
                let weight_ns = end.max(now) - start;
                chances.extend((!over).then_some(Chance { tid, weight_ns }));
                self.begins(tid, end.max(if over { 0 } else { now }), rate, Some(now));
            } else if over || end <= now {
                self.leaves(tid);
                if self.asleep.is_empty() {
                    self.look_again(now, rate);
                }
                self.asleep.insert(tid);
            } else {
                // (it may run before the interval ends, but then there was a chance in it all the same)
                self.set(tid, ChanceInterval { due: end, over: true, start, end, ran: false });
            }
        }
        chances
    }

    /// Of those that are looked at, if they are now, threads that ran: until there are none. To ask for a burst takes time, in which one that ran
    /// at first has ended, perhaps, and another one has begun.
    pub fn woken(&mut self, now: u64, rate: ChanceRate, waits: impl Fn(i32) -> bool) -> Vec<Chance> {
        let Some(weight_ns) = self.looked_ns else { return Vec::new() };
        let woken: Vec<i32> = self.asleep.iter().copied().filter(|tid| !waits(*tid)).collect();
        woken.iter().for_each(|tid| self.begins(*tid, now, rate, Some(now)));
        woken.into_iter().map(|tid| Chance { tid, weight_ns }).collect()
    }

    fn look_again(&mut self, now: u64, rate: ChanceRate) {
        let frequency = rate.frequency.min(MOST_LOOKS / self.asleep.len().max(1) as f64);
        self.look_interval_ns = NS_PER_SECOND / frequency;
        let pause = -(1.0 - self.random()).ln();
        self.look = now + (self.look_interval_ns * pause).max(1.0) as u64;
    }
}

#[cfg(test)]
mod tests;
