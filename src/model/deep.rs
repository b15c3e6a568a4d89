//! Trees of deeper levels (`cpus/deep/*.txt`): rows that are made where somebody asks for them, of this CPU's counters as they are. Each
//! counts level 1 as the core's own row does by general-purpose counters, and beside it what some deeper nodes take.
#![forbid(unsafe_code)]

mod bottleneck;
mod companion;
mod facts;
mod figures;
mod groups;
mod named;
mod turns;
mod value;

use super::metrics::{Metric, TD_NODE_NONE, TD_UNIT_SLOTS};
use super::{Counters, Counting, Event, Model, PlacedRow, Variant, at, fingerprint, place};
use crate::cpu::deep::{DeepBottleneck, DeepEvent, DeepText};
use crate::sys::cpu::{self, Identity};
use crate::sys::late::LateRef;
pub use bottleneck::{Bottleneck, Bounded};
pub use companion::{CompanionMetric, CountPlace, CountedCompanions, GivenMetric, GivenMetrics, TimedEvent};
pub(crate) use facts::DeepFacts;
#[cfg(test)]
pub(crate) use figures::{
    PlannedFigures, planned_companions, planned_companions_of_cpu, planned_given_of_cpu,
};
pub use figures::{PublishedNames, companions, counted_companions, published_names};
use groups::DeepCore;
#[cfg(test)]
pub(crate) use named::planned_nodes;
pub(crate) use named::row_of_nodes;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
pub use turns::{MOST_NODES_IN_TURNS, MOST_TURNS, RegionTurn, region_turns};

include!(concat!(env!("OUT_DIR"), "/deep.rs"));

/// As many rows as a sample can name.
const MOST_ROWS: usize = 256;

/// A tree of deeper levels, and the groups that count it.
#[derive(Debug)]
pub struct DeepTree {
    /// Which version of TMA it is of, and of which day the table is: "5.2, table of 2026-06-02".
    pub version: String,
    /// General-purpose counters that a thread has for it here.
    pub counters: usize,
    groups: Vec<DeepGroup>,
    nodes: Vec<DeepNodeInfo>,
    bottlenecks: Vec<DeepBottleneck>,
    locating: Vec<LocatingEvent>,
}

/// An event that locates nodes if it is sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocatingEvent {
    /// Its maker's name.
    pub name: String,
    /// Of perf_event_attr, of the PMU whose cores have the tree.
    pub config: u64,
    /// The same.
    pub config1: u64,
    /// The CPU can sample the instruction itself (PEBS), and not one after it.
    pub is_precise: bool,
    /// The published number of such events from one sample to the next.
    pub period: u64,
    /// One counter alone counts it: no second event of its kind counts at the same time.
    pub has_one_counter: bool,
}

/// No published tree is deeper.
pub const DEEPEST_PUBLISHED: u32 = 6;

/// A group of events, and what it tells.
#[derive(Debug)]
pub struct DeepGroup {
    /// [`Options::group`](crate::Options::group).
    pub number: u32,
    /// Deepest level.
    pub level: u32,
    /// The nodes that it tells besides level 1.
    pub nodes: Vec<u32>,
    row: u32,
}

impl DeepGroup {
    /// The place of its row.
    pub(crate) fn place(&self) -> u8 {
        self.row as u8
    }
}

/// What is known of a node besides its formula.
#[derive(Debug)]
pub(crate) struct DeepNodeInfo {
    pub metric: Metric,
    pub parent: u32,
    pub level: u32,
    /// See [`DeepTree::threshold`].
    pub above: Option<f64>,
    /// See [`DeepTree::is_alone`].
    pub is_alone: bool,
    pub samples: Vec<String>,
    /// Why no group tells it; "": one does, or the core's own levels have it.
    pub untold: String,
    /// See [`DeepTree::timed`].
    pub takes_latencies: bool,
    /// See [`DeepTree::is_part`].
    pub is_part: bool,
    /// See [`DeepTree::unit`].
    pub unit: u32,
    /// Latencies are taken for granted: it may be more than the node above it.
    pub is_estimated: bool,
}

/// `Options::group` of groups that no tree numbers: this, and the place of the row.
const FIRST_MADE: u32 = 1 << 16;

/// How many rows the table has.
const FIRST: usize = {
    let (mut rows, mut part) = (0, 0);
    while part < super::TABLE.len() {
        (rows, part) = (rows + super::TABLE[part].len(), part + 1);
    }
    rows
};
static ROWS: [LateRef<Model>; MOST_ROWS] = [const { LateRef::new(None) }; MOST_ROWS];
/// One more than the place of the last row.
static END: AtomicUsize = AtomicUsize::new(FIRST);
static TREES: [LateRef<DeepTree>; TEXTS.len()] = [const { LateRef::new(None) }; TEXTS.len()];

