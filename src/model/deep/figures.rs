//! Companion figures of a CPU, those that somebody gives, and nodes that follow from retire latencies: which there are, and what counts them.
#![forbid(unsafe_code)]

use super::companion::{CompanionMetric, CountedCompanions, GivenMetric, GivenMetrics, TimedEvent};
use super::groups::{self, DeepCore, PlannedGroup};
use super::{DeepFacts, FIRST_MADE, by_its_counters, events_of, put_rows, text_of};
#[cfg(test)]
use super::{TEXTS, text_of_name};
use crate::cpu::deep::{DeepCompanion, DeepEvent, DeepText};
use crate::model::metrics::TD_NODE_NONE;
use crate::model::{self, Counters, Counting, Event, Model};
use crate::sys::cpu::{self, Identity};

/// The companion figures that are published for the CPU that runs this; with none of them counted.
#[must_use]
pub fn companions() -> Vec<CompanionMetric> {
    let all = planned_companions_of(|_| true, &[], &GivenMetrics::default(), usize::MAX);
    all.map_or(Vec::new(), |plan| plan.companions)
}

/// Those of them that one of these names asks for (`CompanionMetric::is_called`, or "all" but for retire latencies), these nodes of the tree,
/// which take retire latencies, and all that are given, in groups that are made for them, at most so many: what more would take is not told. A
/// given figure stands in the place of a published one of its name. None: there is no room for so many groups.
#[must_use]
pub fn counted_companions(
    names: &[String],
    nodes: &[u32],
    given: &GivenMetrics,
    most_groups: usize,
) -> Option<CountedCompanions> {
    let own: Vec<String> = given.metrics.iter().map(GivenMetric::published_name).collect();
    let is_given = |text: &DeepCompanion| own.contains(&text.name);
    let is_asked = |text: &DeepCompanion| {
        names.iter().any(|name| name == "all" && !text.is_latency() || text.is_called(name))
    };
    let is_wanted = |text: &DeepCompanion| !is_given(text) && is_asked(text);
    let plan = planned_companions_of(is_wanted, nodes, given, most_groups);
    let Some(CompanionPlan { own, groups, companions, events }) = plan else {
        return Some(CountedCompanions::default());
    };
    let rows: Vec<&'static Counters> = groups.iter().map(|group| group.counters).collect();
    let first = put_rows(own, &rows, |place| format!("{}, companion figures {}", own.core, place + 1))?;
    let first = FIRST_MADE + first as u32;
    let of_group = |(group, planned): (u32, &PlannedGroup)| -> Vec<TimedEvent> {
        planned.timed.iter().map(|event| TimedEvent::of(&events[*event], group)).collect()
    };
    let timed = (first..).zip(&groups).flat_map(of_group).collect();
    Some(CountedCompanions {
        metrics: companions.into_iter().map(|one| one.in_groups_from(first)).collect(),
        timed,
    })
}

struct CompanionPlan {
    own: &'static Model,
    groups: Vec<PlannedGroup>,
    companions: Vec<CompanionMetric>,
    /// Those that are given, and the text's.
    events: Vec<DeepEvent>,
}

/// What is published of levels 3 to 6 and of companion figures for a CPU, as given metrics may call it.
#[derive(Clone, Debug, Default)]
pub struct PublishedNames {
    /// Slots per cycle of the core; 0: not known.
    pub slots_per_cycle: u32,
    /// Its events.
    pub events: Vec<DeepEvent>,
    /// Figures, nodes and companion figures, without "tma_".
    pub names: Vec<String>,
}

/// That for the CPU that runs this; without names, if nothing is published.
#[must_use]
pub fn published_names() -> PublishedNames {
    let cpu = cpu::identify();
    let slots_per_cycle = model::by_counters(&cpu).map_or(0, |(_, own)| own.slots_per_cycle);
    let text = text_of(&cpu).map_or(DeepText::default(), |(_, text)| text);
    let DeepText { events, figures, nodes, companions, .. } = text;
    let figures = figures.into_iter().map(|(name, _)| name);
    let nodes = nodes.into_iter().map(|node| node.name);
    let companions = companions.into_iter().map(|one| one.name);
    PublishedNames { slots_per_cycle, events, names: figures.chain(nodes).chain(companions).collect() }
}

fn planned_companions_of(
    is_wanted: impl Fn(&DeepCompanion) -> bool,
    nodes: &[u32],
    given: &GivenMetrics,
    most_groups: usize,
) -> Option<CompanionPlan> {
    plan_of_cpu(&cpu::identify(), DeepFacts::of_this_machine, is_wanted, nodes, given, most_groups)
}

