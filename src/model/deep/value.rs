//! A node's value with all names resolved.
#![forbid(unsafe_code)]

use super::companion::per_second;
use super::facts::DeepFacts;
use super::groups::DeepCore;
use crate::cpu::deep::RETIRE_LATENCY;
use crate::cpu::expression::{Expression, Operator};
use crate::model::tree::Expr;
use std::collections::BTreeSet;

/// No figure follows from others that deep. (How deep the expression of one is its reader bounds.)
const MOST_STEPS: u32 = 60;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(f64),
    Slots,
    /// Of the time in which all was counted.
    Seconds,
    /// An event, by its place in the text.
    Event(usize),
    /// The mean retire latency of an event.
    Latency(usize),
    /// A node that the core's own levels have, by its place in their tree.
    Node(usize),
    Of(Operator, Box<[Value; 2]>),
    /// The third where the first is less than the second, else the fourth.
    IfLess(Box<[Value; 4]>),
}

/// A count that a value takes, of an event by its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CountOf {
    Event(usize),
    /// The retire latencies of all that samples stand for, in cycles.
    Latencies(usize),
    /// How many these are.
    Timed(usize),
}

/// What a value takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    pub events: BTreeSet<usize>,
    /// Events whose retire latency is taken.
    pub latencies: BTreeSet<usize>,
    pub nodes: BTreeSet<usize>,
}

impl Value {
    /// Resolves an expression. What is wrong: why it cannot be told here.
    pub fn of(expression: &Expression, core: &DeepCore, facts: &DeepFacts) -> Result<Value, String> {
        resolve(expression, core, facts, 0)
    }

    pub fn take(&self, taken: &mut Taken) {
        match self {
            Value::Number(_) | Value::Slots | Value::Seconds => {}
            Value::Event(event) => _ = taken.events.insert(*event),
            Value::Latency(event) => _ = taken.latencies.insert(*event),
            Value::Node(node) => _ = taken.nodes.insert(*node),
            Value::Of(_, operands) => operands.iter().for_each(|one| one.take(taken)),
            Value::IfLess(operands) => operands.iter().for_each(|one| one.take(taken)),
        }
    }

    /// As the evaluator takes it. `event`: what an event is among the inputs; `node`: the id of a node.
    pub fn expr(&self, event: &dyn Fn(usize) -> Expr, node: &dyn Fn(usize) -> u32) -> Expr {
        match self {
            Value::Number(number) => Expr::Number(*number),
            Value::Slots => Expr::Slots,
            // (no node's formula has it)
            Value::Seconds => Expr::Number(f64::NAN),
            Value::Event(place) => event(*place),
            Value::Latency(_) => Expr::Number(f64::NAN), // (no group has it)
            Value::Node(place) => Expr::Node(node(*place)),
            Value::Of(operator, operands) => {
                let own = |k: usize| operands[k].expr(event, node);
                if matches!(operator, Operator::Less | Operator::NotLess) {
                    let is_less = f64::from(u8::from(*operator == Operator::Less));
                    let all = [own(0), own(1), Expr::Number(is_less), Expr::Number(1.0 - is_less)];
                    return Expr::IfLess(Box::leak(Box::new(all)));
                }
                let leaked = |k: usize| -> &'static Expr { Box::leak(Box::new(own(k))) };
                let make = match operator {
                    Operator::Plus => Expr::Sum,
                    Operator::Minus => Expr::Difference,
                    Operator::Times => Expr::Product,
                    Operator::By => Expr::Part,
                    Operator::Min => Expr::Least,
                    _ => Expr::Greatest,
                };
                make(leaked(0), leaked(1))
            }
            Value::IfLess(operands) => {
                Expr::IfLess(Box::leak(Box::new([0, 1, 2, 3].map(|k| operands[k].expr(event, node)))))
            }
        }
    }
}

/// What a value without nodes is of.
pub(super) struct Counted<'a> {
    pub slots: f64,
    /// The time in which they were counted.
    pub seconds: f64,
    /// Each count that the value takes.
    pub count: &'a dyn Fn(CountOf) -> f64,
}

impl Value {
    /// Whether something in it depends on which of two is less.
    pub fn bends(&self) -> bool {
        match self {
            Value::Of(Operator::Min | Operator::Max | Operator::Less | Operator::NotLess, _) => true,
            Value::IfLess(_) => true,
            Value::Of(_, operands) => operands.iter().any(Value::bends),
            _ => false,
        }
    }

