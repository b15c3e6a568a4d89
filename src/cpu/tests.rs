//! Each text is read, each of its groups fits, and what is wrong is said with its line.

use super::expression::{Expression, Operator};
use super::groups::{Formula, Group, Groups};
use super::text::{Fault, Text};

const TEXTS: &[&str] = &[
    include_str!("../../cpus/zen4.txt"),
    include_str!("../../cpus/zen5.txt"),
    include_str!("../../cpus/zen6.txt"),
];

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

#[test]
fn each_text_has_groups_that_fit_and_tell_each_node_once_below_level_1() {
    for text in TEXTS {
        let text = Text::read(text).unwrap();
        let groups = Groups::of(&text).unwrap();
        let all = || groups.subtrees.iter().chain([&groups.whole]).chain(&groups.fewer);
        assert!(all().all(|group| group.events.len() < text.counters), "{}", text.core);
        for (place, node) in text.nodes.iter().enumerate() {
            let tells =
                |group: &&Group| group.nodes.iter().any(|(at, formula)| *at == place && formula.is_some());
            let count = groups.subtrees.iter().chain([&groups.whole]).filter(tells).count();
            assert!(count == 1 || node.level == 1 && count > 1, "{}: {} {count}", text.core, node.name);
        }
    }
}

/// A core that nobody makes, of four levels, of three counters.
const MADE_UP: &str = "
core made up
cpu Nobody 1 0x10-0x12 0x20 # these
width 4
counters 3
leader cycles 1
event a 0x2 simulated 1
event b 0x3 simulated 1
event c 0x4 simulated 1 may-be-silent
node useful = a
node useless = rest
node useful > first = b * 4
node useful > second = rest
node useless > third = c - a
node useless > fourth = rest
";

#[test]
fn a_level_that_does_not_fit_is_counted_below_one_node_at_a_time() {
    let text = Text::read(MADE_UP).unwrap();
    assert_eq!(text.models, [0x10, 0x11, 0x12, 0x20]);
    let [.., c] = &text.events[..] else { panic!("{}", text.events.len()) };
    assert_eq!((c.config, c.may_be_silent, c.simulated), (4, true, 1.0));
    let groups = Groups::of(&text).unwrap();
    assert_eq!((groups.whole.events, groups.whole.nodes.len()), (vec![0], 2));
    assert!(groups.fewer.is_none());
    assert!(groups.no_deeper.starts_with("level 2 takes 4 general counters, and the core has 3"));
    let [useful, useless] = &groups.subtrees[..] else { panic!("{}", groups.subtrees.len()) };
    assert_eq!((&useful.events, &useful.slots_each), (&vec![0, 1], &vec![1, 4]));
    assert_eq!((useful.subtree.as_deref(), useful.alone), (Some("useful"), false));
    let told = |group: &Group| group.nodes.iter().map(|(_, formula)| formula.clone()).collect::<Vec<_>>();
    let [slots, rest] = [Some(Formula::Slots(0)), Some(Formula::Rest)];
    assert_eq!(
        told(useful),
        [slots.clone(), rest.clone(), Some(Formula::Slots(1)), rest.clone(), None, None]
    );
    let third = Some(Formula::Balance(vec![1], vec![0]));
    assert_eq!(told(useless), [slots, rest.clone(), None, None, third, rest]);
}

#[test]
fn what_does_not_fit_is_said() {
    let why = |counters| {
        let text = Text::read(&MADE_UP.replace("counters 3", counters)).unwrap();
        Groups::of(&text).err().unwrap()
    };
    assert_eq!(why("counters 1"), "level 1 does not fit");
    assert_eq!(why("counters 2"), "what is below useful does not fit");
}

#[test]
fn a_value_is_slots_or_a_share() {
    let with =
        |value: &str| Groups::of(&Text::read(&MADE_UP.replace("= b * 4", &format!("= {value}"))).unwrap());
    for (value, why) in [
        ("b * 2.5", "b * 2.5: a cycle has 1 to 16 slots"),
        ("b * 0", "b * 0: a cycle has 1 to 16 slots"),
        ("b * 2 + a", "first: slots are events added up"),
        ("min(a, b)", "first: slots are events"),
    ] {
        assert!(with(value).err().unwrap().starts_with(why), "{value}");
    }
    let twice = Groups::of(&Text::read(&MADE_UP.replace("c - a", "c - b")).unwrap());
    assert_eq!(twice.err().unwrap(), "b * 4: another node takes the event, too");
    for share in ["useful * (b / a)", "2 * b / slots", "b * 16"] {
        assert!(with(share).is_ok(), "{share}");
    }
}

#[test]
fn faults_have_their_line() {
    let with = |line: &str| Text::read(&format!("{MADE_UP}{line}\n")).unwrap_err();
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
        ("width", "'width' has nothing behind it"),
        ("width 99999999999", "is too large"),
        ("cpu Nobody 1 0-0xffffffff", "more than"),
    ] {
        let fault = with(line);
        assert!(fault.what.contains(what) && fault.line == MADE_UP.lines().count() + 1, "{line}: {fault:?}");
    }
    for (line, what) in
        [("event e 0x9 simulated 1", "no node takes the event e"), ("node x = rest", "is not the only rest")]
    {
        let fault = with(line);
        assert!(fault.line == 0 && fault.what.contains(what), "{line}: {fault:?}");
    }
    let without = |line: &str| Text::read(&MADE_UP.replace(line, "# nothing"));
    for line in ["core made up", "width 4", "counters 3", "leader cycles 1"] {
        let Err(Fault { line: 0, what }) = without(line) else { panic!("{line}") };
        assert!(what.contains(&format!("no line '{}'", line.split(' ').next().unwrap())), "{what}");
    }
}
