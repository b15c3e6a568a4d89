//! Which nodes of a deeper tree share a group. A group has level 1 by general-purpose counters, as the core's own row counts it, and
//! what fits beside it: children of one node first, then those of other nodes of the same level.
#![forbid(unsafe_code)]

use super::DeepNodeInfo;
use super::companion::{self, CompanionMetric, GivenMetric, place_of_timed};
use super::facts::DeepFacts;
use super::value::{CountOf, Taken, Value};
use crate::cpu::deep::{DeepCompanion, DeepEvent, DeepNode, DeepText, DeepUnit};
use crate::model::metrics::{self, Metric, TD_NODE_NONE, TD_UNIT_CLOCKS, TD_UNIT_OPERATIONS, TD_UNIT_SLOTS};
use crate::model::tree::{Clocks, CorrectionInputs, Expr, Formula, Input, NodeRow, RetirementInputs, Tree};
use crate::model::{Counters, Event, MOST_INPUTS, MOST_NODES, Model, NoDeeper};
use crate::sys::cpu::ARM64;
use std::collections::BTreeSet;

/// Cycles in which the thread runs, and the event's own counter: Intel's, and arm64's.
const CYCLES: u64 = 0x3c;
const CYCLES_OF_ARM64: u64 = 0x11;
/// Codes of events of off-core responses.
const OFFCORE: [u64; 4] = [0x2a, 0x2b, 0xb7, 0xbb];
/// What the simulated PMU counts in a cycle of an event that no other row has.
const SIMULATED: f64 = 0.05;

/// What is counted where.
pub(super) struct DeepPlan {
    pub groups: Vec<PlannedGroup>,
    /// All of the text, parents before children.
    pub nodes: Vec<DeepNodeInfo>,
}

/// A group.
pub(super) struct PlannedGroup {
    pub counters: &'static Counters,
    /// What it tells besides level 1; none: companion figures.
    pub told: Vec<Metric>,
    /// Events that are sampled beside it, for their retire latency, by their places in the text.
    pub timed: Vec<usize>,
}

/// A core by its general-purpose counters, and the deeper tree that it has.
#[derive(Clone, Copy)]
pub(super) struct DeepCore<'t> {
    pub text: &'t DeepText,
    /// The text's, in their order.
    events: &'t [Event],
    own: &'static Counters,
    width: u32,
    /// Retire latencies are told.
    pub(super) times: bool,
}

/// What counts a node.
struct NodeNeeds<'t> {
    node: &'t DeepNode,
    metric: Metric,
    value: Value,
    taken: Taken,
}

/// A group that is being filled.
#[derive(Clone, Default)]
struct Draft {
    level: u32,
    taken: Taken,
    /// By their places among what can be told.
    nodes: Vec<usize>,
    /// These, and the nodes above them.
    listed: BTreeSet<String>,
}

impl Draft {
    /// The same with what another has.
    fn with(&self, other: &Draft) -> Draft {
        let mut with = self.clone();
        with.taken.events.extend(&other.taken.events);
        with.taken.nodes.extend(&other.taken.nodes);
        with.nodes.extend(&other.nodes);
        with.listed.extend(other.listed.iter().cloned());
        with
    }
}

/// Groups of companion figures that are being filled.
struct CompanionDrafts {
    counted: Vec<Draft>,
    /// Of level 1 alone, beside which these events are sampled.
    timed: Vec<Draft>,
    /// There can be no more of both.
    most: usize,
}

/// An input of a group.
struct Member {
    event: Event,
    input: Input,
    /// A bit for each general-purpose counter that counts it; 0: all do.
    counters: u32,
}

