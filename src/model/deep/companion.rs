//! Companion figures: what is told beside shares of slots, as instructions per cycle, misses of caches or bytes per second. Each follows from
//! the counts of some events, which groups of the tree count, all in one if they fit into it.
#![forbid(unsafe_code)]

use super::value::{CountOf, Counted, Value};
use crate::cpu::deep::{DeepCompanion, DeepEvent, DeepNode, RETIRE_LATENCY};
use crate::cpu::expression::{Expression, Operator};
use crate::model::metrics::TD_NODE_NONE;

/// What a figure takes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountPlace {
    /// The count of this counter.
    Counter(usize),
    /// Of this one of the events that are sampled beside it: the retire latencies, in cycles, of all events that samples stand for.
    Latencies(usize),
    /// The same: how many events samples stand for.
    Timed(usize),
}

/// An event that is sampled for its retire latency while a group has its turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedEvent {
    /// Its maker's name.
    pub name: String,
    /// Of perf_event_attr, of the PMU whose cores have the tree.
    pub config: u64,
    /// The same.
    pub config1: u64,
    /// The published number of such events from one sample to the next; 0: none is.
    pub period: u64,
    /// Its mean retire latency on some machine, in cycles, as published.
    pub latency: Option<f64>,
    /// `Options::group`.
    pub group: u32,
}

/// Figures, and the events that are sampled for them.
#[derive(Clone, Debug, Default)]
pub struct CountedCompanions {
    /// The figures.
    pub metrics: Vec<CompanionMetric>,
    /// Of each group in their order.
    pub timed: Vec<TimedEvent>,
}

/// Metrics that somebody gives in files of their own, with what counts them.
#[derive(Clone, Debug, Default)]
pub struct GivenMetrics {
    /// The events that they take. Of one name the first is meant, before those of this CPU's text.
    pub events: Vec<DeepEvent>,
    /// Each of events, of names of this CPU's text, and of `smt_on`, `tsc_ghz`, `duration_time` and `TOPDOWN.SLOTS`.
    pub metrics: Vec<GivenMetric>,
}

/// A metric that somebody gives.
#[derive(Clone, Debug)]
pub struct GivenMetric {
    /// Its name.
    pub name: String,
    /// What it is in; "share": of one.
    pub unit: String,
    /// Its formula; or else why it cannot be told.
    pub value: Result<Expression, String>,
}

impl GivenMetric {
    /// The published figure of its name.
    #[must_use]
    pub fn published_name(&self) -> String {
        let own = self.name.to_ascii_lowercase();
        own.strip_prefix("tma_").map(String::from).unwrap_or(own)
    }
}

/// A figure.
#[derive(Clone, Debug)]
pub struct CompanionMetric {
    /// perf's name, without "tma_"; of a given one its own.
    pub name: String,
    /// What it is in: "per cycle", "GB/s"; "share": of one.
    pub unit: String,
    /// By these names it may be asked for with others.
    pub groups: Vec<String>,
    /// Why it cannot be told here; "": it can.
    pub untold: String,
    /// The node of the tree that it is, a share of `unit`; TD_NODE_NONE: it is none.
    pub node: u32,
    value: Value,
    counted: Vec<CountedEvent>,
}

/// Where an event is counted.
#[derive(Clone, Copy, Debug)]
struct CountedEvent {
    of: CountOf,
    name: &'static str,
    /// `Options::group`.
    group: u32,
    place: CountPlace,
}

