//! The text of a core (`cpus/*.txt`): who it is, its counters, its events, and its one tree of metrics. cpus/README.md has the lines.

use super::expression::Expression;

/// No core has more.
const MOST_MODELS: usize = 1000;

/// A core, as its text has it.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Its name, for people.
    pub core: String,
    /// Vendor string of CPUID.
    pub vendor: String,
    pub family: u32,
    pub models: Vec<u32>,
    /// Slots per cycle.
    pub width: u32,
    /// General-purpose counters.
    pub counters: usize,
    /// What the emulated machine has shown; "" if it did not run this core.
    pub proved: String,
    /// It counts cycles in a general-purpose counter, and leads each group.
    pub leader: Option<Event>,
    /// It counts near returns.
    pub returns: Option<Event>,
    /// It counts time.
    pub clock: Option<Event>,
    pub events: Vec<Event>,
    /// Parents before children.
    pub nodes: Vec<Node>,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its maker's name.
    pub name: String,
    /// Of perf_event_attr.
    pub config: u64,
    /// It may well count nothing, whatever runs.
    pub may_be_silent: bool,
    /// How many a simulated core counts in a cycle.
    pub simulated: f64,
}

/// A node of the tree of metrics.
#[derive(Clone, Debug)]
pub struct Node {
    /// perf's name, without "tma_".
    pub name: String,
    /// None: a root.
    pub parent: Option<String>,
    pub level: u32,
    pub value: Value,
    /// Slots that went to the core's other thread: none where each core runs one.
    pub is_of_other_thread: bool,
}

/// How many slots are the node's.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// What its siblings leave of the parent; of a root, what the other roots leave of all slots.
    Rest,
    Expression(Expression),
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1 on; 0: in the whole.
    pub line: usize,
    pub what: String,
}

impl Text {
    /// Reads a text, and checks that what it names is there.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(text: &str) -> Result<Text, Fault> {
        let mut all = Text::default();
        for (place, line) in text.lines().enumerate() {
            let fault = |what| Fault { line: place + 1, what };
            match line.split('#').next().unwrap_or_default().trim().split_once(char::is_whitespace) {
                Some((keyword, rest)) => all.line(keyword, rest.trim()).map_err(fault)?,
                None if line.trim().is_empty() || line.trim().starts_with('#') => {}
                None => return Err(fault(format!("'{}' has nothing behind it", line.trim()))),
            }
        }
        all.is_whole().map_err(|what| Fault { line: 0, what })?;
        Ok(all)
    }

    fn line(&mut self, keyword: &str, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (keyword, &words[..]) {
            ("core", _) => self.core = rest.into(),
            ("cpu", [vendor, family, models @ ..]) => {
                (self.vendor, self.family) = ((*vendor).into(), small(family)?);
                for range in models {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let range = small(first)?..=small(last)?;
                    if self.models.len() + range.clone().count() > MOST_MODELS {
                        return Err(format!("there are more than {MOST_MODELS} models"));
                    }
                    self.models.extend(range);
                }
            }
            ("width", [width]) => self.width = small(width)?,
            ("counters", [counters]) => self.counters = small(counters)? as usize,
            ("proved", _) => self.proved = rest.into(),
            ("leader", [name, config]) => self.leader = Some(event(name, config)?),
            ("returns", [name, config]) => self.returns = Some(event(name, config)?),
            ("clock", [name, config]) => self.clock = Some(event(name, config)?),
            ("event", [name, config, "simulated", simulated, silent @ ..]) => {
                let may_be_silent = match silent {
                    [] => false,
                    ["may-be-silent"] => true,
                    _ => return Err(format!("'{}' is no property of an event", silent.join(" "))),
                };
                let simulated = simulated.parse().map_err(|_| format!("'{simulated}' is no number"))?;
                if self.events.iter().any(|other| other.name == *name) {
                    return Err(format!("there is an event {name} already"));
                }
                self.events.push(Event { may_be_silent, simulated, ..event(name, config)? });
            }
            ("node", _) => {
                let node = self.node(rest)?;
                self.nodes.push(node);
            }
            _ => return Err(format!("'{keyword} {rest}' is no line of a core")),
        }
        Ok(())
    }

    fn node(&self, rest: &str) -> Result<Node, String> {
        let (path, value) = rest.split_once('=').ok_or("a node has no '='")?;
        let (parent, name) = match path.split_once('>') {
            Some((parent, name)) => (Some(parent.trim()), name.trim()),
            None => (None, path.trim()),
        };
        let level = match parent {
            None => 1,
            Some(parent) => {
                let above = self.nodes.iter().find(|node| node.name == parent);
                above.ok_or_else(|| format!("there is no node {parent} above {name}"))?.level + 1
            }
        };
        if self.nodes.iter().any(|node| node.name == name) {
            return Err(format!("there is a node {name} already"));
        }
        let (value, is_of_other_thread) = match value.split_once(", another thread's") {
            Some((value, "")) => (value.trim(), true),
            Some((_, more)) => return Err(format!("'{more}' follows \"another thread's\"")),
            None => (value.trim(), false),
        };
        let value = match value {
            "rest" => Value::Rest,
            _ => Value::Expression(Expression::read(value)?),
        };
        if let Value::Expression(expression) = &value {
            let is_known = |name: &&str| {
                *name == "slots"
                    || self.events.iter().any(|event| event.name == *name)
                    || self.nodes.iter().any(|node| node.name == *name)
            };
            if let Some(unknown) = expression.names().into_iter().find(|name| !is_known(name)) {
                return Err(format!("{unknown} is neither an event nor a node above {name}"));
            }
        }
        Ok(Node { name: name.into(), parent: parent.map(String::from), level, value, is_of_other_thread })
    }

    /// Whether nothing is missing, and each event is taken.
    fn is_whole(&self) -> Result<(), String> {
        let missing = [
            ("core", self.core.is_empty()),
            ("cpu", self.models.is_empty()),
            ("width", self.width == 0),
            ("counters", self.counters == 0),
            ("leader", self.leader.is_none()),
            ("node", self.nodes.is_empty()),
        ];
        if let Some((line, _)) = missing.iter().find(|(_, missing)| *missing) {
            return Err(format!("there is no line '{line}'"));
        }
        let is_taken = |event: &&Event| self.nodes.iter().any(|node| node.takes(&event.name));
        if let Some(event) = self.events.iter().find(|event| !is_taken(event)) {
            return Err(format!("no node takes the event {}", event.name));
        }
        for node in self.nodes.iter().filter(|node| node.value == Value::Rest) {
            let rests = |other: &&Node| other.parent == node.parent && other.value == Value::Rest;
            if self.nodes.iter().filter(rests).count() > 1 {
                return Err(format!("{} is not the only rest", node.name));
            }
        }
        Ok(())
    }
}

impl Node {
    /// Whether an event or a node of this name is in its value.
    pub fn takes(&self, name: &str) -> bool {
        matches!(&self.value, Value::Expression(expression) if expression.names().contains(&name))
    }
}

fn event(name: &str, config: &str) -> Result<Event, String> {
    Ok(Event { name: name.into(), config: number(config)?, may_be_silent: false, simulated: 0.0 })
}

fn number(word: &str) -> Result<u64, String> {
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("'{word}' is no number"))
}

fn small(word: &str) -> Result<u32, String> {
    u32::try_from(number(word)?).map_err(|_| format!("{word} is too large"))
}
