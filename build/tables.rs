//! The tables of cores as Rust: rows, counters, trees.

use crate::expression::{Expression, Operator};
use crate::groups::{CounterGroup, CounterGroups, GroupFormula};
use crate::names::NodeName;
use crate::text::{CorePlace, CoreText, CpuEvent, CpuText, LeaderText, NodeText, NodeValue};

/// The fields of PERF_METRICS, in their order.
const FIELDS: [&str; 8] = [
    "retiring",
    "bad_speculation",
    "frontend_bound",
    "backend_bound",
    "heavy_operations",
    "branch_mispredicts",
    "fetch_latency",
    "memory_bound",
];
/// `td_info.core` has room for as many bytes of a name.
const MOST_NAME: usize = 47;

/// A text, and what its general-purpose counters hold; None: it is not counted by these.
pub type GroupedText = (CpuText, Option<CounterGroups>);

/// A core, with the text that it is of.
type TextCore<'a> = (&'a GroupedText, &'a CoreText);

/// The tables of these cores.
pub fn tables(cores: &[GroupedText]) -> String {
    let mut out = TableText { text: "pub(super) const ROWS: &[Model] = &[\n".into(), own: String::new() };
    for (text, groups) in cores {
        for core in &text.cores {
            out.core(text, groups.as_ref(), core);
        }
    }
    for (p_core, e_core) in hybrids(cores) {
        out.hybrid(p_core, e_core);
    }
    format!("{}];\npub(super) static E_CORES: &[Model] = &[\n{}];\n", out.text, out.own)
}

/// A constant of each node.
pub fn metrics(nodes: &[NodeName]) -> String {
    let constant = |node: &NodeName| {
        let NodeName { id, name, short, verdict } = node;
        format!(
            "/// See `cpus/nodes.list`.\n#[allow(dead_code)]\npub(crate) const {}: Metric = Metric {{ id: {id}, name: c\"tma_{name}\", \
             short: {short:?}, verdict: {verdict:?} }};\n",
            constant_of(name)
        )
    };
    let own_names: String = nodes.iter().map(constant).collect();
    let all = list(nodes.iter().map(|node| constant_of(&node.name)));
    format!("{own_names}/// All of them.\npub(crate) static ALL: &[Metric] = &[{all}];\n")
}

/// The constant of a node.
fn constant_of(name: &str) -> String {
    let upper = name.to_uppercase();
    if upper.starts_with(|c: char| c.is_ascii_digit()) { format!("N_{upper}") } else { upper }
}

/// Each kind of E-core, with the P-cores beside it.
fn hybrids(cores: &[GroupedText]) -> Vec<(TextCore<'_>, TextCore<'_>)> {
    let all = || cores.iter().flat_map(|read| read.0.cores.iter().map(move |core| (read, core)));
    let mut hybrids = Vec::new();
    for e_core in all().filter(|(_, core)| core.place == CorePlace::BesideP) {
        let is_beside = |(read, core): &TextCore| {
            read.0.metrics_level > 0 && e_core.1.models.iter().all(|model| core.models.contains(model))
        };
        let p_core = all().find(is_beside);
        hybrids.push((p_core.unwrap_or_else(|| panic!("no P-cores are beside {}", e_core.1.name)), e_core));
    }
    hybrids
}

struct TableText {
    text: String,
    /// What E-cores count together with P-cores.
    own: String,
}

/// What of a row is not its core's.
struct ModelRow<'a> {
    name: String,
    base: &'a str,
    variant: &'static str,
    models: &'a [u32],
    proved: &'a str,
    counting: String,
    untold: &'a [String],
}

fn row(text: &CpuText, core: &CoreText, row: &ModelRow) -> String {
    let ModelRow { name, base, variant, models, proved, counting, untold } = row;
    assert!(name.len() <= MOST_NAME, "the name '{name}' is longer than {MOST_NAME} bytes");
    format!(
        "Model {{ core: {name:?}, base: {base:?}, variant: Variant::{variant}, vendor: {:?}, family: {}, models: &{models:?}, \
         before: {}, slots_per_cycle: {}, proved: {proved:?}, untold: &{untold:?}, counting: {counting} }},\n",
        core.vendor, core.family, core.before, text.width,
    )
}

