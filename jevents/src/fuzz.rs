//! What holds whatever the bytes are, as in the core's src/fuzz.rs.

use crate::perfmon;

/// An event file is refused, or has events that are sound; and is the same each time.
pub fn perfmon(bytes: &[u8]) {
    let Ok(events) = perfmon::parse(bytes, "cpu") else { return };
    assert_eq!(perfmon::parse(bytes, "cpu").ok().as_ref(), Some(&events));
    for event in &events {
        assert!(
            !event.name.is_empty() && !event.name.contains(|c: char| c.is_ascii_uppercase()),
            "{event:?}"
        );
        assert!(perfmon::term_value(&event.terms, "event").is_some(), "{event:?}");
        assert!(!event.desc.is_empty() && !event.pmu.is_empty(), "{event:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn any_event_file_is_sound_or_refused() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/perfmon");
        let files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            eprintln!("{}", file.display()); // which it was, if it fails
            super::perfmon(&fs::read(&file).unwrap());
        }
    }
}
