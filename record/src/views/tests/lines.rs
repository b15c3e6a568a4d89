//! Lines of source files in views.

use super::*;
use crate::symbols::tests::Scratch;
use std::fs;

/// The profile of the other tests with its program and source file in a directory; each line of the latter is `line N`, and the first
/// would do harm.
fn with_source(scratch: &Scratch) -> Profile {
    let path = |name: &str| scratch.path(name).display().to_string();
    let lines: String = (2..=40).map(|k| format!("\tline {k}\n")).collect();
    fs::write(path("a.c"), format!("</td></script><script>alert(1)</script>\u{1b}\u{202e}&\n{lines}"))
        .unwrap();
    fs::write(path("program"), "").unwrap();
    let mut profile = profile();
    for function in &mut profile.functions {
        function.path = path("program");
        function.lines.iter_mut().for_each(|line| line.file = path("a.c"));
    }
    profile
}

fn written(view: View, profile: &mut Profile) -> String {
    view.read_sources(profile, &[]);
    String::from_utf8(view.write(profile, &HEADING)).unwrap()
}

/// Of the first listing of a page: each row's class, time, number and text.
fn rows(page: &str) -> Vec<[String; 4]> {
    let listing = page.split("<details class=\"lines\"").nth(1).unwrap().split("</details>").next().unwrap();
    let within = |text: &str, class: &str| {
        let cell = text.split(&format!("<td class=\"{class}\">")).nth(1).unwrap_or_default();
        cell.split("</td>").next().unwrap().to_string()
    };
    let row = |text: &str| {
        let class = text.split('>').next().unwrap().trim().replace("class=\"\"", "");
        [class, within(text, "time"), within(text, "at"), within(text, "text")]
    };
    listing.split("<tbody>").skip(1).flat_map(|body| body.split("<tr").skip(1)).map(row).collect()
}

#[test]
fn the_page_has_the_hottest_lines_with_those_beside_them() {
    let scratch = Scratch::new("listing");
    let mut profile = with_source(&scratch);
    let lines = &mut profile.functions[0].lines;
    let one = ProfiledLine { file: lines[0].file.clone(), ..line(30, 40_000_000) };
    lines.insert(6, one);
    let page = written(View::Html, &mut profile);
    let rows = rows(&page);
    // lines 1 to 7, three more, a gap, and three on either side of 30
    let numbers: Vec<&str> = rows.iter().map(|row| &*row[2]).collect();
    let wanted: Vec<String> =
        (1..=9).map(|k| k.to_string()).chain(["".into()]).chain((27..=33).map(|k| k.to_string())).collect();
    assert_eq!(numbers, wanted, "{page}");
    let row =
        |number: &str| rows.iter().find(|row| row[2] == number).unwrap().clone().map(|cell| cell.to_string());
    assert_eq!(row("1")[..3], ["class=\"hottest\"", "37.5 ± 1.0 %", "1"]);
    assert_eq!(row("2"), ["", "25.0 ± 1.0 %", "2", "    line 2"]);
    // (of a line beside others what is known is shown, however little)
    assert_eq!(row("7"), ["", "0.1 ± 1.0 %", "7", "    line 7"]);
    assert_eq!(row("30"), ["", "1.0 ± 1.0 %", "30", "    line 30"]);
    assert_eq!(row("29"), ["", "", "29", "    line 29"]);
    assert_eq!(page.matches("class=\"hottest\"").count(), 2, "of each function one");
    assert_eq!(page.matches("<details class=\"lines\" open>").count(), 1);
    assert!(page.contains("Lines: a.c:1 has 37.5 ± 1.0 %"), "{page}");
    assert!(page.contains("1 line with less is not marked."), "{page}");
    // nobody obeys it
    assert!(
        page.contains("&lt;/td&gt;&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u{1b}\\u{202e}&amp;"),
        "{page}"
    );
    assert!(!page.contains("<script>alert"), "{page}");
}

#[test]
fn lines_that_may_be_the_hottest_are_marked() {
    let scratch = Scratch::new("marked");
    let mut profile = with_source(&scratch);
    for line in &mut profile.functions[0].lines {
        line.time = ShareInterval::around(line.time.value, 0.1);
    }
    // 37.5, 25, 18.8 and 15 % in truth within ten points: the third is as much as the first at most, and half of it
    let rows = rows(&written(View::Html, &mut profile));
    let marked: Vec<&str> =
        rows.iter().filter(|row| row[0].contains("hottest")).map(|row| &*row[2]).collect();
    assert_eq!(marked, ["1", "2", "3"]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_and_its_lines_have_numbers() {
    let scratch = Scratch::new("wrong");
    let mut profile = with_source(&scratch);
    let source = scratch.path("a.c");
    let program = fs::File::options().append(true).open(scratch.path("program")).unwrap();
    assert!(!written(View::Html, &mut profile).contains("after the program"));
    program.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let page = written(View::Html, &mut profile);
    assert!(page.contains("was written after the program"), "{page}");
    assert!(
        written(View::Lines, &mut profile)
            .contains("a.c was written after the program: its lines may be others by now.")
    );
    fs::remove_file(&source).unwrap();
    let page = written(View::Html, &mut profile);
    assert!(page.contains(": the file is not there or cannot be read (--source says where it is)"), "{page}");
    let rows = rows(&page);
    assert_eq!(rows.len(), 6, "{page}");
    assert_eq!(rows[0], ["class=\"hottest\"", "37.5 ± 1.0 %", "1", ""]);
    fs::write(&source, "one\n").unwrap();
    assert!(
        written(View::Html, &mut profile).contains("the file has fewer lines: it is not what was compiled")
    );
}

#[test]
fn functions_without_lines_have_no_listing() {
    let mut profile = profile();
    profile.functions.iter_mut().for_each(|function| function.lines.clear());
    let page = written(View::Html, &mut profile);
    assert!(!page.contains("<details class=\"lines\"") && !page.contains("A line has the part"), "{page}");
    // and bursts without a line are counted
    profile.functions[0].lines = vec![line(1, 1_000_000_000)];
    let page = written(View::Html, &mut profile);
    assert!(page.contains("To 30 bursts of 50 in the function the compiler gave no line."), "{page}");
}

#[test]
fn lines_of_a_condition_have_parts_of_its_stretches() {
    let page = written(View::Html, &mut conditional());
    assert!(page.contains("<th>part</th>") && !page.contains("<th>time</th>"), "{page}");
    assert_eq!(page.matches("<details class=\"lines\" open>").count(), 1, "{page}");
    assert!(written(View::Html, &mut profile()).contains("<th>time</th>"));
}

#[test]
fn the_text_has_the_text_of_lines() {
    let scratch = Scratch::new("text");
    let mut profile = with_source(&scratch);
    fs::write(scratch.path("a.c"), format!("\t\u{1b}[31m\n\n\t{}\n\n\n\n\n", "x".repeat(100))).unwrap();
    let text = written(View::Lines, &mut profile);
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_string();
    assert!(line("a.c:1").ends_with("a.c:1  \\u{1b}[31m"), "{text}");
    assert!(line("a.c:2").ends_with("a.c:2"), "{text}");
    assert!(line("a.c:3").ends_with(&format!("a.c:3  {}…", "x".repeat(59))), "{text}");
    // others read none
    profile.sources = Sources::default();
    for view in [View::Text, View::Json, View::Csv, View::Svg, View::Folded, View::Pprof, View::Firefox] {
        view.read_sources(&mut profile, &[]);
        assert!(
            profile.sources.of(&profile.functions[0].path, &profile.functions[0].lines[0].file).is_none()
        );
    }
}
