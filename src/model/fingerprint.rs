//! What a core is counted by, as one number: what is written down (samples, sums, files) names its core by it, so that another
//! version of the library reads what it knows and refuses the rest. A place in the table of CPUs means another core in another
//! version.
//!
//! The number follows from the core's name, the inputs and formulas of its tree, and the events in their order; not from its
//! place in the table, nor from texts for people. It is computed at compile time, but of rows of deeper trees.
#![forbid(unsafe_code)]

use super::place::row_at;
use super::tree::{Clocks, Expr, Formula, Input, NodeRow, Tree};
use super::{Counting, Event, Leader, Model, Variant, of_core, texts, tree_of_row};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// What the fields of a sample and a sum mean: one more whenever that changes.
const MEANING: u64 = 1;

/// FNV-1a, of whole numbers instead of bytes.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    const fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325).number(MEANING)
    }

    const fn number(self, n: u64) -> Hash {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Hash(mixed ^ mixed >> 32)
    }

    const fn text(self, text: &[u8]) -> Hash {
        let (mut hash, mut k) = (self.number(text.len() as u64), 0);
        while k < text.len() {
            hash = hash.number(text[k] as u64);
            k += 1;
        }
        hash
    }

    const fn places(self, places: &[usize]) -> Hash {
        let (mut hash, mut k) = (self.number(places.len() as u64), 0);
        while k < places.len() {
            hash = hash.number(places[k] as u64);
            k += 1;
        }
        hash
    }

    const fn ids(self, ids: &[u32]) -> Hash {
        let (mut hash, mut k) = (self.number(ids.len() as u64), 0);
        while k < ids.len() {
            hash = hash.number(ids[k] as u64);
            k += 1;
        }
        hash
    }

    const fn input(self, input: Input) -> Hash {
        match input {
            Input::Category(k) => self.number(1).number(k as u64),
            Input::Counter(k) => self.number(2).number(k as u64),
            Input::Cycles(k, slots) => self.number(3).number(k as u64).number(slots as u64),
        }
    }

    const fn expr(self, expr: &Expr) -> Hash {
        match expr {
            Expr::Number(n) => self.number(1).number(n.to_bits()),
            Expr::Input(input) => self.number(2).number(*input as u64),
            Expr::Slots => self.number(3),
            Expr::Node(id) => self.number(4).number(*id as u64),
            Expr::Sum(a, b) => self.number(5).expr(a).expr(b),
            Expr::Difference(a, b) => self.number(6).expr(a).expr(b),
            Expr::Product(a, b) => self.number(7).expr(a).expr(b),
            Expr::Quotient(a, b) => self.number(8).expr(a).expr(b),
            Expr::Least(a, b) => self.number(9).expr(a).expr(b),
            Expr::Greatest(a, b) => self.number(10).expr(a).expr(b),
            Expr::Part(a, b) => self.number(11).expr(a).expr(b),
            Expr::IfLess([a, b, c, d]) => self.number(12).expr(a).expr(b).expr(c).expr(d),
        }
    }

    const fn formula(self, formula: &Formula) -> Hash {
        match formula {
            Formula::Slots(input) => self.number(1).number(*input as u64),
            Formula::Balance(of) => self.number(2).places(of.more).places(of.less),
            Formula::Retired(of) => {
                let hash = self.number(3).places(of.stalls).places(of.not_stalls);
                hash.number(of.retired as u64).number(of.dispatched as u64)
            }
            Formula::Corrected(of) => self.number(7).number(of.slots as u64).places(of.less).places(of.more),
            Formula::Rest => self.number(4),
            Formula::Of(expr) => self.number(5).expr(expr),
            Formula::NoCounter => self.number(6),
        }
    }

    const fn node(self, row: &NodeRow) -> Hash {
        let hash = self.number(row.id as u64).text(row.metric().name.to_bytes());
        let hash = hash.number(row.parent as u64).number(row.level as u64).number(row.unit as u64);
        hash.formula(&row.formula)
    }

    const fn tree(self, tree: &Tree) -> Hash {
        let (mut hash, mut k) = (self.number(tree.inputs.len() as u64), 0);
        while k < tree.inputs.len() {
            hash = hash.input(tree.inputs[k]);
            k += 1;
        }
        hash = match tree.clocks {
            Some(Clocks::Input(input)) => hash.number(1).number(input as u64),
            Some(Clocks::Slots(width)) => hash.number(2).number(width as u64),
            None => hash.number(3),
        };
        (hash, k) = (hash.number(tree.nodes.len() as u64), 0);
        while k < tree.nodes.len() {
            hash = hash.node(&tree.nodes[k]);
            k += 1;
        }
        (hash, k) = (hash.number(tree.unsure.len() as u64), 0);
        while k < tree.unsure.len() {
            hash = hash.ids(tree.unsure[k].counted_in).ids(tree.unsure[k].published_in);
            k += 1;
        }
        hash
    }

    const fn event(self, event: &Event) -> Hash {
        let hash = self.text(event.name.as_bytes()).number(event.config).number(event.never as u64);
        if event.config1 == 0 { hash } else { hash.number(event.config1) }
    }

    const fn leader(self, leader: &Leader) -> Hash {
        self.event(&leader.event).number(leader.by_cycle as u64)
    }

    const fn counting(self, counting: &Counting) -> Hash {
        match counting {
            Counting::PerfMetrics { level, tree, moved } => {
                let (mut hash, mut k) = (self.number(1).number(*level as u64).tree(tree), 0);
                while k < moved.len() {
                    hash = hash.event(&moved[k].event).number(moved[k].each as u64);
                    hash = hash.places(moved[k].from).places(moved[k].to);
                    k += 1;
                }
                hash
            }
            Counting::Counters(counters) => {
                let (mut hash, mut k) = (self.number(2).tree(counters.tree), 0);
                while k < counters.leaders.len() {
                    hash = hash.leader(&counters.leaders[k]);
                    k += 1;
                }
                (hash, k) = (hash.number(counters.events.len() as u64), 0);
                while k < counters.events.len() {
                    hash = hash.event(&counters.events[k]);
                    k += 1;
                }
                hash
            }
            Counting::None(_) => self.number(3),
        }
    }
}

