//! Each text is read, each of its groups fits, and what is wrong is said with its line.

use super::deep::{DeepEvent, DeepText, DeepUnit};
use super::expression::{Expression, Operator};
use super::groups::{CounterGroup, CounterGroups, GroupFormula};
use super::names::{self, NodeName};
use super::text::{CorePlace, CpuText, Fault, NodeText};

/// Each text of the tree, by its file's name.
fn texts() -> Vec<(String, CpuText)> {
    let entries = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/cpus")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_text = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "txt");
    let read = |path: std::path::PathBuf| {
        let text = CpuText::read(&std::fs::read_to_string(&path).unwrap());
        (path.file_name().unwrap().to_string_lossy().into_owned(), text.unwrap())
    };
    paths.filter(is_text).map(read).collect()
}

/// Each text of a tree of deeper levels.
fn deep_texts() -> Vec<DeepText> {
    let entries = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/cpus/deep")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_text = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "txt");
    paths
        .filter(is_text)
        .map(|path| DeepText::read(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}

/// In the texts of deeper trees each name is an event, a figure, a node or a known word; each flagged node is below one that is.
#[test]
fn names_of_deeper_trees_are_there_and_thresholds_nest() {
    let texts = deep_texts();
    assert_eq!(texts.len(), 20);
    for text in &texts {
        let of_nodes = text.nodes.iter().filter_map(|node| node.value.as_ref());
        let of_figures = text.figures.iter().map(|(_, value)| value);
        let values: Vec<&Expression> =
            of_nodes.chain(of_figures).chain(text.companions.iter().map(|one| &one.value)).collect();
        for name in values.iter().flat_map(|value| value.names()) {
            let is_word = ["smt_on", "tsc_ghz", "TOPDOWN.SLOTS:PERF_METRICS"].contains(&name);
            let is_latency = name.ends_with(":RETIRE_LATENCY");
            let is_there =
                text.event(name).is_some() || text.figure(name).is_some() || text.node_of(name).is_some();
            assert!(is_word || is_latency || is_there, "{} {name}", text.version);
        }
        let is_taken = |event: &DeepEvent| {
            values.iter().any(|value| value.names().contains(&&event.name[..]))
                || text.nodes.iter().any(|node| node.samples.contains(&event.name))
        };
        assert!(text.events.iter().all(is_taken), "{}", text.version);
        for node in text.nodes.iter().filter(|node| node.above.is_some() && node.level > 1) {
            let parent = node.parent.as_ref().and_then(|parent| text.node_of(parent)).unwrap();
            assert!(parent.above.is_some() && parent.level + 1 == node.level, "{}", node.name);
        }
        // (of one its own core's text has all nodes)
        assert!(text.nodes.is_empty() || text.nodes.iter().filter(|node| node.level == 3).count() > 20);
    }
    let of = |model, stepping| {
        let has = |text: &&DeepText| text.is_of("GenuineIntel", 6, model, stepping);
        texts.iter().filter(has).map(|text| text.from).collect::<Vec<_>>()
    };
    for parts in ["0xd49 0xd4f", "0xd49 0xd4f from 0x03"] {
        let text = DeepText::read(&format!("tma 1\nmidr Arm {parts}\nmetric m = 1, in x, of g\n")).unwrap();
        let of = |vendor, part, revision| text.is_of(vendor, 0, part, revision);
        assert!(of("Arm", 0xd49, 0x03) && of("Arm", 0xd4f, 0x10) && !of("Arm", 0xd40, 0x10));
        assert!(!of("Ampere", 0xd49, 0x10) && !text.is_of("Arm", 6, 0xd49, 0x10));
        assert_eq!(of("Arm", 0xd49, 0x02), !parts.contains("from"));
    }
    // (a later stepping of a model may have a tree of its own)
    assert_eq!((of(0x8f, 8).len(), of(0x55, 4), of(0x55, 7).len(), of(0x1, 0).len()), (1, vec![0], 2, 0));
}

#[test]
fn a_fault_of_a_deeper_tree_has_its_line() {
    const GOOD: &str = "tma 5.2, of today\ncpu GenuineIntel 6 0x8f\nevent A 0x1c2 counters 0,1 extra 0x7 period 1009 precise\nfigure f = A / 2\n\
        node top = told, of slots, above 20\nnode top > part = f / A if A < 3 else f, of cycles estimated, above 5 alone, sample A\n";
    let text = DeepText::read(GOOD).unwrap();
    let part = text.node_of("part").unwrap();
    assert_eq!((part.level, part.unit, part.is_alone, part.above), (2, DeepUnit::Cycles, true, Some(0.05)));
    let event = &text.events[0];
    assert_eq!((&part.samples[..], event.counters, event.config1), (&["A".to_string()][..], 3, 7));
    assert_eq!((event.period, event.is_precise), (1009, true));
    for (line, what) in [
        ("event A 0x2c2", "is there already"),
        ("event B 0x2c2 counters 99", "no core has a counter 99"),
        ("event B 0x2c2 fast", "'fast' is no property"),
        ("event B 0x2c2 extra", "'extra' of nothing"),
        ("event B", "is no line"),
        ("figure g", "has no '='"),
        ("figure g = g + 1", "follows from itself"),
        ("node top > part = A, of slots", "is there already"),
        ("node none > b = A, of slots", "there is no node none above b"),
        ("node top > b = A", "no ', of ...'"),
        ("node top > b = A, of dreams", "'dreams' is nothing"),
        ("node top > b = A, of slots, above 120", "'120' is no percentage"),
        ("node top > b = A +, of slots", "ends too early"),
        ("node top > b = A if B, of slots", "ends too early"),
        ("cpu GenuineIntel 6 0x55", "has a line 'cpu' or 'midr' already"),
        ("midr Arm 0xd40", "has a line 'cpu' or 'midr' already"),
        ("metric m", "has no '='"),
        ("metric m = A / f, of g", "has no ', in ...'"),
        ("metric m = A / f, in cycles", "has no ', of ...'"),
        ("metric m = m + A, in cycles, of g", "follows from itself"),
        ("words", "has nothing behind it"),
    ] {
        let fault = DeepText::read(&format!("{GOOD}{line}\n")).unwrap_err();
        assert!(fault.what.contains(what) && fault.line == 7, "{line}: {fault:?}");
    }
    assert_eq!(DeepText::read("tma 1\n").unwrap_err().line, 0);
    for (line, what) in [
        ("cpu GenuineIntel 6 x", "'x' is no number"),
        ("cpu GenuineIntel six 0x8f", "'six' is no number"),
        ("cpu GenuineIntel 6", "no model of GenuineIntel is named"),
        ("midr Arm", "no model of Arm is named"),
        ("midr Arm from 0x03", "no model of Arm is named"),
        ("midr Arm 0xd49 from", "'from' is no number"),
        ("midr Arm 0xd49 from r0p3", "'r0p3' is no number"),
        ("midr Arm N2", "'N2' is no number"),
        ("midr Arm 0x410fd490", "0x410fd490 is no part number"),
        ("midr", "has nothing behind it"),
    ] {
        let fault = DeepText::read(&format!("tma 1\n{line}\nmetric m = 1, in x, of g\n")).unwrap_err();
        assert!(fault.what.contains(what) && fault.line == 2, "{line}: {fault:?}");
    }
    let with = DeepText::read(&format!("{GOOD}metric m = A / f, in GB/s, of ours Theirs\n")).unwrap();
    let metric = &with.companions[0];
    assert_eq!(
        (&metric.name[..], &metric.unit[..], metric.groups.join("+")),
        ("m", "GB/s", "ours+Theirs".into())
    );
    let unlocated = DeepText::read(&format!("{GOOD}event B 0x2c2\nnode top > b = A, of slots, sample B\n"));
    assert!(unlocated.unwrap_err().what.starts_with("B locates b, and is no event with a period"));
}

#[test]
fn conditions_compare_and_choose() {
    use Operator::{Less, NotLess, Plus};
    let choice =
        Expression::If(Box::new([of(Less, name("b"), name("c")), of(Plus, name("a"), name("b")), name("d")]));
    assert_eq!(Expression::read("a + b if b < c else d"), Ok(choice.clone()));
    assert_eq!(Expression::read("(a + b) if (c>b) else d"), Ok(choice.clone()));
    assert!(choice.has_choice() && !name("a").has_choice());
    let not_less = of(NotLess, name("b"), Expression::Number(0.0));
    assert_eq!(Expression::read("b >= 0"), Ok(not_less.clone()));
    assert_eq!(Expression::read("0 <= b"), Ok(not_less));
    let core = CpuText::read(&format!("{MADE_UP}node first > n2 = a if a < 3 else a\n")).unwrap_err();
    assert!(core.what.contains("for trees of deeper levels"), "{core:?}");
}

fn name(name: &str) -> Expression {
    Expression::Name(name.into())
}

fn of(operator: Operator, a: Expression, b: Expression) -> Expression {
    Expression::Of(operator, Box::new([a, b]))
}

#[test]
fn signs_bind_as_in_arithmetic_and_names_may_have_a_minus() {
    use Operator::{By, Max, Min, Minus, Plus, Times};
    let divided = of(By, of(Times, Expression::Number(2.5), name("b")), name("c"));
    let all = of(Plus, of(Minus, name("topdown-retiring"), divided), name("d.e:c6"));
    assert_eq!(Expression::read("topdown-retiring - 2.5*b / c + d.e:c6"), Ok(all));
    let largest = of(Max, name("b"), of(Plus, name("c"), name("d")));
    assert_eq!(Expression::read("min(a, max(b, c + d))"), Ok(of(Min, name("a"), largest)));
    assert_eq!(Expression::read("min * max"), Ok(of(Times, name("min"), name("max"))));
}

#[test]
fn what_is_no_expression_is_refused_whatever_it_is() {
    let deep = format!("{}a{}", "(".repeat(31), ")".repeat(31));
    let long = vec!["a"; 501].join(" + ");
    for (text, why) in [
        ("", "is missing"),
        ("a +", "ends too early"),
        ("a b", "'b' follows the end"),
        ("(a", "ends too early"),
        ("min(a)", "')' stands where ','"),
        ("a + * b", "'*' is neither a name nor a number"),
        ("1.2.3", "'1.2.3' is no number"),
        ("- a", "'-' is neither"),
        (&deep, "more than 30 brackets"),
        (&long, "more than 1000 words"),
    ] {
        assert!(Expression::read(text).unwrap_err().contains(why), "{text}");
    }
}

/// The groups that tell a node.
fn tell(groups: &CounterGroups, place: usize) -> impl Iterator<Item = &CounterGroup> {
    let tells = move |group: &&CounterGroup| {
        group.nodes.iter().any(|(at, formula)| *at == place && formula.is_some())
    };
    groups.subtrees.iter().chain([&groups.whole]).filter(tells)
}

#[test]
fn each_node_of_each_text_is_told_by_a_group_or_its_maker_has_too_few_counters() {
    let mut untold = Vec::new();
    for (file, text) in texts().iter().filter(|(_, text)| text.counters > 0) {
        let groups = CounterGroups::of(text).unwrap();
        for (place, node) in text.nodes.iter().enumerate() {
            let is_told = tell(&groups, place).next().is_some();
            assert_eq!(is_told, !groups.untold.contains(&node.name), "{file} {}", node.name);
        }
        untold.extend(groups.untold.iter().map(|name| format!("{file} {name}")));
        let all = || groups.subtrees.iter().chain([&groups.whole]);
        for group in all() {
            let level_1 = group.nodes.iter().filter(|(place, _)| text.nodes[*place].level == 1);
            assert!(level_1.clone().count() >= 4, "{file}");
            assert!(level_1.clone().all(|(_, formula)| formula.is_some()), "{file}");
            assert_eq!(
                text.leaders.iter().any(|leader| leader.slots),
                text.metrics_level > 0 || file.contains("t410")
            );
            let leader = usize::from(!text.leaders[0].fixed);
            // (on arm64 cycles have a counter of their own, where another event leads)
            let is_free = |event: &&usize| {
                let config = text.events[**event].config;
                text.cores[0].family == 0 && config == 0x11 && text.leaders[0].event.config != config
            };
            let free = group.events.iter().filter(is_free).count();
            assert!(group.events.len() - free + leader <= text.counters, "{file} {:?}", group.subtree);
        }
    }
    untold.sort();
    let without_counters = [
        "arm-neoverse-n3.txt backend_core_bound",
        "arm-neoverse-n3.txt frontend_core_bound",
        "arm-neoverse-v3.txt backend_core_bound",
        "arm-neoverse-v3.txt frontend_core_bound",
        "intel-gracemont.txt branch_detect",
        "intel-gracemont.txt branch_resteer",
        "intel-gracemont.txt other_fb",
        "intel-gracemont.txt predecode",
        "intel-gracemont.txt serialization",
        "intel-skylake.txt core_bound",
        "intel-skylake.txt memory_bound",
        "nvidia-t410.txt backend_core_bound",
        "nvidia-t410.txt frontend_core_bound",
    ];
    assert_eq!(untold, without_counters);
}

/// A core that nobody makes, of four levels, of three counters.
const MADE_UP: &str = "
core made up
cpu Nobody 1 0x10-0x12 0x20 # these
proved 1 by nothing
width 4
counters 3
leader cycles 1
event a 0x2 simulated 1
event b 0x3 simulated 1
event c 0x4 simulated 1 may-be-silent
node useful = a
node useless = rest
node useful > first = b * width
node useful > second = rest
node useless > third = c - a
node useless > fourth = rest
";

fn made_up(change: impl Fn(&str) -> String) -> Result<CounterGroups, String> {
    CounterGroups::of(&CpuText::read(&change(MADE_UP)).unwrap())
}

fn told(group: &CounterGroup) -> Vec<Option<GroupFormula>> {
    group.nodes.iter().map(|(_, formula)| formula.clone()).collect()
}

#[test]
fn a_level_that_does_not_fit_is_counted_below_one_node_at_a_time() {
    let text = CpuText::read(MADE_UP).unwrap();
    let [core] = &text.cores[..] else { panic!("{:?}", text.cores) };
    assert_eq!((&core.models[..], core.place), (&[0x10, 0x11, 0x12, 0x20][..], CorePlace::Own));
    assert_eq!((core.proved(1), core.proved(2)), ("by nothing", ""));
    let [.., c] = &text.events[..] else { panic!("{}", text.events.len()) };
    assert_eq!((c.config, c.may_be_silent, c.simulated), (4, true, 1.0));
    assert!(text.is_of_cycles("b") && !text.is_of_cycles("a"));
    let groups = CounterGroups::of(&text).unwrap();
    assert_eq!((&groups.whole.events, groups.whole.nodes.len()), (&vec![0], 2));
    assert!(groups.one_thread.is_none() && groups.uncorrected.is_none());
    assert_eq!(groups.whole.no_deeper, "level 2 takes 4 general counters, and the core has 3");
    assert_eq!(groups.whole.besides_subtrees.as_deref(), Some(""));
    let [useful, useless] = &groups.subtrees[..] else { panic!("{}", groups.subtrees.len()) };
    assert_eq!(
        (&useful.events, useful.subtree.as_deref(), useful.alone),
        (&vec![0, 1], Some("useful"), false)
    );
    let [slots, rest] = [Some(GroupFormula::Slots(0)), Some(GroupFormula::Rest)];
    assert_eq!(
        told(useful),
        [slots.clone(), rest.clone(), Some(GroupFormula::Slots(1)), rest.clone(), None, None]
    );
    let third = Some(GroupFormula::Balance(vec![1], vec![0]));
    assert_eq!(told(useless), [slots, rest.clone(), None, None, third, rest]);
}

#[test]
fn what_does_not_fit_is_left_out_or_said() {
    let with = |counters: &'static str| made_up(|text| text.replace("counters 3", counters));
    assert_eq!(with("counters 1").err().unwrap(), "level 1 does not fit");
    assert!(with("counters 2").unwrap().subtrees.is_empty());
    let at_least = with("counters 2 at-least").unwrap().whole.no_deeper;
    assert_eq!(at_least, "level 2 takes 4 general counters, and no document tells of more than 2");
    let all = with("counters 4").unwrap();
    assert!(all.subtrees.is_empty() && all.whole.no_deeper.is_empty() && all.whole.events == [0, 1, 2]);
    let why = made_up(|text| text.replace("counters 3", "counters 4\nno-deeper no reason")).unwrap();
    assert_eq!(why.whole.no_deeper, "no reason");
}

/// Two families below one root, of one and of three children.
const FAMILIES: &str = "
core made up
cpu Nobody 1 all
width 4
counters 4
leader cycles 1 fixed
event a 0x2 simulated 1
event b 0x3 simulated 1
event c 0x4 simulated 1
event d 0x5 simulated 1
event e 0x6 simulated 1
event f 0x7 simulated 1
node useful = a
node useless = rest
node useful > x = b
node useful > y = rest
node x > x1 = c
node y > y1 = d
node y > y2 = e
node y > y3 = f
";

#[test]
fn families_below_one_node_share_a_group_and_take_in_what_is_left_of_another() {
    let read = |counters: usize| {
        let text = CpuText::read(&FAMILIES.replace("counters 4", &format!("counters {counters}"))).unwrap();
        let groups = CounterGroups::of(&text).unwrap();
        let of = |group: &CounterGroup| {
            let node = |(place, formula): &(usize, Option<GroupFormula>)| {
                (text.nodes[*place].level == 3 && formula.is_some()).then(|| text.nodes[*place].name.clone())
            };
            let told: Vec<_> = group.nodes.iter().filter_map(node).collect();
            (group.subtree.clone().unwrap(), told.join(" "), group.no_deeper.clone())
        };
        groups.subtrees.iter().map(of).collect::<Vec<_>>()
    };
    let is = |name: &str, told: &str, why: &str| (name.to_string(), told.to_string(), why.to_string());
    assert_eq!(read(6), [], "all of level 3 is in one group");
    assert_eq!(read(5), [is("x", "x1", ""), is("y", "y1 y2 y3", "")]);
    let y = is("y", "y1 y2", "y3 is counted with x");
    assert_eq!(read(4), [is("x", "x1 y3", ""), y]);
    assert_eq!(read(3), [is("x", "x1", ""), is("y", "y1", "3 general counters hold no more of it")]);
}

#[test]
fn families_that_fit_together_share_a_group_and_what_is_deeper_has_one_of_its_own() {
    let [before, _] = FAMILIES.split_once("node useful").map(|(before, after)| [before, after]).unwrap();
    let nodes = "event g 0x8 simulated 1\nnode useful = a\nnode useless = rest\nnode useful > x = b\nnode useful > y = rest\n\
        node useless > z = g\nnode x > x1 = c\nnode y > y1 = d\nnode z > z1 = f\nnode y1 > y2 = e\n";
    let text = CpuText::read(&format!("{before}{nodes}")).unwrap();
    let groups = CounterGroups::of(&text).unwrap();
    assert_eq!(groups.whole.events, [0, 1, 6], "level 2");
    let of = |group: &CounterGroup| (group.subtree.clone().unwrap(), group.events.clone());
    let found: Vec<_> = groups.subtrees.iter().map(of).collect();
    let [useful, z, y1] = ["useful", "z", "y1"].map(String::from);
    assert_eq!(found, [(useful, vec![0, 1, 2, 3]), (z, vec![0, 5, 6]), (y1, vec![0, 1, 3, 4])]);
    let [.., deepest] = &groups.subtrees[..] else { panic!("{}", groups.subtrees.len()) };
    let listed: Vec<&str> = deepest.nodes.iter().map(|(place, _)| &text.nodes[*place].name[..]).collect();
    assert_eq!(listed, ["useful", "useless", "x", "y", "z", "y1", "y2"], "with those above");
}

#[test]
fn a_node_that_is_left_out_makes_room_and_has_a_group_of_its_own() {
    let groups = made_up(|text| text.to_string() + "leave-out third fourth\n").unwrap();
    assert_eq!(groups.whole.events, [0, 1], "the rest of level 2");
    let left_out = "level 2 takes 4 general counters, and the core has 3: third and fourth are left out";
    assert_eq!(groups.whole.no_deeper, left_out);
    let [useless] = &groups.subtrees[..] else { panic!("{}", groups.subtrees.len()) };
    assert_eq!((useless.subtree.as_deref(), &useless.events), (Some("useless"), &vec![0, 2]));
}

#[test]
fn what_corrects_is_beside_one_event() {
    let corrected = |value: &str| {
        made_up(|text| {
            text.replace("event c 0x4 simulated 1 may-be-silent", "event c 0x4 simulated 1 corrects")
                .replace("c - a", value)
                .replace("counters 3", "counters 4")
        })
    };
    let both = corrected("a - c").unwrap();
    assert_eq!(told(&both.whole)[4], Some(GroupFormula::Corrected(0, vec![2], vec![])));
    assert_eq!(told(&both.uncorrected.unwrap())[4], Some(GroupFormula::Slots(0)));
    assert_eq!(
        told(&corrected("a + c").unwrap().whole)[4],
        Some(GroupFormula::Corrected(0, vec![], vec![2]))
    );
    let why = corrected("a + b * width - c").err().unwrap();
    assert_eq!(why, "third: what corrects is added to one event, or taken off it");
    let why = corrected("useful * (a / c)").err().unwrap();
    assert_eq!(why, "third: c corrects, and is no part of a share");
}

#[test]
fn slots_that_no_stall_took_are_divided_as_operations_are() {
    let retired = |value: &str| {
        let text = |text: &str| text.replace("useful = a", &format!("useful = {value}"));
        told(
            &made_up(|all| text(all).replace("b * width", "b").replace("counters 3", "counters 4"))
                .unwrap()
                .whole,
        )
    };
    assert_eq!(retired("(slots - a + c) * b / c")[0], Some(GroupFormula::Retired(vec![0], vec![2], 1, 2)));
    assert!(matches!(retired("(slots - a + c) * (b / c)")[0], Some(GroupFormula::Of(_))));
}

#[test]
fn a_value_is_slots_or_a_share() {
    let with = |value: &str| made_up(|text| text.replace("= b * width", &format!("= {value}")));
    for value in ["b * 2.5", "b * 0", "min(a, b)", "b / a"] {
        assert!(with(value).err().unwrap().starts_with("first: slots are events added up"), "{value}");
    }
    for (value, formula) in [
        ("b * 3", GroupFormula::Balance(vec![1; 3], vec![])),
        ("b * 2 - a", GroupFormula::Balance(vec![1; 2], vec![0])),
        ("a + (b - a) * 2", GroupFormula::Balance(vec![0, 1, 1], vec![0, 0])),
    ] {
        assert_eq!(told(&with(value).unwrap().subtrees[0])[2], Some(formula), "{value}");
    }
    for share in ["useful * (b / a)", "2 * b / slots", "b / a, of cycles"] {
        assert!(with(share).is_ok(), "{share}");
    }
    let text = CpuText::read(&MADE_UP.replace("= b * width", "= b / a, of cycles")).unwrap();
    let of_cycles = |node: &NodeText| node.of_cycles;
    assert_eq!(text.nodes.iter().filter(|node| of_cycles(node)).count(), 1);
}

#[test]
fn faults_have_their_line() {
    let with = |line: &str| CpuText::read(&format!("{MADE_UP}{line}\n")).unwrap_err();
    for (line, what) in [
        ("node useful = b", "there is a node useful already"),
        ("node absent > x = b", "there is no node absent above x"),
        ("node x = b + e", "e is neither an event nor a node above x"),
        ("node x = b, another thread", "',' follows the end"),
        ("node x", "a node has no '='"),
        ("event a 0x9 simulated 1", "there is an event a already"),
        ("event e 0x9", "is no line of a core"),
        ("event e 9g simulated 1", "'9g' is no number"),
        ("event e 9 simulated x", "'x' is no number"),
        ("event e 9 simulated 1 silent", "'silent' is no property"),
        ("event e 9 simulated 1 counter", "'counter' of no number"),
        ("event slots 9 simulated 1", "there is an event slots already"),
        ("leader e 9 quick", "'quick' is no property of a leader"),
        ("leave-out absent", "there is no node absent above"),
        ("perf-metrics 3", "is no line of a core"),
        ("cpu Nobody 1 9", "the CPUs of made up are named already"),
        ("width 5", "there is a line 'width' already"),
        ("width", "'width' has nothing behind it"),
        ("proved 99999999999 x", "is too large"),
    ] {
        let fault = with(line);
        assert!(fault.what.contains(what) && fault.line == MADE_UP.lines().count() + 1, "{line}: {fault:?}");
    }
    for (line, what) in [
        ("event e 0x9 simulated 1", "no node takes the event e"),
        ("node x = rest", "is not the only rest"),
        ("node x = b", "b counts cycles in one place, and not in another"),
        ("core another", "no line 'cpu', 'midr' or 'e-cores' of another"),
        ("node useful > x = second * (a / slots)", "the value of second follows from itself"),
    ] {
        let fault = with(line);
        assert!(fault.line == 0 && fault.what.contains(what), "{line}: {fault:?}");
    }
    let changed = |from: &str, to: &str| CpuText::read(&MADE_UP.replace(from, to)).unwrap_err().what;
    assert_eq!(changed("width 4", "width unknown"), "b * width: the width is not known");
    let roots = "node r1 = a\nnode r2 = a\nnode r3 = a\nnode r4 = a\n";
    let many = CpuText::read(&format!("{MADE_UP}{roots}")).unwrap_err();
    assert_eq!(many.what, "r4 is one root too many: no tree has more than 5");
    assert_eq!(changed("0x10-0x12 0x20", ""), "no model is named");
    assert!(changed("0x10-0x12 0x20", "0-0xffffffff").contains("more than 1000 models"));
    let deep: String = (2..=6).map(|n| format!("node n{n} > n{} = a\n", n + 1)).collect();
    let deep = CpuText::read(&format!("{MADE_UP}node first > n2 = a\n{deep}")).unwrap_err();
    assert_eq!(deep.what, "n6 would be of level 7, and no tree has more than 6");
    let without = |line: &str| CpuText::read(&MADE_UP.replace(line, "# nothing"));
    assert!(without("core made up").unwrap_err().what.contains("no line 'core' is above"));
    for line in ["width 4", "counters 3", "leader cycles 1"] {
        let Err(Fault { line: 0, what }) = without(line) else { panic!("{line}") };
        assert!(what.contains(&format!("no line '{}'", line.split(' ').next().unwrap())), "{what}");
    }
}

#[test]
fn each_node_has_a_number_and_a_name_of_its_own_and_is_in_a_text() {
    let (mut all, list) = (Vec::new(), include_str!("../../cpus/nodes.list"));
    names::read(list, &mut all).unwrap();
    let (texts, deep) = (texts(), deep_texts());
    for NodeName { name, .. } in &all {
        let is_in_text = texts.iter().any(|(_, text)| text.node_of(name).is_some());
        assert!(is_in_text || deep.iter().any(|text| text.node_of(name).is_some()), "{name}");
    }
    for node in deep.iter().flat_map(|text| &text.nodes) {
        assert!(all.iter().any(|listed| listed.name == node.name), "{}", node.name);
    }
    for (_, text) in &texts {
        let is_listed = |node: &NodeText| all.iter().any(|listed| listed.name == node.name);
        assert!(text.nodes.iter().all(is_listed), "{:?}", text.cores);
    }
    let refused = |line: &str, what: &str| {
        let fault = names::read(&format!("{list}{line}\n"), &mut Vec::new()).unwrap_err();
        assert!(fault.line == list.lines().count() + 1 && fault.what.contains(what), "{line}: {fault:?}");
    };
    refused("999 | retiring | again | ", "retiring has the number or the name already");
    refused("1 | another | again | ", "retiring has the number or the name already");
    refused("0 | another | again | ", "'0' is no number from 1 on");
    refused("999 | Another | again | ", "'Another' is no name of a metric");
    refused("999 | 9-th | again | ", "'9-th' is no name");
    refused("999 | another | | ", "another has no short name");
    refused("999 | another | again | of all slots", "no place for its share");
    refused("999 | another | again", "has 3 fields, and not four");
}

#[test]
fn no_group_has_more_events_than_a_sample_has_room_for() {
    let events: String =
        (0..20).map(|k| format!("event e{k} {k} simulated 1\nnode useful > n{k} = e{k}\n")).collect();
    let text = format!("{}{events}", MADE_UP.replace("counters 3", "counters 30"));
    let groups = CounterGroups::of(&CpuText::read(&text).unwrap()).unwrap();
    assert!([&groups.whole].into_iter().chain(&groups.subtrees).all(|group| group.events.len() <= 15));
    assert_eq!(
        groups.untold.len(),
        20 - 13 + 1,
        "a and b have two places, and what is the rest of all has no value"
    );
}

#[test]
fn two_texts_are_not_of_one_core() {
    let core = |cpu: &str| {
        let text = MADE_UP.replace("core made up", &format!("core {cpu}")).replace("0x10-0x12 0x20", cpu);
        CpuText::read(&text).unwrap().cores.remove(0)
    };
    assert!(core("0x10").is_same(&core("0x0f-0x11")) && core("all").is_same(&core("0x30")));
    assert!(!core("0x10").is_same(&core("0x11")) && core("0x10").is_same(&core("0x10")));
}
