//! Documents, and the schemas of docs/schema that they are to obey.
#![allow(dead_code)] // each test uses one of both

use std::path::PathBuf;
use std::process::Command;

/// These files have no field that the schema does not name, and each that it names. It is not told where Python has no jsonschema.
pub fn have_all(schema: &str, files: &[PathBuf]) {
    check(&["--all", schema], files);
}

/// These files have no field that the schema does not name.
pub fn obey(schema: &str, files: &[PathBuf]) {
    check(&[schema], files);
}

fn check(words: &[&str], files: &[PathBuf]) {
    const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../c-tests/tools/schema");
    let output = Command::new(TOOL).args(words).args(files).output().unwrap();
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    match output.status.code() {
        Some(77 | 127) => eprintln!("skipped: {said}"),
        code => assert_eq!(code, Some(0), "{words:?}: {said}"),
    }
}
