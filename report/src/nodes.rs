//! Nodes of the tree of metrics of many sums, added and subtracted. Each is a number of slots (or cycles) with the two ends between
//! which the truth lies.
#![forbid(unsafe_code)]

use serde::ser::{Serialize, SerializeMap, Serializer};
use topdown::{Metric, Node, TD_NODE_NONE, TD_UNIT_CLOCKS, TD_UNIT_SLOTS};

/// Which node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What it is.
    pub metric: Metric,
    /// The parent's id; TD_NODE_NONE for roots.
    pub parent: u32,
    /// 1 for roots.
    pub level: u32,
    /// TD_UNIT_*.
    pub unit: u32,
}

impl Kind {
    /// perf's name.
    pub fn name(&self) -> &'static str {
        self.metric.name.to_str().unwrap_or_default()
    }

    /// What its value is a share of.
    pub fn unit_name(&self) -> &'static str {
        match self.unit {
            TD_UNIT_SLOTS => "slots",
            TD_UNIT_CLOCKS => "clocks",
            _ => "",
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parent = (self.parent != TD_NODE_NONE).then_some(self.parent);
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", self.name())?;
        map.serialize_entry(
            "parent",
            &parent.and_then(topdown::metric).map(|metric| metric.name.to_str().ok()),
        )?;
        map.serialize_entry("level", &self.level)?;
        map.serialize_entry("unit", self.unit_name())?;
        map.end()
    }
}

/// A node's share, and the ends between which the truth lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Which node.
    pub kind: Kind,
    /// 0 to 1.
    pub value: f64,
    /// The truth is not below this.
    pub low: f64,
    /// Nor above this.
    pub high: f64,
}

impl Shown {
    /// The farther end.
    pub fn error(&self) -> f64 {
        (self.high - self.value).max(self.value - self.low)
    }

    /// "20.0 % of cycles, between 19.9 and 20.1".
    pub fn text(&self) -> String {
        let of = if self.kind.unit == TD_UNIT_CLOCKS { "cycles" } else { "slots" };
        let Shown { value, low, high, .. } = self;
        format!("{:.1} % of {of}, between {:.1} and {:.1}", 100.0 * value, 100.0 * low, 100.0 * high)
    }
}

/// The nodes of figures: in JSON an object of `value`, `low` and `high` for each name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree(pub Vec<Shown>);

impl Tree {
    /// The node with this id.
    pub fn find(&self, id: u32) -> Option<&Shown> {
        self.0.iter().find(|node| node.kind.metric.id == id)
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Interval {
            value: f64,
            low: f64,
            high: f64,
        }
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for Shown { kind, value, low, high } in &self.0 {
            map.serialize_entry(kind.name(), &Interval { value: *value, low: *low, high: *high })?;
        }
        map.end()
    }
}

/// A node's slots or cycles, of those of which something is known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Amount {
    kind: Kind,
    value: f64,
    low: f64,
    high: f64,
    /// Those of which something is known: in all, of which the value is a part.
    known: f64,
    /// Those of which nothing is known; of cycles, as many as the slots that there were.
    unknown: f64,
}

impl Amount {
    /// What is not known taken to be as the rest: then it may be all of this node, or nothing of it.
    fn filled(&self) -> Amount {
        let scale = if self.known > 0.0 { 1.0 + self.unknown / self.known } else { 1.0 };
        Amount {
            value: self.value * scale,
            high: self.high + self.unknown,
            known: self.known + self.unknown,
            unknown: 0.0,
            ..*self
        }
    }
}

/// Nodes that add up.
#[derive(Clone, Debug, PartialEq)]
pub struct Nodes {
    amounts: Vec<Amount>,
    /// In all, measured or not.
    slots: f64,
}

impl Nodes {
    /// No slots.
    pub const NONE: Nodes = Nodes { amounts: Vec::new(), slots: 0.0 };

    /// So many slots, with these nodes.
    pub fn new(slots: f64, nodes: &[Node]) -> Nodes {
        let amount = |node: &Node| {
            let whole = node.whole as f64;
            Some(Amount {
                kind: Kind {
                    metric: node.metric()?,
                    parent: node.parent,
                    level: node.level,
                    unit: node.unit,
                },
                value: node.value * whole,
                low: node.low * whole,
                high: node.high * whole,
                known: whole,
                unknown: 0.0,
            })
        };
        let measured = nodes.iter().filter(|node| node.measured == 1 && node.whole > 0);
        Nodes { amounts: measured.filter_map(amount).collect(), slots }
    }

    fn find(&self, id: u32) -> Option<&Amount> {
        self.amounts.iter().find(|amount| amount.kind.metric.id == id)
    }

    /// Adds others.
    pub fn add(&mut self, other: &Nodes) {
        for mine in &mut self.amounts {
            match other.find(mine.kind.metric.id) {
                Some(more) => {
                    mine.value += more.value;
                    mine.low += more.low;
                    mine.high += more.high;
                    mine.known += more.known;
                    mine.unknown += more.unknown;
                }
                None => mine.unknown += other.slots,
            }
        }
        for new in &other.amounts {
            if self.find(new.kind.metric.id).is_none() {
                self.amounts.push(Amount { unknown: new.unknown + self.slots, ..*new });
            }
        }
        self.slots += other.slots;
    }

