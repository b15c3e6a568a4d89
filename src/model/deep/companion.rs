//! Companion figures: what is told beside shares of slots, as instructions per cycle, misses of caches or bytes per second. Each follows from
//! the counts of some events, which groups of the tree count, all in one if they fit into it.
#![forbid(unsafe_code)]

use super::value::Value;
use crate::cpu::deep::DeepCompanion;
use std::collections::BTreeSet;

/// A figure.
#[derive(Clone, Debug)]
pub struct CompanionMetric {
    /// perf's name, without "tma_".
    pub name: String,
    /// What it is in: "per cycle", "GB/s"; "share": of one.
    pub unit: String,
    /// By these names it may be asked for with others.
    pub groups: Vec<String>,
    /// Why it cannot be told here; "": it can.
    pub untold: String,
    value: Value,
    counted: Vec<CountedEvent>,
}

/// Where an event is counted.
#[derive(Clone, Copy, Debug)]
struct CountedEvent {
    /// Its place in the text.
    event: usize,
    /// `Options::group`.
    group: u32,
    /// Its place in the group.
    counter: usize,
}

impl CompanionMetric {
    pub(super) fn new(
        text: &DeepCompanion,
        value: Result<Value, String>,
        events: BTreeSet<usize>,
    ) -> CompanionMetric {
        let (name, unit, groups) = (text.name.clone(), text.unit.clone(), text.groups.clone());
        let (value, events, untold) = match value {
            Ok(value) => (value, events, String::new()),
            Err(why) => (Value::Number(f64::NAN), BTreeSet::new(), why),
        };
        let counted = events.into_iter().map(|event| CountedEvent { event, group: 0, counter: 0 });
        CompanionMetric { name, unit, groups, untold, value, counted: counted.collect() }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = usize> {
        self.counted.iter().map(|one| one.event)
    }

    /// With the places at which its events are counted.
    pub(super) fn counted_at(self, place: impl Fn(usize) -> Option<(u32, usize)>) -> CompanionMetric {
        let placed = self.counted.iter().filter_map(|one| {
            place(one.event).map(|(group, counter)| CountedEvent { group, counter, ..*one })
        });
        CompanionMetric { counted: placed.collect(), ..self }
    }

    /// Where its events are counted: `Options::group`, and the place in the group's counters.
    pub fn places(&self) -> impl Iterator<Item = (u32, usize)> {
        self.counted.iter().map(|one| (one.group, one.counter))
    }

    /// The same, of whose groups the first has this number.
    pub(super) fn in_groups_from(mut self, first: u32) -> CompanionMetric {
        self.counted.iter_mut().for_each(|one| one.group += first);
        self
    }

    /// Whether this name asks for it: its own, or the end of it from one of its words on, or one of a group, in whatever case.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, &self.groups, name)
    }

    /// Its value, of so many slots and counts of the events at `places`, in their order. (A rate is of all the time in which they were
    /// counted; what is divided by nothing is no number, or infinite)
    #[must_use]
    pub fn value(&self, slots: f64, counts: &[f64]) -> f64 {
        let count = |event: usize| {
            let place = self.counted.iter().position(|one| one.event == event);
            place.map_or(f64::NAN, |place| counts[place])
        };
        self.value.evaluate(slots, &count)
    }
}

fn is_called(own: &str, groups: &[String], name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("tma_").unwrap_or(&name);
    let is_it = |other: &str| other.eq_ignore_ascii_case(name);
    let mut ends = own.match_indices('_').map(|(place, _)| &own[place + 1..]);
    is_it(own) || ends.any(is_it) || groups.iter().any(|group| is_it(group))
}

impl DeepCompanion {
    pub(super) fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, &self.groups, name)
    }
}