impl DeepCore<'_> {
    /// The place of a node in the core's own tree, if that measures it.
    pub fn own_place(&self, name: &str) -> Option<usize> {
        let rows = self.own.tree.nodes;
        rows.iter().position(|row| row.metric.field() == name && !matches!(row.formula, Formula::NoCounter))
    }

    pub fn is_arm64(&self) -> bool {
        self.text.family == ARM64
    }

    /// Of these CPUs: `CYCLES`.
    fn cycles(&self) -> u64 {
        if self.is_arm64() { CYCLES_OF_ARM64 } else { CYCLES }
    }

    /// Slots per cycle, if the leader counts what this event does.
    pub fn cycles_led(&self, event: usize) -> Option<f64> {
        let leader = self.own.leaders.first()?;
        let is_same = leader.by_cycle && leader.event.config == self.text.events[event].config;
        is_same.then_some(f64::from(self.width))
    }

    /// The input of level 1 that counts what the leader does, in a second counter, which these groups need for other events. (Neoverse N2 before
    /// r0p3: cycles)
    fn led_again(&self) -> Option<usize> {
        let leader = self.own.leaders.first().filter(|leader| leader.by_cycle && self.is_arm64())?;
        let events = &self.own.events[..self.own.tree.inputs_of(1)];
        events.iter().position(|event| event.config == leader.event.config)
    }

    /// The nodes of the own tree that these follow from, and these, by their places.
    fn own_nodes(&self, nodes: &BTreeSet<usize>) -> BTreeSet<usize> {
        let rows = self.own.tree.nodes;
        let mut all: BTreeSet<usize> = (0..rows.len()).filter(|place| rows[*place].level == 1).collect();
        for place in nodes {
            all.insert(*place);
            if let Formula::Rest = rows[*place].formula {
                all.extend((0..rows.len()).filter(|other| rows[*other].parent == rows[*place].parent));
            }
        }
        all
    }

    /// Level 1's inputs, those of other own nodes, then those of events.
    fn members(&self, taken: &Taken) -> Vec<Member> {
        let Counters { tree, events, .. } = self.own;
        let own = self.own_nodes(&taken.nodes);
        let led = self.led_again();
        let inputs: BTreeSet<usize> = (0..tree.inputs_of(1))
            .chain(own.iter().flat_map(|place| inputs_of(&tree.nodes[*place].formula)))
            .filter(|input| Some(*input) != led)
            .collect();
        let mut members: Vec<Member> = inputs
            .into_iter()
            .map(|input| Member {
                event: events[input],
                input: tree.inputs[input],
                counters: events[input].counter.map_or(0, |counter| 1 << counter),
            })
            .collect();
        for event in &taken.events {
            let (event, counters) = (self.events[*event], self.text.events[*event].counters);
            if !members.iter().any(|member| is_same(&member.event, &event)) {
                members.push(Member { event, input: Input::Counter(0), counters });
            }
        }
        members
    }

    /// General-purpose counters that these take.
    fn general(&self, members: &[Member], facts: &DeepFacts) -> Vec<u32> {
        let has_own = |member: &&Member| {
            member.event.fixed && !(facts.watchdog && member.event.config == self.cycles())
        };
        let masks = members.iter().filter(|member| !has_own(member)).map(|member| member.counters);
        let mut leaders = self.own.leaders.iter();
        let leader = if facts.shows_slots { leaders.next() } else { leaders.next_back() };
        let leader = leader.filter(|leader| leader.general || facts.watchdog && leader.by_cycle);
        masks.chain(leader.map(|_| 0)).collect()
    }

    fn fits(&self, draft: &Draft, facts: &DeepFacts) -> bool {
        let members = self.members(&draft.taken);
        members.len() <= MOST_INPUTS
            && have_registers(&members)
            && have_counters(&self.general(&members, facts), facts.counters)
            && self.listed(draft) <= MOST_NODES
    }

    /// How many nodes a group lists: its own, those above them, and those of the own tree.
    fn listed(&self, draft: &Draft) -> usize {
        let rows = self.own.tree.nodes;
        let own = self.own_nodes(&draft.taken.nodes).into_iter().map(|place| rows[place].metric.field());
        draft.listed.iter().map(String::as_str).chain(own).collect::<BTreeSet<_>>().len()
    }

    /// A node and those above it.
    fn path(&self, node: &DeepNode) -> BTreeSet<String> {
        let above = node.parent.as_ref().and_then(|parent| self.text.node_of(parent));
        let mut path = above.map_or(BTreeSet::new(), |parent| self.path(parent));
        path.insert(node.name.clone());
        path
    }
}

fn event_of_count(of: CountOf) -> usize {
    let (CountOf::Event(event) | CountOf::Latencies(event) | CountOf::Timed(event)) = of;
    event
}

/// Whether two events are one, whatever they are called.
fn is_same(a: &Event, b: &Event) -> bool {
    (a.config, a.config1) == (b.config, b.config1)
}

