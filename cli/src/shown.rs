//! The commands that README, docs and the tests' programs show are ones that `topdown` takes.

use crate::Arguments;
use clap::{CommandFactory, Parser};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// README and what it refers to.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.extension() == Some("md".as_ref())).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// Commands of `topdown` in lines of code: each from its name to what ends it in a shell.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut current: Option<Vec<String>> = None;
    let words = words(line);
    for (k, (word, is_quoted)) in words.iter().enumerate() {
        let is_end = !is_quoted
            && (matches!(&**word, "|" | "&&" | "||" | "&" | ">" | "2>" | ">>" | "2>&1" | "<" | ";")
                || word.starts_with('#'));
        match (&mut current, is_end) {
            (Some(_), true) => found.extend(current.take()),
            (Some(command), false) => command.push(word.clone()),
            (None, _) if word == "topdown" && begins(&words[..k]) => current = Some(vec![word.clone()]),
            _ => {}
        }
        if word.starts_with('#') && !is_quoted {
            break;
        }
    }
    found.extend(current);
    found
}

/// Whether a command begins after these words: variables, or one that runs others.
fn begins(before: &[(String, bool)]) -> bool {
    let last = before
        .iter()
        .rev()
        .take_while(|(word, _)| !matches!(&**word, "|" | "&&" | "||" | ";"))
        .collect::<Vec<_>>();
    let Some((first, _)) = last.last() else { return true };
    matches!(&**first, "$" | "sudo" | "env" | "mpirun" | "srun" | "time") || first.contains('=')
}

/// Words of a shell, and whether they were quoted.
fn words(line: &str) -> Vec<(String, bool)> {
    let (mut words, mut word, mut quote, mut was_quoted) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, was_quoted) = (Some(c), true),
            (None, ' ') => {
                if !word.is_empty() || was_quoted {
                    words.push((std::mem::take(&mut word), was_quoted));
                }
                was_quoted = false;
            }
            (None, ';') => {
                words.push((std::mem::take(&mut word), was_quoted));
                words.push((";".into(), false));
                was_quoted = false;
            }
            _ => word.push(c),
        }
    }
    if !word.is_empty() || was_quoted {
        words.push((word, was_quoted));
    }
    words
}

/// Lines of code blocks, those that go on in the next joined.
fn code(text: &str) -> Vec<String> {
    let (mut lines, mut is_fenced, mut begun) = (Vec::new(), false, String::new());
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let Some(line) = line.strip_prefix("    ").or(is_fenced.then_some(line)) else { continue };
        match line.trim_end().strip_suffix('\\') {
            Some(part) => begun += part,
            None => lines.push(std::mem::take(&mut begun) + line.trim_start()),
        }
    }
    lines
}

