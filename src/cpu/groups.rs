//! Which groups of a core's events fit its general-purpose counters, and what of its tree each of them tells.
//!
//! Levels are counted whole as far as they fit. Deeper children of one node are a family; each family that fits has
//! a group of its own beside level 1, and families below one node share a group where both fit. Of a family that does not fit,
//! the first children are counted that do. Slots of the core's other thread are left out where that makes room: such a group is for
//! cores that run one thread each.

use super::expression::{Expression, Operator};
use super::text::{CpuText, NodeText, NodeValue};
use std::collections::BTreeSet;

/// A sample has room for no more events of a group.
const MOST_EVENTS: usize = 15;
/// No event has more slots for each that it counts.
const MOST_SLOTS: f64 = 16.0;

/// Events that are counted together.
#[derive(Clone, Debug)]
pub struct CounterGroup {
    /// The node below which it tells what whole levels do not; None: whole levels.
    pub subtree: Option<String>,
    /// Right where each core runs one thread.
    pub alone: bool,
    /// By their places in the text.
    pub events: Vec<usize>,
    /// By their places in the text, each with how its value follows; None: no counter is left for it.
    pub nodes: Vec<(usize, Option<GroupFormula>)>,
    /// Why it tells no more; "": there is no more.
    pub no_deeper: String,
    /// Where groups of subtrees tell more: what they do not tell either.
    pub besides_subtrees: Option<String>,
}

/// How a node's value follows from events, by their places in the group.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupFormula {
    /// Slots that the event counted.
    Slots(usize),
    /// Slots that the first counted, less those that the others did.
    Balance(Vec<usize>, Vec<usize>),
    /// Slots that one counted, less those of the first others and with those of the last, which correct it.
    Corrected(usize, Vec<usize>, Vec<usize>),
    /// Slots that no stall took: all but those of the first and with those of the second, times the third by the fourth.
    Retired(Vec<usize>, Vec<usize>, usize, usize),
    Rest,
    /// A share of all slots, or of the cycles.
    Of(Expression),
}

/// Whether events are counted by which the published metrics correct others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrectionEvents {
    Counted,
    LeftOut,
}

/// The groups of a core.
pub struct CounterGroups {
    /// The levels that one group holds.
    pub whole: CounterGroup,
    /// The same without what corrects others, if there is such.
    pub uncorrected: Option<CounterGroup>,
    /// The same where each core runs one thread, if that takes fewer counters.
    pub one_thread: Option<CounterGroup>,
    /// Of what is below.
    pub subtrees: Vec<CounterGroup>,
    /// Nodes that none of these tells.
    pub untold: Vec<String>,
}

/// Children of one node that whole levels do not tell.
struct NodeSiblings {
    parent: String,
    grandparent: Option<String>,
    children: Vec<usize>,
}

/// Which nodes a group tells, and by which events.
struct Needs<'t> {
    text: &'t CpuText,
    corrections: CorrectionEvents,
    /// The core runs one thread.
    alone: bool,
}

impl CounterGroups {
    /// Those of a core that is counted by general-purpose counters.
    ///
    /// # Errors
    /// Level 1 does not fit, or a value is neither slots nor a share.
    pub fn of(text: &CpuText) -> Result<CounterGroups, String> {
        let with = |corrections, alone| Needs { text, corrections, alone };
        let both = with(CorrectionEvents::Counted, text.one_thread);
        let whole = (1..=text.depth()).rev().find(|level| both.fits(&both.levels(*level)));
        let whole = whole.ok_or("level 1 does not fit")?;
        let of_whole =
            |plan: &Needs| plan.group(None, &plan.levels(whole), |node| node.level <= whole, |_| true);
        let has_other_thread = text.nodes.iter().any(|node| node.is_of_other_thread);
        let is_corrected = text.events.iter().any(|event| event.corrects);
        let mut groups = CounterGroups {
            whole: of_whole(&both)?,
            uncorrected: match is_corrected {
                true => Some(of_whole(&with(CorrectionEvents::LeftOut, text.one_thread))?),
                false => None,
            },
            one_thread: match has_other_thread {
                true => Some(of_whole(&with(CorrectionEvents::Counted, true))?),
                false => None,
            },
            subtrees: Vec::new(),
            untold: Vec::new(),
        };
        let (bins, untold): (Vec<Bin>, Vec<Bin>) =
            bins(text, whole).into_iter().partition(|bin| !bin.children.is_empty());
        groups.subtrees = bins.iter().map(|bin| bin.group(whole)).collect::<Result<_, _>>()?;
        let is_told = |place: usize| {
            let tells = |group: &&CounterGroup| {
                group.nodes.iter().any(|(at, formula)| *at == place && formula.is_some())
            };
            groups.subtrees.iter().chain([&groups.whole]).any(|group| tells(&group))
        };
        let not = (0..text.nodes.len()).filter(|place| !is_told(*place));
        groups.untold = not.map(|place| text.nodes[place].name.clone()).collect();
        let whole_and_fewer = [&mut groups.whole].into_iter().chain(&mut groups.one_thread);
        whole_and_fewer.for_each(|group| {
            group.no_deeper = no_deeper(&both, whole);
            group.besides_subtrees = besides_subtrees(&bins, &untold);
        });
        Ok(groups)
    }
}

