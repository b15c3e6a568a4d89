//! Trees of deeper levels: each node of each group has the value that its published formula has of the same counts.

use super::*;
use crate::cpu::deep::{DeepNode, DeepText, RETIRE_LATENCY};
use crate::cpu::expression::{Expression, Operator};
use crate::model::deep::{DeepFacts, planned, planned_nodes};
use crate::model::{MOST_INPUTS, MOST_NODES};
use crate::sys::random::Random;

mod figures;

const FACTS: DeepFacts = DeepFacts {
    counters: 8,
    smt: false,
    tsc_ghz: Some(2.5),
    watchdog: false,
    shows_slots: true,
    shown: u64::MAX,
};

const SPAN: Span = Span {
    flags: 0,
    slots: 60_000_000,
    category: [0.0; CATEGORIES],
    rounding: 0.0,
    edges: 0.0,
    running: 1.0,
    uncounted: 0.0,
    level: 6,
};

/// What a formula's names are worth.
struct Worth<'a> {
    text: &'a DeepText,
    facts: &'a DeepFacts,
    slots: f64,
    /// How often an event happened.
    event: &'a dyn Fn(u64, u64) -> f64,
    /// The share of a node of levels 1 and 2 that the core's own text has.
    own: &'a dyn Fn(&str) -> Option<f64>,
}

impl Worth<'_> {
    fn named(&self, name: &str) -> f64 {
        let bit = |is: bool| f64::from(u8::from(is));
        match name {
            "smt_on" => return bit(self.facts.smt),
            "tsc_ghz" => return self.facts.tsc_ghz.unwrap(),
            "TOPDOWN.SLOTS:PERF_METRICS" => return self.slots,
            _ => {}
        }
        if let Some(event) = name.strip_suffix(RETIRE_LATENCY) {
            return latency_of(event);
        }
        if let Some(event) = self.text.event(name) {
            return (self.event)(event.config, event.config1);
        }
        if let Some(share) = (self.own)(name) {
            return share;
        }
        let of_node = || self.text.node_of(name).and_then(|node| node.value.as_ref());
        self.of(self.text.figure(name).or_else(of_node).unwrap_or_else(|| panic!("{name}")))
    }

    fn of(&self, all: &Expression) -> f64 {
        match all {
            Expression::Number(number) => *number,
            Expression::Name(name) => self.named(name),
            Expression::If(operands) => self.of(&operands[if self.of(&operands[0]) != 0.0 { 1 } else { 2 }]),
            Expression::Of(operator, operands) => {
                let (a, b) = (self.of(&operands[0]), self.of(&operands[1]));
                match operator {
                    Operator::Plus => a + b,
                    Operator::Minus => a - b,
                    Operator::Times => a * b,
                    Operator::By if a == 0.0 && b == 0.0 => 0.0,
                    Operator::By => a / b,
                    Operator::Min => a.min(b),
                    Operator::Max => a.max(b),
                    Operator::Less => f64::from(u8::from(a < b)),
                    Operator::NotLess => f64::from(u8::from(a >= b)),
                }
            }
        }
    }
}

/// Some mean retire latency.
fn latency_of(event: &str) -> f64 {
    event.bytes().map(u64::from).sum::<u64>() as f64 / 256.0
}

/// Texts of cores whose cycles have so many slots.
const TEXTS: [(&str, f64); 13] = [
    ("spr", 6.0),
    ("emr", 6.0),
    ("adl-p", 6.0),
    ("gnr", 6.0),
    ("mtl-p", 6.0),
    ("lnl-p", 8.0),
    ("arl-p", 8.0),
    ("icx", 5.0),
    ("icl", 5.0),
    ("tgl", 5.0),
    ("skx", 4.0),
    ("skl", 4.0),
    ("clx", 4.0),
];

#[test]
fn each_node_is_what_its_published_formula_says() {
    let (mut random, mut compared) = (Random::new(7), 0);
    for (name, width) in TEXTS {
        // (of more counters there are than any core has, more nodes are told: those with conditions)
        for facts in
            [FACTS, DeepFacts { smt: true, tsc_ghz: Some(3.1), ..FACTS }, DeepFacts { counters: 12, ..FACTS }]
        {
            let (text, groups) = planned(name, &facts);
            for (counters, told) in groups {
                compared += compare(name, width, &text, &facts, counters, &told, &mut random);
            }
        }
    }
    assert!(compared > 1_500, "{compared}");
}

