//! The headers are their templates, with what cbindgen makes of the sources in place of each line that begins with `@`:
//!
//! - `@NAME`: the function, structure or constant of that name; `@TD_NODE_*`: all constants whose names begin so;
//! - `@td_sample opaque FIELD WORDS`: the structure without what begins at the field, which is so many 8-byte words.

use std::collections::BTreeSet;
use std::path::Path;

/// Crates with a C interface.
const CRATES: [&str; 2] = [".", "recorder"];

/// Template and header. In that of tests, structures have names of their own, lest they be those of topdown.h.
const HEADERS: [(&str, &str); 4] = [
    ("src/capi/topdown.h.in", "include/topdown.h"),
    ("src/capi/topdown_inline.h.in", "include/topdown_inline.h"),
    ("c-tests/include/internals.h.in", "c-tests/include/internals.h"),
    ("recorder/topdown_record.h.in", "include/topdown_record.h"),
];

/// Columns of a line with a comment behind its code.
const WIDTH: usize = 120;

#[test]
fn headers_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for own in CRATES {
        cbindgen::generate(root.join(own)).expect("cbindgen reads the sources").write(&mut found);
        found.push(b'\n');
    }
    let found = String::from_utf8(found).expect("a header is text");
    let items: Vec<Item> = found.split("\n\n").filter_map(Item::new).collect();
    let mut placed = BTreeSet::new();
    let mut stale = Vec::new();
    for (template, header) in HEADERS {
        let template = std::fs::read_to_string(root.join(template)).expect("a template");
        let mut made = filled(&template, &items, &mut placed);
        if header.starts_with("c-tests") {
            made = made.replace("struct td_", "struct td_own_");
        }
        if std::env::var_os("TOPDOWN_WRITE_HEADER").is_some() {
            std::fs::write(root.join(header), &made).expect("the header can be written");
        }
        if std::fs::read_to_string(root.join(header)).unwrap_or_default() != made {
            stale.push(header);
        }
    }
    let missing: Vec<_> = items.iter().map(|item| item.name).filter(|name| !placed.contains(*name)).collect();
    assert!(missing.is_empty(), "no template has {missing:?}");
    assert!(stale.is_empty(), "{stale:?} are not what the sources say; run `make header` and commit them");
}

/// A function, structure or constant as cbindgen writes it: its comment's lines, and the rest.
struct Item<'a> {
    name: &'a str,
    comment: Vec<&'a str>,
    body: Vec<&'a str>,
}

