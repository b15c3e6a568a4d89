//! Which groups of a core's events fit its general-purpose counters, and what of its tree each of them tells.
//!
//! Levels are counted whole as far as they fit. Where a level does not, each node above it has a group of its own: level 1, and what is
//! below that node. Slots of the core's other thread are left out where that makes room: such a group is for cores that run one thread each.

use super::expression::{Expression, Operator};
use super::text::{Text, Value};

/// No core is wider.
const MOST_WIDTH: f64 = 16.0;

/// Events that are counted together.
#[derive(Clone, Debug)]
pub struct Group {
    /// The node whose children it tells; None: whole levels.
    pub subtree: Option<String>,
    /// Right where each core runs one thread.
    pub alone: bool,
    /// By their places in the text.
    pub events: Vec<usize>,
    /// Of each event, how many slots each that it counts is.
    pub slots_each: Vec<u32>,
    /// By their places in the text, each with how its value follows; None: no counter is left for it.
    pub nodes: Vec<(usize, Option<Formula>)>,
}

/// How a node's value follows from events, by their places in the group.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// Slots that the event counted.
    Slots(usize),
    /// Slots that the first counted, less those that the others did.
    Balance(Vec<usize>, Vec<usize>),
    Rest,
    /// A share of all slots.
    Of(Expression),
}

/// The groups of a core.
pub struct Groups {
    /// The levels that one group holds.
    pub whole: Group,
    /// The same where each core runs one thread, if that takes fewer counters.
    pub fewer: Option<Group>,
    /// One for each node whose children no group holds with all others of their level.
    pub subtrees: Vec<Group>,
    /// Why there is no deeper level in `whole`; "": there is none.
    pub no_deeper: String,
}

/// Events that the wanted nodes take, in their order.
fn events_of(text: &Text, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
    let takes = |event: &str| (0..text.nodes.len()).any(|node| wanted(node) && text.nodes[node].takes(event));
    (0..text.events.len()).filter(|event| takes(&text.events[*event].name)).collect()
}

impl Groups {
    /// Those of a core.
    ///
    /// # Errors
    /// Level 1 does not fit, or the children of a node do not; or a value is neither slots nor a share.
    pub fn of(text: &Text) -> Result<Groups, String> {
        let nodes = &text.nodes;
        let depth = nodes.iter().map(|node| node.level).max().unwrap_or(0);
        let fits = |events: &[usize]| events.len() < text.counters; // (the leader takes one)
        let of_levels = |level: u32| events_of(text, |node| nodes[node].level <= level);
        let whole = (1..=depth).rev().find(|level| fits(&of_levels(*level))).ok_or("level 1 does not fit")?;
        let is_there = |node: usize, level: u32, alone: bool| {
            nodes[node].level <= level && !(alone && nodes[node].is_of_other_thread)
        };
        let of_whole = |alone: bool| {
            let is_there = |node: usize| is_there(node, whole, alone);
            Group::of(text, None, alone, is_there, is_there)
        };
        let has_other_thread = nodes.iter().any(|node| node.is_of_other_thread);
        let mut groups = Groups {
            whole: of_whole(false)?,
            fewer: if has_other_thread { Some(of_whole(true)?) } else { None },
            subtrees: Vec::new(),
            no_deeper: String::new(),
        };
        if whole == depth {
            return Ok(groups);
        }
        groups.no_deeper = format!(
            "level {} takes {} general counters, and the core has {}; td_options.subtree counts a part of it",
            whole + 1,
            of_levels(whole + 1).len() + 1,
            text.counters
        );
        for parent in nodes.iter().filter(|node| node.level == whole).map(|node| &node.name) {
            let is_child = |node: usize| nodes[node].parent.as_ref() == Some(parent);
            if !(0..nodes.len()).any(is_child) {
                continue;
            }
            let with = |alone: bool| {
                let is_counted = |node: usize| is_child(node) || is_there(node, 1, alone);
                Group::of(text, Some(parent), alone, |node| is_there(node, whole + 1, alone), is_counted)
            };
            let group = [with(false)?, with(true)?].into_iter().find(|group| fits(&group.events));
            groups.subtrees.push(group.ok_or_else(|| format!("what is below {parent} does not fit"))?);
        }
        Ok(groups)
    }
}

impl Group {
    fn of(
        text: &Text,
        subtree: Option<&str>,
        alone: bool,
        is_there: impl Fn(usize) -> bool,
        is_counted: impl Fn(usize) -> bool,
    ) -> Result<Group, String> {
        let events = events_of(text, &is_counted);
        let mut group = Group {
            subtree: subtree.map(String::from),
            alone,
            slots_each: vec![1; events.len()],
            events,
            nodes: Vec::new(),
        };
        for node in (0..text.nodes.len()).filter(|node| is_there(*node)) {
            let formula = if is_counted(node) { Some(group.formula(text, node)?) } else { None };
            group.nodes.push((node, formula));
        }
        Ok(group)
    }

    /// The place of an event of this name.
    pub fn place(&self, text: &Text, name: &str) -> Option<usize> {
        self.events.iter().position(|event| text.events[*event].name == name)
    }

    fn formula(&mut self, text: &Text, node: usize) -> Result<Formula, String> {
        let Value::Expression(expression) = &text.nodes[node].value else { return Ok(Formula::Rest) };
        if let Expression::Of(Operator::Times, operands) = expression {
            if let [Expression::Name(event), Expression::Number(slots)] = &**operands {
                if let Some(place) = self.place(text, event) {
                    if slots.fract() != 0.0 || !(1.0..=MOST_WIDTH).contains(slots) {
                        return Err(format!("{event} * {slots}: a cycle has 1 to {MOST_WIDTH} slots"));
                    }
                    if text.nodes.iter().filter(|node| node.takes(event)).count() > 1 {
                        return Err(format!("{event} * {slots}: another node takes the event, too"));
                    }
                    self.slots_each[place] = *slots as u32;
                    return Ok(Formula::Slots(place));
                }
            }
        }
        let (mut more, mut less) = (Vec::new(), Vec::new());
        if !self.is_balance(text, expression, &mut more, &mut less) {
            let is_share = |name: &str| name == "slots" || self.place(text, name).is_none();
            if !expression.names().into_iter().any(is_share) {
                let node = &text.nodes[node].name;
                return Err(format!(
                    "{node}: slots are events added up, or one times a number; a share has `slots` or a node in it"
                ));
            }
            return Ok(Formula::Of(expression.clone()));
        }
        Ok(match (&more[..], &less[..]) {
            ([event], []) => Formula::Slots(*event),
            _ => Formula::Balance(more, less),
        })
    }

    /// Whether an expression adds up events and takes others off.
    fn is_balance(
        &self,
        text: &Text,
        all: &Expression,
        more: &mut Vec<usize>,
        less: &mut Vec<usize>,
    ) -> bool {
        match all {
            Expression::Name(name) => match self.place(text, name) {
                Some(place) => {
                    more.push(place);
                    true
                }
                None => false,
            },
            Expression::Of(Operator::Plus, operands) => {
                operands.iter().all(|operand| self.is_balance(text, operand, more, less))
            }
            Expression::Of(Operator::Minus, operands) => {
                self.is_balance(text, &operands[0], more, less)
                    && self.is_balance(text, &operands[1], less, more)
            }
            _ => false,
        }
    }
}
