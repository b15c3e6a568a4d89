//! A page of section 3.

use crate::header::{Header, Item, Kind};
use crate::mdoc::{self, Block, Names};
use crate::said::Said;
use std::collections::{BTreeMap, BTreeSet};

/// What man/pages says of a page.
#[derive(Default)]
pub struct Page {
    pub name: String,
    about: String,
    pub headers: Vec<String>,
    /// Functions, structures and constants, in their order.
    items: Vec<String>,
    pub example: String,
    see: Vec<String>,
}

/// The date of the pages: that of the version.
const RELEASED: &str = "November 30, 2026";
/// Headers, by what their names begin with, and libraries that have what they declare.
const LIBRARIES: [(&str, &str); 4] = [
    ("topdown_record", "libtopdown-record (-ltopdown-record)"),
    ("topdown_region", "None to link with: topdown-run(1) loads libtopdown-preload.so"),
    ("topdown", "libtopdown (-ltopdown)"),
    ("jevents/", "libjevents (-ljevents)"),
];

impl Page {
    pub fn all(list: &str) -> Vec<Page> {
        let lines = list.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        lines.split("\n\n").filter(|block| !block.trim().is_empty()).map(Page::new).collect()
    }

    fn new(block: &str) -> Page {
        let mut page = Page::default();
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (key, value) = line.split_once(' ').unwrap_or_else(|| panic!("man/pages: {line}"));
            let words = value.split_whitespace().map(String::from);
            match key {
                "page" => page.name = value.into(),
                "about" => page.about = value.into(),
                "header" => page.headers.extend(words),
                "has" => page.items.extend(words),
                "example" => page.example = value.into(),
                "see" => page.see.extend(words),
                _ => panic!("man/pages: what is {key}?"),
            }
        }
        page
    }

    /// What is in the page.
    pub fn items<'a>(&self, headers: &'a BTreeMap<String, Header>) -> Vec<&'a Item> {
        let named = |pattern: &String| {
            let found: Vec<_> = self.headers.iter().flat_map(|name| headers[name].named(pattern)).collect();
            assert!(!found.is_empty(), "{}: no header has {pattern}", self.name);
            found
        };
        self.items.iter().flat_map(named).collect()
    }

    /// The page.
    pub fn made(
        &self,
        headers: &BTreeMap<String, Header>,
        homes: &BTreeMap<&str, &str>,
        example: &str,
    ) -> String {
        let names = &Names { homes, page: &self.name };
        let items = self.items(headers);
        let called: Vec<&Item> = items.iter().copied().filter(|item| item.is_called()).collect();
        let said: Vec<(&Item, Said)> = called.iter().map(|item| (*item, self.said(item))).collect();
        let of_all = Said::sorted(&headers[&self.headers[0]].about);
        let mut made = format!(
            ".\\\" Made by `make man` from include/, man/pages and {}: do not edit.\n.Dd {}\n.Dt {} 3\n.Os\n",
            self.example,
            RELEASED,
            self.name.to_uppercase()
        );
        made += ".Sh NAME\n";
        let mut nouns: Vec<&str> = called.iter().map(|item| &*item.name).collect();
        if !nouns.contains(&&*self.name) {
            nouns.insert(0, &self.name);
        }
        made += &nouns.iter().map(|name| format!(".Nm {name}")).collect::<Vec<_>>().join(" ,\n");
        let library = LIBRARIES.iter().find(|(header, _)| self.headers[0].starts_with(header));
        let (_, library) = library.expect("the library of a header");
        made += &format!("\n.Nd {}\n.Sh LIBRARY\n{}.Sh SYNOPSIS\n", self.about, mdoc::text(library, names));
        made += &self.synopsis(headers);
        made += ".Sh DESCRIPTION\n";
        made += &self.description(headers, &items, &said, names);
        if self.is_short() {
            made += &format!(".Sh RETURN VALUES\n{}", mdoc::text(&of_all.returns, names));
            made += &format!(".Sh THREADS\n{}", mdoc::text(&of_all.threads, names));
        } else {
            made += &table("RETURN VALUES", &said, |said| mdoc::text(&said.returns, names));
            made += &table("THREADS", &said, |said| mdoc::text(&said.threads, names));
        }
        let example: Vec<&str> = example.lines().collect();
        made += &format!(".Sh EXAMPLES\n{}", mdoc::literal(&example));
        made += &table("ERRORS", &said, |said| errors(said, names));
        made += ".Sh SEE ALSO\n";
        let mut see: BTreeSet<(&str, &str)> = self
            .see
            .iter()
            .map(|page| page.split_once('.').unwrap_or((page, "3")))
            .map(|(page, section)| (section, page))
            .collect();
        see.insert(("7", "topdown"));
        let see = see.into_iter().map(|(section, page)| format!(".Xr {page} {section}"));
        made + &see.collect::<Vec<_>>().join(" ,\n") + "\n"
    }

    /// Whether functions have a line each, and what is returned is said of all at once.
    fn is_short(&self) -> bool {
        self.headers.len() > 1
    }

    fn said(&self, item: &Item) -> Said {
        match &item.kind {
            Kind::Function(kind, _) if !self.is_short() => {
                let mut said = Said::sorted(&item.comment);
                assert!(!said.threads.is_empty(), "{}: which threads may call it?", item.name);
                said.finish(kind);
                said
            }
            _ => Said { description: mdoc::blocks(&item.comment), ..Said::default() },
        }
    }

    fn synopsis(&self, headers: &BTreeMap<String, Header>) -> String {
        let mut made = String::new();
        for name in &self.headers {
            made += &format!(".In {}\n", name.trim_start_matches("jevents/"));
            for item in self.items.iter().flat_map(|pattern| headers[name].named(pattern)) {
                let parameters = match &item.kind {
                    Kind::Function(kind, parameters) => {
                        made += &format!(".Ft {kind}\n");
                        parameters
                    }
                    Kind::Macro(parameters) => parameters,
                    _ => continue,
                };
                made += &format!(".Fo {}\n", item.name);
                // (a delimiter at the end is not one of the macro's)
                let end = |one: &str| if one.ends_with(')') { "\\&" } else { "" };
                made +=
                    &parameters.iter().map(|one| format!(".Fa \"{one}{}\"\n", end(one))).collect::<String>();
                made += ".Fc\n";
            }
        }
        made
    }

    fn description(
        &self,
        headers: &BTreeMap<String, Header>,
        items: &[&Item],
        said: &[(&Item, Said)],
        names: &Names,
    ) -> String {
        let mut made = String::new();
        // (that of topdown.h is of all functions, and has a page)
        if self.headers[0] != "topdown.h" || said.is_empty() {
            for name in &self.headers {
                let about = &headers[name].about;
                let mut about =
                    if self.is_short() { Said::sorted(about).description } else { mdoc::blocks(about) };
                about.retain(|block| !matches!(block, Block::Paragraph(text) if text.starts_with("Made by")));
                if name != &self.headers[0] {
                    made += &format!(".Ss {}\n", name.trim_start_matches("jevents/"));
                }
                made += &shown(&about, names);
                if self.is_short() {
                    let of = |item: &Item| headers[name].items.iter().any(|own| own.name == item.name);
                    made += ".Bl -tag -width Ds\n";
                    for (item, said) in said.iter().filter(|(item, _)| of(item)) {
                        made += &format!(
                            ".It Fn {}\n{}",
                            item.name,
                            shown(&said.description, names).trim_start_matches(".Pp\n")
                        );
                    }
                    made += ".El\n";
                }
            }
        }
        if !self.is_short() {
            for (item, said) in said.iter().filter(|(_, said)| !said.description.is_empty()) {
                made += &format!(".Ss {}\n{}", item.name, shown(&said.description, names));
            }
        }
        made = made.replace(".Sh DESCRIPTION\n.Pp\n", ".Sh DESCRIPTION\n");
        let mut group = "";
        for item in items {
            match &item.kind {
                Kind::Struct(fields) => {
                    made +=
                        &format!(".Ss struct {}\n{}", item.name, shown(&mdoc::blocks(&item.comment), names));
                    made += ".Bl -tag -width Ds\n";
                    for field in fields {
                        let (kind, name) = field.code.rsplit_once(' ').expect("a type and a name");
                        made += &format!(
                            ".It Vt {kind} Va {name}\n{}",
                            mdoc::text(&field.comment.join(" "), names)
                        );
                    }
                    made += ".El\n";
                }
                Kind::Constant => {
                    let pattern = self
                        .items
                        .iter()
                        .find(|p| p.strip_suffix('*').is_some_and(|p| item.name.starts_with(p)));
                    let pattern = pattern.expect("constants are named by what their names begin with");
                    if group != pattern {
                        made += if group.is_empty() { "" } else { ".El\n" };
                        group = pattern;
                        made += &format!(".Ss {pattern}\n{}", mdoc::text(&item.of_all.join(" "), names));
                        made += ".Bl -tag -width Ds\n";
                    }
                    made += &format!(".It Dv {}\n{}", item.name, mdoc::text(&item.comment.join(" "), names));
                    continue;
                }
                _ => {}
            }
            if !group.is_empty() {
                made += ".El\n";
                group = "";
            }
        }
        made + if group.is_empty() { "" } else { ".El\n" }
    }
}