/// Why whole levels end at this one.
fn no_deeper(plan: &Needs, whole: u32) -> String {
    let text = plan.text;
    let left_out: Vec<String> = text.left_out.iter().map(|name| title(name)).collect();
    let without = match &left_out[..] {
        [] => String::new(),
        [one] => format!(": {one} is left out"),
        [others @ .., last] => format!(": {} and {last} are left out", others.join(", ")),
    };
    let limit = match text.counters_at_least {
        true => format!("no document tells of more than {}", text.counters),
        false => format!("the core has {}", text.counters),
    };
    let takes = |level: u32| {
        let wanted = plan.counters(&plan.needed(|node| node.level <= level));
        format!("level {level} takes {wanted} general counters")
    };
    match (left_out.is_empty(), whole < text.depth()) {
        (true, false) => text.no_deeper.clone(),
        (true, true) => format!("{}, and {limit}", takes(whole + 1)),
        (false, false) => format!("{}, and {limit}{without}", takes(whole)),
        (false, true) => format!("{}, and {limit}{without}; {}", takes(whole), takes(whole + 1)),
    }
}

/// What no group of a subtree tells, if there are such groups.
fn besides_subtrees(bins: &[Bin], untold: &[Bin]) -> Option<String> {
    let not =
        |bin: &Bin| format!(", but not what is below {}, which takes {}", title(&bin.name), bin.wanted());
    (!bins.is_empty()).then(|| untold.iter().map(not).collect())
}

/// A node's name in words.
fn title(name: &str) -> String {
    name.replace('_', " ")
}

/// The groups of what is below whole levels, each of one family or of several.
fn bins(text: &CpuText, whole: u32) -> Vec<Bin<'_>> {
    let mut bins: Vec<Bin> = Vec::new();
    for family in families(text, whole) {
        let attempt =
            |alone| Bin::new(Needs { text, corrections: CorrectionEvents::Counted, alone }, &family);
        let (both, alone) = (attempt(text.one_thread), attempt(true));
        let bin = if alone.is_all() && !both.is_all() { alone } else { both };
        if !bins.last_mut().is_some_and(|last| last.takes(&bin)) {
            bins.push(bin);
        }
    }
    // what is left of a family is told with another below the same node, if that has room
    for place in 0..bins.len() {
        for child in std::mem::take(&mut bins[place].left) {
            let grandparent = bins[place].grandparent.clone();
            let is_other = |other: &Bin| grandparent.is_some() && other.grandparent == grandparent;
            let others = (0..bins.len()).filter(|other| *other != place && is_other(&bins[*other]));
            let with = others.into_iter().find(|other| bins[*other].has_room_for(child));
            let name = title(&text.nodes[child].name);
            match with {
                Some(other) => {
                    bins[other].add(child);
                    let elsewhere = format!("{name} is counted with {}", title(&bins[other].name));
                    bins[place].notes.push(elsewhere);
                }
                None => bins[place].is_cut = true,
            }
        }
    }
    bins
}

fn families(text: &CpuText, whole: u32) -> Vec<NodeSiblings> {
    let nodes = &text.nodes;
    let places = |wanted: &dyn Fn(&NodeText) -> bool| {
        (0..nodes.len()).filter(|place| wanted(&nodes[*place])).collect::<Vec<_>>()
    };
    let has_parent = |node: &NodeText, parent: &NodeText| node.parent.as_ref() == Some(&parent.name);
    let is_left_out = |node: &NodeText| {
        text.left_out.contains(&node.name) && !nodes.iter().any(|child| has_parent(child, node))
    };
    let mut families = Vec::new();
    for parent in nodes {
        let below = |node: &NodeText| has_parent(node, parent) && (node.level > whole || is_left_out(node));
        let children = places(&below);
        if !children.is_empty() {
            let (parent, grandparent) = (parent.name.clone(), parent.parent.clone());
            families.push(NodeSiblings { parent, grandparent, children });
        }
    }
    families
}