/// An event of a text, with a name that stays.
pub(super) fn event_of(event: &DeepEvent) -> Event {
    Event {
        config1: event.config1,
        fixed: event.fixed,
        may_be_silent: true,
        ..Event::new(event.name.clone().leak(), event.config)
    }
}

/// Inputs that a formula of the own tree takes.
fn inputs_of(formula: &Formula) -> Vec<usize> {
    match formula {
        Formula::Slots(input) => vec![*input],
        Formula::Corrected(of) => [&[of.slots], of.less, of.more].concat(),
        Formula::Balance(more, less) => [*more, *less].concat(),
        Formula::Retired(of) => [of.stalls, of.not_stalls, &[of.retired, of.dispatched]].concat(),
        Formula::Rest | Formula::NoCounter => Vec::new(),
        Formula::Of(expr) => inputs_of_expr(expr),
    }
}

fn inputs_of_expr(expr: &Expr) -> Vec<usize> {
    match expr {
        Expr::Number(_) | Expr::Slots | Expr::Node(_) => Vec::new(),
        Expr::Input(input) => vec![*input],
        Expr::Sum(a, b)
        | Expr::Difference(a, b)
        | Expr::Product(a, b)
        | Expr::Quotient(a, b)
        | Expr::Least(a, b)
        | Expr::Greatest(a, b)
        | Expr::Part(a, b) => [inputs_of_expr(a), inputs_of_expr(b)].concat(),
        Expr::IfLess(all) => all.iter().flat_map(inputs_of_expr).collect(),
    }
}

/// Whether the extra registers of these events are there: two for off-core responses, and one for all others.
fn have_registers(members: &[Member]) -> bool {
    let of = |offcore: bool| {
        let extra = members.iter().map(|member| &member.event).filter(|event| event.config1 != 0);
        let extra = extra.filter(|event| OFFCORE.contains(&(event.config & 0xff)) == offcore);
        extra.map(|event| event.config1).collect::<BTreeSet<_>>().len()
    };
    of(true) <= 2 && of(false) <= 1
}

/// Whether each of these events, which only the counters of its mask count (0: all do), has one of so many.
fn have_counters(masks: &[u32], counters: usize) -> bool {
    fn place(event: usize, masks: &[u32], holders: &mut [Option<usize>], tried: &mut u32) -> bool {
        for counter in 0..holders.len() {
            let may = masks[event] == 0 || masks[event] >> counter & 1 == 1;
            if !may || *tried >> counter & 1 == 1 {
                continue;
            }
            *tried |= 1 << counter;
            if holders[counter].is_none_or(|other| place(other, masks, holders, tried)) {
                holders[counter] = Some(event);
                return true;
            }
        }
        false
    }
    let mut holders = vec![None; counters.min(32)];
    (0..masks.len()).all(|event| place(event, masks, &mut holders, &mut 0))
}

/// Plans the groups of a text.
pub(super) fn plan(core: &DeepCore, facts: &DeepFacts) -> DeepPlan {
    let text = core.text;
    let mut nodes: Vec<DeepNodeInfo> = Vec::new();
    let mut needs: Vec<NodeNeeds> = Vec::new();
    for node in &text.nodes {
        let Some(metric) = metrics::ALL.iter().find(|metric| metric.field() == node.name) else { continue };
        let above = |name: &String| nodes.iter().find(|other| other.metric.field() == name);
        let parent = node.parent.as_ref().and_then(above).map_or(TD_NODE_NONE, |parent| parent.metric.id);
        let mut untold = String::new();
        if core.own_place(&node.name).is_none() {
            match need(node, *metric, core, facts) {
                Ok(need) => needs.push(need),
                Err(why) => untold = why,
            }
        }
        let samples = node.samples.clone();
        nodes.push(DeepNodeInfo {
            metric: *metric,
            parent,
            level: node.level,
            above: node.above,
            is_alone: node.is_alone,
            samples,
            takes_latencies: !untold.is_empty() && takes_latencies(node, core, facts),
            untold,
            is_part: node.is_part,
            is_of_slots: node.unit == DeepUnit::Slots,
            is_estimated: node.is_estimated,
        });
    }
    let drafts = drafts(core, &needs, facts);
    let groups = drafts.iter().map(|draft| core.group(draft, &needs)).collect();
    DeepPlan { groups, nodes }
}

/// Plans the groups of companion figures of a text, and of those that are given besides, no more than so many; each figure has the places of
/// these in place of numbers.
pub(super) fn plan_companions<'t>(
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

