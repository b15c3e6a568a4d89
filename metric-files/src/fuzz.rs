//! What holds whatever the bytes are, as in the core's src/fuzz.rs.

use crate::{EventLayout, MOST_DEPTH, MOST_WORDS_OF_ALL, Machine, MetricFile, read, resolve};
use topdown::{DeepEvent, Expression, PublishedNames};

/// A file is refused, or each of its metrics is of what can be counted, or has a reason why it is not. It is the same each time, and no larger
/// than the limits say.
pub fn metric_file(bytes: &[u8]) {
    let Ok(file) = read(bytes) else { return };
    assert_eq!(read(bytes).as_ref(), Ok(&file));
    assert!(file.metrics() + file.events() > 0);
    for layout in [EventLayout::Intel, EventLayout::Amd, EventLayout::Arm] {
        resolved(std::slice::from_ref(&file), layout);
    }
}

fn resolved(files: &[MetricFile], layout: EventLayout) {
    let event = |name: &str, config| DeepEvent { name: name.into(), config, ..DeepEvent::default() };
    let published = PublishedNames {
        slots_per_cycle: 6,
        events: vec![event("INST_RETIRED.ANY", 0xc0), event("A.B:C1", 0x100_0001)],
        names: vec!["info_thread_clks".into()],
    };
    let machine = Machine {
        layout,
        has_pmem: false,
        counts_kernel: false,
        published: &published,
        kernel: &|name| (name == "cpu-cycles").then_some((0x3c, 0)),
    };
    let all = resolve(files, &machine);
    assert_eq!(all.files.len(), all.given.metrics.len());
    let mut words = 0;
    for metric in &all.given.metrics {
        match &metric.value {
            Ok(value) => {
                words += size(value, 0);
                for name in value.names() {
                    let is_known =
                        ["smt_on", "tsc_ghz", "duration_time", "TOPDOWN.SLOTS", "info_thread_clks"];
                    let is_event = all.given.events.iter().any(|event| event.name == name);
                    assert!(is_event || is_known.contains(&name), "{name}");
                }
            }
            Err(why) => assert!(!why.is_empty(), "{}", metric.name),
        }
    }
    // (and a scale for each)
    assert!(words <= 2 * MOST_WORDS_OF_ALL, "{words}");
}

/// How many words an expression has.
fn size(all: &Expression, depth: usize) -> usize {
    assert!(depth <= MOST_DEPTH + 1);
    match all {
        Expression::Number(_) | Expression::Name(_) => 1,
        Expression::Of(_, operands) => 1 + operands.iter().map(|one| size(one, depth + 1)).sum::<usize>(),
        Expression::If(operands) => 1 + operands.iter().map(|one| size(one, depth + 1)).sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn any_metric_file_is_sound_or_refused() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/metric_file");
        let files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            eprintln!("{}", file.display()); // which it was, if it fails
            super::metric_file(&fs::read(&file).unwrap());
        }
    }
}
