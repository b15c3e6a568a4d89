//! The text of a core (`cpus/*.txt`): which CPUs have it, its counters, its events, and its one tree of metrics. cpus/README.md has the
//! lines.

use super::expression::{Expression, Operator};
pub use super::words::Fault;
use super::words::{node_path, number, small, without};

/// No core has more.
const MOST_MODELS: usize = 1000;
/// No tree is deeper, or has more roots.
const MOST_LEVELS: u32 = 6;
const MOST_ROOTS: usize = 5;
/// Lines of which a text has one.
const ONCE: [&str; 8] =
    ["width", "counters", "threads", "perf-metrics", "not-counted", "no-deeper", "returns", "clock"];
/// `CoreText::before` of all steppings.
pub const ANY_STEPPING: u32 = u32::MAX;

/// A text.
#[derive(Clone, Debug, Default)]
pub struct CpuText {
    /// The CPUs that have this core, each kind under a name of its own.
    pub cores: Vec<CoreText>,
    /// Slots per cycle; 0: no document tells.
    pub width: u32,
    /// General-purpose counters; 0 of a core that is not counted by them.
    pub counters: usize,
    /// There may be more of these: no document tells.
    pub counters_at_least: bool,
    /// Its counters tell slots right only where each core runs one thread.
    pub one_thread: bool,
    /// The deepest level in PERF_METRICS; 0: there is no such register.
    pub metrics_level: u32,
    /// Why the core cannot be counted; "": it can.
    pub not_counted: String,
    /// Why its maker's tree is no deeper; "": the text has all levels, or the counters are the limit.
    pub no_deeper: String,
    /// Each group is led by the first of these that the kernel shows, or else by the last.
    pub leaders: Vec<LeaderText>,
    /// It counts near returns.
    pub returns: Option<CpuEvent>,
    /// It counts time.
    pub clock: Option<CpuEvent>,
    pub events: Vec<CpuEvent>,
    /// Parents before children.
    pub nodes: Vec<NodeText>,
    /// Nodes that the group of whole levels leaves out, so that the others of their level fit.
    pub left_out: Vec<String>,
}

/// CPUs that have a core.
#[derive(Clone, Debug)]
pub struct CoreText {
    /// The core's name, for people.
    pub name: String,
    /// The same with room for the name of a node behind it.
    pub short: String,
    pub place: CorePlace,
    /// It has one of the lines that name CPUs.
    is_placed: bool,
    /// Vendor string of CPUID; of arm64 the implementer; of no CPU "".
    pub vendor: String,
    pub family: u32,
    /// Empty: the whole family.
    pub models: Vec<u32>,
    /// The first stepping that is not one of these CPUs'.
    pub before: u32,
    /// What the emulated machine has shown, of which levels.
    proved: Vec<(u32, u32, String)>,
    /// The same of this core and the P-cores beside it, together.
    pub proved_with_p_cores: String,
}

/// Where a core stands in its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorePlace {
    /// It is the CPU's, or its P-cores'.
    Own,
    /// It is one of the E-cores, beside P-cores.
    BesideP,
}

/// What leads a group.
#[derive(Clone, Debug)]
pub struct LeaderText {
    pub event: CpuEvent,
    /// It counts slots; else cycles, each of as many slots as the core is wide.
    pub slots: bool,
    /// It has a counter of its own; else it takes a general-purpose one.
    pub fixed: bool,
}

/// An event.
#[derive(Clone, Debug, Default)]
pub struct CpuEvent {
    /// Its maker's name.
    pub name: String,
    /// Of perf_event_attr.
    pub config: u64,
    /// It may well count nothing, whatever runs.
    pub may_be_silent: bool,
    /// The only counter that counts it, if not all do.
    pub counter: Option<u32>,
    /// The published metrics correct others by it; without a counter for it, the intervals of those have its slots.
    pub corrects: bool,
    /// How many a simulated core counts in a cycle.
    pub simulated: f64,
}

/// A node of the tree of metrics.
#[derive(Clone, Debug)]
pub struct NodeText {
    /// perf's name, without "tma_".
    pub name: String,
    /// None: a root.
    pub parent: Option<String>,
    pub level: u32,
    pub value: NodeValue,
    /// Slots that went to the core's other thread: none where each core runs one.
    pub is_of_other_thread: bool,
    /// A share of the cycles; else of the slots.
    pub of_cycles: bool,
}

/// How many slots are the node's.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// What its siblings leave of the parent; of a root, what the other roots leave of all slots.
    Rest,
    Expression(Expression),
}

