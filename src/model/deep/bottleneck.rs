//! The bottleneck view: shares of slots that follow from nodes all over the tree, each of which has an interval of its own.
#![forbid(unsafe_code)]

use super::{DeepNodeInfo, DeepTree};
use crate::cpu::deep::DeepBottleneck;
use crate::cpu::expression::{Expression, Operator};
use crate::model::metrics::{self, TD_UNIT_SLOTS};
use crate::sys::short;

/// A quotient of more names is told by the intervals of its two sides alone.
const MOST_CORNERS: usize = 12;

/// A figure of the bottleneck view.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck<'t> {
    /// perf's name, without "tma_bottleneck_".
    pub name: &'t str,
    /// Of slots.
    pub share: Bounded,
    /// The share above which it is flagged.
    pub above: f64,
}

/// A share, 0 to 1, and the ends between which the truth lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded {
    /// The figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Any part of a whole.
const UNKNOWN: Bounded = Bounded { value: 0.0, low: 0.0, high: 1.0 };

impl Bounded {
    fn exactly(value: f64) -> Bounded {
        Bounded { value, low: value, high: value }
    }

    fn plus(self, other: Bounded) -> Bounded {
        let [value, low, high] = [self.value + other.value, self.low + other.low, self.high + other.high];
        Bounded { value, low, high }
    }

    fn times(self, other: Bounded) -> Bounded {
        let ends =
            [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        let low = ends.into_iter().fold(f64::INFINITY, f64::min);
        let high = ends.into_iter().fold(f64::NEG_INFINITY, f64::max);
        Bounded { value: self.value * other.value, low, high }
    }

    fn each(self, other: Bounded, of: impl Fn(f64, f64) -> f64) -> Bounded {
        let [value, low, high] =
            [of(self.value, other.value), of(self.low, other.low), of(self.high, other.high)];
        Bounded { value, low, high }
    }

    fn share(self) -> Bounded {
        self.each(self, |one, _| one.clamp(0.0, 1.0))
    }
}

/// What names are worth.
struct Names<'a>(&'a dyn Fn(&str) -> Bounded);

/// A product of factors and of parts of wholes, each of which is between 0 and 1.
#[derive(Clone, Default)]
struct Term<'e> {
    is_less: bool,
    factors: Vec<&'e Expression>,
    parts: Vec<(Vec<&'e Expression>, &'e Expression)>,
}

impl<'e> Term<'e> {
    /// Those of a sum.
    fn all(sum: &'e Expression, is_less: bool, terms: &mut Vec<Term<'e>>) {
        match sum {
            Expression::Of(Operator::Plus, of) => of.iter().for_each(|one| Term::all(one, is_less, terms)),
            Expression::Of(Operator::Minus, of) => {
                Term::all(&of[0], is_less, terms);
                Term::all(&of[1], !is_less, terms);
            }
            _ => {
                let mut term = Term { is_less, ..Term::default() };
                term.multiply(sum);
                terms.push(term);
            }
        }
    }

    fn multiply(&mut self, product: &'e Expression) {
        match product {
            Expression::Of(Operator::Times, of) => of.iter().for_each(|one| self.multiply(one)),
            Expression::Of(Operator::By, of) => {
                let (mut left, whole) = (Term::default(), &of[1]);
                left.multiply(&of[0]);
                // (the part is what the whole names, or else the last factor; what stands before that is multiplied by it)
                let (mut part, mut before): (Vec<_>, Vec<_>) =
                    left.factors.into_iter().partition(|factor| share_names(factor, whole));
                if part.is_empty() {
                    part.extend(before.pop());
                }
                self.factors.append(&mut before);
                self.parts.append(&mut left.parts);
                self.parts.push((part, whole));
            }
            _ => self.factors.push(product),
        }
    }

    /// Whether one of its parts is of this.
    fn has_part_of(&self, whole: &Expression) -> bool {
        !self.is_less && self.parts.iter().any(|(_, own)| *own == whole)
    }
}