impl CompanionMetric {
    /// Of this name, unit and groups.
    pub(super) fn new(
        (name, unit, groups): (&str, &str, &[String]),
        value: Result<Value, String>,
        counts: impl Iterator<Item = (CountOf, &'static str)>,
    ) -> CompanionMetric {
        let (name, unit, groups) = (name.into(), unit.into(), groups.to_vec());
        let counted =
            counts.map(|(of, name)| CountedEvent { of, name, group: 0, place: CountPlace::Counter(0) });
        let (value, counted, untold) = match value {
            Ok(value) => (value, counted.collect(), String::new()),
            Err(why) => (Value::Number(f64::NAN), Vec::new(), why),
        };
        CompanionMetric { name, unit, groups, untold, node: TD_NODE_NONE, value, counted }
    }

    /// The same, which is this node.
    pub(super) fn of_node(self, node: u32) -> CompanionMetric {
        CompanionMetric { node, ..self }
    }

    /// The events that it has counted, by their places in the text.
    pub(super) fn events(&self) -> impl Iterator<Item = usize> {
        self.counted.iter().filter_map(|one| match one.of {
            CountOf::Event(event) => Some(event),
            CountOf::Latencies(_) | CountOf::Timed(_) => None,
        })
    }

    /// With the places at which all is counted.
    pub(super) fn counted_at(self, place: impl Fn(CountOf) -> Option<(u32, CountPlace)>) -> CompanionMetric {
        let placed = self
            .counted
            .iter()
            .filter_map(|one| place(one.of).map(|(group, place)| CountedEvent { group, place, ..*one }));
        CompanionMetric { counted: placed.collect(), ..self }
    }

    /// Where what it takes is counted: `Options::group`, and what of it.
    pub fn places(&self) -> impl Iterator<Item = (u32, CountPlace)> {
        self.counted.iter().map(|one| (one.group, one.place))
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

    /// Whether its formula has a minimum, a maximum or a choice.
    #[must_use]
    pub fn bends(&self) -> bool {
        self.value.bends()
    }

    /// Its value, of so many slots, the seconds in which they were counted, and counts of the events at `places`, in their order. (What is
    /// divided by nothing is no number.)
    #[must_use]
    pub fn value(&self, slots: f64, seconds: f64, counts: &[f64]) -> f64 {
        self.value.evaluate(&Counted { slots, seconds, count: &|of| self.count(of, counts) })
    }

    fn count(&self, of: CountOf, counts: &[f64]) -> f64 {
        let place = self.counted.iter().position(|one| one.of == of);
        place.map_or(f64::NAN, |place| counts[place])
    }

    /// An event whose retire latency it takes, and that has happened without being sampled, of such counts as for `value`.
    #[must_use]
    pub fn unsampled(&self, counts: &[f64]) -> Option<&'static str> {
        let is_unsampled = |one: &&CountedEvent| match one.of {
            CountOf::Timed(event) => {
                // (one that it has not counted may have happened)
                let happened = self.count(CountOf::Event(event), counts);
                self.count(one.of, counts) == 0.0 && (happened.is_nan() || happened > 0.0)
            }
            CountOf::Event(_) | CountOf::Latencies(_) => false,
        };
        self.counted.iter().find(is_unsampled).map(|one| one.name)
    }
}

/// Of the formula of a published figure what is told: a rate is per second.
pub(super) fn per_second(unit: &str, value: Value) -> Value {
    match unit.ends_with("/s") {
        true => Value::Of(Operator::By, Box::new([value, Value::Seconds])),
        false => value,
    }
}

fn is_called(own: &str, groups: &[String], name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if name == LATENCY {
        return groups.iter().any(|group| group == LATENCY); // (and not what ends so)
    }
    let name = name.strip_prefix("tma_").unwrap_or(&name);
    let is_it = |other: &str| other.eq_ignore_ascii_case(name);
    let mut ends = own.match_indices('_').map(|(place, _)| &own[place + 1..]);
    is_it(own) || ends.any(is_it) || groups.iter().any(|group| is_it(group))
}

impl TimedEvent {
    pub(super) fn of(event: &DeepEvent, group: u32) -> TimedEvent {
        let DeepEvent { name, config, config1, period, latency, .. } = event.clone();
        TimedEvent { name, config, config1, period, latency, group }
    }
}

/// The name that asks for all retire latencies.
const LATENCY: &str = "latency";

impl DeepCompanion {
    /// The mean retire latency of an event, as perf spells it.
    pub(super) fn latency_of(event: &str) -> DeepCompanion {
        DeepCompanion {
            name: format!("{event}:R"),
            value: Expression::Name(format!("{event}{RETIRE_LATENCY}")),
            unit: "cycles".into(),
            groups: vec![LATENCY.into()],
        }
    }

    pub(super) fn is_latency(&self) -> bool {
        self.groups.iter().any(|group| group == LATENCY)
    }

    /// A node, as a figure.
    pub(super) fn of_node(node: &DeepNode) -> Option<DeepCompanion> {
        let (name, value) = (node.name.clone(), node.value.clone()?);
        Some(DeepCompanion { name, value, unit: "share".into(), groups: Vec::new() })
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, &self.groups, name)
    }
}