/// A group of families.
struct Bin<'t> {
    plan: Needs<'t>,
    /// The family's parent; of several families, that of their parents.
    name: String,
    grandparent: Option<String>,
    /// Those that it tells, their parents' other children, and those for which it has no counter.
    children: Vec<usize>,
    listed: Vec<usize>,
    left: Vec<usize>,
    events: BTreeSet<usize>,
    /// Some of `left` are told by no group.
    is_cut: bool,
    notes: Vec<String>,
}

impl<'t> Bin<'t> {
    fn new(plan: Needs<'t>, family: &NodeSiblings) -> Bin<'t> {
        let mut bin = Bin {
            events: plan.levels(1),
            plan,
            name: family.parent.clone(),
            grandparent: family.grandparent.clone(),
            children: Vec::new(),
            listed: family.children.clone(),
            left: Vec::new(),
            is_cut: false,
            notes: Vec::new(),
        };
        for child in &family.children {
            match bin.has_room_for(*child) {
                true => bin.add(*child),
                false => bin.left.push(*child),
            }
        }
        bin
    }

    /// How many counters all of it would take.
    fn wanted(&self) -> usize {
        let mut all = self.plan.levels(1);
        self.listed.iter().for_each(|child| all.extend(self.plan.needs(*child)));
        self.plan.counters(&all)
    }

    fn is_all(&self) -> bool {
        self.left.is_empty()
    }

    fn with(&self, child: usize) -> BTreeSet<usize> {
        self.events.union(&self.plan.needs(child)).copied().collect()
    }

    fn has_room_for(&self, child: usize) -> bool {
        self.plan.fits(&self.with(child))
    }

    fn add(&mut self, child: usize) {
        self.events = self.with(child);
        self.children.push(child);
        if !self.listed.contains(&child) {
            self.listed.push(child);
        }
    }

    /// Whether another was put into this one, as both are below one node and fit.
    fn takes(&mut self, other: &Bin) -> bool {
        let events = self.events.union(&other.events).copied().collect();
        let is_one = self.grandparent.is_some() && self.grandparent == other.grandparent;
        if !is_one
            || self.plan.alone != other.plan.alone
            || !self.is_all()
            || !other.is_all()
            || !self.plan.fits(&events)
        {
            return false;
        }
        (self.events, self.name) = (events, self.grandparent.clone().unwrap_or_default());
        self.children.extend(&other.children);
        self.listed.extend(&other.listed);
        true
    }

    fn group(&self, whole: u32) -> Result<CounterGroup, String> {
        let nodes = &self.plan.text.nodes;
        let place_of = |node: &NodeText| nodes.iter().position(|other| other.name == node.name);
        let is_child = |node: &NodeText| place_of(node).is_some_and(|place| self.listed.contains(&place));
        // what it is for: its children, the nodes above them, and the siblings of those
        let is_above =
            |node: &NodeText| self.listed.iter().any(|child| is_below(nodes, &nodes[*child], node));
        let above: Vec<Option<&String>> =
            nodes.iter().filter(|node| is_above(node)).map(|node| node.parent.as_ref()).collect();
        let is_told = |node: &NodeText| is_child(node) || above.contains(&node.parent.as_ref());
        // (levels 1 and 2 are listed of every core, told or not)
        let is_listed = |node: &NodeText| node.level <= whole.max(2) || is_told(node);
        let mut group = self.plan.group(Some(&self.name), &self.events, is_listed, is_told)?;
        let mut notes = self.notes.clone();
        if self.is_cut {
            notes.insert(0, format!("{} general counters hold no more of it", self.plan.text.counters));
        }
        group.no_deeper = notes.join("; ");
        Ok(group)
    }
}

/// Whether a node is below another.
fn is_below(nodes: &[NodeText], node: &NodeText, other: &NodeText) -> bool {
    node.parent.as_ref().is_some_and(|parent| {
        *parent == other.name
            || nodes.iter().any(|above| above.name == *parent && is_below(nodes, above, other))
    })
}

impl Needs<'_> {
    /// How many general-purpose counters events take, with what leads them. Cycles have a counter of their own on arm64, if another event
    /// leads.
    fn counters(&self, events: &BTreeSet<usize>) -> usize {
        let Some(leader) = self.text.leaders.first() else { return events.len() };
        let is_arm64 = self.text.cores.iter().any(|core| core.family == 0);
        let has_own = |event: &&usize| {
            let config = self.text.events[**event].config;
            let is_clock = self.text.clock.as_ref().is_some_and(|clock| clock.config == config);
            is_arm64 && is_clock && leader.event.config != config
        };
        events.iter().filter(|event| !has_own(event)).count() + usize::from(!leader.fixed)
    }