/// The fingerprint of a row of the table.
pub(super) const fn of_row(row: &Model) -> u64 {
    let hash = Hash::new().text(row.core.as_bytes()).number(row.slots_per_cycle as u64);
    let (mut hash, mut k) = (hash.counting(&row.counting), 0);
    // what the E-cores of a hybrid CPU count as a whole
    while matches!(row.variant, Variant::Hybrid) && k < texts::E_CORES.len() {
        if are_equal(texts::E_CORES[k].base.as_bytes(), row.base.as_bytes()) {
            hash = hash.counting(&texts::E_CORES[k].counting);
        }
        k += 1;
    }
    hash.0
}

const fn are_equal(a: &[u8], b: &[u8]) -> bool {
    let mut k = 0;
    while k < a.len() && k < b.len() && a[k] == b[k] {
        k += 1;
    }
    k == a.len() && k == b.len()
}

/// The fingerprint of the core of this name (`Info::core`), of its tree (formulas, and the order of nodes and inputs) and of the
/// events that it is counted by: the same in all builds and versions in which these are the same, and another where one is not.
/// Whoever writes counts to a file writes this beside the core's name, and reads a file only where it is still the same. None: no
/// core that can be counted has the name.
#[must_use]
pub fn fingerprint(core: &str) -> Option<u64> {
    let place = of_core(core)?;
    match FINGERPRINTS[usize::from(place)] {
        0 => Some(of_row(super::at(place.into())?)),
        fingerprint => Some(fingerprint),
    }
}

/// The bits of a mark.
pub(crate) const MARK: u32 = 0xf_ffff;

/// As much of the fingerprint of the row at a place as a sample has room for, beside the place; 0 if no row is there that can be
/// counted.
#[inline(always)]
pub(crate) fn mark(place: u8) -> u32 {
    match mark_of_table(place) {
        0 => LATE[usize::from(place)].load(Relaxed),
        mark => mark,
    }
}

/// The same of the rows of the table alone; 0 of all others.
#[inline(always)]
pub(crate) fn mark_of_table(place: u8) -> u32 {
    MARKS[usize::from(place)]
}

/// Puts in the mark of a row that is no row of the table.
pub(super) fn put(place: usize, row: &Model) {
    LATE[place].store(folded(of_row(row)), Relaxed);
}

static LATE: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];