/// What counts such figures, these nodes, and what is given, of a CPU, of whose core the machine is so.
fn plan_of_cpu(
    cpu: &Identity,
    facts: impl FnOnce(&Model) -> DeepFacts,
    is_wanted: impl Fn(&DeepCompanion) -> bool,
    nodes: &[u32],
    given: &GivenMetrics,
    most_groups: usize,
) -> Option<CompanionPlan> {
    // (where nothing is published what is given is counted by the core's own counters)
    let (place, text) = match text_of(cpu) {
        Some((place, text)) => (Some(place), text),
        None if given.metrics.is_empty() => return None,
        None => (None, DeepText { family: cpu.family, ..DeepText::default() }),
    };
    let wanted: Vec<(u32, DeepCompanion)> = companions_of_text(&text, is_wanted, nodes);
    let texts = wanted.iter().map(|(_, text)| text);
    let text = with_events(text, &given.events);
    // (revisions that have a text in common may count level 1 each in its own way)
    let Some((own, counters)) = by_its_counters(cpu) else {
        let (_, own) = model::of_cpu(cpu)?;
        let Counting::None(why) = own.counting else { return None };
        let published = texts.map(|one| (&*one.name, &*one.unit, &*one.groups));
        let all = published.chain(given.metrics.iter().map(|one| (&*one.name, &*one.unit, &[][..])));
        let untold = |one| CompanionMetric::new(one, Err(why.into()), std::iter::empty());
        let companions = all.map(untold).collect();
        return Some(CompanionPlan { own, groups: Vec::new(), companions, events: text.events });
    };
    let events = match place.filter(|_| given.events.is_empty()) {
        Some(place) => events_of(place, &text),
        None => leaked_events(&text),
    };
    let core = DeepCore::new(&text, events, own, counters).with_latencies();
    let (groups, companions) =
        groups::plan_companions(&core, texts, &given.metrics, most_groups, &facts(own));
    let nodes = wanted.iter().map(|(node, _)| *node).chain(std::iter::repeat(TD_NODE_NONE));
    let companions = companions.into_iter().zip(nodes).map(|(one, node)| one.of_node(node)).collect();
    Some(CompanionPlan { own, groups, companions, events: text.events })
}

/// What a text has of companion figures and of the retire latencies of single events, as far as it is wanted, and these of its nodes; each with the
/// number of the node that it is.
fn companions_of_text(
    text: &DeepText,
    is_wanted: impl Fn(&DeepCompanion) -> bool,
    nodes: &[u32],
) -> Vec<(u32, DeepCompanion)> {
    let latencies = text.timed_events().map(|event| DeepCompanion::latency_of(&event.name));
    let figures = text.companions.iter().cloned().chain(latencies).filter(|one| is_wanted(one));
    let figures = figures.map(|one| (TD_NODE_NONE, one));
    let of_nodes = nodes.iter().filter_map(|id| {
        let node = text.node_of(model::metric(*id)?.field())?;
        Some((*id, DeepCompanion::of_node(node)?))
    });
    figures.chain(of_nodes).collect()
}

/// A text with more events, before its own.
fn with_events(mut text: DeepText, events: &[DeepEvent]) -> DeepText {
    text.events.splice(0..0, events.iter().cloned());
    text
}

/// The events of a text that is read once, with names that stay.
fn leaked_events(text: &DeepText) -> &'static [Event] {
    Vec::leak(text.events.iter().map(groups::event_of).collect())
}

/// All companion figures of a text, all nodes that follow from retire latencies, and what is given besides.
#[cfg(test)]
pub(crate) struct PlannedFigures {
    pub text: DeepText,
    /// With the events that are sampled beside each, by their places in the text.
    pub groups: Vec<(&'static Counters, Vec<usize>)>,
    /// Each as the text has it, and as it was planned.
    pub figures: Vec<(DeepCompanion, CompanionMetric)>,
    /// Those that are given.
    pub given: Vec<CompanionMetric>,
}

/// The groups that all its companion figures, and these that are given, take.
#[cfg(test)]
pub(crate) fn planned_companions(
    name: &str,
    given: &GivenMetrics,
    most_groups: usize,
    facts: &DeepFacts,
) -> PlannedFigures {
    let (place, text, own, counters) = text_of_name(name);
    let timed = groups::plan(&DeepCore::new(&text, events_of(place, &text), own, counters), facts).nodes;
    let timed: Vec<u32> =
        timed.iter().filter(|node| node.takes_latencies).map(|node| node.metric.id).collect();
    let wanted: Vec<DeepCompanion> =
        companions_of_text(&text, |_| true, &timed).into_iter().map(|(_, companion)| companion).collect();
    let text = with_events(text, &given.events);
    let core = DeepCore::new(&text, leaked_events(&text), own, counters).with_latencies();
    let (groups, mut companions) =
        groups::plan_companions(&core, wanted.iter(), &given.metrics, most_groups, facts);
    let groups = groups.into_iter().map(|group| (group.counters, group.timed)).collect();
    let given = companions.split_off(wanted.len());
    let figures = wanted.iter().cloned().zip(companions).collect();
    PlannedFigures { groups, figures, text, given }
}

/// What is given, as it is planned on a CPU; None: nothing is counted there.
#[cfg(test)]
pub(crate) fn planned_given_of_cpu(
    cpu: &Identity,
    given: &GivenMetrics,
    facts: &DeepFacts,
) -> Option<Vec<CompanionMetric>> {
    let plan = plan_of_cpu(cpu, |_| facts.clone(), |_| false, &[], given, usize::MAX)?;
    Some(plan.companions)
}

/// All companion figures of a CPU without nodes, with the names of its text and its core; None: it has no such figures.
#[cfg(test)]
pub(crate) fn planned_companions_of_cpu(
    cpu: &Identity,
    facts: &DeepFacts,
) -> Option<(&'static str, &'static str, PlannedFigures)> {
    let none = GivenMetrics::default();
    let plan = plan_of_cpu(cpu, |_| facts.clone(), |_| true, &[], &none, usize::MAX)?;
    let CompanionPlan { own, groups, companions, .. } = plan;
    let (place, text) = text_of(cpu)?;
    let groups = groups.into_iter().map(|group| (group.counters, group.timed)).collect();
    let wanted = companions_of_text(&text, |_| true, &[]).into_iter().map(|(_, companion)| companion);
    let figures = wanted.zip(companions).collect();
    Some((TEXTS[place].0, own.core, PlannedFigures { text, groups, figures, given: Vec::new() }))
}
