//! Benchmarks of the slots that wait for memory: `cargo run --release --example slots -- --bench`. On a machine without counters they are made up.

use criterion::Criterion;
use std::hint::black_box;
use topdown::Options;
use topdown_criterion::Slots;

fn main() {
    let slots = Slots::of("memory_bound").unwrap_or_else(|error| {
        eprintln!("SIMULATED: {error}");
        Slots::with("memory_bound", &Options { simulate: true, ..Options::default() }).unwrap()
    });
    let mut criterion = Criterion::default().with_measurement(slots).sample_size(20).configure_from_args();
    let table: Vec<usize> = (0..1 << 20).map(|k| (k * 40_503 + 1) % (1 << 20)).collect();
    criterion
        .bench_function("in order", |bencher| bencher.iter(|| table.iter().map(black_box).sum::<usize>()));
    criterion.bench_function("from place to place", |bencher| {
        bencher.iter(|| (0..table.len()).fold(0, |place, _| table[black_box(place)]))
    });
    criterion.final_summary();
}
