//! Whose a stretch of a CPU is. The CPU's counters go on when another thread runs: a stretch may have begun in another thread than the one in
//! which it ends.
//!
//! At each switch the kernel writes down which thread leaves, and what the event that nobody reloads has counted by then. A sample is of
//! a stretch that began one period before it. It is its thread's if no other one has counted anything since then. (The kernel's threads,
//! of which user mode alone is counted, and a CPU that is idle count nothing: a thread goes on behind them.)
#![forbid(unsafe_code)]

use crate::records::RawSample;
use std::collections::VecDeque;

/// Places of the counts in a sample: of the third event, which counts all, and of the fourth, which counts switches.
const ALL: usize = 2;
const SWITCHES: usize = 3;
/// A stretch is so much longer than its period, at most: its interrupt comes some cycles late. (256 cycles of 8 instructions)
const LATE: u64 = 2048;

/// Who has run on a CPU.
#[derive(Debug)]
pub(super) struct StretchOwners {
    /// What the sampling event counts in a stretch.
    period: u64,
    /// The thread that records.
    recorder: i32,
    /// Threads one after the other, and what had been counted when each left; none of them twice in a row. None: who ran is not known.
    ran: VecDeque<(u64, Option<i32>)>,
    /// What had been counted when the thread came that runs now.
    came: u64,
    /// For how long the counters had not counted, by the last record.
    uncounted: u64,
    switches: u64,
    /// What comes next is not what followed the last record.
    broken: bool,
    by_recorder: u64,
}

impl StretchOwners {
    /// On a CPU, from the time on at which its counters begin.
    pub fn new(period: u64, recorder: i32) -> StretchOwners {
        StretchOwners {
            period,
            recorder,
            ran: VecDeque::new(),
            came: 0,
            uncounted: 0,
            switches: 0,
            broken: false,
            by_recorder: 0,
        }
    }

    /// Records are missing here, or the counters have stopped.
    pub fn breaks(&mut self) {
        self.broken = true;
    }

    /// What a record says of the time since the one before; what was counted by then, and how many switches have no record.
    fn look(&mut self, record: &RawSample, is_switch: bool) -> Option<(u64, u64)> {
        let (all, switches) = (*record.counts.get(ALL)?, *record.counts.get(SWITCHES)?);
        let uncounted = record.enabled.saturating_sub(record.running);
        let others_counted = std::mem::replace(&mut self.uncounted, uncounted) != uncounted;
        let before = std::mem::replace(&mut self.switches, switches) + u64::from(is_switch);
        let missing = switches.saturating_sub(before);
        if std::mem::take(&mut self.broken) || others_counted || missing > 0 {
            self.ran.clear();
            self.ran.push_back((all, None));
            self.came = all;
        }
        Some((all, missing))
    }

    /// A thread leaves. How many switches before this one have no record.
    pub fn switched(&mut self, record: &RawSample) -> u64 {
        let Some((all, missing)) = self.look(record, true) else { return 0 };
        let counted = all.saturating_sub(std::mem::replace(&mut self.came, all));
        if counted == 0 {
            return missing;
        }
        if record.tid == self.recorder {
            self.by_recorder += counted;
        }
        // (0 and less are threads of other namespaces, and such as have ended: more than one)
        let thread = Some(record.tid).filter(|tid| *tid > 0);
        match self.ran.back_mut() {
            Some((left, last)) if thread.is_some() && *last == thread => *left = all,
            _ => self.ran.push_back((all, thread)),
        }
        self.forget(all);
        missing
    }

    /// Whether the stretch that ends in this sample is its thread's alone, and how many switches before it have no record.
    pub fn owns(&mut self, sample: &RawSample) -> (bool, u64) {
        let Some((all, missing)) = self.look(sample, false) else { return (false, 0) };
        self.forget(all);
        (self.ran.iter().all(|(_, thread)| *thread == Some(sample.tid)), missing)
    }

    /// Nothing that ends now began before.
    fn forget(&mut self, all: u64) {
        let began = all.saturating_sub(self.period + LATE.min(self.period / 2));
        while self.ran.front().is_some_and(|(left, _)| *left <= began) {
            self.ran.pop_front();
        }
    }

    /// What the recorder itself has counted up to its last switch.
    pub fn by_recorder(&self) -> u64 {
        self.by_recorder
    }