    /// There were so many slots more; how they divide is not known.
    pub fn more_slots(&mut self, more: f64) {
        self.slots += more;
        self.amounts.iter_mut().for_each(|amount| amount.unknown += more);
    }

    /// What is left without a part.
    pub fn minus(&self, part: &Nodes) -> Nodes {
        let slots = (self.slots - part.slots).max(0.0);
        let rest = |amount: &Amount| {
            let all = amount.filled();
            let nothing =
                Amount { value: 0.0, low: 0.0, high: 0.0, known: 0.0, unknown: part.slots, ..*amount };
            let mut part = *part.find(amount.kind.metric.id).unwrap_or(&nothing);
            if part.known == 0.0 {
                // as the whole
                part.value = all.value / all.known * part.unknown;
                (part.high, part.known, part.unknown) = (part.unknown, part.unknown, 0.0);
            }
            let part = part.filled();
            let known = all.known - part.known;
            (known > 0.0 && slots > 0.0).then_some(Amount {
                value: all.value - part.value,
                low: all.low - part.high,
                high: all.high - part.low,
                known,
                unknown: 0.0,
                ..*amount
            })
        };
        Nodes { amounts: self.amounts.iter().filter_map(rest).collect(), slots }
    }

    /// Any node may be nothing, or all.
    pub fn anything(&mut self) {
        self.amounts.iter_mut().for_each(|amount| (amount.low, amount.high) = (0.0, amount.known));
    }

    /// As shares, parents before their children. `uncounted`: slots that may have passed uncounted.
    pub fn shown(&self, uncounted: f64) -> Vec<Shown> {
        let share = |amount: &Amount| {
            let all = amount.known + amount.unknown;
            let value = (amount.value / amount.known).clamp(0.0, 1.0);
            let part = uncounted / (uncounted + all);
            let low = (amount.low / all).clamp(0.0, 1.0) * (1.0 - part);
            let high = ((amount.high + amount.unknown) / all).clamp(0.0, 1.0) * (1.0 - part) + part;
            Shown { kind: amount.kind, value, low: low.min(value), high: high.max(value) }
        };
        let finite = |shown: &Shown| [shown.value, shown.low, shown.high].iter().all(|end| end.is_finite());
        let mut shown: Vec<Shown> = self.amounts.iter().map(share).filter(finite).collect();
        shown.sort_by_key(|node| node.kind.level); // (trees of several CPUs may be merged)
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown::LEVEL_1;

    fn node(k: usize, whole: u64, value: f64, error: f64) -> Node {
        let id = LEVEL_1[k].id;
        let (low, high) = ((value - error).max(0.0), (value + error).min(1.0));
        Node { id, level: 1, unit: TD_UNIT_SLOTS, measured: 1, whole, value, low, high, ..Node::default() }
    }

    fn is(shown: &Shown, value: f64, low: f64, high: f64) {
        for (found, expected) in [(shown.value, value), (shown.low, low), (shown.high, high)] {
            assert!((found - expected).abs() < 1e-9, "{shown:?}, not {value} in {low} to {high}");
        }
    }

    #[test]
    fn sums_have_the_sums_of_the_ends_and_what_is_not_known_may_be_anything() {
        let mut all = Nodes::new(1000.0, &[node(0, 1000, 0.5, 0.01), node(1, 1000, 0.2, 0.0)]);
        all.add(&Nodes::new(3000.0, &[node(0, 3000, 0.1, 0.02)]));
        let shown = all.shown(0.0);
        is(&shown[0], 0.2, (490.0 + 240.0) / 4000.0, (510.0 + 360.0) / 4000.0);
        // 3000 slots of which the second node is not known
        is(&shown[1], 0.2, 200.0 / 4000.0, 3200.0 / 4000.0);
        all.more_slots(1000.0);
        is(&all.shown(0.0)[0], 0.2, 730.0 / 5000.0, 1870.0 / 5000.0);
        // as many again may have passed uncounted
        is(&all.shown(5000.0)[0], 0.2, 730.0 / 10_000.0, 6870.0 / 10_000.0);
        let unmeasured = Nodes::new(500.0, &[]);
        assert!(unmeasured.shown(0.0).is_empty());
    }

    #[test]
    fn differences_have_the_farthest_ends() {
        let all = Nodes::new(1000.0, &[node(0, 1000, 0.5, 0.01)]);
        let part = Nodes::new(600.0, &[node(0, 600, 0.75, 0.02)]);
        // 500 less 450 of 400: 490 - 462 to 510 - 438
        is(&all.minus(&part).shown(0.0)[0], 0.125, 28.0 / 400.0, 72.0 / 400.0);
        // nothing is known of the part
        is(&all.minus(&Nodes::new(250.0, &[])).shown(0.0)[0], 0.5, 240.0 / 750.0, 510.0 / 750.0);
        assert!(all.minus(&all).shown(0.0).is_empty(), "of nothing");
        let mut anything = all.minus(&part);
        anything.anything();
        is(&anything.shown(0.0)[0], 0.125, 0.0, 1.0);
    }
}