#[test]
fn nodes_that_are_named_share_a_group_with_what_is_below_them_and_are_what_their_formulas_say() {
    let (mut random, mut compared, mut refused) = (Random::new(11), 0, 0);
    for (name, width) in TEXTS {
        let (text, _) = planned(name, &FACTS);
        let all: Vec<&DeepNode> = text.nodes.iter().filter(|node| !node.is_part).collect();
        for round in 0..40 {
            let draw = |random: &mut Random| all[random.below(all.len() as u64) as usize];
            let wanted: Vec<&DeepNode> = (0..1 + round % 4).map(|_| draw(&mut random)).collect();
            let metrics: Vec<Metric> =
                wanted.iter().filter_map(|node| model::metric_of_name(&node.name)).collect();
            let level = if round % 2 == 0 { 0 } else { 6 };
            let (counters, told) = match planned_nodes(name, &FACTS, &metrics, level) {
                Ok(group) => group,
                Err(why) => {
                    assert!(wanted.iter().any(|node| why.contains(&node.name.replace('_', " "))), "{why}");
                    refused += 1;
                    continue;
                }
            };
            let rows = counters.tree.nodes;
            for node in &wanted {
                let row = rows.iter().find(|row| row.metric().field() == node.name);
                assert!(row.is_some_and(|row| row.is_measured(6)), "{name} {}", node.name);
            }
            // (nothing else comes with them than what is below them)
            for metric in &told {
                let mut above = text.node_of(metric.field());
                let mut steps = 0;
                while let Some(node) = above.filter(|node| wanted.iter().all(|other| other.name != node.name))
                {
                    above = node.parent.as_ref().and_then(|parent| text.node_of(parent));
                    steps += 1;
                }
                assert!(above.is_some() && (level > 0 || steps <= 1), "{name} {}", metric.field());
            }
            compared += compare(name, width, &text, &FACTS, counters, &told, &mut random);
        }
        let one = model::metric_of_name("l1_bound").unwrap();
        let alone = planned_nodes(name, &FACTS, &[one], 0).unwrap();
        let with_children = planned_nodes(name, &FACTS, &[one], 6).unwrap();
        assert!(alone.1.contains(&one) && with_children.1.len() >= alone.1.len());
        let few = DeepFacts { counters: 2, ..FACTS };
        assert!(planned_nodes(name, &few, &[one], 0).unwrap_err().contains("cannot be counted here"));
    }
    assert!(compared > 300 && refused > 20, "{compared} {refused}");
}

fn compare(
    name: &str,
    width: f64,
    text: &DeepText,
    facts: &DeepFacts,
    counters: &'static model::Counters,
    told: &[Metric],
    random: &mut Random,
) -> usize {
    let tree = counters.tree;
    let span = SPAN;
    let mut counted = CountedInputs::new(model::of_core("made-up core").unwrap(), &span);
    (counted.rounding, counted.edges) = (0.0, 0.0);
    let counts: Vec<f64> = tree.inputs.iter().map(|_| random.below(4_000_000) as f64).collect();
    let mut inputs = [0.0; MOST_INPUTS];
    for (place, input) in tree.inputs.iter().enumerate() {
        inputs[place] = counts[place] * f64::from(input.each());
        counted.set(place, inputs[place]);
    }
    let nodes: Vec<Node> = nodes(tree, 6, &counted, &span, |nodes| nodes.collect());
    let share = |name: &str| {
        let node = nodes.iter().find(|node| node.metric().is_some_and(|metric| metric.field() == name))?;
        (node.measured == 1 && node.level <= 2 && told.iter().all(|metric| metric.id != node.id))
            .then_some(node.value)
    };
    let slots = span.slots as f64;
    let event = |config: u64, config1: u64| {
        let is_it = |event: &model::Event| (event.config, event.config1) == (config, config1);
        let led = counters.leaders.iter().any(|leader| leader.by_cycle && leader.event.config == config);
        let place = counters.events.iter().position(is_it);
        place.map(|place| counts[place]).or_else(|| led.then_some(slots / width)).unwrap_or_else(|| {
            panic!("{name}: nothing counts {config:#x}");
        })
    };
    let worth = Worth { text, facts, slots, event: &event, own: &share };
    for metric in told {
        let node = nodes.iter().find(|node| node.id == metric.id).unwrap();
        let expected = worth.of(text.node_of(metric.field()).unwrap().value.as_ref().unwrap());
        let expected = expected.clamp(0.0, 1.0);
        assert_eq!(node.measured, 1, "{name} {metric:?}");
        assert!((node.value - expected).abs() < 1e-9, "{name} {metric:?} {} {expected}", node.value);
        assert!(node.low <= node.value && node.value <= node.high, "{name} {node:?}");
    }
    told.len()
}