impl<'a> Item<'a> {
    fn new(text: &'a str) -> Option<Item<'a>> {
        let mut lines = text.trim_matches('\n').lines();
        let comment: Vec<_> = match lines.clone().next()? {
            "/**" => lines.by_ref().skip(1).take_while(|line| *line != " */").map(uncommented).collect(),
            _ => Vec::new(),
        };
        // The safety section speaks to Rust programs: C has the paragraphs above it.
        let end = comment.iter().position(|line| *line == "# Safety").unwrap_or(comment.len());
        let end = comment[..end].iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        let body: Vec<_> = lines.collect();
        let head = body.first()?;
        let name = match head
            .strip_prefix("#define ")
            .or_else(|| head.strip_prefix("struct ").filter(|h| h.ends_with(['{', ';'])))
        {
            Some(rest) => rest.split([' ', ';']).next()?,
            None => head.split_once('(')?.0.rsplit([' ', '*']).next()?,
        };
        (!["td", "td_turns"].contains(&name)).then(|| Item { name, comment: comment[..end].to_vec(), body })
    }
}

/// The text of a line of a comment.
fn uncommented(line: &str) -> &str {
    let line = line.trim_start().strip_prefix('*').expect("a line of a comment");
    line.strip_prefix(' ').unwrap_or(line)
}

/// The template with its lines replaced.
fn filled(template: &str, items: &[Item], placed: &mut BTreeSet<String>) -> String {
    let mut made = String::new();
    for line in template.lines() {
        let Some(directive) = line.strip_prefix('@') else {
            made += &format!("{line}\n");
            continue;
        };
        let words: Vec<_> = directive.split(' ').collect();
        let chosen: Vec<_> = items
            .iter()
            .filter(|item| match words[0].strip_suffix('*') {
                Some(prefix) => item.name.starts_with(prefix) && item.body[0].starts_with('#'),
                None => item.name == words[0],
            })
            .collect();
        assert!(!chosen.is_empty(), "nothing is called {directive}");
        placed.extend(chosen.iter().map(|item| item.name.to_string()));
        made += &match chosen[0].body[0] {
            head if head.starts_with('#') => constants(&chosen),
            head if head.starts_with("struct ") => structure(chosen[0], &words[1..]),
            _ => function(chosen[0]),
        };
    }
    for (name, value) in [
        ("{MAJOR}", env!("CARGO_PKG_VERSION_MAJOR")),
        ("{MINOR}", env!("CARGO_PKG_VERSION_MINOR")),
        ("{PATCH}", env!("CARGO_PKG_VERSION_PATCH")),
    ] {
        made = made.replace(name, value);
    }
    made
}

fn function(item: &Item) -> String {
    let body = item.body.join(" ");
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ").replace("struct td *", "td_t *");
    // what does not fit is broken behind a comma
    let indent = body.find('(').map_or(0, |at| at + 1);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in body.split_inclusive(", ") {
        if line.trim_end().len() + word.trim_end().len() > WIDTH {
            lines.push(line.trim_end().to_string());
            line = " ".repeat(indent);
        }
        line += word;
    }
    lines.push(line);
    commented("", &item.comment) + &lines.join("\n") + "\n"
}

/// A comment of its own lines.
fn commented(indent: &str, comment: &[&str]) -> String {
    let mut made = String::new();
    for (at, line) in comment.iter().enumerate() {
        let begin = if at == 0 { "/**" } else { " *" };
        made += format!("{indent}{begin} {line}").trim_end();
        made += if at + 1 == comment.len() { " */\n" } else { "\n" };
    }
    made
}

/// Lines of code, with their comments behind them where they fit, else before.
fn table(indent: &str, lines: &[(String, Vec<&str>)]) -> String {
    let column = lines.iter().map(|(code, _)| code.len()).filter(|length| *length <= 40).max().unwrap_or(0);
    let mut made = String::new();
    for (code, comment) in lines {
        let behind = match comment[..] {
            [] => code.clone(),
            [one] => format!("{code:column$}  /**< {one} */"),
            _ => String::new(),
        };
        if behind.is_empty() || indent.len() + behind.len() > WIDTH {
            made += &commented(indent, comment);
            made += &format!("{indent}{code}\n");
        } else {
            made += &format!("{indent}{behind}\n");
        }
    }
    made
}

fn constants(items: &[&Item]) -> String {
    let value = |item: &Item| item.body[0].rsplit(' ').next().and_then(|value| value.parse::<i64>().ok());
    let mut items = items.to_vec();
    items.sort_by_key(|item| value(item).expect("a number").abs());
    let lines: Vec<_> = items.iter().map(|item| (item.body[0].to_string(), item.comment.clone())).collect();
    table("", &lines)
}

fn structure(item: &Item, rest: &[&str]) -> String {
    let mut fields = Vec::new();
    let mut comment = Vec::new();
    for line in &item.body[1..item.body.len() - 1] {
        match line.trim() {
            "/**" => comment.clear(),
            "*/" => {}
            text if text.starts_with('*') => comment.push(uncommented(line)),
            code => {
                let field = code.trim_end_matches(';').split(['[', ' ']).rfind(|word| !word.ends_with(']'));
                match rest {
                    ["opaque", first, words] if field == Some(*first) => {
                        fields.push((format!("uint64_t opaque[{words}];"), vec!["The library's own."]));
                        break;
                    }
                    _ => fields.push((code.to_string(), std::mem::take(&mut comment))),
                }
            }
        }
    }
    let cut = fields.last().is_some_and(|(code, _)| code.contains(" opaque["));
    assert_eq!(cut, rest.first() == Some(&"opaque"), "{} has no field {rest:?}", item.name);
    commented("", &item.comment) + &format!("struct {} {{\n{}}};\n", item.name, table("    ", &fields))
}