/// Names that no event and no node has.
const WORDS: [&str; 2] = ["slots", "width"];
/// The family of arm64, whose implementers and parts stand for vendors and models.
const ARM64: u32 = 0;

impl CpuText {
    /// Reads a text, and checks that what it names is there.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(text: &str) -> Result<CpuText, Fault> {
        let mut all = CpuText::default();
        let mut keywords = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let fault = |what| Fault { line: place + 1, what };
            match line.split('#').next().unwrap_or_default().trim().split_once(char::is_whitespace) {
                Some((keyword, rest)) => {
                    if ONCE.contains(&keyword) && keywords.contains(&keyword) {
                        return Err(fault(format!("there is a line '{keyword}' already")));
                    }
                    all.line(keyword, rest.trim()).map_err(fault)?;
                    keywords.push(keyword);
                }
                None if line.trim().is_empty() || line.trim().starts_with('#') => {}
                None => return Err(fault(format!("'{}' has nothing behind it", line.trim()))),
            }
        }
        all.is_whole(&keywords).map_err(|what| Fault { line: 0, what })?;
        Ok(all)
    }

    fn line(&mut self, keyword: &str, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (keyword, &words[..]) {
            ("core", _) => self.cores.push(CoreText::new(rest)),
            ("short", _) => self.core()?.short = rest.into(),
            ("cpu", ["none"]) => self.core()?.is_placed = true,
            ("cpu", [vendor, family, models @ ..]) => {
                self.core()?.is(CorePlace::Own, vendor, small(family)?, models)?;
            }
            ("e-cores", [vendor, family, models @ ..]) => {
                self.core()?.is(CorePlace::BesideP, vendor, small(family)?, models)?;
            }
            ("midr", [implementer, parts @ .., "before", revision]) => {
                let core = self.core()?;
                core.is(CorePlace::Own, implementer, ARM64, parts)?;
                core.before = small(revision)?;
            }
            ("midr", [implementer, parts @ ..]) => {
                self.core()?.is(CorePlace::Own, implementer, ARM64, parts)?;
            }
            ("proved", ["with-p-cores", _, ..]) => {
                self.core()?.proved_with_p_cores = words[1..].join(" ");
            }
            ("proved", [levels, _, ..]) => {
                let (first, last) = levels.split_once('-').unwrap_or((levels, levels));
                let proof = (small(first)?, small(last)?, words[1..].join(" "));
                self.core()?.proved.push(proof);
            }
            ("width", ["unknown"]) => self.width = 0,
            ("width", [width]) => self.width = small(width)?,
            ("counters", [counters]) => self.counters = small(counters)? as usize,
            ("counters", [counters, "at-least"]) => {
                (self.counters, self.counters_at_least) = (small(counters)? as usize, true);
            }
            ("threads", ["1"]) => self.one_thread = true,
            ("perf-metrics", [level @ ("1" | "2")]) => self.metrics_level = small(level)?,
            ("not-counted", _) => self.not_counted = rest.into(),
            ("no-deeper", _) => self.no_deeper = rest.into(),
            ("leader", [name, config, properties @ ..]) => {
                let has = |property| properties.contains(&property);
                if let Some(other) = properties.iter().find(|one| !["fixed", "slots"].contains(one)) {
                    return Err(format!("'{other}' is no property of a leader"));
                }
                self.leaders.push(LeaderText {
                    event: event(name, config)?,
                    slots: has("slots"),
                    fixed: has("fixed"),
                });
            }
            ("returns", [name, config]) => self.returns = Some(event(name, config)?),
            ("clock", [name, config]) => self.clock = Some(event(name, config)?),
            ("event", [name, config, "simulated", simulated, properties @ ..]) => {
                let mut event = event(name, config)?;
                event.simulated = simulated.parse().map_err(|_| format!("'{simulated}' is no number"))?;
                event.has(properties)?;
                if self.events.iter().any(|other| other.name == *name) || WORDS.contains(name) {
                    return Err(format!("there is an event {name} already"));
                }
                self.events.push(event);
            }
            ("node", _) => {
                let node = self.node(rest)?;
                self.nodes.push(node);
            }
            ("leave-out", names) => {
                if let Some(name) = names.iter().find(|name| self.node_of(name).is_none()) {
                    return Err(format!("there is no node {name} above"));
                }
                self.left_out.extend(names.iter().map(|name| (*name).into()));
            }
            _ => return Err(format!("'{keyword} {rest}' is no line of a core")),
        }
        Ok(())
    }

    /// The one that the line is of.
    fn core(&mut self) -> Result<&mut CoreText, String> {
        self.cores.last_mut().ok_or_else(|| "no line 'core' is above".into())
    }

    fn node(&self, rest: &str) -> Result<NodeText, String> {
        let (path, value) = rest.split_once('=').ok_or("a node has no '='")?;
        let (parent, name, level) = node_path(path, |parent| self.node_of(parent).map(|node| node.level))?;
        if self.node_of(name).is_some() || WORDS.contains(&name) {
            return Err(format!("there is a node {name} already"));
        }
        if level == 1 && self.nodes.iter().filter(|node| node.level == 1).count() == MOST_ROOTS {
            return Err(format!("{name} is one root too many: no tree has more than {MOST_ROOTS}"));
        }
        if level > MOST_LEVELS {
            return Err(format!("{name} would be of level {level}, and no tree has more than {MOST_LEVELS}"));
        }
        let (value, is_of_other_thread) = without(value.trim(), ", another thread's");
        let (value, of_cycles) = without(value, ", of cycles");
        let value = match value {
            "rest" => NodeValue::Rest,
            _ => NodeValue::Expression(Expression::read(value)?),
        };
        if matches!(&value, NodeValue::Expression(expression) if expression.has_choice()) {
            return Err(format!("{name}: what depends on a condition is for trees of deeper levels"));
        }
        if let NodeValue::Expression(expression) = &value {
            let is_known = |name: &&str| {
                WORDS.contains(name) || self.event_of(name).is_some() || self.node_of(name).is_some()
            };
            if let Some(unknown) = expression.names().into_iter().find(|name| !is_known(name)) {
                return Err(format!("{unknown} is neither an event nor a node above {name}"));
            }
        }
        let (name, parent) = (name.into(), parent.map(String::from));
        Ok(NodeText { name, parent, level, value, is_of_other_thread, of_cycles })
    }

    /// Whether nothing is missing, and each event is taken.
    fn is_whole(&self, keywords: &[&str]) -> Result<(), String> {
        let has = |keyword: &str| keywords.contains(&keyword);
        let is_counted = !has("not-counted");
        let by_counters = is_counted && (has("counters") || !has("perf-metrics"));
        let missing = [
            ("core", !has("core")),
            ("width", is_counted && !has("width")),
            ("counters", by_counters && self.counters == 0),
            ("leader", by_counters && !has("leader")),
            ("node", by_counters && !has("node")),
        ];
        if let Some((line, _)) = missing.iter().find(|(_, missing)| *missing) {
            return Err(format!("there is no line '{line}'"));
        }
        if let Some(core) = self.cores.iter().find(|core| !core.is_placed) {
            return Err(format!("there is no line 'cpu', 'midr' or 'e-cores' of {}", core.name));
        }
        for event in &self.events {
            let name = &event.name;
            let [mut bare, mut cycles] = [false; 2];
            let expressions = self.nodes.iter().filter_map(NodeText::expression);
            expressions.for_each(|expression| uses(expression, name, &mut bare, &mut cycles));
            match (bare, cycles) {
                (false, false) => return Err(format!("no node takes the event {name}")),
                (true, true) => return Err(format!("{name} counts cycles in one place, and not in another")),
                (false, true) if self.width == 0 => {
                    return Err(format!("{name} * width: the width is not known"));
                }
                _ => {}
            }
        }
        if let Some(node) = self.nodes.iter().find(|node| self.follows(node, &mut Vec::new())) {
            return Err(format!("the value of {} follows from itself", node.name));
        }
        for node in self.nodes.iter().filter(|node| node.value == NodeValue::Rest) {
            let rests = |other: &&NodeText| other.parent == node.parent && other.value == NodeValue::Rest;
            if self.nodes.iter().filter(rests).count() > 1 {
                return Err(format!("{} is not the only rest", node.name));
            }
        }
        Ok(())
    }

    /// Whether the value of a node follows from one of those whose values follow from it.
    fn follows<'t>(&'t self, node: &'t NodeText, behind: &mut Vec<&'t str>) -> bool {
        if behind.contains(&&node.name[..]) {
            return true;
        }
        behind.push(&node.name);
        let named = node.expression().map(Expression::names).unwrap_or_default();
        let is_sibling = |other: &&NodeText| {
            node.value == NodeValue::Rest && other.value != NodeValue::Rest && other.parent == node.parent
        };
        let needed = self.nodes.iter().filter(|other| {
            is_sibling(other) || named.contains(&&other.name[..]) || node.parent.as_ref() == Some(&other.name)
        });
        let found = needed.into_iter().any(|other| self.follows(other, behind));
        behind.pop();
        found
    }

    /// The event of this name.
    pub fn event_of(&self, name: &str) -> Option<&CpuEvent> {
        self.events.iter().find(|event| event.name == name)
    }

    /// The node of this name.
    pub fn node_of(&self, name: &str) -> Option<&NodeText> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Whether this event counts cycles, each of as many slots as the core is wide.
    pub fn is_of_cycles(&self, event: &str) -> bool {
        let [mut bare, mut cycles] = [false; 2];
        let expressions = self.nodes.iter().filter_map(NodeText::expression);
        expressions.for_each(|expression| uses(expression, event, &mut bare, &mut cycles));
        cycles
    }

    /// Level of the deepest node.
    pub fn depth(&self) -> u32 {
        self.nodes.iter().map(|node| node.level).max().unwrap_or(0)
    }
}