impl TableText {
    fn core(&mut self, text: &CpuText, groups: Option<&CounterGroups>, core: &CoreText) {
        let own = if core.place == CorePlace::BesideP { "ECores" } else { "Own" };
        let mut add = |name: String, variant: &'static str, level, counting| {
            let (base, models, proved) = (&core.name[..], &core.models[..], core.proved(level));
            let untold = groups.filter(|_| variant == own).map_or(&[][..], |groups| &groups.untold);
            self.text +=
                &row(text, core, &ModelRow { name, base, variant, models, proved, counting, untold });
        };
        if !text.not_counted.is_empty() {
            add(core.name.clone(), own, 0, format!("Counting::None({:?})", text.not_counted));
            return;
        }
        let named = |way: &str| format!("{}, {way}", core.name);
        let counted = |group: &CounterGroup, unsure: &str| counters(text, group, unsure);
        let unsure = unsure(text);
        let is_corrected = groups.is_some_and(|groups| groups.uncorrected.is_some());
        if text.metrics_level > 0 {
            let level = text.metrics_level;
            add(core.name.clone(), own, level, registers(text, "", &moved(text)));
            if is_corrected {
                add(named("registers alone"), "RegistersAlone", level, registers(text, &unsure, ""));
                add(named("bare"), "BareRegisters", level, registers(text, "", ""));
            }
        }
        let Some(groups) = groups else { return };
        let level = depth(text, &groups.whole);
        match text.metrics_level {
            0 => add(core.name.clone(), own, level, counted(&groups.whole, "")),
            _ => add(named("by counters"), "Counters", level, counted(&groups.whole, &unsure)),
        }
        if let Some(fewer) = &groups.uncorrected {
            add(named("fewer counters"), "FewerCounters", level, counted(fewer, &unsure));
            add(named("bare counters"), "BareCounters", level, counted(fewer, ""));
        }
        if let Some(fewer) = &groups.one_thread {
            add(named("fewer counters"), "OneThread", level, counted(fewer, ""));
        }
        for group in &groups.subtrees {
            let node = group.subtree.as_deref().unwrap_or_default().replace('_', " ");
            let name = format!("{}, {node}", core.short);
            add(name, "Subtree", depth(text, group), counted(group, ""));
        }
    }

    /// What both kinds of core count alike: each node by one event of either, or as the rest.
    fn hybrid(&mut self, p: TextCore, e: TextCore) {
        let name = format!("{} and {}", p.1.name, e.1.name);
        let (p_text, e_text) = (&p.0.0, &e.0.0);
        let (Some(p_groups), Some(e_groups)) = (&p.0.1, &e.0.1) else {
            panic!("{name}: one of both is not counted by counters")
        };
        let (p_group, e_group) = (&p_groups.whole, &e_groups.whole);
        let (mut events, mut corrections) = (Vec::new(), Vec::new());
        let mut nodes = Vec::new();
        for (p_place, of_p) in &p_group.nodes {
            let p_node = &p_text.nodes[*p_place];
            let is_same = |(place, _): &&(usize, _)| e_text.nodes[*place].name == p_node.name;
            let Some((e_place, of_e)) = e_group.nodes.iter().find(is_same) else { continue };
            let mut event = |p: usize, e: usize| {
                events.push((p_group.events[p], e_group.events[e]));
                events.len() - 1
            };
            let formula = match (of_p, of_e) {
                (Some(GroupFormula::Rest), Some(GroupFormula::Rest)) => GroupFormula::Rest,
                (Some(GroupFormula::Slots(p)), Some(GroupFormula::Slots(e))) => {
                    GroupFormula::Slots(event(*p, *e))
                }
                (Some(GroupFormula::Corrected(p, less, more)), Some(GroupFormula::Slots(e)))
                    if more.is_empty() =>
                {
                    let less = less.iter().map(|place| {
                        let event = p_group.events[*place];
                        corrections.iter().position(|other| *other == event).unwrap_or_else(|| {
                            corrections.push(event);
                            corrections.len() - 1
                        })
                    });
                    let less = less.collect();
                    GroupFormula::Corrected(event(*p, *e), less, Vec::new())
                }
                _ => continue,
            };
            nodes.push((*p_place, *e_place, formula));
        }
        // of E-cores, which count nothing of what corrects, some event stands for it
        let in_both = events.len();
        events.extend(corrections.iter().map(|event| (*event, e_group.events[0])));
        for (.., formula) in &mut nodes {
            if let GroupFormula::Corrected(_, less, _) = formula {
                less.iter_mut().for_each(|place| *place += in_both);
            }
        }
        let deeper = nodes.iter().map(|(place, ..)| &p_text.nodes[*place]).filter(|node| node.level > 1);
        let deeper: Vec<String> = deeper.map(|node| node.name.replace('_', " ")).collect();
        let group = |own: fn(usize, usize) -> usize| CounterGroup {
            subtree: None,
            alone: false,
            events: events.iter().map(|(p, e)| own(*p, *e)).collect(),
            nodes: nodes.iter().map(|(p, e, formula)| (own(*p, *e), Some(formula.clone()))).collect(),
            no_deeper: format!(
                "of level 2 {} alone, which both kinds of core count alike",
                deeper.join(" and ")
            ),
            besides_subtrees: None,
        };
        let (base, models, unsure) = (&name[..], &e.1.models[..], unsure(p_text));
        let of_kind =
            |text: &CpuText, core: &CoreText, name: &str, proved, group: &CounterGroup, never_from| {
                // (no samples are of both together)
                let text = &CpuText { returns: None, clock: None, ..text.clone() };
                let counting = counters_but(text, group, &unsure, never_from);
                let name = name.to_string();
                row(
                    text,
                    core,
                    &ModelRow { name, base, variant: "Hybrid", models, proved, counting, untold: &[] },
                )
            };
        let proved = &e.1.proved_with_p_cores;
        self.text += &of_kind(p_text, p.1, &name, proved, &group(|p, _| p), events.len());
        self.own += &of_kind(e_text, e.1, &e.1.name, "", &group(|_, e| e), in_both);
    }
}

