//! No room (a layer: some modules of the core, or a crate) imports from a later one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The core's rooms in the order in which data passes them, each with its modules of `src/`.
const ROOMS: &[(&str, &[&str])] = &[
    ("what all rooms say", &["error", "options"]),
    ("texts of cores", &["cpu"]),
    ("model", &["model"]),
    ("plan", &["plan"]),
    ("detect", &["detect"]),
    ("registers and samples", &["registers", "sample"]),
    ("rules of error", &["bound", "budget"]),
    ("reading", &["read"]),
    ("group", &["group"]),
    ("totals", &["totals"]),
    ("source", &["source"]),
    ("decode", &["decode", "span", "tree"]),
    ("sampling", &["sampling"]),
    ("rotation", &["rotation"]),
    ("sum", &["sum"]),
    ("handle", &["handle"]),
    ("a closure", &["measure"]),
    ("turns", &["turns"]),
    ("probe", &["probe"]),
    ("capi", &["capi"]),
];

/// Modules of tests, which may import anything.
const TESTS: [&str; 2] = ["failures", "fuzz"];

/// Known violations, importer and imported: none may be added.
const BACKWARD: &[(&str, &str)] = &[];

/// The crates of the workspace, each behind those that it may import.
const CRATES: &[(&str, &[&str])] = &[
    ("topdown-seam", &[]),
    ("topdown", &["topdown-seam"]),
    ("topdown-table", &[]),
    ("topdown-metric-files", &["topdown"]),
    ("topdown-report", &["topdown-seam", "topdown", "topdown-table"]),
    ("topdown-lake", &["topdown", "topdown-report"]),
    ("topdown-patch", &[]),
    ("topdown-preload", &["topdown-seam", "topdown", "topdown-table", "topdown-patch"]),
    ("topdown-record", &["topdown-seam", "topdown", "topdown-table", "topdown-report"]),
    ("topdown-recorder", &["topdown-seam", "topdown", "topdown-table", "topdown-report", "topdown-record"]),
    ("topdown-selftest", &["topdown-seam", "topdown", "topdown-report"]),
    (
        "topdown-cli",
        &[
            "topdown-seam",
            "topdown",
            "topdown-table",
            "topdown-metric-files",
            "topdown-report",
            "topdown-lake",
            "topdown-record",
            "topdown-selftest",
        ],
    ),
    ("topdown-jevents", &["topdown-seam"]),
];

/// Imports of crates that are there still: none is to be added.
const BACKWARD_CRATES: &[(&str, &str)] = &[];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Paths of all Rust files below a directory.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// A file without comments and literals, and without its tests, which come last.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let (mut code, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['/', '"', '\'']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'"', ..] => end_of_text(rest),
            [b'\'', b'\\', _, ..] => 2 + rest[2..].find('\'').map_or(1, |end| end + 1),
            [b'\'', _, b'\'', ..] => 3, // a character; else it is a lifetime
            _ => {
                code.push_str(&rest[..1]);
                1
            }
        };
        rest = &rest[end..];
    }
    code + rest
}

/// The length of the literal that a text begins with.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// What follows `crate::` (or another prefix): the first name, or in braces the first name of each path.
fn heads<'a>(code: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let name = |text: &'a str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        &text[..end]
    };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c| word(c) || c == ':' || c == '$') {
            continue; // another path that ends so, or a macro's own crate
        }
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if word(c) && begins => {
                    found.insert(name(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// The module that each name of the crate's root is of.
fn root_names(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for item in code(lib).split(';') {
        let Some((_, path)) = item.split_once("pub use ") else { continue };
        let module = path.split("::").next().unwrap_or_default();
        let exported = path[module.len()..].split(|c: char| !c.is_alphanumeric() && c != '_');
        let exported = exported.filter(|name| !name.is_empty());
        names.extend(exported.map(|name| (name.to_string(), module.to_string())));
    }
    names
}

/// The imports of the core's modules: from, to, and in which file.
fn arrows() -> BTreeSet<(String, String, String)> {
    let src = root().join("src");
    let lib = read(&src.join("lib.rs"));
    let names = root_names(&lib);
    let modules: BTreeSet<String> = fs::read_dir(&src)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut arrows = BTreeSet::new();
    for path in sources(&src) {
        let file = path.strip_prefix(&src).unwrap();
        let module = file.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_string();
        let inner = file.file_stem().unwrap().to_string_lossy();
        if path.extension().is_none_or(|kind| kind != "rs")
            || module == "lib"
            || inner == "tests"
            || TESTS.contains(&&*module)
        {
            continue;
        }
        let code = code(&read(&path));
        let mut found = heads(&code, "crate::");
        if file.components().count() == 1 || inner == "mod" && file.components().count() == 2 {
            found.extend(heads(&code, "super::"));
        }
        for name in found {
            let to = names.get(name).map_or(name, String::as_str);
            // (other names of the root are macros and `sys`, the seam)
            if to != module && modules.contains(to) {
                arrows.insert((module.clone(), to.into(), file.display().to_string()));
            }
        }
    }
    arrows
}

fn place(module: &str) -> usize {
    ROOMS.iter().position(|(_, modules)| modules.contains(&module)).unwrap_or_else(|| {
        panic!("src/{module} is in no room: put it where data passes it, in ROOMS of tests/rooms.rs")
    })
}

#[test]
fn no_module_imports_from_a_later_room() {
    let arrows = arrows();
    assert!(arrows.iter().any(|(from, to, _)| from == "capi" && to == "handle"), "{arrows:?}");
    let wrong: Vec<String> = arrows
        .iter()
        .filter(|(from, to, _)| place(from) < place(to) && !BACKWARD.contains(&(from, to)))
        .map(|(from, to, file)| format!("src/{file}: {from} imports {to}, of a later room"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The crates of the tree that a package is built with.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split([' ', '=', '.']).next().unwrap_or_default();
        if ["[dependencies]", "[build-dependencies]"].contains(&section) && line.contains("path =") {
            found.push(name.to_string());
        }
    }
    found
}

#[test]
fn no_crate_imports_from_a_later_one() {
    let workspace = read(&root().join("Cargo.toml"));
    let members = workspace.lines().find_map(|line| line.strip_prefix("members = ")).unwrap();
    let mut seen = 0;
    for member in members.split('"').skip(1).step_by(2).chain(["."]) {
        let manifest = read(&root().join(member).join("Cargo.toml"));
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"');
        let Some((_, permitted)) = CRATES.iter().find(|(known, _)| *known == name) else {
            panic!("{name} is not among the CRATES of tests/rooms.rs")
        };
        for other in dependencies(&manifest) {
            seen += 1;
            assert!(
                permitted.contains(&&*other) || BACKWARD_CRATES.contains(&(name, &other)),
                "{name} imports {other}, which comes later"
            );
        }
    }
    assert!(seen > 5);
}

#[test]
fn imports_are_found() {
    let text = "use crate::sum::Sum;\nuse crate::{a::{b, c}, d as e, f};\n// crate::g\nlet x = \"crate::h\"; 'a: loop {\n\
                let c = '\"'; crate::i::f(); macro_rules! m { () => { $crate::j!() } } xcrate::k; super::l::m";
    let code = code(text);
    assert_eq!(heads(&code, "crate::"), BTreeSet::from(["sum", "a", "d", "f", "i"]));
    assert_eq!(heads(&code, "super::"), BTreeSet::from(["l"]));
    assert_eq!(
        dependencies(
            "[dependencies]\na = { path = \"x\" }\nb = \"1\"\n[dev-dependencies]\nc = { path = \"y\" }\n"
        ),
        ["a"]
    );
}
