//! Groups of companion figures, each of which may take several, and of events that are sampled for their retire latency.
#![forbid(unsafe_code)]

use super::super::companion::{self, CompanionMetric, CountPlace, GivenMetric};
use super::super::facts::DeepFacts;
use super::super::value::{CountOf, Taken, Value};
use super::{DeepCore, Draft, PlannedGroup, is_same, put, too_much};
use crate::cpu::deep::DeepCompanion;
use std::collections::BTreeSet;

/// Groups of companion figures that are being filled.
struct CompanionDrafts {
    counted: Vec<Draft>,
    /// Of level 1 alone, beside which these events are sampled.
    timed: Vec<Draft>,
    /// There can be no more of both.
    most: usize,
}

/// Plans the groups of companion figures of a text, and of those that are given besides, no more than so many; each figure has the places of
/// these in place of numbers.
pub(in crate::model::deep) fn plan_companions<'t>(
    core: &DeepCore,
    wanted: impl Iterator<Item = &'t DeepCompanion>,
    given: &[GivenMetric],
    most_groups: usize,
    facts: &DeepFacts,
) -> (Vec<PlannedGroup>, Vec<CompanionMetric>) {
    let mut drafts = CompanionDrafts { counted: Vec::new(), timed: Vec::new(), most: most_groups };
    let mut companions: Vec<CompanionMetric> = wanted
        .map(|one| {
            let value = Value::of(&one.value, core, facts);
            let value = value.map(|value| companion::per_second(&one.unit, value));
            core.draft_companion((&one.name, &one.unit, &one.groups), value, &mut drafts, facts)
        })
        .collect();
    // (for given ones nothing is sampled)
    let counting = DeepCore { times: false, ..*core };
    companions.extend(given.iter().map(|one| {
        let value = one.value.as_ref().map_err(String::clone);
        let value = value.and_then(|value| Value::of(value, &counting, facts));
        core.draft_companion((&one.name, &one.unit, &[]), value, &mut drafts, facts)
    }));
    let of_counts = drafts.counted.iter().map(|draft| core.group(draft, &[]));
    let of_level_1 = |draft: &Draft| PlannedGroup {
        timed: draft.taken.events.iter().copied().collect(),
        ..core.group(&Draft::default(), &[])
    };
    let groups: Vec<PlannedGroup> = of_counts.chain(drafts.timed.iter().map(of_level_1)).collect();
    let companions = companions.into_iter().map(|one| core.placed(one, &groups)).collect();
    (groups, companions)
}

fn event_of_count(of: CountOf) -> usize {
    let (CountOf::Event(event) | CountOf::Latencies(event) | CountOf::Timed(event)) = of;
    event
}

impl DeepCore<'_> {
    /// A companion figure, whose events are counted together if they fit into a group, and else in several. Those whose retire latency it
    /// takes are sampled beside level 1, as many at a time as could be counted there.
    fn draft_companion(
        &self,
        name_unit_groups: (&str, &str, &[String]),
        value: Result<Value, String>,
        drafts: &mut CompanionDrafts,
        facts: &DeepFacts,
    ) -> CompanionMetric {
        let mut taken = Taken::default();
        let value =
            value.inspect(|value| value.take(&mut taken)).and_then(|value| match taken.nodes.is_empty() {
                true => Ok(value),
                false => Err("it takes nodes of the tree".into()),
            });
        let alone = |event: &usize| Draft {
            taken: Taken { events: BTreeSet::from([*event]), ..Taken::default() },
            ..Draft::default()
        };
        let of_events = Taken { events: taken.events.clone(), ..Taken::default() };
        let together = Draft { taken: of_events, ..Draft::default() };
        let parts: Vec<Draft> = match self.fits(&together, facts) {
            true if taken.events.is_empty() => Vec::new(),
            true => vec![together],
            false => taken.events.iter().map(alone).collect(),
        };
        let sampled: Vec<Draft> = taken.latencies.iter().map(alone).collect();
        let mut all = parts.iter().chain(&sampled);
        let value = value.and_then(|value| match all.find(|part| !self.fits(part, facts)) {
            Some(part) => Err(too_much(self, &part.taken, facts)),
            None => Ok(value),
        });
        let value = value.and_then(|value| {
            let (mut counted, mut timed) = (drafts.counted.clone(), drafts.timed.clone());
            parts.into_iter().for_each(|part| put(self, &mut counted, 0, part, facts));
            sampled.into_iter().for_each(|part| put(self, &mut timed, 0, part, facts));
            if counted.len() + timed.len() > drafts.most {
                return Err("no more groups can take turns: name fewer figures or levels".into());
            }
            (drafts.counted, drafts.timed) = (counted, timed);
            Ok(value)
        });
        let latencies =
            taken.latencies.iter().flat_map(|event| [CountOf::Latencies(*event), CountOf::Timed(*event)]);
        let counts = taken.events.iter().map(|event| CountOf::Event(*event)).chain(latencies);
        let counts = counts.map(|of| (of, self.events[event_of_count(of)].name));
        CompanionMetric::new(name_unit_groups, value, counts)
    }

    /// With the places of its events: in the first of these groups that has all, or else each in the first that has it.
    fn placed(&self, companion: CompanionMetric, groups: &[PlannedGroup]) -> CompanionMetric {
        let counter = |group: &PlannedGroup, event: usize| {
            group.counters.events.iter().position(|counted| is_same(counted, &self.events[event]))
        };
        let first_with = |events: &[usize]| {
            let has_all = |group: &PlannedGroup| {
                group.timed.is_empty() && events.iter().all(|event| counter(group, *event).is_some())
            };
            groups.iter().position(has_all)
        };
        let sampled = |event: usize| {
            let mut places = groups.iter().enumerate().filter_map(|(group, planned)| {
                Some((group as u32, planned.timed.iter().position(|timed| *timed == event)?))
            });
            places.next()
        };
        let events: Vec<usize> = companion.events().collect();
        let together = first_with(&events);
        companion.counted_at(|of| match of {
            CountOf::Event(event) => {
                let group = together.or_else(|| first_with(&[event]))?;
                Some((group as u32, CountPlace::Counter(counter(&groups[group], event)?)))
            }
            CountOf::Latencies(event) => {
                sampled(event).map(|(group, place)| (group, CountPlace::Latencies(place)))
            }
            CountOf::Timed(event) => sampled(event).map(|(group, place)| (group, CountPlace::Timed(place))),
        })
    }
}