/// Not 0.
const fn folded(all: u64) -> u32 {
    let folded = (all ^ all >> 20 ^ all >> 40) as u32 & MARK;
    if folded == 0 { 1 } else { folded }
}

/// Of the row at each place; 0 where none is that can be counted.
static FINGERPRINTS: [u64; 256] = {
    let (mut all, mut place) = ([0; 256], 0);
    while let Some(row) = row_at(place) {
        if tree_of_row(row).is_some() {
            all[place] = of_row(row);
        }
        place += 1;
    }
    all
};

static MARKS: [u32; 256] = {
    let (mut marks, mut place) = ([0; 256], 0);
    while place < marks.len() {
        if FINGERPRINTS[place] != 0 {
            marks[place] = folded(FINGERPRINTS[place]);
        }
        place += 1;
    }
    marks
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metrics::{RETIRING, TD_NODE_NONE};
    use crate::model::tree::{child, root};
    use crate::model::{Counters, INTEL_CYCLES, rows};
    use std::collections::HashSet;

    const EVENTS: [Event; 2] = [Event::new("one", 0x1c2), Event::new("two", 0x2c2)];
    const NODES: [NodeRow; 1] = [root(RETIRING, Formula::Slots(0))];

    fn of(name: &'static str, inputs: &'static [Input], nodes: &[NodeRow], events: &[Event]) -> u64 {
        let (nodes, events) = (nodes.to_vec().leak(), events.to_vec().leak());
        let tree = Box::leak(Box::new(Tree::new(inputs, None, &[], nodes, &[])));
        let counters = Counters {
            tree,
            leaders: &[INTEL_CYCLES],
            events,
            subtree: TD_NODE_NONE,
            general: 2,
            returns: None,
            clock: None,
            no_deeper: crate::model::NoDeeper::default(),
            alone: false,
        };
        let row = crate::model::at(crate::model::SIMULATED).unwrap();
        let counting = Counting::Counters(Box::leak(Box::new(counters)));
        of_row(&Model { core: name, base: name, slots_per_cycle: 4, counting, ..*row })
    }

    #[test]
    fn every_core_has_a_fingerprint_of_its_own() {
        let cores: Vec<_> = rows().filter(|row| tree_of_row(row).is_some()).map(|row| row.core).collect();
        let all: HashSet<_> = cores.iter().map(|core| fingerprint(core).unwrap()).collect();
        assert_eq!(all.len(), cores.len());
        let marks: HashSet<_> = cores.iter().map(|core| mark(of_core(core).unwrap())).collect();
        assert!(marks.len() == cores.len() && marks.iter().all(|mark| *mark != 0 && *mark <= MARK));
        assert!(!all.contains(&0) && fingerprint("no such core").is_none());
    }

    #[test]
    fn it_is_another_for_whatever_is_changed() {
        use Input::{Counter, Cycles};
        let inputs: &[_] = &[Counter(0), Counter(1)];
        let [one, two] = EVENTS;
        let sum = |a, b| root(RETIRING, Formula::Of(Box::leak(Box::new(Expr::Sum(a, b)))));
        let all = [
            of("core", inputs, &NODES, &EVENTS),
            of("Core", inputs, &NODES, &EVENTS),
            of("core", inputs, &NODES, &[two, one]),
            of("core", inputs, &NODES, &[one, Event::new("two", 0x2c3)]),
            of("core", inputs, &NODES, &[one]),
            of("core", &[Counter(1), Counter(0)], &NODES, &EVENTS),
            of("core", &[Counter(0), Cycles(1, 6)], &NODES, &EVENTS),
            of("core", inputs, &[root(RETIRING, Formula::Slots(1))], &EVENTS),
            of("core", inputs, &[root(RETIRING, Formula::Rest)], &EVENTS),
            of("core", inputs, &[child(RETIRING, 1, Formula::Slots(0))], &EVENTS),
            of("core", inputs, &[sum(&Expr::Input(0), &Expr::Number(6.0))], &EVENTS),
            of("core", inputs, &[sum(&Expr::Input(0), &Expr::Number(8.0))], &EVENTS),
            of("core", inputs, &[sum(&Expr::Number(6.0), &Expr::Input(0))], &EVENTS),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:x?}");
        assert_eq!(all[0], of("core", inputs, &NODES, &EVENTS));
    }
}
