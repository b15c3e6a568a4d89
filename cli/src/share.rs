//! Man pages and completions of shells, from the command line's own definition: what `make install` puts into PREFIX/share.
#![forbid(unsafe_code)]

use crate::say;
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `topdown share-files`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write them below this directory
    directory: PathBuf,
}

/// No line of a man page's text is longer.
const LONGEST: usize = 80;
/// The date of the pages: that of the version.
const RELEASED: &str = "2026-11-30";
/// Where each shell looks below PREFIX/share, and under which name.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/topdown"),
    (Shell::Zsh, "zsh/site-functions/_topdown"),
    (Shell::Fish, "fish/vendor_completions.d/topdown.fish"),
];

/// Writes them.
pub fn run(arguments: &Arguments, mut command: clap::Command) -> ExitCode {
    match write(&arguments.directory, &mut command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{}: {error}", arguments.directory.display()));
            ExitCode::FAILURE
        }
    }
}

fn write(directory: &Path, command: &mut clap::Command) -> io::Result<()> {
    let pages = directory.join("man/man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(command.clone().disable_help_subcommand(true), &pages)?;
    for page in fs::read_dir(&pages)? {
        let page = page?.path();
        fs::write(&page, tidy(&fs::read_to_string(&page)?))?;
    }
    for (shell, place) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, command, "topdown", &mut text);
        let file = directory.join(place);
        fs::create_dir_all(file.parent().expect("it is below the directory"))?;
        fs::write(file, text)?;
    }
    Ok(())
}

/// A man page as `mandoc -T lint` wants it: with short lines, without breaks where there is a space anyway, and a heading of all fields.
fn tidy(page: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in page.lines().map(str::trim_end) {
        let last = lines.last().map_or("", String::as_str);
        let begins = ["", ".sp", ".TP", ".RS"].contains(&last) || last.starts_with(".SH");
        match line {
            "" | ".br" | ".sp" if begins => {}
            "" | ".br" | ".sp" => {
                if [".br", ".sp"].contains(&last) {
                    lines.pop();
                }
                lines.push(if line == ".br" { line } else { ".sp" }.into());
            }
            ".SH EXTRA" => lines.push(".SH NOTES".into()),
            heading if heading.starts_with(".TH ") => lines.push(full_heading(heading)),
            request if request.starts_with('.') => lines.push(request.into()),
            text => {
                // (what is indented is laid out as it is, and what follows is not)
                let was_indented = last.starts_with(' ');
                lines.extend((was_indented && !text.starts_with(' ')).then(|| ".br".into()));
                folded(text, &mut lines);
            }
        }
    }
    lines.join("\n") + "\n"
}

/// A title, section, date, source and manual, of a heading that begins with the first two.
fn full_heading(heading: &str) -> String {
    let title = heading.split(' ').nth(1).unwrap_or("topdown");
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {} 1 {RELEASED} \"topdown {version}\" \"User Commands\"", title.to_uppercase())
}

/// A line of text as several.
fn folded(text: &str, lines: &mut Vec<String>) {
    let mut line = String::new();
    for (k, word) in text.split(' ').enumerate() {
        if line.len() + word.len() >= LONGEST && !line.trim().is_empty() && !word.is_empty() {
            lines.push(std::mem::take(&mut line).trim_end().into());
        } else if k > 0 {
            line.push(' ');
        }
        // (a line that begins so is a request)
        if line.is_empty() && word.starts_with(['.', '\'']) {
            line += "\\&";
        }
        line += word;
    }
    lines.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_short_lines_and_no_text_becomes_a_request() {
        let words = "word ".repeat(15) + ".csv " + &"more ".repeat(10);
        let page = tidy(&format!(
            ".TH topdown-stat 1  \"stat \"\n.SH EXTRA\n\n{words}\n.br\n.sp\n\nlast \n.sp\n.br\n  $ topdown\n  $ it\nend\n"
        ));
        let lines: Vec<&str> = page.lines().collect();
        let requests: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with('.')).collect();
        let heading = format!(
            ".TH TOPDOWN-STAT 1 {RELEASED} \"topdown {}\" \"User Commands\"",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(requests, [&heading, ".SH NOTES", ".sp", ".sp", ".br"]);
        assert!(lines.iter().all(|line| line.len() <= LONGEST && line.trim_end() == *line), "{page}");
        let text =
            lines.iter().filter(|line| !line.starts_with('.')).flat_map(|line| line.split_whitespace());
        let text = text.collect::<Vec<&str>>().join(" ").replace("\\&", "");
        assert_eq!(text, format!("{words}last $ topdown $ it end"));
        assert!(page.ends_with("\n.sp\n  $ topdown\n  $ it\n.br\nend\n"), "{page}");
    }
}