    fn fits(&self, events: &BTreeSet<usize>) -> bool {
        self.counters(events) <= self.text.counters && events.len() <= MOST_EVENTS
    }

    /// Whether the node is told of this core at all.
    fn is_there(&self, node: &NodeText) -> bool {
        !(self.alone && node.is_of_other_thread)
    }

    /// What all nodes down to this level need, but those that are left out.
    fn levels(&self, level: u32) -> BTreeSet<usize> {
        self.needed(|node| node.level <= level && !self.text.left_out.contains(&node.name))
    }

    fn needed(&self, wanted: impl Fn(&NodeText) -> bool) -> BTreeSet<usize> {
        let nodes = &self.text.nodes;
        let wanted = (0..nodes.len()).filter(|place| self.is_there(&nodes[*place]) && wanted(&nodes[*place]));
        wanted.flat_map(|place| self.needs(place)).collect()
    }

    /// Events that a node needs: its own, those of nodes that it follows from, and those of what it is a part of.
    fn needs(&self, place: usize) -> BTreeSet<usize> {
        let text = self.text;
        let node = &text.nodes[place];
        let place_of = |name: &str| text.nodes.iter().position(|node| node.name == name);
        let mut needs: BTreeSet<usize> = match &node.parent {
            Some(parent) => place_of(parent).map(|parent| self.needs(parent)).unwrap_or_default(),
            None => BTreeSet::new(),
        };
        match &node.value {
            NodeValue::Rest => {
                let siblings = (0..text.nodes.len()).filter(|other| {
                    *other != place
                        && text.nodes[*other].parent == node.parent
                        && self.is_there(&text.nodes[*other])
                });
                siblings.for_each(|sibling| needs.extend(self.own(sibling)));
            }
            NodeValue::Expression(_) => needs.extend(self.own(place)),
        }
        needs
    }

    /// Events in a node's value, and those of the nodes in it.
    fn own(&self, place: usize) -> BTreeSet<usize> {
        let text = self.text;
        let Some(expression) = text.nodes[place].expression() else { return BTreeSet::new() };
        let mut needs = BTreeSet::new();
        for name in expression.names() {
            if let Some(event) = text.events.iter().position(|event| event.name == name) {
                if self.corrections == CorrectionEvents::Counted || !text.events[event].corrects {
                    needs.insert(event);
                }
            } else if let Some(node) = text.nodes.iter().position(|node| node.name == name) {
                needs.extend(self.needs(node));
            }
        }
        needs
    }

    /// The group of these events, with these nodes, of which these are told, where the events are those that they need.
    fn group(
        &self,
        subtree: Option<&str>,
        events: &BTreeSet<usize>,
        is_listed: impl Fn(&NodeText) -> bool,
        is_told: impl Fn(&NodeText) -> bool,
    ) -> Result<CounterGroup, String> {
        let events: Vec<usize> = events.iter().copied().collect();
        let reader = FormulaMaker { plan: self, events: &events };
        let mut nodes = Vec::new();
        for (place, node) in self.text.nodes.iter().enumerate() {
            if self.is_there(node) && is_listed(node) {
                let is_counted = self.needs(place).iter().all(|event| events.contains(event));
                let formula = if is_counted && is_told(node) { Some(reader.formula(node)?) } else { None };
                nodes.push((place, formula));
            }
        }
        let subtree = subtree.map(String::from);
        Ok(CounterGroup {
            subtree,
            alone: self.alone,
            events,
            nodes,
            no_deeper: String::new(),
            besides_subtrees: None,
        })
    }
}

/// What an expression adds up and takes off.
#[derive(Default)]
struct Balance {
    /// By their places in the group.
    more: Vec<usize>,
    less: Vec<usize>,
    /// So many times all slots.
    slots: usize,
}

