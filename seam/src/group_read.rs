//! What read(2) of an event says: its words, as `read_format` asks for them.
#![forbid(unsafe_code)]

use super::page::Times;
use perf_event_open_sys::bindings::{
    PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_LOST, PERF_FORMAT_TOTAL_TIME_ENABLED,
    PERF_FORMAT_TOTAL_TIME_RUNNING,
};

/// A `read_format` of an event alone with its times: value, enabled, running.
pub const TIMES: u64 = (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING) as u64;
/// The same of its whole group: number of events, enabled, running, values with the leader's first.
pub const GROUP: u64 = TIMES | PERF_FORMAT_GROUP as u64;
/// Words of a group's reading before its values.
pub const GROUP_HEAD: usize = 3;

/// Value and times of an event that was opened with [`TIMES`]; None: the words are not its.
pub fn alone(words: &[u64]) -> Option<(u64, Times)> {
    let &[value, enabled, running] = words else { return None };
    Some((value, Times { enabled, running }))
}

/// Times and values of a group of so many events that was opened with [`GROUP`]; None: the words are not its, as of one that
/// the kernel has given up.
pub fn group(words: &[u64], events: usize) -> Option<(Times, &[u64])> {
    let &[said, enabled, running, ref values @ ..] = words else { return None };
    (said == events as u64 && values.len() == events).then_some((Times { enabled, running }, values))
}

/// Where an event is in what read(2) says, with any `read_format`. Zeros are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadLayout {
    /// As the event was opened.
    pub read_format: u64,
    /// The event's number, with PERF_FORMAT_ID.
    pub id: u64,
    /// Without: how many events were in the group before it.
    pub position: usize,
}

impl ReadLayout {
    /// Whether read(2) says what the whole group counted.
    #[inline]
    pub fn is_group(self) -> bool {
        self.has(PERF_FORMAT_GROUP) != 0
    }

    #[inline]
    fn has(self, flag: u32) -> usize {
        usize::from(self.read_format & u64::from(flag) != 0)
    }

    /// The event's total among the words of a read(2).
    #[inline]
    pub fn total(self, words: &[u64]) -> Option<u64> {
        if !self.is_group() {
            return words.first().copied();
        }
        let times = self.has(PERF_FORMAT_TOTAL_TIME_ENABLED) + self.has(PERF_FORMAT_TOTAL_TIME_RUNNING);
        let ids = self.has(PERF_FORMAT_ID);
        let mut members = words.get(1 + times..)?.chunks_exact(1 + ids + self.has(PERF_FORMAT_LOST));
        let member = if ids != 0 {
            members.find(|member| member[1] == self.id)
        } else {
            // whose leader was closed is in a group of its own
            members.nth(self.position.min((words[0] as usize).checked_sub(1)?))
        };
        member.map(|member| member[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_whole_or_not_at_all() {
        let times = Times { enabled: 7, running: 6 };
        assert_eq!(group(&[2, 7, 6, 30, 40], 2), Some((times, &[30, 40][..])));
        for (words, events) in [
            (&[2, 7, 6, 30, 40][..], 3),
            (&[3, 7, 6, 30, 40], 2),
            (&[2, 7, 6, 30], 2),
            (&[0, 7, 6], 1),
            (&[2, 7], 0),
        ] {
            assert_eq!(group(words, events), None, "{words:?}");
        }
        assert_eq!(alone(&[30, 7, 6]), Some((30, times)));
        assert_eq!(alone(&[30, 7]), None);
        assert_eq!(alone(&[]), None);
    }

    #[test]
    fn this_event_is_found_in_what_read_says() {
        let format = |read_format, position| ReadLayout { read_format, id: 77, position };
        let (group, id, lost) = (PERF_FORMAT_GROUP as u64, PERF_FORMAT_ID as u64, PERF_FORMAT_LOST as u64);
        let times = (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING) as u64;
        assert_eq!(format(0, 0).total(&[5]), Some(5));
        assert_eq!(format(times | id, 9).total(&[5, 1, 2, 77]), Some(5));
        assert_eq!(format(group, 1).total(&[3, 10, 20, 30]), Some(20));
        assert_eq!(format(group | times, 2).total(&[3, 1, 2, 10, 20, 30]), Some(30));
        assert_eq!(format(group | times | lost, 1).total(&[2, 1, 2, 10, 0, 20, 0]), Some(20));
        // whatever was closed before it
        assert_eq!(format(group | id, 3).total(&[2, 10, 76, 20, 77]), Some(20));
        assert_eq!(format(group | id | lost, 3).total(&[2, 10, 76, 0, 20, 77, 0]), Some(20));
        assert_eq!(format(group, 2).total(&[1, 10]), Some(10));
        // nothing, or less than there should be
        for read_format in [0, group, group | times, group | id] {
            assert_eq!(format(read_format, 0).total(&[]), None);
        }
        assert_eq!(format(group, 0).total(&[0]), None);
        assert_eq!(format(group, 3).total(&[9, 1, 2]), None);
        assert_eq!(format(group | id, 0).total(&[1, 10, 76]), None);
    }
}
