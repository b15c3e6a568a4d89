//! Slots of many sums, added and subtracted, with a bound that stays one.
#![forbid(unsafe_code)]

use crate::elapsed::{self, Elapsed};
use crate::nodes::{InTurns, NodeInterval, NodeSums, ShareInterval, TalliedNode};
use serde::ser::{Serialize, SerializeMap, Serializer};
use topdown::{L1, L2, LEVEL_1, LEVEL_2, Metric, MovedSlots, Node, Sum, TD_NODE_SMT_CONTENTION};

/// Shares of slots, which add up to 1 with `other`, and the bound: none is further than this from the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundedShares<const N: usize> {
    /// In the order of `topdown::LEVEL_1` or `topdown::LEVEL_2`.
    pub of: [f64; N],
    /// What is of none of them: on AMD, SMT contention.
    pub other: f64,
    /// The bound.
    pub error: f64,
}

/// Level 1.
pub type Level1 = BoundedShares<4>;
/// Level 2.
pub type Level2 = BoundedShares<8>;

impl<const N: usize> BoundedShares<N> {
    /// What its categories are.
    pub fn metrics() -> &'static [Metric] {
        if N == LEVEL_1.len() { &LEVEL_1 } else { &LEVEL_2 }
    }
}

impl<const N: usize> Serialize for BoundedShares<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(N + 1))?;
        for (metric, share) in Self::metrics().iter().zip(self.of) {
            map.serialize_entry(metric.field(), &share)?;
        }
        map.serialize_entry("error", &self.error)?;
        map.end()
    }
}

impl From<L1> for Level1 {
    fn from(l1: L1) -> Level1 {
        BoundedShares { of: l1.shares(), other: l1.smt_contention, error: l1.error }
    }
}

impl From<L2> for Level2 {
    fn from(l2: L2) -> Level2 {
        BoundedShares { of: l2.shares(), other: 0.0, error: l2.error }
    }
}

/// Time between turns, in which no group counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gaps {
    /// How long.
    pub ns: u64,
    /// Upper bound on the slots in each of these nanoseconds.
    pub most_slots_per_ns: f64,
}

impl Gaps {
    /// Slots that passed uncounted in what a sum counted, gaps among it.
    pub fn uncounted(self, sum: &Sum) -> f64 {
        let lost = sum.time_enabled_ns.saturating_sub(sum.time_running_ns);
        if lost == 0 {
            return 0.0;
        }
        let (slots, ns) = (sum.uncounted_slots(), self.ns.min(lost));
        let per_ns = slots / lost as f64;
        slots - ns as f64 * (per_ns - per_ns.min(self.most_slots_per_ns))
    }
}

/// How slots divide at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split<const N: usize> {
    /// Slots of each category, of those of which something is known.
    parts: [f64; N],
    /// Of those, slots of none of the categories.
    other: f64,
    /// All of which something is known.
    known: f64,
    /// Bound on the error of each part, in slots.
    error: f64,
    /// Slots of which nothing is known.
    unknown: f64,
}

impl<const N: usize> Split<N> {
    const NONE: Split<N> = Split { parts: [0.0; N], other: 0.0, known: 0.0, error: 0.0, unknown: 0.0 };

    fn new(slots: f64, shares: Option<BoundedShares<N>>) -> Split<N> {
        match shares {
            Some(BoundedShares { of, other, error })
                if slots > 0.0 && of.iter().all(|share| share.is_finite()) =>
            {
                Split {
                    parts: of.map(|share| share * slots),
                    other: other * slots,
                    known: slots,
                    error: error.clamp(0.0, 1.0) * slots,
                    unknown: 0.0,
                }
            }
            _ => Split { unknown: slots, ..Split::NONE },
        }
    }

    fn total(&self) -> f64 {
        self.known + self.unknown
    }

    fn add(&mut self, other: &Split<N>) {
        self.parts.iter_mut().zip(other.parts).for_each(|(all, new)| *all += new);
        self.other += other.other;
        self.known += other.known;
        self.error += other.error;
        self.unknown += other.unknown;
    }

    /// What is not known taken to be as the rest, or where nothing is known, as that of `like`: then all of it may
    /// be wrong.
    fn filled(&self, like: &Split<N>) -> Split<N> {
        let model = if self.known > 0.0 { self } else { like };
        let more = if model.known > 0.0 { self.unknown / model.known } else { 0.0 };
        Split {
            parts: std::array::from_fn(|k| self.parts[k] + model.parts[k] * more),
            other: self.other + model.other * more,
            known: self.total(),
            error: self.error + self.unknown,
            unknown: 0.0,
        }
    }