/// Makes formulas of expressions.
struct FormulaMaker<'g, 't> {
    plan: &'g Needs<'t>,
    events: &'g [usize],
}

impl FormulaMaker<'_, '_> {
    fn place(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|event| self.plan.text.events[*event].name == name)
    }

    fn corrects(&self, place: &usize) -> bool {
        self.plan.text.events[self.events[*place]].corrects
    }

    fn formula(&self, node: &NodeText) -> Result<GroupFormula, String> {
        let Some(expression) = node.expression() else { return Ok(GroupFormula::Rest) };
        let mut all = Balance::default();
        if self.is_balance(expression, 1, false, &mut all) && all.slots == 0 {
            let is_corrected = [&all.more, &all.less].into_iter().flatten().any(|place| self.corrects(place));
            let plain: Vec<usize> = all.more.iter().filter(|place| !self.corrects(place)).copied().collect();
            return match (&plain[..], &all.less[..]) {
                ([event], []) if !is_corrected => Ok(GroupFormula::Slots(*event)),
                ([event], less) if is_corrected && less.iter().all(|place| self.corrects(place)) => {
                    let more = all.more.iter().filter(|place| self.corrects(place)).copied().collect();
                    Ok(GroupFormula::Corrected(*event, all.less, more))
                }
                _ if is_corrected => {
                    Err(format!("{}: what corrects is added to one event, or taken off it", node.name))
                }
                _ => Ok(GroupFormula::Balance(all.more, all.less)),
            };
        }
        if let Some(retired) = self.retired(expression).filter(|_| node.parent.is_none()) {
            return Ok(retired);
        }
        let corrects = |name: &&str| self.plan.text.event_of(name).is_some_and(|event| event.corrects);
        if let Some(event) = expression.names().into_iter().find(corrects) {
            return Err(format!("{}: {event} corrects, and is no part of a share", node.name));
        }
        let is_share = |name: &&str| *name == "slots" || self.plan.text.node_of(name).is_some();
        if !expression.names().iter().any(is_share) && !node.of_cycles {
            return Err(format!(
                "{}: slots are events added up, each as it is or times a whole number behind it; a share has `slots` or a node in it",
                node.name
            ));
        }
        Ok(GroupFormula::Of(expression.clone()))
    }

    /// `(slots - stalls) * retired / dispatched`.
    fn retired(&self, expression: &Expression) -> Option<GroupFormula> {
        let Expression::Of(Operator::By, by) = expression else { return None };
        let [Expression::Of(Operator::Times, times), Expression::Name(dispatched)] = &**by else {
            return None;
        };
        let [free, Expression::Name(retired)] = &**times else { return None };
        let mut all = Balance::default();
        let is_free = self.is_balance(free, 1, false, &mut all) && all.slots == 1;
        let (retired, dispatched) = (self.place(retired)?, self.place(dispatched)?);
        is_free.then_some(GroupFormula::Retired(all.less, all.more, retired, dispatched))
    }

    /// Whether an expression adds up events, times whole numbers, and takes others off.
    fn is_balance(&self, all: &Expression, times: usize, off: bool, into: &mut Balance) -> bool {
        match all {
            Expression::Name(name) if name == "slots" && !off => {
                into.slots += times;
                true
            }
            Expression::Name(name) => match self.place(name) {
                Some(place) => {
                    let side = if off { &mut into.less } else { &mut into.more };
                    side.extend(std::iter::repeat_n(place, times));
                    true
                }
                // (an event that corrects, and is left out)
                None => self.plan.text.event_of(name).is_some_and(|event| event.corrects),
            },
            Expression::Of(Operator::Times, operands) if operands[1].is_name("width") => {
                matches!(operands[0], Expression::Name(_)) && self.is_balance(&operands[0], times, off, into)
            }
            Expression::Of(Operator::Times, operands) => match &operands[1] {
                Expression::Number(n) if n.fract() == 0.0 && (1.0..=MOST_SLOTS).contains(n) => {
                    self.is_balance(&operands[0], times * *n as usize, off, into)
                }
                _ => false,
            },
            Expression::Of(Operator::Plus, operands) => {
                operands.iter().all(|operand| self.is_balance(operand, times, off, into))
            }
            Expression::Of(Operator::Minus, operands) => {
                self.is_balance(&operands[0], times, off, into)
                    && self.is_balance(&operands[1], times, !off, into)
            }
            _ => false,
        }
    }
}
