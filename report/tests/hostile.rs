//! Names and files that somebody made to do harm: to a terminal, a spreadsheet, a browser, or whoever waits for the report.

mod made;

use made::{Scratch, TableContent, ran};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use topdown_report::{Format, Report, clean, json, merge, render};
use topdown_table::{HEADER_SIZE, MOST_BYTES};

/// Each ends in a number of its own, by which it is known again.
const HOSTILE: [&[u8]; 12] = [
    b"\x1b]0;title\x07\x1b[2J 00",
    b"\xc2\x9b31m C1 CSI 01",
    b"\x9b31m no UTF-8 02",
    "\u{202e}gpj.exe \u{2066}\u{2069}\u{200f}03".as_bytes(),
    "a\u{2028}b\u{2029}c\u{85}d 04".as_bytes(),
    b"\xed\xa0\x80\xed\xbf\xbf lone surrogates 05",
    b"</script><script>alert(1)</script> 06",
    b"\"><img src=x onerror=alert(1)>'& 07",
    b"\r\x08\x7f\x0b\t 08",
    b"<!-- ]]> --> 09",
    "\u{feff}\u{200b}\u{ad}\u{e0041} 10".as_bytes(),
    b"two\nlines 11",
];

fn put(field: &mut [u8], bytes: &[u8]) {
    field.fill(0);
    field[..bytes.len()].copy_from_slice(bytes);
}

/// All of them as names of regions, and each in turn in every other text that a table has.
fn reports() -> impl Iterator<Item = Report> {
    HOSTILE.iter().enumerate().map(|(k, bytes)| {
        let mut made = TableContent::new(10, "");
        let one = ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum();
        let root = made.thread("", one);
        put(&mut made.at(root).name, bytes);
        for name in HOSTILE {
            let region = made.region("", root, one);
            put(&mut made.at(region).name, name);
            made.at(region).unbalanced = 1;
        }
        for field in [&mut made.header.cpu[..], &mut made.header.pmu, &mut made.header.core] {
            put(field, &bytes[..bytes.len().min(field.len())]);
        }
        put(&mut made.header.note, bytes);
        put(&mut made.header.command, bytes);
        made.header.path = 2;
        let mut nothing = TableContent::new(11, "");
        nothing.header.path = 0;
        put(&mut nothing.header.trouble, bytes);
        put(&mut nothing.header.command, bytes);
        let scratch = Scratch::new(&format!("names-{k}"));
        merge(&[made.write(&scratch.0), nothing.write(&scratch.0)], None).unwrap()
    })
}

fn steers(c: char) -> bool {
    c.is_control()
        || "\u{ad}\u{61c}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{feff}\u{e0041}"
            .contains(c)
}

#[test]
fn no_report_steers_a_terminal() {
    for report in reports() {
        for format in [Format::Text, Format::Csv, Format::Json, Format::Html] {
            let text = render(&report, format);
            let found = text.chars().find(|c| *c != '\n' && steers(*c));
            assert_eq!(found, None, "{format:?}: {text}");
            assert!(text.contains("lines 11"), "{format:?}: the names are there:\n{text}");
        }
    }
    assert_eq!(clean("\u{9b}2J"), "\\u{9b}2J");
}

#[test]
fn html_is_text_where_it_is_text() {
    for report in reports() {
        let html = render(&report, Format::Html);
        assert_eq!(html.matches("<script").count(), 1, "{html}");
        assert_eq!(html.matches("</script").count(), 1, "{html}");
        assert!(!html.contains("<img") && !html.contains("<!--") && !html.contains("]]>"), "{html}");
        assert!(html.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "{html}");
        // the quote of a name ends no attribute
        assert!(!html.contains("\"\"><") && !html.contains("=\"\\\""), "{html}");
    }
}