/// Plans a group of these nodes, and of as many below them as it has room for: down to this level, or their own children (0).
///
/// # Errors
/// One of them cannot be counted, or no group has room for all: which ones one has.
pub(super) fn plan_nodes(
    core: &DeepCore,
    wanted: &[Metric],
    level: u32,
    facts: &DeepFacts,
) -> Result<PlannedGroup, String> {
    let (mut needs, mut drafts) = (Vec::new(), Vec::new());
    let named = |metric: &Metric| {
        let of_text = core.text.node_of(metric.field()).filter(|node| !node.is_part);
        of_text.ok_or_else(|| format!("{} is no node of this CPU's tree", metric.title()))
    };
    let wanted = wanted.iter().map(named).collect::<Result<Vec<&DeepNode>, String>>()?;
    for node in &wanted {
        let cannot = |why| format!("{} cannot be counted here: {why}", node.name.replace('_', " "));
        let draft = core.draft_node(node, &mut needs, facts).map_err(cannot)?;
        put(core, &mut drafts, 0, draft, facts);
    }
    let together = |draft: &Draft| {
        let is_in = |node: &&&DeepNode| draft.listed.contains(&node.name);
        wanted.iter().filter(is_in).map(|node| node.name.replace('_', " ")).collect::<Vec<_>>().join(", ")
    };
    let [_] = &drafts[..] else {
        let lists: Vec<String> = drafts.iter().map(together).collect();
        return Err(format!("one group counts {}, another {}", lists[0], lists[1..].join(", another ")));
    };
    let is_below = |node: &&DeepNode| {
        let parent_is_wanted = || wanted.iter().any(|above| node.parent.as_ref() == Some(&above.name));
        let path = core.path(node);
        let under = wanted.iter().any(|above| above.name != node.name && path.contains(&above.name));
        !node.is_part && if level == 0 { parent_is_wanted() } else { under && node.level <= level }
    };
    let mut below: Vec<&DeepNode> = core.text.nodes.iter().filter(is_below).collect();
    below.sort_by_key(|node| node.level);
    for node in below {
        if let Ok(draft) = core.draft_node(node, &mut needs, facts) {
            let both = drafts[0].with(&draft);
            if core.fits(&both, facts) {
                drafts[0] = both;
            }
        }
    }
    Ok(core.group(&drafts[0], &needs))
}

/// What does not fit beside level 1.
fn too_much(core: &DeepCore, taken: &Taken, facts: &DeepFacts) -> String {
    let members = core.members(taken);
    let wanted = core.general(&members, facts).len();
    match wanted > facts.counters {
        true => format!(
            "with level 1 it takes {wanted} general-purpose counters, and {} are here",
            facts.counters
        ),
        false if !have_registers(&members) => "its events take the same extra register".into(),
        false => "its events go into the same few counters".into(),
    }
}

/// Whether a node is told where retire latencies are sampled.
fn takes_latencies(node: &DeepNode, core: &DeepCore, facts: &DeepFacts) -> bool {
    let timing = core.with_latencies();
    let mut taken = Taken::default();
    let value = node.value.as_ref().and_then(|value| Value::of(value, &timing, facts).ok());
    value.inspect(|value| value.take(&mut taken)).is_some()
        && !taken.latencies.is_empty()
        && taken.nodes.is_empty()
}

/// What a node takes. What is wrong: why it cannot be counted.
fn need<'t>(
    node: &'t DeepNode,
    metric: Metric,
    core: &DeepCore,
    facts: &DeepFacts,
) -> Result<NodeNeeds<'t>, String> {
    let value = node.value.as_ref().ok_or("PERF_METRICS alone tells it")?;
    let value = Value::of(value, core, facts)?;
    let mut taken = Taken::default();
    value.take(&mut taken);
    let listed = core.path(node);
    let alone = Draft { level: node.level, taken: taken.clone(), nodes: Vec::new(), listed };
    if core.fits(&alone, facts) {
        return Ok(NodeNeeds { node, metric, value, taken });
    }
    Err(too_much(core, &taken, facts))
}

