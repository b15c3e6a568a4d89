//! Table files that are none, that end early, or that hold what cannot be.

mod made;
mod reported;

use made::{Scratch, TableContent, nested, ran};
use reported::{parts_are_of_their_parents, region, report};
use std::fs;
use topdown_report::model::Item;
use topdown_report::{Format, merge, render};
use topdown_table::{HEADER_SIZE, Record, offset_of_record};

#[test]
fn what_is_no_table_file_is_told_with_the_remedy() {
    let scratch = Scratch::new("refused");
    let path = scratch.0.join("x.topdown");
    let mut good = nested().bytes();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let text = merge(std::slice::from_ref(&path), None).unwrap_err().to_string();
        assert!(text.starts_with(&path.display().to_string()), "{text}");
        text
    };
    assert!(refused(b"").contains("name a *.topdown file"));
    assert!(refused(&good[..100]).contains("ends after 100 bytes"));
    good[8] = 99;
    assert!(refused(&good).contains("layout 99"));
    good[8] = 1;
    good[12] ^= 1;
    assert!(refused(&good).contains("of the version that wrote it"));
    good[0] = b'x';
    assert!(refused(&good).contains("does not begin as one"));
    let missing = scratch.0.join("missing");
    assert!(merge(&[missing], None).unwrap_err().to_string().contains("missing: cannot read it"));
}

#[test]
fn a_file_that_ends_early_has_what_came_before() {
    let scratch = Scratch::new("truncated");
    let path = scratch.0.join("x.topdown");
    let bytes = nested().bytes();
    fs::write(&path, &bytes[..offset_of_record(2) + 1000]).unwrap();
    let report = merge(&[path], None).unwrap();
    assert_eq!(report.regions.iter().map(|region| region.name.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn parents_that_cannot_be_are_left_out() {
    let mut made = nested();
    made.at(1).parent = 2;
    made.at(2).parent = 1;
    let report = report("circle", &[made]);
    // "a" is not below the one that came after it; nor is "b" then
    assert_eq!((report.processes[0].damaged, report.regions.len()), (1, 0));
    assert!(render(&report, Format::Text).contains("1 record of its table file cannot be"));
}

/// Bytes at random places of a file, and whole files of them.
#[test]
fn hostile_bytes_do_no_harm() {
    let scratch = Scratch::new("hostile");
    let path = scratch.0.join("x.topdown");
    let good = nested().bytes();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut measured = 0;
    for turn in 0..600 {
        let mut bytes = good.clone();
        for _ in 0..1 + turn % 40 {
            let at = 16 + (random() as usize) % (bytes.len() - 16);
            // near the numbers too, which are most of what is read
            let at = if turn % 2 == 0 { HEADER_SIZE + at % (3 * size_of::<Record>()) } else { at };
            bytes[at] = if random() % 4 == 0 { 0xff } else { random() as u8 };
        }
        fs::write(&path, &bytes).unwrap();
        let report = merge(std::slice::from_ref(&path), None).unwrap();
        let mut items: Vec<&Item> = vec![&report.whole];
        items.extend(report.regions.iter().map(|region| &region.item));
        for figures in items.iter().flat_map(|item| [&item.inclusive, &item.exclusive]) {
            let Some(one) = figures.level_1 else { continue };
            measured += 1;
            assert!((one.of.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{one:?}");
            parts_are_of_their_parents(figures);
            assert!((0.0..=1.0).contains(&one.error), "{one:?}");
        }
        for format in [Format::Text, Format::Csv, Format::Json, Format::Html] {
            render(&report, format);
        }
    }
    assert!(measured > 100, "{measured}");
}

#[test]
fn a_chain_of_regions_is_no_stack_overflow() {
    let mut made = TableContent::new(10, "deep");
    let one = ran(1000, [100, 0, 0, 0], [0; 4], 0).sum();
    let mut parent = made.thread("main", one);
    for level in 0..5_000 {
        parent = made.region(if level % 2 == 0 { "even" } else { "odd" }, parent, one);
    }
    let report = report("deep", &[made]);
    assert_eq!(report.processes[0].threads[0].tree.len(), 5_000);
    assert_eq!(region(&report, "even").item.inclusive.slots, 1000);
    for format in [Format::Text, Format::Csv, Format::Json, Format::Html] {
        render(&report, format);
    }
}

#[test]
fn a_table_counted_by_another_tree_is_refused() {
    let mut made = TableContent::new(10, "another tree");
    let root = made.thread("main", ran(1_000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    made.region("solve", root, ran(1_000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    let scratch = Scratch::new("another-tree");
    merge(&[made.write(&scratch.0)], None).unwrap();
    made.at(1).core.fingerprint ^= 1;
    assert_eq!(merge(&[made.write(&scratch.0)], None).unwrap().processes[0].damaged, 1);
    made.at(0).core.fingerprint ^= 1;
    let path = made.write(&scratch.0);
    let why = merge(std::slice::from_ref(&path), None).unwrap_err().to_string();
    let said = format!("{}: counted on Golden or Raptor Cove by a tree of metrics that", path.display());
    assert!(why.starts_with(&said), "{why}");
}
