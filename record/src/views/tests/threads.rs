//! Threads in JSON and on the page.
#![forbid(unsafe_code)]

use super::*;

fn section(profile: &Profile) -> String {
    super::section(profile, "threads")
}

/// The texts of a table's cells, row by row.
fn rows(section: &str) -> Vec<Vec<String>> {
    let text = |cell: &str| {
        let (mut all, mut depth) = (String::new(), 1);
        for c in cell.chars() {
            depth += i32::from(c == '<');
            if depth == 0 {
                all.push(c);
            }
            depth -= i32::from(c == '>');
        }
        all
    };
    let cells = |row: &str| row.split("<t").filter(|cell| cell.starts_with(['d', 'h'])).map(text).collect();
    section.split("<tr").skip(1).map(|row| cells(row.split("</tr>").next().unwrap())).collect()
}

#[test]
fn threads_have_time_and_shares_or_why_not() {
    let section = section(&profile());
    let rows = rows(&section);
    assert_eq!(
        rows[0],
        [
            "thread",
            "process",
            "CPU time",
            "part of the time",
            "slots",
            "retiring",
            "bad speculation",
            "frontend bound",
            "backend bound"
        ]
    );
    let shares = ["50.0 ± 1.0 %", "10.0 ± 1.0 %", "15.0 ± 1.0 %", "25.0 ± 1.0 %"];
    assert_eq!(rows[1][..4], ["7", "a.out", "3.00 s", "75.0 ± 2.0 %"], "{rows:?}");
    assert_eq!(rows[1][5..], shares, "{rows:?}");
    assert_eq!(rows[2][..4], ["8", "", "1.00 s", "25.0 ± 2.0 %"], "{rows:?}");
    assert!(rows[2][4].starts_with("cannot be told from 3 bursts: record some 13 s"), "{rows:?}");
    let json: serde_json::Value = serde_json::from_slice(&View::Json.write(&profile(), &HEADING)).unwrap();
    let [first, second] = [0, 1].map(|k| &json["by_thread"][k]);
    assert_eq!(
        (&first["tid"], &first["process"], &first["time_ns"]),
        (&7.into(), &"a.out".into(), &3_000_000_000_u64.into())
    );
    assert_eq!(first["shares"]["tma_bad_speculation"]["high"], 0.11);
    assert_eq!(second["cannot_be_told"], "too few bursts have a window in the thread: 3");
    assert!(second["process"].is_null() && second["core"] == first["core"]);
}

#[test]
fn of_many_threads_those_of_most_time_have_rows_and_the_rest_a_sentence() {
    let mut many = profile();
    many.by_thread = (1..=80).map(|tid| thread(tid, "<b>", 8_000_000 * (100 - tid as u64), None)).collect();
    let section = section(&many);
    assert_eq!(rows(&section).len(), 1 + 50);
    // (in thousandths of all: 2 each for 49 down to 20)
    assert!(section.contains("and 30 threads more with 207.0 % of the time together"), "{section}");
    assert!(section.contains("&lt;b&gt;") && !section.contains("<b>"), "{section}");
    many.by_thread.truncate(1);
    assert!(!page(&many).contains("id=\"threads\""), "one alone is all");
}

#[test]
fn threads_of_an_event_have_a_part_of_the_events() {
    let of_events = section(&conditional());
    let rows = rows(&of_events);
    assert_eq!(rows[0], ["thread", "process", "cycles", "part of the stretches"]);
    assert_eq!(rows[1], ["7", "a.out", "3,000,000,000", "75.0 ± 2.0 %"]);
    assert!(!of_events.contains("time"), "{of_events}");
    let json: serde_json::Value =
        serde_json::from_slice(&View::Json.write(&conditional(), &HEADING)).unwrap();
    assert!(json["by_thread"][0]["time_ns"].is_null() && json["by_thread"][0]["events"] == 3_000_000_000_u64);
    let made_up = Profile { simulated: Some("timer"), ..profile() };
    assert!(section(&made_up).contains("SIMULATED"));
}