fn share_names(a: &Expression, b: &Expression) -> bool {
    let names = a.names();
    b.names().iter().any(|name| names.contains(name))
}

/// A side of a quotient, with names that may stand on both by their places among `atoms`.
enum Side {
    Atom(usize),
    Number(f64),
    Sum(Box<[Side; 2]>),
    Difference(Box<[Side; 2]>),
    Product(Box<[Side; 2]>),
}

/// What sides are made of: names, and quotients or choices, each as if it had nothing to do with the rest.
#[derive(Default)]
struct Atoms<'e> {
    names: Vec<Option<&'e str>>,
    bounds: Vec<Bounded>,
}

impl<'e> Atoms<'e> {
    /// Where this one is; None: it has no name, and is like no other.
    fn place(&mut self, name: Option<&'e str>, bounds: Bounded) -> usize {
        let known = self.names.iter().position(|other| name.is_some() && *other == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.bounds.push(bounds);
            self.names.len() - 1
        })
    }
}

impl Side {
    fn at(&self, atoms: &dyn Fn(usize) -> f64) -> f64 {
        match self {
            Side::Atom(place) => atoms(*place),
            Side::Number(number) => *number,
            Side::Sum(of) => of[0].at(atoms) + of[1].at(atoms),
            Side::Difference(of) => of[0].at(atoms) - of[1].at(atoms),
            Side::Product(of) => of[0].at(atoms) * of[1].at(atoms),
        }
    }
}

