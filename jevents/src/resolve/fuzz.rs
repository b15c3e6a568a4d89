//! What holds whatever an event's string and the kernel's texts are. The fuzzer in fuzz/ calls it with bytes that it
//! makes, the test below with those in fuzz/corpus.

use super::*;
use crate::extra::Extra;
use crate::format::raw_event;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use topdown_seam::attr::Word;

/// What the lines of the input are: the first is the string, the second the terms of the listed event `l`, these files
/// follow.
const FILES: [&str; 7] = [
    "cpu/format/a",
    "cpu/format/b",
    "cpu/format/c",
    "cpu/events/e",
    "cpu/events/f",
    "uncore_x_0/type",
    "uncore_x_1/type",
];

struct FuzzTree(PathBuf);

impl Drop for FuzzTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Panics if it does not hold.
pub fn terms(bytes: &[u8]) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let root = std::env::temp_dir().join(format!("topdown-terms-{}-{number}", std::process::id()));
    let tree = FuzzTree(root.clone());
    let sysfs = Sysfs { devices: root.join("devices"), tracing: vec![root.join("tracing")], cpus: root };
    for directory in ["cpu/format", "cpu/events", "uncore_x_0", "uncore_x_1"] {
        fs::create_dir_all(sysfs.devices.join(directory)).expect("room for a tree");
    }
    fs::write(sysfs.devices.join("cpu/type"), "4\n").expect("room for a file");
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line));
    let (string, listed) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    for (file, text) in FILES.iter().zip(lines) {
        fs::write(sysfs.devices.join(file), text.as_bytes()).expect("room for a file");
    }
    let event =
        ListedEvent { name: "l".into(), terms: listed.into(), desc: String::new(), pmu: "cpu".into() };
    let list = |name: &str| (name == "l").then(|| Arc::new(event.clone()));

    for resolved in [kernel_name(&sysfs, &string), super::event(&sysfs, list, &string)].into_iter().flatten()
    {
        holds(&sysfs, &resolved);
        let again = super::event(&sysfs, list, &string).expect("what resolves does so again");
        if again.decoded == resolved.decoded {
            assert_eq!(attr::bytes(&again.attr), attr::bytes(&resolved.attr));
            assert_eq!((&again.name, &again.pmus), (&resolved.name, &resolved.pmus));
        }
        let mut extra = Extra::from_resolved(resolved);
        Extra::copy_of(&extra).free();
        extra.free();
    }
    drop(tree);
}

fn holds(sysfs: &Sysfs, resolved: &ResolvedEvent) {
    let attr = &resolved.attr;
    let last = Word::ALL.into_iter().rposition(|word| word.of(attr) != 0).unwrap_or(0);
    assert_eq!(attr.size, [64, 64, 72, 136, 144][last]);
    assert_eq!(resolved.multi_pmu, resolved.pmus.len() > 1);
    for path in &resolved.pmus {
        assert_eq!(Path::new(path).parent(), Some(sysfs.devices.as_path()));
    }
    if let Some(back) = raw_event(sysfs, attr, None) {
        let same = kernel_name(sysfs, &back).expect("what is formatted resolves").attr;
        assert_eq!(Word::ALL.map(|word| word.of(&same)), Word::ALL.map(|word| word.of(attr)));
        assert_eq!((same.type_, same.size), (attr.type_, attr.size));
    }
}

#[test]
fn any_terms_resolve_or_are_refused() {
    let corpus = format!("{}/../fuzz/corpus/terms", env!("CARGO_MANIFEST_DIR"));
    let files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        eprintln!("{}", file.display()); // which it was, if it fails
        terms(&fs::read(&file).unwrap());
    }
}
