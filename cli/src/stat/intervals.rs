//! Readings at intervals, for the timeline of a report: their number stays small, however long the program runs.
#![forbid(unsafe_code)]

use super::counted::CountedGroups;
use super::group::GroupCount;
use super::group::{GroupTarget, Reading, StatGroup};
use super::rotation::SHORTEST_INTERVAL;
use super::rows_per::name_of;
use super::whole::count_of;
use crate::sys;
use std::time::{Duration, Instant};
use topdown_report::timeline::{Series, SeriesSubject, Timeline, TimelineInterval};

/// The first interval, of few groups.
pub const SHORTEST: Duration = Duration::from_millis(10);
/// No more intervals are kept: as many as a chart has pixels.
const MOST: usize = 1000;
/// No more readings of single groups are kept, which bounds the memory for hundreds of CPUs (some 0.5 kB each).
const MOST_READINGS: usize = 64_000;
/// Series of single threads or CPUs, the largest if there are more.
const MOST_SERIES: usize = 32;
/// Of the time of this thread no more than one part in so many goes into readings.
const PAUSE: u32 = 10;

/// What all groups showed at one time.
struct ReadingsMark {
    at: Duration,
    readings: Vec<Reading>,
    /// `Groups::enabled_ns`.
    enabled_ns: Option<u64>,
    /// `Groups::room_ns`.
    room_ns: u64,
}

/// Keeps readings, and leaves out every second one whenever there are too many: the bound of an interval is that of the two readings
/// at its ends, however many there were in between.
pub struct IntervalRecorder {
    /// The clock CLOCK_BOOTTIME at the start.
    boottime_ns: u64,
    interval: Duration,
    due: Duration,
    most: usize,
    marks: Vec<ReadingsMark>,
    /// What the groups are of, while it is there.
    names: Vec<String>,
}

impl IntervalRecorder {
    /// From what was counted last of these groups, `interval` apart at first; None: as short as they can be read.
    pub fn new(groups: &CountedGroups, interval: Option<Duration>) -> IntervalRecorder {
        let many = groups.all.len().div_ceil(4).max(1) as u32;
        let interval = interval.unwrap_or(SHORTEST * many);
        let interval = interval.max(groups.rotation().map_or(Duration::ZERO, |_| SHORTEST_INTERVAL));
        IntervalRecorder {
            boottime_ns: sys::boottime_ns(),
            interval,
            due: interval,
            most: (MOST_READINGS / groups.all.len().max(1)).clamp(16, MOST),
            marks: vec![ReadingsMark {
                at: Duration::ZERO,
                readings: groups.last(),
                enabled_ns: groups.enabled_ns(),
                room_ns: groups.room_ns(),
            }],
            names: groups.all.iter().map(name).collect(),
        }
    }

    /// How often `tick` is to be called.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Takes a reading, if it is time; what cannot be read is in the next interval.
    pub fn tick(&mut self, groups: &mut CountedGroups, at: Duration, at_work: bool) {
        if at < self.due {
            return;
        }
        let began = Instant::now();
        // (`peek` shows what it reads first, and takes a while longer)
        let (enabled_ns, room_ns) = (groups.enabled_ns(), groups.room_ns());
        if let Ok(readings) = groups.peek(at_work) {
            self.marks.push(ReadingsMark { at, readings, enabled_ns, room_ns });
        }
        if self.marks.len() > self.most {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.interval *= 2;
        }
        // (a tick may come a little early after one that was late)
        self.due = at + (self.interval / 2).max(PAUSE * began.elapsed());
    }

    /// The timeline up to the groups' last count, at this time.
    pub fn end(mut self, groups: &CountedGroups, at: Duration) -> Timeline {
        self.marks.retain(|mark| mark.at < at || mark.at.is_zero());
        let (enabled_ns, room_ns) = (groups.enabled_ns(), groups.room_ns());
        self.marks.push(ReadingsMark { at, readings: groups.last(), enabled_ns, room_ns });
        let all = |_: &StatGroup| true;
        let mut series = vec![Series { of: SeriesSubject::Whole, intervals: self.intervals(groups, &all) }];
        let parts = parts(groups);
        if parts.len() > 1 {
            let mut parts: Vec<Series> = parts.iter().map(|part| self.part(groups, part)).collect();
            parts.sort_by_key(|part| std::cmp::Reverse(part.slots()));
            parts.truncate(MOST_SERIES);
            series.extend(parts);
        }
        Timeline { boottime_ns: self.boottime_ns, series }
    }