impl Names<'_> {
    fn of(&self, all: &Expression) -> Bounded {
        match all {
            Expression::Number(number) => Bounded::exactly(*number),
            Expression::Name(name) => (self.0)(name),
            // (no bottleneck has a condition)
            Expression::If(_) => UNKNOWN,
            Expression::Of(operator, operands) => {
                let own = |k: usize| self.of(&operands[k]);
                match operator {
                    Operator::Plus | Operator::Minus | Operator::Times | Operator::By => {
                        let mut terms = Vec::new();
                        Term::all(all, false, &mut terms);
                        self.sum(&terms)
                    }
                    Operator::Min => own(0).each(own(1), f64::min),
                    Operator::Max => own(0).each(own(1), f64::max),
                    Operator::Less | Operator::NotLess => UNKNOWN,
                }
            }
        }
    }

    /// Terms that are parts of one whole are told together, since together they are no more than that.
    fn sum(&self, terms: &[Term]) -> Bounded {
        let mut rest: Vec<&Term> = terms.iter().collect();
        let mut sum = Bounded::exactly(0.0);
        while let Some(first) = rest.first().copied() {
            let is_of_several =
                |whole: &&Expression| rest.iter().filter(|term| term.has_part_of(whole)).count() > 1;
            let whole = first.parts.iter().map(|(_, whole)| *whole).find(is_of_several);
            let together = whole.filter(|_| !first.is_less).and_then(|whole| {
                let (own, others): (Vec<&Term>, _) = rest.iter().partition(|term| term.has_part_of(whole));
                Some((self.parts(&own, whole)?, others))
            });
            let (value, others) = together.unwrap_or_else(|| (self.term(first), rest[1..].to_vec()));
            (sum, rest) = (sum.plus(value), others);
        }
        sum
    }

    /// The sum of terms that are each a part of this whole, times something; None: they are not of that kind.
    fn parts(&self, terms: &[&Term], whole: &Expression) -> Option<Bounded> {
        let mut terms: Vec<Term> = terms.iter().map(|term| (*term).clone()).collect();
        let mut common = Bounded::exactly(1.0);
        for factor in terms[0].factors.clone() {
            let place = |term: &Term| term.factors.iter().position(|own| *own == factor);
            if terms.iter().all(|term| place(term).is_some()) {
                common = common.times(self.of(factor));
                terms.iter_mut().for_each(|term| _ = place(term).map(|place| term.factors.remove(place)));
            }
        }
        // each part with all that it is multiplied by
        let mut parts: Vec<(&Expression, Vec<Term>)> = Vec::new();
        for mut term in terms {
            let own = term.parts.iter().position(|(_, other)| *other == whole)?;
            let (own, _) = term.parts.remove(own);
            let [part] = own[..] else { return None };
            match parts.iter_mut().find(|(other, _)| *other == part) {
                Some((_, all)) => all.push(term),
                None => parts.push((part, vec![term])),
            }
        }
        let mut atoms = Atoms::default();
        let mut sum = Side::Number(0.0);
        for (part, by) in &parts {
            let part = self.side(part, &mut atoms)?;
            let by = atoms.place(None, self.sum(by));
            sum = Side::Sum(Box::new([sum, Side::Product(Box::new([part, Side::Atom(by)]))]));
        }
        let whole = self.side(whole, &mut atoms)?;
        (atoms.bounds.len() <= MOST_CORNERS).then(|| common.times(corners(&sum, &whole, &atoms.bounds)))
    }

    /// A term by itself.
    fn term(&self, term: &Term) -> Bounded {
        let sign = Bounded::exactly(if term.is_less { -1.0 } else { 1.0 });
        let factors = term.factors.iter().map(|factor| self.of(factor));
        let parts = term.parts.iter().map(|(part, whole)| self.part(part, whole));
        factors.chain(parts).fold(sign, Bounded::times)
    }

    /// What part this product is of a whole, 0 to 1; of nothing any.
    fn part(&self, factors: &[&Expression], whole: &Expression) -> Bounded {
        let by_sides = || {
            let part = factors.iter().fold(Bounded::exactly(1.0), |part, one| part.times(self.of(one)));
            by_sides(part, self.of(whole))
        };
        let mut atoms = Atoms::default();
        let mut part = Some(Side::Number(1.0));
        for factor in factors {
            let side = self.side(factor, &mut atoms);
            part = part.zip(side).map(|(part, side)| Side::Product(Box::new([part, side])));
        }
        let is_plain = factors
            .iter()
            .enumerate()
            .all(|(k, one)| factors[..k].iter().all(|other| !share_names(one, other)));
        let sides = part.filter(|_| is_plain).zip(self.side(whole, &mut atoms));
        let sides = sides.filter(|_| atoms.bounds.len() <= MOST_CORNERS);
        sides.map_or_else(by_sides, |(part, whole)| corners(&part, &whole, &atoms.bounds))
    }

    /// One whose value, of each atom by itself, is a straight line; None: it is not.
    fn side<'e>(&self, all: &'e Expression, atoms: &mut Atoms<'e>) -> Option<Side> {
        Some(match all {
            Expression::Number(number) => Side::Number(*number),
            Expression::Name(name) => Side::Atom(atoms.place(Some(name), (self.0)(name))),
            Expression::Of(operator @ (Operator::Plus | Operator::Minus | Operator::Times), operands) => {
                let [a, b] = &**operands;
                let both = Box::new([self.side(a, atoms)?, self.side(b, atoms)?]);
                match operator {
                    Operator::Plus => Side::Sum(both),
                    Operator::Minus => Side::Difference(both),
                    _ if share_names(a, b) => return None,
                    _ => Side::Product(both),
                }
            }
            _ => Side::Atom(atoms.place(None, self.of(all))),
        })
    }
}