/// Rows that were made, with their places.
pub(super) fn rows() -> impl Iterator<Item = PlacedRow> {
    (FIRST..END.load(Acquire)).filter_map(|place| Some((place as u32, row_at(place)?)))
}

pub(super) fn row_at(place: usize) -> Option<&'static Model> {
    ROWS.get(place)?.get()
}

/// The tree of the CPU that runs this; None: none is published, or the core is not counted.
#[must_use]
pub fn deep_tree() -> Option<&'static DeepTree> {
    of(&cpu::identify())
}

/// The tree of a CPU. That of the first one is remembered. (Whoever finds the lock held looks: in a forked child that is for ever.)
pub(crate) fn of(cpu: &Identity) -> Option<&'static DeepTree> {
    static FIRST: Mutex<Option<(Identity, Option<&'static DeepTree>)>> = Mutex::new(None);
    let Ok(mut first) = FIRST.try_lock() else { return find(cpu) };
    match &*first {
        Some((other, tree)) if other == cpu => *tree,
        Some(_) => find(cpu),
        None => first.insert((cpu.clone(), find(cpu))).1,
    }
}

fn find(cpu: &Identity) -> Option<&'static DeepTree> {
    // (some have companion figures alone: the core's own text has all nodes)
    let (place, text) = text_of(cpu).filter(|(_, text)| !text.nodes.is_empty())?;
    load(place, &text)
}

/// The text of a CPU, with its place.
fn text_of(cpu: &Identity) -> Option<(usize, DeepText)> {
    let of_cpu = |text: &DeepText| text.is_of(&cpu.vendor, cpu.family, cpu.model, cpu.stepping);
    // (of several the one of the latest stepping)
    let lines = lines()?;
    let found = (0..TEXTS.len()).filter_map(|place| Some((place, read_of(&lines, place)?)));
    found.filter(|(_, text)| of_cpu(text)).max_by_key(|(_, text)| text.from)
}

/// The tree of a text by its name in cpus/deep ("spr"), whichever CPU runs this.
#[must_use]
pub fn deep_tree_of(text: &str) -> Option<&'static DeepTree> {
    let place = TEXTS.iter().position(|(own, _)| *own == text)?;
    TREES[place].get().or_else(|| load(place, &read(place)?))
}

/// Makes the rows of the tree to which one of this name belongs.
pub(super) fn load_of(name: &str) -> Option<()> {
    let (text, _) = name.split_once(", ")?;
    deep_tree_of(text).map(|_| ())
}

/// The lines of all texts.
fn lines() -> Option<String> {
    const MOST_BYTES: usize = 1 << 20;
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(LINES, MOST_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

/// A text of these lines.
fn read_of(lines: &str, place: usize) -> Option<DeepText> {
    let lines: Vec<&str> = lines.lines().collect();
    let own: Option<Vec<&str>> =
        TEXTS[place].1.iter().map(|line| lines.get(usize::from(*line)).copied()).collect();
    DeepText::read(&own?.join("\n")).ok()
}

fn read(place: usize) -> Option<DeepText> {
    read_of(&lines()?, place)
}

/// The events of a text, with names that stay; made once.
fn events_of(place: usize, text: &DeepText) -> &'static [Event] {
    static EVENTS: [LateRef<Vec<Event>>; TEXTS.len()] = [const { LateRef::new(None) }; TEXTS.len()];
    let made = || Box::leak(Box::new(text.events.iter().map(groups::event_of).collect()));
    EVENTS[place].get().unwrap_or_else(|| EVENTS[place].put_first(made()))
}

/// The core of a text by its general-purpose counters.
fn own_of(text: &DeepText) -> Option<(&'static Model, &'static Counters)> {
    let own = Identity {
        vendor: text.vendor.clone(),
        family: text.family,
        model: *text.models.first()?,
        stepping: text.from,
        ..Identity::default()
    };
    by_its_counters(&own)
}

/// A CPU's core by its general-purpose counters.
fn by_its_counters(cpu: &Identity) -> Option<(&'static Model, &'static Counters)> {
    let (_, own) = super::by_counters(cpu)?;
    match own.counting {
        Counting::Counters(counters) => Some((own, counters)),
        _ => None,
    }
}

/// The tree of a text. (Whoever else makes it at the same time makes rows for nothing.)
fn load(place: usize, text: &DeepText) -> Option<&'static DeepTree> {
    if let Some(made) = TREES[place].get() {
        return Some(made);
    }
    let (own, counters) = own_of(text)?;
    let core = DeepCore::new(text, events_of(place, text), own, counters);
    let tree = make(TEXTS[place].0, &core, own, &DeepFacts::of_this_machine(own))?;
    Some(TREES[place].put_first(Box::leak(Box::new(tree))))
}