/// Children of one node share groups, then those of one level.
fn drafts(core: &DeepCore, needs: &[NodeNeeds], facts: &DeepFacts) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut families: Vec<(u32, Option<&String>)> = Vec::new();
    for need in needs {
        let family = (need.node.level, need.node.parent.as_ref());
        if !families.contains(&family) {
            families.push(family);
        }
    }
    for family in families {
        let of_family = |need: &&NodeNeeds| (need.node.level, need.node.parent.as_ref()) == family;
        let first = drafts.len();
        for (place, need) in needs.iter().enumerate().filter(|(_, need)| of_family(need)) {
            let (taken, listed) = (need.taken.clone(), core.path(need.node));
            let draft = Draft { level: need.node.level, taken, nodes: vec![place], listed };
            put(core, &mut drafts, first, draft, facts);
        }
    }
    let mut merged = Vec::new();
    drafts.into_iter().for_each(|draft| put(core, &mut merged, 0, draft, facts));
    merged
}

/// Puts a draft with the first from this one on that is of its level and has room for it, or behind them.
fn put(core: &DeepCore, drafts: &mut Vec<Draft>, first: usize, draft: Draft, facts: &DeepFacts) {
    let mut others = drafts[first..].iter_mut().filter(|other| other.level == draft.level);
    let both = others.find_map(|other| {
        let both = other.with(&draft);
        core.fits(&both, facts).then_some((other, both))
    });
    match both {
        Some((other, both)) => *other = both,
        None => drafts.push(draft),
    }
}

