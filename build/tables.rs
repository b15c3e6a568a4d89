//! The tables of a core as Rust: rows, counters, trees.

use crate::expression::{Expression, Operator};
use crate::groups::{Formula, Group, Groups};
use crate::text::{Event, Text};
use std::fmt::Write;

/// Which rows of a core there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Fewer,
    Subtree,
}

/// The tables of these cores, each with its groups.
pub fn tables(cores: &[(Text, Groups)]) -> String {
    let mut out = String::new();
    for (name, kind) in [("ROWS", Kind::Whole), ("FEWER", Kind::Fewer), ("SUBTREES", Kind::Subtree)] {
        let _ = writeln!(out, "pub(super) const {name}: &[Model] = &[");
        for (text, groups) in cores {
            let of_kind: Vec<&Group> = match kind {
                Kind::Whole => vec![&groups.whole],
                Kind::Fewer => groups.fewer.iter().collect(),
                Kind::Subtree => groups.subtrees.iter().collect(),
            };
            for group in of_kind {
                row(&mut out, text, groups, group, kind);
            }
        }
        out += "];\n";
    }
    out
}

fn row(out: &mut String, text: &Text, groups: &Groups, group: &Group, kind: Kind) {
    let core = match (&group.subtree, kind) {
        (Some(node), _) => format!("{}, {}", text.core, node.replace('_', " ")),
        (None, Kind::Fewer) => format!("{}, fewer counters", text.core),
        (None, _) => text.core.clone(),
    };
    // (nobody looks a CPU up among rows of fewer counters)
    let vendor = if kind == Kind::Fewer { "" } else { &text.vendor };
    let subtree = group.subtree.as_ref().map_or("0".into(), |node| format!("{}.id", metric(node)));
    let no_deeper = if group.subtree.is_none() { &groups.no_deeper[..] } else { "" };
    let events = group.events.iter().map(|place| event(&text.events[*place]));
    let leader = text.leader.as_ref().map(event).unwrap_or_default();
    let optional =
        |one: &Option<Event>| one.as_ref().map_or("None".into(), |one| format!("Some({})", event(one)));
    let _ = writeln!(
        out,
        "Model {{ core: {core:?}, vendor: {vendor:?}, family: {}, models: &{:?}, slots_per_cycle: {}, proved: {:?}, counting: \
         Counting::Counters(&Counters {{ tree: &{}, leaders: &[Leader {{ event: {leader}, by_cycle: true, general: true }}], events: &[{}], \
         subtree: {subtree}, general: {}, returns: {}, clock: {}, no_deeper: {no_deeper:?}, alone: {} }}) }},",
        text.family,
        text.models,
        text.width,
        text.proved,
        tree(text, group),
        list(events),
        text.counters,
        optional(&text.returns),
        optional(&text.clock),
        group.alone,
    );
}

fn tree(text: &Text, group: &Group) -> String {
    let inputs = group.slots_each.iter().enumerate().map(|(place, slots)| match slots {
        1 => format!("Input::Counter({place})"),
        _ => format!("Input::Cycles({place}, {slots})"),
    });
    let nodes = group.nodes.iter().map(|(place, formula)| {
        let node = &text.nodes[*place];
        let parent = node.parent.as_ref().map_or("0".into(), |parent| format!("{}.id", metric(parent)));
        format!(
            "Row {{ metric: {}, parent: {parent}, level: {}, unit: metrics::TD_UNIT_SLOTS, formula: {} }}",
            metric(&node.name),
            node.level,
            formula
                .as_ref()
                .map_or("Formula::NoCounter".into(), |formula| self::formula(text, group, formula))
        )
    });
    let simulated = group.events.iter().map(|event| format!("{:?}", text.events[*event].simulated));
    format!(
        "Tree {{ inputs: &[{}], clocks: None, unsure: &[], nodes: &[{}], per_cycle: &[{}] }}",
        list(inputs),
        list(nodes),
        list(simulated)
    )
}

fn formula(text: &Text, group: &Group, formula: &Formula) -> String {
    match formula {
        Formula::Slots(event) => format!("Formula::Slots({event})"),
        Formula::Balance(more, less) => format!("Formula::Balance(&{more:?}, &{less:?})"),
        Formula::Rest => "Formula::Rest".into(),
        Formula::Of(expression) => format!("Formula::Of({})", operand(text, group, expression)),
    }
}

fn operand(text: &Text, group: &Group, expression: &Expression) -> String {
    match expression {
        Expression::Number(number) => format!("&Expr::Number({number:?})"),
        Expression::Name(name) if name == "slots" => "&Expr::Slots".into(),
        Expression::Name(name) => match group.place(text, name) {
            Some(place) => format!("&Expr::Input({place})"),
            None => format!("&Expr::Node({}.id)", metric(name)),
        },
        Expression::Of(operator, operands) => {
            let operator = match operator {
                Operator::Plus => "Sum",
                Operator::Minus => "Difference",
                Operator::Times => "Product",
                Operator::By => "Quotient",
                Operator::Min => "Least",
                Operator::Max => "Greatest",
            };
            let [a, b] = &**operands;
            format!("&Expr::{operator}({}, {})", operand(text, group, a), operand(text, group, b))
        }
    }
}

fn event(event: &Event) -> String {
    let Event { name, config, may_be_silent, .. } = event;
    format!("Event {{ may_be_silent: {may_be_silent}, ..Event::new({name:?}, {config:#x}) }}")
}

fn metric(node: &str) -> String {
    format!("metrics::{}", node.to_uppercase())
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
