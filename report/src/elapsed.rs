//! What clocks tell of executions of which nothing counted slots: elapsed time, and CPU time as far as it is known.
#![forbid(unsafe_code)]

use topdown_table::{THREAD, TableEntry};

/// Both, each None if it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    /// Nanoseconds of elapsed time, over threads and executions: what they waited is in it.
    pub wall_ns: Option<u64>,
    /// Nanoseconds of CPU time.
    pub cpu_ns: Option<u64>,
}

impl Elapsed {
    const UNKNOWN: Elapsed = Elapsed { wall_ns: None, cpu_ns: None };

    /// What the record of a process says of which time alone was measured. None: it cannot be what the library wrote.
    pub fn of(entry: &TableEntry) -> Option<Elapsed> {
        let of = &entry.measurement;
        if of.measured > of.executions || of.slots != 0 || entry.counted_executions != 0 {
            return None;
        }
        // (of a thread more was seen than it has noted, if it was killed)
        if entry.kind == THREAD && entry.seen_ns > of.enabled_ns {
            return Some(Elapsed { wall_ns: Some(entry.seen_ns), cpu_ns: None });
        }
        if entry.kind == THREAD && of.executions == 0 {
            return Some(Elapsed::UNKNOWN);
        }
        let cpu_ns = (of.measured == of.executions).then_some(of.running_ns);
        Some(Elapsed { wall_ns: Some(of.enabled_ns), cpu_ns })
    }

    fn both(self, other: Elapsed, work: fn(u64, u64) -> u64) -> Elapsed {
        let both = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| work(one, other));
        Elapsed { wall_ns: both(self.wall_ns, other.wall_ns), cpu_ns: both(self.cpu_ns, other.cpu_ns) }
    }
}

/// Of both, where None has no time that clocks tell.
pub fn sum(one: Option<Elapsed>, other: Option<Elapsed>) -> Option<Elapsed> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.both(other, u64::saturating_add)),
        (one, other) => one.or(other),
    }
}

/// What is left without a part.
pub fn difference(all: Option<Elapsed>, part: Option<Elapsed>) -> Option<Elapsed> {
    match (all, part) {
        (Some(all), Some(part)) => Some(all.both(part, u64::saturating_sub)),
        (all, _) => all,
    }
}

/// Any of it may be wrong.
pub fn unknown(of: Option<Elapsed>) -> Option<Elapsed> {
    of.map(|_| Elapsed::UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_a_part_is_not_known_of_the_whole_and_nothing_is_neutral() {
        let [five, two] =
            [(5, Some(4)), (2, None)].map(|(wall, cpu_ns)| Some(Elapsed { wall_ns: Some(wall), cpu_ns }));
        let of = |wall_ns, cpu_ns| Some(Elapsed { wall_ns, cpu_ns });
        assert_eq!(sum(five, five), of(Some(10), Some(8)));
        assert_eq!(sum(five, two), of(Some(7), None));
        assert_eq!((sum(five, None), sum(None, two), sum(None, None)), (five, two, None));
        assert_eq!(difference(five, two), of(Some(3), None));
        assert_eq!((difference(five, None), difference(None, five)), (five, None));
        assert_eq!((unknown(five), unknown(None)), (of(None, None), None));
    }
}