impl<'t> DeepCore<'t> {
    /// A core of this text, with its events.
    pub fn new(
        text: &'t DeepText,
        events: &'t [Event],
        own: &Model,
        counters: &'static Counters,
    ) -> DeepCore<'t> {
        DeepCore { text, events, own: counters, width: own.slots_per_cycle, times: false }
    }

    /// The same, where retire latencies are told.
    pub fn with_latencies(&self) -> DeepCore<'t> {
        DeepCore { times: true, ..*self }
    }

    /// A group of one node, which is put with those that have been: of whatever level.
    fn draft_node(
        &self,
        node: &'t DeepNode,
        needs: &mut Vec<NodeNeeds<'t>>,
        facts: &DeepFacts,
    ) -> Result<Draft, String> {
        let metric = metrics::ALL.iter().find(|metric| metric.field() == node.name);
        let metric = metric.ok_or("this version has no number for it")?;
        let mut draft = Draft { listed: self.path(node), ..Draft::default() };
        match self.own_place(&node.name) {
            Some(place) => draft.taken.nodes = BTreeSet::from([place]),
            None => {
                let need = need(node, *metric, self, facts)?;
                (draft.taken, draft.nodes) = (need.taken.clone(), vec![needs.len()]);
                needs.push(need);
            }
        }
        match self.fits(&draft, facts) {
            true => Ok(draft),
            false => Err(too_much(self, &draft.taken, facts)),
        }
    }

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
                Some((group as u32, place_of_timed(planned.timed.iter().position(|timed| *timed == event)?)))
            });
            places.next()
        };
        let events: Vec<usize> = companion.events().collect();
        let together = first_with(&events);
        companion.counted_at(|of| match of {
            CountOf::Event(event) => {
                let group = together.or_else(|| first_with(&[event]))?;
                Some((group as u32, counter(&groups[group], event)?))
            }
            CountOf::Latencies(event) => sampled(event),
            CountOf::Timed(event) => sampled(event).map(|(group, place)| (group, place + 1)),
        })
    }

    fn group(&self, draft: &Draft, needs: &[NodeNeeds]) -> PlannedGroup {
        let mut members = self.members(&draft.taken);
        for (place, member) in members.iter_mut().enumerate() {
            member.input = match member.input {
                Input::Cycles(_, slots) => Input::Cycles(place, slots),
                _ => Input::Counter(place),
            };
        }
        let place_of = |event: &Event| {
            let place = members.iter().position(|member| is_same(&member.event, event));
            place.expect("members are what the nodes take")
        };
        let own_tree = self.own.tree;
        let mut rows: Vec<NodeRow> = Vec::new();
        let moved = |input: usize| place_of(&self.own.events[input]);
        let own_rows = self.own_nodes(&draft.taken.nodes).into_iter().map(|place| own_tree.nodes[place]);
        match self.led_again() {
            None => own_rows.for_each(|row| {
                push(&mut rows, NodeRow { formula: moved_formula(&row.formula, &moved), ..row });
            }),
            Some(led) => {
                let cycles =
                    (led, f64::from(self.own.tree.inputs[led].each()) / f64::from(self.width.max(1)));
                let (rests, others): (Vec<NodeRow>, Vec<NodeRow>) =
                    own_rows.partition(|row| matches!(row.formula, Formula::Rest));
                for row in others.into_iter().chain(rests) {
                    let formula = Formula::Of(leaked(as_share(&row.formula, cycles, &moved, &rows)));
                    push(&mut rows, NodeRow { formula, ..row });
                }
            }
        }
        let event = |event: usize| {
            let place = place_of(&self.events[event]);
            match members[place].input {
                Input::Cycles(_, slots) => Expr::Quotient(
                    Box::leak(Box::new(Expr::Input(place))),
                    Box::leak(Box::new(Expr::Number(f64::from(slots)))),
                ),
                _ => Expr::Input(place),
            }
        };
        let own_id = |place: usize| own_tree.nodes[place].metric.id;
        let mut nodes: Vec<&NodeNeeds> = draft.nodes.iter().map(|place| &needs[*place]).collect();
        nodes.sort_by_key(|need| need.node.level);
        for need in &nodes {
            self.push_above(&mut rows, need.node);
            let formula = Formula::Of(Box::leak(Box::new(need.value.expr(&event, &own_id))));
            push(&mut rows, row_of(need.node, need.metric, formula));
        }
        let has_clocks = rows.iter().any(|row| row.unit == TD_UNIT_CLOCKS);
        let cycles = members.iter().position(|member| member.event.config == self.cycles());
        let clocks = match cycles {
            Some(place) => Clocks::Input(place),
            None => Clocks::Slots(self.width.max(1)),
        };
        let own_rate = |event: &Event| {
            let place = self.own.events.iter().position(|own| own == event);
            place.and_then(|place| own_tree.per_cycle.get(place)).copied()
        };
        let rates = members.iter().map(|member| match member.event.config {
            config if config == self.cycles() => 1.0,
            _ => own_rate(&member.event).unwrap_or(SIMULATED),
        });
        let told: Vec<Metric> = nodes.iter().map(|need| need.metric).collect();
        let tree = Tree::new(
            members.iter().map(|member| member.input).collect::<Vec<_>>().leak(),
            has_clocks.then_some(clocks),
            &[],
            rows.leak(),
            rates.collect::<Vec<_>>().leak(),
        );
        let is_of_nodes = !told.is_empty() || !draft.taken.nodes.is_empty();
        let tree = if is_of_nodes { tree } else { tree.with_all_inputs() };
        let counters = Counters {
            tree: Box::leak(Box::new(tree)),
            events: members.iter().map(|member| member.event).collect::<Vec<_>>().leak(),
            subtree: TD_NODE_NONE,
            no_deeper: NoDeeper::default(),
            ..*self.own
        };
        PlannedGroup { counters: Box::leak(Box::new(counters)), told, timed: Vec::new() }
    }

    /// The nodes above one, which this group does not tell.
    fn push_above(&self, rows: &mut Vec<NodeRow>, node: &DeepNode) {
        let Some(parent) = node.parent.as_ref().and_then(|parent| self.text.node_of(parent)) else { return };
        self.push_above(rows, parent);
        let Some(metric) = metrics::ALL.iter().find(|metric| metric.field() == parent.name) else { return };
        if !rows.iter().any(|row| row.metric.id == metric.id) {
            push(rows, row_of(parent, *metric, Formula::NoCounter));
        }
    }
}

/// A row; `push` tells its parent.
fn row_of(node: &DeepNode, metric: Metric, formula: Formula) -> NodeRow {
    let parent = node.parent.as_ref();
    let parent = parent.and_then(|parent| metrics::ALL.iter().find(|metric| metric.field() == parent));
    NodeRow {
        metric,
        parent: parent.map_or(TD_NODE_NONE, |parent| parent.id),
        above: None,
        level: node.level,
        unit: match node.unit {
            DeepUnit::Slots => TD_UNIT_SLOTS,
            DeepUnit::Cycles => TD_UNIT_CLOCKS,
            DeepUnit::Operations => TD_UNIT_OPERATIONS,
        },
        formula,
    }
}

/// Adds a row below its parent.
fn push(rows: &mut Vec<NodeRow>, row: NodeRow) {
    let above = rows.iter().position(|other| other.metric.id == row.parent).map(|place| place as u8);
    rows.push(NodeRow { above, ..row });
}