    /// What is left of all without a part.
    fn minus(&self, part: &Split<N>) -> Split<N> {
        let slots = (self.total() - part.total()).max(0.0);
        if self.known == 0.0 || slots == 0.0 {
            return Split { unknown: slots, ..Split::NONE };
        }
        let (all, part) = (self.filled(self), part.filled(self));
        Split {
            parts: std::array::from_fn(|k| all.parts[k] - part.parts[k]),
            other: all.other - part.other,
            known: slots,
            error: all.error + part.error,
            unknown: 0.0,
        }
    }

    /// Any part may be nothing, or all.
    fn anything(&mut self) {
        let farthest = |part: f64| part.abs().max((self.known - part).abs());
        self.error = self.parts.into_iter().map(farthest).fold(0.0, f64::max);
    }

    /// Each part of what is known; a difference may have left less than nothing of one.
    fn near(&self) -> Option<[f64; N]> {
        (self.known > 0.0 && self.known.is_finite()).then(|| self.parts.map(|part| part / self.known))
    }

    /// What is shown for it, with the bound from there to the far end of where the truth can be.
    fn shown(&self, near: [f64; N], of: [f64; N], other: f64) -> BoundedShares<N> {
        let bound = (self.error + self.unknown) / self.total();
        let error = of.iter().zip(near).fold(0.0, |worst: f64, (share, near)| {
            let (low, high) = ((near - bound).clamp(0.0, 1.0), (near + bound).clamp(0.0, 1.0));
            worst.max(share - low).max(high - share)
        });
        BoundedShares { of, other, error }
    }
}

impl Split<4> {
    fn shares(&self) -> Option<Level1> {
        let near = self.near()?;
        let cut = near.map(|share| share.clamp(0.0, 1.0));
        let other = (self.other / self.known).clamp(0.0, 1.0);
        let whole: f64 = cut.iter().sum::<f64>() + other;
        let of = cut.map(|share| if whole > 0.0 { share / whole } else { 0.25 });
        Some(self.shown(near, of, if whole > 0.0 { other / whole } else { 0.0 }))
    }
}

impl Split<8> {
    /// Each pair adds up to its parent.
    fn shares(&self, parents: &Level1) -> Option<Level2> {
        let near = self.near()?;
        let first = |k: usize| near[2 * k].clamp(0.0, parents.of[k]);
        let of = |k: usize| if k % 2 == 0 { first(k / 2) } else { parents.of[k / 2] - first(k / 2) };
        Some(self.shown(near, std::array::from_fn(of), 0.0))
    }
}

/// Level 1, if these nodes have all of it.
fn level_1_of(nodes: &[Node]) -> Option<Level1> {
    let find = |id: u32| nodes.iter().find(|node| node.id == id && node.measured == 1);
    let four: Vec<&Node> = LEVEL_1.iter().filter_map(|metric| find(metric.id)).collect();
    let of = <[&Node; 4]>::try_from(four).ok()?;
    let far = |node: &Node| (node.value - node.low).max(node.high - node.value);
    Some(BoundedShares {
        of: of.map(|node| node.value),
        other: find(TD_NODE_SMT_CONTENTION).map_or(0.0, |node| node.value),
        error: of.into_iter().map(far).fold(0.0, f64::max),
    })
}

/// Figures that add up.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    pub slots: u64,
    pub time_ns: u64,
    pub running_ns: u64,
    /// Executions, and those of which it is known how their slots divide.
    pub executions: u64,
    pub measured: u64,
    /// Slots that may have passed while the counters were not counting.
    uncounted: f64,
    /// How those that were counted divide.
    one: Split<4>,
    two: Split<8>,
    /// The same by node of the tree of metrics, but for those that were counted in turns.
    nodes: NodeSums,
    in_turns: InTurns,
    /// What clocks told of executions that are not among these; None: there are none.
    pub elapsed: Option<Elapsed>,
    /// What executions had that did not end is in it, or what ran in these is missing.
    pub lacks: bool,
}

impl Account {
    pub const NONE: Account = Account {
        slots: 0,
        time_ns: 0,
        running_ns: 0,
        executions: 0,
        measured: 0,
        uncounted: 0.0,
        one: Split::NONE,
        two: Split::NONE,
        nodes: NodeSums::NONE,
        in_turns: InTurns::NONE,
        elapsed: None,
        lacks: false,
    };

    /// So many executions, of which clocks alone tell.
    pub fn of_clocks(executions: u64, elapsed: Elapsed) -> Account {
        Account { executions, elapsed: Some(elapsed), ..Account::NONE }
    }

    /// Whether a part is more than all of it.
    pub fn is_less_than(&self, part: &Account) -> bool {
        let wall = |of: &Account| of.elapsed.and_then(|elapsed| elapsed.wall_ns);
        let is_less = |(own, part): (u64, u64)| part > own;
        part.slots > self.slots || wall(self).zip(wall(part)).is_some_and(is_less)
    }