    /// The series of a thread or a CPU.
    fn part(&self, groups: &CountedGroups, part: &GroupTarget) -> Series {
        let of = series_of(groups, part, &self.names);
        Series { of, intervals: self.intervals(groups, &|group| group.of == *part) }
    }

    /// The intervals of those of the groups that are chosen.
    fn intervals(
        &self,
        groups: &CountedGroups,
        chosen: &dyn Fn(&StatGroup) -> bool,
    ) -> Vec<TimelineInterval> {
        let of_pair = |pair: &[ReadingsMark]| {
            let [from, to] = pair else { return None };
            let counted = groups.between(&from.readings, &to.readings).filter(|one| chosen(one.group));
            let enabled_ns = to.enabled_ns.zip(from.enabled_ns).map(|(to, from)| to.saturating_sub(from));
            let room_ns = to.room_ns - from.room_ns;
            interval(&counted.collect::<Vec<_>>(), enabled_ns, room_ns, (from.at, to.at))
        };
        self.marks.windows(2).filter_map(of_pair).collect()
    }
}

/// The interval in which this was counted. `enabled_ns`, `room_ns`: those of `Groups`, of the interval.
pub fn interval(
    counted: &[GroupCount],
    enabled_ns: Option<u64>,
    room_ns: u64,
    (begin, end): (Duration, Duration),
) -> Option<TimelineInterval> {
    let of_cpus = counted.iter().any(|one| matches!(one.group.of, GroupTarget::Cpu(_)));
    let mut count = count_of(counted, of_cpus, enabled_ns, &[]).ok()?;
    count.run.lost_ns = room_ns.saturating_sub(count.run.cpu_ns);
    TimelineInterval::new(begin.as_nanos() as u64, end.as_nanos() as u64, &count)
}

/// The threads or CPUs that groups are of, each once.
pub fn parts(groups: &CountedGroups) -> Vec<&GroupTarget> {
    let mut parts: Vec<&GroupTarget> = Vec::new();
    for group in groups
        .all
        .iter()
        .filter(|group| !matches!(group.of, GroupTarget::Command | GroupTarget::CommandOn(_)))
    {
        if !parts.contains(&&group.of) {
            parts.push(&group.of);
        }
    }
    parts
}

/// What a series of a part is of, with the name that its group had at first.
pub fn series_of(groups: &CountedGroups, part: &GroupTarget, names: &[String]) -> SeriesSubject {
    let place = groups.all.iter().position(|group| group.of == *part).unwrap_or_default();
    let named = || names.get(place).cloned().unwrap_or_else(|| name(&groups.all[place]));
    match part {
        GroupTarget::Command | GroupTarget::CommandOn(_) => SeriesSubject::Whole,
        GroupTarget::Thread(tid) => SeriesSubject::Thread { tid: *tid, name: named() },
        GroupTarget::Cpu(cpu) => SeriesSubject::Cpu { cpu: *cpu },
    }
}

/// What a group is of, while it is there.
pub fn name(group: &StatGroup) -> String {
    match group.of {
        GroupTarget::Thread(id) => name_of(id),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_long_it_takes_there_are_few_intervals_of_one_length() {
        let mut groups = CountedGroups::default();
        let mut recorder = IntervalRecorder::new(&groups, None);
        let mut at = Duration::ZERO;
        for _ in 0..20_000 {
            at += recorder.interval();
            recorder.due = at; // however long this machine takes for a reading
            recorder.tick(&mut groups, at, true);
            assert!(recorder.marks.len() <= MOST, "{}", recorder.marks.len());
        }
        assert!(recorder.marks.len() >= MOST / 2, "{}", recorder.marks.len());
        let lengths = recorder.marks.windows(2).map(|pair| pair[1].at - pair[0].at);
        let lengths: Vec<Duration> = lengths.collect();
        let (shortest, longest) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        assert_eq!((*shortest, *longest), (recorder.interval(), recorder.interval()));
        assert!(recorder.interval() > 30 * SHORTEST);
        let timeline = recorder.end(&groups, at + Duration::from_millis(1));
        let whole = &timeline.series[0].intervals;
        assert_eq!((whole[0].begin_ns, timeline.series.len()), (0, 1));
        assert!(whole.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns));
    }
}
