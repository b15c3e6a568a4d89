//! The text of a tree of deeper levels (`cpus/deep/*.txt`): the published one of some CPUs of a core, below and beside the levels that the
//! core's own text has. cpus/README.md has the lines.

use super::expression::Expression;
use super::words::{Fault, node_path, number, small, without};

/// No text has more of either.
const MOST_EVENTS: usize = 400;
const MOST_NODES: usize = 400;
/// No tree is deeper.
const MOST_LEVELS: u32 = 6;
/// As many as nodes, more or less.
const MOST_COMPANIONS: usize = 400;
/// Intel's view has twelve.
const MOST_BOTTLENECKS: usize = 20;
/// General-purpose counters of any core.
const MOST_COUNTERS: u32 = 32;
/// The family of CPUs that MIDR_EL1 identifies.
const ARM64: u32 = 0;
/// The largest part number there is.
const LAST_PART: u32 = 0xfff;

/// Behind the name of an event: its mean retire latency.
pub const RETIRE_LATENCY: &str = ":RETIRE_LATENCY";

/// A text.
#[derive(Clone, Debug, Default)]
pub struct DeepText {
    /// Which version of TMA it is of, and of which day the table is.
    pub version: String,
    /// Vendor string of CPUID, family and models of the CPUs; of arm64 the implementer, 0 and parts.
    pub vendor: String,
    pub family: u32,
    pub models: Vec<u32>,
    /// The first stepping that is one of these CPUs'; of arm64 the variant in the upper four bits of eight.
    pub from: u32,
    pub events: Vec<DeepEvent>,
    /// Values that several nodes take.
    pub figures: Vec<(String, Expression)>,
    /// Parents before children, and behind them the parts.
    pub nodes: Vec<DeepNode>,
    /// Each after those that it takes, but the rest of all, which follows from the others.
    pub bottlenecks: Vec<DeepBottleneck>,
    pub companions: Vec<DeepCompanion>,
}

/// A figure that is no share of slots, as instructions per cycle or misses of a cache: of events alone.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepCompanion {
    /// perf's name, without "tma_".
    pub name: String,
    pub value: Expression,
    /// What it is in; where that ends with "/s", the value is of the time in which all was counted.
    pub unit: String,
    /// By these names it may be asked for with others: one of ours, then perf's.
    pub groups: Vec<String>,
}

/// A figure of the bottleneck view: a share of slots that follows from nodes, parts and other bottlenecks.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepBottleneck {
    /// perf's name, without "tma_bottleneck_".
    pub name: String,
    pub value: Expression,
    /// The share above which it is flagged, 0 to 1.
    pub above: f64,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeepEvent {
    /// Its maker's name.
    pub name: String,
    /// Of perf_event_attr.
    pub config: u64,
    /// The same: the value of an extra register.
    pub config1: u64,
    /// It has a counter of its own.
    pub fixed: bool,
    /// A bit for each general-purpose counter that counts it; 0: all do.
    pub counters: u32,
    /// How many of it there are from one sample to the next, where it locates a node; else 0.
    pub period: u64,
    /// The CPU can sample the instruction itself.
    pub is_precise: bool,
    /// Its mean retire latency on some machine, in cycles, as published.
    pub latency: Option<f64>,
}

/// What a node is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeepUnit {
    Slots,
    Cycles,
    /// Operations that retired.
    Operations,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepNode {
    /// perf's name, without "tma_".
    pub name: String,
    /// None: a root.
    pub parent: Option<String>,
    pub level: u32,
    /// None: the core's own text has it, or nothing tells it.
    pub value: Option<Expression>,
    pub unit: DeepUnit,
    /// The share above which it is flagged, 0 to 1; None: it never is.
    pub above: Option<f64>,
    /// It is flagged whether the nodes above it are or not.
    pub is_alone: bool,
    /// Events to sample, by which it is located.
    pub samples: Vec<String>,
    /// Latencies are taken for granted: it may be more than what is above it.
    pub is_estimated: bool,
    /// It is no node of the tree, but what bottlenecks take besides.
    pub is_part: bool,
}