#[test]
fn json_means_what_the_table_has_and_may_be_put_into_a_page() {
    for report in reports() {
        let text = render(&report, Format::Json);
        assert!(!text.contains(['<', '>', '&']), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, serde_json::to_value(&report).unwrap());
        let mut names: Vec<&str> = value["regions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|region| region["name"].as_str().unwrap())
            .collect();
        let mut wanted = HOSTILE.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
    }
    assert_eq!(json(&"\u{e0041}<"), "\"\\udb40\\udc41\\u003c\"\n");
}

/// Records of fields, as RFC 4180 has them.
fn parsed(csv: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.push(chars.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    assert!(!quoted && field.is_empty() && record.is_empty(), "{csv}");
    records
}

#[test]
fn no_field_is_a_formula_and_numbers_stay_numbers() {
    const FORMULAS: [&str; 12] = [
        "=cmd|' /C calc'!A0",
        "+1+2",
        "-[View draw]",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        "＝1",
        "'=1",
        "x;=1",
        "\"=1\"",
    ];
    let mut made = TableContent::new(10, "formulas");
    let one = ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum();
    for name in FORMULAS {
        let root = made.thread(name, one);
        made.region(name, root, one);
    }
    let scratch = Scratch::new("formulas");
    let report = merge(&[made.write(&scratch.0)], None).unwrap();
    let records = parsed(&render(&report, Format::Csv));
    let columns = &records[0];
    let texts = ["region", "thread", "ended", "bottleneck", "exclusive_bottleneck"];
    let (mut names, mut numbers) = (Vec::new(), 0);
    for record in &records[1..] {
        assert_eq!(record.len(), columns.len());
        for (column, field) in columns.iter().zip(record) {
            let start = field.trim_start().chars().next();
            assert!(!start.is_some_and(|c| "=+-@＝＋－＠\t\r".contains(c)), "{column}: {field:?}");
            if texts.contains(&column.as_str()) {
                names.push(field.as_str());
            } else if !field.is_empty() {
                field.parse::<f64>().unwrap_or_else(|_| panic!("{column}: {field:?}"));
                numbers += 1;
            }
        }
    }
    assert!(numbers > 500, "{numbers}");
    // what has an apostrophe at its start is the name without it
    for name in ["=cmd|' /C calc'!A0", "+1+2", "-[View draw]", "@SUM(1)", "\n=1", "  =1", "＝1", "'=1"] {
        assert!(names.contains(&format!("'{name}").as_str()), "{name:?}: {names:?}");
    }
    assert!(names.contains(&"x;=1") && names.contains(&"\"=1\"") && names.contains(&"\\u{9}=1"), "{names:?}");
    assert!(render(&report, Format::Csv).contains("\"x;=1\""), "a semicolon separates fields, too, for some");
}

#[test]
fn what_cannot_be_a_table_is_not_read() {
    let scratch = Scratch::new("kinds");
    let refused = |path: &PathBuf, says: &str| {
        let text = merge(std::slice::from_ref(path), None).expect_err("it is refused").to_string();
        assert!(text.starts_with(&format!("{}: ", path.display())) && text.contains(says), "{text}");
    };
    // one that begins as a table does, and goes on for 200 GB
    let huge = scratch.0.join("huge.topdown");
    fs::write(&huge, &TableContent::new(10, "huge").bytes()[..HEADER_SIZE]).unwrap();
    File::options().write(true).open(&huge).unwrap().set_len(200 << 30).unwrap();
    refused(
        &huge,
        &format!("it has 214748364800 bytes, and none has more than {MOST_BYTES}; name a *.topdown"),
    );
    let fifo = scratch.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    refused(&fifo, "it is a FIFO, no table file; name a *.topdown");
    std::os::unix::net::UnixListener::bind(scratch.0.join("socket")).unwrap();
    refused(&scratch.0.join("socket"), "it is a socket");
    refused(&"/dev/zero".into(), "it is a device");
    refused(&scratch.0, "it is a directory; name the *.topdown files in it");
    std::os::unix::fs::symlink("/dev/zero", scratch.0.join("link")).unwrap();
    refused(&scratch.0.join("link"), "it is a device");
    // the largest is read
    let large = scratch.0.join("large.topdown");
    fs::rename(&huge, &large).unwrap();
    File::options().write(true).open(&large).unwrap().set_len(134_221_824).unwrap();
    assert_eq!(merge(&[large], None).unwrap().processes[0].command, "huge");
}