impl CoreText {
    fn new(name: &str) -> CoreText {
        CoreText {
            name: name.into(),
            short: name.into(),
            place: CorePlace::Own,
            is_placed: false,
            vendor: String::new(),
            family: 0,
            models: Vec::new(),
            before: ANY_STEPPING,
            proved: Vec::new(),
            proved_with_p_cores: String::new(),
        }
    }

    fn is(&mut self, place: CorePlace, vendor: &str, family: u32, models: &[&str]) -> Result<(), String> {
        if self.is_placed {
            return Err(format!("the CPUs of {} are named already", self.name));
        }
        (self.place, self.is_placed) = (place, true);
        (self.vendor, self.family) = (vendor.into(), family);
        if models == ["all"] {
            return Ok(());
        }
        for range in models {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let range = small(first)?..=small(last)?;
            if self.models.len() + range.clone().count() > MOST_MODELS {
                return Err(format!("there are more than {MOST_MODELS} models"));
            }
            self.models.extend(range);
        }
        if models.is_empty() { Err("no model is named".into()) } else { Ok(()) }
    }

    /// Whether it has the same name as another, or is in a CPU that the other is in, too.
    pub fn is_same(&self, other: &CoreText) -> bool {
        let is_of_cpu = |core: &CoreText| (core.place, core.vendor.clone(), core.family, core.before);
        let shares = || {
            self.models.is_empty()
                || other.models.is_empty()
                || self.models.iter().any(|model| other.models.contains(model))
        };
        let is_in_cpu = !self.vendor.is_empty() && is_of_cpu(self) == is_of_cpu(other) && shares();
        self.name == other.name || is_in_cpu
    }

