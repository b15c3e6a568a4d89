//! include/topdown.h is what cbindgen makes of the sources.

use std::path::Path;

#[test]
fn header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut made = Vec::new();
    cbindgen::generate(root).expect("cbindgen reads the sources").write(&mut made);
    // The safety sections speak to Rust programs; C has the paragraphs above them. Nor does C90 know `//`.
    let made = String::from_utf8(made).expect("a header is text");
    let made = without_safety(&made)
        .replace("// __cplusplus", "/* __cplusplus */")
        .replace("// extern \"C\"", "/* extern \"C\" */");
    let path = root.join("include/topdown.h");
    if std::env::var_os("TOPDOWN_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("include/ can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == made, "include/topdown.h is not what the sources say; run `make header` and commit it");
}

/// Drops each comment's `# Safety` section.
fn without_safety(header: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut in_safety = false;
    for line in header.lines() {
        let text = line.trim();
        if text == "* # Safety" {
            in_safety = true;
            while lines.last().is_some_and(|last| last.trim() == "*") {
                lines.pop();
            }
        }
        if in_safety && text == "*/" {
            in_safety = false;
        }
        if !in_safety {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}