impl DeepText {
    /// Reads a text.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(text: &str) -> Result<DeepText, Fault> {
        let mut all = DeepText::default();
        for (place, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let fault = |what| Fault { line: place + 1, what };
            match line.split_once(char::is_whitespace) {
                Some((keyword, rest)) => all.line(keyword, rest.trim()).map_err(fault)?,
                None if line.is_empty() => {}
                None => return Err(fault(format!("'{line}' has nothing behind it"))),
            }
        }
        for (node, name) in
            all.nodes.iter().flat_map(|node| node.samples.iter().map(move |name| (node, name)))
        {
            if all.event(name).is_none_or(|event| event.period == 0) {
                let what = format!("{name} locates {}, and is no event with a period", node.name);
                return Err(Fault { line: 0, what });
            }
        }
        let has_neither = all.nodes.is_empty() && all.companions.is_empty();
        match all.models.is_empty() || all.version.is_empty() || has_neither {
            true => Err(Fault {
                line: 0,
                what: "there is no line 'cpu' or 'midr', 'tma', or 'node' or 'metric'".into(),
            }),
            false => Ok(all),
        }
    }

    fn line(&mut self, keyword: &str, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (keyword, &words[..]) {
            ("tma", [_, ..]) => self.version = words.join(" "),
            ("cpu", [vendor, family, models @ .., "from", stepping]) => {
                self.from = small(stepping)?;
                self.cpus(vendor, small(family)?, models)?;
            }
            ("cpu", [vendor, family, models @ ..]) => self.cpus(vendor, small(family)?, models)?,
            ("midr", [implementer, parts @ .., "from", revision]) => {
                self.from = small(revision)?;
                self.cpus(implementer, ARM64, parts)?;
            }
            ("midr", [implementer, parts @ ..]) => self.cpus(implementer, ARM64, parts)?,
            ("event", [name, config, properties @ ..]) => {
                let event = event(name, config, properties)?;
                if self.event(name).is_some() || self.events.len() == MOST_EVENTS {
                    return Err(format!("{name} is there already, or is the {MOST_EVENTS}th but one"));
                }
                self.events.push(event);
            }
            ("figure", _) => {
                let (name, value) = rest.split_once('=').ok_or("a figure has no '='")?;
                let value = self.value(name.trim(), value.trim())?;
                self.figures.push((name.trim().into(), value));
            }
            ("node", _) => {
                let node = self.node(rest)?;
                self.nodes.push(node);
            }
            ("part", _) => {
                let node = self.node(rest)?;
                self.nodes.push(DeepNode { is_part: true, ..node });
            }
            ("bottleneck", _) => {
                let bottleneck = self.bottleneck(rest)?;
                self.bottlenecks.push(bottleneck);
            }
            ("metric", _) => {
                let companion = self.companion(rest)?;
                self.companions.push(companion);
            }
            _ => return Err(format!("'{keyword} {rest}' is no line of a deeper tree")),
        }
        Ok(())
    }

    fn cpus(&mut self, vendor: &str, family: u32, models: &[&str]) -> Result<(), String> {
        if !self.models.is_empty() {
            return Err("the text has a line 'cpu' or 'midr' already".into());
        }
        (self.vendor, self.family) = (vendor.into(), family);
        self.models = models.iter().map(|model| small(model)).collect::<Result<_, _>>()?;
        match self.models.iter().find(|part| self.family == ARM64 && **part > LAST_PART) {
            Some(part) => Err(format!("{part:#x} is no part number")),
            None if self.models.is_empty() => Err(format!("no model of {vendor} is named")),
            None => Ok(()),
        }
    }

    /// An expression of events, figures and nodes above. (What is none of these cannot be counted by the core.)
    fn value(&self, name: &str, text: &str) -> Result<Expression, String> {
        let value = Expression::read(text).map_err(|why| format!("{name}: {why}"))?;
        match value.names().contains(&name) {
            true => Err(format!("the value of {name} follows from itself")),
            false => Ok(value),
        }
    }

    fn node(&self, rest: &str) -> Result<DeepNode, String> {
        let (path, all) = rest.split_once('=').ok_or("a node has no '='")?;
        let (parent, name, level) = node_path(path, |parent| self.node_of(parent).map(|node| node.level))?;
        if self.node_of(name).is_some() || self.nodes.len() == MOST_NODES || level > MOST_LEVELS {
            return Err(format!("{name} is there already, too deep, or one node too many"));
        }
        let (value, rest) =
            all.split_once(", of ").ok_or("no ', of ...' says what the node is a share of")?;
        let (rest, samples) = rest.split_once(", sample ").unwrap_or((rest, ""));
        let (unit, above) = rest.split_once(", above ").map_or((rest, None), |(a, b)| (a, Some(b)));
        let (unit, is_estimated) = without(unit.trim(), " estimated");
        let (above, is_alone) = above.map_or((None, false), |above| {
            let (above, is_alone) = without(above.trim(), " alone");
            (Some(above), is_alone)
        });
        Ok(DeepNode {
            name: name.into(),
            parent: parent.map(String::from),
            level,
            value: match value.trim() {
                "told" => None,
                value => Some(self.value(name, value)?),
            },
            unit: match unit {
                "slots" => DeepUnit::Slots,
                "cycles" => DeepUnit::Cycles,
                "operations" => DeepUnit::Operations,
                _ => return Err(format!("'{unit}' is nothing that {name} could be a share of")),
            },
            is_alone,
            above: above.map(percent).transpose()?,
            samples: samples.split_whitespace().map(String::from).collect(),
            is_estimated,
            is_part: false,
        })
    }

    fn bottleneck(&self, rest: &str) -> Result<DeepBottleneck, String> {
        let (name, rest) = rest.split_once('=').ok_or("a bottleneck has no '='")?;
        let (value, above) = rest.split_once(", above ").ok_or("a bottleneck has no ', above ...'")?;
        let name = name.trim();
        if self.bottlenecks.iter().any(|other| other.name == name)
            || self.bottlenecks.len() == MOST_BOTTLENECKS
        {
            return Err(format!("the bottleneck {name} is there already, or is one too many"));
        }
        Ok(DeepBottleneck {
            name: name.into(),
            value: self.value(name, value.trim())?,
            above: percent(above)?,
        })
    }

    fn companion(&self, rest: &str) -> Result<DeepCompanion, String> {
        let (name, rest) = rest.split_once('=').ok_or("a metric has no '='")?;
        let (value, rest) = rest.split_once(", in ").ok_or("a metric has no ', in ...'")?;
        let (unit, groups) = rest.split_once(", of ").ok_or("a metric has no ', of ...'")?;
        let name = name.trim();
        if self.companions.iter().any(|other| other.name == name) || self.companions.len() == MOST_COMPANIONS
        {
            return Err(format!("the metric {name} is there already, or is one too many"));
        }
        Ok(DeepCompanion {
            name: name.into(),
            value: self.value(name, value.trim())?,
            unit: unit.trim().into(),
            groups: groups.split_whitespace().map(String::from).collect(),
        })
    }

    /// The events whose retire latency some node takes.
    pub fn timed_events(&self) -> impl Iterator<Item = &DeepEvent> {
        let of_nodes = self.nodes.iter().filter_map(|node| node.value.as_ref());
        let values: Vec<&Expression> = of_nodes.chain(self.figures.iter().map(|(_, value)| value)).collect();
        let names = values.into_iter().flat_map(Expression::names);
        let timed: Vec<&str> = names.filter_map(|name| name.strip_suffix(RETIRE_LATENCY)).collect();
        self.events.iter().filter(move |event| timed.contains(&&*event.name))
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<&DeepEvent> {
        self.events.iter().find(|event| event.name == name)
    }

    /// The figure of this name.
    pub fn figure(&self, name: &str) -> Option<&Expression> {
        self.figures.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The node of this name.
    pub fn node_of(&self, name: &str) -> Option<&DeepNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Whether the CPUs have this stepping and model.
    pub fn is_of(&self, vendor: &str, family: u32, model: u32, stepping: u32) -> bool {
        self.vendor == vendor
            && self.family == family
            && self.models.contains(&model)
            && stepping >= self.from
    }
}

/// A percentage, as a share.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("'{text}' is no percentage")).map(|percent: f64| percent / 100.0)
}

fn cycles(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..65536.0).contains(number));
    number.ok_or_else(|| format!("'{text}' is no latency in cycles"))
}

fn event(name: &str, config: &str, properties: &[&str]) -> Result<DeepEvent, String> {
    let mut event = DeepEvent { name: name.into(), config: number(config)?, ..DeepEvent::default() };
    let mut rest = properties.iter();
    while let Some(property) = rest.next() {
        let mut of = || rest.next().ok_or_else(|| format!("'{property}' of nothing"));
        match *property {
            "fixed" => event.fixed = true,
            "extra" => event.config1 = number(of()?)?,
            "period" => event.period = number(of()?)?,
            "precise" => event.is_precise = true,
            "latency" => event.latency = Some(cycles(of()?)?),
            "counters" => {
                for counter in of()?.split(',') {
                    let counter = small(counter)?;
                    if counter >= MOST_COUNTERS {
                        return Err(format!("no core has a counter {counter}"));
                    }
                    event.counters |= 1 << counter;
                }
            }
            _ => return Err(format!("'{property}' is no property of an event")),
        }
    }
    Ok(event)
}