    /// Whether there is anything of it.
    pub fn is_some(&self) -> bool {
        self.slots > 0 || self.elapsed.is_some_and(|elapsed| elapsed.wall_ns != Some(0))
    }

    /// What a sum says; nothing, if it is none.
    pub fn new(sum: &Sum) -> Option<Account> {
        Account::of_sum(sum, &MovedSlots::UNSEEN)
    }

    /// The same, with what others have counted of the same work.
    pub fn of_sum(sum: &Sum, moved: &MovedSlots) -> Option<Account> {
        let counted = sum.counted();
        let nodes = match counted.decode_tree_beside(moved) {
            Ok(nodes) => nodes,
            Err(error) if error.code() == topdown::TD_ENOTCOUNTING => Vec::new(),
            Err(_) => return None,
        };
        Some(Account {
            one: Split::new(sum.slots as f64, counted.l1_beside(moved).ok().map(Into::into)),
            two: Split::new(sum.slots as f64, counted.l2_beside(moved).ok().map(Into::into)),
            ..Account::of_nodes(sum, &nodes)
        })
    }

    /// What a sum says of the turns of a group, of this name, and the turns of the nodes below level 1. Nothing, if it is none.
    pub fn of_turns(sum: &Sum, group: (&str, u64), tallies: Vec<TalliedNode>) -> Option<Account> {
        let nodes = match sum.counted().decode_tree() {
            Err(error) if error.code() != topdown::TD_ENOTCOUNTING => return None,
            nodes => nodes.unwrap_or_default(),
        };
        Some(Account {
            nodes: NodeSums::NONE,
            in_turns: InTurns::new(sum.slots as f64, &nodes, group, tallies),
            ..Account::of_nodes(sum, &nodes)
        })
    }

    /// No turn of a group of this name.
    pub fn of_group(name: &str) -> Account {
        Account { in_turns: InTurns::new(0.0, &[], (name, 0), Vec::new()), ..Account::NONE }
    }

    /// Whether a group that took turns had so few here that its nodes are not measured.
    pub fn has_few_turns(&self) -> bool {
        self.in_turns.are_few()
    }

    /// With those that were counted in turns.
    fn all_nodes(&self) -> NodeSums {
        let mut all = self.nodes.clone();
        if !self.in_turns.is_none() {
            all.add(&self.in_turns.nodes());
        }
        all
    }

    /// So many slots in so much time as the sum has, which divide so. Of level 2 nothing is said but by node.
    pub fn of_nodes(sum: &Sum, nodes: &[Node]) -> Account {
        let slots = sum.slots as f64;
        Account {
            slots: sum.slots,
            time_ns: sum.time_enabled_ns,
            running_ns: sum.time_running_ns.min(sum.time_enabled_ns),
            executions: sum.executions,
            measured: sum.measured,
            uncounted: sum.uncounted_slots(),
            one: Split::new(slots, level_1_of(nodes)),
            two: Split::new(slots, None),
            nodes: NodeSums::new(slots, nodes),
            in_turns: InTurns::NONE,
            elapsed: None,
            lacks: false,
        }
    }

    /// The same, where these gaps are among the uncounted time.
    pub fn with_gaps(self, sum: &Sum, gaps: Gaps) -> Account {
        Account { uncounted: gaps.uncounted(sum), ..self }
    }

    pub fn add(&mut self, other: &Account) {
        self.slots = self.slots.saturating_add(other.slots);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
        self.executions = self.executions.saturating_add(other.executions);
        self.measured = self.measured.saturating_add(other.measured);
        self.uncounted += other.uncounted;
        self.one.add(&other.one);
        self.two.add(&other.two);
        self.nodes.add(&other.nodes);
        self.in_turns.add(&other.in_turns);
        self.elapsed = elapsed::sum(self.elapsed, other.elapsed);
        self.lacks |= other.lacks;
    }

    /// There were at least so many slots, in so much time; how the further ones divide is not known.
    pub fn reaches(&mut self, slots: u64, ns: u64) {
        let more_slots = slots.saturating_sub(self.slots);
        self.slots += more_slots;
        self.one.unknown += more_slots as f64;
        self.two.unknown += more_slots as f64;
        if self.in_turns.is_none() {
            self.nodes.more_slots(more_slots as f64);
        } else {
            self.in_turns.more_slots(more_slots as f64);
        }
        let more_ns = ns.saturating_sub(self.time_ns);
        self.time_ns += more_ns;
        // nobody noted how much of it was counted; some was, if slots came
        self.running_ns += if more_slots > 0 { more_ns } else { 0 };
    }