/// Deepest level that a group lists.
fn depth(text: &CpuText, group: &CounterGroup) -> u32 {
    group.nodes.iter().map(|(place, _)| text.nodes[*place].level).max().unwrap_or(0)
}

/// SLOTS and PERF_METRICS.
fn registers(text: &CpuText, unsure: &str, moved: &str) -> String {
    format!(
        "Counting::PerfMetrics {{ level: {}, tree: {}, moved: &[{moved}] }}",
        text.metrics_level,
        with_sums(&format!("Tree::new(&perf_metrics::INPUTS, None, &[{unsure}], &perf_metrics::NODES, &[])"))
    )
}

/// Where an event corrects: nodes off which it is taken, and those to which it is added.
fn corrected<'t>(text: &'t CpuText, event: &str) -> [Vec<&'t str>; 2] {
    let [mut off, mut to] = [Vec::new(), Vec::new()];
    for node in &text.nodes {
        let Some(Expression::Of(operator, operands)) = node.expression() else { continue };
        if operands[1].names().contains(&event) {
            if *operator == Operator::Minus { &mut off } else { &mut to }.push(&node.name[..]);
        }
    }
    [off, to]
}

/// The root that is the rest, and what is the rest of that.
fn rests(text: &CpuText) -> Vec<&str> {
    let rest_of = |parent: Option<&str>| {
        let is_rest = |node: &&NodeText| node.parent.as_deref() == parent && node.value == NodeValue::Rest;
        text.nodes.iter().find(is_rest).map(|node| &node.name[..])
    };
    let Some(root) = rest_of(None) else { return Vec::new() };
    [root].into_iter().chain(rest_of(Some(root))).collect()
}

