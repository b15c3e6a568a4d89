//! What a text is laid out for: a terminal of so many columns, or a file.
#![forbid(unsafe_code)]

use crate::output::is_stdout;
use anstyle::{AnsiColor, Style};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use terminal_size::{Width, terminal_size_of};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Columns of a terminal that does not say how many it has.
const USUAL: usize = 80;
/// No text is wrapped to fewer.
const LEAST: usize = 40;
/// How far further lines of a sentence are further in.
const HANGING: &str = "  ";

/// A stream that a text is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// What a text is laid out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Tables and paragraphs are no wider.
    pub columns: usize,
    /// Sentences are wrapped, too, and names are cut. Elsewhere each sentence is one line and each name whole, for grep.
    pub is_terminal: bool,
    /// The terminal obeys escape sequences.
    pub has_escapes: bool,
    /// Headings and warnings stand out.
    pub has_colours: bool,
}

impl Layout {
    /// For files and pipes: the same wherever it is written.
    pub const FILE: Layout =
        Layout { columns: 100, is_terminal: false, has_escapes: false, has_colours: false };

    /// For this stream as it is now.
    pub fn of(stream: Stream) -> Layout {
        let (is_terminal, size) = match stream {
            Stream::Output => (io::stdout().is_terminal(), terminal_size_of(io::stdout())),
            Stream::Error => (io::stderr().is_terminal(), terminal_size_of(io::stderr())),
        };
        let asked = size.map(|(Width(columns), _)| columns);
        Layout::decided(is_terminal, asked, |name| std::env::var_os(name))
    }

    /// For what `-o` names, or without it for the stream.
    pub fn of_output(output: Option<&Path>, otherwise: Stream) -> Layout {
        match output {
            None => Layout::of(otherwise),
            Some(path) if is_stdout(path) => Layout::of(Stream::Output),
            Some(_) => Layout::FILE,
        }
    }

    /// `asked`: how many columns the terminal says that it has.
    fn decided(is_terminal: bool, asked: Option<u16>, variable: impl Fn(&str) -> Option<OsString>) -> Layout {
        if !is_terminal {
            return Layout::FILE;
        }
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let told = || set("COLUMNS")?.to_str()?.parse().ok().filter(|columns| *columns > 0);
        let columns = asked.filter(|columns| *columns > 0).map(usize::from).or_else(told);
        let has_escapes = set("TERM").is_some_and(|term| term != "dumb");
        Layout {
            columns: columns.unwrap_or(USUAL).max(LEAST),
            is_terminal,
            has_escapes,
            has_colours: has_escapes && set("NO_COLOR").is_none(),
        }
    }