/// A quotient that goes only one way with each of its atoms has its ends where each of these is at an end.
fn corners(part: &Side, whole: &Side, bounds: &[Bounded]) -> Bounded {
    let at = |atoms: &dyn Fn(usize) -> f64| {
        let (part, whole) = (part.at(atoms), whole.at(atoms));
        (whole > 0.0).then(|| (part / whole).clamp(0.0, 1.0))
    };
    let (mut low, mut high) = (1.0f64, 0.0f64);
    for corner in 0..1usize << bounds.len() {
        let end = |atom: usize| if corner >> atom & 1 == 0 { bounds[atom].low } else { bounds[atom].high };
        // (part of nothing is any)
        let (least, most) = at(&end).map_or((0.0, 1.0), |share| (share, share));
        (low, high) = (low.min(least), high.max(most));
    }
    let value = at(&|atom| bounds[atom].value).unwrap_or(0.0).clamp(low, high);
    Bounded { value, low, high }
}

fn by_sides(part: Bounded, whole: Bounded) -> Bounded {
    let over = |part: f64, whole: f64, else_: f64| if whole > 0.0 { part / whole } else { else_ };
    let value = over(part.value, whole.value, 0.0);
    let (low, high) = (over(part.low, whole.high, 0.0), over(part.high, whole.low, 1.0));
    Bounded { value, low, high }.share()
}

impl DeepTree {
    /// The bottleneck view, if the tree has one, of what each node is told to be (None: it was not measured). What was not measured may be
    /// anything (or any part of the slots of the node above), and is so in the bounds.
    #[must_use]
    pub fn bottlenecks(&self, told: &dyn Fn(u32) -> Option<Bounded>) -> Vec<Bottleneck<'_>> {
        let by_node = |name: &str| {
            let metric = metrics::ALL.iter().find(|metric| metric.field() == name);
            metric.map_or(UNKNOWN, |metric| self.bounded(metric.id, told))
        };
        self.view(&by_node)
    }

    /// A node. Slots are some of those of the node above, where both are counted and not estimated.
    fn bounded(&self, id: u32, told: &dyn Fn(u32) -> Option<Bounded>) -> Bounded {
        let is_counted = |node: &DeepNodeInfo| node.unit == TD_UNIT_SLOTS && !node.is_estimated;
        told(id).unwrap_or_else(|| match self.node(id) {
            Some(own) if is_counted(own) && self.node(own.parent).is_some_and(is_counted) => {
                Bounded { high: self.bounded(own.parent, told).high, ..UNKNOWN }
            }
            _ => UNKNOWN,
        })
    }

    /// Whether bottlenecks take the node as it is, and nothing bounds it while it is not measured: it is an estimate of slots right below
    /// level 2.
    #[must_use]
    pub fn is_unbounded(&self, id: u32) -> bool {
        let is_one = |node: &DeepNodeInfo| node.unit == TD_UNIT_SLOTS && node.is_estimated && node.level == 3;
        self.node(id).is_some_and(is_one) && self.bottleneck_nodes().contains(&id)
    }

    fn view(&self, by_node: &dyn Fn(&str) -> Bounded) -> Vec<Bottleneck<'_>> {
        let others = |one: &DeepBottleneck| {
            let names = one.value.names();
            self.bottlenecks.iter().filter(|other| names.contains(&other.name.as_str())).count()
        };
        let mut order: Vec<&DeepBottleneck> = self.bottlenecks.iter().collect();
        short::sort_by_key(&mut order, |one| others(one)); // (what takes others behind these)
        let mut view: Vec<Bottleneck> = Vec::new();
        for one in order {
            let told = |name: &str| view.iter().find(|other| other.name == name);
            let named = |name: &str| match told(name) {
                Some(other) => other.share,
                None => by_node(name),
            };
            let share = Names(&named).of(&one.value).share();
            view.push(Bottleneck { name: &one.name, share, above: one.above });
        }
        view
    }

    /// The nodes and parts that the bottleneck view takes.
    #[must_use]
    pub fn bottleneck_nodes(&self) -> Vec<u32> {
        let names: Vec<&str> = self.bottlenecks.iter().flat_map(|one| one.value.names()).collect();
        let taken = self.nodes.iter().filter(|node| names.contains(&node.metric.field()));
        taken.map(|node| node.metric.id).collect()
    }
}

#[cfg(test)]
mod tests;