/// `Correction` of each event that corrects: the fields of the register that have its slots, and those that have them as published.
fn moved(text: &CpuText) -> String {
    let fields = |names: &[&str]| {
        let place = |name: &&str| FIELDS.iter().position(|field| field == name);
        format!("{:?}", names.iter().filter_map(place).collect::<Vec<_>>())
    };
    let of_event = |one: &CpuEvent| {
        let [off, to] = corrected(text, &one.name);
        let rests = rests(text);
        let (from, to) = if to.is_empty() { (&off, &rests) } else { (&rests, &to) };
        let each = if text.is_of_cycles(&one.name) { text.width } else { 1 };
        format!(
            "perf_metrics::Correction {{ event: {}, each: {each}, from: &{}, to: &{} }}",
            event(one, false),
            fields(from),
            fields(to)
        )
    };
    list(text.events.iter().filter(|event| event.corrects).map(of_event))
}

/// `DoubtfulSlots` of each event that corrects.
fn unsure(text: &CpuText) -> String {
    let ids = |names: &[&str]| list(names.iter().map(|name| format!("{}.id", metric(name))));
    let of_event = |one: &CpuEvent| {
        let [off, to] = corrected(text, &one.name);
        let rests = rests(text);
        let (counted, published) = if to.is_empty() { (&off, &rests) } else { (&rests, &to) };
        format!("DoubtfulSlots {{ counted_in: &[{}], published_in: &[{}] }}", ids(counted), ids(published))
    };
    list(text.events.iter().filter(|event| event.corrects).map(of_event))
}

fn counters(text: &CpuText, group: &CounterGroup, unsure: &str) -> String {
    counters_but(text, group, unsure, group.events.len())
}

/// The same, with events that count nothing from a place on.
fn counters_but(text: &CpuText, group: &CounterGroup, unsure: &str, never_from: usize) -> String {
    let subtree = group.subtree.as_ref().map_or("0".into(), |node| format!("{}.id", metric(node)));
    let events = group.events.iter().enumerate();
    let events = events.map(|(place, event)| self::event(&text.events[*event], place >= never_from));
    let optional = |one: &Option<CpuEvent>| {
        one.as_ref().map_or("None".into(), |one| format!("Some({})", event(one, false)))
    };
    // (where SLOTS leads, how many counters there are does not tell what fits)
    let general = if text.leaders.first().is_some_and(|leader| leader.slots) { 0 } else { text.counters };
    format!(
        "Counting::Counters(&Counters {{ tree: {}, leaders: &[{}], events: &[{}], subtree: {subtree}, general: {general}, \
         returns: {}, clock: {}, no_deeper: NoDeeper {{ why: {:?}, besides_subtrees: {:?} }}, alone: {} }})",
        tree(text, group, unsure),
        list(text.leaders.iter().map(leader)),
        list(events),
        optional(&text.returns),
        optional(&text.clock),
        group.no_deeper,
        group.besides_subtrees,
        group.alone,
    )
}

fn leader(leader: &LeaderText) -> String {
    let LeaderText { event, slots, fixed } = leader;
    format!("Leader {{ event: {}, by_cycle: {}, general: {} }}", self::event(event, false), !slots, !fixed)
}

fn tree(text: &CpuText, group: &CounterGroup, unsure: &str) -> String {
    let inputs = group.events.iter().enumerate().map(|(place, event)| {
        match text.is_of_cycles(&text.events[*event].name) {
            true => format!("Input::Cycles({place}, {})", text.width),
            false => format!("Input::Counter({place})"),
        }
    });
    let nodes = group.nodes.iter().map(|(place, formula)| {
        let node = &text.nodes[*place];
        let parent = node.parent.as_ref().map_or("0".into(), |parent| format!("{}.id", metric(parent)));
        let is_above = |(other, _): &(usize, _)| Some(&text.nodes[*other].name) == node.parent.as_ref();
        let above = group.nodes.iter().position(is_above);
        format!(
            "NodeRow {{ id: {}.id, parent: {parent}, above: {above:?}, level: {}, unit: metrics::TD_UNIT_{}, formula: {} }}",
            metric(&node.name),
            node.level,
            if node.of_cycles { "CLOCKS" } else { "SLOTS" },
            formula
                .as_ref()
                .map_or("Formula::NoCounter".into(), |formula| self::formula(text, group, formula))
        )
    });
    let simulated = group.events.iter().map(|event| format!("{:?}", text.events[*event].simulated));
    with_sums(&format!(
        "Tree::new(&[{}], {}, &[{unsure}], &[{}], &[{}])",
        list(inputs),
        clocks(text, group),
        list(nodes),
        list(simulated)
    ))
}

