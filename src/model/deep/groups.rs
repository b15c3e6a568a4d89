//! Which nodes of a deeper tree share a group. A group has level 1 by general-purpose counters, as the core's own row counts it, and
//! what fits beside it: children of one node first, then those of other nodes of the same level.
#![forbid(unsafe_code)]

mod companions;
mod formulas;
mod named;

use super::DeepNodeInfo;
use super::facts::DeepFacts;
use super::value::{Taken, Value};
use crate::cpu::deep::{DeepEvent, DeepNode, DeepText, DeepUnit};
use crate::model::metrics::{self, Metric, TD_NODE_NONE, TD_UNIT_CLOCKS, TD_UNIT_OPERATIONS, TD_UNIT_SLOTS};
use crate::model::tree::{Clocks, Expr, Formula, Input, NodeRow, Tree};
use crate::model::{Counters, Event, MOST_INPUTS, MOST_NODES, Model, NoDeeper};
use crate::sys::cpu::ARM64;
use crate::sys::short;
pub(super) use companions::plan_companions;
use formulas::{as_share, inputs_of, leaked, moved_formula};
pub(super) use named::plan_nodes;
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
        rows.iter().position(|row| row.metric().field() == name && !matches!(row.formula, Formula::NoCounter))
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
        let own = self.own_nodes(&draft.taken.nodes).into_iter().map(|place| rows[place].metric().field());
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
            unit: unit_of(node.unit),
            is_estimated: node.is_estimated,
        });
    }
    let drafts = drafts(core, &needs, facts);
    let groups = drafts.iter().map(|draft| core.group(draft, &needs)).collect();
    DeepPlan { groups, nodes }
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
        let own_id = |place: usize| own_tree.nodes[place].id;
        let mut nodes: Vec<&NodeNeeds> = draft.nodes.iter().map(|place| &needs[*place]).collect();
        short::sort_by_key(&mut nodes, |need| need.node.level);
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
        let sums = leaked(tree.as_sums());
        let tree = if is_of_nodes { tree } else { tree.with_all_inputs() }.with_sums(sums);
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
        if !rows.iter().any(|row| row.id == metric.id) {
            push(rows, row_of(parent, *metric, Formula::NoCounter));
        }
    }
}

fn unit_of(unit: DeepUnit) -> u32 {
    match unit {
        DeepUnit::Slots => TD_UNIT_SLOTS,
        DeepUnit::Cycles => TD_UNIT_CLOCKS,
        DeepUnit::Operations => TD_UNIT_OPERATIONS,
    }
}

/// A row; `push` tells its parent.
fn row_of(node: &DeepNode, metric: Metric, formula: Formula) -> NodeRow {
    let parent = node.parent.as_ref();
    let parent = parent.and_then(|parent| metrics::ALL.iter().find(|metric| metric.field() == parent));
    NodeRow {
        id: metric.id,
        parent: parent.map_or(TD_NODE_NONE, |parent| parent.id),
        above: None,
        level: node.level,
        unit: unit_of(node.unit),
        formula,
    }
}

/// Adds a row below its parent.
fn push(rows: &mut Vec<NodeRow>, row: NodeRow) {
    let above = rows.iter().position(|other| other.id == row.parent).map(|place| place as u8);
    rows.push(NodeRow { above, ..row });
}