    /// Takes the level 2 of others, who have counted nearly all of the same work, if it has none of its own: what they have not seen may
    /// be of any node.
    pub fn take_level_2(&mut self, of: &Account) {
        let unseen = self.slots.abs_diff(of.slots);
        let is_most = unseen as f64 + of.uncounted <= 0.1 * self.slots as f64;
        if self.two.known > 0.0 || of.two.known == 0.0 || !is_most {
            return;
        }
        self.two = Split { unknown: of.two.unknown + unseen as f64, ..of.two };
        self.nodes.take_level_2(&of.nodes, unseen as f64);
    }

    /// What is left without a part.
    pub fn minus(&self, part: &Account) -> Account {
        Account {
            slots: self.slots.saturating_sub(part.slots),
            time_ns: self.time_ns.saturating_sub(part.time_ns),
            running_ns: self.running_ns.saturating_sub(part.running_ns),
            executions: self.executions,
            measured: self.measured,
            uncounted: (self.uncounted - part.uncounted).max(0.0),
            one: self.one.minus(&part.one),
            two: self.two.minus(&part.two),
            nodes: self.all_nodes().minus(&part.all_nodes()),
            in_turns: InTurns::NONE,
            elapsed: elapsed::difference(self.elapsed, part.elapsed),
            lacks: self.lacks,
        }
    }

    /// What is left without a part that was counted by other means: what those may have missed is in what is left.
    pub fn without(&self, part: &Account) -> Account {
        Account { uncounted: self.uncounted + part.uncounted, ..self.minus(part) }
    }

    /// Any of it may be wrong.
    pub fn unknown(mut self) -> Account {
        self.one.anything();
        self.two.anything();
        self.nodes = self.all_nodes();
        self.in_turns = InTurns::NONE;
        self.nodes.anything();
        self.elapsed = elapsed::unknown(self.elapsed);
        self.lacks = true;
        self
    }

    pub fn level_1(&self) -> Option<Level1> {
        Some(self.widened(self.one.shares()?))
    }

    pub fn level_2(&self) -> Option<Level2> {
        Some(self.widened(self.two.shares(&self.one.shares()?)?))
    }

    /// Nodes of the tree. Those of both levels have the levels' values, and no wider bound.
    pub fn tree(&self) -> Vec<NodeInterval> {
        let (one, two) = (self.level_1(), self.level_2());
        let one = one
            .iter()
            .flat_map(|one| LEVEL_1.iter().zip(one.of).map(|(metric, share)| (metric, share, one.error)));
        let two = two
            .iter()
            .flat_map(|two| LEVEL_2.iter().zip(two.of).map(|(metric, share)| (metric, share, two.error)));
        let named: Vec<_> = one.chain(two).collect();
        let mut nodes = self.all_nodes().shown(self.uncounted);
        for node in &mut nodes {
            let Some((_, share, error)) = named.iter().find(|(metric, ..)| *metric == node.kind.metric)
            else {
                continue;
            };
            let ShareInterval { low, high, .. } = node.share;
            let (low, high) = (low.max(share - error).min(*share), high.min(share + error).max(*share));
            node.share = ShareInterval { value: *share, low, high };
        }
        nodes
    }

    /// With what passed uncounted, which may have been all of one category.
    fn widened<const N: usize>(&self, shares: BoundedShares<N>) -> BoundedShares<N> {
        let part = self.uncounted / (self.uncounted + self.one.total());
        let farthest = shares.of.iter().fold(0.0, |most: f64, share| most.max(*share).max(1.0 - share));
        BoundedShares { error: shares.error * (1.0 - part) + farthest * part, ..shares }
    }

    /// Part of the time that the counters were counting; not known of no time.
    pub fn running(&self) -> Option<f64> {
        (self.time_ns > 0).then(|| (self.running_ns as f64 / self.time_ns as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_none_of_the_four_keeps_its_share() {
        let shares = BoundedShares { of: [0.4, 0.1, 0.2, 0.2], other: 0.1, error: 0.0 };
        let mut all = Split::new(1000.0, Some(shares));
        all.add(&Split::new(
            3000.0,
            Some(BoundedShares { of: [0.0, 0.0, 0.0, 0.5], other: 0.5, error: 0.0 }),
        ));
        let sum = all.shares().unwrap();
        for (share, slots) in sum.of.into_iter().chain([sum.other]).zip([400.0, 100.0, 200.0, 1700.0, 1600.0])
        {
            assert!((share - slots / 4000.0).abs() < 1e-12, "{sum:?}");
        }
        let rest = all.minus(&Split::new(
            3000.0,
            Some(BoundedShares { of: [0.0, 0.0, 0.0, 0.5], other: 0.5, error: 0.0 }),
        ));
        assert!((rest.shares().unwrap().other - 0.1).abs() < 1e-12);
    }
}