/// A section with what is said of each function. Those of which the same is said share a row.
fn table(heading: &str, said: &[(&Item, Said)], text: impl Fn(&Said) -> String) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for (item, said) in said {
        let text = text(said);
        match rows.iter_mut().find(|(_, other)| *other == text) {
            _ if text.is_empty() => {}
            Some((functions, _)) => *functions += &format!(" , Fn {}", item.name),
            None => rows.push((format!("Fn {}", item.name), text)),
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let rows = rows.iter().map(|(functions, text)| format!(".It {functions}\n{text}"));
    format!(".Sh {heading}\n.Bl -tag -width Ds\n{}.El\n", rows.collect::<String>())
}

fn errors(said: &Said, names: &Names) -> String {
    let codes = said
        .codes
        .iter()
        .map(|(code, meaning)| format!(".It {}\n{}", tagged(code), mdoc::text(meaning, names)));
    let codes: String = codes.collect();
    let list = if codes.is_empty() { codes } else { format!(".Bl -tag -width Ds -compact\n{codes}.El\n") };
    mdoc::text(&said.errors, names) + &list
}

/// Codes as a tag.
fn tagged(codes: &str) -> String {
    let marked = codes.split(' ').map(|word| {
        let core = word.trim_end_matches(',');
        let comma = if core == word { "" } else { " ," };
        match core.strip_prefix('-') {
            Some(code) => format!("Er \\-{code}{comma}"),
            None if core.starts_with("TD_") => format!("Dv {core}{comma}"),
            None => format!("No {word}"),
        }
    });
    marked.collect::<Vec<_>>().join(" ")
}

fn shown(blocks: &[Block], names: &Names) -> String {
    let shown = blocks.iter().enumerate().map(|(k, block)| match block {
        Block::Paragraph(text) => format!("{}{}", if k == 0 { "" } else { ".Pp\n" }, mdoc::text(text, names)),
        Block::Code(code) => mdoc::literal(code),
        Block::Codes(codes) => panic!("codes of what? {codes:?}"),
    });
    shown.collect()
}