    /// What has been counted since the last switch, of so much in all.
    pub fn since_the_last(&self, all: u64) -> u64 {
        all.saturating_sub(self.came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 10_000;
    const RECORDER: i32 = 9;

    fn record(tid: i32, all: u64, switches: u64) -> RawSample {
        // (what reloaded events have counted is garbage)
        RawSample { tid, counts: vec![1 << 48, 0, all, switches], ..RawSample::default() }
    }

    /// Records as they come: a thread leaves ('-'), or has a sample ('s').
    fn owned(records: &[(char, i32, u64)]) -> Vec<bool> {
        let mut owners = StretchOwners::new(PERIOD, RECORDER);
        let (mut switches, mut owned) = (0, Vec::new());
        for (what, tid, all) in records {
            switches += u64::from(*what == '-');
            let record = record(*tid, *all, switches);
            match what {
                '-' => assert_eq!(owners.switched(&record), 0),
                _ => owned.push(owners.owns(&record).0),
            }
        }
        owned
    }

    #[test]
    fn a_stretch_is_of_the_thread_that_alone_has_counted_in_it() {
        assert_eq!(owned(&[('s', 1, 10_000), ('s', 1, 20_000)]), [true, true]);
        // began in 1, ended in 2; then 2 alone
        assert_eq!(owned(&[('-', 1, 15_000), ('s', 2, 20_000), ('s', 2, 30_000)]), [false, true]);
        // no sample for long, then a stretch behind the switch, also where samples before it were another's
        assert_eq!(owned(&[('s', 1, 10_000), ('-', 1, 75_000), ('s', 2, 90_000)]), [true, true]);
        // 1 comes back, and 2 was there in between, however short
        assert_eq!(owned(&[('-', 1, 15_000), ('-', 2, 15_001), ('s', 1, 20_000)]), [false]);
        // 1 comes back, and others have counted nothing: the CPU was idle, or the kernel's own threads ran
        let kernels = [('-', 1, 15_000), ('-', 0, 15_000), ('-', 7, 15_000), ('s', 1, 20_000)];
        assert_eq!(owned(&kernels), [true]);
        // the interrupt comes late: the stretch began a little before the switch
        assert_eq!(owned(&[('-', 1, 50_000), ('s', 2, 60_001), ('s', 2, 70_001)]), [false, true]);
    }

    #[test]
    fn threads_without_numbers_are_many() {
        // (of other namespaces, or ended)
        assert_eq!(owned(&[('-', 0, 15_000), ('s', 0, 20_000), ('s', 0, 40_000)]), [false, true]);
        assert_eq!(owned(&[('-', -1, 15_000), ('s', -1, 20_000)]), [false]);
    }

    #[test]
    fn nothing_is_known_of_what_is_missing() {
        let mut owners = StretchOwners::new(PERIOD, RECORDER);
        assert_eq!(owners.owns(&record(1, 10_000, 0)), (true, 0));
        owners.breaks();
        assert_eq!(owners.owns(&record(1, 20_000, 0)), (false, 0));
        assert_eq!(owners.owns(&record(1, 33_000, 0)), (true, 0));
        // two switches found no room
        assert_eq!(owners.owns(&record(1, 43_000, 2)), (false, 2));
        assert_eq!(owners.switched(&record(1, 60_000, 4)), 1);
        assert_eq!(owners.owns(&record(1, 61_000, 4)), (false, 0));
        assert_eq!(owners.owns(&record(1, 73_000, 4)), (true, 0));
        // others had the counters in between, in which nothing was counted
        let parted = RawSample { enabled: 100, running: 90, ..record(1, 83_000, 4) };
        assert_eq!(owners.owns(&parted), (false, 0));
        let next = RawSample { enabled: 200, running: 190, ..record(1, 96_000, 4) };
        assert_eq!(owners.owns(&next), (true, 0));
        // a sample without the counts
        assert_eq!(owners.owns(&RawSample::default()), (false, 0));
    }

    #[test]
    fn what_the_recorder_counts_is_known() {
        let mut owners = StretchOwners::new(PERIOD, RECORDER);
        for (switches, (tid, all)) in (1..).zip([(1, 100), (RECORDER, 130), (1, 500), (RECORDER, 501)]) {
            owners.switched(&record(tid, all, switches));
        }
        assert_eq!((owners.by_recorder(), owners.since_the_last(510)), (31, 9));
    }
}