/// A tree with its sums, which are there once for all trees that have the same.
fn with_sums(tree: &str) -> String {
    format!("const {{ const TREE: Tree = {tree}; &TREE.with_sums(const {{ &TREE.as_sums() }}) }}")
}

/// What tells the cycles, if a node is a share of them.
fn clocks(text: &CpuText, group: &CounterGroup) -> String {
    if !group.nodes.iter().any(|(place, _)| text.nodes[*place].of_cycles) {
        return "None".into();
    }
    let is_clock =
        |event: &usize| text.clock.as_ref().is_some_and(|clock| clock.config == text.events[*event].config);
    match group.events.iter().position(is_clock) {
        Some(place) => format!("Some(Clocks::Input({place}))"),
        None => format!("Some(Clocks::Slots({}))", text.width),
    }
}

fn formula(text: &CpuText, group: &CounterGroup, formula: &GroupFormula) -> String {
    match formula {
        GroupFormula::Slots(event) => format!("Formula::Slots({event})"),
        GroupFormula::Balance(more, less) => {
            format!("Formula::Balance(&BalanceInputs {{ more: &{more:?}, less: &{less:?} }})")
        }
        GroupFormula::Corrected(slots, less, more) => {
            format!(
                "Formula::Corrected(&CorrectionInputs {{ slots: {slots}, less: &{less:?}, more: &{more:?} }})"
            )
        }
        GroupFormula::Retired(stalls, not_stalls, retired, dispatched) => format!(
            "Formula::Retired(&RetirementInputs {{ stalls: &{stalls:?}, not_stalls: &{not_stalls:?}, retired: {retired}, dispatched: {dispatched} }})"
        ),
        GroupFormula::Rest => "Formula::Rest".into(),
        GroupFormula::Of(expression) => format!("Formula::Of({})", operand(text, group, expression)),
    }
}

fn operand(text: &CpuText, group: &CounterGroup, expression: &Expression) -> String {
    let event = |name: &str| group.events.iter().position(|event| text.events[*event].name == name);
    match expression {
        Expression::Number(number) => format!("&Expr::Number({number:?})"),
        Expression::Name(name) if name == "slots" => "&Expr::Slots".into(),
        Expression::Name(name) if name == "width" => format!("&Expr::Number({:?})", f64::from(text.width)),
        Expression::Name(name) => match event(name) {
            Some(place) => format!("&Expr::Input({place})"),
            None => format!("&Expr::Node({}.id)", metric(name)),
        },
        // (the input is in slots)
        Expression::Of(Operator::Times, operands)
            if operands[1].is_name("width")
                && matches!(&operands[0], Expression::Name(name) if event(name).is_some()) =>
        {
            operand(text, group, &operands[0])
        }
        Expression::Of(operator, operands) => {
            let operator = match operator {
                Operator::Plus => "Sum",
                Operator::Minus => "Difference",
                Operator::Times => "Product",
                Operator::By => "Quotient",
                Operator::Min => "Least",
                Operator::Max => "Greatest",
                Operator::Less | Operator::NotLess => unreachable!("no text of a core has conditions"),
            };
            let [a, b] = &**operands;
            format!("&Expr::{operator}({}, {})", operand(text, group, a), operand(text, group, b))
        }
        Expression::If(_) => unreachable!("no text of a core has conditions"),
    }
}

fn event(event: &CpuEvent, never: bool) -> String {
    let CpuEvent { name, config, may_be_silent, counter, .. } = event;
    format!(
        "Event {{ counter: {counter:?}, may_be_silent: {}, never: {never}, ..Event::new({name:?}, {config:#x}) }}",
        *may_be_silent || never
    )
}

fn metric(node: &str) -> String {
    format!("metrics::{}", constant_of(node))
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