    /// What the emulated machine has shown of this level; "" if it did not run this core.
    pub fn proved(&self, level: u32) -> &str {
        let of_level = self.proved.iter().find(|(first, last, _)| (*first..=*last).contains(&level));
        of_level.map_or("", |(_, _, words)| words)
    }
}

impl CpuEvent {
    fn has(&mut self, properties: &[&str]) -> Result<(), String> {
        let mut rest = properties.iter();
        while let Some(property) = rest.next() {
            match *property {
                "may-be-silent" => self.may_be_silent = true,
                "corrects" => self.corrects = true,
                "counter" => self.counter = Some(small(rest.next().ok_or("'counter' of no number")?)?),
                _ => return Err(format!("'{property}' is no property of an event")),
            }
        }
        Ok(())
    }
}

impl NodeText {
    pub fn expression(&self) -> Option<&Expression> {
        match &self.value {
            NodeValue::Rest => None,
            NodeValue::Expression(expression) => Some(expression),
        }
    }
}

/// Whether an expression takes the event as it is, and whether it takes it times the width.
fn uses(expression: &Expression, event: &str, bare: &mut bool, cycles: &mut bool) {
    match expression {
        Expression::Name(name) => *bare |= name == event,
        Expression::Number(_) => {}
        Expression::Of(Operator::Times, operands) if operands[1].is_name("width") => {
            match operands[0].is_name(event) {
                true => *cycles = true,
                false => uses(&operands[0], event, bare, cycles),
            }
        }
        Expression::Of(_, operands) => operands.iter().for_each(|one| uses(one, event, bare, cycles)),
        Expression::If(operands) => operands.iter().for_each(|one| uses(one, event, bare, cycles)),
    }
}

fn event(name: &str, config: &str) -> Result<CpuEvent, String> {
    Ok(CpuEvent { name: name.into(), config: number(config)?, ..CpuEvent::default() })
}