/// A formula of the own tree, with its inputs where they are now.
fn moved_formula(formula: &Formula, moved: &dyn Fn(usize) -> usize) -> Formula {
    let all = |places: &[usize]| -> &'static [usize] {
        places.iter().map(|place| moved(*place)).collect::<Vec<_>>().leak()
    };
    match formula {
        Formula::Slots(input) => Formula::Slots(moved(*input)),
        Formula::Corrected(of) => Formula::Corrected(CorrectionInputs {
            slots: moved(of.slots),
            less: all(of.less),
            more: all(of.more),
        }),
        Formula::Balance(more, less) => Formula::Balance(all(more), all(less)),
        Formula::Retired(of) => Formula::Retired(RetirementInputs {
            stalls: all(of.stalls),
            not_stalls: all(of.not_stalls),
            retired: moved(of.retired),
            dispatched: moved(of.dispatched),
        }),
        Formula::Rest => Formula::Rest,
        Formula::NoCounter => Formula::NoCounter,
        Formula::Of(expr) => Formula::Of(Box::leak(Box::new(moved_expr(expr, moved)))),
    }
}

fn leaked(expr: Expr) -> &'static Expr {
    Box::leak(Box::new(expr))
}

/// A formula of a root of the own tree, as a share, with its inputs where they are now, but for one of which there are so many in each slot.
/// `above`: the roots that have been, all others of what is the rest.
fn as_share(
    formula: &Formula,
    (input, in_a_slot): (usize, f64),
    moved: &dyn Fn(usize) -> usize,
    above: &[NodeRow],
) -> Expr {
    let of = |place: usize| match place == input {
        true => Expr::Product(leaked(Expr::Slots), leaked(Expr::Number(in_a_slot))),
        false => Expr::Input(moved(place)),
    };
    // (each slot that there is less of one thing is one more of another)
    let balance = |first: Expr, more: &[usize], less: &[usize]| {
        let all = more.iter().fold(first, |all, place| Expr::Sum(leaked(all), leaked(of(*place))));
        less.iter().fold(all, |all, place| Expr::Difference(leaked(all), leaked(of(*place))))
    };
    let share = |slots: Expr| Expr::Quotient(leaked(slots), leaked(Expr::Slots));
    match formula {
        Formula::Slots(place) => share(of(*place)),
        Formula::Corrected(all) => share(balance(of(all.slots), all.more, all.less)),
        Formula::Balance(more, less) => share(balance(Expr::Number(0.0), more, less)),
        Formula::Retired(all) => {
            let left = balance(Expr::Slots, all.not_stalls, all.stalls);
            let part = Expr::Part(leaked(of(all.retired)), leaked(of(all.dispatched)));
            Expr::Product(leaked(share(left)), leaked(part))
        }
        Formula::Rest | Formula::NoCounter => above.iter().fold(Expr::Number(1.0), |left, row| {
            Expr::Difference(leaked(left), leaked(Expr::Node(row.metric.id)))
        }),
        Formula::Of(expr) => moved_expr(expr, moved),
    }
}

fn moved_expr(expr: &Expr, moved: &dyn Fn(usize) -> usize) -> Expr {
    let one = |expr: &Expr| -> &'static Expr { Box::leak(Box::new(moved_expr(expr, moved))) };
    match expr {
        Expr::Number(number) => Expr::Number(*number),
        Expr::Input(input) => Expr::Input(moved(*input)),
        Expr::Slots => Expr::Slots,
        Expr::Node(id) => Expr::Node(*id),
        Expr::Sum(a, b) => Expr::Sum(one(a), one(b)),
        Expr::Difference(a, b) => Expr::Difference(one(a), one(b)),
        Expr::Product(a, b) => Expr::Product(one(a), one(b)),
        Expr::Quotient(a, b) => Expr::Quotient(one(a), one(b)),
        Expr::Least(a, b) => Expr::Least(one(a), one(b)),
        Expr::Greatest(a, b) => Expr::Greatest(one(a), one(b)),
        Expr::Part(a, b) => Expr::Part(one(a), one(b)),
        Expr::IfLess(all) => {
            Expr::IfLess(Box::leak(Box::new([0, 1, 2, 3].map(|k| moved_expr(&all[k], moved)))))
        }
    }
}