#[test]
fn no_group_takes_more_than_there_is_and_each_node_is_told_or_has_a_reason() {
    for counters in [12, 8, 6, 5, 4] {
        for (name, _) in TEXTS {
            let facts = DeepFacts { counters, ..FACTS };
            let (text, groups) = planned(name, &facts);
            for (group, _) in &groups {
                crate::model::tree::tests::check(group.tree);
                assert!(
                    group.tree.nodes.len() <= MOST_NODES && group.events.len() <= MOST_INPUTS,
                    "{name} {group:?}"
                );
                let leader = group.leaders[0];
                assert!(model::general_counters(&leader, group.events) <= counters, "{name} {group:?}");
                // (events that four counters count, beside those that all do)
                let few = |event: &&model::Event| {
                    text.event(event.name).is_some_and(|of_text| of_text.counters == 0xf)
                };
                assert!(group.events.iter().filter(few).count() <= 4, "{name} {group:?}");
                let offcore =
                    group.events.iter().filter(|event| event.config1 > 0 && event.config & 0xff == 0x2a);
                assert!(offcore.count() <= 2, "{name} {group:?}");
            }
            let mut told: Vec<u32> = groups.iter().flat_map(|(_, told)| told).map(|node| node.id).collect();
            let all = told.len();
            told.sort_unstable();
            told.dedup();
            // (as many as can take turns, beside the one of whole levels)
            assert!(groups.len() < 60, "{name} {counters}: {}", groups.len());
            assert!(told.len() == all && (counters < 8 || all > 60), "{name} {counters}: {all}");
        }
    }
}

#[test]
fn a_node_is_a_share_of_what_its_text_says() {
    let tree = model::deep_tree_of("spr").unwrap();
    let unit = |name: &str| tree.unit(model::metric_of_name(name).unwrap().id);
    assert_eq!(unit("fp_arith"), TD_UNIT_OPERATIONS);
    assert_eq!((unit("icache_misses"), unit("light_operations")), (TD_UNIT_CLOCKS, TD_UNIT_SLOTS));
}

#[test]
fn the_watchdog_takes_the_counter_of_cycles_from_each_group() {
    let told = |watchdog| {
        let (_, groups) = planned("spr", &DeepFacts { watchdog, ..FACTS });
        groups.iter().map(|(_, told)| told.len()).sum::<usize>()
    };
    assert!(told(true) < told(false) && told(true) > 50, "{} {}", told(true), told(false));
}

#[test]
fn what_is_divided_by_nothing_is_nothing_if_it_is_nothing_itself() {
    use crate::model::tree::Expr::{self, Input, Number, Part};
    use interval::{Interval, evaluate};
    let of = |a: Interval, b: Interval| {
        evaluate(&Part(&Input(0), &Input(1)), &|leaf| match leaf {
            Input(0) => Some(a),
            _ => Some(b),
        })
    };
    let (none, few) = (Interval::exact(0.0), Interval { value: 0.0, low: 0.0, high: 3.0 });
    assert_eq!(of(none, none), Some(none));
    assert_eq!(of(few, none).map(|part| (part.value, part.high)), Some((0.0, f64::INFINITY)));
    let two = of(Interval::exact(2.0), none).unwrap();
    assert_eq!((two.value, two.low, two.high), (0.0, f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!(of(Interval::exact(3.0), Interval::exact(4.0)), Some(Interval::exact(0.75)));
    static CHOICE: [Expr; 4] = [Input(0), Number(4.0), Number(10.0), Number(20.0)];
    let choose = |a: Interval| {
        let choice = Expr::IfLess(&CHOICE);
        evaluate(&choice, &|_| Some(a)).unwrap()
    };
    assert_eq!(choose(Interval::exact(3.9)), Interval::exact(10.0));
    assert_eq!(choose(Interval::exact(4.0)), Interval::exact(20.0));
    let either = choose(Interval { value: 3.0, low: 2.0, high: 5.0 });
    assert_eq!((either.value, either.low, either.high), (10.0, 10.0, 20.0));
}