/// Puts rows behind all that there are, with these names. The place of the first; None: there is no room.
fn put_rows(
    own: &'static Model,
    groups: &[&'static Counters],
    name: impl Fn(usize) -> String,
) -> Option<usize> {
    let room = |end: usize| Some(end + groups.len()).filter(|end| *end <= MOST_ROWS);
    let first = END.fetch_update(Relaxed, Relaxed, room).ok()?;
    for (k, counters) in groups.iter().enumerate() {
        let row: &'static Model = Box::leak(Box::new(Model {
            core: name(k).leak(),
            variant: Variant::Deep,
            counting: Counting::Counters(counters),
            untold: &[],
            proved: "",
            ..*own
        }));
        place::put(first + k, counters.tree);
        fingerprint::put(first + k, row);
        ROWS[first + k].put(Some(row));
    }
    Some(first)
}

/// Makes the rows of a tree.
fn make(name: &str, core: &DeepCore, own: &'static Model, facts: &DeepFacts) -> Option<DeepTree> {
    let (text, plan) = (core.text, groups::plan(core, facts));
    let rows: Vec<&'static Counters> = plan.groups.iter().map(|group| group.counters).collect();
    let title = |k: usize| plan.groups[k].told.first().map(Metric::title).unwrap_or_default();
    let first = put_rows(own, &rows, |k| format!("{name}, {}", title(k)))?;
    let groups = plan.groups.iter().enumerate().map(|(k, group)| DeepGroup {
        number: k as u32 + 1,
        level: group.counters.tree.depth(),
        nodes: group.told.iter().map(|metric| metric.id).collect(),
        row: (first + k) as u32,
    });
    let groups = groups.collect();
    let bottlenecks = text.bottlenecks.clone();
    let locating = text.events.iter().filter(|event| event.period > 0).map(LocatingEvent::of).collect();
    let (version, counters) = (text.version.clone(), facts.counters);
    Some(DeepTree { version, counters, groups, nodes: plan.nodes, bottlenecks, locating })
}

impl LocatingEvent {
    fn of(event: &DeepEvent) -> LocatingEvent {
        let DeepEvent { name, config, config1, is_precise, period, counters, .. } = event.clone();
        let has_one_counter = counters.count_ones() == 1;
        LocatingEvent { name, config, config1, is_precise, period, has_one_counter }
    }
}

impl DeepTree {
    /// Its groups, those of level 2 (where some are not whole) before those of level 3, and so on.
    #[must_use]
    pub fn groups(&self) -> &[DeepGroup] {
        &self.groups
    }

    /// Those that measure these nodes; or where none are named, all nodes down to a level, with what bottlenecks take, too, where that is the last.
    #[must_use]
    pub fn groups_of(&self, level: u32, named: &[u32]) -> Vec<&DeepGroup> {
        let is_wanted = |node: &u32| match named {
            [] => level >= DEEPEST_PUBLISHED || !self.is_part(*node),
            named => named.contains(node),
        };
        let has = |group: &&DeepGroup| group.level <= level && group.nodes.iter().any(is_wanted);
        self.groups.iter().filter(has).collect()
    }

