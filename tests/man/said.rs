//! What the comment of a function says of each subject.

use crate::mdoc::{self, Block};

/// Sentences on threads and signal handlers begin so.
const OF_THREADS: [&str; 4] = ["Threads", "Any thread", "Not in a signal handler", "In a signal handler"];
/// What is returned begins so, also behind the threads ("Threads and returns as td_read").
const RETURNS: &str = "Returns ";
const AND_RETURNS: &str = " returns as ";

#[derive(Default)]
pub struct Said {
    pub description: Vec<Block>,
    pub threads: String,
    pub returns: String,
    /// Errors in words.
    pub errors: String,
    /// Codes, and what each means.
    pub codes: Vec<(String, String)>,
}

impl Said {
    /// Sorts what a comment says.
    pub fn sorted(comment: &[String]) -> Said {
        let mut said = Said::default();
        let mut of_return = false;
        for block in mdoc::blocks(comment) {
            match block {
                Block::Codes(codes) => {
                    assert!(of_return, "codes of what? {codes:?}");
                    said.codes.extend(codes);
                }
                Block::Code(code) => said.description.push(Block::Code(code)),
                // (what follows a list goes on with its sentence)
                Block::Paragraph(text) if of_return && text.starts_with("or ") => {
                    let sentences = mdoc::sentences(&text["or ".len()..]);
                    said.codes.push(("others".into(), sentences[0].into()));
                    sentences[1..].iter().for_each(|sentence| add(&mut said.returns, sentence));
                }
                Block::Paragraph(text) => of_return = said.take(&text),
            }
        }
        said.threads = capital(&said.threads);
        said
    }

    /// Sorts the sentences of a paragraph. Returns whether the last was about what is returned.
    fn take(&mut self, paragraph: &str) -> bool {
        let mut description = String::new();
        let (mut of_threads, mut of_return) = (false, false);
        for sentence in mdoc::sentences(paragraph) {
            let begins = OF_THREADS.iter().any(|begin| sentence.starts_with(begin));
            if let Some((_, returns)) = sentence.split_once(AND_RETURNS).filter(|_| begins) {
                add(&mut self.threads, &format!("As {}.", first_word(returns)));
                add(&mut self.returns, &format!("{RETURNS}as {returns}"));
                of_return = true;
            } else if sentence.starts_with(RETURNS) || of_return {
                add(&mut self.returns, sentence);
                of_return = true;
            } else if begins || of_threads {
                let rule = sentence.trim_start_matches("Threads: ").replace("Threads as in", "As");
                add(&mut self.threads, &rule);
                of_threads |= sentence.starts_with("Threads:");
            } else {
                add(&mut description, sentence);
            }
        }
        if !description.is_empty() {
            self.description.push(Block::Paragraph(description));
        }
        of_return
    }

    /// Separates errors from what a function of this type returns.
    pub fn finish(&mut self, of_type: &str) {
        if self.returns.is_empty() {
            self.returns = match of_type {
                "void" => "Returns nothing.",
                "const char *" => "Returns this text.",
                _ => "Returns this number.",
            }
            .into();
        }
        let mut parts: Vec<String> = self.returns.split("; ").map(String::from).collect();
        let first = parts.iter().position(|part| code_and_meaning(part).is_some()).unwrap_or(parts.len());
        let codes = parts.split_off(first);
        self.codes.extend(codes.iter().map(|part| {
            let (code, meaning) = code_and_meaning(part).unwrap_or_else(|| panic!("which code? {part}"));
            (code.to_string(), meaning.to_string())
        }));
        self.returns = parts.join("; ").trim_end_matches([':', '.', ',']).trim_end_matches(", or").into();
        if let Some(other) = self.returns.strip_prefix(RETURNS).filter(|text| text.starts_with("as ")) {
            self.errors = capital(other);
            self.returns = format!("As {}", first_word(&other["as ".len()..]));
        } else if self.codes.is_empty() {
            self.errors = self.returns.find("-E").map_or(String::new(), |at| capital(&self.returns[at..]));
        } else if !self.returns.contains("code") {
            self.returns += ", or a negative code";
        }
        self.returns += ".";
        for (_, meaning) in &mut self.codes {
            *meaning = capital(meaning);
        }
    }
}

fn add(text: &mut String, sentence: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    *text += sentence;
}

fn first_word(text: &str) -> &str {
    text.split([' ', ';', ',', '.', ':']).next().unwrap_or(text)
}

/// "-EINVAL: what it means", as both.
fn code_and_meaning(text: &str) -> Option<(&str, &str)> {
    let (code, meaning) = text.split_once(": ")?;
    let is_code = code.strip_prefix('-').is_some_and(mdoc::is_code) || code.starts_with("TD_E");
    is_code.then_some((code, meaning))
}

/// A sentence, which begins with a capital letter, but for a name, and ends with a dot.
fn capital(text: &str) -> String {
    let is_word = text.split(' ').next().is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    let (first, rest) = text.split_at(usize::from(is_word && !text.is_empty()));
    let text = first.to_uppercase() + rest;
    if text.is_empty() || text.ends_with('.') { text } else { text + "." }
}
