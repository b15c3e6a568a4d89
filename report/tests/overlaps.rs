//! Regions that did not nest: which ones the report names.

mod made;

use made::{Scratch, TableContent, ran};
use topdown_report::model::Overlap;
use topdown_report::{Format, merge, render};

#[test]
fn regions_that_were_split_are_named_with_those_that_ended() {
    let scratch = Scratch::new("overlaps");
    let files: Vec<_> = [10, 20]
        .into_iter()
        .map(|pid| {
            let sum = || ran(10_000, [50, 10, 10, 30], [10, 5, 5, 20], 100).sum();
            let mut made = TableContent::new(pid, "overlapping");
            let root = made.thread("main", sum());
            let around = made.region("around", root, sum());
            let within = made.region("within", around, sum());
            let seldom = made.region("seldom <>", around, sum());
            for (record, times) in [(within, 5), (seldom, u64::from(pid == 20))] {
                (made.at(record).split, made.at(record).split_by) = (times, around + 1);
            }
            made.at(root).split_by = 1000; // (of nothing)
            made.write(&scratch.0)
        })
        .collect();
    let report = merge(&files, None).unwrap();
    let overlap = |region: &str, times| Overlap { region: region.into(), ended: "around".into(), times };
    assert_eq!(report.overlaps, [overlap("within", 10), overlap("seldom <>", 1)]);
    let split: Vec<_> = report.regions.iter().map(|one| (&one.name[..], one.item.counts.split)).collect();
    assert_eq!(split, [("around", 0), ("seldom <>", 1), ("within", 10)]);
    let words = |format| render(&report, format).split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(Format::Text);
    assert!(text.contains("'within' was still open when 'around' ended (10 times)"), "{text}");
    assert!(text.contains("10 of its executions are pieces"), "{text}");
    assert!(words(Format::Html).contains("still open when"));
    let csv = render(&report, Format::Csv);
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let column = rows.next().unwrap().iter().position(|name| *name == "split").unwrap();
    let within: Vec<_> = rows.filter(|row| row[0] == "within").map(|row| row[column].to_string()).collect();
    assert_eq!(within, ["10", "5", "5"]);
}