    /// Its nodes, parents before children.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.nodes.iter().filter(|node| !node.is_part).map(|node| node.metric.id)
    }

    /// The node of this name, with "tma_" or without.
    ///
    /// # Errors
    /// There is none, or it cannot be counted here, and why.
    pub fn node_of_name(&self, name: &str) -> Result<u32, String> {
        let id = super::metric_of_name(name).map(|metric| metric.id).filter(|id| self.level(*id) > 0);
        let id =
            id.ok_or_else(|| format!("{name} is no node of this CPU's tree (`topdown list --nodes`)"))?;
        match self.untold().find(|(untold, _)| *untold == id) {
            Some((_, why)) => Err(format!("{name} cannot be counted here: {why}")),
            None => Ok(id),
        }
    }

    /// Whether this is an estimate, which may be more than the node of which it is a part.
    #[must_use]
    pub fn is_estimated(&self, id: u32) -> bool {
        self.node(id).is_some_and(|node| node.is_estimated)
    }

    /// Whether this is no node of the tree, but what bottlenecks take besides.
    #[must_use]
    pub fn is_part(&self, id: u32) -> bool {
        self.node(id).is_some_and(|node| node.is_part)
    }

    fn node(&self, id: u32) -> Option<&DeepNodeInfo> {
        self.nodes.iter().find(|node| node.metric.id == id)
    }

    /// The node of which this one is a part; TD_NODE_NONE for roots, and for what is no node of it.
    #[must_use]
    pub fn parent(&self, id: u32) -> u32 {
        self.node(id).map_or(TD_NODE_NONE, |node| node.parent)
    }

    /// The node's level; 0: it is none of the tree.
    #[must_use]
    pub fn level(&self, id: u32) -> u32 {
        self.node(id).filter(|node| !node.is_part).map_or(0, |node| node.level)
    }

    /// The share, 0 to 1, above which the node is flagged, if its parents are, too, or it `is_alone`.
    #[must_use]
    pub fn threshold(&self, id: u32) -> Option<f64> {
        self.node(id)?.above
    }

    /// Whether the node is flagged above its threshold whether its parents are or not.
    #[must_use]
    pub fn is_alone(&self, id: u32) -> bool {
        self.node(id).is_some_and(|node| node.is_alone)
    }

    /// Events that locate the node if they are sampled.
    pub fn samples(&self, id: u32) -> impl Iterator<Item = &LocatingEvent> {
        let names = self.node(id).map_or(&[][..], |node| &node.samples);
        names.iter().filter_map(|name| self.locating.iter().find(|event| event.name == *name))
    }

    /// The nearest node from this one upwards that an event locates; TD_NODE_NONE: there is none.
    #[must_use]
    pub fn located(&self, id: u32) -> u32 {
        match self.samples(id).next() {
            None if id != TD_NODE_NONE => self.located(self.parent(id)),
            _ => id,
        }
    }

    /// What the node is a share of (TD_UNIT_*); TD_UNIT_SLOTS for what is none of it.
    #[must_use]
    pub fn unit(&self, id: u32) -> u32 {
        self.node(id).map_or(TD_UNIT_SLOTS, |node| node.unit)
    }

    /// The nodes that cannot be counted, but follow from retire latencies, which can be sampled.
    pub fn timed(&self) -> impl Iterator<Item = u32> + '_ {
        let timed = self.nodes.iter().filter(|node| node.takes_latencies && !node.is_part);
        timed.map(|node| node.metric.id)
    }

    /// Whether this, a node or a part, cannot be counted here.
    #[must_use]
    pub fn is_untold(&self, id: u32) -> bool {
        self.node(id).is_some_and(|node| !node.untold.is_empty())
    }

    /// Nodes that cannot be counted here, with the reason.
    pub fn untold(&self) -> impl Iterator<Item = (u32, &str)> {
        let untold = self.nodes.iter().filter(|node| !node.untold.is_empty() && !node.is_part);
        untold.map(|node| (node.metric.id, &node.untold[..]))
    }
}

/// Whether the tree of the CPU that runs this has nodes below this one.
pub(super) fn has_children(node: u32) -> bool {
    deep_tree().is_some_and(|tree| tree.nodes.iter().any(|other| other.parent == node && !other.is_part))
}

/// The row that tells the most nodes below this one, of the CPU that runs this, if this core is its own.
pub(super) fn row_below(own: &Model, node: u32) -> Option<PlacedRow> {
    let tree = deep_tree()?;
    let told = |group: &&DeepGroup| {
        group.nodes.iter().filter(|id| tree.parent(**id) == node && !tree.is_part(**id)).count()
    };
    let most = tree.groups.iter().rev().max_by_key(told).filter(|group| told(group) > 0)?;
    let row = at(most.row).filter(|row| row.base == own.base)?;
    Some((most.row, row))
}

/// The row of a group of the tree of this CPU, by its number.
pub(crate) fn row_of_group(cpu: &Identity, number: u32) -> Option<PlacedRow> {
    if let Some(row) = number.checked_sub(FIRST_MADE) {
        return Some((row, row_at(row as usize)?));
    }
    let tree = of(cpu)?;
    let row = tree.groups.get((number as usize).checked_sub(1)?)?.row;
    Some((row, at(row)?))
}

/// The groups that a text of this name has on such a machine, and what each tells besides level 1.
#[cfg(test)]
pub(crate) fn planned(name: &str, facts: &DeepFacts) -> (DeepText, Vec<(&'static Counters, Vec<Metric>)>) {
    let (place, text, own, counters) = text_of_name(name);
    let plan = groups::plan(&DeepCore::new(&text, events_of(place, &text), own, counters), facts);
    let told: usize = plan.groups.iter().map(|group| group.told.len()).sum();
    let untold = plan.nodes.iter().filter(|node| !node.untold.is_empty()).count();
    let own_levels = plan.nodes.iter().filter(|node| {
        super::tree_of_row(own)
            .is_some_and(|tree| tree.nodes.iter().any(|row| row.id == node.metric.id && row.is_measured(2)))
    });
    assert_eq!(told + untold + own_levels.count(), text.nodes.len(), "{name}");
    (text, plan.groups.into_iter().map(|group| (group.counters, group.told)).collect())
}

#[cfg(test)]
fn text_of_name(name: &str) -> (usize, DeepText, &'static Model, &'static Counters) {
    let place = TEXTS.iter().position(|(own, _)| *own == name).unwrap();
    let text = read(place).unwrap();
    let (own, counters) = own_of(&text).unwrap();
    (place, text, own, counters)
}
