//! Makes the tables of CPUs from the texts of their cores (`cpus/*.txt`) and of nodes (`cpus/nodes.list`), and from those in the directory
//! that TOPDOWN_TEXTS names, if it is set.

#[path = "src/cpu/deep.rs"]
#[allow(dead_code)]
mod deep;
#[path = "src/cpu/expression.rs"]
mod expression;
#[path = "src/cpu/groups.rs"]
mod groups;
#[path = "src/cpu/names.rs"]
mod names;
#[path = "build/tables.rs"]
mod tables;
#[path = "src/cpu/text.rs"]
mod text;
#[path = "src/cpu/words.rs"]
mod words;

use deep::DeepText;
use groups::CounterGroups;
use names::NodeName;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tables::GroupedText;
use text::CpuText;
use words::Fault;

const TEXTS: &str = "cpus";
const MORE_TEXTS: &str = "TOPDOWN_TEXTS";
const NODES: &str = "nodes.list";
/// Of trees of deeper levels.
const DEEP: &str = "deep";

fn main() {
    for changed in ["build.rs", "build", "src/cpu", TEXTS] {
        println!("cargo:rerun-if-changed={changed}");
    }
    println!("cargo:rerun-if-env-changed={MORE_TEXTS}");

    let (mut cores, mut nodes) = (Vec::new(), Vec::new());
    let more = env::var_os(MORE_TEXTS).filter(|path| !path.is_empty()).map(PathBuf::from);
    for directory in [PathBuf::from(TEXTS)].into_iter().chain(more) {
        println!("cargo:rerun-if-changed={}", directory.display());
        if directory.join(NODES).exists() {
            read(&directory.join(NODES), |text| names::read(text, &mut nodes));
        }
        let entries =
            fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        paths.sort();
        cores.extend(paths.into_iter().map(|path| (path.clone(), core(&path, &nodes))));
    }
    let all = || {
        cores.iter().flat_map(|(file, read): &(PathBuf, GroupedText)| {
            read.0.cores.iter().map(move |core| (file, core))
        })
    };
    for (place, (file, core)) in all().enumerate() {
        if let Some((other, _)) = all().take(place).find(|(_, other)| other.is_same(core)) {
            panic!("{}: {} has a core of this name, or for one of its CPUs", file.display(), other.display());
        }
    }
    let deep = deep_texts(&nodes);
    let cores: Vec<GroupedText> = cores.into_iter().map(|(_, read)| read).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    fs::write(out.join("cpus.rs"), tables::tables(&cores)).unwrap();
    fs::write(out.join("metrics.rs"), tables::metrics(&nodes)).unwrap();
    let (lines, texts) = numbered_lines(&deep);
    fs::write(out.join("lines.deep"), miniz_oxide::deflate::compress_to_vec(lines.as_bytes(), 9)).unwrap();
    let texts: String = texts.iter().map(|(name, lines)| format!("({name:?}, &{lines:?}),\n")).collect();
    let lines = "const LINES: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/lines.deep\"));";
    fs::write(out.join("deep.rs"), format!("{lines}\nconst TEXTS: &[(&str, &[u16])] = &[\n{texts}];\n"))
        .unwrap();
}

/// The texts of deeper trees, by their names, without what is for people alone.
fn deep_texts(nodes: &[NodeName]) -> Vec<(String, String)> {
    let entries = fs::read_dir(Path::new(TEXTS).join(DEEP)).unwrap_or_else(|error| panic!("{DEEP}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let text = |path: PathBuf| {
        let text = read(&path, DeepText::read);
        let is_listed = |name: &str| nodes.iter().any(|node| node.name == name);
        if let Some(node) = text.nodes.iter().find(|node| !is_listed(&node.name)) {
            panic!("{}: the node {} is not in {NODES}", path.display(), node.name);
        }
        let all = fs::read_to_string(&path).unwrap();
        let lines = all.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n");
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, words.collect())
    };
    paths.into_iter().map(text).collect()
}

/// The lines of all texts, each once, and the texts as the numbers of theirs: cores of one maker have most lines in common.
fn numbered_lines(texts: &[(String, String)]) -> (String, Vec<(&str, Vec<u16>)>) {
    let (mut lines, mut numbers) = (String::new(), HashMap::new());
    let mut numbered = Vec::new();
    for (name, text) in texts {
        let number_of = |line| {
            let next = numbers.len() as u16;
            *numbers.entry(line).or_insert_with(|| {
                lines += &format!("{line}\n");
                next
            })
        };
        numbered.push((&name[..], text.lines().map(number_of).collect()));
    }
    (lines, numbered)
}

/// What is wrong with a file ends the build.
fn read<T>(path: &Path, read: impl FnOnce(&str) -> Result<T, Fault>) -> T {
    let file = path.display();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    read(&text).unwrap_or_else(|fault| panic!("{file}:{}: {}", fault.line, fault.what))
}

fn core(path: &Path, nodes: &[NodeName]) -> GroupedText {
    let file = path.display();
    let text = read(path, CpuText::read);
    let is_listed = |name: &str| nodes.iter().any(|node| node.name == name);
    if let Some(node) = text.nodes.iter().find(|node| !is_listed(&node.name)) {
        panic!("{file}: the node {} is not in {NODES}", node.name);
    }
    let groups =
        (text.counters > 0).then(|| CounterGroups::of(&text).unwrap_or_else(|what| panic!("{file}: {what}")));
    (text, groups)
}
