//! Text of comments as mdoc(7).

use std::collections::BTreeMap;

/// No line of text is longer.
const LONGEST: usize = 79;

/// A piece of a comment.
#[derive(Debug, PartialEq)]
pub enum Block {
    Paragraph(String),
    /// Lines that stay as they are.
    Code(Vec<String>),
    /// Codes, and what each means.
    Codes(Vec<(String, String)>),
}

/// The pieces of a comment's lines.
pub fn blocks(lines: &[String]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut open, mut gap) = (false, false);
    for line in lines {
        match line.find(|c| c != ' ') {
            None => {}
            Some(0) => match blocks.last_mut() {
                Some(Block::Paragraph(text)) if open => *text = format!("{text} {line}"),
                _ => blocks.push(Block::Paragraph(line.clone())),
            },
            Some(1..=3) => {
                let (code, said) = line.trim_start().split_once("  ").unwrap_or((line.trim_start(), ""));
                let code = (code.to_string(), said.trim_start().to_string());
                match blocks.last_mut() {
                    Some(Block::Codes(codes)) => codes.push(code),
                    _ => blocks.push(Block::Codes(vec![code])),
                }
            }
            Some(_) => match blocks.last_mut() {
                Some(Block::Code(code)) => {
                    code.extend(gap.then(String::new));
                    code.push(line[4..].to_string());
                }
                _ => blocks.push(Block::Code(vec![line[4..].to_string()])),
            },
        }
        open = !line.is_empty();
        gap = !open;
    }
    blocks
}

/// The sentences of a paragraph.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let ends = |(at, _): &(usize, &str)| rest_is_sentence(&text[at + 2..]);
    let mut from = 0;
    for (at, _) in text.match_indices(". ").filter(ends) {
        sentences.push(&text[from..=at]);
        from = at + 2;
    }
    sentences.push(&text[from..]);
    sentences
}

fn rest_is_sentence(rest: &str) -> bool {
    rest.trim_start_matches(['`', '"', '(', '-']).starts_with(|c: char| c.is_ascii_uppercase())
        || rest.starts_with('`')
}

/// What names in a text are.
pub struct Names<'a> {
    /// Functions and macros, and the page that has each.
    pub homes: &'a BTreeMap<&'a str, &'a str>,
    /// The page that is being made.
    pub page: &'a str,
}

/// Lines of mdoc(7) of a text: what a program writes, and other pages, are marked.
pub fn text(text: &str, names: &Names) -> String {
    let mut made = String::new();
    let mut line = String::new();
    // (a space in what is quoted does not end a word)
    let quoted: Vec<&str> = text.split('`').collect();
    let joined: Vec<String> = quoted
        .iter()
        .enumerate()
        .map(|(k, part)| if k % 2 == 1 { part.replace(' ', "\u{1}") } else { (*part).into() })
        .collect();
    for word in joined.join("`").split_whitespace() {
        if let Some(request) = request(word, names) {
            end(&mut line, &mut made);
            made += &request.replace('\u{1}', " ");
            made.push('\n');
            continue;
        }
        let word = plain(&word.replace('\u{1}', " ").replace('`', ""));
        if line.len() + word.len() > LONGEST {
            end(&mut line, &mut made);
        }
        if !line.is_empty() {
            line.push(' ');
        } else if word.starts_with(['.', '\'']) {
            line += "\\&";
        }
        line += &word;
        if word.trim_end_matches([')', '"']).ends_with(['.', '?', '!']) {
            end(&mut line, &mut made);
        }
    }
    end(&mut line, &mut made);
    made
}

fn end(line: &mut String, made: &mut String) {
    if !line.is_empty() {
        *made += &format!("{line}\n");
        line.clear();
    }
}

/// A word that stays text. An option's hyphen is one that can be copied.
fn plain(word: &str) -> String {
    let word = word.replace('\\', "\\e");
    if word.trim_start_matches('(').starts_with('-') { word.replace('-', "\\-") } else { word }
}

/// The line of a word that is marked.
fn request(word: &str, names: &Names) -> Option<String> {
    let inner = word.trim_start_matches('(');
    let opened = word.len() - inner.len();
    let core = inner.trim_end_matches([',', '.', ';', ':', ')']);
    // (the parenthesis of a section or a call is its own)
    let core = if core.contains('(') { inner.split_inclusive(')').next()? } else { core };
    let core = core.strip_suffix("'s").unwrap_or(core);
    let behind = &inner[core.len()..];
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]->".contains(c))
    };
    let of_manual = core.strip_suffix(')').and_then(|core| core.split_once('('));
    let quoted = core.strip_prefix('`').and_then(|core| core.strip_suffix('`'));
    let marked = if let Some((name, section)) = of_manual.filter(|(_, section)| section.len() == 1) {
        format!("Xr {name} {section}")
    } else if let Some(quoted) = quoted {
        if is_name(quoted) { format!("Va {quoted}") } else { format!("Ql {}", quoted.replace('-', "\\-")) }
    } else if let Some(home) = names.homes.get(core.trim_end_matches("()")).filter(|_| is_function(core)) {
        let name = core.trim_end_matches("()");
        if *home == names.page { format!("Fn {name}") } else { format!("Xr {name} 3") }
    } else if let Some(code) = core.strip_prefix('-').filter(|code| is_code(code)) {
        format!("Er \\-{code}")
    } else if core == "NULL" || core.starts_with("TD_") {
        format!("Dv {core}")
    } else if core.starts_with("td_") && is_name(core) {
        format!("Va {core}")
    } else {
        return None;
    };
    let behind: String = match behind.strip_prefix("'s") {
        Some(behind) => format!(" Ns 's{behind}"),
        None => behind.chars().map(|c| format!(" {c}")).collect(),
    };
    let (kind, marked) = marked.split_once(' ')?;
    let opened = if opened == 0 { "" } else { "( " };
    Some(format!(".{kind} {opened}{marked}{behind}"))
}

fn is_function(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) || name.starts_with("TD_REGION_")
}

/// An error's name.
pub fn is_code(text: &str) -> bool {
    text.len() > 2
        && text.starts_with('E')
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// Lines that are shown as they are.
pub fn literal(code: &[impl AsRef<str>]) -> String {
    let mut made = String::from(".Bd -literal -offset indent\n");
    for line in code {
        let line = line.as_ref().replace('\\', "\\e").replace('-', "\\-");
        made += &format!("{}{line}\n", if line.starts_with(['.', '\'']) { "\\&" } else { "" });
    }
    made + ".Ed\n"
}