    /// Lines of at most so many columns, unless a word is longer: the first begins with `first`, the others with `rest`.
    pub fn lines(&self, first: &str, rest: &str, text: &str) -> Vec<String> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let options = Options::new(self.columns)
            .initial_indent(first)
            .subsequent_indent(rest)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .wrap_algorithm(WrapAlgorithm::FirstFit);
        textwrap::wrap(&text, options).into_iter().map(|line| line.into_owned()).collect()
    }

    /// A line of its own, however it begins: wrapped on a terminal, whole elsewhere.
    pub fn sentence(&self, text: &str) -> String {
        if !self.is_terminal {
            return text.into();
        }
        let words = text.trim_start();
        let indent = &text[..text.len() - words.len()];
        self.lines(indent, &format!("{indent}{HANGING}"), words).join("\n")
    }

    /// A text whose lines were broken for no width in particular: paragraphs are filled, and lines that begin with a space are lists,
    /// of which each line stays one, wrapped if it has to be. Alike in files.
    pub fn paragraphs(&self, text: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut open = String::new();
        let close = |open: &mut String, lines: &mut Vec<String>| {
            if !open.is_empty() {
                lines.extend(self.lines("", "", &std::mem::take(open)));
            }
        };
        for line in text.lines() {
            let words = line.trim_start();
            if !words.is_empty() && words.len() == line.len() {
                open += if open.is_empty() { "" } else { " " };
                open += words;
                continue;
            }
            close(&mut open, &mut lines);
            lines.extend(match words {
                "" => vec![String::new()],
                _ => {
                    let indent = &line[..line.len() - words.len()];
                    // (the columns of a list stay columns)
                    let (name, rest) = words.split_once("  ").unwrap_or(("", words));
                    let gap = rest.len() - rest.trim_start().len() + 2;
                    let first = if name.is_empty() {
                        indent.to_string()
                    } else {
                        format!("{indent}{name}{:gap$}", "")
                    };
                    let further = if name.is_empty() { 4 + indent.len() } else { first.chars().count() };
                    self.lines(&first, &" ".repeat(further), rest)
                }
            });
        }
        close(&mut open, &mut lines);
        lines.join("\n")
    }

    /// Names in a column as wide as is left beside so many columns: cut on a terminal, such that they can be told apart.
    pub fn names<'n>(&self, names: impl IntoIterator<Item = &'n str>, beside: usize) -> Vec<String> {
        match self.is_terminal {
            true => super::told_apart(names, self.columns.saturating_sub(beside)),
            false => names.into_iter().map(topdown_table::clean).collect(),
        }
    }

    /// As a heading, where the terminal has a way to show that.
    pub fn heading(&self, text: &str) -> String {
        self.painted(Style::new().bold(), text)
    }

    /// As what is to be read before the rest.
    pub fn warning(&self, text: &str) -> String {
        self.painted(AnsiColor::Yellow.on_default(), text)
    }

    /// As what keeps something from working.
    pub fn alarm(&self, text: &str) -> String {
        self.painted(AnsiColor::Red.on_default().bold(), text)
    }

    /// Each line for itself, as pagers have it.
    fn painted(&self, style: Style, text: &str) -> String {
        if !self.has_colours || text.is_empty() {
            return text.into();
        }
        let lines = text.split('\n').map(|line| match line {
            "" => String::new(),
            line => format!("{style}{line}{style:#}"),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn decided(is_terminal: bool, asked: Option<u16>, variables: &[(&str, &str)]) -> Layout {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Layout::decided(is_terminal, asked, |name| value(name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_terminal_is_asked_first_then_the_environment() {
        let columns = |asked, variables: &[(&str, &str)]| decided(true, asked, variables).columns;
        assert_eq!(columns(Some(132), &[("COLUMNS", "90")]), 132);
        assert_eq!(columns(None, &[("COLUMNS", "90")]), 90);
        assert_eq!(columns(Some(0), &[("COLUMNS", "90")]), 90);
        for unknown in ["", "0", "-5", "wide"] {
            assert_eq!(columns(None, &[("COLUMNS", unknown)]), 80, "{unknown}");
        }
        assert_eq!(columns(Some(7), &[]), LEAST);
    }

    #[test]
    fn files_are_alike_whatever_the_terminal_is() {
        let set = [("COLUMNS", "90"), ("TERM", "xterm")];
        assert_eq!(decided(false, Some(132), &set), Layout::FILE);
        assert_eq!(Layout::of_output(Some(Path::new("x.txt")), Stream::Error), Layout::FILE);
    }

    #[test]
    fn colours_are_where_the_terminal_has_them_and_nobody_minds() {
        let has = |variables: &[(&str, &str)]| decided(true, Some(80), variables).has_colours;
        assert!(has(&[("TERM", "xterm")]) && has(&[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!has(&[]) && !has(&[("TERM", "")]) && !has(&[("TERM", "dumb")]));
        assert!(!has(&[("TERM", "xterm"), ("NO_COLOR", "1")]));
        assert!(!decided(false, None, &[("TERM", "xterm")]).has_colours);
        let (with, without) = (decided(true, None, &[("TERM", "xterm")]), decided(true, None, &[]));
        assert_eq!(with.heading("a\n\nb"), "\x1b[1ma\x1b[0m\n\n\x1b[1mb\x1b[0m");
        assert_eq!(without.heading("a") + &without.warning("b") + &without.alarm("c"), "abc");
    }

    #[test]
    fn lines_are_no_wider_and_have_all_words() {
        let text = "how slots divide cannot be told: the kernel größer 測定 /a/path/that/is/longer/than/anything/else/here-is and so on";
        for columns in LEAST..120 {
            let layout = Layout { columns, ..decided(true, None, &[]) };
            let lines = layout.lines("! ", "  ", text);
            for line in &lines {
                assert!(line.width() <= columns || line.contains("/a/path"), "{columns}: {line}");
            }
            let words = lines.join(" ").split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
            assert_eq!(words, text, "{columns}");
        }
    }

    #[test]
    fn a_sentence_is_one_line_in_files() {
        let text = "word ".repeat(60);
        assert_eq!(Layout::FILE.sentence(text.trim()), text.trim());
        let layout = decided(true, None, &[]);
        let lines = layout.sentence(&format!("    {}", text.trim()));
        assert!(lines.lines().count() > 3 && lines.starts_with("    word"), "{lines}");
        assert!(lines.lines().skip(1).all(|line| line.starts_with("      word")), "{lines}");
    }

    #[test]
    fn paragraphs_are_filled_and_lists_stay_lists() {
        let layout = Layout { columns: 40, ..Layout::FILE };
        let text = "One line\nand another, which go together\nhere.\n\nWords:\n  good     as it should be, in many words\n  note     short\n";
        assert_eq!(
            layout.paragraphs(text),
            "One line and another, which go together\nhere.\n\nWords:\n  good     as it should be, in many\n           words\n  note     short"
        );
    }
}