/// Spans of code in the text.
fn spans(text: &str) -> Vec<&str> {
    let is_text = |line: &&str| !line.starts_with("    ");
    text.lines().filter(is_text).flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// Why the command does not take this.
fn refusal(command: &[String]) -> Option<String> {
    // (the library finds files and machines wrong only when it runs)
    let error = Arguments::try_parse_from(command).err()?;
    error.use_stderr().then(|| error.to_string())
}

#[test]
fn each_command_in_a_block_of_code_is_one() {
    let mut wrong = BTreeSet::new();
    let mut known = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for command in code(&text).iter().flat_map(|line| commands(line)) {
            known += 1;
            if let Some(why) = refusal(&command) {
                wrong.insert(format!("{}: {}: {why}", page.display(), command.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(known > 60, "{known}");
}

#[test]
fn each_option_that_is_named_with_its_command_is_one() {
    let commands = Arguments::command();
    let mut wrong = BTreeSet::new();
    let mut known = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for span in spans(&text).into_iter().filter_map(|span| span.strip_prefix("topdown ")) {
            let of = span.split_whitespace().next().unwrap_or_default();
            let Some(command) = commands.find_subcommand(of) else {
                if of.chars().all(|c| c.is_ascii_lowercase()) && !matches!(of, "help") {
                    wrong.insert(format!("{}: there is no topdown {of}", page.display()));
                }
                continue;
            };
            let own = span.split(" -- ").next().unwrap_or_default();
            for word in own.split_whitespace().filter_map(|word| word.strip_prefix("--")) {
                let name = word.split(['=', '[', ',', ']']).next().unwrap_or_default();
                known += 1;
                let is_known = command.get_arguments().any(|one| {
                    one.get_long() == Some(name)
                        || one.get_all_aliases().is_some_and(|all| all.contains(&name))
                });
                if !is_known && !matches!(name, "" | "help" | "version") {
                    wrong.insert(format!("{}: topdown {of} has no --{name}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(known > 40, "{known}");
}

#[test]
fn each_target_of_make_and_each_test_that_is_named_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let targets: BTreeSet<&str> = makefile.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    let tests = fs::read_to_string(root.join("c-tests/README.md")).unwrap();
    let mut wrong = BTreeSet::new();
    let mut known = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = code(&text);
        for line in spans(&text).into_iter().chain(blocks.iter().map(String::as_str)) {
            // (what it does stands beside it)
            let typed = line.split("   ").next().unwrap_or_default();
            let mut words = typed.split([' ', ';', ',']).filter(|word| !word.is_empty());
            if words.next() != Some("make") {
                continue;
            }
            for word in words.take_while(|word| !word.starts_with(['#', '&', '|'])) {
                known += 1;
                let is_one = match word.split_once('=') {
                    Some(("T", name)) => {
                        tests.contains(&format!("| [{name}]("))
                            || tests.contains(&format!("({name}."))
                            || root.join(name).exists()
                            || name == "NAME"
                    }
                    Some(_) => true,
                    None => targets.contains(word),
                };
                if !is_one {
                    wrong.insert(format!("{}: make has no {word}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(known > 60, "{known}");
}

/// Blocks of code that are indented, each with the lines of it.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let (mut blocks, mut is_fenced, mut before) = (vec![Vec::new()], false, "");
    for line in text.lines() {
        is_fenced ^= line.trim_start().starts_with("```");
        let goes_on = blocks.last().is_some_and(|block: &Vec<&str>| !block.is_empty());
        match line.strip_prefix("    ") {
            Some(own) if !is_fenced && (goes_on || before.is_empty()) => blocks.last_mut().unwrap().push(own),
            None if line.is_empty() => {}
            _ => blocks.push(Vec::new()),
        }
        before = line;
    }
    blocks
}

/// What a page shows of commands: each with the number of lines below it; and lines of figures that are of no command.
fn outputs(text: &str) -> (Vec<(String, usize)>, Vec<&str>) {
    let (mut commands, mut others) = (Vec::new(), Vec::new());
    for block in blocks(text) {
        let mut below: Option<(String, usize)> = None;
        for line in block {
            match (line.trim_start().strip_prefix("$ "), &mut below) {
                (Some(command), _) => {
                    let typed = command.split(" #").next().unwrap_or_default().trim_end().to_string();
                    commands.extend(below.replace((typed, 0)));
                }
                (None, Some((_, lines))) => *lines += 1,
                (None, None) if has_figures(line) => others.push(line),
                (None, None) => {}
            }
        }
        commands.extend(below);
    }
    commands.retain(|(_, lines)| *lines > 0);
    (commands, others)
}

/// Whether a program may have written this: a share, an interval, or `topdown: `.
fn has_figures(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_number = |word: &str| word.ends_with(|c: char| c.is_ascii_digit());
    let is_comment = line.contains("/*") || line.contains("//");
    let has_share = words.windows(2).any(|two| is_number(two[0]) && two[1].starts_with('%'));
    line.starts_with("topdown: ") || !is_comment && (has_share || line.contains('±'))
}

#[test]
fn what_a_page_shows_of_a_command_is_compared_with_what_it_writes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = fs::read_to_string(root.join("c-tests/pages")).unwrap();
    let rows = fs::read_to_string(root.join("c-tests/rows")).unwrap();
    let machines: BTreeSet<String> = rows
        .lines()
        .filter_map(|line| {
            let (cpu, rest) = line.split_once(' ')?;
            Some(format!("{}-{}", cpu.split(',').next()?, rest.split_whitespace().next()?))
        })
        .collect();
    let (mut wrong, mut listed, mut of) = (Vec::new(), BTreeSet::new(), None);
    let mut nobodys = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let (Some(command), Some(page)) = (line.strip_prefix("  $ "), of) {
            listed.insert((String::from(page), command.to_string()));
        } else if !line.starts_with(' ') && !line.is_empty() {
            let words: Vec<&str> = line.split_whitespace().collect();
            of = words.first().copied();
            let by = words.get(1).copied().unwrap_or_default();
            let page = of.unwrap_or_default();
            // (another test says which page it compares)
            let is_test = || fs::read_to_string(root.join(by)).is_ok_and(|test| test.contains(page));
            nobodys += usize::from(by == "nobody");
            if !(by == "here" || by == "nobody" && words.len() > 4 || machines.contains(by) || is_test()) {
                wrong.push(format!("{line}: nobody compares it"));
            }
        }
    }
    assert!(nobodys <= 4, "{nobodys} are compared by nobody");
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let page = if name == "README.md" { name.to_string() } else { format!("docs/{name}") };
        let (commands, others) = outputs(&text);
        wrong.extend(others.iter().map(|line| format!("{page}: of which `$ COMMAND` is this: {line}")));
        for (command, _) in commands {
            if !listed.contains(&(page.clone(), command.clone())) {
                wrong.push(format!("{page}: c-tests/pages has not `$ {command}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(listed.len() > 30, "{}", listed.len());
}
