//! What the command writes in JSON is what docs/schema says.

mod running;
#[path = "../../report/tests/schemas/mod.rs"]
mod schemas;

use running::{Scratch, done, text};
use std::fs;
use std::path::PathBuf;

/// A program that runs for a while.
const BUSY: [&str; 4] = ["--", "sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done"];

/// What the command writes into a file of this name, of that program.
fn written(scratch: &Scratch, name: &str, words: &str) -> PathBuf {
    let file = scratch.0.join(name);
    let words = words.replace("FILE", file.to_str().unwrap());
    let words: Vec<&str> = words.split(' ').chain(BUSY).collect();
    let output = done(scratch.topdown(&words).env_remove("TOPDOWN_PRELOAD"));
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
    file
}

fn compared(scratch: &Scratch, name: &str, files: &[PathBuf]) -> PathBuf {
    let file = scratch.0.join(name);
    let output = done(scratch.topdown(&["compare", "-o"]).arg(&file).args(files));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    file
}

#[test]
fn what_stat_run_and_compare_write_obeys_the_schemas() {
    let scratch = Scratch::new("schema-stat");
    let reports = [
        ("1.json", "stat -o FILE"),
        ("2.json", "stat --td-level 2 -o FILE"),
        ("3.json", "stat --kernel -a -o FILE"),
        ("4.json", "run --outside -o FILE"),
    ];
    let reports = reports.map(|(name, words)| written(&scratch, name, words));
    schemas::obey("report.schema.json", &reports);
    let lines = written(&scratch, "lines.json", "stat -I 10 -j -o FILE");
    fs::rename(&lines, lines.with_extension("jsonl")).unwrap();
    let rows = [
        ("i.json", "stat -I 10 -o FILE"),
        ("r.json", "stat -r 2 --td-level 2 -o FILE"),
        ("c.json", "stat -a --per-core --kernel -o FILE"),
    ];
    let mut rows = Vec::from(rows.map(|(name, words)| written(&scratch, name, words)));
    rows.push(lines.with_extension("jsonl"));
    schemas::obey("row.schema.json", &rows);
    let timeline = written(&scratch, "t.json", "stat -I 10 --timeline FILE -o /dev/null");
    schemas::obey("timeline.schema.json", &[timeline]);
    schemas::obey("comparison.schema.json", &[compared(&scratch, "d.json", &reports[..2])]);
}

#[test]
fn what_record_writes_obeys_the_schema() {
    let scratch = Scratch::new("schema-record");
    let recordings = [("1.json", "record -o FILE"), ("2.json", "record --td-level 1 --kernel -o FILE")];
    let recordings = recordings.map(|(name, words)| written(&scratch, name, words));
    schemas::obey("recording.schema.json", &recordings);
    let compared = compared(&scratch, "d.json", &recordings);
    assert!(fs::metadata(&compared).unwrap().len() > 0);
    schemas::obey("recording-comparison.schema.json", &[compared]);
}
