//! Callers with what they call, on the page.
#![forbid(unsafe_code)]

use super::*;

/// Depth, both parts and the name of each row.
fn rows(section: &str) -> Vec<(usize, String, String, String)> {
    let row = |row: &str| {
        let text = |after: &str| {
            let (_, rest) = row.split_once(after).unwrap_or_default();
            rest.split_once('>').map_or("", |(_, rest)| rest.split('<').next().unwrap()).to_string()
        };
        let alone = row.split("<span class=\"n\"").nth(2).map_or("", |cell| cell.trim_start_matches('>'));
        let depth = row.split_once("--d:").unwrap().1.split('"').next().unwrap();
        (
            depth.parse().unwrap(),
            text("class=\"n\""),
            alone.split('<').next().unwrap().into(),
            text("class=\"name\""),
        )
    };
    section.split("class=\"row\"").skip(1).map(row).collect()
}

#[test]
fn callers_are_above_what_they_call_with_both_parts() {
    let section = section(&profile(), "calls");
    let row = |depth: usize, calls: &str, alone: &str, name: &str| {
        (depth, calls.to_string(), alone.to_string(), name.to_string())
    };
    assert_eq!(
        rows(&section),
        [
            row(0, "87.5 %", "0.0 %", "main"),
            row(1, "62.5 %", "62.5 %", "f(&quot;x&quot;, int)"),
            row(1, "25.0 %", "25.0 %", "no;name"),
            row(0, "12.5 %", "12.5 %", "f(&quot;x&quot;, int)")
        ]
    );
    assert_eq!(
        (section.matches("<details open>").count(), section.matches("<details").count()),
        (1, 1),
        "{section}"
    );
    assert!(
        section.contains("aria-label=\"retiring 50.0 ± 1.0 %\"")
            && section.contains("their part of the time:"),
        "{section}"
    );
    assert!(!section.contains("SIMULATED"));
    assert!(
        super::section(&Profile { simulated: Some("timer"), ..profile() }, "calls").contains("SIMULATED")
    );
    assert!(super::section(&conditional(), "calls").contains("their part of the stretches:"));
}

/// Stacks of so many functions, of a name with this number, each with so much time.
fn deep(stacks: &[(usize, usize, u64)]) -> Profile {
    let frame = |name: String| StackFrame { function: (name, "a.out".into()), line: None, inlined: false };
    let stack = |(number, depth, ns): &(usize, usize, u64)| {
        let frames = (0..*depth).map(|k| frame(format!("f{number}_{k}"))).collect();
        (CallStack { core: 0, frames }, *ns)
    };
    Profile { stacks: stacks.iter().map(stack).collect(), samples: Vec::new(), ..profile() }
}

#[test]
fn small_parts_are_counted_and_a_page_stays_small() {
    let with_small = section(&deep(&[(0, 1, 990), (1, 1, 4), (2, 1, 6)]), "calls");
    let rows_of = rows(&with_small);
    assert_eq!(rows_of.len(), 3, "{with_small}");
    assert_eq!((rows_of[1].1.as_str(), rows_of[2].1.as_str()), ("0.6 %", "0.4 %"), "{with_small}");
    assert!(
        with_small.contains("1 smaller") && with_small.contains("less than 0.5 % are left out."),
        "{with_small}"
    );
    // 100 stacks as deep as the kernel tells them, all of the same time
    let all: Vec<_> = (0..100).map(|number| (number, 127, 1000)).collect();
    let large = section(&deep(&all), "calls");
    let rows_of = rows(&large);
    let named = rows_of.iter().filter(|row| !row.3.is_empty());
    assert!((1900..=2000).contains(&named.clone().count()), "{}", named.count());
    // the outermost of each, and none without its callers
    assert!((0..100).all(|number| rows_of.iter().any(|row| row.3 == format!("f{number}_0"))));
    assert!(rows_of.windows(2).all(|pair| pair[1].0 <= pair[0].0 + 1));
    assert!(large.contains("and all but the 2,000 largest.") && large.len() < 1_500_000, "{}", large.len());
}

/// Places in memory tell frames apart: of a graph that has been moved, too.
#[test]
fn a_graph_of_very_many_frames_has_the_largest() {
    let all: Vec<_> = (0..100).map(|number| (number, 127, 1000 + number as u64)).collect();
    let page = page(&deep(&all));
    for graph in [&frames(&page)[0], &frames(&page)[2]] {
        assert_eq!(graph.len(), 3000);
        // (whole stacks, of the largest)
        assert!(!named(graph, "f99_126").is_empty() && named(graph, "f0_0").is_empty());
    }
    assert!(page.contains("the 3,000 largest frames") && page.len() < 4_000_000, "{}", page.len());
    assert!(!super::page(&profile()).contains("largest frames"));
}