    /// The value of what was counted, if it takes no nodes: as perf has it (tools/perf/util/expr.y), where what is divided by nothing is no
    /// number, and min and max are comparisons, which no number passes.
    pub fn evaluate(&self, counted: &Counted) -> f64 {
        match self {
            Value::Number(number) => *number,
            Value::Slots => counted.slots,
            Value::Seconds => counted.seconds,
            Value::Event(place) => (counted.count)(CountOf::Event(*place)),
            // (of what never happened it is nothing)
            Value::Latency(place) => {
                let timed = (counted.count)(CountOf::Timed(*place));
                (counted.count)(CountOf::Latencies(*place)) / timed.max(1.0)
            }
            Value::Node(_) => f64::NAN,
            Value::Of(operator, operands) => {
                let [a, b] = [0, 1].map(|k| operands[k].evaluate(counted));
                match operator {
                    Operator::Plus => a + b,
                    Operator::Minus => a - b,
                    Operator::Times => a * b,
                    Operator::By if b == 0.0 => f64::NAN,
                    Operator::By => a / b,
                    Operator::Min => {
                        if a < b {
                            a
                        } else {
                            b
                        }
                    }
                    Operator::Max => {
                        if a > b {
                            a
                        } else {
                            b
                        }
                    }
                    Operator::Less => f64::from(u8::from(a < b)),
                    Operator::NotLess => f64::from(u8::from(a >= b)),
                }
            }
            Value::IfLess(operands) => {
                let [a, b, then, otherwise] = [0, 1, 2, 3].map(|k| operands[k].evaluate(counted));
                if a < b { then } else { otherwise }
            }
        }
    }
}

fn resolve(all: &Expression, core: &DeepCore, facts: &DeepFacts, steps: u32) -> Result<Value, String> {
    if steps > MOST_STEPS {
        return Err("its formula follows from itself".into());
    }
    let resolve = |one: &Expression| resolve(one, core, facts, steps);
    match all {
        Expression::Number(number) => Ok(Value::Number(*number)),
        Expression::Name(name) => named(name, core, facts, steps + 1),
        Expression::Of(operator, operands) => {
            Ok(Value::Of(*operator, Box::new([resolve(&operands[0])?, resolve(&operands[1])?])))
        }
        Expression::If(operands) => {
            let [condition, then, otherwise] = &**operands;
            match resolve(condition)? {
                Value::Number(number) => resolve(if number != 0.0 { then } else { otherwise }),
                Value::Of(operator @ (Operator::Less | Operator::NotLess), of) => {
                    let [a, b] = *of;
                    let (then, otherwise) = (resolve(then)?, resolve(otherwise)?);
                    Ok(Value::IfLess(Box::new(match operator {
                        Operator::Less => [a, b, then, otherwise],
                        _ => [a, b, otherwise, then],
                    })))
                }
                _ => Err("its formula has a condition that compares nothing".into()),
            }
        }
    }
}

fn named(name: &str, core: &DeepCore, facts: &DeepFacts, steps: u32) -> Result<Value, String> {
    match name {
        "smt_on" => return Ok(Value::Number(f64::from(u8::from(facts.smt)))),
        "tsc_ghz" => {
            let unknown = "how fast the time-stamp counter runs is not known";
            return facts.tsc_ghz.map(Value::Number).ok_or_else(|| unknown.into());
        }
        "duration_time" => return Ok(Value::Seconds),
        "TOPDOWN.SLOTS:PERF_METRICS" | "TOPDOWN.SLOTS" => return Ok(Value::Slots),
        _ => {}
    }
    if let Some(place) = core.text.events.iter().position(|event| event.name == name) {
        return match core.cycles_led(place) {
            Some(width) => Ok(Value::Of(Operator::By, Box::new([Value::Slots, Value::Number(width)]))),
            None if core.is_arm64() && facts.lacks(core.text.events[place].config) => {
                Err(format!("this CPU, or the hypervisor, says that it does not count {name}"))
            }
            None => Ok(Value::Event(place)),
        };
    }
    if let Some(place) = core.own_place(name) {
        return Ok(Value::Node(place));
    }
    let node = core.text.node_of(name).and_then(|node| node.value.as_ref());
    if let Some(value) = core.text.figure(name).or(node) {
        return resolve(value, core, facts, steps);
    }
    // (given metrics may take published ones)
    if let Some(one) = core.text.companions.iter().find(|one| one.name == name) {
        return Ok(per_second(&one.unit, resolve(&one.value, core, facts, steps)?));
    }
    let timed = name.strip_suffix(RETIRE_LATENCY);
    // (given events, which are before the text's own, are not sampled)
    let of_text = |name: &str| core.text.events.iter().rposition(|event| event.name == name);
    if let Some(place) = timed.filter(|_| core.times).and_then(of_text) {
        return Ok(Value::Latency(place));
    }
    Err(match timed {
        Some(event) => format!("the retire latency of {event} is not measured"),
        None if core.text.node_of(name).is_some() => {
            format!("{} is in PERF_METRICS alone", name.replace('_', " "))
        }
        None => format!("{name} is not counted by the core's own counters"),
    })
}
